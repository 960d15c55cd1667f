// halving_doubling: reduce_scatter by halving what is exchanged, all_gather by doubling it; log2(k) rounds and
// (k-1)/k of the buffer each way. all_reduce is one after the other (Rabenseifner), broadcast is scatter and
// all_gather (van de Geijn), reduce is reduce_scatter and gather. Where k is no power of two, the rest folds
// into the core before and is served after. Source: Thakur, Rabenseifner, Gropp 2005.
#include <bit>

#include "collective/algorithm.hpp"
#include "collective/trees.hpp"

namespace collcast {
namespace {

// Phases for k ranks; `riders` = ranks beyond the core.
struct Folded {
  int k;
  int core = static_cast<int>(std::bit_floor(static_cast<unsigned>(k)));
  int riders = k - core;

  Phase fold(const Shape& shape, int width) const {
    return {.shape = &shape, .flow = Flow::forwarding, .rounds = riders > 0 ? 1 : 0, .members = k, .width = width};
  }
  // `served`: ranks beyond the core have units of their own
  Phase cube(const Shape& shape, bool served) const {
    return {.shape = &shape,
            .flow = Flow::forwarding,
            .rounds = shapes::floor_log2(k),
            .members = k,
            .argument = served ? riders : 0};
  }
  Phase tree(const Shape& shape) const {
    return {.shape = &shape, .flow = Flow::forwarding, .rounds = shapes::ceil_log2(k), .members = k};
  }
};

std::vector<LanePlan> halving_doubling_lanes(const Outline& o) {
  const Folded f{o.ranks};
  const int k = o.ranks;
  const std::vector<Phase> reduce_scatter{f.fold(shapes::fold_in_column, k), f.cube(shapes::xor_halving, true),
                                          f.fold(shapes::fold_out_unit, 1)};
  const std::vector<Phase> all_gather{f.fold(shapes::fold_in_unit, 1), f.cube(shapes::xor_doubling, true),
                                      f.fold(shapes::fold_out_others, 1)};
  std::vector<Phase> phases;
  const auto then = [&phases](const std::vector<Phase>& more) {
    phases.insert(phases.end(), more.begin(), more.end());
  };
  switch (o.kind) {
    case CollectiveKind::reduce_scatter:
      then(reduce_scatter);
      break;
    case CollectiveKind::all_gather:
      then(all_gather);
      break;
    case CollectiveKind::all_reduce:
      return {lane_plan(f.core, {f.fold(shapes::fold_in_column, f.core), f.cube(shapes::xor_halving, false),
                                 f.cube(shapes::xor_doubling, false), f.fold(shapes::fold_out_column, f.core)})};
    case CollectiveKind::broadcast:
      then({f.tree(shapes::binomial_scatter)});
      then(all_gather);
      break;
    default:
      then(reduce_scatter);
      then({f.tree(shapes::binomial_gather)});
  }
  return {lane_plan(k, std::move(phases))};
}

}  // namespace

Algorithm halving_doubling() {
  using enum CollectiveKind;
  return {{"halving_doubling",
           "recursive halving, then recursive doubling",
           {broadcast, reduce, all_reduce, all_gather, reduce_scatter},
           true},
          Arrangement::rotated,
          false,
          halving_doubling_lanes};
}

}  // namespace collcast
