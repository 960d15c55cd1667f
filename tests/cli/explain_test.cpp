// collcast explain, whole: what is written comes to what is claimed, and the commands that it names work.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "cli/arithmetic.hpp"
#include "cli/called.hpp"
#include "cli/process.hpp"
#include "support/sample.hpp"

using namespace collcast::test;
using Catch::Contains;
using Json = nlohmann::json;

namespace {

Json explained(const std::string& command) {
  const std::string program = COLLCAST_EXECUTABLE;
  REQUIRE(command.starts_with("collcast "));
  const Outcome outcome = run_shell(program + command.substr(8) + " --format json", std::filesystem::current_path());
  INFO(command << "\n" << outcome.err);
  REQUIRE(outcome.exit == 0);
  return Json::parse(outcome.out);
}

double value(const Json& doc, const std::string& section, const std::string& name) {
  for (const Json& term : doc.at("terms"))
    if (term.at("section").get<std::string>().starts_with(section) && term.at("name") == name) return term.at("value");
  FAIL("no term " << section << ": " << name);
  return 0;
}

/// How many numbers were checked. Four digits are shown, and a term may sum ten of them.
int check_arithmetic(const Json& doc) {
  int checked = 0;
  for (const Json& term : doc.at("terms")) {
    const std::string numbers = term.at("numbers"), source = term.at("source");
    if (numbers.empty() || source.starts_with("hops differ")) continue;
    INFO(term.dump());
    CHECK(worth(numbers) == Approx(term.at("value").get<double>()).epsilon(1e-3).margin(1e-15));
    ++checked;
  }
  return checked;
}

const std::vector<std::string> steps{
    "llama3-70b-64xh100",
    "llama3-70b-64xh100 --method estimate",
    "llama3-70b-64xh100 --method estimate --env NCCL_BUFFSIZE=67108864 --env NCCL_MAX_NCHANNELS=4",
    "llama3-70b-64xh100 --what-if double-ib",
    "llama3-70b-64xh100 --set layout.schedule=gpipe --set training.recompute=full",
    "llama3-70b-64xh100 --set layout.schedule=gpipe --set training.overlap_dp=false --method estimate",
    "llama3-70b-64xh100 --set training.recompute=selective --set training.attention=unfused --set training.zero=0",
    "llama3-70b-64xh100 --set training.optimizer=false --set layout.sequence_parallel=false",
    "llama3-70b-64xh100 --set model.tied_embeddings=true --set training.precision=fp16 --method estimate",
    "llama3-70b-64xh100 --set training.optimizer_state_offload.chunk_size_mb=256 --set "
    "training.precision_aware_optimizer.exp_avg_dtype=bf16",
    "llama3-70b-64xh100 --set training.optimizer_state_offload.fraction=0.5 --set training.zero=0 --method estimate",
    "gpt3-interleaved-64xa100",
    "gpt3-interleaved-64xa100 --what-if vpp-2 --set training.recompute=full --method estimate",
    "gpt3-interleaved-64xa100 --what-if vpp-5",
    "gpt3-interleaved-64xa100 --what-if own",
    "gpt3-512gpu --method estimate",
    "gpt3-512gpu --set layout.schedule=zb-h2",
    "llama3-70b-64xh100 --set layout.schedule=zb-h1 --method estimate",
    "gpt3-512gpu --set layout.schedule=zb-1p --method estimate",
    "gpt3-512gpu --set layout.schedule=zb-2p --set batch.global_batch=128 --set training.recompute=full",
    "gpt3-512gpu --set layout.schedule=zb-v --set batch.global_batch=64 --set training.recompute=full",
    "gpt3-512gpu --set layout.schedule=dualpipe-v --set batch.global_batch=128 --set training.recompute=full",
    "gpt3-512gpu --set layout.schedule=zb-v --set training.overlap_pp=false --set layout.pp=4 --method estimate",
    "gpt3-512gpu --set layout.schedule=zb-v --set model.layers=93 --set layout.uneven_stages=true --method estimate",
    "gpt3-512gpu --set layout.schedule=zb-h1 --set model.layers=93 --set layout.uneven_stages=true --method estimate",
    "deepseek-v3-2048xh800 --what-if dualpipe-v --method estimate",
    "deepseek-v3-2048xh800 --set model.experts.latent=1024 --set training.precision=fp8 --method estimate",
    "mixtral-8x7b-64xh100 --what-if split-experts --set model.experts.latent=1024 --method estimate",
    "mixtral-8x7b-64xh100 --set model.experts.latent=512 --set layout.schedule=zb-h1 --set layout.vpp=1 --method "
    "estimate",
    "deepseek-v3-2048xh800 --what-if dualpipe --method estimate",
    "deepseek-v3-2048xh800 --what-if as-reported --method estimate",
    "deepseek-v3-2048xh800 --set model.mtp_num_layers=2 --set layout.schedule=zb-h1 --method estimate",
    "gpt3-512gpu --set model.mtp_num_layers=1 --set model.learned_positions=0 --set model.dropout=0.1 --method "
    "estimate",
    "gpt3-512gpu --set model.mtp_num_layers=2 --set model.learned_positions=0 --set layout.schedule=zb-v --set "
    "batch.global_batch=64 --method estimate",
    "nemotron3-nano-30b-8xb200 --set model.mtp_num_layers=1 --method estimate",
    "gpt-oss-120b-64xgb200 --what-if mxfp8 --method estimate",
    "llama3-70b-lora-8xh100 --set model.mtp_num_layers=1 --method estimate",
    "llama3-8b-fsdp-64xh100 --set model.mtp_num_layers=1 --method estimate",
    "llama3-70b-64xh100 --set model.mtp_num_layers=2 --method estimate",
    "gpt3-512gpu --set layout.schedule=dualpipe --set batch.global_batch=256 --set training.recompute=full",
    "gpt3-512gpu --set layout.schedule=dualpipe --set training.overlap_pp=false --set layout.pp=4 --method estimate",
    "llama3-70b-lora-8xh100 --method estimate",
    "llama3-70b-lora-8xh100 --what-if all-matrices --set layout.schedule=zb-h1 --set layout.vpp=1 --method estimate",
    "llama3-70b-lora-8xh100 --what-if all-matrices --set training.recompute=full --method estimate",
    "llama3-8b-fsdp-64xh100",
    "llama3-8b-fsdp-64xh100 --what-if fp8-gathers --method estimate",
    "gpt-1b-gradients-16xa100 --what-if delayed",
    "gpt-1b-gradients-16xa100 --what-if powersgd-bf16 --method estimate",
    "deepseek-v3-2048xh800 --what-if fp8-dispatch --method estimate",
    "deepseek-v3-2048xh800 --what-if dualpipe-recompute --method estimate",
    "llama3-70b-64xh100 --set training.recompute=selective --set 'training.recompute_modules=[mlp, layernorm, k_proj]' "
    "--method estimate",
    "llama3-70b-64xh100 --set training.recompute=full --set training.recompute_layers=50% --method estimate",
    "gpt3-interleaved-64xa100 --what-if vpp-2 --set training.recompute_layers=25% --method estimate",
    "llama3-8b-fsdp-64xh100 --what-if hsdp --method estimate",
    "llama3-8b-fsdp-64xh100 --what-if zero-2 --method estimate",
    "llama3-8b-fsdp-64xh100 --what-if no-overlap",
    "llama3-8b-fsdp-64xh100 --set training.no_sync=true --method estimate",
    "gpt3-interleaved-64xa100 --set training.zero=3 --set training.reshard_after_forward=false --method estimate",
    "llama3-70b-64xh100 --set training.zero=3 --set training.no_sync=true",
    "llama3-70b-64xh100 --set training.zero=2 --set model.tied_embeddings=true --method estimate",
    "llama3-8b-128k-32xh100",
    "llama3-8b-128k-32xh100 --what-if ulysses --set training.zero=1 --method estimate",
    "mixtral-8x7b-64xh100",
    "mixtral-8x7b-64xh100 --what-if across-nodes --set training.recompute=full --method estimate",
    "mixtral-8x7b-64xh100 --what-if skewed --set layout.schedule=zb-h1 --set layout.vpp=1 --method estimate",
    "deepseek-v3-2048xh800 --method estimate",
    "deepseek-v3-2048xh800 --set model.config=models/deepseek-v3.2/config.json --method estimate",
    "deepseek-v3-2048xh800 --set model.config=models/deepseek-v3.2/config.json --what-if dualpipe-recompute "
    "--method estimate",
    "deepseek-v3-2048xh800 --set model.config=models/deepseek-v3.2/config.json --set batch.sequence=2048 "
    "--set training.recompute=full --method estimate",
    "deepseek-v3-2048xh800 --set model.config=models/glm5/config.json --set layout.uneven_stages=true "
    "--set training.recompute=full --method estimate",
    "deepseek-v3-2048xh800 --set model.config=models/deepseek-v3.2/config.json --set training.lora.rank=8 "
    "--method estimate",
    "deepseek-v3-2048xh800 --set layout.pp=1 --set layout.dp=256 --set layout.tp=8 --set layout.sequence_parallel=true "
    "--set training.recompute=selective --set training.zero=3 --method estimate",
    "gpt3-512gpu --set layout.schedule=zb-2p --set layout.vpp=1 --method estimate",
    "llama3-70b-64xh100 --fault 'gpu: 12, compute: 80%'",
    "llama3-70b-64xh100 --fault 'gpu: 12, compute: 80%' --method estimate",
    "llama3-70b-64xh100 --fault 'gpu: 12, compute: 80%, from: 4s, until: 9s' --fault 'gpu: 40, compute: 70%, from: 6s'",
    "llama3-70b-64xh100 --fault 'gpu: 12, compute: 80%, from: 4s, until: 9s' --method estimate",
    "llama3-70b-64xh100 --fault 'gpu: 3, jitter: 5%'",
    "llama3-70b-64xh100 --library ideal --fault 'gpu: 12, compute: 80%' --fault 'link: node4.nic2, bandwidth: 25%'",
    "llama3-70b-64xh100 --library ideal --set placement.nodes=random --set placement.seed=3",
    "mixtral-8x7b-64xh100 --fault 'gpu: 9, compute: 60%' --set training.recompute=full",
    "llama3-8b-fsdp-64xh100 --fault 'gpu: 9, compute: 60%'",
    "korthikanti-22b-layer",
    "overlap-175b-layer"};

}  // namespace

