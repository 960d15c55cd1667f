// What is sent in other formats, compressed, or under the next step: laws, sums worked out by hand, formula against
// timeline.
#include <catch2/catch.hpp>

#include <random>

#include "collcast/scenario/scenario.hpp"
#include "collcast/workload/unfolded_step.hpp"
#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/estimate_step.hpp"
#include "workload/gradient_exchange.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/wire.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

StepInputs replicas(int dp, int micro_batches = 2) {
  StepInputs in = inputs(small_model(), layout(1, 1, dp), 1024, micro_batches);
  in.options.bucket = Bytes(100'000'000);
  return in;
}

StepInputs experts_of_two() {
  StepInputs in = inputs(small_model(), layout(1, 1, 2), 1024, 2);
  in.model.experts.count = 8;
  in.model.experts.top_k = 2;
  in.model.experts.ffn = 1024;
  in.layout.ep = 2;
  return in;
}

double bytes_of(const StepResult& r, const std::string& name) {
  double sum = 0;
  for (const CollectiveCost& c : r.collectives)
    if (c.name == name) sum += static_cast<double>(c.request.size.value()) * static_cast<double>(c.count);
  return sum;
}

Seconds time_of(const std::vector<Operation>& operations, const std::string& part) {
  Seconds sum{};
  for (const Operation& op : operations)
    if (op.name.find(part) != std::string::npos) sum += op.time;
  return sum;
}

Seconds sum_of_buckets(const StagePlan& stage) {
  Seconds sum{};
  for (const Bucket& b : stage.buckets) sum += b.time;
  return sum;
}

std::string refused(const StepInputs& in) {
  const Diagnostics found = check_step(in, 16, Location{"s.yaml", 3, 1});
  REQUIRE(found.size() == 1);
  return found[0].message + "; " + found[0].hint;
}

}  // namespace

TEST_CASE("formats that change nothing, a ratio of 1 and no delay leave a step as it was, to the picosecond") {
  for (const int zero : {0, 1, 3}) {
    StepInputs in = experts_of_two();
    in.options.zero = zero;
    StepInputs same = in;
    CommunicationFormats& f = same.options.communication;
    f.tp_gather = f.tp_reduce = f.ep_dispatch = f.ep_combine = f.parameters = WireFormat::bf16;
    f.gradients = WireFormat::fp32;
    if (zero < 2) {
      same.options.compression.method = CompressionMethod::ratio;
      same.options.compression.ratio = 1;
    }
    const StepResult a = forecast_on_two(in, Method::both), b = forecast_on_two(same, Method::both);
    CHECK(a.estimate == b.estimate);
    CHECK(*a.simulate == *b.simulate);
    CHECK(a.memory.peak() == b.memory.peak());
    CHECK(sent_otherwise(same, 0).size() == (zero < 2 ? 1 : 0));
  }
}

TEST_CASE("a dispatch in fp8 has a byte an element and a scale for 128 of them; the combine stays in bf16") {
  StepInputs in = experts_of_two();
  const StepResult usual = forecast_on_two(in);
  in.options.communication.ep_dispatch = WireFormat::fp8;
  const StepResult fp8 = forecast_on_two(in);
  // 2 sequences of 1024 tokens to 2 experts each, 1024 elements: 8 MiB in bf16, of which an exchange sends each once.
  // 8 layers, 2 micro-batches, dispatch and combine forward and backward.
  CHECK(bytes_of(usual, "ep alltoall") == 8 * 2 * 4 * 8.0 * (1 << 20));
  // (1 + 4/128) of 4 Mi elements is 4.125 MiB.
  CHECK(bytes_of(fp8, "ep alltoall") == 8 * 2 * 2 * (8.0 + 4.125) * (1 << 20));
  // Casts move 2 + 1.03125 bytes: of 2048 x 1024 elements before a dispatch, of the 2 x 2048 x 1024 that come behind
  // it.
  const double bytes = 3.03125 * 2048 * 1024;
  CHECK(time_of(fp8.operations.forward, "dispatch cast to fp8").count() == Approx(bytes / 1e12));
  CHECK(time_of(fp8.operations.forward, "dispatch cast from fp8").count() == Approx(2 * bytes / 1e12));
  CHECK(time_of(fp8.operations.backward, "dispatch cast").count() == Approx(3 * bytes / 1e12));
  CHECK(time_of(fp8.operations.forward, "combine cast").count() == 0);
  const auto sent = sent_otherwise(in, 0);
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].what == "dispatch in fp8");
  CHECK(sent[0].as_is.value() == Approx(2 * 8.0 * (1 << 20)));
  CHECK(sent[0].sent.value() == Approx(2 * 4.125 * (1 << 20)));
  CHECK(sent[0].kernels.count() == Approx(6 * bytes / 1e12));
  // Products in fp8 read what comes as it is.
  in.options.precision = "fp8";
  CHECK(time_of(forecast_on_two(in).operations.forward, "cast from").count() == 0);
}

