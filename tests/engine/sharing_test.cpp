// How links are shared: rates by hand, rates by law, and what they do to times.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "collcast/engine/engine.hpp"
#include "engine/random_cases.hpp"
#include "engine/times.hpp"
#include "support/dice.hpp"
#include "support/small_fabrics.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

std::vector<double> rates_of(const std::vector<double>& capacities,
                             const std::vector<std::vector<std::uint32_t>>& routes,
                             const std::vector<TrafficClass>& traffic = {}) {
  std::vector<Bandwidth> capacity, rates(routes.size());
  for (const double c : capacities) capacity.emplace_back(c);
  std::vector<std::vector<LinkId>> links(routes.size());
  std::vector<FlowDemand> flows;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    for (const std::uint32_t link : routes[i]) links[i].emplace_back(link);
    flows.push_back({links[i], traffic.empty() ? TrafficClass() : traffic[i]});
  }
  max_min_rates(flows, capacity, rates);
  std::vector<double> result;
  for (const Bandwidth rate : rates) result.push_back(rate.value());
  return result;
}

/// Ranks 0 ... n-1 on one switch, n ... 2n-1 on another, one trunk between.
Fabric dumbbell(int n, Bandwidth port, Bandwidth trunk) {
  std::vector<Cable> cables{{2 * n, 2 * n + 1, trunk, Seconds(0)}};
  for (int r = 0; r < 2 * n; ++r) cables.push_back({r, r < n ? 2 * n : 2 * n + 1, port, Seconds(0)});
  return cabled_fabric(2 * n, 2, cables);
}

Transfer transfer(std::uint32_t from, std::uint32_t to, double bytes, TrafficClass traffic = {}) {
  return {Rank(from), Rank(to), Volume(bytes), 0, traffic};
}

}  // namespace

TEST_CASE("a link is shared equally by flows that cross nothing else") {
  CHECK(rates_of({12}, {{0}, {0}, {0}}) == std::vector<double>{4, 4, 4});
}

TEST_CASE("what a flow cannot use goes to the others") {
  // B = 4 is shared by f2 and f3: 2 each, less than A's 10/2. A then has 10 - 2 = 8 for f1.
  CHECK(rates_of({10, 4}, {{0}, {0, 1}, {1}}) == std::vector<double>{8, 2, 2});
  // Three flows, the third held to 1 by its own link: the other two have (10 - 1)/2.
  CHECK(rates_of({10, 1}, {{0}, {0}, {0, 1}}) == std::vector<double>{4.5, 4.5, 1});
}

TEST_CASE("a flow without links is not limited") {
  CHECK(rates_of({}, {{}}) == std::vector<double>{std::numeric_limits<double>::infinity()});
}

TEST_CASE("a lower priority value is served first, the next class has what it leaves") {
  CHECK(rates_of({10, 3}, {{0, 1}, {0}, {0}}, {0, 1, 1}) == std::vector<double>{3, 3.5, 3.5});
  CHECK(rates_of({10}, {{0}, {0}}, {-1, 5}) == std::vector<double>{10, 0});
}

TEST_CASE("weights share what a priority leaves in proportion, and what one cannot use goes to the others") {
  CHECK(rates_of({12}, {{0}, {0}}, {{0, 1}, {0, 2}}) == std::vector<double>{4, 8});
  // The heavy one is held to 2 by its own link: 10 for the others, one to four.
  CHECK(rates_of({12, 2}, {{0, 1}, {0}, {0}}, {{0, 100}, {0, 1}, {0, 4}}) == std::vector<double>{2, 2, 8});
  // The first class takes 3 of 12; 9 are left, one to two.
  CHECK(rates_of({12, 3}, {{0, 1}, {0}, {0}}, {{0, 1}, {1, 1}, {1, 2}}) == std::vector<double>{3, 3, 6});
  // A flow of weight w is as w flows of weight 1.
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Dice dice(seed);
    std::vector<double> capacities;
    for (int l = 2 + dice.roll(4); l > 0; --l) capacities.push_back(1 + dice.roll(9));
    std::vector<std::vector<std::uint32_t>> routes, single;
    std::vector<TrafficClass> traffic, plain;
    for (int f = 1 + dice.roll(5); f > 0; --f) {
      const auto first = static_cast<std::uint32_t>(dice.roll(static_cast<int>(capacities.size())));
      routes.push_back({first});
      if (const auto other = static_cast<std::uint32_t>(dice.roll(static_cast<int>(capacities.size()))); other != first)
        routes.back().push_back(other);
      traffic.emplace_back(dice.roll(2), static_cast<std::uint16_t>(1 + dice.roll(4)));
      single.insert(single.end(), traffic.back().weight, routes.back());
      plain.insert(plain.end(), traffic.back().weight, TrafficClass(traffic.back().priority));
    }
    const std::vector<double> rates = rates_of(capacities, routes, traffic),
                              parts = rates_of(capacities, single, plain);
    std::size_t part = 0;
    for (std::size_t f = 0; f < rates.size(); ++f) {
      double sum = 0;
      for (int i = 0; i < traffic[f].weight; ++i) sum += parts[part++];
      CAPTURE(seed, f);
      CHECK(rates[f] == Approx(sum).epsilon(1e-12).margin(1e-12));
    }
  }
}

