// collcast.step.v1: its keys, its sums, and what is null without a model.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <sstream>

#include "collcast/report/documents.hpp"

using namespace collcast;
using Json = nlohmann::json;

namespace {

StepReport task_report() {
  StepReport report;
  report.scenario = "overlap";
  report.machine.topology = "dgx-a100";
  report.machine.nodes = 1;
  report.machine.ranks = 8;
  StepResult& r = report.result;
  r.estimate = Seconds(95e-3);
  r.simulate = Seconds(95e-3);
  r.step = Seconds(95e-3);
  r.breakdown.compute = Seconds(80e-3);
  r.breakdown.tp_exposed = Seconds(15e-3);
  return report;
}

StepReport model_report() {
  StepReport report = task_report();
  report.inputs = StepInputs();
  report.inputs->model.layers = 2;
  report.inputs->model.hidden = 64;
  report.inputs->batch = {128, 1, 4};
  report.result.memory.activations = Bytes(std::int64_t{1} << 30);
  report.result.memory.capacity = Bytes(std::int64_t{4} << 30);
  report.result.mfu = 0.5;
  report.result.micro_batches = 4;
  report.result.warnings = {"compute is only 1.5 times communication"};
  return report;
}

std::string step_text(const Page& page) {
  std::ostringstream out;
  write_text(out, page);
  return out.str();
}

}  // namespace

TEST_CASE("a step document has every key that other programs rely on") {
  const Json doc = Json::parse(json(model_report()));
  CHECK(doc.at("schema") == "collcast.step.v1");
  for (const char* key : {"step_s", "tokens_per_s_per_gpu", "model_flops_per_s_per_gpu", "mfu", "hfu"})
    CHECK(doc.at(key).is_number());
  for (const char* key : {"forward_s", "backward_s", "tp_comm_s", "tp_exposed_s"})
    CHECK(doc.at("layer").at(key).is_number());
  for (const char* key : {"parameters_bytes", "gradients_bytes", "optimizer_bytes", "activations_bytes",
                          "buffers_bytes", "peak_bytes", "capacity_bytes"})
    CHECK(doc.at("memory").at(key).is_number_integer());
  CHECK(doc.at("memory").at("breaks").is_null());
  StepReport large = model_report();
  large.result.memory.capacity = Bytes((std::int64_t{1} << 30) - 1);
  CHECK(Json::parse(json(large)).at("memory").at("breaks") == "activations_bytes");
  large.result.memory.context = large.result.memory.capacity + Bytes(1);
  CHECK(Json::parse(json(large)).at("memory").at("breaks") == "context_bytes");
  CHECK(doc.at("warnings").at(0) == "compute is only 1.5 times communication");
}

TEST_CASE("a step says how many GPUs its job has of how many") {
  StepReport report = model_report();
  report.inputs->layout.tp = 4;
  report.inputs->layout.pp = report.inputs->layout.dp = 1;
  report.machine.ranks = 72;
  report.machine.nodes = 1;
  report.machine.gpu = "GB200";
  CHECK(Json::parse(json(report)).at("gpus") == 4);
  CHECK(Json::parse(json(report)).at("machine").at("ranks") == 72);
  CHECK(step_text(page(report)).find("on 4 of the 72 GPUs of " + report.machine.topology + " (1 node)") !=
        std::string::npos);
  CHECK(Json::parse(json(task_report())).at("gpus").is_null());
}

TEST_CASE("the breakdown has its nine parts and they sum to the step") {
  const Json doc = Json::parse(json(model_report()));
  double sum = 0;
  for (const char* key : {"compute_s", "tp_exposed_s", "pp_exposed_s", "cp_exposed_s", "ep_exposed_s", "dp_exposed_s",
                          "bubble_s", "optimizer_s", "other_s"})
    sum += doc.at("breakdown").at(key).get<double>();
  CHECK(doc.at("breakdown").size() == 9);
  CHECK(sum == Approx(doc.at("step_s").get<double>()).epsilon(1e-12));  // 80 ms + 15 ms = 95 ms
}

TEST_CASE("what needs a model is null, not zero, for a graph of measured tasks") {
  const Json doc = Json::parse(json(task_report()));
  for (const char* key : {"tokens_per_s_per_gpu", "mfu", "hfu"}) CHECK(doc.at(key).is_null());
  CHECK(doc.at("layer").at("forward_s").is_null());
  CHECK(doc.at("memory").at("peak_bytes").is_null());
  CHECK(doc.at("inputs").is_null());
  CHECK(doc.at("step_s").get<double>() == 95e-3);
  CHECK(doc.at("compute_to_communication").is_null());
}

