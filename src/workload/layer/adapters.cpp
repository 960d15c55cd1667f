#include "workload/layer/adapters.hpp"

#include <algorithm>

namespace collcast::workload {

namespace {

using Split = Adapted::Split;
using Of = Adapted::Of;

/// Every matrix that can have an adapter, whether it has or not.
class LayerMatrices {
 public:
  explicit LayerMatrices(const StepInputs& in) : in_(in), s_(in) {}

  std::vector<Adapted> of_layer(LayerShape shape) const {
    std::vector<Adapted> all;
    if (shape.attends()) {
      all = in_.model.latent.kv_rank > 0 ? latent_heads() : heads();
      all.push_back(
          {AdapterModule::linear_proj, s_.output, s_.hidden, s_.tokens, s_.tokens, s_.rows, Split::in, Of::attention});
    }
    if (shape.has_mlp()) add_mlp(s_.ffn, s_.tokens, s_.rows, Of::mlp, 1, all);
    if (!shape.has_experts()) return all;
    if (s_.shared > 0) add_mlp(s_.shared, s_.tokens, s_.rows, Of::shared_experts, 1, all);
    add_mlp(s_.expert, s_.taken, s_.taken, Of::experts, s_.local_experts, all);
    return all;
  }

 private:
  std::vector<Adapted> heads() const {
    return {{AdapterModule::linear_qkv, s_.hidden, s_.query + s_.key + s_.value, s_.tokens, s_.rows, s_.tokens,
             Split::out, Of::attention}};
  }

  /// Into the small ranks a rank has its own rows.
  std::vector<Adapted> latent_heads() const {
    const LatentAttention& l = in_.model.latent;
    const double q = l.q_rank, kv = l.kv_rank, down = s_.rows;
    const double keys = in_.model.heads * static_cast<double>(l.nope) / in_.layout.tp;
    std::vector<Adapted> all;
    if (q > 0) {
      all.push_back({AdapterModule::linear_q_down_proj, s_.hidden, q, down, s_.rows, down, Split::none, Of::attention});
      all.push_back(
          {AdapterModule::linear_q_up_proj, q, s_.query, s_.tokens, down, s_.tokens, Split::out, Of::attention});
    } else {
      all.push_back({AdapterModule::linear_q_proj, s_.hidden, s_.query, s_.tokens, s_.rows, s_.tokens, Split::out,
                     Of::attention});
    }
    all.push_back(
        {AdapterModule::linear_kv_down_proj, s_.hidden, kv + l.rope, down, s_.rows, down, Split::none, Of::attention});
    all.push_back(
        {AdapterModule::linear_kv_up_proj, kv, keys + s_.value, s_.tokens, down, s_.tokens, Split::out, Of::attention});
    return all;
  }

  void add_mlp(double width, double rows, double kept, Of of, double count, std::vector<Adapted>& all) const {
    const double ups = in_.model.gated_mlp ? 2 : 1;
    all.push_back({AdapterModule::linear_fc1, s_.hidden, ups * width, rows, kept, rows, Split::out, of, count});
    all.push_back({AdapterModule::linear_fc2, width, s_.hidden, rows, rows, kept, Split::in, of, count});
  }

