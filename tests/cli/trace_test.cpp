// What a step writes beside its page: a trace that adds up to the step, and a schedule that is the step again.
#include <catch2/catch.hpp>

#include <fstream>
#include <map>

#include "cli/called.hpp"
#include "cli/process.hpp"

using namespace collcast::test;
using Catch::Contains;
using Json = nlohmann::json;

TEST_CASE("a trace's spans end with the step, do not overlap and sum to its breakdown") {
  const Folder folder;
  const std::string file = (folder.path() / "trace.json").string();
  for (const std::string words : {"step llama3-8b-8xh100", "step gpt3-512gpu --set batch.global_batch=128"}) {
    INFO(words);
    const Json step = document_of(words + " --trace " + file);
    const Json trace = Json::parse(std::ifstream(file));
    std::map<std::pair<int, int>, double> end;           // of a thread
    std::map<int, std::map<std::string, double>> spent;  // of a process, by category
    double last = 0;
    for (const Json& event : trace.at("traceEvents")) {
      if (event.at("ph") != "X") continue;
      const double begin = event.at("ts"), length = event.at("dur");
      double& before = end[{event.at("pid"), event.at("tid")}];
      REQUIRE(length >= 0);
      REQUIRE(begin >= before - 1e-6);
      before = begin + length;
      last = std::max(last, before);
      spent[event.at("pid")][event.at("cat")] += length / 1e6;
    }
    CHECK(last / 1e6 == Approx(step["simulate_s"].get<double>()).epsilon(1e-8));
    // The breakdown is of one stage, that with the most work.
    const Json& parts = step["breakdown"];
    bool found = false;
    for (auto& [stage, of] : spent)
      found = found || (of["forward"] + of["backward"] + of["recompute"] ==
                            Approx(parts["compute_s"].get<double>()).epsilon(1e-6) &&
                        of["optimizer"] == Approx(parts["optimizer_s"].get<double>()).epsilon(1e-6));
    CHECK(found);
  }
}

TEST_CASE("a schedule that was written is the same step again, without the alignment that a file has not") {
  const Folder folder;
  const std::string file = (folder.path() / "order.yaml").string();
  const std::string base = "step llama3-70b-64xh100 --set layout.tp=2 --set layout.pp=8 --set layout.dp=4";
  for (const std::string schedule : {"1f1b", "gpipe", "interleaved --set layout.vpp=2", "zb-h1", "dualpipe-v"}) {
    const std::string name = schedule.substr(0, schedule.find(' ')),
                      built_in = base + " --set layout.schedule=" + schedule;
    INFO(name);
    const bool aligns = name == "1f1b" || name == "gpipe" || name == "interleaved";
    const Called written = call(built_in + " --write-schedule " + file);
    REQUIRE(written.exit == 0);
    CHECK((written.err.find("without its alignment of gradients") != std::string::npos) == aligns);
    const std::string alone = " --set training.align_grad_reduce=false";
    const Json again = document_of(base + " --set layout.schedule=" + file);
    const Json step = document_of(built_in + (aligns ? alone : ""));
    CHECK(again["simulate_s"].get<double>() == Approx(step["simulate_s"].get<double>()).epsilon(1e-12));
    CHECK(again["estimate_s"].get<double>() == Approx(step["estimate_s"].get<double>()).epsilon(1e-12));
    CHECK_THAT(call(built_in + alone + " --write-schedule " + file).err, !Contains("alignment"));
  }
}
