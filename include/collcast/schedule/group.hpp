// The ranks of a process group, in group order: a descriptor where they are regular, a list where not.
#pragma once

#include <vector>

#include "collcast/base/check.hpp"
#include "collcast/base/id.hpp"

namespace collcast {

class Group {
 public:
  Group() = default;
  /// first, first+stride, ... (`size` of them): 16 bytes whatever the size.
  static Group strided(Rank first, int stride, int size) {
    Group g;
    g.first_ = first.value();
    g.stride_ = stride;
    g.size_ = size;
    return g;
  }
  /// Any ranks in any order; regular ones are stored as a descriptor.
  static Group listed(std::vector<Rank> ranks);

  int size() const { return size_; }
  Rank operator[](int index) const {
    if (!listed_.empty()) return listed_[static_cast<std::size_t>(index)];
    return Rank(
        static_cast<std::uint32_t>(static_cast<std::int64_t>(first_) + static_cast<std::int64_t>(stride_) * index));
  }
  std::vector<Rank> ranks() const;
  /// True for a descriptor; then operator[](i) = first + i*stride.
  bool is_strided() const { return listed_.empty(); }
  int stride() const { return stride_; }

 private:
  std::uint32_t first_ = 0;
  int stride_ = 1;
  int size_ = 0;
  std::vector<Rank> listed_;
};

}  // namespace collcast
