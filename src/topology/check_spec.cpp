// Names, counts and wirings of the devices of a node.
#include "check_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "node_plan.hpp"

namespace collcast::topology {

namespace {

// Bounds that no machine reaches, so that a mistyped count is answered instead of exhausting the memory: a
// node keeps a route per pair of its endpoints.
constexpr int most_devices_per_node = 2048;
// NVLink domains of 72 GPUs and 18 switches have 1296. Routes are looked for among all of them from each endpoint.
constexpr std::int64_t most_links_per_node = 65'536;

bool is_name(const std::string& word) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !word.empty() && letter(word.front()) && std::all_of(word.begin(), word.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

const Location* device_place(const TopologySpec& spec, const DeviceGroup& group, const char* key) {
  return written(spec, fmt::format("node.devices.{}.{}", group.name, key));
}

/// Nearest to the user of what the device groups say at `key`, the first group's before others; else the node's.
const Location& devices_place(const TopologySpec& spec, const char* key, const DeviceGroup* first) {
  std::vector<const Location*> places;
  if (first != nullptr) places.push_back(device_place(spec, *first, key));
  places.push_back(written(spec, "node.devices"));
  for (const DeviceGroup& group : spec.devices) places.push_back(device_place(spec, group, key));
  places.push_back(&spec.where);
  return nearest_place(spec.files, places);
}

void check_devices(const TopologySpec& spec, Diagnostics& out) {
  std::set<std::string> seen;
  const DeviceGroup* endpoints = nullptr;
  std::int64_t total = 0;
  for (const DeviceGroup& group : spec.devices) {
    if (!is_name(group.name))
      out.push_back({group.where, fmt::format("'{}' is not a name for devices", group.name),
                     "a name begins with a letter and goes on with letters, digits, '_' or '-'"});
    if (!seen.insert(group.name).second)
      out.push_back({group.where, fmt::format("devices '{}' are described twice", group.name),
                     "each device group has its own name"});
    if (group.count < 1)
      out.push_back({group.where, fmt::format("{} devices of '{}'", group.count, group.name), "a count of 1 or more"});
    total += std::max(group.count, 0);
    if (!is_endpoint(group.kind)) continue;
    if (endpoints != nullptr)
      out.push_back(
          {nearest_place(spec.files,
                         {device_place(spec, group, "kind"), &group.where, device_place(spec, *endpoints, "kind")}),
           fmt::format("'{}' are endpoints of kind {} beside '{}'", group.name, to_string(group.kind), endpoints->name),
           "a node has exactly one device group of kind gpu or host: its ranks"});
    else
      endpoints = &group;
  }
  if (endpoints == nullptr)
    out.push_back({devices_place(spec, "kind", nullptr), "a node has no endpoints",
                   "exactly one device group of kind gpu or host: the ranks"});
  else if (spec.teaching && endpoints->count > 1)
    out.push_back({nearest_place(spec.files, {device_place(spec, *endpoints, "count"), &endpoints->where}),
                   fmt::format("{} '{}' per node of a teaching machine", endpoints->count, endpoints->name),
                   "a teaching machine has one endpoint per node; its size is the number of nodes"});
  const auto largest = std::max_element(spec.devices.begin(), spec.devices.end(),
                                        [](const auto& a, const auto& b) { return a.count < b.count; });
  if (total > most_devices_per_node)
    out.push_back({devices_place(spec, "count", &*largest), fmt::format("{} devices in one node", total),
                   fmt::format("at most {}", most_devices_per_node)});
}

std::string_view word(Wiring wiring) {
  switch (wiring) {
    case Wiring::all:
      return "all";
    case Wiring::one_to_one:
      return "one_to_one";
    case Wiring::spread:
      return "spread";
    case Wiring::ring:
      return "ring";
    case Wiring::pairs:
      return "pairs";
  }
  check(false, "a wiring is one of the known ones");
  return {};
}

std::string link_name(const LinkGroup& group) { return fmt::format("link {} - {}", group.from, group.to); }

/// The place of a key of a link of the node; of the link itself where the key is left out.
const Location* link_place(const TopologySpec& spec, const LinkGroup& group, const char* key) {
  const Location* own = written(spec, fmt::format("node.links.{}.{}", &group - spec.links.data(), key));
  return own == nullptr ? &group.where : own;
}

/// Nearest to the user of what decides which devices a link joins; `key` of the link before others.
const Location& wiring_place(const TopologySpec& spec, const LinkGroup& group, const char* key) {
  std::vector<const Location*> places{link_place(spec, group, key)};
  for (const char* other : {"wiring", "pairs", "from", "to"}) places.push_back(link_place(spec, group, other));
  for (const std::string& end : {group.from, group.to})
    if (const DeviceGroup* devices = find_group(spec, end)) places.push_back(device_place(spec, *devices, "count"));
  return nearest_place(spec.files, places);
}

void check_pairs(const TopologySpec& spec, const LinkGroup& group, int from_count, int to_count, Diagnostics& out) {
  const std::string name = link_name(group);
  const Location& at = wiring_place(spec, group, "pairs");
  const bool within = group.from == group.to;
  if (group.pairs.empty()) out.push_back({at, name + " lists no pairs", "at least one pair such as [0, 1]"});
  std::set<std::pair<int, int>> seen;
  for (const auto& [i, j] : group.pairs) {
    const std::string pair = fmt::format("{}: pair [{}, {}]", name, i, j);
    if (i < 0 || i >= from_count || j < 0 || j >= to_count) {
      out.push_back(
          {at, pair + " is out of range",
           fmt::format("'{}' has 0 to {}, '{}' has 0 to {}", group.from, from_count - 1, group.to, to_count - 1)});
      continue;
    }
    if (within && i == j)
      out.push_back({at, pair + " joins a device to itself", "two different devices"});
    else if (!seen.insert(within ? std::pair(std::min(i, j), std::max(i, j)) : std::pair(i, j)).second)
      out.push_back(
          {at, pair + " is listed twice",
           "each pair once; it stands for both directions, parallel cables are one link of their summed bandwidth"});
  }
}

/// What would fit instead of the wiring; empty: it fits.
std::string remedy(const LinkGroup& group, int from_count, int to_count) {
  const bool within = group.from == group.to;
  switch (group.wiring) {
    case Wiring::all:
      return within && from_count < 2 ? "within one group it needs 2 or more devices" : "";
    case Wiring::one_to_one:
      if (within) return "it joins two different groups";
      return from_count != to_count ? "one_to_one needs equal counts; spread joins many to few" : "";
    case Wiring::spread:
      if (within) return "it joins two different groups";
      return from_count < to_count
                 ? fmt::format("spread goes from many to few: from '{}' to '{}'", group.to, group.from)
                 : "";
    case Wiring::ring:
      if (!within) return "a ring joins the devices of one group";
      return from_count < 3 ? "a ring needs 3 or more devices; 'all' joins two" : "";
    case Wiring::pairs:
      return "";
  }
  return "";
}

void check_ends(const TopologySpec& spec, const LinkGroup& group, Diagnostics& out) {
  if (spec.devices.empty()) return;  // which is the error
  const auto known = [&](const std::string& word, const char* key) {
    if (find_group(spec, word) != nullptr) return;
    out.push_back({*link_place(spec, group, key), fmt::format("{}: no devices '{}'", link_name(group), word),
                   expected_one_of(word, group_names(spec))});
  };
  known(group.from, "from");
  if (group.to != group.from) known(group.to, "to");
}

/// Counts below 1 have been reported where they stand.
void check_wiring(const TopologySpec& spec, const LinkGroup& group, Diagnostics& out) {
  const DeviceGroup* from = find_group(spec, group.from);
  const DeviceGroup* to = find_group(spec, group.to);
  if (from == nullptr || to == nullptr || from->count <= 0 || to->count <= 0) return;
  if (group.wiring == Wiring::pairs) return check_pairs(spec, group, from->count, to->count, out);
  const std::string hint = remedy(group, from->count, to->count);
  if (hint.empty()) return;
  const Location& at = wiring_place(spec, group, "wiring");
  const bool elsewhere = depth(spec.files, at) != depth(spec.files, group.where);
  out.push_back({at,
                 fmt::format("{}{}: wiring {} does not fit {} '{}' and {} '{}'", link_name(group),
                             elsewhere ? fmt::format(" ({})", to_text(group.where)) : "", word(group.wiring),
                             from->count, group.from, to->count, group.to),
                 hint});
}

/// Of links that fit: no two devices are joined twice, or a route would take the wider and leave the other unused.
void check_parallel(const TopologySpec& spec, Diagnostics& out) {
  struct End {
    std::string group;
    int number;
    auto operator<=>(const End&) const = default;
  };
  std::map<std::pair<End, End>, const LinkGroup*> joined;
  for (const LinkGroup& group : spec.links) {
    const DeviceGroup *from = find_group(spec, group.from), *to = find_group(spec, group.to);
    for (const auto& [i, j] : wired_pairs(group, from->count, to->count)) {
      const End a{group.from, i}, b{group.to, j};
      const auto [there, is_new] = joined.emplace(std::minmax(a, b), &group);
      if (is_new) continue;
      out.push_back(
          {wiring_place(spec, group, "from"),
           fmt::format("{}: {}{} and {}{} are joined already, by link {} - {}{}", link_name(group), a.group, i, b.group,
                       j, there->second->from, there->second->to,
                       there->second->where.line > 0 ? fmt::format(" ({})", to_text(there->second->where)) : ""),
           "each pair once; it stands for both directions, parallel cables are one link of their summed bandwidth"});
      break;  // one entry is one slip, however many devices it joins
    }
  }
}

/// Of links that fit: as many as wired_pairs lists.
std::int64_t cables(const LinkGroup& group, std::int64_t from_count, std::int64_t to_count) {
  switch (group.wiring) {
    case Wiring::all:
      return group.from == group.to ? from_count * (from_count - 1) / 2 : from_count * to_count;
    case Wiring::pairs:
      return static_cast<std::int64_t>(group.pairs.size());
    case Wiring::one_to_one:
    case Wiring::spread:
    case Wiring::ring:
      return from_count;
  }
  return 0;
}

void check_link_count(const TopologySpec& spec, Diagnostics& out) {
  std::int64_t total = 0;
  const LinkGroup* largest = nullptr;
  std::int64_t most = 0;
  for (const LinkGroup& group : spec.links) {
    const std::int64_t count = cables(group, find_group(spec, group.from)->count, find_group(spec, group.to)->count);
    total += count;
    if (count <= most) continue;
    most = count;
    largest = &group;
  }
  if (total <= most_links_per_node) return;
  out.push_back({wiring_place(spec, *largest, "wiring"),
                 fmt::format("{} links in one node, {} of them {}", total, most, link_name(*largest)),
                 fmt::format("at most {}; fewer devices, or another wiring", most_links_per_node)});
}

void check_links(const TopologySpec& spec, Diagnostics& out) {
  for (const LinkGroup& group : spec.links) {
    check_link_numbers(link_name(group), group.bandwidth, group.latency, group.where, out);
    check_ends(spec, group, out);
    check_wiring(spec, group, out);
  }
  if (out.empty()) check_link_count(spec, out);
  if (out.empty()) check_parallel(spec, out);
}

void check_size(const TopologySpec& spec, int nodes, const Location& where, Diagnostics& out) {
  if (nodes < 1) {
    out.push_back({where, fmt::format("{} nodes", nodes), "1 or more"});
  } else if (spec.max_nodes > 0 && nodes > spec.max_nodes) {
    out.push_back({nearest_place(spec.files, {&where, written(spec, "nodes.max")}),
                   fmt::format("{} nodes of '{}'", nodes, spec.name),
                   fmt::format("this machine has at most {}", spec.max_nodes)});
  } else if (nodes > most_nodes) {
    out.push_back({where, fmt::format("{} nodes", nodes), fmt::format("at most {}", most_nodes)});
  }
}

}  // namespace

const Location* written(const TopologySpec& spec, const std::string& path) {
  return spec.origins.knows(path) ? &spec.origins.of(path) : nullptr;
}

void check_link_numbers(const std::string& what, Bandwidth bandwidth, Seconds latency, const Location& where,
                        Diagnostics& out) {
  if (!(bandwidth.value() > 0) || !std::isfinite(bandwidth.value()))
    out.push_back({where, what + " has no bandwidth", "a positive rate per direction, such as 300GB/s"});
  if (!(latency.count() >= 0) || !std::isfinite(latency.count()))
    out.push_back({where, what + " has no valid latency", "a time of 0 or more, such as 500ns"});
}

const DeviceGroup* find_group(const TopologySpec& spec, const std::string& name) {
  const auto found =
      std::find_if(spec.devices.begin(), spec.devices.end(), [&](const DeviceGroup& g) { return g.name == name; });
  return found == spec.devices.end() ? nullptr : &*found;
}

std::vector<std::string> group_names(const TopologySpec& spec) {
  std::vector<std::string> names;
  for (const DeviceGroup& group : spec.devices) names.push_back(group.name);
  return names;
}

Diagnostics check_form(const TopologySpec& spec, int nodes, const Location& nodes_asked_at) {
  Diagnostics out;
  check_devices(spec, out);
  check_links(spec, out);
  check_size(spec, nodes, nodes_asked_at, out);
  check_network(spec, nodes, nodes_asked_at, out);
  return with_extending_files(std::move(out), spec.files);
}

}  // namespace collcast::topology

namespace collcast {

int depth(const std::vector<SourceFile>& files, const Location& where) {
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const SourceFile& f) { return f.file == where.file; });
  return found == files.end() ? -1 : static_cast<int>(found - files.begin());
}

