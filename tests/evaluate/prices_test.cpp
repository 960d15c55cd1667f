// A forecast's prices are those of the functions that answer one question each, and each is worked out once.
#include "collcast/evaluate/prices.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

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

TEST_CASE("requests that the machine cannot tell apart are one, and cost what they do on the whole machine") {
  // Pods of 3 nodes of 4 GPUs.
  for (const Fabric& fabric : {pods(12, true, 5), pods(12, false, 7), pods(12, true, 2)})
    for (const Sharing sharing : {Sharing::max_min, Sharing::fifo}) {
      const EngineOptions engine{sharing, {}};
      const CollectiveTime estimate = by_estimate(fabric, {}), simulate = by_simulation(fabric, {}, engine);
      Prices prices(fabric, {}, engine);
      std::int64_t asked = 0;
      for (const int size : {2, 4})
        for (const int stride : {1, 4, 8, 12})
          for (std::uint32_t first = 0; first + static_cast<std::uint32_t>((size - 1) * stride) + 1 < 48; first += 4)
            for (const CollectiveKind kind : {all_reduce, sendrecv}) {
              CollectiveRequest r{kind, Group::strided(Rank(first), stride, size), Bytes(3 << 20), 0, {}};
              if (stride > 1) r.alongside.push_back(Group::strided(Rank(first + 1), stride, size));
              CHECK(prices.estimate(r).value() == estimate(r).value());
              CHECK(prices.simulate(r).value() == simulate(r).value());
              ++asked;
            }
      CHECK(prices.counts().simulated * 2 < asked);
    }
}

TEST_CASE("nodes of a machine with a slow link are not taken for each other") {
  const Fabric healthy = pods(4, true, 2);
  std::vector<Link> links(healthy.links().begin(), healthy.links().end());
  for (std::size_t l = 0; l < links.size() / 2; ++l) links[l].bandwidth = links[l].bandwidth * 0.5;
  const Fabric slow = healthy.with_links(links);
  Prices prices(slow, {});
  for (std::uint32_t first = 0; first < 16; first += 4) {
    const CollectiveRequest r{all_reduce, Group::strided(Rank(first), 1, 4), Bytes(1 << 20), 0, {}};
    CHECK(prices.simulate(r).value() == by_simulation(slow, {})(r).value());
  }
  CHECK(prices.counts().prepared == 4);
}

TEST_CASE("ranks that the machine does not have are named as they were asked for") {
  const Fabric fabric = pods(4, true, 2);
  Prices prices(fabric, {});
  const CollectiveRequest r{all_reduce, Group::strided(Rank(12), 4, 2), Bytes(1), 0, {}};
  CHECK(to_text(prices.estimate(r).errors()) == to_text(by_estimate(fabric, {})(r).errors()));
  CHECK_FALSE(prices.estimate(r).ok());
}

TEST_CASE("who is asked ends a choice before it is made, and nothing is remembered of it") {
  const Fabric fabric = star_fabric(600, Bandwidth(10e9), Seconds(2e-6));
  const CollectiveRequest r{all_reduce, Group::strided(Rank(0), 1, 600), Bytes(1 << 20), 0, {}};
  bool goes_on = false;
  Prices prices(fabric, {}, {}, [&] { return goes_on; });
  for (const Result<Seconds>& ended : {prices.estimate(r), prices.simulate(r)}) {
    REQUIRE_FALSE(ended.ok());
    CHECK_THAT(to_text(ended.errors()), Catch::Contains("all_reduce among 600 ranks was ended from outside"));
  }
  goes_on = true;
  CHECK(prices.estimate(r).value() == by_estimate(fabric, {})(r).value());
}

