// What hints and warnings offer is tried: put in, it does what it was offered for. Laws over drawn steps.
#include <catch2/catch.hpp>

#include <map>
#include <regex>

#include "collcast/base/units.hpp"
#include "inputs.hpp"
#include "support/dice.hpp"
#include "workload/memory/memory_remedies.hpp"
#include "workload/plan.hpp"
#include "workload/serving/serving.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

template <class T>
T among(std::initializer_list<T> words, const std::string& value) {
  for (const T word : words)
    if (to_string(word) == value) return word;
  FAIL("no such word: " << value);
  return *words.begin();
}

using Setter = std::function<void(StepInputs&, const std::string&)>;
Setter degree(int ParallelLayout::*member) {
  return [member](StepInputs& in, const std::string& value) { in.layout.*member = std::stoi(value); };
}

PrecisionAwareOptimizer& aware(StepInputs& in) {
  auto& optimizer = in.options.precision_aware_optimizer;
  return optimizer ? *optimizer : optimizer.emplace();
}

/// Everything that is offered anywhere; an unknown path fails.
void put(StepInputs& in, const std::string& path, const std::string& value) {
  static const std::map<std::string, Setter> known{
      {"layout.tp", degree(&ParallelLayout::tp)},
      {"layout.pp", degree(&ParallelLayout::pp)},
      {"layout.dp", degree(&ParallelLayout::dp)},
      {"layout.cp", degree(&ParallelLayout::cp)},
      {"layout.ep", degree(&ParallelLayout::ep)},
      {"layout.etp", degree(&ParallelLayout::etp)},
      {"layout.vpp", degree(&ParallelLayout::vpp)},
      {"layout.dp_shard", degree(&ParallelLayout::dp_shard)},
      {"layout.sequence_parallel", [](StepInputs& in, const auto& v) { in.layout.sequence_parallel = v == "true"; }},
      {"layout.uneven_stages", [](StepInputs& in, const auto& v) { in.layout.uneven_stages = v == "true"; }},
      {"layout.order",
       [](StepInputs& in, const auto& v) {
         in.layout.order = among({RankOrder::tp_pp_dp, RankOrder::tp_cp_ep_dp_pp, RankOrder::dp_pp_tp}, v);
       }},
      {"layout.cp_exchange",
       [](StepInputs& in, const auto& v) {
         in.layout.cp_exchange = among({ContextExchange::ring, ContextExchange::ulysses}, v);
       }},
      {"layout.schedule",
       [](StepInputs& in, const auto& v) {
         in.layout.schedule =
             among({PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved, PipelineSchedule::zb_h1}, v);
       }},
      {"batch.micro_batch", [](StepInputs& in, const auto& v) { in.batch.micro_batch = std::stoi(v); }},
      {"batch.global_batch", [](StepInputs& in, const auto& v) { in.batch.global_batch = std::stoi(v); }},
      {"inference.batch", [](StepInputs& in, const auto& v) { in.serving->batch = std::stoi(v); }},
      {"inference.kv_precision", [](StepInputs& in, const auto&) { in.serving->kv_bytes = 1; }},
      {"inference.load.max_batched_tokens",
       [](StepInputs& in, const auto& v) { in.serving->load->max_batched_tokens = std::stoi(v); }},
      {"inference.microbatches",
       [](StepInputs& in, const auto& v) {
         in.serving->micro_batches = std::stoi(v);
         in.serving->cut_by_stages = false;
       }},
      {"training.attention",
       [](StepInputs& in, const auto& v) {
         in.options.attention = among({Attention::flash, Attention::unfused}, v);
       }},
      {"training.cross_entropy_loss_fusion", [](StepInputs& in, const auto& v) { in.options.fuse_loss = v == "true"; }},
      {"training.reshard_after_forward",
       [](StepInputs& in, const auto& v) { in.options.reshard_after_forward = v == "true"; }},
      {"training.overlap_dp", [](StepInputs& in, const auto& v) { in.options.overlap_dp = v == "true"; }},
      {"training.align_grad_reduce", [](StepInputs& in, const auto& v) { in.options.align_grad_reduce = v == "true"; }},
      {"training.overlap_pp", [](StepInputs& in, const auto& v) { in.options.overlap_pp = v == "true"; }},
      {"training.communication.gradients",
       [](StepInputs& in, const auto& v) {
         in.options.communication.gradients = among({WireFormat::bf16, WireFormat::fp8}, v);
       }},
      {"training.no_sync", [](StepInputs& in, const auto& v) { in.options.no_sync = v == "true"; }},
      {"training.overlap_cp", [](StepInputs& in, const auto& v) { in.options.overlap_cp = v == "true"; }},
      {"training.overlap_ep", [](StepInputs& in, const auto& v) { in.options.overlap_ep = v == "true"; }},
      {"training.zero", [](StepInputs& in, const auto& v) { in.options.zero = std::stoi(v); }},
      {"training.precision_aware_optimizer.exp_avg_dtype",
       [](StepInputs& in, const auto&) { aware(in).exp_avg_dtype = StateFormat::bf16; }},
      {"training.precision_aware_optimizer.exp_avg_sq_dtype",
       [](StepInputs& in, const auto&) { aware(in).exp_avg_sq_dtype = StateFormat::bf16; }},
      {"training.gradient_bytes", [](StepInputs& in, const auto& v) { in.options.gradient_bytes = std::stoi(v); }},
      {"training.cpu_offloading_num_layers",
       [](StepInputs& in, const auto& v) { in.options.cpu_offloading_num_layers = std::stoi(v); }},
      {"training.recompute",
       [](StepInputs& in, const auto& v) {
         in.options.recompute = among({Recompute::none, Recompute::selective, Recompute::full}, v);
       }},
  };
  const auto found = known.find(path);
  if (found == known.end()) FAIL("no such path: " << path);
  found->second(in, value);
}

