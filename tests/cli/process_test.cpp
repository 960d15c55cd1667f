// The program as a process: pipes that close, disks that are full, terminals.
#include "cli/process.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

using namespace collcast::test;

namespace {

const char* const list = "collcast topology list";
const std::filesystem::path here = std::filesystem::temp_directory_path();

bool has_escapes(const std::string& text) { return text.find('\033') != std::string::npos; }

/// A plan with Ctrl-C after a tenth of a second; on a machine that has not begun by then, a fifth later each time: it
/// is seen soon after it began, and seeing thousands of layouts of 512 GPUs takes longer than that.
Outcome interrupted_plan(const std::string& format) {
  Outcome outcome;
  for (double seconds = 0.1; seconds < 30 && outcome.out.empty(); seconds *= 1.2)
    outcome = run_shell("timeout --preserve-status --signal=INT " + std::to_string(seconds) +
                            " collcast plan gpt3-512gpu --library ideal --threads 1 --format " + format,
                        here);
  return outcome;
}

}  // namespace

TEST_CASE("a full disk is an error, for results as for help") {
  for (const char* command : {list, "collcast --help", "collcast --version", "collcast groups --tp 2 --format json"}) {
    const Outcome outcome = run_shell(std::string(command) + " >/dev/full", here);
    CHECK(outcome.exit == 2);
    CHECK(outcome.err == "standard output: error: the result could not be written: No space left on device\n");
  }
}

TEST_CASE("a pipe that nobody reads any more ends the program silently, with the code of SIGPIPE") {
  // The reader is gone before the writer starts: `sleep` holds the pipe's writing end until then.
  const Outcome outcome = run_shell("{ sleep 0.2; collcast groups --tp 512; echo $? >&2; } | true", here);
  CHECK(outcome.err == "141\n");
}

TEST_CASE("a closed standard output is an error") {
  const Outcome outcome = run_shell(std::string(list) + " >&-", here);
  CHECK(outcome.exit == 2);
}

TEST_CASE("colour only on a terminal, and not against NO_COLOR") {
  CHECK_FALSE(has_escapes(run_shell(list, here).out));
  CHECK(has_escapes(run_on_terminal(list, here).out));
  CHECK_FALSE(has_escapes(run_on_terminal(std::string("NO_COLOR=1 ") + list, here).out));
  CHECK(has_escapes(run_on_terminal(std::string("NO_COLOR= ") + list, here).out));  // empty does not count
  CHECK_FALSE(has_escapes(run_on_terminal(std::string("TERM=dumb ") + list, here).out));
  CHECK_FALSE(has_escapes(run_on_terminal(std::string(list) + " | cat", here).out));
}

TEST_CASE("results go to standard output and diagnostics to standard error") {
  const Outcome good = run_shell(list, here);
  CHECK(good.exit == 0);
  CHECK(good.err.empty());
  const Outcome bad = run_shell("collcast topology show no-such", here);
  CHECK(bad.exit == 2);
  CHECK(bad.out.empty());
  CHECK(bad.err.find("no-such") != std::string::npos);
}

TEST_CASE("--output writes the file and nothing on standard output") {
  const Folder folder;
  const Outcome outcome = run_shell("collcast groups --tp 2 --output groups.json", folder.path());
  CHECK(outcome.exit == 0);
  CHECK(outcome.out.empty());
  CHECK(folder.read("groups.json").find("collcast.groups.v1") != std::string::npos);
  CHECK(folder.listing() == "groups.json");
}

TEST_CASE("a suffix says the format in either case, and an unknown one is refused with those that are known") {
  const Folder folder;
  CHECK(run_shell("collcast groups --tp 2 --output g.JSON", folder.path()).exit == 0);
  CHECK(folder.read("g.JSON").find("collcast.groups.v1") != std::string::npos);
  const Outcome html = run_shell("collcast groups --tp 2 --output g.html", folder.path());
  CHECK(html.exit == 2);
  CHECK(html.err ==
        "--output g.html:1:10: error: no format has the suffix '.html'\n"
        "    hint: expected .json, .csv, .md, .markdown or .txt, or give --format; pages are written by 'collcast "
        "report'\n");
  CHECK(run_shell("collcast groups --tp 2 --format csv --output g.html", folder.path()).exit == 0);
  CHECK(folder.listing() == "g.JSON g.html");
}

