// On the teaching ring: chunked broadcast takes N(S+k-2)/(S*B), all-reduce 2(k-1)/k*N/B, naive broadcast
// (k-1)N/B, whatever k and S, by closed form to 1e-12 and by simulation to the engine's round-ups.
#include <catch2/catch.hpp>

#include <random>

#include "agreement/answers.hpp"
#include "support/small_fabrics.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

constexpr double rate = 10e9;                         // B, bytes/s
constexpr std::int64_t size = std::int64_t{1} << 30;  // N = 1 GiB
constexpr double n = static_cast<double>(size);

double broadcast_time(int k, int chunks) { return n * (chunks + k - 2.0) / (chunks * rate); }
double all_reduce_time(int k) { return 2.0 * (k - 1) / k * n / rate; }

Pattern ring(CollectiveKind kind, int k, int chunks) {
  return make_pattern(request(kind, k, size), options("ring", chunks)).value();
}

void check_estimate(const Fabric& fabric, const Pattern& pattern, double expected) {
  const Estimate e = estimate(fabric, pattern);
  INFO("k=" << pattern.size() << " S=" << pattern.chunks);
  CHECK_FALSE(e.shared);
  CHECK(std::abs(e.total.count() - expected) <= 1e-12 * expected);
}

void check_simulation(const Fabric& fabric, const Pattern& pattern, double expected) {
  const double simulated = to_seconds(simulate(fabric, pattern).value().finish).count();
  INFO("k=" << pattern.size() << " S=" << pattern.chunks);
  CHECK(simulated >= expected * (1 - 1e-12));
  CHECK(simulated <= expected * (1 + 1e-12) + 2e-12 * longest_way(pattern));
  CHECK(to_seconds(recurrence(fabric, pattern).value().finish).count() == simulated);
}

Fabric ring_of(int k) { return ring_fabric(k, Bandwidth(rate), Seconds(0)); }

}  // namespace

TEST_CASE("ring broadcast on the teaching ring, closed form") {
  for (int k = 2; k <= 512; k < 20 ? ++k : k += 41) {
    const Fabric fabric = ring_of(k);
    for (int chunks = 1; chunks <= 4096; chunks = chunks < 8 ? chunks + 1 : chunks * 3 / 2)
      check_estimate(fabric, ring(CollectiveKind::broadcast, k, chunks), broadcast_time(k, chunks));
  }
}

TEST_CASE("ring all-reduce on the teaching ring, closed form") {
  // Without latency a rank's link is busy all the time: chunks change nothing.
  for (int k = 2; k <= 512; k < 20 ? ++k : k += 41) {
    const Fabric fabric = ring_of(k);
    for (const int chunks : {1, 3, 64, 4096})
      check_estimate(fabric, ring(CollectiveKind::all_reduce, k, chunks), all_reduce_time(k));
  }
}

TEST_CASE("both on the teaching ring, simulated") {
  for (const int k : {2, 3, 5, 8, 17, 64}) {
    const Fabric fabric = ring_of(k);
    for (const int chunks : {1, 2, 7, 64}) {
      check_simulation(fabric, ring(CollectiveKind::broadcast, k, chunks), broadcast_time(k, chunks));
      check_simulation(fabric, ring(CollectiveKind::all_reduce, k, chunks), all_reduce_time(k));
    }
  }
}

TEST_CASE("both on the teaching ring, simulated, sampled up to k = 512 and S = 4096") {
  const unsigned seed = 512'4096;
  std::mt19937 random(seed);
  for (int sample = 0; sample < 12; ++sample) {
    const int k = 2 + static_cast<int>(random() % 511);
    const int chunks = 1 + static_cast<int>(random() % (sample < 10 ? 200 : 4096));
    INFO("seed " << seed);
    check_simulation(ring_of(k), ring(CollectiveKind::broadcast, k, chunks), broadcast_time(k, chunks));
  }
}

// Takes over a minute: run by the ctest agreement_long (preset long); the samples above run always.
TEST_CASE("every k and S of the teaching ring", "[.][long]") {
  for (int k = 2; k <= 512; ++k) {
    const Fabric fabric = ring_of(k);
    for (int chunks = 1; chunks <= 4096; ++chunks)
      check_estimate(fabric, ring(CollectiveKind::broadcast, k, chunks), broadcast_time(k, chunks));
    check_estimate(fabric, ring(CollectiveKind::all_reduce, k, 1), all_reduce_time(k));
    for (const int chunks : {1, 2, 3, 16, 255, 4096})
      check_simulation(fabric, ring(CollectiveKind::broadcast, k, chunks), broadcast_time(k, chunks));
  }
}

TEST_CASE("naive broadcast takes (k-1)N/B where the root has one link") {
  for (const int k : {2, 3, 4, 9, 33, 100}) {
    const Fabric star = star_fabric(k, Bandwidth(rate), Seconds(0));
    const Pattern pattern = make_pattern(request(CollectiveKind::broadcast, k, size), options("naive")).value();
    check_estimate(star, pattern, (k - 1) * n / rate);
    check_simulation(star, pattern, (k - 1) * n / rate);
  }
}

TEST_CASE("with latency a chunked broadcast pays it once per hop") {
  // N(S+k-2)/(S*B) + (k-1)*alpha: the latency of one chunk hides behind the next.
  const double alpha = 2e-6;
  for (const int k : {2, 5, 16})
    for (const int chunks : {1, 4, 100}) {
      const Fabric fabric = ring_fabric(k, Bandwidth(rate), Seconds(alpha));
      const Pattern pattern = ring(CollectiveKind::broadcast, k, chunks);
      check_estimate(fabric, pattern, broadcast_time(k, chunks) + (k - 1) * alpha);
      check_simulation(fabric, pattern, broadcast_time(k, chunks) + (k - 1) * alpha);
    }
}

TEST_CASE("with latency a ring all-reduce waits for it unless chunks fill the wait") {
  // R = 2(k-1) rounds of c chunks: (R-1)*max(c*tau, tau+alpha) + c*tau + alpha; here k = 4, N/k/B = 1 us, alpha = 3 us.
  const Fabric fabric = ring_fabric(4, Bandwidth(1e9), Seconds(3e-6));
  const auto time = [&](int chunks) {
    const Pattern p = make_pattern(request(CollectiveKind::all_reduce, 4, 4000), options("ring", chunks)).value();
    const double simulated = to_seconds(simulate(fabric, p).value().finish).count();
    CHECK(estimate(fabric, p).total.count() == Approx(simulated).epsilon(1e-9));
    return simulated;
  };
  CHECK(time(1) == Approx(5 * 4e-6 + 4e-6).epsilon(1e-9));     // tau = 1 us, tau+alpha = 4 us
  CHECK(time(4) == Approx(5 * 3.25e-6 + 4e-6).epsilon(1e-9));  // tau = 0.25 us: each round waits 3.25 us
}
