#include "runner/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>
#include <set>

#include "collcast/base/check.hpp"
#include "collcast/base/units.hpp"

namespace collcast::runner {

namespace {

constexpr std::size_t fill_bytes = 8 << 20;  // staged at a time
constexpr std::size_t most_problems = 20;    // told one by one

void fill_inputs(Communicator& group, const Operation& op) {
  std::vector<std::byte> piece;
  for (const int rank : group.ranks()) {
    const std::size_t total = static_cast<std::size_t>(input_count(op, rank)) * element_bytes(op.type);
    for (std::size_t done = 0; done < total; done += piece.size()) {
      piece.resize(std::min(total - done, fill_bytes));
      fill(op, rank, static_cast<std::int64_t>(done / element_bytes(op.type)), piece);
      group.write_input(rank, done, piece);
    }
  }
}

/// What each process found wrong: {rank, index, expected, got}, or a rank of -1.
std::vector<double> compare_outputs(Communicator& group, const Operation& op) {
  for (const int rank : group.ranks()) {
    const auto read = [&](std::int64_t first, std::span<std::byte> out) {
      group.read_output(rank, static_cast<std::size_t>(first) * element_bytes(op.type), out);
    };
    if (const auto wrong = first_mismatch(op, rank, read))
      return {static_cast<double>(rank), static_cast<double>(wrong->index), wrong->expected, wrong->got};
  }
  return {-1, 0, 0, 0};
}

struct Times {
  std::vector<double> wall;    ///< of one call, by repetition; this process
  std::vector<double> device;  ///< empty where the library has no such clock
};

Times time_repetitions(const MeasurePlan& plan, Communicator& group) {
  Times out;
  for (int i = 0; i < plan.warmup + plan.repetitions; ++i) {
    group.barrier();
    const CallTime time = group.run();
    if (i < plan.warmup) continue;
    out.wall.push_back(time.wall.count() / plan.calls);
    if (time.device) out.device.push_back(time.device->count() / plan.calls);
  }
  return out;
}

/// The slowest process of each repetition.
std::vector<double> slowest(Communicator& group, const std::vector<double>& own) {
  std::vector<double> out(own.size(), 0);
  if (own.empty()) return out;
  for (const std::vector<double>& process : group.gather(own)) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::max(out[i], process[i]);
  }
  return out;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

MeasuredRow summary(const Operation& op, std::vector<double> times, const std::vector<double>& device) {
  MeasuredRow row;
  row.kind = op.kind;
  row.algorithm = op.algorithm;
  row.size = Bytes(static_cast<std::int64_t>(op.bytes()));
  row.in_place = op.in_place;
  row.repetitions = static_cast<int>(times.size());
  row.mean = Seconds(mean(times));
  if (!device.empty()) row.device = Seconds(mean(device));
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  row.least = Seconds(times.front());
  row.most = Seconds(times.back());
  row.median = Seconds((times[(n - 1) / 2] + times[n / 2]) / 2);
  // Nearest rank: the smallest that at least 95 % do not exceed.
  row.p95 = Seconds(times[static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(n))) - 1]);
  return row;
}

const BackendEntry::Kind& kind_of(const Backend& backend, CollectiveKind kind) {
  const auto found = std::find_if(backend.entry.kinds.begin(), backend.entry.kinds.end(),
                                  [&](const auto& k) { return k.kind == kind; });
  check(found != backend.entry.kinds.end(), "a plan asks only for kinds that its backend has");
  return *found;
}

struct Case {
  Operation op;
  Bytes asked{};
};

