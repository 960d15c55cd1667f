// `collcast measure` with MPI, for real: ranks that collcast has mpirun start, mpirun's own, and what can go wrong.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "cli/process.hpp"
#include "measured.hpp"
#include "runner/mpi_library.hpp"

#ifdef __has_feature
#define COLLCAST_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#endif

using namespace collcast;
using namespace collcast::test;

namespace {

/// Under the leak sanitizer what MPI itself keeps is no leak of ours.
Outcome run_mpi(const std::string& command, const std::filesystem::path& folder) {
  return run_shell("export LSAN_OPTIONS=suppressions=" COLLCAST_SOURCE_DIR
                   "/tests/support/mpi-lsan.supp:print_suppressions=0\n" +
                       command,
                   folder);
}

/// Built against MPI, and nothing to start ranks with: said, and not failed.
bool cannot_start() {
  const Folder folder;
  if (run_mpi("command -v mpirun", folder.path()).exit == 0) return false;
  WARN("skipped: no mpirun in PATH");
  return true;
}

/// mpirun of the user's own, who may be root and have two cores.
const std::string mpirun =
    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 mpirun ";

/// The processes of the measurement `$main`: $starter, and $ranks.
const std::string find_ranks =
    "starter=$(cat /proc/$main/task/*/children | tr -d ' '); ranks=$(cat /proc/$starter/task/*/children)\n"
    "set -- $ranks; ";
const std::string none_is_left = "\nfor p in $starter $ranks; do [ ! -d /proc/$p ] || echo $p is left; done";

}  // namespace

TEST_CASE("every kind that MPI has runs on 2, 3 and 4 ranks, gives right results and a table with a sidecar") {
  if (cannot_start()) return;
  for (const int ranks : {2, 3, 4}) {
    const Folder folder;
    const auto run = run_mpi("OMPI_MCA_btl=self,vader collcast measure all --backend mpi --ranks " +
                                 std::to_string(ranks) + quick + "--size 100,24000 --output tables/",
                             folder.path());
    CAPTURE(ranks, run.err);
    REQUIRE(run.exit == 0);
    for (const std::string& name : collective_names()) {
      const std::string id = "mpi-loopback-1x" + std::to_string(ranks) + "-" + name;
      CAPTURE(id);
      const std::string csv = folder.read("tables/" + id + ".csv");
      check_table(csv, ranks);
      CHECK(csv.find("\n" + name + ",24000,") != std::string::npos);
      const auto sidecar = keys(folder.read("tables/" + id + ".yaml"));
      CHECK(sidecar.at("id") == "'" + id + "'");
      CHECK(sidecar.at("backend") == "mpi");
      CHECK(sidecar.at("nranks") == std::to_string(ranks));
      CHECK(sidecar.at("complete") == "true");
      CHECK(sidecar.count("algorithm") == 0);
      CHECK(sidecar.at("library_version").find("MPI") != std::string::npos);
      CHECK(sidecar.at("command") == "'collcast measure all --backend mpi --ranks " + std::to_string(ranks) +
                                         " --size 100,24000 --warmup 1 --repetitions 3'");
      CHECK(folder.read("tables/" + id + ".yaml").find("env:\n  OMPI_MCA_btl: 'self,vader'\n") != std::string::npos);
    }
  }
}

TEST_CASE("every kind in every datatype and both placements is right from a root that is not 0") {
  if (cannot_start()) return;
  const Folder folder;
  const nlohmann::json entries =
      nlohmann::json::parse(run_mpi("collcast backends --format json", folder.path()).out)["backends"];
  const nlohmann::json& mpi = entries[2];
  REQUIRE(mpi["name"] == "mpi");
  REQUIRE(mpi["collectives"].size() == 9);
  REQUIRE(mpi["datatypes"].size() == 8);
  std::size_t placements = 0;
  for (const nlohmann::json& kind : mpi["collectives"])
    placements += std::size_t{kind["in_place"] == true} + std::size_t{kind["out_of_place"] == true};
  CHECK(placements == 16);  // nine kinds, less a broadcast out of place and a sendrecv in place
  for (const std::string type : mpi["datatypes"]) {
    for (const auto& [ranks, root] : {std::pair(2, 1), {3, 2}, {4, 1}}) {
      const auto run = run_mpi(
          "collcast measure all --backend mpi --warmup 0 --repetitions 1 --size 48,4096 --format json "
          "--datatype " +
              type + " --ranks " + std::to_string(ranks) + " --root " + std::to_string(root),
          folder.path());
      CAPTURE(type, ranks, root, run.err);
      REQUIRE(run.exit == 0);
      const nlohmann::json document = nlohmann::json::parse(run.out);
      CHECK(document["complete"] == true);
      // Two sizes, in each placement that `backends` names: whatever ran and was wrong has no row.
      CHECK(document["rows"].size() == 2 * placements);
    }
  }
}

