// NVSwitches that stand side by side between the same GPUs.
#include "collcast/topology/switches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "check_spec.hpp"
#include "collcast/topology/wiring.hpp"

namespace collcast {

namespace {

using topology::find_group;
using topology::is_endpoint;

struct Switch {
  std::string group;
  int number;
  auto operator<=>(const Switch&) const = default;
};

/// The endpoints' links to NVSwitches, and whether anything else is linked to these. Of a machine that may have errors:
/// links whose ends are not there are left out.
struct SwitchLinks {
  int endpoints = 0;
  bool beside = false;                                            ///< something else is linked to a switch
  std::vector<const LinkGroup*> groups;                           ///< between endpoints and switches
  std::map<Switch, std::map<int, const LinkGroup*>> of_switch{};  ///< by endpoint
};

SwitchLinks switch_links(const TopologySpec& spec) {
  SwitchLinks out;
  for (const DeviceGroup& group : spec.devices) {
    if (is_endpoint(group.kind)) out.endpoints = group.count;
    if (group.kind != DeviceKind::nvswitch) continue;
    for (int i = 0; i < group.count; ++i) out.of_switch[{group.name, i}];
  }
  const auto is_switch = [](const DeviceGroup& group) { return group.kind == DeviceKind::nvswitch; };
  for (const LinkGroup& link : spec.links) {
    const DeviceGroup *from = find_group(spec, link.from), *to = find_group(spec, link.to);
    if (from == nullptr || to == nullptr || (!is_switch(*from) && !is_switch(*to))) continue;
    if (!is_endpoint(from->kind) && !is_endpoint(to->kind)) {
      out.beside = true;
      continue;
    }
    out.groups.push_back(&link);
    for (const auto& [i, j] : wired_pairs(link, from->count, to->count)) {
      const bool forward = is_switch(*to);
      const int endpoint = forward ? i : j;
      const auto found = out.of_switch.find(forward ? Switch{to->name, j} : Switch{from->name, i});
      if (found != out.of_switch.end() && endpoint >= 0 && endpoint < out.endpoints) found->second[endpoint] = &link;
    }
  }
  return out;
}

/// What each endpoint's links to all switches carry together; nothing where these cannot be one.
std::optional<Bandwidth> joint_rate(const SwitchLinks& links) {
  const std::size_t switches = links.of_switch.size();
  if (switches < 2 || links.beside || links.endpoints < 1 || links.groups.empty()) return std::nullopt;
  const LinkGroup& first = *links.groups.front();
  for (const LinkGroup* group : links.groups)
    if (group->kind != first.kind) return std::nullopt;
  std::vector<double> rates(static_cast<std::size_t>(links.endpoints));
  for (const auto& [one, by_endpoint] : links.of_switch) {
    if (by_endpoint.size() != rates.size()) return std::nullopt;
    for (const auto& [endpoint, link] : by_endpoint) {
      // As far from one GPU as from every other.
      if (link->latency != by_endpoint.begin()->second->latency) return std::nullopt;
      rates[static_cast<std::size_t>(endpoint)] += link->bandwidth.value();
    }
  }
  const auto [least, most] = std::ranges::minmax(rates);
  if (most - least > 1e-9 * most) return std::nullopt;  // what is left of adding up in other orders
  return Bandwidth(most);
}

/// Each once, in the order of the file.
std::string sources_of(const std::vector<const LinkGroup*>& groups) {
  std::vector<std::string> said;
  std::string out;
  for (const LinkGroup* group : groups) {
    if (std::ranges::find(said, group->source) != said.end()) continue;
    said.push_back(group->source);
    out += (out.empty() ? "" : "; ") + group->source;
  }
  return out;
}

/// Whether two endpoints are both linked to the same two switches.
bool have_two_in_common(const SwitchLinks& links) {
  std::map<int, std::vector<const Switch*>> of_endpoint;
  for (const auto& [one, by_endpoint] : links.of_switch)
    for (const auto& [endpoint, link] : by_endpoint) of_endpoint[endpoint].push_back(&one);
  std::set<std::pair<const Switch*, const Switch*>> seen;
  for (const auto& [endpoint, switches] : of_endpoint)
    for (std::size_t a = 0; a < switches.size(); ++a)
      for (std::size_t b = a + 1; b < switches.size(); ++b)
        if (!seen.insert({switches[a], switches[b]}).second) return true;
  return false;
}

}  // namespace

TopologySpec with_switches_joined(TopologySpec spec) {
  const SwitchLinks links = switch_links(spec);
  const std::optional<Bandwidth> rate = joint_rate(links);
  // What is wrong is said where it is written, and links move up when others are joined.
  if (!rate || !topology::check_form(spec, spec.default_nodes, {}).empty()) return spec;
  LinkGroup one = *links.groups.front();
  one.wiring = Wiring::all;
  one.pairs.clear();
  one.bandwidth = *rate;
  // What is spread over all is there when the part is that goes by the farthest.
  for (const LinkGroup* group : links.groups) one.latency = std::max(one.latency, group->latency);
  one.source = sources_of(links.groups);
  const auto is_switch = [](const DeviceGroup& group) { return group.kind == DeviceKind::nvswitch; };
  DeviceGroup joined = *std::ranges::find_if(spec.devices, is_switch);
  joined.count = 1;
  joined.stands_for = static_cast<int>(links.of_switch.size());
  for (std::string* end : {&one.from, &one.to})
    if (is_switch(*find_group(spec, *end))) *end = joined.name;

  std::vector<LinkGroup> all;
  for (const LinkGroup& link : spec.links) {
    if (std::ranges::find(links.groups, &link) == links.groups.end())
      all.push_back(link);
    else if (&link == links.groups.front())
      all.push_back(one);
  }
  spec.links = std::move(all);
  std::erase_if(spec.devices, [&](const DeviceGroup& group) { return is_switch(group) && group.name != joined.name; });
  *std::ranges::find_if(spec.devices, is_switch) = std::move(joined);
  return spec;
}

std::string joined_switches_text(const TopologySpec& spec) {
  for (const DeviceGroup& group : spec.devices) {
    if (group.stands_for < 2) continue;
    for (const LinkGroup& link : spec.links)
      if (link.from == group.name || link.to == group.name)
        return fmt::format(
            "{} NVSwitches count as one, '{}': hardware spreads what a GPU sends over its links to all of them, {:.4g} "
            "GB/s together",
            group.stands_for, group.name, link.bandwidth.value() / 1e9);
  }
  return {};
}

Diagnostics switches_apart(const TopologySpec& spec) {
  const SwitchLinks links = switch_links(spec);
  if (!have_two_in_common(links)) return {};
  const std::string& first = links.of_switch.begin()->first.group;
  return {{find_group(spec, first)->where,
           fmt::format(
               "simulated data from one GPU to another goes through one of {} NVSwitches, at the rate of a link to it",
               links.of_switch.size()),
           "describe them as one, with the bandwidth of all NVLinks of a GPU; those that every GPU has links to, each "
           "of the "
           "same latency as every other GPU's and as much in sum, and nothing else, count as one by themselves"}};
}

}  // namespace collcast
