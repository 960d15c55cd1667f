// Low-rank adapters: their rank, the matrices that they are beside, and what they do not go with.
#include <algorithm>
#include <string>

#include "workload/checks/misfits.hpp"
#include "workload/layer/adapters.hpp"

namespace collcast::workload {

namespace {

const std::string at = "training.lora.";

std::string named(const std::vector<AdapterModule>& modules) {
  std::string out;
  for (std::size_t i = 0; i < modules.size(); ++i)
    out += (i == 0 ? "" : i + 1 < modules.size() ? ", " : " and ") + std::string(to_string(modules[i]));
  return out;
}

void check_modules(Misfits& misfits) {
  const TransformerConfig& model = misfits.in.model;
  const std::vector<AdapterModule> modules = misfits.in.options.lora.targets(model), known = adapter_modules(model);
  if (modules.empty())
    misfits.wrong({at + "target_modules", "training.lora"}, "target_modules is empty: nothing would be trained",
                  "name a matrix, or leave lora out");
  for (std::size_t i = 0; i < modules.size(); ++i)
    if (std::find(modules.begin(), modules.begin() + static_cast<std::ptrdiff_t>(i), modules[i]) !=
        modules.begin() + static_cast<std::ptrdiff_t>(i))
      misfits.wrong({at + "target_modules." + std::to_string(i), at + "target_modules"},
                    "target_modules has " + std::string(to_string(modules[i])) + " twice", "leave it out");
    else if (std::ranges::count(known, modules[i]) == 0)
      misfits.wrong(
          {at + "target_modules." + std::to_string(i), at + "target_modules", "model"},
          "target_modules has " + std::string(to_string(modules[i])) + ": the model's layers have " + named(known),
          "name some of these, or leave target_modules out for all of them");
}

/// Of a matrix's product alone: what its adapter adds would be missing, or what brings its weights back.
bool leaves_adapter_out(const StepInputs& in, RecomputeModule module) {
  const bool quantised = is_quantised(in.options);
  switch (module) {
    case RecomputeModule::q_proj:
    case RecomputeModule::k_proj:
    case RecomputeModule::v_proj:
      return quantised || has_adapter(in, AdapterModule::linear_qkv);
    case RecomputeModule::gate_proj:
    case RecomputeModule::up_proj:
      return quantised || has_adapter(in, AdapterModule::linear_fc1);
    default:
      return false;
  }
}

void check_recomputed(Misfits& misfits) {
  const TrainingOptions& o = misfits.in.options;
  if (o.recompute != Recompute::selective) return;
  for (std::size_t i = 0; i < o.recompute_modules.size(); ++i)
    if (leaves_adapter_out(misfits.in, o.recompute_modules[i]))
      misfits.wrong({"training.recompute_modules." + std::to_string(i), "training.recompute_modules", "training.lora"},
                    "recompute_modules has " + std::string(to_string(o.recompute_modules[i])) +
                        ", a part of a matrix with an adapter or in 4 bit: that is not modelled",
                    "leave it out, or use mlp or recompute: full");
}

/// What weights in 4 bit are not brought back for.
void check_base_weights(Misfits& misfits) {
  const TrainingOptions& o = misfits.in.options;
  if (!is_quantised(o)) return;
  const auto wrong = [&](const std::string& path, const std::string& what, const char* hint) {
    misfits.wrong({at + "base_weights", path},
                  "base_weights nf4 " + what + misfits.seen(path) + ": that is not modelled", hint);
  };
  if (o.precision != "bf16" && o.precision != "fp16")
    wrong("training.precision", "is brought back to 16 bit, and this step computes in " + o.precision,
          "leave base_weights out, or use precision bf16 or fp16");
  if (o.zero == 3)
    wrong("training.zero", "is whole on every rank, and ZeRO-3 splits weights",
          "leave base_weights out, or use zero 0 to 2");
  if (o.overlap_tp == TpOverlap::ring)
    wrong("training.overlap_tp", "is brought back before a product, and rings cut it into pieces",
          "leave base_weights out, or use overlap_tp none or backward");
}

}  // namespace

void check_adapters(Misfits& misfits) {
  const StepInputs& in = misfits.in;
  const LowRankAdapters& lora = in.options.lora;
  if (lora.rank == 0) return;
  if (lora.rank < 0 || lora.rank > in.model.hidden)
    misfits.wrong({at + "rank", "model.hidden"}, "rank is " + std::to_string(lora.rank),
                  "expected 1 to the model's hidden size, " + std::to_string(in.model.hidden));
  check_modules(misfits);
  check_recomputed(misfits);
  check_base_weights(misfits);
  if (in.model.experts.count > 0 && in.options.moe_grouped_mlp_fusion &&
      (has_adapter(in, AdapterModule::linear_fc1) || has_adapter(in, AdapterModule::linear_fc2)))
    misfits.wrong({"training.moe_grouped_mlp_fusion", "training.lora"},
                  "adapters beside the products of experts come between these and what is fused with them",
                  "use moe_grouped_mlp_fusion: false, or leave linear_fc1 and linear_fc2 out of lora.target_modules");
  if (in.options.compression.method == CompressionMethod::powersgd)
    misfits.wrong({"training.gradient_compression.method", "training.lora"},
                  "compression powersgd is of matrices' gradients, and adapters are of a low rank already",
                  "leave one of them out");
}

}  // namespace collcast::workload
