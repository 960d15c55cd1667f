// Optimizer states in the host's memory between updates: when chunks of them are there and back, by hand and against
// the rules one by one; what GPU and host hold of them; laws of steps.
#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>
#include <vector>

#include "collcast/workload/terms.hpp"
#include "faulty.hpp"
#include "inputs.hpp"
#include "support/dice.hpp"
#include "workload/memory/optimizer_bytes.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

StateCopies copies(double parameters, double chunk, int chunks, double norm, double resident, double kernels) {
  StateCopies out;
  out.chunks = chunks;
  out.rate = Bandwidth(1);
  out.parameters = Volume(parameters);
  out.moments = Volume(chunk * chunks);
  out.norm = Seconds(norm);
  out.resident = Seconds(resident);
  out.chunk = Seconds(kernels);
  return out;
}

/// Each chunk's way by the rules, with the ends of all that came before it.
struct Ends {
  double updated = 0, back = 0;
};
Ends by_the_rules(const StateCopies& c) {
  const double p = c.parameters.value(), copy = c.chunk_time().count(), kernels = c.chunk.count();
  const auto n = static_cast<std::size_t>(c.chunks);
  std::vector<double> there(n + 1), updated(n + 1), back(n + 1);  // of chunk i: i + 1
  updated[0] = std::max(p, c.norm.count()) + c.resident.count();
  there[0] = p;
  for (std::size_t i = 1; i <= n; ++i) {
    double sets_out = there[i - 1];
    if (i >= 2) sets_out = std::max({sets_out, updated[i - 2], back[i - 2]});
    there[i] = sets_out + copy;
    updated[i] = std::max(updated[i - 1], there[i]) + kernels;
    back[i] = std::max(back[i - 1], updated[i]) + copy;
  }
  return {updated[n], back[n]};
}

StepInputs offloading(double fraction, int chunk_size_mb, int zero = 1) {
  StepInputs in = inputs(small_model(), layout(1, 1, 2), 256, 8);
  in.options.zero = zero;
  in.host_bandwidth = Bandwidth(50e9);
  in.options.optimizer_state_offload = OptimizerStateOffload{fraction, chunk_size_mb};
  return in;
}

StepInputs without_host(StepInputs in) {
  in.options.optimizer_state_offload.reset();
  return in;
}

StepInputs drawn(Dice& dice) {
  StepInputs in = inputs(dice.pick({small_model(), small_experts()}),
                         layout(dice.pick({1, 2}), dice.pick({1, 2}), dice.pick({1, 2, 4})), 256, 8);
  in.options.zero = dice.roll(4);
  in.options.gradient_bytes = dice.pick({2, 4});
  in.options.precision = dice.pick({"bf16", "tf32"});
  for (const auto table : {&KernelModel::gemm, &KernelModel::attention})
    if (const auto known = (in.kernels.*table).find("bf16"); known != (in.kernels.*table).end())
      (in.kernels.*table)["tf32"] = known->second;
  in.gpu.peak["tf32"] = in.gpu.peak.at("bf16");
  in.host_bandwidth = Bandwidth(dice.pick({1e9, 50e9, 400e9}));
  in.kernels.host_copies = dice.pick({1.0, 0.8});
  if (dice.roll(2) == 0 && in.options.precision == "bf16")
    in.options.precision_aware_optimizer = PrecisionAwareOptimizer{
        dice.pick({StateFormat::fp32, StateFormat::bf16}), dice.pick({StateFormat::fp32, StateFormat::bf16}),
        dice.pick({StateFormat::fp32, StateFormat::fp16}), dice.roll(2) == 0};
  in.options.optimizer_state_offload = OptimizerStateOffload{dice.pick({0.25, 0.5, 1.0}), dice.pick({0, 1, 16})};
  return in;
}

Seconds update_of(const StepInputs& in) { return forecast(in, cluster(2), Method::estimate).closed_form.optimizer; }

}  // namespace

TEST_CASE("one chunk: its states come, are updated and go") {
  // Parameters until 4, moments until 10; what stays is updated from 4 to 6, the chunk until 11, and is back at 17.
  const StateCopies c = copies(4, 6, 1, 1, 2, 1);
  CHECK(c.updated().count() == Approx(11));
  CHECK(c.moments_back().count() == Approx(17));
  CHECK(c.wait().count() == Approx(11 - 1 - 2 - 1));
  CHECK(c.left().count() == Approx(6 + 4));
  // A norm longer than that hides all of it.
  CHECK(copies(4, 6, 1, 10, 2, 1).wait() == Seconds{});
  CHECK(copies(4, 6, 1, 8, 2, 1).wait() == Seconds{});
  CHECK(copies(4, 6, 1, 8, 1, 1).wait().count() == Approx(1));
}

TEST_CASE("four chunks of 3 by hand: the third sets out when the first is back") {
  // There at 5 (behind 2 of parameters), 8, 12 (first updated at 6, back at 9), 15; updated at 6, 9, 13, 16.
  const StateCopies c = copies(2, 3, 4, 0, 0, 1);
  CHECK(c.updated().count() == Approx(16));
  CHECK(c.moments_back().count() == Approx(19));
}

