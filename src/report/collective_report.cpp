// collcast.collective.v1: the time of one collective over sizes, algorithms and groups.
//
// algbw = size/time and busbw = algbw * bus_factor, as nccl-tests prints them, from the simulated time
// where there is one. A closed form is called exact when it is within the rounding of the simulator's
// clock; otherwise the page says why the two differ.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "collcast/base/units.hpp"
#include "collcast/report/documents.hpp"
#include "report/document.hpp"
#include "report/faults.hpp"
#include "report/metrics.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

std::optional<Bandwidth> algorithm_bandwidth(const CollectiveRow& row) {
  const auto time = row.time();
  if (!time || !(time->count() > 0)) return std::nullopt;
  return Bandwidth(volume(row.size).value() / time->count());
}

Json phase_json(const PhaseRow& row) {
  const PhaseEstimate& phase = row.estimate;
  Json out;
  out["shape"] = phase.shape;
  out["rounds"] = phase.rounds;
  out["chunk_bytes"] = phase.chunk.value();
  out["latency_s"] = phase.latency.count();
  out["rate_bytes_per_s"] = phase.rate.value();
  out["by_rounds_s"] = phase.by_rounds.count();
  out["by_load_s"] = phase.by_load.count();
  out["time_s"] = phase.time.count();
  out["busiest_link"] = row.busiest_link.empty() ? Json() : Json(row.busiest_link);
  out["busiest_link_bytes"] = phase.busiest_bytes.value();
  return out;
}

Json row_json(const CollectiveReport& report, const CollectiveRow& row) {
  const int size = report.groups[static_cast<std::size_t>(row.group)].size();
  const auto bandwidth = algorithm_bandwidth(row);
  Json out;
  out["collective"] = to_string(report.kind);
  out["algorithm"] = row.algorithm;
  out["protocol"] = row.protocol ? Json(*row.protocol) : Json();
  out["library"] = report.machine.library;
  out["ranks"] = size;
  out["nodes"] = row.nodes;
  out["size_bytes"] = row.size.value();
  out["chunks"] = row.chunks;
  out["channels"] = row.channels;
  out["estimate_s"] = number(row.estimate);
  out["simulate_s"] = number(row.simulate);
  out["algbw_bytes_per_s"] = bandwidth ? Json(bandwidth->value()) : Json();
  out["busbw_bytes_per_s"] = bandwidth ? Json(bandwidth->value() * bus_factor(report.kind, size)) : Json();
  out["group"] = row.group;
  if (report.concurrent) {
    out["estimate_alone_s"] = number(row.estimate_alone);
    out["simulate_alone_s"] = number(row.simulate_alone);
  }
  if (row.messages) {
    out["messages"] = *row.messages;
    out["messages_stepped"] = *row.stepped;
    if (row.classes) out["classes"] = *row.classes;
  }
  out["interval_low_s"] = row.interval ? Json(row.interval->low.count()) : Json();
  out["interval_high_s"] = row.interval ? Json(row.interval->high.count()) : Json();
  out["estimate_is_approximate"] = row.approximate;
  out["runner_up"] = Json();
  if (row.runner_up) {
    const auto& protocol = row.runner_up->protocol;
    out["runner_up"] = {{"algorithm", row.runner_up->algorithm},
                        {"protocol", protocol ? Json(*protocol) : Json()},
                        {"chunks", row.runner_up->chunks},
                        {"estimate_s", row.runner_up->estimate.count()},
                        {"simulate_s", number(row.runner_up->simulate)}};
  }
  out["phases"] = Json::array();
  for (const PhaseRow& phase : row.phases) out["phases"].push_back(phase_json(phase));
  if (!report.links) return out;
  out["links"] = Json::array();
  for (const LinkRow& link : row.links)
    out["links"].push_back({{"link", link.link},
                            {"carried_bytes", link.carried.value()},
                            {"busy_s", link.busy.count()},
                            {"utilisation", link.utilisation}});
  return out;
}

Json rows_json(const CollectiveReport& report) {
  Json rows = Json::array();
  for (const CollectiveRow& row : report.rows) rows.push_back(row_json(report, row));
  return rows;
}