TEST_CASE("two results do not go to one file, however it is spelt") {
  const Folder folder;
  const Outcome outcome = run_shell("collcast step overlap-175b-layer --trace x.json --output ./x.json", folder.path());
  CHECK(outcome.exit == 2);
  CHECK(outcome.err.find("two results would be written to './x.json'") != std::string::npos);
  CHECK(folder.listing().empty());
  CHECK(run_shell("collcast step overlap-175b-layer --trace /dev/null --output /dev/null", folder.path()).exit == 0);
}

TEST_CASE("'help' is the same as --help") {
  for (const char* command : {"", "collective", "topology show", "explain step"}) {
    const std::string words = command;
    CHECK(run_shell("collcast help " + words, here).out == run_shell("collcast " + words + " --help", here).out);
  }
  const Outcome misspelt = run_shell("collcast help topology shw", here);
  CHECK(misspelt.exit == 2);
  CHECK(misspelt.err.find("unknown command 'shw'\n    hint: did you mean 'show'?") != std::string::npos);
}

TEST_CASE("options that contradict each other are refused") {
  const auto refused = [&](const std::string& options) {
    const Outcome outcome = run_shell("collcast " + options, here);
    INFO(options << "\n" << outcome.err);
    CHECK(outcome.exit == 2);
    CHECK(outcome.err.find("contradicts") != std::string::npos);
  };
  const std::string step = "step overlap-175b-layer ";
  refused("collective broadcast --topology ring --link-latency 1us --set network.link.latency=2us");
  refused(step + "--link-bandwidth 1GB/s --set topology.network.link.bandwidth=2GB/s");
  refused(step + "--nodes 2 --set nodes=3");
  refused(step + "--chunks 2 --set collectives.chunks=3");
  CHECK(run_shell("collcast topology show ring --link-latency 1us --set network.link.latency=1us", here).exit == 0);
}

TEST_CASE("a failed command leaves the old file alone") {
  const Folder folder;
  folder.write("groups.json", "old");
  CHECK(run_shell("collcast groups --tp 0 --output groups.json", folder.path()).exit == 2);
  CHECK(folder.read("groups.json") == "old");
}

namespace {

/// A log whose rows as JSON are some 400 KiB: blocks of 64 KiB are written before all is formatted.
void write_log(const Folder& folder) {
  std::string log = "#       size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
  for (int i = 0; i < 1000; ++i) log += "1048576 262144 float sum -1 50.00 20.97 36.70 0 51.00 20.56 35.98 0\n";
  folder.write("long-all_reduce.log", log + "# Out of bounds values : 0 OK\n");
}
const std::string scored =
    "collcast validate --measured long-all_reduce.log --topology dgx-h100 --nodes 1 --ranks 8 --format json";

}  // namespace

TEST_CASE("a document that fails beyond its first block leaves the old file alone, and says why") {
  const Folder folder;
  write_log(folder);
  folder.write("old.json", "old");
  const std::string before = folder.listing();
  // 150 blocks of 512 bytes: POSIX's unit of ulimit -f.
  const Outcome limited = run_shell("trap '' XFSZ; ulimit -f 150; " + scored + " --output old.json", folder.path());
  CHECK(limited.exit == 2);
  CHECK(limited.err.find("cannot write 'old.json': File too large") != std::string::npos);
  CHECK(limited.err.find("nothing was written over") != std::string::npos);
  CHECK(folder.read("old.json") == "old");
  CHECK(folder.listing() == before);
  for (const char* full : {" --output /dev/full", " > /dev/full"}) {
    const Outcome outcome = run_shell(scored + full, folder.path());
    CHECK(outcome.exit == 2);
    CHECK(outcome.err.find("No space left on device") != std::string::npos);
  }
  const Outcome closed = run_shell("{ " + scored + "; echo $? > code; } | head -c 1; cat code", folder.path());
  CHECK(closed.out == "{141\n");
  CHECK(run_shell(scored + " --output old.json", folder.path()).exit == 0);
  CHECK(folder.read("old.json").size() > (1 << 18));
}