  const StepInputs& in_;
  Share s_;
};

}  // namespace

bool is_frozen(const TrainingOptions& options) { return options.lora.rank > 0; }

bool is_quantised(const TrainingOptions& options) {
  return is_frozen(options) && options.lora.base_weights == BaseWeights::nf4;
}

double largest_matrix(const StepInputs& in, LayerShape shape) {
  const KernelTimer timer(in);
  double largest = 0;
  for (const Adapted& m : LayerMatrices(in).of_layer(shape)) {
    const bool at_once = m.of == Of::experts && timer.kernels_of_experts(m.count) == 1;
    largest = std::max(largest, m.in * m.out * (at_once ? m.count : 1));
  }
  return largest;
}

bool has_adapter(const StepInputs& in, AdapterModule module) {
  if (!is_frozen(in.options)) return false;
  const std::vector<AdapterModule> have = adapter_modules(in.model), targets = in.options.lora.targets(in.model);
  return std::ranges::count(have, module) > 0 && std::ranges::count(targets, module) > 0;
}

std::vector<Adapted> adapted_matrices(const StepInputs& in, LayerShape shape) {
  if (!is_frozen(in.options)) return {};
  std::vector<Adapted> all = LayerMatrices(in).of_layer(shape);
  std::erase_if(all, [&](const Adapted& m) { return !has_adapter(in, m.module); });
  return all;
}

AdapterParameters layer_adapters(const StepInputs& in, LayerShape shape) {
  AdapterParameters sum;
  const double rank = in.options.lora.rank;
  for (const Adapted& m : adapted_matrices(in, shape)) {
    if (m.of == Of::experts) {
      sum.experts += m.count * rank * (m.in + m.out);
      continue;
    }
    (m.split == Split::in ? sum.sharded : sum.replicated) += rank * m.in;
    (m.split == Split::out ? sum.sharded : sum.replicated) += rank * m.out;
  }
  return sum;
}

double kept_by_adapters(const StepInputs& in, LayerShape shape) {
  double sum = 0;
  for (const Adapted& m : adapted_matrices(in, shape)) sum += in.options.lora.rank * m.rows;
  return sum;
}

double waiting_of_adapters(const StepInputs& in, LayerShape shape) {
  double sum = inputs_of_adapters(in, shape) + kept_by_adapters(in, shape);
  for (const Adapted& m : adapted_matrices(in, shape)) sum += m.rows_out * m.out;
  return sum;
}

double inputs_of_adapters(const StepInputs& in, LayerShape shape) {
  using enum AdapterModule;
  double sum = kept_by_adapters(in, shape);
  for (const Adapted& m : adapted_matrices(in, shape)) {
    // Queries, and keys and values, go down from the same hidden states.
    const bool read =
        m.module == linear_kv_down_proj && (has_adapter(in, linear_q_down_proj) || has_adapter(in, linear_q_proj));
    if (!read) sum += m.rows_in * m.in;
  }
  return sum;
}

double adapter_flops(const StepInputs& in, LayerShape shape, const std::function<bool(const Adapted&)>& takes) {
  if (in.options.lora.rank == 0) return 0;
  StepInputs whole = in;
  whole.layout = {};
  double sum = 0;
  for (const Adapted& m : adapted_matrices(whole, shape)) {
    const double passed = m.of == Of::experts ? in.model.experts.top_k : 1;
    if (!takes || takes(m)) sum += 2 * in.options.lora.rank * (m.in + m.out) * passed;
  }
  return sum;
}

Operation AdapterKernels::product(std::string name, Rows rows, double n, double m) const {
  const double w = timer_.precision().activation;
  return timer_.core_gemm(std::move(name), Flops(2 * rows.count * n * m),
                          Volume(w * (rows.count * n + rows.matrices * n * m + rows.count * m)),
                          timer_.kernels_of_experts(rows.matrices));
}

Operation AdapterKernels::passes(std::string name, Rows rows, double count, double width) const {
  return timer_.memory(std::move(name), Volume(count * timer_.precision().activation * rows.count * width),
                       timer_.kernels_of_experts(rows.matrices));
}

std::vector<Operation> AdapterKernels::forward(const Linear& l, double rows, double matrices) const {
  if (!l.adapter) return {};
  const std::string name = std::string(l.name) + " adapter";
  const Rows of{rows, matrices};
  return {product(name + " a", of, l.in, rank_), product(name + " b", of, rank_, l.out),
          passes(name + " scale", of, 2, l.out), passes(name + " sum", of, 3, l.out)};
}

std::vector<Operation> AdapterKernels::input_gradient(const Linear& l, double rows, double matrices) const {
  if (!l.adapter) return {};
  const std::string name = std::string(l.name) + " adapter";
  const Rows of{rows, matrices};
  return {passes(name + " scale gradient", of, 2, l.out), product(name + " b input gradient", of, l.out, rank_),
          product(name + " a input gradient", of, rank_, l.in), passes(name + " gradient sum", of, 3, l.in)};
}

std::vector<Operation> AdapterKernels::weight_gradient(const Linear& l, double rows, double matrices) const {
  if (!l.adapter) return {};
  const std::string name = std::string(l.name) + " adapter";
  const Rows of{rows, matrices};
  return {product(name + " b weight gradient", of, rank_, l.out),
          product(name + " a weight gradient", of, l.in, rank_)};
}

}  // namespace collcast::workload
