// Algorithms that are spelled out: right ones are proved, one step changed is refused with its place.
#include "collcast/collective/msccl.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <tuple>

#include "../support/msccl_samples.hpp"
#include "collective/msccl_clock.hpp"

using namespace collcast;
using namespace collcast::msccl;

namespace {

std::string first_error(const msccl::Algorithm& a, Bytes size = Bytes(1024), int root = 0) {
  const auto proof = prove(a, size, root);
  return proof ? std::string() : proof.errors().front().message;
}

Step& step_of(msccl::Algorithm& a, int gpu, int block, int step) {
  return a.gpus[static_cast<std::size_t>(gpu)]
      .blocks[static_cast<std::size_t>(block)]
      .steps[static_cast<std::size_t>(step)];
}

std::vector<msccl::Algorithm> samples() {
  return {test::msccl_ring_all_gather(4), test::msccl_ring_all_reduce(4), test::msccl_ring_all_reduce(3, 2),
          test::msccl_chain_broadcast(4, 2), test::msccl_direct_alltoall(4)};
}

std::vector<StepRef> steps_of(const msccl::Algorithm& a) {
  std::vector<StepRef> out;
  for (int g = 0; g < static_cast<int>(a.gpus.size()); ++g) {
    const auto& blocks = a.gpus[static_cast<std::size_t>(g)].blocks;
    for (int b = 0; b < static_cast<int>(blocks.size()); ++b)
      for (int s = 0; s < static_cast<int>(blocks[static_cast<std::size_t>(b)].steps.size()); ++s)
        out.push_back({g, b, s});
  }
  return out;
}

/// The sample with one step changed, for every step.
template <class Change>
void each_changed(const Change& change) {
  for (const msccl::Algorithm& sample : samples())
    for (const StepRef& ref : steps_of(sample)) {
      msccl::Algorithm changed = sample;
      if (!change(changed, ref)) continue;
      INFO(sample.name << " " << to_string(sample.kind) << ", rank " << ref.gpu << " block " << ref.block << " step "
                       << ref.step);
      CHECK_FALSE(prove(changed, Bytes(4096)).ok());
    }
}

}  // namespace

TEST_CASE("rings, chains and every-to-every are proved for any number of ranks") {
  for (int k = 2; k <= 17; ++k) {
    CHECK(first_error(test::msccl_ring_all_gather(k)).empty());
    CHECK(first_error(test::msccl_ring_all_reduce(k)).empty());
    CHECK(first_error(test::msccl_ring_all_reduce(k, 3)).empty());
    CHECK(first_error(test::msccl_chain_broadcast(k, 5)).empty());
    CHECK(first_error(test::msccl_direct_alltoall(k)).empty());
  }
}

TEST_CASE("the proof's order has every step once, after what it waits for") {
  for (const msccl::Algorithm& a : samples()) {
    const auto order = prove(a, Bytes(64));
    REQUIRE(order.ok());
    CHECK(order->size() == steps_of(a).size());
    std::set<std::tuple<int, int, int>> done;
    for (const StepRef& ref : *order) {
      msccl::Algorithm copy = a;
      const Step& step = step_of(copy, ref.gpu, ref.block, ref.step);
      CHECK((ref.step == 0 || done.contains({ref.gpu, ref.block, ref.step - 1})));
      CHECK((step.after_block < 0 || done.contains({ref.gpu, step.after_block, step.after_step})));
      CHECK(done.emplace(ref.gpu, ref.block, ref.step).second);
    }
  }
}

TEST_CASE("a step left out is refused") {
  each_changed([](msccl::Algorithm& a, const StepRef& ref) {
    auto& steps = a.gpus[static_cast<std::size_t>(ref.gpu)].blocks[static_cast<std::size_t>(ref.block)].steps;
    steps.erase(steps.begin() + ref.step);
    return true;
  });
}

TEST_CASE("a step that becomes a wait is refused") {
  each_changed([](msccl::Algorithm& a, const StepRef& ref) {
    step_of(a, ref.gpu, ref.block, ref.step).kind = StepKind::nop;
    return true;
  });
}

