#include "workload/schedules/turns_of_v.hpp"

#include <algorithm>

namespace collcast::workload {

StagesOfV::StagesOfV(const ChunkedStages& in) {
  check(in.chunks == 2, "both chunks of a V");
  std::vector<StageTime> stages;
  for (int i = 0; i < in.stages; ++i) stages.push_back(in.of(i));
  for (std::size_t i = 0; i < in.transfer.size(); ++i) {
    if (!in.blocking) {
      // Down the stages, and up.
      terms_.transfers += 2 * in.transfer[i];
      continue;
    }
    // Each of the two sends the other an activation and a gradient.
    for (StageTime* of : {&stages[i], &stages[i + 1]}) {
      of->forward += in.transfer[i];
      of->backward += in.transfer[i];
    }
  }
  const auto slowest = std::max_element(stages.begin(), stages.end(),
                                        [](const StageTime& a, const StageTime& b) { return a.whole() < b.whole(); });
  for (const StageTime& s : stages) {
    terms_.work += s.whole();
    if (&s == &*slowest) continue;
    others_.forward += s.forward;
    others_.backward += s.backward;
    others_.weights += s.weights;
    others_.saved += s.saved;
  }
  terms_.first = terms_.last = static_cast<int>(slowest - stages.begin());
  terms_.window_work = slowest->whole();
}

}  // namespace collcast::workload
