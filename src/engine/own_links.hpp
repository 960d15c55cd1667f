// Which groups of ranks have links that nobody else ever uses, judged from the routes of all that is sent.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collcast/schedule/programs.hpp"
#include "collcast/topology/fabric.hpp"

namespace collcast::engine {

class OwnLinks {
 public:
  OwnLinks() = default;
  /// Groups are numbered set by set, a set's from `first_group` of it on. Only those are looked for whose ranks meet
  /// often enough for it to pay, and on one stream.
  OwnLinks(const Fabric&, const Programs&, std::span<const std::uint32_t> first_group, std::uint32_t groups);

  /// Whether no message of another group, nor one between two ranks, crosses a link that the group's collectives do,
  /// and these never overlap.
  bool has(std::uint32_t group) const { return group < is_alone_.size() && is_alone_[group] != 0; }
  bool any() const { return !is_alone_.empty(); }
  /// In ascending order; none for a group that shares any.
  std::span<const std::uint32_t> of(std::uint32_t group) const {
    return std::span(links_).subspan(first_[group], first_[group + 1] - first_[group]);
  }

 private:
  std::vector<std::uint8_t> is_alone_;  ///< by group; empty: none is
  std::vector<std::uint32_t> first_;    ///< by group, in links_
  std::vector<std::uint32_t> links_;
};

}  // namespace collcast::engine
