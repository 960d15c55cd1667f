// An overlay in every command that forecasts collectives: links scaled, the base latency in front of each.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

#include "cli/process.hpp"
#include "shipped.hpp"

using namespace collcast::test;
using Json = nlohmann::json;

namespace {

// Half the rate and twice the latency of NVLink, and 20 us in front.
const std::string overlay =
    "schema: collcast.overlay.v1\nfitted_by: \"collcast 0.1.0\"\nmachines:\n  - machine: dgx-h100\n"
    "    base_latency: 20us\n    latency_scale: 2\n    efficiency: {nvlink: 0.5, pcie: 1, network: 1}\n";

struct Bench {
  Bench() { folder.write("o.yaml", overlay); }
  Outcome run(const std::string& command) const { return run_shell(with_data + "collcast " + command, folder.path()); }
  Json document(const std::string& command) const {
    const Outcome out = run(command + " --format json");
    INFO(out.err);
    REQUIRE_FALSE(out.out.empty());
    return Json::parse(out.out);
  }
  Folder folder;
};

}  // namespace

TEST_CASE("a step's collectives run on calibrated links and begin with the base latency, by both methods") {
  const Bench bench;
  for (const std::string method : {"estimate", "simulate"}) {
    const std::string step = "step llama3-8b-8xh100 --algorithm ring --chunks 1 --method " + method;
    const Json plain = bench.document(step), fitted = bench.document(step + " --overlay o.yaml");
    CHECK(plain["machine"]["calibrated"] == false);
    CHECK(fitted["machine"]["calibrated"] == true);
    CHECK(fitted["machine"]["digest"] != plain["machine"]["digest"]);
    CHECK(fitted["inputs"]["collectives"]["base_latency_s"].get<double>() == Approx(20e-6));
    REQUIRE(fitted["collectives"].size() == plain["collectives"].size());
    for (std::size_t i = 0; i < plain["collectives"].size(); ++i) {
      // With one chunk a ring is a sum of N/B and latencies inside the node: all of it doubles.
      const double before = plain["collectives"][i]["time_s"], after = fitted["collectives"][i]["time_s"];
      CHECK(after == Approx(2 * before + 20e-6).epsilon(1e-6));
    }
    const auto computing = [](const auto& doc) {
      return doc["breakdown"]["compute_s"].template get<double>() - doc["slowdown"]["dp_s"].template get<double>();
    };
    CHECK(computing(fitted) == Approx(computing(plain)));
    CHECK(fitted["step_s"].get<double>() > plain["step_s"].get<double>());
  }
}

TEST_CASE("a plan ranks by calibrated times: its best layout costs what the step of it does") {
  const Bench bench;
  const std::string layout = "llama3-8b-8xh100 --overlay o.yaml";
  const Json plan = bench.document(
      "plan " + layout + " --tp 2 --pp 1 --dp 4 --micro-batch 1 --sequence-parallel true --recompute none --zero 1");
  CHECK(plan["machine"]["calibrated"] == true);
  const Json step = bench.document("step " + layout);
  REQUIRE(plan["ranked"].size() == 1);
  CHECK(plan["ranked"][0]["estimate_s"].get<double>() == Approx(step["estimate_s"].get<double>()));
  CHECK(plan["ranked"][0]["step_s"].get<double>() == Approx(step["step_s"].get<double>()));
  CHECK(bench.run("plan " + layout + " --tp 2").out.find("20 us come in front of every collective") !=
        std::string::npos);
}