TEST_CASE("under library nccl it is said where faster NICs would not be used, and they are not") {
  const auto estimate = [](const std::string& words) {
    return value(Json::parse(call(words + " --format json").out), "run", "estimate");
  };
  // A pair of GPUs has two channels; NCCL's cap on a tree's channel is below its NIC's share; a ring fills its NICs.
  const std::string all = " --topology dgx-h100 --nodes 2 --size 1GiB --library nccl";
  for (const auto& [question, unused] : {std::pair("sendrecv --group 0,8", true),
                                         {"all_reduce --group 0,8,1,9", true},
                                         {"all_gather --group 0,8,1,9", false}}) {
    const std::string words = std::string("explain collective ") + question + all;
    INFO(words);
    CHECK((call(words).out.find("NICs of twice the rate would change nothing") != std::string::npos) == unused);
    const double faster = estimate(words + " --set network.link.bandwidth=800Gb/s");
    CHECK((faster > 0.99 * estimate(words)) == unused);
  }
}

TEST_CASE("of trees across nodes it is said where faster NICs would not be used, and they are not") {
  struct Case {
    const char *machine, *doubled;
    int nodes;
    const char* algorithm;
    bool unused;
  };
  // NVLinks, PCIe and NCCL's caps hold; of p4d PCIe 3.0, which NCCL counts 12 GB/s, below 100 Gb/s. A slower NIC is
  // one of more channels where it is faster, in NCCL's own book.
  for (const Case& one : {Case{"hgx-a800", "400Gb/s", 2, "tree", true},
                          {"dgx2-v100", "200Gb/s", 2, "tree", true},
                          {"l40s-pcie", "400Gb/s", 2, "tree", true},
                          {"aws-p4d", "200Gb/s", 2, "tree", true},
                          {"dgx-h100", "800Gb/s", 4, "nvls_tree", true},
                          {"snellius-h100", "400Gb/s", 2, "tree", false},
                          {"gcp-a3-mega", "400Gb/s", 4, "tree", false},
                          {"gcp-a3-mega", "400Gb/s", 4, "nvls_tree", false}}) {
    const std::string words = std::string("explain collective all_reduce --size 4GiB --library nccl --topology ") +
                              one.machine + " --nodes " + std::to_string(one.nodes) + " --algorithm " + one.algorithm;
    INFO(words);
    CHECK((call(words).out.find("NICs of twice the rate would change nothing") != std::string::npos) == one.unused);
    const auto estimate = [](const std::string& text) {
      return value(Json::parse(call(text + " --format json").out), "run", "estimate");
    };
    CHECK((estimate(words + " --link-bandwidth " + one.doubled) > 0.99 * estimate(words)) == one.unused);
  }
}

