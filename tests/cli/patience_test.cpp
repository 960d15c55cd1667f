// Ctrl-C, --time-limit and --memory-limit: what is known by then is delivered, and said to be partial.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <limits>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/called.hpp"
#include "cli/container_memory.hpp"
#include "cli/interrupt.hpp"
#include "cli/process.hpp"
#include "cli/progress.hpp"
#include "support/sample.hpp"

using namespace collcast;
using namespace collcast::test;
using Json = nlohmann::json;
using Catch::Contains;

namespace {

// Thousands of chunks on shared links: seconds of simulation after closed forms that take none.
const std::string longest =
    "collective all_reduce --topology dgx-a100 --nodes 64 --library ideal --algorithm halving_doubling --chunks 4096 "
    "--size 64KiB,1GiB ";

}  // namespace

TEST_CASE("a time limit ends simulations: closed forms are all there, and the result is partial") {
  const Called called = call(longest + "--method both --time-limit 50ms --format json");
  CHECK(called.exit == 0);
  CHECK_THAT(called.err, Contains("partial: the time limit of 50 ms is over; simulations are missing"));
  const Json doc = Json::parse(called.out);
  CHECK(doc["partial"] == true);
  REQUIRE(doc["rows"].size() == 2);
  for (const Json& row : doc["rows"]) CHECK(row["estimate_s"].get<double>() > 0);
  CHECK(doc["rows"][1]["simulate_s"].is_null());
  CHECK(Json::parse(
            call("collective all_reduce --topology ring --ranks 4 --time-limit 3600s --format json").out)["partial"] ==
        false);
  // Where only the simulation was asked for there is nothing to deliver.
  const Called nothing = call(longest + "--method simulate --time-limit 1ms");
  CHECK(nothing.out.empty());
  CHECK_THAT(nothing.err, Contains("nothing is known yet"));
}

TEST_CASE("a time limit ends the choice of an algorithm, too: a second later") {
  // 131,072 ranks: a minute of closed forms.
  const Called called =
      call("collective all_reduce --topology dgx-h100 --nodes 16384 --library ideal --size 1MiB --time-limit 1ms");
  CHECK(called.exit == 2);
  CHECK(called.out.empty());
  CHECK_THAT(called.err, Contains("the time limit of 1 ms is over: no algorithm was chosen"));
  CHECK_THAT(called.err, Contains("expected --algorithm with one name, or fewer ranks"));
}

TEST_CASE("draws that outlast the limit are those that are known, and their number is said") {
  const Outcome cut = run_shell(
      "collcast step llama3-8b-8xh100 --set batch.global_batch=16 --fault 'gpu: all, jitter: 3%, seed: 7' --seeds "
      "10000 "
      "--time-limit 5s --format json",
      ".");
  CHECK(cut.exit == 0);
  CHECK_THAT(cut.err, Contains("partial: the time limit of 5 s is over; ") && Contains(" of 10000 draws"));
  const Json doc = Json::parse(cut.out);
  CHECK(doc["faults"]["jitter"]["draws"].get<int>() >= 1);
  CHECK(doc["faults"]["jitter"]["draws"].get<int>() < 10000);
}

TEST_CASE("a step whose simulation outlasts the limit has its closed form, and says so") {
  const Called step = call("step gpt3-512gpu --time-limit 1us --format json");
  CHECK_THAT(step.err, Contains("partial: the time limit of 1 us is over; the closed form alone"));
  const Json doc = Json::parse(step.out);
  CHECK(doc["simulate_s"].is_null());
  CHECK(doc["step_s"] == doc["estimate_s"]);
  const Called traced = call("step gpt3-512gpu --time-limit 1us --trace step.json");
  CHECK(traced.exit == 2);
  CHECK_THAT(traced.err, Contains("the step was not simulated to its end"));
}

TEST_CASE("a plan that was stopped before its first layout says what stopped it") {
  const Called plan = call("plan llama3-8b-8xh100 --time-limit 1us");
  CHECK_THAT(plan.out,
             Contains("no layout was looked at before the search was stopped: the time limit of 1 us is over"));
}

TEST_CASE("Ctrl-C ends a collective's simulation with what is known, and 130") {
  Outcome outcome;
  for (double seconds = 0.5; seconds < 20 && outcome.out.empty(); seconds *= 1.5)
    outcome = run_shell(
        "timeout --preserve-status --signal=INT " + std::to_string(seconds) + " collcast " + longest + "--method both",
        std::filesystem::current_path());
  CHECK(outcome.exit == 130);
  CHECK_THAT(outcome.out, Contains("note: partial: stopped by Ctrl-C; simulations are missing"));
}

