// Measured servers against their forecasts: reading, placement, what a row's words make of it, the command.
#include "collcast/validation/inference.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "../cli/process.hpp"
#include "../support/sample.hpp"
#include "collcast/validation/machines.hpp"
#include "shipped.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

const std::string root = COLLCAST_SOURCE_DIR;

const SearchPath& shipped() {
  static const SearchPath path{{root + "/topologies"}, {root + "/scenarios"}};
  return path;
}

ScoredMachines serving_machines() {
  Result<Machines> all = Machines::shipped(shipped());
  REQUIRE(all);
  Result<ScoredMachines> out = ScoredMachines::load(all->specs(), shipped());
  REQUIRE(out);
  return std::move(out).value();
}

ServedModels models() {
  Result<ServedModels> out = ServedModels::load(
      {{"dense", {"llama3-8b", "bf16"}}, {"experts", {"deepseek-v3", "fp8"}}, {"unsaid", {"llama3-8b", ""}}},
      shipped());
  REQUIRE(to_text(out.errors()) == "");
  return std::move(out).value();
}

const std::string serving_heading =
    "row_id,source,backend,model,system,precision,mode,isl,osl,concurrency,batch_size,tp,pp,attention_dp,moe_tp,moe_ep,"
    "prefill,decode,ttft_ms,tpot_ms\n";

Result<InferenceTables> read_serving(const std::string& text) {
  std::istringstream in(text);
  return read_inference_csv(in, "t.csv");
}

InferenceRow row(const std::string& line) {
  const Result<InferenceTables> tables = read_serving(serving_heading + line + "\n");
  REQUIRE(to_text(tables.errors()) == "");
  return tables->rows.at(0);
}

ServedRow served(const std::string& line) {
  Result<ServedRow> out = served_row(row(line), models());
  REQUIRE(to_text(out.errors()) == "");
  return std::move(out).value();
}

std::string why_not(const std::string& line) {
  const Result<ServedRow> out = served_row(row(line), models());
  REQUIRE_FALSE(out);
  return out.errors().front().message;
}

InferenceReport report_of(const std::string& lines) {
  const Result<InferenceTables> tables = read_serving(serving_heading + lines);
  REQUIRE(to_text(tables.errors()) == "");
  return validate_inference(*tables, models(), serving_machines(), {});
}

}  // namespace

TEST_CASE("every bad cell of a table of servers is said at its place, all at once") {
  const Result<InferenceTables> tables = read_serving(
      "row_id,model,system,isl,osl,tpot_ms,decode,mode,colour\n"
      "a,m,h100_sxm,many,128,0,tp_size=x/moe=2/8,agg,red\n"
      ",m,h100_sxm,1024,128,5,,both,red\n"
      "a,m,h100_sxm,1024,128,5,,agg,red\n");
  REQUIRE_FALSE(tables);
  const std::string said = to_text(tables.errors());
  for (const char* part :
       {"t.csv:2:14: ", "isl is 'many'", "from 1 to 1000000", "t.csv:2:23: ", "tpot_ms is '0'",
        "t.csv:2:25: ", "tp_size is 'x'", "t.csv:2:35: ", "unknown setting 'moe'", "t.csv:2:41: ", "decode has '8'",
        "t.csv:3:1: ", "row_id is empty", "t.csv:3:25: error: mode is 'both'", "row_id 'a' is there twice"}) {
    CAPTURE(part, said);
    CHECK(said.find(part) != std::string::npos);
  }
  const Result<InferenceTables> fine = read_serving("row_id,model,system,isl,osl,tpot_ms,colour\na,m,s,1,2,5,red\n");
  REQUIRE(to_text(fine.errors()) == "");
  REQUIRE(fine->warnings.size() == 1);
  CHECK(to_text(fine->warnings).find("t.csv:1:37") != std::string::npos);
  CHECK(read_serving("a,b\n1,2\n").errors().at(0).message == "this is no table of measured servers");
}

TEST_CASE("a cell of 0 tokens or requests is a wrong value, a degree of 0 one that nobody states") {
  const std::string said =
      to_text(read_serving(serving_heading + "a,s,vllm,dense,h100_sxm,,agg,0,128,0,8,1,1,0,0,0,,,1,1\n").errors());
  INFO(said);
  CHECK(said.find("t.csv:2:30: error: isl is '0'\n    hint: expected a whole number from 1") != std::string::npos);
  CHECK(said.find("t.csv:2:36: error: concurrency is '0'") != std::string::npos);
  CHECK(said.find("moe_ep") == std::string::npos);
}

