// Products interpolated among measured ones.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "collcast/workload/gemm_time.hpp"
#include "inputs.hpp"
#include "workload/layer/kernels.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

/// Every power of two from 256 to 4096 in each dimension, their ratios by `ratio`.
template <class Ratio>
std::vector<MeasuredGemm> grid(const Ratio& ratio) {
  std::vector<MeasuredGemm> out;
  for (double m = 256; m <= 4096; m *= 2)
    for (double n = 256; n <= 4096; n *= 2)
      for (double k = 256; k <= 4096; k *= 2) out.push_back({{m, n, k}, ratio(m, n, k)});
  return out;
}

}  // namespace

TEST_CASE("a ratio that is the same everywhere is the same between") {
  const MeasuredGemms table(grid([](double, double, double) { return 1.25; }));
  for (const GemmShape shape : {GemmShape{256, 256, 256}, {300, 700, 3000}, {4096, 4096, 4096}, {150, 8000, 1000}}) {
    CHECK(*table.ratio(shape) == Approx(1.25).epsilon(1e-12));
    CHECK(*table.ratio_of_unseen(shape) == Approx(1.25).epsilon(1e-12));
  }
}

TEST_CASE("a single product says its own ratio of all near it") {
  const MeasuredGemms table({{{1000, 1000, 1000}, 2.0}});
  CHECK(*table.ratio({1000, 1000, 1000}) == Approx(2.0).epsilon(1e-12));
  CHECK(*table.ratio({600, 1900, 1000}) == Approx(2.0).epsilon(1e-12));
}

TEST_CASE("between measured products the ratio lies between theirs") {
  // Along m only: 1 at 256, 2 at 4096; at the middle, 1024, as near to one as to the other: their geometric mean.
  const MeasuredGemms table({{{256, 512, 512}, 1.0}, {{4096, 512, 512}, 2.0}});
  CHECK(*table.ratio({1024, 512, 512}) == Approx(std::sqrt(2.0)).epsilon(1e-12));
  const double near_first = *table.ratio({300, 512, 512}), near_last = *table.ratio({4000, 512, 512});
  CHECK(1.0 < near_first);
  CHECK(near_first < std::sqrt(2.0));
  CHECK(near_last > std::sqrt(2.0));
  CHECK(near_last < 2.0);
}

TEST_CASE("shapes more than twice beyond the measured ones are left to the roofline") {
  const MeasuredGemms table({{{256, 512, 1024}, 1.5}, {{4096, 2048, 1024}, 1.5}});
  CHECK(table.ratio({128, 256, 512}));
  CHECK(table.ratio({8192, 4096, 2048}));
  for (const GemmShape shape : {GemmShape{127, 512, 1024},
                                {8193, 512, 1024},
                                {256, 255, 1024},
                                {256, 4097, 1024},
                                {256, 512, 511},
                                {256, 512, 2049}})
    CHECK_FALSE(table.ratio(shape));
  CHECK_FALSE(MeasuredGemms().ratio({256, 512, 1024}));
}

TEST_CASE("beyond what was measured a product keeps the ratio of the edge: a row or a column more changes little") {
  const MeasuredGemms table({{{256, 512, 1024}, 1.25}, {{4096, 2048, 1024}, 1.75}});
  for (const double m : {8192.0, 8193.0, 1e9})
    CHECK(table.ratio_at_edge({m, 2048, 1024})->ratio == *table.ratio({8192, 2048, 1024}));
  for (const double m : {1.0, 127.0, 128.0})
    CHECK(table.ratio_at_edge({m, 512, 1024})->ratio == *table.ratio({128, 512, 1024}));
  CHECK(table.ratio_at_edge({8192, 4097, 2049})->ratio == *table.ratio({8192, 4096, 2048}));
  CHECK(table.ratio_at_edge({8192, 255, 511})->ratio == *table.ratio({8192, 256, 512}));
  // Within the range its own. Twice and four times beyond: one and two octaves, sqrt(5) of both.
  CHECK(table.ratio_at_edge({1000, 2048, 1024})->ratio == *table.ratio({1000, 2048, 1024}));
  CHECK(table.ratio_at_edge({1000, 2048, 1024})->distance == 0);
  CHECK(table.ratio_at_edge({16384, 16384, 1024})->distance == Approx(std::sqrt(5.0)));
  CHECK_FALSE(MeasuredGemms().ratio_at_edge({256, 512, 1024}));
}