TEST_CASE("a step that reads or writes another chunk is refused") {
  for (const bool source : {true, false})
    each_changed([&](msccl::Algorithm& a, const StepRef& ref) {
      Step& step = step_of(a, ref.gpu, ref.block, ref.step);
      using enum StepKind;
      const bool reads = step.kind == send || step.kind == copy || reduces(step.kind);
      const bool writes = step.kind != send && step.kind != receive_reduce_send;
      if (source ? !reads : !writes) return false;
      Place& place = source ? step.source : step.destination;
      const int length = a.gpus[static_cast<std::size_t>(ref.gpu)].output;
      place.offset =
          place.buffer == Buffer::input && a.kind == CollectiveKind::all_gather ? 1 : (place.offset + 1) % length;
      return true;
    });
}

TEST_CASE("sums that become copies, and copies that become sums, are refused") {
  each_changed([](msccl::Algorithm& a, const StepRef& ref) {
    Step& step = step_of(a, ref.gpu, ref.block, ref.step);
    using enum StepKind;
    if (step.kind == receive_reduce_send || step.kind == receive_reduce_copy_send)
      step.kind = receive_copy_send;
    else if (step.kind == receive_copy_send && a.kind == CollectiveKind::all_reduce)
      step.kind = receive_reduce_copy_send;
    else
      return false;
    return true;
  });
}

TEST_CASE("without the wait for what it sends on, nothing orders a chain's thread blocks") {
  msccl::Algorithm a = test::msccl_chain_broadcast(4, 2);
  step_of(a, 1, 1, 1).after_block = -1;
  step_of(a, 1, 1, 1).where = {"a.xml", 7, 3};
  const auto proof = prove(a, Bytes(64));
  REQUIRE_FALSE(proof.ok());
  CHECK(to_text(proof.errors()).find("a.xml:7:3: error: rank 1, thread block 1, step 1 ") == 0);
  // The later wait alone orders the earlier chunk too.
  msccl::Algorithm b = test::msccl_chain_broadcast(4, 2);
  step_of(b, 1, 1, 0).after_step = 1;
  CHECK(prove(b, Bytes(64)).ok());
}

TEST_CASE("a race is named with its bytes, chunks in a row once, and what else is wrong beside it") {
  // 64 bytes in two chunks: thread block 1 of rank 1 sends on what thread block 0 receives.
  msccl::Algorithm a = test::msccl_chain_broadcast(4, 2);
  step_of(a, 1, 1, 1).after_block = -1;
  const auto race = prove(a, Bytes(64));
  REQUIRE_FALSE(race.ok());
  CHECK(race.errors().size() == 1);
  CHECK_THAT(race.errors()[0].message, Catch::StartsWith("rank 1, thread block 1, step 1 touches chunk 1 of ") &&
                                           Catch::Contains("(bytes 32 to 63) and nothing orders it"));
  // Both chunks in one step, and the last rank lets the second one go.
  msccl::Algorithm b = test::msccl_chain_broadcast(4, 2);
  for (Gpu& gpu : b.gpus)
    for (ThreadBlock& block : gpu.blocks) {
      block.steps.pop_back();
      block.steps[0].count = 2;
    }
  REQUIRE(prove(b, Bytes(64)).ok());
  step_of(b, 1, 1, 0).after_block = -1;
  step_of(b, 2, 1, 0).after_block = -1;
  Step& last = step_of(b, 3, 0, 0);
  last.destination.buffer = Buffer::scratch;
  b.gpus[3].scratch = 2;
  const auto both = prove(b, Bytes(64));
  REQUIRE_FALSE(both.ok());
  REQUIRE(both.errors().size() == 3);
  for (const int rank : {1, 2})
    CHECK_THAT(
        both.errors()[static_cast<std::size_t>(rank - 1)].message,
        Catch::StartsWith("rank " + std::to_string(rank) + ", thread block 1, step 0 touches chunks 0 to 1 of ") &&
            Catch::Contains("(bytes 0 to 63) and nothing orders it"));
  CHECK_THAT(both.errors()[2].message, Catch::StartsWith("rank 3 ends with nothing in its output's chunks 0 to 1"));
}