TEST_CASE("of several variants the one on another machine is planned as described, and named") {
  const Bench bench;
  const std::string plan =
      "plan llama3-70b-64xh100 --overlay o.yaml --tp 8 --pp 4 --micro-batch 1 --sequence-parallel "
      "true --recompute none --zero 1 --simulate 0 --what-if ";
  const Json all = bench.document(plan + "all");
  const std::string note =
      "what_if 'nvl72' runs on gb200-nvl72, which the overlay does not calibrate: its figures are "
      "those of the data sheet";
  REQUIRE_FALSE(all["notes"].empty());
  CHECK(all["notes"].back() == note);  // behind what was not searched
  int racks = 0;
  for (const Json& variant : all["variants"]) {
    const bool rack = variant["what_if"] == "nvl72";
    CHECK(variant["machine"]["calibrated"] == !rack);
    if (rack) CHECK_FALSE(variant["best"].is_null());
    racks += rack ? 1 : 0;
  }
  CHECK(racks == 1);
  CHECK(all["variants"].size() > 3);
  const Outcome page = bench.run(plan + "all");
  CHECK(page.out.find("note: " + note) != std::string::npos);
  CHECK(page.out.find("64 GPUs of dgx-h100, calibrated (8 nodes)") != std::string::npos);
  CHECK(page.out.find("64 of the 72 GPUs of gb200-nvl72 (1 node)") != std::string::npos);
  // Asked for by itself it is the one that the overlay was given for.
  const Outcome alone = bench.run(plan + "nvl72");
  CHECK(alone.exit == 2);
  CHECK(alone.err.find("'o.yaml' does not calibrate 'gb200-nvl72'") != std::string::npos);
}

TEST_CASE("explain takes the overlay, and its totals are those of the forecast") {
  const Bench bench;
  const std::string what = "collective all_reduce --topology dgx-h100 --size 1MiB --algorithm ring --overlay o.yaml";
  const Json row = bench.document(what)["rows"][0];
  const Outcome explained = bench.run("explain " + what);
  REQUIRE(explained.exit == 0);
  CHECK(explained.out.find("dgx-h100, calibrated: ring") != std::string::npos);
  CHECK(explained.out.find("base latency = 20 us") != std::string::npos);
  const Json document = bench.document("explain " + what);
  int compared = 0;
  for (const Json& term : document["terms"]) {
    const bool estimated = term["name"] == "estimate";
    if (term["section"] != "total" || !(estimated || term["name"] == "simulation")) continue;
    CHECK(term["value"].get<double>() == Approx(row[estimated ? "estimate_s" : "simulate_s"].get<double>()));
    ++compared;
  }
  CHECK(compared == 2);
  // The commands that a step's explanation gives carry the overlay on.
  CHECK(bench.run("explain step llama3-8b-8xh100 --overlay o.yaml --method estimate").out.find("--overlay o.yaml") !=
        std::string::npos);
}

TEST_CASE("an overlay keeps the description that it was fitted on, and warns where it is used on another") {
  const Bench bench;
  bench.folder.write("t.csv",
                     "collective,size_bytes,time_us,algbw_gbps,busbw_gbps,inplace\nall_reduce,1024,40,0,0,0\n"
                     "all_reduce,1048576,60,0,0,0\nall_reduce,1073741824,5000,0,0,0\n");
  const std::string table = " --measured t.csv --topology dgx-h100 --ranks 8 --nodes 1 ";
  const std::string set = "--set network.link.bandwidth=200Gb/s";
  REQUIRE(bench.run("calibrate" + table + set + " --output fit.yaml").exit == 0);
  const std::string file = bench.folder.read("fit.yaml");
  const std::string digest =
      bench.document("collective all_reduce --topology dgx-h100 --size 1KiB " + set)["machine"]["digest"];
  const std::string shipped =
      bench.document("collective all_reduce --topology dgx-h100 --size 1KiB")["machine"]["digest"];
  CHECK(file.find("    description: \"" + digest + "\"\n    set:\n      - 'network.link.bandwidth=200Gb/s'\n") !=
        std::string::npos);
  const std::string both = "the overlay was fitted on another description of dgx-h100: " + digest +
                           " (set network.link.bandwidth=200Gb/s), here it is " + shipped + " (nothing set)";
  const std::string plan = "plan llama3-8b-8xh100 --tp 2 --pp 1 --micro-batch 1 --simulate 0";
  for (const std::string& command :
       {std::string("collective all_reduce --topology dgx-h100 --size 1KiB"), "validate" + table,
        std::string("explain collective all_reduce --topology dgx-h100 --size 1KiB"),
        std::string("step llama3-8b-8xh100"), std::string("explain step llama3-8b-8xh100"), plan}) {
    INFO(command);
    const Outcome out = bench.run(command + " --overlay fit.yaml --format json");
    REQUIRE(out.exit == 0);
    CHECK(out.err.find(both) != std::string::npos);
    const Json warnings = Json::parse(out.out)["warnings"];
    const auto says = [&](const Json& w) { return w.get<std::string>().find(both) != std::string::npos; };
    CHECK(std::count_if(warnings.begin(), warnings.end(), says) == 1);
    // The commands that an explanation gives carry it on as it was typed.
    if (!command.starts_with("explain step")) CHECK(out.out.find("fit.yaml") == std::string::npos);
  }
  // On its own description it is silent; a variant that changes it is named.
  const Outcome own = bench.run("collective all_reduce --topology dgx-h100 --size 1KiB --overlay fit.yaml " + set);
  CHECK(own.err.empty());
  REQUIRE(bench.run("calibrate" + table + " --output plain.yaml").exit == 0);
  const Outcome variants = bench.run(
      "plan llama3-70b-64xh100 --tp 8 --pp 4 --micro-batch 1 --simulate 0 --what-if all --overlay plain.yaml");
  CHECK(variants.err.find("what_if 'double-ib': the overlay was fitted on another description") != std::string::npos);
  CHECK(variants.err.find("(set network.link.bandwidth=800Gb/s)") != std::string::npos);
  CHECK(variants.err.find("half-cluster") == std::string::npos);
}

