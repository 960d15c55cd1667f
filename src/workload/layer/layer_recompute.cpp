// What of a layer a backward computes once more with selective recomputation. Terms as in layer.cpp.
//
// Modules are Megatron-Core's (TransformerConfig.recompute_modules, of version 0.13 and later). core_attn, mlp, moe and
// shared_experts keep their input and run their whole forward again, with what they exchange; layernorm, mla_up_proj
// and moe_act leave out what they gave once it is used, and bring that back before the backward of what used it:
//   core_attn       the attention core; with a ring its messages
//   layernorm       both norms of the layer, not those of latent attention's ranks
//   mla_up_proj     queries, keys and values from the small ranks (a gather of these with sequence parallelism), rotary
//   mlp             of a layer without experts: gather, both products and the activation, reduction
//   moe             router, permutations, dispatch, experts, combine, shared experts
//   shared_experts  as mlp
//   moe_act         the experts' activation function and the clamp before it; no kernel where it is fused
// Single operations are those that PyTorch's selective checkpoints can tell apart (TorchTitan's save every second
// product of a layer); they are computed again with all others before the layer's backward:
//   q_proj, k_proj, v_proj   their part of the product of queries, keys and values, and of the rotary
//   o_proj                   the projection, its reduction over TP ranks and the sum with the residual; not of a layer
//                            that ends with it
//   gate_proj, up_proj       their part of the MLP's first product
//   mlp_act                  the activation function of the MLP
// Linear attention has nothing of these but the norms and o_proj.
// With sequence parallelism the input of the former and of gate_proj and up_proj is gathered before them, and is still
// there for their weight gradients, but for zero bubble's, which come later.
#include "workload/layer/layer.hpp"

namespace collcast::workload {

namespace {

constexpr Category once_more = Category::recompute;

/// Those in which there is something to do.
std::vector<Segment> filled(std::vector<Segment> segments) {
  std::erase_if(segments, [](const Segment& s) {
    return s.operations.empty() && !s.then && !s.exchange && s.ring_messages == 0 && s.all_to_all_bytes == 0;
  });
  return segments;
}

}  // namespace

Linear Layer::heads_products() const {
  if (!shape_.attends()) return {"qkv", share_.hidden, 0};
  const bool q = again(RecomputeModule::q_proj), k = again(RecomputeModule::k_proj), v = again(RecomputeModule::v_proj);
  const double out = (q ? share_.query + share_.gate : 0) + (k ? share_.key : 0) + (v ? share_.key : 0);
  return {q && k && v ? "qkv" : "part of qkv", share_.hidden, out};
}

Linear Layer::mlp_products() const {
  const bool gate = again(RecomputeModule::gate_proj), up = again(RecomputeModule::up_proj);
  // With the module they are computed in it.
  if (!shape_.has_mlp() || again(RecomputeModule::mlp) || (!gate && !up)) return {"mlp up", share_.hidden, 0};
  if (!in_.model.gated_mlp || (gate && up)) return up_;
  return {gate ? "mlp gate" : "mlp up", share_.hidden, share_.ffn};
}

std::vector<Segment> Layer::products_again(const char* norm, const Operations& before, const char* name,
                                           const Operations& products) const {
  return {{norm, once_more, before, tp_.gather}, {name, once_more, products, std::nullopt}};
}

std::vector<Segment> Layer::mlp_again() const {
  if (!shape_.has_feed_forward()) return {};
  std::vector<Segment> all;
  Operations norm;
  if (shape_.has_mixer() && again(RecomputeModule::o_proj)) {
    all.push_back({"attention", once_more, forward_of(projection_), tp_.reduce});
    norm.push_back(residual_forward("attention residual"));
  }
  if (again(RecomputeModule::layernorm) && has_mlp_norm()) norm.push_back(norm_forward("mlp norm"));
  if (shape_.has_experts()) {
    if (again(RecomputeModule::moe)) {
      extend(all, experts_module(once_more, norm));
      return filled(all);
    }
    const bool shared = again(RecomputeModule::shared_experts) && share_.shared > 0;
    all.push_back({"mlp norm", once_more, norm, shared ? tp_.gather : std::nullopt});
    if (shared) all.push_back(shared_experts(once_more));
    if (again(RecomputeModule::moe_act))
      all.push_back({"experts activation", once_more, experts_activation(), std::nullopt});
    return filled(all);
  }
  if (again(RecomputeModule::mlp)) {
    const Operations ops = mlp_products_forward();
    // Beside attention its sum is not its own.
    extend(all, one_reduce() ? products_again("mlp norm", norm, "mlp", ops) : mlp_module(once_more, norm));
    return filled(all);
  }
  Operations ops;
  if (const Linear l = mlp_products(); l.out > 0) ops.push_back(linear_.forward(l));
  if (again(RecomputeModule::mlp_act)) ops.push_back(activation_forward("activation", share_.tokens, share_.ffn));
  if (mlp_products().out > 0) {
    extend(all, products_again("mlp norm", norm, "mlp", ops));
  } else {
    extend(norm, ops);
    all.push_back({"mlp", once_more, norm, std::nullopt});
  }
  return filled(all);
}

std::vector<Segment> Layer::attention_again() const {
  if (!shape_.has_mixer()) return {};
  std::vector<Segment> all;
  Operations norm;
  if (again(RecomputeModule::layernorm)) norm.push_back(norm_forward("attention norm"));
  if (latent_ && again(RecomputeModule::mla_up_proj)) {
    Operations up = forward_of(q_up_);
    extend(up, forward_of(kv_up_));
    extend(up, rotary("rotary"));
    all = {{"attention norm", once_more, norm, tp_.gather, 0, 0, 0, heads_bytes()},
           {"attention heads", once_more, up, std::nullopt}};
  } else if (const Linear products = heads_products(); products.out > 0) {
    Operations heads{linear_.forward(products)};
    if (adds_qkv_bias()) heads.push_back(memory("qkv bias", 2 * w_ * share_.tokens * products.out));
    const double turned = products.out - (again(RecomputeModule::v_proj) ? share_.key : 0) -
                          (again(RecomputeModule::q_proj) ? share_.gate : 0);
    if (in_.model.learned_positions == 0 && turned > 0)
      heads.push_back(memory("rotary", 2 * w_ * share_.tokens * turned));
    all = products_again("attention norm", norm, "attention heads", heads);
  } else {
    all = {{"attention norm", once_more, norm, std::nullopt}};
  }
  if (again(RecomputeModule::core_attn) && shape_.attends()) extend(all, core_forward(once_more, 0));
  return filled(all);
}

}  // namespace collcast::workload
