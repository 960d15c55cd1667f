// A collective's forecast taken apart: what was chosen, each phase's formula with its numbers, and the links
// that the numbers came from.
//
// The formulas are those of collcast/cost/estimate.hpp for equal hops. Where hops differ the closed form
// sums them one by one; the term then says so and gives both figures.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collcast/base/units.hpp"
#include "collcast/cost/chain.hpp"
#include "collcast/report/documents.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

std::string_view flow_text(Flow flow) {
  switch (flow) {
    case Flow::circulating:
      return "circulating: each chunk goes on around as soon as it has come";
    case Flow::forwarding:
      return "forwarding: a chunk is passed on while the next one comes";
    case Flow::sequential:
      return "sequential: a rank's messages leave one after the other";
    case Flow::concurrent:
      return "concurrent: all of a rank's messages leave at once";
  }
  return "";
}

Table route_table(const Fabric& fabric, const SlowestHop& hop) {
  Table out{fmt::format("slowest route, rank {} -> rank {}", hop.from.value(), hop.to.value()),
            {{"link", "", Align::left},
             {"kind", "", Align::left},
             {"bandwidth", "", Align::right},
             {"latency", "", Align::right}},
            {}};
  std::vector<LinkId> route;
  fabric.route(hop.from, hop.to, hop.route_lane, route);
  for (const LinkId id : route) {
    const Link& link = fabric.links()[id.value()];
    out.rows.push_back({fabric.link_name(id), std::string(to_string(link.kind)), format_bandwidth(link.bandwidth),
                        format_seconds(link.latency)});
  }
  return out;
}

struct PhaseNumbers {
  double rounds, chunks;
  Seconds tau, alpha;
};

Term rounds_term(Flow flow, const PhaseNumbers& n) {
  const std::string tau = format_seconds(n.tau), alpha = format_seconds(n.alpha);
  Term out{"by rounds", {}, {}, 0, "s", {}};
  switch (flow) {
    case Flow::circulating:
      out.formula = "(R-1) max(c tau, tau + alpha) + c tau + alpha";
      out.numbers = fmt::format("({} - 1) max({} x {}, {} + {}) + {} x {} + {}", n.rounds, n.chunks, tau, tau, alpha,
                                n.chunks, tau, alpha);
      out.value = (n.rounds - 1) * std::max(n.chunks * n.tau.count(), (n.tau + n.alpha).count()) +
                  n.chunks * n.tau.count() + n.alpha.count();
      break;
    case Flow::forwarding:
      out.formula = "R (tau + alpha) + (c-1) tau";
      out.numbers = fmt::format("{} ({} + {}) + ({} - 1) {}", n.rounds, tau, alpha, n.chunks, tau);
      out.value = n.rounds * (n.tau + n.alpha).count() + (n.chunks - 1) * n.tau.count();
      break;
    case Flow::sequential:
      out.formula = "R c tau + alpha";
      out.numbers = fmt::format("{} x {} x {} + {}", n.rounds, n.chunks, tau, alpha);
      out.value = n.rounds * n.chunks * n.tau.count() + n.alpha.count();
      break;
    case Flow::concurrent:
      out.formula = "c tau + alpha";
      out.numbers = fmt::format("{} x {} + {}", n.chunks, tau, alpha);
      out.value = n.chunks * n.tau.count() + n.alpha.count();
      break;
  }
  return out;
}

void add_rate(Section& section, const Fabric& fabric, const PhaseEstimate& phase) {
  Term beta{"beta", {}, {}, phase.rate.value(), "B/s", "rate of the slowest hop"};
  Term alpha{"alpha", {}, {}, phase.latency.count(), "s", "sum of the latencies of the slowest route"};
  if (phase.slowest) {
    const SlowestHop& hop = *phase.slowest;
    const Bandwidth alone = fabric.path(hop.from, hop.to, hop.route_lane).bandwidth;
    const double slowdown = alone.value() / phase.rate.value();
    const std::string route = fmt::format("the route of rank {} -> rank {}", hop.from.value(), hop.to.value());
    beta.source = "smallest bandwidth on " + route;
    if (slowdown > 1 + 1e-9) {
      beta.formula = "bandwidth / slowdown";
      beta.numbers = fmt::format("{} / {:.4g}", format_bandwidth(alone), slowdown);
      beta.source += ", and how much slower its hop is beside those that it shares links with";
    }
    if (hop.latency < phase.latency) alpha.source = "sum of the latencies of another hop's route, the longest of all";
  }
  section.terms.push_back(beta);
  section.terms.push_back(alpha);
}

