#include "collcast/workload/config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "collcast/base/check.hpp"

namespace collcast {

double expert_load(const TrainingOptions& options, const ParallelLayout& layout) {
  const double busiest = std::min(options.expert_imbalance, static_cast<double>(layout.ep));
  return options.moe_capacity_factor > 0 ? std::min(busiest, options.moe_capacity_factor) : busiest;
}

std::string_view to_string(WireFormat format) {
  switch (format) {
    case WireFormat::fp8:
      return "fp8";
    case WireFormat::bf16:
      return "bf16";
    case WireFormat::fp16:
      return "fp16";
    case WireFormat::fp32:
      return "fp32";
  }
  check(false, "a known format");
  return {};
}

std::string_view to_string(CompressionMethod method) {
  switch (method) {
    case CompressionMethod::none:
      return "none";
    case CompressionMethod::powersgd:
      return "powersgd";
    case CompressionMethod::ratio:
      return "ratio";
  }
  check(false, "a known compression");
  return {};
}

std::string_view to_string(TokenDispatcher dispatcher) {
  switch (dispatcher) {
    case TokenDispatcher::alltoall:
      return "alltoall";
    case TokenDispatcher::flex:
      return "flex";
  }
  check(false, "a known dispatcher of tokens");
  return {};
}

std::string_view to_string(ContextExchange exchange) {
  switch (exchange) {
    case ContextExchange::ring:
      return "ring";
    case ContextExchange::ulysses:
      return "ulysses";
  }
  check(false, "a known context exchange");
  return {};
}

std::string_view to_string(RankOrder order) {
  switch (order) {
    case RankOrder::tp_pp_dp:
      return "tp-pp-dp";
    case RankOrder::tp_cp_ep_dp_pp:
      return "tp-cp-ep-dp-pp";
    case RankOrder::dp_pp_tp:
      return "dp-pp-tp";
  }
  check(false, "a known rank order");
  return {};
}

std::string_view to_string(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::gpipe:
      return "gpipe";
    case PipelineSchedule::one_f_one_b:
      return "1f1b";
    case PipelineSchedule::interleaved:
      return "interleaved";
    case PipelineSchedule::zb_h1:
      return "zb-h1";
    case PipelineSchedule::zb_h2:
      return "zb-h2";
    case PipelineSchedule::zb_1p:
      return "zb-1p";
    case PipelineSchedule::zb_2p:
      return "zb-2p";
    case PipelineSchedule::zb_v:
      return "zb-v";
    case PipelineSchedule::dualpipe:
      return "dualpipe";
    case PipelineSchedule::dualpipe_v:
      return "dualpipe-v";
    case PipelineSchedule::own:
    case PipelineSchedule::own_split:
    case PipelineSchedule::own_v:
    case PipelineSchedule::own_v_split:
      return "own";
  }
  check(false, "a known pipeline schedule");
  return {};
}

bool made_for_times(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::zb_1p || schedule == PipelineSchedule::zb_2p;
}

bool splits_backward(PipelineSchedule schedule) {
  switch (schedule) {
    case PipelineSchedule::gpipe:
    case PipelineSchedule::one_f_one_b:
    case PipelineSchedule::interleaved:
    case PipelineSchedule::own:
    case PipelineSchedule::own_v:
      return false;
    default:
      return true;
  }
}

bool goes_in_v(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::zb_v || passes_pairs(schedule) || schedule == PipelineSchedule::own_v ||
         schedule == PipelineSchedule::own_v_split;
}

bool from_both_ends(PipelineSchedule schedule) { return schedule == PipelineSchedule::dualpipe; }

bool passes_pairs(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::dualpipe || schedule == PipelineSchedule::dualpipe_v;
}

bool is_own(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::own || schedule == PipelineSchedule::own_split ||
         schedule == PipelineSchedule::own_v || schedule == PipelineSchedule::own_v_split;
}

namespace {

constexpr std::array<std::pair<RecomputeModule, std::string_view>, 14> module_names{
    {{RecomputeModule::core_attn, "core_attn"},
     {RecomputeModule::layernorm, "layernorm"},
     {RecomputeModule::mla_up_proj, "mla_up_proj"},
     {RecomputeModule::mlp, "mlp"},
     {RecomputeModule::moe_act, "moe_act"},
     {RecomputeModule::moe, "moe"},
     {RecomputeModule::shared_experts, "shared_experts"},
     {RecomputeModule::q_proj, "q_proj"},
     {RecomputeModule::k_proj, "k_proj"},
     {RecomputeModule::v_proj, "v_proj"},
     {RecomputeModule::o_proj, "o_proj"},
     {RecomputeModule::gate_proj, "gate_proj"},
     {RecomputeModule::up_proj, "up_proj"},
     {RecomputeModule::mlp_act, "mlp_act"}}};

}  // namespace

