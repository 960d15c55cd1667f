// Tokens sent once to each node and rank that has experts of theirs: chances against every choice of experts that there
// is, what of it goes on the wire, and that nothing else changes.
#include "workload/layer/token_dispatch.hpp"

#include <catch2/catch.hpp>

#include <bit>
#include <set>

#include "inputs.hpp"
#include "timelines.hpp"

using namespace collcast;
using namespace collcast::test;
using namespace collcast::workload;

namespace {

/// Of all choices of K experts that a token may have, all alike: those for which `reached` gives more, on average.
template <class Reached>
double mean_over_choices(const Experts& e, const Reached& reached) {
  const unsigned each = static_cast<unsigned>(e.count / e.groups);
  double sum = 0;
  int sets = 0;
  for (unsigned groups = 0; groups < 1u << e.groups; ++groups) {
    if (std::popcount(groups) != e.group_top_k) continue;
    for (unsigned experts = 0; experts < 1u << e.count; ++experts) {
      if (std::popcount(experts) != e.top_k) continue;
      bool open = true;
      for (unsigned i = 0; i < static_cast<unsigned>(e.count); ++i)
        if ((experts >> i & 1u) != 0 && (groups >> (i / each) & 1u) == 0) open = false;
      if (!open) continue;
      sum += reached(experts);
      ++sets;
    }
  }
  return sum / sets;
}

Experts experts(int count, int top_k, int groups = 1, int group_top_k = 1) {
  Experts e;
  e.count = count;
  e.top_k = top_k;
  e.groups = groups;
  e.group_top_k = group_top_k;
  return e;
}

const std::vector<Experts>& small_ones() {
  static const std::vector<Experts> all{experts(8, 1),       experts(8, 2),       experts(8, 3),
                                        experts(8, 8),       experts(8, 2, 2, 1), experts(8, 3, 4, 2),
                                        experts(8, 4, 4, 3), experts(8, 2, 8, 2), experts(8, 4, 4, 4)};
  return all;
}

StepInputs sent_by(TokenDispatcher dispatcher, const Experts& e, int ep) {
  StepInputs in = inputs(small_model(), layout(1, 1, ep), 1024, 2);
  in.model.experts = e;
  in.model.experts.ffn = 512;
  in.layout.order = RankOrder::tp_cp_ep_dp_pp;
  in.layout.ep = ep;
  in.options.moe_token_dispatcher = dispatcher;
  return in;
}

Group first_ranks(int count) { return Group::strided(Rank(0), 1, count); }

}  // namespace

TEST_CASE("the chance that a token goes to a set of experts is that of all choices there are, in groups or without") {
  // 2 of 8, and a set of 2: 1 - C(6,2)/C(8,2).
  CHECK(chance_of_any(experts(8, 2), {2}) == Approx(1 - 15.0 / 28).epsilon(1e-12));
  for (const Experts& e : small_ones())
    for (unsigned set = 0; set < 256; ++set) {
      std::vector<int> in_group(static_cast<std::size_t>(e.groups));
      for (unsigned i = 0; i < 8; ++i)
        if ((set >> i & 1u) != 0) ++in_group[i / static_cast<unsigned>(8 / e.groups)];
      const double counted = mean_over_choices(e, [&](unsigned chosen) { return (chosen & set) != 0 ? 1.0 : 0.0; });
      CAPTURE(set, e.top_k, e.groups, e.group_top_k);
      CHECK(chance_of_any(e, in_group) == Approx(counted).margin(1e-12));
    }
}

TEST_CASE("inside a node a token goes once to each rank that has experts of it") {
  const Fabric fabric = cluster(1);  // of 8
  for (const Experts& e : small_ones())
    for (const int ep : {2, 4, 8}) {
      const unsigned each = static_cast<unsigned>(8 / ep);
      const double ranks = mean_over_choices(e, [&](unsigned chosen) {
        std::set<unsigned> reached;
        for (unsigned i = 0; i < 8; ++i)
          if ((chosen >> i & 1u) != 0) reached.insert(i / each);
        return static_cast<double>(reached.size());
      });
      const double share = dispatched_share(sent_by(TokenDispatcher::flex, e, ep), fabric, first_ranks(ep));
      CAPTURE(ep, e.top_k, e.groups, e.group_top_k);
      CHECK(share == Approx(ranks / e.top_k).epsilon(1e-12));
      CHECK(share <= 1 + 1e-12);
      // One expert on each rank: nothing is sent twice as it is.
      if (ep == 8) CHECK(share == Approx(1).epsilon(1e-12));
    }
}

