// What a config.json says that a forecast does not hold is told, with what to set in its place.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "folder.hpp"
#include "samples.hpp"

using namespace collcast;

namespace {

/// A small Llama with this in front.
std::string llama_with(const std::string& more) {
  return "{" + more +
         "\"architectures\": [\"LlamaForCausalLM\"], \"num_hidden_layers\": 4, \"hidden_size\": 512, "
         "\"num_attention_heads\": 8, \"num_key_value_heads\": 8, \"intermediate_size\": 1024, \"vocab_size\": 1000}\n";
}

struct Read {
  std::vector<std::string> warnings;
  Scenario scenario;
};

/// A scenario of that model and these sections.
Read read(const Folder& folder, const std::string& config, const std::string& sections) {
  folder.file("m/config.json", config);
  const std::string file =
      folder.file("s.yaml",
                  "schema: collcast.scenario.v1\nname: s\ntopology: dgx-h100\nmodel: {config: m/config.json}\n"
                  "layout: {tp: 2, pp: 1, dp: 4}\n" +
                      sections);
  ScenarioOptions options;
  options.search = samples::shipped();
  const Result<Scenario> scenario = load_scenario(file, options);
  INFO(to_text(scenario.errors()));
  REQUIRE(scenario.ok());
  Read out{{}, *scenario};
  for (const Diagnostic& d : scenario->warnings) out.warnings.push_back(d.message + "; " + d.hint);
  return out;
}

std::string serving(const std::string& precision) {
  return "inference: {batch: 8, prompt_tokens: 128, output_tokens: 16" +
         (precision.empty() ? std::string() : ", precision: " + precision) + "}\n";
}

std::string training(const std::string& more) {
  return "batch: {global_batch: 8, micro_batch: 1, sequence: 128}\ntraining: {" + more + "}\n";
}

const std::string llama_config = llama_with("");
std::string quantized(const std::string& how) { return llama_with("\"quantization_config\": {" + how + "}, "); }

}  // namespace

TEST_CASE("weights that config.json says are quantized are told of, with the precision to set, until it is set") {
  const Folder folder("quantized");
  const std::vector<std::array<std::string, 3>> kinds{
      {"\"quant_method\": \"gptq\", \"bits\": 4", "gptq", "int4"},
      {"\"quant_method\": \"awq\", \"w_bit\": 4", "awq", "int4"},
      {"\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true, \"load_in_8bit\": false", "bitsandbytes", "int4"},
      {"\"quant_method\": \"mxfp4\"", "mxfp4", "int4"},
      {"\"quant_method\": \"fp8\", \"fmt\": \"e4m3\", \"weight_block_size\": [128, 128]", "fp8", "fp8"},
      {"\"quant_method\": \"compressed-tensors\", \"config_groups\": {\"group_0\": {\"weights\": {\"num_bits\": 8}}}",
       "compressed-tensors", "fp8"},
      {"\"quant_method\": \"modelopt\", \"quant_algo\": \"NVFP4\"", "modelopt", "fp4"}};
  const auto told = [](const Read& r) {
    return std::ranges::count_if(
        r.warnings, [](const std::string& w) { return w.find("quantization_config") != std::string::npos; });
  };
  CHECK(told(read(folder, llama_config, serving(""))) == 0);
  for (const auto& [how, method, precision] : kinds) {
    INFO(how);
    for (const std::string other : {"", "bf16"}) {
      const Read r = read(folder, quantized(how), serving(other));
      REQUIRE(r.warnings.size() == 1);
      CHECK(r.warnings[0] == "'quantization_config' is not read: the weights of '" + method +
                                 "' are counted in bf16; set inference.precision: " + precision);
      CHECK(r.scenario.step->options.precision == "bf16");
    }
    // DGX H100 has no fp4.
    if (precision != "fp4") CHECK(told(read(folder, quantized(how), serving(precision))) == 0);
  }
  const std::string unknown = quantized("\"quant_method\": \"vptq\"");
  CHECK(read(folder, unknown, serving("")).warnings.front().find("; set inference.precision to that of the weights") !=
        std::string::npos);
  CHECK(told(read(folder, unknown, serving("fp8"))) == 0);
}

TEST_CASE("quantized weights are told of in training where adapters are trained beside them") {
  const Folder folder("quantized-base");
  const std::string gptq = quantized("\"quant_method\": \"gptq\", \"bits\": 4"),
                    fp8 = quantized("\"quant_method\": \"fp8\"");
  CHECK(read(folder, gptq, training("zero: 1")).warnings.empty());
  CHECK(read(folder, fp8, training("lora: {rank: 16}")).warnings.empty());
  CHECK(read(folder, gptq, training("lora: {rank: 16, base_weights: nf4}")).warnings.empty());
  const Read r = read(folder, gptq, training("lora: {rank: 16}"));
  REQUIRE(r.warnings.size() == 1);
  CHECK(r.warnings[0].find("; set training.lora.base_weights: nf4") != std::string::npos);
}

TEST_CASE("config.json whose model_type is another architecture's is told of with both names") {
  const Folder folder("types");
  for (const std::string type : {"mamba", "t5", "whisper", "qwen2_moe"}) {
    const Read r = read(folder, llama_with("\"model_type\": \"" + type + "\", "), training("zero: 1"));
    REQUIRE(r.warnings.size() == 1);
    CHECK(r.warnings[0].starts_with("model_type '" + type +
                                    "' is not that of architecture 'LlamaForCausalLM', which is 'llama'; "));
  }
  CHECK(read(folder, llama_with("\"model_type\": \"llama\", "), training("zero: 1")).warnings.empty());
}

TEST_CASE("biases that config.json gives a kind of model that has none are told of as not counted") {
  const Folder folder("biases");
  for (const std::string key : {"attention_bias", "mlp_bias"})
    for (const std::string& sections : {serving(""), training("zero: 1")}) {
      const Read r = read(folder, llama_with("\"" + key + "\": true, "), sections);
      REQUIRE(r.warnings.size() == 1);
      CHECK(r.warnings[0].starts_with("key '" + key + "' is not read: these biases are not counted; "));
      CHECK_FALSE(r.scenario.step->model.biases);
      CHECK(read(folder, llama_with("\"" + key + "\": false, "), sections).warnings.empty());
    }
}
