// Kinds of layers in a Hugging Face config.json: linear attention, and models of text inside others.
#include <catch2/catch.hpp>

#include <string>

#include "collcast/scenario/scenario.hpp"
#include "collcast/workload/config.hpp"
#include "folder.hpp"
#include "samples.hpp"

using namespace collcast;

namespace {

/// Qwen3.5's fields, 8 layers.
std::string qwen(const std::string& more = "", const std::string& architecture = "Qwen3_5MoeForCausalLM") {
  return "{\"architectures\": [\"" + architecture +
         "\"], \"hidden_size\": 1024, \"num_hidden_layers\": 8, \"num_attention_heads\": 8, \"num_key_value_heads\": 2,"
         "\"head_dim\": 256, \"vocab_size\": 32000, \"linear_num_key_heads\": 4, \"linear_num_value_heads\": 8,"
         "\"linear_key_head_dim\": 64, \"linear_value_head_dim\": 32, \"num_experts\": 16, \"num_experts_per_tok\": 4,"
         "\"moe_intermediate_size\": 512, \"shared_expert_intermediate_size\": 256" +
         more + "}";
}

TransformerConfig read(const std::string& text) {
  const Result<TransformerConfig> m = parse_hf_config(text, "config.json");
  const std::string errors = m.ok() ? std::string() : to_text(m.errors());
  INFO(errors);
  REQUIRE(m.ok());
  return *m;
}

std::string wrong(const std::string& text) {
  const Result<TransformerConfig> m = parse_hf_config(text, "config.json");
  return m.ok() ? std::string() : to_text(m.errors());
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string types(const std::string& pattern) {
  std::string out = ", \"layer_types\": [";
  for (const char c : pattern)
    out += (out.back() == '[' ? "" : ", ") + std::string(c == 'f' ? "\"full_attention\"" : "\"linear_attention\"");
  return out + "]";
}

}  // namespace

TEST_CASE("linear attention of Qwen3.5") {
  const TransformerConfig m = read(qwen());
  CHECK((m.linear.key_heads == 4 && m.linear.value_heads == 8 && m.linear.key_dim == 64 && m.linear.value_dim == 32));
  CHECK((m.linear.conv == 4 && m.linear.full_every == 4 && linear_layers(m) == 6));
  CHECK(m.attention_gate);
  CHECK((m.experts.count == 16 && m.experts.top_k == 4 && m.experts.ffn == 512 && m.experts.shared_ffn == 256));
  CHECK((m.experts.shared_gate && expert_layers(m) == 8));
  CHECK(read(qwen(", \"full_attention_interval\": 2, \"linear_conv_kernel_dim\": 3")).linear.full_every == 2);
  CHECK(read(qwen(", \"linear_conv_kernel_dim\": 3")).linear.conv == 3);
  CHECK_FALSE(read(qwen(", \"attn_output_gate\": false")).attention_gate);
}

TEST_CASE("layer types say which layers have linear attention") {
  CHECK(read(qwen(types("lllflllf"))).linear.full_every == 4);
  const TransformerConfig odd = read(qwen(types("fllllllf")));
  CHECK(odd.linear.full_every == 0);
  CHECK(odd.linear.full_at == std::vector<int>{0, 7});
  CHECK(linear_layers(odd) == 6);
  CHECK(linear_layers(read(qwen(types("llllllll")))) == 8);
  CHECK(linear_layers(read(qwen(types("ffffffff")))) == 0);
  CHECK(has(wrong(qwen(types("lllf"))), "layer_types names 4 layers, num_hidden_layers 8"));
}

TEST_CASE("layers of Nemotron-H, by their letters or words") {
  const auto hybrid = [](const std::string& layers, int count = 6) {
    return "{\"architectures\": [\"NemotronHForCausalLM\"], \"hidden_size\": 1024, \"num_hidden_layers\": " +
           std::to_string(count) +
           ", \"num_attention_heads\": 8, \"num_key_value_heads\": 2, \"attention_head_dim\": 64,"
           "\"intermediate_size\": 2048, \"vocab_size\": 32000, \"mamba_num_heads\": 32, \"mamba_head_dim\": 64,"
           "\"n_groups\": 4, \"ssm_state_size\": 128, \"conv_kernel\": 3, \"n_routed_experts\": 16,"
           "\"num_experts_per_tok\": 4, \"moe_intermediate_size\": 512,"
           "\"moe_shared_expert_intermediate_size\": 1024" +
           layers + "}";
  };
  const TransformerConfig m = read(hybrid(", \"hybrid_override_pattern\": \"MEM*-E\""));
  CHECK(m.pattern == "MEM*-E");
  CHECK((m.linear.is_ssd() && m.linear.key_heads == 4 && m.linear.key_dim == 128 && m.linear.value_heads == 32));
  CHECK((m.linear.value_dim == 64 && m.linear.conv == 3 && m.head_dim == 64 && !m.gated_mlp));
  CHECK((m.experts.count == 16 && m.experts.top_k == 4 && m.experts.ffn == 512 && m.experts.shared_ffn == 1024));
  CHECK((linear_layers(m) == 2 && expert_layers(m) == 2 && attending_layers(m) == 1 && mlp_layers(m) == 1));
  const std::string words = ", \"layers_block_type\": [\"mamba\", \"moe\", \"mamba\", \"attention\", \"mlp\", \"moe\"]";
  CHECK(parameter_count(read(hybrid(words))) == parameter_count(m));
  CHECK(read(hybrid(", \"hybrid_override_pattern\": \"*-*-*-\"")).linear.key_heads == 0);
  CHECK(has(wrong(hybrid("")), "required key 'hybrid_override_pattern' is missing"));
  CHECK(has(wrong(hybrid(", \"layers_block_type\": [\"gru\", \"rwkv\"]")), "unknown kind of layer 'gru'"));
  CHECK(has(wrong(hybrid(", \"layers_block_type\": [\"gru\", \"rwkv\"]")),
            "unknown kind of layer 'rwkv'\n    hint: expected mamba, attention, mlp or moe"));
}

TEST_CASE("what linear attention needs is asked for, at its place") {
  for (const char* key : {"linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
                          "linear_value_head_dim", "shared_expert_intermediate_size", "num_experts"}) {
    std::string text = qwen();
    text.replace(text.find(key), std::string(key).size(), "other");
    INFO(key);
    CHECK(has(wrong(text), std::string("required key '") + key + "' is missing"));
  }
  CHECK(has(wrong(qwen(", \"linear_conv_kernel_dim\": -1")), "config.json:1:"));
  CHECK(has(wrong(qwen(", \"full_attention_interval\": 0")), "full_attention_interval"));
}

TEST_CASE("Qwen3-Next says how wide an MLP would be, Qwen3.5 need not") {
  CHECK(has(wrong(qwen("", "Qwen3NextForCausalLM")), "required key 'intermediate_size' is missing"));
  CHECK(read(qwen(", \"intermediate_size\": 5120", "Qwen3NextForCausalLM")).ffn == 5120);
  CHECK(read(qwen(", \"intermediate_size\": 5120, \"decoder_sparse_step\": 2")).ffn == 5120);
  const TransformerConfig dense = read(qwen(", \"intermediate_size\": 5120", "Qwen3_5ForCausalLM"));
  CHECK((dense.experts.count == 0 && linear_layers(dense) == 6 && dense.attention_gate));
}

TEST_CASE("of a model of text and images the text is read, and that is said") {
  std::string inner = qwen();
  inner.replace(inner.find("\"architectures\""), inner.find("], ") + 3 - inner.find("\"architectures\""),
                "\"model_type\": \"qwen3_5_moe_text\", ");
  const std::string both =
      "{\"architectures\": [\"Qwen3_5MoeForConditionalGeneration\"], \"model_type\": \"qwen3_5_moe\","
      "\"vision_config\": {\"depth\": 27}, \"text_config\": " +
      inner + "}";
  const TransformerConfig m = read(both), alone = read(qwen());
  CHECK(parameter_count(m) == parameter_count(alone));
  CHECK(m.linear.full_every == 4);
  std::string tied = both;
  tied.replace(tied.find("\"vision_config\""), 0, "\"tie_word_embeddings\": true, ");
  CHECK(read(tied).tied_embeddings);
  CHECK_FALSE(m.tied_embeddings);
  // Where the inner part does not say what it is, the whole does.
  std::string unnamed = both;
  unnamed.replace(unnamed.find("\"model_type\": \"qwen3_5_moe_text\", "), 34, "");
  CHECK(parameter_count(read(unnamed)) == parameter_count(alone));
  const std::string gemma =
      "{\"architectures\": [\"Gemma3ForConditionalGeneration\"], \"text_config\": {\"model_type\": \"gemma3_text\", "
      "\"hidden_size\": 1024, \"num_hidden_layers\": 6, \"num_attention_heads\": 8, \"num_key_value_heads\": 4, "
      "\"head_dim\": 128, \"intermediate_size\": 4096, \"vocab_size\": 32000, \"sliding_window\": 512}}";
  CHECK(windowed_layers(read(gemma)) == 5);
  // What is wrong in it has its place; what nobody knows is named.
  const std::string bad = wrong("{\"architectures\": [\"X\"],\n \"text_config\": {\"model_type\": \"other\"}}");
  INFO(bad);
  CHECK(has(bad, "config.json:2:32: error: architecture 'other' is not supported"));
  CHECK(has(wrong("{\"architectures\": [\"LlamaForCausalLM\"], \"text_config\": {\"hidden_size\": -4}}"),
            "config.json:1:"));
  // A part without a name is of the whole, whose name it is that nobody knows.
  const std::string unknown = wrong(
      "{\"architectures\": [\"Llama4ForConditionalGeneration\"],\n"
      " \"text_config\": {\"hidden_size\": 5120, \"num_hidden_layers\": 48}}");
  INFO(unknown);
  CHECK(has(unknown, "config.json:1:20: error: architecture 'Llama4ForConditionalGeneration' is not supported"));
  CHECK(has(unknown, "it lacks: num_attention_heads, intermediate_size, vocab_size"));
  CHECK(has(wrong("{\"text_config\": {\"hidden_size\": 5120}}"),
            "config.json:1:1: error: required key 'architectures' is missing"));
}

TEST_CASE("layers that predict further tokens are left out, and a training scenario is told so") {
  const Folder folder("mtp");
  const auto scenario = [&](const std::string& more, const std::string& of_model, const std::string& rest) {
    folder.file("config.json", qwen(more));
    const std::string text = "schema: collcast.scenario.v1\nname: s\ntopology: dgx-h100\nmodel: {config: config.json" +
                             of_model + "}\n" + rest;
    ScenarioOptions options;
    options.search = samples::shipped();
    Result<Scenario> read = parse_scenario(text, folder.path() + "/s.yaml", options);
    INFO(to_text(read.errors()));
    REQUIRE(read.ok());
    return std::move(read).value();
  };
  const std::string trains = "batch: {sequence: 1024, micro_batch: 1, global_batch: 8}\n";
  const std::string serves = "inference: {batch: 8, prompt_tokens: 512, output_tokens: 16}\n";
  for (const char* key : {"num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp_num_layers"}) {
    const auto named = [&](const char* value) { return ", \"" + std::string(key) + "\": " + value; };
    const Scenario s = scenario(named("1"), "", trains);
    CHECK(s.step->model.mtp_layers == 0);
    REQUIRE(s.warnings.size() == 1);
    CHECK(has(to_text(s.warnings), "config.json:1:"));
    CHECK(has(to_text(s.warnings), "the layers that predict further tokens are left out"));
    CHECK(has(to_text(s.warnings), "give model.mtp_num_layers, or 0 where they are not trained"));
    CHECK(scenario(named("1"), ", mtp_num_layers: 0", trains).warnings.empty());
    const Scenario with = scenario(named("1"), ", mtp_num_layers: 2", trains);
    CHECK((with.step->model.mtp_layers == 2 && with.warnings.empty()));
    CHECK(scenario(named("0"), "", trains).warnings.empty());
    for (const char* none : {"null", "false", "\"x\"", "-1", "[1]"})
      CHECK(scenario(named(none), "", trains).warnings.empty());
    CHECK(scenario(named("1"), "", serves).warnings.empty());
  }
  CHECK(scenario(", \"num_nextn_predict_layers\": 0, \"mtp_num_hidden_layers\": 1", "", trains).warnings.size() == 1);
}
