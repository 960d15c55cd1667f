// Kernel tables.
#include <catch2/catch.hpp>

#include "folder.hpp"
#include "samples.hpp"

using namespace collcast;

TEST_CASE("a kernel table holds its efficiencies by precision") {
  const KernelModel model = parse_kernels(
                                "schema: collcast.kernels.v1\nname: k\nsources: [lab]\n"
                                "gemm: {bf16: {overhead: 10us, compute: 0.8, memory: 0.9, source: a}, fp8: {overhead: "
                                "1us, compute: 0.6, memory: 1, source: b}}\n"
                                "attention: {bf16: {overhead: 0s, compute: 0.5, memory: 0.2, source: c}}\n"
                                "memory_bound: {overhead: 3us, compute: 1, memory: 0.75, source: d}\n",
                                "k.yaml")
                                .value();
  CHECK(model.name == "k");
  CHECK(model.file == "k.yaml");
  CHECK(model.gemm.size() == 2);
  CHECK(model.gemm.at("bf16").overhead == Seconds(1e-5));
  CHECK(model.gemm.at("bf16").compute == 0.8);
  CHECK(model.gemm.at("fp8").memory == 1.0);
  CHECK(model.attention.at("bf16").source == "c");
  CHECK(model.memory_bound.memory == 0.75);
}

TEST_CASE("an efficiency is a share: above 0, up to 1") {
  for (const char* bad : {"0", "1.01", "-0.5", "80%"}) {
    const auto model = parse_kernels(
        "schema: collcast.kernels.v1\nname: k\nsources: [lab]\ngemm:\n  bf16:\n    overhead: 1us\n    compute: " +
            std::string(bad) +
            "\n    memory: 1\n    source: a\nattention: {bf16: {overhead: 0s, compute: 1, memory: 1, source: c}}\n"
            "memory_bound: {overhead: 3us, compute: 1, memory: 1, source: d}\n",
        "k.yaml");
    REQUIRE(model.errors().size() == 1);
    CHECK(model.errors()[0].where.line == 7);
    CHECK(model.errors()[0].hint == "expected a number above 0 and up to 1, without unit");
  }
}

TEST_CASE(
    "what a collective leaves of the kernels' rate, and copies have of a line, are shares with a source; else all") {
  const std::string table =
      "schema: collcast.kernels.v1\nname: k\nsources: [lab]\n"
      "gemm: {bf16: {overhead: 0s, compute: 1, memory: 1, source: c}}\n"
      "attention: {bf16: {overhead: 0s, compute: 1, memory: 1, source: c}}\n"
      "memory_bound: {overhead: 3us, compute: 1, memory: 1, source: d}\n";
  CHECK(parse_kernels(table, "k.yaml").value().beside_collectives == 1);
  CHECK(parse_kernels(table + "beside_collectives: {compute: 0.8, source: e}\n", "k.yaml").value().beside_collectives ==
        0.8);
  const auto wrong = parse_kernels(table + "beside_collectives: {compute: 0}\n", "k.yaml");
  REQUIRE(wrong.errors().size() == 2);
  CHECK(wrong.errors()[0].where.line == 7);
  CHECK(parse_kernels(table, "k.yaml").value().host_copies == 1);
  CHECK(parse_kernels(table + "host_copies: {rate: 0.7, source: e}\n", "k.yaml").value().host_copies == 0.7);
  CHECK(parse_kernels(table + "host_copies: {rate: 1.2}\n", "k.yaml").errors().size() == 2);
}

TEST_CASE("a table without any precision is refused") {
  const auto model = parse_kernels(
      "schema: collcast.kernels.v1\nname: k\nsources: [lab]\ngemm: {}\n"
      "attention: {bf16: {overhead: 0s, compute: 1, memory: 1, source: c}}\n"
      "memory_bound: {overhead: 3us, compute: 1, memory: 1, source: d}\n",
      "k.yaml");
  REQUIRE(model.errors().size() == 1);
  CHECK(model.errors()[0].message == "gemm is empty");
}

