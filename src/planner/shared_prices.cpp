#include "planner/shared_prices.hpp"

#include <algorithm>

namespace collcast::planner {

namespace {

/// Anything but all members decides quickly; equal groups have equal ones.
std::uint64_t digest(const Group& g) {
  if (g.size() == 0) return 0;
  return (std::uint64_t{g[0].value()} << 32) ^ (std::uint64_t{g[g.size() - 1].value()} << 8) ^
         static_cast<std::uint64_t>(g.size());
}

bool same_ranks(const Group& a, const Group& b) {
  if (a.size() != b.size()) return false;
  for (int i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}

}  // namespace

std::size_t SharedPrices::Compare::hash(const CollectiveRequest& r) const {
  std::uint64_t hash = static_cast<std::uint64_t>(r.kind);
  const auto mix = [&hash](std::uint64_t value) {
    // Knuth's multiplicative hashing: 2^64 over the golden ratio.
    hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29;
  };
  mix(static_cast<std::uint64_t>(r.size.value()));
  mix(digest(r.group));
  mix(r.alongside.size());
  for (const Group& g : r.alongside) mix(digest(g));
  return static_cast<std::size_t>(hash);
}

bool SharedPrices::Compare::equal(const CollectiveRequest& a, const CollectiveRequest& b) const {
  return a.kind == b.kind && a.size == b.size && a.root == b.root && same_ranks(a.group, b.group) &&
         std::ranges::equal(a.alongside, b.alongside, same_ranks);
}

Result<Seconds> SharedPrices::operator()(const CollectiveRequest& request) {
  typename decltype(known_)::accessor mine;
  if (known_.insert(mine, {request, Result<Seconds>(Seconds{})})) {
    mine->second = time_(request);
    return mine->second;
  }
  return mine->second;
}

}  // namespace collcast::planner
