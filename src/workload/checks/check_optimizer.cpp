// Whether an optimizer of narrower states goes with what it optimizes, and which states can be in the host's memory, as
// Megatron-Core has it.
#include <string>
#include <utility>

#include "workload/checks/misfits.hpp"
#include "workload/layer/precision.hpp"
#include "workload/memory/state_copies.hpp"

namespace collcast::workload {

namespace {

void check_precision_aware(Misfits& misfits) {
  const TrainingOptions& o = misfits.in.options;
  if (!o.precision_aware_optimizer) return;
  const auto drop = [](StepInputs& in) { in.options.precision_aware_optimizer.reset(); };
  if (const auto precision = training_precision(o.precision); precision && precision->activation > 2)
    misfits.wrong({"training.precision_aware_optimizer", "training.precision"},
                  "precision_aware_optimizer is of weights in 16 bit, and precision is " + o.precision +
                      misfits.seen("training.precision"),
                  {"leave it out, or use precision bf16", drop});
}

void check_state_offload(Misfits& misfits) {
  const TrainingOptions& o = misfits.in.options;
  if (!(offloaded_states(o) > 0)) return;
  const auto wrong = [&](const std::string& other, const std::string& what, const char* otherwise) {
    misfits.wrong({"training.optimizer_state_offload", other}, "optimizer_state_offload: " + what + misfits.seen(other),
                  {otherwise, [](StepInputs& in) { in.options.optimizer_state_offload.reset(); }});
  };
  if (const auto& aware = o.precision_aware_optimizer)
    for (const auto& [key, format] :
         {std::pair("exp_avg_dtype", aware->exp_avg_dtype), std::pair("exp_avg_sq_dtype", aware->exp_avg_sq_dtype)})
      if (format == StateFormat::fp16 || format == StateFormat::fp8)
        wrong(std::string("training.precision_aware_optimizer.") + key,
              std::string("moments with a scale cannot be in the host's memory, and ") + key + " is " +
                  std::string(to_string(format)),
              "leave it out, or use bf16");
  if (!(misfits.in.host_bandwidth.value() > 0)) wrong("topology", no_way_to_host, leave_out_or_describe_hosts);
}

}  // namespace

void check_optimizer(Misfits& misfits) {
  check_precision_aware(misfits);
  check_state_offload(misfits);
}

}  // namespace collcast::workload
