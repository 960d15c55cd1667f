// Where to look first when a table is far slower than its forecast.
//
// A table is slow where the median of measured over forecast is 1.7 or more over its largest sizes (from an eighth of
// the largest on) and 1.3 or more above 4 MiB: there launch and protocol do not count, and the sound shipped tables are
// within 1.3 in nine of ten cases. Half of the NICs are 1.7 times, not twice, where NVLink is next to them. What the
// pattern over sizes, NICs and other tables of the system says of the cause is a list, the likeliest first; each with
// its evidence, as several causes can look alike.
//   small sizes slow, too       TCP sockets instead of RDMA: kernel and copies cost at every size
//   as LL at every size         NCCL's protocol is held down
//   k of n NICs' rate           rails are missing
//   a lower generation's rate   ports run at half or a quarter of their speed
//   else, over a network        no GPUDirect RDMA: through host memory
//   rings sound beside it, or more than 32 nodes   the fabric between switches
//   NVLink, as without it       peer access is off
//   else, in a node             host memory or a narrower slot on the way
// Not judged: small sizes alone (hosts and networks differ by a factor of three), tables without a size above 4 MiB,
// and broadcast and reduce across nodes, whose forecast rests on one site (docs/nccl.md) (docs/validation.md).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "collcast/base/units.hpp"
#include "collcast/nccl/run.hpp"
#include "collcast/validation/validate.hpp"
#include "derive_machine.hpp"
#include "nccl_prediction.hpp"

