// Linear attention of one layer on one rank: what is between its projection in and its projection out.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "workload/layer/kernels.hpp"
#include "workload/layer/segments.hpp"
#include "workload/layer/share.hpp"

namespace collcast::workload {

/// Of a rank, in elements of a token: 1/TP of the model's heads.
struct LinearShare {
  LinearRule rule = LinearRule::gated_delta;
  double columns = 0;   ///< of the projection in
  double channels = 0;  ///< of the convolution: queries, keys and values
  double keys = 0;      ///< of queries, and of keys
  double values = 0;    ///< what comes out
  double heads = 0;     ///< of values
  double state = 0;     ///< of a sequence, not of a token
  double inputs = 0;    ///< the same: what the convolution needs of the tokens before
  explicit LinearShare(const StepInputs&);
};

/// Tokens that the rule takes at once.
double linear_chunk(LinearRule);
/// What such a layer keeps of a token until its backward, between the norm before its projection in and the residual:
/// elements.
double kept_by_linear_attention(const LinearShare&);

class LinearCore {
 public:
  /// Inputs, timer and share must outlive it.
  LinearCore(const StepInputs&, const KernelTimer&, const Share&);

  /// Behind the projection in: convolution, norms of queries and keys.
  std::vector<Operation> prepare() const;
  std::vector<Operation> prepare_gradient() const;
  /// The rule, and the norm of what it gives with its gate.
  Segment forward(Category) const;
  Segment backward() const;

 private:
  Operation memory(std::string name, double bytes) const { return timer_.memory(std::move(name), Volume(bytes)); }
  bool is_ssd() const { return share_.rule == LinearRule::ssd; }
  Operation norm() const;
  Operation rule_in_chunks() const;
  Operation rule_token_by_token() const;
  bool from_states() const { return in_.serving && in_.batch.context > 0; }

  const StepInputs& in_;
  const KernelTimer& timer_;
  double tokens_, sequences_, w_;
  LinearShare share_;
};

}  // namespace collcast::workload