/// "layout.tp: 4, layout.dp: 2 (54.6 GiB)": what is set, and what is said of it.
struct Offered {
  std::vector<std::pair<std::string, std::string>> values;
  std::string said;
};
std::vector<Offered> offers_in(const std::string& text) {
  static const std::regex one(
      R"(((?:(?:layout\.|training\.|batch\.|inference\.|nodes)[a-z_.]*: [a-z0-9-]+(?:, )?)+) \(([^)]*)\))");
  static const std::regex value(R"(([a-z_.]+): ([a-z0-9-]+))");
  std::vector<Offered> out;
  for (std::sregex_iterator i(text.begin(), text.end(), one), end; i != end; ++i) {
    Offered offered{{}, (*i)[2]};
    const std::string values = (*i)[1];
    for (std::sregex_iterator v(values.begin(), values.end(), value); v != end; ++v)
      offered.values.emplace_back((*v)[1], (*v)[2]);
    out.push_back(std::move(offered));
  }
  return out;
}

/// `in` with what is offered, and the ranks of the machine then.
std::pair<StepInputs, int> with(StepInputs in, const Offered& offered, int ranks) {
  for (const auto& [path, value] : offered.values) {
    if (path == "nodes")
      ranks = 8 * std::stoi(value);
    else
      put(in, path, value);
  }
  if (in.serving) in.serving->cut(in.layout);  // as a scenario is read
  return {in, ranks};
}

StepInputs drawn_step(Dice& dice) {
  StepInputs in =
      inputs(small_model(), layout(dice.pick({1, 2, 4, 8}), dice.pick({1, 1, 2, 4}), dice.pick({1, 2, 4, 8})), 1024, 8);
  in.options.zero = dice.roll(4);
  in.options.gradient_bytes = dice.pick({2, 4});
  in.options.recompute = dice.pick({Recompute::none, Recompute::full});
  in.layout.sequence_parallel = dice.roll(2) == 0;
  if (dice.roll(3) == 0) in.layout.order = dice.pick({RankOrder::dp_pp_tp, RankOrder::tp_cp_ep_dp_pp});
  if (in.layout.order == RankOrder::tp_cp_ep_dp_pp && dice.roll(2) == 0) {
    in.layout.cp = dice.pick({2, 4});
    in.layout.cp_exchange = dice.pick({ContextExchange::ring, ContextExchange::ulysses});
    in.options.overlap_cp = dice.roll(2) == 0;
  }
  if (dice.roll(3) == 0) {
    in.model.experts = {8, 2, 512, 0};
    in.layout.sequence_parallel = true;
    in.layout.ep = dice.pick({1, 2, 4});
    if (in.layout.order == RankOrder::tp_cp_ep_dp_pp) in.layout.etp = dice.pick({0, 1});
  }
  return in;
}

}  // namespace