TEST_CASE("the title says once how many ranks there are") {
  const std::string group = "--topology dgx-h100 --nodes 2 --group 5,15,3,14,0,1,2,10,9 --size 1MiB";
  for (const char* library : {" --library ideal", " --library nccl"}) {
    const std::string out = call("explain collective all_gather " + group + library).out;
    const std::string title = out.substr(0, out.find('\n'));
    INFO(title);
    CHECK(title.find("among 9 ranks (5, 15, 3, 14, 0, 1, 2, 10 \u2026 9) of dgx-h100") != std::string::npos);
  }
}

TEST_CASE("the numbers that a step's explanation writes come to the figures that it claims") {
  for (const std::string& step : steps) {
    const int checked = check_arithmetic(explained("collcast explain step " + step));
    INFO(step);
    CHECK(checked >= (step == "overlap-175b-layer" ? 1 : 25));
  }
}

TEST_CASE("the numbers that the explanation of each shipped training step and variant writes come to its figures") {
  Sample sample(5);
  int explained_steps = 0;
  const Json all = document_of("step --list");
  for (const Json& row : all.at("rows")) {
    const std::string name = row.at("name");
    std::vector<std::string> commands{name};
    for (const Json& variant : row.at("what_if"))
      commands.push_back(name + " --what-if " + variant.at("name").get<std::string>());
    for (const std::string& command : commands) {
      if (command != name && !sample.takes()) continue;
      INFO(command);
      Called outcome = call("explain step " + command + " --method estimate --format json");
      // What is drawn has no closed form.
      if (outcome.exit != 0) outcome = call("explain step " + command + " --format json");
      if (outcome.exit != 0 && outcome.err.find("inference") != std::string::npos) continue;
      REQUIRE(outcome.exit == 0);
      CHECK(check_arithmetic(Json::parse(outcome.out)) > 0);
      ++explained_steps;
    }
  }
  CHECK(explained_steps >= 16);
}

