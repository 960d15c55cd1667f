// Files of pipeline schedules: what they say, what can be wrong with them, both forms written and read back, and how a
// scenario names one.
#include <catch2/catch.hpp>

#include <filesystem>

#include "collcast/workload/own_schedule.hpp"
#include "folder.hpp"
#include "samples.hpp"

using namespace collcast;
using Catch::Matchers::Contains;

namespace {

const std::string schedule_head = "schema: collcast.schedule.v1\nname: mine\n";

std::string schedule_errors(const std::string& text, const std::string& file = "o.yaml") {
  const Result<OwnSchedule> read = parse_schedule(text, file);
  return read ? "" : to_text(read.errors());
}
bool same(const OwnSchedule& a, const OwnSchedule& b) {
  return a.orders == b.orders && a.micro_batches == b.micro_batches && a.chunks == b.chunks && a.in_v == b.in_v;
}

/// In every form that the writers have: each stage does a turn after the other of one micro-batch.
OwnSchedule one_by_one(int stages, int chunks, bool in_v, int micro_batches, bool splits, bool pairs) {
  OwnSchedule own;
  own.name = "one-by-one";
  own.chunks = chunks;
  own.in_v = in_v;
  own.micro_batches = micro_batches;
  for (int i = 0; i < stages; ++i) {
    std::vector<Turn>& order = own.orders.emplace_back();
    for (int k = 0; k < micro_batches; ++k) {
      for (int c = 0; c < chunks; ++c) order.push_back({false, k, c});
      for (int c = chunks; c-- > 0;) {
        const bool whole = splits && k % 2 == 1;
        order.push_back({true, k, c, false, whole});
        if (splits && !whole) order.push_back({true, k, c, true});
      }
    }
  }
  // A forward of the next micro-batch beside the last backward of this one, on the first stage, which waits for nobody.
  if (pairs && stages == 1 && chunks == 1) {
    std::vector<Turn>& order = own.orders.front();
    for (std::size_t n = 0; n + 1 < order.size(); ++n)
      if (order[n].backward && !order[n].weights && !order[n + 1].backward) {
        std::swap(order[n], order[n + 1]);
        order[n].with_next = true;
      }
  }
  return own;
}

}  // namespace

TEST_CASE("a schedule's file says what each stage does") {
  const OwnSchedule own =
      parse_schedule(schedule_head +
                         "title: \"Zero bubble, and one pair\"\nmicro_batches: 3\nchunks: 1\nplacement: "
                         "loop\nstages:\n  - [F0, F1, B0, W0, F2+BW1,\n     B2, W2]\n  - [F0, B0, F1, B1, "
                         "F2, B2, W0, W1, W2]\n",
                     "o.yaml")
          .value();
  CHECK(own.name == "mine");
  CHECK(own.micro_batches == 3);
  CHECK(own.chunks == 1);
  CHECK_FALSE(own.in_v);
  CHECK(own.kind() == PipelineSchedule::own_split);
  CHECK(own.has_whole());
  const std::vector<Turn> first{{false, 0, 0},
                                {false, 1, 0},
                                {true, 0, 0},
                                {true, 0, 0, true},
                                {false, 2, 0, false, false, true},
                                {true, 1, 0, false, true},
                                {true, 2, 0},
                                {true, 2, 0, true}};
  REQUIRE(own.orders.size() == 2);
  CHECK(own.orders[0] == first);
  // Two chunks a stage in a V; without weight gradients of their own all backwards are whole, however written.
  const OwnSchedule v =
      parse_schedule(schedule_head + "micro_batches: 1\nplacement: v\nstages: [[F0, F0.1, B0.1, BW0]]\n", "o.yaml")
          .value();
  CHECK(v.kind() == PipelineSchedule::own_v);
  CHECK(v.chunks == 2);
  CHECK_FALSE(v.has_whole());
  CHECK(v.orders[0][1] == Turn{false, 0, 1});
  CHECK(v.orders[0][3] == Turn{true, 0, 0});
}