TEST_CASE("TP in fp8 gathers and reduces about half the bytes, by casts of shares and wholes") {
  StepInputs in = inputs(small_model(), layout(4, 1, 1), 1024, 1);
  in.layout.sequence_parallel = true;
  in.options.embedding_and_logits = false;
  const StepResult usual = forecast_on_two(in);
  const auto others = [](const StepResult& r) {
    return time_of(r.operations.forward, "cast") + time_of(r.operations.backward, "cast");
  };
  CHECK(others(usual) == Seconds{});
  in.options.communication.tp_gather = WireFormat::fp8;
  const StepResult gathers = forecast_on_two(in);
  // Per layer 2 gathers forward and 4 backward of 2048 x 1024 elements; a share of a quarter is cast before each.
  const double elements = 2048.0 * 1024;
  CHECK(bytes_of(usual, "tp all_gather") == 8 * 6 * 2 * elements);
  CHECK(bytes_of(gathers, "tp all_gather") == 8 * 6 * 1.03125 * elements);
  CHECK(bytes_of(gathers, "tp reduce_scatter") == bytes_of(usual, "tp reduce_scatter"));
  CHECK(others(gathers).count() == Approx(6 * 3.03125 * elements * (0.25 + 1) / 1e12));
  in.options.communication = {};
  in.options.communication.tp_reduce = WireFormat::fp8;
  const StepResult reductions = forecast_on_two(in);
  CHECK(bytes_of(reductions, "tp reduce_scatter") == 8 * 4 * 1.03125 * elements);
  CHECK(others(reductions).count() == Approx(4 * 3.03125 * elements * (1 + 0.25) / 1e12));
  // The layer is faster by its collectives and slower by the casts.
  const auto layer = [](const StepResult& r) { return r.layer.forward + r.layer.backward; };
  CHECK((layer(usual) - layer(reductions)).count() ==
        Approx((usual.layer.tp_comm - reductions.layer.tp_comm - others(reductions)).count()));
  // Beside products of the layer, and in rings of them, it is as many bytes.
  for (const TpOverlap overlap : {TpOverlap::backward, TpOverlap::ring}) {
    in.options.overlap_tp = overlap;
    in.options.communication.tp_gather = WireFormat::fp8;
    const StepResult hidden = forecast_on_two(in);
    CHECK(bytes_of(hidden, "tp all_gather") == bytes_of(gathers, "tp all_gather"));
    CHECK(bytes_of(hidden, "tp reduce_scatter") == bytes_of(reductions, "tp reduce_scatter"));
    CHECK(others(hidden).count() == Approx((others(gathers) + others(reductions)).count()));
  }
}

