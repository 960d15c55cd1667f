// A pool's flows leave in the order of what they have to go, with whatever ties, beside a plain list of them.
#include "engine/link_pool.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

#include "support/dice.hpp"

using namespace collcast;
using namespace collcast::test;
using engine::Grains;
using engine::Ticks;

namespace {

template <class Pool>
void compare_with_list() {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Dice dice(seed);
    Pool pool;
    std::map<std::uint32_t, Grains> list;  // what each has to go
    Ticks now = 0;
    std::uint32_t next = 0;
    pool.begin(now);
    // Of one key (2^40 grains), of keys of their own, and beyond all keys (2^104 grains).
    const int shift = dice.pick({0, 38, 60, 103, 120});
    const auto size = [&] { return static_cast<Grains>(1 + dice.roll(4)) << shift; };
    for (int step = 0; step < 400; ++step) {
      const int action = dice.roll(6);
      if (action < 2 && list.size() < 60) {
        const Grains to_go = size() + dice.roll(3);
        pool.add(next, to_go, now);
        list[next++] = to_go;
      } else if (action == 2) {
        pool.set_rate((Grains{1} << (shift > 10 ? shift - 10 : 0)) * (1 + dice.roll(3)), now);
      } else if (action == 3 && !list.empty()) {  // no further than the first one's end
        const Grains least = pool.to_go(now);
        if (pool.rate() == 0) continue;
        const auto ticks = static_cast<Ticks>(std::min<Grains>(least / pool.rate(), 1 + dice.roll(2000)));
        for (auto& [flow, to_go] : list) to_go -= pool.rate() * ticks;
        now += ticks;
      } else if (action == 4 && !list.empty()) {
        list.erase(pool.first());
        pool.drop_first();
      } else if (action == 5 && !list.empty()) {
        const Grains to_go = size() + dice.roll(3);
        list[pool.first()] = to_go;
        pool.renew_first(to_go, now);
      }
      REQUIRE(pool.size() == list.size());
      if (list.empty()) continue;
      INFO("seed " << seed << ", step " << step);
      const auto least =
          std::min_element(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
      REQUIRE((pool.to_go(now) == least->second));
      REQUIRE((list.at(pool.first()) == least->second));
      bool same = true;
      pool.for_each(now, [&](std::uint32_t flow, Grains to_go) { same &= list.at(flow) == to_go; });
      REQUIRE(same);
    }
  }
}

}  // namespace

TEST_CASE(
    "the first of a pool has least to go, and each has what a plain list says, with equal numbers and close ones") {
  compare_with_list<engine::LinkPool>();
}

TEST_CASE(
    "each of a pool has what a plain list says where what is moved is counted anew, once, now and then, or at every "
    "coming") {
  compare_with_list<engine::LinkPoolOf<0>>();
  compare_with_list<engine::LinkPoolOf<40>>();
  compare_with_list<engine::LinkPoolOf<62>>();
  compare_with_list<engine::LinkPoolOf<104>>();
  compare_with_list<engine::LinkPoolOf<121>>();
}