TEST_CASE("PyTorch's rows are read, with idle cells, round the ranks and in a V") {
  const OwnSchedule loop = parse_schedule("0F0,2F0,,2B0,0B0\r\n1F0,3F0, 3B0,1B0,\n", "my order.csv").value();
  CHECK(loop.name == "my-order");
  CHECK(loop.chunks == 2);
  CHECK(loop.kind() == PipelineSchedule::own);
  CHECK(loop.orders[1] == std::vector<Turn>{{false, 0, 0}, {false, 0, 1}, {true, 0, 1}, {true, 0, 0}});
  const OwnSchedule v = parse_schedule("0F0,3F0,3I0,3W0,0B0\n1F0,2F0,2B0,1B0\n", "v.csv").value();
  CHECK(v.kind() == PipelineSchedule::own_v_split);
  CHECK(v.orders[0] ==
        std::vector<Turn>{{false, 0, 0}, {false, 0, 1}, {true, 0, 1}, {true, 0, 1, true}, {true, 0, 0, false, true}});
  const OwnSchedule pair = parse_schedule("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n", "p.csv").value();
  CHECK(pair.kind() == PipelineSchedule::own);
  CHECK(pair.orders[0] ==
        std::vector<Turn>{{false, 0, 0}, {false, 1, 0, false, false, true}, {true, 0, 0}, {true, 1, 0}});
}

TEST_CASE("both forms of a schedule are read back as they were written") {
  for (const int stages : {1, 2, 3})
    for (const bool in_v : {false, true})
      for (const int chunks : {1, 2, 3}) {
        if (in_v ? chunks != 2 : stages == 1 && chunks > 1) continue;
        for (const bool splits : {false, true})
          for (const bool pairs : {false, true}) {
            const OwnSchedule own = one_by_one(stages, chunks, in_v, 40, splits, pairs);
            CAPTURE(stages, in_v, chunks, splits, pairs);
            const Result<OwnSchedule> yaml = parse_schedule(schedule_text(own, {"a remark"}), "o.yaml");
            REQUIRE(to_text(yaml.errors()) == "");
            CHECK(same(*yaml, own));
            CHECK(yaml->name == "one-by-one");
            const Result<OwnSchedule> csv = parse_schedule(schedule_csv(own), "o.csv");
            REQUIRE(to_text(csv.errors()) == "");
            CHECK(same(*csv, own));
          }
      }
}

TEST_CASE("a turn that cannot be read hides nothing that is wrong with the others") {
  const std::string turn = "expected a turn: F0, B0 or W0 (micro-batch 0), in chunk 1 F0.1, F4+B2 together, or BW0\n";
  // What stage 0 never does may be the turn that is none; stage 1 can be told.
  CHECK(schedule_errors(schedule_head + "micro_batches: 1\nstages:\n  - [F0, X0, F7, F0]\n  - [F0]\n") ==
        "o.yaml:5:10: error: stages.0.1 is 'X0'\n    hint: " + turn +
            "o.yaml:5:14: error: stage 0, F7: there is no micro-batch 7\n"
            "    hint: expected 0 to 0, as the schedule is for 1 micro-batches\n"
            "o.yaml:5:18: error: stage 0, F0 is there already (o.yaml:5:6)\n"
            "    hint: expected each once: remove one of them\n"
            "o.yaml:6:5: error: stage 1 never does B0\n"
            "    hint: expected forward and backward of 1 micro-batches\n");
  // Another key does not hide them either, but what they are held to does.
  const std::string body = "stages:\n  - [F0, F7, B0]\n  - [F0, B0]\n";
  CHECK_THAT(schedule_errors(schedule_head + "micro_batches: 1\nmicrobatch: 2\n" + body),
             Contains("micro-batch 7") && Contains("microbatch"));
  CHECK_THAT(schedule_errors(schedule_head + "micro_batches: none\n" + body), !Contains("micro-batch 7"));
  // CSV: as many stages of the model as can be seen, and no complaint of what may be missing.
  const auto csv = [](const char* text) { return to_text(parse_schedule(text, "o.csv").errors()); };
  CHECK_THAT(csv("0F0,0X0,0F0\n1F0,1B0,1F1\n"), Contains("o.csv:1:5") && Contains("is no action") &&
                                                    Contains("o.csv:1:9") && Contains("already") &&
                                                    Contains("stage 1 never does B1") && !Contains("stage 0 never"));
  CHECK_THAT(csv("0F0,0B0\n1G0,1H0\n"), Contains("'1G0'") && Contains("'1H0'") && !Contains("ranks"));
}

