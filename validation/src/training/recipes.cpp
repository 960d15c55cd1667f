// What Megatron-Bridge's recipes for performance have, by release, that its tables of results do not say. Sources, of
// github.com/NVIDIA-NeMo/Megatron-Bridge: `presets` are scripts/performance/configs/{deepseek,qwen,gpt_oss}/
// *_workload_base_configs.py (moe_flex_dispatcher_backend, moe_a2a_overlap, recompute_modules) as read at commits
// 0426418, 01b2977 and 07eea52; `25.09` is deepseek/deepseek_llm_pretrain.py at 0132842 (enable_deepep,
// set_moe_a2a_overlap_overrides, overlap_grad_reduce False on H100); numbers are pull requests. A preset counts for the
// releases whose tables have its layout. Nemotron 3: nemotronh/nemotron_3_workload_base_configs.py at 06e8da4.
//   sequence_parallel: true with TP in every recipe (scripts/performance/utils/{helpers,overrides}.py)
//   tp_comm_overlap: true in those of Llama 3 70B and 405B, but for nvfp4 (src/megatron/bridge/recipes/llama/llama3.py,
//     configs/llama/{llama3,llama31}_llm_pretrain.py at 2a0d46e and 0013c9a), and of Qwen3-235B, but on H100
//     (configs/qwen/qwen3_llm_pretrain.py at 05c0c90)
//   cpu_offloading_num_layers: llama/llama{3,31}_workload_base_configs.py at 00919dc and 0013c9a, of 25.09
//     llama31/llama31_405b_llm_pretrain.yaml at 0cfe9a4; the 70B presets of 25.09, which say none, ran with a
//     micro-batch of one, and rows of two have those of 25.11
//   moe_grouped_mlp_fusion: cutedsl_fused_grouped_mlp of the presets, at 07eea52 (gpt-oss) and in those of DeepSeek-V3
//     and Nemotron 3 Ultra; of Qwen3 src/megatron/bridge/perf_recipes/qwen/common.py
//     (_enable_hybridep_full_iteration_mxfp8: use_transformer_engine_op_fuser)
//   precision_aware_optimizer: of every run in bf16 (scripts/performance/run_script.py at 012a84d: fp32 states, whose
//     parameters are remainders), and of DeepSeek-V3 in any precision with moments in bf16
//     (src/megatron/bridge/recipes/deepseek/deepseek_v3.py at 05d003f: gradients in bf16, too)
#include "training/recipes.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/words.hpp"
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
constexpr ExpertRecipe fused(const char* source, bool beside = true) {
  return {TokenDispatcher::flex, beside, true, source, true};
}

/// The first that fits counts.
constexpr std::array<Known, 19> recipes{
    {{"deepseek-v3", "gb", true, 26'06'00, always, fused("3983 and 4226, 2026-05")},
     {"deepseek-v3", "b200", true, 26'04'00, always, flex_beside("presets")},
     {"deepseek-v3", "h100", false, 25'09'00, 26'02'00, ExpertRecipe{TokenDispatcher::flex, true, false, "25.09"}},
     {"deepseek-v3", "", false, 26'02'00, always, flex("presets")},
     {"qwen3", "gb", true, 26'06'00, always, fused("4249, 2026-06")},
     {"qwen3", "b200", true, 26'06'01, always, fused("4606, 2026-06")},
     {"qwen3", "b300", true, 26'06'01, always, fused("4606, 2026-06")},
     {"qwen3-30b", "gb", false, 26'02'00, always, flex("presets")},
     {"qwen3-30b", "b200", false, 26'02'01, always, flex("presets")},
     {"qwen3-30b", "b300", false, 26'02'01, always, flex("presets")},
     {"qwen3-30b", "h100", false, 26'04'00, always, flex("presets")},
     {"qwen3-235b", "gb", false, 26'02'00, always, flex("presets")},
     {"qwen3-235b", "h100", false, 26'02'00, always, ExpertRecipe{TokenDispatcher::alltoall, true, true, "presets"}},
     {"gpt-oss", "gb", true, 26'06'00, always, fused("presets")},
     {"gpt-oss", "b300", true, 26'06'00, always, fused("presets")},
     {"gpt-oss", "gb200", false, 26'04'00, always,
      ExpertRecipe{TokenDispatcher::alltoall, true, true, "3561, 2026-04"}},
     {"gpt-oss", "b300", false, 26'02'01, always, flex("presets")},
     {"nemotron_3_ultra", "", true, 26'08'00, always, fused("nemotronh presets", false)},
     {"nemotron_3", "", false, 26'02'00, always, flex("nemotronh presets")}}};

