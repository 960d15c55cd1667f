// tools/hosts: hosts that are apart, a command on each, and nothing that stays.
#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "hosts/here.hpp"

using namespace collcast::test;

namespace {

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  std::sort(out.begin(), out.end());
  return out;
}

/// Processes in the namespaces of the set, by their ids.
std::string processes(const Folder& folder, const Hosts& hosts) {
  return run_shell("for n in $(ip netns list | grep -o '^collcast-" + hosts.name() +
                       "-[a-z0-9]*'); do ip netns pids $n; done",
                   folder.path())
      .out;
}

}  // namespace

TEST_CASE("a command runs on each host, with its name, its address and its rank") {
  const Folder folder;
  const Hosts hosts(folder, "3 --rate 1Gbit");
  if (!hosts.there()) return;
  const Outcome out =
      hosts.run("sh -c 'echo $(uname -n) $RANK of $WORLD_SIZE to $MASTER_ADDR:$MASTER_PORT $(ip -br -4 a s eth0)'");
  CAPTURE(out.err);
  CHECK(out.exit == 0);
  // The first host's output as it is, the others' with their names; the interface's other end differs.
  const std::vector<std::string> lines = sorted_lines(out.out);
  REQUIRE(lines.size() == 3);
  for (int i = 0; i < 3; ++i) {
    const std::string host = "host" + std::to_string(i), rank = std::to_string(i);
    CAPTURE(lines[static_cast<std::size_t>(i)]);
    CHECK_THAT(lines[static_cast<std::size_t>(i)],
               Catch::StartsWith((i > 0 ? host + ": " : "") + host + " " + rank + " of 3 to 10.0.0.1:29500 eth0@"));
    CHECK_THAT(lines[static_cast<std::size_t>(i)], Catch::Contains(" UP 10.0.0." + std::to_string(i + 1) + "/24"));
  }
}

TEST_CASE("collcast takes each namespace for a node of its own, and checks every result") {
  const Folder folder;
  const Hosts hosts(folder, "3 --rate 1Gbit");
  if (!hosts.there()) return;
  const Outcome out = hosts.run(
      "collcast measure all --backend gloo --size 1KiB:3KiB:x3 --warmup 1 --repetitions 2 --date 2026-01-02 "
      "--output t/");
  CAPTURE(out.err);
  CHECK(out.exit == 0);
  CHECK_THAT(folder.read("t/gloo-unknown-3x1-all_reduce.yaml"),
             Catch::Contains("nodes: 3\n") && Catch::Contains("nranks: 3\n") && Catch::Contains("complete: true"));
}

TEST_CASE("mpirun starts a rank on each host, and collcast finds its world by Open MPI's variables") {
  const Folder folder;
  const Hosts hosts(folder, "3 --rate 1Gbit");
  if (!hosts.there()) return;
  const Outcome out = run_shell(with_hosts + "$hosts mpirun --set " + hosts.name() +
                                    " -- collcast measure all_reduce --backend gloo --size 1KiB --warmup 1 "
                                    "--repetitions 2 --date 2026-01-02 --output t.csv",
                                folder.path());
  CAPTURE(out.err);
  if (out.exit == 3) {
    WARN("no mpirun: " << out.err);
    return;
  }
  CHECK(out.exit == 0);
  CHECK_THAT(folder.read("t.yaml"), Catch::Contains("nodes: 3\n") && Catch::Contains("started by mpirun"));
  CHECK(run_shell(with_hosts + "$hosts mpirun --set " + hosts.name() +
                      " -- sh -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then exit 7; fi; sleep 60'",
                  folder.path())
            .exit == 7);
  CHECK(processes(folder, hosts).empty());
}

TEST_CASE("as soon as one host's command fails, all are ended, and its exit code is the run's") {
  const Folder folder;
  const Hosts hosts(folder, "3 --rate 1Gbit");
  if (!hosts.there()) return;
  const auto begin = std::chrono::steady_clock::now();
  CHECK(hosts.run("sh -c 'if [ $RANK = 2 ]; then exit 7; fi; sleep 60'").exit == 7);
  CHECK(processes(folder, hosts).empty());
  CHECK(hosts.run("sh -c 'if [ $RANK = 1 ]; then kill -9 $$; fi; sleep 60'").exit == 128 + 9);
  CHECK(processes(folder, hosts).empty());
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
  CHECK(hosts.run("no-such-command-here").exit == 2);
}