TEST_CASE("a row's words are requests in flight on its layout") {
  const ServedRow dense = served("a,s,vllm,dense,h100_sxm,,agg,1024,128,32,32,4,1,,1,1,,,100,10");
  CHECK(dense.inputs.layout.tp == 4);
  CHECK(dense.inputs.layout.world() == 4);
  CHECK(dense.inputs.serving->batch == 32);
  CHECK(dense.inputs.serving->batching == Batching::continuous);
  CHECK(dense.inputs.serving->prompt_tokens == 1024);
  REQUIRE(dense.inputs.serving->load.has_value());
  // InferenceMAX's grid has lengths that are drawn; what the source measured itself has all of one length.
  CHECK(dense.inputs.serving->load->range_ratio == 1);
  for (const char* lengths : {"1024,1024", "8192,1024", "1024,8192"})
    CHECK(served(std::string("a,s,vllm,dense,h100_sxm,,agg,") + lengths + ",32,32,4,1,,1,1,,,100,10")
              .inputs.serving->load->range_ratio == 0.8);
  CHECK(served("a,s,vllm,dense,h100_sxm,,agg,4096,1024,32,32,4,1,,1,1,,,100,10").inputs.serving->load->range_ratio ==
        1);
  CHECK(dense.inputs.serving->run_requests() == 320);
  CHECK(dense.inputs.serving->kv_bytes == 2);
  CHECK(dense.inputs.options.precision == "bf16");
  CHECK(dense.assumed == std::vector<std::string>{"precision not stated: bf16, the checkpoint's"});

  const ServedRow experts = served("a,s,trtllm,experts,h200_sxm,fp8,agg,1024,128,32,32,8,1,1,1,8,,,100,10");
  CHECK(experts.inputs.layout.ep == 8);
  CHECK(experts.inputs.layout.etp == 1);
  CHECK(experts.inputs.serving->kv_bytes == 1);
  CHECK(experts.assumed.empty());

  // Replicas of the attention share the requests, and the experts.
  const ServedRow spread = served("a,s,vllm,experts,h200_sxm,fp8,agg,1024,128,30,8,1,1,4,1,4,,,100,10");
  CHECK(spread.inputs.layout.dp == 4);
  CHECK(spread.inputs.layout.world() == 4);
  CHECK(spread.inputs.serving->batch == 8);
  CHECK(spread.assumed == std::vector<std::string>{"30 requests in flight on 4 replicas: 8 on each"});
  CHECK(served("a,s,vllm,experts,h200_sxm,fp8,agg,1024,128,32,8,1,1,4,1,4,,,100,10").assumed.empty());
}

TEST_CASE("GPUs that a row counts as often as there are ranks of experts are counted once") {
  // The shipped table has 26 measurements under both.
  const ServedRow twice = served("a,s,vllm,experts,h200_sxm,fp8,agg,1024,128,64,64,64,1,1,8,8,,,100,10"),
                  once = served("a,s,vllm,experts,h200_sxm,fp8,agg,1024,128,64,64,8,1,1,1,8,,,100,10");
  CHECK(twice.inputs.layout.tp == once.inputs.layout.tp);
  CHECK(twice.inputs.layout.ep == once.inputs.layout.ep);
  CHECK(twice.inputs.layout.etp == once.inputs.layout.etp);
  CHECK(twice.assumed.size() == 1);
  // Nobody measured four GPUs under both: they are what the row says.
  const ServedRow four = served("a,s,vllm,experts,h200_sxm,fp8,agg,1024,128,64,64,4,1,1,2,2,,,100,10");
  CHECK(four.inputs.layout.world() == 4);
  CHECK((four.inputs.layout.etp == 2 && four.inputs.layout.ep == 2));
  CHECK(four.assumed.empty());
  const ServedRow replicas = served("a,s,vllm,experts,h200_sxm,fp8,agg,1024,128,64,1,1,1,64,8,8,,,100,10");
  CHECK(replicas.inputs.layout.dp == 8);
  CHECK(replicas.inputs.serving->batch == 8);
}

