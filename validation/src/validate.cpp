#include "collcast/validation/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <oneapi/tbb/parallel_for.h>
#include <optional>
#include <tuple>

#include "collcast/base/loop_order.hpp"
#include "large_groups.hpp"

namespace collcast {

std::string_view to_string(Statistic statistic) {
  switch (statistic) {
    case Statistic::mean:
      return "mean";
    case Statistic::median:
      return "median";
    case Statistic::least:
      break;
  }
  return "min";
}

Seconds time_of(const MeasuredTable& table, const MeasuredPoint& point, Statistic statistic) {
  const MeasuredFacts::Spread* spread = table.spread_of(point);
  if (statistic == Statistic::mean || spread == nullptr) return point.time;
  const Seconds time = statistic == Statistic::median ? spread->median : spread->least;
  return time > Seconds(0) ? time : point.time;
}

std::string statistic_remark(const MeasuredTable& table, Statistic statistic) {
  if (statistic == Statistic::mean) return {};
  const auto lacks = [&](const MeasuredPoint& p) {
    const MeasuredFacts::Spread* spread = table.spread_of(p);
    return spread == nullptr || (statistic == Statistic::median ? spread->median : spread->least) <= Seconds(0);
  };
  const auto lacking = std::count_if(table.points.begin(), table.points.end(), lacks);
  if (lacking == 0) return {};
  return fmt::format("{} no {} of their repetitions: the mean that was printed counts",
                     lacking == std::ssize(table.points) ? "its rows have" : "some of its rows have",
                     to_string(statistic));
}

Prediction ideal_prediction(Method method, const EngineOptions& engine, const GoesOn& goes_on) {
  return [by_formula = method == Method::estimate, engine, goes_on, large = std::make_shared<LargeGroups>()](
             const PlacedTable& place, const CollectiveRequest& request) -> Result<Predicted> {
    if (by_formula && LargeGroups::covers(place)) {
      Result<Predicted> known = large->fastest(place, request.size, goes_on);
      if (!known) return known.errors();
      return Predicted{known->time + place.base_latency, known->algorithm};
    }
    const Result<Choice> choice = fastest(*place.fabric, request, {place.algorithm}, goes_on);
    if (!choice) return choice.errors();
    const std::string algorithm = choice->options.algorithm;
    if (by_formula) return Predicted{choice->estimate.total + place.base_latency, algorithm};
    // What was chosen, and no other, is simulated.
    const CollectivePolicy same{algorithm, choice->options.chunks, choice->options.channels};
    const Result<Seconds> time = by_simulation(*place.fabric, same, engine)(request);
    if (!time) return time.errors();
    return Predicted{*time + place.base_latency, algorithm};
  };
}

Prediction memoized(Prediction predict) {
  using Key = std::tuple<const Fabric*, std::string, std::string, CollectiveKind, std::vector<Rank>, std::int64_t>;
  struct Memory {
    std::mutex mutex;
    std::map<Key, Result<Predicted>> known;
  };
  return [predict = std::move(predict), memory = std::make_shared<Memory>()](
             const PlacedTable& place, const CollectiveRequest& request) -> Result<Predicted> {
    Key key{place.fabric.get(), place.algorithm,       text_of(place.environment),
            request.kind,       request.group.ranks(), request.size.value()};
    {
      const std::lock_guard lock(memory->mutex);
      const auto found = memory->known.find(key);
      if (found != memory->known.end()) return found->second;
    }
    Result<Predicted> predicted = predict(place, request);
    const std::lock_guard lock(memory->mutex);
    return memory->known.emplace(std::move(key), std::move(predicted)).first->second;
  };
}

namespace {

/// (p95 - median) / median over the repetitions.
std::optional<double> relative(const MeasuredFacts::Spread* spread) {
  if (spread == nullptr || spread->median <= Seconds(0)) return std::nullopt;
  return (spread->p95 - spread->median) / spread->median;
}

/// The table with the error of each row; the first row that cannot be predicted ends it. A size that comes again is
/// asked for once. Where `goes_on` ends it, the rows of the sizes before are kept, and the others counted.
Result<ScoredTable> score(const PlacedTable& place, const Prediction& predict, Statistic statistic,
                          const GoesOn& goes_on) {
  const MeasuredFacts& facts = place.table->facts;
  ScoredTable out;
  out.id = facts.id;
  out.collective = facts.collective;
  out.system = facts.system;
  out.healthy = to_string(facts.health);
  out.topology = place.topology;
  out.matched_by = place.matched_by;
  out.derived = place.derived;
  out.calibrated = place.calibrated;
  out.complete = facts.complete;
  out.nodes = facts.nodes;
  out.ranks = facts.ranks;
  std::array<ErrorPool, bands.size()> by_band;
  out.rows.reserve(place.table->points.size());
  Deviation row;
  for (const std::uint32_t i : by_size(*place.table)) {
    const MeasuredPoint& point = place.table->points[i];
    if (out.rows.empty() || row.size != point.size) {
      const auto is_over = [&] { return goes_on && !goes_on(); };
      if (is_over()) {
        if (out.rows.empty()) return Diagnostic{{}, "no row of the table was scored", {}};
        break;
      }
      const Result<Predicted> predicted = predict(place, place.request(point.size));
      // What failed may have failed by that.
      if (!predicted && !out.rows.empty() && is_over()) break;
      if (!predicted) return predicted.errors();
      row.size = point.size;
      row.predicted = predicted->time;
      row.algorithm = out.index_of(predicted->algorithm);
    }
    row.measured = time_of(*place.table, point, statistic);
    row.spread = relative(place.table->spread_of(point));
    row.in_place = point.in_place;
    by_band[static_cast<std::size_t>(band_of(row.size))].add(row);
    out.rows.push_back(row);
  }
  for (std::size_t i = 0; i < by_band.size(); ++i) out.errors[i] = by_band[i].take();
  out.rows_not_reached = place.table->points.size() - out.rows.size();
  return out;
}

}  // namespace

ValidateReport validate(const std::vector<MeasuredTable>& tables, Machines& machines, const Prediction& predict,
                        Statistic statistic, const Telling& tell, const GoesOn& goes_on) {
  const auto is_over = [&] { return goes_on && !goes_on(); };
  ValidateReport out;
  out.statistic = to_string(statistic);
  PieceCount pieces(tell, "scoring tables", tables.size());
  std::vector<Result<PlacedTable>> places;
  places.reserve(tables.size());
  for (const MeasuredTable& table : tables) {
    if (is_over()) break;
    places.push_back(machines.place(table));
  }
  // Each table writes its own place, so the report does not depend on the threads.
  std::vector<std::optional<Result<ScoredTable>>> scored(tables.size());
  tbb::parallel_for(std::size_t{0}, places.size(), LoopOrder([&](std::size_t i) {
                      if (places[i]) scored[i] = score(*places[i], predict, statistic, goes_on);
                      // What failed may have failed by that.
                      if (scored[i] && !*scored[i] && is_over()) scored[i].reset();
                      pieces.step();
                    }),
                    tbb::simple_partitioner());
  Remarks remarks, overlay_remarks;
  std::map<std::string, ScoringMachine> used;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const std::string& id = tables[i].facts.id;
    if (i >= places.size() || (places[i] && !scored[i])) {
      ++out.not_reached;
      continue;
    }
    const Diagnostics* why = !places[i] ? &places[i].errors() : !*scored[i] ? &scored[i]->errors() : nullptr;
    if (why != nullptr) {
      out.unscored.push_back({id, why->front().message, why->front().hint, place_of(why->front(), tables[i])});
      continue;
    }
    remarks.add(id, places[i]->remark);
    remarks.add(id, statistic_remark(tables[i], statistic));
    overlay_remarks.add(id, places[i]->overlay_remark);
    const PlacedTable& place = *places[i];
    if (used.count(place.topology) == 0)
      used[place.topology] = {place.topology, digest(place.fabric->spec()), place.calibrated, place.base_latency};
    out.tables.push_back(std::move(*scored[i]).value());
  }
  for (const auto& [name, machine] : used) out.machines.push_back(machine);
  out.warnings = remarks.texts();
  out.said = overlay_remarks.texts();
  return out;
}

}  // namespace collcast
