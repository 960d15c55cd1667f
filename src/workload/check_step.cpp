// Everything wrong with a model, layout, batch and GPU together; each with the nearest value that works.
#include <algorithm>
#include <numeric>
#include <string>

#include "collcast/base/units.hpp"
#include "collcast/workload/step.hpp"
#include "workload/parameters.hpp"
#include "workload/precision.hpp"

namespace collcast {

namespace {

/// "4 or 8": the divisors of `n` next to `wanted`, which is not one.
std::string nearest_divisors(int n, int wanted) {
  int below = 1, above = n;
  for (int d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    for (const int divisor : {d, n / d}) {
      if (divisor < wanted) below = std::max(below, divisor);
      if (divisor > wanted) above = std::min(above, divisor);
    }
  }
  return std::to_string(below) + (above > wanted ? " or " + std::to_string(above) : std::string());
}

template <class Map>
std::vector<std::string> keys(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

class Check {
 public:
  Check(const StepInputs& in, int ranks, const Location& where) : in_(in), ranks_(ranks), where_(where) {}

  Diagnostics run() {
    sizes();
    // The rest divides by these.
    if (!found_.empty()) return found_;
    tensor_parallel();
    pipeline();
    batch();
    machine();
    buckets();
    kernels();
    return found_;
  }

 private:
  void wrong(std::string message, std::string hint) { found_.push_back({where_, std::move(message), std::move(hint)}); }

  void positive(const char* name, int value) {
    if (value < 1) wrong(std::string(name) + " is " + std::to_string(value), "expected at least 1");
  }

  void sizes() {
    const TransformerConfig& m = in_.model;
    const ParallelLayout& l = in_.layout;
    positive("layers", m.layers);
    constexpr int most_layers = 10'000;
    if (m.layers > most_layers)
      wrong("layers is " + std::to_string(m.layers), "expected up to " + std::to_string(most_layers));
    positive("hidden", m.hidden);
    positive("heads", m.heads);
    positive("kv_heads", m.kv_heads);
    positive("head_dim", m.head_dim);
    positive("ffn", m.ffn);
    positive("vocab", m.vocab);
    positive("tp", l.tp);
    positive("pp", l.pp);
    positive("dp", l.dp);
    positive("sequence", in_.batch.sequence);
    positive("micro_batch", in_.batch.micro_batch);
    positive("global_batch", in_.batch.global_batch);
    for (const auto& [name, degree] : {std::pair{"cp", l.cp}, std::pair{"ep", l.ep}, std::pair{"vpp", l.vpp}})
      if (degree != 1) wrong(std::string(name) + " " + std::to_string(degree) + " is not modelled", "expected 1");
    if (in_.options.bucket < Bytes(1)) wrong("the gradient bucket is empty", "expected a size such as 40MB");
    if (in_.options.gradient_bytes != 2 && in_.options.gradient_bytes != 4)
      wrong("gradient_bytes is " + std::to_string(in_.options.gradient_bytes), "expected 4 (fp32) or 2 (16 bit)");
    if (in_.options.zero != 0 && in_.options.zero != 1)
      wrong("zero " + std::to_string(in_.options.zero) + " is not modelled", "expected 0 or 1");
    if (!(m.dropout >= 0 && m.dropout < 1)) wrong("dropout is " + std::to_string(m.dropout), "expected 0 to below 1");
  }

  void tensor_parallel() {
    const TransformerConfig& m = in_.model;
    const int tp = in_.layout.tp;
    if (m.heads % m.kv_heads != 0)
      wrong(std::to_string(m.kv_heads) + " kv_heads do not divide " + std::to_string(m.heads) + " heads",
            "use " + nearest_divisors(m.heads, m.kv_heads) + " kv_heads");
    int common = std::gcd(std::gcd(m.heads, m.kv_heads), m.ffn);
    if (in_.layout.sequence_parallel) common = std::gcd(common, in_.batch.sequence);
    const auto divides = [&](const char* what, int value) {
      if (value % tp != 0)
        wrong("tp " + std::to_string(tp) + " does not divide " + what + " " + std::to_string(value),
              "use tp " + nearest_divisors(common, tp));
    };
    divides("heads", m.heads);
    divides("kv_heads", m.kv_heads);
    divides("ffn", m.ffn);
    if (in_.layout.sequence_parallel) divides("sequence (sequence_parallel)", in_.batch.sequence);
  }

  void pipeline() {
    if (in_.model.layers % in_.layout.pp != 0)
      wrong("pp " + std::to_string(in_.layout.pp) + " does not divide layers " + std::to_string(in_.model.layers),
            "use pp " + nearest_divisors(in_.model.layers, in_.layout.pp));
  }

  void batch() {
    const std::int64_t per_pass = std::int64_t{in_.batch.micro_batch} * in_.layout.dp;
    const std::int64_t global = in_.batch.global_batch;
    if (global % per_pass != 0) {
      const std::int64_t below = global / per_pass * per_pass;
      wrong("global_batch " + std::to_string(global) + " is not a multiple of micro_batch " +
                std::to_string(in_.batch.micro_batch) + " x dp " + std::to_string(in_.layout.dp),
            "use " + (below > 0 ? std::to_string(below) + " or " : std::string()) + std::to_string(below + per_pass));
    }
    if (in_.model.learned_positions > 0 && in_.batch.sequence > in_.model.learned_positions)
      wrong("sequence " + std::to_string(in_.batch.sequence) + " is longer than the model's " +
                std::to_string(in_.model.learned_positions) + " learned positions",
            "use a sequence of at most " + std::to_string(in_.model.learned_positions));
  }

  void machine() {
    const ParallelLayout& l = in_.layout;
    const std::int64_t replica = std::int64_t{l.tp} * l.pp;
    const std::string degrees = "tp " + std::to_string(l.tp) + " x pp " + std::to_string(l.pp);
    const std::string there = " GPUs, the machine has " + std::to_string(ranks_);
    if (replica > ranks_)
      wrong(degrees + " needs " + std::to_string(replica) + there, "use a smaller tp or pp, or more nodes");
    else if (l.dp > ranks_ / replica)
      wrong(degrees + " x dp " + std::to_string(l.dp) + " needs " + std::to_string(replica * l.dp) + there,
            "use dp " + std::to_string(ranks_ / replica) + ", or more nodes");
  }

  /// A bucket is an operation of the timeline: no more of them than a person could mean.
  void buckets() {
    constexpr double most = 10'000;
    double largest = 0;
    for (const int stage : {0, in_.layout.pp - 1})
      largest = std::max(largest, in_.options.gradient_bytes * workload::stage_parameters(in_, stage).total());
    if (in_.layout.dp > 1 && largest / static_cast<double>(in_.options.bucket.value()) > most)
      wrong("a gradient bucket of " + format_bytes(in_.options.bucket) + " cuts " + format_bytes(Volume(largest)) +
                " of gradients into more than 10000 pieces",
            "use " + format_bytes(Bytes(static_cast<std::int64_t>(largest / most) + 1)) + " or more");
  }

  template <class Map>
  void needs(const Map& map, const std::string& key, const std::string& what) {
    if (map.find(key) == map.end()) wrong(what + " has no figure for " + key, expected_one_of(key, keys(map)));
  }

  void kernels() {
    const std::string& name = in_.options.precision;
    const auto precision = workload::training_precision(name);
    if (!precision) {
      wrong("unknown precision '" + name + "'", expected_one_of(name, workload::training_precisions()));
      return;
    }
    if (in_.gpu.model.empty()) {
      wrong("the machine has no GPUs that compute", "use a topology with compute rates, such as dgx-h100");
      return;
    }
    const std::string gpu = "the data sheet of " + in_.gpu.model;
    const std::string table = "the kernel table '" + in_.kernels.name + "'";
    needs(in_.gpu.peak, precision->linear, gpu);
    needs(in_.kernels.gemm, precision->linear, table + " (gemm)");
    if (precision->core != precision->linear) {
      needs(in_.gpu.peak, precision->core, gpu);
      needs(in_.kernels.gemm, precision->core, table + " (gemm)");
    }
    if (in_.options.attention == Attention::flash)
      needs(in_.kernels.attention, precision->core, table + " (attention)");
  }

  const StepInputs& in_;
  int ranks_;
  Location where_;
  Diagnostics found_;
};

}  // namespace

Diagnostics check_step(const StepInputs& in, int ranks_available, const Location& where) {
  return Check(in, ranks_available, where).run();
}

}  // namespace collcast