/// What was asked; ranks are in `groups`, the machine in `machine`.
Json inputs_json(const CollectiveReport& report) {
  const CollectiveReport::Inputs& in = report.inputs;
  const auto count = [](int n) { return n == 0 ? Json("auto") : Json(n); };
  Json sizes = Json::array();
  for (const Bytes size : in.sizes) sizes.push_back(size.value());
  Json out{{"collective", to_string(report.kind)},
           {"size_bytes", sizes},
           {"root", in.root},
           {"algorithm", in.all_algorithms ? "all" : in.policy.algorithm},
           {"chunks", count(in.policy.chunks)},
           {"channels", count(in.policy.channels)},
           {"sharing", in.sharing == Sharing::fifo ? "fifo" : "max_min"},
           {"method", in.estimate && in.simulate ? "both"
                      : in.estimate              ? "estimate"
                                                 : "simulate"},
           {"base_latency_s", in.policy.base_latency.count()},
           {"library", report.machine.library}};
  if (in.environment) out["environment"] = *in.environment;
  if (!in.faults.empty()) out["faults"] = faults_json(in.faults);
  return out;
}

/// Whether the clock's round-ups alone explain the difference: the law that tests/agreement holds links of one's own
/// to.
bool agree(const CollectiveRow& row) {
  return std::abs((*row.simulate - *row.estimate).count()) <= row.rounding.count() + 1e-12 * row.estimate->count();
}

std::string difference(const CollectiveRow& row) {
  if (!row.estimate || !row.simulate) return "";
  const std::string text = difference_text(*row.simulate, *row.estimate);
  if (!agree(row)) return text.empty() ? "<0.0001%" : text;
  // Chunks that take about a picosecond are rounded up by as much as they take; say by how much.
  const bool visible = std::abs(*row.simulate / *row.estimate - 1) > 1e-3;
  return visible ? text + " (rounding)" : "exact";
}

std::string time_text(std::optional<Seconds> time) { return time ? format_seconds(*time) : "-"; }

std::string rate_text(std::optional<Bandwidth> rate, double factor) {
  return rate ? figure_text(rate->value() * factor / 1e9) : "-";
}

/// Groups whose rows say the same are shown once. Rows of one algorithm and size stand together.
bool same_but_group(const CollectiveRow& a, const CollectiveRow& b) {
  return a.algorithm == b.algorithm && a.protocol == b.protocol && a.size == b.size && a.chunks == b.chunks &&
         a.channels == b.channels && a.nodes == b.nodes && a.estimate == b.estimate && a.simulate == b.simulate &&
         a.estimate_alone == b.estimate_alone && a.simulate_alone == b.simulate_alone;
}

struct ShownRow {
  const CollectiveRow* row;
  int alike = 0;  ///< further groups with the same figures
};

std::vector<ShownRow> shown_rows(const CollectiveReport& report) {
  std::vector<ShownRow> out;
  for (const CollectiveRow& row : report.rows) {
    const auto same = std::find_if(out.rbegin(), out.rend(), [&](const ShownRow& s) {
      return same_but_group(*s.row, row) && report.groups[static_cast<std::size_t>(s.row->group)].size() ==
                                                report.groups[static_cast<std::size_t>(row.group)].size();
    });
    if (same != out.rend())
      ++same->alike;
    else
      out.push_back({&row});
  }
  return out;
}

/// Which columns a report needs: what is the same everywhere, or was not asked for, is left out.
struct Columns {
  bool groups, protocol, channels, estimate, simulate, concurrent, interval;
};

Columns needed(const CollectiveReport& report) {
  const auto any = [&](auto holds) { return std::any_of(report.rows.begin(), report.rows.end(), holds); };
  return {report.groups.size() > 1,
          any([](const CollectiveRow& r) { return r.protocol.has_value(); }),
          any([](const CollectiveRow& r) { return r.channels > 1; }),
          any([](const CollectiveRow& r) { return r.estimate.has_value(); }),
          any([](const CollectiveRow& r) { return r.simulate.has_value(); }),
          report.concurrent,
          any([](const CollectiveRow& r) { return r.interval.has_value(); })};
}

std::string slowdown_text(const CollectiveRow& row) {
  const auto alone = row.simulate_alone ? row.simulate_alone : row.estimate_alone;
  if (!alone || !row.time() || !(alone->count() > 0)) return "-";
  return fmt::format("{:.3g}x", row.time()->count() / alone->count());
}