TEST_CASE("beyond its own products a pass takes as much longer than all passes' as at their edge") {
  GemmTables tables;
  CHECK_FALSE(tables.ratio(GemmPass::forward, {1e6, 2048, 1024}));
  tables.any = MeasuredGemms({{{256, 512, 1024}, 1.25}, {{4096, 2048, 1024}, 1.75}});
  CHECK(tables.ratio(GemmPass::forward, {1e6, 2048, 1024})->ratio == *tables.any.ratio({8192, 2048, 1024}));
  tables.of_pass[GemmPass::forward] = MeasuredGemms({{{1024, 2048, 1024}, 3}});
  CHECK(tables.ratio(GemmPass::forward, {1e6, 2048, 1024})->ratio ==
        Approx(3 * *tables.any.ratio({8192, 2048, 1024}) / *tables.any.ratio({2048, 2048, 1024})));
  CHECK(tables.ratio(GemmPass::forward, {128, 2048, 1024})->ratio ==
        Approx(3 * *tables.any.ratio({128, 2048, 1024}) / *tables.any.ratio({512, 2048, 1024})));
  // A row on either side of each edge of its own: no jump.
  for (const double edge : {512.0, 2048.0})
    CHECK(tables.ratio(GemmPass::forward, {edge - 1, 2048, 1024})->ratio ==
          Approx(tables.ratio(GemmPass::forward, {edge + 1, 2048, 1024})->ratio).epsilon(1e-2));
  CHECK(tables.ratio(std::nullopt, {1024, 2048, 1024})->ratio == *tables.any.ratio({1024, 2048, 1024}));
  CHECK(tables.ratio(GemmPass::input_gradient, {1024, 2048, 1024})->ratio == *tables.any.ratio({1024, 2048, 1024}));
}

TEST_CASE("a product does not speak for itself when it is to be foreseen") {
  // One site, (n, k) = (512, 512), is twice as slow as all others.
  const auto ratio = [](double, double n, double k) { return n == 512 && k == 512 ? 2.0 : 1.0; };
  const MeasuredGemms table(grid(ratio));
  CHECK(*table.ratio({1024, 512, 512}) > 1.5);
  CHECK(*table.ratio_of_unseen({1024, 512, 512}) == Approx(1.0).epsilon(1e-12));
}

TEST_CASE("the order of the products does not matter") {
  std::vector<MeasuredGemm> products;  // no two as far from any shape asked for
  for (int i = 1; i <= 40; ++i)
    products.push_back({{256.0 + 97 * i, 512.0 + 31 * i * i, 700.0 + 13 * i}, 1 + 0.01 * i});
  const MeasuredGemms table(products);
  const MeasuredGemms reversed(std::vector<MeasuredGemm>(products.rbegin(), products.rend()));
  for (const GemmShape shape : {GemmShape{333, 777, 911}, {1501, 9001, 1201}, {4001, 30011, 1301}})
    CHECK(*table.ratio(shape) == Approx(*reversed.ratio(shape)).epsilon(1e-12));
}

TEST_CASE("asked again, the same ratio") {
  const MeasuredGemms table(grid([](double m, double n, double k) { return 1 + m / 1e5 + n / 2e5 + k / 3e5; }));
  const double first = *table.ratio({700, 900, 1100});
  CHECK(*table.ratio({700, 900, 1100}) == first);
  CHECK(*MeasuredGemms(table).ratio({700, 900, 1100}) == first);
}

TEST_CASE("a pass has products of its own, and else those of all") {
  GemmTables tables;
  tables.any = MeasuredGemms({{{1024, 1024, 1024}, 1.1}});
  tables.of_pass[GemmPass::weight_gradient] = MeasuredGemms({{{4096, 4096, 4096}, 1.7}});
  CHECK(tables.ratio(GemmPass::forward, {1024, 1024, 1024})->ratio == Approx(1.1));
  CHECK(tables.ratio(GemmPass::weight_gradient, {4096, 4096, 4096})->ratio == Approx(1.7));
  // Beyond those of the pass: theirs, as those of all are the same there as at their edge.
  CHECK(tables.ratio(GemmPass::weight_gradient, {1024, 1024, 1024})->ratio == Approx(1.7));
  CHECK(*tables.ratio_of_unseen(std::nullopt, {1024, 1024, 1500}) == Approx(1.1));
  CHECK(tables.products() == 2);
}

