// How far calls of a chain follow one another, against kernels that run one by one.
#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <random>

#include "machines.hpp"
#include "nccl/chain_waits.hpp"
#include "nccl/limits.hpp"
#include "nccl/run_constants.hpp"

using namespace collcast;
using nccl::Algorithm;
using nccl::Communicator;
using nccl::Plan;
using nccl::Protocol;

namespace {

using ChannelWays = std::vector<std::vector<int>>;

/// Loops around the nodes per call, of calls one after the other: a rank's kernel begins when its last one has ended,
/// and ends when data have passed it in every channel. A hop between nodes takes 1, one inside next to nothing.
double loops_by_kernels(const ChannelWays& orders, int root, int nodes) {
  constexpr int calls = 240, settled = 120;  // loops of up to five calls
  constexpr double inside = 1e-6;
  const int gpus = static_cast<int>(orders.front().size());
  ChannelWays chains;
  for (const std::vector<int>& order : orders) {
    std::vector<int> chain;
    for (int node = 0; node < nodes; ++node)
      for (const int gpu : order) chain.push_back(node * gpus + gpu);
    std::rotate(chain.begin(), std::ranges::find(chain, root), chain.end());
    chains.push_back(std::move(chain));
  }
  std::vector<double> ended(static_cast<std::size_t>(nodes * gpus), 0);
  double before = 0;
  for (int call = 0; call < calls; ++call) {
    std::vector<double> ends = ended;
    for (const std::vector<int>& chain : chains) {
      double passed = 0;
      int last = chain.front();
      for (const int rank : chain) {
        const auto at = static_cast<std::size_t>(rank);
        passed = std::max(ended[at], passed + (rank / gpus == last / gpus ? inside : 1));
        ends[at] = std::max(ends[at], passed);
        last = rank;
      }
    }
    ended = std::move(ends);
    if (call + 1 == settled) before = std::ranges::max(ended);
  }
  return (std::ranges::max(ended) - before) / (calls - settled) / nodes;
}

/// The same by what each channel's order says, once all are running.
double waited(const ChannelWays& orders, int root) { return nccl::chain_waits(orders, root).back(); }

/// Of a broadcast of so many bytes under LL.
double time_us(const Communicator& c, std::int64_t size) {
  return test::us(test::ran(c, CollectiveKind::broadcast, size, Algorithm::ring, Protocol::ll).time());
}

}  // namespace

TEST_CASE("calls of a chain wait as kernels that run one by one: every pair of orders of four GPUs") {
  std::vector<int> one{0, 1, 2, 3}, other = one;
  do {
    CAPTURE(test::words(other));
    for (const int root : {0, 2}) {
      const double loops = waited({one, other}, root);
      CHECK(loops_by_kernels({one, other}, root, 12) == Approx(loops).margin(0.01));
    }
  } while (std::next_permutation(other.begin(), other.end()));
}

TEST_CASE("calls of a chain wait as kernels that run one by one: orders of up to five channels by chance") {
  std::mt19937 random(7);
  for (int i = 0; i < 150; ++i) {
    std::vector<int> order(2 + random() % 4);
    std::iota(order.begin(), order.end(), 0);
    const int root = static_cast<int>(random() % order.size());
    ChannelWays orders;
    const std::size_t channels = 1 + random() % 5;
    while (orders.size() < channels) {
      if (i % 2 == 0)
        std::ranges::shuffle(order, random);
      else
        std::rotate(order.begin(), order.begin() + 1, order.end());
      orders.push_back(order);
      CAPTURE(i, root, orders.size());
      CHECK(loops_by_kernels(orders, root, 12) == Approx(waited(orders, root)).margin(0.01));
    }
  }
}

TEST_CASE("of m rotations of an order m - 1 loops take m calls, wherever the root is") {
  std::vector<int> order{0, 1, 2, 3, 4, 5, 6, 7};
  ChannelWays orders;
  for (int m = 1; m <= 8; ++m) {
    orders.push_back(order);
    std::rotate(order.begin(), order.begin() + 1, order.end());
    for (int root = 0; root < 8; ++root) CHECK(waited(orders, root) == Approx((m - 1.0) / m));
  }
  // Channels on one order wait for nothing, nor does a channel of one GPU.
  CHECK(waited({{0, 1, 2}, {0, 1, 2}}, 1) == 0);
  CHECK(waited({{3}, {3}}, 3) == 0);
}

