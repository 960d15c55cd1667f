// Proof of a pattern by running it on sets of contributions instead of bytes.
//
// What a hop carries is fixed by the rules of pattern.hpp: the state of its sender on entering the phase with
// those receives applied that the hop (or an earlier hop of the position) waits for, in the order of their
// slots. A receive that nobody has waited for yet may be there or not, so it does not count: an
// implementation keeps it apart until then, as MPI and NCCL do with their receive buffers. The content of
// every message is then the same in every legal interleaving, and one run proves them all. Chunks do not
// meet each other, and an order of hops is also one of their chunks, so one chunk stands for all.
//
// Checked: what hop, slot and Piece promise each other, the rules of each Flow, that every hop comes to be
// sent, that nothing is sent that is not there, that no contribution is added twice, and the final state.
#include <algorithm>
#include <map>
#include <set>

#include "collective/contributions.hpp"

namespace collcast {
namespace {

constexpr std::size_t most_findings = 20;

/// Findings with their place; the first few are enough.
class Findings {
 public:
  void at(const std::string& place, const std::string& what) {
    if (found_.size() < most_findings) found_.push_back(place + ": " + what);
  }
  bool full() const { return found_.size() >= most_findings; }
  bool none() const { return found_.empty(); }
  std::vector<std::string> take() { return std::move(found_); }

 private:
  std::vector<std::string> found_;
};

std::string number(int n) { return std::to_string(n); }

/// One phase of a lane, with every hop looked up once.
struct PhaseRun {
  const Phase& phase;
  int size;
  std::string place;
  std::vector<std::vector<Hop>> sends;                     // by position
  std::vector<std::vector<std::pair<int, int>>> receives;  // by position and slot: round and sender, or -1