TEST_CASE("tokens of a disaggregated server come from its decode workers, without prompts between them") {
  const std::string one = "a,s,vllm,dense,h100_sxm,bf16,disagg,1024,128,40,,,,,,,tp_size=1,";
  const ServedRow disaggregated = served(one + "num_workers=5/tp_size=2,100,10");
  CHECK(disaggregated.inputs.serving->batch == 8);
  CHECK(disaggregated.inputs.serving->batching == Batching::at_once);
  CHECK_FALSE(disaggregated.inputs.serving->load.has_value());
  CHECK_FALSE(disaggregated.first_token);
  CHECK(why_not(one + "tp_size=2,100,10") == "not stated: num_workers of decode");
  CHECK(why_not(one + "num_workers=5/tp_size=2/pp_size=2,100,10") ==
        "decode workers that are pipelines are not modelled");
  CHECK(served(one + "num_workers=1000000/tp_size=1/attention_dp_size=1000000,100,10").inputs.serving->batch == 1);
}

TEST_CASE("what cannot be expressed is listed with its reason") {
  CHECK(why_not("a,s,vllm,other,h100_sxm,,agg,1024,128,8,8,1,1,1,1,1,,,1,1") == "no description of the model other");
  CHECK(why_not("a,s,vllm,unsaid,h100_sxm,,agg,,128,,,1,1,1,1,1,,,1,1") == "not stated: precision, isl, concurrency");
  CHECK(why_not("a,s,vllm,experts,h100_sxm,fp8,agg,1024,128,8,8,8,1,1,2,2,,,1,1").find("are not as many GPUs") !=
        std::string::npos);
  CHECK(why_not("a,s,vllm,dense,h100_sxm,,agg,1024,128,448,14,2,1,1,1,1,,,1,1") ==
        "more requests in flight than batch_size on each of its replicas");
  CHECK(why_not("a,s,vllm,dense,h100_sxm,,agg,1024,128,,1000000,1,1,1000000,1,1,,,1,1") ==
        "more than 1000000 GPUs or requests");
  CHECK(why_not("a,s,vllm,experts,h100_sxm,fp8,agg,1024,128,8,8,65536,1,,65536,65536,,,1,1") ==
        "more than 1000000 GPUs or requests");
  const InferenceReport report = report_of(
      "a,s,vllm,dense,h100_sxm,,agg,1024,128,8,8,1,1,1,1,1,,,50,10\n"
      "b,s,vllm,dense,mi300x,,agg,1024,128,8,8,1,1,1,1,1,,,50,10\n"
      "c,s,vllm,dense,h100_sxm,,agg,1024,128,8,8,1,2,1,1,1,,,50,10\n"
      "d,s,vllm,dense,h100_sxm,,agg,1024,128,8,8,1,1,1,1,1,,,,\n");
  REQUIRE(report.rows.size() == 1);
  CHECK(report.rows[0].topology == "dgx-h100");
  REQUIRE(report.unscored.size() == 3);
  CHECK(report.unscored[0].why == "no machine has the GPU 'mi300x'");
  CHECK(report.unscored[1].why.find("pp 2 is not modelled with batching continuous") == 0);
  CHECK(report.unscored[2].why == "no time that can be compared is stated");
}

TEST_CASE("a row is scored by what step forecasts of the same inputs") {
  const InferenceReport report = report_of("a,s,vllm,dense,h100_sxm,,agg,1024,1024,8,8,1,1,1,1,1,,,50,10\n");
  const Folder folder;
  folder.write("one.yaml",
               "schema: collcast.scenario.v1\nname: one\ntopology: dgx-h100\n"
               "model: {config: models/llama3-8b/config.json}\n"
               "inference: {batch: 8, prompt_tokens: 1024, output_tokens: 1024, batching: continuous,\n"
               "            load: {range_ratio: 0.8}}\n");
  const Outcome outcome =
      run_shell(with_data + "collcast step one.yaml --method estimate --library ideal --format json", folder.path());
  REQUIRE(outcome.err == "");
  const auto document = nlohmann::json::parse(outcome.out);
  CHECK(report.rows.at(0).predicted_ttft->count() == Approx(document["ttft_s"].get<double>()).epsilon(1e-9));
  CHECK(report.rows.at(0).predicted_tpot.count() == Approx(document["tpot_s"].get<double>()).epsilon(1e-9));
}