std::string_view to_string(RecomputeModule module) { return module_names[static_cast<std::size_t>(module)].second; }

RecomputeModules recompute_modules() {
  RecomputeModules all;
  for (const auto& [module, name] : module_names) all.push_back(module);
  return all;
}

std::string_view to_string(AdapterModule module) {
  switch (module) {
    case AdapterModule::linear_qkv:
      return "linear_qkv";
    case AdapterModule::linear_q_proj:
      return "linear_q_proj";
    case AdapterModule::linear_q_down_proj:
      return "linear_q_down_proj";
    case AdapterModule::linear_q_up_proj:
      return "linear_q_up_proj";
    case AdapterModule::linear_kv_down_proj:
      return "linear_kv_down_proj";
    case AdapterModule::linear_kv_up_proj:
      return "linear_kv_up_proj";
    case AdapterModule::linear_proj:
      return "linear_proj";
    case AdapterModule::linear_fc1:
      return "linear_fc1";
    case AdapterModule::linear_fc2:
      return "linear_fc2";
  }
  check(false, "a known module");
  return "";
}

std::string_view to_string(BaseWeights base) {
  switch (base) {
    case BaseWeights::as_computed:
      return "as_computed";
    case BaseWeights::nf4:
      return "nf4";
  }
  check(false, "a known format");
  return "";
}

std::vector<AdapterModule> adapter_modules() {
  using enum AdapterModule;
  return {linear_qkv,        linear_q_proj, linear_q_down_proj, linear_q_up_proj, linear_kv_down_proj,
          linear_kv_up_proj, linear_proj,   linear_fc1,         linear_fc2};
}

std::vector<AdapterModule> adapter_modules(const TransformerConfig& model) {
  using enum AdapterModule;
  if (model.latent.kv_rank == 0) return {linear_qkv, linear_proj, linear_fc1, linear_fc2};
  if (model.latent.q_rank == 0)
    return {linear_q_proj, linear_kv_down_proj, linear_kv_up_proj, linear_proj, linear_fc1, linear_fc2};
  return {linear_q_down_proj, linear_q_up_proj, linear_kv_down_proj, linear_kv_up_proj,
          linear_proj,        linear_fc1,       linear_fc2};
}

bool is_single_operation(RecomputeModule module) { return module >= RecomputeModule::q_proj; }

bool recomputes_layer(const TrainingOptions& options, int layer) {
  // As many up to each layer as the share of them, rounded.
  const auto up_to = [&](int layers) { return std::floor(layers * options.recompute_layers + 0.5 + 1e-9); };
  return up_to(layer + 1) > up_to(layer);
}

bool recomputes(const TrainingOptions& options, RecomputeModule module) {
  const RecomputeModules& named = options.recompute_modules;
  return options.recompute == Recompute::selective && std::find(named.begin(), named.end(), module) != named.end();
}

std::string_view to_string(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::full:
      return "full";
  }
  check(false, "a known recomputation");
  return {};
}

std::string_view to_string(Attention attention) {
  switch (attention) {
    case Attention::unfused:
      return "unfused";
    case Attention::flash:
      return "flash";
  }
  check(false, "a known attention");
  return {};
}

std::string_view to_string(TpOverlap overlap) {
  switch (overlap) {
    case TpOverlap::none:
      return "none";
    case TpOverlap::backward:
      return "backward";
    case TpOverlap::ring:
      return "ring";
  }
  check(false, "a known overlap of TP");
  return {};
}

std::string_view to_string(LinearRule rule) {
  switch (rule) {
    case LinearRule::gated_delta:
      return "gated-delta";
    case LinearRule::ssd:
      return "ssd";
  }
  check(false, "a known rule of linear attention");
  return {};
}

std::string_view to_string(Batching batching) {
  switch (batching) {
    case Batching::at_once:
      return "static";
    case Batching::continuous:
      return "continuous";
  }
  check(false, "a known batching");
  return {};
}

}  // namespace collcast