namespace collcast {

namespace {

constexpr double slow = 1.7;             ///< at the largest sizes
constexpr double slow_if_known = 1.5;    ///< the same, where a number of NICs or a port explains it
constexpr double slow_from_there = 1.3;  ///< above 4 MiB
constexpr double slow_at_small_sizes = 1.7;
constexpr double sound = 1.3;
/// Beyond one level of switches, as fat trees and dragonflies have them.
constexpr int many_nodes = 32;
/// How near a rate is to the one that a cause would leave.
constexpr double alike = 0.12;

double middle(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/// Median of measured over forecast of the rows in a range of sizes; nothing where it has none.
std::optional<double> slowness(const ScoredTable& table, Bytes least, Bytes below) {
  std::vector<double> ratios;
  for (const Deviation& row : table.rows)
    if (row.size >= least && row.size < below) ratios.push_back(row.measured / row.predicted);
  if (ratios.empty()) return std::nullopt;
  return middle(std::move(ratios));
}

constexpr Bytes endless{std::int64_t{1} << 62};
constexpr Bytes large{(4 << 20) + 1};

struct Slowness {
  std::optional<double> small, large, top;
  bool at_large() const { return large && *top >= slow_if_known && *large >= slow_from_there; }
};

/// From an eighth of the largest on.
Bytes top_sizes(const ScoredTable& table) { return std::max(large, Bytes(table.rows.back().size.value() / 8)); }

Slowness slowness_of(const ScoredTable& table) {
  Slowness out;
  out.small = slowness(table, Bytes(0), Bytes(64 << 10));
  out.large = slowness(table, large, endless);
  if (out.large) out.top = slowness(table, top_sizes(table), endless);
  return out;
}

bool is_judged(const ScoredTable& table) {
  return table.nodes == 1 || (table.collective != "broadcast" && table.collective != "reduce");
}

/// What was measured of each scored table.
using FactsOf = std::map<const ScoredTable*, const MeasuredTable*>;

/// A table on its communicator.
struct Case {
  const ScoredTable& table;
  const PlacedTable& place;
  nccl::Communicator c;
  Slowness by;
};

/// Median of measured over what another machine or other variables would give, from a size on: NCCL chooses anew.
std::optional<double> slowness_on(const Fabric& fabric, const nccl::Environment& environment, const Case& one,
                                  Bytes least) {
  const Result<nccl::Communicator> c = connect(fabric, one.place.group, environment);
  if (!c) return std::nullopt;
  std::vector<double> ratios;
  for (const Deviation& row : one.table.rows) {
    if (row.size < least) continue;
    const Result<nccl::Plan> plan = nccl_plan(*c, one.place, one.place.request(row.size));
    if (!plan) return std::nullopt;
    ratios.push_back(row.measured / nccl::run(*c, one.place.kind, row.size, *plan).time());
  }
  return middle(std::move(ratios));
}

/// The same of other variables, over large sizes.
std::optional<double> slowness_under(const Case& one, const std::function<void(nccl::Environment&)>& change) {
  nccl::Environment environment = one.place.environment;
  change(environment);
  return slowness_on(*one.place.fabric, environment, one, large);
}

bool is_alike(double ratio) { return std::abs(std::log(ratio)) <= std::log(1 + alike); }

std::string times(double ratio) { return fmt::format("{:.1f} times", ratio); }
std::string gbps(double bytes_per_second) { return fmt::format("{:.4g} GB/s", bytes_per_second / 1e9); }

std::string small_text(const Slowness& by) {
  return by.small ? fmt::format("below 64 KiB {} the forecast", times(*by.small)) : "no size below 64 KiB to compare";
}

/// NICs that one call uses: all of the node's, but for a pair of ranks.
int nics_in_use(const Case& one) {
  return one.place.kind == CollectiveKind::sendrecv || one.table.ranks == one.table.nodes ? 1 : one.c.nics.count;
}

void add(std::vector<Fault>& out, const char* cause, std::string evidence, const char* look) {
  out.push_back({cause, std::move(evidence), look});
}

void look_at_protocol(const Case& one, std::vector<Fault>& out) {
  if (nccl::is_point_to_point(one.place.kind)) return;
  const auto under = slowness_under(one, [](nccl::Environment& e) {
    for (auto& set : e.protocol_sets) set = 1U << static_cast<unsigned>(nccl::Protocol::ll);
  });
  if (under && is_alike(*under))
    add(out, "protocol",
        fmt::format("above 4 MiB {} the forecast, and {:.2f} times that of LL at every size", times(*one.by.large),
                    *under),
        "NCCL_PROTO, a tuner plug-in or a tuner file that holds NCCL to LL; NCCL_DEBUG=INFO with "
        "NCCL_DEBUG_SUBSYS=TUNING prints the choice");
}

/// Whether over the largest sizes it is as on that machine.
bool is_as_on(const TopologySpec& spec, const Case& one) {
  const Result<Fabric> fabric = Fabric::build(spec, one.place.fabric->nodes());
  if (!fabric) return false;
  const auto slowness = slowness_on(*fabric, one.place.environment, one, top_sizes(one.table));
  return slowness && is_alike(*slowness);
}

void look_at_rails(const Case& one, std::vector<Fault>& out) {
  const int nics = nics_in_use(one);
  const TopologySpec& spec = one.place.fabric->spec();
  for (int k = nics / 2; k >= 1; --k) {
    if (nics % k != 0 || !is_as_on(with_ports(spec, network_ports(spec) * k / nics), one)) continue;
    return add(out, "rails",
               fmt::format("{} the forecast at the largest sizes, as with {} of {} NICs of {}", times(*one.by.top), k,
                           nics, gbps(one.c.nics.rate.value())),
               "NICs that NCCL does not use: NCCL_IB_HCA, ports that are down (ibstat), the list of NET/ devices that "
               "NCCL_DEBUG=INFO prints");
  }
}

void look_at_ports(const Case& one, std::vector<Fault>& out) {
  for (const int part : {2, 4}) {
    TopologySpec slower = one.place.fabric->spec();
    set_network_rate(slower.network, network_rate(slower.network) * (1.0 / part));
    if (!is_as_on(slower, one)) continue;
    return add(
        out, "port",
        fmt::format("{} the forecast at the largest sizes, as with 1/{} of a NIC's {}: an older generation's port",
                    times(*one.by.top), part, gbps(one.c.nics.rate.value())),
        "speed and width of ports and of their PCIe slots (ibstat, ethtool, lspci -vv: LnkSta), and cables of a "
        "lower rate");
  }
}

/// All pairs at once where rings of as many nodes, with the same variables and version, are as forecast.
bool rings_are_sound(const Case& one, const ValidateReport& report, const FactsOf& facts) {
  const MeasuredFacts& mine = one.place.table->facts;
  return std::any_of(report.tables.begin(), report.tables.end(), [&](const ScoredTable& other) {
    const MeasuredFacts& its = facts.at(&other)->facts;
    if (its.environment != mine.environment || its.nccl_version != mine.nccl_version) return false;
    if (other.system != one.table.system || other.nodes < one.table.nodes || other.ranks < one.table.ranks)
      return false;
    if (other.collective != "all_reduce" && other.collective != "all_gather" && other.collective != "reduce_scatter")
      return false;
    if (other.rows_not_reached > 0) return false;
    const Slowness by = slowness_of(other);
    return by.top && *by.top < sound;
  });
}

std::vector<Fault> across_nodes(const Case& one, const ValidateReport& report, const FactsOf& facts) {
  std::vector<Fault> out;
  const bool all_pairs = one.place.kind == CollectiveKind::alltoall;
  const bool beside_rings = all_pairs && rings_are_sound(one, report, facts);
  if (beside_rings || one.table.nodes > many_nodes)
    add(out, "fabric",
        fmt::format("{} the forecast at the largest sizes{}", times(*one.by.top),
                    beside_rings ? std::string(", where rings over as many nodes are as forecast")
                                 : fmt::format(" on {} nodes, more than one level of switches joins", one.table.nodes)),
        "routes between switches while every node sends: adaptive routing, oversubscription, rails that cross "
        "(NCCL_P2P_PXN_LEVEL)");
  if (one.by.small && *one.by.small >= slow_at_small_sizes)
    add(out, "sockets",
        fmt::format("{}, and {} at the largest sizes: kernel and copies at every size", small_text(one.by),
                    times(*one.by.top)),
        "which network NCCL took: 'Using network Socket' under NCCL_DEBUG=INFO, a plug-in that is not loaded "
        "(NCCL_NET, LD_LIBRARY_PATH), RDMA devices missing in the container");
  look_at_protocol(one, out);
  if (!one.by.small || *one.by.small < slow_at_small_sizes) {
    if (nics_in_use(one) > 1)
      look_at_rails(one, out);
    else
      look_at_ports(one, out);
  }
  const Deviation& last = one.table.rows.back();
  const double bytes = static_cast<double>(last.size.value());
  add(out, "gdr",
      fmt::format("{}, but {} at the largest: {} of data instead of {}", small_text(one.by), times(*one.by.top),
                  gbps(bytes / last.measured.count()), gbps(bytes / last.predicted.count())),
      "GPUDirect RDMA: nvidia-peermem or DMA-BUF, 'GDRDMA' beside the channels under NCCL_DEBUG=INFO, "
      "NCCL_NET_GDR_LEVEL, ACS and IOMMU on the way to the NIC");
  return out;
}

std::vector<Fault> inside_a_node(const Case& one) {
  std::vector<Fault> out;
  if (one.c.nvlink) {
    look_at_protocol(one, out);
    const auto under = slowness_under(one, [](nccl::Environment& e) { e.peer_access = false; });
    if (under && *under<slow&& * under> 1 / slow)
      add(out, "peer_access",
          fmt::format("{} the forecast at the largest sizes, {:.2f} times that without NVLink and peer access",
                      times(*one.by.top), *under),
          "NCCL_P2P_DISABLE and NCCL_P2P_LEVEL, nvidia-smi nvlink -s, the fabric manager, 'via P2P' or 'via SHM' under "
          "NCCL_DEBUG=INFO");
    if (out.empty())
      add(out, "nvlink", fmt::format("{} the forecast at the largest sizes", times(*one.by.top)),
          "NVLinks that are down or fewer than described: nvidia-smi nvlink -s, nvidia-smi topo -m");
    return out;
  }
  add(out, "pcie", fmt::format("{} the forecast at the largest sizes, {}", times(*one.by.top), small_text(one.by)),
      "the way between the GPUs: peer access (nvidia-smi topo -p2p r), else through host memory; slots below their "
      "generation or width (lspci -vv: LnkSta), ACS and IOMMU");
  look_at_protocol(one, out);  // half of the slot's rate is what host memory leaves as well
  return out;
}

/// Scored tables are in the order of those that were measured.
FactsOf facts_of(const ValidateReport& report, const std::vector<MeasuredTable>& tables) {
  FactsOf out;
  auto at = tables.begin();
  for (const ScoredTable& table : report.tables) {
    at = std::find_if(at, tables.end(), [&](const MeasuredTable& one) {
      return one.facts.id == table.id && one.facts.collective == table.collective &&
             one.points.size() == table.rows.size() + table.rows_not_reached;
    });
    check(at != tables.end(), "a scored table was measured");
    out[&table] = &*at++;
  }
  return out;
}

}  // namespace

void find_faults(ValidateReport& report, const std::vector<MeasuredTable>& tables, Machines& machines) {
  const FactsOf facts = facts_of(report, tables);
  for (ScoredTable& table : report.tables) {
    if (table.rows_not_reached > 0) continue;  // its largest sizes are not known
    const Slowness by = slowness_of(table);
    if (!is_judged(table) || !by.at_large()) continue;
    const Result<PlacedTable> place = machines.place(*facts.at(&table));
    if (!place) continue;
    Result<nccl::Communicator> c = connect(*place->fabric, place->group, place->environment);
    if (!c) continue;  // held against the textbook, or with variables that were given instead of the table's
    const Case one{table, *place, std::move(c).value(), by};
    std::vector<Fault> faults = table.nodes > 1 ? across_nodes(one, report, facts) : inside_a_node(one);
    const bool explained = !faults.empty() && (faults.front().cause == "rails" || faults.front().cause == "port");
    if (*by.top < slow && !explained) continue;
    table.faults = std::move(faults);
    table.slowness = *by.top;
  }
}

}  // namespace collcast
