#include "samples.hpp"

#include <catch2/catch.hpp>

#include "collcast/base/text.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast::test {

std::string data_file(const std::string& name) {
  const Result<std::string> text = read_file(COLLCAST_SOURCE_DIR "/tests/exchange/data/" + name, {});
  INFO(to_text(text.errors()));
  REQUIRE(text.ok());
  return *text;
}

TopologySpec shipped_machine(const std::string& name) {
  const Result<TopologySpec> spec = load_topology(name, {{COLLCAST_SOURCE_DIR "/topologies"}, {}, {}});
  INFO(to_text(spec.errors()));
  REQUIRE(spec.ok());
  return *spec;
}

TopologySpec imported(const std::string& file, const std::string& like, Bandwidth nic_rate) {
  const std::string text = data_file(file);
  const Result<exchange::ForeignNode> node = exchange::machine_format(text) == exchange::MachineFormat::nccl_xml
                                                 ? exchange::read_nccl_topology(text, file)
                                                 : exchange::read_nvidia_smi(text, file);
  INFO(file << ": " << to_text(node.errors()));
  REQUIRE(node.ok());
  const auto machine = exchange::complete(*node, shipped_machine(like), "imported", nic_rate);
  INFO(to_text(machine.errors()));
  REQUIRE(machine.ok());
  const Result<TopologySpec> again = parse_topology(topology_text(machine->spec, machine->remarks), "imported.yaml");
  INFO(to_text(again.errors()));
  REQUIRE(again.ok());
  return *again;
}

std::vector<std::string> channels(const TopologySpec& spec, int nodes) {
  const Result<Fabric> fabric = Fabric::build(spec, nodes);
  INFO(spec.name << ": " << to_text(fabric.errors()));
  REQUIRE(fabric.ok());
  const Group all = Group::strided(Rank(0), 1, fabric->rank_count());
  const auto c = nccl::connect(*fabric, all);
  INFO(to_text(c.errors()));
  REQUIRE(c.ok());
  std::vector<std::string> out = graph_lines(*c);
  for (std::string& line : channel_lines(*c, nccl::channels(*fabric, all, *c), 0)) out.push_back(std::move(line));
  return out;
}

std::vector<std::string> messages_of(const Diagnostics& all) {
  std::vector<std::string> out;
  for (const Diagnostic& d : all) out.push_back(to_text(d.where) + ": " + d.message);
  return out;
}

}  // namespace collcast::test