TEST_CASE("a product's bytes: operands once, the result once; gradients are added in fp32") {
  // 2 (8 x 32 + 32 x 16) + 2 x 8 x 16 = 1792; with a result of 8 bytes, read and written, 2560; operands of 1 byte:
  // 1024.
  const GemmShape shape{8, 16, 32};
  CHECK(gemm_bytes(shape, GemmPass::forward, 2).value() == 1792);
  CHECK(gemm_bytes(shape, GemmPass::weight_gradient, 2).value() == 2560);
  CHECK(gemm_bytes(shape, std::nullopt, 1).value() == 1024);
}

TEST_CASE("a server takes the products of all passes, a training step those of the pass") {
  StepInputs in = inputs(small_model(), layout(1, 1, 1), 1024, 1);
  GemmTables& tables = in.kernels.measured_gemm["bf16"];
  tables.any = MeasuredGemms({{{1, 1, 1}, 1.25}, {{1e6, 1e6, 1e6}, 1.25}});
  tables.of_pass[GemmPass::forward] = MeasuredGemms({{{1, 1, 1}, 1.75}, {{1e6, 1e6, 1e6}, 1.75}});
  const auto ratio = [&] {
    return workload::KernelTimer(in).linear("x", GemmPass::forward, {1024, 1024, 1024}, Volume(1)).measured_ratio;
  };
  CHECK(ratio() == Approx(1.75));
  in.serving.emplace();
  CHECK(ratio() == Approx(1.25));
  tables.any = {};  // what else there is
  CHECK(ratio() == Approx(1.75));
}

TEST_CASE("a product beyond the measured ones is not said to be measured") {
  StepInputs in = inputs(small_model(), layout(1, 1, 1), 1024, 1);
  in.kernels.measured_gemm["bf16"].any = MeasuredGemms({{{1024, 1024, 1024}, 0.9}});
  const auto timed = [&](double rows) {
    return workload::KernelTimer(in).linear("x", GemmPass::forward, {rows, 1024, 1024}, Volume(1));
  };
  for (const double rows : {512.0, 2048.0}) CHECK(timed(rows).level() == std::string("measured"));
  for (const double rows : {511.0, 2049.0}) {
    CHECK(timed(rows).level() == std::string("extrapolated"));
    CHECK(timed(rows).measured_ratio == Approx(0.9));
  }
}

TEST_CASE(
    "a small product that is measured quicker than its roofline is no longer for a limit of power it never meets") {
  StepInputs in = inputs(small_model(), layout(1, 1, 1), 1024, 1);
  KernelEfficiency& kernel = in.kernels.gemm.at("bf16");
  kernel.overhead = Seconds(5e-6);
  in.kernels.measured_gemm["bf16"].any = MeasuredGemms({{{32, 32, 32}, 0.5}});
  const auto timed = [&] {
    return workload::KernelTimer(in).linear("x", GemmPass::forward, {32, 32, 32}, Volume(3 * 2 * 32 * 32));
  };
  const Operation before = timed();  // half of 5 us and some ns
  CHECK(before.time < Seconds(2.6e-6));
  kernel.sustained = 0.3;
  CHECK(timed().time == before.time);
  CHECK(timed().bound == before.bound);
}

TEST_CASE("with measured products too a faster GPU is never slower, however far from the one that was measured") {
  StepInputs in = inputs(small_model(), layout(1, 1, 1), 1024, 1);
  const auto step = [&] { return forecast(in, cluster(1), Method::estimate).step; };
  const Seconds without = step();
  in.kernels.measured_gemm["bf16"].any = MeasuredGemms({{{2048, 1024, 1024}, 0.8}, {{2048, 4096, 1024}, 0.9}});
  CHECK(step() < without);
  const GpuSpec gpu = in.gpu;
  std::vector<Seconds> by_memory, by_peak;
  for (const double times : {0.2, 0.5, 0.79, 0.81, 1.0, 1.24, 1.26, 2.0, 5.0}) {
    in.gpu = gpu;
    in.gpu.memory_bandwidth = gpu.memory_bandwidth * times;
    by_memory.push_back(step());
    in.gpu = gpu;
    in.gpu.peak["bf16"] = gpu.peak.at("bf16") * times;
    by_peak.push_back(step());
  }
  CHECK(std::ranges::is_sorted(by_memory, std::ranges::greater{}));
  CHECK(std::ranges::is_sorted(by_peak, std::ranges::greater{}));
}