TEST_CASE("copies to the host's memory come with their share of the line rate and where that is from") {
  const auto told = [](const std::string& step) {
    std::vector<std::string> sections;
    const Json doc = explained("collcast explain step llama3-8b-8xh100 --method estimate" + step);
    for (const Json& paragraph : doc.at("text"))
      if (paragraph.at("text").get<std::string>().starts_with(
              "copies have 0.8 of the line rate of the way to the host ('host_copies'): steps of Llama 3 8B"))
        sections.push_back(paragraph.at("section"));
    return sections;
  };
  CHECK(told("").empty());
  CHECK(told(" --what-if offloaded") == std::vector<std::string>{"stage 0, one micro-batch"});
  CHECK(told(" --what-if host-states") ==
        std::vector<std::string>{"optimizer states that come from the host's memory for the update, and go back"});
}

TEST_CASE("a simulation that is too long to be made unasked is left out by name") {
  // 2 x 16383 messages by each of 16384 ranks.
  const std::string out =
      call("explain collective all_reduce --topology star --ranks 16384 --algorithm ring --size 1MiB").out;
  CHECK_THAT(out, Contains("not simulated: 536.8 M messages, more than 100 M") && Contains("--method both insists"));
}

TEST_CASE("jitter of links is told as what it is, and not as that of kernels") {
  const std::string step = "collcast step llama3-70b-straggler-64xh100 --fault 'link: node1.nic4, jitter: 20%'";
  const auto here = std::filesystem::current_path();
  const Outcome links = run_shell(step, here), both = run_shell(step + " --fault 'gpu: 3, jitter: 2%'", here);
  CHECK_THAT(links.out, Contains("jitter of links: ") && Contains("means of links that vary") &&
                            !Contains("each stretch of kernels"));
  CHECK_THAT(both.out, Contains("jitter of links: ") && Contains("each stretch of kernels") &&
                           !Contains("means of links that vary"));
}

