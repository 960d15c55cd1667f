// Hugging Face config.json.
#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "samples.hpp"
#include "scenario/files.hpp"

using namespace collcast;

namespace {

using Fields = std::map<std::string, std::string>;

/// One key per line, so that a key's line is its place in the alphabet.
std::string json_of(const Fields& fields) {
  std::string text = "{\n";
  for (const auto& [key, value] : fields) text += "  \"" + key + "\": " + value + ",\n";
  return text + "  \"zzz\": null\n}\n";
}
int line_of(const Fields& fields, const std::string& key) {
  return 2 + static_cast<int>(std::distance(fields.begin(), fields.find(key)));
}

const Fields llama{{"architectures", "[\"LlamaForCausalLM\"]"},
                   {"hidden_size", "4096"},
                   {"num_hidden_layers", "32"},
                   {"num_attention_heads", "32"},
                   {"num_key_value_heads", "8"},
                   {"head_dim", "64"},
                   {"intermediate_size", "14336"},
                   {"vocab_size", "128256"},
                   {"tie_word_embeddings", "true"}};
const Fields gpt2{{"architectures", "[\"GPT2LMHeadModel\"]"},
                  {"n_embd", "768"},
                  {"n_layer", "12"},
                  {"n_head", "12"},
                  {"n_inner", "1000"},
                  {"n_positions", "1024"},
                  {"vocab_size", "50257"},
                  {"resid_pdrop", "0.2"},
                  {"tie_word_embeddings", "false"}};
const Fields neox{{"architectures", "[\"GPTNeoXForCausalLM\"]"},
                  {"hidden_size", "6144"},
                  {"num_hidden_layers", "44"},
                  {"num_attention_heads", "64"},
                  {"intermediate_size", "24576"},
                  {"vocab_size", "50432"},
                  {"hidden_dropout", "0.0"},
                  {"tie_word_embeddings", "false"}};

const Fields gemma{{"architectures", "[\"GemmaForCausalLM\"]"},
                   {"hidden_size", "3072"},
                   {"num_hidden_layers", "28"},
                   {"num_attention_heads", "16"},
                   {"num_key_value_heads", "16"},
                   {"head_dim", "256"},
                   {"intermediate_size", "24576"},
                   {"vocab_size", "256000"},
                   {"tie_word_embeddings", "true"}};
const Fields falcon{{"architectures", "[\"FalconForCausalLM\"]"},
                    {"bias", "false"},
                    {"ffn_hidden_size", "32768"},
                    {"hidden_dropout", "0.0"},
                    {"hidden_size", "8192"},
                    {"multi_query", "true"},
                    {"new_decoder_architecture", "true"},
                    {"num_attention_heads", "128"},
                    {"num_hidden_layers", "60"},
                    {"num_kv_heads", "8"},
                    {"tie_word_embeddings", "true"},
                    {"vocab_size", "65024"}};

const Fields mpt{{"architectures", "[\"MPTForCausalLM\"]"},
                 {"d_model", "4096"},
                 {"n_layers", "32"},
                 {"n_heads", "32"},
                 {"expansion_ratio", "3"},
                 {"no_bias", "false"},
                 {"vocab_size", "50368"},
                 {"resid_pdrop", "0.0"},
                 {"tie_word_embeddings", "false"}};

Fields with(Fields fields, const std::string& key, const std::string& value) {
  fields[key] = value;
  return fields;
}
Fields without(Fields fields, const std::string& key) {
  fields.erase(key);
  return fields;
}

const std::map<std::string, bool> required{{"hidden_size", true},
                                           {"num_hidden_layers", true},
                                           {"num_attention_heads", true},
                                           {"intermediate_size", true},
                                           {"vocab_size", true},
                                           {"n_embd", true},
                                           {"n_layer", true},
                                           {"n_head", true},
                                           {"n_positions", true},
                                           {"n_inner", false},
                                           {"num_key_value_heads", false},
                                           {"head_dim", false},
                                           {"tie_word_embeddings", false},
                                           {"resid_pdrop", false},
                                           {"hidden_dropout", false},
                                           {"bias", false},
                                           {"ffn_hidden_size", false},
                                           {"multi_query", false},
                                           {"new_decoder_architecture", false},
                                           {"num_kv_heads", false},
                                           {"n_layers", true},
                                           {"d_model", true},
                                           {"n_heads", true},
                                           {"no_bias", false},
                                           {"expansion_ratio", false}};
/// Of what transformers takes a default that other models do not share.
bool is_required(const Fields& model, const std::string& key) {
  return required.at(key) || (model == gemma && (key == "head_dim" || key == "num_key_value_heads"));
}
const std::set<std::string> truths{"bias", "multi_query", "new_decoder_architecture", "no_bias", "tie_word_embeddings"};

}  // namespace