TEST_CASE("ZeRO-3 gathers layers in fp8 at a byte a weight, and casts its share before each gather") {
  StepInputs in = replicas(8, 1);
  in.options.zero = 3;
  in.options.precision = "fp8";
  const StepResult usual = forecast_on_two(in);
  in.options.communication.parameters = WireFormat::fp8;
  const StepResult fp8 = forecast_on_two(in);
  // A layer: attention 1024 x 64 x (2 x 16 + 2 x 8), MLP 3 x 1024 x 4096, two norms.
  const double layer = 1024 * 64 * 48 + 3 * 1024.0 * 4096 + 2048, embedding = 32000 * 1024.0, head = embedding + 1024;
  // Gathered forward and again backward, but for the head; embedding and head in bf16.
  CHECK(bytes_of(usual, "dp all_gather") == 2 * (2 * 8 * layer + 2 * embedding + head));
  CHECK(bytes_of(fp8, "dp all_gather") == 2 * 8 * layer + 2 * (2 * embedding + head));
  CHECK(bytes_of(fp8, "dp reduce_scatter") == bytes_of(usual, "dp reduce_scatter"));
  CHECK(time_of(fp8.operations.forward, "weights cast to fp8").count() == Approx(3 * layer / 8 / 1e12));
  CHECK(time_of(fp8.operations.backward, "weights cast to fp8").count() == Approx(3 * layer / 8 / 1e12));
  CHECK(time_of(fp8.operations.forward, "weights cast from").count() == 0);
  // Two layers that are whole for a time are one byte a weight: of the largest two neighbours one is the embedding.
  CHECK(fp8.memory.buffers <= usual.memory.buffers);
  // Products in bf16 do not read that: each layer is cast back.
  in.options.precision = "bf16";
  CHECK(time_of(forecast_on_two(in).operations.forward, "weights cast from fp8").count() == Approx(3 * layer / 1e12));
  // Where a step gathers once for several micro-batches, on any schedule whose weights stay whole, it casts once, and
  // back.
  in.options.reshard_after_forward = false;
  in.layout.schedule = PipelineSchedule::gpipe;
  in.batch.global_batch *= 2;
  const StepResult whole = forecast_on_two(in);
  CHECK(bytes_of(whole, "dp all_gather") == 8 * layer + 2 * (embedding + head));
  CHECK(time_of(whole.operations.forward, "weights cast").count() == 0);
  CHECK(time_of(whole.stage.optimizer, "weights cast to fp8").count() == Approx(3 * 8 * layer / 8 / 1e12));
  CHECK(time_of(whole.stage.optimizer, "weights cast from fp8").count() == Approx(3 * 8 * layer / 1e12));
  in.options.precision = "fp8";
  CHECK(time_of(forecast_on_two(in).stage.optimizer, "weights cast from fp8").count() == 0);
  in.options.reshard_after_forward = true;
  in.layout.schedule = PipelineSchedule::one_f_one_b;
  // ZeRO-1 gathers what is updated once, and casts its share behind the optimizer.
  in.options.precision = "fp8";
  in.options.zero = 1;
  const StepResult updated = forecast_on_two(in);
  CHECK(bytes_of(updated, "dp all_gather") == 8 * layer + 2 * (embedding + head));
  CHECK(time_of(updated.stage.optimizer, "weights cast to fp8").count() == Approx(3 * 8 * layer / 8 / 1e12));
}

TEST_CASE("gradients reduced in bf16 are half the bytes, and cast both ways") {
  StepInputs in = replicas(8);
  const double parameters = stage_parameters(in, 0).total();
  const StepResult usual = forecast_on_two(in);
  CHECK(bytes_of(usual, "dp all_reduce") == Approx(4 * parameters));
  in.options.communication.gradients = WireFormat::bf16;
  const StepResult half = forecast_on_two(in);
  CHECK(bytes_of(half, "dp all_reduce") == Approx(2 * parameters));
  CHECK(time_of(half.stage.optimizer, "gradient casts").count() == Approx(2 * 6 * parameters / 1e12));
  CHECK((half.breakdown.optimizer - usual.breakdown.optimizer).count() ==
        Approx(time_of(half.stage.optimizer, "gradient casts").count()));
  // ZeRO-3 casts what it reduces after every micro-batch, and back only its share.
  in.options.zero = 3;
  const StepResult sharded = forecast_on_two(in);
  const double layer = layer_parameters(in.model, {.tp = 1}).total();
  CHECK(time_of(sharded.operations.backward, "gradient casts").count() == Approx(6 * (1 + 1.0 / 8) * layer / 1e12));
  CHECK(bytes_of(sharded, "dp reduce_scatter") == Approx(2 * 2 * parameters));
  // Their sum, with no_sync, once.
  in.options.no_sync = true;
  const StepResult summed = forecast_on_two(in);
  CHECK(time_of(summed.operations.backward, "gradient casts").count() == 0);
  CHECK(time_of(summed.stage.optimizer, "gradient casts").count() == Approx(6 * (1 + 1.0 / 8) * parameters / 1e12));
  CHECK(bytes_of(summed, "dp reduce_scatter") == Approx(2 * parameters));
}

