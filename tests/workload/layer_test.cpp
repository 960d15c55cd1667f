// The kernels of a layer: FLOPs and bytes by formula, what TP, sequence parallelism and recomputation change.
#include <catch2/catch.hpp>

#include <algorithm>

#include "inputs.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/layer/segments.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

Flops flops_of_all(const std::vector<Operation>& operations) {
  Flops sum{};
  for (const Operation& op : operations) sum += op.flops;
  return sum;
}
Seconds time(const std::vector<Operation>& operations) {
  Seconds sum{};
  for (const Operation& op : operations) sum += op.time;
  return sum;
}
bool has(const std::vector<Operation>& operations, const std::string& name) {
  return std::any_of(operations.begin(), operations.end(), [&](const Operation& op) { return op.name == name; });
}
int collectives(const std::vector<workload::Segment>& segments, CollectiveKind kind) {
  return static_cast<int>(
      std::count_if(segments.begin(), segments.end(), [&](const workload::Segment& s) { return s.then == kind; }));
}

StepInputs gpt_layer(int tp) {
  StepInputs in = inputs(gpt_22b(), layout(tp, 1, 1), 2048, 1);
  in.options.attention = Attention::unfused;
  return in;
}

}  // namespace

TEST_CASE("heads whose rows are no multiple of 16 bytes are computed without tensor cores") {
  StepInputs in = inputs(gpt_175b(), layout(8, 1, 1), 2048, 1);
  in.options.attention = Attention::unfused;
  const auto core = [&](int heads, int head_dim) {
    in.model.heads = in.model.kv_heads = heads;
    in.model.head_dim = head_dim;
    for (const Operation& op : layer_operations(in).forward)
      if (op.name == "scores") return op;
    FAIL("no scores");
    return Operation{};
  };
  in.gpu.peak.insert_or_assign("fp32", FlopRate(10e12));
  const Operation aligned = core(96, 128), odd = core(96, 125);
  CHECK(odd.bound == "compute");
  CHECK(odd.flops.value() / odd.time.count() <= in.gpu.peak.at("fp32").value());
  CHECK(aligned.flops.value() / aligned.time.count() > in.gpu.peak.at("fp32").value());
}

TEST_CASE("a GPT layer computes 24 T h^2 + 4 b a s^2 d forward and twice that backward") {
  const double T = 2 * 2048, h = 6144, core = 4.0 * 2 * 64 * 2048 * 2048 * 96;
  const LayerOperations ops = layer_operations(gpt_layer(1));
  CHECK(flops_of_all(ops.forward).value() == Approx(24 * T * h * h + core).epsilon(1e-12));
  CHECK(flops_of_all(ops.backward).value() == Approx(2 * (24 * T * h * h + core)).epsilon(1e-12));
  CHECK(ops.recompute.empty());
}

TEST_CASE("the FLOPs of all layers and the head are the model's, without the causal discount") {
  StepInputs in = gpt_layer(4);
  const LayerOperations ops = layer_operations(in);
  const auto head = workload::head_segments(in);
  double sum = in.model.layers * (flops_of_all(ops.forward) + flops_of_all(ops.backward)).value();
  for (const auto* segments : {&head.forward, &head.backward})
    for (const workload::Segment& s : *segments) sum += flops_of_all(s.operations).value();
  // One micro-batch is the global batch; every rank of 4 does a quarter.
  CHECK(4 * sum == Approx(workload::model_flops(in).value()).epsilon(1e-12));
}

