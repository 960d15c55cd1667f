// collcast plan as called: how many GPUs it takes, and what its CSV carries.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <sstream>

#include "cli/called.hpp"
#include "cli/commands.hpp"
#include "cli/data_path.hpp"
#include "cli/process.hpp"

using namespace collcast;
using namespace collcast::cli;
using namespace collcast::test;
using Json = nlohmann::json;
using Catch::Contains;

namespace {

Called plan_of(const std::string& words) { return call("plan " + words); }

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) out.push_back(part);
  return out;
}

/// Rows by column name; no cell here holds a comma.
std::vector<std::map<std::string, std::string>> csv_of(const std::string& words) {
  const Called called = plan_of(words + " --format csv");
  CHECK(called.exit == 0);
  const std::vector<std::string> lines = split(called.out, '\n');
  REQUIRE_FALSE(lines.empty());
  const std::vector<std::string> names = split(lines[0], ',');
  std::vector<std::map<std::string, std::string>> rows;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = split(lines[i] + ",.", ',');
    REQUIRE(cells.size() == names.size() + 1);
    rows.emplace_back();
    for (std::size_t c = 0; c < names.size(); ++c) rows.back()[names[c]] = cells[c];
  }
  return rows;
}

const std::string llama = "llama3-70b-64xh100 --simulate 0 --tp 8 --recompute none --zero 1 --sequence-parallel true ";
const std::string narrower = "not searched: CP above 1, stages of several chunks; --search all has them, too";
const std::string gpt = "gpt3-plan-64xa100 --simulate 0 --tp 8 --pp 8 --micro-batch 1 ";

}  // namespace

TEST_CASE("a plan takes the first --ranks GPUs, or all of the nodes and says so where the layout has fewer") {
  const Called part = plan_of(llama + "--topology gb200-nvl72 --nodes 1 --ranks 64");
  CHECK_THAT(part.out, Contains("on 64 of the 72 GPUs of gb200-nvl72 (1 node)"));
  CHECK_THAT(part.out, !Contains("are planned"));
  // 8 nodes are the scenario's, of eight GPUs each; those of this machine have 72.
  const Called all = plan_of(llama + "--topology gb200-nvl72");
  CHECK_THAT(all.out, Contains("on 576 GPUs of gb200-nvl72 (8 nodes)"));
  CHECK_THAT(all.out, Contains("the scenario's layout has 64: --ranks 64 plans for as many"));
  CHECK(Json::parse(plan_of(llama + "--topology gb200-nvl72 --format json").out).at("notes") ==
        Json::array({"all 576 GPUs of 8 nodes are planned, the scenario's layout has 64: --ranks 64 plans for as many",
                     narrower}));
}

TEST_CASE("a number of the command line replaces that number alone, by option or by --set") {
  struct Case {
    std::string option, set;
    int gpus, nodes;
  };
  // The scenario has 8 nodes of 8 GPUs; its variant nvl72 one rack of 72 and ranks 64.
  for (const Case& c :
       {Case{"--ranks 16", "--set ranks=16", 16, 8}, Case{"--gpus 16", "--set ranks=16", 16, 8},
        Case{"--nodes 2", "--set nodes=2", 16, 2}, Case{"--nodes 2 --ranks 8", "--set nodes=2 --set ranks=8", 8, 2},
        Case{"--what-if nvl72 --nodes 2", "--what-if nvl72 --set nodes=2", 64, 2},
        Case{"--what-if nvl72 --ranks 32", "--what-if nvl72 --set ranks=32", 32, 1},
        Case{"--what-if half-cluster --ranks 16", "--what-if half-cluster --set ranks=16", 16, 4}}) {
    INFO(c.option);
    const Called by_option = plan_of(llama + c.option + " --format json");
    REQUIRE(by_option.exit == 0);
    const Json doc = Json::parse(by_option.out);
    CHECK(doc.at("gpus") == c.gpus);
    CHECK(doc.at("machine").at("nodes") == c.nodes);
    CHECK(doc.at("notes") == (c.gpus > 8 ? Json::array({narrower}) : Json::array()));  // of eight all are of TP
    CHECK(plan_of(llama + c.set + " --format json").out == by_option.out);
  }
  CHECK_THAT(plan_of(llama + "--ranks 8 --gpus 8").err, Contains("--ranks and --gpus are the same option"));
}

