// Experts: what they are by themselves, what has no effect on a dense model, and how they go over the ranks.
#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "collcast/base/units.hpp"
#include "workload/checks/misfits.hpp"
#include "workload/layer/parameters.hpp"

namespace collcast::workload {

namespace {

class ExpertCheck {
 public:
  explicit ExpertCheck(Misfits& misfits) : in_(misfits.in), misfits_(misfits) {}

  void sizes() {
    const Experts& e = in_.model.experts;
    const TrainingOptions& o = in_.options;
    if (!(o.expert_imbalance >= 1))
      wrong({"training.expert_imbalance"}, "expert_imbalance is " + number(o.expert_imbalance),
            "expected at least 1: the busiest rank's tokens over the mean");
    if (!(o.moe_capacity_factor >= 0))
      wrong({"training.moe_capacity_factor"}, "moe_capacity_factor is " + number(o.moe_capacity_factor),
            "expected above 0, or 0 for no limit");
    if (e.count == 0) return no_experts();
    if (o.moe_grouped_mlp_fusion && !o.moe_grouped_gemm)
      wrong({"training.moe_grouped_mlp_fusion", "training.moe_grouped_gemm"},
            "what is fused is one kernel for all experts of a rank, and moe_grouped_gemm is false" +
                seen("training.moe_grouped_gemm"),
            "use true for both, or moe_grouped_mlp_fusion: false");
    if (e.clamp && !in_.model.gated_mlp)
      wrong({"model.experts.clamp", "model.gated_mlp"},
            "a clamp is of what a gated activation reads, and gated_mlp is false" + seen("model.gated_mlp"),
            "use clamp: false");
    positive("top_k", e.top_k);
    positive("ffn", e.ffn);
    positive("every", e.every);
    if (e.latent < 0)
      wrong({"model.experts.latent", "model.experts"}, "latent is " + std::to_string(e.latent),
            "expected at least 1, or 0 for rows of hidden states");
    if (e.top_k > e.count)
      wrong({"model.experts.top_k", "model.experts.count"},
            "a token cannot go to " + std::to_string(e.top_k) + " of " + std::to_string(e.count) + " experts" +
                seen("model.experts.count"),
            "use top_k " + std::to_string(e.count) + " or less");
    groups();
    if (e.every >= 1 && in_.model.layers >= 1 && in_.model.layers <= most_layers && in_.model.pattern.empty() &&
        expert_layers(in_.model) == 0)
      wrong({"model.experts.dense_layers", "model.layers"},
            "none of the " + std::to_string(in_.model.layers) + " layers" + seen("model.layers") + " has experts",
            "use a smaller dense_layers or every");
  }

  void spread_over_ranks() {
    const TransformerConfig& m = in_.model;
    const ParallelLayout& l = in_.layout;
    if (m.experts.count == 0) return;
    if (m.experts.latent > 0 && in_.options.lora.rank > 0)
      wrong({"training.lora.rank", "model.experts.latent"},
            "low-rank adapters beside latent experts are not modelled" + seen("model.experts.latent"),
            "leave lora out");
    if (replicates_tokens(in_))
      replicated_experts();
    else if (l.tp > 1 && !l.sequence_parallel)
      wrong({"layout.sequence_parallel", "layout.tp"},
            "experts with tp " + std::to_string(l.tp) + seen("layout.tp") + " need sequence parallelism",
            Hint("use sequence_parallel: true, as Megatron does", [](StepInputs& in) {
              in.layout.sequence_parallel = true;
            }).or_use("tp 1", [](StepInputs& in) { in.layout.tp = 1; }));
    if (in_.options.moe_grouped_mlp_fusion && l.expert_tp() > 1)
      wrong({"training.moe_grouped_mlp_fusion", l.etp > 0 ? "layout.etp" : "layout.tp"},
            "fused kernels are of whole experts, and these are split over " + std::to_string(l.expert_tp()) + " ranks" +
                seen(l.etp > 0 ? "layout.etp" : "layout.tp"),
            Hint("use etp 1", [](StepInputs& in) {
              in.layout.etp = 1;
            }).or_use("moe_grouped_mlp_fusion: false", [](StepInputs& in) {
              in.options.moe_grouped_mlp_fusion = false;
            }));
    const std::string ep = "ep " + std::to_string(l.ep), etp = "expert tp " + std::to_string(l.expert_tp());
    if (l.order != RankOrder::tp_cp_ep_dp_pp && l.expert_tp() != l.tp) {
      wrong({"layout.etp", "layout.tp", "layout.order"},
            "etp " + std::to_string(l.etp) + " has no place in the order " + std::string(to_string(l.order)) +
                seen("layout.order"),
            Hint("use order: tp-cp-ep-dp-pp", [](StepInputs& in) {
              in.layout.order = RankOrder::tp_cp_ep_dp_pp;
            }).or_use("etp " + std::to_string(l.tp), [](StepInputs& in) { in.layout.etp = in.layout.tp; }));
      return spread(0);
    }
    const std::int64_t stage = std::int64_t{l.tp} * l.dp * (l.order == RankOrder::tp_cp_ep_dp_pp ? l.cp : 1);
    if (m.experts.ffn % l.expert_tp() != 0) {
      wrong(
          {l.etp > 0 ? "layout.etp" : "layout.tp", "model.experts.ffn"},
          etp + " does not divide the width of an expert, " + std::to_string(m.experts.ffn) + seen("model.experts.ffn"),
          use_etp(std::gcd<std::int64_t>(m.experts.ffn, stage)));
      spread(0);
    } else if (stage % l.expert_tp() != 0) {
      wrong({"layout.etp", "layout.tp", "layout.dp"},
            etp + " does not divide the " + std::to_string(stage) + " ranks of a stage" + seen("layout.dp"),
            use_etp(stage));
      spread(0);
    } else {
      spread(stage / l.expert_tp());
    }
    if (in_.options.zero > 0) expert_shards();
  }

