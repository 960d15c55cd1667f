// A ring of hops coming round, against small cases solved by hand.
#include "cost/round_trip.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace collcast;

TEST_CASE("equal hops circulate for (R-1)max(c*tau, tau+alpha) + c*tau + alpha") {
  for (const auto& [tau, alpha, chunks] : {std::tuple{1.0, 0.0, 1}, {1.0, 0.0, 4}, {1.0, 10.0, 4}, {1.0, 2.0, 4}}) {
    RoundTrip trip;
    for (Position v = 0; v < 3; ++v) trip.add({v, (v + 1) % 3, tau, tau, alpha});
    CHECK(trip.time(5, chunks) == Approx(4 * std::max(chunks * tau, tau + alpha) + chunks * tau + alpha));
  }
}

TEST_CASE("one slow hop of a ring paces it, one far hop delays it once a turn") {
  RoundTrip slow, far;
  for (Position v = 0; v < 3; ++v) {
    const double tau = v == 1 ? 10 : 1;
    slow.add({v, (v + 1) % 3, tau, tau, 0});
    far.add({v, (v + 1) % 3, 1, 1, v == 1 ? 9.0 : 0.0});
  }
  CHECK(slow.time(5, 1) == 50);  // all five rounds at the slow hop
  CHECK(far.time(5, 1) == 23);   // five hops around: 10 twice, 1 three times
}

TEST_CASE("equal hops that share a link do so in every round, unequal ones only where that paces them") {
  // Alone a chunk takes 1, beside another ring's 2; alpha 3. Five rounds in step: 5*(2+3).
  RoundTrip step, drift;
  for (Position v = 0; v < 3; ++v) step.add({v, (v + 1) % 3, 2, 1, 3});
  CHECK(step.time(5, 1) == 25);
  // With one hop further away (alpha 9) the rings drift apart: five hops around are 10, 4, 4, 10, 4.
  for (Position v = 0; v < 3; ++v) drift.add({v, (v + 1) % 3, 2, 1, v == 0 ? 9.0 : 3.0});
  CHECK(drift.time(5, 1) == 32);
}

TEST_CASE("hops that do not close to a ring are walked to their end") {
  RoundTrip trip;
  trip.add({0, 1, 1, 1, 1});
  trip.add({1, 2, 2, 2, 1});
  // stay at 1: 4*2+1; walk both: 2+3
  CHECK(trip.time(4, 1) == 9);
}