TEST_CASE("PowerSGD of rank 2 sends the sums of rows and columns of the matrices, and what is none as it is") {
  StepInputs in = replicas(8);
  GradientCompression& c = in.options.compression;
  c.method = CompressionMethod::powersgd;
  c.rank = 2;
  c.error_feedback = true;
  // QKV 1024 x 2048, projection 1024 x 1024, up and gate 1024 x 8192, down 4096 x 1024 in 8 layers; embedding and head
  // 32000 x 1024. Vectors: 2 x 1024 of norms a layer, 1024 behind.
  const double rows = 8 * (1024 + 1024 + 1024 + 4096) + 2 * 32000, columns = 8 * (2048 + 1024 + 8192 + 1024) + 2 * 1024;
  const double matrices = 8 * 1024.0 * (2048 + 1024 + 8192 + 4096) + 2 * 32000.0 * 1024, vectors = 8 * 2048 + 1024;
  const GradientExchange exchange(in, 0, false);
  CHECK((exchange.rows == 2 * rows && exchange.columns == 2 * columns));
  CHECK((exchange.compressed == matrices && exchange.matrices == 34));
  CHECK(exchange.gradients == matrices + vectors);
  const double sent = 4 * (2 * rows + 2 * columns + vectors);
  const StepResult r = forecast_on_two(in);
  CHECK(bytes_of(r, "dp all_reduce") == Approx(sent).epsilon(1e-4));
  // Three all-reduces for each of the buckets of 100 MB.
  const auto buckets = static_cast<std::int64_t>(std::ceil(4 * (matrices + vectors) / 100e6));
  std::int64_t count = 0;
  for (const CollectiveCost& one : r.collectives) count += one.name == "dp all_reduce" ? one.count : 0;
  CHECK(count == 3 * buckets);
  const auto& ops = r.stage.optimizer;
  CHECK(time_of(ops, "error feedback").count() == Approx(8 * 4 * (matrices + vectors) / 1e12));
  for (const char* product : {"powersgd P", "powersgd Q", "powersgd restore"})
    CHECK(named(ops, product).time.count() == Approx(4 * (matrices + 2 * rows + 2 * columns) / 1e12));
  // Two columns of each: 3 passes over each, and 6 over the second behind the first.
  CHECK(named(ops, "powersgd orthogonal").time.count() == Approx(4 * (rows + columns) * (2 * 3 + 6) / 1e12));
  CHECK(r.memory.gradient_copies.value() == std::int64_t(4 * (matrices + vectors) + 4 * (2 * rows + 2 * columns)));
  // A kernel of 1 us each: 7 r - 4 for each P and Q.
  in.kernels.memory_bound.overhead = Seconds(1e-6);
  CHECK((named(compression_operations(in, 0), "powersgd orthogonal").time - named(ops, "powersgd orthogonal").time)
            .count() == Approx(34 * 2 * 10 * 1e-6));
  // Of what becomes smaller by less than asked for nothing is compressed.
  c.min_rate = 1e6;
  const GradientExchange none(in, 0, false);
  CHECK((none.compressed == 0 && none.sent(12)[0] == 12 && none.sent(12)[1] == 0));
}

TEST_CASE("fewer bytes are never slower but for the kernels that it takes") {
  for (const int dp : {2, 8, 16}) {
    const StepInputs usual = replicas(dp);
    const auto faster = [&](StepInputs in) {
      const Seconds kernels = time_of(compression_operations(in, 0), "");
      CHECK(forecast_on_two(in).step - kernels <= forecast_on_two(usual).step + Seconds(1e-12));
    };
    StepInputs in = usual;
    in.options.communication.gradients = WireFormat::bf16;
    faster(in);
    for (const double ratio : {1.0, 2.0, 32.0}) {
      in = usual;
      in.options.compression.method = CompressionMethod::ratio;
      in.options.compression.ratio = ratio;
      in.options.compression.moved = 12;
      faster(in);
      CHECK(bytes_of(forecast_on_two(in), "dp all_reduce") ==
            Approx(bytes_of(forecast_on_two(usual), "dp all_reduce") / ratio).epsilon(1e-6));
    }
  }
}