TEST_CASE("a kernel table is found by its name beside the machines") {
  CHECK(load_kernels("a100", samples::shipped()).value().name == "a100");
  const auto missing = load_kernels("a10", samples::shipped());
  REQUIRE(missing.errors().size() == 1);
  CHECK(missing.errors()[0].message == "there is no kernel table 'a10'");
}

TEST_CASE("a missing table is reported at the key of the machine that names it") {
  const TopologySpec machine =
      parse_topology(
          "schema: collcast.topology.v1\nname: m\nnode: {devices: {gpu: {kind: gpu}}}\ngpu:\n"
          "  {model: G, memory: 1GB, memory_bandwidth: 1TB/s, peak: {bf16: 1TFLOP/s}, kernels: a10, source: s}\n",
          "m.yaml")
          .value();
  const auto missing = load_kernels(machine, samples::shipped());
  REQUIRE(missing.errors().size() == 1);
  CHECK(to_text(missing.errors())
            .find("m.yaml:5:85: error: there is no kernel table 'a10'\n    hint: did you mean 'a100'?") == 0);
}

TEST_CASE("a kernel table among the machines is not listed as one") {
  const Folder folder("listed");
  folder.file("k.yaml", "schema: collcast.kernels.v1\nname: k\n");
  folder.file("m.yaml", "schema: collcast.topology.v1\nname: m\ntitle: M\n");
  folder.file("broken.yaml", "a: [");
  std::vector<std::string> names;
  for (const TopologyEntry& entry : list_topologies({{folder.path()}, {}})) names.push_back(entry.name);
  CHECK(names == std::vector<std::string>{"broken", "m"});
}

namespace {

const char* const rates = "overhead: 10us, compute: 0.5, memory: 0.5, source: a";

/// A kernel table whose bf16 products have these `measured` keys.
std::string with_measured(const std::string& measured) {
  return "schema: collcast.kernels.v1\nname: k\nsources: [lab]\ngemm:\n  bf16: {" + std::string(rates) +
         ",\n    measured: {" + measured + "}}\nattention: {bf16: {" + rates + "}}\nmemory_bound: {" + rates + "}\n";
}

const char* const h100 = "file: m.csv, dtype: bfloat16, peak: 1000TFLOP/s, memory_bandwidth: 1000GB/s";

}  // namespace

TEST_CASE("a kernel table reads its measured products and holds them against its roofline") {
  const Folder folder("kernels");
  // 2 x 1000^3 FLOP at half of 1000 TFLOP/s: 4 us; 6 MB at half of 1000 GB/s: 12 us; with 10 us in front 22 us.
  folder.file("m.csv",
              "system,dtype,pass,m,n,k,latency_ms\nx,bfloat16,,1000,1000,1000,0.033\nx,fp8,,1000,1000,1000,5\n"
              "x,bfloat16,forward,1000,1000,1000,\"0.044\"\r\n");
  const auto model = parse_kernels(with_measured(h100), folder.path() + "/k.yaml");
  REQUIRE(to_text(model.errors()) == "");
  const GemmTables& tables = model->measured_gemm.at("bf16");
  CHECK(tables.name() == "m.csv");
  CHECK(tables.products() == 2);
  CHECK(tables.any.ratio({1000, 1000, 1000}).value() == Approx(1.5));
  CHECK(tables.ratio(GemmPass::forward, {1000, 1000, 1000})->ratio == Approx(2.0));
  CHECK(tables.ratio(GemmPass::weight_gradient, {1000, 1000, 1000})->ratio == Approx(1.5));
}