TEST_CASE("a signal while files are written ends the program by it, and what was written so far is gone") {
  for (const auto& [signal, code] : {std::pair("TERM", "143"), {"INT", "130"}, {"HUP", "129"}}) {
    const Folder folder;
    folder.write("step.json", run_shell("collcast step llama3-8b-8xh100 --method estimate --format json", here).out);
    folder.write("page.md", "old");
    // A pipe that nobody reads: its opening waits, when the first file has been written beside its place. Python starts
    // it with the usual handling, as a shell's children in the background ignore SIGINT.
    folder.write("end.py", R"(import glob, signal, subprocess, sys, time
number = signal.Signals["SIG" + sys.argv[1]]
p = subprocess.Popen(["collcast", "report", "step.json", "--output", "page.md", "--output", "pipe.json"],
                     preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
while not glob.glob("page.md.*.tmp") and p.poll() is None: time.sleep(0.01)
for attempt in range(60):  # the first SIGINT asks work to end, and the second ends the process
    p.send_signal(number)
    try: sys.exit(print(128 - p.wait(0.5)))
    except subprocess.TimeoutExpired: pass
p.kill()
)");
    const Outcome outcome = run_shell("mkfifo pipe.json; python3 end.py " + std::string(signal), folder.path());
    INFO(signal << "\n" << outcome.err);
    CHECK(outcome.out == code + std::string("\n"));
    CHECK(folder.read("page.md") == "old");
    CHECK(folder.listing().find(".tmp") == std::string::npos);
  }
}

TEST_CASE("no command writes over what it reads") {
  const Folder folder;
  const std::string scenario =
      "schema: collcast.scenario.v1\nname: a\ntopology: m.yaml\nnodes: 1\n"
      "model: {layers: 8, hidden: 4096, heads: 32, ffn: 16384, vocab: 32000}\n"
      "layout: {tp: 8}\nbatch: {sequence: 2048, global_batch: 8}\n";
  const std::string table = "collective,size_bytes,time_us,inplace\nall_reduce,1024,9.5,0\nall_reduce,2048,9.7,0\n";
  const std::string overlay =
      "schema: collcast.overlay.v1\nfitted_by: \"collcast 0.1.0\"\nmachines:\n  - machine: dgx-h100\n"
      "    base_latency: 20us\n    latency_scale: 2\n    efficiency: {nvlink: 0.5, pcie: 1, network: 1}\n";
  REQUIRE(run_shell("collcast step llama3-8b-8xh100 --output r.json && mkdir in && cp r.json in", folder.path()).exit ==
          0);
  folder.write("m.yaml", "schema: collcast.topology.v1\nextends: ./b.yaml\nname: dgx-h100\n");
  folder.write("b.yaml", "schema: collcast.topology.v1\nextends: dgx-h100\nname: b\ngpu: {kernels: k.yaml}\n");
  REQUIRE(run_shell("sed 's/^name: .*/name: k/' '" + std::string(COLLCAST_SOURCE_DIR) +
                        "/topologies/kernels/h100.yaml' > k.yaml",
                    folder.path())
              .exit == 0);
  std::filesystem::copy_file(std::string(COLLCAST_SOURCE_DIR) + "/topologies/kernels/gemm-h100.csv",
                             folder.path() / "gemm-h100.csv");
  const std::string sidecar = "id: t\ncollective: all_reduce\nsystem: s\nnodes: 1\nnranks: 8\n";
  folder.write("s.yaml", scenario);
  folder.write("t.csv", table);
  folder.write("t.yaml", sidecar);
  folder.write("o.yaml", overlay);
  const std::string machine = folder.read("m.yaml"), base = folder.read("b.yaml"), kernels = folder.read("k.yaml");
  const std::string result = folder.read("r.json");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"validate --measured t.csv --topology dgx-h100 --output t.csv",
       "'t.csv' would be written over the input 't.csv'"},
      {"validate --measured t.csv --topology dgx-h100 --format json --output ./t.yaml",
       "'./t.yaml' would be written over the input 't.yaml'"},
      {"validate --measured t.csv --topology dgx-h100 --overlay o.yaml --format json --output o.yaml",
       "the input 'o.yaml'"},
      {"calibrate --measured t.csv --topology dgx-h100 --output t.yaml", "the input 't.yaml'"},
      {"calibrate --measured t.csv --topology m.yaml --output m.yaml", "the input 'm.yaml'"},
      {"compare r.json in/r.json --output in/r.json", "the input 'in/r.json'"},
      {"compare in in --output in/r.json", "the input 'in/r.json'"},
      {"report r.json --output r.json", "the input 'r.json'"},
      {"report in --output in/r.json", "the input 'in/r.json'"},
      {"report s.yaml --format json --output s.yaml", "the input 's.yaml'"},
      {"step s.yaml --format json --output s.yaml", "the input 's.yaml'"},
      {"step s.yaml --trace m.yaml", "'m.yaml' would be written over the input"},
      {"plan s.yaml --format json --output m.yaml", "'m.yaml' would be written over the input"},
      {"plan s.yaml --overlay o.yaml --format json --output o.yaml", "the input 'o.yaml'"},
      {"explain step s.yaml --format json --output s.yaml", "the input 's.yaml'"},
      {"explain collective all_reduce --topology m.yaml --format json --output m.yaml", "the input 'm.yaml'"},
      {"collective all_reduce --topology m.yaml --overlay o.yaml --format json --output o.yaml", "the input 'o.yaml'"},
      {"collective all_reduce --topology m.yaml --format json --output b.yaml", "'b.yaml' would be written over"},
      {"groups --tp 2 --topology m.yaml --format json --output b.yaml", "'b.yaml' would be written over"},
      {"topology show m.yaml --format json --output b.yaml", "'b.yaml' would be written over"},
      {"topology check m.yaml --format json --output k.yaml", "'k.yaml' would be written over"},
      {"topology check m.yaml --set node=1 --format json --output m.yaml", "'m.yaml' would be written over"},
      {"topology check m.yaml --set node=1 --format json --output b.yaml", "'b.yaml' would be written over"},
      {"topology export m.yaml --output b.yaml", "'b.yaml' would be written over"},
      {"step s.yaml --format json --output b.yaml", "'b.yaml' would be written over"},
      {"step s.yaml --format json --output k.yaml", "'k.yaml' would be written over"},
      {"step s.yaml --format csv --output gemm-h100.csv", "'gemm-h100.csv' would be written over"},
      {"topology check m.yaml --format csv --output gemm-h100.csv", "'gemm-h100.csv' would be written over"},
      {"step s.yaml --list --format json --output s.yaml", "'s.yaml' would be written over"},
      {"report s.yaml --format json --output k.yaml", "'k.yaml' would be written over"},
      {"validate --measured t.csv --topology m.yaml --format json --output b.yaml", "'b.yaml' would be written over"}};
  for (const auto& [command, expected] : cases) {
    const Outcome outcome = run_shell("collcast " + command, folder.path());
    INFO(command << "\n" << outcome.err);
    CHECK(outcome.exit == 2);
    CHECK(outcome.err.find(expected) != std::string::npos);
  }
  CHECK(folder.read("s.yaml") == scenario);
  CHECK(folder.read("t.csv") == table);
  CHECK(folder.read("t.yaml") == sidecar);
  CHECK(folder.read("o.yaml") == overlay);
  CHECK(folder.read("m.yaml") == machine);
  CHECK(folder.read("b.yaml") == base);
  CHECK(folder.read("k.yaml") == kernels);
  CHECK(folder.read("r.json") == result);
  CHECK(folder.read("in/r.json") == result);
  // Another file in the same folder is nobody's input.
  CHECK(run_shell("collcast report in --output in/page.md", folder.path()).exit == 0);
}