std::string interval_text(const CollectiveRow& row) {
  if (!row.interval) return "-";
  return format_range(*row.interval);
}

Table rows_table(const CollectiveReport& report) {
  const Columns has = needed(report);
  Table out;
  const auto column = [&](bool shown, const char* title, const char* unit = "", Align align = Align::right) {
    if (shown) out.columns.push_back({title, unit, align});
  };
  column(true, "size");
  column(has.groups, "group", "", Align::left);
  column(true, "algorithm", "", Align::left);
  column(has.protocol, "protocol", "", Align::left);
  column(true, "chunks");
  column(has.channels, "channels");
  column(has.estimate && has.concurrent, "estimate alone");
  column(has.simulate && has.concurrent, "simulate alone");
  column(has.estimate, has.concurrent ? "estimate together" : "estimate");
  column(has.simulate, has.concurrent ? "simulate together" : "simulate");
  column(has.estimate && has.simulate, "difference");
  column(has.concurrent, "slowdown");
  column(has.interval, "8 of 10 within");
  column(true, "algbw", "GB/s");
  column(true, "busbw", "GB/s");
  for (const ShownRow& shown : shown_rows(report)) {
    const CollectiveRow& row = *shown.row;
    const Group& group = report.groups[static_cast<std::size_t>(row.group)];
    std::vector<std::string> cells;
    const auto cell = [&](bool is_shown, std::string text) {
      if (is_shown) cells.push_back(std::move(text));
    };
    cell(true, size_text(row.size));
    cell(has.groups, ranks_text(group) + (shown.alike > 0 ? fmt::format(" (and {} like it)", shown.alike) : ""));
    cell(true, row.algorithm);
    cell(has.protocol, row.protocol.value_or("-"));
    cell(true, fmt::format("{}", row.chunks));
    cell(has.channels, fmt::format("{}", row.channels));
    cell(has.estimate && has.concurrent, time_text(row.estimate_alone));
    cell(has.simulate && has.concurrent, time_text(row.simulate_alone));
    cell(has.estimate, time_text(row.estimate));
    cell(has.simulate, time_text(row.simulate));
    cell(has.estimate && has.simulate, difference(row));
    cell(has.concurrent, slowdown_text(row));
    cell(has.interval, interval_text(row));
    const auto bandwidth = algorithm_bandwidth(row);
    cell(true, rate_text(bandwidth, 1));
    cell(true, rate_text(bandwidth, bus_factor(report.kind, group.size())));
    out.rows.push_back(std::move(cells));
  }
  return out;
}

const PhaseRow* slowest_phase(const CollectiveRow& row) {
  const auto slowest = std::max_element(row.phases.begin(), row.phases.end(), [](const PhaseRow& a, const PhaseRow& b) {
    return a.estimate.time < b.estimate.time;
  });
  return slowest == row.phases.end() ? nullptr : &*slowest;
}

/// Of library nccl: whether what the busiest link has beyond the closed form's busiest resource is most of the
/// difference, else what is.
std::string nccl_difference(const CollectiveRow& row) {
  if (!row.busiest) return "the simulation waits for the host's call";
  const CollectiveRow::Busiest& busiest = *row.busiest;
  const std::string share = fmt::format("{:.0f} % of the time", 100 * std::min(1.0, busiest.load / *row.simulate));
  const Seconds longer = *row.simulate - *row.estimate;
  if (busiest.shared && longer > Seconds(0) && busiest.load - busiest.data > 0.5 * longer)
    return fmt::format("contention on {}, which is full {}; the closed form has less on its busiest resource ({})",
                       busiest.link, share, busiest.bound);
  constexpr std::int64_t few = 4;
  if (row.algorithm != "p2p" && row.chunks <= few)
    return fmt::format("no contention: {} of a channel hide{} little of what fills the pipe ({} is busiest, {})",
                       counted(row.chunks, "chunk"), row.chunks == 1 ? "s" : "", busiest.link, share);
  if (longer > Seconds(0))
    return fmt::format("no contention: messages wait for those before them, and no link is full ({} is busiest, {})",
                       busiest.link, share);
  return fmt::format(
      "no contention: hops overlap that the closed form adds to its busiest resource's time ({}; simulated {} is "
      "busiest, {})",
      busiest.bound, busiest.link, share);
}

