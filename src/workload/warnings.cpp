#include "workload/warnings.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "collcast/base/units.hpp"
#include "collcast/evaluate/nodes.hpp"
#include "collcast/workload/impossible_rate.hpp"
#include "workload/aligned.hpp"
#include "workload/gradient_exchange.hpp"
#include "workload/layer/adapters.hpp"
#include "workload/layer/share.hpp"
#include "workload/memory/memory_remedies.hpp"
#include "workload/memory/optimizer_bytes.hpp"
#include "workload/plan.hpp"
#include "workload/ratio_remedies.hpp"
#include "workload/unchanged.hpp"

namespace collcast {
namespace workload {

namespace {

std::string named(const MemoryUse& m, const MemoryPart& part) {
  return std::string(part.name) + " (" + format_bytes(volume(m.*part.size)) + ")";
}

/// The part that goes beyond the limit, and the largest where that is another.
std::string memory_warning(const StepInputs& in, const Fabric& fabric, const MemoryUse& m) {
  const MemoryPart &breaks = breaking_part(m), &largest = largest_part(m);
  const std::string needs = "stage " + std::to_string(m.stage) + " needs " + format_bytes(volume(m.peak())) +
                            " of the GPU's " + format_bytes(volume(m.capacity));
  const std::string parts =
      breaks.size == largest.size
          ? "; what breaks the limit is also the largest part, " + named(m, largest)
          : "; what breaks the limit: " + named(m, breaks) + "; largest part: " + named(m, largest);
  return needs + parts + "; " + what_would_fit(in, fabric);
}

/// ", whose 8 GPUs lie on 8 nodes and would have room on 1"; empty: they lie on one.
std::string strewn(const Group& group, const Fabric& fabric) {
  const int on = node_count(fabric, group);
  if (on == 1) return {};
  const int node = fabric.ranks_per_node(), least = (group.size() + node - 1) / node;
  return ", whose " + std::to_string(group.size()) + " GPUs lie on " + std::to_string(on) + " nodes" +
         (on > least ? " and would have room on " + std::to_string(least) : "");
}

/// Whose price counts for all, where they lie on the machine in ways that take different times.
const Group* slowest_group(const std::vector<CollectiveCost>& collectives, Dimension dimension) {
  const auto found = std::ranges::find_if(collectives, [&](const CollectiveCost& c) {
    return c.dimension == dimension && c.slowest_groups > 0 && !c.name.starts_with("expert ");
  });
  return found == collectives.end() ? nullptr : &found->request.group;
}

/// "TP", "expert DP".
std::string kind_of_groups(const CollectiveCost& cost) {
  std::string kind = cost.name.substr(0, cost.name.find(' '));
  if (cost.name.starts_with("expert ")) kind = cost.name.substr(0, cost.name.find(' ', std::size("expert")));
  const auto dimension = kind.find_last_of(' ') + 1;
  if (kind.size() - dimension == 2)
    std::ranges::transform(kind.begin() + static_cast<std::ptrdiff_t>(dimension), kind.end(),
                           kind.begin() + static_cast<std::ptrdiff_t>(dimension),
                           [](char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); });
  return kind;
}

/// "ranks 6-11 on nodes 0-1".
std::string place_of_group(const Group& group, const Fabric& fabric) {
  const auto number = [&](int i) { return std::to_string(group[i].value()); };
  const int last = group.size() - 1;
  std::string ranks = "ranks " + number(0);
  if (group.is_strided() && group.stride() == 1 && last > 1)
    ranks += "-" + number(last);
  else
    ranks += (last == 1 ? " and " : ", " + number(1) + (last > 2 ? " ... " : ", ")) + number(last);
  const std::vector<NodeId> nodes = nodes_of(fabric, group);
  if (nodes.size() == 1) return ranks + " on node " + std::to_string(nodes[0].value());
  const bool all = nodes.back().value() - nodes.front().value() + 1 == nodes.size();
  if (!all) return ranks + " on " + std::to_string(nodes.size()) + " nodes";
  return ranks + " on nodes " + std::to_string(nodes.front().value()) + "-" + std::to_string(nodes.back().value());
}

std::string ratio_warning(const StepInputs& in, const Fabric& fabric, const StepResult& result,
                          const CollectiveTime& time) {
  const LayerTimes& l = result.layer;
  const RankGroups groups = groups_of(in.layout, rank_at(in.layout, {0, result.stage.stage, 0, 0, 0}));
  struct Waits {
    Seconds time;
    std::string of;
    Dimension dimension;
    const Group& group;
  };
  const Waits most = std::max<Waits>({{l.tp_comm, "TP", Dimension::tp, groups.tp},
                                      {l.cp_exposed, "CP", Dimension::cp, groups.cp},
                                      {l.ep_exposed, "EP", Dimension::ep, groups.ep}},
                                     [](const Waits& a, const Waits& b) { return a.time < b.time; });
  const Group* slowest = slowest_group(result.collectives, most.dimension);
  return "a layer computes only " + ratio_text(result.compute_to_communication) +
         " times as long as it communicates, most of it for " + most.of +
         strewn(slowest != nullptr ? *slowest : most.group, fabric) + "; " + what_would_raise(in, fabric, time);
}

/// Where the ratio of a layer says it, nothing, unless it is gradients, weights or stages that are waited for most.
std::optional<std::string> exposed_warning(const StepInputs& in, const Fabric& fabric, const StepResult& result,
                                           const CollectiveTime& time, bool ratio_said) {
  const Breakdown& b = result.breakdown;
  if (exposed_share(b) <= most_exposed) return {};
  std::array<std::pair<const char*, Seconds>, 5> parts{
      {{"TP", b.tp_exposed}, {"CP", b.cp_exposed}, {"EP", b.ep_exposed}, {"PP", b.pp_exposed}, {"DP", b.dp_exposed}}};
  std::ranges::stable_sort(parts, std::ranges::greater{}, &std::pair<const char*, Seconds>::second);
  const std::string_view most = parts[0].first;
  if (ratio_said && most != "DP" && most != "PP") return {};
  std::string each;
  for (const auto& [name, time_of] : parts)
    if (time_of / b.total() >= 0.01)
      each += (each.empty() ? "" : ", ") + std::string(name) + " " + share_text(time_of / b.total());
  return "exposed communication takes " + share_text(exposed_share(b)) + " of the step (" + each + "); " +
         what_would_lower(in, fabric, time);
}

/// The default bucket is one for gradients of a usual size.
std::optional<std::string> larger_buckets(const StepInputs& in) {
  const double gradients = largest_gradients(in), size = bucket_of(in, gradients);
  const bool is_usual = in.options.bucket || size == static_cast<double>(default_bucket.value());
  if (in.options.zero == 3 || !exchanges_gradients(in) || is_usual) return {};
  return "gradient buckets of " + format_bytes(Volume(size)) + " are taken: training.bucket, by default " +
         format_bytes(default_bucket) + ", would cut " + format_bytes(Volume(gradients)) +
         " of gradients into more than " + std::to_string(most_buckets) + " pieces";
}

/// Whether the optimizer keeps and moves the same as without being precision-aware.
bool is_usual_optimizer(TrainingOptions options) {
  const OptimizerBytes now = optimizer_bytes(options);
  options.precision_aware_optimizer.reset();
  const OptimizerBytes usual = optimizer_bytes(options);
  return now.kept == usual.kept && now.converted == usual.converted && now.copied == usual.copied;
}

/// Settings that were made, and why they are nothing.
class Unused {
 public:
  explicit Unused(std::vector<std::string>& list) : list_(list) {}
  void operator()(bool asked, const std::string& path, const std::string& why) const {
    if (asked) list_.push_back(path + " has no effect: " + why);
  }