/// The hops that a phase's time is the sum of: of a long chain its two ends.
Table chain_table(const std::vector<ChainHop>& chain) {
  constexpr std::size_t most = 12;
  const auto part = [](ChainHop::Part p) {
    switch (p) {
      case ChainHop::Part::first_chunk:
        return "first chunk";
      case ChainHop::Part::last_chunk:
        return "last chunk";
      case ChainHop::Part::all_chunks:
        return "all chunks";
      case ChainHop::Part::whole:
        break;
    }
    return "message";
  };
  Table out{fmt::format("longest chain: {}, each waits for the one before", counted(std::ssize(chain), "hop")),
            {{"hop", "", Align::left},
             {"of its", "", Align::left},
             {"begins", "", Align::right},
             {"takes", "", Align::right},
             {"alone", "", Align::right},
             {"latency", "", Align::right}},
            {}};
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const ChainHop& hop = chain[i];
    if (chain.size() > most && i == most / 2) {
      out.rows.push_back({fmt::format("... {} more", chain.size() - most), "", "", "", "", ""});
      i = chain.size() - most / 2 - 1;
      continue;
    }
    out.rows.push_back({fmt::format("rank {} -> rank {}", hop.from.value(), hop.to.value()), part(hop.part),
                        format_seconds(hop.start), format_seconds(hop.takes), format_seconds(hop.alone),
                        format_seconds(hop.latency)});
  }
  return out;
}

/// "214.7 ms + 107.4 ms", each with its latency; empty where the chain does not come to `sum`.
std::string chain_sum(const std::vector<ChainHop>& chain, Seconds sum) {
  constexpr std::size_t most = 12;
  std::string out;
  double total = 0;
  for (const ChainHop& hop : chain) {
    out += (out.empty() ? "" : " + ") + format_seconds(hop.takes + hop.latency);
    total += (hop.takes + hop.latency).count();
  }
  return chain.size() > most || std::abs(total - sum.count()) > 1e-9 * sum.count() ? std::string() : out;
}

/// Two sums of the same times in other orders differ by their rounding.
std::string what_counts(const PhaseEstimate& phase) {
  if (std::abs((phase.by_load - phase.by_rounds).count()) <= 1e-9 * phase.by_rounds.count())
    return "rounds and load come to the same";
  return phase.by_load > phase.by_rounds ? "the load of the link that ends last counts" : "the rounds count";
}

