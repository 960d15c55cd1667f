#include "workload/precision.hpp"

#include <array>

#include "collcast/base/check.hpp"
#include "collcast/workload/config.hpp"

namespace collcast::workload {

namespace {

struct Entry {
  const char* name;
  const char* core;
  double activation, operand, optimizer, adam;
};
constexpr std::array entries{Entry{"bf16", "bf16", 2, 2, 12, 26}, Entry{"fp16", "fp16", 2, 2, 12, 26},
                             Entry{"fp8", "bf16", 2, 1, 12, 26}, Entry{"fp32", "fp32", 4, 4, 8, 24},
                             Entry{"tf32", "tf32", 4, 4, 8, 24}};

}  // namespace

std::optional<Precision> training_precision(std::string_view name) {
  for (const Entry& e : entries)
    if (e.name == name) return Precision{e.name, e.core, e.activation, e.operand, e.optimizer, e.adam};
  return std::nullopt;
}

}  // namespace collcast::workload

namespace collcast {

std::vector<std::string> training_precisions() {
  std::vector<std::string> names;
  for (const workload::Entry& e : workload::entries) names.emplace_back(e.name);
  return names;
}

std::string core_precision(const TrainingOptions& options) {
  const auto precision = workload::training_precision(options.precision);
  check(precision.has_value(), "check_step has accepted the precision");
  return precision->core;
}

}  // namespace collcast
