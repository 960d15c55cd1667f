#include "cost/crossings.hpp"

#include <algorithm>
#include <numeric>

namespace collcast {
namespace {

constexpr double just_under = 1 - 1e-9;  // what begins as a hop ends does not meet it

}  // namespace

void Crossings::add(double moment, double bytes, double duty) {
  if (moments_.empty() || moments_.back() != moment) {
    moments_.push_back(moment);
    sums_.emplace_back();
  }
  Sums& own = sums_.back();
  own.hops += 1;
  own.bytes += bytes;
  own.busy += bytes * duty;
  own.hops_by_moment += moment;
  own.bytes_by_moment += bytes * moment;
}

void Crossings::close() {
  if (!std::is_sorted(moments_.begin(), moments_.end())) {
    std::vector<std::size_t> order(moments_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [this](std::size_t a, std::size_t b) { return moments_[a] < moments_[b]; });
    std::vector<double> moments;
    std::vector<Sums> sums;
    for (const std::size_t i : order) {
      moments.push_back(moments_[i]);
      sums.push_back(sums_[i]);
    }
    moments_ = std::move(moments);
    sums_ = std::move(sums);
  }
  Sums upto;
  std::size_t merged = 0;
  for (std::size_t i = 0; i < moments_.size(); ++i) {
    upto.hops += sums_[i].hops;
    upto.bytes += sums_[i].bytes;
    upto.busy += sums_[i].busy;
    upto.hops_by_moment += sums_[i].hops_by_moment;
    upto.bytes_by_moment += sums_[i].bytes_by_moment;
    if (merged == 0 || moments_[merged - 1] != moments_[i]) moments_[merged++] = moments_[i];
    sums_[merged - 1] = upto;
  }
  moments_.resize(merged);
  sums_.resize(merged);
}

Crossings::Sums Crossings::between(std::size_t begin, std::size_t end) const {
  if (begin >= end) return {};
  Sums out = sums_[end - 1];
  if (begin == 0) return out;
  const Sums& before = sums_[begin - 1];
  out.hops -= before.hops;
  out.bytes -= before.bytes;
  out.busy -= before.busy;
  out.hops_by_moment -= before.hops_by_moment;
  out.bytes_by_moment -= before.bytes_by_moment;
  return out;
}

// Doubling steps away from the last place, then halving ones.
std::size_t Crossings::from(double time, std::size_t& last) const {
  std::size_t low = last, high = last, step = 1;
  if (low < moments_.size() && moments_[low] < time) {
    for (; high < moments_.size() && moments_[high] < time; step *= 2) {
      low = high + 1;
      high += step;
    }
    high = std::min(high, moments_.size());
  } else {
    for (; low > 0 && !(moments_[low - 1] < time); step *= 2) {
      high = low - 1;
      low -= std::min(low, step);
    }
    high = std::max(low, high);
  }
  const auto begin = moments_.begin();
  last = static_cast<std::size_t>(
      std::lower_bound(begin + static_cast<std::ptrdiff_t>(low), begin + static_cast<std::ptrdiff_t>(high), time) -
      begin);
  return last;
}

const Crossings::Others& Crossings::beside(double moment, double bytes, double pace, int chunks) {
  const Asked asked{moment, bytes, pace, chunks};
  if (asked == asked_) return answer_;
  asked_ = asked;
  return answer_ = answer(moment, bytes, pace, chunks);
}

Crossings::Others Crossings::answer(double moment, double bytes, double pace, int chunks) {
  while (next_ < moments_.size() && moments_[next_] < moment) ++next_;
  if (next_ == moments_.size() || moments_[next_] != moment || !(pace > 0)) return {};
  if (moments_.size() == 1) return {};
  const double reach = chunks * pace, now = moment / pace;
  const Sums going = between(from(moment - reach * just_under, going_), next_);
  const Sums begun = between(from(moment - reach + pace, begun_), next_);
  const Sums later = between(next_ + 1, from(moment + reach * just_under, later_));
  const double c = chunks;
  Others out;
  out.begun = std::min(going.busy, going.hops * bytes);
  out.earlier = std::min((c - 1 - now) * begun.bytes + begun.bytes_by_moment / pace,
                         ((c - 1 - now) * begun.hops + begun.hops_by_moment / pace) * bytes);
  out.later = std::min((c + now) * later.bytes - later.bytes_by_moment / pace,
                       ((c + now) * later.hops - later.hops_by_moment / pace) * bytes);
  return out;
}

}  // namespace collcast
