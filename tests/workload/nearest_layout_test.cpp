// Stages that the layers do not go into evenly, or at all: what is offered, and the nearest layout that works.
#include "collcast/workload/nearest_layout.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "inputs.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

/// What is said of a layout that was written.
Diagnostic only_error(const StepInputs& in, int ranks) {
  Origins origins;
  origins.set("layout.pp", {"s.yaml", 1, 1});
  const Diagnostics found = check_step(in, ranks, origins);
  INFO(to_text(found));
  REQUIRE(found.size() == 1);
  return found[0];
}

StepInputs of_layers(int layers, PipelineSchedule schedule) {
  StepInputs in = small_step(2, 4, 2);
  in.model.layers = layers;
  in.layout.schedule = schedule;
  return in;
}

constexpr PipelineSchedule straight[] = {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe,
                                         PipelineSchedule::zb_h1, PipelineSchedule::interleaved};

}  // namespace

TEST_CASE("layers that pp does not divide are offered uneven stages, which keep the layout that was asked for") {
  for (const PipelineSchedule schedule : straight) {
    INFO(to_string(schedule));
    StepInputs in = of_layers(41, schedule);
    CHECK(only_error(in, 16).message == "pp 4 does not divide layers 41");
    // pp 41 is more than there are GPUs, and interleaved has no pp 1: what works is offered.
    CHECK(only_error(in, 16).hint ==
          (schedule == PipelineSchedule::interleaved ? "use uneven_stages: true" : "use pp 1, or uneven_stages: true"));
    CHECK(nearest_layout(in, 16, {}) == "tp 2, pp 4, dp 2, uneven_stages true");
    in.layout.uneven_stages = true;
    CHECK(check_step(in, 16, {}).empty());
  }
  // What each of the hint does works: no layout beside it.
  CHECK(only_error(of_layers(42, PipelineSchedule::one_f_one_b), 64).hint == "use pp 3 or 6, or uneven_stages: true");
}

TEST_CASE("uneven stages are offered where each slice gets a layer") {
  for (const PipelineSchedule schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe})
    CHECK(only_error(of_layers(3, schedule), 16).hint == "use pp 3");
  StepInputs in = of_layers(9, PipelineSchedule::interleaved);
  in.layout.vpp = 3;
  CHECK_THAT(only_error(in, 64).hint, Catch::StartsWith("use pp 3 or 9; "));
  in.layout.vpp = 2;
  // 8 micro-batches do not go round 3 stages, nor two chunks into one layer.
  CHECK(only_error(in, 64).hint == "use uneven_stages: true");
  // Twelve slices of ten layers, embedding and head.
  in.model.layers = 10;
  in.layout.vpp = 3;
  CHECK(only_error(in, 64).hint == "use uneven_stages: true");
  in.layout.uneven_stages = true;
  CHECK(check_step(in, 64, {}).empty());
}

TEST_CASE("more uneven stages than layers are told that as many stages as layers will do") {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::zb_h1}) {
    INFO(to_string(schedule));
    for (const int layers : {1, 2, 3}) {
      StepInputs in = of_layers(layers, schedule);
      in.layout.uneven_stages = true;
      if (layers == 3 || layers == 2)
        CHECK(only_error(in, 16).message == (layers == 3 ? "pp 4 leaves stages without one of the 3 layers"
                                                         : "pp 4 leaves stages without one of the 2 layers"));
      CHECK(only_error(in, 16).hint ==
            (layers == 1 ? std::string("use pp 1") : "use pp " + std::to_string(layers) + " or less"));
      for (int pp = 1; pp <= layers; ++pp) {
        in.layout.pp = pp;
        CHECK(check_step(in, 16, {}).empty());
      }
    }
  }
}

TEST_CASE("stages are uneven in the nearest layout only where that is nearer") {
  // 8 layers on 4 stages: what has to be smaller is the number of replicas.
  StepInputs in = small_step(2, 4, 4);
  CHECK(only_error(in, 16).hint == "use dp 2, or more nodes; the nearest layout that works: tp 2, pp 4, dp 2");
  // 6 layers: pp 3 would do, uneven stages leave pp as it is.
  in.model.layers = 6;
  CHECK(check_step(in, 64, {}).size() == 1);
  CHECK(nearest_layout(in, 64, {}) == "tp 2, pp 4, dp 4, uneven_stages true");
  in.layout.uneven_stages = true;
  CHECK(nearest_layout(in, 16, {}) == "tp 2, pp 4, dp 2");
}

TEST_CASE("the nearest layout of fewer GPUs is what is said of a machine that has as many, and one that works stays") {
  const StepInputs in = small_step(2, 4, 4);
  for (const int ranks : {1, 2, 4, 8, 16}) {
    const std::string nearest = nearest_layout(in, ranks, {});
    INFO(ranks << ": " << nearest);
    REQUIRE_FALSE(nearest.empty());
    CHECK_THAT(only_error(in, ranks).hint, Catch::EndsWith("; the nearest layout that works: " + nearest));
  }
  CHECK(nearest_layout(in, 32, {}) == "tp 2, pp 4, dp 4");
  StepInputs other = in;
  other.options.precision = "bf61";
  CHECK(nearest_layout(other, 16, {}).empty());
}

