#include "workload/ways.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <utility>
#include <variant>

namespace collcast::workload {

namespace {

/// Appends how many ranks of a node hang on one of the devices that `from`, with so many ranks each, is wired to, and
/// of those that these are.
/// `depth`: no way through all kinds of devices is longer; links may go round.
void add_devices(const TopologySpec& spec, const std::string& from, int ranks, int each, std::vector<int>& levels,
                 std::size_t depth = 0) {
  if (depth > spec.devices.size()) return;
  for (const LinkGroup& link : spec.links) {
    if (link.from != from || (link.wiring != Wiring::spread && link.wiring != Wiring::one_to_one)) continue;
    const auto to = std::ranges::find(spec.devices, link.to, &DeviceGroup::name);
    if (to == spec.devices.end() || to->kind == DeviceKind::gpu || ranks % to->count != 0) continue;
    const int of_it = ranks / to->count;
    if (of_it <= each && link.wiring == Wiring::spread) continue;
    levels.push_back(of_it);
    add_devices(spec, link.to, ranks, of_it, levels, depth + 1);
  }
}

/// Ranks of what the machine is made of equal parts of, smallest first: sockets and the like, nodes, pods.
std::vector<int> levels_of(const Fabric& fabric) {
  const TopologySpec& spec = fabric.spec();
  const int node = fabric.ranks_per_node();
  std::vector<int> levels{node};
  for (const DeviceGroup& group : spec.devices)
    if (group.count == node && (group.kind == DeviceKind::gpu || group.kind == DeviceKind::host))
      add_devices(spec, group.name, node, 1, levels);
  if (const auto* net = std::get_if<LeafSpineNetwork>(&spec.network))
    levels.push_back(node * std::min(std::max(net->nodes_per_leaf, 1), fabric.nodes()));
  if (const auto* torus = std::get_if<TorusNetwork>(&spec.network))
    for (std::size_t d = torus->dims.size(), row = static_cast<std::size_t>(node); d-- > 1;)
      levels.push_back(static_cast<int>(row *= static_cast<std::size_t>(torus->dims[d])));
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  std::erase(levels, 1);
  return levels;
}

/// A stage's groups of one kind.
struct Tiles {
  int first = 0, last = 0;  ///< of the stage's ranks
  int stride = 1, size = 1;
  int on = 0;         ///< what belongs to a group is so many ranks further on, or back where below 0
  int pipelines = 1;  ///< span of the pipeline that both are in
  int blocks = 1;     ///< ranks of one stage come so many after each other, where whose they are matters
  int span() const { return stride * size; }
};

/// Ports of a node.
int ports_of(const Fabric& fabric) {
  return fabric.nics_per_node() > 0 ? fabric.nics_per_node() : fabric.ranks_per_node();
}

/// The network, where it matters by which spine a rank is reached: links to spines that carry all that NICs send are
/// in nobody's way, where many nodes share one and what some send more others send less.
const LeafSpineNetwork* thin_spines(const Fabric& fabric) {
  constexpr int many = 4;
  const auto* net = std::get_if<LeafSpineNetwork>(&fabric.spec().network);
  if (net == nullptr || net->spines < 2) return nullptr;
  const int ports = ports_of(fabric), of_node = (ports + net->spines - 1) / net->spines;
  const double carried = ports_of_leaf(*net, ports) / (net->oversubscription * net->spines);
  const bool is_wide = !net->rail_optimized && net->oversubscription <= widest_oversubscription(*net, ports) &&
                       carried >= many * of_node;
  return is_wide ? nullptr : net;
}

/// Whether a rank's NIC decides by which of them: ranks of one node are not alike then.
bool has_spines_by_nic(const Fabric& fabric) {
  const LeafSpineNetwork* net = thin_spines(fabric);
  return net != nullptr && !net->rail_optimized && fabric.ranks_per_node() > 1 && ports_of(fabric) > 1;
}

/// Each level holds whole groups, or groups fill whole ones, or no two of a group's ranks are in one; and with what
/// belongs to them. Groups of one tile are neighbours, and cross nothing that is made of whole strides unless all do.
bool lie_alike(const Tiles& tiles, const Fabric& fabric, const std::vector<int>& levels) {
  const bool one_tile = !has_spines_by_nic(fabric) && tiles.first / tiles.span() == tiles.last / tiles.span();
  const bool across_stages = tiles.size > 1 && tiles.span() == tiles.pipelines;
  return std::ranges::all_of(levels, [&](int level) {
    const auto share = [&](int first, int last) { return first / level == last / level; };
    const bool stage = share(tiles.first, tiles.last), peers = share(tiles.first + tiles.on, tiles.last + tiles.on);
    // Between single ranks of two pods there is one way, by whatever spine.
    if (!across_stages && stage && peers && (tiles.size == 1 || share(tiles.first, tiles.first + tiles.on)))
      return true;
    const bool neighbours = one_tile && level % tiles.stride == 0;
    const bool inside = level % tiles.span() == 0, apart = tiles.stride % level == 0;
    const bool whole = level % tiles.stride == 0 && tiles.span() % level == 0;
    const bool on_alike = tiles.on % level == 0 || level % tiles.pipelines == 0 ||
                          (neighbours && (tiles.on % tiles.stride == 0 || tiles.stride % tiles.pipelines == 0));
    return on_alike && (inside || whole || apart || neighbours);
  });
}

/// Numbers of things in the order in which they are met.
class AsMet {
 public:
  int operator()(int thing) { return number_.emplace(thing, static_cast<int>(number_.size())).first->second; }

