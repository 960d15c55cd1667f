#include "workload/memory/state_copies.hpp"

#include <algorithm>
#include <cmath>

#include "workload/layer/host_copies.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/memory/optimizer_bytes.hpp"
#include "workload/wire.hpp"

namespace collcast {

namespace {

struct Chunks {
  Seconds updated{};  ///< kernels so far
  Seconds back{};     ///< copies to the host so far
};

/// As many chunks one after the other. From a few on two more take as long as the two before.
Chunks pass_chunks(const StateCopies& c) {
  constexpr int settled = 16;
  const Seconds copy = c.chunk_time();
  const int rest = std::max(c.chunks - settled, 0) / 2, by_one = c.chunks - 2 * rest;
  const Seconds two = std::max(2 * c.chunk, 2 * copy + c.chunk);
  Chunks at{std::max(c.norm, c.parameters_time()) + c.resident, {}};
  Seconds there = c.parameters_time() + copy;
  for (int i = 0; i < by_one; ++i) {
    const Seconds begin = std::max(at.updated, there);
    there = std::max(begin, at.back) + copy;
    at.updated = begin + c.chunk;
    at.back = std::max(at.updated, at.back) + copy;
  }
  return {at.updated + rest * two, at.back + rest * two};
}

}  // namespace

Seconds StateCopies::updated() const { return chunks > 0 ? pass_chunks(*this).updated : norm + resident; }
Seconds StateCopies::moments_back() const { return chunks > 0 ? pass_chunks(*this).back : Seconds{}; }

StateCopies state_copies(const StepInputs& in, int stage, double pace) {
  const auto time_of = [&](double parameters) {
    Seconds sum{};
    for (const Operation& op : workload::update_kernels(in, parameters, 1)) sum += op.time;
    return sum / pace;
  };
  StateCopies out;
  const double owned = workload::owned_parameters(in, stage);
  out.chunks = workload::state_chunks(in.options, owned);
  if (out.chunks == 0) return out;
  const workload::OptimizerBytes bytes = workload::optimizer_bytes(in.options);
  const double moved = workload::offloaded_states(in.options) * owned;
  out.parameters = Volume(moved * (bytes.kept - bytes.moments));
  out.moments = Volume(moved * bytes.moments);
  out.rate = workload::host_copy_rate(in);
  for (const Operation& op : workload::norm_kernels(in, owned)) out.norm += op.time / pace;
  if (moved < owned) out.resident = time_of(owned - moved);
  out.chunk = time_of(moved / out.chunks);
  return out;
}

namespace workload {

double owned_parameters(const StepInputs& in, int stage) {
  const RankParameters parameters = trained_parameters(in, stage);
  return in.options.zero >= 1 ? split_parameters(in.layout, parameters).shares : parameters.total();
}

std::vector<Operation> norm_kernels(const StepInputs& in, double parameters) {
  const KernelTimer timer(in);
  const OptimizerBytes bytes = optimizer_bytes(in.options);
  std::vector<Operation> ops;
  if (bytes.copied > 0)
    ops.push_back(timer.memory("gradients to fp32", Volume((in.options.gradient_bytes + bytes.copied) * parameters)));
  ops.push_back(timer.memory("gradient norm", Volume(bytes.gradient * parameters)));
  return ops;
}

std::vector<Operation> update_kernels(const StepInputs& in, double parameters, int updates) {
  const KernelTimer timer(in);
  const OptimizerBytes bytes = optimizer_bytes(in.options);
  std::vector<Operation> ops;
  if (bytes.converted > 0)
    ops.push_back(timer.memory("states to fp32 and back", Volume(bytes.converted * parameters), updates));
  ops.push_back(timer.memory("adam", Volume((bytes.gradient + bytes.adam) * parameters), updates));
  return ops;
}

double offloaded_states(const TrainingOptions& options) {
  return options.optimizer && options.optimizer_state_offload ? options.optimizer_state_offload->fraction : 0;
}

int state_chunks(const TrainingOptions& options, double parameters) {
  const double moved = offloaded_states(options) * parameters;
  if (!(moved > 0)) return 0;
  const double size = options.optimizer_state_offload->chunk_size_mb * 0x1p20;
  // So many that a copy of one takes no time to speak of.
  constexpr double most = 1'000'000;
  const double needed = size > 0 ? std::ceil(moved * optimizer_bytes(options).moments / size) : 1;
  return static_cast<int>(std::clamp(needed, 1.0, most));
}

Volume still_returning(const StepInputs& in, Volume returned, int forwards) {
  if (!(returned > Volume{})) return {};
  const std::string& precision = in.options.precision;
  const FlopRate rate = in.gpu.peak.at(precision) * in.kernels.gemm.at(precision).compute;
  const ParallelLayout& l = in.layout;
  const double of_forward =
      flop_terms(in).forward() * in.batch.micro_batch / (1.0 * l.tp * l.cp * static_cast<double>(l.slices()));
  const Seconds over = forwards * (Flops(of_forward) / rate);
  return std::max(Volume{}, returned - host_copy_rate(in) * over);
}

}  // namespace workload

}  // namespace collcast