TEST_CASE("any number of chunks takes what the rules say one by one") {
  Dice dice(20261128);
  for (int n = 0; n < 4000; ++n) {
    const auto time = [&] { return dice.pick({0.0, 0.3, 1.0, 2.5, 7.0, 40.0}); };
    const StateCopies c = copies(time(), time() + 0.1, 1 + dice.roll(200), time(), time(), time());
    const Ends rules = by_the_rules(c);
    INFO(c.chunks << " chunks, copy " << c.chunk_time().count() << ", kernels " << c.chunk.count());
    CHECK(c.updated().count() == Approx(rules.updated).epsilon(1e-12));
    CHECK(c.moments_back().count() == Approx(rules.back).epsilon(1e-12));
    CHECK(c.wait().count() >= -1e-9);
  }
}

TEST_CASE("what the host has the GPU has not between updates, and two chunks of it during one") {
  const StepInputs in = offloading(0.75, 1);
  const MemoryTerms usual = memory_terms(without_host(in), 0), now = memory_terms(in, 0);
  const double parameters = usual.optimizer().value() / 12;
  CHECK(now.optimizer().value() == Approx(0.25 * usual.optimizer().value()));
  CHECK(now.optimizer_states().value() == Approx(usual.optimizer().value()));
  // The moments of 0.75 of the parameters in chunks of a MiB at most.
  const int chunks = state_copies(in, 0).chunks;
  CHECK(chunks > 2);
  CHECK(8 * 0.75 * parameters / chunks <= 0x1p20);
  CHECK(8 * 0.75 * parameters / (chunks - 1) > 0x1p20);
  CHECK(now.returned.value() == Approx(0.75 * parameters * (4 + 8 * 2.0 / chunks)));
  CHECK(memory_terms(offloading(0.75, 0), 0).returned.value() == Approx(0.75 * parameters * 12));
  const MemoryUse use = stage_memory(in, 0, 8), wide = stage_memory(without_host(in), 0, 8);
  CHECK(static_cast<double>(use.on_host.value()) == Approx(0.75 * usual.optimizer().value()).margin(2));
  const auto less = [&](MemoryMoment moment) {
    const auto i = static_cast<std::size_t>(moment);
    return static_cast<double>((wide.by_moment[i] - use.by_moment[i]).value());
  };
  const double on_its_way = now.returning.value();
  CHECK(less(MemoryMoment::forward) == Approx(0.75 * usual.optimizer().value() - on_its_way).margin(3));
  CHECK(less(MemoryMoment::backward) == Approx(0.75 * usual.optimizer().value() - on_its_way).margin(3));
  CHECK(less(MemoryMoment::optimizer) == Approx(0.75 * parameters * 8 * (1 - 2.0 / chunks)).margin(2));
  CHECK(stage_memory(offloading(1, 0), 0, 8).by_moment.back() == wide.by_moment.back());
}

TEST_CASE(
    "what has not gone back when a forward is over is there yet: all with no way to speak of, nothing with a fast "
    "one") {
  StepInputs in = offloading(1, 0);
  const auto returning = [&](double bytes_per_s) {
    in.host_bandwidth = Bandwidth(bytes_per_s);
    return memory_terms(in, 0).returning.value();
  };
  const double returned = memory_terms(in, 0).returned.value();
  CHECK(returning(1) == Approx(returned));
  CHECK(returning(1e15) == 0);
  // A forward is products of the model's FLOPs of one micro-batch, at the rate that the kernel table says.
  const double forward = flop_terms(in).forward() * in.batch.micro_batch /
                         (in.kernels.gemm.at("bf16").compute * in.gpu.peak.at("bf16").value());
  CHECK(returning(0.25 * returned / forward) == Approx(0.75 * returned));
  // More forwards that are held give it more time.
  in = offloading(1, 0);
  in.layout.schedule = PipelineSchedule::gpipe;
  in.batch.global_batch = 4 * in.batch.micro_batch * in.layout.dp;
  CHECK(returning(0.2 * returned / forward) == Approx(0.2 * returned));
  // With the update's own moment: never more than there.
  CHECK(stage_memory(in, 0, 8).allocated() >= stage_memory(in, 0, 8).by_moment.back());
}

TEST_CASE("a slower GPU has longer kernels and waits less; its copies are what they were") {
  StepInputs in = offloading(1, 1);
  in.host_bandwidth = Bandwidth(2e9);
  const auto update = [&](const StepInputs& of, Method method) {
    const FaultyStep step = forecast_faulty(of, cluster(1), {slow_gpu(0, 0.5), slow_gpu(1, 0.5)}, method);
    return step.result.breakdown.optimizer.count();
  };
  const StateCopies usual = state_copies(in, 0), slow = state_copies(in, 0, 0.5);
  CHECK(slow.chunk.count() == Approx(2 * usual.chunk.count()));
  CHECK(slow.wait() < usual.wait());
  CHECK(slow.updated() > usual.updated());
  for (const Method method : {Method::estimate, Method::simulate}) {
    const double plain = update(without_host(in), method), now = update(in, method);
    const double launches = (slow.updates() - 1) * in.kernels.memory_bound.overhead.count() / 0.5;
    CHECK(now - plain == Approx(slow.wait().count() + launches).epsilon(1e-6));
  }
}

