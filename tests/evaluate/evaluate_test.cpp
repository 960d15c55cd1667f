// Choosing by closed form, and the two answers behind one type.
#include "collcast/evaluate/evaluate.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "agreement/answers.hpp"
#include "collcast/evaluate/passed_over.hpp"
#include "collcast/evaluate/prepared.hpp"
#include "support/small_fabrics.hpp"

using namespace collcast;
using namespace collcast::test;
using enum CollectiveKind;

namespace {

const Bandwidth bandwidth(10e9);
Fabric two_nodes() { return cluster_fabric(2, 4, Bandwidth(300e9), Bandwidth(25e9), Seconds(1e-6)); }

CollectiveRequest among(CollectiveKind kind, std::vector<std::uint32_t> ranks, std::int64_t bytes) {
  std::vector<Rank> group;
  for (const std::uint32_t r : ranks) group.push_back(Rank(r));
  return {kind, Group::listed(group), Bytes(bytes), 0, {}};
}

std::string refusal(const Fabric& fabric, const CollectiveRequest& r, const CollectivePolicy& policy) {
  const auto choices = choose(fabric, r, policy);
  REQUIRE_FALSE(choices.ok());
  return to_text(choices.errors());
}

}  // namespace

TEST_CASE("auto picks the fastest closed form and keeps the others in order") {
  const Fabric fabric = two_nodes();
  const auto choices = choose(fabric, request(all_reduce, 8, 64 << 20), {}).value();
  const auto able = std::count_if(algorithms().begin(), algorithms().end(), [](const AlgorithmInfo& a) {
    return std::find(a.kinds.begin(), a.kinds.end(), all_reduce) != a.kinds.end();
  });
  REQUIRE(static_cast<std::ptrdiff_t>(choices.size()) == able);
  for (std::size_t i = 1; i < choices.size(); ++i)
    CHECK(choices[i - 1].estimate.total <= choices[i].estimate.total * (1 + 1e-6));  // equal to rounding: as listed
  for (const Choice& c : choices) {
    CHECK(estimate(fabric, c.pattern).total == c.estimate.total);
    CHECK(c.pattern.chunks == c.options.chunks);
    CHECK(c.pattern.algorithm == c.options.algorithm);
  }
}

TEST_CASE("large messages go for bandwidth, small ones for latency") {
  const Fabric star = star_fabric(16, bandwidth, Seconds(5e-6));
  const auto winner = [&](std::int64_t bytes) {
    return choose(star, request(all_reduce, 16, bytes), {}).value().front();
  };
  // 1 GiB: nobody can beat 2(k-1)/k*N/B; 8 bytes: direct pays latency twice, a ring 30 times.
  CHECK(winner(1 << 30).estimate.total.count() == Approx(2.0 * 15 / 16 * (1 << 30) / 10e9).epsilon(0.02));
  CHECK(winner(8).estimate.total < Seconds(25e-6));
}

TEST_CASE("of equal closed forms naive is the last to be picked") {
  // Among the GPUs of one switch every-to-every takes the same time in turn and all at once.
  const Fabric star = star_fabric(8, bandwidth, Seconds(0));
  for (const CollectiveKind kind : {all_gather, reduce_scatter, alltoall}) {
    const CollectiveRequest r = request(kind, 8, 1 << 20);
    const auto choices = choose(star, r, {}).value();
    CHECK(choices.front().options.algorithm != "naive");
    CHECK(fastest(star, r, {}).value().options.algorithm == choices.front().options.algorithm);
    const auto naive =
        std::find_if(choices.begin(), choices.end(), [](const Choice& c) { return c.options.algorithm == "naive"; });
    REQUIRE(naive != choices.end());
    CHECK(naive->estimate.total.count() == Approx(choices.front().estimate.total.count()).epsilon(1e-9));
  }
}

