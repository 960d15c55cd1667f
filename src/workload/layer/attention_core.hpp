// Attention between its projections: kernels, and what context parallelism sends.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "workload/layer/indexer.hpp"
#include "workload/layer/kernels.hpp"
#include "workload/layer/segments.hpp"
#include "workload/layer/share.hpp"

namespace collcast::workload {

class AttentionCore {
 public:
  /// Inputs, timer and share must outlive it.
  AttentionCore(const StepInputs&, const KernelTimer&, const Share&, bool windowed = false);

  /// With an all-to-all of `exchange` bytes behind it (0: none).
  std::vector<Segment> forward(Category, double exchange) const;
  std::vector<Segment> backward() const;

  /// Bytes of Ulysses' exchanges of queries, keys and values before it, and of its output behind it; else 0.
  double query_exchange() const;
  double output_exchange() const;

 private:
  using Operations = std::vector<Operation>;

  bool ring() const { return in_.layout.cp > 1 && in_.layout.cp_exchange == ContextExchange::ring; }
  bool ulysses() const { return in_.layout.cp > 1 && in_.layout.cp_exchange == ContextExchange::ulysses; }
  Operation memory(std::string name, double bytes) const { return timer_.memory(std::move(name), Volume(bytes)); }
  bool cuts_keys() const;
  Flops flash_flops(double of_keys, double of_values) const;
  Operation core_gemm(const char* name, bool of_values) const;
  Operation flash(const std::string& name, bool backward) const;
  Operation flash_block(const std::string& name, bool backward) const;
  Operation flash_kernel(const std::string& name, bool backward, double part, double tokens, double elements) const;
  Segment ring_segment(Category, const Operation& block, int blocks, int messages) const;
  Operation over_cache() const;
  bool softmax_is_fused() const;
  Operations softmax() const;
  Operations softmax_gradient() const;
  Operations kernels() const;
  Operations gradient_kernels() const;

  const StepInputs& in_;
  const KernelTimer& timer_;
  const Share& share_;
  Indexer indexer_;
  double w_;    ///< bytes of an element
  int window_;  ///< tokens; 0: queries meet all keys before them
};

}  // namespace collcast::workload