Section phase_section(const Fabric& fabric, const Pattern& pattern, const PhaseEstimate& phase, std::size_t index) {
  Section out;
  out.title = fmt::format("phase {}: {}", index + 1, phase.shape);
  out.text.push_back({std::string(flow_text(phase.flow)), Paragraph::Tone::plain});
  if (pattern.lanes.size() > 1)
    out.text.push_back(
        {fmt::format("{} lanes side by side, each with its part of the data; the figures are of the slowest",
                     pattern.lanes.size()),
         Paragraph::Tone::plain});
  const PhaseNumbers n{static_cast<double>(phase.rounds), static_cast<double>(pattern.chunks), phase.chunk / phase.rate,
                       phase.latency};
  out.terms.push_back({"R", {}, {}, n.rounds, "", "rounds of the phase"});
  out.terms.push_back({"c", {}, {}, n.chunks, "", "chunks that each message is cut into"});
  out.terms.push_back({"m", {}, {}, phase.chunk.value(), "B", "largest chunk of a message"});
  add_rate(out, fabric, phase);
  out.terms.push_back({"tau", "m / beta",
                       fmt::format("{} / {}", format_bytes(phase.chunk), format_bandwidth(phase.rate)), n.tau.count(),
                       "s", ""});
  Term rounds = rounds_term(phase.flow, n);
  if (std::abs(rounds.value - phase.by_rounds.count()) > 1e-6 * phase.by_rounds.count()) {
    rounds.source = fmt::format("hops differ: {} = {} if the slowest were in every round", rounds.formula,
                                format_seconds(Seconds(rounds.value)));
    rounds.formula = "the longest chain of hops, summed hop by hop";
    const std::vector<ChainHop> chain = longest_chain(fabric, pattern, index);
    rounds.numbers = chain_sum(chain, phase.by_rounds);
    rounds.value = phase.by_rounds.count();
    if (!chain.empty()) out.tables.push_back(chain_table(chain));
  }
  out.terms.push_back(rounds);
  if (phase.busiest && phase.busiest_bytes > Volume{} && phase.by_load > Seconds(0)) {
    const Link& link = fabric.links()[phase.busiest->value()];
    Seconds before = phase.by_load - phase.busiest_bytes / link.bandwidth;
    // The difference of two sums: what is left of zero is their rounding.
    if (std::abs(before.count()) < 1e-12 * phase.by_load.count()) before = Seconds(0);
    const bool early = before < Seconds(0);
    out.terms.push_back({"by load", "t0 + bytes over the last link / its bandwidth",
                         fmt::format("{}{} + {} / {}", early ? "-" : "", format_seconds(early ? -before : before),
                                     format_bytes(phase.busiest_bytes), format_bandwidth(link.bandwidth)),
                         phase.by_load.count(), "s",
                         fmt::format("{} is the link that ends last; t0: its first byte's start, and latency{}",
                                     fabric.link_name(*phase.busiest),
                                     early ? "; some ranks begin before all are through with the phase before" : "")});
  }
  out.terms.push_back({"phase", "max(by rounds, by load)", {}, phase.time.count(), "s", what_counts(phase)});
  if (phase.slowest) out.tables.push_back(route_table(fabric, *phase.slowest));
  return out;
}

Section choice_section(const std::vector<Choice>& candidates) {
  Section out;
  out.title = "choice";
  if (candidates.size() == 1) {
    const CollectiveOptions& o = candidates.front().options;
    out.text.push_back({fmt::format("{} with {} and {}; no other was asked for", o.algorithm,
                                    counted(o.chunks, "chunk"), counted(o.channels, "channel")),
                        Paragraph::Tone::plain});
    return out;
  }
  const bool simulated =
      std::any_of(candidates.begin(), candidates.end(), [](const Choice& c) { return c.simulated.has_value(); });
  Table table{simulated ? "candidates, fastest first; those that the closed form cannot tell apart were simulated"
                        : "candidates by closed form, fastest first",
              {{"algorithm", "", Align::left},
               {"chunks", "", Align::right},
               {"channels", "", Align::right},
               {"estimate", "", Align::right}},
              {}};
  if (simulated) table.columns.push_back({"simulation", "", Align::right});
  for (const Choice& c : candidates) {
    table.rows.push_back({c.options.algorithm, fmt::format("{}", c.options.chunks),
                          fmt::format("{}", c.options.channels), format_seconds(c.estimate.total)});
    if (simulated) table.rows.back().push_back(c.simulated ? format_seconds(*c.simulated) : "-");
  }
  out.tables.push_back(std::move(table));
  return out;
}

std::string against_estimate(Seconds simulated, Seconds estimated) {
  const std::string difference = difference_text(simulated, estimated);
  return difference.empty() ? "as estimated" : difference + " against the estimate";
}

/// `simulated` and `base` as they count: the simulated time with the base latency in it.
Section total_section(const CollectiveRequest& request, const Choice& choice, std::optional<Seconds> simulated,
                      Seconds base) {
  Section out;
  out.title = "total";
  const bool calibrated = base > Seconds(0);
  std::string sum = calibrated ? format_seconds(base) : std::string();
  for (const PhaseEstimate& phase : choice.estimate.phases)
    sum += (sum.empty() ? "" : " + ") + format_seconds(phase.time);
  if (choice.estimate.phases.size() + (calibrated ? 1 : 0) < 2) sum.clear();
  const Seconds estimated = choice.estimate.total + base;
  const double total = estimated.count();
  if (calibrated)
    out.terms.push_back(
        {"base latency", {}, {}, base.count(), "s", "of the calibration, in front of every collective"});
  out.terms.push_back({"estimate", calibrated ? "base latency + sum of the phases" : "sum of the phases", sum, total,
                       "s",
                       choice.estimate.shared   ? "approximate: transfers share links"
                       : choice.estimate.drifts ? "approximate: a ring's hops are unlike, its ranks drift apart"
                                                : "exact: no two transfers share a link"});
  if (simulated) {
    out.terms.push_back({"simulation", {}, {}, simulated->count(), "s", against_estimate(*simulated, estimated)});
  }
  const double time = simulated ? simulated->count() : total;
  if (!(time > 0)) return out;
  const double rate = volume(request.size).value() / time;
  const double factor = bus_factor(request.kind, request.group.size());
  out.terms.push_back({"algbw", "N / T", fmt::format("{} / {}", size_text(request.size), format_seconds(Seconds(time))),
                       rate, "B/s", ""});
  out.terms.push_back({"busbw", "algbw x bus factor",
                       fmt::format("{} x {:.4g}", format_bandwidth(Bandwidth(rate)), factor), rate * factor, "B/s",
                       "bus factor of nccl-tests for this collective"});
  return out;
}