TEST_CASE("calibrated or not is said by explain, on a report's page, and by compare; inputs have a digest") {
  const Bench bench;
  CHECK(bench.run("explain step llama3-8b-8xh100 --method estimate --overlay o.yaml")
            .out.find("llama3-8b-8xh100 on dgx-h100, calibrated, library ideal: step of ") == 0);
  CHECK(bench.document("explain step llama3-8b-8xh100 --method estimate --overlay o.yaml")["terms"][0]["name"] ==
        "base latency");
  CHECK(bench.run("explain step llama3-8b-8xh100 --method estimate").out.find("alibrated") == std::string::npos);

  bench.folder.write("t.csv",
                     "collective,size_bytes,time_us,algbw_gbps,busbw_gbps,inplace\nall_reduce,1024,40,0,0,0\n");
  const std::string validate = "validate --measured t.csv --topology dgx-h100 --ranks 8 --nodes 1",
                    collective = "collective all_reduce --topology dgx-h100 --size 1KiB",
                    plan = "plan llama3-8b-8xh100 --tp 2 --pp 1 --micro-batch 1 --simulate 0",
                    step = "step llama3-8b-8xh100 --method estimate";
  for (const std::string& command : {validate, collective, plan, step}) {
    INFO(command);
    REQUIRE(bench.run(command + " --output plain.json").exit == 0);
    // Slower links may break a gate of the scenario; the document is there.
    REQUIRE(bench.run(command + " --output fitted.json --overlay o.yaml").exit <= 1);
    const Json changes = Json::parse(bench.run("compare plain.json fitted.json --format json").out)["results"][0];
    const std::string before = changes["base_inputs_digest"], after = changes["new_inputs_digest"];
    CHECK(before.starts_with("fnv1a64:"));
    CHECK(after.starts_with("fnv1a64:"));
    CHECK(before != after);
    const auto told = [&](const Json& f) {
      return f["name"].get<std::string>().ends_with("calibrated") && f["base"] == "false" && f["new"] == "true";
    };
    CHECK(std::count_if(changes["inputs"].begin(), changes["inputs"].end(), told) == 1);
    CHECK(Json::parse(bench.run("compare plain.json plain.json --format json").out)["results"][0]["inputs"].empty());
    const std::string page = bench.run("report fitted.json").out;
    CHECK(page.find(command == plan ? "plan of llama3-8b-8xh100, calibrated: best layout" : "dgx-h100, calibrated") !=
          std::string::npos);
    CHECK(bench.run("report plain.json").out.find("calibrated") == std::string::npos);
    for (const char* file : {"plain.json", "fitted.json"})
      CHECK(bench.folder.read(file).find(bench.folder.path().string()) == std::string::npos);
  }
  CHECK(bench.document(collective + " --overlay o.yaml")["inputs"]["base_latency_s"].get<double>() == Approx(20e-6));
}

