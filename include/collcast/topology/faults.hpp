// What is wrong with a machine: GPUs that compute slowly, links that are slow or gone.
//
// A link is named as `topology show` and `collective --links` name it ("node3.gpu5 -> node3.nvswitch0": one direction),
// as the cable ("node3.gpu5 <-> node3.nvswitch0"), or by a device, which means every link at it: a NIC, a GPU, a leaf.
// Slow links keep their traffic: routes are static and do not see load. Round a failed cable, always in both
// directions, they go by docs/decisions/0002-rails-and-lanes.md's rules on what is left.
//
// A fault may begin and end while a step runs; the functions below are of a machine at one time.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "collcast/topology/fabric.hpp"

namespace collcast {

/// Every kernel of the GPU takes 1 / compute as long.
struct GpuFault {
  int gpu = 0;
  double compute = 1;  ///< of its speed that is left, above 0 and up to 1
  friend bool operator==(const GpuFault&, const GpuFault&) = default;
};

struct LinkFault {
  std::string link;
  double share = 1;                         ///< of its bandwidth that is left, above 0 and up to 1
  std::optional<Bandwidth> bandwidth = {};  ///< that is left, instead of a share
  Seconds added_latency{};
  bool failed = false;
};

struct MachineFault {
  std::variant<GpuFault, LinkFault> what;
  Location where = {};                         ///< of what it names
  Seconds from{};                              ///< of the step, from which on it holds
  std::optional<Seconds> until = {};           ///< and from which on it no longer does; none: to the end
  Location from_where = {}, until_where = {};  ///< where they are given
  const GpuFault* gpu() const { return std::get_if<GpuFault>(&what); }
  const LinkFault* link() const { return std::get_if<LinkFault>(&what); }
  bool holds_at(Seconds at) const { return from <= at && (!until || at < *until); }
  /// Not all the time.
  bool comes_or_goes() const { return from > Seconds{} || until.has_value(); }
};

/// "gpu 12: 80% of its compute", "node0.nic3: failed, from 2 s".
std::string to_text(const MachineFault&);

/// Whether any is about a link.
bool any_of_links(std::span<const MachineFault>);

/// The machine with what the faults do to its links; several on one link add up. Links that do not exist, rates above a
/// link's own, GPUs beyond the machine and ranks that failed links cut off are diagnostics, all of a kind at once.
Result<Fabric> with_faults(const Fabric&, std::span<const MachineFault>);

/// Nodes with a rank whose way to or from any other may differ from that in the machine without the faults.
std::vector<bool> touched_nodes(const Fabric& healthy, const Fabric& faulty);

}  // namespace collcast