 private:
  std::vector<std::string>& list_;
};

/// Of a step and of a server alike.
void add_unused_of_both(const StepInputs& in, const Unused& no_part) {
  no_part(in.layout.sequence_parallel && in.layout.tp == 1, "layout.sequence_parallel", "tp is 1");
  no_part(in.model.parallel_mlp.norms == 0 && !in.model.parallel_mlp.one_reduce, "model.parallel_mlp.one_reduce",
          "norms is 0, and the MLP comes after attention");
  no_part(in.options.expert_imbalance > 1 && in.layout.ep == 1 && in.model.experts.count > 0,
          in.serving ? "inference.expert_imbalance" : "training.expert_imbalance", "ep is 1");
}

/// Empty: there is something.
std::string why_nothing_to_align(const StepInputs& in) {
  if (!exchanges_gradients(in)) return "nobody has the same parameters";
  if (in.layout.pp == 1) return "pp is 1";
  if (!in.options.overlap_dp) return "overlap_dp is false, and all gradients are exchanged behind the backward";
  if (in.options.delayed_all_reduce) return "the gradients of the step before are exchanged from the begin on";
  if (sharding_stage(in) >= 2) return "zero 2 and 3 reduce gradients after every micro-batch";
  if (!can_align_gradients(in.layout.schedule)) return "it is of the schedules 1f1b, gpipe and interleaved";
  return {};
}

/// What the scenario of a training asks for in vain: of what is not the default, and of what was written so.
void add_unused(const StepInputs& in, const Origins& origins, std::vector<std::string>& list) {
  const CommunicationFormats& f = in.options.communication;
  const Unused no_part(list);
  const auto none = [&](bool asked, const std::string& key, const char* why) {
    no_part(asked, "training." + key, why);
  };
  if (in.layout.dp_shard > 0 && in.options.zero == 0)
    list.push_back("layout.dp_shard has no effect: training.zero is 0, and nothing is split");
  none(in.options.zero > 0 && sharding_stage(in) == 0, "zero", "nobody has the same parameters, and nothing is split");
  if (in.layout.dp_shard == 1 && sharding_stage(in) > 0 && in.layout.shards() == 1)
    list.push_back("layout.dp_shard is 1: every replica has all states, and training.zero splits nothing");
  if (in.options.no_sync && (in.options.zero < 2 || sharding_stage(in) == 0))
    list.push_back("training.no_sync has no effect: gradients are reduced once a step, if at all");
  const ParallelLayout& l = in.layout;
  no_part(l.cp == 1 && l.cp_exchange != ContextExchange::ring, "layout.cp_exchange", "cp is 1");
  add_unused_of_both(in, no_part);
  none(in.options.overlap_tp != TpOverlap::none && l.tp == 1, "overlap_tp", "tp is 1");
  none(!in.options.overlap_pp && l.pp == 1, "overlap_pp", "pp is 1");
  none(!in.options.overlap_cp && (l.cp == 1 || l.cp_exchange != ContextExchange::ring), "overlap_cp",
       l.cp == 1 ? "cp is 1" : "only a ring's messages can go beside attention");
  none(!in.options.reshard_after_forward && sharding_stage(in) < 3, "reshard_after_forward",
       "weights are not split (zero 3 over more than one replica)");
  none(!in.options.moe_grouped_gemm && in.model.experts.count == 0, "moe_grouped_gemm", "the model has no experts");
  none(in.options.moe_grouped_mlp_fusion && in.model.experts.count == 0, "moe_grouped_mlp_fusion",
       "the model has no experts");
  const bool scaled = std::ranges::count(std::array{f.tp_gather, f.tp_reduce, f.ep_dispatch, f.ep_combine},
                                         std::optional(WireFormat::fp8)) > 0;
  none(!scaled && f.scale_block != CommunicationFormats().scale_block, "communication.scale_block",
       "no activations are sent in fp8");
  none(f.tp_gather && TpCollectives(in.layout).gather == std::nullopt, "communication.tp_gather",
       "without sequence parallelism and tp above 1 nothing is gathered");
  none(f.tp_reduce && in.layout.tp == 1, "communication.tp_reduce", "tp is 1");
  none(in.options.save_original_input && is_frozen(in.options), "save_original_input",
       "frozen matrices keep no inputs");
  none(in.options.save_original_input && in.options.bf16_first_layers + in.options.bf16_last_layers > 0,
       "save_original_input", "with layers in bf16 all inputs of products count as kept so");
  none(in.options.moe_token_dispatcher == TokenDispatcher::flex && in.layout.ep == 1, "moe_token_dispatcher",
       "ep is 1");
  const bool no_ep = l.ep == 1 && in.model.experts.count > 0;
  none(f.ep_dispatch && no_ep, "communication.ep_dispatch", "ep is 1");
  none(f.ep_combine && no_ep, "communication.ep_combine", "ep is 1");
  // Experts that are split exchange rows, too.
  none(in.options.overlap_ep && no_ep && l.expert_tp() == 1, "overlap_ep", "each rank has all experts whole");
  none(in.options.precision_aware_optimizer && !in.options.optimizer, "precision_aware_optimizer",
       "optimizer is false");
  none(in.options.precision_aware_optimizer && in.options.optimizer && is_usual_optimizer(in.options),
       "precision_aware_optimizer", "all states are kept in fp32");
  none(in.options.optimizer_state_offload && !in.options.optimizer, "optimizer_state_offload", "optimizer is false");
  none(f.parameters && sharding_stage(in) == 0, "communication.parameters", "no weights are gathered");
  const bool alone = !exchanges_gradients(in);
  const char* no_replicas = "nobody has the same parameters";
  none(!in.options.overlap_dp && alone, "overlap_dp", no_replicas);
  const std::string align = "training.align_grad_reduce", no_aligning = why_nothing_to_align(in);
  no_part(!no_aligning.empty() && (!in.options.align_grad_reduce || origins.knows(align)), align, no_aligning);
  none(in.options.bucket && alone, "bucket", no_replicas);
  none(in.options.bucket && !alone && in.options.zero == 3, "bucket",
       "zero 3 gathers weights and reduces gradients layer by layer");
  none(f.gradients && alone, "communication.gradients", no_replicas);
  none(in.options.compression.method != CompressionMethod::none && alone, "gradient_compression", no_replicas);
  none(in.options.delayed_all_reduce && alone, "delayed_all_reduce", no_replicas);
}

bool is_without_effect(const std::string& path, const std::vector<std::string>& list) {
  const std::string said = path + " has no effect: ";
  return std::ranges::any_of(list, [&](const std::string& text) { return text.starts_with(said); });
}

/// Those that are found by pricing the step without them, where no reason is said already.
void add_without_effect(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time, const Origins& origins,
                        std::vector<std::string>& list) {
  for (Made& one : without_effect(in, fabric, time, origins))
    if (!is_without_effect(one.path, list))
      list.push_back(one.path + " has no effect: every time of the step and its memory are the same " + one.otherwise);
}

}  // namespace

std::string too_few_micro_batches(int micro_batches, int stages) {
  const std::string are = micro_batches == 1 ? " micro-batch is" : " micro-batches are";
  return std::to_string(micro_batches) + are + " fewer than the " + std::to_string(stages) +
         " pipeline stages: some stage is always idle";
}

std::vector<std::string> unused_by_server(const StepInputs& in) {
  std::vector<std::string> list;
  const Unused no_part(list);
  const std::optional<RequestLoad>& load = in.serving->load;
  add_unused_of_both(in, no_part);
  no_part(load && load->range_ratio == 1 && load->seed != RequestLoad().seed, "inference.load.seed",
          "range_ratio is 1, and nothing is drawn");
  return list;
}

void add_uneven_groups(const Fabric& fabric, std::vector<CollectiveCost> collectives, std::vector<std::string>& list) {
  std::ranges::stable_sort(collectives, std::ranges::greater{},
                           [](const CollectiveCost& c) { return c.time * c.count; });
  std::set<std::string> said;
  for (const CollectiveCost& c : collectives) {
    const bool are_messages = c.request.kind == CollectiveKind::sendrecv;
    // What receivers of a message gather is among the ranks of TP.
    const std::string kind = c.dimension == Dimension::pp && !are_messages ? "TP" : kind_of_groups(c);
    if (c.slowest_groups == 0 || !said.insert(kind).second) continue;
    list.push_back(kind + (are_messages ? " messages" : " groups") +
                   " do not all lie alike on the machine: " + std::to_string(c.slowest_groups) + " of a stage's " +
                   std::to_string(c.groups) + (c.slowest_groups == 1 ? " takes" : " take") + " longest, such as " +
                   (are_messages ? "between " : "") + place_of_group(c.request.group, fabric) +
                   ", and that counts for all");
  }
}

namespace {

/// A stage's groups of one kind.
struct StageGroups {
  Seconds time{};  ///< of all that they do in a step
  const Group* group = nullptr;
  bool crosses = false, uneven = false;
};

/// Of one kind those of a size whose ranks are so far apart: HSDP's groups that share a state and those of its copies
/// are both DP's.
using Lying = std::tuple<std::string, int, std::uint32_t>;
Lying lying(const CollectiveCost& c) {
  const Group& group = c.request.group;
  return {kind_of_groups(c), group.size(), group.size() < 2 ? 0 : group[1].value() - group[0].value()};
}

std::map<Lying, StageGroups> groups_by_kind(const Fabric& fabric, const StagePlan& stage) {
  std::map<Lying, StageGroups> out;
  for (const CollectiveCost& c : stage.collectives) {
    // Messages go from one stage to another, and only the ends have tied embeddings.
    if (c.dimension == Dimension::pp || c.name.starts_with("embedding ")) continue;
    StageGroups& of = out[lying(c)];
    of.time += c.time * static_cast<double>(c.count);
    of.group = &c.request.group;
    of.crosses = of.crosses || !is_on_one_node(fabric, c.request.group);
    of.uneven = of.uneven || c.slowest_groups > 0;
  }
  return out;
}

}  // namespace

std::vector<std::string> unlike_stages(const Fabric& fabric, const StepPlan& plan) {
  constexpr double longer = 1.01;  // so much every stage is beside another, by its embedding or head
  struct Side {
    int stages = 0;
    std::size_t slowest = 0;
    StageGroups of_slowest = {};
  };
  struct Kind {
    Side crossing, whole;
    bool uneven = false;  // which add_uneven_groups has said
  };
  std::map<Lying, Kind> kinds;
  for (std::size_t i = 0; i < plan.stages.size(); ++i)
    for (const auto& [name, groups] : groups_by_kind(fabric, plan.stages[i])) {
      Kind& kind = kinds[name];
      kind.uneven = kind.uneven || groups.uneven;
      Side& side = groups.crosses ? kind.crossing : kind.whole;
      if (side.stages++ == 0 || groups.time > side.of_slowest.time) side.slowest = i, side.of_slowest = groups;
    }
  std::vector<std::string> list;
  for (const auto& [name, kind] : kinds) {
    const Side &crossing = kind.crossing, &whole = kind.whole;
    if (kind.uneven || crossing.stages == 0 || whole.stages == 0) continue;
    if (crossing.of_slowest.time <= longer * whole.of_slowest.time) continue;
    const std::string stage = "stage " + std::to_string(crossing.slowest);
    list.push_back(std::get<std::string>(name) + " groups of " +
                   (crossing.stages == 1 ? stage
                                         : std::to_string(crossing.stages) + " of " +
                                               std::to_string(crossing.stages + whole.stages) + " stages") +
                   " cross nodes, such as " + place_of_group(*crossing.of_slowest.group, fabric) +
                   (crossing.stages == 1 ? "" : " of " + stage) +
                   ", and those of other stages do not: " + format_seconds(crossing.of_slowest.time) +
                   " of a step in the place of " + format_seconds(whole.of_slowest.time) + " at most");
  }
  return list;
}

std::vector<std::string> warnings(const StepInputs& in, const Fabric& fabric, const StepResult& result,
                                  const CollectiveTime& time, const Origins& origins) {
  std::vector<std::string> list;
  if (!result.memory.fits()) list.push_back(memory_warning(in, fabric, result.memory));
  if (const auto rate = impossible_rate(in, result.mfu, result.hfu)) list.push_back(*rate);
  add_unused(in, origins, list);
  add_without_effect(in, fabric, time, origins, list);
  if (const auto larger = larger_buckets(in)) list.push_back(*larger);
  add_uneven_groups(fabric, result.uneven, list);
  const bool low_ratio = is_low_ratio(result.compute_to_communication);
  if (low_ratio) list.push_back(ratio_warning(in, fabric, result, time));
  if (const auto exposed = exposed_warning(in, fabric, result, time, low_ratio)) list.push_back(*exposed);
  if (const auto slower = slower_beside_backward(in, fabric, time)) list.push_back(*slower);
  if (!is_without_effect("training.overlap_tp", list))
    if (const auto slower = slower_by_overlap_tp(in, fabric, time)) list.push_back(*slower);
  std::ranges::move(slower_by_narrow_formats(in, fabric, time), std::back_inserter(list));
  if (result.micro_batches < in.layout.pp)
    list.push_back(too_few_micro_batches(result.micro_batches, in.layout.pp) +
                   "; a larger global_batch, a smaller micro_batch or a smaller pp would help");
  if (in.layout.schedule == PipelineSchedule::interleaved && in.layout.vpp == 1)
    list.push_back(
        "schedule interleaved with vpp 1 has the bubble of 1f1b and holds more micro-batches; vpp 2 or more, or "
        "schedule: 1f1b would help");
  if (in.model.experts.count > 0 && in.options.moe_capacity_factor > 0 && in.options.moe_capacity_factor < 1)
    list.push_back(
        "a moe_capacity_factor below 1 drops tokens even where experts are used alike; MFU and HFU count the FLOPs of "
        "all tokens");
  const RecomputeModules& modules = in.options.recompute_modules;
  const bool core = recomputes(in.options, RecomputeModule::core_attn) && in.options.attention == Attention::flash;
  if (core && modules.size() == 1)
    list.push_back(
        "selective recomputation gains nothing with flash attention, which keeps no attention matrix; "
        "recompute: none is faster");
  else if (core)
    list.push_back(
        "core_attn of recompute_modules gains nothing with flash attention, which keeps no attention matrix; without "
        "it the step is faster");
  if (in.options.moe_grouped_mlp_fusion && in.model.experts.count > 0 && in.options.precision != "fp8")
    list.push_back(
        "training.moe_grouped_mlp_fusion is known of fp8 alone (Transformer Engine's kernels, of mxfp8 on "
        "Blackwell); with precision " +
        in.options.precision + " it is a supposition");
  if (in.options.precision == "fp4")
    list.push_back(
        "fp4: of its products those of forwards alone were measured, and those of gradients are taken to be as fast; "
        "Hadamard transforms and stochastic rounding are left out");
  if (in.options.recompute != Recompute::selective && !modules.empty() &&
      modules != TrainingOptions().recompute_modules)
    list.push_back("recompute_modules have no part with recompute " + std::string(to_string(in.options.recompute)) +
                   ", only with recompute: selective");
  if (in.options.recompute == Recompute::none && in.options.recompute_layers < 1)
    list.push_back("recompute_layers has no part with recompute none");
  bool chosen = in.options.recompute == Recompute::none;
  for (int layer = 0; layer < in.model.all_layers() && !chosen; ++layer) chosen = recomputes_layer(in.options, layer);
  if (!chosen)
    list.push_back("recompute_layers chooses none of " + std::to_string(in.model.layers) +
                   " layers: " + format_count(100 * in.options.recompute_layers) +
                   " % of them is less than half a layer, and nothing is recomputed");
  return list;
}

std::optional<std::string> served_ratio_warning(const StepInputs& in, const Fabric& fabric, const StepResult& result,
                                                const CollectiveTime& time) {
  if (!is_low_ratio(result.compute_to_communication)) return {};
  const RankGroups groups = groups_of(in.layout, rank_at(in.layout, {0, result.stage.stage, 0, 0, 0}));
  const bool experts = result.breakdown.ep_exposed > result.breakdown.tp_exposed;
  const Group* slowest = slowest_group(result.inference->prefill.collectives, experts ? Dimension::ep : Dimension::tp);
  return "prompts and tokens together compute only " + ratio_text(result.compute_to_communication) +
         " times as long as they communicate, most of it for " + (experts ? "EP" : "TP") +
         strewn(slowest != nullptr ? *slowest
                : experts          ? groups.ep
                                   : groups.tp,
                fabric) +
         "; " + what_would_raise_served(in, fabric, time);
}

}  // namespace workload

std::optional<std::string> impossible_rate(const StepInputs& in, double mfu, double hfu) {
  if (in.serving || std::max(mfu, hfu) <= 1) return {};
  const std::string& precision = in.options.precision;
  std::string why = "gpu.peak." + precision + " (" + format_flop_rate(in.gpu.peak.at(precision)) + ")";
  if (const auto table = in.kernels.measured_gemm.find(precision); table != in.kernels.measured_gemm.end())
    why = "the products of " + table->second.name() + ", gemm." + precision + ".measured.peak, " + why;
  if (in.gpu.kernel_scale < 1) why = "gpu.kernel_scale (" + format_count(in.gpu.kernel_scale) + "), " + why;
  return "MFU is " + workload::share_text(mfu) + " and HFU " + workload::share_text(hfu) +
         " of the data sheet's peak, more than a GPU can compute: check " + why;
}

}  // namespace collcast