TEST_CASE("calibrate writes what each file's suffix says: YAML is the overlay, other formats the report") {
  const Bench bench;
  bench.folder.write("t.csv",
                     "collective,size_bytes,time_us,algbw_gbps,busbw_gbps,inplace\nall_reduce,1024,40,0,0,0\n");
  const std::string calibrate = "calibrate --measured t.csv --topology dgx-h100 --ranks 8 --nodes 1 ";
  const Outcome three = bench.run(calibrate + "--output fit.yaml --output fit.JSON --output fit.csv");
  CHECK(three.exit == 0);
  CHECK(three.out.empty());
  CHECK(bench.folder.read("fit.yaml").find("schema: collcast.overlay.v1") != std::string::npos);
  const Json report = Json::parse(bench.folder.read("fit.JSON"));
  CHECK(report["schema"] == "collcast.calibrate.v1");
  // Of the machine as it is described, as the overlay has it and as other documents do.
  const std::string digest = report["machines"][0]["digest"];
  CHECK(bench.folder.read("fit.yaml").find("description: \"" + digest + "\"") != std::string::npos);
  CHECK(bench.document("collective all_reduce --topology dgx-h100 --size 8 --method estimate")["machine"]["digest"] ==
        digest);
  CHECK(bench.run("report fit.JSON").out.find(digest) != std::string::npos);
  CHECK(bench.folder.read("fit.csv").starts_with("topology,"));
  // The overlay alone leaves the report on standard output, in the format asked for.
  const Outcome shown = bench.run(calibrate + "--output other.yml --format json");
  CHECK(Json::parse(shown.out)["schema"] == "collcast.calibrate.v1");
  const auto behind_the_command = [&](const char* file) {
    const std::string text = bench.folder.read(file);
    return text.substr(text.find("\n", text.find("# Made by: ")));
  };
  CHECK(behind_the_command("other.yml") == behind_the_command("fit.yaml"));
  const Outcome html = bench.run(calibrate + "--output fit.html");
  CHECK(html.exit == 2);
  CHECK(html.err ==
        "--output fit.html:1:10: error: no format has the suffix '.html'\n"
        "    hint: expected .yaml or .yml for the overlay; .json, .csv, .md, .markdown or .txt for the report\n");
  CHECK(bench.run(calibrate + "--output fit.md --format json")
            .err.find("--format is for the report on standard output") != std::string::npos);
}

TEST_CASE("an overlay says what command made it, without folders of this machine, and residuals are by row") {
  const Bench bench;
  bench.folder.write("t.csv",
                     "collective,size_bytes,time_us,algbw_gbps,busbw_gbps,inplace\nall_reduce,1024,40,0,0,0\n"
                     "all_reduce,2048,44,0,0,0\n");
  const std::string folder = bench.folder.path().string();
  const Outcome done = bench.run("calibrate --measured " + folder + "/t.csv --topology dgx-h100 --ranks 8 --nodes=1 " +
                                 "--set gpu.model='H100 SXM' --set gpu.source=" + folder + "/a..b --output " + folder +
                                 "/fit.yaml --residuals=" + folder + "/rows.csv");
  CHECK(done.exit == 0);
  const std::string overlay = bench.folder.read("fit.yaml");
  CHECK(overlay.find("\n# Made by: collcast calibrate --measured t.csv --topology dgx-h100 --ranks 8 --nodes=1 --set "
                     "'gpu.model=H100 SXM' --set gpu.source=a..b --output fit.yaml --residuals=rows.csv\n") !=
        std::string::npos);
  // What was set is kept as it was, for whom the overlay is for.
  const std::string header = overlay.substr(0, overlay.find("\nschema:"));
  CHECK(header.find(folder) == std::string::npos);
  CHECK(overlay.find("\n# Furthest off of 2 rows, one of a table") != std::string::npos);
  const std::string rows = bench.folder.read("rows.csv");
  CHECK(
      rows.starts_with("topology,id,collective,nodes,ranks,size_bytes,in_place,measured_s,predicted_before_s,"
                       "predicted_s,error\ndgx-h100,t,all_reduce,1,8,1024,false,"));
  CHECK(std::count(rows.begin(), rows.end(), '\n') == 3);
  // It is an input's file nowhere.
  CHECK(bench.run("calibrate --measured t.csv --topology dgx-h100 --ranks 8 --nodes 1 --residuals t.csv").exit == 2);
}

