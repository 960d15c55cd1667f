// Spelled-out algorithms on machines: as long as the same pattern takes, and never below the bound.
#include "collcast/evaluate/spelled.hpp"

#include <catch2/catch.hpp>

#include "../support/dice.hpp"
#include "../support/msccl_samples.hpp"
#include "../support/patterns.hpp"
#include "../support/small_fabrics.hpp"
#include "collcast/collective/msccl.hpp"
#include "collcast/engine/engine.hpp"

using namespace collcast;

namespace {

SpelledOut spelled(const msccl::Algorithm& a, Bytes size, int loops = 1) {
  REQUIRE(prove(a, size).ok());
  return spell_out(a, test::first_ranks(static_cast<int>(a.gpus.size())), size, loops);
}

double seconds(const Fabric& fabric, const SpelledOut& all) {
  const auto timeline = simulate(fabric, all);
  REQUIRE(timeline.ok());
  return to_seconds(timeline->finish).count();
}

double seconds(const Fabric& fabric, CollectiveKind kind, const std::string& algorithm, int ranks, std::int64_t bytes) {
  const auto pattern = make_pattern(test::request(kind, ranks, bytes), test::options(algorithm));
  REQUIRE(pattern.ok());
  const auto timeline = simulate(fabric, *pattern);
  REQUIRE(timeline.ok());
  return to_seconds(timeline->finish).count();
}

}  // namespace

TEST_CASE("a ring from a file takes as long as ours, and the textbook's time") {
  const std::int64_t bytes = std::int64_t{64} << 20;
  for (int k = 2; k <= 9; ++k) {
    const Fabric fabric = test::ring_fabric(k, Bandwidth(10e9), Seconds(1e-6));
    const double reduce = seconds(fabric, spelled(test::msccl_ring_all_reduce(k), Bytes(bytes)));
    const double gather = seconds(fabric, spelled(test::msccl_ring_all_gather(k), Bytes(bytes)));
    const double textbook = 2.0 * (k - 1) * (static_cast<double>(bytes) / k / 10e9 + 1e-6);
    CHECK(reduce == Approx(textbook).epsilon(1e-9));
    CHECK(reduce == Approx(seconds(fabric, CollectiveKind::all_reduce, "ring", k, bytes)).epsilon(1e-9));
    CHECK(gather == Approx(textbook / 2).epsilon(1e-9));
  }
}

TEST_CASE("a chain's chunks, or its loops, overlap as the textbook says: N (S + k - 2) / (S B)") {
  const Fabric fabric = test::ring_fabric(8, Bandwidth(10e9), Seconds(0));
  for (const int chunks : {1, 2, 5})
    for (const int loops : {1, 3, 16}) {
      const double s = chunks * loops, textbook = 1e9 * (s + 6) / s / 10e9;
      const SpelledOut all = spelled(test::msccl_chain_broadcast(8, chunks), Bytes(1'000'000'000), loops);
      CHECK(seconds(fabric, all) == Approx(textbook).epsilon(1e-9));
      CHECK(lower_bound(fabric, all).value().count() == Approx(textbook).epsilon(1e-9));
    }
}

TEST_CASE("no run is faster than the bound, on machines of any shape") {
  test::Dice dice(20261122);
  for (int round = 0; round < 200; ++round) {
    const int k = 2 + dice.roll(6);
    const Bandwidth rate(1e9 * (1 + dice.roll(50)));
    const Seconds latency(1e-7 * dice.roll(30));
    const Fabric fabric = dice.roll(2) == 0 ? test::ring_fabric(k, rate, latency) : test::star_fabric(k, rate, latency);
    const Bytes size((1 + dice.roll(1000)) * std::int64_t{1000});
    const int which = dice.roll(4), loops = 1 + dice.roll(4);
    const SpelledOut all = spelled(which == 0   ? test::msccl_ring_all_gather(k)
                                   : which == 1 ? test::msccl_ring_all_reduce(k, 1 + dice.roll(3))
                                   : which == 2 ? test::msccl_chain_broadcast(k, 1 + dice.roll(4))
                                                : test::msccl_direct_alltoall(k),
                                   size, loops);
    const double bound = lower_bound(fabric, all).value().count(), run = seconds(fabric, all);
    INFO("round " << round);
    CHECK(bound <= run * (1 + 1e-12));
    CHECK(bound >= 0.2 * run);
  }
}

TEST_CASE("every-to-every on a star: each up link carries k - 1 of k parts") {
  const Fabric fabric = test::star_fabric(8, Bandwidth(10e9), Seconds(0));
  const SpelledOut all = spelled(test::msccl_direct_alltoall(8), Bytes(80'000'000));
  CHECK(seconds(fabric, all) == Approx(70e6 / 10e9).epsilon(1e-9));
  CHECK(lower_bound(fabric, all).value().count() == Approx(70e6 / 10e9).epsilon(1e-9));
}
