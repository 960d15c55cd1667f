// Members of a phase, node by node, where nodes may have unlike numbers of them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collcast/schedule/pattern.hpp"

namespace collcast::nccl {

/// Reads Phase::table: where each node's members begin, and the number of all.
class MembersByNode {
 public:
  explicit MembersByNode(const Phase& p) : begins_(*p.table) {}
  static std::shared_ptr<const std::vector<int>> table(std::span<const int> sizes) {
    std::vector<int> begins{0};
    for (const int size : sizes) begins.push_back(begins.back() + size);
    return std::make_shared<const std::vector<int>>(std::move(begins));
  }

  int nodes() const { return static_cast<int>(begins_.size()) - 1; }
  int begin(int node) const { return begins_[static_cast<std::size_t>(node)]; }
  int size(int node) const { return begin(node + 1) - begin(node); }
  /// From where it would be if all had as many.
  int node_of(int member) const {
    int node = static_cast<int>(std::int64_t{member} * nodes() / begins_.back());
    while (begin(node) > member) --node;
    while (begin(node + 1) <= member) ++node;
    return node;
  }

 private:
  const std::vector<int>& begins_;
};

}  // namespace collcast::nccl