TEST_CASE("a named algorithm is the only choice") {
  const auto choices = choose(two_nodes(), request(all_reduce, 8, 1 << 20), {"ring", 3, 2}).value();
  REQUIRE(choices.size() == 1);
  CHECK(choices[0].options.chunks == 3);
  CHECK(choices[0].options.channels == 2);
  CHECK(choices[0].options.node_of == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1});
}

TEST_CASE("rings across nodes get a channel per NIC, inside a node one") {
  const Fabric fabric = two_nodes();
  const auto channels = [&](const CollectiveRequest& r, const char* algorithm) {
    return choose(fabric, r, {algorithm, 1, 0}).value().front().options.channels;
  };
  CHECK(channels(request(all_reduce, 8, 1 << 20), "ring") == 4);
  CHECK(channels(request(all_reduce, 4, 1 << 20), "ring") == 1);           // one node
  CHECK(channels(among(all_reduce, {0, 1, 4, 5}, 1 << 20), "ring") == 2);  // two ranks of each node
  CHECK(channels(among(all_reduce, {0, 1, 2, 4}, 1 << 20), "ring") == 1);  // one rank of node 1
  CHECK(channels(request(all_reduce, 8, 1 << 20), "hierarchical") == 1);   // uses every NIC anyway
}

TEST_CASE("channels let a ring use all NICs") {
  // One channel leaves a node by one NIC of 25 GB/s, four by four.
  const Fabric fabric = two_nodes();
  const CollectiveRequest r = request(all_reduce, 8, 256 << 20);
  const double one = choose(fabric, r, {"ring", 0, 1}).value().front().estimate.total.count();
  const double four = choose(fabric, r, {"ring", 0, 4}).value().front().estimate.total.count();
  CHECK(one / four == Approx(4).epsilon(0.05));
  const double simulated = by_simulation(fabric, {"ring", 0, 4})(r).value().count();
  CHECK(four / simulated == Approx(1).epsilon(0.05));
}

TEST_CASE("auto chunks are the smallest power of two within 1 % of the limit") {
  // Chain of k = 8: T(S) = N(S+6)/(S*B), N/B*(1+6/4096) at S = 4096; within 1 % of that from S = 522.7 on.
  const Fabric ring = ring_fabric(8, bandwidth, Seconds(0));
  CHECK(choose(ring, request(broadcast, 8, 1 << 30), {"ring", 0, 1}).value().front().options.chunks == 1024);
  // Without latency chunks do nothing for a circulating ring, and nothing for direct.
  CHECK(choose(ring, request(all_reduce, 8, 1 << 30), {"ring", 0, 1}).value().front().options.chunks == 1);
  CHECK(choose(ring, request(all_reduce, 8, 1 << 30), {"direct", 0, 1}).value().front().options.chunks == 1);
}

TEST_CASE("auto chunks are the smallest power of two within 1 % of the least of a curve that may rise again") {
  const auto grid = [](std::vector<int> dims, int ranks) {
    return teaching_fabric(ranks, TorusNetwork{std::move(dims), false, bandwidth, Seconds(5e-6)});
  };
  // In one piece 474 us, in 2 and 4 434 us, in 4096 479 us; the simulation is the same.
  const Fabric line = grid({13}, 13), mesh = grid({4, 4}, 16), nodes = two_nodes();
  const CollectiveRequest tree = request(broadcast, 13, 1 << 20);
  CHECK(choose(line, tree, {"tree", 0, 1}).value().front().options.chunks == 2);
  int curves = 0, rising = 0;
  for (const Fabric* fabric : {&line, &mesh, &nodes})
    for (const CollectiveKind kind : {broadcast, all_reduce, all_gather, reduce_scatter})
      for (const int ranks : {3, 6, 8, 13})
        for (const std::int64_t bytes : {37 << 10, 1 << 20, 256 << 20}) {
          if (ranks > fabric->rank_count()) continue;
          for (const Choice& c : choose(*fabric, request(kind, ranks, bytes), {"auto", 0, 1}).value()) {
            const std::vector<ChunkPoint> curve = chunk_curve(*fabric, request(kind, ranks, bytes), c.options);
            const auto info = std::ranges::find(algorithms(), c.options.algorithm, &AlgorithmInfo::name);
            if (curve.empty() || !info->chunked) continue;
            const Seconds limit = std::ranges::min(curve, {}, &ChunkPoint::time).time * 1.01;
            const auto best = std::ranges::find_if(curve, [&](const ChunkPoint& p) { return p.time <= limit; });
            INFO(c.options.algorithm << ", " << to_string(kind) << " of " << bytes << " among " << ranks);
            ++curves;
            if (curve.back().time > limit) ++rising;
            CHECK(c.options.chunks == best->chunks);
          }
        }
  CHECK(curves > 200);
  CHECK(rising > 10);
}