struct Recomputed {
  std::string_view model, gpu;  ///< what they begin with
  std::string_view precision;   ///< what it begins with
  int from = 0, before = 0;     ///< releases
  int ep = 1, micro_batch = 1;  ///< what tells the preset from the others of the same release
  RecomputeModules modules;
};
const std::vector<Recomputed>& recomputed() {
  using enum RecomputeModule;
  static const std::vector<Recomputed> of{
      {"gpt-oss", "gb200", "bf16", 26'02'00, always, 64, 4, {layernorm, moe_act}},
      {"gpt-oss", "b200", "bf16", 26'02'00, always, 64, 4, {layernorm, moe_act}},
      {"gpt-oss", "b200", "bf16", 26'02'00, always, 8, 4, {layernorm, moe_act}},
      {"gpt-oss", "h100", "bf16", 26'02'00, always, 8, 1, {layernorm, moe_act}},
      {"deepseek-v3", "gb200", "bf16", 25'11'00, always, 64, 1, {mla_up_proj}},
      {"deepseek-v3", "b200", "mxfp8", 26'04'00, always, 32, 1, {mla_up_proj, mlp}},
      {"deepseek-v3", "h100", "fp8", 25'09'00, always, 64, 1, {mla_up_proj, mlp}},
      {"nemotron_3_nano", "h100", "bf16", 26'02'00, always, 8, 1, {moe, layernorm}},
      {"nemotron_3_nano", "h100", "fp8", 26'02'00, always, 8, 1, {core_attn, layernorm, moe_act, moe}}};
  return of;
}

struct Offloaded {
  std::string_view model, gpu;  ///< what they begin with
  std::string_view precision;   ///< what it begins with
  int from = 0, before = 0;     ///< releases
  int micro_batch = 1;          ///< what tells the preset from the others of the same release
  int layers = 0;
};
/// All of them with FSDP and without a pipeline.
constexpr std::array<Offloaded, 9> offloaded{{{"llama3-70b", "gb300", "bf16", 25'09'00, always, 2, 30},
                                              {"llama3-70b", "gb300", "fp8", 25'09'00, always, 2, 20},
                                              {"llama3-70b", "gb200", "bf16", 25'11'00, always, 1, 20},
                                              {"llama3-70b", "gb200", "fp8", 25'09'00, always, 2, 40},
                                              {"llama3-70b", "b200", "fp8", 25'11'00, always, 1, 5},
                                              {"llama3.1-405b", "gb300", "bf16", 25'11'00, always, 1, 40},
                                              {"llama3.1-405b", "gb300", "fp8", 25'11'00, always, 1, 10},
                                              {"llama3.1-405b", "gb", "fp8", 25'09'00, 25'11'00, 1, 80},
                                              {"llama3.1-405b", "gb200", "fp8", 25'11'00, always, 1, 92}}};

/// Which entries of a table a row can be of.
template <class Entry>
bool is_of(const TrainingRow& row, const Entry& entry) {
  const int release = release_of(lower(row.framework));
  return lower(row.model_id).starts_with(entry.model) && lower(row.gpu).starts_with(entry.gpu) &&
         release >= entry.from && release < entry.before;
}

}  // namespace

bool has_recipe(const TrainingRow& row) { return release_of(lower(row.framework)) > 0; }

bool recipe_has_rings(const TrainingRow& row) {
  if (!has_recipe(row) || lower(row.task) != "pretrain" || lower(row.precision).starts_with("nvfp4")) return false;
  const std::string model = lower(row.model_id);
  return model.starts_with("llama3-70b") || model.starts_with("llama3.1-405b") ||
         (model.starts_with("qwen3-235b") && !lower(row.gpu).starts_with("h100"));
}

RecomputeModules recipe_recomputes(const TrainingRow& row) {
  const std::string precision = lower(row.precision);
  for (const Recomputed& known : recomputed())
    if (is_of(row, known) && precision.starts_with(known.precision) && row.ep == known.ep &&
        row.mbs == known.micro_batch)
      return known.modules;
  return {};
}

int recipe_offloads(const TrainingRow& row) {
  if (lower(row.zero) != "fsdp" || row.pp != 1 || lower(row.task) != "pretrain") return 0;
  const std::string precision = lower(row.precision);
  for (const Offloaded& known : offloaded)
    if (is_of(row, known) && precision.starts_with(known.precision) && row.mbs == known.micro_batch)
      return known.layers;
  return 0;
}

std::optional<PrecisionAwareOptimizer> recipe_optimizer(const TrainingRow& row) {
  if (!has_recipe(row)) return std::nullopt;
  PrecisionAwareOptimizer aware;
  if (lower(row.model_id).starts_with("deepseek-v3")) {
    aware.exp_avg_dtype = aware.exp_avg_sq_dtype = StateFormat::bf16;
  } else if (!lower(row.precision).starts_with("bf16")) {
    return std::nullopt;
  }
  return aware;
}

ExpertRecipe expert_recipe(const TrainingRow& row) {
  const bool mxfp8 = lower(row.precision).starts_with("mxfp8");
  for (const Known& known : recipes)
    if (is_of(row, known) && (mxfp8 || !known.mxfp8)) return known.recipe;
  return {};
}

}  // namespace collcast
