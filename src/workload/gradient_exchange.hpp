// What replicas send of their gradients: all of it as it is kept, in a narrower format, or compressed.
//
// Gradients of g bytes are cast to s before they are sent and back, g + s bytes a parameter each by memory-bound
// kernels, with ZeRO back only what the rank keeps of the sum (PyTorch's fp16_compress_hook and bf16_compress_hook,
// FSDP2's reduce_dtype, Megatron-LM without grad_reduce_in_fp32). With d = min(g, s):
//
// PowerSGD (Vogels et al. 2019, arXiv 1905.13727; PyTorch's powerSGD_hook) sends for each n x m matrix M of a bucket P
// and Q of rank r, d r n and d r m bytes, where (n + m) r min_rate < n m, and all else as it is: three all-reduces a
// bucket, one after the other. Kernels, in bytes for each of N gradients, of which a matrix has n m:
//   error feedback    8 d N: the last step's error is added (3), the sum copied (2), what is lost kept (3)
//   P = M Q, Q = M'P  d (n m + r (n + m)) and 2 r n m FLOP, each
//   M = P Q'          the same
//   orthogonal        Gram-Schmidt of Q before and P between: column by column 3 passes, and 6 over each column behind
//                     it, d (n + m) (3 r + 3 r (r - 1)), by 7 r - 4 kernels a matrix, each with its overhead
//   the others        4 d each: into one buffer, and back
// ratio: g/ratio bytes, and kernels that move as many bytes as the scenario says.
//
// Kernels run behind the exchange, before the optimizer, and hide nothing: PyTorch's hook waits for the device in the
// end, and kernels beside the backward would slow it by as much (Agarwal et al., MLSys 2022, "On the utility of
// gradient compression in distributed training systems"). A bucket has its share of the stage's P, Q and the rest,
// whatever matrices are in it. With ZeRO-2 and 3 gradients are cast behind every micro-batch's backward (share.hpp),
// but sums of a step (no_sync) once, as without. Left out: the first steps, which PyTorch does not compress.
#pragma once

#include <array>
#include <vector>

#include "workload/layer/kernels.hpp"
#include "workload/plan.hpp"

namespace collcast::workload {

/// Of a stage, among those who reduce the gradients of `experts` that go their own way, or all others.
class GradientExchange {
 public:
  GradientExchange() = default;
  GradientExchange(const StepInputs&, int stage, bool experts);

  /// Bytes that are sent of so many that are kept: several collectives one after the other, without a part 0.
  std::array<double, 3> sent(double kept) const;

  bool of_experts = false;
  double gradients = 0;   ///< of the rank
  double compressed = 0;  ///< of them in matrices that are, so many
  double matrices = 0;
  double rows = 0, columns = 0;                   ///< n and m, each times its matrix's rank
  double orthogonal = 0, orthogonal_kernels = 0;  ///< elements moved to orthogonalise P and Q

 private:
  bool low_rank_ = false;
  std::array<double, 3> share_{1, 0, 0};  ///< of the bytes kept
};

/// A bucket is an operation of the timeline: no more of them than a person could mean.
inline constexpr int most_buckets = 10'000;
/// Bytes that are exchanged of the stage that has most, of the first, the last and one between.
double largest_gradients(const StepInputs&);
/// Whether so many bytes of gradients take more buckets of this size, which those that a user asks for must not.
bool is_bucket_too_small(Bytes bucket, double gradients);
/// Bytes of one bucket of so many: what is asked for; else the default, or where that is too small what most_buckets
/// take.
double bucket_of(const StepInputs&, double gradients);

/// Whether anybody has the same parameters.
bool exchanges_gradients(const StepInputs&);
/// Whether every micro-batch reduces its gradients, else a step their sum.
bool reduces_each_pass(const StepInputs&);
/// Bytes of a gradient as it is cast to be sent; as it is kept where it is not.
double sent_gradient_bytes(const StepInputs&);
/// Bytes that casts move for each of the gradients that others have too, which are experts' or not.
double cast_bytes(const StepInputs&, bool experts);
/// A collective among ranks that have the same parameters; without bytes there is none.
struct ReplicaCollective {
  GroupOf group_of = nullptr;
  CollectiveKind kind{};
  double bytes = 0;
};
/// What sums up so many bytes of gradients as they are sent: over the replicas; with ZeRO over the shards, each its
/// part, and that over the copies. `experts`: of those that go their own way.
std::array<ReplicaCollective, 2> reductions_of(const StepInputs&, double bytes, bool experts);
/// What gathers weights that are split over the shards.
ReplicaCollective gather_of(double bytes, bool experts);
/// What the rank's gradients take of kernels between exchange and optimizer, once a step.
std::vector<Operation> compression_operations(const StepInputs&, int stage);

/// Bytes that a rank holds for it.
struct GradientCopies {
  double stale = 0;     ///< of the step before, on their way
  double error = 0;     ///< error feedback
  double low_rank = 0;  ///< P and Q
  double total() const { return stale + error + low_rank; }
};
GradientCopies gradient_copies(const StepInputs&, int stage);

}  // namespace collcast::workload
