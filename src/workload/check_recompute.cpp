// Whether there is what selective recomputation names.
#include <string>
#include <vector>

#include "collcast/base/units.hpp"
#include "workload/misfits.hpp"

namespace collcast::workload {

namespace {

/// What a model or a layout has not, or would not spare by it; nothing: the module is there.
const char* no_use_of(RecomputeModule module, const StepInputs& in) {
  const TransformerConfig& m = in.model;
  const bool latent = m.latent.kv_rank > 0, experts = m.experts.count > 0;
  const bool exchanged = in.layout.cp > 1 && in.layout.cp_exchange == ContextExchange::ulysses;
  constexpr const char* heads = "with cp_exchange ulysses a backward needs queries, keys and values as exchanged";
  switch (module) {
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
      return latent ? "latent attention has mla_up_proj in its place" : exchanged ? heads : nullptr;
    case RecomputeModule::o_proj:
      return m.parallel_mlp.norms > 0 ? "beside an MLP no backward needs what it gives" : nullptr;
    case RecomputeModule::gate_proj:
      if (!m.gated_mlp) return "the model's MLP has no gate";
      [[fallthrough]];
    case RecomputeModule::mlp:
    case RecomputeModule::up_proj:
    case RecomputeModule::mlp_act:
      return experts && expert_layers(m) == m.layers ? "all layers of the model have experts" : nullptr;
  }
  return nullptr;
}

}  // namespace

void check_recompute(Misfits& misfits) {
  const RecomputeModules& modules = misfits.in.options.recompute_modules;
  for (std::size_t i = 0; i < modules.size(); ++i)
    if (const char* why = no_use_of(modules[i], misfits.in))
      misfits.wrong({"training.recompute_modules." + std::to_string(i), "model", "layout.cp_exchange"},
                    "recompute_modules has " + std::string(to_string(modules[i])) + ": " + why, "leave it out");
  const double share = misfits.in.options.recompute_layers;
  if (!(share > 0 && share <= 1))
    misfits.wrong({"training.recompute_layers"}, "recompute_layers is " + format_count(share),
                  "expected above 0, up to 100%");
}

}  // namespace collcast::workload
