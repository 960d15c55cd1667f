#include "support/textbook.hpp"

#include <algorithm>
#include <map>

namespace collcast::textbook {
namespace {

using enum CollectiveKind;

int floor_log2(int n) { return n < 2 ? 0 : 1 + floor_log2(n / 2); }
int ceil_log2(int n) { return n < 2 ? 0 : 1 + ceil_log2((n + 1) / 2); }
bool power_of_two(int n) { return (1 << floor_log2(n)) == n; }

// c chunks through R hops, each over links of its own: T = R(tau+alpha) + (c-1)tau, tau = bytes/(c*beta)
//   = bytes*(c+R-1)/(c*beta) + R*alpha
double pipeline(double rounds, double bytes, const Setting& s) {
  if (rounds == 0) return 0;
  return bytes * (s.chunks + rounds - 1) / (s.chunks * s.beta) + rounds * s.alpha;
}

// R rounds of `bytes` each by the same sender: T = (R-1)max(c*tau, tau+alpha) + c*tau + alpha
double circulate(double rounds, double bytes, const Setting& s) {
  if (rounds == 0) return 0;
  const double whole = bytes / s.beta;
  return (rounds - 1) * std::max(whole, whole / s.chunks + s.alpha) + whole + s.alpha;
}

// What the largest piece of a way adds when its chunks follow one another: (c-1)*tau of the largest, beside
// `sum` bytes in `rounds` hops for the first chunk.
double unequal(double rounds, double sum, double largest, const Setting& s) {
  return (sum + (s.chunks - 1) * largest) / (s.chunks * s.beta) + rounds * s.alpha;
}

double message(double bytes, const Setting& s) { return bytes / s.beta + s.alpha; }

}  // namespace

Time naive(const Setting& s) {
  const int k = s.ranks;
  if (k == 1) return 0;
  switch (s.kind) {
    case broadcast:
      return (k - 1) * s.bytes / s.beta + s.alpha;
    case reduce:
      return message(s.bytes, s);  // every rank has its own link to the root
    case all_reduce:
      return message(s.bytes, s) + (k - 1) * s.bytes / s.beta + s.alpha;
    case gather:
      return message(s.bytes / k, s);
    case all_gather:
    case reduce_scatter:
    case alltoall:
    case scatter:
      return (k - 1) * (s.bytes / k) / s.beta + s.alpha;
    default:
      return std::nullopt;
  }
}

Time direct(const Setting& s) {
  if (s.ranks == 1) return 0;
  switch (s.kind) {
    case broadcast:
    case reduce:
    case sendrecv:
      return message(s.bytes, s);
    case all_reduce:
      return 2 * message(s.bytes / s.ranks, s);
    default:
      return message(s.bytes / s.ranks, s);
  }
}

Time ring(const Setting& s) {
  const int k = s.ranks;
  switch (s.kind) {
    case broadcast:
    case reduce:
      return pipeline(k - 1, s.bytes, s);
    case all_reduce:
      return circulate(2 * (k - 1), s.bytes / k, s);
    case all_gather:
    case reduce_scatter:
      return circulate(k - 1, s.bytes / k, s);
    default:
      return std::nullopt;
  }
}

Time bidirectional_ring(const Setting& s) {
  Setting half = s;
  half.bytes /= 2;
  return ring(half);
}

namespace {

// Binomial trees for any k: the root serves the head of the upper part of m ranks (m - p of them, p the
// largest power of two below m) and goes on with the lower p. One chunk of `bytes` per rank or message.
int lower_part(int m) { return 1 << (ceil_log2(m) - 1); }
double tree_down(int m, double tau, double alpha) {
  if (m == 1) return 0;
  const int p = lower_part(m);
  return std::max(tau + alpha + tree_down(m - p, tau, alpha), tau + tree_down(p, tau, alpha));
}
double tree_up(int m, double tau, double alpha) {
  if (m == 1) return 0;
  const int p = lower_part(m);
  return std::max(tree_up(p, tau, alpha), tree_up(m - p, tau, alpha) + tau + alpha);
}
double scatter_down(int m, double unit, double alpha) {
  if (m == 1) return 0;
  const int p = lower_part(m);
  return (m - p) * unit + std::max(alpha + scatter_down(m - p, unit, alpha), scatter_down(p, unit, alpha));
}
double gather_up(int m, double unit, double alpha) {
  if (m == 1) return 0;
  const int p = lower_part(m);
  return std::max(gather_up(p, unit, alpha), gather_up(m - p, unit, alpha) + (m - p) * unit + alpha);
}

}  // namespace

Time tree(const Setting& s) {
  const int k = s.ranks;
  if (k == 1) return 0;
  const double tau = s.bytes / s.chunks / s.beta;
  const double others = (s.chunks - 1) * tau;
  const double unit = s.bytes / k;
  if ((s.kind == gather || s.kind == scatter) && s.chunks > 1) {
    // ceil(log2 k) messages of k/2, k/4 ... 1 parts
    if (!power_of_two(k)) return std::nullopt;
    return unequal(floor_log2(k), s.bytes - unit, s.bytes / 2, s);
  }
  switch (s.kind) {
    case broadcast:
      return tree_down(k, tau, s.alpha) + others;  // ceil(log2 k)(tau+alpha) for powers of two
    case reduce:
      return tree_up(k, tau, s.alpha) + others;
    case all_reduce:
      return tree_up(k, tau, s.alpha) + tree_down(k, tau, s.alpha) + others;
    case gather:
      return gather_up(k, unit / s.beta, s.alpha);
    case scatter:
      return scatter_down(k, unit / s.beta, s.alpha);
    default:
      return std::nullopt;
  }
}

// k = 2^h: full trees of h levels below the root. Down, a rank serves its second child after the first:
// (tau+alpha) + (h-1)(2*tau+alpha); up, both children send at once: h(tau+alpha). Chunks of N/2 add (c-1)tau.
Time double_tree(const Setting& s) {
  if (s.ranks == 1) return 0;
  if (!power_of_two(s.ranks)) return std::nullopt;
  const int h = floor_log2(s.ranks);
  const double tau = s.bytes / 2 / s.chunks / s.beta;
  const double down = (2 * h - 1) * tau + h * s.alpha;
  const double up = h * (tau + s.alpha);
  const double others = (s.chunks - 1) * tau;
  switch (s.kind) {
    case broadcast:
      return down + others;
    case reduce:
      return up + others;
    case all_reduce:
      return up + down + others;
    default:
      return std::nullopt;
  }
}

Time recursive_doubling(const Setting& s) {
  const int k = s.ranks;
  if (k == 1) return 0;
  const int rounds = ceil_log2(k);
  const double unit = s.bytes / k;
  if (s.kind == all_reduce) {
    if (power_of_two(k)) return pipeline(floor_log2(k), s.bytes, s);
    // two steps more; but a rank with a rider often has its partner's data before it sends its own
    return {{2 * message(s.bytes, s) + pipeline(floor_log2(k), s.bytes, s), false}};
  }
  if (s.kind == all_gather) {
    // 1, 2, 4 ... parts, and what is missing in the last round: k-1 in all
    const int last = k - (1 << (rounds - 1));
    const int before = rounds > 1 ? 1 << (rounds - 2) : 0;
    return unequal(rounds, (k - 1) * unit, std::max(last, before) * unit, s);
  }
  if (s.kind == alltoall) {
    // round j moves the blocks whose way has bit j set
    int sum = 0, most = 0;
    for (int bit = 1; bit < k; bit *= 2) {
      int moved = 0;
      for (int way = 1; way < k; ++way) moved += (way & bit) != 0;
      sum += moved;
      most = std::max(most, moved);
    }
    return unequal(rounds, sum * unit, most * unit, s);
  }
  return std::nullopt;
}

Time halving_doubling(const Setting& s) {
  const int k = s.ranks;
  if (k == 1) return 0;
  const int core = 1 << floor_log2(k);
  // k/2, k/4 ... 1 parts of N/k, or backwards
  const double half = unequal(floor_log2(k), s.bytes * (core - 1) / core, s.bytes / 2, s);
  if (s.kind == all_reduce) return 2 * half + (core == k ? 0 : 2 * message(s.bytes, s));
  if (core != k) return std::nullopt;
  switch (s.kind) {
    case all_gather:
    case reduce_scatter:
      return half;
    case broadcast:
    case reduce:
      return 2 * half;
    default:
      return std::nullopt;
  }
}

Time hierarchical(const Setting& s) {
  const int m = s.per_node;
  const int n = s.ranks / m;
  const double shard = s.bytes / m;
  const double part = s.bytes / s.ranks;
  switch (s.kind) {
    case all_reduce:
      return 2 * circulate(m - 1, shard, s) + circulate(2 * (n - 1), part, s);
    case all_gather:
    case reduce_scatter:
      return circulate(m - 1, shard, s) + circulate(n - 1, part, s);
    case broadcast:
      return (m > 1 ? (m - 1) * shard / s.beta + s.alpha : 0) + pipeline(n - 1, shard, s) + circulate(m - 1, shard, s);
    case reduce:
      return circulate(m - 1, shard, s) + pipeline(n - 1, shard, s) + (m > 1 ? message(shard, s) : 0);
    case alltoall:
      return (m > 1 ? message(n * part, s) : 0) + (n > 1 ? message(m * part, s) : 0);
    default:
      return std::nullopt;
  }
}

Time scatter_gather(const Setting& s) {
  if (s.ranks == 1) return 0;
  return message(s.bytes / s.ranks, s) + circulate(s.ranks - 1, s.bytes / s.ranks, s);
}

Time concurrent_tree(const Setting& s) {
  int levels = 0;  // as many as the rank with most bits has
  for (int x = 1; x < s.ranks; ++x) {
    int bits = 0;
    for (int rest = x; rest > 0; rest /= 2) bits += rest % 2;
    levels = std::max(levels, bits);
  }
  return levels * message(s.bytes, s);
}

Time time(std::string_view algorithm, const Setting& s) {
  static const std::map<std::string_view, Time (*)(const Setting&)> book{
      {"naive", naive},
      {"direct", direct},
      {"ring", ring},
      {"bidirectional_ring", bidirectional_ring},
      {"tree", tree},
      {"double_tree", double_tree},
      {"recursive_doubling", recursive_doubling},
      {"halving_doubling", halving_doubling},
      {"hierarchical", hierarchical},
      {"scatter_gather", scatter_gather},
      {"concurrent_tree", concurrent_tree},
  };
  return book.at(algorithm)(s);
}

}  // namespace collcast::textbook