TEST_CASE("where all messages begin at once one number of chunks is looked at") {
  // hierarchical among 256 nodes of one GPU: 256 * 255 messages at once. A closed form looks at each twice and asks
  // every 2^15 whether to go on: three times. Blocks of 1 MiB can be in 13 numbers of chunks, five of which are tried
  // where it matters.
  const Fabric fabric = star_fabric(256, bandwidth, Seconds(1e-6));
  const CollectiveRequest exchange = request(alltoall, 256, 256 << 20);
  const auto of = [](int chunks) { return CollectivePolicy{.algorithm = "hierarchical", .chunks = chunks}; };
  int asked = 0;
  const GoesOn count([&asked] { return ++asked > 0; });
  const PreparedCollective any = PreparedCollective::make(fabric, exchange, of(0)).value();
  const Choice best = any.fastest(exchange.size, count).value();
  CHECK(asked == 2 * 256 * 255 / (1 << 15));
  CHECK(best.options.chunks == 1);
  // No number of them is better: (k-1)N/(k beta) + 2 alpha of the switch's two links.
  const double t = 255.0 / 256 * (256 << 20) / 10e9 + 2e-6;
  for (const int chunks : {1, 2, 64, 4096}) {
    const PreparedCollective named = PreparedCollective::make(fabric, exchange, of(chunks)).value();
    CHECK(named.fastest(exchange.size).estimate.total.count() == Approx(t).epsilon(1e-12));
  }
}

TEST_CASE("the chunk curve falls from one chunk to 4096") {
  const Fabric ring = ring_fabric(8, bandwidth, Seconds(1e-6));
  const auto curve = chunk_curve(ring, request(broadcast, 8, 1 << 30), options("ring"));
  REQUIRE(curve.size() == 13);
  for (std::size_t i = 0; i < curve.size(); ++i) {
    const double chunks = 1 << i;
    CHECK(curve[i].chunks == 1 << i);
    CHECK(curve[i].time.count() == Approx((1 << 30) * (chunks + 6) / (chunks * 10e9) + 7e-6).epsilon(1e-12));
  }
  CHECK(chunk_curve(ring, request(alltoall, 8, 1), options("ring")).empty());
}