TEST_CASE("the program finds its data from anywhere, also through a link to it") {
  const Folder folder;
  std::filesystem::create_symlink(COLLCAST_EXECUTABLE, folder.path() / "cc");
  CHECK(run_shell("./cc topology list", folder.path()).out == run_shell(list, here).out);
}

TEST_CASE("COLLCAST_DATA that holds nothing is named") {
  const Folder folder;
  const Outcome outcome = run_shell("COLLCAST_DATA=. collcast topology list", folder.path());
  CHECK(outcome.exit == 2);
  CHECK(outcome.err.find("COLLCAST_DATA") != std::string::npos);
}

TEST_CASE("Ctrl-C ends a plan with the best so far, marked partial, and 130") {
  const Outcome table = interrupted_plan("table");
  CHECK(table.exit == 130);
  CHECK(table.err.empty());
  CHECK(table.out.find("partial: stopped before every layout was seen") != std::string::npos);
  const Outcome json = interrupted_plan("json");
  CHECK(json.exit == 130);
  CHECK(json.out.find("\"partial\": true") != std::string::npos);
  CHECK(json.err.find("warning: partial: stopped before every layout was seen") != std::string::npos);
  const Outcome csv = interrupted_plan("csv");
  CHECK(csv.exit == 130);
  CHECK(csv.err.find("warning: partial: stopped before every layout was seen") != std::string::npos);
  const std::string heading = csv.out.substr(0, csv.out.find('\n'));
  CHECK(heading.ends_with(",partial"));
  std::istringstream rows(csv.out.substr(heading.size() + 1));
  for (std::string row; std::getline(rows, row);) CHECK(row.ends_with(",true"));
}

