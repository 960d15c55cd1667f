// Whether activations can wait in the host's memory, as Megatron-Core has it.
#include <algorithm>
#include <string>
#include <vector>

#include "workload/checks/misfits.hpp"
#include "workload/layer/precision.hpp"

namespace collcast::workload {

namespace {

class OffloadingCheck {
 public:
  explicit OffloadingCheck(Misfits& misfits) : misfits_(misfits), in_(misfits.in) {}

  void run() {
    const int layers = in_.model.layers, offloaded = in_.options.cpu_offloading_num_layers;
    if (offloaded == 0) return;
    if (offloaded >= layers)
      wrong("model.layers", std::to_string(offloaded) + " are not fewer than the model's " + std::to_string(layers),
            {layers == 1 ? "leave it out" : "use up to " + std::to_string(layers - 1),
             [](StepInputs& in) { in.options.cpu_offloading_num_layers = in.model.layers - 1; }});
    if (in_.layout.pp > 1)
      wrong("layout.pp", "it is of one pipeline stage, and pp is " + std::to_string(in_.layout.pp),
            {"leave it out, or use pp 1", [](StepInputs& in) { in.options.cpu_offloading_num_layers = 0; }});
    if (in_.options.recompute != Recompute::none)
      wrong("training.recompute",
            "what is computed once more is not offloaded, and recompute is " +
                std::string(to_string(in_.options.recompute)),
            {"leave it out, or use recompute: none", [](StepInputs& in) { in.options.cpu_offloading_num_layers = 0; }});
    if (splits_backward(in_.layout.schedule))
      wrong("layout.schedule",
            "weight gradients that wait are not offloaded, and schedule is " +
                std::string(to_string(in_.layout.schedule)),
            {"leave it out, or use schedule: 1f1b", [](StepInputs& in) { in.options.cpu_offloading_num_layers = 0; }});
    if (!(in_.host_bandwidth.value() > 0)) wrong("topology", no_way_to_host, leave_out_or_describe_hosts);
  }

 private:
  void wrong(const std::string& other, const std::string& what, Hint hint) {
    misfits_.wrong({"training.cpu_offloading_num_layers", other},
                   "cpu_offloading_num_layers " + std::to_string(in_.options.cpu_offloading_num_layers) + ": " + what +
                       misfits_.seen(other),
                   std::move(hint));
  }

  Misfits& misfits_;
  const StepInputs& in_;
};

}  // namespace

void check_offloading(Misfits& misfits) { OffloadingCheck(misfits).run(); }

}  // namespace collcast::workload
