// Families of models as their publishers' config.json files are: what these leave out, and what a scenario gives beside
// them.
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collcast/scenario/scenario.hpp"
#include "collcast/workload/config.hpp"
#include "folder.hpp"
#include "samples.hpp"

using namespace collcast;

namespace {

TransformerConfig published(const std::string& text) {
  const Result<TransformerConfig> m = parse_hf_config(text, "config.json");
  INFO((m.ok() ? std::string() : to_text(m.errors())));
  REQUIRE(m.ok());
  return *m;
}

/// A scenario beside a config.json, with these lines under `model`.
Result<Scenario> beside(const std::string& config, const std::string& more, const std::string& rest = "") {
  const Folder folder("beside");
  folder.file("config.json", config);
  ScenarioOptions options;
  options.search = samples::shipped();
  return parse_scenario("schema: collcast.scenario.v1\nname: s\ntopology: dgx-h100\nmodel: {config: config.json" +
                            more + "}\nbatch: {sequence: 1024, micro_batch: 1, global_batch: 8}\n" + rest,
                        folder.path() + "/s.yaml", options);
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// google/gemma-3-*-it: what `text_config` has of each.
std::string gemma3(const std::string& fields) {
  return "{\"architectures\": [\"Gemma3ForConditionalGeneration\"], \"model_type\": \"gemma3\", \"text_config\": {"
         "\"model_type\": \"gemma3_text\", \"rope_scaling\": {\"factor\": 8.0, \"rope_type\": \"linear\"}, "
         "\"sliding_window\": 1024, " +
         fields + "}, \"vision_config\": {\"hidden_size\": 1152}}";
}

/// Fields of a Llama, without one.
std::string llama_without(const std::string& left_out) {
  std::string out = "{\"architectures\": [\"LlamaForCausalLM\"]";
  for (const auto& [key, value] : {std::pair<const char*, int>{"num_hidden_layers", 8},
                                   {"hidden_size", 1024},
                                   {"num_attention_heads", 16},
                                   {"num_key_value_heads", 4},
                                   {"intermediate_size", 4096},
                                   {"vocab_size", 32000}})
    if (key != left_out) out += ", \"" + std::string(key) + "\": " + std::to_string(value);
  return out + "}";
}

std::string llama4(const std::string& more) {
  return "{\"architectures\": [\"Llama4ForConditionalGeneration\"], \"text_config\": {\"model_type\": \"llama4_text\", "
         "\"hidden_size\": 5120, \"intermediate_size\": 8192, \"intermediate_size_mlp\": 16384, "
         "\"num_hidden_layers\": 48, \"num_attention_heads\": 40, \"num_key_value_heads\": 8, \"head_dim\": 128, "
         "\"num_local_experts\": 128, \"num_experts_per_tok\": 1, \"vocab_size\": 202048" +
         more + "}}";
}

}  // namespace

TEST_CASE("Gemma 3 as published: what the files leave out is as transformers has it") {
  const TransformerConfig small =
      published(gemma3("\"hidden_size\": 2560, \"intermediate_size\": 10240, \"num_hidden_layers\": 34"));
  CHECK((small.heads == 8 && small.kv_heads == 4 && small.head_dim == 256 && small.vocab == 262208));
  CHECK((small.tied_embeddings && small.window.tokens == 1024 && small.window.full_every == 6));
  const TransformerConfig large = published(
      gemma3("\"hidden_size\": 5376, \"intermediate_size\": 21504, \"num_hidden_layers\": 62, \"head_dim\": 128, "
             "\"num_attention_heads\": 32, \"num_key_value_heads\": 16"));
  CHECK((large.heads == 32 && large.kv_heads == 16 && large.head_dim == 128 && large.vocab == 262208));
  // Gemma 3 report (arXiv 2503.19786), table 1: embedding and other parameters without the encoder of images.
  CHECK(parameter_count(small) == Approx((675 + 3209) * 1e6).epsilon(0.01));
  CHECK(parameter_count(large) == Approx((1416 + 25600) * 1e6).epsilon(0.01));
}

TEST_CASE("a key that config.json lacks may be given beside it: the model is that of the whole file") {
  const Result<Scenario> whole = beside(llama_without(""), "");
  REQUIRE(whole.ok());
  const double parameters = parameter_count(whole->step->model);
  for (const auto& [theirs, ours, value] :
       {std::tuple<const char*, const char*, const char*>{"num_hidden_layers", "layers", "8"},
        {"hidden_size", "hidden", "1024"},
        {"num_attention_heads", "heads", "16"},
        {"num_key_value_heads", "kv_heads", "4"},
        {"intermediate_size", "ffn", "4096"},
        {"vocab_size", "vocab", "32000"}}) {
    CAPTURE(theirs);
    const Result<Scenario> given = beside(llama_without(theirs), std::string(", ") + ours + ": " + value);
    INFO((given.ok() ? std::string() : to_text(given.errors())));
    REQUIRE(given.ok());
    CHECK(parameter_count(given->step->model) == parameters);
    CHECK(given->warnings.size() == whole->warnings.size());
    if (std::string(ours) == "kv_heads") continue;  // as many as there are heads
    const std::string lacking = to_text(beside(llama_without(theirs), "").errors());
    CHECK(says(lacking, "required key '" + std::string(theirs) + "' is missing"));
    CHECK(says(lacking, "; or give 'model." + std::string(ours) + "' in the scenario"));
    const std::string wrong = to_text(beside(llama_without(theirs), std::string(", ") + ours + ": many").errors());
    CHECK(says(wrong, "model." + std::string(ours) + " is 'many'"));
    CHECK(!says(wrong, "is missing"));
  }
  // Sizes of parts, too.
  const std::string mixture = llama_without("");
  std::string experts = mixture;
  experts.replace(experts.find("Llama"), 5, "Mixtral");
  const Result<Scenario> of_two = beside(experts, ", experts: {count: 8, top_k: 2}");
  INFO((of_two.ok() ? std::string() : to_text(of_two.errors())));
  REQUIRE(of_two.ok());
  CHECK((of_two->step->model.experts.count == 8 && of_two->step->model.experts.ffn == 4096));
  for (const char* bad : {", experts: {count: 0, top_k: 2}", ", experts: {count: [8], top_k: 2}"}) {
    CAPTURE(bad);
    const Result<Scenario> wrong = beside(experts, bad);
    REQUIRE(!wrong.ok());
    CHECK(wrong.errors().size() == 1);
    CHECK(says(to_text(wrong.errors()), "model.experts.count is "));
  }
  // Of a part that cannot be read nothing is missing.
  CHECK(!says(to_text(beside(experts, ", experts: many").errors()), "is missing"));
  // What else the file lacks is still said.
  const std::string both = to_text(beside(experts, ", experts: {count: x}").errors());
  CHECK((says(both, "model.experts.count is 'x'") && says(both, "required key 'num_experts_per_tok' is missing")));
}

namespace {

/// A shipped config.json, a key on each line: what each says, without blanks.
std::vector<std::pair<std::string, std::string>> shipped_fields(const std::string& model) {
  std::ifstream in(std::string(COLLCAST_SOURCE_DIR) + "/scenarios/models/" + model + "/config.json");
  std::vector<std::pair<std::string, std::string>> fields;
  for (std::string line; std::getline(in, line);) {
    const std::size_t key = line.find('"'), colon = line.find("\": ");
    if (key == std::string::npos || colon == std::string::npos) continue;
    std::string value = line.substr(colon + 3);
    if (value.back() == ',') value.pop_back();
    fields.emplace_back(line.substr(key + 1, colon - key - 1), value);
  }
  REQUIRE(fields.size() > 8);
  return fields;
}

std::string json_without(const std::vector<std::pair<std::string, std::string>>& fields, const std::string& left_out) {
  std::string out;
  for (const auto& [key, value] : fields)
    if (key != left_out) out += (out.empty() ? "{\"" : ", \"") + key + "\": " + value;
  return out + "}";
}

/// ", experts: {ffn: 8192}" of "experts.ffn" and "8192".
std::string under_model(const std::string& path, const std::string& value) {
  const std::size_t dot = path.find('.');
  if (dot == std::string::npos) return ", " + path + ": " + value;
  return ", " + path.substr(0, dot) + ": {" + path.substr(dot + 1) + ": " + value + "}";
}

bool same_model(const TransformerConfig& a, const TransformerConfig& b) {
  return parameter_count(a) == parameter_count(b) && active_parameter_count(a) == active_parameter_count(b) &&
         a.head_dim == b.head_dim && a.kv_heads == b.kv_heads && a.ffn == b.ffn && a.pattern == b.pattern &&
         expert_layers(a) == expert_layers(b) && a.experts.ffn == b.experts.ffn &&
         a.experts.shared_ffn == b.experts.shared_ffn && a.experts.group_top_k == b.experts.group_top_k &&
         a.sparse.top_k == b.sparse.top_k && windowed_layers(a) == windowed_layers(b);
}

}  // namespace

TEST_CASE(
    "every key that a config.json must have may be given where its hint says, and the model is that of the whole") {
  for (const char* model :
       {"glm4.5-air", "llama4-scout", "deepseek-v2", "deepseek-v3.2", "mixtral-8x7b", "gpt-oss-120b", "minimax-m2",
        "grok1-314b", "qwen3-30b-a3b", "qwen3-next-80b-a3b", "qwen3.5-397b-a17b", "nemotron3-nano-30b-a3b",
        "nemotron3-super-120b-a12b", "falcon-40b", "gpt2", "gpt-neox-20b", "mpt-7b", "gemma2-27b"}) {
    CAPTURE(model);
    const auto fields = shipped_fields(model);
    const Result<Scenario> whole = beside(json_without(fields, ""), "");
    REQUIRE(whole.ok());
    int required = 0;
    for (const auto& [key, value] : fields) {
      if (key == "architectures") continue;
      CAPTURE(key);
      const Result<Scenario> lacking = beside(json_without(fields, key), "");
      if (lacking.ok()) continue;
      ++required;
      const std::string text = to_text(lacking.errors());
      CHECK(says(text, "required key '" + key + "' is missing"));
      const std::string before = "or give 'model.";
      const std::size_t at = text.find(before);
      REQUIRE(at != std::string::npos);
      const std::size_t from = at + before.size();
      const std::string ours = text.substr(from, text.find('\'', from) - from);
      // Shared experts count by their number there, by their width here.
      std::string given = value;
      if (key == "n_shared_experts") given = std::to_string(whole->step->model.experts.shared_ffn);
      const Result<Scenario> both = beside(json_without(fields, key), under_model(ours, given));
      INFO((both.ok() ? std::string() : to_text(both.errors())));
      REQUIRE(both.ok());
      CHECK(same_model(both->step->model, whole->step->model));
      CHECK(both->warnings.size() == whole->warnings.size());
    }
    CHECK(required >= 4);
  }
}

TEST_CASE("what is given beside a config.json that lacks another key is not said to lack what the file has") {
  std::string maverick = llama4(", \"interleave_moe_layer_step\": 2");
  const std::string width = "\"intermediate_size\": 8192, ";
  maverick.erase(maverick.find(width), width.size());
  const Result<Scenario> lacking = beside(maverick, ", experts: {shared_gate: true}, ffn: 8192");
  REQUIRE(!lacking.ok());
  CHECK(lacking.errors().size() == 1);
  CHECK(says(to_text(lacking.errors()), "or give 'model.experts.ffn' in the scenario"));
  // The width of the experts alone: MLPs between them keep theirs, and the shared expert is as wide.
  const Result<Scenario> given = beside(maverick, ", experts: {ffn: 8192}");
  REQUIRE(given.ok());
  const TransformerConfig& m = given->step->model;
  CHECK((m.ffn == 16384 && m.experts.ffn == 8192 && m.experts.shared_ffn == 8192));
  CHECK(parameter_count(m) == Approx(400.7e9).epsilon(0.0005));
  // Experts that a file has none of, which it says in whole, are begun beside it.
  const std::string begun = to_text(beside(llama_without(""), ", experts: {ffn: 8192}").errors());
  CHECK((says(begun, "required key 'count' is missing") && says(begun, "required key 'top_k' is missing")));
  CHECK(says(to_text(beside(llama_without("hidden_size"), ", layers: x, experts: {ffn: 8192}").errors()),
             "model.layers is 'x'"));
}

TEST_CASE("a width of MLPs beside a config.json whose layers have none is said to have no effect") {
  const auto warned = [](const Result<Scenario>& s) {
    INFO((s.ok() ? std::string() : to_text(s.errors())));
    REQUIRE(s.ok());
    return says(to_text(s->warnings), "model.ffn has no effect");
  };
  // As many parameters as without it, wherever it is warned of; others where it is not.
  for (const char* model : {"mixtral-8x7b", "gpt-oss-120b", "qwen3-30b-a3b", "nemotron3-nano-30b-a3b", "llama4-scout",
                            "deepseek-v3", "glm4.5-air", "llama3-8b"}) {
    CAPTURE(model);
    const std::string config = json_without(shipped_fields(model), "");
    const Result<Scenario> without = beside(config, ""), with = beside(config, ", ffn: 7168");
    CHECK(!warned(without));
    CHECK(warned(with) == (mlp_layers(with->step->model) == 0));
    CHECK(warned(with) == (parameter_count(with->step->model) == parameter_count(without->step->model)));
  }
  const auto mixtral = shipped_fields("mixtral-8x7b");
  const std::string text = to_text(beside(json_without(mixtral, ""), ", ffn: 7168")->warnings);
  CHECK(says(text, "model.ffn has no effect: every layer has experts"));
  CHECK(says(text, "the width of an expert is model.experts.ffn"));
  CHECK(!warned(beside(json_without(mixtral, ""), ", ffn: 7168, experts: {dense_layers: 1}")));
  // It means no other thing where the file has no width, and is no slip where that must be given.
  const Result<Scenario> both =
      beside(json_without(mixtral, "intermediate_size"), ", ffn: 7168, experts: {ffn: 14336}");
  CHECK(warned(both));
  CHECK(parameter_count(both->step->model) == parameter_count(beside(json_without(mixtral, ""), "")->step->model));
  CHECK(!beside(json_without(mixtral, "intermediate_size"), ", ffn: 7168").ok());
  CHECK(!warned(beside(json_without(shipped_fields("qwen3-30b-a3b"), "intermediate_size"), ", ffn: 7168")));
}

TEST_CASE("no window of tokens: the pattern of config.json goes with it, one that is written beside it does not") {
  const std::string config = gemma3("\"hidden_size\": 2560, \"intermediate_size\": 10240, \"num_hidden_layers\": 34");
  const Result<Scenario> none = beside(config, ", window: {tokens: 0}", "layout: {dp: 8}\n");
  INFO((none.ok() ? std::string() : to_text(none.errors())));
  REQUIRE(none.ok());
  CHECK(windowed_layers(none->step->model) == 0);
  CHECK(check_step(*none->step, 8, none->origins).empty());
  const Result<Scenario> other = beside(config, ", window: {tokens: 512}", "layout: {dp: 8}\n");
  REQUIRE(other.ok());
  CHECK((other->step->model.window.tokens == 512 && windowed_layers(other->step->model) == 29));
  for (const auto& [key, value] :
       {std::pair<std::string, const char*>{"full_every", "6"}, {"full_first", "2"}, {"full_at", "[0, 3]"}}) {
    CAPTURE(key);
    const Result<Scenario> both =
        beside(config, ", window: {tokens: 0, " + key + ": " + value + "}", "layout: {dp: 8}\n");
    REQUIRE(both.ok());
    const Diagnostics errors = check_step(*both->step, 8, both->origins);
    REQUIRE(errors.size() == 1);
    CHECK(says(errors[0].message, key + " has no meaning without a window: tokens is 0 ("));
    CHECK((errors[0].where.line == 4 && !says(to_text(errors), "give model.window.tokens")));
  }
}

TEST_CASE("Llama 4: experts and MLPs in turn, a shared expert, and chunks of attention as windows") {
  // Maverick: 400 billion, 17 that a token passes, with the encoder of images.
  const TransformerConfig m = published(llama4(", \"interleave_moe_layer_step\": 2"));
  CHECK((expert_layers(m) == 24 && !has_experts(m, 0) && has_experts(m, 1) && m.ffn == 16384));
  CHECK((m.experts.ffn == 8192 && m.experts.shared_ffn == 8192 && !m.experts.shared_gate));
  CHECK(parameter_count(m) == Approx(400e9).epsilon(0.01));
  CHECK(active_parameter_count(m) == Approx(17e9).epsilon(0.02));
  CHECK((m.window.tokens == 8192 && m.window.full_every == 4 && windowed_layers(m) == 36));
  // The same layers by their numbers; and others than a step gives.
  std::string odd;
  for (int i = 1; i < 48; i += 2) odd += (odd.empty() ? "" : ", ") + std::to_string(i);
  const TransformerConfig by_number =
      published(llama4(", \"interleave_moe_layer_step\": 2, \"moe_layers\": [" + odd + "]"));
  CHECK((by_number.experts.every == 2 && by_number.experts.dense_at.empty()));
  for (const char* list : {"[0]", "[3, 40]", "[1, 2, 47]"}) {
    const TransformerConfig few = published(llama4(", \"moe_layers\": " + std::string(list)));
    const std::string text = list;
    CHECK(expert_layers(few) == 1 + static_cast<int>(std::count(text.begin(), text.end(), ',')));
  }
  CHECK(windowed_layers(published(llama4(", \"attention_chunk_size\": null"))) == 0);
  CHECK(windowed_layers(published(llama4(", \"no_rope_layers\": []"))) == 36);
  CHECK(published(llama4(", \"no_rope_layers\": [1, 0, 1, 1, 0]")).window.full_at == std::vector<int>{1, 4});
  CHECK(windowed_layers(published(llama4(", \"no_rope_layer_interval\": 1"))) == 0);
}

TEST_CASE("chunks of attention are warned of, and a window of no tokens takes them away") {
  const Result<Scenario> chunks = beside(llama4(""), "");
  REQUIRE(chunks.ok());
  CHECK(says(to_text(chunks->warnings), "chunks of 8192 tokens are taken as a sliding window of as many"));
  // They are warned of where they are taken, and not where the scenario has other windows, or none.
  for (const char* tokens : {"0", "1024"}) {
    CAPTURE(tokens);
    const Result<Scenario> own = beside(llama4(""), std::string(", window: {tokens: ") + tokens + "}");
    REQUIRE(own.ok());
    CHECK(windowed_layers(own->step->model) == (own->step->model.window.tokens > 0 ? 36 : 0));
    CHECK(!says(to_text(own->warnings), "chunks of"));
    CHECK(own->warnings.size() + 1 == chunks->warnings.size());
  }
  CHECK(says(to_text(beside(llama4(""), ", window: {full_every: 2}")->warnings), "chunks of 8192 tokens"));
  CHECK(!says(to_text(beside(llama4(", \"attention_chunk_size\": null"), "")->warnings), "chunks of"));
}

TEST_CASE("GLM-4.5: DeepSeek's experts behind ordinary attention") {
  const TransformerConfig m = published(
      "{\"architectures\": [\"Glm4MoeForCausalLM\"], \"hidden_size\": 5120, \"intermediate_size\": 12288, "
      "\"moe_intermediate_size\": 1536, \"num_hidden_layers\": 92, \"num_attention_heads\": 96, "
      "\"num_key_value_heads\": 8, \"head_dim\": 128, \"n_routed_experts\": 160, \"n_shared_experts\": 1, "
      "\"num_experts_per_tok\": 8, \"first_k_dense_replace\": 3, \"n_group\": 1, \"topk_group\": 1, "
      "\"vocab_size\": 151552}");
  CHECK((m.latent.kv_rank == 0 && m.head_dim == 128 && expert_layers(m) == 89 && m.experts.shared_ffn == 1536));
  // 355 billion, 32 that a token passes.
  CHECK(parameter_count(m) == Approx(355e9).epsilon(0.01));
  CHECK(active_parameter_count(m) == Approx(32e9).epsilon(0.06));
}

TEST_CASE("OLMo 2 is a Llama by its matrices; Falcon as first published has the newer files' model") {
  // allenai/OLMo-2-1124-7B: 7.30 billion.
  const TransformerConfig olmo = published(
      "{\"architectures\": [\"Olmo2ForCausalLM\"], \"hidden_size\": 4096, \"intermediate_size\": 11008, "
      "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 32, \"vocab_size\": 100352, "
      "\"tie_word_embeddings\": false}");
  CHECK(parameter_count(olmo) == Approx(7.30e9).epsilon(0.005));
  const std::string newer = "\"architectures\": [\"FalconForCausalLM\"]",
                    older = "\"architectures\": [\"RWForCausalLM\"]";
  const auto alike = [](const TransformerConfig& a, const TransformerConfig& b) {
    return parameter_count(a) == parameter_count(b) && a.kv_heads == b.kv_heads &&
           a.parallel_mlp.norms == b.parallel_mlp.norms && a.parallel_mlp.one_reduce == b.parallel_mlp.one_reduce &&
           a.heads == b.heads && a.tied_embeddings == b.tied_embeddings;
  };
  CHECK(alike(published("{" + older +
                        ", \"model_type\": \"RefinedWebModel\", \"hidden_size\": 4544, \"n_head\": 71, "
                        "\"n_layer\": 32, \"multi_query\": true, \"parallel_attn\": true, \"vocab_size\": 65024}"),
              published("{" + newer +
                        ", \"hidden_size\": 4544, \"num_attention_heads\": 71, \"num_hidden_layers\": 32, "
                        "\"multi_query\": true, \"vocab_size\": 65024}")));
  CHECK(alike(published("{" + older +
                        ", \"model_type\": \"RefinedWeb\", \"hidden_size\": 8192, \"n_head\": 128, "
                        "\"n_head_kv\": 8, \"n_layer\": 60, \"parallel_attn\": true, \"vocab_size\": 65024}"),
              published("{" + newer +
                        ", \"hidden_size\": 8192, \"num_attention_heads\": 128, \"num_hidden_layers\": 60, "
                        "\"num_kv_heads\": 8, \"new_decoder_architecture\": true, \"vocab_size\": 65024}")));
}

TEST_CASE("all that is wrong in a config.json is said at once, whatever the rest of it is") {
  const auto wrong = [](const std::string& text) {
    std::string out;
    const Result<TransformerConfig> m = parse_hf_config(text, "c");
    REQUIRE_FALSE(m.ok());
    for (const Diagnostic& d : m.errors()) out += to_text(d.where) + ": " + d.message + "\n";
    return out;
  };
  // Text for a count, and heads that do not go together.
  CHECK(wrong("{\"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": 4096, \"num_hidden_layers\": 32,\n"
              "\"num_attention_heads\": 30, \"num_key_value_heads\": 7, \"intermediate_size\": 14336,\n"
              "\"vocab_size\": \"128256\"}") ==
        "c:1:56: hidden size 4096 is not a multiple of 30 heads (c:2:24)\n"
        "c:2:51: 7 key and value heads do not divide 30 heads (c:2:24)\n"
        "c:3:15: vocab_size is the text \"128256\"\n");
  // Of heads that are none nothing else is said.
  CHECK(
      wrong("{\"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": 4096, \"num_hidden_layers\": 32,\n"
            "\"num_attention_heads\": 30, \"num_key_value_heads\": 0, \"head_dim\": -1, \"intermediate_size\": 14336,\n"
            "\"vocab_size\": 128256}") ==
      "c:2:51: num_key_value_heads is '0'\n"
      "c:2:66: head_dim is '-1'\n");
  // No architecture: its place, and counts that nobody could read.
  CHECK(wrong("{\"architectures\": [],\n\"hidden_size\": 0, \"num_hidden_layers\": 1.5,\n\"num_attention_heads\": 4, "
              "\"vocab_size\": null, \"num_key_value_heads\": [1, 2]}") ==
        "c:1:19: architectures names none\n"
        "c:2:16: hidden_size is '0'\n"
        "c:2:40: num_hidden_layers is '1.5'\n");
  CHECK(wrong("{\"hidden_size\": -4}") ==
        "c:1:1: required key 'architectures' is missing\n"
        "c:1:17: hidden_size is '-4'\n");
}