TEST_CASE("a plan is the same bytes from one, two and four threads") {
  const std::string plan = "collcast plan llama3-70b-64xh100 --tp 4,8 --simulate 2 --format json --threads ";
  const Outcome one = run_shell(plan + "1", here);
  CHECK(one.exit == 0);
  CHECK(one.out.size() > 1000);
  CHECK(run_shell(plan + "2", here).out == one.out);
  CHECK(run_shell(plan + "4", here).out == one.out);
  CHECK(run_shell(plan + "4", here).err.empty());
}

TEST_CASE("progress of a plan is shown on a terminal after a second, and nowhere else") {
  const std::string plan =
      "timeout --preserve-status --signal=INT 3 collcast plan gpt3-512gpu --library ideal --threads 1 --top 1";
  const std::string shown = run_on_terminal(plan, here).out;  // of closed forms, or on a quick machine of simulations
  INFO(shown);
  CHECK((shown.find("gpt3-512gpu layouts (") != std::string::npos ||
         shown.find("gpt3-512gpu simulating (") != std::string::npos));
  CHECK(run_shell(plan, here).err.empty());
}

TEST_CASE("progress of a validation and of a fit is shown on a terminal after a second, and nowhere else") {
  const auto shows = [](const std::string& command, const std::string& bar) {
    return run_on_terminal("collcast " + command, here, bar).out.find(bar) != std::string::npos;
  };
  CHECK(shows("validate --library ideal", "/189 scoring tables ("));
  CHECK(shows("calibrate --library ideal", "fitting "));
  CHECK(shows("validate --leave-one-out", "fitting to the others of "));
  CHECK(shows("validate --training --method simulate", " forecasting training steps ("));
  CHECK(shows("validate --inference", " forecasting servers ("));
  const std::string one =
      " --measured " + std::string(COLLCAST_SOURCE_DIR) + "/validation/data/nccl-tests/dgx2-1x12-broadcast.csv";
  CHECK(run_shell("collcast validate --library ideal" + one, here).err.find("scoring") == std::string::npos);
}