/// Why closed form and simulation differ, said once for the row where they differ most.
void add_difference_note(const CollectiveReport& report, std::vector<std::string>& notes) {
  const CollectiveRow* worst = nullptr;
  const auto distance = [](const CollectiveRow& r) { return std::abs(r.simulate->count() / r.estimate->count() - 1); };
  for (const CollectiveRow& row : report.rows) {
    if (!row.estimate || !row.simulate || agree(row)) continue;
    if (row.protocol && distance(row) < 1e-4) continue;  // its rounding is not worked out
    if (worst == nullptr || distance(row) > distance(*worst)) worst = &row;
  }
  if (worst == nullptr) return;
  std::string why =
      "the closed form takes a ring to start when its last rank has come and leaves out ways that stay at "
      "one hop for a part of the rounds";
  if (worst->protocol)
    why = nccl_difference(*worst);
  else if (worst->bound)
    why =
        "the estimate of a file's algorithm is a lower bound, the longer of its longest chain and of its busiest link; "
        "in the simulation transfers meet";
  else if (worst->shared && report.inputs.sharing == Sharing::fifo)
    why =
        "the closed form gives transfers fair shares of a link; it does not model fifo, where each waits until its "
        "whole route is free";
  else if (worst->shared)
    why =
        "transfers share links; who meets whom is taken from the critical path, in the simulation delayed ranks meet "
        "others";
  notes.push_back(fmt::format("estimate and simulation differ by up to {} ({}, {}): {}.", difference(*worst),
                              worst->algorithm, size_text(worst->size), why));
}

void add_sharing_note(const CollectiveReport& report, std::vector<std::string>& notes) {
  const CollectiveRow* largest = nullptr;
  for (const CollectiveRow& row : report.rows) {
    if (row.estimate && row.shared && row.size > Bytes(0) && (largest == nullptr || row.size > largest->size))
      largest = &row;
  }
  if (largest == nullptr) return;
  std::string note = "where transfers share a link the closed form is approximate";
  if (const PhaseRow* phase = slowest_phase(*largest); phase != nullptr && !phase->busiest_link.empty()) {
    const bool phases = largest->phases.size() > 1;
    note += fmt::format("; the link of {} at {} that ends last is {} with {}{}", largest->algorithm,
                        size_text(largest->size), phase->busiest_link, format_bytes(phase->estimate.busiest_bytes),
                        phases ? fmt::format(" in the slowest of {} phases", largest->phases.size()) : "");
  }
  notes.push_back(note + ".");
}

/// "ring" or, where a library has protocols, "ring LL".
template <class Row>
std::string pick_text(const Row& row) {
  return row.protocol ? row.algorithm + " " + *row.protocol : row.algorithm;
}

bool same_pick(const CollectiveRow& a, const CollectiveRow& b) {
  return pick_text(a) == pick_text(b) && pick_text(*a.runner_up) == pick_text(*b.runner_up);
}

/// What `auto` picked for a group, said again where over the sizes it or the runner-up changes.
std::vector<std::string> picks_of(const CollectiveReport& report, int group) {
  std::vector<std::string> notes;
  std::vector<const CollectiveRow*> picks;
  for (const CollectiveRow& row : report.rows)
    if (row.runner_up && row.group == group) picks.push_back(&row);
  for (std::size_t first = 0; first < picks.size();) {
    std::size_t last = first;
    while (last + 1 < picks.size() && same_pick(*picks[first], *picks[last + 1])) ++last;
    const CollectiveRow& row = *picks[last];
    const CollectiveRow::RunnerUp& next = *row.runner_up;
    std::string sizes = size_text(picks[first]->size);
    if (last > first) sizes += " to " + size_text(row.size);
    // NCCL goes by its own table of times, not by the forecast, so that the other may be the faster.
    const bool regrets = row.protocol && row.estimate && next.estimate < *row.estimate;
    notes.push_back(
        fmt::format("{} picked {} at {}; the runner-up{}{} is {} with {}: {} by {}{}.", row.protocol ? "NCCL" : "auto",
                    pick_text(row), sizes, row.protocol ? " of its own table" : "",
                    last > first ? " at " + size_text(row.size) : "", pick_text(next), counted(next.chunks, "chunk"),
                    format_seconds(next.simulate.value_or(next.estimate)), next.simulate ? "simulation" : "closed form",
                    regrets ? ", faster than NCCL believes" : ""));
    first = last + 1;
  }
  return notes;
}

