// Dense, explicit, ordered identifiers: a rank is not a link is not an operation.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace collcast {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::uint32_t value) : value_(value) {}
  constexpr std::uint32_t value() const { return value_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  std::uint32_t value_ = 0;
};

using Rank = Id<struct RankTag>;            ///< an endpoint (GPU or host) of a Fabric, 0-based, node by node
using NodeId = Id<struct NodeTag>;          ///< a server of a Fabric
using LinkId = Id<struct LinkTag>;          ///< one direction of a cable
using OpId = Id<struct OpTag>;              ///< an operation of a Schedule
using StreamId = Id<struct StreamTag>;      ///< an in-order queue of a Schedule
using ExchangeId = Id<struct ExchangeTag>;  ///< a collective that a Schedule runs implicitly

}  // namespace collcast

template <class Tag>
struct std::hash<collcast::Id<Tag>> {
  std::size_t operator()(collcast::Id<Tag> id) const noexcept { return id.value(); }
};