TEST_CASE("an order by messages over other ranks counts") {
  // Rank 0 sends its chunk, rank 1 answers, and only then another thread block of rank 0 overwrites it.
  msccl::Algorithm a = test::msccl_direct_alltoall(2);
  REQUIRE(prove(a, Bytes(64)).ok());
  Gpu& gpu = a.gpus[0];
  gpu.scratch = 1;
  ThreadBlock late;
  late.steps.push_back({StepKind::copy, {Buffer::input, 0}, {Buffer::input, 1}, 1, 1, 1, {}});
  gpu.blocks.push_back(late);
  CHECK(prove(a, Bytes(64)).ok());
  a.gpus[0].blocks.back().steps[0].after_block = -1;
  CHECK(first_error(a).find("nothing orders it") != std::string::npos);
}

TEST_CASE("what a rank lacks is said with its bytes") {
  msccl::Algorithm a = test::msccl_ring_all_gather(4);
  for (Gpu& gpu : a.gpus) gpu.blocks[0].steps.erase(gpu.blocks[0].steps.begin());  // the copy of its own chunk
  const auto proof = prove(a, Bytes(1000));
  REQUIRE_FALSE(proof.ok());
  CHECK(proof.errors().size() == 4);
  CHECK(proof.errors()[2].message == "rank 2 ends with nothing in its output's chunk 2 (bytes 500 to 749 of 1000 B)");
}

TEST_CASE("a contribution that is added twice is named with its bytes") {
  // Four chunks of 1000 bytes, 250 each.
  int twice = 0;
  const msccl::Algorithm sample = test::msccl_ring_all_reduce(4);
  for (const StepRef& ref : steps_of(sample)) {
    msccl::Algorithm changed = sample;
    Step& step = step_of(changed, ref.gpu, ref.block, ref.step);
    if (step.kind != StepKind::receive_copy_send) continue;
    step.kind = StepKind::receive_reduce_copy_send;
    const auto proof = prove(changed, Bytes(1000));
    REQUIRE_FALSE(proof.ok());
    const std::string& message = proof.errors()[0].message;
    INFO(message);
    bool named = false;
    for (int chunk = 0; chunk < 4; ++chunk)
      named =
          named || message.ends_with("(its chunk " + std::to_string(chunk) + ", bytes " + std::to_string(250 * chunk) +
                                     " to " + std::to_string(250 * chunk + 249) + " of 1000 B) twice");
    CHECK(named);
    ++twice;
  }
  CHECK(twice > 0);
}

TEST_CASE("waits in a circle and messages for nobody are named") {
  msccl::Algorithm a = test::msccl_chain_broadcast(3, 1);
  step_of(a, 1, 0, 0).after_block = 1, step_of(a, 1, 0, 0).after_step = 0;
  CHECK(first_error(a) == "rank 1, thread block 0, step 0 never runs: it waits for step 0 of thread block 1");
  msccl::Algorithm b = test::msccl_chain_broadcast(2, 2);
  b.gpus[1].blocks[0].steps.pop_back();
  CHECK(first_error(b) == "rank 0 sends this to rank 1 on channel 0 and nobody receives it");
  msccl::Algorithm c = test::msccl_chain_broadcast(2, 2);
  step_of(c, 0, 0, 0).count = 2;
  CHECK(first_error(c) == "rank 1, thread block 0, step 0 receives 1 chunks, and rank 0 sends 2");
}

