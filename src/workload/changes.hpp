// What a scenario can say otherwise of the same job: values by their paths, and the inputs that they make.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collcast/workload/step.hpp"

namespace collcast::workload {

/// Values by their paths in a scenario.
using Values = std::vector<std::pair<std::string, std::string>>;

/// "layout.tp: 4, layout.dp: 2".
std::string text_of(const Values&);
/// Where both have a path, the later value.
Values both(Values first, const Values& then);

struct Change {
  Values values;
  StepInputs in;
  int ranks = 0;  ///< of a machine of another size; 0: as it is
};

struct Degree {
  int ParallelLayout::*value;
  const char* path;
};
inline constexpr Degree tp_degree{&ParallelLayout::tp, "layout.tp"}, pp_degree{&ParallelLayout::pp, "layout.pp"},
    dp_degree{&ParallelLayout::dp, "layout.dp"}, cp_degree{&ParallelLayout::cp, "layout.cp"};

/// The same GPUs with one degree so many times smaller, and another as many times larger; nothing where it cannot be.
std::optional<Change> traded(const StepInputs&, const Degree& smaller, const Degree& larger, int times = 2);

/// Changes to the same inputs, in the order in which they are offered.
class Offers {
 public:
  explicit Offers(const StepInputs& in) : in_(in) {}

  /// What `set` makes of the inputs, where that is possible.
  template <class Set>
  void offer(bool possible, Values values, Set set) {
    if (!possible) return;
    Change change{std::move(values), in_};
    set(change.in);
    all_.push_back(std::move(change));
  }
  void offer(std::optional<Change> change) {
    if (change) all_.push_back(std::move(*change));
  }
  std::vector<Change> all() && { return std::move(all_); }

 private:
  const StepInputs& in_;
  std::vector<Change> all_;
};

}  // namespace collcast::workload
