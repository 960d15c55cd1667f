// scatter_gather: a rooted kind by way of everybody. broadcast scatters from the root, then gathers around a ring
// (van de Geijn); reduce scatters its sums around a ring, then gathers them at the root. Either takes 2(k-1)/k of the
// buffer and needs no chunks. Sources: Thakur, Rabenseifner, Gropp 2005 (MPICH's long broadcasts); Gloo's reduce
// (gloo/reduce.cc). Left out: MPICH scatters along a binomial tree, which takes as many bytes and more latencies.
#include "collective/algorithm.hpp"
#include "collective/shapes.hpp"

namespace collcast {
namespace {

std::vector<LanePlan> scatter_gather_lanes(const Outline& o) {
  const int k = o.ranks;
  const auto around = [k](const Shape& shape) {
    return Phase{.shape = &shape, .flow = Flow::circulating, .rounds = k - 1, .members = k};
  };
  const auto at_root = [k](const Shape& shape) {
    return Phase{.shape = &shape, .flow = Flow::concurrent, .rounds = k > 1 ? 1 : 0, .members = k};
  };
  return {o.kind == CollectiveKind::broadcast
              ? lane_plan(k, {at_root(shapes::fan_out_units), around(shapes::ring_all_gather)})
              : lane_plan(k, {around(shapes::ring_reduce_scatter), at_root(shapes::fan_in_units)})};
}

}  // namespace

Algorithm scatter_gather() {
  using enum CollectiveKind;
  return {{"scatter_gather", "scattered, then gathered, one of them around a ring", {broadcast, reduce}, true, true},
          Arrangement::snake,
          false,
          scatter_gather_lanes};
}

}  // namespace collcast
