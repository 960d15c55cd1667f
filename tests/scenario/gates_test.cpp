// `gates` of a scenario: units, directions, variants. Each key's slips are in keys_test.
#include <catch2/catch.hpp>

#include "samples.hpp"

using namespace collcast;

namespace {

const std::string model_and_batch =
    "model: {layers: 8, hidden: 1024, heads: 16, ffn: 4096, vocab: 1000}\nbatch: {sequence: 128, global_batch: 8}\n";
const std::string tasks = "tasks: {list: [{name: a, stream: compute, duration: 1s, category: compute}]}\n";

Result<Scenario> parse_gated(const std::string& text, const std::string& what_if = "", const std::string& set = "") {
  ScenarioOptions o;
  o.search = samples::shipped();
  o.what_if = what_if;
  if (!set.empty()) o.overrides.push_back(parse_override(set).value());
  return parse_scenario(text, "s.yaml", o);
}

}  // namespace

TEST_CASE("limits arrive in the unit of their figure, with their place") {
  const auto gates = parse_gated(samples::head + model_and_batch +
                                 "gates:\n  step_s: {max: 16 s}\n  mfu: {min: 40 %}\n  peak_bytes: {max: 76GiB}\n")
                         .value()
                         .gates;
  REQUIRE(gates.size() == 3);
  CHECK((gates[0].figure == "step_s" && gates[0].limit == 16));
  CHECK((gates[1].figure == "mfu" && gates[1].limit == 0.4));
  CHECK((gates[2].figure == "peak_bytes" && gates[2].limit == 76 * 0x1p30));
  CHECK((gates[0].where.line == 7 && gates[0].where.column == 17));
}

TEST_CASE("figures of training and of inference have gates in scenarios of their own") {
  const std::string served =
      model_and_batch.substr(0, model_and_batch.find("batch:")) + "inference: {prompt_tokens: 8, output_tokens: 8}\n";
  const auto gates =
      parse_gated(samples::head + served + "gates: {ttft_s: {max: 1s}, tokens_per_s: {min: 5tokens/s}}\n")
          .value()
          .gates;
  REQUIRE(gates.size() == 2);
  CHECK((gates[0].figure == "ttft_s" && gates[0].limit == 1));
  CHECK((gates[1].figure == "tokens_per_s" && gates[1].limit == 5));
  CHECK(to_text(parse_gated(samples::head + served + "gates: {mfu: {min: 1%}}\n").errors())
            .find("'gates.mfu' has no meaning here") != std::string::npos);
  CHECK(to_text(parse_gated(samples::head + model_and_batch + "gates: {tpot_s: {max: 1s}}\n").errors())
            .find("not of 'inference'") != std::string::npos);
}

TEST_CASE("percentiles of a run of requests have gates beside the mean's") {
  const std::string loaded = model_and_batch.substr(0, model_and_batch.find("batch:")) +
                             "inference: {prompt_tokens: 8, output_tokens: 8, batching: continuous, load: {seed: 1}}\n";
  const auto read = [&](const std::string& gates) { return parse_gated(samples::head + loaded + gates); };
  const auto gates = read("gates: {ttft_s: {max: 1s, p99: {max: 3s}}, tpot_s: {p90: {max: 20ms}}}\n").value().gates;
  REQUIRE(gates.size() == 3);
  CHECK((gates[0].figure == "ttft_s" && gates[0].limit == 1));
  CHECK((gates[1].figure == "ttft.p99_s" && gates[1].limit == 3));
  CHECK((gates[2].figure == "tpot.p90_s" && gates[2].limit == 0.02));
  CHECK((gates[1].where.line == 6 && gates[1].where.column == 38));

  const std::string said = to_text(read("gates: {ttft_s: {p9: {max: 1s}, p99: {mx: 1s}}, tpot_s: {}}\n").errors());
  CHECK(said.find("unknown key 'p9' in gates.ttft_s") != std::string::npos);
  CHECK(said.find("unknown key 'mx' in gates.ttft_s.p99") != std::string::npos);
  CHECK(said.find("required key 'max' is missing in gates.ttft_s.p99") != std::string::npos);
  CHECK(said.find("required key 'max' is missing in gates.tpot_s") != std::string::npos);
  CHECK(said.find("required key 'max' is missing in gates.ttft_s ") == std::string::npos);
}

