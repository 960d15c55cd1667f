// The chain of operations that a simulation's time is made of.
#include <catch2/catch.hpp>

#include "collcast/engine/engine.hpp"
#include "engine/times.hpp"
#include "support/small_fabrics.hpp"
#include "support/small_shapes.hpp"

using namespace collcast;
using namespace collcast::test;

TEST_CASE("the critical path is the longest chain of durations and latencies") {
  // 0 -> 1: 1 MB at 10 GB/s = 100 us + 2 us; then compute 50 us. Beside it: compute 120 us.
  const Fabric fabric = ring_fabric(4, gb_per_s(10), Seconds(2e-6));
  Schedule s;
  const OpId send = s.add(Transfer{Rank(0), Rank(1), Volume(1e6)});
  const OpId work = s.add(Compute{Rank(1), Seconds(50e-6)}, std::vector<After>{{send}});
  const OpId other = s.add(Compute{Rank(0), Seconds(120e-6)});
  const OpId join = s.add(Delay{}, std::vector<After>{{work}, {other}});
  CHECK(ps(critical_path(fabric, s)) == us(152));
  CHECK(critical_operations(s, run(fabric, s)) == std::vector<OpId>{send, work, join});
}

TEST_CASE("the critical path ignores contention, the critical operations see it") {
  // Two transfers of 100 us over one link: 200 us together. Alone, the compute of 150 us is the longest.
  const Fabric fabric = ring_fabric(4, gb_per_s(10), Seconds(0));
  Schedule s;
  const OpId work = s.add(Compute{Rank(0), Seconds(150e-6)});
  s.add(Transfer{Rank(0), Rank(1), Volume(1e6)});
  const OpId b = s.add(Transfer{Rank(0), Rank(1), Volume(1e6)});
  CHECK(ps(critical_path(fabric, s)) == us(150));
  CHECK(critical_operations(s, run(fabric, s, Sharing::none)) == std::vector<OpId>{work});
  CHECK(critical_operations(s, run(fabric, s)) == std::vector<OpId>{b});
}

TEST_CASE("a chain follows what an operation really waited for: left or finished") {
  const Fabric fabric = ring_fabric(4, gb_per_s(10), Seconds(100e-6));
  Schedule s;
  const OpId a = s.add(Transfer{Rank(0), Rank(1), Volume(1e6)});  // left at 100, finished at 200 us
  const OpId b = s.add(Compute{Rank(0), Seconds(150e-6)});
  const OpId c = s.add(Delay{Seconds(100e-6)}, std::vector<After>{{a, Until::left}, {b}});
  CHECK(critical_operations(s, run(fabric, s)) == std::vector<OpId>{b, c});
}

TEST_CASE("through an exchange the chain goes by the participant that came last") {
  const Fabric fabric = ring_fabric(4, gb_per_s(10), Seconds(1e-6));
  Schedule s;
  std::vector<OpId> ready;
  for (int i = 0; i < 4; ++i)
    ready.push_back(s.add(Compute{Rank(static_cast<std::uint32_t>(i)), Seconds(i == 2 ? 1e-3 : 1e-6)}));
  const OpId first = s.add_exchange(ring_all_reduce(4, Volume(4e6)), ready);
  const OpId end = s.add(Delay{Seconds(1e-3)}, std::vector<After>{{first}});
  const std::vector<OpId> chain = critical_operations(s, run(fabric, s));
  CHECK(chain == std::vector<OpId>{ready[2], OpId(first.value() + 2), first, end});
}

TEST_CASE("an empty schedule has no critical operations") {
  const Schedule s;
  CHECK(critical_operations(s, Timeline()).empty());
}
