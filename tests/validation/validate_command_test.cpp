// `collcast validate` as a person runs it.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>

#include "cli/process.hpp"
#include "shipped.hpp"

using namespace collcast::test;
using Json = nlohmann::json;

namespace {

const std::string tables = std::string(COLLCAST_SOURCE_DIR) + "/validation/data/nccl-tests/";
const std::string one_table = tables + "a100-cw-1x8-all_reduce.csv";
const std::string log_text =
    "# nThread 1 nGpus 2\n"
    "#  Rank  0 Pid 11 on h device  0 [0x06] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Pid 11 on h device  1 [0x07] NVIDIA H100 80GB HBM3\n"
    "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    "1024 256 float sum -1 13.00 0.08 0.08 0 13.50 0.08 0.08 0\n"
    "# Out of bounds values : 0 OK\n";

Outcome validate(const Folder& folder, const std::string& options) {
  return run_shell(with_data + "collcast validate " + options, folder.path());
}

}  // namespace

TEST_CASE("sockets of --env are warned of once, and of tables on one node not at all") {
  const Folder folder;
  const auto warned = [&](const std::string& measured) {
    const Outcome outcome = validate(folder, "--env NCCL_NET=Socket --format json " + measured);
    REQUIRE(outcome.exit == 0);
    const Json document = Json::parse(outcome.out);
    int out = 0;
    for (const Json& one : document["warnings"])
      out += one.get<std::string>().starts_with("NCCL_NET=Socket: NCCL would take other ways") ? 1 : 0;
    return out;
  };
  const std::string two_nodes = " --measured " + tables + "alps-gh200-2x4-ofi-all_reduce.csv";
  CHECK(warned("--measured " + one_table) == 0);
  CHECK(warned(two_nodes) == 1);
  CHECK(warned(two_nodes + " --measured " + tables + "p4de-2x8-all_reduce.csv") == 1);
}

TEST_CASE("what is missing of a measurement is in the document, too") {
  const Folder folder;
  std::filesystem::create_directories(folder.path() / "logs");
  const std::string row = "2048 512 float sum -1 13.20 0.16 0.16 0 13.50 0.15 0.15 0\n";
  const auto said = [&](const std::string& file, const std::string& content) {
    folder.write("logs/" + file, content);
    const Outcome outcome =
        validate(folder, "--measured logs/" + file + " --topology dgx-h100 --collective all_reduce --format json");
    INFO(outcome.err);
    REQUIRE(outcome.exit == 0);
    const Json doc = Json::parse(outcome.out);
    std::string warnings;
    for (const Json& warning : doc["warnings"]) warnings += warning.get<std::string>() + "\n";
    CHECK(warnings.find("logs/") == std::string::npos);
    return std::pair(doc["tables"][0]["complete"].get<bool>(), warnings);
  };
  using Said = std::pair<bool, std::string>;
  CHECK(said("whole.log", log_text) == Said{true, ""});
  const std::string head = log_text.substr(0, log_text.find("# Out of bounds"));
  CHECK(said("broken.log", head) ==
        Said{false, "broken.log:5:1: the log ends without 'Out of bounds values': the test did not finish\n"});
  std::string wrong = row;
  wrong.replace(wrong.find(" 0 13.50"), 2, " 7");
  CHECK(said("wrong.log", head + wrong + "# Out of bounds values : 0 OK\n") ==
        Said{false, "wrong.log:6:39: 7 results out of place were wrong: this row is left out\n"});
  const Outcome told = validate(folder, "--measured logs/wrong.log --topology dgx-h100 --collective all_reduce");
  CHECK(told.out.find("not scored") != std::string::npos);
  CHECK(told.out.find("7 results out of place were wrong: this row is left out (line 6)") != std::string::npos);
  const Json left_out = Json::parse(
      validate(folder, "--measured logs/wrong.log --topology dgx-h100 --collective all_reduce --format json").out);
  REQUIRE(left_out["unscored"].size() == 1);
  CHECK(left_out["unscored"][0]["id"] == "wrong.log");
  CHECK(left_out["unscored"][0]["why"] == "7 results out of place were wrong: this row is left out (line 6)");
  const std::string csv = "collective,size_bytes,time_us,inplace\nall_reduce,1024,13.0,0\n";
  const std::string sidecar = "id: t\ncollective: all_reduce\nnodes: 1\nnranks: 2\nsystem: s\n";
  folder.write("logs/t.yaml", sidecar);
  CHECK(said("t.csv", csv) == Said{true, ""});
  folder.write("logs/t.yaml", sidecar + "complete: false\n");
  CHECK(said("t.csv", csv) == Said{false, "t.csv: its sidecar says that sizes are missing (complete: false)\n"});
  folder.write("logs/t.yaml", sidecar);
  CHECK(said("t.csv", csv + "all_reduce,20") == Said{false, "t.csv:3:1: the file ends within this row\n"});
}