TEST_CASE("a percentile that is misspelt is one error, with the nearest word in a file and in a path") {
  for (const char* load : {", batching: continuous, load: {seed: 1}", ""}) {
    const std::string text = samples::head + model_and_batch.substr(0, model_and_batch.find("batch:")) +
                             "inference: {prompt_tokens: 8, output_tokens: 8" + load + "}\n";
    const auto set = [&](const char* path) {
      return parse_gated(text + "what_if: {a: {set: {" + path + ": 1ms}}}\n", "a").errors();
    };
    const Diagnostics in_path = set("gates.tpot_s.p9.max");
    CAPTURE(to_text(in_path));
    REQUIRE(in_path.size() == 1);
    CHECK(in_path[0].message == "unknown path 'gates.tpot_s.p9.max'");
    CHECK(in_path[0].hint == "did you mean 'gates.tpot_s.p90.max'?");
    CHECK(set("gates.tpto_s.p90.max").at(0).hint == "did you mean 'gates.tpot_s.p90.max'?");
    CHECK(set("gates.tpot_s.mean.max").at(0).hint == "docs/formats.md lists the keys; a path joins them with dots");
    const Diagnostics in_file = parse_gated(text + "gates: {tpot_s: {p9: {max: 1ms}}}\n").errors();
    CAPTURE(to_text(in_file));
    REQUIRE(in_file.size() == 1);
    CHECK(in_file[0].message == "unknown key 'p9' in gates.tpot_s");
    CHECK(in_file[0].hint.find("did you mean 'p90'?") == 0);
  }
}

TEST_CASE("without a run of requests there is no gate on a percentile, and the place says which") {
  const std::string served =
      model_and_batch.substr(0, model_and_batch.find("batch:")) + "inference: {prompt_tokens: 8, output_tokens: 8}\n";
  const std::string text = samples::head + served + "gates: {ttft_s: {max: 1s, p99: {max: 3s}}}\n";
  CHECK(to_text(parse_gated(text).errors())
            .find("s.yaml:6:27: error: 'gates.ttft_s.p99' has no meaning here: the "
                  "scenario has no run of requests ('inference.load')") == 0);
  const std::string run = "what_if: {run: {set: {inference.batching: continuous, inference.load.seed: 1";
  CHECK(parse_gated(text + run + "}}}\n", "run").value().gates.size() == 2);
  const std::string in_variant = samples::head + served + run + ", gates.ttft_s.p99.max: 3s}}}\n";
  CHECK(parse_gated(in_variant, "run").value().gates.at(0).limit == 3);
  CHECK(parse_gated(in_variant, "run", "gates.ttft_s.p99.max=2s").value().gates.at(0).limit == 2);
  CHECK(parse_gated(in_variant, "run", "gates.tpot_s.p50.max=2s").value().gates.size() == 2);
  CHECK(to_text(parse_gated(in_variant, "run", "gates.ttft_s.p9.max=2s").errors())
            .find("did you mean 'gates.ttft_s.p99.max'?") != std::string::npos);
}

TEST_CASE("a scenario without gates has none") {
  CHECK(parse_gated(samples::head + model_and_batch).value().gates.empty());
}

TEST_CASE("a limit from the wrong side is a misspelt key") {
  const auto wrong = parse_gated(samples::head + model_and_batch + "gates: {step_s: {min: 16s}, mfu: {max: 40%}}\n");
  const std::string said = to_text(wrong.errors());
  CHECK(said.find("unknown key 'min' in gates.step_s") != std::string::npos);
  CHECK(said.find("required key 'max' is missing in gates.step_s") != std::string::npos);
  CHECK(said.find("unknown key 'max' in gates.mfu") != std::string::npos);
}

TEST_CASE("what needs a model has no gate on measured tasks") {
  CHECK(parse_gated(samples::head + tasks + "gates: {step_s: {max: 2s}, bubble_s: {max: 1s}}\n").value().gates.size() ==
        2);
  const std::string said = to_text(parse_gated(samples::head + tasks + "gates: {mfu: {min: 40%}}\n").errors());
  CHECK(said.find("s.yaml:5:9: error: 'gates.mfu' has no meaning here") == 0);
}

TEST_CASE("a variant and --set change a limit") {
  const std::string text = samples::head + model_and_batch +
                           "gates: {step_s: {max: 16s}}\nwhat_if: {slow: {set: {gates.step_s.max: 20s}}}\n";
  CHECK(parse_gated(text, "slow").value().gates.at(0).limit == 20);
  CHECK(parse_gated(text, "", "gates.step_s.max=5s").value().gates.at(0).limit == 5);
  CHECK(parse_gated(text, "", "gates.mfu.min=50%").value().gates.size() == 2);
  CHECK(to_text(parse_gated(text, "", "gates.step.max=5s").errors()).find("did you mean 'gates.step_s.max'?") !=
        std::string::npos);
}
