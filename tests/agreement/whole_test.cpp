// Messages in one piece that meet on a link: the closed form is the simulation, whenever they come.
#include <catch2/catch.hpp>

#include <cmath>

#include "agreement/answers.hpp"
#include "collcast/cost/chain.hpp"
#include "support/small_fabrics.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

constexpr double beta = 10e9;

}  // namespace

TEST_CASE("a message that comes while others are under way waits for what they have left") {
  // All-reduce of N by an unchunked binomial tree among 5 on a star, in units of N/beta. Ranks 1 and 4 send to rank 0
  // at 0, half a link each; rank 3 sends to 2, which sends to 0 from 1 on, when the two have half a message left each.
  // Three messages through the root's one down link are there at 3 and not before; three through its up link take 3
  // more.
  const Fabric star = star_fabric(5, Bandwidth(beta), Seconds(0));
  const Pattern pattern = make_pattern(request(CollectiveKind::all_reduce, 5, 10'000'000), options("tree")).value();
  const Answers a = answers(star, pattern);
  CHECK(a.estimate.total.count() == Approx(6 * 1e7 / beta).epsilon(1e-12));
  CHECK(a.simulated == Approx(6 * 1e7 / beta).epsilon(1e-9));
}

TEST_CASE("unchunked trees on a star: the closed form is the simulation for every group up to 33") {
  using enum CollectiveKind;
  for (const double alpha : {0.0, 1.5e-6})
    for (int k = 2; k <= 33; ++k) {
      const Fabric star = star_fabric(k, Bandwidth(beta), Seconds(alpha));
      for (const CollectiveKind kind : {broadcast, reduce, all_reduce, gather, scatter})
        for (const std::int64_t bytes : {1'000'000LL, 1'000'000'007LL}) {
          INFO(to_string(kind) << " k=" << k << " N=" << bytes << " alpha=" << alpha);
          const Answers a = answers(star, make_pattern(request(kind, k, bytes), options("tree")).value());
          // Of several flows on a link each one's end is rounded up, and the next begins there.
          CHECK(a.simulated >= a.estimate.total.count() * (1 - 1e-12));
          CHECK(a.simulated <= a.estimate.total.count() * (1 + 1e-12) + k * a.rounding);
        }
    }
}

TEST_CASE("the longest chain is contiguous and comes to the phase's time") {
  using enum CollectiveKind;
  for (const int k : {5, 8, 17})
    for (const int chunks : {1, 4}) {
      const Fabric star = star_fabric(k, Bandwidth(beta), Seconds(1e-6));
      for (const CollectiveKind kind : {broadcast, reduce, all_reduce}) {
        INFO(to_string(kind) << " k=" << k << " chunks=" << chunks);
        const Pattern pattern = make_pattern(request(kind, k, 8'000'000), options("tree", chunks)).value();
        const std::vector<ChainHop> chain = longest_chain(star, pattern, 0);
        REQUIRE_FALSE(chain.empty());
        CHECK(chain.front().start == Seconds(0));
        for (std::size_t i = 1; i < chain.size(); ++i) {
          const ChainHop& before = chain[i - 1];
          const bool came = before.to == chain[i].from;
          CHECK((came || before.from == chain[i].from));
          CHECK((before.start + before.takes + (came ? before.latency : Seconds(0))).count() ==
                Approx(chain[i].start.count()).epsilon(1e-9));
        }
        const ChainHop& last = chain.back();
        CHECK((last.start + last.takes + last.latency).count() ==
              Approx(estimate(star, pattern).phases[0].by_rounds.count()).epsilon(1e-9));
        for (const ChainHop& hop : chain) CHECK(hop.takes >= hop.alone * (1 - 1e-9));
      }
    }
}

TEST_CASE("the chain of the tree of five says who waits for whom") {
  const Fabric star = star_fabric(5, Bandwidth(beta), Seconds(0));
  const Pattern pattern = make_pattern(request(CollectiveKind::all_reduce, 5, 10'000'000), options("tree")).value();
  std::string text;
  for (const ChainHop& hop : longest_chain(star, pattern, 0))
    text += std::to_string(hop.from.value()) + ">" + std::to_string(hop.to.value()) + " " +
            std::to_string(std::lround(hop.takes.count() * beta / 1e7)) + ", ";
  CHECK(text == "3>2 1, 2>0 2, 0>4 1, 0>2 1, 0>1 1, ");
  // A ring's rounds are alike: nothing to tell apart.
  CHECK(
      longest_chain(star, make_pattern(request(CollectiveKind::all_reduce, 5, 10'000'000), options("ring")).value(), 0)
          .empty());
}
