#include "spelled_schedule.hpp"

#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace collcast::test {

Schedule as_schedule(const SpelledOut& all) {
  Schedule schedule;
  const std::size_t threads = all.threads.size();
  std::vector<std::vector<OpId>> ends(threads);      // of its steps, over all loops
  std::vector<std::deque<OpId>> in_flight(threads);  // transfers to the thread
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t t = 0; t < threads; ++t) {
      const SpelledThread& thread = all.threads[t];
      while (ends[t].size() < std::size_t{thread.count} * all.loops) {
        const std::size_t loop = ends[t].size() / thread.count;
        const SpelledStep& step = all.steps[thread.first + ends[t].size() % thread.count];
        std::vector<After> after;
        if (!ends[t].empty()) after.push_back({ends[t].back(), Until::left});
        if (step.after_thread != SpelledStep::none) {
          const std::size_t awaited = loop * all.threads[step.after_thread].count + step.after_step;
          if (ends[step.after_thread].size() <= awaited) break;
          after.push_back({ends[step.after_thread][awaited], Until::left});
        }
        if (step.receives) {
          if (in_flight[t].empty()) break;
          after.push_back({in_flight[t].front(), Until::finished});
          in_flight[t].pop_front();
        }
        if (step.sends) {
          const Transfer transfer{thread.rank, all.threads[thread.to].rank, all.unit * static_cast<double>(step.units),
                                  thread.lane};
          ends[t].push_back(schedule.add(transfer, after));
          in_flight[thread.to].push_back(ends[t].back());
        } else {
          ends[t].push_back(schedule.add(Delay{}, after));
        }
        moved = true;
      }
    }
  }
  return schedule;
}

}  // namespace collcast::test
