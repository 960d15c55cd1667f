// Kernels of a GPU: what is asked of cuBLAS and the driver, against those that only the test has (fake_nvidia.cpp),
// whose clock says 100 TFLOP/s and 1 TB/s. Real GPUs are no part of this.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "cli/process.hpp"

using namespace collcast::test;
using Catch::Contains;
using Json = nlohmann::json;

#ifdef COLLCAST_HAS_NCCL

namespace {

Outcome with_fakes(const std::string& words, const Folder& folder, const std::string& more = "") {
  return run_shell("LD_LIBRARY_PATH='" COLLCAST_FAKES "' FAKE_CLOCK=1 FAKE_MEMORY=67108864 " + more +
                       " collcast measure kernels " + words,
                   folder.path());
}

/// Of Llama-3 8B's and 70B's layers, two models, four numbers of tokens, four degrees, four products, those whose
/// operands of two bytes take 64 MiB at most.
int products_that_fit() {
  int out = 0;
  for (const auto& [hidden, mlp, qkv] : {std::tuple(4096LL, 14336LL, 6144LL), std::tuple(8192LL, 28672LL, 10240LL)})
    for (const long long m : {1024, 2048, 4096, 8192})
      for (const long long tp : {1, 2, 4, 8})
        for (const auto& [n, k] : {std::pair(qkv / tp, hidden), std::pair(hidden, hidden / tp),
                                   std::pair(2 * mlp / tp, hidden), std::pair(hidden, mlp / tp)})
          out += 2 * (m * k + n * k + m * n) <= 64LL << 20;
  return out;
}

}  // namespace

TEST_CASE("products, their batches, copies and fills are timed as the device's clock says") {
  const Folder folder;
  const Outcome run = with_fakes("--repetitions 3 --format json", folder);
  INFO(run.err);
  REQUIRE(run.exit == 0);
  const Json doc = Json::parse(run.out);
  CHECK(doc["system"]["device"] == "Fake GPU");
  CHECK(doc["system"]["library"] == "cuBLAS 12.8.4");
  CHECK(doc["complete"] == true);
  std::map<std::string, int> seen;
  for (const Json& row : doc["rows"]) {
    const std::string kernel = row["kernel"];
    ++seen[kernel];
    const double median = row["median_s"];
    if (kernel == "gemm" || kernel == "attention") {
      const double flops =
          2.0 * row["batch"].get<double>() * row["m"].get<double>() * row["n"].get<double>() * row["k"].get<double>();
      CHECK(median == Approx(flops / 100e12).epsilon(1e-3));
      CHECK(row["product_flops_per_s"].get<double>() == Approx(100e12).epsilon(1e-3));
    } else {
      CHECK(median == Approx((kernel == "copy" ? 2 : 1) * row["bytes"].get<double>() / 1e12).epsilon(1e-3));
      CHECK(row["moved_bytes_per_s"].get<double>() == Approx(1e12).epsilon(1e-3));
    }
    CHECK(row["min_s"].get<double>() <= median);
  }
  CHECK(seen["gemm"] == products_that_fit());
  // 1 MiB to 16 MiB by four, of which a GPU of 64 MiB holds two; 64 MiB alone it can fill, not copy.
  CHECK(seen["copy"] == 3);
  CHECK(seen["fill"] == 4);
  CHECK_THAT(doc["notes"].dump(), Contains("copy of 64 MiB is left out: it does not fit the GPU's memory"));
}

TEST_CASE("a table of products is read by validate, and its shapes are measured again") {
  const Folder folder;
  const Outcome first = with_fakes("gemm --repetitions 1 --dtype float16 --system h200_sxm --output first.csv", folder);
  INFO(first.err);
  REQUIRE(first.exit == 0);
  const Outcome again = with_fakes("gemm --repetitions 1 --shapes first.csv --format csv", folder);
  INFO(again.err);
  REQUIRE(again.exit == 0);
  CHECK_THAT(again.out, Contains("system,device,dtype,m,n,k,latency_ms"));
  CHECK(std::count(again.out.begin(), again.out.end(), '\n') == 1 + products_that_fit());  // and the heading

  const Outcome scored = run_shell("collcast validate --kernels first.csv --format json", folder.path());
  INFO(scored.err);
  REQUIRE(scored.exit == 0);
  CHECK_THAT(scored.out, Contains("fp16"));
}

