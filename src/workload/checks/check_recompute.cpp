// Whether there is what selective recomputation names, and what fp8 and fp4 alone have: inputs kept as they were,
// layers in bf16.
#include <algorithm>
#include <string>
#include <vector>

#include "collcast/base/units.hpp"
#include "collcast/workload/precisions.hpp"
#include "workload/checks/misfits.hpp"
#include "workload/layer/precision.hpp"

namespace collcast::workload {

namespace {

/// What a model or a layout has not, or would not spare by it; nothing: the module is there.
const char* no_use_of(RecomputeModule module, const StepInputs& in) {
  const TransformerConfig& m = in.model;
  const bool latent = m.latent.kv_rank > 0, experts = m.experts.count > 0;
  const bool exchanged = in.layout.cp > 1 && in.layout.cp_exchange == ContextExchange::ulysses;
  constexpr const char* heads = "with cp_exchange ulysses a backward needs queries, keys and values as exchanged";
  switch (module) {
    // What is taken where nobody says anything.
    case RecomputeModule::core_attn:
    case RecomputeModule::layernorm:
      return nullptr;
    case RecomputeModule::mla_up_proj:
      return !latent ? "the model has no latent attention" : exchanged ? heads : nullptr;
    case RecomputeModule::moe_act:
    case RecomputeModule::moe:
      return experts ? nullptr : "the model has no experts";
    case RecomputeModule::shared_experts:
      return experts && m.experts.shared_ffn > 0 ? nullptr : "the model has no shared experts";
    case RecomputeModule::q_proj:
    case RecomputeModule::k_proj:
    case RecomputeModule::v_proj:
      if (!m.pattern.empty() && attending_layers(m) == 0) return "no layer of the model attends to keys";
      return latent ? "latent attention has mla_up_proj in its place" : exchanged ? heads : nullptr;
    case RecomputeModule::o_proj:
      if (!m.pattern.empty())
        return "layers of a hybrid model end with it, and no backward of theirs needs what it gives";
      return m.parallel_mlp.norms > 0 ? "beside an MLP no backward needs what it gives" : nullptr;
    case RecomputeModule::gate_proj:
      if (!m.gated_mlp) return "the model's MLP has no gate";
      [[fallthrough]];
    case RecomputeModule::mlp:
    case RecomputeModule::up_proj:
    case RecomputeModule::mlp_act:
      return mlp_layers(m) > 0                               ? nullptr
             : experts && expert_layers(m) == m.all_layers() ? "all layers of the model have experts"
                                                             : "no layer of the model has an MLP";
  }
  return nullptr;
}

/// An unknown one is said elsewhere.
bool is_wide(const std::string& precision) { return training_precision(precision) && !has_narrow_products(precision); }

/// Layers in bf16 where others are in fp8 or fp4.
void bf16_layers(Misfits& misfits) {
  const TrainingOptions& o = misfits.in.options;
  const int layers = misfits.in.model.layers;
  const std::vector<std::string> paths{
      o.bf16_first_layers != 0 ? "training.num_layers_at_start_in_bf16" : "training.num_layers_at_end_in_bf16",
      "training.precision", "model.layers"};
  if (o.bf16_first_layers == 0 && o.bf16_last_layers == 0) return;
  if (is_wide(o.precision))
    misfits.wrong(
        paths,
        "layers in bf16 are of precision fp8 or fp4, this is " + o.precision + misfits.seen("training.precision"),
        "leave it out");
  if (o.bf16_first_layers < 0 || o.bf16_last_layers < 0 || o.bf16_first_layers > layers - o.bf16_last_layers)
    misfits.wrong(paths,
                  std::to_string(o.bf16_first_layers) + " layers at the start and " +
                      std::to_string(o.bf16_last_layers) + " at the end in bf16 are more than the model's " +
                      std::to_string(layers) + misfits.seen("model.layers"),
                  "expected up to all of them");
}

}  // namespace

void check_narrow_products(Misfits& misfits) {
  const TrainingOptions& o = misfits.in.options;
  if (o.save_original_input && is_wide(o.precision))
    misfits.wrong({"training.save_original_input", "training.precision"},
                  "save_original_input is of precision fp8 or fp4, this is " + o.precision +
                      misfits.seen("training.precision") + ", whose products read inputs as they are",
                  "leave it out, or use precision: fp8");
  bf16_layers(misfits);
}

void check_recompute(Misfits& misfits) {
  const RecomputeModules& modules = misfits.in.options.recompute_modules;
  if (modules.empty() && misfits.in.options.recompute == Recompute::selective)
    misfits.wrong({"training.recompute_modules", "training.recompute"},
                  "recompute_modules is empty: recompute selective" + misfits.seen("training.recompute") +
                      " computes nothing once more",
                  "name a module, or use recompute: none");
  for (std::size_t i = 0; i < modules.size(); ++i)
    if (std::find(modules.begin(), modules.begin() + static_cast<std::ptrdiff_t>(i), modules[i]) !=
        modules.begin() + static_cast<std::ptrdiff_t>(i))
      misfits.wrong({"training.recompute_modules." + std::to_string(i), "training.recompute_modules"},
                    "recompute_modules has " + std::string(to_string(modules[i])) + " twice", "leave it out");
    else if (const char* why = no_use_of(modules[i], misfits.in))
      misfits.wrong({"training.recompute_modules." + std::to_string(i), "model", "layout.cp_exchange"},
                    "recompute_modules has " + std::string(to_string(modules[i])) + ": " + why, "leave it out");
  const double share = misfits.in.options.recompute_layers;
  if (!(share > 0 && share <= 1))
    misfits.wrong({"training.recompute_layers"}, "recompute_layers is " + format_count(share),
                  "expected above 0, up to 100%");
}

}  // namespace collcast::workload