TEST_CASE("--search all looks at more layouts, and what the usual search left out is said") {
  const std::string few =
      "llama3-70b-64xh100 --simulate 0 --tp 4 --recompute none --micro-batch 1 --sequence-parallel true ";
  const Json usual = document_of("plan " + few), all = document_of("plan " + few + "--search all");
  CHECK(usual.at("inputs").at("search").at("values") == "usual");
  CHECK(usual.at("notes") == Json::array({"not searched: CP above 1, ZeRO-2 and 3, stages of several chunks; --search "
                                          "all has them, too"}));
  CHECK(all.at("inputs").at("search").at("values") == "all");
  CHECK(all.at("inputs").at("search").at("cp") == Json::array());
  CHECK(all.at("notes").empty());
  CHECK(all.at("evaluated") > 5 * usual.at("evaluated").get<int>());
  CHECK(all.at("ranked").at(0).at("step_s") < usual.at("ranked").at(0).at("step_s"));
  CHECK(plan_of(few + "--set search.values=all --format json").out == plan_of(few + "--search all --format json").out);
  CHECK(plan_of(few + "--set search.values=all --search usual --format json").out ==
        plan_of(few + "--format json").out);
  CHECK_THAT(plan_of(few).out, Contains("note: not searched: CP above 1, ZeRO-2 and 3, "));
  CHECK(document_of("plan " + few + "--cp 1 --zero 0,1 --vpp 1").at("notes").empty());
  CHECK_THAT(plan_of(few + "--search al").err, Contains("--search: unknown word 'al'") && Contains("'all'"));
  CHECK_THAT(plan_of("llama3-70b-inference-8xh100 --search all").err,
             Contains("--search is of training, and the scenario is of inference"));
  CHECK_THAT(plan_of("llama3-70b-inference-8xh100 --set search.values=all").err,
             Contains("'search.values' has no meaning here"));
  // Of variants what the base has said is not said again.
  const Json variants = document_of("plan " + few + "--what-if all").at("notes");
  CHECK(std::ranges::count_if(variants, [](const Json& n) {
          return n.get<std::string>().find("not searched") != std::string::npos;
        }) == 1);
}

TEST_CASE("more ranks than the machine has are refused where they were asked for") {
  const Called typed = plan_of(llama + "--ranks 100 --nodes 8");
  CHECK(typed.exit == 2);
  CHECK_THAT(typed.err, Contains("--ranks 100:1:9: error: ranks is 100, 'dgx-h100' with nodes 8 has 64 GPUs"));
  CHECK_THAT(plan_of(llama + "--gpus 100").err, Contains("--gpus 100:1:8: error: ranks is 100"));
  // No node is added for them.
  for (const std::string option : {"--set ranks=65", "--ranks 65"}) {
    const Called one_more = plan_of(llama + option);
    CHECK(one_more.exit == 2);
    CHECK_THAT(one_more.err, Contains(option + ":1:") &&
                                 Contains("error: ranks is 65, 'dgx-h100' with nodes 8 has 64 GPUs") &&
                                 Contains("hint: use nodes 9, or fewer ranks"));
  }
  CHECK_THAT(plan_of(llama + "--ranks 8 --set ranks=9").err, Contains("contradicts --ranks 8"));
}

TEST_CASE("a shipped scenario has twice the IB rate, half the cluster and an NVL72 rack side by side") {
  const Json variants = Json::parse(plan_of(llama + "--what-if all --format json").out).at("variants");
  std::map<std::string, Json> by_name;
  for (const Json& v : variants) by_name[v.at("what_if").is_null() ? "" : v.at("what_if")] = v;
  CHECK(by_name.at("").at("gpus") == 64);
  CHECK(by_name.at("double-ib").at("gpus") == 64);
  CHECK(by_name.at("half-cluster").at("gpus") == 32);
  CHECK(by_name.at("nvl72").at("gpus") == 64);
  CHECK(by_name.at("nvl72").at("machine").at("topology") == "gb200-nvl72");
  CHECK(by_name.at("nvl72").at("machine").at("ranks") == 72);
  for (const auto& [name, v] : by_name) CHECK_FALSE(v.at("best").is_null());
}

