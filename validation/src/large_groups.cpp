#include "large_groups.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "collcast/evaluate/considered.hpp"

namespace collcast {

namespace {

constexpr double near_enough = 0.01;
/// Times nearer to each other are equal, and the catalogue's order decides, as for `auto`.
constexpr double no_difference = 1e-6;

/// One algorithm over the sizes, which are in order.
class Curve {
 public:
  Curve(const PlacedTable& place, std::string algorithm, const std::vector<Bytes>& sizes)
      : place_(place), policy_{std::move(algorithm)}, sizes_(sizes), times_(sizes.size()) {}

  Result<std::vector<Seconds>> times() {
    const std::size_t last = sizes_.size() - 1;
    if (!price(0) || !price(last)) return errors_;
    if (!fill(0, last)) return errors_;
    return times_;
  }

 private:
  bool price(std::size_t i) {
    const Result<Choice> choice = fastest(*place_.fabric, place_.request(sizes_[i]), policy_);
    if (!choice) {
      errors_ = choice.errors();
      return false;
    }
    times_[i] = choice->estimate.total;
    return true;
  }

  double bytes(std::size_t i) const { return static_cast<double>(sizes_[i].value()); }
  double slope(std::size_t low, std::size_t high) const {
    return (times_[high] - times_[low]).count() / (bytes(high) - bytes(low));
  }
  Seconds on_line(std::size_t low, std::size_t high, std::size_t i) const {
    return times_[low] + Seconds(slope(low, high) * (bytes(i) - bytes(low)));
  }

  /// Between two sizes a curve max(a, b*N) leaves the line most at N = a/b.
  std::size_t bend(std::size_t low, std::size_t high) const {
    const double rise = slope(low, high);
    const double at = rise > 0 ? times_[low].count() / rise : std::sqrt(bytes(low) * bytes(high));
    std::size_t best = low + 1;
    for (std::size_t i = low + 1; i < high; ++i)
      if (std::abs(std::log(bytes(i) / at)) < std::abs(std::log(bytes(best) / at))) best = i;
    return best;
  }

  bool fill(std::size_t low, std::size_t high) {
    if (high - low < 2) return true;
    const std::size_t middle = bend(low, high);
    if (!price(middle)) return false;
    const Seconds line = on_line(low, high, middle);
    if (std::abs((times_[middle] - line) / times_[middle]) > near_enough)
      return fill(low, middle) && fill(middle, high);
    for (std::size_t i = low + 1; i < high; ++i)
      if (i != middle) times_[i] = i < middle ? on_line(low, middle, i) : on_line(middle, high, i);
    return true;
  }

  const PlacedTable& place_;
  CollectivePolicy policy_;
  const std::vector<Bytes>& sizes_;
  std::vector<Seconds> times_;
  Diagnostics errors_;
};

std::vector<Bytes> sizes_of(const MeasuredTable& table) {
  std::set<Bytes> sizes;
  for (const MeasuredPoint& point : table.points) sizes.insert(point.size);
  return {sizes.begin(), sizes.end()};
}

Result<std::map<Bytes, Predicted>> all_sizes(const PlacedTable& place) {
  const std::vector<Bytes> sizes = sizes_of(*place.table);
  const Result<std::vector<std::string>> names = considered(*place.fabric, place.request(sizes.back()));
  if (!names) return names.errors();
  std::map<Bytes, Predicted> best;
  for (const std::string& name : *names) {
    const Result<std::vector<Seconds>> times = Curve(place, name, sizes).times();
    if (!times) return times.errors();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const Predicted here{(*times)[i], name};
      const auto [found, first] = best.emplace(sizes[i], here);
      if (!first && here.time < found->second.time * (1 - no_difference)) found->second = here;
    }
  }
  return best;
}

}  // namespace

Result<Predicted> LargeGroups::fastest(const PlacedTable& place, Bytes size) {
  const Key key{place.fabric.get(), place.kind, place.group.size(), place.table};
  auto found = known_.find(key);
  if (found == known_.end()) found = known_.emplace(key, all_sizes(place)).first;
  if (!found->second) return found->second.errors();
  return found->second->at(size);
}

}  // namespace collcast