TEST_CASE("auto weighs rings of a thousand ranks and passes over what is too much to look at") {
  const Fabric star = star_fabric(2100, bandwidth, Seconds(1e-6));
  std::vector<std::string> names;
  const auto choices = choose(star, request(all_gather, 2100, 1 << 20), {}).value();
  for (const Choice& c : choices) names.push_back(c.options.algorithm);
  const auto weighed = [&names](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  CHECK(weighed("ring"));
  CHECK(weighed("recursive_doubling"));
  CHECK_FALSE(weighed("direct"));  // 2100*2099 hops of two links
  CHECK_FALSE(weighed("naive"));
}

TEST_CASE("both answers agree where nothing is shared") {
  const Fabric ring = ring_fabric(6, bandwidth, Seconds(2e-6));
  for (const char* algorithm : {"ring", "naive"})
    for (const CollectiveKind kind : {broadcast, all_reduce}) {
      if (algorithm == std::string("naive") && kind == all_reduce) continue;  // its fan-in shares links
      const CollectivePolicy policy{algorithm, 0, 0};
      const CollectiveRequest r = request(kind, 6, 6'000'000);
      CHECK(by_estimate(ring, policy)(r).value().count() ==
            Approx(by_simulation(ring, policy)(r).value().count()).epsilon(1e-6));
    }
}

TEST_CASE("a group of one, or no bytes, takes no time") {
  const Fabric star = star_fabric(4, bandwidth, Seconds(1e-6));
  for (const CollectiveTime& time : {by_estimate(star, {}), by_simulation(star, {})}) {
    CHECK(time(request(all_reduce, 1, 1 << 20)).value() == Seconds(0));
    CHECK(time(request(all_reduce, 4, 0)).value() == Seconds(0));
  }
}

TEST_CASE("groups alongside slow a group down in both answers") {
  // Rings of two ranks, one on each node: on rails of their own, or twice the same.
  const Fabric fabric = cluster_fabric(2, 4, Bandwidth(300e9), Bandwidth(25e9), Seconds(0));
  CollectiveRequest r = among(all_reduce, {0, 4}, 100'000'000);
  const CollectivePolicy ring{"ring", 1, 1};
  const double alone = by_estimate(fabric, ring)(r).value().count();
  CHECK(alone == Approx(100e6 / 25e9));  // 2(k-1)/k*N/B, k = 2
  r.alongside = {among(all_reduce, {1, 5}, 1).group};
  CHECK(by_estimate(fabric, ring)(r).value().count() == Approx(alone));  // another rail
  CHECK(by_simulation(fabric, ring)(r).value().count() == Approx(alone));
  r.alongside = {r.group};
  CHECK(by_estimate(fabric, ring)(r).value().count() == Approx(2 * alone));
  CHECK(by_simulation(fabric, ring)(r).value().count() == Approx(2 * alone));
}

TEST_CASE("a memory asks once per different question") {
  int asked = 0;
  const CollectiveTime time = memoized([&asked](const CollectiveRequest& r) -> Result<Seconds> {
    ++asked;
    return Seconds(static_cast<double>(r.size.value()));
  });
  CollectiveRequest r = request(all_reduce, 4, 10);
  for (int i = 0; i < 3; ++i) CHECK(time(r).value() == Seconds(10));
  CHECK(asked == 1);
  r.size = Bytes(11);
  CHECK(time(r).value() == Seconds(11));
  r.alongside = {Group::strided(Rank(4), 1, 4)};
  CHECK(time(r).value() == Seconds(11));
  r.group = Group::listed({Rank(0), Rank(2), Rank(1), Rank(3)});
  CHECK(time(r).value() == Seconds(11));
  r.root = 1;
  CHECK(time(r).value() == Seconds(11));
  CHECK(asked == 5);
}

TEST_CASE("a memory answers several threads at once") {
  const CollectiveTime time = memoized(
      [](const CollectiveRequest& r) -> Result<Seconds> { return Seconds(static_cast<double>(r.size.value())); });
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int size = 1; size <= 1000; ++size)
        if (time(request(all_reduce, 4, size)).value() != Seconds(size)) ++wrong;
    });
  for (std::thread& one : threads) one.join();
  CHECK(wrong == 0);
}

TEST_CASE("what cannot be done is said") {
  const Fabric star = star_fabric(4, bandwidth, Seconds(0));
  CHECK(refusal(star, request(all_reduce, 5, 1), {}).find("rank 4 is not in a machine of 4 ranks") !=
        std::string::npos);
  CHECK(refusal(star, request(alltoall, 4, 1), {"ring", 0, 0}).find("does not do alltoall") != std::string::npos);
  CHECK(refusal(star, request(broadcast, 4, 1, 9), {}).find("root 9") != std::string::npos);
  CHECK(refusal(star, request(broadcast, 4, 1), {"rnig", 0, 0}).find("did you mean 'ring'") != std::string::npos);
}

TEST_CASE("auto passes over algorithms that do not suit the group") {
  const Fabric fabric = two_nodes();
  const auto choices = choose(fabric, among(all_reduce, {0, 1, 2, 4}, 1000), {}).value();
  REQUIRE_FALSE(choices.empty());
  for (const Choice& c : choices) CHECK(c.options.algorithm != "hierarchical");
}