TEST_CASE("Llama: grouped queries, gated MLP, no biases") {
  const TransformerConfig m = parse_hf_config(json_of(llama), "models/my-llama/config.json").value();
  CHECK(m.name == "my-llama");
  CHECK(m.layers == 32);
  CHECK(m.hidden == 4096);
  CHECK(m.heads == 32);
  CHECK(m.kv_heads == 8);
  CHECK(m.head_dim == 64);
  CHECK(m.ffn == 14336);
  CHECK(m.vocab == 128256);
  CHECK(m.gated_mlp);
  CHECK(m.tied_embeddings);
  CHECK_FALSE(m.biases);
  CHECK(m.learned_positions == 0);
  CHECK(m.dropout == 0.0);
}

TEST_CASE("the Llama family is read alike, also by model_type") {
  for (const char* name : {"MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"})
    CHECK(parse_hf_config(json_of(with(llama, "architectures", "[\"" + std::string(name) + "\"]")), "config.json")
              .value()
              .gated_mlp);
  for (const char* type : {"llama", "mistral", "qwen2", "qwen3"})
    CHECK(parse_hf_config(json_of(with(without(llama, "architectures"), "model_type", "\"" + std::string(type) + "\"")),
                          "config.json")
              .value()
              .name == type);
}

TEST_CASE("GPT-2: learned positions, biases, its own names") {
  const TransformerConfig m = parse_hf_config(json_of(gpt2), "config.json").value();
  CHECK(m.name == "gpt2");
  CHECK(m.ffn == 1000);
  CHECK(m.kv_heads == 12);
  CHECK(m.head_dim == 64);  // 768 / 12
  CHECK(m.learned_positions == 1024);
  CHECK(m.biases);
  CHECK_FALSE(m.gated_mlp);
  CHECK(m.dropout == 0.2);
  CHECK_FALSE(m.tied_embeddings);
}

TEST_CASE("what config.json leaves out has the library's default") {
  const TransformerConfig small =
      parse_hf_config(json_of(without(without(without(gpt2, "n_inner"), "resid_pdrop"), "tie_word_embeddings")),
                      "config.json")
          .value();
  CHECK(small.ffn == 4 * 768);
  CHECK(small.dropout == 0.1);
  CHECK(small.tied_embeddings);
  const TransformerConfig mha =
      parse_hf_config(json_of(without(without(llama, "num_key_value_heads"), "head_dim")), "config.json").value();
  CHECK(mha.kv_heads == 32);
  CHECK(mha.head_dim == 128);  // 4096 / 32
}

TEST_CASE("GPT-NeoX: biases, rotary positions, plain MLP") {
  const TransformerConfig m = parse_hf_config(json_of(neox), "config.json").value();
  CHECK(m.head_dim == 96);  // 6144 / 64
  CHECK(m.biases);
  CHECK_FALSE(m.gated_mlp);
  CHECK(m.learned_positions == 0);
}

TEST_CASE("Gemma: heads wider than hidden / heads, gated MLP, one matrix for embedding and output layer") {
  const TransformerConfig m = parse_hf_config(json_of(without(gemma, "tie_word_embeddings")), "config.json").value();
  CHECK((m.head_dim == 256 && m.kv_heads == 16 && m.gated_mlp && m.tied_embeddings && !m.biases));
  // The embedding, 28 layers of 4 x 3072 x 4096 of attention, 3 x 3072 x 24576 of MLP and two norms, the last norm.
  CHECK(parameter_count(m) == 256000. * 3072 + 28. * (4. * 3072 * 4096 + 3. * 3072 * 24576 + 2 * 3072) + 3072);
  for (const char* name : {"Gemma2ForCausalLM", "Gemma3ForCausalLM"})
    CHECK(
        parse_hf_config(json_of(with(gemma, "architectures", "[\"" + std::string(name) + "\"]")), "config.json").ok());
  CHECK_FALSE(
      parse_hf_config(json_of(with(gemma, "tie_word_embeddings", "false")), "config.json").value().tied_embeddings);
}