TEST_CASE("a weight of three has three quarters of a link until it has left") {
  // 10 GB/s. 0.6 MB at 7.5 GB/s: 80 us. The other has moved 0.2 MB of 1 MB by then, and needs 80 us more.
  const Fabric fabric = dumbbell(2, gb_per_s(10), gb_per_s(10));
  Schedule s;
  s.add(transfer(0, 2, 0.6e6, {0, 3}));
  s.add(transfer(1, 3, 1e6));
  const Timeline timeline = run(fabric, s);
  CHECK(ps(timeline.ops[0].finish) == us(80));
  CHECK(ps(timeline.ops[1].finish) == us(160));
}

TEST_CASE("what rounding leaves of a full link is nothing") {
  for (const double capacity : {7.7, 1e9, 0.1, 3.3e10})
    for (int n = 1; n <= 60; ++n) {
      std::vector<std::vector<std::uint32_t>> routes(static_cast<std::size_t>(n) + 1, {0});
      std::vector<TrafficClass> priorities(static_cast<std::size_t>(n), 0);
      priorities.push_back(1);
      REQUIRE(rates_of({capacity}, routes, priorities).back() == 0.0);
    }
}

TEST_CASE("flows that stop just below the others' share do not lower it") {
  // n flows on one link, m of them held back by links of their own, by a last bit. The others have
  // (C - m s)/(n-m) > C/n, which plain rounding would miss in one case of forty.
  for (int n = 3; n <= 64; ++n)
    for (int m = 1; m < n; ++m) {
      const double capacity = 39781013504.125114 + n * m, share = capacity / n;
      std::vector<double> capacities{capacity};
      std::vector<std::vector<std::uint32_t>> routes(static_cast<std::size_t>(n), {0});
      for (int i = 0; i < m; ++i) {
        routes[static_cast<std::size_t>(i)].push_back(static_cast<std::uint32_t>(capacities.size()));
        capacities.push_back(std::nextafter(share, 0.0));
      }
      const std::vector<double> rates = rates_of(capacities, routes);
      REQUIRE(rates.front() < share);
      REQUIRE(rates.back() >= share);
    }
}

TEST_CASE("random rates are max-min fair: no link is over its capacity, no flow could have more") {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    INFO("seed " << seed);
    Dice dice(seed);
    std::vector<double> capacities;
    for (int l = 1 + dice.roll(8); l > 0; --l) capacities.push_back(dice.pick({1.0, 2.0, 3.0, 10.0, 1e-3, 1e9, 7.7}));
    std::vector<std::vector<std::uint32_t>> routes;
    for (int f = 1 + dice.roll(12); f > 0; --f) {
      routes.emplace_back();
      for (std::uint32_t l = 0; l < capacities.size(); ++l)
        if (dice.roll(3) == 0) routes.back().push_back(l);
      if (routes.back().empty())
        routes.back().push_back(static_cast<std::uint32_t>(dice.roll(static_cast<int>(capacities.size()))));
    }
    const std::vector<double> rates = rates_of(capacities, routes);
    std::vector<double> used(capacities.size()), largest(capacities.size());
    for (std::size_t f = 0; f < routes.size(); ++f)
      for (const std::uint32_t l : routes[f]) {
        used[l] += rates[f];
        largest[l] = std::max(largest[l], rates[f]);
      }
    for (std::size_t l = 0; l < capacities.size(); ++l) REQUIRE(used[l] <= capacities[l] * (1 + 1e-12));
    for (std::size_t f = 0; f < routes.size(); ++f) {
      bool has_bottleneck = false;  // a full link on which nobody has more
      for (const std::uint32_t l : routes[f])
        has_bottleneck |= used[l] >= capacities[l] * (1 - 1e-12) && rates[f] >= largest[l] * (1 - 1e-12);
      REQUIRE(has_bottleneck);
    }
  }
}

