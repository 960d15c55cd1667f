// Mixtures of experts and latent attention: published parameter counts, groups, the laws of dispatch and grouped GEMMs,
// memory, and formula against timeline.
#include <catch2/catch.hpp>

#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "collcast/scenario/scenario.hpp"
#include "collcast/workload/search.hpp"
#include "inputs.hpp"
#include "support/dice.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/layer/kept.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/layer/segments.hpp"
#include "workload/memory/memory.hpp"
#include "workload/sharded_walk.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

const CollectiveCost* find_cost(const StagePlan& stage, const std::string& name) {
  for (const CollectiveCost& c : stage.collectives)
    if (c.name == name) return &c;
  return nullptr;
}

Result<TransformerConfig> shipped_model(const std::string& name) {
  const std::string file = std::string(COLLCAST_SOURCE_DIR) + "/scenarios/models/" + name + "/config.json";
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return parse_hf_config(text.str(), file);
}

}  // namespace

TEST_CASE(
    "a layer with experts has its router, 1/EP of its experts each split over expert TP, and 1/TP of the shared") {
  const TransformerConfig m = small_deepseek();
  const double h = 1024, expert = 3 * h * 1024, shared = 3 * h * 512, router = 8 * h;
  // q 384, kv 128 + 32 down with norms; up to 16 heads of 96, and of 64 + 64; 16 x 64 back.
  const double down = h * 384 + h * 160 + 384 + 128;
  const double heads = 384 * 16 * 96 + 128 * 16 * 128 + 16 * 64 * h;
  const double norms = 2 * h;
  for (const int tp : {1, 2, 4})
    for (const int etp : {1, 2})
      for (const int ep : {1, 2, 4, 8}) {
        ParallelLayout l = layout(tp, 1, 8);
        l.ep = ep;
        l.etp = etp;
        const RankParameters p = layer_parameters(m, l, expert_layer);
        CHECK(p.experts == 8 * expert / ep / etp);
        CHECK(p.sharded == (heads + shared) / tp);
        CHECK(p.replicated == norms + down + router);
      }
  CHECK(layer_parameters(m, {.tp = 1}).total() == heads + down + norms + 3 * h * 4096);
  CHECK(parameter_count(m) == 2 * layer_parameters(m, {.tp = 1}).total() +
                                  6 * layer_parameters(m, {}, expert_layer).total() + 2 * 32000 * h + h);
  // 2 of 8 experts.
  CHECK(parameter_count(m) - active_parameter_count(m) == 6 * 6 * expert);
}

TEST_CASE("shipped models have the parameters that their makers publish") {
  struct Published {
    const char* name;
    double total, active, embedding;  ///< 10^9; the active ones of some without the embedding
    double digits;
  };
  // Mixtral: mistral.ai/news/mixtral-of-experts (46.7, 12.9) and mixtral-8x22b (141, 39; 140.6 of the file's tensors).
  // DeepSeek-V2: arXiv 2405.04434 (236, 21). DeepSeek-V3: README_WEIGHTS.md of its repository (671, 36.6 with the
  // output head and without the embedding). Qwen3: their model cards (30.5, 3.3; 235, 22).
  for (const Published& p : {Published{"mixtral-8x7b", 46.7, 12.9, 0, 0.05},
                             {"mixtral-8x22b", 140.6, 39, 0, 0.5},
                             {"deepseek-v2", 236, 21, 0, 0.5},
                             {"deepseek-v3", 671, 36.6, 129280 * 7168e-9, 0.05},
                             {"qwen3-30b-a3b", 30.5, 3.3, 0, 0.06},
                             {"qwen3-235b-a22b", 235, 22, 0, 0.5}}) {
    INFO(p.name);
    const auto m = shipped_model(p.name);
    INFO(to_text(m.errors()));
    REQUIRE(m.ok());
    CHECK(m->name == p.name);
    CHECK(parameter_count(*m) / 1e9 == Approx(p.total).margin(p.total > 200 ? 0.5 : 0.05));
    CHECK(active_parameter_count(*m) / 1e9 - p.embedding == Approx(p.active).margin(p.digits));
  }
}

