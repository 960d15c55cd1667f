// The times of flows along their dependencies, against small cases solved by hand.
#include "cost/flow_time.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace collcast;

namespace {

// Three positions in a row: 0 -> 1 -> 2.
const Shape row{"row", [](const Phase&, Position v) { return v < 2 ? 1 : 0; },
                [](const Phase&, Position v) { return v > 0 ? 1 : 0; },
                [](const Phase&, Position v, int) {
                  return Hop{v, v + 1, 0, v, 1};
                },
                [](const Phase&, Position, int, std::vector<Piece>&) {}};

Phase phase(Flow flow, int rounds) {
  Phase p;
  p.shape = &row;
  p.flow = flow;
  p.rounds = rounds;
  return p;
}

// Completion of the last chunk of a row of hops, chunk by chunk: the recurrence that ForwardingTime solves.
double row_by_recurrence(const std::vector<double>& tau, double alpha, int chunks) {
  std::vector<double> left(tau.size(), 0.0);
  double arrived = 0;
  for (int i = 0; i < chunks; ++i) {
    arrived = 0;
    for (std::size_t h = 0; h < tau.size(); ++h) {
      left[h] = std::max(left[h], arrived) + tau[h];
      arrived = left[h] + alpha;
    }
  }
  return arrived;
}

}  // namespace

TEST_CASE("a forwarded row is paced by its slowest hop, wherever that is") {
  for (const auto& [first, second] : {std::pair{1.0, 5.0}, {5.0, 1.0}, {3.0, 3.0}})
    for (const int chunks : {1, 2, 9}) {
      ForwardingTime time(phase(Flow::forwarding, 2), 3, chunks);
      CHECK(time.add({0, {0, 1, 0, 0, 1}, first, 0.5}) == 0);
      CHECK(time.add({1, {1, 2, 0, 1, 1}, second, 0.5}) == first + 0.5);
      // sum (tau+alpha) + (c-1) max tau
      CHECK(time.time() == Approx(first + second + 1 + (chunks - 1) * 5.0 * (first + second == 6 && first != second) +
                                  (chunks - 1) * 3.0 * (first == second)));
      CHECK(time.time() == Approx(row_by_recurrence({first, second}, 0.5, chunks)));
    }
}

TEST_CASE("the slowest hop counts only on ways that pass it") {
  // 0 -> 1 takes 10 and ends there; 0 then sends to 2 for 1. With 3 chunks: hop 0's chunks leave at 10, 20, 30 and
  // hop 1's at 11, 21, 31.
  ForwardingTime time(phase(Flow::forwarding, 2), 3, 3);
  time.add({0, {0, 1, 0, 0, 1}, 10, 0});
  CHECK(time.time() == 30);
  time.add({0, {1, 2, 0, 0, 1}, 1, 0});
  CHECK(time.time() == 31);
}

TEST_CASE("equal hops circulate for (R-1)max(c*tau, tau+alpha) + c*tau + alpha") {
  for (const auto& [tau, alpha, chunks] : {std::tuple{1.0, 0.0, 1}, {1.0, 0.0, 4}, {1.0, 10.0, 4}, {1.0, 2.0, 4}}) {
    CirculatingTime time(phase(Flow::circulating, 5), 3, chunks);
    for (Position v = 0; v < 3; ++v) time.add({v, {0, (v + 1) % 3, 0, 0, 1}, tau, alpha});
    CHECK(time.time() == Approx(4 * std::max(chunks * tau, tau + alpha) + chunks * tau + alpha));
  }
}

TEST_CASE("one slow hop of a ring paces it, one far hop delays it once a turn") {
  CirculatingTime slow(phase(Flow::circulating, 5), 3, 1);
  CirculatingTime far(phase(Flow::circulating, 5), 3, 1);
  for (Position v = 0; v < 3; ++v) {
    slow.add({v, {0, (v + 1) % 3, 0, 0, 1}, v == 1 ? 10.0 : 1.0, 0});
    far.add({v, {0, (v + 1) % 3, 0, 0, 1}, 1.0, v == 1 ? 9.0 : 0.0});
  }
  CHECK(slow.time() == 50);  // all five rounds at the slow hop
  CHECK(far.time() == 23);   // five hops around: 10 twice, 1 three times
}

TEST_CASE("hops that do not close to a ring are walked to their end") {
  CirculatingTime time(phase(Flow::circulating, 4), 3, 1);
  time.add({0, {0, 1, 0, 0, 1}, 1, 1});
  time.add({1, {0, 2, 0, 0, 1}, 2, 1});
  // stay at 1: 4*2+1; walk both: 2+3
  CHECK(time.time() == 9);
}

TEST_CASE("sequential senders add up their own messages only") {
  SequentialTime time(2, 3);
  CHECK(time.add({0, {0, 1, 0, 0, 1}, 2, 1}) == 0);
  CHECK(time.add({0, {1, 1, 0, 0, 1}, 4, 1}) == 6);
  CHECK(time.add({1, {0, 0, 0, 0, 1}, 5, 1}) == 0);
  CHECK(time.time() == 19);  // 3*2 + 3*4 + 1
}

TEST_CASE("concurrent messages take as long as the longest") {
  ConcurrentTime time(2);
  time.add({0, {0, 1, 0, 0, 1}, 2, 7});
  time.add({0, {0, 2, 0, 0, 1}, 4, 1});
  CHECK(time.time() == 11);  // 2*2+7 and 2*4+1
}
