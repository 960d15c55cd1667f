// Collectives on machines with faulty links: the laws, and a ring that loses a cable by hand.
#include "collcast/topology/faults.hpp"

#include <catch2/catch.hpp>

#include "agreement/answers.hpp"
#include "collcast/evaluate/evaluate.hpp"
#include "support/dice.hpp"
#include "support/small_fabrics.hpp"

using namespace collcast;
using namespace collcast::test;
using enum CollectiveKind;

namespace {

MachineFault slow(const std::string& link, double share, Seconds added = {}) {
  LinkFault fault;
  fault.link = link;
  fault.share = share;
  fault.added_latency = added;
  return {fault, {"f", 1, 1}};
}

MachineFault failed(const std::string& link) {
  LinkFault fault;
  fault.link = link;
  fault.failed = true;
  return {fault, {"f", 1, 1}};
}

Fabric faulty(const Fabric& fabric, const MachineFault& fault) {
  const Result<Fabric> out = with_faults(fabric, std::vector<MachineFault>{fault});
  INFO(to_text(out.errors()));
  REQUIRE(out.ok());
  return *out;
}

struct Times {
  Seconds estimate{}, simulate{};
};

Times times(const Fabric& fabric, const CollectiveRequest& request, const CollectivePolicy& policy) {
  const Result<Seconds> estimate = by_estimate(fabric, policy)(request),
                        simulate = by_simulation(fabric, policy)(request);
  REQUIRE(estimate.ok());
  REQUIRE(simulate.ok());
  return {*estimate, *simulate};
}

}  // namespace

TEST_CASE("a slow link makes no collective faster, and one that leaves everything none slower") {
  const std::uint64_t seed = 4711;
  Dice dice(seed);
  const std::vector<Fabric> fabrics{star_fabric(6, Bandwidth(10e9), Seconds(1e-6)),
                                    ring_fabric(5, Bandwidth(10e9), Seconds(1e-6)),
                                    cluster_fabric(2, 4, Bandwidth(300e9), Bandwidth(25e9), Seconds(1e-6))};
  for (int round = 0; round < 150; ++round) {
    const Fabric& fabric = fabrics[static_cast<std::size_t>(dice.roll(3))];
    const CollectivePolicy policy{dice.pick({"ring", "auto"}), dice.pick({1, 4}), 1};
    const CollectiveRequest asked =
        request(dice.pick({all_reduce, all_gather, reduce_scatter}), fabric.rank_count(), dice.pick({64, 1 << 24}));
    const std::string link =
        fabric.link_name(LinkId(static_cast<std::uint32_t>(dice.roll(static_cast<int>(fabric.links().size())))));
    CAPTURE(seed, round, link, policy.algorithm, fabric.spec().name);
    const Times before = times(fabric, asked, policy);
    const Times same = times(faulty(fabric, slow(link, 1)), asked, policy);
    CHECK(same.estimate == before.estimate);
    CHECK(same.simulate == before.simulate);
    const Times after =
        times(faulty(fabric, slow(link, dice.pick({0.9, 0.3}), Seconds(1e-6 * dice.roll(3)))), asked, policy);
    CHECK(after.estimate >= before.estimate);
    if (policy.algorithm == "ring") CHECK(after.simulate >= before.simulate);
  }
}

TEST_CASE("a link that nobody uses costs nobody anything") {
  const Fabric fabric = cluster_fabric(2, 4, Bandwidth(300e9), Bandwidth(25e9), Seconds(1e-6));
  const CollectiveRequest asked{all_reduce, Group::strided(Rank(0), 1, 4), Bytes(1 << 20), 0, {}};  // node 0 alone
  const Times before = times(fabric, asked, {});
  for (std::uint32_t l = 0; l < fabric.links().size(); ++l) {
    const std::string name = fabric.link_name(LinkId(l));
    if (name.find("node1") == std::string::npos) continue;
    const Times after = times(faulty(fabric, slow(name, 0.01)), asked, {});
    CHECK(after.estimate == before.estimate);
    CHECK(after.simulate == before.simulate);
  }
}

TEST_CASE("a ring of k that lost a cable sends that hop's messages the other way, over all other links") {
  // Without latency each of the 2 (k - 1) rounds sends N/k from each rank to the next. The cable between ranks 0 and 1
  // fails one way and the other; what went 0 -> 1 goes 0 -> k-1 -> ... -> 1, over links that the round leaves idle, as
  // the others' messages all go up. So every round takes as long as before.
  constexpr int k = 5;
  const Fabric fabric = ring_fabric(k, Bandwidth(10e9), Seconds(0));
  const CollectivePolicy ring{"ring", 1, 1};
  const CollectiveRequest asked = request(all_reduce, k, 10'000'000);
  const double by_hand = 2.0 * (k - 1) / k * 10e6 / 10e9;
  const Times before = times(fabric, asked, ring);
  CHECK(before.simulate.count() == Approx(by_hand).epsilon(1e-9));
  std::vector<LinkId> way;
  fabric.route(Rank(0), Rank(1), 0, way);
  REQUIRE(way.size() == 1);
  const Fabric broken = faulty(fabric, failed(fabric.link_name(way.front())));
  way.clear();
  broken.route(Rank(0), Rank(1), 0, way);
  CHECK(way.size() == k - 1);
  CHECK(times(broken, asked, ring).simulate.count() == Approx(by_hand).epsilon(1e-9));
  // A broadcast's chain from 0 has no other hop to share with, either: N/B for each of k - 1 hops.
  const CollectiveRequest chain = request(broadcast, k, 10'000'000);
  CHECK(times(broken, chain, ring).simulate.count() == Approx((k - 1) * 10e6 / 10e9).epsilon(1e-9));
}
