// What NCCL itself estimates (asked/answers.txt, by tools/ask-nccl on a real GPU) against the search and the tuning
// model, through the importer that reads the machine NCCL was told of.
#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "collcast/exchange/machine.hpp"
#include "collcast/nccl/run.hpp"
#include "samples.hpp"

using namespace collcast;

namespace {

constexpr int asked_version = 22809;

/// A line of machines.txt: NAME RANKS [words of machine-xml] [-- NAME=VALUE ...]
struct Asked {
  std::string name, words;
  int ranks = 0;
  std::vector<nccl::Setting> settings;
  std::string gpus() const {  ///< a machine with such GPUs
    if (words.find("sm=70") != std::string::npos) return "dgx1-v100";
    if (words.find("sm=80") != std::string::npos) return "dgx-a100";
    return words.find("sm=100") != std::string::npos ? "dgx-b200" : "dgx-h200";
  }
  /// The GPU that was there is of 9.0: of others the search alone went by the file.
  bool is_itself() const { return words.find("sm=") == std::string::npos; }
};

std::map<std::string, Asked> machines() {
  std::map<std::string, Asked> out;
  std::ifstream file(COLLCAST_SOURCE_DIR "/tools/ask-nccl/machines.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Asked one;
    words >> one.name >> one.ranks;
    bool settings = false;
    for (std::string word; words >> word;) {
      if (word == "--")
        settings = true;
      else if (!settings)
        one.words += " " + word;
      else
        one.settings.push_back({word.substr(0, word.find('=')), word.substr(word.find('=') + 1), {"machines.txt"}});
    }
    out.emplace(one.name, one);
  }
  return out;
}

std::string output_of(const std::string& command) {
  std::array<char, 4096> buffer{};
  std::string out;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) out.append(buffer.data(), n);
  REQUIRE(::pclose(pipe) == 0);
  return out;
}

nccl::Communicator communicator_of(const Asked& asked) {
  const std::string xml =
      output_of("sh '" COLLCAST_SOURCE_DIR "/tools/ask-nccl/machine-xml' 0000:06:00.0" + asked.words);
  const auto node = exchange::read_nccl_topology(xml, asked.name + ".xml");
  INFO(to_text(node.errors()));
  REQUIRE(node.ok());
  const auto machine = exchange::complete(*node, test::shipped_machine(asked.gpus()), asked.name);
  REQUIRE(machine.ok());
  const Result<Fabric> fabric = Fabric::build(machine->spec, asked.ranks);
  INFO(to_text(fabric.errors()));
  REQUIRE(fabric.ok());
  const Result<nccl::Environment> read = nccl::read_environment(asked.settings);
  INFO(to_text(read.errors()));
  REQUIRE(read.ok());
  nccl::Environment environment = *read;
  environment.launch.version = asked_version;
  std::vector<Rank> ranks;
  for (int rank = 0; rank < asked.ranks; ++rank) ranks.emplace_back(static_cast<std::uint32_t>(rank));
  const auto out = nccl::connect(*fabric, Group::listed(std::move(ranks)), environment);
  INFO(to_text(out.errors()));
  REQUIRE(out.ok());
  return *out;
}

std::string graph_text(const nccl::Graph& graph) {
  std::ostringstream out;
  out << "graph " << static_cast<int>(graph.pattern) << ' ' << graph.channels << ' ' << graph.inside.value() / 1e9
      << ' ' << graph.between.value() / 1e9 << ' ' << nccl::to_string(graph.type_inside) << '/'
      << nccl::to_string(graph.type_between);
  return out.str();
}

/// "graph 4 2 24.000000 24.000000 LOC/PIX" as graph_text() has it.
std::string shortened(const std::string& line) {
  std::istringstream words(line);
  std::string word, types;
  int pattern = 0, channels = 0;
  double inside = 0, between = 0;
  words >> word >> pattern >> channels >> inside >> between >> types;
  std::ostringstream out;
  out << word << ' ' << pattern << ' ' << channels << ' ' << inside << ' ' << between << ' ' << types;
  return out.str();
}

}  // namespace

TEST_CASE("graphs, channels and estimates are NCCL's own, on sixty machines that it was told of") {
  const auto asked = machines();
  REQUIRE(asked.size() == 60);
  std::ifstream file(COLLCAST_SOURCE_DIR "/tests/exchange/asked/answers.txt");
  const Asked* machine = nullptr;
  std::optional<nccl::Communicator> c;
  int graphs = 0, all_graphs = 0, estimates = 0, seen = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "machine") {
      std::string name;
      int ranks = 0, channels = 0, p2p = 0, per_peer = 0;
      words >> name >> ranks >> channels >> p2p >> per_peer;
      machine = &asked.at(name);
      c = communicator_of(*machine);
      graphs = 0;
      ++seen;
      INFO(name);
      if (!machine->is_itself()) continue;
      CHECK(c->channels == channels);
      CHECK(c->p2p_channels == p2p);
      CHECK(c->p2p_channels_per_peer == per_peer);
      continue;
    }
    INFO(machine->name << ": " << line.substr(0, 60));
    if (word == "graph") {
      ++all_graphs;
      CHECK(graph_text(graphs++ == 0 ? c->ring : c->tree) == shortened(line));
      continue;
    }
    if (!machine->is_itself()) continue;
    const auto kind = parse_collective(word);
    REQUIRE(kind);
    const bool shared = *kind == CollectiveKind::all_gather || *kind == CollectiveKind::reduce_scatter;
    std::int64_t size = 0;
    words >> size;
    for (double us = 0; words >> us; size *= 2) {
      const std::int64_t whole = shared ? 4 * machine->ranks : 4;
      const auto plan = nccl::plan(*c, *kind, Bytes(size / whole * whole));
      REQUIRE(plan.ok());
      INFO(size);
      CHECK(plan->believed.count() * 1e6 == Approx(us).epsilon(1e-4));
      ++estimates;
    }
  }
  CHECK(seen == 60);
  CHECK(all_graphs == 120);
  CHECK(estimates == 6775);
}