TEST_CASE("logits whose rows are no multiple of 8 bytes are computed at a quarter of the peak at most") {
  StepInputs in = gpt_layer(1);
  const auto rates = [&](int vocab) {
    in.model.vocab = vocab;
    std::vector<double> of_peak;
    const auto head = workload::head_segments(in);
    for (const auto* segments : {&head.forward, &head.backward})
      for (const workload::Segment& s : *segments)
        for (const Operation& op : s.operations)
          if (op.name.starts_with("logits"))
            of_peak.push_back(op.flops.value() / op.time.count() / in.gpu.peak.at("bf16").value());
    REQUIRE(of_peak.size() == 3);
    return of_peak;
  };
  for (const double rate : rates(50'304)) CHECK(rate > 0.9);
  for (const double rate : rates(50'260)) CHECK(rate > 0.9);  // 50260 x 2 bytes are 12565 x 8
  for (const double rate : rates(50'257)) CHECK(rate == Approx(0.25).epsilon(1e-9));
  in.layout.tp = 2;
  for (const double rate : rates(50'260)) CHECK(rate == Approx(0.25).epsilon(1e-9));  // 25130 x 2 bytes are 6282.5 x 8
}

TEST_CASE("GQA and gated MLP: each kernel by its formula") {
  StepInputs in = inputs(llama_70b(8), layout(2, 1, 1), 4096, 1);
  in.batch.micro_batch = in.batch.global_batch = 1;
  const double T = 4096, h = 8192, a = 64, k = 8, d = 128, f = 28672, t = 2, w = 2;
  const LayerOperations ops = layer_operations(in);
  const auto check = [&](const std::string& name, double expected_flops, double expected_bytes) {
    INFO(name);
    const Operation& op = named(ops.forward, name);
    CHECK(op.flops.value() == Approx(expected_flops).epsilon(1e-12));
    CHECK(op.bytes.value() == Approx(expected_bytes).epsilon(1e-12));
  };
  check("attention norm", 0, 2 * w * T * h);
  check("qkv", 2 * T * h * (a + 2 * k) * d / t, w * (T * h + h * (a + 2 * k) * d / t + T * (a + 2 * k) * d / t));
  check("rotary", 0, 2 * w * T * (a + k) * d / t);
  // Half of the matrix and half of its diagonal: (s + 1) / (2 s).
  check("flash attention", 4 * a * T * T * d / t * (T + 1) / (2 * T), w * T * (2 * a + 2 * k) * d / t + 4 * a * T / t);
  check("projection", 2 * T * a * d * h / t, w * (T * a * d / t + a * d * h / t + T * h));
  check("mlp up+gate", 2 * T * h * 2 * f / t, w * (T * h + h * 2 * f / t + T * 2 * f / t));
  check("activation", 0, 3 * w * T * f / t);
  check("mlp down", 2 * T * f * h / t, w * (T * f / t + f * h / t + T * h));
  check("mlp residual", 0, 3 * w * T * h);
  // Backward: five products of the core against two.
  CHECK(named(ops.backward, "flash attention gradient").flops.value() ==
        Approx(2.5 * named(ops.forward, "flash attention").flops.value()));
  // fp32 gradients are read and written where the weights are.
  CHECK(named(ops.backward, "mlp down weight gradient").bytes.value() ==
        Approx(w * (T * f / t + T * h) + 2 * 4 * f * h / t));
}

TEST_CASE("unfused attention moves its matrix through memory once per kernel, dropout masks in one byte") {
  const StepInputs in = gpt_layer(8);
  // 2 sequences, 64/8 heads: 2 * 8 * 2048^2 elements.
  const double scores = 2 * 8 * 2048.0 * 2048, heads = 4096.0 * 6144 / 8;
  const LayerOperations ops = layer_operations(in);
  CHECK(named(ops.forward, "scores").bytes.value() == Approx(2 * (2 * heads + scores)));
  CHECK(named(ops.forward, "softmax").bytes.value() == Approx(4 * scores));
  CHECK(named(ops.forward, "attention dropout").bytes.value() == Approx(5 * scores));
  CHECK(named(ops.backward, "softmax gradient").bytes.value() == Approx(6 * scores));
  // No causal discount: the kernels compute the whole matrix.
  CHECK(named(ops.forward, "scores").flops.value() == Approx(2 * scores * 96));
}

TEST_CASE(
    "unfused attention adds the bias of queries, keys and values by itself, copies heads to rows and joins gradients") {
  StepInputs in = gpt_layer(8);
  const LayerOperations ops = layer_operations(in);
  // 4096 tokens, read and written in 2 bytes each: three times 6144/8 elements, and once.
  CHECK(named(ops.forward, "qkv bias").bytes.value() == Approx(2 * 2 * 4096.0 * 3 * 6144 / 8));
  CHECK(named(ops.forward, "heads transpose").bytes.value() == Approx(2 * 2 * 4096.0 * 6144 / 8));
  // The gradient of what was split into views.
  CHECK(named(ops.backward, "qkv gradients joined").bytes.value() == Approx(2 * 2 * 4096.0 * 3 * 6144 / 8));
  const auto has = [](const StepInputs& inputs, const char* name) {
    const LayerOperations all = layer_operations(inputs);
    const auto is_it = [&](const Operation& op) { return op.name == name; };
    return std::ranges::any_of(all.forward, is_it) || std::ranges::any_of(all.backward, is_it);
  };
  in.model.biases = false;
  CHECK_FALSE(has(in, "qkv bias"));
  CHECK(has(in, "heads transpose"));
  in.model.biases = true;
  in.options.attention = Attention::flash;
  CHECK_FALSE(has(in, "qkv bias"));
  CHECK_FALSE(has(in, "heads transpose"));
  CHECK_FALSE(has(in, "qkv gradients joined"));
}

TEST_CASE("unfused attention: softmax is one kernel for fours of matrices, else PyTorch's five in 32 bit") {
  StepInputs in = gpt_layer(8);
  in.model.heads = 8;  // one head a rank
  in.model.kv_heads = 8;
  const auto counted = [&](int micro_batch, bool backward) {
    in.batch.micro_batch = in.batch.global_batch = micro_batch;
    const LayerOperations ops = layer_operations(in);
    double bytes = 0;
    int kernels = 0;
    for (const Operation& op : backward ? ops.backward : ops.forward) {
      if (!op.name.starts_with("softmax")) continue;
      bytes += op.bytes.value() / (micro_batch * 2048.0 * 2048);
      ++kernels;
    }
    return std::pair(kernels, bytes);
  };
  // Per element 2 + 2 bytes, backward 3 x 2.
  for (const int micro_batch : {4, 8}) {
    CHECK(counted(micro_batch, false) == std::pair(1, 4.0));
    CHECK(counted(micro_batch, true) == std::pair(1, 6.0));
  }
  // To 32 bit 2 + 4, scale, mask and softmax 4 + 4 each, to 16 bit 4 + 2; backward softmax has one to read more.
  for (const int micro_batch : {1, 2, 3, 6}) {
    CHECK(counted(micro_batch, false) == std::pair(5, 36.0));
    CHECK(counted(micro_batch, true) == std::pair(5, 40.0));
  }
  // Nothing that is not of 16 bit was cast; flash attention has none.
  in.options.precision = "fp32";
  in.gpu.peak["fp32"] = in.gpu.peak.at("bf16");
  in.kernels.gemm["fp32"] = in.kernels.gemm.at("bf16");
  in.kernels.attention["fp32"] = in.kernels.attention.at("bf16");
  CHECK(counted(1, false) == std::pair(1, 8.0));
  in.options.attention = Attention::flash;
  CHECK(counted(1, false).first == 0);
}

TEST_CASE("a kernel takes its overhead and the longer of computing and moving, and says which") {
  StepInputs in = inputs(small_model(), layout(1, 1, 1), 1024, 1);
  in.kernels.gemm["bf16"] = {Seconds(5e-6), 0.5, 0.8, ""};
  in.kernels.memory_bound = {Seconds(3e-6), 1, 0.8, ""};
  const LayerOperations ops = layer_operations(in);
  // qkv: 2 * 2048 * 1024 * 2048 FLOP at 50 TFLOP/s = 171.8 us against 16.8 MB at 800 GB/s = 21 us.
  const Operation& qkv = named(ops.forward, "qkv");
  CHECK(qkv.time.count() == Approx(5e-6 + 2.0 * 2048 * 1024 * 2048 / 50e12));
  CHECK(qkv.bound == "compute");
  // norm: 2 * 2 * 2048 * 1024 bytes at 800 GB/s = 10.5 us.
  CHECK(named(ops.forward, "attention norm").time.count() == Approx(3e-6 + 4.0 * 2048 * 1024 / 800e9));
  CHECK(named(ops.forward, "attention norm").bound == "memory");
  in.kernels.memory_bound.overhead = Seconds(1e-3);
  CHECK(named(layer_operations(in).forward, "attention norm").bound == "overhead");
}

TEST_CASE("the backward of fused attention has its own rate where that is known") {
  StepInputs in = inputs(gpt_22b(), layout(1, 1, 1), 2048, 1);
  in.options.attention = Attention::flash;
  const auto core = [&](bool backward) {
    const LayerOperations all = layer_operations(in);
    for (const Operation& op : backward ? all.backward : all.forward)
      if (op.name.starts_with("flash attention")) return op;
    FAIL("no attention");
    return Operation{};
  };
  const Operation forward = core(false), as_forward = core(true);
  CHECK(as_forward.kind == OperationKind::attention);
  const std::string precision = forward.precision;
  in.kernels.attention_gradient[precision] = {Seconds(1e-4), 0.25, 1, "test"};
  const Operation own = core(true);
  CHECK(own.kind == OperationKind::attention_gradient);
  CHECK(own.flops.value() == Approx(2.5 * forward.flops.value()));
  CHECK(own.time.count() == Approx(1e-4 + own.flops.value() / (0.25 * in.gpu.peak.at(precision).value())));
  CHECK(core(false).time == forward.time);
}

TEST_CASE("the experts of a rank are one kernel where its times are known, else one each") {
  StepInputs in = inputs(gpt_22b(), layout(1, 1, 1), 2048, 1);
  in.model.experts.count = 16;
  in.model.experts.top_k = 2;
  in.model.experts.ffn = 1024;
  const auto find = [&](const char* name) {
    const LayerOperations all = layer_operations(in);
    for (const auto* list : {&all.forward, &all.backward})
      for (const Operation& op : *list)
        if (op.name == name) return op;
    FAIL("no " << name);
    return Operation{};
  };
  const auto least = [&](const Operation& op, const KernelEfficiency& kernel) {
    return std::max(op.flops.value() / (kernel.compute * in.gpu.peak.at(op.precision).value()),
                    op.bytes.value() / (kernel.memory * in.gpu.memory_bandwidth.value()));
  };
  const char *forward = "experts up", *gradient = "experts up weight gradient";
  const Operation each = find(forward), each_gradient = find(gradient);
  const KernelEfficiency& gemm = in.kernels.gemm.at(each.precision);
  CHECK(each.kind == OperationKind::gemm);
  CHECK(each.time.count() == Approx(16 * gemm.overhead.count() + least(each, gemm)));
  in.kernels.grouped_gemm[each.precision] = {Seconds(1e-4), 0.5, 0.5, "test"};
  const Operation one = find(forward);
  CHECK(one.kind == OperationKind::grouped_gemm);
  CHECK(one.flops == each.flops);
  CHECK(one.time.count() == Approx(1e-4 + least(one, in.kernels.grouped_gemm.at(each.precision))));
  // The weights' gradients as the others, until they have their own.
  CHECK(find(gradient).kind == OperationKind::grouped_gemm);
  in.kernels.grouped_gemm_gradient[each.precision] = {Seconds(2e-4), 0.25, 0.5, "test"};
  const Operation own = find(gradient);
  CHECK(own.kind == OperationKind::grouped_gemm_gradient);
  CHECK(own.time.count() == Approx(2e-4 + least(own, in.kernels.grouped_gemm_gradient.at(each.precision))));
  CHECK(find(forward).time == one.time);
  in.options.moe_grouped_gemm = false;
  CHECK(find(forward).time == each.time);
  CHECK(find(gradient).time == each_gradient.time);
}

TEST_CASE("products are no faster than the GPU's power lets them be for a whole step") {
  StepInputs in = inputs(gpt_22b(), layout(1, 1, 1), 2048, 1);
  const LayerOperations before = layer_operations(in);
  for (auto& [precision, kernel] : in.kernels.gemm) kernel.sustained = 0.3;
  const LayerOperations after = layer_operations(in);
  int limited = 0;
  for (const auto& [a, b] : {std::pair(&before.forward, &after.forward), std::pair(&before.backward, &after.backward)})
    for (std::size_t i = 0; i < a->size(); ++i) {
      const Operation &was = (*a)[i], &is = (*b)[i];
      INFO(is.name);
      CHECK(is.time >= was.time);
      if (is.kind != OperationKind::gemm) CHECK(is.time == was.time);
      if (is.bound != "power") continue;
      ++limited;
      const Seconds least = in.kernels.gemm.at(is.precision).overhead + is.flops / (in.gpu.peak.at(is.precision) * 0.3);
      CHECK(is.time.count() == Approx(least.count()));
    }
  CHECK(limited == 12);
  for (auto& [precision, kernel] : in.kernels.gemm) kernel.sustained = 1;
  in.gpu.kernel_scale = 1.5;
  const Seconds scaled = time(layer_operations(in).forward);
  CHECK(scaled.count() == Approx(1.5 * time(before.forward).count()));
}

TEST_CASE("a loss that is not fused moves each logit kernel by kernel") {
  StepInputs in = inputs(gpt_22b(), layout(2, 1, 1), 2048, 1);
  const auto moved = [&](const char* name) {
    const workload::Segments head = workload::head_segments(in);
    for (const auto* list : {&head.forward, &head.backward})
      for (const workload::Segment& segment : *list)
        for (const Operation& op : segment.operations)
          if (op.name == name) return op.bytes.value();
    FAIL("no " << name);
    return 0.0;
  };
  const double logits = moved("loss") / 12;
  CHECK(moved("loss gradient") == Approx(6 * logits));
  in.options.fuse_loss = false;
  CHECK(moved("loss") == Approx(38 * logits));
  CHECK(moved("loss gradient") == Approx(14 * logits));
}

TEST_CASE("TP divides all but norms and residuals, sequence parallelism divides these too") {
  const LayerOperations one = layer_operations(gpt_layer(1)), eight = layer_operations(gpt_layer(8));
  StepInputs in = gpt_layer(8);
  in.layout.sequence_parallel = true;
  const LayerOperations sharded = layer_operations(in);
  const auto bytes = [](const LayerOperations& ops, const char* name) {
    return named(ops.forward, name).bytes.value();
  };
  CHECK(flops_of_all(eight.forward).value() == Approx(flops_of_all(one.forward).value() / 8));
  CHECK(bytes(eight, "softmax") == Approx(bytes(one, "softmax") / 8));
  for (const char* name : {"attention norm", "mlp norm", "attention residual", "mlp residual"}) {
    CHECK(bytes(eight, name) == bytes(one, name));
    CHECK(bytes(sharded, name) == Approx(bytes(one, name) / 8));
  }
}

TEST_CASE("TP collectives of a layer: two and two, with sequence parallelism four and six") {
  StepInputs in = gpt_layer(8);
  workload::Segments s = workload::layer_segments(in);
  CHECK(collectives(s.forward, CollectiveKind::all_reduce) == 2);
  CHECK(collectives(s.backward, CollectiveKind::all_reduce) == 2);
  in.options.recompute = Recompute::full;
  CHECK(collectives(workload::layer_segments(in).backward, CollectiveKind::all_reduce) == 4);

  in.options.recompute = Recompute::none;
  in.layout.sequence_parallel = true;
  s = workload::layer_segments(in);
  CHECK(collectives(s.forward, CollectiveKind::all_gather) == 2);
  CHECK(collectives(s.forward, CollectiveKind::reduce_scatter) == 2);
  // Two gathers more: the inputs again, for the weight gradients.
  CHECK(collectives(s.backward, CollectiveKind::all_gather) == 4);
  CHECK(collectives(s.backward, CollectiveKind::reduce_scatter) == 2);
  CHECK(collectives(s.backward, CollectiveKind::all_reduce) == 0);
}

TEST_CASE("without TP nothing is cut") {
  for (const bool sp : {false, true}) {
    StepInputs in = gpt_layer(1);
    in.layout.sequence_parallel = sp;
    const workload::Segments s = workload::layer_segments(in);
    CHECK(s.forward.size() == 1);
    CHECK(s.backward.size() == 1);
    CHECK_FALSE(s.forward[0].then);
  }
}

TEST_CASE("selective recomputation repeats the attention core, full the whole layer") {
  StepInputs in = gpt_layer(8);
  in.options.recompute = Recompute::selective;
  const LayerOperations selective = layer_operations(in);
  CHECK(selective.recompute.size() == 5);  // scores, softmax, dropout, values, the copy of heads to rows
  CHECK(has(selective.recompute, "scores"));
  CHECK_FALSE(has(selective.recompute, "qkv"));
  in.options.recompute = Recompute::full;
  const LayerOperations full = layer_operations(in);
  CHECK(time(full.recompute).count() == Approx(time(full.forward).count()));
  CHECK(time(full.backward).count() == Approx(time(selective.backward).count()));
}

TEST_CASE("fp8 halves what linear layers read and keeps the core in 16 bit") {
  StepInputs in = inputs(small_model(), layout(1, 1, 1), 1024, 1);
  in.gpu.peak["fp8"] = FlopRate(200e12);
  in.options.precision = "fp8";
  const LayerOperations ops = layer_operations(in);
  const double T = 2048, h = 1024, out = 2048;
  CHECK(named(ops.forward, "qkv").bytes.value() == Approx(T * h + h * out + 2 * T * out));
  CHECK(named(ops.forward, "qkv").time.count() == Approx(2 * T * h * out / 200e12));
  const Operation& flash = named(ops.forward, "flash attention");
  CHECK(flash.time.count() == Approx(flash.flops.value() / 100e12));
}

TEST_CASE("Adam moves 38 bytes per parameter, a distributed optimizer only its share of the state") {
  StepInputs in = inputs(small_model(), layout(1, 1, 4), 1024, 1);
  const double held = parameter_count(in.model);
  const auto bytes = [&] {
    double sum = 0;
    for (const Operation& op : workload::optimizer_operations(in, 0)) sum += op.bytes.value();
    return sum;
  };
  CHECK(bytes() == Approx(38 * held));
  in.options.zero = 1;
  // 34 of the owned quarter, and the whole gradient buffer zeroed.
  CHECK(bytes() == Approx(34 * held / 4 + 4 * held));
  in.options.optimizer = false;
  CHECK(bytes() == 0);
}

TEST_CASE("a rank that shares its KV head computes and keeps all of it") {
  // 16 heads, 8 KV heads of 64, TP 16: one query head, one K and one V head of 64: 2 x 2048 tokens x 1024 x 3 x 64
  // FLOPs.
  const LayerOperations layer = layer_operations(inputs(small_model(), layout(16, 1, 1), 1024, 1));
  CHECK(named(layer.forward, "qkv").flops.value() == 2. * 2048 * 1024 * 3 * 64);
}