TEST_CASE("everything wrong with a table of products is said at its place") {
  const Folder folder("products");
  const auto errors = [&](const std::string& table, const std::string& measured = h100) {
    folder.file("m.csv", table);
    std::string text = to_text(parse_kernels(with_measured(measured), folder.path() + "/k.yaml").errors());
    for (std::size_t at; (at = text.find(folder.path() + "/")) != std::string::npos;)
      text.erase(at, folder.path().size() + 1);
    return text;
  };
  CHECK(errors("") == "m.csv:1:1: error: the file is empty\n    hint: expected a table of measured products\n");
  CHECK(errors("dtype,m,k\n") ==
        "m.csv:1:1: error: the columns n, latency_ms are missing\n    hint: expected dtype,m,n,k,latency_ms\n");
  CHECK(errors("dtype,m,n,k,latency_ms,m\n") ==
        "m.csv:1:24: error: the column m is there twice\n    hint: expected each column once\n");
  CHECK(errors("dtype,m,n,k,latency_ms\n") ==
        "m.csv:1:1: error: the table has no rows\n    hint: expected a measured product a line\n");
  CHECK(errors("dtype,m,n,k,latency_ms\nbfloat16,1,2,3\n") ==
        "m.csv:2:1: error: 4 cells in a table of 5 columns\n"
        "    hint: expected a value for each column of the heading; is the file cut off?\n");
  CHECK(errors("dtype,m,n,k,latency_ms\nbf16,0,-2,x,nan\n") ==
        "m.csv:2:1: error: dtype is 'bf16'\n    hint: expected one of: bfloat16, float16, fp8, nvfp4\n"
        "m.csv:2:6: error: m is '0'\n    hint: expected a number from 1 to 1e+09\n"
        "m.csv:2:8: error: n is '-2'\n    hint: expected a number from 1 to 1e+09\n"
        "m.csv:2:11: error: k is 'x'\n    hint: expected a number from 1 to 1e+09\n"
        "m.csv:2:13: error: latency_ms is 'nan'\n    hint: expected a number from 1e-09 to 1e+06\n");
  CHECK(errors("dtype,pass,m,n,k,latency_ms\nfp8,backward,1,2,3,4\n") ==
        "m.csv:2:5: error: pass is 'backward'\n    hint: expected one of: forward, input_gradient, weight_gradient\n");
  CHECK(
      errors("dtype,m,n,k,latency_ms\nfp8,1,\"2,3,4\n")
          .find(
              "m.csv:2:7: error: a quoted cell that does not end before the next comma\n    hint: expected \"...\"") ==
      0);
  CHECK(errors("dtype,m,n,k,latency_ms\nfp8,1,2,3,4\n") == "k.yaml:6:15: error: m.csv has no products of bfloat16\n");
  CHECK(errors("dtype,m,n,k,latency_ms\nfp8,1,2,3,4\xff\n").find("m.csv:2:12: error: ") == 0);
  const std::string missing = errors("", "file: none.csv, dtype: bfloat16, peak: 1TFLOP/s, memory_bandwidth: 1GB/s");
  CHECK(missing.find("k.yaml:6:") == 0);
  CHECK(missing.find("none.csv") != std::string::npos);
  const std::string keys = errors("", "fil: m.csv, dtype: bfloat16, peak: 1GB/s");
  CHECK(keys.find("required key 'file' is missing in gemm.bf16.measured") != std::string::npos);
  CHECK(keys.find("required key 'memory_bandwidth' is missing in gemm.bf16.measured") != std::string::npos);
  CHECK(keys.find("unknown key 'fil'") != std::string::npos);
  CHECK(keys.find("gemm.bf16.measured.peak is '1GB/s'") != std::string::npos);
}

TEST_CASE("a key that is cut short may stand for several, of which the missing one is named first") {
  const auto model = parse_kernels("schema: collcast.kernels.v1\nname: m\natten: {}\n", "k.yaml");
  REQUIRE_FALSE(model.ok());
  const std::string said = to_text(model.errors());
  CHECK(said.find("k.yaml:3:1: error: unknown key 'atten'\n    hint: expected one of: attention, ") !=
        std::string::npos);
}