TEST_CASE("the figures that are explained are those of the step") {
  for (const std::string& step : steps) {
    INFO(step);
    const Json doc = explained("collcast explain step " + step), result = explained("collcast step " + step);
    CHECK(value(doc, "step", "step") == Approx(result.at("step_s").get<double>()).epsilon(1e-9));
    if (result.at("inputs").is_null()) continue;
    CHECK(value(doc, "rates", "MFU") == result.at("mfu"));
    CHECK(value(doc, "rates", "HFU") == result.at("hfu"));
    // With faults that come and go it is the sum of what the periods do.
    const bool comes_and_goes = step.find("from:") != std::string::npos;
    CHECK(value(doc, comes_and_goes ? "the machine as it is" : "closed form", "closed form") ==
          Approx(result.at("estimate_s").get<double>()).epsilon(1e-12));
    if (result.contains("faults")) {
      CHECK(value(doc, "the machine as it is", "cost") == Approx(result.at("faults").at("cost_s").get<double>()));
      CHECK(value(doc, "the machine as it is", "step as described") == result.at("faults").at("healthy").at("step_s"));
    }
    for (const char* item : {"parameters", "gradients", "optimizer", "activations", "buffers", "peak"})
      CHECK(value(doc, "memory", item) == result.at("memory").at(std::string(item) + "_bytes"));
  }
}

TEST_CASE("every collective of a step comes with the command that explains it, and its time is the step's") {
  for (const char* step :
       {"llama3-70b-64xh100", "llama3-70b-64xh100 --env NCCL_PROTO=Simple", "llama3-70b-64xh100 --library ideal",
        "llama3-70b-64xh100 --library ideal --what-if double-ib",
        "llama3-70b-64xh100 --set layout.tp=4 --set layout.dp=4 --link-latency 2us --chunks 2",
        "llama3-70b-64xh100 --set collectives.sharing=fifo --algorithm ring",
        "llama3-70b-64xh100 --library ideal --fault 'link: node4.nic2, bandwidth: 25%'",
        "llama3-70b-64xh100 --library ideal --fault 'link: node6.nic1, failed: true'",
        "llama3-70b-64xh100 --library ideal --fault 'link: node4.nic2, bandwidth: 10GB/s, added_latency: 3us'"}) {
    INFO(step);
    const Json doc = explained(std::string("collcast explain step ") + step);
    const Json collectives = explained(std::string("collcast step ") + step).at("collectives");
    const Json& commands = doc.at("commands");
    REQUIRE(commands.size() == collectives.size());
    for (std::size_t i = 0; i < commands.size(); ++i) {
      const std::string command = commands[i].at("command");
      INFO(command);
      const Json collective = explained(command);
      // A step prices NCCL's collectives by their closed form.
      const bool is_nccl = collective.at("library") == "nccl";
      CHECK(collective.at("library") == doc.at("library"));
      CHECK(collective.at("title").get<std::string>().ends_with(is_nccl ? "library nccl" : "library ideal"));
      CHECK(doc.at("title").get<std::string>().find(is_nccl ? ", library nccl:" : ", library ideal:") !=
            std::string::npos);
      CHECK(value(collective, is_nccl ? "run" : "total", is_nccl ? "estimate" : "simulation") ==
            collectives[i].at("time_s"));
    }
  }
}

TEST_CASE("groups at once: alone, together, and the links that they share") {
  // 12 hosts of a leaf pair up with 12 of the other over 6 spine links of 12.5 GB/s; see the estimate of `collective`.
  const std::string asked =
      "collective all_reduce --topology ethernet-hosts --nodes 96 --groups-of 2:48 --concurrent --size 16MiB";
  const Json doc = explained("collcast explain " + asked), row = explained("collcast " + asked).at("rows")[0];
  CHECK(value(doc, "total", "estimate") == row.at("estimate_s"));
  CHECK(value(doc, "total", "simulation") == row.at("simulate_s"));
  bool shared = false;
  for (const Json& table : doc.at("tables"))
    if (table.at("section") == "shared links") {
      shared = true;
      // 48 groups over three spines: 16 on each link of 12.5 GB/s.
      CHECK(table.at("rows")[0][2] == "16");
      CHECK(table.at("rows")[0][3] == "781.2 MB/s");
    }
  CHECK(shared);
}