TEST_CASE("what is no turn is told with its place, all of them at once") {
  CHECK(schedule_errors(schedule_head + "micro_batches: 1\nstages:\n  - [F0, G0, B]\n  - [F0.x, F0+F1, [B0]]\n") ==
        "o.yaml:5:10: error: stages.0.1 is 'G0'\n"
        "    hint: expected a turn: F0, B0 or W0 (micro-batch 0), in chunk 1 F0.1, F4+B2 together, or BW0\n"
        "o.yaml:5:14: error: stages.0.2 is 'B'\n"
        "    hint: expected a turn: F0, B0 or W0 (micro-batch 0), in chunk 1 F0.1, F4+B2 together, or BW0\n"
        "o.yaml:6:6: error: stages.1.0 is 'F0.x'\n"
        "    hint: expected a turn: F0, B0 or W0 (micro-batch 0), in chunk 1 F0.1, F4+B2 together, or BW0\n"
        "o.yaml:6:12: error: stages.1.1 is 'F0+F1'\n"
        "    hint: expected a turn: F0, B0 or W0 (micro-batch 0), in chunk 1 F0.1, F4+B2 together, or BW0\n"
        "o.yaml:6:19: error: stages.1.2 is a list\n"
        "    hint: expected a turn: F0, B0 or W0 (micro-batch 0), in chunk 1 F0.1, F4+B2 together, or BW0\n");
  CHECK(schedule_errors(schedule_head + "micro_batches: 1\nstages: []\n").find("o.yaml:4:9: error: stages is empty") !=
        std::string::npos);
  CHECK(schedule_errors(schedule_head + "micro_batches: 1\nplacement: v\nchunks: 3\nstages: [[F0]]\n")
            .find("o.yaml:5:9: error: chunks is 3, and placement v has two a stage") != std::string::npos);
}

TEST_CASE("what is wrong with an order is told at its turn") {
  CHECK(schedule_errors(schedule_head +
                        "micro_batches: 2\nstages:\n  - [F0, B0, F1, B1]\n  - [F0, F1,\n     B0, B1]\n") ==
        "o.yaml:5:10: error: no stage can go on: stage 0 at B0 waits for B0 of stage 1, stage 1 at F1 waits for F1 of "
        "stage 0\n    hint: move B0 of stage 1 (o.yaml:7:6) in front of its F1\n");
  CHECK(schedule_errors(schedule_head + "micro_batches: 1\nstages:\n  - [F0]\n")
            .find("o.yaml:5:5: error: stage 0 never does B0") != std::string::npos);
}