TEST_CASE("flows that share no link have the same rates, bit for bit, alone or together") {
  const std::vector<double> left{10, 4, 7.7}, right{3, 1.1};
  const std::vector<std::vector<std::uint32_t>> a{{0}, {0, 1}, {1, 2}}, b{{3, 4}, {3}, {4}, {4}};
  std::vector<double> both = rates_of({10, 4, 7.7, 3, 1.1}, {{0}, {0, 1}, {1, 2}, {3, 4}, {3}, {4}, {4}});
  const std::vector<double> alone = rates_of(left, a);
  const std::vector<double> other = rates_of(right, {{0, 1}, {0}, {1}, {1}});
  CHECK(std::vector<double>(both.begin(), both.begin() + 3) == alone);
  CHECK(std::vector<double>(both.begin() + 3, both.end()) == other);
}

TEST_CASE("two equal transfers over one link take twice as long") {
  // 1 MB at 10 GB/s = 100 us alone; two over the 10 GB/s trunk: 200 us each.
  const Fabric fabric = dumbbell(2, gb_per_s(10), gb_per_s(10));
  Schedule one, two;
  one.add(transfer(0, 2, 1e6));
  two.add(transfer(0, 2, 1e6));
  two.add(transfer(1, 3, 1e6));
  CHECK(ps(run(fabric, one).finish) == us(100));
  const Timeline timeline = run(fabric, two);
  CHECK(ps(timeline.ops[0].finish) == us(200));
  CHECK(ps(timeline.ops[1].finish) == us(200));
}

TEST_CASE("a transfer speeds up when the one beside it has left") {
  // Trunk 10 GB/s. A: 1 MB, B: 3 MB. Both at 5 GB/s until A has left at 200 us; B has 2 MB to go at
  // 10 GB/s: 400 us.
  const Fabric fabric = dumbbell(2, gb_per_s(10), gb_per_s(10));
  Schedule s;
  s.add(transfer(0, 2, 1e6));
  s.add(transfer(1, 3, 3e6));
  const Timeline timeline = run(fabric, s);
  CHECK(ps(timeline.ops[0].finish) == us(200));
  CHECK(ps(timeline.ops[1].finish) == us(400));
  CHECK(timeline.counters.rate_updates == 2);  // one for both, and one for B alone
}

TEST_CASE("three transfers, one held back by its own port") {
  // Trunk 10 GB/s, ports 100 GB/s but rank 2's 1 GB/s. Rates 4.5, 4.5, 1. With 0.9 MB, 0.9 MB, 0.3 MB: the
  // first two leave at 200 us, the third (0.2 MB done) goes on at its port's 1 GB/s until 300 us.
  std::vector<Cable> cables{{4, 5, gb_per_s(10), Seconds(0)}};
  for (int r = 0; r < 4; ++r) cables.push_back({r, r < 3 ? 4 : 5, r == 2 ? gb_per_s(1) : gb_per_s(100), Seconds(0)});
  const Fabric fabric = cabled_fabric(4, 2, cables);
  Schedule s;
  s.add(transfer(0, 3, 0.9e6));
  s.add(transfer(1, 3, 0.9e6));
  s.add(transfer(2, 3, 0.3e6));
  const Timeline timeline = run(fabric, s);
  CHECK(ps(timeline.ops[0].left) == us(200));
  CHECK(ps(timeline.ops[1].left) == us(200));
  CHECK(ps(timeline.ops[2].left) == us(300));
}

TEST_CASE("a higher priority has the link to itself, the lower one waits and then goes on") {
  // 10 GB/s. Low: 2 MB from 0. High: 1 MB from 50 us. Low has sent 0.5 MB by then, stands until 150 us and
  // needs 150 us more.
  const Fabric fabric = dumbbell(2, gb_per_s(10), gb_per_s(10));
  Schedule s;
  const OpId delay = s.add(Delay{Seconds(50e-6)});
  s.add(transfer(0, 2, 2e6, 1));
  s.add(transfer(1, 3, 1e6, 0), std::vector<After>{{delay}});
  const Timeline timeline = run(fabric, s);
  CHECK(ps(timeline.ops[2].finish) == us(150));
  CHECK(ps(timeline.ops[1].finish) == us(300));
}

