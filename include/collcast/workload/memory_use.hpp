// What a GPU holds of a step, itemised down to what nvidia-smi shows, and the part that is too much.
//
// The step's own items are those of src/workload/memory/memory.hpp. Around them, for every run of PyTorch on CUDA:
//   fragments  reserved by the allocator and no tensor's: allocated is 0.94 of reserved, SimuMax's share
//              (github.com/MooreThreads/SimuMax). Serving: of what passes make and free again; weights and the cache of
//              keys and values are taken once
//   NCCL       of each connection of a channel a buffer for Simple, LL and LL128 as the job's variables have them
//              (computeBuffSizes in NCCL's src/init.cc; src/transport/p2p.cc allocates all three), 9.1875 MiB without
//              any. A ring has one connection, a tree within a node two and between nodes three; 24 channels within a
//              node behind NVSwitch, 8 between nodes (two for each of four NICs), within the variables' limits
//   context    CUDA's, with its libraries and kernels: 1573 MiB of PyTorch on an A100, as BigScience measured it
//              (chronicles-prequel.md)
// Left out: NVLS's and user buffers, what a framework's own step allocates (validation/src/training/memory.cpp has it
// for published steps), the sizes of other GPUs' contexts.
#pragma once

#include <array>
#include <string_view>

#include "collcast/base/quantity.hpp"
#include "collcast/workload/own_schedule.hpp"

namespace collcast {

namespace nccl {
struct Environment;
}
struct ParallelLayout;
struct StepInputs;

/// When a training rank may hold most: at the end of a forward, with the loss where the head is; in the backward behind
/// it; at the optimizer's step, whose 16-bit gradients are copied in fp32 (Megatron-LM, megatron/core/optimizer).
enum class MemoryMoment { forward, backward, optimizer };
inline constexpr std::array memory_moments{MemoryMoment::forward, MemoryMoment::backward, MemoryMoment::optimizer};
std::string_view to_string(MemoryMoment);

struct MemoryUse {  ///< of one rank, bytes; of training at the moment when it holds most
  int stage = 0;
  Bytes parameters{}, gradients{}, optimizer{}, activations{}, buffers{};
  Bytes gradient_copies{};  ///< delayed ones, error feedback of compression and its matrices of low rank
  Bytes kv_cache{};         ///< inference: at the last token
  Bytes framework{};        ///< published steps: what their framework allocates besides
  Bytes fragments{};
  Bytes nccl{}, context{};  ///< outside the allocator
  Bytes capacity{};         ///< that CUDA has to give
  Bytes on_host{};          ///< training: activations and optimizer states in the host's memory, no part of the sums
  MemoryMoment moment = MemoryMoment::forward;
  std::array<Bytes, memory_moments.size()> by_moment{};  ///< training: allocated at each
  Bytes state() const { return parameters + gradients + gradient_copies + optimizer; }
  Bytes allocated() const { return state() + activations + buffers + kv_cache + framework; }
  Bytes reserved() const { return allocated() + fragments; }
  Bytes peak() const { return reserved() + nccl + context; }
  bool fits() const { return peak() <= capacity; }
};

struct MemoryPart {
  const char* name;
  Bytes MemoryUse::*size;
};
/// In the order of tables.
inline constexpr std::array memory_parts{MemoryPart{"parameters", &MemoryUse::parameters},
                                         MemoryPart{"KV cache", &MemoryUse::kv_cache},
                                         MemoryPart{"gradients", &MemoryUse::gradients},
                                         MemoryPart{"optimizer state", &MemoryUse::optimizer},
                                         MemoryPart{"gradient copies", &MemoryUse::gradient_copies},
                                         MemoryPart{"activations", &MemoryUse::activations},
                                         MemoryPart{"buffers", &MemoryUse::buffers},
                                         MemoryPart{"framework", &MemoryUse::framework},
                                         MemoryPart{"fragments", &MemoryUse::fragments},
                                         MemoryPart{"NCCL's buffers", &MemoryUse::nccl},
                                         MemoryPart{"CUDA context", &MemoryUse::context}};

/// The part with which the sum passes the capacity: what is there before the step comes first, NCCL's and CUDA's, then
/// the others as tables have them. Of a rank that does not fit.
const MemoryPart& breaking_part(const MemoryUse&);
/// The first of the largest.
const MemoryPart& largest_part(const MemoryUse&);

/// What NCCL's communicators keep, as a job's variables have it.
struct NcclBuffers {
  Bytes simple, ll, ll128;  ///< of one connection of a channel
  int channels_within, channels_across;

  NcclBuffers();  ///< of a job without variables
  explicit NcclBuffers(const nccl::Environment&);
  Bytes connection() const { return simple + ll + ll128; }
  /// Of a communicator within a node, and of one across nodes.
  int connections_within() const { return 3 * channels_within; }
  int connections_across() const { return 4 * channels_across; }
  friend bool operator==(const NcclBuffers&, const NcclBuffers&) = default;
};

/// Groups that a rank makes communicators of as Megatron does, by where their ranks are.
struct Communicators {
  int within = 0;  ///< a node
  int across = 0;  ///< nodes
};
Communicators communicators(const ParallelLayout&, int gpus_per_node);
/// That communicators are made for: without ZeRO no shards; of servers those that talk to each other, as replicas do
/// where they share experts.
ParallelLayout talking_layout(const StepInputs&);
inline constexpr double allocated_of_reserved = 0.94;

/// Fragments, NCCL's buffers and the context of what the rank allocates; `kept` of it is taken once and breaks nothing.
void add_runtime(MemoryUse&, const ParallelLayout&, const NcclBuffers&, int gpus_per_node, Bytes kept = {});

/// Of a rank of that stage; `inputs` has passed check_step and check_memory, `made` as for memory_terms.
MemoryUse stage_memory(const StepInputs& inputs, int stage, int gpus_per_node, const Orders& made = {});

/// Of the stage that needs the most.
MemoryUse peak_memory(const StepInputs& inputs, int gpus_per_node, const Orders& made = {});

}  // namespace collcast
