// Several groups of one collective: what each takes alone and beside the others, and the links that they share.
//
// A shared link is one that messages of several groups cross, at any time of the collective. Its share is what a
// group gets while all of them send over it; how long that lasts is for the estimate and the simulation to say.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "collcast/base/units.hpp"
#include "collcast/report/documents.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

struct LinkShare {
  std::size_t groups = 0;
  Volume bytes{};
};

/// Bytes of one pattern by link.
std::map<LinkId, Volume> crossing(const Fabric& fabric, const Pattern& pattern) {
  std::map<LinkId, Volume> bytes;
  std::vector<LinkId> route;
  for (const Lane& lane : pattern.lanes)
    for (const Phase& phase : lane.phases)
      for (Position v = 0; v < pattern.size(); ++v) {
        const int sends = phase.shape->sends(phase, v);
        for (int i = 0; i < sends; ++i) {
          const Hop hop = phase.shape->send(phase, v, i);
          route.clear();
          fabric.route(pattern.rank(lane, v), pattern.rank(lane, hop.peer), lane.route_lane, route);
          for (const LinkId link : route) bytes[link] += pattern.message(lane, hop) * pattern.chunks;
        }
      }
  return bytes;
}

bool same_but_group(const GroupTimes& a, const GroupTimes& b) {
  return a.group.size() == b.group.size() && a.estimate_alone == b.estimate_alone && a.estimate == b.estimate &&
         a.simulate_alone == b.simulate_alone && a.simulate == b.simulate;
}

}  // namespace

Section group_times(const std::vector<GroupTimes>& groups) {
  const auto time = [](std::optional<Seconds> t) { return t ? format_seconds(*t) : std::string("-"); };
  Section out;
  out.title = "groups";
  Table table{{},
              {{"group", "", Align::left},
               {"estimate alone", "", Align::right},
               {"simulate alone", "", Align::right},
               {"estimate together", "", Align::right},
               {"simulate together", "", Align::right},
               {"slowdown", "", Align::right}},
              {}};
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto same = [&](const GroupTimes& other) { return same_but_group(other, groups[g]); };
    if (std::any_of(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(g), same)) continue;
    const auto alike = std::count_if(groups.begin() + static_cast<std::ptrdiff_t>(g) + 1, groups.end(), same);
    const GroupTimes& t = groups[g];
    const auto alone = t.simulate_alone ? t.simulate_alone : t.estimate_alone,
               together = t.simulate ? t.simulate : t.estimate;
    const bool comparable = alone && together && alone->count() > 0;
    table.rows.push_back({ranks_text(t.group) + (alike > 0 ? fmt::format(" (and {} like it)", alike) : ""),
                          time(t.estimate_alone), time(t.simulate_alone), time(t.estimate), time(t.simulate),
                          comparable ? fmt::format("{:.3g}x", *together / *alone) : "-"});
  }
  out.tables.push_back(std::move(table));
  return out;
}

Section shared_links(const Fabric& fabric, std::span<const Pattern> patterns) {
  constexpr std::size_t most_links = 8;
  std::map<LinkId, LinkShare> all;
  for (const Pattern& pattern : patterns)
    for (const auto& [link, bytes] : crossing(fabric, pattern)) {
      ++all[link].groups;
      all[link].bytes += bytes;
    }
  std::erase_if(all, [](const auto& entry) { return entry.second.groups < 2; });
  Section out;
  out.title = "shared links";
  if (all.empty()) {
    out.text.push_back({"no link is used by two groups", Paragraph::Tone::plain});
    return out;
  }
  const auto bandwidth = [&](LinkId link) { return fabric.links()[link.value()].bandwidth; };
  std::vector<std::pair<LinkId, LinkShare>> longest(all.begin(), all.end());
  std::stable_sort(longest.begin(), longest.end(), [&](const auto& a, const auto& b) {
    return a.second.bytes / bandwidth(a.first) > b.second.bytes / bandwidth(b.first);
  });
  Table table{
      fmt::format("busiest of {} that several groups use", counted(static_cast<std::int64_t>(all.size()), "link")),
      {{"link", "", Align::left},
       {"bandwidth", "", Align::right},
       {"groups", "", Align::right},
       {"share of each", "", Align::right},
       {"bytes of all", "", Align::right},
       {"bytes / bandwidth", "", Align::right}},
      {}};
  for (const auto& [link, share] : longest) {
    if (table.rows.size() == most_links) break;
    table.rows.push_back({fabric.link_name(link), format_bandwidth(bandwidth(link)), fmt::format("{}", share.groups),
                          format_bandwidth(bandwidth(link) / static_cast<double>(share.groups)),
                          format_bytes(share.bytes), format_seconds(share.bytes / bandwidth(link))});
  }
  out.text.push_back(
      {"share of each: what a group gets while all of the link's groups send over it", Paragraph::Tone::plain});
  out.tables.push_back(std::move(table));
  return out;
}

}  // namespace collcast
