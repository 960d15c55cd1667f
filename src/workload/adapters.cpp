#include "workload/adapters.hpp"

#include <algorithm>

namespace collcast::workload {

namespace {

/// A matrix on one rank, and whether TP splits its inputs.
struct Adapted {
  double in = 0, out = 0;
  bool row_parallel = false;
};

std::vector<Adapted> adapted(const StepInputs& in, const Share& s) {
  std::vector<Adapted> all;
  for (const AdapterModule module : in.options.lora.target_modules) switch (module) {
      case AdapterModule::linear_qkv:
        all.push_back({s.hidden, s.query + s.key + s.value});
        break;
      case AdapterModule::linear_proj:
        all.push_back({s.output, s.hidden, true});
        break;
      case AdapterModule::linear_fc1:
        all.push_back({s.hidden, (in.model.gated_mlp ? 2 : 1) * s.ffn});
        break;
      case AdapterModule::linear_fc2:
        all.push_back({s.ffn, s.hidden, true});
        break;
    }
  return all;
}

}  // namespace

bool is_frozen(const TrainingOptions& options) { return options.lora.rank > 0; }

bool has_adapter(const TrainingOptions& options, AdapterModule module) {
  return is_frozen(options) && std::ranges::count(options.lora.target_modules, module) > 0;
}

AdapterParameters layer_adapters(const StepInputs& in) {
  AdapterParameters sum;
  if (!is_frozen(in.options)) return sum;
  const double rank = in.options.lora.rank;
  for (const Adapted& a : adapted(in, Share(in))) {
    sum.sharded += rank * (a.row_parallel ? a.in : a.out);
    sum.replicated += rank * (a.row_parallel ? a.out : a.in);
  }
  return sum;
}

double adapter_width(const TrainingOptions& options) {
  return is_frozen(options)
             ? static_cast<double>(options.lora.rank) * static_cast<double>(options.lora.target_modules.size())
             : 0;
}

double adapter_flops(const StepInputs& in) {
  if (!is_frozen(in.options)) return 0;
  StepInputs whole = in;
  whole.layout.tp = 1;
  return 2 * layer_adapters(whole).total();
}

double adapter_flops(const StepInputs& in, AdapterModule module) {
  if (!has_adapter(in.options, module)) return 0;
  StepInputs one = in;
  one.options.lora.target_modules = {module};
  return adapter_flops(one);
}

Operation AdapterKernels::product(std::string name, double rows, double columns, double inner) const {
  const double w = timer_.precision().activation;
  return timer_.core_gemm(std::move(name), Flops(2 * rows * columns * inner),
                          Volume(w * (rows * inner + inner * columns + rows * columns)));
}

Operation AdapterKernels::scaled(std::string name, double width) const {
  return timer_.memory(std::move(name), Volume(2 * timer_.precision().activation * tokens_ * width));
}

Operation AdapterKernels::added(std::string name, double width) const {
  return timer_.memory(std::move(name), Volume(3 * timer_.precision().activation * tokens_ * width));
}

std::vector<Operation> AdapterKernels::forward(const Linear& l) const {
  if (!l.adapter) return {};
  const std::string name = std::string(l.name) + " adapter";
  return {product(name + " a", tokens_, rank_, l.in), product(name + " b", tokens_, l.out, rank_),
          scaled(name + " scale", l.out), added(name + " sum", l.out)};
}

std::vector<Operation> AdapterKernels::input_gradient(const Linear& l) const {
  if (!l.adapter) return {};
  const std::string name = std::string(l.name) + " adapter";
  return {scaled(name + " scale gradient", l.out), product(name + " b input gradient", tokens_, rank_, l.out),
          product(name + " a input gradient", tokens_, l.in, rank_), added(name + " gradient sum", l.in)};
}

std::vector<Operation> AdapterKernels::weight_gradient(const Linear& l) const {
  if (!l.adapter) return {};
  const std::string name = std::string(l.name) + " adapter";
  return {product(name + " b weight gradient", l.out, rank_, tokens_),
          product(name + " a weight gradient", rank_, l.in, tokens_)};
}

}  // namespace collcast::workload
