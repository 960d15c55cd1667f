#include "workload/warnings.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "collcast/base/units.hpp"
#include "workload/gradient_exchange.hpp"
#include "workload/plan.hpp"
#include "workload/share.hpp"

namespace collcast::workload {

namespace {

std::string activation_remedies(const StepInputs& in) {
  std::string remedies;
  const auto offer = [&](bool possible, const char* what) {
    if (possible) remedies += (remedies.empty() ? "" : ", ") + std::string(what);
  };
  offer(in.options.attention == Attention::unfused, "attention: flash");
  offer(in.options.recompute == Recompute::none && in.options.attention == Attention::unfused, "recompute: selective");
  offer(in.options.recompute != Recompute::full, "recompute: full");
  offer(in.layout.tp > 1 && !in.layout.sequence_parallel, "sequence_parallel: true");
  offer(in.batch.micro_batch > 1, "a smaller micro_batch");
  offer(in.layout.schedule == PipelineSchedule::gpipe && in.layout.pp > 1, "schedule: 1f1b");
  offer(in.layout.schedule == PipelineSchedule::interleaved, "schedule: 1f1b with vpp 1");
  return remedies.empty() ? "more tp" : remedies;
}

std::string remedy(const StepInputs& in, Bytes MemoryUse::*part) {
  const bool sharded = in.options.zero >= 1 || in.layout.dp == 1;
  if (part == &MemoryUse::gradients && in.options.gradient_bytes > 2) return "gradient_bytes: 2, more tp or pp";
  if (part == &MemoryUse::gradient_copies)
    return in.options.delayed_all_reduce ? "delayed_all_reduce: false" : "error_feedback: false";
  if (part == &MemoryUse::optimizer) return sharded ? "more tp, pp or dp" : "zero: 1";
  if (part == &MemoryUse::activations) return activation_remedies(in);
  if (part == &MemoryUse::buffers) return "a smaller micro_batch, more tp";
  if (part == &MemoryUse::fragments) return "an allocator with expandable segments";
  if (part == &MemoryUse::nccl) return "fewer of NCCL's channels";
  if (part == &MemoryUse::context) return "a GPU with more memory";
  return "more tp or pp";
}

std::string named(const MemoryUse& m, const MemoryPart& part) {
  return std::string(part.name) + " (" + format_bytes(volume(m.*part.size)) + ")";
}

/// The part that goes beyond the limit, and the largest where that is another.
std::string memory_warning(const StepInputs& in, const MemoryUse& m) {
  const MemoryPart& breaks = breaking_part(m);
  const MemoryPart& largest =
      *std::max_element(memory_parts.begin(), memory_parts.end(),
                        [&](const MemoryPart& a, const MemoryPart& b) { return m.*a.size < m.*b.size; });
  const std::string needs = "stage " + std::to_string(m.stage) + " needs " + format_bytes(volume(m.peak())) +
                            " of the GPU's " + format_bytes(volume(m.capacity));
  if (breaks.size == largest.size)
    return needs + "; what breaks the limit is also the largest part, " + named(m, largest) + ": " +
           remedy(in, largest.size) + " would help";
  return needs + "; what breaks the limit: " + named(m, breaks) + ", " + remedy(in, breaks.size) +
         " would help; largest part: " + named(m, largest) + ", " + remedy(in, largest.size) + " would help";
}

std::string ratio_warning(const StepInputs& in, const Fabric& fabric, double ratio, bool most_is_ep) {
  std::array<char, 32> number{};
  std::snprintf(number.data(), number.size(), "%.2f", ratio);
  const std::string tp = std::to_string(in.layout.tp), node = std::to_string(fabric.ranks_per_node());
  const int experts = in.layout.ep * in.layout.expert_tp();
  if (most_is_ep)
    return "a layer computes only " + std::string(number.data()) + " times as long as it communicates, most of it " +
           "between experts; " +
           (experts > fabric.ranks_per_node() ? "ep " + std::to_string(in.layout.ep) + " crosses nodes of " + node +
                                                    " GPUs: an ep within a node, or a faster network, would raise it"
                                              : "a smaller ep than " + std::to_string(in.layout.ep) +
                                                    ", or a faster link between its GPUs, would raise it");
  return "a layer computes only " + std::string(number.data()) + " times as long as it communicates; " +
         (in.layout.tp > fabric.ranks_per_node()
              ? "tp " + tp + " crosses nodes of " + node + " GPUs: tp " + node + " or less would keep it inside"
              : "a smaller tp than " + tp + ", or a faster link between its GPUs, would raise it");
}

}  // namespace

namespace {

/// What the scenario asks for in vain.
void add_unused(const StepInputs& in, std::vector<std::string>& list) {
  const CommunicationFormats& f = in.options.communication;
  const auto none = [&](bool asked, const std::string& key, const char* why) {
    if (asked) list.push_back("training." + key + " has no effect: " + why);
  };
  none(f.tp_gather && TpCollectives(in.layout).gather == std::nullopt, "communication.tp_gather",
       "without sequence parallelism and tp above 1 nothing is gathered");
  none(f.tp_reduce && in.layout.tp == 1, "communication.tp_reduce", "tp is 1");
  none((f.ep_dispatch || f.ep_combine) && in.layout.ep == 1 && in.model.experts.count > 0,
       "communication.ep_dispatch and ep_combine", "ep is 1");
  none(f.parameters && sharding_stage(in) == 0, "communication.parameters", "no weights are gathered");
  const bool alone = !exchanges_gradients(in);
  const char* no_replicas = "nobody has the same parameters";
  none(f.gradients && alone, "communication.gradients", no_replicas);
  none(in.options.compression.method != CompressionMethod::none && alone, "gradient_compression", no_replicas);
  none(in.options.delayed_all_reduce && alone, "delayed_all_reduce", no_replicas);
}

}  // namespace

std::vector<std::string> warnings(const StepInputs& in, const Fabric& fabric, const StepResult& result) {
  std::vector<std::string> list;
  if (!result.memory.fits()) list.push_back(memory_warning(in, result.memory));
  if (!in.serving) add_unused(in, list);
  // Below 2, communication that is not hidden takes more than a third of the layer.
  if (result.compute_to_communication > 0 && result.compute_to_communication < 2)
    list.push_back(
        ratio_warning(in, fabric, result.compute_to_communication, result.layer.ep_exposed > result.layer.tp_comm));
  if (result.micro_batches < in.layout.pp)
    list.push_back(std::to_string(result.micro_batches) + " micro-batches are fewer than the " +
                   std::to_string(in.layout.pp) +
                   " pipeline stages: some stage is always idle; a larger global_batch, " +
                   "a smaller micro_batch or a smaller pp would help");
  if (in.layout.schedule == PipelineSchedule::interleaved && in.layout.vpp == 1)
    list.push_back(
        "schedule interleaved with vpp 1 has the bubble of 1f1b and holds more micro-batches; vpp 2 or more, or "
        "schedule: 1f1b would help");
  if (in.options.recompute == Recompute::selective && in.options.attention == Attention::flash)
    list.push_back(
        "selective recomputation gains nothing with flash attention, which keeps no attention matrix; "
        "recompute: none is faster");
  return list;
}

}  // namespace collcast::workload
