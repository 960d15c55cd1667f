// What of a layer takes the place of its MLP where it has experts. Terms as in layer.cpp.
//
// Experts (Megatron-Core's all-to-all dispatcher), K of E for each of T' rows, over EP e and expert TP t_e:
//   router             a GEMM of T' h E, top-k 3 x 4 T'E
//   permute, unpermute w (T' + T'K) h each, both ways
//   dispatch, combine  all-to-all of w T'K h x load among e ranks; backward the same two
//   gather, scatter    w T'K t_e h x load among the t_e ranks of an expert; backward the same two
//   sort               2 w T'K t_e h x load before and after the experts of several ranks, both ways
//   experts            grouped GEMMs of T'K t_e x load rows against E/e matrices: a GEMM's overhead for each matrix,
//                      and the rate of one GEMM of all rows (SimuMax's measured ones, B200, 160 and 80 matrices of 5120
//                      x 3072 and 24640 rows: 1.73 and 0.89 ms; so counted 1.69 and 0.89)
//   shared experts     an MLP of all T tokens, with TP's gather and scatter; its gate is left out
//   between them       the activation, with a clamp before it, and biases behind: expert_kernels.hpp
// Latent experts (NVIDIA's LatentMoE; Megatron-Core's moe_latent_size): rows of l elements in the place of h in all of
// these but router and shared experts. Before dispatch T' rows go through a matrix h x l, behind combine through one
// l x h, both whole on every TP rank; backward two GEMMs of the same size each.
// A server without sequence parallelism has all T tokens on every TP rank: no exchange, T K/e x load rows of a rank's
// E/e experts of width f_e/t_e (e t_e = t), and TP's all-reduce of w T h sums up the shared and the other experts at
// once. load: expert_load, of the busiest rank, whom the others wait for. Dispatch and combine are here of every row;
// what of them is sent, token_dispatch.hpp says. Left out: loss of balance among the experts of one rank, the losses
// that keep the balance.
#include <algorithm>
#include <cmath>

#include "workload/layer/layer.hpp"