TEST_CASE("delayed, a step of one stage is the longer of computing and its gradients, and the optimizer") {
  for (const double rate : {1e9, 10e9, 1000e9}) {
    for (const int zero : {0, 1}) {
      StepInputs in = replicas(8);
      in.options.zero = zero;
      const StepPlan now = planned(in, priced(10e-6, rate));
      in.options.delayed_all_reduce = true;
      const StepPlan plan = planned(in, priced(10e-6, rate));
      const StagePlan& stage = plan.stages.front();
      const Seconds computing = plan.micro_batches * (stage.time().forward + stage.time().backward);
      const Seconds expected = std::max(computing, sum_of_buckets(stage)) + stage.optimizer_time() + stage.gather;
      CHECK(estimate_step(plan).total.count() == Approx(expected.count()).epsilon(1e-12));
      // Each of the operations is rounded up to a picosecond.
      CHECK(simulated(plan).count() == Approx(expected.count()).margin(1e-9));
      CHECK(estimate_step(plan).total <= estimate_step(now).total);
      CHECK(estimate_step(plan).breakdown.total().count() == Approx(expected.count()));
    }
  }
}

TEST_CASE("delayed gradients take a copy, and with a pipeline hide under all of it") {
  StepInputs in = inputs(small_model(), layout(1, 4, 4), 1024, 64);
  in.model.tied_embeddings = true;
  const StepResult usual = forecast_on_two(in, Method::both);
  in.options.delayed_all_reduce = true;
  const StepResult delayed = forecast_on_two(in, Method::both);
  CHECK(usual.closed_form.gradients.exposed() > Seconds{});
  CHECK(delayed.closed_form.gradients.exposed() == Seconds{});
  CHECK(delayed.estimate.count() == Approx((usual.estimate - usual.closed_form.gradients.exposed()).count()));
  CHECK(delayed.simulate->count() == Approx(delayed.estimate.count()).epsilon(1e-9));
  CHECK(delayed.breakdown.dp_exposed == Seconds{});
  CHECK(delayed.breakdown.total().count() == Approx(delayed.step.count()));
  CHECK(delayed.memory.gradient_copies == delayed.memory.gradients);
  CHECK(usual.memory.gradient_copies == Bytes(0));
}

TEST_CASE("delayed gradients of tied embeddings wait for nothing of the step, with one replica, too") {
  StepInputs in = inputs(small_model(), layout(1, 4, 1), 1024, 16);
  in.model.tied_embeddings = true;
  const StepResult usual = forecast_on_two(in, Method::both);
  in.options.delayed_all_reduce = true;
  const StepResult delayed = forecast_on_two(in, Method::both);
  CHECK(usual.closed_form.gradients.exposed() > Seconds{});
  CHECK(delayed.closed_form.gradients.exposed() == Seconds{});
  CHECK(delayed.simulate->count() == Approx(delayed.estimate.count()).epsilon(1e-9));
  CHECK(*delayed.simulate < *usual.simulate);
}

TEST_CASE("formula and timeline agree on steps that send otherwise, whatever the layout") {
  std::mt19937 random(20261125);
  const auto dice = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 60; ++round) {
    const int pp = 1 << dice(3), tp = 1 << dice(3);
    StepInputs in = inputs(small_model(), layout(tp, pp, 16 / (tp * pp)), 512, 8);
    in.layout.sequence_parallel = tp > 1;
    const bool with_experts = dice(2) == 0;
    draw_options(in, with_experts, dice);
    in.options.fuse_loss = dice(2) == 0;
    if (in.layout.dp < in.layout.ep) in.layout.ep = 1;
    in.options.zero = dice(4);
    in.options.reshard_after_forward = dice(2) == 0;
    in.options.no_sync = in.options.zero == 3 && dice(2) == 0;
    CommunicationFormats& f = in.options.communication;
    if (dice(2) == 0) f.tp_gather = WireFormat::fp8;
    if (dice(2) == 0) f.tp_reduce = WireFormat::fp8;
    if (with_experts) f.ep_dispatch = WireFormat::fp8;
    if (dice(2) == 0) f.gradients = WireFormat::bf16;
    if (in.options.zero == 0 || in.options.zero == 3) f.parameters = WireFormat::fp8;
    if (in.options.zero < 2 && in.options.overlap_dp) in.options.delayed_all_reduce = dice(2) == 0;
    if (in.options.zero == 0) in.options.compression.method = CompressionMethod::powersgd;
    INFO("round " << round << ": tp " << tp << " pp " << pp << " zero " << in.options.zero << " ep " << in.layout.ep);
    const StepPlan plan = planned(in, priced(5e-6, 20e9));
    const StepEstimate e = estimate_step(plan);
    CHECK(simulated(plan).count() == Approx(e.total.count()).epsilon(1e-6));
    CHECK(e.breakdown.total().count() == Approx(e.total.count()));
  }
}