 private:
  void wrong(const std::vector<std::string>& paths, std::string message, Hint hint) {
    misfits_.wrong(paths, std::move(message), std::move(hint));
  }
  std::string seen(const std::string& path) const { return misfits_.seen(path); }
  Hint use_etp(std::int64_t goes_into) const {
    return Hint::use("etp", &ParallelLayout::etp, near_divisors(in_int(goes_into), in_.layout.expert_tp()));
  }
  /// More ranks than that no machine has.
  static int in_int(std::int64_t ranks) {
    return static_cast<int>(std::min<std::int64_t>(ranks, std::numeric_limits<int>::max()));
  }
  static std::string number(double value) { return format_count(value); }

  void positive(const char* name, int value) {
    if (value < 1)
      wrong({std::string("model.experts.") + name}, std::string(name) + " is " + std::to_string(value),
            "expected at least 1");
  }

  /// A token's experts are of its groups, which have as many of them as it needs.
  void groups() {
    const Experts& e = in_.model.experts;
    positive("groups", e.groups);
    positive("group_top_k", e.group_top_k);
    if (e.groups < 1 || e.group_top_k < 1) return;
    if (e.count % e.groups != 0)
      return wrong({"model.experts.groups", "model.experts.count"},
                   std::to_string(e.groups) + " groups do not divide " + std::to_string(e.count) + " experts" +
                       seen("model.experts.count"),
                   "use groups " + nearest_divisors(e.count, e.groups));
    if (e.group_top_k > e.groups)
      return wrong({"model.experts.group_top_k", "model.experts.groups"},
                   "a token cannot go to " + std::to_string(e.group_top_k) + " of " + std::to_string(e.groups) +
                       " groups of experts" + seen("model.experts.groups"),
                   "use group_top_k " + std::to_string(e.groups) + " or less");
    const int open = e.group_top_k * (e.count / e.groups);
    if (e.top_k > open && e.top_k <= e.count)
      wrong(
          {"model.experts.group_top_k", "model.experts.top_k"},
          "group_top_k " + std::to_string(e.group_top_k) + " leaves a token " + std::to_string(open) +
              " experts, fewer than top_k " + std::to_string(e.top_k) + seen("model.experts.top_k"),
          "use group_top_k " + std::to_string((e.top_k + e.count / e.groups - 1) / (e.count / e.groups)) + " or more");
  }

