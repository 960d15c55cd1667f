// Errors of form do not hide errors of reference in the same file, and nothing is said about what cannot be known.
#include <catch2/catch.hpp>

#include "samples.hpp"

using namespace collcast;

namespace {

std::string errors_together(const std::string& text) {
  ScenarioOptions options;
  options.search = samples::shipped();
  return to_text(parse_scenario(samples::head + text, "s.yaml", options).errors());
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a wrong unit and degrees that do not divide are said together") {
  const std::string text = errors_together(
      "model: {layers: 8, hidden: 1024, heads: 16, ffn: 4096, vocab: 1000, dropout: 5s}\n"
      "layout: {tp: 3, pp: 3}\n"
      "batch: {sequence: 128, global_batch: 8}\n"
      "training: {precision: int8}\n");
  INFO(text);
  CHECK(has(text, "s.yaml:4:78: error: model.dropout is '5s'"));
  CHECK(has(text,
            "s.yaml:5:14: error: tp 3 does not divide heads 16 (s.yaml:4:41), ffn 4096 (s.yaml:4:50)\n"
            "    hint: use tp 2 or 4"));
  CHECK(has(text, "s.yaml:5:21: error: pp 3 does not divide layers 8 (s.yaml:4:17)\n    hint: use pp 2 or 4"));
  CHECK(has(text, "s.yaml:7:23: error: training.precision is 'int8'"));
}

TEST_CASE("what depends on a value that could not be read is not judged") {
  // ffn and micro_batch cannot be read: neither tp against ffn nor the batch is judged, and the hint for tp is one that
  // 16 heads allow.
  const std::string text = errors_together(
      "model: {layers: 8, hidden: 1024, heads: 16, ffn: 4k, vocab: 1000}\n"
      "layout: {tp: 3}\n"
      "batch: {sequence: 128, global_batch: 7, micro_batch: two}\n");
  INFO(text);
  CHECK(has(text, "tp 3 does not divide heads 16 (s.yaml:4:41)\n    hint: use tp 2 or 4"));
  CHECK_FALSE(has(text, "does not divide ffn"));
  CHECK_FALSE(has(text, "is not a multiple of micro_batch"));
  CHECK(has(text, "model.ffn is '4k'"));
  CHECK(has(text, "batch.micro_batch is 'two'"));
  // A missing model leaves nothing to divide.
  CHECK(errors_together("layout: {tp: 3, pp: 5}\nbatch: {sequence: 128, global_batch: 8}\n") ==
        "s.yaml:1:1: error: required key 'model' is missing\n    hint: expected a map of keys and values\n");
}

TEST_CASE("a config.json that is not there does not hide the keys beside it") {
  const std::string text =
      errors_together("model: {config: none.json, layres: 4}\nbatch: {sequence: 128, global_batch: 8}\n");
  CHECK(has(text, "file 'none.json' does not exist"));
  CHECK(has(text, "s.yaml:4:28: error: unknown key 'layres' in model"));
}

TEST_CASE("tasks that wait for nothing, names twice and wrong units are said together") {
  const std::string text = errors_together(
      "tasks:\n  list:\n"
      "    - {name: a, stream: compute, duration: 10, category: compute}\n"
      "    - {name: a, stream: compute, duration: 1ms, category: compute, after: [b]}\n");
  INFO(text);
  CHECK(has(text, "s.yaml:6:44: error: tasks.list.0.duration is '10'"));
  CHECK(has(text, "s.yaml:7:7: error: task 'a' is described twice"));
  CHECK(has(text, "s.yaml:7:76: error: task 'a' waits for 'b', which does not exist"));
  // 'b' may be the task whose name cannot be read.
  CHECK_FALSE(has(errors_together("tasks:\n  list:\n"
                                  "    - {name: b/, stream: compute, duration: 1ms, category: compute}\n"
                                  "    - {name: a, stream: compute, duration: 1ms, category: compute, after: [b]}\n"),
                  "does not exist"));
}

TEST_CASE("a task cannot wait for itself, nor for one below it") {
  const std::string text = errors_together(
      "tasks:\n  list:\n"
      "    - {name: a, stream: compute, duration: 1ms, category: compute, after: [a, b]}\n"
      "    - {name: b, stream: compute, duration: 1ms, category: compute}\n");
  INFO(text);
  CHECK(has(text, "s.yaml:6:76: error: task 'a' waits for itself\n"));
  CHECK(has(text, "s.yaml:6:79: error: task 'a' waits for 'b', which comes later\n"));
}

TEST_CASE("a variant's errors are said beside those of the scenario, and those of the scenario once") {
  const std::string text = errors_together(
      "titel: x\n"
      "model: {layers: 8, hidden: 1024, heads: 16, ffn: 4096, vocab: 1000}\n"
      "batch: {sequence: 128, global_batch: 8}\n"
      "what_if:\n"
      "  a: {set: {layout.tq: 2}}\n");
  CHECK(text ==
        "s.yaml:4:1: error: unknown key 'titel'\n    hint: did you mean 'title'? expected one of: title, nodes, "
        "collectives, tasks, ranks, inference, layout, training, search, faults, placement, gates, sweep\n"
        "s.yaml:8:20: error: what_if 'a': unknown path 'layout.tq'\n    hint: did you mean 'layout.tp'?\n");
}

TEST_CASE("a variant whose name is none is still named where its settings are wrong") {
  CHECK(errors_together("model: {layers: 8, hidden: 1024, heads: 16, ffn: 4096, vocab: 1000}\n"
                        "batch: {sequence: 128, global_batch: 8}\n"
                        "what_if: {a b: {set: {layout.tq: 2}}}\n") ==
        "s.yaml:6:11: error: what_if is 'a b'\n"
        "    hint: expected a name of letters, digits, '-', '_' and '.'\n"
        "s.yaml:6:30: error: what_if 'a b': unknown path 'layout.tq'\n    hint: did you mean 'layout.tp'?\n");
}

TEST_CASE("one error of each kind, in the model, the layout, the batch and the machine, is said in one run") {
  const std::string text = errors_together(
      "nodes: 1\n"
      "model: {layers: 30, hidden: 4096, heads: 32, kv_heads: 5, ffn: 14336, vocab: 128256, experts: {count: 10, "
      "top_k: 20, ffn: 1024}}\n"
      "layout: {tp: 3, pp: 4, dp: 16, ep: 4, sequence_parallel: true}\n"
      "batch: {sequence: 0, micro_batch: 2, global_batch: 7}\n"
      "training: {precision: bf15}\n");
  INFO(text);
  CHECK(has(text, "s.yaml:5:56: error: model.kv_heads 5 does not divide model.heads 32 (s.yaml:5:42)"));
  CHECK(has(text, "s.yaml:5:114: error: a token cannot go to 20 of 10 experts (s.yaml:5:103)"));
  CHECK(has(text, "s.yaml:6:14: error: tp 3 does not divide heads 32 (s.yaml:5:42)\n    hint: use tp 2 or 4"));
  CHECK(has(text, "s.yaml:6:14: error: expert tp 3 does not divide the width of an expert, 1024"));
  CHECK(has(text, "s.yaml:6:21: error: pp 4 does not divide layers 30 (s.yaml:5:17)\n    hint: use pp 3 or 5"));
  CHECK(has(text, "s.yaml:6:36: error: ep 4 does not divide the 10 experts (s.yaml:5:103)"));
  CHECK(has(text, "s.yaml:6:21: error: tp 3 x pp 4 needs 12 GPUs, the machine has 8 (s.yaml:4:8)"));
  CHECK(has(text, "s.yaml:7:19: error: batch.sequence is '0'"));
  CHECK(has(text, "error: global_batch 7 is not a multiple of micro_batch 2"));
  CHECK(has(text, "s.yaml:8:23: error: training.precision is 'bf15'"));
  // 32 heads, 30 layers, 10 experts, 8 GPUs, and 7 samples in micro-batches of 2, which no dp makes whole.
  CHECK_FALSE(has(text, "nearest layout"));
}

TEST_CASE("a layout that works is named beside errors of form") {
  const std::string text = errors_together(
      "nodes: 2\n"
      "model: {layers: 30, hidden: 4096, heads: 32, ffn: 14336, vocab: 32000}\n"
      "layout: {tp: 3, pp: 4, dp: 16, sequence_parallel: true}\n"
      "batch: {sequence: 0, global_batch: 100}\n");
  INFO(text);
  CHECK(has(text, "s.yaml:7:19: error: batch.sequence is '0'"));
  // 3/2, 2 and 4 times less, a product of 12; tp 1, pp 3 and dp 5, which fits as well, is 3, 4/3 and 16/5, 12.8.
  CHECK(has(text, "; the nearest layout that works but for the other errors: tp 2, pp 2, dp 4"));
}

TEST_CASE("a machine without memory does not hide a layout that is too large for it") {
  ScenarioOptions options;
  options.search = samples::shipped();
  options.overrides = {{"topology.gpu.memory", "0GB", {}, {}}};
  const std::string text = to_text(
      parse_scenario(samples::head + "nodes: 2\nmodel: {layers: 8, hidden: 1024, heads: 16, ffn: 4096, vocab: 1000}\n"
                                     "layout: {tp: 4, dp: 8}\nbatch: {sequence: 128, global_batch: 8}\n",
                     "s.yaml", options)
          .errors());
  INFO(text);
  CHECK(has(text, "gpu.memory is '0GB'\n    hint: expected a size from 1B"));
  CHECK(has(text, "s.yaml:6:21: error: tp 4 x pp 1 x dp 8 needs 32 GPUs, the machine has 16 (s.yaml:4:8)"));
}

TEST_CASE("a part of a model that is begun is described whole, and what is missing of it is said at its place") {
  const auto model = [](const std::string& part) {
    return errors_together("model: {layers: 8, hidden: 1024, heads: 16, ffn: 4096, vocab: 1000, " + part +
                           "}\nbatch: {sequence: 128, global_batch: 8}\n");
  };
  CHECK(has(model("experts: {count: 8}"), "error: required key 'top_k' is missing in model.experts\n"));
  CHECK(has(model("experts: {count: 8}"), "error: required key 'ffn' is missing in model.experts\n"));
  CHECK_FALSE(has(model("experts: {count: 8}"), "is 0"));
  for (const char* key : {"count", "top_k", "ffn"})
    CHECK(has(model("experts: {}"),
              "s.yaml:4:78: error: required key '" + std::string(key) + "' is missing in model.experts\n"));
  for (const char* key : {"nope", "rope", "value"})
    CHECK(has(model("mla: {kv_rank: 64}"),
              "s.yaml:4:74: error: required key '" + std::string(key) + "' is missing in model.mla\n"));
  CHECK_FALSE(has(model("mla: {kv_rank: 64}"), "is 0"));
  CHECK(has(model("mla: {}"), "required key 'kv_rank' is missing in model.mla\n"));
  for (const char* key : {"heads", "dim", "top_k"})
    CHECK(has(model("sparse_attention: {}"),
              "s.yaml:4:87: error: required key '" + std::string(key) + "' is missing in model.sparse_attention\n"));
  CHECK(has(model("window: {}"), "required key 'tokens' is missing in model.window\n"));
  CHECK(model("window: {tokens: 0}").empty());
}

TEST_CASE("a part that a config.json does not have is begun by a setting") {
  const auto set = [](const char* path, const char* value) {
    ScenarioOptions options;
    options.search = samples::shipped();
    options.overrides.push_back(parse_override(std::string(path) + "=" + value).value());
    return to_text(parse_scenario(samples::head + std::string("model: {config: models/llama3-8b/config.json}\n"
                                                              "batch: {sequence: 128, global_batch: 8}\n"),
                                  "s.yaml", options)
                       .errors());
  };
  const std::string experts = set("model.experts.count", "8"), latent = set("model.mla.kv_rank", "512");
  INFO(experts << latent);
  CHECK(has(experts, "required key 'top_k' is missing in model.experts"));
  CHECK(has(experts, "required key 'ffn' is missing in model.experts"));
  CHECK(has(latent, "required key 'nope' is missing in model.mla"));
  CHECK_FALSE(has(experts, "config.json:"));
  CHECK_FALSE(has(latent, "config.json:"));
}

TEST_CASE("an indexer that goes with nothing else of its model is said at its places, beside what cannot be read") {
  const auto model = [](const std::string& part, const std::string& training) {
    return errors_together("model: {layers: 8, hidden: 1024, heads: 16, ffn: 4096, vocab: 1000, " + part +
                           "}\nbatch: {sequence: 128, global_batch: 8}\ntraining: {precision: " + training + "}\n");
  };
  const std::string mla = "mla: {q_rank: 256, kv_rank: 128, nope: 64, rope: 32, value: 64}, ",
                    sparse = "sparse_attention: {heads: 4, dim: 64, top_k: 64}";
  CHECK(model(mla + sparse, "bf16").empty());
  CHECK(has(model(sparse, "int8"),
            "s.yaml:4:87: error: sparse attention chooses among the vectors that latent attention keeps, and the model "
            "has none\n    hint: give model.mla, or leave it out\n"));
  CHECK(has(model(sparse, "int8"), "s.yaml:6:23: error: training.precision is 'int8'"));
  for (const char* part : {"a sliding window does not go with sparse attention (s.yaml:4:189)",
                           "sparse attention (s.yaml:4:189) is modelled of causal attention"})
    CHECK(has(model("window: {tokens: 32}, causal: false, " + mla + sparse, "int8"), part));
}

TEST_CASE("figures of an indexer that are none, each at its place") {
  const auto indexer = [](const std::string& keys) {
    return errors_together(
        "model: {layers: 8, hidden: 1024, heads: 16, ffn: 4096, vocab: 1000, mla: {q_rank: 256, kv_rank: 128, nope: "
        "64, rope: 32, value: 64}, sparse_attention: {" +
        keys + "}}\nbatch: {sequence: 128, global_batch: 8}\n");
  };
  CHECK(indexer("heads: 4, dim: 64, top_k: 64").empty());
  for (const char* value : {"0", "-1", "1.5", "many", "64B"}) {
    CHECK(has(indexer(std::string("heads: 4, dim: 64, top_k: ") + value),
              std::string("error: model.sparse_attention.top_k is '") + value + "'"));
    CHECK(has(indexer(std::string("top_k: 64, dim: 64, heads: ") + value),
              std::string("error: model.sparse_attention.heads is '") + value + "'"));
    CHECK(has(indexer(std::string("top_k: 64, heads: 4, dim: ") + value),
              std::string("error: model.sparse_attention.dim is '") + value + "'"));
  }
  CHECK(has(indexer("heads: 4, dim: 64, topk: 64"), "did you mean 'top_k'?"));
  const std::string two = indexer("heads: none, dim: 64, top_k: 0");
  CHECK(has(two, "model.sparse_attention.heads is 'none'"));
  CHECK(has(two, "model.sparse_attention.top_k is '0'"));
}

TEST_CASE("layers that a window names are layers of the model") {
  const std::string model = "model: {layers: 8, hidden: 1024, heads: 16, ffn: 4096, vocab: 1000, window: ",
                    rest = "}\nbatch: {sequence: 128, global_batch: 8}\n";
  CHECK(errors_together(model + "{tokens: 32, full_at: [7]}" + rest).empty());
  CHECK(errors_together(model + "{tokens: 32, full_at: [3, 8, 99]}" + rest) ==
        "s.yaml:4:103: error: model.window.full_at names layer 8, the model has layers 0 to 7 (s.yaml:4:17)\n"
        "    hint: leave it out\n"
        "s.yaml:4:106: error: model.window.full_at names layer 99, the model has layers 0 to 7 (s.yaml:4:17)\n"
        "    hint: leave it out\n");
  CHECK(has(errors_together(model + "{tokens: 32, full_first: 99}" + rest + "training: {precision: int8}\n"),
            "s.yaml:4:102: error: none of the 8 layers (s.yaml:4:17) has a sliding window\n"
            "    hint: use a smaller full_first, or no window\n"));
}

TEST_CASE("layers that linear attention names are layers of the model") {
  const std::string model = "model: {layers: 8, hidden: 1024, heads: 16, ffn: 4096, vocab: 1000, linear_attention: ",
                    rest = "}\nbatch: {sequence: 128, global_batch: 8}\n",
                    sizes = "key_heads: 4, value_heads: 8, key_dim: 64, value_dim: 64";
  CHECK(errors_together(model + "{" + sizes + ", full_at: [7]}" + rest).empty());
  CHECK(has(errors_together(model + "{" + sizes + ", full_at: [8]}" + rest),
            "error: model.linear_attention.full_at names layer 8, the model has layers 0 to 7 (s.yaml:4:17)\n"));
  const std::string few = errors_together(model + "{key_heads: 4}" + rest);
  for (const char* key : {"value_heads", "key_dim", "value_dim"})
    CHECK(has(few, std::string("required key '") + key + "' is missing in model.linear_attention"));
}