TEST_CASE("one Ctrl-C that is passed on twice is one, a second press ends the process") {
  // timeout(1), and others that start programs, send a signal to the process and to its group.
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const cli::Interrupts interrupts;
    if (cli::Interrupts::came()) ::_exit(1);
    ::raise(SIGINT);
    if (!cli::Interrupts::came()) ::_exit(2);
    ::raise(SIGINT);
    if (::write(pipe[1], "2", 1) != 1) ::_exit(4);  // alive behind the second
    ::usleep(400'000);
    ::raise(SIGINT);
    ::_exit(3);
  }
  ::close(pipe[1]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  char alive = 0;
  CHECK(::read(pipe[0], &alive, 1) == 1);
  ::close(pipe[0]);
  INFO("exit " << (WIFEXITED(status) ? WEXITSTATUS(status) : -1));
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
}

TEST_CASE("a bound of an algorithm that is brought stays when its simulation is stopped") {
  const std::string mine =
      std::string("collective all_gather --topology ring --ranks 4 --size 1MiB --format json --algorithm msccl:") +
      COLLCAST_SOURCE_DIR + "/docs/guide/ring-all-gather.xml ";
  const Called stopped = call(mine + "--time-limit 1ns");
  CHECK(stopped.exit == 0);
  CHECK_THAT(stopped.err, Contains("partial: the time limit"));
  const Json doc = Json::parse(stopped.out), all = Json::parse(call(mine).out);
  CHECK(doc["partial"] == true);
  REQUIRE(doc["rows"].size() == 1);
  CHECK(doc["rows"][0]["simulate_s"].is_null());
  CHECK(doc["rows"][0]["estimate_s"] == all["rows"][0]["estimate_s"]);
}

TEST_CASE("a simulation beyond its clock of 106 days leaves the closed form, and the other rows") {
  const std::string ring = "collective all_reduce --topology ring --ranks 4 --format json --size 1GiB,4EiB ";
  const Called called = call(ring);
  CHECK(called.exit == 0);
  const Json doc = Json::parse(called.out);
  CHECK(doc["partial"] == false);
  REQUIRE(doc["rows"].size() == 2);
  CHECK(doc["rows"][0]["simulate_s"].get<double>() > 0);
  CHECK(doc["rows"][1]["simulate_s"].is_null());
  CHECK(doc["rows"][1]["estimate_s"] == Json::parse(call(ring + "--method estimate").out)["rows"][1]["estimate_s"]);
  CHECK_THAT(doc["notes"].dump(), Contains("4 EiB: not simulated") && Contains("106 days"));
  // Where only the simulation is asked for there is nothing to print in its place: its row is missing, or all is.
  const Called simulated = call(ring + "--method simulate");
  CHECK(simulated.exit == 0);
  const Json one = Json::parse(simulated.out);
  REQUIRE(one["rows"].size() == 1);
  CHECK(one["rows"][0]["simulate_s"] == doc["rows"][0]["simulate_s"]);
  CHECK_THAT(one["notes"].dump(), Contains("4 EiB: not simulated") && Contains("106 days"));
  const Called nothing = call("collective all_reduce --topology ring --ranks 4 --size 4EiB --method simulate");
  CHECK(nothing.exit == 2);
  CHECK(nothing.out.empty());
  CHECK_THAT(nothing.err, Contains("106 days"));
}

TEST_CASE("where no algorithm is left each says why") {
  // 65,536 ranks have 2^32 blocks for each other, which are numbered with 32 bits.
  const Called called = call("collective alltoall --topology star --ranks 65536 --algorithm all --method estimate");
  CHECK(called.exit == 2);
  CHECK(called.out.empty());
  CHECK_THAT(called.err, Contains("naive: ") && Contains("hierarchical: ") && Contains("too many blocks to number"));
  CHECK_THAT(called.err, !Contains("does not do"));  // nobody expects a ring
}

TEST_CASE("limits that are none are told, and too little memory ends with 3") {
  const std::string ring = "collective all_reduce --topology ring --ranks 4 ";
  for (const char* wrong : {"--time-limit 0s", "--time-limit soon", "--memory-limit 1MiB", "--memory-limit much"}) {
    INFO(wrong);
    const Called called = call(ring + wrong);
    CHECK(called.exit == 2);
    CHECK_THAT(called.err, Contains(std::string(wrong).substr(0, std::string(wrong).find(' '))));
  }
  if (sanitized) return;  // a sanitizer keeps terabytes of addresses for itself
  const Outcome lacking =
      run_shell("collcast collective all_reduce --topology star --ranks 1000000 --method estimate --memory-limit 64MiB",
                std::filesystem::current_path());
  CHECK(lacking.exit == 3);
  CHECK(lacking.out.empty());
  CHECK_THAT(lacking.err, Contains("this takes more memory than") && Contains("--memory-limit"));
}

TEST_CASE("in a container there is room for what its processes have not taken") {
  const Folder groups;
  const auto room = [&] { return cli::room_in_container(groups.path()); };
  const Bytes unlimited(std::numeric_limits<std::int64_t>::max());
  CHECK(room() == unlimited);
  groups.write("memory.max", "max\n");
  groups.write("memory.current", "300\n");
  groups.write("memory.stat", "anon 200\nfile 100\ninactive_file 60\nactive_file 40\n");
  CHECK(room() == unlimited);
  // What others have taken is taken; of files those that nobody uses are given back.
  groups.write("memory.max", "1000\n");
  CHECK(room() == Bytes(1000 - (300 - 60)));
  groups.write("memory.current", "2000\n");
  CHECK(room() == Bytes(0));
  std::filesystem::remove(groups.path() / "memory.max");
  std::filesystem::create_directory(groups.path() / "memory");
  groups.write("memory/memory.limit_in_bytes", "5000\n");
  CHECK(room() == Bytes(5000));
  groups.write("memory/memory.usage_in_bytes", "1000\n");
  groups.write("memory/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
  CHECK(room() == Bytes(4500));
}

TEST_CASE("a simulation that would take more than the memory limit is refused before it") {
  const std::string large = "collcast collective alltoall --topology star --ranks 1400 --size 1MiB --algorithm direct ";
  const auto folder = std::filesystem::current_path();
  if (sanitized) return;  // a sanitizer keeps terabytes of addresses for itself
  // 1400 x 1399 messages at once, each with a connection of more than 100 bytes.
  const Outcome refused = run_shell(large + "--method simulate --memory-limit 200MiB", folder);
  CHECK(refused.exit == 3);
  CHECK(refused.out.empty());
  CHECK_THAT(refused.err, Contains("to simulate direct at 1 MiB takes about") &&
                              Contains("of memory, more than the 200 MiB that there is room for") &&
                              Contains("--method estimate"));
  // Asked for beside the closed form, that is there, and what is missing is said.
  const Outcome half = run_shell(large + "--method both --memory-limit 200MiB --format json", folder);
  CHECK(half.exit == 0);
  CHECK_THAT(half.err, Contains("partial: not simulated: to simulate direct at 1 MiB takes about") &&
                           Contains("the closed form alone"));
  CHECK_THAT(half.out, Contains("\"partial\": true") && Contains("\"simulate_s\": null"));
  // Not asked for it is left out, and the closed form is there.
  const Outcome known = run_shell(large + "--memory-limit 200MiB --format json", folder);
  CHECK(known.exit == 0);
  CHECK_THAT(known.out, Contains("to simulate direct at 1 MiB takes about") && Contains("\"simulate_s\": null"));
}

TEST_CASE("a simulation by a recurrence, whose chunks circulate, is left out where it takes too much memory") {
  if (sanitized) return;
  // Two rows of 31 times of 8 bytes for each of 1,048,576 chunks: 496 MiB.
  const Outcome known = run_shell(
      "collcast collective all_gather --topology ring --ranks 31 --algorithm ring --chunks 1048576 --size 1GiB "
      "--memory-limit 256MiB --format json",
      std::filesystem::current_path());
  INFO(known.err);
  CHECK(known.exit == 0);
  CHECK_THAT(known.out, Contains("to simulate ring at 1 GiB takes about 496 MiB") && Contains("\"simulate_s\": null"));
}

TEST_CASE("what is wrong with the input is told, not that the time is over") {
  CHECK_THAT(call("step nosuch --time-limit 1ns").err, Contains("nosuch") && !Contains("time limit of"));
  CHECK_THAT(call("step llama3-70b-64xh100 --set layout.tp=3 --time-limit 1ns").err,
             Contains("layout.tp") && !Contains("time limit of"));
}

TEST_CASE("a step beyond the clock of the simulation has its closed form") {
  const Called called = call(
      "step llama3-70b-64xh100 --library ideal --chunks 1 --set topology.network.link.bandwidth=10B/s --format json");
  CHECK(called.exit == 0);
  CHECK_THAT(called.err, Contains("partial: not simulated: ") && Contains("106 days; the closed form alone"));
  const Json doc = Json::parse(called.out);
  CHECK(doc["simulate_s"].is_null());
  CHECK(doc["estimate_s"].get<double>() > 106 * 86'400.0);
  CHECK(doc["partial"] == true);
}

TEST_CASE(
    "a step beyond the clock whose kernels go slower beside collectives has its closed form, and what was set is "
    "named") {
  const std::string slow = "step llama3-8b-8xh100 --set topology.gpu.memory_bandwidth=1B/s ";
  const Called called = call(slow + "--format json");
  CHECK_THAT(called.err, Contains("106 days; the closed form alone (with topology.gpu.memory_bandwidth=1B/s)"));
  const Json doc = Json::parse(called.out);
  CHECK(doc["simulate_s"].is_null());
  CHECK(doc["partial"] == true);
  const Called alone = call(slow + "--method simulate");
  CHECK(alone.exit == 2);
  CHECK_THAT(alone.err, Contains("simulation: error: ") &&
                            Contains("rates and durations (with topology.gpu.memory_bandwidth=1B/s)"));
}

TEST_CASE("a bar counts on where a piece of work is several simulations") {
  std::ostringstream err;
  std::ostringstream out;
  const cli::Session session{out, err, {}, true, {}};
  cli::Progress progress(session, 1);
  progress.begin("two runs");
  progress.expect(300);
  for (const std::int64_t told : {0, 60, 100, 0, 50, 200}) progress.tell(told);
  CHECK(progress.messages() == 300);
  progress.begin("another");
  CHECK(progress.messages() == 0);
}

TEST_CASE("more threads than the memory limit has room for are fewer, and the plan is the same") {
  if (sanitized) return;
  const std::filesystem::path here = std::filesystem::current_path();
  const std::string plan = "collcast plan llama3-8b-8xh100 --simulate 1 --format json --threads ";
  const Outcome one = run_shell(plan + "1", here);
  for (const char* limited : {"64 --memory-limit 64MiB", "1024 --memory-limit 64MiB"}) {
    const Outcome outcome = run_shell(plan + limited, here);
    INFO(outcome.err);
    CHECK(outcome.exit == 0);
    CHECK(outcome.out == one.out);
  }
  // So for a limit that the shell has set, and for the bar's thread on a terminal.
  CHECK(run_shell("ulimit -d 65536; " + plan + "64", here).out == one.out);
  const Outcome shown = run_on_terminal(plan + "64 --memory-limit 64MiB", here);
  INFO(shown.out);
  CHECK(shown.exit == 0);
}

TEST_CASE("progress has the rate of messages and the time left") {
  CHECK(cli::progress_text(0, 100, 3).empty());
  CHECK(cli::progress_text(3'000'000, 12'000'000, 3) == ", 3 M messages, 1 M/s, 9 s left");
  CHECK(cli::progress_text(3'000'000, 0, 3) == ", 3 M messages, 1 M/s");
  // Of pieces of work: 40 in 8 s, 60 to go.
  CHECK(cli::pieces_text(40, 100, 8) == ", 5/s, 12 s left");
  CHECK(cli::pieces_text(1, 100, 8).empty());
  CHECK(cli::pieces_text(100, 100, 8).empty());
}

TEST_CASE("a step too long to be simulated has its closed form, and an error only where that is no answer") {
  const std::string longest_step = "step gpt3-512gpu --set batch.global_batch=30720 ";
  const Called called = call(longest_step + "--format json");
  INFO(called.err);
  CHECK(called.exit == 0);
  CHECK_THAT(called.err, Contains("partial: not simulated: the timeline would have ") &&
                             Contains(" are simulated; the closed form alone"));
  const Json doc = Json::parse(called.out);
  CHECK((doc["partial"] == true && doc["simulate_s"].is_null()));
  CHECK(doc["step_s"] == Json::parse(call(longest_step + "--method estimate --format json").out)["step_s"]);
  const Called simulated = call(longest_step + "--method simulate");
  CHECK(simulated.exit == 2);
  CHECK_THAT(simulated.err, Contains("batch.global_batch=30720:1:26: error: the timeline would have "));
}

TEST_CASE("a server too long to be simulated has its closed form, too, and so has a point of a sweep") {
  const std::string of_two = "step llama3-70b-inference-8xh100 --set layout.tp=4 --set layout.pp=2 ";
  const std::string batch = "--set inference.batch=100000 ";
  const std::string most_passes = of_two + batch + "--set inference.microbatches=100000 ";
  const Called called = call(most_passes + "--format json");
  INFO(called.err);
  REQUIRE(called.exit == 0);
  CHECK_THAT(called.err, Contains("partial: not simulated: the timeline would have ") &&
                             Contains(" are simulated; the closed form alone"));
  const Json doc = Json::parse(called.out);
  CHECK((doc["partial"] == true && doc["simulate_s"].is_null()));
  CHECK(doc["step_s"] == Json::parse(call(most_passes + "--method estimate --format json").out)["step_s"]);
  const Called simulated = call(most_passes + "--method simulate");
  CHECK(simulated.exit == 2);
  CHECK_THAT(simulated.err, Contains("inference.microbatches=100000:1:30: error: the timeline would have "));
  const Called swept = call(of_two + batch + "--sweep inference.microbatches=10,100000 --format json");
  INFO(swept.err);
  const Json points = Json::parse(swept.out);
  REQUIRE(points["rows"].size() == 2);
  CHECK((points["rows"][0]["partial"] == false && points["rows"][0]["simulate_s"].is_number()));
  CHECK((points["rows"][1]["partial"] == true && points["rows"][1]["step_s"] == doc["step_s"]));
}