TEST_CASE("a change that is offered where a step does not fit fits") {
  Dice dice(5);
  int offered = 0, on_more = 0;
  for (int step = 0; step < 300; ++step) {
    StepInputs in = drawn_step(dice);
    if (!check_step(in, 32, {}).empty()) continue;
    const Bytes peak = peak_memory(in, 8).peak();
    in.gpu.memory = Bytes(peak.value() / 100 * dice.pick({50, 80, 95, 99}));
    if (peak_memory(in, 8).fits()) continue;
    const std::string text = workload::what_would_fit(in, four_nodes());
    INFO("step " << step << ": " << text);
    const std::size_t more = text.find("GPUs it fits with");
    if (more != std::string::npos) {
      REQUIRE(offers_in(text.substr(more)).size() == 1);
      const auto [changed, ranks] = with(in, offers_in(text.substr(more)).front(), 32);
      CHECK(check_step(changed, ranks, {}).empty());
      CHECK(changed.layout.world() > in.layout.world());
      CHECK(text.find("on " + std::to_string(changed.layout.world()) + " GPUs it fits") != std::string::npos);
      CHECK(peak_memory(changed, 8).fits());
      ++on_more;
    }
    if (text.find("would fit") != std::string::npos) continue;  // "not even ..."
    if (text.find("none of the changes tried") != std::string::npos) {
      CHECK((more != std::string::npos || offers_in(text).empty()));
      continue;
    }
    CHECK_FALSE(offers_in(text).empty());
    for (const Offered& one : offers_in(text)) {
      const auto [changed, ranks] = with(in, one, 32);
      CHECK(check_step(changed, ranks, {}).empty());
      CHECK(changed.layout.world() == in.layout.world());
      CHECK(peak_memory(changed, 8).fits());
      ++offered;
    }
  }
  CHECK(offered > 100);
  CHECK(on_more > 5);
}

TEST_CASE("where nothing makes a step fit on its GPUs, the fewest more that a degree brings are named") {
  // 80 layers on one GPU of 80 GB: more than a TB of states. Of the stages that 80 layers go into 20 hold 4 layers each
  // and the first the embedding, which is too much, 40 hold 2; TP goes up to the 8 GPUs of a node.
  const StepInputs in = inputs(llama_70b(80), layout(1, 1, 1), 1024, 16);
  const auto fits = [&](int pp, int tp) {
    StepInputs more = in;
    more.layout.pp = pp;
    more.layout.tp = tp;
    return peak_memory(more, 8).fits();
  };
  REQUIRE((!fits(20, 1) && !fits(1, 8) && fits(40, 1)));
  const std::string text = workload::what_would_fit(in, four_nodes());
  CHECK_THAT(text, Catch::Contains("; on 40 GPUs it fits with layout.pp: 40, nodes: 5 ("));
}

TEST_CASE("1F1B is offered in the place of GPipe on one stage, too, where it holds one micro-batch of all") {
  for (const int pp : {1, 2}) {
    INFO("pp " << pp);
    StepInputs plain = small_step(1, pp, 1), in = plain;
    in.layout.schedule = PipelineSchedule::gpipe;
    in.gpu.memory = peak_memory(plain, 8).peak();
    REQUIRE_FALSE(peak_memory(in, 8).fits());
    CHECK_THAT(workload::what_would_fit(in, four_nodes()),
               Catch::Contains("layout.schedule: 1f1b (" + format_bytes(volume(in.gpu.memory)) + ")"));
    CHECK_THAT(workload::what_would_fit(plain, four_nodes()), !Catch::Contains("layout.schedule"));
  }
}

