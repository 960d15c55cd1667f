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