TEST_CASE("a measurement that two rows have is scored once, though their source and version differ") {
  const std::string of = ",vllm,dense,h100_sxm,,agg,1024,1024,8,8,1,1,1,1,1,,,";
  const InferenceReport report =
      report_of("a,s" + of + "50,10\nb,t" + of + "50,10\nc,s" + of + "50,10.1\nd,s" + of + ",10\ne,s" + of + ",10\n");
  // Not d and e: a time of two digits alone may be of two runs.
  REQUIRE(report.rows.size() == 4);
  CHECK(report.rows[0].of.row_id == "a");
  CHECK(report.rows[1].of.row_id == "c");
  REQUIRE(report.unscored.size() == 1);
  CHECK(report.unscored[0].of.row_id == "b");
  CHECK(report.unscored[0].why == "a measurement that another row has: the same load, both times alike");
  const Table all = csv(report);
  REQUIRE(all.rows.size() == 5);
  CHECK(all.rows.back().front() == "b");
  CHECK(all.rows.back().back() == report.unscored[0].why);
}

namespace {

const std::string settings_heading =
    "backend,system,model,precision,tp,isl,osl,concurrency_from,max_running,max_batched_tokens,recv_interval,"
    "kv_precision,source\n";

}  // namespace

TEST_CASE("how a row's server was started is said by the last line that fits it") {
  const Result<InferenceTables> tables = read_serving(settings_heading +
                                                      "sglang,,,,,,,,100,4096,10,fp8,one\n"
                                                      "sglang,h100_sxm,a|dense,fp8,,,,16,24,,30,,two\n"
                                                      "sglang,,,,8,,,,,,7,,three\n"
                                                      ",,other,,,,,,1,,,,four\n");
  REQUIRE(to_text(tables.errors()) == "");
  REQUIRE(tables->servers.size() == 4);
  const auto of = [&](const std::string& line) {
    const Result<ServedRow> out = served_row(row(line), models(), tables->servers);
    REQUIRE(to_text(out.errors()) == "");
    return out->inputs.serving.value();
  };
  const Serving plain = of("a,s,sglang,dense,h100_sxm,fp8,agg,1024,128,15,15,4,1,,1,1,,,100,10");
  CHECK(plain.load->recv_interval == 10);
  CHECK(plain.load->max_batched_tokens == 4096);
  CHECK(plain.kv_bytes == 1);
  CHECK(plain.batch == 15);
  const Result<ServedRow> told =
      served_row(row("a,s,sglang,dense,h100_sxm,fp8,agg,1024,128,15,15,4,1,,1,1,,,100,10"), models(), tables->servers);
  REQUIRE(told);
  CHECK(told->assumed == std::vector<std::string>{"the server was started as line 2 of t.csv says"});
  const Serving many = of("a,s,sglang,dense,h100_sxm,fp8,agg,1024,128,32,32,4,1,,1,1,,,100,10");
  CHECK(many.load->recv_interval == 30);
  CHECK(many.load->max_batched_tokens == 8192);
  CHECK(many.batch == 24);
  CHECK(many.clients() == 32);
  CHECK(many.run_requests() == 320);
  CHECK(of("a,s,sglang,dense,h200_sxm,fp8,agg,1024,128,32,32,8,1,,1,1,,,100,10").load->recv_interval == 7);
  CHECK(of("a,s,vllm,dense,h100_sxm,fp8,agg,1024,128,32,32,4,1,,1,1,,,100,10").load->recv_interval == 1);
}

TEST_CASE("a server keeps states of linear attention in the format that its line says") {
  const std::string head =
      "backend,system,model,precision,tp,isl,osl,concurrency_from,max_running,max_batched_tokens,recv_interval,"
      "kv_precision,state_precision,source\n";
  const Result<InferenceTables> tables = read_serving(head + "sglang,,,,,,,,,,,fp8,bf16,one\n");
  REQUIRE(to_text(tables.errors()) == "");
  const Result<ServedRow> told =
      served_row(row("a,s,sglang,dense,h100_sxm,fp8,agg,1024,128,15,15,4,1,,1,1,,,100,10"), models(), tables->servers);
  REQUIRE(told);
  CHECK(told->inputs.serving->state_bytes == 2);
  CHECK(told->inputs.serving->kv_bytes == 1);
  const Result<InferenceTables> bad = read_serving(head + "sglang,,,,,,,,,,,fp32,fp8,one\n");
  CHECK(to_text(bad.errors()).find(":2:18: error: kv_precision is 'fp32'") != std::string::npos);
  CHECK(to_text(bad.errors()).find(":2:23: error: state_precision is 'fp8'") != std::string::npos);
}