TEST_CASE("where residuals cannot go is said before anything is fitted") {
  const Bench bench;
  const std::string calibrate = "calibrate --measured no-such.csv --topology dgx-h100 ";
  for (const auto& [options, what] :
       {std::pair("--residuals -", "error: the rows and the report would both be written to standard output"),
        std::pair("--residuals rows.json", "error: rows are written as CSV"),
        std::pair("--output one.csv --residuals one.csv", "error: 'one.csv' is --output, too")}) {
    INFO(options);
    const Outcome refused = bench.run(calibrate + options);
    CHECK(refused.exit == 2);
    CHECK(refused.out.empty());
    CHECK(refused.err.find(what) != std::string::npos);
  }
  // The page has a file, so that the rows may have standard output.
  const Outcome apart = bench.run(calibrate + "--output page.json --residuals -");
  CHECK(apart.err.find("standard output") == std::string::npos);
  CHECK(apart.err.find("no-such.csv") != std::string::npos);
}

TEST_CASE("an overlay for another machine, or for given times, is refused") {
  const Bench bench;
  const Outcome other = bench.run("step gpt3-512gpu --overlay o.yaml");
  CHECK(other.exit == 2);
  CHECK(other.err.find("'o.yaml' does not calibrate 'dgx-a100'") != std::string::npos);
  CHECK(other.err.find("it is for: dgx-h100") != std::string::npos);
  for (const std::string command : {"step llama3-8b-8xh100", "validate", "collective all_reduce --topology dgx-h100"}) {
    const Outcome stream = bench.run(command + " --overlay - < o.yaml");
    CHECK(stream.exit == 2);
    CHECK(stream.err.find("--overlay -:1:11: error: an overlay is not read from standard input") == 0);
  }
  const Outcome tasks = bench.run("step overlap-175b-layer --overlay o.yaml");
  CHECK(tasks.exit == 2);
  CHECK(tasks.err.find("--overlay has no effect on a scenario of tasks") != std::string::npos);
}