  std::string hop_place(Position v, int j) const {
    return place + " (" + phase.shape->name + ") position " + number(v) + " hop " + number(j);
  }
};

PhaseRun look_up(const Phase& phase, int size, const std::string& place, Findings& findings) {
  PhaseRun run{phase, size, place, {}, {}};
  for (Position v = 0; v < size; ++v) {
    run.sends.emplace_back();
    for (int j = 0, n = phase.shape->sends(phase, v); j < n; ++j)
      run.sends.back().push_back(phase.shape->send(phase, v, j));
    run.receives.emplace_back(static_cast<std::size_t>(phase.shape->receives(phase, v)), std::pair(-1, -1));
  }
  for (Position v = 0; v < size; ++v)
    for (int j = 0; j < static_cast<int>(run.sends[static_cast<std::size_t>(v)].size()); ++j) {
      const Hop& hop = run.sends[static_cast<std::size_t>(v)][static_cast<std::size_t>(j)];
      if (hop.peer < 0 || hop.peer >= size || hop.peer == v) {
        findings.at(run.hop_place(v, j), "sends to position " + number(hop.peer) + " of " + number(size));
        continue;
      }
      auto& slots = run.receives[static_cast<std::size_t>(hop.peer)];
      if (hop.slot < 0 || hop.slot >= static_cast<int>(slots.size()))
        findings.at(run.hop_place(v, j), "is receive " + number(hop.slot) + " of position " + number(hop.peer) +
                                             ", which has " + number(static_cast<int>(slots.size())));
      else if (slots[static_cast<std::size_t>(hop.slot)].second >= 0)
        findings.at(run.hop_place(v, j), "is receive " + number(hop.slot) + " of position " + number(hop.peer) +
                                             ", as is a hop of position " +
                                             number(slots[static_cast<std::size_t>(hop.slot)].second));
      else
        slots[static_cast<std::size_t>(hop.slot)] = {hop.round, v};
    }
  return run;
}

void check_receives(const PhaseRun& run, Position v, Findings& findings) {
  const auto& slots = run.receives[static_cast<std::size_t>(v)];
  const std::string place = run.place + " (" + run.phase.shape->name + ") position " + number(v);
  int before = 0;
  std::set<int> senders;
  for (const auto& [round, sender] : slots) {
    if (sender < 0) return findings.at(place, "expects a receive that nobody sends");
    if (round < before) findings.at(place, "has receives out of the order of rounds");
    before = round;
    senders.insert(sender);
  }
  if (run.phase.flow == Flow::circulating && senders.size() > 1) findings.at(place, "circulates but has two senders");
}

void check_sends(const PhaseRun& run, Position v, Findings& findings) {
  const auto& hops = run.sends[static_cast<std::size_t>(v)];
  const auto& slots = run.receives[static_cast<std::size_t>(v)];
  const Flow flow = run.phase.flow;
  std::set<int> peers;
  for (int j = 0; j < static_cast<int>(hops.size()); ++j) {
    const Hop& hop = hops[static_cast<std::size_t>(j)];
    const std::string place = run.hop_place(v, j);
    if (hop.round < 0 || hop.round >= run.phase.rounds) findings.at(place, "is in round " + number(hop.round));
    if (j > 0 && hop.round < hops[static_cast<std::size_t>(j) - 1].round)
      findings.at(place, "comes after a later round");
    if (!peers.insert(hop.peer).second && flow == Flow::forwarding) findings.at(place, "forwards to one peer twice");
    if (flow == Flow::circulating && (hop.peer != hops[0].peer || hop.blocks != hops[0].blocks))
      findings.at(place, "circulates but differs from hop 0 in peer or blocks");
    if (flow != Flow::circulating && flow != Flow::forwarding) continue;
    const int after = flow == Flow::circulating ? j : hop.after;
    if (after < 0 || after > static_cast<int>(slots.size()))
      findings.at(place, "waits for " + number(after) + " receives of " + number(static_cast<int>(slots.size())));
    else if (after > 0 && slots[static_cast<std::size_t>(after) - 1].first >= hop.round)
      findings.at(place, "waits for a receive of its own round or a later one");
  }
}

void check_rules(const PhaseRun& run, Findings& findings) {
  int rounds = 0;
  for (Position v = 0; v < run.size && !findings.full(); ++v) {
    check_receives(run, v, findings);
    check_sends(run, v, findings);
    for (const Hop& hop : run.sends[static_cast<std::size_t>(v)]) rounds = std::max(rounds, hop.round + 1);
  }
  if (rounds != run.phase.rounds)
    findings.at(run.place, "says " + number(run.phase.rounds) + " rounds and has " + number(rounds));
}

struct Parcel {
  Piece piece;
  Contributions contents;
};
using Payload = std::vector<Parcel>;

/// Adds a payload to a position's state.
void apply(const Payload& payload, Holdings& state, const std::string& place, Findings& findings) {
  for (const auto& [piece, contents] : payload) {
    Contributions& there = state.block(piece.block);
    if (!piece.reduce)
      there = contents;
    else if (const int twice = there.first_common(contents); twice >= 0)
      findings.at(place,
                  "adds the contribution of rank " + number(twice) + " to block " + number(piece.block) + " twice");
    else
      there.merge(contents);
  }
}

Payload packed(const PhaseRun& run, Position v, int j, const Holdings& state, int blocks, Findings& findings) {
  std::vector<Piece> pieces;
  run.phase.shape->carries(run.phase, v, j, pieces);
  const int said = run.sends[static_cast<std::size_t>(v)][static_cast<std::size_t>(j)].blocks;
  const std::string place = run.hop_place(v, j);
  if (static_cast<int>(pieces.size()) != said)
    findings.at(place, "carries " + number(static_cast<int>(pieces.size())) + " blocks and says " + number(said));
  Payload payload;
  std::set<int> once;
  for (const Piece& piece : pieces) {
    if (piece.block < 0 || piece.block >= blocks)
      findings.at(place, "carries block " + number(piece.block));
    else if (!once.insert(piece.block).second)
      findings.at(place, "carries block " + number(piece.block) + " twice");
    else if (state.block(piece.block).empty())
      findings.at(place, "sends block " + number(piece.block) + " before it has it");
    else
      payload.push_back({piece, state.block(piece.block)});
  }
  return payload;
}

/// Sends every hop whose receives are there until no more can go, then applies what is left.
class Exchange {
 public:
  Exchange(const PhaseRun& run, std::vector<Holdings>& states, int blocks, Findings& findings)
      : run_(run), states_(states), blocks_(blocks), findings_(findings) {
    for (const auto& slots : run.receives) arrived_.emplace_back(slots.size());
    sent_.assign(run.sends.size(), 0);
    applied_.assign(run.sends.size(), 0);
  }

