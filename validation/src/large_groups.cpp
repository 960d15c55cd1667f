#include "large_groups.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "collcast/evaluate/prepared.hpp"

namespace collcast {

namespace {

constexpr double near_enough = 0.01;
/// Times nearer to each other are equal, and the catalogue's order decides, as for `auto`.
constexpr double no_difference = 1e-6;
/// What is slower than another by more cannot be the fastest, nor, a few equal ones apart, keep one from being it.
constexpr double surely_slower = 1 + 100 * no_difference;
constexpr Seconds not_looked_at{std::numeric_limits<double>::infinity()};

/// One algorithm over the sizes, which are in order.
class Curve {
 public:
  Curve(const PreparedCollective& prepared, std::size_t algorithm, const std::vector<Bytes>& sizes,
        const GoesOn& goes_on)
      : prepared_(prepared),
        algorithm_(algorithm),
        sizes_(sizes),
        goes_on_(goes_on),
        times_(sizes.size(), not_looked_at) {}

  /// Those that could be the fastest, given what others take; the rest may be left out, as is all once it is ended.
  const std::vector<Seconds>& times(const std::vector<Seconds>& others) {
    const std::size_t last = sizes_.size() - 1;
    for (std::size_t i = 0; i <= last; ++i)
      matters_.push_back(prepared_.at_least(algorithm_, sizes_[i]) <= others[i] * surely_slower);
    if (!any_matters(0, last + 1)) return times_;
    price(0);
    price(last);
    fill(0, last);
    return times_;
  }

  bool is_ended() const { return ended_; }

 private:
  bool any_matters(std::size_t begin, std::size_t end) const {
    return std::find(matters_.begin() + static_cast<std::ptrdiff_t>(begin),
                     matters_.begin() + static_cast<std::ptrdiff_t>(end),
                     true) != matters_.begin() + static_cast<std::ptrdiff_t>(end);
  }

  void price(std::size_t i) {
    if (const Result<Choice> choice = prepared_.price(algorithm_, sizes_[i], goes_on_); choice)
      times_[i] = choice->estimate.total;
    else
      ended_ = true;
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

  /// What is read off a line lies above the bounds of its sizes too, for these are convex in the size.
  void fill(std::size_t low, std::size_t high) {
    if (ended_ || high - low < 2 || !any_matters(low + 1, high)) return;
    const std::size_t middle = bend(low, high);
    price(middle);
    if (ended_) return;
    const Seconds line = on_line(low, high, middle);
    if (std::abs((times_[middle] - line) / times_[middle]) > near_enough) {
      fill(low, middle);
      fill(middle, high);
      return;
    }
    for (std::size_t i = low + 1; i < high; ++i)
      if (i != middle) times_[i] = i < middle ? on_line(low, middle, i) : on_line(middle, high, i);
  }

  const PreparedCollective& prepared_;
  std::size_t algorithm_;
  const std::vector<Bytes>& sizes_;
  const GoesOn& goes_on_;
  bool ended_ = false;
  std::vector<Seconds> times_;
  std::vector<bool> matters_;
};

std::vector<Bytes> sizes_of(const MeasuredTable& table) {
  std::set<Bytes> sizes;
  for (const MeasuredPoint& point : table.points) sizes.insert(point.size);
  return {sizes.begin(), sizes.end()};
}

/// Those with the least to be expected of them come first: what they take tells what need not be looked at.
std::vector<std::size_t> by_promise(const PreparedCollective& prepared, std::size_t algorithms, Bytes largest) {
  std::vector<std::size_t> order(algorithms);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return prepared.at_least(a, largest) < prepared.at_least(b, largest);
  });
  return order;
}

Result<std::map<Bytes, Predicted>> all_sizes(const PlacedTable& place, bool look_at_all, const GoesOn& goes_on) {
  const std::vector<Bytes> sizes = sizes_of(*place.table);
  const auto prepared = PreparedCollective::make(*place.fabric, place.request(sizes.back()), {}, goes_on);
  if (!prepared) return prepared.errors();
  const std::vector<std::string> names = prepared->algorithms();
  std::vector<std::vector<Seconds>> times(names.size());
  std::vector<Seconds> least(sizes.size(), not_looked_at);
  for (const std::size_t a : by_promise(*prepared, names.size(), sizes.back())) {
    const std::vector<Seconds> all(sizes.size(), not_looked_at);
    Curve curve(*prepared, a, sizes, goes_on);
    times[a] = curve.times(look_at_all ? all : least);
    if (curve.is_ended()) return Diagnostic{{}, "it was ended from outside before all sizes were looked at", {}};
    for (std::size_t i = 0; i < sizes.size(); ++i) least[i] = std::min(least[i], times[a][i]);
  }
  std::map<Bytes, Predicted> best;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::size_t first = 0;
    for (std::size_t a = 1; a < names.size(); ++a)
      if (times[a][i] < times[first][i] * (1 - no_difference)) first = a;
    best.emplace(sizes[i], Predicted{times[first][i], names[first]});
  }
  return best;
}

}  // namespace

const LargeGroups::Times* LargeGroups::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : &found->second;
}

const LargeGroups::Times* LargeGroups::keep(const Key& key, Times times) {
  const std::lock_guard lock(mutex_);
  return &known_.emplace(key, std::move(times)).first->second;
}

Result<Predicted> LargeGroups::fastest(const PlacedTable& place, Bytes size, const GoesOn& goes_on) {
  const Key key{place.fabric.get(), place.kind, place.group.size(), place.table};
  const Times* times = find(key);
  if (times == nullptr) {
    Times all = all_sizes(place, look_at_all_, goes_on);
    if (!all && goes_on && !goes_on()) return all.errors();
    times = keep(key, std::move(all));
  }
  if (!*times) return times->errors();
  return (*times)->at(size);
}

}  // namespace collcast
