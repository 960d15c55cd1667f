// A proof that cannot fail proves nothing: one defect at a time in an otherwise right pattern is found.
#include <catch2/catch.hpp>

#include "support/patterns.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

// A shape that answers like `original` except where one of these says otherwise.
struct Mutation {
  const Shape* original = nullptr;
  Hop (*hop)(const Phase&, Position, int, Hop) = nullptr;
  void (*pieces)(const Phase&, Position, int, std::vector<Piece>&) = nullptr;
};
Mutation active;

Phase as_original(Phase phase) {
  phase.shape = active.original;
  return phase;
}
const Shape mutant{"mutant", [](const Phase& p, Position v) { return active.original->sends(as_original(p), v); },
                   [](const Phase& p, Position v) { return active.original->receives(as_original(p), v); },
                   [](const Phase& p, Position v, int j) {
                     const Hop hop = active.original->send(as_original(p), v, j);
                     return active.hop == nullptr ? hop : active.hop(p, v, j, hop);
                   },
                   [](const Phase& p, Position v, int j, std::vector<Piece>& out) {
                     active.original->carries(as_original(p), v, j, out);
                     if (active.pieces != nullptr) active.pieces(p, v, j, out);
                   }};

using HopMutation = Hop (*)(const Phase&, Position, int, Hop);
using PieceMutation = void (*)(const Phase&, Position, int, std::vector<Piece>&);

// The findings for `algorithm` on 6 ranks with phase `which` of lane 0 mutated.
std::vector<std::string> findings(CollectiveKind kind, const std::string& algorithm, HopMutation hop,
                                  PieceMutation pieces = nullptr, std::size_t which = 0, int ranks = 6) {
  Pattern pattern = make_pattern(request(kind, ranks, 600), options(algorithm)).value();
  REQUIRE(prove(pattern, kind).empty());
  Phase& phase = pattern.lanes[0].phases.at(which);
  active = {phase.shape, hop, pieces};
  phase.shape = &mutant;
  return prove(pattern, kind);
}

bool mentions(const std::vector<std::string>& all, const std::string& what) {
  for (const std::string& one : all)
    if (one.find(what) != std::string::npos) return true;
  UNSCOPED_INFO("no finding says '" << what << "'; the first is: " << (all.empty() ? "none" : all.front()));
  return false;
}

}  // namespace

using enum CollectiveKind;

TEST_CASE("a wrong peer is found") {
  const HopMutation astray = [](const Phase&, Position v, int, Hop hop) {
    if (v == 2) hop.peer = 5;
    return hop;
  };
  CHECK(mentions(findings(broadcast, "ring", astray), "as is a hop of position"));
  CHECK(mentions(findings(broadcast, "ring",
                          [](const Phase&, Position v, int, Hop hop) {
                            if (v == 2) hop.peer = 2;
                            return hop;
                          }),
                 "sends to position 2"));
  CHECK(mentions(findings(all_reduce, "ring",
                          [](const Phase&, Position v, int j, Hop hop) {
                            if (v == 2 && j == 3) hop.peer = 4;
                            return hop;
                          }),
                 "receive 3 of position 4"));
}

TEST_CASE("a sender that does not wait for what it forwards is found") {
  const HopMutation hasty = [](const Phase&, Position v, int, Hop hop) {
    if (v == 3) hop.after = 0;
    return hop;
  };
  CHECK(mentions(findings(broadcast, "ring", hasty), "position 3 hop 0: sends block 0 before it has it"));
}

TEST_CASE("a sum that is passed on before it is complete is found") {
  // Position 4 of the binomial tree waits for its child 5 before it sends up.
  const HopMutation hasty = [](const Phase&, Position v, int, Hop hop) {
    if (v == 4) hop.after = 0;
    return hop;
  };
  CHECK(mentions(findings(reduce, "tree", hasty), "position 0: ends with block 0 without the contribution of rank 5"));
  const HopMutation no_waits = [](const Phase&, Position, int, Hop hop) {
    hop.after = 0;
    return hop;
  };
  CHECK(mentions(findings(all_reduce, "recursive_doubling", no_waits, nullptr, 0, 8), "without the contribution"));
}

TEST_CASE("a contribution that is added twice is found") {
  const PieceMutation add_again = [](const Phase&, Position, int j, std::vector<Piece>& pieces) {
    if (j >= 5) pieces[0].reduce = true;  // the all-gather half adds what is there already
  };
  CHECK(mentions(findings(all_reduce, "ring", nullptr, add_again), "twice"));
}

