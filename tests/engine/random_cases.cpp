#include "engine/random_cases.hpp"

#include <algorithm>

#include "support/small_fabrics.hpp"
#include "support/small_shapes.hpp"

namespace collcast::test {

namespace {

Bandwidth random_bandwidth(Dice& dice) { return Bandwidth(dice.pick({1e9, 1e9, 2e9, 3e9, 10e9, 7.3e9})); }
Seconds random_latency(Dice& dice) { return Seconds(dice.pick({0.0, 0.0, 1e-7, 3.333e-7, 2e-6})); }
Volume random_size(Dice& dice) {
  return Volume(dice.pick({0.0, 1.0, 1e3, 1e3, 1e5, 1e6, 1.0 / 3, 12345.6, 1e3 * (1 + dice.roll(1000))}));
}

Phase random_phase(Dice& dice, int size) {
  const Flow free = dice.pick({Flow::sequential, Flow::concurrent, Flow::forwarding});
  switch (dice.roll(9)) {
    case 0:
      return ring_phase(size, 1 + dice.roll(2 * size));
    case 1:
      return chain_phase(size);
    case 2:
      return phase_of(fan_out_shape, free, size);
    case 3:
      return phase_of(fan_in_shape, free, size);
    case 4:
      return phase_of(tree_down_shape, Flow::forwarding, size);
    case 5:
      return phase_of(tree_up_shape, Flow::forwarding, size);
    case 6:
      return phase_of(xor_shape, free, size, 1 + dice.roll(size));
    case 7:
      return phase_of(everyone_shape, free, size);
    default:
      return phase_of(relay_shape, Flow::forwarding, size);
  }
}

Work random_work(Dice& dice, int ranks) {
  const auto rank = [&] { return Rank(static_cast<std::uint32_t>(dice.roll(ranks))); };
  const Seconds duration(dice.pick({0.0, 1e-6, 1e-6, 5e-7, 1e-5, 1e-12 * dice.roll(1000000)}));
  switch (dice.roll(6)) {
    case 0:
      return Compute{rank(), duration};
    case 1:
      return Delay{duration};
    default:
      return Transfer{rank(),
                      rank(),
                      random_size(dice),
                      dice.roll(2),
                      {dice.pick({0, 0, 0, 1, -1}), dice.pick<std::uint16_t>({1, 1, 1, 1, 1, 1, 2, 3, 65535})}};
  }
}

}  // namespace

Fabric random_fabric(Dice& dice) {
  const int ranks = 2 + dice.roll(6);
  switch (dice.roll(4)) {
    case 0:
      return ring_fabric(ranks, random_bandwidth(dice), random_latency(dice));
    case 1:
      return star_fabric(ranks, random_bandwidth(dice), random_latency(dice));
    default:
      break;
  }
  // Ranks on a line of switches, sometimes with a second cable elsewhere: shared trunks and cross traffic.
  const int switches = 1 + dice.roll(3);
  std::vector<Cable> cables;
  for (int s = 1; s < switches; ++s)
    cables.push_back({ranks + s - 1, ranks + s, random_bandwidth(dice), random_latency(dice)});
  for (int r = 0; r < ranks; ++r) {
    const int home = dice.roll(switches);
    cables.push_back({r, ranks + home, random_bandwidth(dice), random_latency(dice)});
    if (switches > 1 && dice.roll(3) == 0)
      cables.push_back({r, ranks + (home + 1) % switches, random_bandwidth(dice), random_latency(dice)});
  }
  return cabled_fabric(ranks, switches, cables);
}

Fabric with_extreme_rates(Dice& dice, const Fabric& fabric) {
  std::vector<Link> links(fabric.links().begin(), fabric.links().end());
  for (Link& link : links) link.bandwidth = Bandwidth(dice.pick({1.0, 3.0, 1e6, 1e9, 1e12}));
  return fabric.with_links(std::move(links));
}

Schedule random_schedule(Dice& dice, const Fabric& fabric) {
  Schedule schedule;
  const int count = 1 + dice.roll(40);
  for (int i = 0; i < count; ++i) {
    std::vector<After> after;
    for (int edges = i == 0 ? 0 : dice.roll(4); edges > 0; --edges)
      after.push_back({OpId(static_cast<std::uint32_t>(dice.roll(i))), dice.pick({Until::finished, Until::left})});
    schedule.add(random_work(dice, fabric.rank_count()), after);
  }
  return schedule;
}

namespace {
/// One to eleven of a few, so that a link may have more kinds than it has pools for.
std::uint16_t random_weight(Dice& dice) {
  return static_cast<std::uint16_t>(dice.roll(2) == 0 ? 1 + dice.roll(3) : 1 + dice.roll(11));
}
}  // namespace

Schedule random_weighted_chains(Dice& dice, const Fabric& fabric) {
  const int ranks = fabric.rank_count();
  const Rank popular(static_cast<std::uint32_t>(dice.roll(ranks)));
  Schedule schedule;
  for (int senders = 3 + dice.roll(14); senders > 0; --senders) {
    const Rank from(static_cast<std::uint32_t>(dice.roll(ranks)));
    const TrafficClass traffic(0, random_weight(dice));
    OpId before = schedule.add(Delay{Seconds(dice.pick({0.0, 0.0, 1e-6, 2e-6}))});
    for (int messages = 1 + dice.roll(6); messages > 0; --messages) {
      const After after{before, dice.pick({Until::finished, Until::left})};
      const TrafficClass its = dice.roll(4) == 0 ? TrafficClass(0, random_weight(dice)) : traffic;
      before = schedule.add(Transfer{from, popular, random_size(dice), 0, its}, {&after, 1});
    }
  }
  return schedule;
}

Schedule random_chains(Dice& dice, const Fabric& fabric) {
  const auto rank = [&] { return Rank(static_cast<std::uint32_t>(dice.roll(fabric.rank_count()))); };
  const Rank popular = rank();
  Schedule schedule;
  for (int senders = 2 + dice.roll(6); senders > 0; --senders) {
    const Rank from = rank(), to = dice.roll(4) == 0 ? rank() : popular;
    const TrafficClass traffic(dice.pick({0, 0, 0, 0, 1}), dice.pick<std::uint16_t>({1, 1, 1, 1, 1, 3}));
    const Volume usual = random_size(dice);
    OpId before = schedule.add(Delay{Seconds(dice.pick({0.0, 0.0, 1e-6, 2e-6}))});
    for (int messages = 1 + dice.roll(8); messages > 0; --messages) {
      std::vector<After> after{{before, dice.pick({Until::finished, Until::finished, Until::left})}};
      if (dice.roll(8) == 0)
        after.push_back({OpId(static_cast<std::uint32_t>(dice.roll(static_cast<int>(schedule.size()))))});
      before = schedule.add(Transfer{from, to, dice.roll(3) == 0 ? random_size(dice) : usual, 0, traffic}, after);
    }
  }
  return schedule;
}

Pattern random_pattern(Dice& dice, Group group) {
  const int size = group.size();
  Pattern pattern;
  pattern.algorithm = "random";
  pattern.group = std::move(group);
  pattern.chunks = 1 + dice.roll(4);
  for (int lanes = 1 + dice.roll(3); lanes > 0; --lanes) {
    Lane lane;
    if (dice.roll(2) == 0) lane.order = dice.permutation(size);
    lane.block = random_size(dice);
    lane.route_lane = dice.roll(2);
    for (int phases = dice.roll(4); phases > 0; --phases) lane.phases.push_back(random_phase(dice, size));
    pattern.lanes.push_back(std::move(lane));
  }
  return pattern;
}

Pattern random_pattern(Dice& dice, const Fabric& fabric) {
  const int size = 1 + dice.roll(fabric.rank_count());
  std::vector<Rank> ranks;
  for (const int r : dice.permutation(fabric.rank_count())) ranks.emplace_back(static_cast<std::uint32_t>(r));
  ranks.resize(static_cast<std::size_t>(size));
  return random_pattern(dice, Group::listed(ranks));
}

}  // namespace collcast::test