TEST_CASE("calls back to back are divided by their number") {
  if (cannot_start()) return;
  const Folder folder;
  const auto run = run_mpi(
      "collcast measure alltoall --backend mpi --ranks 2 --calls 50 --size 1KiB --output t.csv" + quick, folder.path());
  CAPTURE(run.err);
  REQUIRE(run.exit == 0);
  CHECK(keys(folder.read("t.yaml")).at("calls_per_repetition") == "50");
  check_table(folder.read("t.csv"), 2);
}

TEST_CASE("a wrong result is named with rank and element, and has no row") {
  if (cannot_start()) return;
  const Folder folder;
#if defined(__SANITIZE_ADDRESS__) || COLLCAST_ADDRESS_SANITIZER
  WARN("skipped: the sanitizer wants to be preloaded itself");
#else
  const auto run = run_mpi("LD_PRELOAD=" COLLCAST_WRONG_MPI
                           " collcast measure all_reduce,all_gather --backend mpi --ranks 2 --size 8,1KiB "
                           "--format json" +
                               quick,
                           folder.path());
  CAPTURE(run.err);
  CHECK(run.exit == 1);
  CHECK(run.err.find("all_reduce of 1 KiB: wrong result on rank 1: element 3 is ") != std::string::npos);
  CHECK(run.err.find("all_reduce of 1 KiB in place: wrong result on rank 1") != std::string::npos);
  // Two floats have no element 3; all_gather is as it should be.
  const nlohmann::json rows = nlohmann::json::parse(run.out)["rows"];
  REQUIRE(rows.size() == 6);
  for (const nlohmann::json& row : rows) CHECK((row["collective"] == "all_gather" || row["size_bytes"] == 8));
#endif
}

TEST_CASE("mpirun's own ranks measure together; rank 0 alone speaks, and validate reads its table") {
  if (cannot_start()) return;
  const Folder folder;
  const auto run = run_mpi(mpirun +
                               "-np 3 collcast measure all_reduce --backend mpi --size 1KiB:64KiB:x4 "
                               "--system loopback --output t.csv" +
                               quick,
                           folder.path());
  CAPTURE(run.err);
  REQUIRE(run.exit == 0);
  CHECK(run.out.empty());
  CHECK(folder.listing() == "t.csv t.yaml");
  check_table(folder.read("t.csv"), 3);
  CHECK(keys(folder.read("t.yaml")).at("command").find("(each of 3 ranks started by mpirun)") != std::string::npos);
  CHECK(folder.read("t.yaml").find("orte") == std::string::npos);  // what mpirun sets for itself
  const auto scored = run_mpi("collcast validate --measured t.csv --format json", folder.path());
  CAPTURE(scored.err);
  REQUIRE(scored.exit == 0);
  CHECK(nlohmann::json::parse(scored.out)["tables"][0]["topology"] == "loopback");
  // One more process than it says it started, and the other way round.
  const auto ranks =
      run_mpi(mpirun + "-np 2 collcast measure all_reduce --backend mpi --size 8 --ranks 3 2>&1; true", folder.path());
  CHECK(ranks.out.find("--ranks: 3, but mpirun started 2") != std::string::npos);
}

TEST_CASE("MPI's ranks that want different things hear it, whatever their number") {
  if (cannot_start()) return;
  const Folder folder;
  const std::string one = "collcast measure all_reduce --backend mpi --size ";
  const auto run = run_mpi(mpirun + "-np 2 " + one + "8 : -np 1 " + one + "16,1MiB", folder.path());
  CAPTURE(run.err);
  CHECK(run.exit == 2);
  CHECK(run.err.find("rank 2 measures something else than rank 0: ") != std::string::npos);
  CHECK(run.err.find("all_reduce 16 1048576', not 'mpi float") != std::string::npos);
}

