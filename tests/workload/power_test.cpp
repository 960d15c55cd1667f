// GPUs at less than their usual power.
#include "collcast/workload/power.hpp"

#include <catch2/catch.hpp>

#include <cmath>

#include "inputs.hpp"
#include "timelines.hpp"
#include "workload/layer/kernels.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

KernelModel some_kernels() {
  KernelModel kernels = ideal_kernels();
  for (auto* rates : {&kernels.gemm, &kernels.attention})
    for (auto& [precision, kernel] : *rates) kernel.compute = 0.8;
  kernels.gemm.at("bf16").sustained = 0.7;
  kernels.grouped_gemm["bf16"] = {Seconds(1e-5), 0.6, 0.5, "test"};
  kernels.grouped_gemm_gradient["bf16"] = {Seconds(1e-5), 0.5, 0.5, "test"};
  kernels.attention_gradient["bf16"] = {Seconds(1e-5), 0.4, 0.5, "test"};
  kernels.memory_bound.memory = 0.8;
  return kernels;
}

}  // namespace

TEST_CASE("the clock is the cube root of the power, and NVIDIA's boards of one chip are near it") {
  CHECK(clock_at_power(1) == 1);
  CHECK(clock_at_power(0.512) == Approx(0.8));
  // Dense bf16 of the data sheets, a streaming multiprocessor each: H100 SXM 989.4 at 700 W with 132, NVL 835.5 at 400
  // W with 132, PCIe 756.5 at 350 W with 114.
  const double sxm = 989.4 / 132;
  CHECK(clock_at_power(400.0 / 700) == Approx(835.5 / 132 / sxm).epsilon(0.02));
  CHECK(clock_at_power(350.0 / 700) == Approx(756.5 / 114 / sxm).epsilon(0.12));
}

TEST_CASE("a limit of power lowers the rates of products and attention, and of nothing else") {
  const KernelModel before = some_kernels(), after = at_power(before, 0.512);
  for (const auto rates : {&KernelModel::gemm, &KernelModel::attention, &KernelModel::grouped_gemm,
                           &KernelModel::grouped_gemm_gradient, &KernelModel::attention_gradient})
    for (const auto& [precision, was] : before.*rates) {
      const KernelEfficiency& is = (after.*rates).at(precision);
      CHECK(is.compute == Approx(0.8 * was.compute));
      CHECK((was.sustained < 1 ? is.sustained == Approx(0.8 * was.sustained) : is.sustained == 1));
      CHECK((is.memory == was.memory && is.overhead == was.overhead));
      CHECK(is.source.find("(gpu.power_limit)") != std::string::npos);
    }
  CHECK(after.memory_bound.memory == before.memory_bound.memory);
  CHECK(after.memory_bound.source == before.memory_bound.source);
  const KernelModel same = at_power(before, 1);
  CHECK(same.gemm.at("bf16").compute == before.gemm.at("bf16").compute);
  CHECK(same.gemm.at("bf16").source == before.gemm.at("bf16").source);
}

TEST_CASE("less power never makes a step faster, and its collectives stay as they are") {
  StepInputs in = small_step(2, 2, 2);
  Seconds last{};
  const std::vector<CollectiveCost> usual = forecast(in, four_nodes(), Method::estimate).collectives;
  for (const double share : {1.0, 0.9, 0.7, 0.5, 0.3}) {
    in.kernels = at_power(ideal_kernels(), share);
    const StepResult r = forecast(in, four_nodes());
    CHECK(r.step > last);
    CHECK(r.step.count() == Approx(r.estimate.count()).epsilon(0.01));
    REQUIRE(r.collectives.size() == usual.size());
    for (std::size_t i = 0; i < usual.size(); ++i)
      CHECK(r.collectives[i].time.count() == Approx(usual[i].time.count()));
    last = r.step;
  }
}

TEST_CASE("logits that are fed to tensor cores in pieces are slower at less power, too") {
  StepInputs in = small_step(1, 1, 1);
  const GemmShape shape{4096, 32001, 4096};
  const auto time = [&](double share) {
    in.gpu.power_limit = share;
    in.kernels = at_power(ideal_kernels(), share);
    return workload::KernelTimer(in).logits("logits", GemmPass::forward, shape, Volume(1), false).time;
  };
  CHECK(time(0.512).count() == Approx(time(1).count() / 0.8));
}

TEST_CASE("a step that computes more than the data sheet's peak is told so, with what may be wrong, and no other is") {
  const auto told = [](const StepInputs& in) {
    const StepResult r = forecast(in, four_nodes());
    const auto found = std::ranges::find_if(r.warnings, [](const std::string& w) { return w.starts_with("MFU is"); });
    CHECK((std::max(r.mfu, r.hfu) > 1) == (found != r.warnings.end()));
    return found == r.warnings.end() ? std::string() : *found;
  };
  StepInputs in = small_step(2, 2, 2);
  CHECK(told(in).empty());
  for (const double scale : {0.5, 0.2, 1e-3, 1e-4}) {
    in.gpu.kernel_scale = scale;
    told(in);
  }
  in = small_step(1, 1, 1);
  in.gpu.kernel_scale = 1e-2;
  CHECK(told(in).find(
            "of the data sheet's peak, more than a GPU can compute: check gpu.kernel_scale (0.01), gpu.peak.") !=
        std::string::npos);
  in.gpu.kernel_scale = 1;
  in.kernels.measured_gemm[in.options.precision].file = "folder/mine.csv";
  in.kernels.measured_gemm[in.options.precision].any = MeasuredGemms({{{1, 1, 1}, 1e-4}, {{1e6, 1e6, 1e6}, 1e-4}});
  for (auto* rates : {&in.kernels.attention, &in.kernels.attention_gradient})
    for (auto& [precision, kernel] : *rates) kernel.compute = 1e3;
  in.kernels.memory_bound.memory = 1e3;
  CHECK(told(in).find("check the products of mine.csv, gemm.") != std::string::npos);
}
