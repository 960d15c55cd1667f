#include "workload/memory/optimizer_bytes.hpp"

#include "collcast/base/check.hpp"
#include "collcast/workload/precisions.hpp"
#include "workload/layer/precision.hpp"

namespace collcast {

std::string_view to_string(StateFormat format) {
  switch (format) {
    case StateFormat::fp32:
      return "fp32";
    case StateFormat::bf16:
      return "bf16";
    case StateFormat::fp16:
      return "fp16";
    case StateFormat::fp8:
      return "fp8";
  }
  check(false, "a known format");
  return {};
}

Bytes bytes_of(StateFormat format) {
  switch (format) {
    case StateFormat::fp32:
      return Bytes(4);
    case StateFormat::bf16:
    case StateFormat::fp16:
      return Bytes(2);
    case StateFormat::fp8:
      return Bytes(1);
  }
  check(false, "a known format");
  return {};
}

bool keeps_remainders(const TrainingOptions& options) {
  const auto& aware = options.precision_aware_optimizer;
  return aware && aware->store_param_remainders && aware->main_params_dtype == StateFormat::fp32 &&
         options.precision == "bf16";
}

namespace workload {

namespace {

/// To fp32 before Adam's kernel, and back behind it.
double converted_bytes(StateFormat format) {
  switch (format) {
    case StateFormat::fp32:
      return 0;
    case StateFormat::bf16:
      return (2 + 4) + (4 + 2 + 2 + 2);
    case StateFormat::fp16:
      return (2 + 4 + 4 + 4) + (4 + 4 + 4 + 4 + 2);
    case StateFormat::fp8:
      return (1 + 4) + (4 + 4 + 1);
  }
  check(false, "a known format");
  return 0;
}

}  // namespace

OptimizerBytes optimizer_bytes(const TrainingOptions& options) {
  if (!options.optimizer) return {};
  constexpr double fp32 = 4, moments = 2 * fp32;
  const auto precision = training_precision(options.precision);
  check(precision.has_value(), "check_step has accepted the precision");
  const double weight = precision->activation, gradient = options.gradient_bytes;
  OptimizerBytes out;
  if (weight == fp32) {
    out.kept = out.moments = moments;
    out.adam = 2 * moments + 2 * weight;
    out.copied = gradient < fp32 ? fp32 : 0;
    out.gradient = fp32;
    return out;
  }
  const auto& aware = options.precision_aware_optimizer;
  const bool remainders = keeps_remainders(options);
  out.adam = 2 * moments + (remainders ? 2 * 2 + 2 * weight : 2 * fp32 + weight);
  const bool reads_as_kept =
      aware && (aware->main_params_dtype != StateFormat::fp32 || !has_narrow_products(options.precision));
  out.copied = gradient < fp32 && !reads_as_kept ? fp32 : 0;
  out.gradient = reads_as_kept ? gradient : fp32;
  out.moments = moments;
  out.kept = moments + fp32;
  if (!aware) return out;
  out.moments = volume(bytes_of(aware->exp_avg_dtype) + bytes_of(aware->exp_avg_sq_dtype)).value();
  out.kept = out.moments + (remainders ? 2 : volume(bytes_of(aware->main_params_dtype)).value());
  for (const StateFormat state : {aware->exp_avg_dtype, aware->exp_avg_sq_dtype, aware->main_params_dtype}) {
    out.converted += converted_bytes(state);
    out.unscaled += state == StateFormat::fp32 ? 0 : fp32;
  }
  return out;
}

}  // namespace workload

}  // namespace collcast