TEST_CASE("a graph of measured tasks has no library, a model's step says its own") {
  StepReport tasks = task_report(), model = model_report();
  tasks.machine.library = model.machine.library = "nccl";
  CHECK(Json::parse(json(tasks)).at("library").is_null());
  CHECK(step_text(page(tasks)).find("nccl") == std::string::npos);
  CHECK(Json::parse(json(explain(tasks))).at("library").is_null());
  CHECK(step_text(page(explain(tasks))).find("library") == std::string::npos);
  CHECK(Json::parse(json(model)).at("library") == "nccl");
  CHECK(step_text(page(model)).find("of dgx-a100 (1 node), library nccl\n") != std::string::npos);
}

TEST_CASE("what of computing is waits for the host's launches is said, and that launches are not modelled no longer") {
  StepReport report = model_report();
  report.result.micro_batches = 4;
  report.result.stage.units = {{"layer", 3, Seconds(6e-3), {}, {}, {}, Seconds(1e-3)},
                               {"head", 1, Seconds(2e-3), {}, {}, {}, Seconds(0.5e-3)}};
  CHECK(step_text(page(report)).find("for the host's launches") == std::string::npos);
  CHECK(step_text(page(report)).find("launch gaps of the CPU") != std::string::npos);
  CHECK(!Json::parse(json(report)).contains("host_waits_s"));
  report.inputs->options.launch = Seconds(10e-6);
  // 4 micro-batches of 3 layers of 1 ms and a head of 0.5 ms: 14 of 95 ms.
  CHECK(step_text(page(report))
            .find("of compute 14 ms (14.7% of the step) are waits for the host's launches of kernels\n") !=
        std::string::npos);
  CHECK(step_text(page(report)).find("launch gaps of the CPU") == std::string::npos);
  CHECK(Json::parse(json(report)).at("host_waits_s").get<double>() == Approx(14e-3));
  // Kernels that are slowed beside the exchange of gradients let passes wait less.
  report.result.slowdown.rate = 0.8;
  report.result.collectives = {{Dimension::dp, "dp all_reduce", {}, "ring", Seconds(1e-3), 5}};
  CHECK(step_text(page(report)).find("of compute at most 14 ms (14.7% of the step)") != std::string::npos);
  // Both slices of a stage pass half of the micro-batches each.
  report.inputs->layout.schedule = PipelineSchedule::dualpipe;
  CHECK(Json::parse(json(report)).at("host_waits_s").get<double>() == Approx(7e-3));
}

TEST_CASE("NCCL's collectives by closed form are said, and agreement is not, where there are any") {
  StepReport report = model_report();
  report.machine.library = "nccl";
  CHECK(step_text(page(report)).find("note: library nccl") == std::string::npos);
  CHECK(step_text(page(report)).find("they agree") != std::string::npos);
  report.result.collectives = {{Dimension::tp, "tp all_gather", {}, "ring", Seconds(1e-3), 5}};
  CHECK(step_text(page(report)).find("note: library nccl") != std::string::npos);
  // Both have the same times of collectives from one place: that they agree would be nothing to boast of.
  CHECK(step_text(page(report)).find("they agree") == std::string::npos);
  CHECK(step_text(page(report)).find("collectives by closed form in both") != std::string::npos);
  report.result.simulate = report.result.estimate * 1.25;
  CHECK(step_text(page(report)).find("simulation +25%") != std::string::npos);
  report.result.simulate = report.result.estimate;
  report.machine.library = "ideal";
  CHECK(step_text(page(report)).find("they agree") != std::string::npos);
  CHECK(step_text(page(report)).find("note: library nccl") == std::string::npos);
}

TEST_CASE("a step that was not simulated says so with null") {
  StepReport report = model_report();
  report.result.simulate.reset();
  CHECK(Json::parse(json(report)).at("simulate_s").is_null());
  CHECK(step_text(page(report)).find("closed form") != std::string::npos);
}

TEST_CASE("communication that is not exposed is hidden") {
  StepReport report = model_report();
  report.result.breakdown.dp_exposed = Seconds(2e-3);
  CollectiveCost reduce{Dimension::dp, "dp reduce_scatter", {}, "ring", Seconds(1e-3), 5};
  CollectiveCost embedding{Dimension::dp, "embedding all_reduce", {}, "ring", Seconds(1e-3), 1};
  report.result.collectives = {reduce, embedding};
  const Json doc = Json::parse(json(report));
  const Json& dp = doc.at("communication").at(2);
  CHECK(dp.at("dimension") == "dp");
  CHECK(dp.at("total_s").get<double>() == Approx(6e-3));   // 5 x 1 ms + 1 x 1 ms
  CHECK(dp.at("hidden_s").get<double>() == Approx(4e-3));  // 6 ms - 2 ms
}

TEST_CASE("bars are in proportion to the parts") {
  // 80 of 95 ms of 40 characters is 33.7, so 34; 15 of 95 is 6.3, so 6.
  const std::string shown = step_text(page(task_report()));
  CHECK(shown.find("84.2%  " + std::string(34, '#') + "\n") != std::string::npos);
  CHECK(shown.find("15.8%  " + std::string(6, '#') + "\n") != std::string::npos);
}