TEST_CASE("tables with one id are told apart, also where each is left out of its own fit") {
  const Folder folder;
  const std::string csv =
      "collective,size_bytes,time_us,inplace\nall_reduce,1024,20,0\nall_reduce,65536,40,0\nall_reduce,8388608,900,0\n";
  for (const std::string in : {"a", "b", "c"}) {
    std::filesystem::create_directory(folder.path() / in);
    folder.write(in + "/t.csv", csv);
    folder.write(in + "/t.yaml",
                 "id: t\ncollective: all_reduce\nnodes: 1\nnranks: 2\nsystem: s\ngpu: H100-SXM5-80GB\n");
  }
  for (const std::string fit : {"", " --leave-one-out"}) {
    const auto run = validate(folder, "--measured a b c --topology dgx-h100 --library nccl --format json" + fit);
    INFO(run.err);
    REQUIRE(run.exit == 0);
    CHECK(run.err.find("b/t.csv: warning: the id 't' is another table's: this one is called 't-2'") !=
          std::string::npos);
    const Json doc = Json::parse(run.out);
    REQUIRE(doc["tables"].size() == 3);
    const std::vector<std::string> ids{"t", "t-2", "t-3"};
    for (std::size_t i = 0; i < ids.size(); ++i) {
      CHECK(doc["tables"][i]["id"] == ids[i]);
      CHECK(doc["tables"][i]["rows"].size() == 3);
      CHECK(doc["tables"][i]["topology"] == "dgx-h100");
    }
  }
}

TEST_CASE("what a folder has and is not read is said: folders in it, links that lead nowhere") {
  const Folder folder;
  std::filesystem::create_directories(folder.path() / "logs/2026");
  std::filesystem::create_directory(folder.path() / "logs/.git");
  folder.write("logs/2026/t.log", log_text);
  const std::string options = "--measured logs --topology dgx-h100 --collective all_reduce";
  const auto none = validate(folder, options);
  CHECK(none.exit == 2);
  CHECK(none.err.find("; folders in it are not read: '2026'\n") != std::string::npos);
  folder.write("logs/t.log", log_text);
  std::filesystem::create_symlink("nowhere", folder.path() / "logs/gone.csv");
  const auto some = validate(folder, options);
  CHECK(some.exit == 0);
  CHECK(some.err ==
        "logs: warning: folders in it are not read: '2026'\n    note: name them, too, if they have measurements\n"
        "logs/gone.csv: warning: this is no file that can be read: passed over\n");
}

TEST_CASE("a sidecar is YAML by either suffix, and no result is written over it") {
  const Folder folder;
  folder.write("t.csv", "collective,size_bytes,time_us,inplace\nall_reduce,1024,20,0\n");
  CHECK(validate(folder, "--measured t.csv --topology dgx-h100").exit == 2);
  const std::string sidecar = "id: mine\ncollective: all_reduce\nnodes: 1\nnranks: 2\nsystem: s\nhealthy: no\n";
  folder.write("t.yml", sidecar);
  const auto run = validate(folder, "--measured t.csv --topology dgx-h100 --format json");
  REQUIRE(run.exit == 0);
  const Json table = Json::parse(run.out)["tables"].at(0);
  CHECK(table["id"] == "mine");
  CHECK(table["healthy"] == "no");
  const auto over = validate(folder, "--measured t.csv --topology dgx-h100 --format json --output t.yml");
  CHECK(over.exit == 2);
  CHECK(over.err.find("'t.yml' would be written over the input") != std::string::npos);
}

TEST_CASE("of two sidecars of a table the one that is passed over is named") {
  const Folder folder;
  const std::string head = "collective: all_reduce\nnodes: 1\nnranks: 2\nsystem: s\n";
  folder.write("t.csv", "collective,size_bytes,time_us,inplace\nall_reduce,1024,20,0\n");
  folder.write("t.yaml", "id: first\n" + head);
  const std::string run = "--measured t.csv --topology dgx-h100 --format json";
  CHECK(validate(folder, run).err.find("passed over") == std::string::npos);
  folder.write("t.yml", "id: second\n" + head);
  const auto both = validate(folder, run);
  REQUIRE(both.exit == 0);
  CHECK(Json::parse(both.out)["tables"].at(0)["id"] == "first");
  CHECK(both.err.find("t.yml: warning: passed over: the sidecar of 't.csv' is 't.yaml'\n") != std::string::npos);
}