TEST_CASE("near candidates of approximate closed form are told apart by simulation") {
  // Tree and double tree of 4 chunks on a star share ports; the ring has its own and is exact.
  const Fabric star = star_fabric(16, bandwidth, Seconds(1e-6));
  for (const std::int64_t bytes : {1 << 10, 1 << 20, 1 << 28}) {
    const CollectiveRequest r = request(all_reduce, 16, bytes);
    std::vector<Choice> choices = choose(star, r, {}).value();
    const Seconds best = choices.front().estimate.total;
    CHECK(prefer_simulated(star, choices).empty());
    for (const Choice& c : choices) {
      if (c.simulated) {
        CHECK(c.estimate.shared);
        CHECK(c.estimate.total <= best * 1.25);
        CHECK(*c.simulated == to_seconds(simulate(star, c.pattern).value().finish));
      }
      if (c.estimate.total <= best * 1.25) CHECK(choices.front().time() <= c.time() * (1 + 1e-6));
    }
  }
}

TEST_CASE("whatever the closed form says, what auto picks is not slower in the simulation than what it passes over") {
  // Naive every-to-every across nodes takes up to four times its estimate.
  const Fabric nodes = cluster_fabric(3, 8, Bandwidth(450e9), Bandwidth(50e9), Seconds(1e-6));
  for (const CollectiveKind kind : {alltoall, all_gather, reduce_scatter})
    for (const std::int64_t bytes : {1LL << 10, 1'000'000LL, 64LL << 20}) {
      std::vector<Choice> choices = choose(nodes, request(kind, 24, bytes), {}).value();
      REQUIRE(prefer_simulated(nodes, choices).empty());
      for (const Choice& c : choices) {
        INFO(c.options.algorithm << " " << bytes);
        const Seconds simulated = to_seconds(simulate(nodes, c.pattern).value().finish);
        if (c.estimate.exact() || c.simulated) CHECK(choices.front().time() <= simulated * (1 + 1e-6));
        if (c.estimate.total < choices.front().time()) CHECK((c.estimate.exact() || c.simulated.has_value()));
      }
    }
}

TEST_CASE("a lone candidate is not simulated") {
  const Fabric star = star_fabric(16, bandwidth, Seconds(1e-6));
  std::vector<Choice> one = choose(star, request(all_reduce, 16, 1 << 20), {"tree", 4, 1}).value();
  CHECK(prefer_simulated(star, one).empty());
  CHECK_FALSE(one.front().simulated.has_value());
}

TEST_CASE("more than can be looked at is refused, with what to do") {
  const Fabric star = star_fabric(12000, bandwidth, Seconds(1e-6));
  const std::string text = refusal(star, request(alltoall, 12000, 1 << 20), {"direct", 1, 1});
  CHECK(text.find("direct among 12000 ranks here crosses 287976000 links") != std::string::npos);  // 12000*11999*2
  CHECK(text.find("another algorithm") != std::string::npos);
  CHECK(choose(star, request(all_gather, 12000, 1 << 20), {"ring", 1, 1}).ok());
}

TEST_CASE("hops that wait for each other, and every number of chunks tried, count as work") {
  // 2^18 ranks that double in 18 steps: 18 x 2^18 hops over 2 links each, and 12 links more for every hop.
  const int ranks = 1 << 18;
  const std::string tried = refusal(star_fabric(ranks, bandwidth, Seconds(1e-6)), request(all_reduce, ranks, 1 << 20),
                                    {"recursive_doubling", 0, 1});
  INFO(tried);
  CHECK(tried.find("crosses 9437184 links in 4718592 hops that wait for each other") != std::string::npos);
  CHECK(tried.find("5 numbers of chunks: the work of 330301440 links") != std::string::npos);
  CHECK(tried.find("a number of chunks") != std::string::npos);
}

