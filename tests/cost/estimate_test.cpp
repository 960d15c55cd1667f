// The closed form where links are shared, by hand; where they are not, tests/agreement holds it to textbooks.
#include "collcast/cost/estimate.hpp"

#include <catch2/catch.hpp>

#include <chrono>

#include "support/patterns.hpp"
#include "support/small_fabrics.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

constexpr double rate = 10e9;
const Bandwidth bandwidth(rate);

Pattern pattern(CollectiveKind kind, int k, std::int64_t bytes, const std::string& algorithm, int chunks = 1,
                int channels = 1) {
  return make_pattern(request(kind, k, bytes), options(algorithm, chunks, channels)).value();
}

double total(const Fabric& fabric, const Pattern& p) { return estimate(fabric, p).total.count(); }

}  // namespace

TEST_CASE("flows of one round share a link") {
  // Gather to the root of a star: 7 parts of 1 MB through the root's one down link; a way has 2 links of 1 us.
  const Fabric star = star_fabric(8, bandwidth, Seconds(1e-6));
  const Estimate e = estimate(star, pattern(CollectiveKind::gather, 8, 8'000'000, "direct"));
  REQUIRE(e.phases.size() == 1);
  CHECK(e.shared);
  CHECK(e.phases[0].rate.value() == Approx(rate / 7));
  CHECK(e.phases[0].by_rounds.count() == Approx(7 * 1e6 / rate + 2e-6));
  CHECK(e.phases[0].by_load.count() == Approx(7 * 1e6 / rate + 2e-6));
  CHECK(e.phases[0].busiest_bytes.value() == Approx(7e6));
  CHECK(e.phases[0].latency.count() == Approx(2e-6));
  CHECK(e.phases[0].chunk == Volume(1e6));
}

TEST_CASE("pipelines of one sender share its link") {
  // Chunked binomial broadcast on a star of 8: the root's up link carries the buffer 3 times.
  const Fabric star = star_fabric(8, bandwidth, Seconds(0));
  const Estimate e = estimate(star, pattern(CollectiveKind::broadcast, 8, 1'000'000, "tree", 100));
  CHECK(e.phases[0].by_load.count() == Approx(3 * 1e6 / rate));
  CHECK(e.phases[0].by_rounds.count() == Approx(3 * 1e6 / rate));
  REQUIRE(e.phases[0].busiest.has_value());
  CHECK(e.shared);
}

TEST_CASE("a link is busy from when its first byte can start") {
  // Unchunked all-reduce of 8 on a star: 3 rounds up, and then the root's up link carries the buffer 3 times.
  const Fabric star = star_fabric(8, bandwidth, Seconds(0));
  CHECK(total(star, pattern(CollectiveKind::all_reduce, 8, 1'000'000, "tree")) == Approx(6 * 1e6 / rate));
}

TEST_CASE("a ring on a star has every link to itself") {
  const Fabric star = star_fabric(8, bandwidth, Seconds(1e-6));
  const Estimate e = estimate(star, pattern(CollectiveKind::all_reduce, 8, 8'000'000, "ring"));
  CHECK_FALSE(e.shared);
  CHECK(e.total.count() == Approx(14 * (1e6 / rate + 2e-6)).epsilon(1e-12));
}

TEST_CASE("a sender that serves one after another does not share its link with itself") {
  CHECK_FALSE(
      estimate(star_fabric(5, bandwidth, Seconds(0)), pattern(CollectiveKind::broadcast, 5, 1000, "naive")).shared);
  CHECK(estimate(star_fabric(5, bandwidth, Seconds(0)), pattern(CollectiveKind::broadcast, 5, 1000, "direct")).shared);
}

TEST_CASE("channels over the same links take as long as one") {
  const Fabric ring = ring_fabric(6, bandwidth, Seconds(0));
  const double one = total(ring, pattern(CollectiveKind::all_reduce, 6, 6'000'000, "ring"));
  CHECK(total(ring, pattern(CollectiveKind::all_reduce, 6, 6'000'000, "ring", 1, 3)) == Approx(one));
}

