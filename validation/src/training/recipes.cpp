// How Megatron-Bridge's recipes for performance send tokens to their experts, by release; its tables of results do not
// say. Sources, of github.com/NVIDIA-NeMo/Megatron-Bridge: `presets` are scripts/performance/configs/{deepseek,qwen,
// gpt_oss}/*_workload_base_configs.py (moe_flex_dispatcher_backend, moe_a2a_overlap) as read at commits 0426418,
// 01b2977 and 07eea52; `25.09` is deepseek/deepseek_llm_pretrain.py at 0132842 (enable_deepep,
// set_moe_a2a_overlap_overrides, overlap_grad_reduce False on H100); numbers are pull requests. A preset counts for the
// releases whose tables have its layout. Nemotron's layers are not forecast (Mamba).
#include "training/recipes.hpp"

#include <array>
#include <string>
#include <string_view>

#include "gpu_name.hpp"

namespace collcast {

namespace {

/// 25.09 as 250900, 26.04.01 as 260401; 0: not Megatron-Bridge's.
int release_of(const std::string& framework) {
  constexpr std::string_view name = "megatron-bridge ";
  if (!framework.starts_with(name)) return 0;
  int parts[3] = {};
  std::size_t part = 0;
  for (const char c : framework.substr(name.size())) {
    if (c == '.' && part < 2)
      ++part;
    else if (c >= '0' && c <= '9' && parts[part] < 100)
      parts[part] = 10 * parts[part] + (c - '0');
    else
      return 0;
  }
  return (parts[0] * 100 + parts[1]) * 100 + parts[2];
}

struct Known {
  std::string_view model, gpu;  ///< what they begin with
  bool mxfp8 = false;           ///< of this precision only
  int from = 0, before = 0;     ///< releases
  ExpertRecipe recipe;
};
constexpr int always = 1'000'000;
constexpr ExpertRecipe flex(const char* source) { return {TokenDispatcher::flex, false, true, source}; }
constexpr ExpertRecipe flex_beside(const char* source) { return {TokenDispatcher::flex, true, true, source}; }

/// The first that fits counts.
constexpr std::array<Known, 16> recipes{
    {{"deepseek-v3", "gb", true, 26'06'00, always, flex_beside("3983 and 4226, 2026-05")},
     {"deepseek-v3", "b200", true, 26'04'00, always, flex_beside("presets")},
     {"deepseek-v3", "h100", false, 25'09'00, 26'02'00, ExpertRecipe{TokenDispatcher::flex, true, false, "25.09"}},
     {"deepseek-v3", "", false, 26'02'00, always, flex("presets")},
     {"qwen3", "gb", true, 26'06'00, always, flex_beside("4249, 2026-06")},
     {"qwen3", "b200", true, 26'06'01, always, flex_beside("4606, 2026-06")},
     {"qwen3", "b300", true, 26'06'01, always, flex_beside("4606, 2026-06")},
     {"qwen3-30b", "gb", false, 26'02'00, always, flex("presets")},
     {"qwen3-30b", "b200", false, 26'02'01, always, flex("presets")},
     {"qwen3-30b", "b300", false, 26'02'01, always, flex("presets")},
     {"qwen3-30b", "h100", false, 26'04'00, always, flex("presets")},
     {"qwen3-235b", "gb", false, 26'02'00, always, flex("presets")},
     {"qwen3-235b", "h100", false, 26'02'00, always, ExpertRecipe{TokenDispatcher::alltoall, true, true, "presets"}},
     {"gpt-oss", "gb", true, 26'06'00, always, flex_beside("presets")},
     {"gpt-oss", "b300", true, 26'06'00, always, flex_beside("presets")},
     {"gpt-oss", "b300", false, 26'02'01, always, flex("presets")}}};

}  // namespace

ExpertRecipe expert_recipe(const TrainingRow& row) {
  const int release = release_of(lower(row.framework));
  const std::string model = lower(row.model_id), gpu = lower(row.gpu), precision = lower(row.precision);
  for (const Known& known : recipes)
    if (model.starts_with(known.model) && gpu.starts_with(known.gpu) && release >= known.from &&
        release < known.before && (!known.mxfp8 || precision.starts_with("mxfp8")))
      return known.recipe;
  return {};
}

}  // namespace collcast