TEST_CASE("peers, waits and chunks that are not there are refused before anything runs") {
  const auto changed = [](auto change) {
    msccl::Algorithm a = test::msccl_ring_all_reduce(3);
    change(a);
    return first_error(a);
  };
  CHECK(changed([](msccl::Algorithm& a) { a.gpus[0].blocks[0].send = 0; }) == "send of a thread block of rank 0 is 0");
  CHECK(changed([](msccl::Algorithm& a) { a.gpus[0].blocks[0].receive = 3; }) ==
        "recv of a thread block of rank 0 is 3");
  CHECK(changed([](msccl::Algorithm& a) { a.gpus[0].blocks[0].send = -1; }) == "'s' in a thread block without send");
  CHECK(changed([](msccl::Algorithm& a) { a.gpus[0].blocks[0].receive = -1; }) ==
        "'rrs' in a thread block without recv");
  CHECK(changed([](msccl::Algorithm& a) { a.gpus[0].blocks.push_back(a.gpus[0].blocks[0]); }) ==
        "send 1 on channel 0 twice in rank 0");
  CHECK(changed([](msccl::Algorithm& a) { step_of(a, 0, 0, 0).source.offset = 3; }) ==
        "srcoff 3 with cnt 1 is outside the input buffer");
  CHECK(changed([](msccl::Algorithm& a) { step_of(a, 0, 0, 3).destination.offset = -1; }) ==
        "dstoff -1 with cnt 1 is outside the input buffer");
  CHECK(changed([](msccl::Algorithm& a) { step_of(a, 0, 0, 0).after_block = 1; }) ==
        "depid is 1, and the rank has 1 thread blocks");
  CHECK(changed([](msccl::Algorithm& a) { step_of(a, 0, 0, 0).after_block = 0, step_of(a, 0, 0, 0).after_step = 9; }) ==
        "deps is 9, and thread block 0 has 5 steps");
  CHECK(changed([](msccl::Algorithm& a) { a.kind = CollectiveKind::all_gather, a.chunks = 4; }) ==
        "4 chunks are no multiple of the 3 parts that all_gather has");
  CHECK(first_error(test::msccl_chain_broadcast(3, 1), Bytes(8), 3) == "root 3 is not among 3 ranks");
  CHECK_FALSE(first_error(test::msccl_chain_broadcast(3, 1), Bytes(8), 1).empty());
}

TEST_CASE("bytes that are sent are the collective's, whatever the loops") {
  const auto sent = [](const msccl::Algorithm& a, int loops) {
    REQUIRE(prove(a, Bytes(1 << 20)).ok());
    const SpelledOut all =
        spell_out(a, Group::strided(Rank(0), 1, static_cast<int>(a.gpus.size())), Bytes(1 << 20), loops);
    double sum = 0;
    for (const SpelledStep& step : all.steps)
      if (step.sends) sum += (all.unit * static_cast<double>(step.units)).value() * all.loops;
    return sum / (1 << 20);
  };
  for (const int loops : {1, 3, 8}) {
    CHECK(sent(test::msccl_ring_all_reduce(4), loops) == Approx(2 * 3));
    CHECK(sent(test::msccl_ring_all_gather(4), loops) == Approx(3));
    CHECK(sent(test::msccl_direct_alltoall(4), loops) == Approx(3));
    CHECK(sent(test::msccl_chain_broadcast(4, 5), loops) == Approx(3));
  }
}

TEST_CASE("a proof is ended from outside, and says how far it was") {
  const msccl::Algorithm a = test::msccl_ring_all_reduce(40);
  std::size_t asked = 0;
  const auto order = prove(a, Bytes(1024), 0, [&](std::size_t steps) { return ++asked, steps < 2048; });
  REQUIRE_FALSE(order.ok());
  CHECK(order.errors().front().message == "the proof was ended from outside after 2048 steps");
  CHECK(asked == 3);
  CHECK(prove(a, Bytes(1024), 0, [](std::size_t) { return true; }).ok());
}

TEST_CASE("what a clock knows is the same listed and with a place for each") {
  constexpr std::size_t blocks = 200;
  msccl::Clock few(blocks), many(blocks), learnt(blocks);
  few.set(7, 3);
  few.set(7, 2);  // never fewer
  for (std::size_t b = 0; b < blocks; b += 2) many.set(b, static_cast<int>(b) + 1);
  for (const msccl::Clock* other : {&few, &many, &few}) learnt.learn(*other);
  few.learn(many);
  for (std::size_t b = 0; b < blocks; ++b) {
    const int expected = b == 7 ? 3 : b % 2 == 0 ? static_cast<int>(b) + 1 : 0;
    CHECK(learnt.of(b) == expected);
    CHECK(few.of(b) == expected);
    CHECK(many.of(b) == (b == 7 ? 0 : expected));
  }
}