TEST_CASE("memory is shown against the capacity") {
  CHECK(step_text(page(model_report())).find("peak                   1.00       25.0%  ##########\n") !=
        std::string::npos);
}

TEST_CASE("the CSV of a step is its keys and values") {
  const Table table = csv(task_report());
  CHECK(std::find(table.rows.begin(), table.rows.end(), std::vector<std::string>{"breakdown.compute_s", "0.08"}) !=
        table.rows.end());
  CHECK(std::find(table.rows.begin(), table.rows.end(), std::vector<std::string>{"mfu", ""}) != table.rows.end());
}

TEST_CASE("kernels are listed when asked for") {
  StepReport report = model_report();
  report.result.operations.forward = {{"qkv", OperationKind::gemm, Flops(2e9), Volume(1024), Seconds(1e-6), "compute"}};
  CHECK(step_text(page(report)).find("qkv") == std::string::npos);
  report.list_operations = true;
  CHECK(step_text(page(report)).find("forward  qkv      2 G  1 KiB  1 us  compute") != std::string::npos);
}

TEST_CASE("a path of no length has no table") {
  StepReport report = task_report();
  report.result.critical_path = CriticalPath{};
  CHECK(step_text(page(report)).find("critical path") == std::string::npos);
}

TEST_CASE("the critical path is shown by kind and by run, and is null without a simulation") {
  StepReport report = task_report();
  CHECK(Json::parse(json(report)).at("critical_path").is_null());
  CriticalPath path;
  path.time = {Seconds(80e-3), Seconds(15e-3), {}, {}, {}, {}};
  path.by_stage = {path.time};
  path.runs = {{0, 2, "F mb0, send on", 3, {Seconds(9.5e-3), {}, {}, {}, {}, {}}}};
  report.result.critical_path = path;
  const Json doc = Json::parse(json(report)).at("critical_path");
  CHECK(doc.at("compute_s") == 80e-3);
  CHECK(doc.at("by_stage").at(0).at("tp_s") == 15e-3);
  CHECK(doc.at("runs").at(0).at("what") == "F mb0, send on");
  CHECK(doc.at("runs").at(0).at("time_s") == 9.5e-3);
  const std::string shown = step_text(page(report));
  CHECK(shown.find("critical path of the simulation: 84.2% compute, 15.8% TP\n") != std::string::npos);
  CHECK(shown.find("stages 0 ... 2  F mb0, send on      3  9.5 ms  10.0%\n") != std::string::npos);  // of 95 ms
}

TEST_CASE("with several pipeline stages the tables say of which one they are") {
  StepReport report = model_report();
  CHECK(step_text(page(report)).find("of the stage with") == std::string::npos);
  report.inputs->layout.pp = 4;
  report.result.stage.stage = 3;
  report.result.collectives = {{Dimension::pp, "pp sendrecv", {}, "direct", Seconds(1e-3), 5}};
  const std::string shown = step_text(page(report));
  for (const char* title :
       {"where the time goes", "communication of a rank, hidden and exposed", "collectives, per rank and step"})
    CHECK(shown.find(std::string(title) + ", of the stage with the most work (stage 3)\n") != std::string::npos);
  CHECK(Json::parse(json(report)).at("breakdown_stage") == 3);
  CHECK(Json::parse(json(task_report())).at("breakdown_stage").is_null());
}

TEST_CASE("the inputs say all that the model, the collectives and the kernels were told") {
  StepReport report = model_report();
  report.inputs->model.biases = true;
  report.inputs->model.dropout = 0.1;
  report.inputs->model.learned_positions = 2048;
  report.collectives.algorithm = "ring";
  report.collectives.chunks = 16;
  report.collectives.base_latency = Seconds(0.25);
  report.sharing = Sharing::fifo;
  const Json in = Json::parse(json(report)).at("inputs");
  CHECK(in.at("model").at("biases") == true);
  CHECK(in.at("model").at("causal") == true);
  CHECK(in.at("model").at("dropout") == 0.1);
  CHECK(in.at("model").at("learned_positions") == 2048);
  CHECK(in.at("collectives") == Json({{"algorithm", "ring"},
                                      {"chunks", 16},
                                      {"channels", "auto"},
                                      {"sharing", "fifo"},
                                      {"base_latency_s", 0.25}}));
}

TEST_CASE("an fp8 step lists the bf16 kernels that its attention and logits ran with") {
  StepReport report = model_report();
  report.inputs->options.precision = "fp8";
  report.inputs->kernels.gemm["fp8"].compute = 0.6;
  report.inputs->kernels.gemm["bf16"].compute = 0.8;
  report.inputs->kernels.attention["bf16"].compute = 0.4;
  const Json kernels = Json::parse(json(report)).at("inputs").at("kernels");
  CHECK(kernels.at("gemm").at("compute") == 0.6);
  CHECK(kernels.at("core_precision") == "bf16");
  CHECK(kernels.at("core_gemm").at("compute") == 0.8);
  CHECK(kernels.at("attention").at("compute") == 0.4);
}