TEST_CASE("between nodes a token goes once to each other node that has experts of it") {
  const Fabric fabric = cluster(2);
  for (const Experts& small : small_ones()) {
    // Each expert twice: 16 on 16 ranks, 8 of a node.
    Experts e = small;
    e.count = 16;
    const double nodes = mean_over_choices(
        e, [&](unsigned chosen) { return ((chosen & 0xffu) != 0 ? 1.0 : 0.0) + ((chosen >> 8) != 0 ? 1.0 : 0.0); });
    // From either node half of the nodes that are reached are the other; half of the K rows would have left.
    const double share = dispatched_share(sent_by(TokenDispatcher::flex, e, 16), fabric, first_ranks(16));
    CAPTURE(e.top_k, e.groups, e.group_top_k);
    CHECK(share == Approx(nodes / 2 / (e.top_k * 0.5)).epsilon(1e-12));
  }
}

TEST_CASE("between unlike nodes the busiest NICs count, of what comes in too") {
  // 20 ranks of two experts each on nodes of 8, 8 and 4: a token goes to 8 of 40.
  const Experts e = experts(40, 8);
  const auto misses = [](int experts) {
    double none = 1;
    for (int i = 0; i < 8; ++i) none *= (40.0 - experts - i) / (40.0 - i);
    return none;
  };
  // Each rank of the small node gets of the 16 others' tokens those that have one of its node's 8 experts, a quarter
  // each; of all rows it would get 8 x 16/20.
  const double in = 16 * (1 - misses(8)) / 4;
  CHECK(in > 2 * (1 - misses(16)));  // what it sends
  CHECK(dispatched_share(sent_by(TokenDispatcher::flex, e, 20), cluster(3), first_ranks(20)) ==
        Approx(in / (8 * 16 / 20.0)).epsilon(1e-12));
}

TEST_CASE("DeepSeek-V3's tokens go to 3.2 of 7 other nodes, where seven of eight rows would have gone to them") {
  // 256 experts in 8 groups of 32, one a node: a token takes 4 groups and 8 of their 128 experts. A node is reached
  // by 4/8 of all tokens, less those that take its group and none of its experts, C(96, 8)/C(128, 8) = 0.0925 of them.
  const Experts e = experts(256, 8, 8, 4);
  double none = 1;
  for (int i = 0; i < 8; ++i) none *= (96.0 - i) / (128.0 - i);
  const double reached = 7 * 0.5 * (1 - none);
  CHECK(reached == Approx(3.18).epsilon(0.01));
  CHECK(dispatched_share(sent_by(TokenDispatcher::flex, e, 64), cluster(8), first_ranks(64)) ==
        Approx(reached / 7).epsilon(1e-12));
}

TEST_CASE("flex sends its share by the same all-to-all, and all else of a step is as it was") {
  for (const int ep : {2, 4, 8, 16}) {
    const Fabric fabric = cluster(2);
    StepInputs in = sent_by(TokenDispatcher::alltoall, experts(32, 4), ep);
    const StepResult whole = forecast_step(in, fabric, {}, Method::both).value();
    in.options.moe_token_dispatcher = TokenDispatcher::flex;
    const StepResult once = forecast_step(in, fabric, {}, Method::both).value();
    const double share = dispatched_share(in, fabric, first_ranks(ep));
    CAPTURE(ep, share);
    CHECK(share < 1);
    CHECK(once.breakdown.compute == whole.breakdown.compute);
    CHECK(once.breakdown.dp_exposed == whole.breakdown.dp_exposed);
    CHECK(once.breakdown.ep_exposed < whole.breakdown.ep_exposed);
    CHECK(once.step.count() == Approx(once.estimate.count()).epsilon(0.01));
    const auto exchanged = [](const StepResult& result) {
      for (const CollectiveCost& c : result.collectives)
        if (c.name == "ep alltoall") return c.request.size.value();
      return std::int64_t{};
    };
    CHECK(static_cast<double>(exchanged(once)) == Approx(static_cast<double>(exchanged(whole)) * share).margin(1));
  }
}