TEST_CASE("the picture of --plot is SVG, and a file of another suffix is refused") {
  const Folder folder;
  const auto refused = validate(folder, "--measured " + one_table + " --plot picture.PNG");
  CHECK(refused.exit == 2);
  CHECK(refused.err == "--plot picture.PNG:1:8: error: the picture is SVG\n    hint: expected FILE.svg, or -\n");
  CHECK_FALSE(std::filesystem::exists(folder.path() / "picture.PNG"));
  CHECK(validate(folder, "--measured " + one_table + " --plot picture.SVG").exit == 0);
  CHECK(std::filesystem::exists(folder.path() / "picture.SVG"));
}

TEST_CASE("a file that is in a folder and named besides counts once, by whatever name") {
  const Folder folder;
  std::filesystem::create_directory(folder.path() / "logs");
  folder.write("logs/t.log", log_text);
  for (const std::string again :
       {"logs logs/t.log", "logs/t.log logs", "logs ./logs/../logs", "logs/t.log ./logs/t.log"}) {
    INFO(again);
    const auto run =
        validate(folder, "--measured " + again + " --topology dgx-h100 --collective all_reduce --format json");
    REQUIRE(run.exit == 0);
    CHECK(Json::parse(run.out)["tables"].size() == 1);
    CHECK(run.err.find("is given twice") != std::string::npos);
  }
  // What its sidecar is warned of is said once.
  std::filesystem::create_directory(folder.path() / "tables");
  folder.write("tables/t.csv", "collective,size_bytes,time_us,inplace\nall_reduce,1024,20,0\n");
  folder.write("tables/t.yaml", "id: t\ncollective: all_reduce\nnodes: 1\nnranks: 2\nfoo: 1\n");
  const std::string err = validate(folder, "--measured tables tables/t.csv --topology dgx-h100").err;
  const std::size_t first = err.find("'foo'");
  REQUIRE(first != std::string::npos);
  CHECK(err.find("'foo'", first + 1) == std::string::npos);
}

TEST_CASE("validate writes collcast.validate.v1 with tables, summary and unscored, the same twice") {
  const Folder folder;
  const std::string options = "--measured " + one_table + " " + tables + "2080ti-1x2-nop2p-reduce.csv --format json";
  const auto first = validate(folder, options), second = validate(folder, options);
  REQUIRE(first.exit == 0);
  CHECK(first.out == second.out);
  const Json doc = Json::parse(first.out);
  CHECK(doc["schema"] == "collcast.validate.v1");
  REQUIRE(doc["tables"].size() == 2);
  const Json& table = doc["tables"][0];
  CHECK(table["id"] == "a100-cw-1x8-all_reduce");
  CHECK(table["healthy"] == "yes");
  CHECK(table["topology"] == "dgx-a100");
  CHECK(table["calibrated"] == false);
  int rows = 0;
  for (const char* band : {"small", "medium", "large"}) {
    rows += table["bands"][band]["n"].get<int>();
    CHECK(table["bands"][band]["median_ape"].is_number());
    CHECK(table["bands"][band]["mean_ape"].is_number());
  }
  CHECK(rows == 46);
  REQUIRE(table["rows"].size() == 46);
  double large = 0;
  for (const Json& row : table["rows"]) {
    const double measured = row["measured_s"], predicted = row["predicted_s"];
    CHECK(row["ape"].get<double>() == Approx(std::abs(predicted - measured) / measured));
    if (row["size_bytes"] > 4 << 20) large += row["ape"].get<double>() / table["bands"]["large"]["n"].get<int>();
  }
  CHECK(large == Approx(table["bands"]["large"]["mean_ape"].get<double>()));
  // The first line of the file; the same size in place stands after all sizes out of place there.
  CHECK(table["rows"][0]["size_bytes"] == 96);
  CHECK(table["rows"][0]["measured_s"].get<double>() == Approx(23.41e-6));
  CHECK(table["rows"][0]["in_place"] == false);
  CHECK(table["rows"][1]["size_bytes"] == 96);
  CHECK(table["rows"][1]["in_place"] == true);
  CHECK(doc["tables"][1]["healthy"] == "no");
  CHECK(doc["unscored"].empty());
  CHECK(doc["summary"].size() > 0);
  CHECK(first.out.find(std::string(COLLCAST_SOURCE_DIR)) == std::string::npos);
}

