// `collcast measure` with Gloo, for real: processes on loopback, tables read back, and everything that can go wrong.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>

#include "cli/process.hpp"
#include "collcast/collective/collective.hpp"
#include "measured.hpp"

using namespace collcast;
using namespace collcast::test;

TEST_CASE("every kind that Gloo has runs on 2 and 3 ranks, gives right results and a table with a sidecar") {
  for (const int ranks : {2, 3}) {
    const Folder folder;
    const auto run = run_shell("NCCL_DEBUG=WARN GLOO_LOG=x collcast measure all --backend gloo --ranks " +
                                   std::to_string(ranks) + quick + "--size 100,24000 --output tables/",
                               folder.path());
    CAPTURE(ranks, run.err);
    REQUIRE(run.exit == 0);
    // 100 B are no whole floats for every rank where ranks have parts: said of each kind that has, and nothing else.
    const std::string note = ": sizes are cut to whole floats, equally many per";
    std::size_t notes = 0;
    for (std::size_t at = run.err.find("note: "); at != std::string::npos; at = run.err.find("note: ", at + 1)) ++notes;
    CHECK(notes == 5);
    CHECK(run.err.rfind("note: ", 0) == 0);
    CHECK(run.err.find("warning") == std::string::npos);
    for (const char* cut : {"all_gather", "reduce_scatter", "alltoall", "gather", "scatter"})
      CHECK(run.err.find("note: " + std::string(cut) + note) != std::string::npos);
    for (const std::string& name : collective_names()) {
      const std::string id = "gloo-loopback-1x" + std::to_string(ranks) + "-" + name;
      CAPTURE(id);
      const std::string csv = folder.read("tables/" + id + ".csv");
      check_table(csv, ranks);
      CHECK(csv.find("\n" + name + ",24000,") != std::string::npos);
      const auto sidecar = keys(folder.read("tables/" + id + ".yaml"));
      CHECK(sidecar.at("id") == "'" + id + "'");
      CHECK(sidecar.at("collective") == name);
      CHECK(sidecar.at("nranks") == std::to_string(ranks));
      CHECK(sidecar.at("complete") == "true");
      CHECK(sidecar.at("date") == "'2026-01-02'");
      CHECK(sidecar.at("command") == "'collcast measure all --backend gloo --ranks " + std::to_string(ranks) +
                                         " --size 100,24000 --warmup 1 --repetitions 3'");
    }
  }
}

TEST_CASE("a sidecar has the keys of published tables, and no path or host") {
  const Folder folder;
  const auto run = run_shell(
      "NCCL_ALGO=Ring NCCL_TOPO_FILE=/etc/topo.xml OTHER=x collcast measure all_reduce --backend gloo --ranks 2" +
          quick + "--size 64 --output t.csv --system bench-2",
      folder.path());
  CAPTURE(run.err);
  REQUIRE(run.exit == 0);
  CHECK(folder.listing() == "t.csv t.yaml");
  const std::string text = folder.read("t.yaml");
  const auto sidecar = keys(text);
  for (const char* key :
       {"id", "collective", "system", "gpu", "gpus_per_node", "nodes", "nranks", "nics_per_node", "nvlink",
        "nccl_version", "dtype", "env", "healthy", "note", "source", "units", "backend", "library_version", "spread"})
    CHECK(sidecar.count(key) == 1);
  CHECK(sidecar.at("system") == "'bench-2'");
  CHECK(text.find("  NCCL_ALGO: 'Ring'\n  NCCL_TOPO_FILE: '(left out: a path or an address)'\n") != std::string::npos);
  CHECK(text.find("OTHER") == std::string::npos);
  CHECK(text.find(folder.path().string()) == std::string::npos);
  CHECK(text.find("size_bytes: 64, inplace: 1, repetitions: 3, min_us: ") != std::string::npos);
}