TEST_CASE("every bad cell of a table of settings is said at its place, all at once") {
  const Result<InferenceTables> tables =
      read_serving(settings_heading + "sglang,,,,,,,many,0,-3,,int4,one\nsglang,,,,,,,,,,1e9,,two\n");
  REQUIRE_FALSE(tables);
  const std::string text = to_text(tables.errors());
  for (const char* part : {":2:14: error: concurrency_from is 'many'", ":2:19: error: max_running is '0'",
                           ":2:21: error: max_batched_tokens is '-3'", ":2:25: error: kv_precision is 'int4'",
                           ":3:17: error: recv_interval is '1e9'"})
    CHECK(text.find(part) != std::string::npos);
  INFO(text);
  CHECK(tables.errors().size() == 5);
}

TEST_CASE("the digest of what was measured is of the settings, too, but not of where they are from") {
  const std::string measured = "a,s,sglang,dense,h100_sxm,fp8,agg,1024,128,15,15,4,1,,1,1,,,100,10\n";
  const auto digest_with = [&](const std::string& line) {
    InferenceTables tables = read_serving(serving_heading + measured).value();
    tables.servers = read_serving(settings_heading + line).value().servers;
    const InferenceReport report = validate_inference(tables, models(), serving_machines(), {});
    return nlohmann::json::parse(json(report)).at("inputs").at("measured_digest").get<std::string>();
  };
  const std::string one = digest_with("sglang,,,,,,,,100,4096,10,fp8,one\n");
  CHECK(one == digest_with("sglang,,,,,,,,100,4096,10,fp8,two\n"));
  CHECK(one != digest_with("sglang,,,,,,,,100,4096,11,fp8,one\n"));
  CHECK(one != digest_with("sglang,,,,,,,,101,4096,10,fp8,one\n"));
}

