#include "workload/critical.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace collcast::workload {

namespace {

/// In picoseconds, so that sums are exact.
struct Charges {
  Picoseconds compute{}, tp{}, cp{}, ep{}, pp{}, dp{}, optimizer{}, wait{};

  Picoseconds& of(Category category) {
    switch (category) {
      case Category::compute:
      case Category::forward:
      case Category::backward:
      case Category::recompute:
        return compute;
      case Category::optimizer:
        return optimizer;
      case Category::tp:
        return tp;
      case Category::cp:
        return cp;
      case Category::ep:
        return ep;
      case Category::pp:
        return pp;
      case Category::dp:
        return dp;
    }
    check(false, "a known category");
    return wait;
  }
  Charges& operator+=(const Charges& more) {
    for (const auto kind : {&Charges::compute, &Charges::tp, &Charges::cp, &Charges::ep, &Charges::pp, &Charges::dp,
                            &Charges::optimizer, &Charges::wait})
      this->*kind += more.*kind;
    return *this;
  }
  PathTimes times() const {
    return {to_seconds(compute),   to_seconds(tp),   to_seconds(pp), to_seconds(dp),
            to_seconds(optimizer), to_seconds(wait), to_seconds(cp), to_seconds(ep)};
  }
};

/// A micro-batch (in a chunk of the stage), a bucket or a task.
struct Item {
  int number = 0, chunk = -1;
  friend bool operator==(const Item&, const Item&) = default;
};

/// Those that were met, in their order.
struct Span {
  Item first, last;
  int count = 0;
  void meet(const Item& number) {
    if (count > 0 && last == number) return;
    if (count++ == 0) first = number;
    last = number;
  }
  void extend(const Span& later) {
    if (count == 0) first = later.first;
    last = later.last;
    count += later.count;
  }
};

struct Visit {
  int stage = 0;
  std::array<Span, doings> met;
  Charges time;