TEST_CASE("what a peer is still being sent is not overwritten") {
  // More than a socket holds, out of place and in place.
  const Folder folder;
  for (const char* ranks : {"2", "3"}) {
    const auto run = run_shell(std::string("collcast measure reduce_scatter --backend gloo --warmup 0 --repetitions 3 "
                                           "--size 128KiB,512KiB,2MiB,8MiB --format json --ranks ") +
                                   ranks,
                               folder.path());
    CAPTURE(ranks, run.err);
    REQUIRE(run.exit == 0);
    CHECK(nlohmann::json::parse(run.out)["rows"].size() == 8);
  }
}

TEST_CASE("every datatype and every algorithm gives right results on 4 ranks") {
  const Folder folder;
  for (const char* type : {"int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "double"}) {
    const auto run =
        run_shell(std::string("collcast measure all_reduce,reduce_scatter,reduce --backend gloo --ranks 4 --warmup 0 "
                              "--repetitions 1 --size 40,4096 --datatype ") +
                      type,
                  folder.path());
    CAPTURE(type, run.err);
    CHECK(run.exit == 0);
  }
  for (const char* algorithm : {"ring", "bcube", "halving_doubling"}) {
    const auto run = run_shell(std::string("collcast measure all_reduce --backend gloo --ranks 4 --format json --size "
                                           "4,100,40000") +
                                   quick + "--algorithm " + algorithm,
                               folder.path());
    CAPTURE(algorithm, run.err);
    REQUIRE(run.exit == 0);
    const auto document = nlohmann::json::parse(run.out);
    CHECK(document["schema"] == "collcast.measure.v1");
    CHECK(document["complete"] == true);
    // Three sizes; the halving_doubling of Gloo knows only in place.
    REQUIRE(document["rows"].size() == (std::string(algorithm) == "halving_doubling" ? 3 : 6));
    int unsteady = 0;
    for (const auto& row : document["rows"]) {
      unsteady += row["time_s"].get<double>() > 2 * row["min_s"].get<double>() ? 1 : 0;
      CHECK(row["algorithm"] == algorithm);
      CHECK(row["min_s"] <= row["median_s"]);
      CHECK(row["median_s"] <= row["p95_s"]);
      CHECK(row["p95_s"] <= row["max_s"]);
      CHECK(row["min_s"] <= row["time_s"]);
      CHECK(row["time_s"] <= row["max_s"]);
    }
    CHECK(document["notes"].size() == (unsteady > 0 ? 1 : 0));
  }
}

TEST_CASE("what is left out is said on the error stream and in the sidecar; nothing measured is exit 2") {
  const Folder folder;
  const auto none = run_shell("collcast measure all_reduce --backend gloo --ranks 2 --size 3" + quick, folder.path());
  CHECK(none.exit == 2);
  CHECK(none.out.empty());
  CHECK(none.err.find("note: all_reduce of 3 B left out: less than one float per rank") != std::string::npos);
  CHECK(none.err.find("nothing was measured") != std::string::npos);

  const auto some =
      run_shell("collcast measure all_gather,broadcast --backend gloo --ranks 3 --size 8,1KiB --output z/" + quick,
                folder.path());
  CAPTURE(some.err);
  REQUIRE(some.exit == 0);
  const std::string note = "all_gather of 8 B left out: less than one float per rank";
  CHECK(some.err.find("note: " + note) != std::string::npos);
  CHECK(folder.read("z/gloo-loopback-1x3-all_gather.yaml").find(note) != std::string::npos);
  CHECK(folder.read("z/gloo-loopback-1x3-broadcast.yaml").find("left out") == std::string::npos);

  const auto kinds = run_shell(
      "collcast measure all_gather,broadcast --backend gloo --ranks 3 --size 8 --output y/" + quick, folder.path());
  CHECK(kinds.exit == 0);
  CHECK(kinds.err.find("note: " + note) != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "y" / "gloo-loopback-1x3-all_gather.csv"));
}

