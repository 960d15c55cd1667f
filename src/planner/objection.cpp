#include "collcast/planner/objection.hpp"

#include "collcast/base/check.hpp"

namespace collcast {

std::string to_string(ObjectionKind kind) {
  switch (kind) {
    case ObjectionKind::degrees_do_not_divide:
      return "tp x pp does not divide the number of GPUs";
    case ObjectionKind::degrees_with_cp_do_not_divide:
      return "tp x pp x cp does not divide the number of GPUs";
    case ObjectionKind::degrees_are_not_gpus:
      return "tp x pp x dp is not the number of GPUs";
    case ObjectionKind::batch_does_not_divide:
      return "global_batch is not a multiple of micro_batch x dp";
    case ObjectionKind::half_from_either_end:
      return "dualpipe needs an even number of micro-batches";
    case ObjectionKind::micro_batches_go_round:
      return "vpp needs micro-batches in multiples of pp";
    case ObjectionKind::server_batch_does_not_divide:
      return "batch is not a multiple of micro_batch";
    case ObjectionKind::too_many_sequences:
      return "batch x dp are more than 1 G sequences";
    case ObjectionKind::state_does_not_fit:
      return "parameters, gradients and optimizer state do not fit the GPU";
    case ObjectionKind::activations_do_not_fit:
      return "activations do not fit the GPU beside the model's state";
    case ObjectionKind::update_does_not_fit:
      return "what the optimizer's step has in fp32, or from the host, does not fit the GPU beside the model's state";
    case ObjectionKind::runtime_does_not_fit:
      return "CUDA's context, NCCL's buffers and the allocator's fragments do not fit the GPU beside the step";
    case ObjectionKind::weights_do_not_fit:
      return "weights do not fit the GPU";
    case ObjectionKind::cache_does_not_fit:
      return "keys and values do not fit the GPU beside the weights";
    case ObjectionKind::passes_do_not_fit:
      return "activations and buffers do not fit the GPU beside weights and cache";
    case ObjectionKind::server_runtime_does_not_fit:
      return "CUDA's context, NCCL's buffers and the allocator's fragments do not fit the GPU beside what is served";
    case ObjectionKind::memory_beyond_count:
      return "needs more than 1 EiB of memory on a GPU";
    case ObjectionKind::misfit:
      return "values that do not go together";
    case ObjectionKind::limit:
      return "a limit is broken";
    case ObjectionKind::no_cost:
      return "no forecast";
  }
  check(false, "a known objection");
  return {};
}

}  // namespace collcast