TEST_CASE("a collective's formulas come to their figures") {
  for (const char* asked :
       {"all_reduce --topology dgx-h100 --nodes 2 --size 64MiB",
        "broadcast --topology ring --ranks 8 --algorithm ring --chunks 64 --size 1GiB",
        "alltoall --topology star --ranks 8 --size 1MiB", "all_reduce --topology ethernet-hosts --nodes 4 --size 0"})
    CHECK(check_arithmetic(explained(std::string("collcast explain collective ") + asked)) >= 2);
}

TEST_CASE("links of a simulated collective: bytes, busy time and utilisation, on request") {
  // A ring all-reduce of 4 MB among 4 ranks at 10 GB/s sends 2 x 3 x 1 MB over each of 4 links, without a pause.
  const std::string asked =
      "collcast collective all_reduce --topology ring --ranks 4 --link-bandwidth 10GB/s --link-latency 0s "
      "--algorithm ring --size 4MB";
  const Json links = explained(asked + " --links").at("rows")[0].at("links");
  REQUIRE(links.size() == 4);
  for (const Json& link : links) {
    CHECK(link.at("carried_bytes") == 6e6);
    CHECK(link.at("busy_s") == Approx(600e-6));
    CHECK(link.at("utilisation") == Approx(1));
  }
  CHECK(!explained(asked).at("rows")[0].contains("links"));
}

TEST_CASE("NCCL's buffers in memory are those that the job or its machine sets") {
  constexpr double mib = 1024 * 1024;
  const auto kept = [](const std::string& arguments) {
    const Called called = call("step llama3-70b-64xh100 --method estimate --format json " + arguments);
    INFO(called.err);
    REQUIRE(called.exit == 0);
    return Json::parse(called.out).at("memory").at("nccl_bytes").get<double>();
  };
  // Of one communicator within a node and five across 1 x 24 x 3 + 5 x 8 x 4 connections; Simple, LL and LL128.
  CHECK(kept("") == 232 * (4 + 0.5 + 4.6875) * mib);
  CHECK(kept("--env NCCL_BUFFSIZE=67108864") == 232 * (64 + 0.5 + 4.6875) * mib);
  CHECK(kept("--env NCCL_LL_BUFFSIZE=1048576 --env NCCL_LL128_BUFFSIZE=2097152") == 232 * (4 + 1 + 2) * mib);
  CHECK(kept("--env NCCL_MAX_NCHANNELS=4") == (12 + 5 * 16) * (4 + 0.5 + 4.6875) * mib);
  // Its plugin's instructions say 8 MiB, which a job's own variable goes before; whatever its messages are priced by.
  CHECK(kept("--set topology=gcp-a3-mega") == 232 * (8 + 0.5 + 4.6875) * mib);
  CHECK(kept("--set topology=gcp-a3-mega --library ideal") == 232 * (8 + 0.5 + 4.6875) * mib);
  CHECK(kept("--set topology=gcp-a3-mega --env NCCL_BUFFSIZE=1048576") == 232 * (1 + 0.5 + 4.6875) * mib);
  const Called explained = call("explain step llama3-70b-64xh100 --method estimate --env NCCL_BUFFSIZE=67108864");
  CHECK_THAT(explained.out, Contains("69.19 MiB x (1 x 72 + 5 x 32)") && Contains("NCCL_BUFFSIZE 64 MiB"));
}

TEST_CASE("what is said not to be simulated is not among the terms above it") {
  const Called slowed = call("explain step llama3-8b-8xh100");
  INFO(slowed.err);
  REQUIRE(slowed.exit == 0);
  CHECK_THAT(slowed.out, Contains("slowed = "));
  CHECK_THAT(slowed.out, Contains("share links, collectives slowed by kernels beside them"));
  CHECK_THAT(slowed.out, !Contains("kernels slowed by communication"));
}