TEST_CASE("topology check and import read standard input, and name places in it") {
  const Folder folder;
  const std::string data = std::string(COLLCAST_SOURCE_DIR) + "/tests/exchange/data/made-8xa100-4nic-topo.txt";
  const std::string like = " --like aws-p4d --nic-rate 100Gb/s";
  const Outcome of_file = run_shell("collcast topology import " + data + like + " --name mine", folder.path());
  const Outcome piped = run_shell("collcast topology import - --name mine" + like + " < " + data, folder.path());
  REQUIRE(piped.exit == 0);
  // The same machine; where it is from is all that differs.
  std::string expected = of_file.out;
  const std::string name = "made-8xa100-4nic-topo.txt";
  for (auto at = expected.find(name); at != std::string::npos; at = expected.find(name, at))
    expected.replace(at, name.size(), "standard input");
  CHECK(piped.out == expected);
  const Outcome checked =
      run_shell("collcast topology import - " + like + " < " + data + " | collcast topology check -", folder.path());
  INFO(checked.err);
  CHECK(checked.exit == 0);
  CHECK(checked.out.find("machine") != std::string::npos);
  CHECK(checked.err.empty());
  // What a machine extends is found, as from the present folder.
  const std::string machine = "schema: collcast.topology.v1\\nname: mine\\nextends: dgx-h100\\n";
  CHECK(run_shell("printf '" + machine + "' | collcast topology check -", folder.path()).exit == 0);
  const Outcome wrong = run_shell("printf '" + machine + "nonsense: 1\\n' | collcast topology check -", folder.path());
  CHECK(wrong.exit == 2);
  CHECK(wrong.err.find("-:4:1: error: unknown key 'nonsense'") != std::string::npos);
  const Outcome foreign =
      run_shell("printf '<system version=\"1\">\\n<cpu' | collcast topology import -" + like, folder.path());
  CHECK(foreign.exit == 2);
  CHECK(foreign.err.starts_with("-:2:"));
  // Without --like, those with the file's GPUs are named; where no PCI id says which they are, those of their
  // capability.
  const std::string xml = std::string(COLLCAST_SOURCE_DIR) + "/tests/exchange/data/oci-h100-full-dump-topo.xml";
  const auto offered = [&](const std::string& edit) {
    const Outcome out = run_shell("sed '" + edit + "' " + xml + " | collcast topology import -", folder.path());
    CHECK(out.exit == 2);
    return out.err;
  };
  CHECK(offered("").find("with H100-SXM5-80GB there are: ") != std::string::npos);
  const std::string hopper = offered("s/device=\"0x2330\"/device=\"0xffff\"/");
  CHECK(hopper.find("with GPUs of compute capability 9.0 there are: ") != std::string::npos);
  CHECK(hopper.find("dgx-h200") != std::string::npos);
  CHECK(hopper.find("dgx-a100") == std::string::npos);
  // The format may be said, under either name of the option, and must be one that there is.
  for (const std::string option : {"--format", "--from"})
    CHECK(run_shell("collcast topology import - --name mine" + like + " " + option + " nvidia-smi < " + data,
                    folder.path())
              .out == piped.out);
  const Outcome unknown =
      run_shell("collcast topology import -" + like + " --format nvidia-sim < " + data, folder.path());
  CHECK(unknown.exit == 2);
  CHECK(unknown.err.find("--format: unknown word 'nvidia-sim'") != std::string::npos);
  CHECK(unknown.err.find("nvidia-smi") != std::string::npos);
  // A report of it in the place of the file, which goes where it is asked for.
  const std::string import = "collcast topology import - --name mine" + like;
  const Outcome report = run_shell(import + " --format json --output mine.yaml < " + data, folder.path());
  CHECK(report.exit == 0);
  CHECK(report.out.find("\"schema\": \"collcast.machine.v1\"") != std::string::npos);
  CHECK(run_shell("cat mine.yaml", folder.path()).out == piped.out);
  CHECK(run_shell("collcast topology show mine.yaml --format json", folder.path()).out == report.out);
  CHECK(run_shell(import + " --format csv --from nvidia-smi < " + data, folder.path()).exit == 0);
  const Outcome both = run_shell(import + " --format nvidia-smi --from nccl-xml < " + data, folder.path());
  CHECK(both.exit == 2);
  CHECK(both.err.find("--format nvidia-smi and --from nccl-xml are of one file") != std::string::npos);
  const Outcome graph = run_shell("collcast topology export ring --format markdown --output ring.dot", folder.path());
  CHECK(graph.out == run_shell("collcast topology show ring --format markdown", folder.path()).out);
  CHECK(run_shell("cat ring.dot", folder.path()).out == run_shell("collcast topology export ring", folder.path()).out);
  const Outcome other = run_shell("collcast topology import -" + like + " --format nccl-xml < " + data, folder.path());
  CHECK(other.exit == 2);
  CHECK(other.err.starts_with("-:1:"));
  // A stream gives a machine no name.
  const auto name_of = [&](const std::string& words) {
    const std::string text = run_shell("collcast topology import " + words + like + " < " + data, folder.path()).out;
    const auto at = text.find("\nname: ");
    REQUIRE(at != std::string::npos);
    return text.substr(at + 7, text.find('\n', at + 1) - at - 7);
  };
  CHECK(name_of("- --output -") == "machine");
  CHECK(name_of("-") == "machine");
  CHECK(name_of(data + " --output -") == "made-8xa100-4nic-topo");
  for (const std::string command : {"check -", "show -", "import - --like aws-p4d"}) {
    const Outcome empty = run_shell("collcast topology " + command + " < /dev/null", folder.path());
    CHECK(empty.exit == 2);
    CHECK(empty.err.find("standard input is empty") != std::string::npos);
  }
}

