// What a scenario's values become, its variants, and what its tasks may wait for.
#include <catch2/catch.hpp>

#include "folder.hpp"
#include "samples.hpp"

using Catch::Matchers::Contains;

using namespace collcast;

namespace {

const std::string model = "model: {layers: 8, hidden: 1024, heads: 16, ffn: 4096, vocab: 1000}\n";
const std::string batch = "batch: {sequence: 128, global_batch: 8}\n";

ScenarioOptions options(const std::vector<std::string>& settings = {}, const std::string& what_if = "") {
  ScenarioOptions o;
  o.search = samples::shipped();
  o.what_if = what_if;
  for (const std::string& text : settings) o.overrides.push_back(parse_override(text).value());
  return o;
}
Result<Scenario> parse(const std::string& text, const ScenarioOptions& o = options()) {
  return parse_scenario(text, "s.yaml", o);
}
std::string errors_of(const std::string& text, const ScenarioOptions& o = options()) {
  const auto scenario = parse(text, o);
  return scenario ? "" : to_text(scenario.errors());
}
/// A scenario of one-line tasks.
std::string tasks_of(const std::string& lines) { return samples::head + "tasks:\n  list:\n" + lines; }

}  // namespace

TEST_CASE("a step has defaults where the file is silent") {
  const Scenario s = parse(samples::head + model + batch).value();
  REQUIRE(s.step);
  CHECK_FALSE(s.tasks);
  CHECK(s.nodes == 0);
  CHECK(s.topology.name == "dgx-a100");
  CHECK(s.step->model.kv_heads == 16);
  CHECK(s.step->model.head_dim == 64);  // 1024 / 16
  CHECK(s.step->layout.world() == 1);
  CHECK(s.step->batch.micro_batch == 1);
  CHECK(s.step->options.precision == "bf16");
  CHECK(s.step->gpu.model == "A100-SXM4-80GB");
  CHECK(s.step->kernels.name == "a100");
  CHECK(s.collectives.algorithm == "auto");
  CHECK(s.collectives.chunks == 0);
  CHECK(s.sharing == Sharing::max_min);
}

TEST_CASE("every section arrives") {
  const Scenario s =
      parse(samples::head + "nodes: 3\n" + model +
            "layout: {tp: 2, pp: 3, dp: 4, order: tp-cp-ep-dp-pp, sequence_parallel: true, uneven_stages: true, "
            "schedule: gpipe}\n"
            "batch: {sequence: 256, micro_batch: 2, global_batch: 16}\n"
            "training: {precision: fp16, recompute: selective, attention: unfused, zero: 1, gradient_bytes: 2, "
            "overlap_dp: false, align_grad_reduce: false, "
            "bucket: 8MB, overlap_pp: false, launch: 7us, launch_backward: 2us, optimizer: false, "
            "embedding_and_logits: false}\n"
            "collectives: {algorithm: ring, chunks: 16, channels: 2, sharing: fifo, priorities: [tp, pp]}\n")
          .value();
  CHECK(s.nodes == 3);
  const StepInputs& step = *s.step;
  CHECK((step.layout.tp == 2 && step.layout.pp == 3 && step.layout.dp == 4 && step.layout.sequence_parallel));
  CHECK(step.layout.order == RankOrder::tp_cp_ep_dp_pp);
  CHECK(step.layout.uneven_stages);
  CHECK(step.layout.schedule == PipelineSchedule::gpipe);
  CHECK(step.layout.vpp == 1);
  CHECK((step.batch.sequence == 256 && step.batch.micro_batch == 2 && step.batch.global_batch == 16));
  const TrainingOptions& t = step.options;
  CHECK(t.precision == "fp16");
  CHECK(t.recompute == Recompute::selective);
  CHECK(t.attention == Attention::unfused);
  CHECK((t.zero == 1 && t.gradient_bytes == 2 && t.bucket == Bytes(8'000'000)));
  CHECK(t.launch == Seconds(7e-6));
  CHECK(t.launch_backward == Seconds(2e-6));
  CHECK_FALSE((t.overlap_dp || t.align_grad_reduce || t.overlap_pp || t.optimizer || t.embedding_and_logits));
  CHECK(s.collectives.algorithm == "ring");
  CHECK((s.collectives.chunks == 16 && s.collectives.channels == 2));
  CHECK(s.sharing == Sharing::fifo);
  CHECK(s.step->priorities == std::vector{Dimension::tp, Dimension::pp});
}