TEST_CASE("a sidecar is not written over a YAML that is none") {
  const Folder folder;
  const std::string machine = "schema: collcast.topology.v1\nextends: dgx-h100\nname: mine\n";
  folder.write("mine.yaml", machine);
  const std::string measure = "collcast measure all_reduce --backend gloo --ranks 2 --size 64 --output ";
  const auto refused = run_shell(measure + "mine.csv" + quick, folder.path());
  CHECK(refused.exit == 2);
  CHECK(refused.err.find("the sidecar of 'mine.csv' would be written over 'mine.yaml', which is none") !=
        std::string::npos);
  CHECK(folder.listing() == "mine.yaml");
  std::filesystem::create_directories(folder.path() / "d");
  folder.write("d/gloo-loopback-1x2-all_reduce.yaml", machine);
  CHECK(run_shell(measure + "d/" + quick, folder.path()).exit == 2);
  CHECK(folder.read("d/gloo-loopback-1x2-all_reduce.yaml") == machine);
  CHECK(folder.read("mine.yaml") == machine);
  // Its own of an earlier time it replaces.
  CHECK(run_shell(measure + "t.csv" + quick, folder.path()).exit == 0);
  CHECK(run_shell(measure + "t.csv" + quick, folder.path()).exit == 0);
}

TEST_CASE("standard output gets the same table, row by row, and notes what is too small to cut") {
  const Folder folder;
  const auto csv =
      run_shell("collcast measure alltoall --backend gloo --ranks 2 --size 8,1KiB --format csv" + quick, folder.path());
  CAPTURE(csv.err);
  REQUIRE(csv.exit == 0);
  check_table(csv.out, 2);
  CHECK(lines(csv.out).size() == 3);
  const auto page =
      run_shell("collcast measure all_gather --backend gloo --ranks 3 --size 8,1KiB" + quick, folder.path());
  CHECK(page.exit == 0);
  CHECK(page.out.find("note: all_gather of 8 B left out: less than one float per rank") != std::string::npos);
  // 1024 B cut for 3 ranks: 85 floats each, 1020 B.
  CHECK(page.out.find("1020 B") != std::string::npos);
}

TEST_CASE("ranks that something else started measure together; rank 0 alone speaks") {
  const Folder folder;
  const std::string one = "collcast measure all_reduce --backend gloo --size 1KiB --format csv --timeout 20s" + quick;
  const auto run = run_shell(
      // Two of them by torchrun's variables, at a port that was free a moment ago.
      "port=$(python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); print(s.getsockname()[1])')\n"
      "export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port\n"
      "RANK=1 " +
          one + ">one.out & RANK=0 " + one + ">zero.out; a=$?; wait $!; echo $a $?",
      folder.path());
  CAPTURE(run.err);
  CHECK(run.out == "0 0\n");
  check_table(folder.read("zero.out"), 2);
  CHECK(folder.read("one.out").empty());
}

TEST_CASE("a rank that is killed ends the measurement at once; finished rows are kept and no process is left") {
  const Folder folder;
  const auto run = run_shell(
      "collcast measure all_reduce --backend gloo --ranks 3 --size 8:1GiB:x2 --warmup 0 --repetitions 2 --output t.csv "
      ">out 2>err & main=$!\n" +
          once_rows_come("t.csv", "ranks=$(cat /proc/$main/task/$main/children); set -- $ranks; " + kill_second +
                                      "for rank in $ranks; do [ ! -d /proc/$rank ] || echo rank $rank is left; done"),
      folder.path());
  CAPTURE(run.err, run.out, folder.read("err"));
  const std::string err = check_lost_rank(run.out, folder);
  CHECK(err.find("rank 1 was killed by signal 9 (Killed) during all_reduce of ") != std::string::npos);
}