TEST_CASE("gradients of 4 bytes are offered where a copy of those of 2 bytes breaks the limit, and pp for tp") {
  // Of one rank: 4 bytes of gradients and no copy are less than 2 bytes and a copy of 4.
  StepInputs in = inputs(llama_70b(1), layout(1, 1, 1), 1024, 2);
  in.options.recompute = Recompute::full;
  in.options.gradient_bytes = 4;
  in.gpu.memory = peak_memory(in, 8).peak();
  in.options.gradient_bytes = 2;
  REQUIRE_FALSE(peak_memory(in, 8).fits());
  CHECK_THAT(workload::what_would_fit(in, four_nodes()), Catch::Contains("training.gradient_bytes: 4 ("));
  // One replica: stages for TP ranks, or the other way round, is all that is left.
  in = inputs(llama_70b(8), layout(8, 1, 1), 1024, 16);
  in.options.recompute = Recompute::full;
  in.batch.micro_batch = 1;
  in.options.embedding_and_logits = false;
  in.layout.sequence_parallel = true;
  StepInputs swapped = in;
  swapped.layout.tp = 4;
  swapped.layout.pp = 2;
  in.gpu.memory = Bytes((peak_memory(in, 8).peak() + peak_memory(swapped, 8).peak()).value() / 2);
  const bool by_stages = peak_memory(swapped, 8).peak() < peak_memory(in, 8).peak();
  CHECK_THAT(workload::what_would_fit(by_stages ? in : swapped, four_nodes()),
             Catch::Contains(by_stages ? "layout.pp: 2, layout.tp: 4 (" : "layout.tp: 8, layout.pp: 1 ("));
}

TEST_CASE("a change that is offered where a batch to be served does not fit fits, and can be set") {
  Dice dice(6);
  int offered = 0, batches = 0, nodes = 0;
  for (int step = 0; step < 300; ++step) {
    const int cut = dice.pick({1, 1, 2, 5});
    const bool continuous = dice.roll(4) == 0;
    Serving serving{cut * (1 + dice.roll(400)), 500, 20, continuous ? 1 : cut, 2};
    if (continuous) serving.batching = Batching::continuous;
    StepInputs in =
        inputs(small_model(), layout(dice.pick({1, 2, 8}), continuous ? 1 : dice.pick({1, 2}), dice.pick({1, 2})),
               serving.prompt_tokens, 1);
    in.serving = serving;
    in.serving->cut_by_stages = step % 2 == 1;
    in.serving->cut(in.layout);
    in.options.optimizer = false;
    in.layout.sequence_parallel = dice.roll(4) == 0;
    const int ranks = in.layout.world() > 8 ? 16 : 8;
    if (!check_step(in, ranks, {}).empty()) continue;
    const Bytes peak = peak_memory(in, 8).peak();
    in.gpu.memory = Bytes(peak.value() / 100 * dice.pick({40, 80, 95}));
    const std::string text = workload::what_would_fit(in, cluster(ranks / 8));
    INFO("step " << step << ", batch " << serving.batch << ": " << text);
    if (text.find("would fit") != std::string::npos) continue;  // "not even ..."
    for (const Offered& one : offers_in(text)) {
      const auto [changed, needed] = with(in, one, ranks);
      CHECK(check_step(changed, needed, {}).empty());
      CHECK(peak_memory(changed, 8).fits());
      CHECK(one.said == format_bytes(volume(peak_memory(changed, 8).peak())));
      ++offered;
      if (one.values.size() == 1 && one.values.front().first == "inference.batch") {
        ++batches;
        // The next one that goes together is too large, or more than was asked for.
        StepInputs more = changed;
        do ++more.serving->batch, more.serving->cut(more.layout);
        while (!check_step(more, needed, {}).empty() || more.serving->micro_batches != changed.serving->micro_batches);
        if (more.serving->batch <= in.serving->batch) CHECK_FALSE(peak_memory(more, 8).fits());
      }
      if (needed > ranks) ++nodes;
    }
  }
  CHECK(offered > 100);
  CHECK(batches > 30);
  CHECK(nodes > 10);
}

TEST_CASE("more TP is not offered for a cache that has no more KV heads to split") {
  Serving serving{40'000, 500, 20, 40'000, 2};  // one prompt at a time: most is cache, far more than NCCL's buffers
  StepInputs in = inputs(small_model(), layout(8, 1, 1), 500, 1);  // 8 KV heads
  in.serving = serving;
  in.options.optimizer = false;
  const MemoryUse use = peak_memory(in, 8);
  in.gpu.memory = Bytes(use.peak().value() - use.kv_cache.value() / 4);
  const std::string text = workload::what_would_fit(in, cluster(1));
  INFO(text);
  CHECK_THAT(text, Catch::Contains("layout.pp: 2, nodes: 2 ("));
  CHECK_THAT(text, !Catch::Contains("layout.tp: 16"));
}