namespace collcast::workload {

void Layer::take_experts() {
  const bool gated = in_.model.gated_mlp;
  up_ = {gated ? "shared up+gate" : "shared up", share_.hidden, (gated ? 2 : 1) * share_.shared};
  down_ = {"shared down", share_.shared, share_.hidden};
  const double row = share_.expert_row, latent = in_.model.experts.latent;
  expert_up_ = {gated ? "experts up+gate" : "experts up", row, (gated ? 2 : 1) * share_.expert};
  expert_down_ = {"experts down", share_.expert, row};
  expert_latent_down_ = {"experts latent down", share_.hidden, latent};
  expert_latent_up_ = {"experts latent up", latent, share_.hidden};
}

std::optional<ExpertExchange> Layer::all_to_all() const {
  if (in_.layout.ep == 1) return std::nullopt;
  return ExpertExchange{false, CollectiveKind::alltoall, dispatch_bytes(in_)};
}

std::optional<ExpertExchange> Layer::combine() const {
  std::optional<ExpertExchange> back = all_to_all();
  if (back) back->combines = true;
  return back;
}

std::optional<ExpertExchange> Layer::within_expert(CollectiveKind kind) const {
  if (in_.layout.expert_tp() == 1) return std::nullopt;
  return ExpertExchange{true, kind, w_ * share_.taken * share_.expert_row};
}

std::vector<Segment> Layer::between_exchanges(Category category, const Operations& ops) const {
  const auto segment = [&](const char* name, Operations kernels, std::optional<ExpertExchange> exchange) {
    return Segment{name, category, std::move(kernels), std::nullopt, 0, 0, 0, 0, exchange};
  };
  return {segment("experts gather", {}, within_expert(CollectiveKind::all_gather)),
          segment("experts scatter", ops, within_expert(CollectiveKind::reduce_scatter)),
          segment("experts combine", {}, combine())};
}

std::vector<Segment> Layer::replicated_experts(Category category) const {
  const bool shared = share_.shared > 0;
  Operations ops;
  if (shared) ops = shared_products();
  extend(ops, routed());
  extend(ops, expert_products());
  extend(ops, combined());
  if (shared) ops.push_back(memory("shared experts sum", 3 * w_ * per_row()));
  return {{"mlp norm", category, before_experts(), std::nullopt},
          {"experts", category, ops, tp_.reduce},
          {"residual", category, {residual_forward("mlp residual")}, std::nullopt}};
}

std::vector<Segment> Layer::experts_forward(Category category) const {
  if (replicates_tokens(in_)) return replicated_experts(category);
  std::vector<Segment> all = experts_module(category, before_experts());
  all.push_back({"residual", category, {residual_forward("mlp residual")}, std::nullopt});
  return all;
}

Operations Layer::before_experts() const {
  Operations ops;
  if (shape_.has_mixer()) ops.push_back(residual_forward("attention residual"));
  ops.push_back(norm_forward("mlp norm"));
  return ops;
}

Segment Layer::shared_experts(Category category) const {
  return {"shared experts", category, shared_products(), tp_.reduce};
}

Operations Layer::shared_products() const {
  Operations ops = forward_of(up_);
  ops.push_back(activation_forward("shared activation", share_.tokens, share_.shared));
  extend(ops, forward_of(down_));
  return ops;
}

Operations Layer::expert_products() const {
  Operations ops = grouped(expert_up_);
  extend(ops, experts_activation());
  extend(ops, grouped(expert_down_));
  extend(ops, expert_kernels_.bias());
  return ops;
}

Operations Layer::experts_activation() const {
  if (fuses_experts(in_)) return {};
  Operations ops = expert_kernels_.clamp();
  ops.push_back(activation_forward("experts activation", share_.taken, share_.expert));
  return ops;
}

Operations Layer::experts_activation_gradient() const {
  if (fuses_experts(in_)) return {};
  Operations ops{activation_backward("experts activation", share_.taken, share_.expert)};
  extend(ops, expert_kernels_.clamp_gradient());
  return ops;
}

Operations Layer::routed() const {
  Operations ops{router_gemm("router"), memory("top-k", 3 * 4 * share_.rows * in_.model.experts.count)};
  extend(ops, latent_forward(expert_latent_down_));
  ops.push_back(permutation("permute"));
  return ops;
}

Operations Layer::combined() const {
  Operations ops{permutation("unpermute")};
  extend(ops, latent_forward(expert_latent_up_));
  return ops;
}

std::vector<Segment> Layer::experts_module(Category category, const Operations& before) const {
  const bool shared = share_.shared > 0;
  std::vector<Segment> all{{"mlp norm", category, before, shared ? tp_.gather : std::nullopt}};
  if (shared) all.push_back(shared_experts(category));
  all.push_back({"experts dispatch", category, routed(), std::nullopt, 0, 0, 0, 0, all_to_all()});
  Operations experts = sorting("sort by expert");
  extend(experts, expert_products());
  extend(experts, sorting("sort by rank"));
  extend(all, between_exchanges(category, experts));
  Operations last = combined();
  if (shared) last.push_back(memory("shared experts sum", 3 * w_ * per_row()));
  all.push_back({"experts", category, last, std::nullopt});
  return all;
}

std::vector<Segment> Layer::experts_backward() const {
  const bool shared = share_.shared > 0;
  Operations first = residual_backward("mlp residual");
  extend(first, latent_backward(expert_latent_up_));
  first.push_back(permutation("unpermute gradient"));
  std::vector<Segment> all{{"experts dispatch", Category::backward, first, std::nullopt, 0, 0, 0, 0, all_to_all()}};
  Operations experts = sorting("sort by expert");
  extend(experts, expert_kernels_.bias_gradient());
  extend(experts, grouped_backward(expert_down_));
  extend(experts, experts_activation_gradient());
  extend(experts, grouped_backward(expert_up_));
  extend(experts, sorting("sort by rank"));
  extend(all, between_exchanges(Category::backward, experts));
  Operations router{permutation("permute gradient")};
  extend(router, latent_backward(expert_latent_down_));
  router.push_back(router_gemm("router input gradient"));
  if (!splits() && !frozen_) router.push_back(router_gemm("router weight gradient"));
  all.push_back({"router", Category::backward, router, shared ? tp_.gather : std::nullopt});
  if (!shared) return all;
  Operations down = linear_backward(down_, 0);
  down.push_back(activation_backward("shared activation", share_.tokens, share_.shared));
  extend(all, column_backward(in_, {"shared down", down, "shared experts", input_gradients(up_),
                                    splits() ? Operations() : weight_gradients(up_, 0), 0, !gathers_input(up_)}));
  return all;
}

double Layer::matrices() const {
  const double all = share_.local_experts;
  if (!in_.serving) return all;
  // Those of one token are K different ones of E: each of the T tokens that make the rows leaves an expert with 1 -
  // K/E.
  const double of_token = static_cast<double>(in_.model.experts.top_k) / in_.model.experts.count;
  const double tokens = share_.taken / (all * of_token);
  return std::min(share_.taken, all * (1 - std::pow(1 - of_token, tokens)));
}

Operations Layer::grouped_weights(const Linear& l) const { return gradients_of(l, share_.taken, share_.local_experts); }

Operations Layer::grouped_backward(const Linear& l) const {
  Operations ops = input_gradients(l, share_.taken, share_.local_experts);
  if (!splits()) extend(ops, grouped_weights(l));
  return ops;
}

Operation Layer::router_gemm(const char* name) const {
  const double experts = in_.model.experts.count, rows = share_.rows, h = share_.hidden;
  return timer_.core_gemm(name, Flops(2 * rows * h * experts), Volume(w_ * (rows * h + h * experts + rows * experts)));
}

Operations Layer::latent_forward(const Linear& l) const {
  return in_.model.experts.latent > 0 ? forward_of(l, share_.rows) : Operations();
}

Operations Layer::latent_weights(const Linear& l) const {
  return in_.model.experts.latent > 0 ? gradients_of(l, share_.rows) : Operations();
}

Operations Layer::latent_backward(const Linear& l) const {
  if (in_.model.experts.latent == 0) return {};
  Operations ops = input_gradients(l, share_.rows);
  if (!splits()) extend(ops, latent_weights(l));
  return ops;
}

Operation Layer::permutation(const char* name) const {
  return memory(name, w_ * (share_.rows + share_.sent) * share_.expert_row);
}

Operations Layer::sorting(const char* name) const {
  if (share_.local_experts <= 1 || (in_.layout.ep == 1 && in_.layout.expert_tp() == 1)) return {};
  return {memory(name, 2 * w_ * share_.taken * share_.expert_row)};
}

}  // namespace collcast::workload