TEST_CASE("a table of an unknown system says on which machine it is and how that was found") {
  const Folder folder;
  const auto run =
      run_shell(with_data + "cp " + tables +
                    "p5-efa-2x8-nccl2.22.3-all_reduce.csv t.csv && sed -e 's/^system:.*/system: unknown/' -e " +
                    "'s/^nics_per_node:.*/nics_per_node: 4x IB HDR 200Gb\\/s/' " + tables +
                    "p5-efa-2x8-nccl2.22.3-all_reduce.yaml > t.yaml && collcast validate --library nccl --measured "
                    "t.csv --format json",
                folder.path());
  INFO(run.err);
  REQUIRE(run.exit == 0);
  const Json doc = Json::parse(run.out);
  const Json& table = doc["tables"][0];
  CHECK(table["matched_by"] == "derived");
  CHECK(table["derived"]["from"] == "gcp-a3-high");
  CHECK(table["derived"]["changed"].dump().find("infiniband (nics_per_node)") != std::string::npos);
  CHECK(table["derived"]["used"].dump().find("nics_per_node '4x IB HDR 200Gb/s'") != std::string::npos);
  CHECK(doc["warnings"].dump().find("is derived from gcp-a3-high") != std::string::npos);
  // What is fitted to such a machine is put in again, by the name that it was given.
  const auto fitted =
      run_shell(with_data + "collcast calibrate --library nccl --measured t.csv --output o.yaml", folder.path());
  INFO(fitted.err);
  REQUIRE(fitted.exit == 0);
  const auto again = run_shell(
      with_data + "collcast validate --library nccl --measured t.csv --overlay o.yaml --format json", folder.path());
  INFO(again.err);
  REQUIRE(again.exit == 0);
  const Json calibrated = Json::parse(again.out);
  CHECK(calibrated["tables"][0]["topology"] == table["topology"]);
  CHECK(calibrated["tables"][0]["calibrated"] == true);
}

TEST_CASE("a device that is read without end is refused at once") {
  const Folder folder;
  for (const std::string device : {"/dev/zero", "/dev/urandom"}) {
    const auto run = run_shell(with_data + "timeout 60 collcast validate --measured " + device, folder.path());
    INFO(run.err);
    CHECK(run.exit == 2);
    CHECK(run.err.starts_with(device + ":"));  // a random first line may be text
  }
}

TEST_CASE("a log of one's own is scored on a machine that is named") {
  const Folder folder;
  folder.write("all_reduce.log", log_text);
  const auto run = validate(folder, "--measured all_reduce.log --topology dgx-h100 --format json");
  REQUIRE(run.exit == 0);
  const Json table = Json::parse(run.out)["tables"][0];
  CHECK(table["topology"] == "dgx-h100");
  CHECK(table["ranks"] == 2);
  CHECK(table["bands"]["small"]["n"] == 2);
}

TEST_CASE("a log that does not say its ranks or collective asks for them, and takes them") {
  const Folder folder;
  folder.write("my.log", "1024 256 float sum -1 13.00 0.08 0.14 0 13.50 0.08 0.13 0\n# Out of bounds values : 0\n");
  const auto asks = validate(folder, "--measured my.log --topology dgx-h100");
  CHECK(asks.exit == 2);
  CHECK(asks.err.starts_with("my.log:1:1: error: table 'my' cannot be scored: it does not say which collective it is"));
  const auto ranks = validate(folder, "--measured my.log --topology dgx-h100 --collective all_reduce");
  CHECK(ranks.exit == 2);
  CHECK(ranks.err.starts_with("my.log:1:1: error: "));
  CHECK(ranks.err.find("give --ranks and --nodes") != std::string::npos);
  CHECK(validate(folder, "--measured my.log --topology dgx-h100 --collective all_reduce --ranks 8").exit == 0);
}