TEST_CASE("both directions of a ring halve the time") {
  const Fabric ring = ring_fabric(6, bandwidth, Seconds(0));
  const double one = total(ring, pattern(CollectiveKind::all_reduce, 6, 6'000'000, "ring"));
  CHECK(total(ring, pattern(CollectiveKind::all_reduce, 6, 6'000'000, "bidirectional_ring")) == Approx(one / 2));
}

TEST_CASE("patterns side by side share what they both cross and nothing else") {
  // Rings of four ranks on a star, whose ports are all that is shared: others' ranks do not matter, the same do.
  const Fabric star = star_fabric(8, bandwidth, Seconds(0));
  const auto among = [](int first) {
    CollectiveRequest r = request(CollectiveKind::all_reduce, 4, 4'000'000);
    r.group = Group::strided(Rank(static_cast<std::uint32_t>(first)), 1, 4);
    return make_pattern(r, options("ring")).value();
  };
  const std::vector<Pattern> apart{among(0), among(4)};
  const std::vector<Estimate> both = estimate(star, apart);
  CHECK(both[0].total.count() == Approx(total(star, apart[0])));
  CHECK_FALSE(both[0].shared);

  const std::vector<Pattern> overlapping{among(0), among(0), among(4)};
  const std::vector<Estimate> three = estimate(star, overlapping);
  CHECK(three[0].total.count() == Approx(2 * both[0].total.count()));
  CHECK(three[1].total.count() == Approx(2 * both[0].total.count()));
  CHECK(three[2].total.count() == Approx(both[0].total.count()));
  CHECK(three[0].shared);
  CHECK_FALSE(three[2].shared);
}

TEST_CASE("phases add up") {
  const Fabric star = star_fabric(8, bandwidth, Seconds(1e-6));
  for (const AlgorithmInfo& a : algorithms())
    for (const CollectiveKind kind : a.kinds) {
      const Estimate e = estimate(star, pattern(kind, 8, 1'000'000, a.name, 2, 2));
      Seconds sum{};
      for (const PhaseEstimate& phase : e.phases) {
        CHECK(phase.time == std::max(phase.by_rounds, phase.by_load));
        sum += phase.time;
      }
      CHECK(e.total == sum);
    }
}

TEST_CASE("a group of one and no bytes cost nothing but latency") {
  const Fabric star = star_fabric(4, bandwidth, Seconds(0));
  for (const AlgorithmInfo& a : algorithms())
    for (const CollectiveKind kind : a.kinds) {
      CHECK(total(star, pattern(kind, 1, 1000, a.name)) == 0);
      CHECK(total(star, pattern(kind, 4, 0, a.name)) == 0);
    }
}

TEST_CASE("more bandwidth and less latency never cost time") {
  for (const AlgorithmInfo& a : algorithms())
    for (const CollectiveKind kind : a.kinds)
      for (const int k : {3, 8}) {
        const Pattern p = pattern(kind, k, 1'000'000, a.name, 3);
        const double base = total(star_fabric(k, bandwidth, Seconds(1e-6)), p);
        CHECK(total(star_fabric(k, bandwidth * 2.0, Seconds(1e-6)), p) <= base);
        CHECK(total(star_fabric(k, bandwidth, Seconds(0)), p) <= base);
      }
}

TEST_CASE("a large ring is a matter of its ranks, not of its messages") {
  // 8190 rounds of 4096 messages of 4096 chunks would be 1.4e11 messages.
  const Fabric ring = ring_fabric(4096, bandwidth, Seconds(1e-6));
  const Estimate e = estimate(ring, pattern(CollectiveKind::all_reduce, 4096, 1 << 30, "ring", 4096));
  const double chunk = (1 << 30) / 4096.0 / rate;
  CHECK(e.total.count() == Approx(8189 * std::max(chunk, chunk / 4096 + 1e-6) + chunk + 1e-6).epsilon(1e-12));
}
