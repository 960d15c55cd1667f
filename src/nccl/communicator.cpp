#include "collcast/nccl/communicator.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "collcast/base/units.hpp"
#include "collcast/base/words.hpp"
#include "collcast/nccl/links.hpp"
#include "nccl/chain_waits.hpp"
#include "nccl/collnet_search.hpp"
#include "nccl/gpu_terms.hpp"
#include "nccl/groups_nodes.hpp"
#include "nccl/nearest_nics.hpp"
#include "nccl/next_pairs.hpp"
#include "nccl/nic_loads.hpp"
#include "nccl/nvlink_ways.hpp"
#include "nccl/pair_loads.hpp"
#include "nccl/pair_rates.hpp"
#include "nccl/peer_level.hpp"
#include "nccl/search.hpp"
#include "nccl/search_speeds.hpp"
#include "nccl/spine_loads.hpp"
#include "nccl/terms.hpp"

namespace collcast::nccl {

namespace {

constexpr int most_running_channels = 64;

/// Chips by the beginning of a model's name, the longest that fits [CUDA programming guide, table of compute
/// capabilities]. GeForce's are 20, 30, 40, 50 with two digits more; workstation cards have theirs of four, Turing's as
/// they are and Ada's with the word.
struct Chip {
  const char* name;
  int capability;
};
constexpr std::array chips{Chip{"p100", 60},       Chip{"v100", 70},       Chip{"titanv", 70},
                           Chip{"t4", 75},         Chip{"rtx206", 75},     Chip{"rtx207", 75},
                           Chip{"rtx208", 75},     Chip{"rtx3000", 75},    Chip{"rtx4000", 75},
                           Chip{"rtx5000", 75},    Chip{"rtx6000", 75},    Chip{"rtx8000", 75},
                           Chip{"a100", 80},       Chip{"a800", 80},       Chip{"a30", 80},
                           Chip{"a10", 86},        Chip{"a40", 86},        Chip{"rtx205", 86},
                           Chip{"rtx305", 86},     Chip{"rtx306", 86},     Chip{"rtx307", 86},
                           Chip{"rtx308", 86},     Chip{"rtx309", 86},     Chip{"rtxa", 86},
                           Chip{"a6000", 86},      Chip{"l2", 89},         Chip{"l4", 89},
                           Chip{"l40", 89},        Chip{"l40s", 89},       Chip{"rtx405", 89},
                           Chip{"rtx406", 89},     Chip{"rtx407", 89},     Chip{"rtx408", 89},
                           Chip{"rtx409", 89},     Chip{"rtx2000ada", 89}, Chip{"rtx3000ada", 89},
                           Chip{"rtx3500ada", 89}, Chip{"rtx4000ada", 89}, Chip{"rtx4000sffada", 89},
                           Chip{"rtx4500ada", 89}, Chip{"rtx5000ada", 89}, Chip{"rtx5880ada", 89},
                           Chip{"rtx6000ada", 89}, Chip{"h100", 90},       Chip{"h200", 90},
                           Chip{"h800", 90},       Chip{"h20", 90},        Chip{"gh200", 90},
                           Chip{"b100", 100},      Chip{"b200", 100},      Chip{"gb200", 100},
                           Chip{"b300", 103},      Chip{"gb300", 103},     Chip{"rtxpro", 120},
                           Chip{"rtx505", 120},    Chip{"rtx506", 120},    Chip{"rtx507", 120},
                           Chip{"rtx508", 120},    Chip{"rtx509", 120}};

std::string squeezed(std::string_view name) {
  std::string out;
  for (const char c : lower(name))
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) out += c;
  for (const char* brand : {"nvidia", "tesla", "geforce", "quadro"})
    if (out.starts_with(brand)) out.erase(0, std::string_view(brand).size());
  return out;
}

/// Of the links between the NICs: from the first node's first rank to the next node's, and to the last's.
Seconds network_latency(const Fabric& fabric, const GroupsNodes& nodes) {
  const auto rank_of = [&](const std::pair<const NodeId, std::vector<int>>& node) {
    return Rank(static_cast<std::uint32_t>(static_cast<int>(node.first.value()) * fabric.ranks_per_node() +
                                           node.second.front()));
  };
  Seconds longest{};
  const Rank first = rank_of(*nodes.begin());
  for (const Rank other : {rank_of(*std::next(nodes.begin())), rank_of(*std::prev(nodes.end()))}) {
    std::vector<LinkId> route;
    fabric.route(first, other, 0, route);
    Seconds sum{};
    for (const LinkId link : route) {
      const Link& one = fabric.links()[link.value()];
      if (one.kind == LinkKind::network) sum += one.latency;
    }
    longest = std::max(longest, sum);
  }
  return longest;
}

/// Of a way over a spine to another rail, beyond what is between two nodes on one.
Seconds across_rails(const TopologySpec& spec, Seconds on_one) {
  const auto* network = std::get_if<LeafSpineNetwork>(&spec.network);
  if (network == nullptr || !network->rail_optimized || network->spines == 0) return {};
  return std::max(Seconds(), 2 * (network->latency + network->spine_latency) - on_one);
}

void keep_channels(Graph& graph, int channels) {
  graph.channels = channels;
  keep_first(static_cast<std::size_t>(channels), graph.order, graph.nics);
  for (NodeChannels& other : graph.elsewhere) keep_first(static_cast<std::size_t>(channels), other.order, other.nics);
}

/// `other`: of nodes with these GPUs. The fewest channels, and the lowest speed, each apart [src/init.cc,
/// initTransportsRank].
void keep_slowest(Graph& into, const Graph& other, const std::vector<int>& gpus) {
  into.pattern = std::max(into.pattern, other.pattern);  // of trees, that of NICs used by one GPU
  const Graph::Together one = into.together(), another = other.together();
  into.least = {std::min(one.inside, another.inside), std::min(one.between, another.between)};
  into.elsewhere.push_back({gpus, other.order, other.nics});
  keep_channels(into, std::min(into.channels, other.channels));
  into.inside = std::min(into.inside, other.inside);
  into.between = std::min(into.between, other.between);
  into.type_inside = std::max(into.type_inside, other.type_inside);
  into.type_between = std::max(into.type_between, other.type_between);
}

void keep_slowest(PairNics& into, const PairNics& other) {
  into.nics = std::min(into.nics, other.nics);
  into.of_gpu = std::max(into.of_gpu, other.of_gpu);
  into.even = into.even && other.even;
  into.nic_rate = std::min(into.nic_rate, other.nic_rate);
  into.gpu_rate = std::min(into.gpu_rate, other.gpu_rate);
}

void keep_slowest(Found& into, const Found& other, const std::vector<int>& gpus) {
  keep_slowest(into.ring, other.ring, gpus);
  keep_slowest(into.tree, other.tree, gpus);
  if (into.nvls && other.nvls)
    keep_slowest(*into.nvls, *other.nvls, gpus);
  else
    into.nvls.reset();
  into.nvls_link = std::min(into.nvls_link, other.nvls_link);
  into.nvlink = over_nvlink(into.ring.type_inside);  // a GPU alone on its node has no say
  into.nics = std::min(into.nics, other.nics);
  into.nic_rate = std::min(into.nic_rate, other.nic_rate);
  into.held_by_nics = into.held_by_nics && other.held_by_nics;
  into.trees_held_by_nics = into.trees_held_by_nics && other.trees_held_by_nics;
  keep_slowest(into.of_pairs, other.of_pairs);
  into.nics_beside = std::max(into.nics_beside, other.nics_beside);
}

void keep_slowest(Collnet& into, const Collnet& other, const std::vector<int>& gpus) {
  keep_slowest(into.chain, other.chain, gpus);
  if (into.direct && other.direct)
    keep_slowest(*into.direct, *other.direct, gpus);
  else
    into.direct.reset();
}

/// What the search finds for all patterns.
struct Searched {
  Found found;
  std::optional<Collnet> collnet;
};

void keep_slowest(Searched& into, const Searched& other, const std::vector<int>& gpus) {
  keep_slowest(into.found, other.found, gpus);
  if (into.collnet) keep_slowest(*into.collnet, *other.collnet, gpus);
}

/// Why NCCL does not initialize it [src/init.cc]; empty: it does.
std::string why_no_collnet(const NetworkPlugin& plugin, const Environment& environment, int nodes) {
  if (!plugin.collnet) return std::string(none_described);
  if (!environment.collnet) return "CollNet is off without NCCL_COLLNET_ENABLE=1";
  if (nodes == 1) return "CollNet needs several nodes";
  if (nodes < environment.collnet_nodes)
    return fmt::format("CollNet needs {} nodes (NCCL_COLLNET_NODE_THRESHOLD)", environment.collnet_nodes);
  return {};
}

int running_channels(const Communicator& c) {
  int channels = 2 * c.ring.channels;
  // Half as many again under CollNet, so that links inside nodes are full [src/graph/connect.cc, ncclTopoPostset].
  if (c.collnet && c.collnet->chain.inside > c.collnet->chain.between && c.ranks > c.nodes) channels += channels / 2;
  const bool once_more = c.compute_capability >= 90 && c.nodes > 1 && c.ring.inside.value() > 45e9 && channels < 16;
  if (once_more) channels *= 2;
  const Environment& e = c.environment;
  channels = std::min({channels, most_running_channels, e.max_channels.value_or(most_running_channels),
                       e.max_blocks.value_or(most_running_channels)});
  return std::max({channels, e.min_channels.value_or(1), e.min_blocks.value_or(1)});
}

/// A power of two for the channels, as 2.28.9 prints on an H200 (tests/exchange/asked). On Hopper and newer all 32
/// since 2.29: pairs among 10 and 40 H100, one and four on a node with 4 and 16 channels, reach the rate of two
/// channels to a peer, those among 80 of one (public sendrecv runs).
int p2p_channels(const Communicator& c) {
  constexpr int usual = 32, first_with_all = 22900;
  const Environment& e = c.environment;
  const bool all = c.compute_capability >= 90 && (e.launch.version == 0 || e.launch.version >= first_with_all);
  const int wanted = std::min(all ? usual : std::min(usual, c.channels), e.max_p2p_channels.value_or(usual));
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(wanted, e.min_p2p_channels.value_or(1)))));
}