TEST_CASE("an option that every table contradicts is an error that names both; of some tables a warning") {
  const Folder folder;
  folder.write("all_reduce.log", log_text);
  const auto all = validate(folder, "--measured all_reduce.log --ranks 4 --nodes 2 --collective broadcast");
  CHECK(all.exit == 2);
  CHECK(all.err.find("error: --ranks 4, but table 'all_reduce' says 2\n") != std::string::npos);
  CHECK(all.err.find("error: --nodes 2, but table 'all_reduce' says 1\n") != std::string::npos);
  CHECK(all.err.find("error: --collective broadcast, but table 'all_reduce' says all_reduce\n") != std::string::npos);
  CHECK(validate(folder, "--measured all_reduce.log --ranks 2 --nodes 1 --collective all_reduce").exit == 0);

  folder.write("silent.log", "1024 256 float sum -1 13.00 0.08 0.12 0 13.50 0.08 0.11 0\n# Out of bounds values : 0\n");
  const auto some = validate(folder,
                             "--measured all_reduce.log silent.log --topology dgx-h100 --ranks 4 --collective "
                             "all_reduce --format json");
  REQUIRE(some.exit == 0);
  CHECK(some.err.find("warning: --ranks 4, but table 'all_reduce' says 2: what a table says counts") !=
        std::string::npos);
  const Json tables_read = Json::parse(some.out)["tables"];
  CHECK(tables_read[0]["ranks"] == 2);
  CHECK(tables_read[1]["ranks"] == 4);
}

TEST_CASE("a log that lost a line of a rank is refused, and scored with --ranks") {
  const Folder folder;
  std::string text = log_text;
  text.replace(text.find("Rank  1"), 7, "Rank  2");
  for (std::size_t at = 0; (at = text.find("0.08 0.08")) != std::string::npos;) text.replace(at, 9, "0.08 0.11");
  folder.write("all_reduce.log", text);
  const auto refused = validate(folder, "--measured all_reduce.log --topology dgx-h100");
  CHECK(refused.exit == 2);
  CHECK(refused.err.find("it lists 2 ranks, but rank 2 is one of them") != std::string::npos);
  const auto told = validate(folder, "--measured all_reduce.log --topology dgx-h100 --ranks 3 --format json");
  REQUIRE(told.exit == 0);
  CHECK(Json::parse(told.out)["tables"][0]["ranks"] == 3);
}

TEST_CASE("a row without a time is listed as not scored with its line, the rest is scored") {
  const Folder folder;
  std::string text = log_text;
  text.insert(text.find("1024 256"), "512 128 float sum -1 0.00 0.08 0.08 0 nan 0.08 0.08 0\n");
  folder.write("all_reduce.log", text);
  const auto run = validate(folder, "--measured all_reduce.log --topology dgx-h100 --format json");
  REQUIRE(run.exit == 0);
  CHECK(run.err.find("all_reduce.log:5:22: warning: the time is '0.00': this row is left out") != std::string::npos);
  const Json doc = Json::parse(run.out);
  CHECK(doc["tables"][0]["rows"].size() == 2);
  REQUIRE(doc["unscored"].size() == 2);
  CHECK(doc["unscored"][0]["id"] == "all_reduce.log");
  CHECK(doc["unscored"][0]["why"] == "the time is '0.00': this row is left out (line 5)");
  CHECK(doc["unscored"][1]["why"] == "the time is 'nan': this row is left out (line 5)");
  CHECK(run_shell(with_data + "collcast calibrate --measured all_reduce.log --topology dgx-h100", folder.path()).exit ==
        0);
  // The same twice: each has its column, or says which it is.
  text = log_text;
  text.insert(text.find("1024 256"), "512 128 float sum -1 0 0 0 0 0 0 0 0\n8 2 float sum -1 9.5 0 0 7 9.5 0 0 7\n");
  folder.write("all_reduce.log", text);
  const Json alike = Json::parse(validate(folder, "--measured all_reduce.log --topology dgx-h100 --format json").out);
  REQUIRE(alike["unscored"].size() == 4);
  CHECK(alike["unscored"][0]["why"] == "the time is '0': this row is left out (line 5, column 22)");
  CHECK(alike["unscored"][1]["why"] == "the time is '0': this row is left out (line 5, column 30)");
  CHECK(alike["unscored"][2]["why"] == "7 results out of place were wrong: this row is left out (line 6)");
  CHECK(alike["unscored"][3]["why"] == "7 results in place were wrong: this row is left out (line 6)");
  std::string many = log_text;
  for (int i = 0; i < 30; ++i)
    many.insert(many.find("1024 256"), "512 128 float sum -1 0.00 0.08 0.08 0 7.1 0.08 0.08 0\n");
  folder.write("all_reduce.log", many);
  const Json few = Json::parse(validate(folder, "--measured all_reduce.log --topology dgx-h100 --format json").out);
  REQUIRE(few["unscored"].size() == 11);
  CHECK(few["unscored"][10]["why"] == "20 more rows without a usable time are left out");
}

