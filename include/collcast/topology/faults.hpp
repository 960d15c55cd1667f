// What is wrong with a machine: GPUs that compute slowly or unevenly, links that are slow or gone.
//
// A link is named as `topology show` and `collective --links` name it ("node3.gpu5 -> node3.nvswitch0": one direction),
// as the cable ("node3.gpu5 <-> node3.nvswitch0"), or by a device, which means every link at it: a NIC, a GPU, a leaf.
// Slow links keep their traffic: routes are static and do not see load. Round a failed cable, always in both
// directions, they go by docs/decisions/0002-rails-and-lanes.md's rules on what is left.
//
// A fault may begin and end while a step runs; the functions below are of a machine at one time.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "collcast/topology/fabric.hpp"

namespace collcast {

/// GPUs first ... last by rank, or all of the nodes first ... last.
struct Gpus {
  static constexpr int no_end = std::numeric_limits<int>::max();
  int first = 0, last = 0;
  bool of_nodes = false;
  Gpus(int gpu) : first(gpu), last(gpu) {}  // one GPU is its number
  Gpus(int from, int to, bool nodes = false) : first(from), last(to), of_nodes(nodes) {}
  static Gpus all() { return {0, no_end}; }
  bool are_all() const { return !of_nodes && first == 0 && last == no_end; }
  bool has(int gpu, int per_node) const {
    const int number = of_nodes ? gpu / per_node : gpu;
    return first <= number && number <= last;
  }
  friend bool operator==(const Gpus&, const Gpus&) = default;
};
/// "gpu 12", "gpus 8-15", "node 1", "all gpus".
std::string to_text(const Gpus&);

/// How draws of a mean of 1 lie around it.
enum class JitterShape { lognormal, normal, exponential };
const char* to_string(JitterShape);
/// Each operation of a GPU takes a random factor of mean 1 as long, drawn by (seed, rank, operation), or a link each
/// byte while an operation lasts, by (seed, link, operation).
struct Jitter {
  double spread = 0;  ///< standard deviation of the factor, 0 to 1
  JitterShape shape = JitterShape::lognormal;
  int seed = 1;
  friend bool operator==(const Jitter&, const Jitter&) = default;
};

/// Every kernel of the GPUs takes 1 / compute as long.
struct GpuFault {
  Gpus gpus = 0;
  double compute = 1;  ///< of their speed that is left, above 0 and up to 1
  std::optional<Jitter> jitter = {};
  friend bool operator==(const GpuFault&, const GpuFault&) = default;
};

struct LinkFault {
  std::string link;
  double share = 1;                         ///< of its bandwidth that is left, above 0 and up to 1
  std::optional<Bandwidth> bandwidth = {};  ///< that is left, instead of a share
  Seconds added_latency{};
  bool failed = false;
  std::optional<Jitter> jitter = {};  ///< of all links that it names, together
};

struct MachineFault {
  std::variant<GpuFault, LinkFault> what;
  Location where = {};                         ///< of what it names
  Seconds from{};                              ///< of the step, from which on it holds
  std::optional<Seconds> until = {};           ///< and from which on it no longer does; none: to the end
  Location from_where = {}, until_where = {};  ///< where they are given
  const GpuFault* gpu() const { return std::get_if<GpuFault>(&what); }
  const LinkFault* link() const { return std::get_if<LinkFault>(&what); }
  /// What it draws; nullptr: nothing.
  const Jitter* jitter() const {
    return std::visit([](const auto& of) { return of.jitter ? &*of.jitter : nullptr; }, what);
  }
  bool holds_at(Seconds at) const { return from <= at && (!until || at < *until); }
  /// Not all the time.
  bool comes_or_goes() const { return from > Seconds{} || until.has_value(); }
};

/// "gpu 12: 80% of its compute", "node0.nic3: failed, from 2 s".
std::string to_text(const MachineFault&);

/// Whether any is about a link.
bool any_of_links(std::span<const MachineFault>);
/// The first that draws, if any does.
const MachineFault* first_with_jitter(std::span<const MachineFault>);
/// The same machine on average.
std::vector<MachineFault> without_jitter(std::span<const MachineFault>);

/// The machine with what the faults do to its links; several on one link add up. Links that do not exist, rates above a
/// link's own, GPUs beyond the machine and ranks that failed links cut off are diagnostics, all of a kind at once.
Result<Fabric> with_faults(const Fabric&, std::span<const MachineFault>);

/// A sentence for each kind of link that a fault leaves a rate which it does not exceed anyway.
std::vector<std::string> rates_without_effect(const Fabric&, std::span<const MachineFault>);

/// Nodes with a rank whose way to or from any other may differ from that in the machine without the faults.
std::vector<bool> touched_nodes(const Fabric& healthy, const Fabric& faulty);

}  // namespace collcast