/// 2 per NVLink to the peer, else 2; across nodes fewer while all peers together have too many, or what
/// NCCL_NCHANNELS_PER_NET_PEER says where peers on the node have as many.
int p2p_channels_per_peer(const Communicator& c, const System& system, const std::vector<int>& gpus) {
  const auto to_peer_on_node = [&] {
    if (!c.nvlink) return 2;
    const double link = nvlink_speed(c.compute_capability).counted.value() / 1e9;
    double speed = system.nvlink_speed;
    if (!system.nvswitch) {
      for (const int a : gpus)
        for (const int b : gpus) {
          const double straight = system.nvlinks[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
          // Through a GPU, or over PCIe, a pair has as many as over one link.
          if (a != b) speed = std::min(speed, straight > 0 ? straight : link);
        }
    }
    return std::max(1, static_cast<int>(std::lround(2 * speed / link)));
  };
  const std::optional<int> stated = c.environment.net_peer_channels;
  int per_peer = c.nodes == 1 ? to_peer_on_node() : stated.value_or(2);
  if (c.nodes > 1 && stated && c.most_on_a_node > 1) per_peer = std::min(per_peer, to_peer_on_node());
  per_peer = static_cast<int>(std::bit_floor(static_cast<unsigned>(per_peer)));
  if (c.nodes > 1 && !stated)
    while (per_peer > 1 && per_peer * c.ranks > 4 * c.p2p_channels) per_peer /= 2;
  return std::min(per_peer, c.p2p_channels);
}

/// Some pair on a node reaches each other's memory still, or none ever did.
bool keeps_access(const System& system, const std::vector<std::vector<int>>& nodes, PathType level) {
  return std::ranges::any_of(nodes, [&](const std::vector<int>& gpus) {
    return gpus.size() > 1 && peer_access(system, gpus, level) != PeerAccess::none;
  });
}

/// Within what blocks a call may have [src/transport/nvls.cc]; limits on the channels of rings and trees do not count.
int nvls_channels(const Communicator& c) {
  if (!c.nvls) return 0;
  const Environment& e = c.environment;
  const int wanted = e.nvls_channels.value_or(usual_nvls_channels(c));
  return std::max(e.min_blocks.value_or(1), std::min(e.max_blocks.value_or(most_running_channels), wanted));
}

/// Everything that keeps a stated graph from being the channels of these GPUs, each where it is.
Diagnostics unfit(const StatedGraph& stated, const std::string& file, const System& system,
                  const std::vector<int>& gpus, int nodes) {
  Diagnostics out;
  const auto refuse = [&](const Location& where, const std::string& message, std::string hint) {
    out.push_back(
        {where, fmt::format("graph {} of {}: {}", fmt::underlying(stated.id), file, message), std::move(hint)});
  };
  const auto check_nic = [&](int nic, const Location& where) {
    if (nic < system.nics) return;
    refuse(where, fmt::format("the machine has no NIC {}", nic),
           (system.nics == 1 ? "a node has NIC 0" : fmt::format("a node has NICs 0 to {}", system.nics - 1)) +
               "; NCCL's numbers count those, too, that an import leaves out");
  };
  if (nodes > 1 && stated.nics == 0)
    refuse(stated.where, fmt::format("its channels have no NIC, and the group is on {} nodes", nodes),
           "expected a graph of a group on several nodes (<net> at both ends of a channel)");
  if (nodes == 1 && stated.nics > 0)
    refuse(stated.where, "its channels leave the node, and the group is on one",
           "expected a graph of one node, without <net>");
  std::set<int> heads;
  for (std::size_t c = 0; c < stated.graph.order.size(); ++c) {
    const std::vector<int>& channel = stated.graph.order[c];
    const StatedGraph::Place* place = c < stated.places.size() ? &stated.places[c] : nullptr;
    if (stated.id == GraphId::nvls && !channel.empty() && !heads.insert(channel.front()).second)
      refuse(place ? place->gpus.front() : stated.where,
             fmt::format("GPU {} is the head of two channels", channel.front()),
             "expected each GPU as the head of one channel of NVLS at the most");
    for (std::size_t i = 0; i < channel.size(); ++i)
      if (!std::binary_search(gpus.begin(), gpus.end(), channel[i]))
        refuse(place ? place->gpus.at(i) : stated.where,
               fmt::format("GPU {} of a channel is not in the group", channel[i]),
               fmt::format("the group has GPUs {}", fmt::join(gpus, ", ")));
    if (stated.graph.pattern != GraphPattern::nvls && channel.size() != gpus.size())
      refuse(place ? place->channel : stated.where,
             fmt::format("a channel has {} GPUs, the group {} on a node", channel.size(), gpus.size()),
             "expected every GPU of the group once in each channel");
    if (nodes == 1 || c >= stated.graph.nics.size()) continue;
    const ChannelNics& nics = stated.graph.nics[c];
    check_nic(nics.in, place ? place->nic_in : stated.where);
    check_nic(nics.out, place ? place->nic_out : stated.where);
  }
  return out;
}

/// Of NVLS and CollNet those alone that the machine has.
bool is_taken(const StatedGraph& stated, const Searched& searched) {
  return stated.is_collnet() ? searched.collnet.has_value()
                             : stated.id != GraphId::nvls || searched.found.nvls.has_value();
}

/// Of all graphs of a file that are taken on all nodes, once where nodes are alike in it.
Diagnostics unfit(const GraphFile& file, const Searched& searched, const System& system,
                  const std::vector<std::vector<int>>& unlike, int nodes) {
  Diagnostics out;
  for (const StatedGraph& stated : file.graphs) {
    if (!is_taken(stated, searched)) continue;
    for (const std::vector<int>& gpus : unlike)
      for (Diagnostic& one : unfit(stated, file.name, system, gpus, nodes)) {
        const bool said = std::ranges::any_of(out, [&](const Diagnostic& other) {
          return other.message == one.message && to_text(other.where) == to_text(one.where);
        });
        if (!said) out.push_back(std::move(one));
      }
  }
  return out;
}

/// Rings and trees run on the same channels, the fewer of both [src/init.cc].
void align(Graph& ring, Graph& tree) {
  const int channels = std::min(ring.channels, tree.channels);
  for (Graph* graph : {&ring, &tree}) keep_channels(*graph, channels);
}

/// Files state by which NICs channels go, not what lies between. Trees come and go by their first GPU.
void find_ways(Graph& graph, const System& system, const std::vector<int>& gpus) {
  const Nearest near = nearest_nics(system, gpus);
  for (std::size_t channel = 0; channel < graph.nics.size(); ++channel) {
    ChannelNics& nics = graph.nics[channel];
    nics.way_in = way_to_nic(system, near, graph.order[channel].front(), nics.in);
    nics.way_out = way_to_nic(system, near, leaving_gpu(graph, channel), nics.out);
  }
}

/// Puts a file's graphs in the place of the search's; trees that it does not state are searched for beside its rings.
Diagnostics take_stated(Searched& into, const GraphFile& file, const System& system,
                        const std::vector<std::vector<int>>& unlike, int nodes) {
  auto& [found, collnet] = into;
  if (Diagnostics errors = unfit(file, into, system, unlike, nodes); !errors.empty()) return errors;
  bool states_ring = false, states_tree = false;
  for (const StatedGraph& stated : file.graphs) {
    if (!is_taken(stated, into)) continue;
    if (stated.id == GraphId::tree) {
      found.tree = stated.graph;
      states_tree = true;
    }
    if (stated.id == GraphId::nvls) found.nvls = stated.graph;
    if (stated.id == GraphId::collnet_chain) collnet->chain = stated.graph;
    if (stated.id == GraphId::collnet_direct) collnet->direct = stated.graph;
    if (stated.id != GraphId::ring) continue;
    found.ring = stated.graph;
    states_ring = true;
    found.nvlink = over_nvlink(stated.graph.type_inside);
    if (nodes > 1) found.nics = stated.nics;
  }
  if (states_ring && !states_tree)
    if (const auto beside = trees(system, unlike.front(), nodes, found.ring.channels)) found.tree = *beside;
  for (Graph* graph : {&found.ring, &found.tree}) find_ways(*graph, system, unlike.front());
  align(found.ring, found.tree);
  return {};
}

/// Each to its next one, over PCIe.
bool are_joined(const System& system, const std::vector<int>& gpus) {
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if (!way(system, system.first_gpu + gpus[i], system.first_gpu + gpus[(i + 1) % gpus.size()])) return false;
  return true;
}

Diagnostic cannot(std::string why, std::string hint) { return {{}, std::move(why), std::move(hint)}; }

/// At the slowest link that the search goes by, with its value: between sockets it has a number of its own.
Diagnostic too_slow(const TopologySpec& spec, double least) {
  const auto is_searched = [&spec](const LinkGroup& link) {
    return link.kind != LinkKind::socket && std::ranges::none_of(spec.devices, [&link](const DeviceGroup& d) {
             return d.kind == DeviceKind::nic && (d.name == link.from || d.name == link.to);
           });
  };
  const LinkGroup* slowest = nullptr;
  for (const LinkGroup& link : spec.links)
    if (is_searched(link) && (slowest == nullptr || link.bandwidth < slowest->bandwidth)) slowest = &link;
  Diagnostic out =
      cannot(fmt::format("the links between the GPUs of {} are slower than what NCCL's search tries, {:.3g} "
                         "GB/s and more; what NCCL falls back to is not modelled",
                         spec.name, least),
             "expected --library ideal, or faster links");
  if (slowest == nullptr) return out;
  out.where = slowest->where;
  out.message += fmt::format(" ({} - {}: {})", slowest->from, slowest->to, format_bandwidth(slowest->bandwidth));
  return out;
}

/// Links of GPUs that are not known here.
std::optional<Diagnostic> nvlinks_to_processors(const TopologySpec& spec) {
  const auto is = [&spec](const std::string& name, DeviceKind kind) {
    return std::ranges::any_of(spec.devices, [&](const DeviceGroup& d) { return d.name == name && d.kind == kind; });
  };
  for (const LinkGroup& link : spec.links) {
    if (link.kind != LinkKind::nvlink || (!is(link.from, DeviceKind::cpu) && !is(link.to, DeviceKind::cpu))) continue;
    Diagnostic out = cannot(fmt::format("NVLinks between GPUs and processors ({} - {} of {}) are not modelled",
                                        link.from, link.to, spec.name),
                            "expected --library ideal, or GPUs on their processors by PCIe or C2C");
    out.where = link.where;
    return out;
  }
  return std::nullopt;
}

/// What NCCL goes by before it searches.
struct Seen {
  Environment environment;  ///< with what the machine sets
  System system;            ///< one node
};

/// Fails where that is enough to know that it does not run.
Result<Seen> see(const Fabric& fabric, const std::vector<std::vector<int>>& unlike, const Environment& asked) {
  const TopologySpec& spec = fabric.spec();
  if (spec.gpu.model.empty())
    return cannot(fmt::format("NCCL runs on NVIDIA GPUs, and {} has none", spec.name), "expected --library ideal");
  const auto capability = compute_capability(spec.gpu.model);
  if (!capability)
    return cannot(fmt::format("the compute capability of '{}' ({}) is not known", spec.gpu.model, spec.name),
                  "expected a gpu.model that begins with the name of a chip, such as H100 or RTX-4090");
  if (const auto unknown = nvlinks_to_processors(spec)) return *unknown;
  const Result<Environment> environment = of_job(asked, spec, fabric.nodes());
  if (!environment) return environment.errors();
  std::set<int> gpus;
  for (const std::vector<int>& node : unlike) gpus.insert(node.begin(), node.end());
  return Seen{*environment, system_of(spec, *capability, *environment, std::vector<int>(gpus.begin(), gpus.end()))};
}

/// With what needs no search.
Communicator counted(const Group& group, const GroupsNodes& nodes, const TopologySpec& spec, const Seen& seen) {
  Communicator out;
  out.ranks = group.size();
  out.nodes = static_cast<int>(nodes.size());
  out.ranks_per_node = out.ranks / out.nodes;
  for (const auto& [node, gpus] : nodes) out.ranks_of_nodes.push_back(static_cast<int>(gpus.size()));
  out.most_on_a_node = *std::max_element(out.ranks_of_nodes.begin(), out.ranks_of_nodes.end());
  out.compute_capability = seen.system.compute_capability;
  out.cpu = seen.system.cpu;
  out.nvswitch = seen.system.nvswitch;
  out.without_collnet = why_no_collnet(spec.plugin, seen.environment, out.nodes);
  out.plugin_latency = spec.plugin.latency;
  out.factors = spec.nccl;
  out.environment = seen.environment;
  if (const auto level = seen.environment.peer_level; level && out.most_on_a_node > 1)
    out.environment.peer_access =
        seen.environment.peer_access && keeps_access(seen.system, unlike_nodes(nodes), *level);
  return out;
}

/// Of nodes with each of these sets of GPUs the slowest, or what a file states.
Result<Searched> search_all(const TopologySpec& spec, const Seen& seen, const std::vector<std::vector<int>>& unlike,
                            int nodes, bool has_collnet) {
  std::optional<Searched> out;
  for (const std::vector<int>& gpus : unlike) {
    const auto found = search(seen.system, gpus, nodes);
    if (!found && nodes == 1 && are_joined(seen.system, gpus))
      return too_slow(spec, speeds(seen.system.compute_capability, false).back());
    if (!found)
      return cannot(fmt::format("NCCL finds no way between the GPUs of {}", spec.name),
                    "expected GPUs joined by NVLink or PCIe, and NICs where there are several nodes");
    Searched own{*found, {}};
    if (has_collnet) own.collnet = search_collnet(seen.system, gpus, found->tree);
    if (out)
      keep_slowest(*out, own, gpus);
    else
      out = std::move(own);
  }
  if (const auto& file = seen.environment.files.graphs)
    if (Diagnostics wrong = take_stated(*out, *file, seen.system, unlike, nodes); !wrong.empty()) return wrong;
  return *std::move(out);
}

void put_channels(const Searched& searched, const Seen& seen, const std::vector<int>& first_node, Communicator& out) {
  out.ring = searched.found.ring;
  out.tree = searched.found.tree;
  if (seen.environment.nvls) out.nvls = searched.found.nvls;
  out.collnet = searched.collnet;
  out.nvlink = searched.found.nvlink || (out.most_on_a_node == 1 && seen.system.has_nvlink());
  out.channels = running_channels(out);
  out.nvls_channels = nvls_channels(out);
  out.p2p_channels = p2p_channels(out);
  out.p2p_channels_per_peer = p2p_channels_per_peer(out, seen.system, first_node);
}

/// A GPU relays to a NIC that is nearer than by a processor [src/graph/paths.cc, ncclTopoComputePaths], for those that
/// have an NVLink of their own to it: where straight ones do not even go round, most have none.
bool relays_over_nvlink(const System& system, const std::vector<int>& gpus) {
  if (nearest_nics(system, gpus).type >= PathType::pxn) return false;
  if (system.nvswitch || gpus.size() == 1) return true;
  const auto found = search(system, gpus, 1);
  return found && found->ring.type_inside == PathType::nvl;
}

NicTerms nic_terms(const Found& found, const System& system, int nodes) {
  NicTerms out;
  out.count = found.nics;
  out.rate = Bandwidth(found.nic_rate * 1e9);
  out.by_pcie = found.nic_rate < system.nic_speed;
  // NCCL books trees of two nodes by what they have inside.
  out.hold_trees = nodes == 2 ? found.trees_held_by_nics : found.held_by_nics;
  out.beside_gpu = found.nics_beside;
  return out;
}

PairTerms pair_terms(const PairNics& nics, bool relayed, const System& system, const Fabric& fabric, const Group& group,
                     bool alike) {
  PairTerms out;
  out.nics = nics.nics;
  out.nics_of_gpu = nics.of_gpu;
  out.nic_rate = Bandwidth(nics.nic_rate * 1e9);
  out.gpu_rate = Bandwidth(nics.gpu_rate * 1e9);
  if (!(alike && nics.even) && fabric.nics_per_node() > 0)
    out.loads = pair_loads(system, fabric, group, out.nics_of_gpu, relayed);
  out.relayed = relayed;
  return out;
}

/// A ring's on a node with these GPUs.
const std::vector<std::vector<int>>& orders_on(const Graph& ring, const std::vector<int>& gpus) {
  for (const NodeChannels& other : ring.elsewhere)
    if (other.gpus == gpus) return other.order;
  return ring.order;
}

}  // namespace