TEST_CASE("with every rank for itself it is the same step where links are not shared") {
  StepInputs in = replicas(8);
  in.options.delayed_all_reduce = true;
  in.options.compression.method = CompressionMethod::powersgd;
  CollectivePolicy policy;
  policy.algorithm = "ring";
  policy.chunks = policy.channels = 1;
  const Fabric fabric = cluster(1);
  const Result<StepWithUnfolded> step = forecast_unfolded_step(in, fabric, {}, policy);
  REQUIRE(step.ok());
  CHECK(step->unfolded->step.count() == Approx(step->result.simulate->count()).epsilon(1e-6));
}

TEST_CASE("what cannot be is refused, with what would do") {
  StepInputs in = replicas(8);
  in.options.communication.tp_gather = WireFormat::fp32;
  CHECK(refused(in) == "tp_gather fp32 is wider than an activation, of 2 bytes; leave it out, or use fp8");
  in = replicas(8);
  in.options.gradient_bytes = 2;
  in.options.communication.gradients = WireFormat::fp32;
  CHECK(refused(in) ==
        "gradients fp32 is wider than they are kept, in 2 bytes; leave it out, or use gradient_bytes: 4");
  in = replicas(8);
  in.options.communication.ep_dispatch = WireFormat::fp8;
  CHECK(refused(in) == "ep_dispatch has no effect on a dense model; leave it out");
  in = replicas(8);
  in.options.zero = 1;
  in.options.communication.parameters = WireFormat::fp8;
  CHECK(refused(in) ==
        "updated weights gathered in fp8 would stay so, and products in bf16 do not read that; use precision: fp8 with "
        "parameters: fp8, or zero: 3, which casts them back for each pass");
  in = replicas(8);
  in.options.zero = 1;
  in.options.compression.method = CompressionMethod::powersgd;
  CHECK(refused(in) ==
        "compression powersgd is of gradients that are whole on each rank and all-reduced; zero is 1; use zero 0, as "
        "DDP's powerSGD_hook does");
  in = replicas(8);
  in.options.zero = 3;
  in.options.delayed_all_reduce = true;
  CHECK(
      refused(in) ==
      "delayed_all_reduce needs gradients that are whole on each rank; zero 3 splits them after every micro-batch; use "
      "zero 0 or 1");
  in.options.zero = 0;
  in.options.overlap_dp = false;
  CHECK(refused(in) == "delayed_all_reduce hides gradients; overlap_dp false hides none; leave out one of them");
  for (const double ratio : {0.5, 0.0}) {
    in = replicas(8);
    in.options.compression.ratio = ratio;
    CHECK(refused(in).find("expected at least 1: bytes kept over bytes sent") != std::string::npos);
  }
}

TEST_CASE("what has no effect on a layout is warned about") {
  StepInputs in = inputs(small_model(), layout(8, 1, 1), 1024, 1);
  in.options.communication.tp_gather = WireFormat::fp8;
  in.options.communication.gradients = WireFormat::bf16;
  in.options.delayed_all_reduce = true;
  const std::vector<std::string> said = forecast_on_two(in).warnings;
  const auto warned = [&](const std::string& text) {
    return std::count(said.begin(), said.end(), "training." + text) == 1;
  };
  CHECK(
      warned("communication.tp_gather has no effect: without sequence parallelism and tp above 1 nothing is gathered"));
  CHECK(warned("communication.gradients has no effect: nobody has the same parameters"));
  CHECK(warned("delayed_all_reduce has no effect: nobody has the same parameters"));

  // Of two that belong together the one that was asked for.
  in = spread(small_experts(), 1);
  in.options.communication.ep_dispatch = WireFormat::fp8;
  const std::vector<std::string> of_dispatch = forecast_on_two(in).warnings;
  CHECK(std::count(of_dispatch.begin(), of_dispatch.end(),
                   "training.communication.ep_dispatch has no effect: ep is 1") == 1);
  CHECK(std::ranges::none_of(of_dispatch,
                             [](const std::string& w) { return w.find("ep_combine") != std::string::npos; }));
}

