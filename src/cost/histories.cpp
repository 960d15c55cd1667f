#include "cost/histories.hpp"

#include <algorithm>

namespace collcast {

void Histories::announce(const Announcement& next) {
  if (announcements_.empty() || !(announcements_.back() == next)) announcements_.push_back(next);
}

std::size_t Histories::hash(Node node) {
  // Knuth's multiplicative hashing: 2^64 over the golden ratio.
  const std::uint64_t key = (std::uint64_t{node.before} << 32 | node.announcement) * 0x9E3779B97F4A7C15U;
  return static_cast<std::size_t>(key >> 32);
}

void Histories::add(std::uint32_t link) {
  of_link_[link] = after({of_link_[link], static_cast<std::uint32_t>(announcements_.size() - 1)});
}

std::uint32_t Histories::after(Node node) {
  if (2 * nodes_.size() >= table_.size()) grow();
  std::size_t slot = hash(node) & (table_.size() - 1);
  for (; table_[slot] != 0; slot = (slot + 1) & (table_.size() - 1)) {
    const Node& known = nodes_[table_[slot]];
    if (known.before == node.before && known.announcement == node.announcement) return table_[slot];
  }
  table_[slot] = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(node);
  return table_[slot];
}

void Histories::grow() {
  table_.assign(std::max<std::size_t>(256, 2 * table_.size()), 0);
  for (std::size_t n = 1; n < nodes_.size(); ++n) {
    std::size_t slot = hash(nodes_[n]) & (table_.size() - 1);
    while (table_[slot] != 0) slot = (slot + 1) & (table_.size() - 1);
    table_[slot] = static_cast<std::uint32_t>(n);
  }
}

Crossings Histories::crossings(std::uint32_t history) const {
  std::vector<std::uint32_t> order;
  for (; history != 0; history = nodes_[history].before) order.push_back(nodes_[history].announcement);
  Crossings out;
  for (auto a = order.rbegin(); a != order.rend(); ++a)
    out.add(announcements_[*a].moment, announcements_[*a].bytes, announcements_[*a].duty);
  out.close();
  return out;
}

std::vector<Crossings> Histories::close() {
  std::vector<Crossings> all;
  std::vector<std::uint32_t> place(nodes_.size());  // and one; 0: not yet
  for (std::uint32_t& link : of_link_) {
    std::uint32_t& known = place[link];
    if (known == 0) {
      all.push_back(crossings(link));
      known = static_cast<std::uint32_t>(all.size());
    }
    link = known - 1;
  }
  return all;
}

}  // namespace collcast