TEST_CASE("a calibration of library nccl: its forecasts, their intervals, and what is beyond it") {
  const Bench bench;
  bench.folder.write(
      "n.yaml",
      "schema: collcast.overlay.v1\nfitted_by: \"collcast 0.1.0\"\nmachines:\n  - machine: dgx-h100\n    library: "
      "nccl\n"
      "    factors: {launch: 2, network: 0.25}\n"
      "    fitted_to: {least_size: 8B, most_size: 1MiB, least_ranks: 2, most_ranks: 8, least_nodes: 1, "
      "most_nodes: 1, collectives: [all_gather]}\n"
      "    median_error:\n      large: {rows: 9, before: 0.3, after: 0.1, low: 0.75, high: 1.5}\n");
  const std::string command = "collective all_reduce --topology dgx-h100 --nodes 2 --library nccl --size 64MiB";
  const Json plain = bench.document(command), fitted = bench.document(command + " --overlay n.yaml");
  const double time = fitted["rows"][0]["estimate_s"];
  CHECK(plain["rows"][0]["interval_low_s"].is_null());
  CHECK(time > 1.4 * plain["rows"][0]["estimate_s"].get<double>());
  CHECK(fitted["rows"][0]["interval_low_s"].get<double>() == Approx(0.75 * time));
  CHECK(fitted["rows"][0]["interval_high_s"].get<double>() == Approx(1.5 * time));
  CHECK(fitted["machine"]["calibrated"] == true);
  CHECK(fitted["machine"]["digest"] != plain["machine"]["digest"]);
  const std::string page = bench.run(command + " --overlay n.yaml").out;
  CHECK(page.find("8 of 10 within") != std::string::npos);
  CHECK(page.find("calibrated: of what library nccl takes for all machines, launch 2, network 0.25") !=
        std::string::npos);
  CHECK(
      page.find("beyond what the calibration was fitted to: all_reduce (it has seen all_gather); sizes outside 8 B to "
                "1 MiB; ranks outside 2 to 8; nodes outside 1 to 1") != std::string::npos);
  const std::string explained = bench.run("explain " + command + " --overlay n.yaml").out;
  CHECK(explained.find("launch 2, network 0.25") != std::string::npos);
  CHECK(explained.find("8 of 10 measurements of such sizes are within ") != std::string::npos);
  CHECK(explained.find("beyond what the calibration was fitted to: all_reduce (it has seen all_gather)") !=
        std::string::npos);
  CHECK(bench.run("explain " + command).out.find("8 of 10") == std::string::npos);
  const std::string step = " step llama3-70b-64xh100 --method estimate --overlay n.yaml";
  const std::string beyond = "collectives beyond what the calibration was fitted to: ",
                    nodes = "groups on nodes outside 1 to 1";
  for (const std::string& out : {bench.run(step).out, bench.run("explain" + step).out}) {
    CHECK(out.find(beyond) != std::string::npos);
    CHECK(out.find(nodes) != std::string::npos);
  }
  CHECK(bench.run("plan llama3-8b-8xh100 --overlay n.yaml --simulate 0").out.find("of the best layout " + beyond) !=
        std::string::npos);
  // Each library has its own; nobody names one: the overlay's.
  CHECK(bench.document("collective all_reduce --topology dgx-h100 --overlay o.yaml")["rows"][0]["library"] == "ideal");
  const Outcome other = bench.run("collective all_reduce --topology dgx-h100 --library ideal --overlay n.yaml");
  CHECK(other.exit == 2);
  CHECK(other.err.find("this overlay is a calibration of library nccl") != std::string::npos);
  CHECK(other.err.find("expected --library nccl") != std::string::npos);
  const Outcome none = bench.run(command + " --overlay o.yaml");
  CHECK(none.exit == 2);
  CHECK(none.err.find("this overlay is a calibration of library ideal") != std::string::npos);
}

TEST_CASE("factors above line rate are warned of wherever an overlay is used, those at it are not") {
  const Folder folder;
  const auto warned = [&](const std::string& factors, const std::string& command) {
    folder.write("o.yaml",
                 "schema: collcast.overlay.v1\nfitted_by: x\nmachines:\n  - machine: dgx-h100\n    library: nccl\n"
                 "    factors: {" +
                     factors + "}\n");
    const Outcome out = run_shell(with_data + "collcast " + command + " --overlay o.yaml", folder.path());
    INFO(out.err);
    CHECK(out.exit == 0);
    const std::string says = "by its factors links or NICs of dgx-h100 carry more than their data sheet has: ";
    const std::size_t at = out.err.find(says), end = out.err.find('\n', at);
    return at == std::string::npos ? std::string() : out.err.substr(at + says.size(), end - at - says.size());
  };
  const std::string collective = "collective all_reduce --topology dgx-h100 --size 1MiB --method estimate";
  // NVLinks of Hopper reach 0.83 of the data sheet's rate as they are, NICs 0.975: 1 / 0.83 = 1.205, 1 / 0.975 = 1.026.
  const std::string both = "network 1.2, of which 1.03 is line rate; simple 3, of which 1.2 is line rate";
  CHECK(warned("simple: 3, network: 1.2, launch: 2", collective) == both);
  CHECK(warned("simple: 3, network: 1.2", "step llama3-8b-8xh100") == both);
  CHECK(warned("simple: 3, network: 1.2",
               "validate --topology dgx-h100 --measured " COLLCAST_SOURCE_DIR
               "/validation/data/nccl-tests/aic-h100-sxm-n8-nccl2.23-all_gather.csv") == both);
  CHECK(warned("simple: 1.204, network: 1.025, ll: 1, launch: 8", collective).empty());
}

