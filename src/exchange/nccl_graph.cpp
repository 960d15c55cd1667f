// NCCL's graph XML -> the channels of its search [src/graph/search.cc of v2.28.9, ncclTopoGetGraphFromXml]: speeds in
// GB/s per channel, devices in hexadecimal with the host above bit 56, NICs at the ends of a channel that leaves the
// node.
//
// Left out: crossnic and latencyinter, which no forecast looks at.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "collcast/base/text.hpp"
#include "collcast/exchange/nccl_files.hpp"
#include "exchange/xml.hpp"

namespace collcast::exchange {

namespace {

using nccl::GraphId;
using nccl::GraphPattern;

constexpr int most_channels = 64;
/// Of rings, trees and CollNet's chains, each of which NCCL runs twice [src/init.cc, ringGraph.maxChannels of
/// MAXCHANNELS / 2; src/graph/connect.cc]: it has no room for more.
constexpr int most_channels_run_twice = most_channels / 2;
constexpr double least_speed = 1e-3, most_speed = 1e6;  // GB/s of a channel; the slowest that NCCL looks for is 0.12
constexpr std::uint64_t most_devices = 1024;

const std::vector<std::string>& path_words() {
  static const std::vector<std::string> words{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                              "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
  return words;
}

nccl::PathType path_of(Element& e, const char* attribute) {
  const std::string word = e.required_text(attribute);
  const auto type = nccl::parse_path_type(word);
  if (!type && !word.empty())
    e.error(attribute, fmt::format("{} is '{}'", attribute, shown(word)), expected_one_of(word, path_words()));
  return type.value_or(nccl::PathType::sys);
}

std::optional<int> pci_device_of(Element& e) {
  if (!e.has("dev")) e.error("dev", fmt::format("<{}> has no 'dev'", e.name()), "expected a hexadecimal number");
  const auto value = e.hexadecimal("dev");
  e.finish();
  if (!value) return std::nullopt;
  if (*value >> 56 != 0) {
    e.error("dev", fmt::format("dev of <{}> is of another host", e.name()), "expected the graph of one host");
    return std::nullopt;
  }
  if (*value >= most_devices) {
    e.error("dev", fmt::format("dev of <{}> is {:#x}", e.name(), *value),
            fmt::format("up to {:#x} is read", most_devices - 1));
    return std::nullopt;
  }
  return static_cast<int>(*value);
}

/// GPUs and NICs of a channel, in the order in which it passes them.
struct StatedChannel {
  std::vector<int> gpus, nics;
  nccl::StatedGraph::Place place;
};
StatedChannel channel_of(Element& e) {
  e.finish();
  StatedChannel out;
  out.place.channel = e.place();
  for (Element& child : e.children({"net", "gpu"})) {
    const auto device = pci_device_of(child);
    if (!device) continue;
    if (child.name() == "net") {
      if (out.nics.empty()) out.place.nic_in = child.place();
      out.place.nic_out = child.place();
      out.nics.push_back(*device);
    } else if (std::find(out.gpus.begin(), out.gpus.end(), *device) != out.gpus.end()) {
      child.error("dev", fmt::format("GPU {} is twice in one channel", *device), "each GPU once");
    } else {
      out.gpus.push_back(*device);
      out.place.gpus.push_back(child.place());
    }
  }
  if (out.gpus.empty()) e.file().error(e.place(), "a channel without GPUs", "expected <gpu dev=\"0\"/> and so on");
  return out;
}

/// One GPU per node has trees for both of CollNet.
bool has_pattern(GraphId id, GraphPattern pattern) {
  const bool is_tree = pattern == GraphPattern::tree;
  switch (id) {
    case GraphId::ring:
      return pattern == GraphPattern::ring;
    case GraphId::tree:
      return is_tree || pattern == GraphPattern::balanced_tree || pattern == GraphPattern::split_tree;
    case GraphId::collnet_chain:
      return is_tree;
    case GraphId::nvls:
      return pattern == GraphPattern::nvls;
    case GraphId::collnet_direct:
      return is_tree || pattern == GraphPattern::collnet_direct;
  }
  return false;
}

std::optional<nccl::StatedGraph> graph_of(XmlFile& xml, Element& e) {
  nccl::StatedGraph out;
  out.where = e.place();
  out.id = static_cast<GraphId>(e.required_integer("id", 0, 4).value_or(fmt::underlying(GraphId::ring)));
  const auto number = e.required_integer("pattern", 1, 6);
  const auto pattern = static_cast<GraphPattern>(number.value_or(fmt::underlying(GraphPattern::ring)));
  if (number && !has_pattern(out.id, pattern))
    e.error("pattern", fmt::format("graph {} has pattern {}", fmt::underlying(out.id), *number),
            "expected 4 (ring) for graph 0, 1 to 3 (trees) for 1, 3 (a tree) for 2, 5 (NVLS) for 3, 6 (CollNet direct) "
            "or 3 for 4");
  const auto count = e.required_integer("nchannels", 0, most_channels);
  const bool twice = out.id != GraphId::nvls && out.id != GraphId::collnet_direct;
  if (twice && count.value_or(0) > most_channels_run_twice)
    e.error("nchannels", fmt::format("nchannels of graph {} is {}", fmt::underlying(out.id), *count),
            fmt::format("expected up to {}: NCCL runs each channel of rings and trees twice, and has {} at most",
                        most_channels_run_twice, most_channels));
  std::optional<double> inside, between;  // GB/s
  for (const char* name : {"speedintra", "speedinter"})
    if (!e.has(name)) xml.error(e.place(), fmt::format("<graph> has no '{}'", name), "expected GB/s of a channel");
  out.graph = {pattern,
               static_cast<int>(count.value_or(0)),
               Bandwidth((inside = e.number("speedintra", 0)).value_or(0) * 1e9),
               Bandwidth((between = e.number("speedinter", 0)).value_or(0) * 1e9),
               path_of(e, "typeintra"),
               path_of(e, "typeinter"),
               {},
               {}};
  e.number("latencyinter", 0);
  e.ignore({"crossnic", "samechannels"});
  e.finish();
  std::set<int> nics;
  for (Element& child : e.children({"channel"})) {
    StatedChannel channel = channel_of(child);
    out.graph.order.push_back(std::move(channel.gpus));
    out.places.push_back(std::move(channel.place));
    if (channel.nics.empty()) continue;
    nics.insert(channel.nics.begin(), channel.nics.end());
    out.graph.nics.push_back({channel.nics.front(), channel.nics.back()});
  }
  const std::size_t leaving = out.graph.nics.size();
  if (count && static_cast<std::size_t>(*count) != out.graph.order.size())
    e.error("nchannels", fmt::format("nchannels is {}, and there are {} channels", *count, out.graph.order.size()),
            "expected as many");
  if (leaving > 0 && leaving < out.graph.order.size())
    xml.error(e.place(), "some channels leave the node and some do not", "expected <net> in all or none");
  // NVLS states none inside, a graph of one node none between.
  const auto is_speed = [](double gb) { return gb >= least_speed && gb <= most_speed; };
  if (count.value_or(0) > 0 && inside && !is_speed(*inside) && (out.id != GraphId::nvls || *inside > 0))
    e.error("speedintra", fmt::format("speedintra is {:g}", *inside), "expected GB/s of a channel");
  if (between && !is_speed(*between) && *between > 0)
    e.error("speedinter", fmt::format("speedinter is {:g}", *between), "expected GB/s of a channel");
  out.nics = static_cast<int>(nics.size());
  if (count == 0) return std::nullopt;  // as NCCL writes what it does not find
  return out;
}

}  // namespace

Result<ReadGraphs> read_nccl_graphs(std::string_view text, const std::string& file) {
  auto parsed = XmlFile::parse(text, file, "graphs", "NCCL's channel graphs (NCCL_GRAPH_DUMP_FILE, NCCL_GRAPH_FILE)");
  if (!parsed) return parsed.errors();
  XmlFile& xml = **parsed;
  Element root = xml.root();
  root.integer("version", 1, 1);
  root.finish();
  ReadGraphs out;
  out.file.name = shown(std::filesystem::path(file).filename().string());
  std::map<GraphId, Location> seen;
  for (Element& child : root.children({"graph"})) {
    auto graph = graph_of(xml, child);
    if (!graph) continue;
    const auto [there, is_new] = seen.emplace(graph->id, graph->where);
    if (!is_new)
      xml.error(graph->where, fmt::format("graph {} is there twice", fmt::underlying(graph->id)),
                fmt::format("the first is at {}", to_text(there->second)));
    out.file.graphs.push_back(std::move(*graph));
  }
  if (out.file.graphs.empty() && xml.errors().empty())
    xml.error(root.place(), "there is no graph of rings, trees or NVLS in this file", "expected <graph id=\"0\" ...>");
  if (!xml.errors().empty()) return xml.errors();
  out.warnings = xml.warnings();
  return out;
}

}  // namespace collcast::exchange
