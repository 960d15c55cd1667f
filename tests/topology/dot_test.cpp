// The Graphviz text: whole, balanced, and naming every device.
#include <catch2/catch.hpp>

#include <algorithm>
#include <sstream>

#include "machines.hpp"

using namespace collcast;
using namespace collcast::test;
using Catch::Matchers::Contains;

namespace {

std::string dot(const Fabric& fabric) {
  std::ostringstream out;
  fabric.write_dot(out);
  return out.str();
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + word.size())) ++found;
  return found;
}

}  // namespace

TEST_CASE("the whole DOT of two hosts on a star reads as expected") {
  CHECK(dot(build(teaching(star()), 2)) == R"(graph "teaching" {
  node [shape=box];
  subgraph cluster_0 {
    label="node0";
    d0 [label="host0"];
  }
  subgraph cluster_1 {
    label="node1";
    d1 [label="host1"];
  }
  d2 [label="switch"];
  d0 -- d2 [label="network 10 GB/s, 500 ns"];
  d1 -- d2 [label="network 10 GB/s, 500 ns"];
}
)");
}

TEST_CASE("DOT has every device once, every cable once, and balanced braces and quotes") {
  const Fabric fabric = build(dgx(rails(2, 2, 2)), 3);
  const std::string text = dot(fabric);
  CHECK(count(text, " -- ") == fabric.links().size() / 2);
  CHECK(std::count(text.begin(), text.end(), '{') == std::count(text.begin(), text.end(), '}'));
  CHECK(std::count(text.begin(), text.end(), '"') % 2 == 0);
  CHECK(count(text, "subgraph cluster_") == 3);
  // 2 pods of 8 leaves.
  for (const char* name : {"\"node0.gpu0\"", "\"node2.nic7\"", "\"node1.nvswitch0\"", "\"leaf15\"", "\"spine1\""})
    CHECK(count(text, name) == 1);
  // 2 ports of 50 GB/s per leaf, 2:1 over 2 spines: 25 GB/s.
  CHECK_THAT(text, Contains("[label=\"network 25 GB/s, 700 ns\"]"));
  CHECK_THAT(text, Contains("[label=\"nvlink 300 GB/s, 250 ns\"]"));
}

TEST_CASE("a quote in the machine's name does not end the label") {
  TopologySpec spec = teaching(star());
  spec.name = "say \"hi\"\\";
  CHECK_THAT(dot(build(spec, 1)), Contains("graph \"say \\\"hi\\\"\\\\\" {"));
}

TEST_CASE("kinds have the words of the file format") {
  CHECK(to_string(DeviceKind::pcie_switch) == "pcie_switch");
  CHECK(to_string(DeviceKind::host) == "host");
  CHECK(to_string(LinkKind::nic_port) == "nic_port");
  CHECK(to_string(LinkKind::c2c) == "c2c");
}