TEST_CASE("a run that is stopped leaves no process, an up that is stopped leaves no namespace") {
  const Folder folder;
  const Hosts hosts(folder, "2 --rate 1Gbit");
  if (!hosts.there()) return;
  for (const std::string signal : {"INT", "TERM"}) {
    const Outcome out = run_shell(with_hosts + "timeout --foreground --preserve-status -s " + signal +
                                      " 1 $hosts run --set " + hosts.name() + " -- sleep 60",
                                  folder.path());
    CHECK(out.exit == 128 + (signal == "INT" ? 2 : 15));
    CHECK(processes(folder, hosts).empty());
  }
  const std::string namespaces = "ip netns list | sort", before = run_shell(namespaces, folder.path()).out;
  // 200 hosts take seconds.
  const Outcome up = run_shell(
      with_hosts + "timeout --foreground --preserve-status -s INT 0.5 $hosts up 200 --rate 1Gbit", folder.path());
  CHECK(up.exit == 128 + 2);
  CHECK(run_shell(namespaces, folder.path()).out == before);
}

TEST_CASE("sets have names of their own; down takes one away, with what runs there, and is content when it is gone") {
  const Folder folder;
  const Hosts one(folder, "2 --rate 1Gbit");
  if (!one.there()) return;
  const Hosts other(folder, "2 --rate 1Gbit");
  REQUIRE(other.there());
  CHECK(one.name() != other.name());
  CHECK(run_shell(with_hosts + "$hosts run -- true", folder.path()).exit == 2);  // which one?
  const std::string background = "$hosts run --set " + other.name() + " -- sleep 60 & ";
  const Outcome down = run_shell(with_hosts + background + "until ip netns pids collcast-" + other.name() +
                                     "-host1 2>/dev/null | grep -q .; do sleep 0.1; done; sleep 0.5; "
                                     "$hosts down --set " +
                                     other.name() + "; wait $!",
                                 folder.path());
  CAPTURE(down.err);
  CHECK(down.exit == 128 + 9);  // what ran there was killed
  CHECK_THAT(run_shell(with_hosts + "$hosts list", folder.path()).out,
             Catch::Contains(one.name() + ": 2 hosts, 1Gbit\n") && !Catch::Contains(other.name() + ":"));
  CHECK(run_shell(with_hosts + "$hosts down --set " + other.name(), folder.path()).exit == 0);
  CHECK(one.run("true").exit == 0);
}

TEST_CASE("wrong arguments are named, before anything is made") {
  const Folder folder;
  const auto refused = [&](const std::string& arguments, const std::string& text) {
    const Outcome out = run_shell(with_hosts + "$hosts " + arguments, folder.path());
    CAPTURE(arguments, out.err);
    CHECK(out.exit == 2);
    CHECK_THAT(out.err, Catch::Contains(text));
    CHECK(out.out.empty());
  };
  refused("up 1 --rate 1Gbit", "'1' is no whole number from 2 to 250");
  refused("up 4 --rate fast", "'fast' is no rate from 64kbit to 100Gbit, such as 200Mbit or 1Gbit");
  refused("up 4 --rate 1Mbyte", "'1Mbyte' is no rate");
  refused("up 4", "--rate");
  refused("up 4 --rate 1Gbit --racks 2", "--racks and --uplink go together");
  refused("up 4 --rate 1Gbit --uplink 1Gbit", "--racks and --uplink go together");
  refused("up 4 --rate 1Gbit --racks 5 --uplink 1Gbit", "5 racks for 4 hosts; expected 4 or fewer");
  refused("topology --set hosts999", "there are no hosts hosts999");
  refused("up 4 --rat 1Gbit", "--rat");
  refused("topology --latency fast", "'fast' is no time, such as 20us or 0s");
  refused("topology --name 'my: hosts'", "'my: hosts' is no machine's name");
}

TEST_CASE("without root it says so and ends with 3") {
  const Folder folder;
  // The tool comes by standard input: nobody may read the folders that it is in.
  const std::string as_nobody = "setpriv --reuid 65534 --clear-groups python3 ";
  if (run_shell("cd /; " + as_nobody + "-c pass", folder.path()).exit != 0) return;
  const Outcome out = run_shell(with_hosts + "cd /; " + as_nobody + "- up 2 --rate 1Gbit <$hosts", folder.path());
  CAPTURE(out.err);
  CHECK(out.exit == 3);
  CHECK_THAT(out.err, Catch::Contains("need root"));
}