const Location& nearest_place(const std::vector<SourceFile>& files, const std::vector<const Location*>& places) {
  const auto distance = [&](const Location& where) {
    const bool typed = where.file.starts_with("--") || where.file == "command line";
    return typed ? -2 : depth(files, where);
  };
  const Location* best = nullptr;
  for (const Location* place : places)
    if (place != nullptr && (best == nullptr || distance(*place) < distance(*best))) best = place;
  check(best != nullptr, "one of the places is known");
  return *best;
}

Diagnostics with_extending_files(Diagnostics errors, const std::vector<SourceFile>& files) {
  for (Diagnostic& error : errors) {
    std::string by;
    for (int i = depth(files, error.where); i > 0; --i)
      by += (by.empty() ? "this file is extended at " : ", which is extended at ") +
            to_text(files[static_cast<std::size_t>(i)].extended_at);
    if (!by.empty()) error.hint += (error.hint.empty() ? "" : "; ") + by;
  }
  return errors;
}

Diagnostics check_known_parts(const TopologySpec& spec) {
  Diagnostics out;
  for (const LinkGroup& group : spec.links) {
    if (!group.from.empty() && !group.to.empty()) topology::check_ends(spec, group, out);
    if (group.bandwidth.value() > 0) topology::check_wiring(spec, group, out);
  }
  if (!spec.network_devices.empty()) topology::check_attachment(spec, out);
  return out;
}

}  // namespace collcast