TEST_CASE("long routes count: on a ring of 2000 ranks an every-to-every is too much, a ring is not") {
  const Fabric ring = ring_fabric(2000, bandwidth, Seconds(1e-6));
  CHECK(refusal(ring, request(alltoall, 2000, 1 << 20), {"direct", 1, 1}).find("links") != std::string::npos);
  CHECK(choose(ring, request(all_gather, 2000, 1 << 20), {"ring", 1, 1}).ok());
  const auto choices = choose(ring, request(all_gather, 2000, 1 << 20), {}).value();
  CHECK(std::none_of(choices.begin(), choices.end(), [](const Choice& c) { return c.options.algorithm == "direct"; }));
}

TEST_CASE("what takes more memory than there is fails before it begins, and is not simulated to choose") {
  const Fabric star = star_fabric(64, bandwidth, Seconds(1e-6));
  const CollectiveRequest r = request(all_reduce, 64, 1 << 20);
  // 64 connections over two links each are some kilobytes, and not one.
  EngineOptions small, enough;
  small.memory = Bytes(1024);
  enough.memory = Bytes(std::int64_t{1} << 30);
  std::vector<Choice> within = choose(star, r, {}).value(), beyond = within;
  REQUIRE(prefer_simulated(star, within, enough).empty());
  REQUIRE(prefer_simulated(star, beyond, small).empty());
  const auto simulated = [](const Choice& c) { return c.simulated.has_value(); };
  CHECK(std::any_of(within.begin(), within.end(), simulated));
  CHECK(std::none_of(beyond.begin(), beyond.end(), simulated));
  const auto shared = std::find_if(within.begin(), within.end(), simulated);
  const Result<SimulatedTime> refused = simulated_time(star, shared->pattern, small);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.errors().front().where.file == "memory");
  CHECK(refused.errors().front().message.find("more than the 1 KiB that there is room for") != std::string::npos);
  const std::vector<Pattern> two{shared->pattern, shared->pattern};
  CHECK_FALSE(simulate_together(star, two, small).ok());
  CHECK(simulated_time(star, shared->pattern, enough)->time == *shared->simulated);
}

TEST_CASE("what auto did not look at is named, and with what it looked at it is all that the group can do") {
  struct Sample {
    Fabric fabric;
    int ranks;
  };
  std::vector<Sample> samples;
  for (const int ranks : {16, 600, 2100}) samples.push_back({star_fabric(ranks, bandwidth, Seconds(1e-6)), ranks});
  std::size_t named = 0;
  for (const Sample& s : samples)
    for (const CollectiveKind kind : {alltoall, all_gather, all_reduce, broadcast}) {
      const CollectiveRequest r = request(kind, s.ranks, 1 << 20);
      std::vector<std::string> seen, able;
      for (const Choice& c : choose(s.fabric, r, {}).value()) seen.push_back(c.options.algorithm);
      for (const PassedOver& one : passed_over_by_auto(s.fabric, r, {})) {
        INFO(one.algorithm << " among " << s.ranks);
        CHECK((one.links > 1 << 23 && one.by_name == (one.links <= 1 << 28)));
        seen.push_back(one.algorithm);
        ++named;
      }
      CollectiveOptions options;
      for (const AlgorithmInfo& info : algorithms()) {
        options.algorithm = info.name;
        if (std::ranges::count(info.kinds, kind) == 1 && make_pattern(r, options).ok()) able.push_back(info.name);
      }
      std::ranges::sort(seen);
      std::ranges::sort(able);
      CHECK(seen == able);
    }
  CHECK(named > 0);
  const CollectiveRequest large = request(alltoall, 2100, 1 << 20);
  CHECK(to_text(passed_over_by_auto(samples.back().fabric, large, {})).find("--algorithm direct") != std::string::npos);
  CHECK(passed_over_by_auto(samples.back().fabric, large, {"direct"}).empty());
  CHECK(to_text(passed_over_by_auto(samples.front().fabric, request(alltoall, 16, 1 << 20), {})).empty());
}