TEST_CASE("a choice is ended wherever its watch says so, and the watch is asked within a closed form") {
  const Fabric fabric = star_fabric(400, Bandwidth(10e9), Seconds(2e-6));
  const CollectiveRequest r{alltoall, Group::strided(Rank(0), 1, 400), Bytes(1 << 20), 0, {}};
  int asked = 0;
  const GoesOn count = [&] { return ++asked > 0; };
  const Result<std::vector<Choice>> all = choose(fabric, r, {"direct", 0, 0}, count);
  REQUIRE(all.ok());
  // Of one algorithm: before its routes, and every 32,768 of its 400 * 399 hops, twice each and more.
  CHECK(asked > 400 * 399 / 32'768);
  CHECK(all->front().estimate.total == choose(fabric, r, {"direct", 0, 0})->front().estimate.total);
  const int questions = asked;
  for (int last = 0; last < questions; ++last) {
    int left = last;
    CHECK_FALSE(choose(fabric, r, {"direct", 0, 0}, [&] { return left-- > 0; }).ok());
  }
}

TEST_CASE("prices of a placed job are those on its own ways, to the last bit, and equal nodes are one price") {
  for (const Fabric& machine : machines()) {
    std::vector<int> backwards;
    for (int node = machine.nodes(); node-- > 0;) backwards.push_back(node);
    const Fabric job = machine.placed(backwards);
    const CollectiveTime estimate = by_estimate(job, {}), simulate = by_simulation(job, {});
    Prices prices(job, {});
    for (const CollectiveRequest& r : requests(job, 40)) {
      CHECK(prices.estimate(r).value() == estimate(r).value());
      CHECK(prices.simulate(r).value() == simulate(r).value());
    }
  }
  // Pairs on nodes that lie anywhere are told apart by which of the two comes first on the machine, and by no more.
  const Fabric star = star_fabric(12, Bandwidth(10e9), Seconds(2e-6)).placed({7, 3, 11, 0, 5, 1});
  Prices prices(star, {});
  for (std::uint32_t first = 0; first < 12; first += 2)
    CHECK(prices.simulate({all_reduce, Group::strided(Rank(first), 1, 2), Bytes(1 << 20), 0, {}}).ok());
  CHECK(prices.counts().simulated == 2);
}

TEST_CASE("parts of the machine are kept up to a bound, and prices stay what they were when it is passed") {
  // Groups of different sizes: each is worked out on a part of the machine of its own, of two links a rank.
  const Fabric star = star_fabric(40'000, Bandwidth(10e9), Seconds(2e-6));
  CollectivePolicy ring;
  ring.algorithm = "ring";
  ring.chunks = 1;
  Prices prices(star, ring);
  const auto request = [](int number, std::int64_t bytes = 1 << 20) {
    return CollectiveRequest{all_reduce, Group::strided(Rank(7), 1, 25'000 + number), Bytes(bytes), 0, {}};
  };
  const auto links = [](int number) { return 2 * static_cast<std::size_t>(25'000 + number); };
  std::vector<Seconds> first;
  for (int number = 0; number < 60; ++number) first.push_back(prices.estimate(request(number)).value());
  CHECK(prices.counts().prepared == 60);
  // What lies on a part that is kept is not prepared again for another size: the newest are, and all that were dropped
  // before them had filled the bound but for one.
  int dropped = 60;
  while (dropped > 0) {
    CHECK(prices.estimate(request(dropped - 1, 1 << 10)).ok());
    if (prices.counts().prepared > 60) break;
    --dropped;
  }
  CHECK(prices.counts().prepared == 61);
  std::size_t kept = 0;
  for (int number = 0; number < dropped; ++number) kept += links(number);
  CHECK(kept <= Prices::most_kept_links);
  CHECK(kept + links(dropped) > Prices::most_kept_links);
  for (const int number : {0, 59}) {
    CHECK(prices.estimate(request(number)).value() == first[static_cast<std::size_t>(number)]);
    CHECK(prices.simulate(request(number)).value() == Prices(star, ring).simulate(request(number)).value());
  }
}

TEST_CASE("a simulation that its watch ended is not begun again on the whole machine") {
  const Fabric fabric = star_fabric(12, Bandwidth(10e9), Seconds(2e-6));
  int asked = 0;
  const EngineOptions engine{Sharing::max_min, [&](const EngineProgress&) {
                               ++asked;
                               return false;
                             }};
  Prices prices(fabric, {}, engine);
  const CollectiveRequest part{all_reduce, Group::strided(Rank(2), 1, 4), Bytes(1 << 20), 0, {}};
  CHECK(prices.estimate(part).ok());
  asked = 0;
  CHECK_FALSE(prices.simulate(part).ok());
  CHECK(asked == 1);
}