namespace {

/// How many changes the warning of a low ratio offers, each of which does what is said, in a shorter step.
int raising_changes(const StepInputs& in) {
  const StepResult r = forecast(in, four_nodes(), Method::estimate);
  if (!(r.compute_to_communication > 0 && r.compute_to_communication < 2)) return 0;
  const auto warning = std::ranges::find_if(
      r.warnings, [](const std::string& w) { return w.find("a layer computes only") != std::string::npos; });
  REQUIRE(warning != r.warnings.end());
  INFO(*warning);
  CHECK(warning->find("smaller tp than 1") == std::string::npos);
  int offered = 0;
  for (const Offered& one : offers_in(*warning)) {
    const auto [changed, ranks] = with(in, one, 32);
    REQUIRE(check_step(changed, ranks, {}).empty());
    CHECK(changed.layout.world() == in.layout.world());
    const StepResult then = forecast(changed, four_nodes(), Method::estimate);
    const double ratio = then.compute_to_communication;
    ++offered;
    CHECK(then.step < r.step);
    if (one.said == "nothing to wait for") {
      CHECK(ratio == 0);
      continue;
    }
    CHECK(ratio == Approx(std::stod(one.said)).margin(0.006));
    CHECK(ratio > r.compute_to_communication);
  }
  return offered;
}

}  // namespace

TEST_CASE("a change that is offered to raise the ratio raises it to what is said") {
  Dice dice(7);
  int offered = 0;
  for (int step = 0; step < 120; ++step) {
    StepInputs in = drawn_step(dice);
    in.gpu.peak["bf16"] = FlopRate(400e12);
    in.gpu.memory_bandwidth = Bandwidth(10e12);
    if (!check_step(in, 32, {}).empty()) continue;
    INFO("step " << step);
    offered += raising_changes(in);
  }
  CHECK(offered > 20);
}

TEST_CASE("a server that communicates for long is warned, and what is offered raises its ratio to what is said") {
  Dice dice(9);
  int warned = 0, offered = 0;
  for (int step = 0; step < 60; ++step) {
    const bool continuous = dice.roll(2) == 0;
    Serving serving{8 * (1 + dice.roll(8)), dice.pick({64, 512}), 20, 1, 2};
    if (continuous) serving.batching = Batching::continuous;
    StepInputs in = inputs(dice.roll(3) == 0 ? small_experts() : small_model(),
                           layout(dice.pick({1, 2, 8}), continuous ? 1 : dice.pick({1, 2}), dice.pick({1, 2})),
                           serving.prompt_tokens, 1);
    in.serving = serving;
    in.serving->cut_by_stages = true;
    in.serving->cut(in.layout);
    in.options.optimizer = false;
    in.gpu.peak["bf16"] = FlopRate(dice.pick({100, 400}) * 1e12);
    in.gpu.memory_bandwidth = Bandwidth(10e12);
    if (!check_step(in, 32, {}).empty()) continue;
    const StepResult r = forecast(in, four_nodes(), Method::estimate);
    const Seconds exposed = r.breakdown.tp_exposed + r.breakdown.ep_exposed;
    CHECK(r.compute_to_communication == Approx(exposed > Seconds{} ? r.breakdown.compute / exposed : 0));
    const auto warning = std::ranges::find_if(
        r.warnings, [](const std::string& w) { return w.starts_with("prompts and tokens together compute only"); });
    const bool low = r.compute_to_communication > 0 && r.compute_to_communication < 2;
    CHECK(low == (warning != r.warnings.end()));
    if (!low) continue;
    INFO("step " << step << ": " << *warning);
    CHECK_THAT(*warning, Catch::Contains("would"));
    ++warned;
    for (const Offered& one : offers_in(*warning)) {
      auto [changed, ranks] = with(in, one, 32);
      changed.serving->cut(changed.layout);
      REQUIRE(check_step(changed, ranks, {}).empty());
      CHECK(changed.layout.world() == in.layout.world());
      const StepResult then = forecast(changed, four_nodes(), Method::estimate);
      CHECK(then.tokens_per_s_per_gpu >= Approx(r.tokens_per_s_per_gpu));
      ++offered;
      if (one.said == "nothing to wait for") {
        CHECK(then.compute_to_communication == 0);
        continue;
      }
      CHECK(then.compute_to_communication == Approx(std::stod(one.said)).margin(0.006));
      CHECK(then.compute_to_communication > r.compute_to_communication);
    }
  }
  CHECK(warned > 5);
  CHECK(offered > 10);
}

