// `path=value`, from the command line.
#include <catch2/catch.hpp>

#include "samples.hpp"

using namespace collcast;

namespace {

const char* const machine =
    "schema: collcast.topology.v1\nname: m\nnode: {devices: {gpu: {kind: gpu, count: 8}, sw: {kind: nvswitch}}, "
    "links: [{from: gpu, to: sw, kind: nvlink, bandwidth: 1GB/s, latency: 0s, source: s}]}\n"
    "network: {kind: star, attach: gpu, source: s, link: {bandwidth: 10GB/s, latency: 0s}}\n";

Result<TopologySpec> with(const std::vector<std::string>& settings) {
  std::vector<Override> overrides;
  for (const std::string& text : settings) overrides.push_back(parse_override(text).value());
  return parse_topology(machine, "m.yaml", overrides);
}

/// The only error: its message, then its hint.
std::pair<std::string, std::string> setting_error(const std::string& setting) {
  const auto spec = with({setting});
  REQUIRE(spec.errors().size() == 1);
  CHECK(spec.errors()[0].where.file == "--set " + setting);
  CHECK(spec.errors()[0].where.line == 1);
  return {spec.errors()[0].message, spec.errors()[0].hint};
}

}  // namespace

TEST_CASE("an override is split at the first equals sign") {
  const Override o = parse_override("a.b=c=d").value();
  CHECK(o.path == "a.b");
  CHECK(o.value == "c=d");
  CHECK(to_text(o.where) == "--set a.b=c=d:1:7");
  CHECK(to_text(o.value_where) == "--set a.b=c=d:1:11");
  for (const char* bad : {"", "a", "=1", "a=", "="}) CHECK_FALSE(parse_override(bad).ok());
  CHECK(to_text(parse_override("a=").errors()).find("--set a=:1:9: error: 'a=' gives no value") == 0);
}

TEST_CASE("an override's error points at the part that is wrong") {
  const auto column = [](const std::string& setting, const std::string& part) {
    const auto spec = with({setting});
    INFO(to_text(spec.errors()));
    REQUIRE(spec.errors().size() == 1);
    CHECK(spec.errors()[0].where.column == static_cast<int>(("--set " + setting).find(part)) + 1);
  };
  column("netwrok.link.bandwidth=1GB/s", "netwrok");
  column("node.devices.gpu.cuont=4", "cuont");
  column("node.links.7.latency=1us", "7");
  column("nodes..default=1", ".default");
  column("name.x=1", "x=");
  column("nodes.default=many", "many");
  column("nodes={default: many}", "many");
  column("nodes={default: 4, mxa: 4}", "mxa");
  column("network.link.bandwidth=[1, 2", "[1");
}

TEST_CASE("an override replaces a value, also inside a list and of a key the file leaves out") {
  const TopologySpec spec =
      with({"network.link.bandwidth=400Gb/s", "node.links.0.latency=2us", "nodes.default=4", "systems=[a, b]"}).value();
  CHECK(std::get<StarNetwork>(spec.network).bandwidth == Bandwidth(50e9));
  CHECK(spec.links.at(0).latency == Seconds(2e-6));
  CHECK(spec.default_nodes == 4);
  CHECK(spec.systems == std::vector<std::string>{"a", "b"});
}

TEST_CASE("the last of two overrides of one path counts") {
  CHECK(with({"nodes.default=4", "nodes.default=5"}).value().default_nodes == 5);
}

TEST_CASE("an unknown path is answered with the nearest one") {
  CHECK(setting_error("netwrok.link.bandwidth=1GB/s") ==
        std::pair<std::string, std::string>("unknown path 'netwrok.link.bandwidth'",
                                            "did you mean 'network.link.bandwidth'?"));
  CHECK(setting_error("node.devices.gpu.cuont=4").second == "did you mean 'node.devices.gpu.count'?");
  CHECK(setting_error("link.bandwidth=1GB/s").second == "did you mean 'network.link.bandwidth'?");
  // The section that two paths share makes nothing alike.
  CHECK(setting_error("nodes.zzz=1").second == "docs/formats.md lists the keys; a path joins them with dots");
  CHECK(setting_error("nodes.mix=1").second == "did you mean 'nodes.max'?");
  // A key of a map that is set is told as in a file.
  CHECK(setting_error("nodes={defualt: 4}").first == "unknown key 'defualt' in nodes");
  CHECK(setting_error("xyzzy=1").second == "docs/formats.md lists the keys; a path joins them with dots");
}

TEST_CASE("a bad value is reported like one in a file") {
  CHECK(setting_error("nodes.default=many").first == "nodes.default is 'many'");
  CHECK(setting_error("network.link.bandwidth=5").first == "network.link.bandwidth is '5'");
  CHECK(setting_error("network.link.bandwidth=a: b: c")
            .first.find("value of 'network.link.bandwidth': this is not YAML") == 0);
  CHECK(setting_error("network.link.bandwidth=&a 5").first.find("value of 'network.link.bandwidth': anchors") == 0);
}

TEST_CASE("a path that cannot be followed says where it ends") {
  CHECK(setting_error("name.x=1").first == "path 'name.x': nothing can be set below a single value");
  CHECK(setting_error("node.links.7.latency=1us").first == "path 'node.links.7.latency': the list has no element '7'");
  CHECK(setting_error("nodes..default=1").first == "path 'nodes..default' has an empty part");
  CHECK(setting_error("extends=ring").first == "'extends' cannot be set");
}

TEST_CASE("two bad overrides are two diagnostics") {
  CHECK(with({"nodes.default=0", "nodse.max=1"}).errors().size() == 2);
}
