#include "training/habits.hpp"

#include <fmt/format.h>

#include <vector>

#include "collcast/base/units.hpp"
#include "collcast/base/words.hpp"
#include "collcast/workload/precisions.hpp"
#include "gpu_name.hpp"
#include "lines.hpp"

namespace collcast {

namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

bool is_bridge(const std::string& framework) { return contains(framework, "bridge"); }

Habits habits_of_framework(const TrainingRow& row) {
  const std::string framework = lower(row.framework);
  const bool engine = runs_megatron_core(row) || is_bridge(framework);
  if (framework.starts_with("megatron") && !engine)
    return {Attention::unfused, 0.1, 2, 4, false, eager_launch, FlashAttention::table, false, false};
  if (framework.starts_with("megatron") && !is_bridge(framework))
    return {Attention::flash, 0, 4, 4, true, {}, FlashAttention::table, true};
  if (framework.starts_with("nanotron")) return {Attention::flash, 0, 4, 4};
  if (framework.starts_with("llm-foundry")) return {Attention::flash, 0, 2, 2, true, {}, FlashAttention::first};
  if (framework.starts_with("interne")) return {Attention::flash, 0, 2, 2, true, {}, FlashAttention::first};
  if (framework.starts_with("pytorch")) {  // tools/measure-step, whose notes say what ran
    Habits out;
    out.gradient_bytes = contains(row.notes, "states bf16") ? 2 : 4;
    if (contains(row.notes, "attention flash")) out.flash = FlashAttention::second;
    out.fuse_loss = contains(row.notes, "the loss compiled");
    return out;
  }
  if (framework.starts_with("torchtitan") || framework.starts_with("fms-fsdp"))
    return {Attention::flash, 0, 2, 2, true, {}, FlashAttention::second};
  return {};
}

/// "2025", "2025-04", "2024-10/2025-04"; another text is no date.
bool is_since(std::string_view month, const std::string& date) {
  const std::string_view year = std::string_view(date).substr(0, 4);
  if (date.size() < 4 || year.find_first_not_of("0123456789") != std::string_view::npos) return false;
  if (date.size() >= 7 && date[4] == '-') return std::string_view(date).substr(0, 7) >= month;
  return year > month.substr(0, 4);
}

}  // namespace

bool runs_megatron_core(const TrainingRow& row) {
  const std::string framework = lower(row.framework), precision = lower(row.precision);
  if (!framework.starts_with("megatron") || is_bridge(framework)) return false;
  if (contains(framework, "core") || contains(framework, "te ") || framework.ends_with(" te") ||
      contains(framework, "transformer engine"))
    return true;
  const bool narrow = contains(precision, "fp8") || contains(precision, "fp4");
  return framework.starts_with("megatron-lm") && !contains(framework, "fork") &&
         (narrow || is_since("2024-09", row.date));
}

Framework framework_of(const TrainingRow& row) {
  const std::string framework = lower(row.framework);
  // A row that names no stage of ZeRO ran on Megatron's optimizer: vTrain's 3.6 billion parameters on one GPU of 80 GB
  // leave no room for what DeepSpeed's takes.
  if (framework.starts_with("megatron-deepspeed") && lower(row.zero).starts_with("zero")) return Framework::deepspeed;
  if (framework.starts_with("torchtitan")) return Framework::torchtitan;
  if (framework.starts_with("nanotron")) return Framework::nanotron;
  if (framework.starts_with("llm-foundry")) return Framework::llm_foundry;
  if (framework.starts_with("interne")) return Framework::internevo;
  return framework.starts_with("megatron") ? Framework::megatron : Framework();
}

Habits habits_of(const TrainingRow& row) {
  Habits out = habits_of_framework(row);
  const std::string framework = lower(row.framework);
  out.keeps_casts = runs_megatron_core(row) || is_bridge(framework) || framework.starts_with("nemo");
  return out;
}

std::string habits_text(const TrainingRow& row, const StepInputs& in) {
  const TrainingOptions& o = in.options;
  std::vector<std::string> said{o.attention == Attention::unfused ? "unfused attention" : "flash attention"};
  said.push_back(in.model.dropout > 0 ? fmt::format("dropout {}", in.model.dropout) : "no dropout");
  said.push_back(fmt::format("gradients of {} bytes", o.gradient_bytes));
  if (o.precision_aware_optimizer)
    said.push_back(fmt::format("a precision-aware optimizer with moments in {}",
                               to_string(o.precision_aware_optimizer->exp_avg_dtype)));
  if (!o.fuse_accumulation) said.emplace_back("added up by kernels of their own");
  if (has_narrow_products(o.precision))
    said.push_back(fmt::format("inputs of products kept in {}", o.save_original_input ? "16 bit" : o.precision));
  if (!o.fuse_loss) said.emplace_back("the loss kernel by kernel");
  if (o.launch > Seconds{})
    said.push_back(fmt::format("{} between kernel launches, {} in backwards", format_seconds(o.launch),
                               format_seconds(o.launch_backward.value_or(o.launch))));
  if (row.overlap.empty()) {
    if (in.layout.replicas() > 1)
      said.emplace_back(o.overlap_dp ? "gradients exchanged beside the backward" : "gradients exchanged behind it");
    if (in.layout.tp > 1)
      said.emplace_back(o.overlap_tp == TpOverlap::none   ? "TP exposed"
                        : o.overlap_tp == TpOverlap::ring ? "TP in rings"
                                                          : "TP beside the backward");
  }
  return fmt::format("as {} runs: {}", row.framework.empty() ? "PyTorch" : printable(row.framework),
                     fmt::join(said, ", "));
}

}  // namespace collcast