std::string_view to_string(PathType type) {
  constexpr std::array words{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
  return words[static_cast<std::size_t>(type)];
}

std::optional<PathType> parse_path_type(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(PathType::dis); ++i)
    if (to_string(static_cast<PathType>(i)) == text) return static_cast<PathType>(i);
  return std::nullopt;
}

std::optional<int> compute_capability(std::string_view gpu_model) {
  const std::string name = squeezed(gpu_model);
  const Chip* best = nullptr;
  std::size_t length = 0;
  for (const Chip& chip : chips) {
    const std::string_view chip_name(chip.name);
    if (!name.starts_with(chip_name) || chip_name.size() <= length) continue;
    best = &chip;
    length = chip_name.size();
  }
  if (best == nullptr) return std::nullopt;
  return best->capability;
}

Result<Communicator> connect(const Fabric& fabric, const Group& group, const Environment& asked) {
  check(group.size() > 0, "a communicator has a rank");
  const GroupsNodes nodes = by_node(fabric, group);
  const std::vector<std::vector<int>> unlike = unlike_nodes(nodes);
  const Result<Seen> seen = see(fabric, unlike, asked);
  if (!seen) return seen.errors();
  Communicator out = counted(group, nodes, fabric.spec(), *seen);
  const Result<Searched> searched = search_all(fabric.spec(), *seen, unlike, out.nodes, out.without_collnet.empty());
  if (!searched) return searched.errors();
  // Graphs are final from here on: channels are counted by them, and what a run reaches by graphs and channels.
  put_channels(*searched, *seen, unlike.front(), out);
  if (out.nodes > 1)
    out.chain_waits =
        chain_waits(orders_on(out.ring, nodes.at(fabric.node_of(group[0]))), gpu_in_node(fabric, group[0]));
  out.nics = nic_terms(searched->found, seen->system, out.nodes);
  out.nics.uneven = uneven_nics(fabric, group, out);
  const bool relayed =
      out.nvlink && seen->environment.relays() && seen->environment.pxn_of_pairs &&
      std::ranges::all_of(unlike, [&](const auto& gpus) { return relays_over_nvlink(seen->system, gpus); });
  const std::vector<NextOnNode> next = next_on_nodes(fabric, group);
  out.pairs = pair_terms(searched->found.of_pairs, relayed, seen->system, fabric, group, unlike.size() == 1);
  out.pairs.next = next_terms(seen->system, next, out.pairs.nics_of_gpu, relayed);
  const Root root{gpu_in_node(fabric, group[0]), nodes.at(fabric.node_of(group[0]))};
  out.gpu = gpu_terms(out, searched->found, seen->system, nodes, next, root);
  if (out.nodes > 1) out.network_latency = network_latency(fabric, nodes);
  if (out.pairs.nics > 1) out.across_rails = across_rails(fabric.spec(), out.network_latency);
  out.spines = spine_loads(fabric, group, out);
  return out;
}

Result<Communicator> Communicators::of(const Fabric& fabric, const Group& group, const Environment& environment) {
  Key key{&fabric, group.ranks(), text_of(environment), environment.files.graphs.get(), environment.files.tuner.get()};
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
  }
  Result<Communicator> made = connect(fabric, group, environment);
  const std::lock_guard lock(mutex_);
  return known_.emplace(std::move(key), std::move(made)).first->second;
}

}  // namespace collcast::nccl
