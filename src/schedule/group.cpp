#include "collcast/schedule/group.hpp"

#include <limits>
#include <utility>

namespace collcast {

Group Group::listed(std::vector<Rank> ranks) {
  const auto rank = [&](std::size_t i) { return static_cast<std::int64_t>(ranks[i].value()); };
  const std::int64_t stride = ranks.size() < 2 ? 1 : rank(1) - rank(0);
  bool regular = stride >= std::numeric_limits<int>::min() && stride <= std::numeric_limits<int>::max();
  for (std::size_t i = 2; regular && i < ranks.size(); ++i) regular = rank(i) - rank(i - 1) == stride;

  const int size = static_cast<int>(ranks.size());
  if (regular) return strided(ranks.empty() ? Rank(0) : ranks[0], static_cast<int>(stride), size);
  Group g;
  g.size_ = size;
  g.listed_ = std::move(ranks);
  return g;
}

std::vector<Rank> Group::ranks() const {
  if (!is_strided()) return listed_;
  std::vector<Rank> all;
  all.reserve(static_cast<std::size_t>(size_));
  for (int i = 0; i < size_; ++i) all.push_back((*this)[i]);
  return all;
}

}  // namespace collcast
