#include "nccl/chain_waits.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace collcast::nccl {

namespace {

/// GPUs of the root's node by the channels taken so far, and from which one a loop of one call leads to which.
class RootsNode {
 public:
  explicit RootsNode(int root) : root_(root) {}

  void add(const std::vector<int>& order) {
    const auto root = std::ranges::find(order, root_);
    if (root == order.end()) return;
    for (auto last = order.begin(); last != root; ++last) ends_.insert(*last);
    for (auto first = root + 1; first != order.end(); ++first) {
      begins_.insert(*first);
      for (auto last = order.begin(); last != root; ++last) loops_[*first].insert(*last);
    }
  }

  double loops_per_call() const {
    // Loops of one call each before a GPU is reached; another call takes the chain on from it and back.
    std::map<int, int> before;
    for (const int gpu : begins_)
      if (ends_.contains(gpu)) before.emplace(gpu, 0);
    if (before.empty()) return 0;
    for (std::size_t round = 0; round <= before.size(); ++round)
      if (!lengthened(before)) {
        const int most = std::ranges::max_element(before, {}, [](const auto& x) { return x.second; })->second;
        return (most + 1.0) / (most + 2.0);
      }
    return 1;  // they lead back
  }

 private:
  bool lengthened(std::map<int, int>& before) const {
    bool any = false;
    for (const auto& [from, to] : loops_) {
      const auto start = before.find(from);
      if (start == before.end()) continue;
      for (const int gpu : to)
        if (const auto end = before.find(gpu); end != before.end() && end->second <= start->second) {
          end->second = start->second + 1;
          any = true;
        }
    }
    return any;
  }

  int root_;
  std::set<int> begins_, ends_;  ///< behind the root in some channel; before it
  std::map<int, std::set<int>> loops_;
};

}  // namespace

std::vector<double> chain_waits(const std::vector<std::vector<int>>& orders, int root) {
  RootsNode node(root);
  std::vector<double> out;
  for (const std::vector<int>& order : orders) {
    node.add(order);
    out.push_back(node.loops_per_call());
  }
  return out;
}

}  // namespace collcast::nccl