TEST_CASE("a dense model of which another key could not be read has no ep, and the nearest layout has none either") {
  StepInputs in = small_step(2, 4, 8);
  in.model.vocab = 1;
  in.layout.ep = 5;
  Origins origins;
  origins.set("layout.pp", {"s.yaml", 1, 1});
  origins.spoil("model.vocab");
  const std::string found = to_text(check_step(in, 16, origins));
  CHECK_THAT(found, Catch::Contains("ep 5 needs a model with experts") && Catch::Contains("needs 64 GPUs") &&
                        Catch::Contains("the nearest layout that works but for the other errors: tp 2, pp 4, dp 2") &&
                        !Catch::Contains("dp 2, ep"));
  // Whether it is dense is not known where its description could not be read.
  for (const char* path : {"model", "model.config", "model.experts", "model.experts.count"}) {
    Origins unknown = origins;
    unknown.spoil(path);
    CHECK_THAT(to_text(check_step(in, 16, unknown)), !Catch::Contains("needs a model with experts"));
  }
}

TEST_CASE("no layout is offered for a model of which nothing could be read") {
  // What divides its layers, heads and experts is not known: pp 7 and ep 3 would be offered as they are asked for.
  StepInputs in = small_step(8, 7, 2);
  in.layout.ep = 3;
  Origins origins;
  origins.set("layout.pp", {"s.yaml", 1, 1});
  origins.spoil("model");
  CHECK_THAT(to_text(check_step(in, 16, origins)),
             Catch::Contains("needs 56 GPUs") && !Catch::Contains("nearest layout"));
}

TEST_CASE("a job of too few ranks hides nothing of what else does not fit, and is one error among these") {
  const auto messages = [](const Diagnostics& found) {
    std::vector<std::string> out;
    for (const Diagnostic& one : found) out.push_back(one.message);
    return out;
  };
  Origins origins;
  origins.set("ranks", {"s.yaml", 4, 8});
  int several = 0;
  for (const int tp : {1, 2, 3})
    for (const int pp : {1, 3, 4})
      for (const int dp : {1, 2, 5})
        for (const bool ring : {false, true}) {
          StepInputs in = small_step(tp, pp, dp);
          if (ring) in.options.overlap_tp = TpOverlap::ring;
          const int world = tp * pp * dp;
          std::vector<std::string> rest = messages(check_step(in, 1'000, origins));
          CAPTURE(tp, pp, dp, ring, rest);
          // As many ranks as are needed are none too few.
          CHECK(messages(check_step(in, 1'000, origins, world)) == rest);
          if (world == 1) continue;
          const Diagnostics found = check_step(in, 1'000, origins, world - 1);
          std::vector<std::string> said = messages(found);
          const std::string few =
              "the layout needs " + std::to_string(world) + " GPUs, ranks is " + std::to_string(world - 1);
          const auto at = std::find(said.begin(), said.end(), few);
          REQUIRE(at != said.end());
          CHECK(found[static_cast<std::size_t>(at - said.begin())].where.line == 4);
          said.erase(at);
          CHECK(said == rest);
          several += rest.empty() ? 0 : 1;
        }
  CHECK(several > 10);
}

TEST_CASE("where several of a written layout do not go together, a layout that works is named") {
  Origins origins;
  origins.set("layout.tp", {"s.yaml", 1, 1});
  StepInputs in = inputs(small_model(), layout(3, 3, 2), 1024, 8);
  const auto hint = [&] { return check_step(in, 16, origins).back().hint; };
  INFO(hint());
  // 16 heads, of 16 GPUs: with tp 4, which is nearer to 3 of ratios, pp or dp would be smaller by more.
  CHECK(hint().find("; the nearest layout that works: tp 2, pp 3, dp 2, uneven_stages true") != std::string::npos);
  in.layout.tp = 4, in.layout.pp = 2;
  CHECK(check_step(in, 16, origins).empty());
  // One error alone has its hint, but one of too many GPUs none of a value that goes with the others; nobody has
  // written what a plan tries.
  in.layout.pp = 8, in.layout.dp = 1;
  CHECK(hint() == "use a smaller tp or pp, or more nodes; the nearest layout that works: tp 4, pp 4, dp 1");
  in.layout.pp = 3, in.layout.dp = 1;
  CHECK(hint().find("nearest layout") == std::string::npos);
  in.layout.tp = 3;
  CHECK(check_step(in, 16, Origins()).back().hint.find("nearest layout") == std::string::npos);
}

TEST_CASE("what else is wrong is no reason against the nearest layout, and is said to be there") {
  Origins origins;
  origins.set("layout.tp", {"s.yaml", 1, 1});
  StepInputs in = inputs(small_model(), layout(3, 3, 2), 1024, 8);
  in.layout.sequence_parallel = true;
  in.options.precision = "int8";
  const std::string works = "; the nearest layout that works but for the other errors: tp 2, pp 3, dp 2, uneven_stages";
  CHECK(to_text(check_step(in, 16, origins)).find(works) != std::string::npos);
  // A sequence that could not be read stands as 1, which no tp divides, and a machine without GPUs stands for one whose
  // file could not be read: neither is held against a layout.
  in.options.precision = "bf16";
  in.batch.sequence = 1;
  in.gpu = {};
  origins.spoil("batch.sequence");
  origins.spoil("topology.gpu");
  CHECK(to_text(check_step(in, 16, origins)).find(works) != std::string::npos);
  // Of heads that are not known only what was asked says what may be.
  origins.spoil("model.heads");
  CHECK(to_text(check_step(in, 16, origins)).find("tp 1, pp 3, dp 2, uneven_stages") != std::string::npos);
}