TEST_CASE("a table that --part leaves no row of is named: alone an error, beside others as not scored or not used") {
  const Folder folder;
  folder.write("all_reduce.log", log_text);
  const std::string alone = "--measured all_reduce.log --topology dgx-h100 --part 2/2";
  const std::string both = alone + " --measured " + one_table + " --format json";
  const std::string why = "no row is in part 2/2: it has 1 size";
  for (const std::string command : {"validate ", "calibrate "}) {
    const auto run = [&](const std::string& options) {
      return run_shell(with_data + "collcast " + command + options, folder.path());
    };
    const auto refused = run(alone);
    INFO(command << refused.err);
    CHECK(refused.exit == 2);
    CHECK(refused.out.empty());
    CHECK(refused.err.find("--part 2/2:1:8: error: table 'all_reduce': " + why) != std::string::npos);
    const auto beside = run(both);
    REQUIRE(beside.exit == 0);
    const Json left_out = Json::parse(beside.out)[command == "validate " ? "unscored" : "unused"];
    REQUIRE(left_out.size() == 1);
    CHECK(left_out[0]["id"] == "all_reduce");
    CHECK(left_out[0]["why"] == why);
    const auto far = run("--topology dgx-a100 --part 99/100 --measured " + one_table);
    CHECK(far.exit == 2);
    CHECK(far.err.find("'a100-cw-1x8-all_reduce': no row is in part 99/100: it has ") != std::string::npos);
  }
}

TEST_CASE("an overlay that calibrates none of the tables' machines is an error in every format") {
  const Folder folder;
  folder.write("o.yaml",
               "schema: collcast.overlay.v1\nfitted_by: \"collcast 0.1.0\"\nmachines:\n  - machine: dgx-h100\n"
               "    base_latency: 20us\n    latency_scale: 2\n    efficiency: {nvlink: 0.5, pcie: 1, network: 1}\n");
  for (const std::string format : {"table", "json", "csv", "markdown"}) {
    const auto run = validate(folder, "--measured " + one_table + " --overlay o.yaml --format " + format);
    INFO(format << run.err);
    CHECK(run.exit == 2);
    CHECK(run.out.empty());
    CHECK(run.err.find("'o.yaml' calibrates none of the tables' machines: ") != std::string::npos);
  }
}

TEST_CASE("validate and calibrate say how a machine was found, and warn of guesses and of other GPUs") {
  const Folder folder;
  folder.write("all_reduce.log", log_text);
  for (const std::string command : {"validate", "calibrate"}) {
    const auto run = [&](const std::string& options) {
      return run_shell(with_data + "collcast " + command + " --measured all_reduce.log " + options, folder.path());
    };
    const Json guessed = Json::parse(run("--format json").out);
    // The log's one row is fewer than what is fitted to it, which calibrate says too.
    REQUIRE(guessed["warnings"].size() == (command == "calibrate" ? 2 : 1));
    const std::string text = guessed["warnings"][0];
    CHECK(text.find("all_reduce: ") == 0);
    CHECK(text.find("is a guess by the GPU 'NVIDIA H100 80GB HBM3'") != std::string::npos);
    CHECK(run("").out.find("warning: " + text) != std::string::npos);
    const Json other = Json::parse(run("--topology dgx-a100 --format json").out);
    CHECK(other["warnings"][0] == "all_reduce: measured on 'NVIDIA H100 80GB HBM3', dgx-a100 has 'A100-SXM4-80GB'");
    CHECK(Json::parse(run("--topology dgx-h100 --format json").out)["warnings"].size() ==
          (command == "calibrate" ? 1 : 0));
    if (command == "calibrate") CHECK(guessed["machines"][0]["matched_by"] == Json::array({"gpu"}));
  }
}