/// The same for every group: once for groups that fare alike, and among whom where some fare otherwise.
void add_runner_up_notes(const CollectiveReport& report, std::vector<std::string>& notes) {
  constexpr std::size_t most_told = 4;                         // ways to fare
  std::vector<std::pair<int, std::vector<std::string>>> ways;  // first group, notes
  std::vector<int> alike;                                      // further groups of each way
  for (int group = 0; group < static_cast<int>(report.groups.size()); ++group) {
    std::vector<std::string> picks = picks_of(report, group);
    if (picks.empty()) continue;  // its ranks have nothing to choose, or do what another group chose
    const auto same = std::find_if(ways.begin(), ways.end(), [&](const auto& way) { return way.second == picks; });
    if (same != ways.end()) {
      ++alike[static_cast<std::size_t>(same - ways.begin())];
      continue;
    }
    ways.emplace_back(group, std::move(picks));
    alike.push_back(0);
  }
  for (std::size_t w = 0; w < std::min(ways.size(), most_told); ++w) {
    std::string who = ways.size() == 1 ? "" : ranks_text(report.groups[static_cast<std::size_t>(ways[w].first)]);
    if (!who.empty())
      who = fmt::format("ranks {}{}: ", who, alike[w] > 0 ? fmt::format(" (and {} like it)", alike[w]) : "");
    for (const std::string& pick : ways[w].second) notes.push_back(who + pick);
  }
  if (ways.size() > most_told)
    notes.push_back(
        fmt::format("{} further ways in which groups pick are in the rows of --format json.", ways.size() - most_told));
}

/// "8 of 10 at 1 KiB, 2 KiB: the forecast itself is outside ..."
void add_outside_note(const CollectiveReport& report, std::vector<std::string>& notes) {
  constexpr std::size_t most_named = 4;
  std::vector<std::string> sizes;
  for (const CollectiveRow& row : report.rows)
    // The interval is of the closed form, which the calibration was fitted by.
    if (const auto forecast = row.estimate ? row.estimate : row.time(); forecast && is_outside(*forecast, row.interval))
      if (std::string size = size_text(row.size); sizes.empty() || sizes.back() != size)
        sizes.push_back(std::move(size));
  if (sizes.empty()) return;
  const std::size_t more = sizes.size() > most_named ? sizes.size() - most_named : 0;
  sizes.resize(sizes.size() - more);
  notes.push_back(fmt::format("8 of 10 at {}{}: {}", fmt::join(sizes, ", "),
                              more > 0 ? fmt::format(" and {} more", more) : std::string(), outside_text));
}

/// What people and programs are told beside the figures.
std::vector<std::string> all_notes(const CollectiveReport& report) {
  std::vector<std::string> notes;
  add_runner_up_notes(report, notes);
  add_sharing_note(report, notes);
  add_difference_note(report, notes);
  add_outside_note(report, notes);
  for (std::string& text : machine_warnings(report.machine)) notes.push_back(std::move(text));
  notes.insert(notes.end(), report.notes.begin(), report.notes.end());
  return notes;
}

Table curve_table(const CollectiveReport::Curve& curve) {
  Table out{fmt::format("time over the number of chunks: {}, {}", curve.algorithm, size_text(curve.size)),
            {{"chunks", "", Align::right}, {"estimate", "", Align::right}, {"", "", Align::left}},
            {}};
  for (const ChunkPoint& point : curve.points)
    out.rows.push_back(
        {fmt::format("{}", point.chunks), format_seconds(point.time), point.chunks == curve.taken ? "<- taken" : ""});
  return out;
}

/// One table per simulation; groups at once share one.
void add_link_tables(const CollectiveReport& report, Page& page) {
  for (const ShownRow& shown : shown_rows(report)) {
    const CollectiveRow& row = *shown.row;
    if (row.links.empty() || (report.concurrent && row.group > 0)) continue;
    std::string when = fmt::format("in the simulation of {}, {}", row.algorithm, size_text(row.size));
    if (report.groups.size() > 1 && !report.concurrent)
      when += fmt::format(", group {}", ranks_text(report.groups[static_cast<std::size_t>(row.group)]));
    page.blocks.push_back(link_table(row.links, when));
  }
}