  /// What has no effect on a dense model.
  void no_experts() {
    const Experts& e = in_.model.experts;
    if (e.top_k > 0 || e.ffn > 0 || e.shared_ffn > 0 || e.latent != 0 || e.groups != 1 || e.group_top_k != 1)
      wrong({"model.experts.count", "model.experts"}, "a model with experts says how many there are",
            "give model.experts.count");
    if (in_.layout.ep > 1 || in_.layout.etp > 0)
      wrong({in_.layout.ep > 1 ? "layout.ep" : "layout.etp", "model.experts", "model.config"},
            in_.layout.ep > 1 ? "ep " + std::to_string(in_.layout.ep) + " needs a model with experts"
                              : "etp " + std::to_string(in_.layout.etp) + " needs a model with experts",
            {in_.layout.ep > 1 ? "use ep 1, or describe model.experts" : "leave it out, or describe model.experts",
             [](StepInputs& in) { in.layout.ep = 1, in.layout.etp = 0; }});
    if (in_.options.expert_imbalance > 1)
      wrong({in_.serving ? "inference.expert_imbalance" : "training.expert_imbalance", "model.experts", "model.config"},
            "expert_imbalance has no effect on a dense model", "leave it out");
    if (in_.options.overlap_ep)
      wrong({"training.overlap_ep", "model.experts", "model.config"}, "overlap_ep has no effect on a dense model",
            "leave it out");
    if (in_.options.moe_token_dispatcher != TokenDispatcher::alltoall)
      wrong({"training.moe_token_dispatcher", "model.experts", "model.config"},
            "moe_token_dispatcher has no effect on a dense model", "leave it out");
    if (in_.options.moe_capacity_factor > 0)
      wrong({"training.moe_capacity_factor", "model.experts", "model.config"},
            "moe_capacity_factor has no effect on a dense model", "leave it out");
  }

  /// Ranks that all have the same tokens have every expert between them.
  void replicated_experts() {
    const ParallelLayout& l = in_.layout;
    if (std::int64_t{l.ep} * l.expert_tp() == l.tp) return;
    Hint hint("use sequence_parallel: true", [](StepInputs& in) { in.layout.sequence_parallel = true; });
    if (l.tp % l.ep == 0) hint = Hint::use("etp", &ParallelLayout::etp, {l.tp / l.ep}).or_any_of(std::move(hint));
    if (l.tp % l.expert_tp() == 0)
      hint = Hint::use("ep", &ParallelLayout::ep, {l.tp / l.expert_tp()}).or_any_of(std::move(hint));
    wrong({"layout.ep", "layout.etp", "layout.tp"},
          "ep " + std::to_string(l.ep) + " x expert tp " + std::to_string(l.expert_tp()) + " is not tp " +
              std::to_string(l.tp) + seen("layout.tp") + ", whose ranks have the same tokens",
          std::move(hint));
  }

  /// The ranks of a shard have all experts, each as often.
  void expert_shards() {
    const ParallelLayout& l = in_.layout;
    if (l.dp_shard <= 0 || l.dp % l.dp_shard != 0 || shards_have_all_experts(l)) return;
    const std::int64_t ranks = std::int64_t{l.tp} * l.cp * l.dp_shard, apart = std::int64_t{l.expert_tp()} * l.ep;
    wrong({"layout.dp_shard", "layout.ep"},
          "the " + std::to_string(ranks) + " ranks of a stage that dp_shard " + std::to_string(l.dp_shard) +
              " splits states over are no whole groups of the " + std::to_string(apart) + " that ep " +
              std::to_string(l.ep) + seen("layout.ep") + " and etp " + std::to_string(l.expert_tp()) +
              " spread all experts over",
          {"use a dp_shard that tp x cp makes a multiple of " + std::to_string(apart) + ", or leave it out",
           [](StepInputs& in) { in.layout.dp_shard = 0; }});
  }

  /// Experts over `ranks`: whole ones on each, and whole EP groups. Of 0 ranks nothing is known.
  void spread(std::int64_t ranks) {
    const int count = in_.model.experts.count, ep = in_.layout.ep;
    std::string misfits;
    if (count % ep != 0) misfits = "the " + std::to_string(count) + " experts" + seen("model.experts.count");
    if (ranks % ep != 0)
      misfits += (misfits.empty() ? "" : ", nor ") + std::to_string(ranks) + " ranks of a stage" + seen("layout.dp") +
                 (in_.layout.expert_tp() > 1 ? " over expert tp " + std::to_string(in_.layout.expert_tp()) : "");
    if (!misfits.empty())
      wrong({"layout.ep", "layout.dp"}, "ep " + std::to_string(ep) + " does not divide " + misfits,
            Hint::use("ep", &ParallelLayout::ep, near_divisors(in_int(std::gcd<std::int64_t>(count, ranks)), ep)));
  }

  const StepInputs& in_;
  Misfits& misfits_;
};

}  // namespace

void check_expert_sizes(Misfits& misfits) { ExpertCheck(misfits).sizes(); }
void check_experts(Misfits& misfits) { ExpertCheck(misfits).spread_over_ranks(); }

}  // namespace collcast::workload