TEST_CASE("fifo: one after the other, in the order of asking") {
  const Fabric fabric = dumbbell(3, gb_per_s(10), gb_per_s(10));
  Schedule s;
  const OpId late = s.add(Delay{Seconds(10e-6)});
  s.add(transfer(0, 3, 1e6), std::vector<After>{{late}});  // asks second: 100 ... 200 us
  s.add(transfer(1, 4, 1e6));                              // asks first: 0 ... 100 us
  const Timeline timeline = run(fabric, s, Sharing::fifo);
  CHECK(ps(timeline.ops[2].left) == us(100));
  CHECK(ps(timeline.ops[1].start) == us(100));
  CHECK(ps(timeline.ops[1].left) == us(200));
}

TEST_CASE("fifo: equal requests go by rank, whatever the order they were added in") {
  const Fabric fabric = dumbbell(3, gb_per_s(10), gb_per_s(10));
  Schedule there, back;
  for (const std::uint32_t r : {0U, 1U, 2U}) there.add(transfer(r, r + 3, 1e6));
  for (const std::uint32_t r : {2U, 1U, 0U}) back.add(transfer(r, r + 3, 1e6));
  const Timeline a = run(fabric, there, Sharing::fifo), b = run(fabric, back, Sharing::fifo);
  for (std::size_t r = 0; r < 3; ++r) {
    CHECK(ps(a.ops[r].left) == us(100 * (static_cast<std::int64_t>(r) + 1)));
    CHECK(a.ops[r].left == b.ops[2 - r].left);
  }
}

TEST_CASE("fifo: a higher priority overtakes those that wait, not the one under way") {
  const Fabric fabric = dumbbell(3, gb_per_s(10), gb_per_s(10));
  Schedule s;
  const OpId late = s.add(Delay{Seconds(10e-6)});
  s.add(transfer(0, 3, 1e6, 1));
  s.add(transfer(1, 4, 1e6, 1));
  s.add(transfer(2, 5, 1e6, 0), std::vector<After>{{late}});
  const Timeline timeline = run(fabric, s, Sharing::fifo);
  CHECK(ps(timeline.ops[1].left) == us(100));
  CHECK(ps(timeline.ops[3].left) == us(200));
  CHECK(ps(timeline.ops[2].left) == us(300));
}

TEST_CASE("fifo: who is behind waits even where its own links are free") {
  // 0 -> 2 holds the way into rank 2. 1 -> 2 waits for it and is first at rank 1's port, so 1 -> 3, which
  // asked later, waits too: 100 ... 200 us and 200 ... 300 us.
  const Fabric fabric = star_fabric(4, gb_per_s(10), Seconds(0));
  Schedule s;
  const OpId soon = s.add(Delay{Seconds(1e-6)}), later = s.add(Delay{Seconds(2e-6)});
  s.add(transfer(0, 2, 1e6));
  s.add(transfer(1, 2, 1e6), std::vector<After>{{soon}});
  s.add(transfer(1, 3, 1e6), std::vector<After>{{later}});
  const Timeline timeline = run(fabric, s, Sharing::fifo);
  CHECK(ps(timeline.ops[3].start) == us(100));
  CHECK(ps(timeline.ops[4].start) == us(200));
  CHECK(ps(timeline.ops[4].left) == us(300));
}

TEST_CASE("unshared links hold any number of transfers at full rate") {
  const Fabric fabric = dumbbell(2, gb_per_s(10), gb_per_s(10));
  Schedule s;
  for (int i = 0; i < 5; ++i) s.add(transfer(0, 2, 1e6));
  CHECK(ps(run(fabric, s, Sharing::none).finish) == us(100));
}

TEST_CASE("flows of 2^62 bytes, one after the other on a shared link, move more than 128 bits of grains") {
  // Two flows share 1e16 bytes/s: each 2^62 bytes take 2^62 / 5e15 s = 922.337203685478 s, six rounds of them.
  const Fabric fabric = dumbbell(2, gb_per_s(1e8), gb_per_s(1e7));
  Schedule s;
  for (std::uint32_t sender = 0; sender < 2; ++sender) {
    OpId before = s.add(Delay{Seconds(0)});
    for (int round = 0; round < 6; ++round)
      before = s.add(transfer(sender, sender + 2, 0x1p62 * (sender == 0 ? 1 : 0.999)), std::vector<After>{{before}});
  }
  const Timeline timeline = run(fabric, s);
  // All bytes cross the trunk, which is never idle but at the end, when the slower sender has the link alone.
  CHECK(static_cast<double>(ps(timeline.finish)) * 1e-12 == Approx(6 * 1.999 * 0x1p62 / 1e16).epsilon(1e-9));
}
