// What a published row's word for recomputation stands for.
//
//   none, 0, full
//   selective(attention core)     Megatron-LM's; nothing with flash attention, whose backward has it in it
//   selective(per-op)             TorchTitan's `op` (torchtitan/parallelisms/parallelize_llama.py at commit 004b314 and
//                                 torchtitan/models/llama3/infra/parallelize.py at 018740b): attention and TP's
//                                 reductions are saved, and of the products every second is not. In the order q, k, v,
//                                 o, gate, up, down these are k, o and up. With TP nothing needs what the product of
//                                 attention's output gives, as the sum is there. In fp8 it is the same: 128 GPUs hold
//                                 61.8 GiB in fp8 and 62.0 GiB in bf16
//   selective(every other layer)  TorchTitan's `2`: every second layer whole
//   selective(per-op/ratio)       fms-fsdp's: a share of the layers whole (fms_fsdp/policies/ac_handler.py), which HFU
//                                 over MFU tells
//   RMSNorm + MLA up-projections  DeepSeek-V3 (arXiv 2412.19437, section 3.2.3)
#include "training/recompute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "collcast/base/words.hpp"
#include "training/recipes.hpp"

namespace collcast {

namespace {

using Modules = RecomputeModules;

struct Recomputation {
  std::string_view word;
  Recompute recompute;
};
/// A whole word; what follows it in brackets or behind a slash is told.
bool begins_with(const std::string& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  const std::string_view rest = trimmed(std::string_view(text).substr(word.size()));
  return rest.empty() || rest.front() == '(' || rest.front() == '/';
}
constexpr std::array<Recomputation, 7> recomputations{{{"none", Recompute::none},
                                                       {"0", Recompute::none},
                                                       {"full", Recompute::full},
                                                       {"selective(attention core)", Recompute::selective},
                                                       {"selective(per-op)", Recompute::selective},
                                                       {"selective(every other layer)", Recompute::full},
                                                       {"rmsnorm + mla up-projections", Recompute::selective}}};

Modules of_torchtitan(const StepInputs& in) {
  using enum RecomputeModule;
  Modules modules{layernorm, k_proj, up_proj, mlp_act};
  if (in.layout.tp == 1) modules.push_back(o_proj);
  return modules;
}

/// Of the layers that are recomputed whole: by so much HFU is above MFU of what it would be with all of them.
double share_of_layers(StepInputs in, double hfu, double mfu) {
  in.options.recompute = Recompute::full;
  const FlopTerms flops = flop_terms(in);
  return std::min(1.0, (hfu / mfu - 1) * 3 * flops.forward() / flops.recomputed);
}

}  // namespace

bool put_recomputation(const TrainingRow& row, StepInputs& in, std::string& assumed, std::string& why) {
  const std::string text = lower(row.recompute);
  TrainingOptions& o = in.options;
  if (text.empty()) {
    const RecomputeModules modules = recipe_recomputes(row);
    assumed = "recompute not stated: none";
    if (modules.empty()) return true;
    std::vector<std::string_view> names(modules.size());
    std::ranges::transform(modules, names.begin(), [](RecomputeModule m) { return to_string(m); });
    o.recompute = Recompute::selective;
    o.recompute_modules = modules;
    assumed = fmt::format("recomputed: {}, as Megatron-Bridge's recipe says", fmt::join(names, ", "));
    return true;
  }
  if (text.starts_with("selective(per-op/ratio)")) {
    if (!(row.mfu_pct.value_or(0) > 0) || !(row.hfu_pct.value_or(0) > *row.mfu_pct)) {
      why = "of how many layers the activations are computed once more is not stated";
      return false;
    }
    o.recompute_layers = share_of_layers(in, *row.hfu_pct, *row.mfu_pct);
    o.recompute = Recompute::full;
    assumed = fmt::format("{:.0f} % of the layers recomputed, as HFU over MFU has it", 100 * o.recompute_layers);
    return true;
  }
  const auto known =
      std::ranges::find_if(recomputations, [&](const Recomputation& w) { return begins_with(text, w.word); });
  if (known == recomputations.end()) return false;
  if (text != known->word) assumed = fmt::format("the recomputation {} counts as {}", row.recompute, known->word);
  o.recompute = known->recompute;
  if (text.starts_with("selective(per-op)")) {
    o.recompute_modules = of_torchtitan(in);
    assumed = "recomputed: what TorchTitan's op policy does not save";
  } else if (text.starts_with("selective(every other layer)")) {
    o.recompute_layers = 0.5;
  } else if (text.starts_with("rmsnorm")) {
    o.recompute_modules = {RecomputeModule::layernorm, RecomputeModule::mla_up_proj};
  } else if (o.recompute == Recompute::selective && o.attention == Attention::flash) {
    o.recompute = Recompute::none;
  }
  return true;
}

}  // namespace collcast