TEST_CASE("weights are counts by dimension, of links that are shared") {
  const std::string of = samples::head + model + batch + "collectives: {library: ideal, ";
  const Scenario s = parse(of + "weights: {tp: 4, dp: 1}, priorities: [pp]}\n").value();
  CHECK(s.step->traffic(Dimension::tp) == TrafficClass(1, 4));
  CHECK(s.step->traffic(Dimension::pp) == TrafficClass(0, 1));
  CHECK(s.step->traffic(Dimension::cp) == TrafficClass(1, 1));
  CHECK_THAT(to_text(parse(of + "weights: {tp: 0, vp: 2}}\n").errors()),
             Contains("collectives.weights.tp is '0'") && Contains("unknown key 'vp' in collectives.weights"));
  CHECK_THAT(to_text(parse(of + "sharing: fifo, weights: {tp: 2}}\n").errors()),
             Contains("one message has a link at a time"));
}

TEST_CASE("priorities name dimensions, each once, of a step whose messages are simulated") {
  const auto wrong = [](const std::string& rest) { return to_text(parse(samples::head + model + rest).errors()); };
  const std::string trained = batch + "collectives: {library: ideal, priorities: ";
  CHECK_THAT(wrong(trained + "[tp, dp, tp]}\n"),
             Contains("'collectives.priorities' names 'tp' again") && Contains("expected each dimension once"));
  CHECK_THAT(wrong(trained + "[tp, vp]}\n"), Contains("collectives.priorities.1 is 'vp'") && Contains("tp"));
  CHECK_THAT(wrong(trained + "tp}\n"), Contains("expected a list [tp]"));
  CHECK_THAT(wrong(trained + "'tp, pp,dp'}\n"), Contains("expected a list [tp, pp, dp]"));
  CHECK_THAT(wrong(trained + "'tp, '}\n") + wrong(trained + "'a: b'}\n") + wrong(trained + "{tp: 1}}\n"),
             Contains("expected a list [...]") && !Contains("[tp") && !Contains("[a"));
  CHECK_THAT(wrong(batch + "collectives: {library: nccl, priorities: [tp], weights: {tp: 2}}\n"),
             Contains("'collectives.priorities'") && Contains("'collectives.weights'") &&
                 Contains("of library nccl no messages are simulated"));
  CHECK_THAT(wrong("inference: {batch: 1, prompt_tokens: 64, output_tokens: 2}\ncollectives: {priorities: [tp]}\n"),
             Contains("'collectives.priorities' has no meaning here"));
}

TEST_CASE("an interleaved schedule arrives with its chunks") {
  const Scenario s =
      parse(samples::head + model + batch + "layout: {pp: 2, schedule: interleaved, vpp: 2}\nsearch: {vpp: [1, 2]}\n")
          .value();
  CHECK(s.step->layout.schedule == PipelineSchedule::interleaved);
  CHECK(s.step->layout.vpp == 2);
  CHECK(s.search.vpp == std::vector<int>{1, 2});
}