namespace {

StepResult gradients_of_16(const std::string& what_if) {
  ScenarioOptions options;
  options.search = {{COLLCAST_SOURCE_DIR "/topologies"}, {COLLCAST_SOURCE_DIR "/scenarios"}};
  options.what_if = what_if;
  const Result<Scenario> scenario = load_scenario("gpt-1b-gradients-16xa100", options);
  INFO(to_text(scenario.errors()));
  REQUIRE(scenario.ok());
  const Result<Fabric> fabric = Fabric::build(scenario->topology, scenario->nodes);
  REQUIRE(fabric.ok());
  CollectivePolicy policy;
  policy.library = Library::ideal;
  policy.algorithm = "ring";
  policy.chunks = policy.channels = 1;
  // Kernels keep their rate beside the exchange, so that the sums are those worked out by hand.
  StepInputs in = *scenario->step;
  in.kernels.beside_collectives = 1;
  Result<StepResult> result = forecast_step(in, *fabric, policy, Method::both);
  INFO(to_text(result.errors()));
  REQUIRE(result.ok());
  return std::move(result).value();
}

Seconds in_all(const StepResult& r) {
  Seconds sum{};
  for (const CollectiveCost& c : r.collectives) sum += c.time * static_cast<double>(c.count);
  return sum;
}

}  // namespace

TEST_CASE("the shipped gradients: bytes, kernels and delay as worked out by hand") {
  // 24 layers of 12 x 2048^2 + 2 x 2048 and 50368 x 2048 (tied), and the last norm: 1.3113 billion fp32 gradients.
  const double gradients = 24 * (12 * 2048.0 * 2048 + 2 * 2048) + 50368 * 2048.0 + 2048;
  const StepResult usual = gradients_of_16("");
  CHECK(bytes_of(usual, "dp all_reduce") == Approx(4 * gradients).epsilon(1e-6));
  // A ring of 16 sends 30/16 of that through each port of 12.5 GB/s: 0.787 s, and latencies.
  CHECK(in_all(usual).count() == Approx(30.0 / 16 * 4 * gradients / 12.5e9).epsilon(0.05));
  const auto exposed = [](const StepResult& r) { return r.closed_form.gradients.exposed(); };
  const auto computing = [](const StepResult& r) { return r.closed_form.pipeline.total(); };
  // Delayed: only what is longer than the step's computing.
  const StepResult delayed = gradients_of_16("delayed");
  CHECK(exposed(delayed).count() == Approx((in_all(usual) - computing(usual)).count()));
  CHECK(delayed.estimate.count() ==
        Approx((std::max(computing(usual), in_all(usual)) + usual.closed_form.optimizer).count()));
  CHECK(delayed.memory.gradient_copies.value() == std::int64_t(4 * gradients));
  // Half the bytes fit under it: 0.39 s.
  const StepResult both = gradients_of_16("delayed-bf16");
  CHECK(exposed(both) == Seconds{});
  CHECK(both.estimate.count() == Approx((computing(usual) + both.closed_form.optimizer).count()));
  // Casts: 2 x (4 + 2) bytes each, at 0.8 of 1935 GB/s, and 3 us.
  CHECK((both.closed_form.optimizer - usual.closed_form.optimizer).count() ==
        Approx(12 * gradients / (0.8 * 1935e9)).epsilon(0.001));
  // PowerSGD, rank 4: QKV 2048 x 6144, projection 2048 x 2048, MLP 2048 x 8192 and back, and the embedding: rows 24 x
  // (3 x 2048 + 8192) + 50368, columns 24 x (6144 + 2048 + 8192 + 2048) + 2048; vectors 24 x 2 x 2048 + 2048.
  const double rows = 24 * (3 * 2048.0 + 8192) + 50368, columns = 24 * (6144.0 + 2048 + 8192 + 2048) + 2048;
  const double sent = 4 * (4 * (rows + columns) + 24 * 2 * 2048 + 2048);
  const StepResult low_rank = gradients_of_16("powersgd");
  CHECK(bytes_of(low_rank, "dp all_reduce") == Approx(sent).epsilon(1e-3));
  CHECK(low_rank.memory.gradient_copies.value() == std::int64_t(4 * gradients + 4 * 4 * (rows + columns)));
  CHECK(bytes_of(gradients_of_16("powersgd-bf16"), "dp all_reduce") == Approx(sent / 2).epsilon(1e-3));
  CHECK(bytes_of(gradients_of_16("one-bit"), "dp all_reduce") == Approx(4 * gradients / 32).epsilon(1e-5));
  CHECK(exposed(gradients_of_16("no-overlap")).count() == Approx(in_all(usual).count()));
}
