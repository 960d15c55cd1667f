// A forecast's prices are those of the functions that answer one question each, and each is worked out once.
#include "collcast/evaluate/prices.hpp"

#include <catch2/catch.hpp>

#include "sample_requests.hpp"
#include "support/small_fabrics.hpp"

using namespace collcast;
using namespace collcast::test;
using enum CollectiveKind;

TEST_CASE("prices are those of by_estimate and by_simulation, to the last bit") {
  for (const Fabric& fabric : machines())
    for (const Sharing sharing : {Sharing::max_min, Sharing::fifo}) {
      CollectivePolicy policy;
      policy.base_latency = Seconds(3e-6);
      const EngineOptions engine{sharing, {}};
      const CollectiveTime estimate = by_estimate(fabric, policy), simulate = by_simulation(fabric, policy, engine);
      Prices prices(fabric, policy, engine);
      for (const CollectiveRequest& r : requests(fabric, 80)) {
        CHECK(prices.estimate(r).value() == estimate(r).value());
        CHECK(prices.simulate(r).value() == simulate(r).value());
        const Choice first = choose(fabric, r, policy).value().front();
        CHECK(prices.algorithm(r).value() == first.options.algorithm);
        CHECK(prices.options(r)->chunks == first.options.chunks);
        CHECK(prices.options(r)->channels == first.options.channels);
      }
    }
}

TEST_CASE("a request is priced once, and its groups are looked at once whatever the size") {
  const Fabric fabric = star_fabric(12, Bandwidth(10e9), Seconds(2e-6));
  Prices prices(fabric, {});
  CollectiveRequest r{all_reduce, Group::strided(Rank(0), 1, 8), Bytes(1 << 20), 0, {}};
  for (int again = 0; again < 3; ++again) {
    CHECK(prices.estimate(r).ok());
    CHECK(prices.simulate(r).ok());
    CHECK(prices.algorithm(r).ok());
    CHECK(prices.options(r).ok());
  }
  CHECK(prices.counts().prepared == 1);
  CHECK(prices.counts().chosen == 1);
  CHECK(prices.counts().simulated == 1);

  r.size = Bytes(1 << 21);
  CHECK(prices.estimate(r).ok());
  CHECK(prices.counts().prepared == 1);
  CHECK(prices.counts().chosen == 2);
  CHECK(prices.counts().simulated == 1);

  r.kind = all_gather;
  CHECK(prices.estimate(r).ok());
  CHECK(prices.counts().prepared == 2);
  CHECK(prices.counts().chosen == 3);
}

TEST_CASE("a group of one costs nothing and is not looked at") {
  const Fabric fabric = star_fabric(4, Bandwidth(10e9), Seconds(2e-6));
  Prices prices(fabric, {});
  const CollectiveRequest r{all_reduce, Group::strided(Rank(0), 1, 1), Bytes(1 << 20), 0, {}};
  CHECK(prices.estimate(r).value() == Seconds(0));
  CHECK(prices.simulate(r).value() == Seconds(0));
  CHECK(prices.counts().prepared == 0);
}

TEST_CASE("what cannot be priced fails as it does alone") {
  const Fabric fabric = star_fabric(4, Bandwidth(10e9), Seconds(2e-6));
  const CollectivePolicy unknown{"nothing", 0, 0};
  Prices prices(fabric, unknown);
  const CollectiveRequest r{all_reduce, Group::strided(Rank(0), 1, 4), Bytes(1 << 20), 0, {}};
  const std::string text = to_text(by_estimate(fabric, unknown)(r).errors());
  CHECK_FALSE(text.empty());
  CHECK(to_text(prices.estimate(r).errors()) == text);
  CHECK(to_text(prices.simulate(r).errors()) == text);
  CHECK(to_text(prices.algorithm(r).errors()) == text);
}
