#include "nccl/pat_shape.hpp"

#include <bit>

namespace collcast::nccl {

namespace {

int steps(const Phase& p) { return static_cast<int>(std::bit_width(static_cast<unsigned>(p.members - 1))); }
int blocks_sent(const Phase& p, Position) { return steps(p); }

/// Parts at multiples of twice the distance that end within the ranks.
int parts(int ranks, int distance) { return (ranks - distance + 2 * distance - 1) / (2 * distance); }

int behind(const Phase& p, Position v, int places) { return (p.index(v) - places % p.members + p.members) % p.members; }

int gather_distance(const Phase& p, int hop) { return 1 << (steps(p) - 1 - hop); }

Hop gather_send(const Phase& p, Position v, int hop) {
  const int distance = gather_distance(p, hop);
  return {hop, p.at(v, behind(p, v, p.members - distance)), hop, hop, parts(p.members, distance) * p.width};
}

void gather_carries(const Phase& p, Position v, int hop, std::vector<Piece>& out) {
  const int distance = gather_distance(p, hop);
  for (int part = 0; part < parts(p.members, distance); ++part)
    for (int b = 0; b < p.width; ++b) out.push_back({behind(p, v, 2 * distance * part) * p.width + b, false});
}

Hop scatter_send(const Phase& p, Position v, int hop) {
  const int distance = 1 << hop;
  return {hop, p.at(v, behind(p, v, distance)), hop, hop, parts(p.members, distance) * p.width};
}

void scatter_carries(const Phase& p, Position v, int hop, std::vector<Piece>& out) {
  const int distance = 1 << hop;
  for (int part = 0; part < parts(p.members, distance); ++part)
    for (int b = 0; b < p.width; ++b) out.push_back({behind(p, v, distance * (1 + 2 * part)) * p.width + b, true});
}

constexpr Shape gather{"parallel aggregated trees", &blocks_sent, &blocks_sent, &gather_send, &gather_carries};
constexpr Shape scatter{"parallel aggregated trees, backwards", &blocks_sent, &blocks_sent, &scatter_send,
                        &scatter_carries};

}  // namespace

Phase pat_phase(CollectiveKind kind, int ranks) {
  check(ranks > 1, "PAT has somebody to send to");
  check(kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter, "PAT has no other collectives");
  Phase p{.shape = kind == CollectiveKind::all_gather ? &gather : &scatter, .flow = Flow::forwarding, .members = ranks};
  p.rounds = steps(p);
  return p;
}

}  // namespace collcast::nccl