TEST_CASE("a few bytes beyond whole slots make no chain and no tree quicker") {
  // Eight bytes of each channel more are a chunk of their own, behind whole ones; what goes around is a whole one.
  for (const char* machine : {"aws-p4d", "dgx-h100"})
    for (const auto& [kind, algorithm] : {std::pair(CollectiveKind::broadcast, Algorithm::ring),
                                          std::pair(CollectiveKind::all_reduce, Algorithm::tree)})
      for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
        const Communicator c =
            test::communicator(machine, 4, 0, test::environment({{"NCCL_PROTO", "LL,LL128,Simple"}}));
        const Plan plan = test::planned_as(c, kind, Bytes(1 << 28), algorithm, protocol);
        const auto slot = static_cast<std::int64_t>(nccl::slot(c.environment, protocol));
        CAPTURE(machine, to_string(kind), static_cast<int>(protocol), plan.channels, slot);
        for (const int slots : {1, 2, 8, 32}) {
          const Bytes whole(plan.channels * slot * slots), more(whole.value() + 8 * plan.channels);
          CHECK(nccl::run(c, kind, more, plan).time() >= nccl::run(c, kind, whole, plan).time());
        }
      }
}

TEST_CASE("a chain shows its way where its channels pass the GPUs in unlike orders") {
  const auto latency = [](int nodes, std::int64_t size, Protocol p, int channels) {
    const Communicator c = test::communicator("abci-v100", nodes);
    Plan plan = test::planned_as(c, CollectiveKind::broadcast, Bytes(size), Algorithm::ring, p);
    plan.channels = channels;
    return test::us(nccl::run(c, CollectiveKind::broadcast, Bytes(size), plan).latency);
  };
  // One channel: a call's way is hidden behind the others, however long it is.
  for (const Protocol p : {Protocol::ll, Protocol::simple}) {
    CHECK(latency(8, 1 << 20, p, 1) == Approx(latency(4, 1 << 20, p, 1)));
    CHECK(latency(1, 1 << 20, p, 2) == Approx(latency(1, 1 << 20, p, 1)));
    CHECK(latency(8, 1 << 20, p, 2) > 1.9 * latency(4, 1 << 20, p, 2));
  }
}

TEST_CASE("calls of a chain wait by the orders of the root's node, whichever of the nodes that is") {
  const Fabric fabric = test::built("dgx-h100", 2);
  const auto waits = [&](const std::vector<int>& ranks) {
    std::vector<Rank> group;
    for (const int rank : ranks) group.emplace_back(static_cast<std::uint32_t>(rank));
    const Result<Communicator> c = nccl::connect(fabric, Group::listed(std::move(group)));
    REQUIRE(c);
    return c->chain_waits;
  };
  // Mirror images of each other; and a node's ranks in whatever order.
  CHECK(waits({0, 1, 2, 3, 12, 13, 14, 15}) == waits({12, 13, 14, 15, 0, 1, 2, 3}));
  CHECK(waits({4, 5, 6, 7, 8, 9, 10, 11}) == waits({8, 9, 10, 11, 4, 5, 6, 7}));
  CHECK(waits({8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3}).back() > 0.5);
  CHECK(waits({15, 8, 9, 10, 11, 12, 13, 14, 0, 1, 2, 3}).back() > 0.5);
}

TEST_CASE("a chain of LL over nodes takes what V100 with InfiniBand took, on one channel and on several") {
  // Published [validation/data/nccl-tests/abci-v100-8x4-broadcast.csv, -32x4-]: 8 nodes of 4 and 32, on one channel
  // up to 128 and 512 KiB, on two one size on, and on four from there.
  const Communicator few = test::communicator("abci-v100", 8), many = test::communicator("abci-v100", 32);
  const auto time = [](const Communicator& c, std::int64_t size) { return time_us(c, size << 10); };
  CHECK(time(few, 128) == Approx(57.6).epsilon(0.1));
  CHECK(time(few, 256) == Approx(142).epsilon(0.1));
  CHECK(time(few, 1024) == Approx(230).epsilon(0.15));
  CHECK(time(many, 64) == Approx(135).epsilon(0.1));
  CHECK(time(many, 512) == Approx(210).epsilon(0.1));
  CHECK(time(many, 1024) == Approx(541).epsilon(0.1));
}

TEST_CASE("a chain's block with few threads takes a pass for every 8 bytes of each") {
  const Communicator c = test::communicator("abci-v100", 8);
  // 32 ranks: 64 threads up to 16 KiB, then 128 of 32 KiB.
  const auto time = [&](std::int64_t size) { return time_us(c, size); };
  CHECK(time(16 << 10) - time(8 << 10) == Approx(16 * nccl::fitted::ll_pass[0]).epsilon(0.01));
  CHECK(time(32 << 10) == Approx(time(16 << 10)).epsilon(0.01));
}