TEST_CASE("a rank that stops answering is noticed at the timeout") {
  const Folder folder;
  const auto run = run_shell(
      "collcast measure all_reduce --backend gloo --ranks 2 --size 8:1GiB:x2 --warmup 0 --repetitions 2 --timeout 1s "
      "--output t.csv 2>err & main=$!\n" +
          once_rows_come("t.csv", "set -- $(cat /proc/$main/task/$main/children); kill -STOP $2; wait $main; echo $?"),
      folder.path());
  CAPTURE(folder.read("err"));
  CHECK(run.out == "1\n");
  CHECK(folder.read("err").find("Timed out") != std::string::npos);
  CHECK(folder.read("err").find("no word from rank 1") != std::string::npos);
}

TEST_CASE("an interrupted measurement shows what it has, marked as partial, and dies of the signal") {
  const Folder folder;
  const auto run = run_shell(
      "collcast measure all_reduce --backend gloo --ranks 2 --size 8:1GiB:x2 --warmup 0 --repetitions 2 --output t.csv "
      "2>err & main=$!\n" +
          once_rows_come("t.csv", "kill -TERM $main; wait $main; echo $?"),
      folder.path());
  CHECK(run.out == "143\n");
  CHECK(keys(folder.read("t.yaml")).at("complete") == "false");
  CHECK(folder.read("err").find("stopped by signal 15 (Terminated)") != std::string::npos);
}

TEST_CASE("worlds that do not fit end with exit 2 and say why") {
  const Folder folder;
  const std::string one = "collcast measure all_reduce --backend gloo --size 8 --timeout 3s";
  const auto disagree = run_shell(
      "port=$(python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); print(s.getsockname()[1])')\n"
      "export MASTER_ADDR=127.0.0.1 MASTER_PORT=$port\n"
      "RANK=1 WORLD_SIZE=3 " +
          one + " 2>one.err & RANK=0 WORLD_SIZE=2 " + one + " 2>zero.err; a=$?; wait $!; echo $a $?",
      folder.path());
  CHECK(disagree.out == "2 2\n");
  const std::string why = "rank 1 was started as one of 3, rank 0 as one of 2";
  CHECK(folder.read("one.err").find(why) != std::string::npos);
  CHECK(folder.read("zero.err").find(why) != std::string::npos);

  const auto missing = run_shell(
      "port=$(python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); print(s.getsockname()[1])')\n"
      "RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port collcast measure all_reduce --backend gloo --size 8 "
      "--timeout 500ms",
      folder.path());
  CHECK(missing.exit == 1);
  CHECK(missing.err.find("rank 1 of 2 did not come within 0.5 s") != std::string::npos);
  const auto outside = run_shell("RANK=2 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 " + one, folder.path());
  CHECK(outside.exit == 2);
  const auto ranks =
      run_shell("RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 " + one + " --ranks 3", folder.path());
  CHECK(ranks.exit == 2);
  CHECK(ranks.err.find("--ranks: 3, but torchrun started 2") != std::string::npos);
}

TEST_CASE("an interface that is not there is refused by name, with those that are") {
  const Folder folder;
  const auto run = run_shell("GLOO_SOCKET_IFNAME=nosuch0 collcast measure all_reduce --backend gloo --ranks 2 --size 8",
                             folder.path());
  CAPTURE(run.err);
  CHECK(run.exit == 2);
  CHECK(run.err.find("GLOO_SOCKET_IFNAME: 'nosuch0' is no interface with an address here; there are ") !=
        std::string::npos);
  // Every machine has the loopback interface, and Gloo works over it.
  CHECK(run.err.find("lo\n") != std::string::npos);
  CHECK(run.err.find("terminate") == std::string::npos);
  CHECK(lines(run.err).size() == 2);  // once for both ranks, and the hint
  const auto good = run_shell(
      "GLOO_SOCKET_IFNAME=lo collcast measure all_reduce --backend gloo --ranks 2 --size 8" + quick, folder.path());
  CHECK(good.exit == 0);
}