Json document_json(const CollectiveReport& report) {
  Json out = document("collcast.collective.v1");
  out["machine"] = machine(report.machine);
  out["groups"] = Json::array();
  for (const Group& group : report.groups) out["groups"].push_back(ranks(group));
  out["concurrent"] = report.concurrent;
  out["rows"] = rows_json(report);
  out["not_applicable"] = Json::array();
  for (const auto& skipped : report.skipped)
    out["not_applicable"].push_back({{"algorithm", skipped.algorithm}, {"reason", skipped.reason}});
  out["notes"] = all_notes(report);
  out["partial"] = report.partial;
  out["warnings"] = report.said;
  for (std::string& text : machine_warnings(report.machine)) out["warnings"].push_back(std::move(text));
  out["inputs"] = inputs_json(report);
  if (report.curves.empty()) return out;
  out["chunk_curves"] = Json::array();
  for (const auto& curve : report.curves) {
    Json points = Json::array();
    for (const ChunkPoint& point : curve.points)
      points.push_back({{"chunks", point.chunks}, {"estimate_s", point.time.count()}});
    out["chunk_curves"].push_back({{"algorithm", curve.algorithm},
                                   {"size_bytes", curve.size.value()},
                                   {"taken", curve.taken},
                                   {"points", std::move(points)}});
  }
  return out;
}

std::string who(const CollectiveReport& report) {
  if (report.groups.size() == 1) {
    const int nodes = report.rows.empty() ? 0 : report.rows.front().nodes;
    const std::string ranks = counted(report.groups.front().size(), "rank");
    return nodes > 0 ? fmt::format("{} on {}", ranks, counted(nodes, "node")) : ranks;
  }
  return fmt::format("{} groups {}", report.groups.size(), report.concurrent ? "at once" : "one at a time");
}

}  // namespace

std::string json(const CollectiveReport& report) { return text(document_json(report)); }

Table csv(const CollectiveReport& report) {
  // Every key of a row that fits a cell, whatever was asked for. Phases, links and the runner-up are in the JSON.
  constexpr std::array<std::string_view, 20> columns{"collective",
                                                     "algorithm",
                                                     "protocol",
                                                     "library",
                                                     "ranks",
                                                     "nodes",
                                                     "size_bytes",
                                                     "chunks",
                                                     "channels",
                                                     "estimate_s",
                                                     "simulate_s",
                                                     "algbw_bytes_per_s",
                                                     "busbw_bytes_per_s",
                                                     "group",
                                                     "estimate_alone_s",
                                                     "simulate_alone_s",
                                                     "interval_low_s",
                                                     "interval_high_s",
                                                     "estimate_is_approximate",
                                                     "partial"};
  Json rows = rows_json(report);
  for (Json& row : rows) row["partial"] = report.partial;
  return csv_rows(rows, columns);
}

Page page(const CollectiveReport& report) {
  const MachineSummary& machine = report.machine;
  Page out;
  out.title = fmt::format("{} on {}{}", to_string(report.kind), machine.topology,
                          machine.title.empty() ? "" : fmt::format(" ({})", machine.title));
  out.blocks.push_back(Paragraph{fmt::format("{}, library {}", who(report), machine.library), Paragraph::Tone::plain});
  if (!report.inputs.faults.empty())
    out.blocks.push_back(Paragraph{"faults: " + faults_text(report.inputs.faults), Paragraph::Tone::plain});
  if (!report.rows.empty()) out.blocks.push_back(rows_table(report));
  for (const auto& curve : report.curves) out.blocks.push_back(curve_table(curve));
  if (!report.curves.empty()) out.blocks.push_back(Paragraph{chunks_text, Paragraph::Tone::note});
  if (report.links) add_link_tables(report, out);
  if (!report.skipped.empty()) {
    Table table{"does not apply", {{"algorithm", "", Align::left}, {"why", "", Align::left}}, {}};
    for (const auto& skipped : report.skipped) table.rows.push_back({skipped.algorithm, skipped.reason});
    out.blocks.push_back(std::move(table));
  }
  for (const std::string& note : all_notes(report)) out.blocks.push_back(Paragraph{note, Paragraph::Tone::note});
  return out;
}

}  // namespace collcast
