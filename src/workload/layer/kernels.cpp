#include "workload/layer/kernels.hpp"

#include <algorithm>
#include <utility>

#include "collcast/workload/gemm_time.hpp"
#include "collcast/workload/power.hpp"

namespace collcast::workload {

namespace {

template <class Map>
const auto& entry(const Map& map, const std::string& key) {
  const auto found = map.find(key);
  check(found != map.end(), "check_step has found every rate that a step needs");
  return found->second;
}

}  // namespace

KernelTimer::KernelTimer(const StepInputs& inputs) : inputs_(inputs) {
  const auto precision = serving_precision(inputs.options.precision);
  check(precision.has_value(), "check_step has accepted the precision");
  precision_ = *precision;
}

Operation KernelTimer::timed(Operation op, const KernelEfficiency& kernel, FlopRate peak, double kernels) const {
  Roofline time = roofline(kernel, peak, inputs_.gpu.memory_bandwidth, op.flops, op.bytes);
  time.overhead *= kernels;
  op.kernels = kernels;
  op.time = inputs_.gpu.kernel_scale * time.total();
  op.bound = time.overhead > std::max(time.compute, time.memory) ? "overhead"
             : time.memory > time.compute                        ? "memory"
                                                                 : "compute";
  return op;
}

Operation KernelTimer::sustained(Operation op, const KernelEfficiency& kernel, FlopRate peak) const {
  if (kernel.sustained >= 1) return op;
  // A product that is measured quicker than its roofline is so in its launch, too.
  const double launch = op.measured_ratio > 0 ? std::min(op.measured_ratio, 1.0) : 1;
  const Seconds least = inputs_.gpu.kernel_scale * (launch * kernel.overhead + op.flops / (peak * kernel.sustained));
  if (op.time >= least) return op;
  op.time = least;
  op.bound = "power";
  return op;
}

Operation KernelTimer::from_graph(Operation op, const KernelEfficiency& kernel) const {
  if (!replayed()) return op;
  const Seconds overhead = std::min(kernel.overhead, entry(inputs_.kernels.gemm, precision_.core).overhead);
  const double scale = inputs_.gpu.kernel_scale;
  // What a product is measured to take longer it takes of its launch, too.
  const double measured = op.measured_ratio > 0 ? op.measured_ratio : 1;
  op.time = std::max(op.time - measured * scale * (kernel.overhead - overhead),
                     scale * (overhead + op.bytes / inputs_.gpu.memory_bandwidth));
  return op;
}

Operation KernelTimer::gemm(std::string name, const std::string& precision, GemmPass pass, const GemmShape& shape,
                            Volume bytes) const {
  const KernelEfficiency& kernel = entry(inputs_.kernels.gemm, precision);
  const FlopRate peak = entry(inputs_.gpu.peak, precision);
  Operation op =
      timed({std::move(name), OperationKind::gemm, Flops(2 * shape.m * shape.n * shape.k), bytes, {}, {}, precision},
            kernel, peak);
  const auto tables = inputs_.kernels.measured_gemm.find(precision);
  if (tables != inputs_.kernels.measured_gemm.end()) {
    // A pass's own products are training's; a server's library is that of the products of all passes.
    const bool of_all = inputs_.serving && tables->second.any.size() > 0;
    if (const auto ratio = tables->second.ratio(of_all ? std::nullopt : std::optional(pass), shape)) {
      op.measured_ratio = ratio->ratio;
      op.extrapolated = ratio->distance > 0;
      op.time *= ratio->ratio;
    }
  }
  return from_graph(sustained(std::move(op), kernel, peak), kernel);
}

Operation KernelTimer::linear(std::string name, GemmPass pass, const GemmShape& shape, Volume bytes) const {
  return gemm(std::move(name), precision_.linear, pass, shape, bytes);
}

Operation KernelTimer::logits(std::string name, GemmPass pass, const GemmShape& shape, Volume bytes,
                              bool aligned) const {
  if (aligned) return gemm(std::move(name), precision_.core, pass, shape, bytes);
  constexpr double share = 0.25;
  KernelEfficiency kernel = entry(inputs_.kernels.gemm, precision_.core);
  kernel.compute = std::min(kernel.compute, share * clock_at_power(inputs_.gpu.power_limit));
  return timed(
      {std::move(name), OperationKind::gemm, Flops(2 * shape.m * shape.n * shape.k), bytes, {}, {}, precision_.core},
      kernel, entry(inputs_.gpu.peak, precision_.core));
}

bool KernelTimer::groups_experts() const {
  return (inputs_.serving || inputs_.options.moe_grouped_gemm) &&
         inputs_.kernels.grouped_gemm.contains(precision_.linear);
}

Operation KernelTimer::grouped(std::string name, GemmPass pass, Flops flops, Volume bytes, double matrices) const {
  const KernelModel& kernels = inputs_.kernels;
  const bool gradient = pass == GemmPass::weight_gradient && kernels.grouped_gemm_gradient.contains(precision_.linear);
  const bool known = groups_experts();
  const OperationKind kind = !known     ? OperationKind::gemm
                             : gradient ? OperationKind::grouped_gemm_gradient
                                        : OperationKind::grouped_gemm;
  KernelEfficiency kernel = entry(!known     ? kernels.gemm
                                  : gradient ? kernels.grouped_gemm_gradient
                                             : kernels.grouped_gemm,
                                  precision_.linear);
  // What products launched one by one lose of the memory's rate, kernels of a graph do not: all experts' weights are
  // read in one of them, as by any kernel that reads.
  if (replayed()) kernel.memory = std::max(kernel.memory, kernels.memory_bound.memory);
  const FlopRate peak = entry(inputs_.gpu.peak, precision_.linear);
  Operation op = timed({std::move(name), kind, flops, bytes, {}, {}, precision_.linear}, kernel, peak,
                       known || inputs_.serving ? 1 : matrices);
  return from_graph(sustained(std::move(op), kernel, peak), kernel);
}

Operation KernelTimer::core_gemm(std::string name, Flops flops, Volume bytes, double kernels) const {
  return timed({std::move(name), OperationKind::gemm, flops, bytes, {}, {}, precision_.core},
               entry(inputs_.kernels.gemm, precision_.core), entry(inputs_.gpu.peak, precision_.core), kernels);
}

Operation KernelTimer::unaligned_gemm(std::string name, Flops flops, Volume bytes) const {
  const auto vector_rate = inputs_.gpu.peak.find("fp32");
  if (vector_rate == inputs_.gpu.peak.end()) return core_gemm(std::move(name), flops, bytes);
  return timed({std::move(name), OperationKind::gemm, flops, bytes, {}, {}, precision_.core},
               entry(inputs_.kernels.gemm, precision_.core), vector_rate->second);
}

Operation KernelTimer::flash(std::string name, Flops flops, Volume bytes, bool backward) const {
  const auto& gradients = inputs_.kernels.attention_gradient;
  const auto own = gradients.find(precision_.core);
  const bool known = backward && own != gradients.end();
  return timed({std::move(name),
                known ? OperationKind::attention_gradient : OperationKind::attention,
                flops,
                bytes,
                {},
                {},
                precision_.core},
               known ? own->second : entry(inputs_.kernels.attention, precision_.core),
               entry(inputs_.gpu.peak, precision_.core));
}

Operation KernelTimer::cached_attention(std::string name, Flops flops, Volume bytes) const {
  return timed({std::move(name), OperationKind::cached_attention, flops, bytes, {}, {}, precision_.core},
               cached_attention_efficiency(inputs_.kernels, precision_.core), entry(inputs_.gpu.peak, precision_.core));
}

Operation KernelTimer::index_scores(std::string name, Flops flops, Volume bytes) const {
  if (replayed()) return cached_attention(std::move(name), flops, bytes);
  const bool narrow = inputs_.serving && inputs_.gpu.peak.contains("fp8") && inputs_.kernels.gemm.contains("fp8");
  const std::string precision = narrow ? "fp8" : precision_.core;
  const KernelEfficiency& kernel = entry(inputs_.kernels.gemm, precision);
  const FlopRate peak = entry(inputs_.gpu.peak, precision);
  return sustained(timed({std::move(name), OperationKind::gemm, flops, bytes, {}, {}, precision}, kernel, peak), kernel,
                   peak);
}

Operation KernelTimer::memory(std::string name, Volume bytes, double kernels) const {
  return timed({std::move(name), OperationKind::memory, {}, bytes, {}, {}}, inputs_.kernels.memory_bound, {}, kernels);
}

}  // namespace collcast::workload

namespace collcast {

KernelEfficiency cached_attention_efficiency(const KernelModel& kernels, const std::string& precision) {
  const KernelEfficiency& streams = kernels.memory_bound;
  return {streams.overhead, kernels.attention.at(precision).compute, streams.memory, streams.source};
}

}  // namespace collcast