  void run() {
    for (bool moved = true; moved && !findings_.full();) {
      moved = false;
      for (Position v = 0; v < run_.size; ++v)
        while (can_send(v)) {
          send(v);
          moved = true;
        }
    }
    for (Position v = 0; v < run_.size && !findings_.full(); ++v) {
      if (sent_[static_cast<std::size_t>(v)] < run_.sends[static_cast<std::size_t>(v)].size())
        findings_.at(run_.hop_place(v, static_cast<int>(sent_[static_cast<std::size_t>(v)])), "is never sent");
      else
        apply_first(v, arrived_[static_cast<std::size_t>(v)].size());
    }
  }

 private:
  std::size_t awaited(Position v) const {
    const std::size_t j = sent_[static_cast<std::size_t>(v)];
    if (run_.phase.flow == Flow::circulating) return j;
    if (run_.phase.flow == Flow::forwarding)
      return static_cast<std::size_t>(run_.sends[static_cast<std::size_t>(v)][j].after);
    return 0;
  }

  bool can_send(Position v) const {
    if (sent_[static_cast<std::size_t>(v)] == run_.sends[static_cast<std::size_t>(v)].size()) return false;
    const auto& slots = arrived_[static_cast<std::size_t>(v)];
    return std::all_of(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(awaited(v)),
                       [](const std::optional<Payload>& p) { return p.has_value(); });
  }

  void send(Position v) {
    apply_first(v, awaited(v));
    const std::size_t j = sent_[static_cast<std::size_t>(v)]++;
    const Hop& hop = run_.sends[static_cast<std::size_t>(v)][j];
    arrived_[static_cast<std::size_t>(hop.peer)][static_cast<std::size_t>(hop.slot)] =
        packed(run_, v, static_cast<int>(j), states_[static_cast<std::size_t>(v)], blocks_, findings_);
  }

  void apply_first(Position v, std::size_t count) {
    std::size_t& applied = applied_[static_cast<std::size_t>(v)];
    for (; applied < count; ++applied) {
      const auto& payload = arrived_[static_cast<std::size_t>(v)][applied];
      if (!payload) continue;  // its sender is stuck, and named
      apply(*payload, states_[static_cast<std::size_t>(v)], run_.place + " position " + number(v), findings_);
    }
  }

  const PhaseRun& run_;
  std::vector<Holdings>& states_;
  int blocks_;
  Findings& findings_;
  std::vector<std::vector<std::optional<Payload>>> arrived_;
  std::vector<std::size_t> sent_, applied_;
};

void prove_lane(const Pattern& pattern, const Lane& lane, const std::string& name, CollectiveKind kind, int root,
                Findings& findings) {
  const Promise promise(lane, kind, root, pattern.size());
  if (!promise.wrong().empty()) return findings.at(name, promise.wrong());
  std::vector<Holdings> states;
  states.reserve(static_cast<std::size_t>(pattern.size()));
  for (Position v = 0; v < pattern.size(); ++v) states.push_back(promise.begin(v));

  for (std::size_t p = 0; p < lane.phases.size(); ++p) {
    const Phase& phase = lane.phases[p];
    const std::string place = name + " phase " + std::to_string(p);
    if (phase.members < 1 || phase.stride < 1 || pattern.size() % (phase.members * phase.stride) != 0)
      return findings.at(place, "sub-groups do not fill the lane");
    const PhaseRun run = look_up(phase, pattern.size(), place, findings);
    if (findings.none()) check_rules(run, findings);
    if (!findings.none()) return;
    Exchange(run, states, lane.blocks, findings).run();
    if (!findings.none()) return;
  }
  for (Position v = 0; v < pattern.size() && !findings.full(); ++v)
    if (const std::string what = promise.broken(v, states[static_cast<std::size_t>(v)]); !what.empty())
      findings.at(name + " position " + number(v), what);
}

}  // namespace

std::vector<std::string> prove(const Pattern& pattern, CollectiveKind kind, int root) {
  Findings findings;
  if (pattern.lanes.empty()) findings.at("pattern", "has no lanes");
  if (pattern.chunks < 1) findings.at("pattern", "has no chunks");
  for (std::size_t l = 0; l < pattern.lanes.size(); ++l)
    prove_lane(pattern, pattern.lanes[l], "lane " + std::to_string(l), kind, root, findings);
  return findings.take();
}

}  // namespace collcast