/// What will be run, in order; sizes that leave a rank nothing are noted.
std::vector<Case> cases(const MeasurePlan& plan, const Backend& backend, int ranks, const MeasureSink& sink) {
  std::vector<Case> out;
  const auto type = parse_datatype(plan.datatype);
  check(type.has_value(), "a plan's datatype is one that its backend has");
  for (const CollectiveKind kind : plan.kinds) {
    const BackendEntry::Kind& can = kind_of(backend, kind);
    std::set<std::int64_t> seen;
    bool cut = false;
    for (const Bytes size : plan.sizes) {
      const auto count = whole_elements(kind, *type, size, ranks);
      if (!count) {
        sink.note(fmt::format("{} of {} left out: less than one {} per rank", to_string(kind), format_bytes(size),
                              plan.datatype));
        continue;
      }
      const Bytes whole(*count * static_cast<std::int64_t>(element_bytes(*type)));
      if (whole != size && !cut) {
        cut = true;  // a sweep may cut every size: the first tells
        sink.note(
            fmt::format("{}: sizes are cut to whole {}s, equally many per rank where ranks have parts, as {} for {}",
                        to_string(kind), plan.datatype, format_bytes(whole), format_bytes(size)));
      }
      if (!seen.insert(*count).second) continue;
      std::string algorithm = plan.algorithm;
      if (algorithm.empty() && !can.algorithms.empty()) algorithm = can.algorithms.front();
      for (const bool in_place : {false, true}) {
        const bool only =
            std::find(can.in_place_only.begin(), can.in_place_only.end(), algorithm) != can.in_place_only.end();
        if (in_place ? can.in_place : can.out_of_place && !only)
          out.push_back({{kind, algorithm, *type, *count, plan.root, ranks, in_place}, size});
      }
    }
  }
  return out;
}

std::string place(const Operation& op) {
  return fmt::format("{} of {}{}", to_string(op.kind), format_bytes(Bytes(static_cast<std::int64_t>(op.bytes()))),
                     op.in_place ? " in place" : "");
}

/// The first wrong element of each process, as text.
std::vector<std::string> wrong_results(Communicator& group, const Operation& op) {
  std::vector<std::string> out;
  for (const std::vector<double>& found : group.gather(compare_outputs(group, op))) {
    if (found[0] < 0) continue;
    out.push_back(fmt::format("{}: wrong result on rank {}: element {} is {}, not {}", place(op), found[0], found[1],
                              found[3], found[2]));
  }
  return out;
}

}  // namespace

MeasureOutcome sweep(const MeasurePlan& plan, const Backend& backend, Communicator& group, int ranks,
                     const MeasureSink& sink) {
  MeasureOutcome out;
  std::size_t untold = 0;
  sink.system(group.system());
  for (const Case& c : cases(plan, backend, ranks, sink)) {
    sink.begin(c.op.kind, c.asked);
    try {
      group.prepare(c.op, plan.calls);
      fill_inputs(group, c.op);
      const Times own = time_repetitions(plan, group);
      const MeasuredRow row = summary(c.op, slowest(group, own.wall), slowest(group, own.device));
      // Once, whatever a repetition is: a sum in place would be summed again by a second call.
      group.prepare(c.op, 1);
      fill_inputs(group, c.op);
      group.barrier();
      group.run();
      const std::vector<std::string> wrong = wrong_results(group, c.op);
      const std::size_t told = std::min(wrong.size(), most_problems - out.problems.size());
      out.problems.insert(out.problems.end(), wrong.begin(), wrong.begin() + static_cast<std::ptrdiff_t>(told));
      untold += wrong.size() - told;
      if (!wrong.empty()) {
        // The time of a wrong result is no measurement.
        out.ending = Ending::wrong;
      } else if (!sink.row(row)) {
        throw Broken("stopped", Ending::stopped);
      }
    } catch (const std::bad_alloc&) {
      throw Broken(fmt::format("{}: not enough memory", place(c.op)), Ending::lacking);
    } catch (const Broken& broken) {
      if (broken.ending == Ending::stopped) throw;
      throw Broken(fmt::format("{}: {}", place(c.op), broken.what()), broken.ending);
    }
  }
  if (untold > 0) out.problems.push_back(fmt::format("... and {} more", untold));
  // No rank leaves while another still needs it.
  group.barrier();
  return out;
}

}  // namespace collcast::runner
