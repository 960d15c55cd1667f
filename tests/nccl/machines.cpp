#include "machines.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <stdexcept>

#include "collcast/evaluate/by_nccl.hpp"
#include "collcast/nccl/program.hpp"

namespace collcast::test {

const SearchPath& source_tree() {
  static const SearchPath path{{std::string(COLLCAST_SOURCE_DIR) + "/topologies"}, {}, {}};
  return path;
}

namespace {

TopologySpec loaded(const std::string& name, const std::vector<Override>& sets) {
  const Result<TopologySpec> spec = load_topology(name, source_tree(), sets);
  INFO(name << ": " << to_text(spec.errors()));
  REQUIRE(spec.ok());
  return *spec;
}

}  // namespace

TopologySpec shipped(const std::string& name) { return loaded(name, {}); }

std::vector<std::string> machines_of_gpus() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(COLLCAST_SOURCE_DIR "/topologies")) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".yaml") continue;
    const TopologySpec spec = shipped(name);
    if (!spec.gpu.model.empty() && Fabric::build(spec, 2).ok()) out.push_back(name);
  }
  std::ranges::sort(out);
  return out;
}

Fabric built(const std::string& name, int nodes, const std::vector<std::string>& sets) {
  std::vector<Override> overrides;
  for (const std::string& text : sets) {
    const std::size_t equals = text.find('=');
    overrides.push_back({text.substr(0, equals), text.substr(equals + 1), {"command line"}, {"command line"}});
  }
  const Result<Fabric> fabric = Fabric::build(loaded(name, overrides), nodes);
  INFO(name << ": " << to_text(fabric.errors()));
  REQUIRE(fabric.ok());
  return *fabric;
}

Fabric without_nic(const std::string& name, int nic, int nodes) {
  TopologySpec spec = shipped(name);
  const auto nics = std::ranges::find(spec.devices, DeviceKind::nic, &DeviceGroup::kind);
  REQUIRE(nics != spec.devices.end());
  const auto links = std::ranges::find(spec.links, nics->name, &LinkGroup::from);
  REQUIRE((links != spec.links.end() && links->wiring == Wiring::one_to_one));
  links->wiring = Wiring::pairs;
  for (int i = 0; i + 1 < nics->count; ++i) links->pairs.emplace_back(i, i < nic ? i : i + 1);
  --nics->count;
  const Result<Fabric> fabric = Fabric::build(spec, nodes);
  INFO(name << ": " << to_text(fabric.errors()));
  REQUIRE(fabric.ok());
  return *fabric;
}

nccl::Communicator communicator(const std::string& name, int nodes, int per_node,
                                const nccl::Environment& environment) {
  const Fabric fabric = built(name, nodes);
  std::vector<Rank> ranks;
  const int all = fabric.ranks_per_node(), count = per_node == 0 ? all : per_node;
  for (int node = 0; node < nodes; ++node)
    for (int i = 0; i < count; ++i) ranks.emplace_back(static_cast<std::uint32_t>(node * all + i));
  const Result<nccl::Communicator> out = nccl::connect(fabric, Group::listed(std::move(ranks)), environment);
  INFO(name << ": " << to_text(out.errors()));
  REQUIRE(out.ok());
  return *out;
}

nccl::Environment environment(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<nccl::Setting> settings;
  for (const auto& [name, value] : variables) settings.push_back({name, value, {"command line"}});
  const Result<nccl::Environment> out = nccl::read_environment(settings);
  INFO(to_text(out.errors()));
  REQUIRE(out.ok());
  return *out;
}

double us(Seconds time) { return time.count() * 1e6; }

nccl::Plan planned_as(const nccl::Communicator& c, CollectiveKind kind, Bytes size, nccl::Algorithm algorithm,
                      nccl::Protocol protocol) {
  for (const nccl::Candidate& one : tuning_table(c, kind, size))
    if (one.algorithm == algorithm && one.protocol == protocol) return plan_of(c, kind, size, one);
  throw std::logic_error("NCCL's table has every algorithm and protocol");
}

std::vector<std::pair<nccl::Algorithm, nccl::Protocol>> choices(const nccl::Communicator& c, CollectiveKind kind) {
  using nccl::Algorithm, nccl::Protocol;
  std::vector<std::pair<Algorithm, Protocol>> out;
  constexpr std::array simulated{Algorithm::ring, Algorithm::tree, Algorithm::nvls, Algorithm::nvls_tree};
  for (const nccl::Candidate& one : tuning_table(c, kind, Bytes(1)))
    if (one.available && std::ranges::find(simulated, one.algorithm) != simulated.end())
      out.emplace_back(one.algorithm, one.protocol);
  return out;
}

nccl::Run ran(const nccl::Communicator& c, CollectiveKind kind, std::int64_t bytes, nccl::Algorithm algorithm,
              nccl::Protocol protocol) {
  return nccl::run(c, kind, Bytes(bytes), planned_as(c, kind, Bytes(bytes), algorithm, protocol));
}

nccl::Run ran(const nccl::Communicator& c, CollectiveKind kind, std::int64_t bytes,
              std::optional<nccl::Algorithm> algorithm) {
  const auto plan = nccl::plan(c, kind, Bytes(bytes), algorithm);
  INFO(to_text(plan.errors()));
  REQUIRE(plan.ok());
  return nccl::run(c, kind, Bytes(bytes), *plan);
}

std::vector<std::vector<int>> unlike_nodes() {
  std::vector<std::vector<int>> out, all{{}};
  for (std::size_t done = 0; done < all.size(); ++done) {
    const std::vector<int> nodes = all[done];
    if (std::ranges::adjacent_find(nodes, std::not_equal_to<>()) != nodes.end()) out.push_back(nodes);
    for (int ranks = 1; ranks <= 3 && nodes.size() < 5; ++ranks) {
      all.push_back(nodes);
      all.back().push_back(ranks);
    }
  }
  return out;
}

std::string words(const std::vector<int>& numbers) {
  std::string out;
  for (const int number : numbers) out += std::to_string(number) + ' ';
  return out;
}

Group first_of_nodes(const Fabric& fabric, const std::vector<int>& gpus) {
  std::vector<Rank> ranks;
  for (std::size_t node = 0; node < gpus.size(); ++node)
    for (int gpu = 0; gpu < gpus[node]; ++gpu)
      ranks.emplace_back(static_cast<std::uint32_t>(static_cast<int>(node) * fabric.ranks_per_node() + gpu));
  return Group::listed(std::move(ranks));
}

Seconds simulated(const Fabric& fabric, const nccl::Communicator& c, CollectiveKind kind, Bytes size,
                  const nccl::Plan& plan) {
  const auto program = nccl::program(fabric, Group::strided(Rank(0), 1, c.ranks), c, kind, size, plan);
  INFO(to_text(program.errors()));
  REQUIRE(program.ok());
  const auto time = simulate(*program);
  REQUIRE(time.ok());
  return *time;
}

}  // namespace collcast::test