TEST_CASE("Mixtral 8x7B has its 46,702,792,704 parameters to the last, 12,879,925,248 of them for a token") {
  CHECK(parameter_count(shipped_model("mixtral-8x7b").value()) == 46'702'792'704.0);
  CHECK(active_parameter_count(shipped_model("mixtral-8x7b").value()) == 12'879'925'248.0);
}

TEST_CASE("ranks hold the model's experts once for each replica of them") {
  for (const int pp : {1, 2, 4})
    for (const int ep : {1, 2, 4})
      for (const int etp : {1, 2}) {
        StepInputs in = spread(small_deepseek(), ep, 2, 4, etp);
        in.layout.pp = pp;
        double experts = 0;
        for (int stage = 0; stage < pp; ++stage) experts += stage_parameters(in, stage).experts;
        // tp x dp ranks of a stage over those that have the same.
        CHECK(experts * in.layout.tp * in.layout.dp / in.layout.expert_replicas() == 6 * 8 * 3.0 * 1024 * 1024);
      }
}

TEST_CASE("layers have experts from the first one that may on, every so many, but where they are left out") {
  TransformerConfig m = small_experts();
  const auto with = [&] {
    std::vector<int> layers;
    for (int i = 0; i < m.layers; ++i)
      if (has_experts(m, i)) layers.push_back(i);
    CHECK(static_cast<int>(layers.size()) == expert_layers(m));
    return layers;
  };
  CHECK(with() == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  m.experts.dense_layers = 3;
  CHECK(with() == std::vector<int>{3, 4, 5, 6, 7});
  m.experts.every = 2;
  CHECK(with() == std::vector<int>{4, 6});
  m.experts.phase = 1;
  CHECK(with() == std::vector<int>{3, 5, 7});
  m.experts.dense_at = {5};
  CHECK(with() == std::vector<int>{3, 7});
  m.experts.count = 0;
  CHECK(with().empty());
}

TEST_CASE("EP groups as Megatron cuts them: expert TP, EP, and the replicas of experts within a stage") {
  // 2 x 2 x 4 ranks a stage. With expert TP as TP, EP goes through CP and then DP; with 1 through TP too.
  ParallelLayout l = layout(2, 2, 4);
  l.cp = 2;
  l.order = RankOrder::tp_cp_ep_dp_pp;
  l.ep = 4;
  CHECK(values(groups_of(l, Rank(0)).ep) == std::vector<std::uint32_t>{0, 2, 4, 6});
  CHECK(values(groups_of(l, Rank(27)).ep) == std::vector<std::uint32_t>{25, 27, 29, 31});
  CHECK(values(expert_tp_group(l, Rank(27))) == std::vector<std::uint32_t>{26, 27});
  CHECK(values(expert_replica_group(l, Rank(27))) == std::vector<std::uint32_t>{19, 27});
  l.etp = 1;
  l.ep = 8;
  CHECK(values(groups_of(l, Rank(27)).ep) == std::vector<std::uint32_t>{24, 25, 26, 27, 28, 29, 30, 31});
  CHECK(values(expert_replica_group(l, Rank(27))) == std::vector<std::uint32_t>{19, 27});
  CHECK(expert_tp_group(l, Rank(27)).size() == 1);
}

TEST_CASE("expert TP, EP and replicas of experts are coordinates of a stage's ranks") {
  for (const int tp : {1, 2, 4})
    for (const int cp : {1, 2})
      for (const int dp : {1, 2, 4})
        for (const int etp : {0, 1, 2})
          for (const int ep : {1, 2, 4}) {
            ParallelLayout l = layout(tp, 2, dp);
            l.cp = cp;
            l.order = RankOrder::tp_cp_ep_dp_pp;
            l.ep = ep;
            l.etp = etp;
            const int stage = tp * cp * dp;
            if (stage % l.expert_tp() != 0 || stage / l.expert_tp() % ep != 0) continue;
            for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(l.world()); ++r) {
              // Every rank of the stage is reached by one step along each.
              std::set<Rank> reached;
              for (const Rank a : expert_tp_group(l, Rank(r)).ranks())
                for (const Rank b : groups_of(l, a).ep.ranks())
                  for (const Rank c : expert_replica_group(l, b).ranks()) {
                    REQUIRE(coordinates(l, c).pp == coordinates(l, Rank(r)).pp);
                    REQUIRE(reached.insert(c).second);
                  }
              REQUIRE(static_cast<int>(reached.size()) == stage);
            }
          }
}

TEST_CASE("the ranks of a stage compute together what the model does, whatever the spread of its experts") {
  // The same tokens in all: 8 ranks as TP x DP, 1 micro-batch of 8/DP sequences each.
  const TransformerConfig m = small_deepseek();
  double of_all = 0;
  for (const int tp : {1, 2, 4})
    for (const int etp : {1, 2, 4})
      for (const int ep : {1, 2}) {
        StepInputs in = spread(m, ep, tp, 8 / tp, etp);
        in.batch.micro_batch = tp;
        const LayerOperations ops = layer_operations(in);
        double experts = 0, router = 0;
        for (const std::vector<Operation>* list : {&ops.forward, &ops.backward})
          for (const Operation& op : *list) {
            if (op.name.starts_with("experts")) experts += op.flops.value();
            if (op.name.starts_with("router")) router += op.flops.value();
          }
        // 8 x 2048 tokens, 2 experts each of 3 h f, forward and twice that backward.
        CHECK(8 * experts == Approx(3.0 * 8 * 2048 * 2 * 6 * 1024 * 1024).epsilon(1e-12));
        CHECK(8 * router == Approx(3.0 * 8 * 2048 * 2 * 1024 * 8).epsilon(1e-12));
        if (of_all == 0) of_all = 8 * flops(ops.forward);
        CHECK(8 * flops(ops.forward) == Approx(of_all).epsilon(1e-12));
      }
}

TEST_CASE("the kernels of a forward are the FLOPs that MFU counts, but for the causal half of attention") {
  StepInputs in = spread(small_deepseek(), 4);
  in.options.attention = Attention::unfused;
  in.options.embedding_and_logits = false;
  const double tokens = 2 * 2048;
  double kernels = 0;
  for (const bool experts : {false, true})
    for (const Segment& s : layer_segments(in, {experts ? expert_layer : mlp_layer}).forward)
      kernels += (experts ? 6 : 2) * flops(s.operations);
  CHECK(kernels == Approx(2 * flop_terms(in).forward()).epsilon(1e-12));
  // 2 x (parameters of the matrices that a token passes), and the core 2 a s (96 + 64) for each.
  const double passed = active_parameter_count(in.model) - 2.0 * 32000 * 1024 - 1024 - 8 * (2 * 1024 + 384 + 128);
  CHECK(kernels == Approx(tokens * (2 * passed + 8 * 2.0 * 16 * 2048 * 160)).epsilon(1e-12));
}

TEST_CASE("a token's hidden state goes to each of its experts and back, forward and backward") {
  const double w = 2, tokens = 2 * 2048, h = 1024, k = 2;
  for (const int tp : {1, 2, 4})
    for (const int ep : {1, 2, 4}) {
      const StepInputs in = spread(small_experts(), ep, tp, 4);
      const StepPlan plan = planned(in, priced(0));
      const StagePlan& stage = plan.stages[0];
      CAPTURE(tp, ep);
      const CollectiveCost* exchange = find_cost(stage, "ep alltoall");
      REQUIRE((exchange != nullptr) == (ep > 1));
      // Each of tp ranks sends the tokens that it has; 4 a layer and micro-batch.
      if (exchange != nullptr) {
        CHECK(static_cast<double>(exchange->request.size.value()) == w * tokens / tp * k * h);
        CHECK(exchange->count == 4 * 8 * 2);
        CHECK(exchange->request.group.size() == ep);
      }
      // Expert TP as TP: what the ranks of an expert have taken goes to all of them, and its sum back.
      for (const char* name : {"expert tp all_gather", "expert tp reduce_scatter"}) {
        const CollectiveCost* within = find_cost(stage, name);
        REQUIRE((within != nullptr) == (tp > 1));
        if (within == nullptr) continue;
        CHECK(static_cast<double>(within->request.size.value()) == w * tokens * k * h);
        CHECK(within->count == 2 * 8 * 2);
      }
      CHECK(estimate_step(plan).breakdown.ep_exposed.count() ==
            Approx((exchange ? exchange->time.count() * 64 : 0) + (tp > 1 ? 2 * 32 * w * tokens * k * h / 100e9 : 0)));
    }
}

TEST_CASE("full recomputation sends tokens again, selective and none do not") {
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    StepInputs in = spread(small_experts(), 4);
    in.options.recompute = recompute;
    in.options.attention = Attention::unfused;
    CHECK(find_cost(planned(in, priced(0)).stages[0], "ep alltoall")->count ==
          (recompute == Recompute::full ? 6 : 4) * 8 * 2);
  }
}

TEST_CASE("everybody waits for the busiest rank, up to what a capacity lets it take") {
  const auto experts = [](double imbalance, double capacity, int ep) {
    StepInputs in = spread(small_experts(), ep);
    in.options.expert_imbalance = imbalance;
    in.options.moe_capacity_factor = capacity;
    return std::pair{named(layer_operations(in).forward, "experts down").flops.value(), dispatch_bytes(in)};
  };
  const auto [flops, bytes] = experts(1, 0, 4);
  for (const auto& [imbalance, capacity, load] :
       {std::array{1.5, 0.0, 1.5}, {3.0, 1.25, 1.25}, {1.1, 2.0, 1.1}, {1.0, 0.5, 0.5}, {9.0, 0.0, 4.0}}) {
    CHECK(experts(imbalance, capacity, 4).first == Approx(load * flops));
    CHECK(experts(imbalance, capacity, 4).second == Approx(load * bytes));
  }
  // A rank with all experts has the mean.
  CHECK(experts(2, 0, 1).first == flops);
  StepInputs in = spread(small_experts(), 4);
  const double balanced = layer_activations(in, expert_layer).value();
  in.options.expert_imbalance = 1.5;
  // Half of T K rows more, with their input and what the activation reads and writes.
  CHECK(layer_activations(in, expert_layer).value() - balanced == Approx(0.5 * 2 * 4096 * 2 * (1024 + 3 * 1024)));
}

TEST_CASE("gradients of experts are reduced among the ranks that have the same, the others among all replicas") {
  for (const int zero : {0, 1})
    for (const auto& [ep, replicas] : {std::pair{2, 4}, {4, 2}, {8, 1}, {1, 8}}) {
      StepInputs in = spread(small_deepseek(), ep, 1, 8);
      in.options.zero = zero;
      in.options.bucket = Bytes(std::int64_t{1} << 40);
      CAPTURE(zero, ep);
      const RankParameters held = stage_parameters(in, 0);
      const StagePlan stage = planned(in, priced(0)).stages[0];
      const std::string kind = zero == 0 ? "all_reduce" : "reduce_scatter";
      const CollectiveCost* all = find_cost(stage, "dp " + kind);
      const CollectiveCost* experts = find_cost(stage, "expert dp " + kind);
      REQUIRE(all != nullptr);
      CHECK(all->request.group.size() == 8);
      const double apart = ep > 1 ? held.experts : 0;
      CHECK(static_cast<double>(all->request.size.value()) == 4 * (held.total() - apart));
      REQUIRE((experts != nullptr) == (ep > 1 && replicas > 1));
      if (experts != nullptr) {
        CHECK(experts->request.group.size() == replicas);
        CHECK(static_cast<double>(experts->request.size.value()) == 4 * apart);
      }
      const MemoryUse use = stage_memory(in, 0, 8);
      CHECK(use.parameters.value() == Approx(2 * held.total()).margin(1));
      CHECK(use.gradients.value() == Approx(4 * held.total()).margin(1));
      const double optimizer = zero == 0 ? held.total() : (held.total() - apart) / 8 + apart / replicas;
      CHECK(use.optimizer.value() == Approx(12 * optimizer).margin(1));
    }
}

TEST_CASE("a stage has the memory of its own layers, and the fullest is looked for among all") {
  StepInputs in = spread(small_deepseek(), 2);
  in.layout.pp = 4;
  in.batch.global_batch = 64;
  // The first two layers have an MLP of 4096, the others four such experts; no ends, which have a vocabulary each.
  in.model.experts.ffn = 4096;
  in.options.embedding_and_logits = false;
  const MemoryUse most = peak_memory(in, 8);
  CHECK(most.stage == 1);
  for (int stage = 0; stage < 4; ++stage) {
    CHECK(stage_memory(in, stage, 8).peak() <= most.peak());
    const ParameterTerms p = parameter_terms(in, stage);
    CHECK(p.layers[mlp_layer] == (stage == 0 ? 2 : 0));
    CHECK(p.expert_layers() == (stage == 0 ? 0 : 2));
  }
}

TEST_CASE(
    "latent attention keeps queries, keys, values, output and the small ranks; its core has keys of 96 and values of "
    "64") {
  const StepInputs in = spread(small_deepseek(), 4);
  const MemoryTerms terms = memory_terms(in, 0);
  const double T = 2 * 2048;
  CHECK(terms.layer[mlp_layer].projections.value() == 2 * T * 16 * (96 + 96 + 64 + 64));
  CHECK(terms.layer[mlp_layer].latent.value() == 2 * T * (2 * 384 + 2 * 128 + 32));
  CHECK(terms.layer[expert_layer].mlp.value() == 2 * T * 3 * 512);
  CHECK(terms.layer[expert_layer].experts.value() == 2 * T * 2 * (1024 + 3 * 1024) + 8 * T * 8);
  const LayerOperations ops = layer_operations(in);
  const double causal = (2048. + 1) / (2 * 2048), one = 2.0 * 2 * 16 * 2048 * 2048;
  CHECK(named(ops.forward, "flash attention").flops.value() == Approx(one * (96 + 64) * causal));
  CHECK(named(ops.backward, "flash attention gradient").flops.value() == Approx(one * (3 * 96 + 2 * 64) * causal));
  CHECK(named(ops.forward, "q up").flops.value() == 2 * T * 384 * 16 * 96);
  CHECK(named(ops.forward, "kv up").flops.value() == 2 * T * 128 * 16 * (64 + 64));
  CHECK(named(ops.forward, "projection").flops.value() == 2 * T * 16 * 64 * 1024);
}

TEST_CASE("TP gathers the small ranks of latent attention instead of hidden states") {
  StepInputs in = spread(small_deepseek(), 2, 2);
  const auto bytes = [&] {
    std::set<double> seen;
    const Segments segments = layer_segments(in, {expert_layer});
    for (const std::vector<Segment>* list : {&segments.forward, &segments.backward})
      for (const Segment& s : *list)
        if (s.then && s.then_bytes > 0) seen.insert(s.then_bytes);
    return seen;
  };
  CHECK(bytes() == std::set<double>{2.0 * 2 * 2048 * (384 + 128 + 32)});
  // Queries that are not compressed read the hidden states of all tokens; keys and values come down before.
  in.model.latent.q_rank = 0;
  CHECK(bytes() == std::set<double>{2.0 * 2 * 2048 * (1024 + 128 + 32)});
}

TEST_CASE("with experts the closed form is the timeline: random layouts") {
  const Fabric fabric = cluster(8);
  Dice dice(20'261'123);
  int cases = 0, with_ep = 0;
  while (cases < 400) {
    const bool latent = dice.roll(2) == 0;
    const int ep = 1 << dice.roll(4), tp = 1 << dice.roll(3), dp = 1 << dice.roll(4), etp = dice.pick({0, 0, 1, 2});
    StepInputs in = spread(latent ? small_deepseek() : small_experts(), ep, tp, dp, etp);
    in.layout.cp = 1 << dice.roll(2);
    in.layout.pp = 1 << dice.roll(3);
    in.model.experts.every = 1 + dice.roll(2);
    in.model.tied_embeddings = dice.roll(3) == 0;
    in.layout.schedule = dice.pick({PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe,
                                    PipelineSchedule::interleaved, PipelineSchedule::zb_h1, PipelineSchedule::zb_h2});
    if (in.layout.schedule == PipelineSchedule::interleaved) in.layout.vpp = 2;
    in.layout.uneven_stages = dice.roll(2) == 0;
    if (in.layout.uneven_stages) in.model.layers = 6 + dice.roll(9);
    in.options.zero = dice.roll(4);
    in.options.recompute = static_cast<Recompute>(dice.roll(3));
    in.options.overlap_dp = dice.roll(2) == 0;
    in.options.overlap_pp = dice.roll(2) == 0;
    in.options.expert_imbalance = 1 + 0.5 * dice.roll(3);
    in.options.moe_capacity_factor = 0.75 * dice.roll(3);
    in.options.bucket = Bytes(1'000'000 << dice.roll(6));
    in.options.launch = dice.roll(3) == 0 ? Seconds(20e-6) : Seconds{};
    in.options.overlap_ep = dice.roll(2) == 0;
    in.options.overlap_cp = dice.roll(2) == 0;
    if (in.options.overlap_ep == in.options.overlap_cp) in.options.moe_token_dispatcher = TokenDispatcher::flex;
    in.batch.global_batch = 2 * in.layout.dp * in.layout.pp * (1 + dice.roll(3));
    if (!check_step(in, fabric.rank_count(), {}).empty()) continue;
    // Split gradients in a pipeline: sharded_walk_test.cpp.
    const bool replicas = in.layout.replicas() > 1 || in.layout.expert_replicas() > 1;
    if (in.options.zero >= 2 && replicas && stays_whole(in)) continue;
    ++cases;
    with_ep += in.layout.ep > 1 ? 1 : 0;
    CAPTURE(cases, in.layout.tp, in.layout.pp, in.layout.cp, in.layout.dp, in.layout.ep, in.layout.etp, in.options.zero,
            to_string(in.layout.schedule), in.model.layers, in.layout.vpp);
    const double rate = dice.pick({3e9, 30e9, 1e12});
    const StepPlan plan = planned(in, priced(2e-6, rate));
    const StepEstimate estimate = estimate_step(plan);
    CHECK(estimate.total.count() == Approx(simulated(plan, fabric).count()).epsilon(1e-8));
    CHECK(estimate.breakdown.total().count() == Approx(estimate.total.count()).epsilon(1e-9));
    Seconds exchanges{};
    const StagePlan& stage = plan.stages[plan.slowest()];
    for (const CollectiveCost& c : stage.collectives)
      if (c.dimension == Dimension::ep) exchanges += c.time * static_cast<double>(c.count);
    if (in.options.overlap_ep)
      CHECK(estimate.breakdown.ep_exposed.count() <= exchanges.count() * (1 + 1e-9));
    else
      CHECK(estimate.breakdown.ep_exposed.count() == Approx(exchanges.count()).epsilon(1e-9));
  }
  CHECK(with_ep > 200);
}

TEST_CASE("hidden, the exchange of a pass shows as far as it is longer than its kernels") {
  for (const double rate : {1e9, 20e9, 1e12}) {
    StepInputs in = spread(small_experts(), 4);
    const StepPlan open = planned(in, priced(0, rate));
    in.options.overlap_ep = true;
    const StepPlan hidden = planned(in, priced(0, rate));
    const UnitWork &bare = open.stages[0].works[1], &under = hidden.stages[0].works[1];
    for (const auto pass : {&UnitWork::forward, &UnitWork::backward}) {
      Seconds computing{}, exchange{}, whole{};
      for (const Stretch& s : bare.*pass) (s.category == Category::ep ? exchange : computing) += s.time;
      for (const Stretch& s : under.*pass) whole += s.length();
      CHECK(whole.count() == Approx(std::max(computing, exchange).count()).epsilon(1e-12));
    }
    const StepResult a = forecast_step(in, cluster(8), {}, Method::both).value();
    CHECK(a.layer.ep_comm > Seconds{});
    CHECK(a.layer.ep_exposed <= a.layer.ep_comm);
    CHECK(a.step.count() == Approx(a.estimate.count()).epsilon(0.01));
  }
}

TEST_CASE("forecasts of both methods with experts agree, and their parts sum to the step") {
  const Fabric fabric = cluster(4);
  for (const int pp : {1, 2})
    for (const int ep : {1, 2, 4}) {
      StepInputs in = spread(small_deepseek(), ep, 2, 4);
      in.layout.pp = pp;
      in.batch.global_batch = 32;
      const auto result = forecast_step(in, fabric, {}, Method::both);
      REQUIRE(result.ok());
      CHECK(result->breakdown.total().count() == Approx(result->step.count()).epsilon(1e-9));
      CHECK(result->critical_path->time.total().count() == Approx(result->step.count()).epsilon(1e-9));
      CHECK(result->step.count() == Approx(result->estimate.count()).epsilon(0.01));
      CHECK(result->critical_path->time.ep.count() == Approx(result->breakdown.ep_exposed.count()).epsilon(0.3));
      CHECK((result->breakdown.ep_exposed > Seconds{}));
    }
}

TEST_CASE("the family's closed form of layouts with experts is the forecast's") {
  const Fabric fabric = cluster(8);
  const CollectiveTime time = memoized(step_prices(fabric, {}));
  int compared = 0;
  for (const TransformerConfig& model : {small_experts(), small_deepseek()})
    for (const auto& [tp, pp, dp, cp, ep, etp] : {std::array{1, 1, 8, 1, 8, 0},
                                                  {1, 2, 4, 1, 4, 0},
                                                  {2, 1, 4, 1, 2, 0},
                                                  {2, 2, 4, 1, 8, 1},
                                                  {2, 4, 2, 2, 4, 0},
                                                  {4, 1, 2, 1, 4, 2},
                                                  {1, 4, 4, 1, 2, 0},
                                                  {2, 1, 1, 1, 2, 1}}) {
      StepInputs in = spread(model, ep, tp, dp, etp);
      in.options.overlap_ep = dp > 2;
      if (cp == 1) in.options.moe_token_dispatcher = TokenDispatcher::flex;
      std::optional<LayoutFamily> family;
      for (const int micro_batch : {1, 2})
        for (const Recompute recompute : {Recompute::none, Recompute::full})
          for (const int zero : {0, 1, 2, 3}) {
            in.batch.global_batch = 16;
            LayoutChoice choice{tp, pp, dp, micro_batch, tp > 1, recompute, zero, 1, cp, ep};
            put(choice, in);
            if (!check_step(in, fabric.rank_count(), {}).empty()) continue;
            if (!family) family.emplace(in, fabric, time);
            CAPTURE(tp, pp, dp, cp, ep, etp, zero, micro_batch);
            const auto quick = family->estimate(choice);
            REQUIRE(quick.ok());
            const StepResult slow = forecast_step(in, fabric, {}, Method::estimate).value();
            CHECK(quick->step.count() == Approx(slow.step.count()).epsilon(1e-9));
            CHECK(quick->breakdown.ep_exposed.count() == Approx(slow.breakdown.ep_exposed.count()).epsilon(1e-9));
            CHECK(quick->breakdown.dp_exposed.count() == Approx(slow.breakdown.dp_exposed.count()).margin(1e-9));
            ++compared;
          }
      CHECK(family);
    }
  CHECK(compared > 100);
}

TEST_CASE("what does not go with experts is refused with the nearest that does") {
  const auto only = [](const StepInputs& in) {
    const Diagnostics found = check_step(in, 64, {});
    INFO(to_text(found));
    REQUIRE(found.size() == 1);
    return found[0];
  };
  StepInputs in = spread(small_experts(), 3);
  CHECK(only(in).message == "ep 3 does not divide the 8 experts, nor 4 ranks of a stage");
  CHECK(only(in).hint == "use ep 2 or 4");
  in = spread(small_experts(), 8, 1, 4);
  CHECK(only(in).message == "ep 8 does not divide 4 ranks of a stage");
  CHECK(only(in).hint == "use ep 4");
  in = spread(small_experts(), 8, 2, 4);
  CHECK(only(in).message == "ep 8 does not divide 4 ranks of a stage over expert tp 2");
  in = spread(small_experts(), 2, 2, 4, 3);
  CHECK(only(in).message == "expert tp 3 does not divide the width of an expert, 1024");
  in = spread(small_experts(), 2, 2, 4);
  in.layout.sequence_parallel = false;
  CHECK(only(in).message == "experts with tp 2 need sequence parallelism");
  in = spread(small_experts(), 2, 2, 4, 1);
  in.layout.order = RankOrder::tp_pp_dp;
  CHECK(only(in).message == "etp 1 has no place in the order tp-pp-dp");
  in = spread(small_model(), 2);
  CHECK(only(in).message == "ep 2 needs a model with experts");
  in = spread(small_model(), 1);
  in.options.expert_imbalance = 1.5;
  CHECK(only(in).message == "expert_imbalance has no effect on a dense model");
  in = spread(small_model(), 1);
  in.options.moe_capacity_factor = 1.5;
  CHECK(only(in).message == "moe_capacity_factor has no effect on a dense model");
  in = spread(small_model(), 1);
  in.options.overlap_ep = true;
  CHECK(only(in).message == "overlap_ep has no effect on a dense model");
  in = spread(small_model(), 1);
  in.options.moe_token_dispatcher = TokenDispatcher::flex;
  CHECK(only(in).message == "moe_token_dispatcher has no effect on a dense model");
  in = spread(small_experts(), 1);
  in.options.expert_imbalance = 0.5;
  CHECK(only(in).message == "expert_imbalance is 0.5");
  in = spread(small_experts(), 1);
  in.model.experts.top_k = 9;
  CHECK(only(in).message == "a token cannot go to 9 of 8 experts");
  in = spread(small_experts(), 1);
  in.model.experts.groups = 3;
  CHECK(only(in).message == "3 groups do not divide 8 experts");
  CHECK(only(in).hint == "use groups 2 or 4");
  in.model.experts.groups = 4;
  in.model.experts.group_top_k = 5;
  CHECK(only(in).message == "a token cannot go to 5 of 4 groups of experts");
  in.model.experts.top_k = 3;
  in.model.experts.group_top_k = 1;
  CHECK(only(in).message == "group_top_k 1 leaves a token 2 experts, fewer than top_k 3");
  CHECK(only(in).hint == "use group_top_k 2 or more");
  in.model.experts.groups = 0;
  CHECK(only(in).message == "groups is 0");
  in = spread(small_experts(), 1);
  in.model.experts.dense_layers = 8;
  CHECK(only(in).message == "none of the 8 layers has experts");
  in = spread(small_deepseek(), 1);
  in.model.latent.value = 0;
  CHECK(only(in).message == "value is 0");
  in = spread(small_deepseek(), 1);
  in.model.kv_heads = 8;
  CHECK_THAT(only(in).message, Catch::Contains("latent attention has keys and values for each of the 16 heads"));
  in = spread(small_experts(), 4, 1, 8);
  in.options.zero = 3;
  in.layout.dp_shard = 2;
  CHECK(only(in).message ==
        "the 2 ranks of a stage that dp_shard 2 splits states over are no whole groups of the 4 that ep 4 and etp 1 "
        "spread all experts over");
  CHECK(only(in).hint == "use a dp_shard that tp x cp makes a multiple of 4, or leave it out");
  in.layout.dp_shard = 4;
  CHECK(check_step(in, 64, {}).empty());
}

TEST_CASE("buckets of experts that alone exchange gradients are refused where they cut these into dust, too") {
  // Two ranks of TP have the same whole experts: 8 layers x 8 experts x 3 x 1024 x 1024 gradients of 4 bytes, 768 MiB,
  // of which a ten-thousandth is 80530.6 bytes. The rest nobody else has.
  StepInputs in = spread(small_experts(), 1, 2, 1, 1);
  const double gradients = 4.0 * 8 * 8 * 3 * 1024 * 1024;
  in.options.bucket = Bytes(static_cast<std::int64_t>(gradients / 10'000));
  const Diagnostics found = check_step(in, 8, {});
  REQUIRE(found.size() == 1);
  CHECK(found.front().message ==
        "a gradient bucket of 78.64 KiB cuts 768 MiB of gradients into more than 10000 pieces");
  in.options.bucket = *in.options.bucket + Bytes(1);
  CHECK(check_step(in, 8, {}).empty());
  in.layout.etp = 0;
  in.options.bucket = Bytes(1);
  CHECK(check_step(in, 8, {}).empty());  // nobody has the same parameters
}
