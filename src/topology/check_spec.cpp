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

bool is_name(const std::string& word) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !word.empty() && letter(word.front()) && std::all_of(word.begin(), word.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
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
          {group.where,
           fmt::format("'{}' are endpoints of kind {} beside '{}'", group.name, to_string(group.kind), endpoints->name),
           "a node has exactly one device group of kind gpu or host: its ranks"});
    else
      endpoints = &group;
  }
  if (endpoints == nullptr)
    out.push_back({spec.where, "a node has no endpoints", "exactly one device group of kind gpu or host: the ranks"});
  else if (spec.teaching && endpoints->count > 1)
    out.push_back({endpoints->count_where.file.empty() ? endpoints->where : endpoints->count_where,
                   fmt::format("{} '{}' per node of a teaching machine", endpoints->count, endpoints->name),
                   "a teaching machine has one endpoint per node; its size is the number of nodes"});
  if (total > most_devices_per_node)
    out.push_back(
        {spec.where, fmt::format("{} devices in one node", total), fmt::format("at most {}", most_devices_per_node)});
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

void check_pairs(const LinkGroup& group, int from_count, int to_count, Diagnostics& out) {
  const std::string name = fmt::format("link {} - {}", group.from, group.to);
  const bool within = group.from == group.to;
  if (group.pairs.empty()) out.push_back({group.where, name + " lists no pairs", "at least one pair such as [0, 1]"});
  std::set<std::pair<int, int>> seen;
  for (const auto& [i, j] : group.pairs) {
    const std::string pair = fmt::format("{}: pair [{}, {}]", name, i, j);
    if (i < 0 || i >= from_count || j < 0 || j >= to_count) {
      out.push_back(
          {group.where, pair + " is out of range",
           fmt::format("'{}' has 0 to {}, '{}' has 0 to {}", group.from, from_count - 1, group.to, to_count - 1)});
      continue;
    }
    if (within && i == j)
      out.push_back({group.where, pair + " joins a device to itself", "two different devices"});
    else if (!seen.insert(within ? std::pair(std::min(i, j), std::max(i, j)) : std::pair(i, j)).second)
      out.push_back(
          {group.where, pair + " is listed twice",
           "each pair once; it stands for both directions, parallel cables are one link of their summed bandwidth"});
  }
}

/// `at`: the link's place, or that of a count which is nearer to the user.
void check_wiring(const LinkGroup& group, int from_count, int to_count, const Location& at, Diagnostics& out) {
  const bool within = group.from == group.to;
  const std::string elsewhere = &at == &group.where ? "" : fmt::format(" ({})", to_text(group.where));
  const auto unfit = [&](const std::string& hint) {
    out.push_back({at,
                   fmt::format("link {} - {}{}: wiring {} does not fit {} '{}' and {} '{}'", group.from, group.to,
                               elsewhere, word(group.wiring), from_count, group.from, to_count, group.to),
                   hint});
  };
  switch (group.wiring) {
    case Wiring::all:
      if (within && from_count < 2) unfit("within one group it needs 2 or more devices");
      break;
    case Wiring::one_to_one:
      if (within)
        unfit("it joins two different groups");
      else if (from_count != to_count)
        unfit("one_to_one needs equal counts; spread joins many to few");
      break;
    case Wiring::spread:
      if (within)
        unfit("it joins two different groups");
      else if (from_count < to_count)
        unfit(fmt::format("spread goes from many to few: from '{}' to '{}'", group.to, group.from));
      break;
    case Wiring::ring:
      if (!within)
        unfit("a ring joins the devices of one group");
      else if (from_count < 3)
        unfit("a ring needs 3 or more devices; 'all' joins two");
      break;
    case Wiring::pairs:
      check_pairs(group, from_count, to_count, out);
      break;
  }
}

std::string link_name(const LinkGroup& group) { return fmt::format("link {} - {}", group.from, group.to); }

void check_ends(const TopologySpec& spec, const LinkGroup& group, Diagnostics& out) {
  if (spec.devices.empty()) return;  // which is the error
  const auto known = [&](const std::string& word) {
    if (find_group(spec, word) != nullptr) return;
    out.push_back({group.where, fmt::format("{}: no devices '{}'", link_name(group), word),
                   expected_one_of(word, group_names(spec))});
  };
  known(group.from);
  if (group.to != group.from) known(group.to);
}

/// Counts below 1 have been reported where they stand.
void check_wiring(const TopologySpec& spec, const LinkGroup& group, Diagnostics& out) {
  const DeviceGroup* from = find_group(spec, group.from);
  const DeviceGroup* to = find_group(spec, group.to);
  if (from == nullptr || to == nullptr || from->count <= 0 || to->count <= 0) return;
  const Location* at = &group.where;
  for (const Location* count : {&from->count_where, &to->count_where})
    if (!count->file.empty() && depth(spec.files, *count) < depth(spec.files, *at)) at = count;
  check_wiring(group, from->count, to->count, *at, out);
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
          {group.where,
           fmt::format("{}: {}{} and {}{} are joined already, by link {} - {}{}", link_name(group), a.group, i, b.group,
                       j, there->second->from, there->second->to,
                       there->second->where.line > 0 ? fmt::format(" ({})", to_text(there->second->where)) : ""),
           "each pair once; it stands for both directions, parallel cables are one link of their summed bandwidth"});
      break;  // one entry is one slip, however many devices it joins
    }
  }
}

void check_links(const TopologySpec& spec, Diagnostics& out) {
  for (const LinkGroup& group : spec.links) {
    check_link_numbers(link_name(group), group.bandwidth, group.latency, group.where, out);
    check_ends(spec, group, out);
    check_wiring(spec, group, out);
  }
  if (out.empty()) check_parallel(spec, out);
}

void check_size(const TopologySpec& spec, int nodes, const Location& where, Diagnostics& out) {
  if (nodes < 1) {
    out.push_back({where, fmt::format("{} nodes", nodes), "1 or more"});
  } else if (spec.max_nodes > 0 && nodes > spec.max_nodes) {
    out.push_back({where, fmt::format("{} nodes of '{}'", nodes, spec.name),
                   fmt::format("this machine has at most {}", spec.max_nodes)});
  } else if (nodes > most_nodes) {
    out.push_back({where, fmt::format("{} nodes", nodes), fmt::format("at most {}", most_nodes)});
  }
}

}  // namespace

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
