// Messages in one piece that meet on a link: the closed form is the simulation, whenever they come.
#include <catch2/catch.hpp>

#include "agreement/answers.hpp"
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