TEST_CASE("of narrower states those are in fp32 that are updated together") {
  StepInputs in = offloading(0.75, 1);
  in.options.precision_aware_optimizer = PrecisionAwareOptimizer{StateFormat::bf16, StateFormat::bf16};
  const double all = memory_terms(without_host(in), 0).unscaled.value();
  CHECK(all > 0);
  CHECK(memory_terms(in, 0).unscaled.value() == Approx(0.25 * all));
  in.options.optimizer_state_offload->fraction = 1;
  CHECK(memory_terms(in, 0).unscaled.value() == Approx(all / state_copies(in, 0).chunks));
  in.options.optimizer_state_offload->chunk_size_mb = 0;
  CHECK(memory_terms(in, 0).unscaled.value() == Approx(all));
}

TEST_CASE("nothing on the host is as without") {
  for (const auto& offload : {std::optional(OptimizerStateOffload{0, 16}), std::optional<OptimizerStateOffload>()}) {
    StepInputs in = offloading(0, 16);
    in.options.optimizer_state_offload = offload;
    in.host_bandwidth = Bandwidth{};
    CHECK(check_step(in, 16, {}).empty());
    CHECK(state_copies(in, 0).chunks == 0);
    CHECK(stage_memory(in, 0, 8).peak() == stage_memory(without_host(in), 0, 8).peak());
    CHECK(update_of(in) == update_of(without_host(in)));
  }
}

TEST_CASE("an update never takes less with states on the host, nor more with a faster way to it or fewer of them") {
  Dice dice(5);
  int steps = 0, waited = 0;
  for (int n = 0; n < 200; ++n) {
    const StepInputs in = drawn(dice);
    if (!check_step(in, 16, {}).empty()) continue;
    ++steps;
    StepInputs faster = in, fewer = in, endless = in;
    faster.host_bandwidth = in.host_bandwidth * 1.5;
    fewer.options.optimizer_state_offload->fraction /= 2;
    endless.host_bandwidth = Bandwidth(1e30);
    const Seconds update = update_of(in), plain = update_of(without_host(in));
    INFO(n << ": fraction " << in.options.optimizer_state_offload->fraction << ", chunks "
           << state_copies(in, 0).chunks);
    CHECK(update >= plain * (1 - 1e-12));
    CHECK(update_of(faster) <= update * (1 + 1e-12));
    if (in.options.optimizer_state_offload->chunk_size_mb == 0) CHECK(update_of(fewer) <= update * (1 + 1e-12));
    // Without copies each chunk is a launch more, and nothing else.
    const StateCopies c = state_copies(in, 0);
    const double launches = (c.updates() - 1) * in.kernels.memory_bound.overhead.count() *
                            (workload::optimizer_bytes(in.options).converted > 0 ? 2 : 1);
    CHECK(update_of(endless).count() == Approx(plain.count() + launches));
    CHECK(peak_memory(in, 8).peak() <= peak_memory(without_host(in), 8).peak());
    if (c.wait() > Seconds{}) ++waited;
  }
  CHECK(steps > 100);
  CHECK(waited > 50);
}

TEST_CASE("the timeline says of such steps what the closed form says") {
  Dice dice(11);
  int steps = 0;
  for (int n = 0; n < 60; ++n) {
    const StepInputs in = drawn(dice);
    if (!check_step(in, 16, {}).empty()) continue;
    ++steps;
    const StepResult both = forecast_on_two(in, Method::both);
    const StepResult plain = forecast_on_two(without_host(in), Method::both);
    REQUIRE(both.simulate);
    INFO(n);
    // What the update is longer by, whatever both methods say of the passes.
    CHECK((*both.simulate - *plain.simulate).count() ==
          Approx((both.estimate - plain.estimate).count()).epsilon(1e-6).margin(1e-9));
  }
  CHECK(steps > 30);
}

TEST_CASE("what states on the host do not go with is said, with what would") {
  using Catch::Matchers::Contains;
  Origins origins;
  origins.set("training.optimizer_state_offload", {"step.yaml", 7, 30});
  const auto said = [&](const StepInputs& in) { return to_text(check_step(in, 64, origins)); };
  StepInputs in = offloading(1, 256);
  CHECK(said(in).empty());
  in.host_bandwidth = Bandwidth{};
  CHECK_THAT(said(in), Contains("step.yaml:7:30") && Contains("no way from each GPU to a CPU"));
  in = offloading(1, 256);
  in.options.precision_aware_optimizer = PrecisionAwareOptimizer{StateFormat::fp16, StateFormat::fp8};
  CHECK_THAT(said(in), Contains("step.yaml:7:30") && Contains("exp_avg_dtype is fp16") &&
                           Contains("exp_avg_sq_dtype is fp8") && Contains("use bf16"));
}