Section curve_section(const std::vector<ChunkPoint>& curve, int taken) {
  Section out;
  out.title = "chunks";
  Table table{{}, {{"chunks", "", Align::right}, {"estimate", "", Align::right}, {"", "", Align::left}}, {}};
  for (const ChunkPoint& point : curve)
    table.rows.push_back(
        {fmt::format("{}", point.chunks), format_seconds(point.time), point.chunks == taken ? "<- taken" : ""});
  out.text.push_back({chunks_text, Paragraph::Tone::plain});
  out.tables.push_back(std::move(table));
  return out;
}

}  // namespace

std::vector<LinkRow> link_rows(const Fabric& fabric, const Timeline& timeline) {
  std::vector<LinkRow> rows;
  const Seconds end = to_seconds(timeline.finish);
  for (std::size_t i = 0; i < timeline.links.size(); ++i) {
    const LinkUse& use = timeline.links[i];
    if (use.busy.count() == 0) continue;
    const LinkId link(static_cast<std::uint32_t>(i));
    rows.push_back({fabric.link_name(link), use.carried, to_seconds(use.busy),
                    use.carried.value() / (fabric.links()[i].bandwidth.value() * end.count())});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const LinkRow& a, const LinkRow& b) {
    return a.busy > b.busy || (a.busy == b.busy && a.utilisation > b.utilisation);
  });
  return rows;
}

Section link_use(const Fabric& fabric, const Timeline& timeline) {
  Section out;
  out.title = "links";
  const std::vector<LinkRow> rows = link_rows(fabric, timeline);
  if (rows.empty())
    out.text.push_back({"no bytes cross any link", Paragraph::Tone::plain});
  else
    out.tables.push_back(link_table(rows, "in the simulation"));
  return out;
}

ExplainReport explain(const Fabric& fabric, const CollectiveRequest& request, const std::vector<Choice>& candidates,
                      std::optional<Seconds> simulated, const std::vector<ChunkPoint>& curve, Seconds base_latency) {
  check(!candidates.empty(), "there is a choice to explain");
  const Choice& choice = candidates.front();
  ExplainReport out;
  out.title =
      fmt::format("{} of {} among {} of {}: {}, {}", to_string(request.kind), size_text(request.size),
                  counted_ranks(request.group), fabric.spec().name + (fabric.spec().calibrated ? ", calibrated" : ""),
                  choice.options.algorithm, counted(choice.options.chunks, "chunk"));
  if (!request.alongside.empty())
    out.title +=
        fmt::format(", beside {} at once", counted(static_cast<std::int64_t>(request.alongside.size()), "other group"));
  out.library = "ideal";
  out.title += ", library ideal";
  out.sections.push_back(choice_section(candidates));
  if (fabric.spec().calibrated)
    out.sections.front().text.push_back({calibrated_text(summary(fabric), base_latency) +
                                             "; the times of candidates, phases and chunk counts are without",
                                         Paragraph::Tone::plain});
  for (std::size_t p = 0; p < choice.estimate.phases.size(); ++p)
    out.sections.push_back(phase_section(fabric, choice.pattern, choice.estimate.phases[p], p));
  out.sections.push_back(total_section(request, choice, simulated, base_latency));
  if (!curve.empty()) out.sections.push_back(curve_section(curve, choice.pattern.chunks));
  return out;
}

}  // namespace collcast