TEST_CASE("a schedule of one's own is for one layout: refused by itself, left out with a note among variants") {
  const std::string few = "gpt3-interleaved-64xa100 --tp 8 --pp 8 --micro-batch 1 --simulate 0 ";
  const Called alone = plan_of(few + "--what-if own");
  CHECK(alone.exit == 2);
  CHECK_THAT(alone.err, Contains("is for one number of stages and micro-batches, and a plan varies both"));
  const Called all = plan_of(few + "--what-if all");
  CHECK(all.exit == 0);
  CHECK_THAT(all.out, Contains("what_if 'own' is left out"));
}

TEST_CASE("CSV carries the variants and the layouts beside the best") {
  const auto base = csv_of(gpt);
  for (const auto& row : base) CHECK(row.at("part") == "ranked");
  const auto rows = csv_of(gpt + "--what-if all --why 2");
  // The ranking, four variants (as it is, double-ib, double-cluster, flash), the layout asked about and the best.
  REQUIRE(rows.size() == base.size() + 6);
  const auto* variant = &rows[base.size()];
  CHECK(variant[0].at("part") == "variant");
  CHECK(variant[0].at("step_s") == base[0].at("step_s"));
  CHECK(variant[2].at("what_if") == "double-cluster");
  CHECK(variant[2].at("gpus") == "128");
  CHECK(variant[4].at("part") == "why.asked");
  CHECK(variant[4].at("rank") == "2");
  // The search adds the same terms in another order.
  for (const char* column : {"estimate_s", "breakdown.compute_s"})
    CHECK(std::stod(variant[4].at(column)) == Approx(std::stod(base[1].at(column))).epsilon(1e-12));
  CHECK(variant[4].at("peak_bytes") == base[1].at("peak_bytes"));
  CHECK(variant[5].at("part") == "why.best");
  const auto best = csv_of(gpt + "--why 1");
  CHECK(best[best.size() - 2].at("part") == "why.asked");
  CHECK(best.back().at("part") == "why.runner_up");
  CHECK(best.back().at("rank") == "2");
}

