#include "collcast/topology/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "collcast/base/units.hpp"
#include "collcast/base/words.hpp"

namespace collcast {

namespace {

struct Ends {
  std::string from, to;
};

Ends ends_of(const Fabric& fabric, std::size_t link) {
  const std::string name = fabric.link_name(LinkId(static_cast<std::uint32_t>(link)));
  const std::size_t arrow = name.find(" -> ");
  return {name.substr(0, arrow), name.substr(arrow + 4)};
}

/// What a user wrote: two devices, or one and all links at it.
struct Named {
  std::string from, to;  ///< `to` empty: one device
  bool both_ways = false;

  bool means(const Ends& ends) const {
    if (to.empty()) return ends.from == from || ends.to == from;
    return (ends.from == from && ends.to == to) || (both_ways && ends.from == to && ends.to == from);
  }
};

Named parse_name(std::string_view text) {
  for (const auto& [arrow, both] : {std::pair<std::string_view, bool>{"<->", true}, {"->", false}}) {
    const std::size_t at = text.find(arrow);
    if (at == std::string_view::npos) continue;
    return {std::string(trimmed(text.substr(0, at), " ")), std::string(trimmed(text.substr(at + arrow.size()), " ")),
            both};
  }
  return {std::string(trimmed(text, " ")), {}, false};
}

/// Devices by name, with those that a link leads to.
using Devices = std::map<std::string, std::vector<std::string>>;

Devices devices_of(const Fabric& fabric) {
  Devices devices;
  for (std::size_t l = 0; l < fabric.links().size(); ++l) {
    Ends ends = ends_of(fabric, l);
    devices[std::move(ends.from)].push_back(std::move(ends.to));
  }
  return devices;
}

/// Those that a misspelt name is compared with: comparing is slow, and a person knows the node.
std::vector<std::string> likely(const Devices& devices, const std::string& name) {
  constexpr std::size_t few = 2'000;
  const std::string node = name.substr(0, name.find('.') + 1);
  std::vector<std::string> all, near;
  for (const auto& [device, neighbours] : devices) {
    all.push_back(device);
    if (!node.empty() && device.starts_with(node)) near.push_back(device);
  }
  return all.size() > few && !near.empty() ? near : all;
}

Diagnostics unknown_names(const Devices& devices, const MachineFault& fault) {
  const Named named = parse_name(fault.link()->link);
  Diagnostics wrong;
  for (const std::string& name : {named.from, named.to}) {
    if ((name.empty() && !named.from.empty()) || devices.count(name) > 0) continue;
    wrong.push_back({fault.where, fmt::format("there is no link at '{}'", name),
                     fmt::format("{}; a link is 'A -> B', a cable 'A <-> B', a device means all its links",
                                 expected_one_of(name, likely(devices, name)))});
  }
  if (!wrong.empty()) return wrong;
  return {{fault.where, fmt::format("no link joins '{}' and '{}'", named.from, named.to),
           fmt::format("'{}' has links to: {}", named.from, fmt::join(devices.at(named.from), ", "))}};
}

/// By fault the links that it names; none of a GPU's. A link's name is made once, however many faults there are.
std::vector<std::vector<std::size_t>> named_links(const Fabric& fabric, std::span<const MachineFault> faults) {
  std::vector<std::vector<std::size_t>> links(faults.size());
  std::vector<Named> named(faults.size());
  std::unordered_map<std::string, std::vector<std::size_t>> at;  // faults by a device that all their links are at
  for (std::size_t f = 0; f < faults.size(); ++f) {
    if (faults[f].link() == nullptr) continue;
    named[f] = parse_name(faults[f].link()->link);
    at[named[f].from].push_back(f);
  }
  for (std::size_t l = 0; l < fabric.links().size() && !at.empty(); ++l) {
    const Ends ends = ends_of(fabric, l);
    for (const std::string* device : {&ends.from, &ends.to})
      if (const auto here = at.find(*device); here != at.end())
        for (const std::size_t f : here->second)
          if (named[f].means(ends)) links[f].push_back(l);
  }
  return links;
}

/// What one link suffers.
struct Damage {
  const LinkFault* fault;
  std::size_t link;
};

/// What faults leave of the links, in whatever order they are told: of a link's bandwidth the least of the rates, and
/// of that all shares.
void wear(std::vector<Link>& links, std::vector<Damage> all) {
  std::stable_sort(all.begin(), all.end(), [](const Damage& a, const Damage& b) {  // as sums and products are rounded
    return std::tie(a.fault->share, a.fault->added_latency) < std::tie(b.fault->share, b.fault->added_latency);
  });
  for (const auto& [fault, link] : all)
    if (fault->bandwidth) links[link].bandwidth = std::min(links[link].bandwidth, *fault->bandwidth);
  for (const auto& [fault, link] : all) {
    if (fault->share != 1) links[link].bandwidth = links[link].bandwidth * fault->share;
    if (fault->failed) links[link].bandwidth = Bandwidth(0);
    links[link].latency += fault->added_latency;
  }
}

/// That none is named, or a rate above that of all.
Diagnostics check_link(const Fabric& fabric, const MachineFault& fault, const std::vector<std::size_t>& links,
                       std::optional<Devices>& devices) {
  if (links.empty()) {
    if (!devices) devices = devices_of(fabric);
    return unknown_names(*devices, fault);
  }
  if (!fault.link()->bandwidth) return {};
  Bandwidth fastest{};
  for (const std::size_t l : links) fastest = std::max(fastest, fabric.links()[l].bandwidth);
  if (*fault.link()->bandwidth <= fastest) return {};
  return {{fault.where,
           fmt::format("'{}' has {}, and {} would be more", fault.link()->link, format_bandwidth(fastest),
                       format_bandwidth(*fault.link()->bandwidth)),
           "a fault leaves what there is, or less"}};
}

Diagnostics check_gpu(const Fabric& fabric, const MachineFault& fault) {
  const Gpus& gpus = fault.gpu()->gpus;
  const int count = gpus.of_nodes ? fabric.nodes() : fabric.rank_count();
  if (gpus.are_all() || gpus.last < count) return {};
  return {{fault.where,
           fmt::format("there is no {} {}: the machine has {}", gpus.of_nodes ? "node" : "GPU", gpus.last, count),
           fmt::format("expected 0 to {}", count - 1)}};
}

/// Nodes between which all ways are looked at: from those `near` the faults to those of `all` that stand for the rest.
struct Samples {
  std::vector<int> near, all;
};

/// A node of each pod without a fault of its own; on a torus all.
Samples samples(const Fabric& fabric, const Fabric& faulty) {
  std::vector<bool> near(static_cast<std::size_t>(fabric.nodes()));
  bool between = false;
  for (std::size_t l = 0; l < faulty.links().size(); ++l) {
    if (faulty.links()[l].bandwidth.value() > 0) continue;
    const auto [from, to] = fabric.nodes_of(LinkId(static_cast<std::uint32_t>(l)));
    if (from) near[static_cast<std::size_t>(*from)] = true;
    if (to) near[static_cast<std::size_t>(*to)] = true;
    between = between || (!from && !to);
  }
  const auto* leaves = std::get_if<LeafSpineNetwork>(&fabric.spec().network);
  const bool all_differ = std::holds_alternative<TorusNetwork>(fabric.spec().network);
  const int pod = leaves != nullptr ? leaves->nodes_per_leaf : all_differ ? 1 : fabric.nodes();
  Samples out;
  for (int first = 0; first < fabric.nodes(); first += pod) {
    const int end = std::min(first + pod, fabric.nodes());
    int healthy = first;
    while (healthy < end && near[static_cast<std::size_t>(healthy)]) ++healthy;
    if (healthy == end) continue;
    out.all.push_back(healthy);
    if (between) out.near.push_back(healthy);
  }
  for (int node = 0; node < fabric.nodes(); ++node) {
    if (!near[static_cast<std::size_t>(node)]) continue;
    out.near.push_back(node);
    out.all.push_back(node);
  }
  return out;
}

/// Ranks that cannot reach another, and how many pairs there are.
struct CutOff {
  std::vector<int> entirely;  ///< from every other
  int from = -1, to = -1;     ///< the first pair besides those
  std::int64_t pairs = 0;
};

CutOff cut_off(const Fabric& faulty, const Samples& samples) {
  const int per_node = faulty.ranks_per_node();
  CutOff out;
  std::vector<LinkId> way;
  const auto joined = [&](int a, int b) {
    way.clear();
    faulty.route(Rank(static_cast<std::uint32_t>(a)), Rank(static_cast<std::uint32_t>(b)), 0, way);
    return !way.empty();
  };
  for (const int node : samples.near) {
    for (int a = node * per_node; a < (node + 1) * per_node; ++a) {
      std::vector<int> apart;
      std::int64_t others = 0;
      for (const int other : samples.all) {
        for (int b = other * per_node; b < (other + 1) * per_node; ++b) {
          if (a == b) continue;
          ++others;
          if (!joined(a, b) || !joined(b, a)) apart.push_back(b);
        }
      }
      if (apart.empty()) continue;
      if (static_cast<std::int64_t>(apart.size()) == others) {
        out.entirely.push_back(a);
      } else {
        if (out.from < 0) out.from = a, out.to = apart.front();
        out.pairs += static_cast<std::int64_t>(apart.size());
      }
    }
  }
  return out;
}

Diagnostics check_ways(const Fabric& fabric, const Fabric& faulty, std::span<const MachineFault> faults) {
  const auto failed = std::find_if(faults.begin(), faults.end(), [](const MachineFault& fault) {
    return fault.link() != nullptr && fault.link()->failed;
  });
  if (failed == faults.end()) return {};
  const CutOff cut = cut_off(faulty, samples(fabric, faulty));
  constexpr const char* hint =
      "no other way is left; let a slow link stand for it, or describe the machine without these ranks";
  if (!cut.entirely.empty()) {
    constexpr std::size_t most = 16;
    std::vector<int> named(cut.entirely.begin(),
                           cut.entirely.begin() + static_cast<std::ptrdiff_t>(std::min(most, cut.entirely.size())));
    return {{failed->where,
             fmt::format("failed links cut off rank{} {}{} from all others", cut.entirely.size() == 1 ? "" : "s",
                         fmt::join(named, ", "),
                         named.size() < cut.entirely.size()
                             ? fmt::format(" and {} more", cut.entirely.size() - named.size())
                             : std::string()),
             hint}};
  }
  if (cut.from < 0) return {};
  return {{failed->where,
           fmt::format("failed links cut off rank {} from rank {}{}", cut.from, cut.to,
                       cut.pairs > 2 ? ", and more such pairs" : ""),
           hint}};
}

std::string percent(double share) { return fmt::format("{:.10g}%", 100 * share); }

std::string jitter_text(const Jitter& jitter) {
  return fmt::format("{} jitter, {}, seed {}", percent(jitter.spread), to_string(jitter.shape), jitter.seed);
}

std::string gpu_text(const GpuFault& gpu) {
  const bool one = !gpu.gpus.of_nodes && gpu.gpus.first == gpu.gpus.last;
  std::string out;
  if (gpu.compute < 1 || !gpu.jitter)
    out = fmt::format("{} of {} compute", percent(gpu.compute), one ? "its" : "their");
  if (gpu.jitter) out += (out.empty() ? "" : ", ") + jitter_text(*gpu.jitter);
  return out;
}

std::string what_text(const MachineFault& fault) {
  if (const GpuFault* gpu = fault.gpu()) return to_text(gpu->gpus) + ": " + gpu_text(*gpu);
  const LinkFault& link = *fault.link();
  if (link.failed) return fmt::format("{}: failed", link.link);
  std::string out;
  if (link.bandwidth) out += ", " + format_bandwidth(*link.bandwidth);
  if (link.share < 1 || (!link.bandwidth && link.added_latency == Seconds{} && !link.jitter))
    out += fmt::format(", {} of its bandwidth", percent(link.share));
  if (link.added_latency > Seconds{}) out += fmt::format(", {} more latency", format_seconds(link.added_latency));
  if (link.jitter) out += ", " + jitter_text(*link.jitter);
  return fmt::format("{}: {}", link.link, out.substr(2));
}

}  // namespace

std::string to_text(const Gpus& gpus) {
  if (gpus.are_all()) return "all gpus";
  const char* kind = gpus.of_nodes ? "node" : "gpu";
  if (gpus.first == gpus.last) return fmt::format("{} {}", kind, gpus.first);
  return fmt::format("{}s {}-{}", kind, gpus.first, gpus.last);
}

const char* to_string(JitterShape shape) {
  switch (shape) {
    case JitterShape::lognormal:
      return "lognormal";
    case JitterShape::normal:
      return "normal";
    case JitterShape::exponential:
      return "exponential";
  }
  return "";
}

const MachineFault* first_with_jitter(std::span<const MachineFault> faults) {
  for (const MachineFault& fault : faults)
    if (fault.jitter() != nullptr && fault.jitter()->spread > 0) return &fault;
  return nullptr;
}

std::vector<MachineFault> without_jitter(std::span<const MachineFault> faults) {
  std::vector<MachineFault> out(faults.begin(), faults.end());
  for (MachineFault& fault : out) std::visit([](auto& what) { what.jitter.reset(); }, fault.what);
  return out;
}

std::string to_text(const MachineFault& fault) {
  std::string out = what_text(fault);
  if (fault.from > Seconds{}) out += ", from " + format_seconds(fault.from);
  if (fault.until) out += ", until " + format_seconds(*fault.until);
  return out;
}

std::vector<std::string> rates_without_effect(const Fabric& fabric, std::span<const MachineFault> faults) {
  std::vector<std::string> out;
  const bool any = std::ranges::any_of(
      faults, [](const MachineFault& fault) { return fault.link() != nullptr && fault.link()->bandwidth; });
  if (!any) return out;
  const std::vector<std::vector<std::size_t>> named = named_links(fabric, faults);
  for (std::size_t f = 0; f < faults.size(); ++f) {
    const MachineFault& fault = faults[f];
    if (fault.link() == nullptr || !fault.link()->bandwidth) continue;
    std::map<Bandwidth, std::string> unchanged;  // by rate one of the links
    for (const std::size_t l : named[f]) {
      const Ends ends = ends_of(fabric, l);
      const Bandwidth own = fabric.links()[l].bandwidth;
      if (own <= *fault.link()->bandwidth) unchanged.try_emplace(own, ends.from + " -> " + ends.to);
    }
    for (const auto& [own, link] : unchanged)
      out.push_back(fmt::format("the fault '{}' changes nothing at '{}' and its like, which have {}", to_text(fault),
                                link, format_bandwidth(own)));
  }
  return out;
}

bool any_of_links(std::span<const MachineFault> faults) {
  return std::any_of(faults.begin(), faults.end(), [](const MachineFault& fault) { return fault.link() != nullptr; });
}

Result<Fabric> with_faults(const Fabric& fabric, std::span<const MachineFault> faults) {
  Diagnostics errors;
  std::vector<Link> links(fabric.links().begin(), fabric.links().end());
  std::vector<Damage> damages;
  const std::vector<std::vector<std::size_t>> named = named_links(fabric, faults);
  std::optional<Devices> devices;
  for (std::size_t f = 0; f < faults.size(); ++f) {
    const MachineFault& fault = faults[f];
    if (fault.gpu() != nullptr) {
      append(errors, check_gpu(fabric, fault));
      continue;
    }
    append(errors, check_link(fabric, fault, named[f], devices));
    for (const std::size_t link : named[f]) {
      damages.push_back({fault.link(), link});
      // A cable fails as a whole.
      if (fault.link()->failed) damages.push_back({fault.link(), link ^ 1U});
    }
  }
  if (!errors.empty()) return errors;
  if (!any_of_links(faults)) return fabric;
  wear(links, std::move(damages));
  Fabric faulty = fabric.with_links(std::move(links));
  if (Diagnostics wrong = check_ways(fabric, faulty, faults); !wrong.empty()) return wrong;
  return faulty;
}

std::vector<bool> touched_nodes(const Fabric& healthy, const Fabric& faulty) {
  std::vector<bool> touched(static_cast<std::size_t>(healthy.nodes()));
  const bool everywhere = std::holds_alternative<TorusNetwork>(healthy.spec().network);
  for (std::size_t l = 0; l < healthy.links().size(); ++l) {
    const Link &before = healthy.links()[l], &after = faulty.links()[l];
    if (before.bandwidth == after.bandwidth && before.latency == after.latency) continue;
    const auto [from, to] = healthy.nodes_of(LinkId(static_cast<std::uint32_t>(l)));
    // A link between switches, or of a torus, may carry any node's traffic.
    if (everywhere || (!from && !to)) return std::vector<bool>(touched.size(), true);
    touched[static_cast<std::size_t>(from ? *from : *to)] = true;
  }
  return touched;
}

}  // namespace collcast