TEST_CASE("standard input and pipes are read like files") {
  const Folder folder;
  folder.write("all_reduce.log", log_text);
  const Json file = Json::parse(validate(folder, "--measured all_reduce.log --topology dgx-h100 --format json").out);
  const std::string options = " --topology dgx-h100 --collective all_reduce --format json";
  for (const std::string source : {"--measured - < all_reduce.log", "--measured <(cat all_reduce.log)"}) {
    const auto run = run_shell(with_data + "bash -c 'collcast validate " + options + " " + source + "'", folder.path());
    INFO(run.err);
    REQUIRE(run.exit == 0);
    Json piped = Json::parse(run.out);
    piped["tables"][0]["id"] = file["tables"][0]["id"];
    CHECK(piped["tables"] == file["tables"]);
  }
  // More than the first look at a file takes.
  std::string chatter;
  while (chatter.size() < 200'000) chatter += "node1:1:2 [0] NCCL INFO Channel 00/02 : 0 1\n";
  folder.write("long.log", chatter + log_text);
  CHECK(validate(folder, "--measured - --topology dgx-h100 --collective all_reduce < long.log").exit == 0);
  const auto empty = validate(folder, "--measured - < /dev/null");
  CHECK(empty.exit == 2);
  CHECK(empty.err.find("standard input:1:1: error: the file is empty") != std::string::npos);
  const auto twice = validate(folder, "--measured - - < all_reduce.log");
  CHECK(twice.exit == 2);
  CHECK(twice.err.find("standard input is named twice") != std::string::npos);
}

TEST_CASE("the CSV lists what could not be scored, with the reason") {
  const Folder folder;
  std::filesystem::create_directories(folder.path() / "logs");
  folder.write("logs/all_reduce.log", log_text);
  folder.write("logs/empty.log", "");
  const auto run = validate(folder, "--measured logs --topology dgx-h100 --format csv");
  REQUIRE(run.exit == 0);
  const std::string heading = run.out.substr(0, run.out.find('\n'));
  CHECK(heading.ends_with(",why_unscored"));
  const std::string last = run.out.substr(run.out.rfind('\n', run.out.size() - 2) + 1);
  CHECK(last.starts_with("empty.log,,"));
  CHECK(last.find("the file is empty (line 1)") != std::string::npos);
  CHECK(std::count(last.begin(), last.end(), ',') == std::count(heading.begin(), heading.end(), ','));
}

TEST_CASE("a report of a validation begins with the summary, and passes its warnings on") {
  const Folder folder;
  folder.write("all_reduce.log", log_text);
  REQUIRE(validate(folder, "--measured all_reduce.log --topology dgx-a100 --output v.json").exit == 0);
  const std::string page = run_shell("collcast report v.json", folder.path()).out;
  const std::size_t table = page.find("\nvalidation\n");
  REQUIRE(table != std::string::npos);
  const std::size_t heading = table + 12, first = page.find('\n', heading) + 1;
  const std::string titles = page.substr(heading, first - heading - 1);
  CHECK(titles.find("median_ape") != std::string::npos);
  CHECK(titles.find(" ape") == std::string::npos);  // no row has one
  CHECK(page.substr(first).find("  validation: summary all_reduce small") == 0);
  CHECK(page.find("warning: validation: all_reduce: measured on 'NVIDIA H100 80GB HBM3'") != std::string::npos);
}

TEST_CASE("budgets: met, missed by how much, and exit 1") {
  const Folder folder;
  const std::string ideal = "--library ideal --measured ";
  CHECK(validate(folder, ideal + one_table + " --budget 'large=95%'").exit == 0);
  CHECK(validate(folder, ideal + one_table + " --max-median-ape 'all_reduce.small=1%'").exit == 1);
  CHECK(validate(folder, ideal + one_table + " --budget 'large=95%,small=9%,large=1%'").exit == 2);
  const auto missed = validate(folder, ideal + one_table + " --budget 'large=95%,all_reduce.small=1%'");
  CHECK(missed.exit == 1);
  // Said once: by the page that is read, else on the error stream.
  CHECK(missed.err.empty());
  CHECK(missed.out.find("budget all_reduce.small: missed, 91.") != std::string::npos);
  CHECK(missed.out.find("instead of 1.0%") != std::string::npos);
  for (const std::string elsewhere : {"--format json", "--output page.md"}) {
    const auto told = validate(folder, ideal + one_table + " --budget all_reduce.small=1% " + elsewhere);
    CHECK(told.exit == 1);
    CHECK(told.err.find("budget all_reduce.small: missed, 91.") == 0);
  }
}

TEST_CASE("a summary of set-ups whose health nobody tells does not call them sound") {
  const Folder folder;
  folder.write("all_reduce.log", log_text);
  const auto summary = [&](const std::string& tables_read) {
    return Json::parse(
        validate(folder, "--measured " + tables_read + " --topology dgx-a100 --format json").out)["summary"];
  };
  for (const Json& row : summary("all_reduce.log")) CHECK(row["healthy"].is_null());
  for (const Json& row : summary(one_table)) CHECK(row["healthy"] == true);
  for (const Json& row : summary(one_table + " all_reduce.log")) CHECK(row["healthy"].is_null());
}

TEST_CASE("a malformed budget is an error at its place") {
  const Folder folder;
  const auto run = validate(folder,
                            "--budget large --budget 'larg=8%' --budget 'small=8' --budget 'all_redce.small=8%' "
                            "--budget 'small=8%,large=-1%'");
  CHECK(run.exit == 2);
  CHECK(run.out.empty());
  CHECK(run.err.find("--budget large:1:10: error: 'large' is no budget") != std::string::npos);
  CHECK(run.err.find("unknown band 'larg'\n    hint: did you mean 'large'?") != std::string::npos);
  CHECK(run.err.find("--budget small=8:1:16: error: the limit is '8'") != std::string::npos);
  CHECK(run.err.find("unknown collective 'all_redce'\n    hint: did you mean 'all_reduce'?") != std::string::npos);
  CHECK(run.err.find("--budget small=8%,large=-1%:1:25: error: the limit is '-1%'") != std::string::npos);
}

TEST_CASE("what cannot be read is said, all of it, and nothing is printed") {
  const Folder folder;
  folder.write("empty.log", "");
  folder.write("text.log", "no measurement\n");
  folder.write("bad.csv", "collective,size_bytes,time_us,algbw_gbps,busbw_gbps,inplace\nall_reduce,8,x,0,0,0\n");
  const auto run = validate(folder, "--measured missing.log empty.log text.log bad.csv --library ncc --method guess");
  CHECK(run.exit == 2);
  CHECK(run.out.empty());
  CHECK(run.err.find("'missing.log' does not exist") != std::string::npos);
  CHECK(run.err.find("empty.log:1:1: error: the file is empty") != std::string::npos);
  CHECK(run.err.find("text.log:1:1: error: there is no row of nccl-tests in this file") != std::string::npos);
  CHECK(run.err.find("bad.csv:2:14: error: time_us is 'x'") != std::string::npos);
  CHECK(run.err.find("'ncc'") != std::string::npos);
  CHECK(run.err.find("'guess'") != std::string::npos);
}

TEST_CASE("a bad file of a folder is listed with its reason and takes nothing from the others") {
  const Folder folder;
  std::filesystem::create_directories(folder.path() / "logs");
  folder.write("logs/all_reduce.log", log_text);
  folder.write("logs/empty.log", "");
  const auto run = validate(folder, "--measured logs --format json");
  REQUIRE(run.exit == 0);
  const Json document = Json::parse(run.out);
  CHECK(document["tables"].size() == 1);
  REQUIRE(document["unscored"].size() == 1);
  CHECK(document["unscored"][0]["id"] == "empty.log");
  CHECK(document["unscored"][0]["why"] == "the file is empty (line 1)");
  CHECK(run.err.find("empty.log:1:1: warning: the file is empty: the file is left out") != std::string::npos);
}

TEST_CASE("a missed budget of a saved validation breaks a report") {
  const Folder folder;
  CHECK(validate(folder, "--measured " + one_table + " --budget 'large=95%,small=1%' --output v.json").exit == 1);
  const auto report = run_shell("collcast report v.json --output r.md --output r.xml", folder.path());
  CHECK(report.exit == 1);
  CHECK(folder.read("r.md").find("1 of 2 gates broken") != std::string::npos);
  CHECK(folder.read("r.md").find("all.small.median_ape") != std::string::npos);
  CHECK(folder.read("r.xml").find("failures=\"1\"") != std::string::npos);
}

TEST_CASE("a log that breaks off is scored with a warning on standard error") {
  const Folder folder;
  folder.write("all_reduce.log", log_text.substr(0, log_text.find("# Out")));
  const auto run = validate(folder, "--measured all_reduce.log");
  CHECK(run.exit == 0);
  CHECK(run.err.find("all_reduce.log:5:1: warning: the log ends without 'Out of bounds values'") != std::string::npos);
}

TEST_CASE("nothing of a table's names acts on a terminal or in Markdown") {
  const Folder folder;
  folder.write("<script>alert(1)<_script>.log", log_text);
  const auto run =
      validate(folder, "--measured '<script>alert(1)<_script>.log' --collective all_reduce --format markdown");
  REQUIRE(run.exit == 0);
  CHECK(run.out.find("<script>") == std::string::npos);
}