TEST_CASE(
    "what is offered raises computing to communication where the slowest stage is another then, as stages lie "
    "otherwise") {
  int offered = 0;
  for (const ContextExchange exchange : {ContextExchange::ring, ContextExchange::ulysses})
    for (const int tp : {1, 2, 4})
      for (const int pp : {2, 4})
        for (const int dp : {1, 2, 3}) {
          StepInputs in = inputs(small_model(), layout(tp, pp, dp), 1536, 8);
          in.model.layers = 16;
          in.model.heads = in.model.kv_heads = 12;
          in.layout.cp = 3;
          in.layout.cp_exchange = exchange;
          in.layout.order = RankOrder::tp_cp_ep_dp_pp;
          in.layout.sequence_parallel = true;
          in.options.embedding_and_logits = false;
          in.gpu.peak["bf16"] = FlopRate(400e12);
          in.gpu.memory_bandwidth = Bandwidth(10e12);
          if (!check_step(in, 32, {}).empty()) continue;
          CAPTURE(tp, pp, dp, to_string(exchange));
          offered += raising_changes(in);
        }
  CHECK(offered > 10);
}

TEST_CASE("more than a third of a step exposed is warned about, and what is offered lowers it to what is said") {
  Dice dice(11);
  int warned = 0, offered = 0;
  for (int step = 0; step < 120; ++step) {
    StepInputs in = drawn_step(dice);
    in.gpu.peak["bf16"] = FlopRate(400e12);
    in.gpu.memory_bandwidth = Bandwidth(10e12);
    if (!check_step(in, 32, {}).empty()) continue;
    const StepResult r = forecast(in, four_nodes(), Method::estimate);
    const Breakdown& b = r.breakdown;
    const Seconds layers = b.tp_exposed + b.cp_exposed + b.ep_exposed, ends = b.pp_exposed + b.dp_exposed;
    const double share = (layers + ends) / b.total();
    const bool low_ratio = r.compute_to_communication > 0 && r.compute_to_communication < 2;
    const auto warning = std::ranges::find_if(
        r.warnings, [](const std::string& w) { return w.starts_with("exposed communication takes"); });
    INFO("step " << step << ": " << share);
    if (share <= 1.0 / 3) CHECK(warning == r.warnings.end());
    if (share > 1.0 / 3) CHECK((low_ratio || warning != r.warnings.end()));
    if (warning == r.warnings.end()) continue;
    ++warned;
    INFO(*warning);
    for (const Offered& one : offers_in(*warning)) {
      const auto [changed, ranks] = with(in, one, 32);
      REQUIRE(check_step(changed, ranks, {}).empty());
      CHECK(changed.layout.world() == in.layout.world());
      const StepResult then = forecast(changed, four_nodes(), Method::estimate);
      const Breakdown& t = then.breakdown;
      const double lower =
          (t.tp_exposed + t.cp_exposed + t.ep_exposed + t.pp_exposed + t.dp_exposed) / then.breakdown.total();
      CHECK(100 * lower == Approx(std::stod(one.said)).margin(0.501));
      CHECK(lower < share);
      CHECK(then.step / changed.batch.global_batch < r.step / in.batch.global_batch);
      ++offered;
    }
  }
  CHECK(warned > 10);
  CHECK(offered > 20);
}

TEST_CASE("TP groups that lie apart are told to be laid side by side") {
  StepInputs in = small_step(8, 1, 4);
  in.layout.order = RankOrder::dp_pp_tp;
  const StepResult r = forecast(in, four_nodes(), Method::estimate);
  REQUIRE(r.compute_to_communication < 2);
  CHECK_THAT(r.warnings[0],
             Catch::Contains("most of it for TP, whose 8 GPUs lie on 4 nodes and would have room on 1; ") &&
                 Catch::Contains("layout.order: tp-pp-dp"));
}