TEST_CASE("rows that are none of PyTorch's are told with row and column") {
  CHECK(schedule_errors("0F0,0X0,0B0\n1SEND_F0,0F-1\n", "o.csv") ==
        "o.csv:1:5: error: '0X0' is no action\n"
        "    hint: expected stage, F, I, W or B, and micro-batch, such as 2F0; two together as (0F4;7B0)OVERLAP_F_B\n"
        "o.csv:2:1: error: '1SEND_F0' is no action\n"
        "    hint: messages and gathers are the forecast's own: expected the compute_only form\n"
        "o.csv:2:10: error: '0F-1' is no action\n"
        "    hint: expected stage, F, I, W or B, and micro-batch, such as 2F0; two together as (0F4;7B0)OVERLAP_F_B\n");
  CHECK(schedule_errors("", "o.csv").find("o.csv:1:1: error: the file is empty") != std::string::npos);
  CHECK(schedule_errors("0F0,0B0\n2F0,2B0\n", "o.csv").find("o.csv:2:1: error: 3 stages of the model on 2 ranks") !=
        std::string::npos);
  CHECK(schedule_errors("0F0,0B0\n0F0,1B0\n", "o.csv").find("o.csv:2:1: error: stage 0 of the model on rank 1") !=
        std::string::npos);
  CHECK(schedule_errors("0F0,0B0\n1F0,1B0,1B0\n", "o.csv").find("o.csv:2:9: error: stage 1, B0 is there already") !=
        std::string::npos);
  CHECK(schedule_errors("0F0,\"0B0\n", "o.csv").find("o.csv:1:5: error: a quoted cell") != std::string::npos);
}

TEST_CASE("a scenario names a schedule beside it, the command line one from where a person is") {
  const Folder folder("schedule");
  folder.file("orders/two.yaml", schedule_head + "micro_batches: 2\nstages: [[F0, F1, B0, B1], [F0, B0, F1, B1]]\n");
  folder.file("orders/bad.yaml", schedule_head + "micro_batches: 2\nstages: [[F0, F1, B0, B1], [F0, B0, F1, B2]]\n");
  folder.file("orders/chunks.yaml",
              schedule_head + "micro_batches: 1\nchunks: 2\nstages: [[F0, F0.1, B0.1, B0], [F0, F0.1, B0.1, B0]]\n");
  const auto load = [&](const std::string& schedule, const std::vector<std::string>& sets = {}) {
    const std::string file = folder.file(
        "s.yaml",
        "schema: collcast.scenario.v1\nname: s\ntopology: dgx-a100\nmodel: {layers: 8, hidden: 1024, heads: "
        "16, ffn: 4096, vocab: 1000}\nlayout: {pp: 2, schedule: " +
            schedule + "}\nbatch: {sequence: 128, global_batch: 2}\n");
    ScenarioOptions options;
    options.search = samples::shipped();
    for (const std::string& text : sets) options.overrides.push_back(parse_override(text).value());
    return load_scenario(file, options);
  };
  const Scenario good = load("orders/two.yaml").value();
  CHECK(good.step->layout.schedule == PipelineSchedule::own);
  REQUIRE(good.step->layout.own);
  CHECK(good.step->layout.own->name == "mine");
  CHECK(good.schedule_file == folder.path() + "/orders/two.yaml");
  CHECK(load("./orders/chunks.yaml").value().step->layout.vpp == 2);
  // Typed: not beside the scenario, but here.
  CHECK_FALSE(load("1f1b", {"layout.schedule=orders/two.yaml"}));
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  CHECK(load("1f1b", {"layout.schedule=orders/two.yaml"}).ok());
  std::filesystem::current_path(here);
  // At its own place; and of one that is missing at the key.
  const std::string bad = to_text(load("orders/bad.yaml").errors());
  CHECK(bad.find("/orders/bad.yaml:4:41: error: stage 1, B2: there is no micro-batch 2") != std::string::npos);
  CHECK(bad.find("/orders/bad.yaml:4:28: error: stage 1 never does B1") != std::string::npos);
  const std::string none = to_text(load("orders/none.yaml").errors());
  CHECK(none.find("s.yaml:5:27: error:") != std::string::npos);
  CHECK(none.find("orders/none.yaml") != std::string::npos);
  CHECK(to_text(load("2f2b").errors()).find("layout.schedule is '2f2b'") != std::string::npos);
}
