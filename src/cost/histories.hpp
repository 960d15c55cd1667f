// Links that the same hops cross, as far as what they meet on them goes: equal announcements in equal order are one
// history, kept once. Machines are regular, so that there are few histories and many links.
//
// A history is a node of a tree: the one before and the announcement that was added to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cost/crossings.hpp"

namespace collcast {

class Histories {
 public:
  /// What Crossings::add takes.
  struct Announcement {
    double moment = 0, bytes = 0, duty = 0;
    bool operator==(const Announcement&) const = default;
  };
  explicit Histories(std::size_t links) : of_link_(links) {}

  /// The next announcement to be added.
  void announce(const Announcement&);
  void add(std::uint32_t link);
  /// After the last add: every different history once, by_link() says whose.
  std::vector<Crossings> close();
  const std::vector<std::uint32_t>& by_link() const { return of_link_; }

 private:
  struct Node {
    std::uint32_t before = 0, announcement = 0;
  };
  static std::size_t hash(Node);
  std::uint32_t after(Node);
  void grow();
  Crossings crossings(std::uint32_t history) const;

  std::vector<std::uint32_t> of_link_;
  std::vector<Node> nodes_{Node{}};   // 0: nothing
  std::vector<std::uint32_t> table_;  // of nodes, open; 0: free
  std::vector<Announcement> announcements_;
};

}  // namespace collcast