TEST_CASE("a plan without a layout that fits is a table without rows, and says what would fit") {
  CHECK(csv_of("gpt3-plan-64xa100 --ranks 16 --simulate 0").empty());
  const Called called = plan_of("gpt3-plan-64xa100 --ranks 16 --simulate 0 --format csv");
  CHECK_THAT(called.out, Contains("rank,tp,pp,dp,cp,ep,vpp,microbatch"));
  CHECK_THAT(called.err, Contains("no layout fits; the smallest, TP 16 x PP 1 x DP 1"));
  CHECK_THAT(called.err, Contains("; one would fit on 64 GPUs (TP "));
  // A page that is read says it itself.
  const Called page = plan_of("gpt3-plan-64xa100 --ranks 16 --simulate 0");
  CHECK(page.exit == 0);
  CHECK(page.err.empty());
  CHECK_THAT(page.out, Contains("; one would fit on 64 GPUs (TP "));
  const Json misses = Json::parse(plan_of("gpt3-plan-64xa100 --ranks 16 --simulate 0 --format json").out)["would_fit"];
  REQUIRE(misses.size() == 1);
  CHECK(misses[0]["change"] == "more_gpus");
  CHECK(misses[0]["gpus"] == 64);
  CHECK(misses[0]["peak_bytes"] < 80'000'000'000);
  // Of a model of which optimizer states are the most: they can be in the host's memory.
  const std::string few_gpus = "llama3-70b-64xh100 --gpus 16 --simulate 0";
  const Json states = Json::parse(plan_of(few_gpus + " --format json").out)["would_fit"];
  REQUIRE(states.size() == 2);
  CHECK(states[0]["change"] == "host_states");
  CHECK(states[0]["gpus"] == 16);
  const std::string offloaded =
      " --set training.optimizer_state_offload.fraction=1 --set training.optimizer_state_offload.chunk_size_mb=256";
  CHECK_THAT(plan_of(few_gpus).out,
             Contains("one would fit with optimizer states in the host's memory (" + offloaded.substr(1) + ") (TP "));
  CHECK_FALSE(csv_of(few_gpus + offloaded).empty());
  CHECK_THAT(plan_of("llama3-8b-8xh100 --gpus 2 --set batch.global_batch=1 --set model.layers=2 --tp 1 --pp 1").out,
             Contains("or on 1 GPU (TP 1 x PP 1 x DP 1"));
  // Nodes of 72 GPUs have a factor that no degree takes.
  CHECK_THAT(plan_of("llama3-70b-64xh100 --topology gb200-nvl72 --nodes 8 --simulate 0").out,
             Contains("warning: no layout fits; one would fit on 512 GPUs (TP "));
  // Of several variants one that fits is a plan.
  CHECK_THAT(
      plan_of(
          "gpt3-plan-64xa100 --tp 8 --pp 8 --micro-batch 1 --recompute none --simulate 0 --what-if all --format csv")
          .err,
      !Contains("no layout fits"));
}

TEST_CASE("the best layout is said to be the best, beside its runner-up") {
  const Called called = plan_of(gpt + "--why 1");
  CHECK_THAT(called.out, Contains("\nwhy TP 8 x PP 8 x DP 1"));
  CHECK_THAT(called.out, Contains("It is the best; the runner-up, number 2, is TP 8 x PP 8 x DP 1"));
  CHECK_THAT(called.out, Contains("runner-up"));
  CHECK_THAT(plan_of(gpt + "--recompute selective --sequence-parallel true --why 1").out,
             Contains("It is the best: no other layout fits."));
}

TEST_CASE("a step's layout has to fit the ranks that the scenario has") {
  std::ostringstream out, err;
  const Session session{out, err, {}, false, data_search_path(COLLCAST_SOURCE_DIR, "")};
  const char* argv[] = {"collcast", "step", "llama3-70b-64xh100", "--set", "ranks=32"};
  CHECK(static_cast<int>(run(5, argv, session)) == 2);
  CHECK(err.str() ==
        "--set ranks=32:1:13: error: the layout needs 64 GPUs, ranks is 32\n"
        "    hint: use ranks 64, or a smaller layout; the nearest layout that works: tp 8, pp 4, dp 1\n");
}

TEST_CASE("what is said of a config.json on the error stream is in the documents too, without its folder") {
  const Folder folder;
  folder.write(
      "config.json",
      "{\"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": 1024, \"num_hidden_layers\": 8,\n"
      "\"num_attention_heads\": 16, \"num_kv_heads\": 4, \"intermediate_size\": 4096, \"vocab_size\": 32000}\n");
  folder.write("small.yaml",
               "schema: collcast.scenario.v1\nname: small\ntopology: dgx-h100\nmodel: {config: ./config.json}\n"
               "layout: {dp: 8}\nbatch: {sequence: 1024, global_batch: 8}\n");
  const std::string warning =
      "config.json:2:28: key 'num_kv_heads' is not read: did you mean 'num_key_value_heads'? it is absent and has its "
      "default";
  for (const std::string command : {"step", "explain step", "plan --simulate 0"}) {
    const Called called = call(command + " " + (folder.path() / "small.yaml").string() + " --format json");
    INFO(called.err);
    REQUIRE(called.exit == 0);
    CHECK_THAT(called.err, Contains("config.json:2:28: warning: key 'num_kv_heads' is not read"));
    const Json warnings = Json::parse(called.out).at("warnings");
    CHECK(std::count(warnings.begin(), warnings.end(), Json(warning)) == 1);
    CHECK_THAT(called.out, !Contains(folder.path().string()));
  }
}

TEST_CASE("a plan's small words: one layout, a difference that rounds to nothing, whose terms they are") {
  const Called one = plan_of(gpt + "--recompute full,selective --sequence-parallel true --what-if all --library ideal");
  CHECK_THAT(one.out, Contains("2 layouts evaluated: 2 fit, 0 were rejected"));
  CHECK_THAT(one.out, !Contains("-0.0%") && !Contains("+0.0%") && Contains("<0.1%"));
  CHECK_THAT(plan_of(gpt + "--recompute none,full --sequence-parallel true").out,
             Contains("2 layouts evaluated: 1 fits, 1 was rejected"));
  const Json doc =
      Json::parse(plan_of("llama3-8b-8xh100 --tp 2 --pp 1 --micro-batch 1 --simulate 1 --why 2 --format json").out);
  CHECK(doc.at("ranked").at(0).at("method") == "simulate");
  CHECK(doc.at("ranked").at(1).at("method") == "estimate");
  CHECK(doc.at("why").at("asked").at("method") == "estimate");
  // Without a pipeline there is no bubble, not even one of rounding.
  for (const Json& row : doc.at("ranked"))
    if (row.at("method") == "estimate") CHECK(row.at("breakdown").at("bubble_s") == 0.0);
}

TEST_CASE("--list runs nothing: what else is asked for is refused") {
  for (const std::string command : {"step", "plan"}) {
    const Called both = call(command + " llama3-8b-8xh100 --list --nodes 2 --set layout.tp=4 --format csv");
    CHECK(both.exit == 2);
    CHECK_THAT(both.err, Contains("--nodes has no effect beside --list, which runs nothing") &&
                             Contains("--set has no effect beside --list") && !Contains("--format"));
    CHECK(call(command + " llama3-8b-8xh100 --list --format csv").exit == 0);
  }
}

TEST_CASE("--list says which scenarios and variants there are, each with its line") {
  const Json all = Json::parse(plan_of("--list --format json").out);
  CHECK(all.at("schema") == "collcast.scenarios.v1");
  std::map<std::string, Json> by_name;
  for (const Json& row : all.at("rows")) by_name[row.at("name")] = row;
  CHECK(by_name.size() == list_scenarios(data_search_path(COLLCAST_SOURCE_DIR, "")).size());
  CHECK(by_name.at("gpt3-512gpu").at("title") == "GPT-3 175B on 64 DGX A100: TP 8 x PP 8 x DP 8");
  for (const auto& [name, row] : by_name) {
    // What is listed can be asked for, and nothing else: the error of a wrong name lists the same.
    std::string names;
    for (const Json& v : row.at("what_if")) names += (names.empty() ? "" : ", ") + v.at("name").get<std::string>();
    CHECK_THAT(plan_of(name + " --what-if no-such-variant").err, Contains("expected one of: " + names + "\n"));
  }
  const Called one = plan_of("llama3-70b-64xh100 --list");
  CHECK_THAT(one.out, Contains("double-ib") && Contains("Network ports of 800 Gb/s instead of 400"));
  CHECK_THAT(one.out, !Contains("gpt3-512gpu"));
  CHECK(plan_of("no-such --list").exit == 2);
  CHECK_THAT(plan_of("llama3-70b-64xh10 --list").err, Contains("did you mean 'llama3-70b-64xh100'?"));
  CHECK(plan_of("--list --format csv").out.starts_with("scenario,what_if,title\n"));
}

TEST_CASE("--method says how layouts are ranked") {
  const std::string eight = "llama3-70b-64xh100 --tp 4,8 --recompute none --library ideal --format json ";
  const auto ranked = [&](const std::string& words) {
    const Called called = plan_of(eight + words);
    INFO(called.err);
    REQUIRE(called.exit == 0);
    return Json::parse(called.out);
  };
  const Json by_form = ranked("--method estimate"), best = ranked("--method both --simulate 3"),
             all = ranked("--method simulate");
  REQUIRE(by_form.at("feasible") > 3);
  for (const Json& row : by_form.at("ranked")) {
    CHECK(row.at("method") == "estimate");
    CHECK(row.at("simulate_s").is_null());
    CHECK(row.at("step_s") == row.at("estimate_s"));
  }
  CHECK(by_form == ranked("--simulate 0"));
  CHECK(by_form == ranked("--method estimate --simulate 0"));
  CHECK(ranked("") == ranked("--method both"));
  int simulated = 0;
  for (const Json& row : best.at("ranked")) simulated += row.at("method") == "simulate" ? 1 : 0;
  CHECK(simulated == 3);
  double last = 0;
  for (const Json& row : all.at("ranked")) {
    CHECK(row.at("method") == "simulate");
    CHECK(row.at("step_s") == row.at("simulate_s"));
    CHECK(row.at("step_s").get<double>() >= last);
    last = row.at("step_s").get<double>();
  }
  // The Pareto set is of what ranks: fastest first, and each smaller than those before.
  for (const Json& row : all.at("pareto")) CHECK(row.at("method") == "simulate");
  CHECK(all.at("pareto").at(0).at("step_s") == all.at("ranked").at(0).at("step_s"));
}

TEST_CASE("--method of one kind and --simulate of another are refused where they are typed") {
  const Called none = plan_of("llama3-70b-64xh100 --method estimate --simulate 4");
  CHECK(none.exit == 2);
  CHECK_THAT(none.err, Contains("--simulate 4:1:12: error: --simulate 4 has no effect on --method estimate") &&
                           Contains("expected --method both"));
  const Called all = plan_of("llama3-70b-64xh100 --method simulate --simulate 4 --top x");
  CHECK(all.exit == 2);
  CHECK_THAT(all.err, Contains("--simulate 4 has no effect on --method simulate") &&
                          Contains("all that fit are simulated") && Contains("--top"));
  CHECK_THAT(plan_of("llama3-70b-64xh100 --method simulat").err, Contains("did you mean 'simulate'?"));
}

namespace {

/// `collcast step` of a row of a plan, by what the row says of itself.
Json step_of_row(const std::string& scenario, const Json& row) {
  std::string words = "step " + scenario + " --format json --method " + row.at("method").get<std::string>();
  const auto set = [&](const std::string& path, const Json& value) {
    words += " --set " + path + "=" + (value.is_string() ? value.get<std::string>() : value.dump());
  };
  for (const char* key : {"tp", "pp", "dp", "cp", "ep", "vpp", "sequence_parallel", "schedule", "etp", "dp_shard"})
    if (row.contains(key)) set(std::string("layout.") + key, row.at(key));
  set("batch.micro_batch", row.at("microbatch"));
  for (const char* key : {"recompute", "zero"}) set(std::string("training.") + key, row.at(key));
  const Called called = call(words);
  INFO(words << "\n" << called.err);
  REQUIRE(called.exit == 0);
  return Json::parse(called.out);
}

}  // namespace

TEST_CASE("what `step` says of a row of the plan, by the row's own values, is what the plan says of it") {
  struct Case {
    std::string scenario, search;
    int dp_shard, etp;  // as asked for
  };
  int less_shards = 0, less_etp = 0, rows = 0;
  for (const Case& c :
       {Case{"llama3-8b-fsdp-64xh100 --nodes 3 --set batch.global_batch=96 --set layout.dp_shard=7",
             "--tp 1,2 --pp 1,2 --zero 0,2,3 --micro-batch 1 --simulate 2", 7, 0},
        Case{"llama3-8b-fsdp-64xh100 --nodes 3 --set batch.global_batch=96 --set layout.dp_shard=16",
             "--tp 1,2 --pp 1 --zero 3 --micro-batch 1 --simulate 1", 16, 0},
        Case{"mixtral-8x7b-64xh100 --nodes 2 --set layout.order=tp-cp-ep-dp-pp --set layout.etp=16 --set layout.ep=1",
             "--zero 0,1 --pp 1,2,4 --vpp 1 --micro-batch 1 --recompute full --simulate 1", 0, 16}}) {
    INFO(c.scenario);
    const Json plan = document_of("plan " + c.scenario + " " + c.search);
    REQUIRE(plan.at("feasible") > 0);
    for (const Json& row : plan.at("ranked")) {
      ++rows;
      CHECK(row.contains("dp_shard") == (c.dp_shard > 0));
      CHECK(row.contains("etp") == (c.etp > 0));
      if (c.dp_shard > 0 && row.at("zero") > 0 && row.at("dp_shard") != c.dp_shard) ++less_shards;
      if (c.etp > 0 && row.at("etp") != c.etp) ++less_etp;
      const Json step = step_of_row(c.scenario, row);
      CHECK(step.at("step_s").get<double>() == Approx(row.at("step_s").get<double>()).epsilon(1e-12));
      CHECK(step.at("memory").at("peak_bytes") == row.at("peak_bytes"));
    }
  }
  CHECK(rows > 30);
  CHECK(less_shards > 10);
  CHECK(less_etp > 3);
}

TEST_CASE("a sharding group or an expert TP that no layout can have is named with what the layouts have instead") {
  const std::string sharded =
      "llama3-8b-fsdp-64xh100 --nodes 3 --set batch.global_batch=96 --set layout.dp_shard=7 --simulate 0 --tp 1,2 --pp "
      "1 "
      "--zero 0,3 --micro-batch 1 --recompute full --sequence-parallel false ";
  const Called page = plan_of(sharded + "--why 1");
  CHECK_THAT(page.out, Contains("ZeRO  shard") && Contains("in shards of 6 replicas") &&
                           Contains("note: layout.dp_shard 7 does not divide the DP of 2 of 2 layouts that fit: there "
                                    "it is the largest divisor of DP below"));
  for (const auto& row : csv_of(sharded)) CHECK(row.at("dp_shard") == "6");
  // What every layout can have is said by its column alone.
  CHECK_THAT(plan_of(sharded + "--set layout.dp_shard=6").out, Contains("ZeRO  shard") && !Contains("does not divide"));
  CHECK_THAT(plan_of("llama3-8b-fsdp-64xh100 --simulate 0").out, !Contains("  shard"));
  const std::string split =
      "mixtral-8x7b-64xh100 --nodes 2 --set layout.order=tp-cp-ep-dp-pp --set layout.ep=1 --simulate 0 --pp 4 "
      "--recompute full --vpp 1 --micro-batch 1 ";
  CHECK_THAT(plan_of(split + "--set layout.etp=16").out,
             Contains("expert TP") && Contains("layout.etp 16 does not divide the ranks of a stage of "));
  CHECK_THAT(plan_of(split + "--set layout.etp=2").out,
             Contains("expert TP") && !Contains("does not divide the ranks"));
  // A variant is a layout of its own scenario, not of the base's.
  const Json variants =
      document_of("plan gpt3-interleaved-64xa100 --tp 8 --pp 8 --micro-batch 1 --simulate 0 --what-if all")
          .at("variants");
  for (const Json& v : variants)
    if (!v.at("best").is_null()) {
      INFO(v.at("what_if"));
      CHECK(v.at("best").at("schedule") ==
            document_of("plan gpt3-interleaved-64xa100 --tp 8 --pp 8 --micro-batch 1 --simulate 0" +
                        (v.at("what_if").is_null() ? "" : " --what-if " + v.at("what_if").get<std::string>()))
                .at("ranked")
                .at(0)
                .at("schedule"));
    }
}

TEST_CASE("CSV of a plan that nothing fits is its header, and why is said beside it, the commonest reasons first") {
  const std::string none = "llama3-70b-64xh100 --simulate 0 --zero 0 --tp 1 --pp 1 --micro-batch 1 ";
  const Called called = plan_of(none + "--format csv"), json = plan_of(none + "--format json");
  CHECK(called.exit == 0);
  CHECK(std::ranges::count(called.out, '\n') == 1);
  const Json rejected = Json::parse(json.out).at("rejected");
  REQUIRE_FALSE(rejected.empty());
  std::string reasons;
  for (std::size_t i = 0; i < std::min<std::size_t>(rejected.size(), 3); ++i)
    reasons += (i == 0 ? "" : ", ") + rejected[i].at("count").dump() + " (" +
               rejected[i].at("reason").get<std::string>() + ")";
  const std::string said = "warning: why layouts were rejected is not in CSV, which has one row per layout that fits: ";
  CHECK_THAT(called.err, Contains(said + reasons) && Contains("--format table, json or markdown has all of them"));
  CHECK_THAT(json.err, !Contains("not in CSV"));
  // Where there are rows they are the answer.
  CHECK_THAT(plan_of(llama + "--format csv").err, !Contains("not in CSV"));
}

TEST_CASE("--why asks for one layout: none, or a degree given twice, is a slip") {
  const Called twice = call("plan llama3-8b-8xh100 --why tp=4,tp=8");
  CHECK(twice.exit == 2);
  CHECK_THAT(twice.err, Contains("--why tp=4,tp=8:1:7: error: 'tp' is given twice"));
  CHECK(twice.out.empty());
}

TEST_CASE("degrees, chunks and samples of the command line have a scenario's limits") {
  const auto refused = [](const std::string& arguments) {
    const Called called = call("plan llama3-8b-8xh100 " + arguments);
    CHECK(called.exit == 2);
    return called.err;
  };
  const std::string degrees = "expected a whole number from 1 to 10000000", chunks = "a whole number from 1 to 10000\n";
  for (const char* option : {"--tp", "--pp", "--dp", "--cp", "--ep"})
    CHECK_THAT(refused(std::string(option) + " 10000001"), Contains(option) && Contains(degrees));
  CHECK_THAT(refused("--why tp=536870912,pp=536870912,cp=64"), Contains("--why tp: '536870912'") && Contains(degrees));
  for (const char* vpp : {"10001", "536870912"})
    CHECK_THAT(refused(std::string("--vpp ") + vpp), Contains(vpp) && Contains(chunks));
  CHECK_THAT(refused("--why vpp=10001"), Contains("--why vpp: '10001'") && Contains(chunks));
  CHECK_THAT(refused("--micro-batch 100001"), Contains("expected a whole number from 1 to 100000"));
}

TEST_CASE("a plan of training says that gates are not checked, once, and a server's holds its layouts to them") {
  const std::string unchecked = "the scenario's gates are not checked in a plan of training";
  const std::string one_layout = "plan llama3-70b-64xh100 --tp 8 --pp 4 --zero 1 --micro-batch 1 --simulate 0 ";
  CHECK_THAT(call(one_layout).err, !Contains(unchecked));
  const Called limited = call(one_layout + "--set gates.step_s.max=1ms --what-if all --format json");
  CHECK(limited.exit == 0);
  const std::size_t said = limited.err.find(unchecked);
  REQUIRE(said != std::string::npos);
  CHECK(limited.err.find(unchecked, said + 1) == std::string::npos);
  const Json doc = Json::parse(limited.out);
  CHECK_THAT(doc["warnings"].dump(), Contains(unchecked));
  CHECK(doc["feasible"] > 0);
  const Called served = call("plan llama3-70b-inference-8xh100 --simulate 0 --set gates.tpot_s.max=1us");
  CHECK_THAT(served.err, !Contains(unchecked));
  CHECK_THAT(served.out, Contains("no layout that fits keeps the limits"));
}

TEST_CASE("CSV has the same columns whatever is planned, those of training and those of servers") {
  const auto columns = [](const std::string& words) {
    const std::string csv = plan_of(words + " --simulate 0 --format csv").out;
    return csv.substr(0, csv.find('\n'));
  };
  const std::string of_eight = "llama3-70b-64xh100 --tp 8 --zero 1 --micro-batch 1 ";
  const std::string of_training = columns(of_eight);
  CHECK_THAT(of_training, Contains(",schedule,etp,dp_shard,step_s,") && Contains(",interval.low_s,interval.high_s,") &&
                              Contains(",memory.host_bytes,memory.moment,") && Contains(",described.slowdown,"));
  for (const std::string& other :
       {of_eight + "--overlay nccl-tests", of_eight + "--fault 'gpu: 3, compute: 90%'",
        of_eight + "--set layout.dp_shard=2", of_eight + "--what-if all", of_eight + "--why 2",
        std::string("mixtral-8x7b-64xh100 --tp 1 --zero 1 --micro-batch 1"),
        std::string("llama3-70b-64xh100 --gpus 8")}) {
    CAPTURE(other);
    CHECK(columns(other) == of_training);
  }
  const std::string server = "llama3-70b-inference-8xh100 ";
  const std::string of_servers = columns(server);
  CHECK_THAT(of_servers, Contains(",batch,microbatches,etp,step_s,") && Contains(",ttft_interval.low_s,") &&
                             Contains(",load.ttft.p99_s,"));
  for (const std::string& other : {server + "--overlay nccl-tests", server + "--what-if all", server + "--max-ttft 1us",
                                   std::string("qwen3.5-397b-inference-8xb200")}) {
    CAPTURE(other);
    CHECK(columns(other) == of_servers);
  }
}

TEST_CASE("CSV has the memory of a row that JSON has, states in the host's memory with it") {
  const std::string offloaded =
      "llama3-70b-64xh100 --tp 8 --pp 4 --zero 1 --micro-batch 1 --simulate 0 "
      "--set training.optimizer_state_offload.fraction=1 --set training.optimizer_state_offload.chunk_size_mb=256 ";
  const Json memory = Json::parse(plan_of(offloaded + "--format json").out)["ranked"][0]["memory"];
  const auto row = csv_of(offloaded).front();
  REQUIRE(memory.at("host_bytes") > 0);
  CHECK(row.at("memory.host_bytes") == memory.at("host_bytes").dump());
  CHECK(row.at("memory.moment") == memory.at("moment"));
  CHECK(row.at("memory.moments.forward_bytes") == memory.at("moments").at("forward_bytes").dump());
}