TEST_CASE("measured products below what their GPU can do at its best are refused, and cannot speed a step up") {
  const Folder folder("impossible");
  const auto errors = [&](const std::string& rows) {
    folder.file("m.csv", "dtype,m,n,k,latency_ms,pass\n" + rows);
    std::string text = to_text(parse_kernels(with_measured(h100), folder.path() + "/k.yaml").errors());
    for (std::size_t at; (at = text.find(folder.path() + "/")) != std::string::npos;)
      text.erase(at, folder.path().size() + 1);
    return text;
  };
  // 8000^3: 1.024 ms of computing at the stated peak, 0.384 ms of moving; 64 x 30000 x 30000: 1.81 ms of moving.
  for (const double share : {0.81, 0.9, 1.0, 3.0, 100.0})
    CHECK(errors("bfloat16,8000,8000,8000," + std::to_string(1.024 * share) + ",\n") == "");
  CHECK(errors("bfloat16,8000,8000,8000,0.79,\n") ==
        "m.csv:2:25: error: latency_ms is '0.79', and at the gemm.bf16.measured.peak of 1 PFLOP/s this product "
        "takes 1.024 ms at least\n    hint: expected milliseconds, and rates of the GPU that was measured; is "
        "gemm.bf16.measured.peak too low?\n");
  CHECK(errors("bfloat16,8000,8000,8000,0.0015,forward\nfp8,8000,8000,8000,0.0015,\nbfloat16,64,30000,30000,1.3,\n") ==
        "m.csv:2:25: error: latency_ms is '0.0015', and at the gemm.bf16.measured.peak of 1 PFLOP/s this product "
        "takes 1.024 ms at least\n    hint: expected milliseconds; if these are seconds, write 1.5\n"
        "m.csv:4:25: error: latency_ms is '1.3', and at the gemm.bf16.measured.memory_bandwidth of 1 TB/s this "
        "product takes 1.80768 ms at least\n    hint: expected milliseconds, and rates of the GPU that was measured; "
        "is gemm.bf16.measured.memory_bandwidth too low?\n");
  // 12 MB, which a repeated product finds in caches: 0.012 ms from memory.
  CHECK(errors("bfloat16,64,2400,2400,0.0035,\n") == "");
  CHECK(errors("bfloat16,64,2400,2400,0.0015,\n").find("m.csv:2:23: error: latency_ms is '0.0015'") == 0);
}

TEST_CASE("one table of impossible products is said once, of whichever precisions name it") {
  const Folder folder("twice");
  folder.file("m.csv", "dtype,m,n,k,latency_ms\nbfloat16,8000,8000,8000,0.001\n");
  std::string table = with_measured(h100);
  table.replace(
      table.find("attention:"), 0,
      "  fp16: {overhead: 10us, compute: 0.5, memory: 0.5, source: a, measured: {" + std::string(h100) + "}}\n");
  CHECK(parse_kernels(table, folder.path() + "/k.yaml").errors().size() == 1);
}

TEST_CASE("repeats of a measured product merge, and those that contradict each other are named by their lines") {
  const Folder folder("repeats");
  const auto parsed = [&](const std::string& rows) {
    folder.file("m.csv", "dtype,m,n,k,latency_ms,pass\n" + rows);
    return parse_kernels(with_measured(h100), folder.path() + "/k.yaml");
  };
  CHECK(parsed("bfloat16,8000,8000,8000,2,\nbfloat16,8000,8000,8000,3.9,\nbfloat16,8000,8000,8000,3,\n").ok());
  // A pass or a shape of its own is another product.
  CHECK(parsed("bfloat16,8000,8000,8000,2,\nbfloat16,8000,8000,8000,200,forward\nbfloat16,8000,8000,8001,200,\n").ok());
  const auto wrong = parsed("bfloat16,8000,8000,8000,2,\nbfloat16,8000,8000,8000,3,\nbfloat16,8000,8000,8000,200,\n");
  REQUIRE(wrong.errors().size() == 1);
  CHECK((wrong.errors()[0].where.line == 4 && wrong.errors()[0].where.column == 25));
  CHECK(wrong.errors()[0].message == "latency_ms is '200', and '2' in line 2, of one product of bfloat16");
  CHECK(wrong.errors()[0].hint == "expected repeats to differ by a factor of 2 at most; keep the right one");
}