TEST_CASE("a wrong block is found") {
  const PieceMutation another = [](const Phase&, Position v, int, std::vector<Piece>& pieces) {
    if (v == 1) pieces[0].block = (pieces[0].block + 1) % 6;
  };
  CHECK_FALSE(findings(all_gather, "ring", nullptr, another).empty());
  CHECK_FALSE(findings(all_gather, "direct", nullptr, another).empty());
  CHECK_FALSE(findings(reduce_scatter, "ring", nullptr, another).empty());
  const PieceMutation outside = [](const Phase&, Position v, int, std::vector<Piece>& pieces) {
    if (v == 1) pieces[0].block = 6;
  };
  CHECK(mentions(findings(all_gather, "ring", nullptr, outside), "carries block 6"));
}

TEST_CASE("a payload that is not the size it says is found") {
  const PieceMutation more = [](const Phase&, Position v, int, std::vector<Piece>& pieces) {
    if (v == 0) pieces.push_back(pieces[0]);
  };
  CHECK(mentions(findings(scatter, "naive", nullptr, more), "carries 2 blocks and says 1"));
  CHECK(mentions(findings(scatter, "naive", nullptr, more), "carries block 1 twice"));
}

TEST_CASE("a hop that breaks its flow is found") {
  CHECK(mentions(findings(all_gather, "ring",
                          [](const Phase&, Position v, int j, Hop hop) {
                            if (v == 0 && j == 1) hop.blocks = 2;
                            return hop;
                          }),
                 "differs from hop 0"));
  CHECK(mentions(findings(
                     all_gather, "recursive_doubling",
                     [](const Phase& p, Position v, int j, Hop hop) {
                       if (j == 1) hop.peer = p.at(v, (v + 7) % 8), hop.slot = 0;  // distance 1 again
                       return hop;
                     },
                     nullptr, 0, 8),
                 "receive 0"));
  CHECK(mentions(findings(broadcast, "tree",
                          [](const Phase&, Position v, int, Hop hop) {
                            if (v == 4) hop.round = 0;
                            return hop;
                          }),
                 "waits for a receive of its own round"));
  CHECK(mentions(findings(broadcast, "naive",
                          [](const Phase&, Position, int j, Hop hop) {
                            hop.round = j == 0 ? 1 : 0;
                            return hop;
                          }),
                 "comes after a later round"));
}

TEST_CASE("rounds that are said wrongly are found") {
  Pattern pattern = make_pattern(request(broadcast, 6, 600), options("tree")).value();
  pattern.lanes[0].phases[0].rounds = 4;
  CHECK(mentions(prove(pattern, broadcast), "says 4 rounds and has 3"));
}

TEST_CASE("hops that wait for each other are found") {
  // In a chain turned into a circle every position waits for the one before it. The rounds are at fault first.
  CHECK_FALSE(findings(broadcast, "ring", [](const Phase&, Position v, int, Hop hop) {
                if (v == 0) hop.after = 1;
                return hop;
              }).empty());
}

TEST_CASE("an order that names a rank twice or a wrong number of blocks is found") {
  Pattern pattern = make_pattern(request(all_gather, 4, 600), options("ring")).value();
  pattern.lanes[0].order = {0, 1, 1, 2};
  CHECK(mentions(prove(pattern, all_gather), "not a permutation"));
  pattern.lanes[0].order.clear();
  pattern.lanes[0].blocks = 5;
  CHECK(mentions(prove(pattern, all_gather), "5 blocks are not a multiple of 4"));
}

TEST_CASE("a phase left out is found") {
  for (const AlgorithmInfo& a : algorithms())
    for (const CollectiveKind kind : a.kinds) {
      const Pattern whole = make_pattern(request(kind, 6, 600), options(a.name, 1, 1, node_blocks(3, 2))).value();
      for (std::size_t phase = 0; phase < whole.lanes[0].phases.size(); ++phase) {
        Pattern partial = whole;
        partial.lanes[0].phases.erase(partial.lanes[0].phases.begin() + static_cast<std::ptrdiff_t>(phase));
        INFO(a.name << " " << to_string(kind) << " without phase " << phase);
        CHECK_FALSE(prove(partial, kind).empty());
      }
    }
}

TEST_CASE("a pattern for another root or kind is refused") {
  const Pattern pattern = make_pattern(request(broadcast, 5, 600, 2), options("tree")).value();
  CHECK(prove(pattern, broadcast, 2).empty());
  CHECK_FALSE(prove(pattern, broadcast, 1).empty());
  CHECK_FALSE(prove(pattern, reduce, 2).empty());
}