TEST_CASE("--why without a layout is a slip") {
  const Outcome outcome = run_shell("collcast plan llama3-8b-8xh100 --why ''", here);
  CHECK(outcome.exit == 2);
  CHECK(outcome.err.find("--why is empty") != std::string::npos);
  CHECK(outcome.out.empty());
}

TEST_CASE("'-' is standard output, of every command, and never a file") {
  const Folder folder;
  REQUIRE(run_shell("collcast step overlap-175b-layer --output r.json", folder.path()).exit == 0);
  const std::vector<std::string> commands{"collective all_reduce --topology ring --ranks 4 --size 8",
                                          "explain collective all_reduce --topology ring --ranks 4 --size 8",
                                          "explain step overlap-175b-layer",
                                          "step overlap-175b-layer",
                                          "step --list",
                                          "plan llama3-8b-8xh100 --method estimate --top 1",
                                          "groups --tp 2",
                                          "topology list",
                                          "topology show ring",
                                          "topology check ring",
                                          "topology export ring",
                                          "backends",
                                          "report r.json",
                                          "compare r.json r.json"};
  for (const std::string& command : commands) {
    const Outcome plain = run_shell("collcast " + command, folder.path());
    const Outcome dash = run_shell("collcast " + command + " --output -", folder.path());
    INFO(command << "\n" << dash.err);
    CHECK(dash.exit == plain.exit);
    CHECK(dash.out == plain.out);
  }
  for (const std::string command :
       {"step overlap-175b-layer --trace -", "report r.json --output - --output -", "calibrate --output -"}) {
    const Outcome two = run_shell("collcast " + command, folder.path());
    INFO(two.err);
    CHECK(two.exit == 2);
    CHECK(two.out.empty());
    CHECK(two.err.find("written to standard output") != std::string::npos);
  }
  CHECK(folder.listing() == "r.json");
}

TEST_CASE("a list has what can be read, by the names of the files, and an error for each other file") {
  const Folder folder;
  std::filesystem::create_directories(folder.path() / "topologies");
  std::filesystem::create_directories(folder.path() / "scenarios");
  const std::string machine = "schema: collcast.topology.v1\nname: other\nnode: {devices: {host: {kind: host}}}\n";
  const std::string scenario =
      "schema: collcast.scenario.v1\nname: other\ntopology: good\n"
      "tasks: {list: [{name: a, stream: s, duration: 1ms, category: compute}]}\n";
  folder.write("topologies/good.yaml", machine);
  folder.write("topologies/bad.yaml", machine + "nodde: 1\nnods: 1\n");
  folder.write("scenarios/good.yaml", scenario);
  folder.write("scenarios/bad.yaml", scenario + "taskss: 1\n");
  for (const std::string command : {"topology list", "step --list"}) {
    const Outcome found = run_shell("COLLCAST_DATA=. collcast " + command, folder.path());
    INFO(command << "\n" << found.out << found.err);
    CHECK(found.exit == 2);
    CHECK(found.out.find("good") != std::string::npos);
    CHECK(found.out.find("other") == std::string::npos);
    CHECK(found.err.find("bad.yaml:") != std::string::npos);
    CHECK(found.err.find("error:") == found.err.rfind("error:"));
  }
  std::filesystem::remove(folder.path() / "topologies/bad.yaml");
  CHECK(run_shell("COLLCAST_DATA=. collcast topology list", folder.path()).exit == 0);
  const Outcome checked = run_shell("COLLCAST_DATA=. collcast topology check good", folder.path());
  CHECK(checked.exit == 0);
  CHECK(checked.err.find("name is 'other', the file is called 'good.yaml'") != std::string::npos);
}

TEST_CASE("a file without a name is an error, and no result of it goes to standard output") {
  const Outcome out = run_shell("collcast groups --tp 2 --output ''", here);
  CHECK(out.exit == 2);
  CHECK(out.out.empty());
  CHECK(out.err.find("--output is empty") != std::string::npos);
}

TEST_CASE("groups as CSV say that what they cross is elsewhere") {
  const std::string words = "collcast groups --topology dgx-h100 --tp 8 --format ";
  CHECK(run_shell(words + "csv", here).err.find("crosses is not in CSV") != std::string::npos);
  CHECK(run_shell(words + "json", here).err.empty());
}