TEST_CASE("a full disk ends the measurement; rows written before it are whole") {
  const Folder folder;
  const std::string two = "collcast measure all_reduce --backend gloo --ranks 2 --size 8:64KiB:x2" + quick;
  const auto device = run_shell(two + "--format csv --output /dev/full", folder.path());
  CHECK(device.exit == 2);
  CHECK(device.err.find("cannot write '/dev/full': No space left on device") != std::string::npos);
  CHECK(device.err.find("stopped: its rows cannot be written to '/dev/full'") != std::string::npos);
  CHECK(device.err.find("hint: finished: 1 row, shown above\n") != std::string::npos);
  CHECK(device.out.find("measured with gloo") != std::string::npos);
  // One document at the end: what was measured is shown instead.
  const auto document = run_shell(two + "--format json --output /dev/full", folder.path());
  CHECK(document.exit == 2);
  CHECK(document.err.find("cannot write '/dev/full'") != std::string::npos);
  CHECK(document.out.find("measured with gloo") != std::string::npos);
  const auto out = run_shell(two + "--format csv >/dev/full", folder.path());
  CHECK(out.exit == 2);
  CHECK(out.err.find("hint: finished: 1 row, not written\n") != std::string::npos);
  // No room for the table's sidecar: what was measured is not lost either.
  const auto none =
      run_shell("(trap '' XFSZ; ulimit -f 0; " + two + "--output t.csv; echo exit $?) 2>&1 | cat", folder.path());
  CHECK(none.out.find("measured with gloo") != std::string::npos);
  CHECK(none.out.find("hint: finished: 1 row, shown above\nexit 2\n") != std::string::npos);
  CHECK(folder.listing().empty());
  // A limit of a few blocks on the size of files: the sidecar outgrows it after some sizes. Whole rows stay.
  const auto limited =
      run_shell("((trap '' XFSZ; ulimit -f 4; " + two + "--output t.csv); echo exit $? >&2) | cat", folder.path());
  CHECK(limited.err.ends_with("exit 2\n"));
  CHECK(limited.err.find("File too large") != std::string::npos);
  CHECK(limited.err.find("stopped: its rows cannot be written to 't.csv'") != std::string::npos);
  CHECK(limited.err.find(", shown above; ") != std::string::npos);
  CHECK(limited.err.find(" of them stay in t.csv\n") != std::string::npos);
  CHECK(limited.out.find("measured with gloo") != std::string::npos);
  CHECK(folder.listing() == "t.csv t.yaml");
  check_table(folder.read("t.csv"), 2);
}

TEST_CASE("what cannot be asked is refused with all reasons, before anything runs") {
  const Folder folder;
  const auto run = run_shell(
      "collcast measure all_reduce,all_gahter --backend gloo --ranks 1 --root 7 --datatype bfloat16 --algorithm tree "
      "--timeout never --date 2026-13-01 --graph",
      folder.path());
  CHECK(run.exit == 2);
  for (const char* text :
       {"gloo has no collective 'all_gahter'", "did you mean 'all_gather'?",
        "--ranks: 1:", "--root: 7 is outside the 1 ranks", "--datatype: gloo has no 'bfloat16'",
        "all_reduce of gloo has no 'tree'", "--timeout: 'never'", "--date: '2026-13-01'", "gloo has no GPU"}) {
    CAPTURE(text, run.err);
    CHECK(run.err.find(text) != std::string::npos);
  }
  CHECK(run_shell("collcast measure all_reduce", folder.path()).err.find("--backend is missing") != std::string::npos);
  CHECK(run_shell("collcast measure all_reduce --backend gluu", folder.path()).err.find("did you mean 'gloo'") !=
        std::string::npos);
  const auto two = run_shell("collcast measure all --backend gloo --size 8 --output t.csv", folder.path());
  CHECK(two.exit == 2);
  CHECK(two.err.find("is one table, for one collective") != std::string::npos);
}