TEST_CASE("sharded data parallelism arrives with its shards") {
  const Scenario s = parse(samples::head + model + batch +
                           "layout: {dp: 8, dp_shard: 4}\ntraining: {zero: 3, reshard_after_forward: false}\n"
                           "search: {zero: [0, 1, 2, 3]}\n")
                         .value();
  CHECK((s.step->layout.dp_shard == 4 && s.step->layout.shards() == 4 && s.step->layout.shard_copies() == 2));
  CHECK((s.step->options.zero == 3 && !s.step->options.reshard_after_forward));
  CHECK(s.search.zero == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("a model comes from its config.json, and keys beside it replace its values") {
  const Scenario s =
      parse(samples::head + batch + "model: {config: models/llama3-8b/config.json, layers: 4}\n").value();
  CHECK(s.step->model.name == "llama3-8b");
  CHECK(s.step->model.layers == 4);
  CHECK(s.step->model.hidden == 4096);
  CHECK(s.step->model.kv_heads == 8);
  // 2048 / 16 heads: the size of a head follows unless it is given.
  const Scenario smaller =
      parse(samples::head + batch + "model: {config: models/llama3-8b/config.json, hidden: 2048, heads: 16}\n").value();
  CHECK(smaller.step->model.head_dim == 128);
  CHECK(smaller.step->model.kv_heads == 8);
  // A file that states the size of a head keeps it, where 5120 / 32 and 2560 / 64 would be others.
  for (const char* shape : {"heads: 32", "hidden: 2560"}) {
    const Scenario stated =
        parse(samples::head + batch + "model: {config: models/qwen3-32b/config.json, " + shape + "}\n").value();
    CHECK(stated.step->model.head_dim == 128);
  }
}

TEST_CASE("config.json is looked for beside the scenario first") {
  const Folder folder("config");
  folder.file(
      "models/llama3-8b/config.json",
      R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                  "intermediate_size": 128, "vocab_size": 100})");
  const std::string file =
      folder.file("mine.yaml", samples::head + batch + "model: {config: models/llama3-8b/config.json}\n");
  CHECK(load_scenario(file, options()).value().step->model.hidden == 64);
  CHECK(errors_of(samples::head + batch + "model: {config: models/none/config.json}\n")
            .find("s.yaml:5:17: error: file 'models/none/config.json' does not exist") == 0);
}

TEST_CASE("errors of scenario, machine and config.json come together") {
  const Folder folder("together");
  folder.file("m.yaml", "schema: collcast.topology.v1\nname: m\nnode: {devices: {gpu: {kind: gpu, count: 0}}}\n");
  folder.file("c.json", "{\"architectures\": [\"LlamaForCausalLM\"]}");
  const std::string file = folder.file("s.yaml",
                                       "schema: collcast.scenario.v1\nname: s\ntopology: m.yaml\nmodel: {config: "
                                       "c.json}\nbatch: {sequence: 0, global_batch: 8}\n");
  const auto scenario = load_scenario(file, options());
  std::vector<std::string> files;
  for (const Diagnostic& d : scenario.errors()) files.push_back(d.where.file.substr(folder.path().size() + 1));
  // The five required fields, one count of the machine, one of the batch.
  CHECK(files == std::vector<std::string>{"c.json", "c.json", "c.json", "c.json", "c.json", "m.yaml", "s.yaml"});
}

TEST_CASE("degrees and samples whose products overflow are refused") {
  CHECK(errors_of(samples::head + model + batch + "layout: {tp: 10000000, pp: 10000000, dp: 10000000}\n")
            .find("are too many ranks") != std::string::npos);
  CHECK(errors_of(samples::head + model + batch + "layout: {tp: 1, pp: 4000, dp: 4000}\n").find("are too many ranks") !=
        std::string::npos);
  CHECK(errors_of(samples::head + model + "batch: {sequence: 10000000, micro_batch: 100000, global_batch: 1}\n")
            .find("are too many tokens") != std::string::npos);
  CHECK(errors_of(samples::head + model +
                  "layout: {dp: 10000000}\nbatch: {sequence: 1, micro_batch: 1000, global_batch: 1}\n")
            .find("are too many samples") != std::string::npos);
}

TEST_CASE("slices of the model that 32 bits do not hold are refused where the larger factor is written") {
  // 2^19 x 2^13 = 2^32, which is 0 in 32 bits.
  const std::string found =
      errors_of(samples::head + model + batch + "layout: {pp: 524288, vpp: 8192, schedule: interleaved}\n");
  CHECK(found.find("layout.pp 524288 x vpp 8192 are too many slices of the model") != std::string::npos);
  CHECK(found.find("expected up to 10000000") != std::string::npos);
  CHECK(errors_of(samples::head + model + batch + "layout: {pp: 2000, vpp: 5000, schedule: interleaved}\n")
            .find("too many slices") == std::string::npos);
  ParallelLayout layout;
  layout.pp = 524288;
  layout.vpp = 8192;
  CHECK(layout.slices() == std::int64_t{1} << 32);
}

TEST_CASE("a model whose heads do not divide is refused") {
  CHECK(errors_of(samples::head + batch + "model: {layers: 8, hidden: 1000, heads: 16, ffn: 4096, vocab: 1000}\n")
            .find("model.hidden 1000 is not a multiple of model.heads 16") != std::string::npos);
  CHECK(errors_of(samples::head + batch +
                  "model: {layers: 8, hidden: 1024, heads: 16, kv_heads: 5, ffn: 4096, vocab: 1000}\n")
            .find("model.kv_heads 5 does not divide model.heads 16 (s.yaml:5:41)") != std::string::npos);
}

TEST_CASE("a step needs a machine with a GPU and its kernel table") {
  const Result<Scenario> s = parse("schema: collcast.scenario.v1\nname: s\ntopology: ethernet-hosts\n" + model + batch);
  REQUIRE(s.errors().size() == 1);
  CHECK(s.errors()[0].message == "machine 'ethernet-hosts' describes no GPU, which a training step needs");
  CHECK(s.errors()[0].where.line == 3);
  CHECK(errors_of(samples::head + model + batch, options({"topology.gpu.kernels=a10"}))
            .find("there is no kernel table 'a10'") != std::string::npos);
}

TEST_CASE("a kernel table beside the user's own machine is found") {
  const Folder folder("kernels");
  folder.file("kernels/mine.yaml",
              "schema: collcast.kernels.v1\nname: mine\nsources: [lab]\n"
              "gemm: {bf16: {overhead: 1us, compute: 1, memory: 1, source: a}}\n"
              "attention: {bf16: {overhead: 1us, compute: 1, memory: 1, source: b}}\n"
              "memory_bound: {overhead: 1us, compute: 1, memory: 1, source: c}\n");
  folder.file(
      "m.yaml",
      "schema: collcast.topology.v1\nname: m\nnode: {devices: {gpu: {kind: gpu}}}\n"
      "gpu: {model: G, memory: 1GB, memory_bandwidth: 1TB/s, peak: {bf16: 1TFLOP/s}, kernels: mine, source: s}\n");
  const std::string file =
      folder.file("s.yaml", "schema: collcast.scenario.v1\nname: s\ntopology: m.yaml\n" + model + batch);
  CHECK(load_scenario(file, options()).value().step->kernels.name == "mine");
}

TEST_CASE("tasks wait for tasks above them") {
  const Scenario s = parse(tasks_of("    - {name: a, stream: compute, duration: 2ms, category: compute}\n"
                                    "    - {name: b, stream: tp, duration: 1ms, after: [a], category: tp}\n"))
                         .value();
  REQUIRE(s.tasks);
  CHECK_FALSE(s.step);
  CHECK(s.tasks->overlap);
  REQUIRE(s.tasks->tasks.size() == 2);
  CHECK(s.tasks->tasks[1].stream == "tp");
  CHECK(s.tasks->tasks[1].duration == Seconds(1e-3));
  CHECK(s.tasks->tasks[1].after == std::vector<std::string>{"a"});
  CHECK(s.tasks->tasks[1].category == Category::tp);
}

TEST_CASE("waiting for a later, the same or no task, and a name twice, are errors") {
  const std::string rest = ", stream: compute, duration: 1ms, category: compute";
  const std::string text = errors_of(tasks_of("    - {name: first" + rest + "}\n    - {name: b" + rest +
                                              ", after: [c, b, frist]}\n    - {name: c" + rest + "}\n"));
  CHECK(text.find("s.yaml:7:76: error: task 'b' waits for 'c', which comes later") != std::string::npos);
  CHECK(text.find("task 'b' waits for itself") != std::string::npos);
  CHECK(text.find("task 'b' waits for 'frist', which does not exist\n    hint: did you mean 'first'?") !=
        std::string::npos);
  CHECK(errors_of(tasks_of("    - {name: a" + rest + "}\n    - {name: a" + rest + "}\n"))
            .find("s.yaml:7:7: error: task 'a' is described twice") != std::string::npos);
  CHECK(errors_of(samples::head + "tasks: {list: []}\n").find("tasks.list is empty") != std::string::npos);
}

TEST_CASE("a scenario is either a step or tasks") {
  const std::string text =
      errors_of(tasks_of("    - {name: a, stream: compute, duration: 1ms, category: compute}\n") + batch);
  CHECK(text.find("s.yaml:7:1: error: 'batch' has no meaning here: the scenario is made of 'tasks'") == 0);
}

TEST_CASE("a variant changes the scenario and its machine") {
  const std::string text = samples::head + model + batch +
                           "what_if:\n  wide: {title: \"More TP\", set: {layout.tp: 4, "
                           "topology.network.link.bandwidth: 800Gb/s}}\n  deep: {set: {layout.pp: 2}}\n";
  const Scenario base = parse(text).value();
  CHECK(base.what_if == std::vector<std::string>{"wide", "deep"});
  CHECK(base.step->layout.tp == 1);
  const Scenario wide = parse(text, options({}, "wide")).value();
  CHECK(wide.step->layout.tp == 4);
  CHECK(std::get<LeafSpineNetwork>(wide.topology.network).bandwidth == Bandwidth(100e9));
  // The command line comes after the variant.
  CHECK(parse(text, options({"layout.tp=2"}, "wide")).value().step->layout.tp == 2);
}

TEST_CASE("a variant that nobody chose is still checked") {
  const std::string text =
      errors_of(samples::head + model + batch +
                "what_if:\n  bad:\n    set:\n      layuot.tp: 4\n      topology.network.link.bandwidth: fast\n");
  CHECK(text.find("s.yaml:9:7: error: what_if 'bad': unknown path 'layuot.tp'\n    hint: did you mean 'layout.tp'?") ==
        0);
  CHECK(text.find("s.yaml:10:40: error: what_if 'bad': network.link.bandwidth is 'fast'") != std::string::npos);
}

TEST_CASE("an unknown variant is answered with the nearest one") {
  const std::string text = samples::head + model + batch + "what_if: {wide: {set: {layout.tp: 4}}}\n";
  CHECK(errors_of(text, options({}, "wied")) ==
        "s.yaml:6:10: error: there is no what_if 'wied'\n    hint: did you mean 'wide'? expected one of: wide\n");
  CHECK(errors_of(samples::head + model + batch, options({}, "x")).find("this scenario has none") != std::string::npos);
}

TEST_CASE("what_if itself cannot be set, and an unknown machine path names the topology") {
  CHECK(errors_of(samples::head + model + batch, options({"what_if.a=1"})).find("'what_if' cannot be set") !=
        std::string::npos);
  CHECK(errors_of(samples::head + model + batch, options({"topology.netwrok.spines=1"}))
            .find("--set topology.netwrok.spines=1:1:16: error: unknown path 'topology.netwrok.spines'\n    hint: did "
                  "you mean "
                  "'topology.network.spines'?") == 0);
}

TEST_CASE("the default number of nodes cannot be set for a step, which does not look at it") {
  CHECK(errors_of(samples::head + model + batch, options({"topology.nodes.default=4"})) ==
        "--set topology.nodes.default=4:1:7: error: 'topology.nodes.default' has no effect on a step\n"
        "    hint: set 'nodes' (--nodes), or leave it to the layout\n");
  const std::string tasks = tasks_of("    - {name: a, stream: compute, duration: 2ms, category: compute}\n");
  CHECK(parse(tasks, options({"topology.nodes.default=4"})).value().topology.default_nodes == 4);
}

TEST_CASE("a list element is found by its name") {
  const std::string text = tasks_of("    - {name: a, stream: compute, duration: 2ms, category: compute}\n");
  CHECK(parse(text, options({"tasks.list.a.duration=7ms"})).value().tasks->tasks[0].duration == Seconds(7e-3));
  CHECK(errors_of(text, options({"tasks.list.b.duration=7ms"})).find("the list has no element 'b'") !=
        std::string::npos);
}

TEST_CASE("the command line may name another machine and number of nodes") {
  ScenarioOptions o = options();
  o.topology = "dgx-h100";
  o.overrides.push_back({"nodes", "5", {"--nodes 5", 1, 1}, {"--nodes 5", 1, 9}});
  const Scenario s = parse(samples::head + model + batch, o).value();
  CHECK(s.topology.name == "dgx-h100");
  CHECK(s.step->gpu.model == "H100-SXM5-80GB");
  CHECK(s.nodes == 5);
  o.topology = "nowhere";
  CHECK(errors_of(samples::head + model + batch, o)
            .find("--topology nowhere:1:12: error: there is no machine 'nowhere'") == 0);
}

TEST_CASE("an unknown algorithm is answered with the known ones") {
  const std::string text = errors_of(samples::head + model + batch + "collectives: {algorithm: rnig}\n");
  CHECK(text.find("s.yaml:6:26: error: collectives.algorithm is 'rnig'\n    hint: did you mean 'ring'? expected one "
                  "of: auto, ") == 0);
}

TEST_CASE("the limit of layers is one, in a file and in the step's own check") {
  const auto hint = [](const std::string& layers) {
    const auto read = parse_scenario(
        "schema: collcast.scenario.v1\nname: s\ntopology: dgx-a100\n"
        "model: {layers: " +
            layers +
            ", hidden: 1024, heads: 8, ffn: 4096, vocab: 1000}\n"
            "batch: {sequence: 128, global_batch: 1}\n",
        "s.yaml", {samples::shipped(), {}, {}, {}});
    return read ? std::string() : read.errors()[0].hint;
  };
  CHECK(hint("10000").empty());
  CHECK(hint("0") == "expected a whole number from 1 to 10000, without unit");
  CHECK(hint("10001") == hint("0"));
  StepInputs in;
  in.model.layers = 10'001;
  const Diagnostics found = check_step(in, 1, {});
  CHECK(std::any_of(found.begin(), found.end(), [](const Diagnostic& d) { return d.hint == "expected up to 10000"; }));
}