 private:
  std::map<int, int> number_;
};

/// How many spines further on one rank is reached than the other.
int spines_from(const Fabric& fabric, Rank from, Rank to) {
  const LeafSpineNetwork* net = thin_spines(fabric);
  if (net == nullptr) return 0;
  const int each = fabric.ranks_per_node(), ports = ports_of(fabric);
  const auto place = [&](Rank rank) {
    const int number = static_cast<int>(rank.value()), on_leaf = number / each % net->nodes_per_leaf;
    return net->rail_optimized ? on_leaf : on_leaf * ports + number % each * ports / each;
  };
  return (place(to) % net->spines - place(from) % net->spines + net->spines) % net->spines;
}

/// How groups share what the machine is made of: by level the things that their ranks are in and the ranks'
/// numbers in their nodes (rails), as they are met, and spines by how far on they are from the first: lanes go round
/// them.
std::vector<int> shape_of(const std::vector<Group>& groups, const Fabric& fabric, const std::vector<int>& levels) {
  std::vector<int> shape;
  const auto add = [&](auto thing_of) {
    AsMet as_met;
    for (const Group& group : groups) {
      for (int i = 0; i < group.size(); ++i) shape.push_back(as_met(thing_of(group[i])));
      shape.push_back(-1);  // an end
    }
  };
  for (const int level : levels) add([&](Rank r) { return static_cast<int>(r.value()) / level; });
  add([&](Rank r) { return static_cast<int>(r.value()) % fabric.ranks_per_node(); });
  for (const Group& group : groups)
    for (int i = 0; i < group.size(); ++i) shape.push_back(spines_from(fabric, groups.front()[0], group[i]));
  return shape;
}

int number_of(Rank rank) { return static_cast<int>(rank.value()); }

int last_of(const ParallelLayout& l, int stage) {
  return number_of(rank_at(l, {l.tp - 1, stage, l.dp - 1, l.cp - 1, 0}));
}

/// From a rank to its peer of the next stage.
int stage_stride(const ParallelLayout& l) { return l.pp > 1 ? number_of(rank_at(l, {0, 1, 0, 0, 0})) : l.world(); }

/// Where the nodes of a group, and of what belongs to it, are cut by the ends of stages and of the layout, whose ranks
/// there have no part in this, or another one.
std::vector<int> cuts_of(const ParallelLayout& l, const Tiles& tiles, int number, int node) {
  constexpr int uncut = -1;
  std::vector<int> cuts;
  const int first = number - number % tiles.span() / tiles.stride * tiles.stride;
  for (const int begin : {first, first + tiles.on})
    for (int i = 0, rank = begin; i < tiles.size; ++i, rank += tiles.stride) {
      const int front = rank / node * node, back = front + node - 1;
      const bool is_last = back >= l.world();
      const bool is_cut = is_last || front / tiles.blocks != back / tiles.blocks;
      const int cut = !is_cut ? uncut : is_last ? front : front % tiles.pipelines;
      if (cuts.empty() || cuts.back() != cut) cuts.push_back(cut);
    }
  return cuts;
}

/// Those that begin at another place of the machine, of the tile, or near an end.
std::vector<Way> beginnings(const ParallelLayout& l, int stage, const Tiles& tiles, const Fabric& fabric,
                            const std::vector<int>& levels) {
  const std::int64_t period = std::lcm(std::int64_t{levels.back()}, std::int64_t{tiles.stride});
  // Groups whose ranks share cells rank by rank are each other's neighbours.
  const int cell = has_spines_by_nic(fabric) ? 1 : std::gcd(std::gcd(tiles.stride, levels.front()), tiles.on);
  const auto digit = [&](int rank) { return rank % tiles.span() / tiles.stride; };
  std::vector<Way> out;
  std::map<std::pair<std::int64_t, std::vector<int>>, std::size_t> known;
  for (int dp = 0; dp < l.dp; ++dp)
    for (int cp = 0; cp < l.cp; ++cp)
      for (int tp = 0; tp < l.tp; ++tp) {
        const Rank rank = rank_at(l, {tp, stage, dp, cp, 0});
        const int number = number_of(rank);
        if (digit(number) != digit(tiles.first)) continue;
        const auto [found, is_new] = known.emplace(
            std::pair(number % period / cell, cuts_of(l, tiles, number, fabric.ranks_per_node())), out.size());
        if (is_new)
          out.push_back({rank, 1});
        else
          ++out[found->second].groups;
      }
  return out;
}

using Beside = std::function<std::vector<Group>(Rank)>;

std::vector<Way> ways(const ParallelLayout& l, const Fabric& fabric, int stage, const Tiles& tiles,
                      const Beside& beside) {
  const std::vector<int> levels = levels_of(fabric);
  if (levels.empty() || lie_alike(tiles, fabric, levels)) return {{rank_at(l, {0, stage, 0, 0, 0}), 1}};
  const std::vector<Way> all = beginnings(l, stage, tiles, fabric, levels);
  if (all.size() == 1) return all;
  std::vector<Way> out;
  std::map<std::vector<int>, std::size_t> known;
  for (const Way& way : all) {
    const auto [found, is_new] = known.emplace(shape_of(beside(way.rank), fabric, levels), out.size());
    if (is_new)
      out.push_back(way);
    else
      out[found->second].groups += way.groups;
  }
  return out;
}

}  // namespace

std::vector<Way> ways_of(const ParallelLayout& l, const Fabric& fabric, GroupOf group_of, int stage) {
  const Rank first = rank_at(l, {0, stage, 0, 0, 0});
  // With twins (DualPipe) a group is two tiles, equally far from each other.
  ParallelLayout one_way = l;
  if (l.twins() > 1) one_way.schedule = PipelineSchedule::one_f_one_b;
  const Group own = group_of(one_way, first);
  const bool has_twins = group_of(l, first).size() != own.size();
  if (own.size() == 1 && !has_twins) return {{first, 1}};
  const int stages = stage_stride(l);
  const Tiles tiles{number_of(first),
                    last_of(l, stage),
                    own.stride(),
                    own.size(),
                    has_twins ? (l.pp - 1 - 2 * stage) * stages : 0,
                    stages * l.pp,
                    has_twins ? stages : l.world()};
  return ways(l, fabric, stage, tiles, [&](Rank rank) {
    const Group group = group_of(l, rank);
    std::vector<Group> groups = groups_alongside(l, fabric, group_of, group);
    groups.insert(groups.begin(), group);
    return groups;
  });
}

std::vector<Way> message_ways(const ParallelLayout& l, const Fabric& fabric, int stage) {
  const Rank first = rank_at(l, {0, stage, 0, 0, 0});
  const Group tp = groups_of(l, first).tp;
  const int stages = stage_stride(l), next = (stage + 1) % l.pp;
  const Tiles tiles{number_of(first),        last_of(l, stage), tp.stride(), tp.size(),
                    (next - stage) * stages, stages * l.pp,     stages};
  return ways(l, fabric, stage, tiles, [&](Rank rank) {
    std::vector<Group> pairs;
    const std::vector<CollectiveRequest> messages = stage_messages(l, fabric, stage, {}, rank);
    for (const CollectiveRequest& message : messages) pairs.push_back(message.group);
    const std::size_t own = pairs.size();
    for (const Group& pair : messages.front().alongside)
      if (std::none_of(pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(own),
                       [&](const Group& known) { return known[0] == pair[0]; }))
        pairs.push_back(pair);
    return pairs;
  });
}

void SlowestWay::take(CollectiveRequest request, Seconds time, int groups) {
  constexpr double as_long = 1e-9;
  const bool first = cost_.groups == 0;
  cost_.groups += groups;
  if (!first && time <= cost_.time) {
    if (time >= cost_.time * (1 - as_long)) cost_.slowest_groups += groups;
    return;
  }
  const bool is_more = first || time * (1 - as_long) > cost_.time;
  cost_.slowest_groups = is_more ? groups : cost_.slowest_groups + groups;
  cost_.time = time;
  cost_.request = std::move(request);
}

void SlowestWay::finish() {
  if (cost_.slowest_groups == cost_.groups) cost_.groups = cost_.slowest_groups = 0;
}

}  // namespace collcast::workload
