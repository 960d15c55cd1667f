#include "evaluate/meeting.hpp"

#include <algorithm>
#include <numeric>

namespace collcast {
namespace {

bool are_alike(const Pattern& a, const Pattern& b) {
  const auto phases = [](const Lane& x, const Lane& y) {
    return std::equal(x.phases.begin(), x.phases.end(), y.phases.begin(), y.phases.end(),
                      [](const Phase& p, const Phase& q) { return p.shape == q.shape && p.flow == q.flow; });
  };
  return a.size() == b.size() && std::equal(a.lanes.begin(), a.lanes.end(), b.lanes.begin(), b.lanes.end(), phases);
}

/// Sets of patterns that links join.
class Joined {
 public:
  Joined(const Fabric& fabric, std::size_t patterns)
      : fabric_(fabric), last_(fabric.links().size(), none), first_(patterns) {
    std::iota(first_.begin(), first_.end(), std::size_t{0});
  }

  void add(const Pattern& pattern, std::size_t number) {
    for (const Lane& lane : pattern.lanes)
      for (const Phase& phase : lane.phases)
        for (Position v = 0; v < pattern.size(); ++v)
          for (int j = 0, ways = phase.ways(v); j < ways; ++j) {
            route_.clear();
            fabric_.route(pattern.rank(lane, v), pattern.rank(lane, phase.shape->send(phase, v, j).peer),
                          lane.route_lane, route_);
            for (const LinkId link : route_) cross(link, number);
          }
  }

  std::size_t first_of(std::size_t number) const {
    while (first_[number] != number) number = first_[number];
    return number;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  void cross(LinkId link, std::size_t number) {
    std::uint32_t& last = last_[link.value()];
    if (last != none && last != number) {
      const std::size_t a = first_of(last), b = first_of(number);
      first_[std::max(a, b)] = std::min(a, b);
    }
    last = static_cast<std::uint32_t>(number);
  }

  const Fabric& fabric_;
  std::vector<LinkId> route_;
  std::vector<std::uint32_t> last_;  // pattern on a link
  std::vector<std::size_t> first_;   // one of the same set with a lower number, or itself
};

}  // namespace

std::vector<Pattern> that_meet_the_first(const Fabric& fabric, std::vector<Pattern> patterns) {
  if (patterns.size() < 2) return patterns;
  for (const Pattern& p : patterns)
    if (!are_alike(p, patterns.front())) return patterns;
  Joined joined(fabric, patterns.size());
  for (std::size_t p = 0; p < patterns.size(); ++p) joined.add(patterns[p], p);
  std::vector<Pattern> kept;
  for (std::size_t p = 0; p < patterns.size(); ++p)
    if (joined.first_of(p) == 0) kept.push_back(std::move(patterns[p]));
  return kept;
}

}  // namespace collcast
