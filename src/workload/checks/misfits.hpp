// What check_step has found, and what its parts have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "collcast/workload/limits.hpp"
#include "collcast/workload/step.hpp"

namespace collcast::workload {

/// What would be right: values that can be tried, or words alone.
struct Hint {
  using Change = std::function<void(StepInputs&)>;
  struct Offer {
    std::string first;   ///< "use pp 3", where no other offer is before it
    std::string beside;  ///< "pp 3", behind others
    Change change;
    std::string degree = {}, value = {};  ///< "pp" and "3" of one of several values of a degree
  };
  std::vector<Offer> offers = {};

  /// Nothing that could be tried.
  Hint(std::string words) : words_(std::move(words)) {}
  Hint(const char* words) : words_(words) {}
  /// "use uneven_stages: true".
  Hint(std::string words, Change);
  /// "use pp 3 or 5"; without a name "use 3 or 5".
  static Hint use(const std::string& name, int ParallelLayout::*degree, const std::vector<int>& values);
  static Hint use(const std::string& name, const std::vector<std::int64_t>& values,
                  const std::function<void(StepInputs&, int)>& put);
  /// "..., or uneven_stages: true".
  Hint or_use(const std::string& words, Change) &&;
  /// "..., or pp 2 or 4".
  Hint or_any_of(Hint others) &&;
  /// "use pp 3 or 5, or uneven_stages: true".
  std::string text() const;

 private:
  std::string words_ = {};  ///< where there are no offers
};

struct Misfits {
  const StepInputs& in;
  const Origins& origins;
  Diagnostics found = {};
  std::vector<std::string> blamed = {};  ///< of each the first path
  std::vector<Hint> hints = {};          ///< of each
  bool too_large = false;                ///< one of them is that the machine has fewer GPUs

  /// `paths` are the values that do not go together; the first is the one that the hint tells to change.
  void wrong(const std::vector<std::string>& paths, std::string message, Hint hint);
  /// " (place)" of another value that the wrong one does not go with, if it was written anywhere.
  std::string seen(const std::string& path) const;
};

/// The same inputs with values in the place of those that are wrong by themselves, so that the rest can be held to each
/// other; what was wrong is said already, and nothing is said of it again where origins know it as spoiled.
StepInputs mended(const StepInputs&);

/// Of what waits in the host's memory, on a machine without host_bandwidth; and what would do.
inline constexpr const char* no_way_to_host = "the machine describes no way from each GPU to a CPU";
inline constexpr const char* leave_out_or_describe_hosts =
    "leave it out, or describe links of kind pcie or c2c from the GPUs to a device of kind cpu";

/// Whether check_step accepts it on so many ranks, of what could be read.
bool goes_together(const StepInputs&, int ranks, const Origins&);

/// Each hint is of one value. Where one is wrong of the layout its hint keeps what of its offers goes with the rest.
/// Where several are, or it is too large, or nothing of what the hint offers goes with the rest, the last of these
/// hints names the layout next to it in which all go together; what else is wrong, here or (`alone` false) elsewhere,
/// is no reason against it.
void name_nearest(const StepInputs&, int ranks, Origins known, bool alone, Misfits&);

/// What is sent in another format, compressed or delayed.
void check_communication(Misfits&);
/// A precision, and whether the GPU and its kernels have figures for it.
void check_kernels(Misfits&);
/// Experts by themselves, or what of them a dense model is asked for.
void check_expert_sizes(Misfits&);
/// How they go over the ranks.
void check_experts(Misfits&);
/// How a sample's tokens, and heads, go over the ranks of context parallelism.
void check_context(Misfits&);
/// Sparse attention by itself, and what of layout and options it does not go with.
void check_sparse_sizes(Misfits&);
void check_sparse(Misfits&);
/// Modules that are computed once more.
void check_recompute(Misfits&);
/// Activations that wait in the host's memory.
void check_offloading(Misfits&);
/// Whether an optimizer of narrower states goes with precision and gradients.
void check_optimizer(Misfits&);
/// Linear attention by itself, and what it does not go with.
void check_linear_sizes(Misfits&);
void check_hybrid(Misfits&);
void check_linear_attention(Misfits&);
/// Speculative decoding by itself, and with the model.
void check_speculation(Misfits&);
/// Low-rank adapters, and what they do not go with.
void check_adapters(Misfits&);
/// What only precisions with narrower products have: inputs kept as they were, layers in bf16.
void check_narrow_products(Misfits&);
/// Stages and chunks among the layers; with a schedule of one's own also those that it is for.
void check_pipeline(Misfits&);
/// `count` micro-batches of `samples` over all replicas are those of one's own schedule.
void check_own_micro_batches(Misfits&, std::int64_t count, std::int64_t samples);

inline bool any_divisor(int) { return true; }

/// The divisors of `n` next to `wanted` that are `good`, as 1 is and `wanted` is not: one below, one above where there
/// is one.
template <class Good = bool (*)(int)>
std::vector<int> near_divisors(int n, int wanted, Good good = any_divisor) {
  int below = 1, above = std::numeric_limits<int>::max();
  for (int d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    for (const int divisor : {d, n / d}) {
      if (!good(divisor)) continue;
      if (divisor < wanted) below = std::max(below, divisor);
      if (divisor > wanted) above = std::min(above, divisor);
    }
  }
  if (above == std::numeric_limits<int>::max()) return {below};
  return {below, above};
}

/// "4 or 8".
std::string either(const std::vector<int>& values);
template <class Good = bool (*)(int)>
std::string nearest_divisors(int n, int wanted, Good good = any_divisor) {
  return either(near_divisors(n, wanted, good));
}

}  // namespace collcast::workload
