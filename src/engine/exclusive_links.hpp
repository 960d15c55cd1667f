// Whether every link of a pattern has one user at a time, judged from the routes alone.
//
// The sends of one position in one lane never overlap across phases (it enters a phase when its sends of
// the one before have left), nor within a phase if they go out one by one. Everything else might, so a
// link may belong to one position of one lane only, and within a phase whose hops overlap to one hop.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collcast/base/id.hpp"

namespace collcast::engine {

struct LinkUser {
  int lane = -1;
  int position = 0;
  int phase = 0;
  int hop = 0;  ///< 0 for all hops that go out one by one
};

class ExclusiveLinks {
 public:
  explicit ExclusiveLinks(std::size_t links) : users_(links) {}

  /// False if a link of the route may be in use by somebody else.
  bool claim(std::span<const LinkId> route, const LinkUser& user) {
    for (const LinkId link : route) {
      LinkUser& owner = users_[link.value()];
      const bool is_free = owner.lane < 0;
      const bool is_own = owner.lane == user.lane && owner.position == user.position;
      if (!is_free && (!is_own || (owner.phase == user.phase && owner.hop != user.hop))) return false;
      owner = user;
    }
    return true;
  }

  /// Whether nobody has claimed a link of the route.
  bool is_free(std::span<const LinkId> route) const {
    for (const LinkId link : route)
      if (users_[link.value()].lane >= 0) return false;
    return true;
  }

 private:
  std::vector<LinkUser> users_;
};

}  // namespace collcast::engine