  /// Tasks have names of their own, so none does as another.
  bool does_as(const Visit& other) const {
    if (met[static_cast<std::size_t>(Doing::task)].count > 0) return false;
    return std::equal(met.begin(), met.end(), other.met.begin(),
                      [](const Span& a, const Span& b) { return a.count == b.count; });
  }
};

std::string numbered(const std::string& name, const std::string& unit, const Span& span) {
  const auto text = [&](const Item& item) {
    return unit + std::to_string(item.number) + (item.chunk < 0 ? "" : " chunk " + std::to_string(item.chunk));
  };
  return name + text(span.first) + (span.first == span.last ? "" : " ... " + text(span.last));
}

std::string text(Doing doing, const Span& span, const Schedule& schedule) {
  switch (doing) {
    case Doing::forward:
      return numbered("F ", "mb", span);
    case Doing::backward:
      return numbered("B ", "mb", span);
    case Doing::weights:
      return numbered("W ", "mb", span);
    case Doing::message_on:
      return "send on";
    case Doing::message_back:
      return "send back";
    case Doing::bucket:
      return numbered("gradient bucket ", "", span);
    case Doing::reduction:
      return "gradient reduction";
    case Doing::tied:
      return "embedding gradients";
    case Doing::optimizer:
      return "optimizer";
    case Doing::gather:
      return "parameter gather";
    case Doing::task:
      return std::string(schedule.name(OpId(static_cast<std::uint32_t>(span.first.number))));
  }
  check(false, "a known doing");
  return {};
}

std::string text(const Visit& visit, const Schedule& schedule) {
  std::string all;
  for (std::size_t p = 0; p < doings; ++p)
    if (visit.met[p].count > 0) all += (all.empty() ? "" : ", ") + text(static_cast<Doing>(p), visit.met[p], schedule);
  return all;
}

/// The chain as visits; operations of no length are passed over.
std::vector<Visit> visits(const Schedule& schedule, const Timeline& timeline, std::span<const Place> places) {
  std::vector<Visit> list;
  SimTime now{};
  for (const OpId op : critical_operations(schedule, timeline)) {
    const Interval& interval = timeline.ops[op.value()];
    if (interval.finish <= now) continue;
    const Place& place = places[op.value()];
    if (list.empty() || list.back().stage != place.stage || place.doing == Doing::task)
      list.push_back({place.stage, {}, {}});
    Visit& visit = list.back();
    visit.met[static_cast<std::size_t>(place.doing)].meet({place.number, place.chunk});
    const SimTime start = std::max(now, interval.start);
    const auto category = parse_category(schedule.category(op));
    check(category.has_value(), "an operation of a step has a category");
    visit.time.wait += start - now;
    visit.time.of(*category) += interval.finish - start;
    now = interval.finish;
  }
  return list;
}

/// How often the `length` visits from `at` come again one after the other.
std::size_t repeats(const std::vector<Visit>& list, std::size_t at, std::size_t length) {
  std::size_t end = at + length;
  while (end < list.size() && list[end].stage == list[end - length].stage && list[end].does_as(list[end - length]))
    ++end;
  return (end - at) / length;
}

/// How many visits from `at` on go from stage to neighbouring stage in one direction and do the same.
std::size_t walk(const std::vector<Visit>& list, std::size_t at) {
  if (at + 1 >= list.size()) return 1;
  const int step = list[at + 1].stage - list[at].stage;
  if (std::abs(step) != 1) return 1;
  std::size_t end = at + 1;
  while (end < list.size() && list[end].stage - list[end - 1].stage == step && list[end].does_as(list[at])) ++end;
  return end - at;
}

struct VisitRun {
  PathRun told;
  Charges time;
};

/// `times` repetitions of the `length` visits from `at`, or a walk of `times` visits.
VisitRun merged(const std::vector<Visit>& list, std::size_t at, std::size_t length, std::size_t times,
                const Schedule& schedule) {
  std::vector<Visit> pattern(list.begin() + static_cast<std::ptrdiff_t>(at),
                             list.begin() + static_cast<std::ptrdiff_t>(at + length));
  PathRun run{list[at].stage, list[at].stage, {}, static_cast<int>(times), {}};
  Charges time;
  for (std::size_t i = at; i < at + length * times; ++i) {
    time += list[i].time;
    if (i < at + length) continue;
    Visit& same = pattern[(i - at) % length];
    for (std::size_t p = 0; p < doings; ++p) same.met[p].extend(list[i].met[p]);
  }
  if (length == 1) {
    run.last_stage = list[at + times - 1].stage;
    run.what = text(pattern[0], schedule);
    return {std::move(run), time};
  }
  constexpr std::size_t shown = 2;
  for (std::size_t i = 0; i < length; ++i) {
    run.first_stage = std::min(run.first_stage, pattern[i].stage);
    run.last_stage = std::max(run.last_stage, pattern[i].stage);
    if (i < shown)
      run.what +=
          (i == 0 ? "" : "; ") + ("stage " + std::to_string(pattern[i].stage) + ": " + text(pattern[i], schedule));
  }
  if (length > shown) run.what += "; and on over " + std::to_string(length - shown) + " more visits";
  return {std::move(run), time};
}

std::vector<VisitRun> runs(const std::vector<Visit>& list, const Schedule& schedule) {
  constexpr std::size_t longest = 32;  // of a pattern that is looked for: there and back over 16 stages
  std::vector<VisitRun> result;
  for (std::size_t at = 0; at < list.size();) {
    std::size_t length = 1, times = walk(list, at);
    for (std::size_t l = 1; l <= longest && at + 2 * l <= list.size(); ++l) {
      const std::size_t n = repeats(list, at, l);
      if (n > 1 && n * l > length * times) {
        length = l;
        times = n;
      }
    }
    result.push_back(merged(list, at, length, times, schedule));
    at += length * times;
  }
  return result;
}

/// The middle of a long list becomes one line.
void shorten(std::vector<VisitRun>& list) {
  constexpr std::size_t most = 16, head = most / 2;
  if (list.size() <= most) return;
  const auto begin = list.begin() + head, end = list.end() - (most - head - 1);
  PathRun told{begin->told.first_stage, begin->told.last_stage, std::to_string(end - begin) + " more lines", 1, {}};
  Charges time;
  for (auto run = begin; run != end; ++run) {
    told.first_stage = std::min({told.first_stage, run->told.first_stage, run->told.last_stage});
    told.last_stage = std::max({told.last_stage, run->told.first_stage, run->told.last_stage});
    time += run->time;
  }
  *begin = {std::move(told), time};
  list.erase(begin + 1, end);
}

}  // namespace

CriticalPath critical_path_of(const Schedule& schedule, const Timeline& timeline, std::span<const Place> places) {
  const std::vector<Visit> list = visits(schedule, timeline, places);
  std::vector<Charges> stages;
  Charges all;
  for (const Visit& visit : list) {
    const auto stage = static_cast<std::size_t>(visit.stage);
    if (stages.size() <= stage) stages.resize(stage + 1);
    stages[stage] += visit.time;
    all += visit.time;
  }
  std::vector<VisitRun> told = runs(list, schedule);
  shorten(told);

  CriticalPath path{all.times(), {}, {}};
  for (const Charges& stage : stages) path.by_stage.push_back(stage.times());
  for (VisitRun& run : told) {
    run.told.time = run.time.times();
    path.runs.push_back(std::move(run.told));
  }
  return path;
}

}  // namespace collcast::workload