TEST_CASE("an mpirun or srun of another MPI is found out: each rank sees itself alone") {
  const Folder folder;
  // As Hydra, Open MPI and Slurm name a rank; there is nothing behind the names.
  for (const auto& [names, starter] : {std::pair("PMI_RANK=0 PMI_SIZE=4", "mpirun"),
                                       {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4", "mpirun"},
                                       {"SLURM_PROCID=0 SLURM_NTASKS=4", "srun"}}) {
    const auto run = run_mpi(std::string(names) + " collcast measure all_reduce --backend mpi --size 8", folder.path());
    CAPTURE(names, run.err);
    CHECK(run.exit == 2);
    CHECK(run.out.empty());
    CHECK(run.err.find(std::string(starter) + " started 4 ranks, but ") != std::string::npos);
    CHECK(run.err.find(" sees each of them alone") != std::string::npos);
  }
}

TEST_CASE("one of MPI's ranks that is killed ends the measurement; finished rows are kept and no process is left") {
  if (cannot_start()) return;
  const Folder folder;
  const auto run = run_mpi(
      "collcast measure all_reduce --backend mpi --ranks 3 --size 8:1GiB:x2 --warmup 0 --repetitions 2 --output t.csv "
      ">out 2>err & main=$!\n" +
          once_rows_come("t.csv", find_ranks + kill_second + "true" + none_is_left),
      folder.path());
  CAPTURE(run.err, run.out, folder.read("err"));
  const std::string err = check_lost_rank(run.out, folder);
  CHECK(err.find(" ended and said nothing during all_reduce of ") != std::string::npos);
  CHECK(err.find("signal 9") != std::string::npos);  // mpirun's own words
}

TEST_CASE("a rank of MPI's that stops answering is noticed at the timeout") {
  if (cannot_start()) return;
  const Folder folder;
  const auto run = run_mpi(
      "collcast measure all_reduce --backend mpi --ranks 2 --size 8:64KiB:x2 --warmup 0 --repetitions 5000 --timeout "
      "10s --output t.csv 2>err & main=$!\n" +
          once_rows_come("t.csv", find_ranks + "kill -STOP $2; wait $main; echo $?" + none_is_left),
      folder.path());
  CAPTURE(folder.read("err"));
  CHECK(run.out == "1\n");
  CHECK(folder.read("err").find(": no answer within 10 s") != std::string::npos);
  CHECK(folder.read("err").find("no word from rank 1") != std::string::npos);
}

TEST_CASE("an interrupted measurement with MPI shows what it has, marked as partial, and dies of the signal") {
  if (cannot_start()) return;
  const Folder folder;
  for (const auto& [signal, exit] : {std::pair("TERM", "143"), {"INT", "130"}}) {
    // A shell's background jobs ignore SIGINT, so it goes to one that does not.
    const auto run = run_mpi(
        "python3 -c 'import signal, os, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp(sys.argv[1], "
        "sys.argv[1:])' collcast measure all_reduce --backend mpi --ranks 2 --size 8:1GiB:x2 --warmup 0 --repetitions "
        "2 --output t.csv 2>err & main=$!\n" +
            once_rows_come("t.csv", find_ranks + "kill -" + signal + " $main; wait $main; echo $?; rm -f t.csv; true" +
                                        none_is_left),
        folder.path());
    CAPTURE(signal, folder.read("err"));
    CHECK(run.out == std::string(exit) + "\n");
    CHECK(keys(folder.read("t.yaml")).at("complete") == "false");
    CHECK(folder.read("err").find("stopped by signal ") != std::string::npos);
    CHECK(folder.read("err").find("mpirun") == std::string::npos);  // what it says about that end is noise
  }
}

TEST_CASE("mpirun that ends a job leaves the finished rows, marked as partial") {
  if (cannot_start()) return;
  const Folder folder;
  const auto run =
      run_mpi(mpirun +
                  "-np 2 collcast measure all_reduce --backend mpi --size 8:1GiB:x2 --warmup 0 --repetitions 2 "
                  "--output t.csv 2>err & main=$!\n" +
                  once_rows_come("t.csv", "kill -TERM $main; wait $main; echo done"),
              folder.path());
  CAPTURE(folder.read("err"));
  CHECK(run.out == "done\n");
  check_table(folder.read("t.csv"), 2);
  CHECK(keys(folder.read("t.yaml")).at("complete") == "false");
  CHECK(folder.read("err").find("no size was finished") == std::string::npos);  // rank 1 knows of no rows
}

TEST_CASE("what MPI cannot be asked is refused with all reasons, before anything runs") {
  const Folder folder;
  const auto run = run_mpi(
      "collcast measure all_reduce,all_gahter --backend mpi --ranks 2 --root 7 --datatype bfloat16 --algorithm ring "
      "--rendezvous node1:29500 --share-gpu",
      folder.path());
  CHECK(run.exit == 2);
  for (const char* text :
       {"mpi has no collective 'all_gahter'", "--root: 7 is outside the 2 ranks", "--datatype: mpi has no 'bfloat16'",
        "all_reduce of mpi has no 'ring'", "OMPI_MCA_coll_tuned_allreduce_algorithm", "--rendezvous has no meaning",
        "mpi has no GPU"}) {
    CAPTURE(text, run.err);
    CHECK(run.err.find(text) != std::string::npos);
  }
  const std::string one = "collcast measure all_reduce --backend mpi --size 8";
  CHECK(run_mpi(one + " --datatype flaot", folder.path()).err.find("did you mean 'float'") != std::string::npos);
  const auto torch = run_mpi("RANK=0 WORLD_SIZE=2 " + one, folder.path());
  CHECK(torch.exit == 2);
  CHECK(torch.err.find("torchrun starts no MPI ranks") != std::string::npos);
}

TEST_CASE("without mpirun, or without the module, the command says what is missing and ends with 3") {
  const Folder folder;
  std::filesystem::create_directories(folder.path() / "alone" / "bin");
  std::filesystem::create_symlink(COLLCAST_EXECUTABLE, folder.path() / "alone" / "collcast");
  const std::string one = "collcast measure all_reduce --backend mpi --size 8";
  const auto no_mpirun = run_mpi("PATH=$PWD/alone " + one, folder.path());
  CHECK(no_mpirun.exit == 3);
  CHECK(no_mpirun.err.find("mpirun is not in PATH") != std::string::npos);
  CHECK(no_mpirun.err.find("openmpi-bin") != std::string::npos);
  // A program that was copied without its module does all else that it did.
  std::filesystem::copy_file(COLLCAST_EXECUTABLE, folder.path() / "alone" / "bin" / "collcast");
  const auto no_module = run_mpi("PATH=$PWD/alone/bin:$PATH " + one, folder.path());
  CHECK(no_module.exit == 3);
  CHECK(no_module.err.find("collcast_mpi.so is missing beside the program") != std::string::npos);
  CHECK(run_mpi("PATH=$PWD/alone/bin:$PATH collcast backends", folder.path()).exit == 0);
}

TEST_CASE("the program does not need MPI to start") {
  const Folder folder;
  const auto run = run_mpi("ldd " COLLCAST_EXECUTABLE, folder.path());
  if (run.exit != 0) {
    WARN("skipped: no ldd here");
    return;
  }
  for (const char* library : {"libmpi", "libopen-rte", "libopen-pal", "libpmix"})
    CHECK(run.out.find(library) == std::string::npos);
}

TEST_CASE("a version is MPI's name and number, without who built it and where") {
  using runner::mpi_version_text;
  CHECK(mpi_version_text("Open MPI v4.1.4, package: Open MPI someone@somewhere Distribution, ident: 4.1.4") ==
        "Open MPI 4.1.4");
  CHECK(mpi_version_text("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022\n") ==
        "MPICH 4.0.2");
  CHECK(mpi_version_text("MVAPICH2 Version      :\t2.3.7\nMVAPICH2 Release date :\t...") == "MVAPICH2 2.3.7");
  CHECK(mpi_version_text("Intel(R) MPI Library 2021.9 for Linux* OS\n") == "Intel(R) MPI Library 2021.9 for Linux* OS");
}
