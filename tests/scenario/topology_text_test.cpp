// A description written as a file is the description.
#include <catch2/catch.hpp>

#include <variant>

#include "samples.hpp"

using namespace collcast;

namespace {

void check_same(const TopologySpec& a, const TopologySpec& b) {
  CHECK(a.name == b.name);
  CHECK(a.title == b.title);
  CHECK(a.systems == b.systems);
  CHECK(a.sources == b.sources);
  CHECK(a.teaching == b.teaching);
  CHECK(a.default_nodes == b.default_nodes);
  CHECK(a.max_nodes == b.max_nodes);
  CHECK(a.gpu.model == b.gpu.model);
  CHECK(a.gpu.memory == b.gpu.memory);
  CHECK(a.gpu.memory_bandwidth == b.gpu.memory_bandwidth);
  CHECK(a.gpu.peak == b.gpu.peak);
  CHECK(a.gpu.source == b.gpu.source);
  CHECK(a.gpu.kernels == b.gpu.kernels);
  CHECK(a.host.cpu == b.host.cpu);
  CHECK(a.host.source == b.host.source);
  REQUIRE(a.devices.size() == b.devices.size());
  for (std::size_t i = 0; i < a.devices.size(); ++i) {
    CHECK(a.devices[i].name == b.devices[i].name);
    CHECK(a.devices[i].kind == b.devices[i].kind);
    CHECK(a.devices[i].count == b.devices[i].count);
  }
  REQUIRE(a.links.size() == b.links.size());
  for (std::size_t i = 0; i < a.links.size(); ++i) {
    CHECK(a.links[i].from == b.links[i].from);
    CHECK(a.links[i].to == b.links[i].to);
    CHECK(a.links[i].wiring == b.links[i].wiring);
    CHECK(a.links[i].pairs == b.links[i].pairs);
    CHECK(a.links[i].kind == b.links[i].kind);
    CHECK(a.links[i].bandwidth == b.links[i].bandwidth);
    CHECK(a.links[i].latency == b.links[i].latency);
    CHECK(a.links[i].source == b.links[i].source);
  }
  CHECK(a.network_devices == b.network_devices);
  CHECK(a.network_source == b.network_source);
  CHECK(a.network.index() == b.network.index());
}

}  // namespace

TEST_CASE("every shipped machine, written and read, is the same to the last bit") {
  for (const TopologyEntry& entry : list_topologies(samples::shipped())) {
    INFO(entry.name);
    const Result<TopologySpec> spec = load_topology(entry.name, samples::shipped());
    REQUIRE(spec.ok());
    const std::string text = topology_text(*spec, {"a remark", "", "another"});
    const Result<TopologySpec> again = parse_topology(text, "again.yaml");
    INFO(text << to_text(again.errors()));
    REQUIRE(again.ok());
    check_same(*spec, *again);
    // The networks' figures too: what is written of them is the same again.
    CHECK(topology_text(*again, {"a remark", "", "another"}) == text);
  }
}

TEST_CASE("figures without a round unit, quotes and odd texts are written so that they read back") {
  TopologySpec spec;
  spec.name = "odd";
  spec.title = R"(a "title" with \ and #: {})";
  spec.devices = {{"host", DeviceKind::host, 3, {}}};
  spec.links = {{"host",
                 "host",
                 Wiring::pairs,
                 {{0, 1}, {1, 2}},
                 LinkKind::direct,
                 Bandwidth(1e9 / 3),
                 Seconds(1e-7 / 3),
                 "a: \"b\"",
                 {}}};
  spec.network = TorusNetwork{{2, 3}, true, Bandwidth(1.0 / 3 + 1), Seconds(0)};
  spec.network_devices = "host";
  spec.network_source = "none";
  spec.default_nodes = 6;
  const std::string text = topology_text(spec);
  const Result<TopologySpec> again = parse_topology(text, "again.yaml");
  INFO(text << to_text(again.errors()));
  REQUIRE(again.ok());
  check_same(spec, *again);
  const auto& grid = std::get<TorusNetwork>(again->network);
  CHECK(grid.dims == std::vector<int>{2, 3});
  CHECK(grid.bandwidth == Bandwidth(1.0 / 3 + 1));
}
