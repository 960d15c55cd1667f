#include "workload/layer/precision.hpp"

#include <array>

#include "collcast/base/check.hpp"
#include "collcast/workload/precisions.hpp"

namespace collcast::workload {

namespace {

struct Entry {
  const char *name, *linear, *core;
  double activation, operand, weight;
  Precision precision() const { return {linear, core, activation, operand, weight}; }
};
constexpr std::array entries{Entry{"bf16", "bf16", "bf16", 2, 2, 2}, Entry{"fp16", "fp16", "fp16", 2, 2, 2},
                             Entry{"fp8", "fp8", "bf16", 2, 1, 1},   Entry{"fp4", "fp4", "bf16", 2, 0.5625, 0.5625},
                             Entry{"fp32", "fp32", "fp32", 4, 4, 4}, Entry{"tf32", "tf32", "tf32", 4, 4, 4}};
constexpr std::array served_only{Entry{"int4", "bf16", "bf16", 2, 2, 0.5625}};

template <class Entries>
std::optional<Precision> found(const Entries& known, std::string_view name) {
  for (const Entry& e : known)
    if (e.name == name) return e.precision();
  return std::nullopt;
}

}  // namespace

std::optional<Precision> training_precision(std::string_view name) { return found(entries, name); }
std::optional<Precision> serving_precision(std::string_view name) {
  const std::optional<Precision> trained = training_precision(name);
  return trained ? trained : found(served_only, name);
}

}  // namespace collcast::workload

namespace collcast {

std::vector<std::string> training_precisions() {
  std::vector<std::string> names;
  for (const workload::Entry& e : workload::entries) names.emplace_back(e.name);
  return names;
}

std::vector<std::string> serving_precisions() {
  std::vector<std::string> names = training_precisions();
  for (const workload::Entry& e : workload::served_only) names.emplace_back(e.name);
  return names;
}

namespace {

workload::Precision accepted(const TrainingOptions& options) {
  const auto precision = workload::serving_precision(options.precision);
  check(precision.has_value(), "check_step has accepted the precision");
  return *precision;
}

}  // namespace

std::string core_precision(const TrainingOptions& options) { return accepted(options).core; }
std::string linear_precision(const TrainingOptions& options) { return accepted(options).linear; }

bool has_narrow_products(std::string_view precision) {
  const auto known = workload::serving_precision(precision);
  return known && known->operand < known->activation;
}

}  // namespace collcast