namespace {

/// "use pp 3 or 5, or uneven_stages: true": the values, key by key.
std::vector<std::pair<std::string, std::string>> hinted(const std::string& hint) {
  static const std::regex degrees(
      R"(\b(tp|pp|dp|cp|ep|etp|vpp|dp_shard|global_batch) ([0-9]+)(?: or ([0-9]+))?(?! or))"),
      words(R"(\b(uneven_stages|sequence_parallel|cp_exchange|order|schedule|attention): ([a-z0-9-]+))"),
      samples(R"(^use ([0-9]+)(?: or ([0-9]+))?)");
  std::vector<std::pair<std::string, std::string>> out;
  const auto path = [](const std::string& key) {
    return (key == "global_batch" ? "batch." : key == "attention" ? "training." : "layout.") + key;
  };
  const std::sregex_iterator end;
  for (std::sregex_iterator i(hint.begin(), hint.end(), degrees); i != end; ++i) {
    out.emplace_back(path((*i)[1]), (*i)[2]);
    if ((*i)[3].matched) out.emplace_back(path((*i)[1]), (*i)[3]);
  }
  for (std::sregex_iterator i(hint.begin(), hint.end(), words); i != end; ++i) out.emplace_back(path((*i)[1]), (*i)[2]);
  for (std::sregex_iterator i(hint.begin(), hint.end(), samples); i != end; ++i) {
    out.emplace_back("batch.global_batch", (*i)[1]);
    if ((*i)[2].matched) out.emplace_back("batch.global_batch", (*i)[2]);
  }
  return out;
}

StepInputs drawn_misfit(Dice& dice) {
  StepInputs in = inputs(small_model(), layout(dice.pick({1, 2, 3, 4}), dice.pick({1, 2, 3, 4}), dice.pick({1, 2, 3})),
                         dice.pick({1000, 1024}), 1);
  in.model.layers = dice.pick({8, 12, 30, 61});
  in.model.heads = dice.pick({12, 16});
  in.model.kv_heads = in.model.heads / 4;
  in.layout.uneven_stages = dice.roll(4) == 0;
  in.layout.schedule = dice.pick({PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved, PipelineSchedule::zb_v,
                                  PipelineSchedule::dualpipe});
  if (in.layout.schedule == PipelineSchedule::interleaved) in.layout.vpp = dice.pick({1, 2, 3, 4});
  in.batch.micro_batch = 1;
  in.batch.global_batch = dice.pick({12, 24, 64});
  if (dice.roll(3) == 0) {
    in.layout.order = RankOrder::tp_cp_ep_dp_pp;
    in.layout.cp = dice.pick({2, 3, 4});
    in.layout.cp_exchange = dice.pick({ContextExchange::ring, ContextExchange::ulysses});
  }
  if (dice.roll(4) == 0) {
    in.model.experts = {8, 2, 512, 0};
    in.layout.sequence_parallel = dice.roll(4) != 0;
    in.layout.ep = dice.pick({1, 2, 3});
    if (in.layout.order == RankOrder::tp_cp_ep_dp_pp) in.layout.etp = dice.pick({0, 1, 2, 3});
  }
  if (dice.roll(4) == 0) {
    in.options.zero = 1;
    in.layout.dp_shard = dice.pick({1, 2, 3});
  }
  return in;
}

}  // namespace

TEST_CASE("what the only hint offers goes with the rest, or a layout that does is named") {
  constexpr int ranks = 64;
  const Location file{"s.yaml", 1, 1};
  Origins origins(file);
  origins.set("layout", file);
  Dice dice(10);
  int alone = 0, named = 0, none = 0;
  for (int step = 0; step < 12000; ++step) {
    const StepInputs in = drawn_misfit(dice);
    const Diagnostics found = check_step(in, ranks, origins);
    if (found.size() != 1) continue;
    const std::string& hint = found[0].hint;
    INFO("step " << step << ": " << to_text(found));
    constexpr std::string_view nearest = "the nearest layout that works: ";
    if (const std::size_t at = hint.find(nearest); at != std::string::npos) {
      StepInputs other = in;
      static const std::regex pair(R"(([a-z_]+) ([a-z0-9]+))");
      const std::string text = hint.substr(at + nearest.size());
      for (std::sregex_iterator i(text.begin(), text.end(), pair), end; i != end; ++i)
        put(other, "layout." + std::string((*i)[1]), (*i)[2]);
      CHECK(to_text(check_step(other, ranks, origins)) == "");
      ++named;
    } else if (hint.find("that alone does not do") != std::string::npos) {
      ++none;
    } else {
      for (const auto& [path, value] : hinted(hint)) {
        StepInputs other = in;
        put(other, path, value);
        if (path == "layout.schedule" && hint.find(value + " with vpp: 1") != std::string::npos) other.layout.vpp = 1;
        INFO(path << ": " << value);
        CHECK(to_text(check_step(other, ranks, origins)) == "");
        ++alone;
      }
    }
  }
  CHECK(alone > 100);
  CHECK(named > 100);
  CHECK(none < named / 10);
}
