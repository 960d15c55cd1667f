// A pattern spelled out: as many messages and bytes as the pattern says, and the order that its flow says.
#include <catch2/catch.hpp>

#include <algorithm>

#include "collcast/schedule/schedule.hpp"
#include "support/small_shapes.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

Traffic transfers_of(const Schedule& s) {
  Traffic total;
  for (std::uint32_t i = 0; i < s.size(); ++i)
    if (const auto* transfer = std::get_if<Transfer>(&s.work(OpId(i)))) {
      ++total.messages;
      total.bytes += transfer->size;
    }
  return total;
}

/// The transfers from `from` to `to`, in the order they were added.
std::vector<OpId> messages(const Schedule& s, std::uint32_t from, std::uint32_t to) {
  std::vector<OpId> found;
  for (std::uint32_t i = 0; i < s.size(); ++i)
    if (const auto* transfer = std::get_if<Transfer>(&s.work(OpId(i))))
      if (transfer->from == Rank(from) && transfer->to == Rank(to)) found.emplace_back(i);
  return found;
}

bool waits(const Schedule& s, OpId op, OpId for_op, Until until) {
  return std::ranges::any_of(s.after(op), [&](const After& e) { return e.op == for_op && e.until == until; });
}

}  // namespace

TEST_CASE("traffic counts every chunk of every hop") {
  // Ring all-reduce, k = 5, 3 chunks: 2(k-1) = 8 rounds of 5 sends of 3 chunks = 120 messages;
  // 8 rounds * 5 sends of N/5 = 8 N.
  const Traffic ring = traffic(ring_all_reduce(5, Volume(1000), 3));
  CHECK(ring.messages == 120);
  CHECK(ring.bytes.value() == Approx(8000));
  // Chain, k = 4, 7 chunks: 3 sends of 7 chunks, N each.
  const Traffic chain = traffic(chain_broadcast(4, Volume(70), 7));
  CHECK(chain.messages == 21);
  CHECK(chain.bytes.value() == Approx(210));
  CHECK(traffic(pattern_of(3, {}, Volume(1))).messages == 0);
}

TEST_CASE("append puts on the wire what the pattern says") {
  for (const int k : {1, 2, 3, 6, 8})
    for (const int chunks : {1, 2, 5}) {
      std::vector<Pattern> patterns{ring_all_reduce(k, Volume(1000), chunks), chain_broadcast(k, Volume(1000), chunks)};
      for (const Flow flow : {Flow::sequential, Flow::concurrent, Flow::forwarding})
        patterns.push_back(pattern_of(k, {phase_of(everyone_shape, flow, k)}, Volume(3), chunks));
      patterns.push_back(
          pattern_of(k, {phase_of(tree_up_shape, Flow::forwarding, k), phase_of(tree_down_shape, Flow::forwarding, k)},
                     Volume(9), chunks));
      for (const Pattern& pattern : patterns) {
        Schedule s;
        const std::vector<OpId> joins = append(s, pattern);
        CAPTURE(k, chunks, pattern.algorithm);
        CHECK(joins.size() == static_cast<std::size_t>(k));
        CHECK(transfers_of(s).messages == traffic(pattern).messages);
        CHECK(transfers_of(s).bytes.value() == Approx(traffic(pattern).bytes.value()));
      }
    }
}

TEST_CASE("circulating: in turn on the own link, and after the same chunk of the round before") {
  Schedule s;
  append(s, ring_all_reduce(3, Volume(30), 2));
  // (v, j, i) = message j*2 + i from v to v+1.
  const auto mine = messages(s, 1, 2), received = messages(s, 0, 1);
  REQUIRE(mine.size() == 8);
  CHECK(waits(s, mine[1], mine[0], Until::left));
  CHECK(waits(s, mine[4], mine[3], Until::left));
  CHECK(waits(s, mine[4], received[2], Until::finished));  // j=2, i=0 after receive 1, chunk 0
  CHECK(waits(s, mine[5], received[3], Until::finished));
  CHECK_FALSE(waits(s, mine[1], received[1], Until::finished));
}

TEST_CASE("forwarding: a chunk goes on when it has arrived, to one peer after the other") {
  Schedule s;
  append(s, pattern_of(4, {phase_of(tree_down_shape, Flow::forwarding, 4)}, Volume(8), 2));
  // Round 0: 0 -> 1. Round 1: 0 -> 2, 1 -> 3.
  const auto first = messages(s, 0, 1), second = messages(s, 0, 2), third = messages(s, 1, 3);
  CHECK(waits(s, first[1], first[0], Until::left));
  CHECK(waits(s, second[0], first[0], Until::left));
  CHECK(waits(s, second[1], second[0], Until::left));
  CHECK(waits(s, second[1], first[1], Until::left));
  CHECK(waits(s, third[0], first[0], Until::finished));
  CHECK(waits(s, third[1], first[1], Until::finished));
}

TEST_CASE("sequential sends wait for their turn only, concurrent ones for the chunk before only") {
  Schedule in_turn, at_once;
  append(in_turn, pattern_of(3, {phase_of(fan_out_shape, Flow::sequential, 3)}, Volume(8), 2));
  append(at_once, pattern_of(3, {phase_of(fan_out_shape, Flow::concurrent, 3)}, Volume(8), 2));
  CHECK(waits(in_turn, messages(in_turn, 0, 2)[0], messages(in_turn, 0, 1)[1], Until::left));
  CHECK_FALSE(waits(at_once, messages(at_once, 0, 2)[0], messages(at_once, 0, 1)[1], Until::left));
  CHECK(waits(at_once, messages(at_once, 0, 2)[1], messages(at_once, 0, 2)[0], Until::left));
}

TEST_CASE("a position enters the next phase when its sends have left and its receives have arrived") {
  Schedule s;
  const std::vector<OpId> ready{s.add(Delay{}), s.add(Delay{})};
  append(s, pattern_of(2, {ring_phase(2, 1), ring_phase(2, 1)}, Volume(8)), ready);
  const auto out = messages(s, 0, 1), in = messages(s, 1, 0);
  CHECK(waits(s, out[0], ready[0], Until::finished));
  REQUIRE(s.after(out[1]).size() == 1);
  const OpId barrier = s.after(out[1])[0].op;
  CHECK(waits(s, barrier, out[0], Until::left));
  CHECK(waits(s, barrier, in[0], Until::finished));
  CHECK(waits(s, barrier, ready[0], Until::finished));
}

TEST_CASE("lanes map positions to participants by their order") {
  Pattern pattern = chain_broadcast(3, Volume(6));
  pattern.group = Group::strided(Rank(10), 10, 3);
  pattern.lanes[0].order = {2, 0, 1};
  pattern.lanes[0].route_lane = 4;
  Schedule s;
  append(s, pattern, {}, 7);
  REQUIRE(messages(s, 30, 10).size() == 1);
  REQUIRE(messages(s, 10, 20).size() == 1);
  const Transfer transfer = std::get<Transfer>(s.work(messages(s, 30, 10)[0]));
  CHECK(transfer.lane == 4);
  CHECK(transfer.traffic.priority == 7);
}
