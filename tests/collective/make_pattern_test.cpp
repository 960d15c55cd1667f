// Requests become patterns that conserve bytes, or diagnostics that name the value and the remedy.
#include <catch2/catch.hpp>

#include "support/patterns.hpp"

using namespace collcast;
using namespace collcast::test;
using enum CollectiveKind;

namespace {

std::string refusal(const CollectiveRequest& r, const CollectiveOptions& o) {
  const auto pattern = make_pattern(r, o);
  REQUIRE_FALSE(pattern.ok());
  return to_text(pattern.errors());
}

bool contains(const std::string& text, const std::string& part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

// Bytes that any algorithm must put on the wire at least; k ranks, N bytes.
double least_bytes(CollectiveKind kind, double k, double n) {
  switch (kind) {
    case broadcast:
    case reduce:
      return (k - 1) * n;
    case all_reduce:
      return 2 * (k - 1) * n;  // every part leaves k-1 ranks and comes to k-1
    case all_gather:
      return (k - 1) * n;  // k parts of N/k to k-1 ranks each
    case reduce_scatter:
      return (k - 1) * n;
    case alltoall:
      return k * (k - 1) / k * n;  // each rank sends N/k to k-1 others
    case gather:
    case scatter:
      return (k - 1) / k * n;
    case sendrecv:
      return k * n;
  }
  return 0;
}

}  // namespace

TEST_CASE("traffic counts every send of every round, whatever the flow") {
  for (const AlgorithmInfo& algorithm : algorithms())
    for (const CollectiveKind kind : algorithm.kinds)
      for (const int k : {2, 5, 8}) {
        const Pattern p = make_pattern(request(kind, k, 1 << 20), options(algorithm.name, 3)).value();
        std::int64_t messages = 0;
        Volume bytes{};
        for (const Lane& lane : p.lanes)
          for (const Phase& phase : lane.phases)
            for (Position v = 0; v < p.size(); ++v)
              for (int j = 0; j < phase.shape->sends(phase, v); ++j) {
                messages += p.chunks;
                bytes += lane.block * static_cast<double>(phase.shape->send(phase, v, j).blocks);
              }
        INFO(algorithm.name << ' ' << to_string(kind) << ' ' << k);
        CHECK(traffic(p).messages == messages);
        CHECK(traffic(p).bytes.value() == Approx(bytes.value()).epsilon(1e-12));
      }
}

TEST_CASE("names go both ways") {
  for (const std::string& name : collective_names()) CHECK(to_string(*parse_collective(name)) == name);
  CHECK(collective_names().size() == static_cast<std::size_t>(collective_kinds));
  CHECK_FALSE(parse_collective("all-reduce").has_value());
}

TEST_CASE("algorithms have different names, and every kind one that makes no assumptions") {
  std::vector<std::string> names;
  for (const AlgorithmInfo& a : algorithms()) names.push_back(a.name);
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  for (int kind = 0; kind < collective_kinds; ++kind)
    CHECK(make_pattern(request(static_cast<CollectiveKind>(kind), 5, 100), options("direct")).ok());
}

TEST_CASE("the lanes of a pattern share the data equally") {
  for (const AlgorithmInfo& a : algorithms())
    for (const CollectiveKind kind : a.kinds)
      for (const int channels : {1, 3}) {
        const Pattern p =
            make_pattern(request(kind, 6, 1 << 20), options(a.name, 1, channels, node_blocks(2, 3))).value();
        double bytes = 0;
        // Routes count the channels of the first lane plan, then those of the next.
        const int plans = static_cast<int>(p.lanes.size()) / channels;
        for (const Lane& lane : p.lanes) {
          bytes += lane.block.value() * lane.blocks;
          CHECK(lane.block.value() * lane.blocks == Approx(p.lanes[0].block.value() * p.lanes[0].blocks));
          const int index = static_cast<int>(&lane - p.lanes.data());
          CHECK(lane.route_lane == index % plans * channels + index / plans);
        }
        // alltoall and sendrecv count every rank's buffer, the others the one buffer.
        const double whole = (kind == alltoall || kind == sendrecv ? 6.0 : 1.0) * (1 << 20);
        CHECK(bytes == Approx(whole).epsilon(1e-12));
      }
}

TEST_CASE("no algorithm sends less than the collective needs, and lean ones send just that") {
  for (const AlgorithmInfo& a : algorithms())
    for (const CollectiveKind kind : a.kinds)
      for (const int k : {1, 2, 3, 6, 8}) {
        const Pattern p = make_pattern(request(kind, k, 4800), options(a.name, 3)).value();
        const double sent = traffic(p).bytes.value();
        const double least = least_bytes(kind, k, k == 1 && kind == sendrecv ? 0 : 4800);
        INFO(a.name << " " << to_string(kind) << " k=" << k);
        CHECK(sent >= least * (1 - 1e-12));
        const bool lean = a.name == "ring" || a.name == "bidirectional_ring" || a.name == "direct";
        if (lean) CHECK(sent == Approx(least).epsilon(1e-12));
      }
}

TEST_CASE("a group of one has no hops") {
  for (const AlgorithmInfo& a : algorithms())
    for (const CollectiveKind kind : a.kinds) {
      const Pattern p = make_pattern(request(kind, 1, 100), options(a.name)).value();
      CHECK(traffic(p).messages == 0);
      CHECK(p.lanes[0].phases.empty());
    }
}

TEST_CASE("zero bytes still make a pattern") {
  const Pattern p = make_pattern(request(all_reduce, 4, 0), options("ring")).value();
  CHECK(traffic(p).messages == 4 * 6);
  CHECK(traffic(p).bytes == Volume(0));
}

TEST_CASE("a ring all-reduce is one circulating phase of 2(k-1) rounds of N/(kS)") {
  const Pattern p = make_pattern(request(all_reduce, 8, 1 << 20), options("ring", 4)).value();
  REQUIRE(p.lanes.size() == 1);
  REQUIRE(p.lanes[0].phases.size() == 1);
  const Phase& phase = p.lanes[0].phases[0];
  CHECK(phase.flow == Flow::circulating);
  CHECK(phase.rounds == 14);
  CHECK(p.message(p.lanes[0], phase.shape->send(phase, 0, 0)) == Volume((1 << 20) / 8.0 / 4.0));
}

TEST_CASE("unknown names and kinds that an algorithm does not do are refused with the right words") {
  CHECK(contains(refusal(request(broadcast, 4, 1), options("rign")), "did you mean 'ring'?"));
  const std::string text = refusal(request(alltoall, 4, 1), options("ring"));
  CHECK(contains(text, "'ring' does not do alltoall"));
  CHECK(contains(text, "recursive_doubling, hierarchical, direct, naive"));
}

TEST_CASE("everything wrong with a request is said at once") {
  CollectiveRequest r = request(broadcast, 4, -1, 7);
  r.group = Group::listed({Rank(3), Rank(1), Rank(3)});
  CollectiveOptions o = options("ring", 0, 0, {0, 0});
  const std::string text = refusal(r, o);
  for (const char* part : {"rank 3 is in the group twice", "root 7 is not in a group of 3", "size -1 B is negative",
                           "chunks 0 is too few", "channels 0 is too few", "nodes are given for 2 of 3 ranks"})
    CHECK(contains(text, part));
  CHECK(contains(refusal(request(all_reduce, 0, 1), options("ring")), "the group has no ranks"));
  CollectiveRequest same = request(all_reduce, 2, 1);
  same.group = Group::strided(Rank(5), 0, 2);
  CHECK(contains(refusal(same, options("ring")), "rank 5 is in the group twice"));
  CHECK(contains(refusal(request(alltoall, 50'000, 1), options("direct")), "at most 46340"));
}

TEST_CASE("hierarchical says how nodes are unequal") {
  CHECK(contains(refusal(request(all_reduce, 5, 1), options("hierarchical", 1, 1, {0, 0, 0, 1, 1})),
                 "nodes hold from 2 to 3 ranks"));
  CHECK(contains(refusal(request(all_reduce, 4, 1), options("hierarchical", 1, 1, {0, 1, 0, 1})),
                 "not next to each other"));
}

TEST_CASE("bus factors are those of nccl-tests") {
  CHECK(bus_factor(all_reduce, 8) == Approx(14.0 / 8));
  CHECK(bus_factor(all_gather, 8) == Approx(7.0 / 8));
  CHECK(bus_factor(reduce_scatter, 8) == Approx(7.0 / 8));
  CHECK(bus_factor(alltoall, 8) == Approx(7.0 / 8));
  CHECK(bus_factor(gather, 8) == Approx(7.0 / 8));
  CHECK(bus_factor(broadcast, 8) == 1);
  CHECK(bus_factor(sendrecv, 8) == 1);
  CHECK(bus_weight(all_reduce) == 2.0);
  CHECK(bus_weight(scatter) == 1.0);
  CHECK_FALSE(bus_weight(reduce));
}

TEST_CASE("what is summed up, and what has a root") {
  for (int k = 0; k < collective_kinds; ++k) {
    const auto kind = static_cast<CollectiveKind>(k);
    CAPTURE(to_string(kind));
    CHECK(reduces(kind) == (kind == all_reduce || kind == reduce || kind == reduce_scatter));
    CHECK(is_rooted(kind) == (kind == broadcast || kind == reduce || kind == gather || kind == scatter));
  }
}