TEST_CASE("a misspelt column or word of a table of settings is an error at its place, with the right one") {
  const auto said = [](const std::string& text) { return to_text(read_serving(text).errors()); };
  CHECK(said("backend,system,max_runing,recv_interval\nsglang,,1,1\n")
            .find(":1:16: error: unknown column 'max_runing' of servers' settings\n    hint: did you mean "
                  "'max_running'?") != std::string::npos);
  const auto folder = std::filesystem::temp_directory_path() / "collcast-server-settings";
  std::filesystem::create_directories(folder);
  const auto file = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  };
  // Systems and backends are those of rows, which files beside lend; precisions those that servers compute in.
  const std::string heading = "row_id,backend,model,system,isl,osl,tpot_ms\n";
  const std::string shipped =
      file("shipped.csv", heading + "a,sglang,own/model,h200_sxm,8,8,10\nb,new_backend,own/model,z300_sxm,8,8,10\n");
  const std::string settings = file(
      "settings.csv", settings_heading + "sglan,h200_smx,,fp9,,,,,1,,,,one\nnew_backend,z300_sxm,,fp8,,,,,1,,,,two\n");
  const std::string own = file("own.csv", heading + "a,sglang,own/model,h200_sxm,8,8,10\n");
  const std::string words = to_text(load_inference({own, settings}, {shipped}, {}).errors());
  INFO(words);
  for (const char* part : {":2:1: error: no server has the backend 'sglan'", "did you mean 'sglang'?",
                           ":2:7: error: no server has the system 'h200_smx'", "did you mean 'h200_sxm'?",
                           ":2:17: error: no server has the precision 'fp9'"})
    CHECK(words.find(part) != std::string::npos);
  CHECK(words.find("settings.csv:3:") == std::string::npos);
  CHECK(to_text(load_inference({own, settings}, {}, {}).errors())
            .find("settings.csv:3:13: error: no server has the system 'z300_sxm'") != std::string::npos);
  CHECK(load_inference({own}, {shipped}, {}).value().rows.size() == 1);  // which are not scored

  // Models are those that are described, and those of rows; words of rows are right whatever they are.
  const std::vector<std::string> more{
      file("models.csv", "model,config,precision,note\nown/model,llama3-8b,bf16,\n"),
      file("servers.csv", "backend,system,model,max_running\nmine,my_box,own/model|own/modle,4\n")};
  const std::string rows = file("rows.csv", heading + "a,mine,own/model,my_box,8,8,10\n");
  const std::string wrong = to_text(load_inference({rows}, more, {}).errors());
  CHECK(
      wrong.find("servers.csv:2:23: error: no server has the model 'own/modle'\n    hint: did you mean 'own/model'?") !=
      std::string::npos);
  CHECK(wrong.find("mine") == std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST_CASE("requests that find no room in memory wait for one, and the row says so") {
  const std::string row = "a,s,vllm,dense,h100_sxm,bf16,agg,8192,1024,512,512,1,1,1,1,1,,,50,10\n";
  const InferenceReport report = report_of(row);
  REQUIRE(report.rows.size() == 1);
  const std::string assumed = report.rows[0].assumed.at(0);
  CHECK(assumed.find(" of 512 requests find room in memory at once, the others wait") != std::string::npos);
  // Half of 80 GB, and 128 KiB of a token: some forty of them at 7834 tokens; the others wait for answers, not prompts.
  const int places = std::stoi(assumed);
  CHECK((places > 30 && places < 70));
  CHECK(*report.rows[0].predicted_ttft > 500 * report.rows[0].predicted_tpot);
}

TEST_CASE("a server whose weights, or whose one request, no GPU has room for is listed with what it needs") {
  const Folder folder;
  folder.write("s.csv",
               "row_id,source,backend,model,system,precision,mode,isl,osl,concurrency,tp,ttft_ms,tpot_ms\n"
               "weights,me,vllm,meta-llama/Llama-3.1-70B,h100_sxm,bf16,agg,1024,1024,1,1,100,10\n"
               "request,me,vllm,meta-llama/Llama-3.1-70B,h100_sxm,bf16,agg,100000,1024,8,2,100,10\n"
               "tight,me,vllm,meta-llama/Llama-3.1-70B,h100_sxm,bf16,agg,80000,1024,8,2,100,10\n"
               "fits,me,vllm,meta-llama/Llama-3.1-70B,h100_sxm,bf16,agg,1024,1024,1,2,100,10\n");
  const Outcome outcome = run_shell(with_data + "collcast validate --inference s.csv --format json", folder.path());
  REQUIRE(outcome.exit == 0);
  const auto document = nlohmann::json::parse(outcome.out);
  REQUIRE(document["unscored"].size() == 2);
  CHECK(document["unscored"][0]["why"] == "the weights need 131 GiB of 79.2 that the GPU has");
  CHECK(document["unscored"][1]["why"] ==
        "not one request has room: weights need 65.7 GiB, its keys and values 15.4, of 79.2 that the GPU has");
  // Whatever is not weights or kept may be less than is forecast, as servers ran that have too little by it.
  REQUIRE(document["rows"].size() == 2);
  CHECK(document["rows"][0]["row_id"] == "tight");
  CHECK(document["rows"][0]["assumed"][0].get<std::string>().find("about as much memory as there is") !=
        std::string::npos);
  CHECK(document["rows"][1]["assumed"].empty());
}

TEST_CASE("servers on a machine with another GPU are warned of") {
  const Folder folder;
  const std::string heading =
      "row_id,source,backend,model,system,precision,mode,isl,osl,concurrency,tp,ttft_ms,tpot_ms\n";
  folder.write("s.csv", heading + "a,me,vllm,meta-llama/Llama-3.1-70B,b200_sxm,fp8,agg,1024,1024,1,2,100,10\n" +
                            "b,me,vllm,meta-llama/Llama-3.1-70B,h100_sxm,fp8,agg,1024,1024,1,2,100,10\n");
  const std::string validate = with_data + "collcast validate --inference s.csv --format json";
  const Outcome outcome = run_shell(validate + " --topology dgx-h100", folder.path());
  CHECK(outcome.exit == 0);
  CHECK(outcome.err == "command line: warning: 1 row measured on 'b200_sxm', dgx-h100 has 'H100-SXM5-80GB'\n");
  CHECK(nlohmann::json::parse(outcome.out)["warnings"].size() == 1);
  CHECK(run_shell(validate, folder.path()).err == "");
}

namespace {

/// The shipped rows, in a file in `folder`: under a sanitizer, where all of them take a minute each time, some.
std::size_t put_rows(const std::filesystem::path& folder) {
  const std::filesystem::path shipped = root + "/validation/data/inference";
  std::filesystem::copy_file(shipped / "models.csv", folder / "models.csv");
  std::ifstream in(shipped / "serving_ttft_tpot.csv");
  std::ofstream out(folder / "rows.csv");
  std::string line;
  std::getline(in, line);
  out << line << "\n";
  std::size_t rows = 0;
  for (Sample sample(29); std::getline(in, line);)
    if (sample.takes()) {
      out << line << "\n";
      ++rows;
    }
  return rows;
}

}  // namespace

TEST_CASE("the command scores the shipped servers, lists every other one, and holds budgets") {
  const Folder folder;
  const std::size_t rows = put_rows(folder.path());
  CHECK((sanitized ? rows > 100 : rows == 3218));
  const std::string validate = "collcast validate --inference rows.csv";
  const Outcome outcome = run_shell(with_data + validate + " --format json", folder.path());
  REQUIRE(outcome.err == "");
  REQUIRE(outcome.exit == 0);
  const auto document = nlohmann::json::parse(outcome.out);
  CHECK(document["rows"].size() + document["unscored"].size() == rows);
  std::size_t repeats = 0;
  for (const auto& row : document["unscored"])
    repeats += row["why"].get<std::string>().find("that another row has") != std::string::npos ? 1U : 0U;
  CHECK(10 * (document["rows"].size() + repeats) > 6 * rows);
  // Nothing is fitted to these rows: 16.4 and 40.5 %.
  CHECK(document["summary"].back()["tpot"]["median_ape"].get<double>() < 0.25);
  CHECK(document["summary"].back()["ttft"]["median_ape"].get<double>() < 0.5);
  for (const auto& row : document["unscored"]) CHECK(row["why"].get<std::string>() != "");
  const auto& all = document["summary"].back();
  CHECK(all["by"] == "all");
  CHECK(all["n"] == document["rows"].size());
  std::size_t of_backends = 0;
  for (const auto& row : document["summary"])
    if (row["by"] == "backend") of_backends += row["n"].get<std::size_t>() + row["unscored"].get<std::size_t>();
  CHECK(of_backends == rows);
  CHECK(run_shell(with_data + validate + " --format json", folder.path()).out == outcome.out);
  const std::string csv = run_shell(with_data + validate + " --format csv", folder.path()).out;
  CHECK(std::count(csv.begin(), csv.end(), '\n') == static_cast<std::ptrdiff_t>(rows) + 1);

  const auto budget = [&](const std::string& text) {
    return run_shell(with_data + validate + " --budget '" + text + "' --format csv", folder.path());
  };
  CHECK(budget("tpot.all=1%,ttft.vllm=500%").exit == 1);
  CHECK(budget("tpot.all=1%").err.find("budget tpot.all: missed") != std::string::npos);
  CHECK(budget("tpot.h100_sxm=500%").exit == 0);
  const Outcome wrong = budget("tpot.h100=5%,speed.all=2%");
  CHECK(wrong.exit == 2);
  CHECK(wrong.err.find("did you mean 'h100_sxm'") != std::string::npos);
  CHECK(wrong.err.find("unknown figure 'speed'") != std::string::npos);
  CHECK(run_shell(with_data + "collcast validate --inference --kernels", folder.path()).exit == 2);
}

namespace {

InferenceDeviation served_row(const char* architecture, const char* layout, double ttft, double tpot) {
  InferenceDeviation out;
  out.of = {"r", "s", "vllm", "h100_sxm", architecture, "agg", "bf16"};
  out.architecture = architecture;
  out.layout = layout;
  out.measured_ttft = Seconds(ttft);
  out.predicted_ttft = Seconds(0.1);
  out.measured_tpot = Seconds(tpot);
  out.predicted_tpot = Seconds(0.01);
  return out;
}

}  // namespace

TEST_CASE("what is fitted to servers is fitted to other rows than those that it is scored on") {
  InferenceReport report;
  report.rows = {served_row("a", "tp 1", 0.13, 0.02), served_row("a", "tp 2", 0.12, 0.03),
                 served_row("b", "tp 1", 0.15, 0.01), served_row("c", "tp 1", 0.2, 0.05)};
  report.rows[3].of.backend = "sglang";
  // Another name of one architecture is no other model: some measurements are in the table under both.
  report.rows[1].of.model = "a's second name";
  cross_validate(report);
  // The remainder of a's rows is b's row, and of b's the heavier of a's two: 1/0.12 weighs more than 1/0.13.
  CHECK(report.rows[0].ttft_remainder->count() == Approx(0.05));
  CHECK(report.rows[1].ttft_remainder->count() == Approx(0.05));
  CHECK(report.rows[2].ttft_remainder->count() == Approx(0.02));
  CHECK(report.rows[2].calibrated_ttft()->count() == Approx(0.12));
  CHECK(*report.rows[2].calibrated_ttft_ratio() == Approx(0.12 / 0.15));
  CHECK_FALSE(report.rows[3].ttft_remainder.has_value());
  // Scales leave out an architecture's layout alone: measured over predicted of the others is 1 and 3, 1 and 2, 2 and
  // 3, each weighing its inverse.
  CHECK(*report.rows[0].tpot_scale == Approx(1));
  CHECK(*report.rows[1].tpot_scale == Approx(1));
  CHECK(*report.rows[2].tpot_scale == Approx(2));
  CHECK(report.rows[2].calibrated_tpot()->count() == Approx(0.02));
  CHECK_FALSE(report.rows[3].tpot_scale.has_value());
  // All rows of a backend: 0.02, 0.03 and 0.05, weighing 8.3, 7.7 and 6.7.
  REQUIRE(report.remainders.size() == 2);
  CHECK(report.remainders[0].backend == "sglang");
  CHECK(report.remainders[0].time.count() == Approx(0.1));
  CHECK(report.remainders[1].rows == 3);
  CHECK(report.remainders[1].time.count() == Approx(0.03));
  // A row that nothing is fitted for counts as it is forecast.
  const InferenceSummaryRow all = summary(report).back();
  CHECK(all.calibrated_ttft.n == 4);
  CHECK(all.calibrated_tpot.n == 4);
  CHECK(all.calibrated_ttft.mean_ape == Approx((0.02 / 0.13 + 0.03 / 0.12 + 0.03 / 0.15 + 0.1 / 0.2) / 4));
  CHECK(all.calibrated_tpot.mean_ape == Approx((0.5 + 2.0 / 3 + 1 + 0.8) / 4));
}

TEST_CASE("of several data sets the others have no effect, nor has what the chosen one's model lacks, in one order") {
  const Folder folder;
  const auto told = [&](const std::string& options) {
    const Outcome outcome = run_shell(with_data + "collcast validate " + options, folder.path());
    CHECK(outcome.exit == 2);
    std::istringstream lines(outcome.err);
    std::vector<std::string> out;
    for (std::string line; std::getline(lines, line);)
      if (const std::size_t at = line.find("error: --"); at != std::string::npos) out.push_back(line.substr(at + 7));
    return out;
  };
  CHECK(told("--kernels --training --part 1/2 --library nccl --env NCCL_PROTO=LL --method simulate") ==
        std::vector<std::string>{"--part has no effect with --kernels", "--training has no effect with --kernels",
                                 "--library has no effect with --kernels", "--env has no effect with --kernels",
                                 "--method has no effect with --kernels"});
  CHECK(told("--inference --kernels --training --library nccl --method simulate") ==
        std::vector<std::string>{"--training has no effect with --inference",
                                 "--kernels has no effect with --inference",
                                 "--method has no effect with --inference"});
  CHECK(told("--training --statistic min --library nccl --method simulate") ==
        std::vector<std::string>{"--statistic has no effect with --training"});
}

TEST_CASE("a scale is of one backend, system and precision, and nothing is added to forecasts that are too long") {
  InferenceReport report;
  report.rows = {served_row("a", "tp 1", 0.05, 0.02), served_row("b", "tp 1", 0.06, 0.02)};
  cross_validate(report);
  CHECK(report.rows[0].ttft_remainder == Seconds(0));
  CHECK(*report.rows[0].tpot_scale == Approx(2));
  report.rows[1].of.system = "h200_sxm";
  cross_validate(report);
  CHECK_FALSE(report.rows[0].tpot_scale.has_value());
  report.rows[1].of = report.rows[0].of;
  report.rows[1].of.precision = "fp8";
  cross_validate(report);
  CHECK_FALSE(report.rows[0].tpot_scale.has_value());
  // The remainder is of the backend, whatever the system.
  CHECK(report.rows[0].ttft_remainder.has_value());
}
