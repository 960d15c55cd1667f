// How Megatron-Bridge's recipes for performance send tokens to their experts, by release; its tables of results do not
// say. Sources: github.com/NVIDIA-NeMo/Megatron-Bridge, scripts/performance/configs/{deepseek,qwen,gpt_oss}/
// *_workload_base_configs.py (moe_flex_dispatcher_backend, moe_a2a_overlap), read at commits 01b2977 (qwen), 0426418
// (deepseek) and 07eea52 (gpt_oss); scripts/performance/configs/deepseek/deepseek_llm_pretrain.py at 0132842 for 25.09
// (enable_deepep, set_moe_a2a_overlap_overrides on H100); pull requests 3983 (2026-05, DeepSeek-V3 on GB300), 4226
// (DeepSeek-V3 on GB200), 4249 (Qwen3 on GB200 and GB300, for 26.06) and 4606 (Qwen3 on B200 and B300, in 0.5.1, which
// 26.06.01 has). A recipe counts for the releases whose tables have its layout.
#include "training/recipes.hpp"

#include <array>
#include <string>
#include <string_view>

#include "gpu_name.hpp"

namespace collcast {

namespace {

/// 25.09 as 2509'00, 26.04.01 as 2604'01; 0: not Megatron-Bridge's.
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
constexpr ExpertRecipe flex{TokenDispatcher::flex, false}, flex_beside{TokenDispatcher::flex, true},
    beside{TokenDispatcher::alltoall, true};
constexpr int always = 9'999'99;

/// The first that fits counts.
constexpr std::array<Known, 16> recipes{{{"deepseek-v3", "gb", true, 26'06'00, always, flex_beside},
                                         {"deepseek-v3", "b200", true, 26'04'00, always, flex_beside},
                                         {"deepseek-v3", "h100", false, 25'09'00, 26'02'00, flex_beside},
                                         {"deepseek-v3", "", false, 26'02'00, always, flex},
                                         {"qwen3", "gb", true, 26'06'00, always, flex_beside},
                                         {"qwen3", "b200", true, 26'06'01, always, flex_beside},
                                         {"qwen3", "b300", true, 26'06'01, always, flex_beside},
                                         {"qwen3-30b", "gb", false, 26'02'00, always, flex},
                                         {"qwen3-30b", "b200", false, 26'02'01, always, flex},
                                         {"qwen3-30b", "b300", false, 26'02'01, always, flex},
                                         {"qwen3-30b", "h100", false, 26'04'00, always, flex},
                                         {"qwen3-235b", "gb", false, 26'02'00, always, flex},
                                         {"qwen3-235b", "h100", false, 26'02'00, always, beside},
                                         {"gpt-oss", "gb", true, 26'06'00, always, flex_beside},
                                         {"gpt-oss", "b300", true, 26'06'00, always, flex_beside},
                                         {"gpt-oss", "b300", false, 26'02'01, always, flex}}};

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