TEST_CASE("validate leaves one table out, and says with what that has no meaning") {
  const Bench bench;
  const std::string tables = with_data.substr(0, 0) + "validate --library nccl --leave-one-out --measured " +
                             std::string(COLLCAST_SOURCE_DIR) +
                             "/validation/data/nccl-tests/aic-b300-sxm-n2-nccl2.29.2-";
  const Json two = bench.document(tables + "all_reduce.csv " + tables.substr(tables.find(" /") + 1) + "all_gather.csv");
  CHECK(two["tables"].size() == 2);
  CHECK(two["tables"][0]["calibrated"] == true);
  CHECK(two["inputs"]["leave_one_out"] == true);
  const Outcome one = bench.run(tables + "all_reduce.csv");
  CHECK(one.exit == 2);
  CHECK(one.err.find("no other table of its system to fit to") != std::string::npos);
  const Outcome both = bench.run(tables + "all_reduce.csv --overlay o.yaml --env NCCL_PROTO=LL");
  CHECK(both.exit == 2);
  CHECK(both.err.find("--leave-one-out and --overlay exclude each other") != std::string::npos);
  CHECK(both.err.find("--leave-one-out and --env exclude each other") != std::string::npos);
}

TEST_CASE("an overlay that is scored on what it was fitted to is warned about, on other tables it is not") {
  const Bench bench;
  const std::string csv =
      "collective,size_bytes,time_us,algbw_gbps,busbw_gbps,inplace\nall_reduce,1073741824,4000,268.4,469.8,0\n";
  bench.folder.write("mine.csv", csv);
  bench.folder.write("other.csv", csv);
  bench.folder.write("fitted.yaml", overlay + "    tables: [mine]\n");
  const std::string words = " --topology dgx-h100 --ranks 8 --library ideal --overlay fitted.yaml";
  const std::string warning = "1 of the 1 tables are among those that the overlay was fitted on";
  const Outcome seen = bench.run("validate --measured mine.csv" + words);
  CHECK_THAT(seen.err, Catch::Contains(warning) && Catch::Contains("--leave-one-out scores"));
  const Outcome unseen = bench.run("validate --measured other.csv" + words);
  CHECK_THAT(unseen.err, !Catch::Contains("fitted on"));
  CHECK(bench.document("validate --measured mine.csv" + words)["warnings"].dump().find(warning) != std::string::npos);
}

TEST_CASE("a log has no sidecar: an overlay beside it is written once more, in a folder of logs, too") {
  const Folder folder;
  const std::string log =
      "# nThread 1 nGpus 2\n#  Rank  0 Pid 11 on h device  0 [0x06] NVIDIA H100 80GB HBM3\n"
      "#  Rank  1 Pid 11 on h device  1 [0x07] NVIDIA H100 80GB HBM3\n"
      "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
      "1024 256 float sum -1 13.00 0.08 0.08 0 13.50 0.08 0.08 0\n# Out of bounds values : 0 OK\n";
  std::filesystem::create_directories(folder.path() / "logs");
  folder.write("all_reduce.log", log);
  folder.write("logs/all_reduce.log", log);
  for (const std::string places : {"all_reduce.log --output all_reduce.yaml", "logs --output logs/all_reduce.yaml"})
    for (int time = 0; time < 2; ++time) {
      const Outcome out =
          run_shell(with_data + "collcast calibrate --topology dgx-h100 --measured " + places, folder.path());
      INFO(places << "\n" << out.err);
      CHECK(out.exit == 0);
    }
}