TEST_CASE("Falcon: key and value heads by the decoder, plain MLP, one matrix for embedding and output layer") {
  const TransformerConfig large = parse_hf_config(json_of(falcon), "config.json").value();
  CHECK((large.kv_heads == 8 && large.head_dim == 64 && large.ffn == 32768 && !large.gated_mlp && !large.biases));
  // Falcon 7B: no ffn_hidden_size, no num_kv_heads, and the older decoder with one key and value head.
  Fields small = without(without(without(falcon, "ffn_hidden_size"), "num_kv_heads"), "tie_word_embeddings");
  small["new_decoder_architecture"] = "false";
  small["hidden_size"] = "4544";
  small["num_attention_heads"] = "71";
  small["num_hidden_layers"] = "32";
  const TransformerConfig m = parse_hf_config(json_of(small), "config.json").value();
  CHECK((m.kv_heads == 1 && m.head_dim == 64 && m.ffn == 4 * 4544 && m.tied_embeddings));
  // transformers counts 6,921,720,704, where norms have biases: one a layer, and the last.
  CHECK(parameter_count(m) == 6'921'720'704. - 33 * 4544);
  small["multi_query"] = "false";
  CHECK(parse_hf_config(json_of(small), "config.json").value().kv_heads == 71);
  CHECK(parse_hf_config(json_of(with(without(small, "architectures"), "model_type", "\"falcon\"")), "config.json")
            .value()
            .name == "falcon");
}

TEST_CASE("Nemotron is Llama with a plain MLP") {
  const Fields nemotron = with(llama, "architectures", "[\"NemotronForCausalLM\"]");
  const TransformerConfig m = parse_hf_config(json_of(nemotron), "config.json").value();
  CHECK((!m.gated_mlp && m.ffn == 14336 && m.kv_heads == 8));
}

TEST_CASE("MPT: its own names, expansion_ratio times as wide") {
  const TransformerConfig m = parse_hf_config(json_of(mpt), "config.json").value();
  CHECK((m.layers == 32 && m.hidden == 4096 && m.heads == 32 && m.kv_heads == 32 && m.head_dim == 128));
  CHECK((m.ffn == 3 * 4096 && !m.gated_mlp && m.biases && !m.tied_embeddings && m.learned_positions == 0));
}

TEST_CASE("every field: missing, null, of the wrong type or range") {
  for (const Fields& good : {llama, gpt2, neox, gemma, falcon, mpt}) {
    for (const auto& [key, value] : good) {
      if (key == "architectures") continue;
      INFO(key);
      for (const auto& [fields, what] :
           {std::pair(without(good, key), "missing"), std::pair(with(good, key, "null"), "null")}) {
        const auto missing = parse_hf_config(json_of(fields), "config.json");
        CHECK(missing.ok() != is_required(good, key));
        if (missing) continue;
        CHECK(missing.errors().at(0).message == "required key '" + key + "' is " + what);
        if (what == std::string("null")) CHECK(missing.errors().at(0).where.line == line_of(fields, key));
      }
      const bool truth = truths.contains(key);
      for (const char* bad :
           {"[1]", "{}", "\"4\"", truth ? "1" : "true", "-1", "1e99", "99999999999", "18446744073709551616"}) {
        const Fields fields = with(good, key, bad);
        const auto wrong = parse_hf_config(json_of(fields), "config.json");
        INFO(bad);
        REQUIRE(wrong.errors().size() == 1);
        CHECK(wrong.errors()[0].where.line == line_of(fields, key));
        CHECK(wrong.errors()[0].where.column == static_cast<int>(key.size()) + 7);  // two blanks, quotes, colon, blank
        CHECK(wrong.errors()[0].message.find(key + " is ") == 0);
      }
    }
  }
}

namespace {

Fields renamed(const Fields& fields, const std::string& key, const std::string& other) {
  return with(without(fields, key), other, fields.at(key));
}

Diagnostics warnings(const Fields& fields) {
  Origins origins;
  Diagnostics out;
  std::optional<input::Quantization> quantized;
  const auto read = input::read_hf_config(json_of(fields), "config.json", {}, origins, out, quantized);
  CHECK((read.ok() && read->has_value()));
  return out;
}

}  // namespace

TEST_CASE("a misspelt field is pointed at: as the missing one that it may be, or as one that is not read") {
  const Fields slip = renamed(llama, "num_hidden_layers", "num_hiden_layers");
  const auto m = parse_hf_config(json_of(slip), "config.json");
  CHECK(to_text(m.errors()) ==
        "config.json:1:1: error: required key 'num_hidden_layers' is missing\n"
        "    hint: is 'num_hiden_layers' (config.json:" +
            std::to_string(line_of(slip, "num_hiden_layers")) +
            ":3) meant? expected a whole number from 1 to 10000000, without unit; or give 'model.layers' in the "
            "scenario\n");
  const Diagnostics found = warnings(renamed(llama, "num_key_value_heads", "num_key_value_head"));
  REQUIRE(found.size() == 1);
  CHECK(found[0].message == "key 'num_key_value_head' is not read");
  CHECK(found[0].hint == "did you mean 'num_key_value_heads'? it is absent and has its default");
  CHECK(found[0].where.line ==
        line_of(renamed(llama, "num_key_value_heads", "num_key_value_head"), "num_key_value_head"));
  CHECK(warnings(renamed(llama, "tie_word_embeddings", "tie_word_embedings")).size() == 1);
}

TEST_CASE("another tool's name for a field that is absent is pointed at, and so are experts") {
  const std::vector<std::pair<std::string, std::string>> names{{"num_key_value_heads", "num_kv_heads"},
                                                               {"num_key_value_heads", "n_kv_heads"},
                                                               {"tie_word_embeddings", "tie_embeddings"},
                                                               {"head_dim", "head_dimension"}};
  for (const auto& [ours, theirs] : names) {
    INFO(theirs);
    const Diagnostics found = warnings(renamed(llama, ours, theirs));
    REQUIRE(found.size() == 1);
    CHECK(found[0].message == "key '" + theirs + "' is not read");
    CHECK(found[0].hint == "did you mean '" + ours + "'? it is absent and has its default");
  }
  const auto layers = parse_hf_config(json_of(renamed(llama, "num_hidden_layers", "num_layers")), "config.json");
  CHECK(to_text(layers.errors()).find("is 'num_layers' (config.json:") != std::string::npos);
  // Beside the right one another name is somebody else's field.
  CHECK(warnings(with(llama, "num_kv_heads", "8")).empty());
  const Diagnostics experts = warnings(with(llama, "num_local_experts", "8"));
  REQUIRE(experts.size() == 1);
  CHECK(experts[0].message == "key 'num_local_experts' is not read");
  CHECK(experts[0].hint == "the model is read as the dense one that 'architectures' says it is");
  CHECK(warnings(with(llama, "num_local_experts", "0")).empty());
}

TEST_CASE("fields that published files have beside ours are no slips of ours") {
  Fields full = without(without(llama, "head_dim"), "tie_word_embeddings");
  for (const char* key : {"attention_bias", "attention_dropout", "hidden_act", "initializer_range", "rms_norm_eps",
                          "max_position_embeddings", "rope_theta", "torch_dtype", "use_cache", "sliding_window"})
    full[key] = "1";
  CHECK(warnings(full).empty());
  Fields old = without(without(gpt2, "resid_pdrop"), "n_inner");
  for (const char* key : {"attn_pdrop", "embd_pdrop", "n_ctx", "summary_first_dropout", "layer_norm_epsilon"})
    old[key] = "1";
  CHECK(warnings(old).empty());
}

namespace {

SlidingWindow window_of(const Fields& fields, const std::string& architecture) {
  const auto m = parse_hf_config(json_of(with(fields, "architectures", "[\"" + architecture + "\"]")), "config.json");
  if (!m) FAIL(to_text(m.errors()));
  return m->window;
}
ParallelMlp parallel_mlp_of(const Fields& fields) {
  const auto m = parse_hf_config(json_of(fields), "config.json");
  if (!m) FAIL(to_text(m.errors()));
  CHECK(warnings(fields).empty());
  return m->parallel_mlp;
}

}  // namespace

TEST_CASE("sliding windows are of the layers that the architecture says") {
  const Fields windows = with(llama, "sliding_window", "1000");
  struct Expected {
    const char* architecture;
    int left_out, every;  ///< tokens where the file says nothing
  };
  for (const auto& [name, left_out, every] : {Expected{"MistralForCausalLM", 4096, 0},
                                              {"Gemma2ForCausalLM", 4096, 2},
                                              {"Gemma3ForCausalLM", 4096, 6},
                                              {"Phi3ForCausalLM", 0, 0},
                                              {"Cohere2ForCausalLM", 4096, 4}}) {
    INFO(name);
    CHECK(window_of(windows, name).tokens == 1000);
    CHECK(window_of(windows, name).full_every == every);
    CHECK(window_of(llama, name).tokens == left_out);
    CHECK(window_of(with(llama, "sliding_window", "null"), name).tokens == 0);
  }
  for (const char* name : {"LlamaForCausalLM", "NemotronForCausalLM", "CohereForCausalLM"})
    CHECK(window_of(windows, name).tokens == 0);
  CHECK(window_of(with(windows, "sliding_window_pattern", "3"), "Gemma3ForCausalLM").full_every == 3);
  CHECK(window_of(with(windows, "_sliding_window_pattern", "5"), "Gemma3ForCausalLM").full_every == 5);
}

TEST_CASE("Qwen's windows are asked for, and begin behind some layers") {
  for (const char* name : {"Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    const Fields fields = with(llama, "sliding_window", "1000");
    CHECK(window_of(fields, name).tokens == 0);
    CHECK(window_of(with(fields, "use_sliding_window", "false"), name).tokens == 0);
    const Fields asked = with(fields, "use_sliding_window", "true");
    CHECK(window_of(asked, name).tokens == 1000);
    CHECK(window_of(asked, name).full_first == 28);
    CHECK(window_of(with(asked, "max_window_layers", "20"), name).full_first == 20);
    CHECK(window_of(with(asked, "max_window_layers", "32"), name).tokens == 0);
  }
}

TEST_CASE("layer_types say it layer by layer, and a pattern among them is found") {
  const auto types = [](const std::vector<int>& full, int layers = 32) {
    std::string text = "[";
    for (int i = 0; i < layers; ++i)
      text += std::string(i > 0 ? ", " : "") +
              (std::find(full.begin(), full.end(), i) != full.end() ? "\"full_attention\"" : "\"sliding_attention\"");
    return text + "]";
  };
  const Fields windows = with(llama, "sliding_window", "1000");
  const auto read = [&](const std::vector<int>& full) {
    return window_of(with(windows, "layer_types", types(full)), "Gemma2ForCausalLM");
  };
  CHECK(read({7, 15, 23, 31}).full_every == 8);
  CHECK(read({7, 15, 23, 31}).full_at.empty());
  CHECK(read({4, 9, 14, 19, 24, 29}).full_every == 5);
  CHECK(read({}).full_every == 0);
  CHECK(read({}).tokens == 1000);
  CHECK(read({0, 5}).full_at == std::vector<int>{0, 5});
  std::vector<int> all(32);
  for (int i = 0; i < 32; ++i) all[static_cast<std::size_t>(i)] = i;
  CHECK(read(all).tokens == 0);
  // Bad: another number of layers, another kind, no list.
  const Fields gemma2 = with(windows, "architectures", "[\"Gemma2ForCausalLM\"]");
  const auto short_list = parse_hf_config(json_of(with(gemma2, "layer_types", types({1}, 3))), "config.json");
  REQUIRE(short_list.errors().size() == 1);
  CHECK(short_list.errors()[0].message == "layer_types names 3 layers, num_hidden_layers 32");
  CHECK(short_list.errors()[0].where.line == line_of(with(gemma2, "layer_types", ""), "layer_types"));
  std::string other = types({});
  other.replace(1, 19, "\"linear_attention\"");
  const Diagnostics found = warnings(with(gemma2, "layer_types", other));
  REQUIRE(found.size() == 1);
  CHECK(found[0].message == "'linear_attention' is not modelled");
  CHECK_FALSE(parse_hf_config(json_of(with(gemma2, "layer_types", "3")), "config.json").ok());
  CHECK_FALSE(parse_hf_config(json_of(with(gemma2, "sliding_window", "-1")), "config.json").ok());
  CHECK_FALSE(parse_hf_config(json_of(with(gemma2, "sliding_window_pattern", "0")), "config.json").ok());
}

TEST_CASE("attention and MLP that read the same input") {
  CHECK(parallel_mlp_of(llama).norms == 0);
  CHECK(parallel_mlp_of(neox).norms == 2);
  CHECK(parallel_mlp_of(neox).one_reduce);
  CHECK(parallel_mlp_of(with(neox, "use_parallel_residual", "false")).norms == 0);
  // `falcon` has the new decoder (Falcon 40B); the older one has one norm (7B).
  CHECK(parallel_mlp_of(falcon).norms == 2);
  CHECK(parallel_mlp_of(with(falcon, "num_ln_in_parallel_attn", "1")).norms == 1);
  const Fields old = without(without(falcon, "new_decoder_architecture"), "num_kv_heads");
  CHECK(parallel_mlp_of(old).norms == 1);
  CHECK(parallel_mlp_of(with(old, "parallel_attn", "false")).norms == 0);
  const ParallelMlp cohere = parallel_mlp_of(with(llama, "architectures", "[\"CohereForCausalLM\"]"));
  CHECK(cohere.norms == 1);
  CHECK_FALSE(cohere.one_reduce);
}

TEST_CASE("GPT-J: one norm, rotary positions") {
  const Fields gptj{{"architectures", "[\"GPTJForCausalLM\"]"},
                    {"n_embd", "4096"},
                    {"n_head", "16"},
                    {"n_layer", "28"},
                    {"n_positions", "2048"},
                    {"vocab_size", "50400"}};
  const auto m = parse_hf_config(json_of(gptj), "config.json");
  REQUIRE(m.ok());
  CHECK(m->parallel_mlp.norms == 1);
  CHECK(m->learned_positions == 0);
  CHECK(m->ffn == 4 * 4096);
  CHECK(parameter_count(*m) == Approx(6.05e9).epsilon(0.01));  // GPT-J 6B, its model card
  CHECK_FALSE(parse_hf_config(json_of(without(gptj, "n_head")), "config.json").ok());
}

TEST_CASE("two wrong fields are two diagnostics") {
  const auto m = parse_hf_config(json_of(with(with(llama, "vocab_size", "0"), "hidden_size", "1.5")), "config.json");
  CHECK(m.errors().size() == 2);
}

TEST_CASE("another architecture is named, with what is supported and what is missing") {
  const auto m = parse_hf_config("{\"architectures\": [\"BloomForCausalLM\"], \"hidden_size\": 64, \"vocab_size\": 9}",
                                 "config.json");
  CHECK(to_text(m.errors()) ==
        "config.json:1:20: error: architecture 'BloomForCausalLM' is not supported\n"
        "    hint: supported: LlamaForCausalLM, MistralForCausalLM, Llama4ForCausalLM, Olmo2ForCausalLM, "
        "Phi3ForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM, "
        "GemmaForCausalLM, Gemma2ForCausalLM, Gemma3ForCausalLM, CohereForCausalLM, Cohere2ForCausalLM, "
        "NemotronForCausalLM, NemotronHForCausalLM, MixtralForCausalLM, "
        "MiniMaxM2ForCausalLM, GptOssForCausalLM, Grok1ModelForCausalLM, Qwen2MoeForCausalLM, Qwen3MoeForCausalLM, "
        "Qwen3NextForCausalLM, Qwen3_5ForCausalLM, Qwen3_5MoeForCausalLM, Qwen3_5ForConditionalGeneration, "
        "Qwen3_5MoeForConditionalGeneration, "
        "DeepseekV2ForCausalLM, "
        "DeepseekV3ForCausalLM, DeepseekV32ForCausalLM, GlmMoeDsaForCausalLM, Glm4MoeForCausalLM, GPT2LMHeadModel, "
        "GPTJForCausalLM, GPTNeoXForCausalLM, FalconForCausalLM, RWForCausalLM, MPTForCausalLM; of the fields of a "
        "dense transformer it "
        "lacks: "
        "num_hidden_layers, "
        "num_attention_heads, "
        "intermediate_size\n");
  CHECK(parse_hf_config("{}", "config.json").errors().at(0).message == "required key 'architectures' is missing");
  CHECK(parse_hf_config("{\"architectures\": []}", "config.json").errors().at(0).message == "architectures names none");
}

TEST_CASE("a mixture of experts of another architecture is told what it lacks of one, else to be given inline") {
  const std::string fields =
      "{\"architectures\": [\"GraniteMoeForCausalLM\"], \"num_hidden_layers\": 2, \"hidden_size\": 64, "
      "\"num_attention_heads\": 4, \"intermediate_size\": 128, \"vocab_size\": 9, \"num_local_experts\": 8";
  const auto hint = [](const std::string& text) {
    const auto mixture = parse_hf_config(text, "config.json");
    REQUIRE(mixture.errors().size() == 1);
    return mixture.errors()[0].hint;
  };
  CHECK_THAT(hint(fields + "}"), Catch::Contains("of the fields of a mixture of experts it lacks: num_experts_per_tok, "
                                                 "moe_intermediate_size"));
  CHECK_THAT(hint(fields + ", \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 64}"),
             Catch::Contains("it has the fields of a mixture of experts: give them inline under 'model'"));
}

namespace {

Fields mixture_of(const char* architecture, Fields more) {
  Fields all = with(llama, "architectures", "[\"" + std::string(architecture) + "\"]");
  all.merge(more);
  return all;
}

}  // namespace

TEST_CASE("Mixtral: every MLP is 8 experts of its width") {
  const Fields mixtral = mixture_of("MixtralForCausalLM", {{"num_local_experts", "8"}, {"num_experts_per_tok", "2"}});
  const TransformerConfig m = parse_hf_config(json_of(mixtral), "config.json").value();
  CHECK((m.experts.count == 8 && m.experts.top_k == 2 && m.experts.ffn == 14336 && m.experts.shared_ffn == 0));
  CHECK(expert_layers(m) == 32);
  CHECK(parse_hf_config(json_of(without(mixtral, "num_experts_per_tok")), "config.json").errors().at(0).message ==
        "required key 'num_experts_per_tok' is missing");
}

TEST_CASE("Qwen's mixtures: experts of a width of their own, in every so many layers, but where they are left out") {
  const Fields more{{"num_experts", "60"},
                    {"num_experts_per_tok", "4"},
                    {"moe_intermediate_size", "1408"},
                    {"decoder_sparse_step", "2"},
                    {"mlp_only_layers", "[1, 5]"}};
  const TransformerConfig three =
      parse_hf_config(json_of(mixture_of("Qwen3MoeForCausalLM", more)), "config.json").value();
  CHECK((three.experts.count == 60 && three.experts.top_k == 4 && three.experts.ffn == 1408));
  CHECK((three.experts.shared_ffn == 0 && !three.experts.shared_gate));
  // Layers 1, 3, 5 ... 31, less 1 and 5.
  CHECK(expert_layers(three) == 14);
  CHECK((has_experts(three, 3) && !has_experts(three, 2) && !has_experts(three, 5)));
  Fields two = mixture_of("Qwen2MoeForCausalLM", more);
  CHECK(parse_hf_config(json_of(two), "config.json").errors().size() == 1);
  two["shared_expert_intermediate_size"] = "5632";
  const TransformerConfig m = parse_hf_config(json_of(two), "config.json").value();
  CHECK((m.experts.shared_ffn == 5632 && m.experts.shared_gate));
}

TEST_CASE("DeepSeek: latent attention, shared experts, dense layers first; without routed experts dense") {
  Fields fields = mixture_of("DeepseekV3ForCausalLM", {{"n_routed_experts", "256"},
                                                       {"n_shared_experts", "2"},
                                                       {"num_experts_per_tok", "8"},
                                                       {"moe_intermediate_size", "2048"},
                                                       {"first_k_dense_replace", "3"},
                                                       {"moe_layer_freq", "1"},
                                                       {"q_lora_rank", "1536"},
                                                       {"kv_lora_rank", "512"},
                                                       {"qk_nope_head_dim", "128"},
                                                       {"qk_rope_head_dim", "64"},
                                                       {"v_head_dim", "128"}});
  const TransformerConfig m = parse_hf_config(json_of(fields), "config.json").value();
  CHECK((m.experts.count == 256 && m.experts.shared_ffn == 4096 && m.experts.dense_layers == 3));
  CHECK(expert_layers(m) == 29);
  CHECK((m.latent.q_rank == 1536 && m.latent.kv_rank == 512 && m.key_dim() == 192 && m.value_dim() == 128));
  CHECK((m.kv_heads == 32 && m.head_dim == 192));
  fields["q_lora_rank"] = "null";
  CHECK(parse_hf_config(json_of(fields), "config.json").value().latent.q_rank == 0);
  CHECK(warnings(fields).empty());
  CHECK(parse_hf_config(json_of(without(fields, "qk_nope_head_dim")), "config.json").errors().at(0).hint ==
        "expected a whole number from 1 to 10000000, without unit; or give 'model.mla.nope' in the scenario");
  CHECK(parse_hf_config(json_of(without(fields, "n_routed_experts")), "config.json").value().experts.count == 0);
  CHECK(parse_hf_config(json_of(without(fields, "kv_lora_rank")), "config.json").errors().at(0).message ==
        "required key 'kv_lora_rank' is missing");
}

TEST_CASE("DeepSeek-V3.2 and GLM-5: an indexer chooses the keys") {
  for (const char* name : {"DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM"}) {
    const Fields fields = mixture_of(name, {{"q_lora_rank", "1536"},
                                            {"kv_lora_rank", "512"},
                                            {"qk_nope_head_dim", "128"},
                                            {"qk_rope_head_dim", "64"},
                                            {"v_head_dim", "128"},
                                            {"index_n_heads", "64"},
                                            {"index_head_dim", "128"},
                                            {"index_topk", "2048"}});
    const TransformerConfig m = parse_hf_config(json_of(fields), "config.json").value();
    CHECK((m.sparse.heads == 64 && m.sparse.dim == 128 && m.sparse.top_k == 2048));
    CHECK((m.latent.q_rank == 1536 && m.latent.kv_rank == 512));
    CHECK(warnings(fields).empty());
    for (const char* key : {"index_n_heads", "index_head_dim", "index_topk"}) {
      CHECK(parse_hf_config(json_of(without(fields, key)), "config.json").errors().at(0).message ==
            "required key '" + std::string(key) + "' is missing");
      for (const char* value : {"0", "-1", "1.5", "\"many\""})
        CHECK_FALSE(parse_hf_config(json_of(with(fields, key, value)), "config.json").ok());
    }
    CHECK(warnings(with(fields, "index_topk_freq", "1")).empty());
    CHECK(warnings(with(fields, "index_topk_pattern", "null")).empty());
    REQUIRE(warnings(with(fields, "index_topk_freq", "4")).size() == 1);
    CHECK(warnings(with(fields, "index_topk_freq", "4")).at(0).hint ==
          "every layer is taken to choose its keys by an indexer of its own");
    CHECK(warnings(with(fields, "index_topk_pattern", "\"FFS\"")).size() == 1);
  }
}

TEST_CASE("a config.json whose heads do not divide is refused") {
  CHECK(parse_hf_config(json_of(with(llama, "num_key_value_heads", "7")), "config.json").errors().size() == 1);
  CHECK(parse_hf_config(json_of(with(without(llama, "head_dim"), "hidden_size", "4095")), "config.json")
            .errors()
            .size() == 1);
}