TEST_CASE("products of fp8 are cuBLASLt's, of whole 16 bytes, and a table's are measured in its own types") {
  const Folder folder;
  folder.write("shapes.csv",
               "dtype,m,n,k,latency_ms\nfp8,33,64,128,1\nfp8,33,64,128,2\nbfloat16,33,64,128,1\nfp8,32,60,128,1\n"
               "nvfp4,32,64,128,1\nfp8,2048,1024,4096,1\n");
  const Outcome mixed = with_fakes("gemm --repetitions 1 --shapes shapes.csv --system h200_sxm --format json", folder);
  INFO(mixed.err);
  REQUIRE(mixed.exit == 0);
  const Json doc = Json::parse(mixed.out);
  REQUIRE(doc["rows"].size() == 3);
  CHECK(doc["rows"][0]["dtype"] == "fp8");
  CHECK(doc["rows"][0]["m"] == 33);
  CHECK(doc["rows"][1]["dtype"] == "bfloat16");
  CHECK(doc["rows"][2]["product_flops_per_s"].get<double>() == Approx(200e12).epsilon(1e-3));
  // one byte an element of the operands, two of the result
  CHECK(doc["rows"][2]["moved_bytes_per_s"].get<double>() * doc["rows"][2]["median_s"].get<double>() ==
        Approx(2048.0 * 4096 + 1024.0 * 4096 + 2 * 2048.0 * 1024));
  CHECK_THAT(doc["notes"].dump(),
             Contains("fp8 32 x 60 x 128 is left out: products of fp8 take n and k that 16 divides") &&
                 Contains("1 rows of nvfp4 are left out"));

  const Outcome all = with_fakes("gemm --repetitions 1 --shapes shapes.csv --dtype fp8 --format csv", folder);
  CHECK(std::count(all.out.begin(), all.out.end(), '\n') == 1 + 3);  // 33x64x128 once, nvfp4's shape too
  const Outcome none = with_fakes("gemm --repetitions 1 --dtype fp8", folder, "FAKE_NO_FP8=1");
  CHECK(none.exit == 1);
  CHECK_THAT(none.err, Contains("cuBLAS has no algorithm for it on this GPU") && Contains("nothing was measured"));
  folder.write("four.csv", "dtype,m,n,k,latency_ms\nnvfp4,32,64,128,1\n");
  const Outcome both = with_fakes("gemm --shapes four.csv --dtype fp7 --repetitions 0", folder);
  CHECK(both.exit == 2);
  CHECK_THAT(both.err, Contains("--repetitions") && Contains("--dtype"));
  const Outcome four = with_fakes("gemm --shapes four.csv --repetitions 0", folder);
  CHECK(four.exit == 2);
  CHECK_THAT(four.err, Contains("--repetitions") && Contains("no product of four.csv can be measured"));
  const Outcome attention = with_fakes("attention --dtype fp8", folder);
  CHECK(attention.exit == 2);
  CHECK_THAT(attention.err, Contains("--dtype fp8 has no meaning for attention"));
}

TEST_CASE("what cannot be measured says why: exit 3 without a GPU, 2 for words that make no sense") {
  const Folder folder;
  const Outcome none = with_fakes("gemm", folder, "FAKE_GPUS=0");
  CHECK(none.exit == 3);
  CHECK_THAT(none.err, Contains("no usable NVIDIA GPU"));
  const Outcome ninth = with_fakes("gemm --device 9", folder);
  CHECK(ninth.exit == 3);
  CHECK_THAT(ninth.err, Contains("there is no GPU 9: 4 here"));
  const Outcome small = with_fakes("memory", folder, "FAKE_MEMORY=1000");
  CHECK(small.exit == 1);
  CHECK_THAT(small.err, Contains("nothing was measured"));
  folder.write("none.csv", "a,b\n1,2\n");
  const Outcome wrong = with_fakes("memory --dtype double --shapes none.csv --repetitions 0", folder);
  CHECK(wrong.exit == 2);
  CHECK_THAT(wrong.err,
             Contains("'double'") && Contains("--shapes has no meaning for memory") && Contains("--repetitions"));
  const Outcome shapes = with_fakes("gemm --shapes none.csv", folder);
  CHECK(shapes.exit == 2);
  CHECK_THAT(shapes.err, Contains("none.csv:1"));
}

#endif
