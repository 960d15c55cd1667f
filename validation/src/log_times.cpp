#include "log_times.hpp"

#include <algorithm>
#include <cmath>

namespace collcast {

namespace {

/// Fewer are summed one by one.
constexpr std::uint32_t most_of_a_leaf = 16;
/// A half is summed by its moments where no time in it is farther from its middle than that share of full + distance:
/// what the eight terms leave out is below share^9 / 9 = 3e-15 of a weight.
constexpr double share = 1.0 / 32;

/// Terms of full x log(1 + (distance + side x) / full) about the distance of the middle, by the moments of x.
double far_sum(const std::array<double, 9>& moments, double distance, double side, double full) {
  double out = moments[0] * weighed(distance, full);
  if (std::isinf(full)) return out + side * moments[1];
  const double step = side / (full + distance);
  double power = 1;
  for (std::size_t k = 1; k < moments.size(); ++k) {
    power *= step;
    out += full * power * moments[k] / (k % 2 == 1 ? static_cast<double>(k) : -static_cast<double>(k));
  }
  return out;
}

}  // namespace

double weighed(double error, double full) {
  return std::isinf(full) ? std::abs(error) : full * std::log1p(std::abs(error) / full);
}

void LogTimes::build() {
  std::ranges::sort(times_, {}, &Time::value);
  std::vector<Time> distinct;
  for (const Time& time : times_)
    if (distinct.empty() || distinct.back().value != time.value)
      distinct.push_back(time);
    else
      distinct.back().weight += time.weight;
  for (Time& time : distinct) time.value = std::log(time.value);
  times_.assign(distinct.begin(), distinct.end());
  times_.shrink_to_fit();
  halves_.clear();
  if (times_.size() > most_of_a_leaf) split(0, static_cast<std::uint32_t>(times_.size()));
}

void LogTimes::split(std::uint32_t begin, std::uint32_t end) {
  const std::size_t index = halves_.size();
  Half half{begin, end};
  half.middle = (times_[begin].value + times_[end - 1].value) / 2;
  half.reach = (times_[end - 1].value - times_[begin].value) / 2;
  for (std::uint32_t i = begin; i < end; ++i) {
    double power = times_[i].weight;
    for (double& moment : half.moments) {
      moment += power;
      power *= times_[i].value - half.middle;
    }
  }
  halves_.push_back(half);
  if (end - begin <= most_of_a_leaf) return;
  const std::uint32_t between = begin + (end - begin) / 2;
  split(begin, between);
  halves_[index].second = static_cast<std::uint32_t>(halves_.size());
  split(between, end);
}

void LogTimes::add_to(Counted& out, std::uint32_t index, double at, double full) const {
  const Half& half = halves_[index];
  const double distance = std::abs(at - half.middle);
  ++out.steps;
  if (distance >= half.reach && half.reach <= share * (full + distance)) {
    out.sum += far_sum(half.moments, distance, at < half.middle ? 1 : -1, full);
  } else if (half.second != 0) {
    add_to(out, index + 1, at, full);
    add_to(out, half.second, at, full);
  } else {
    add_one_by_one(out, half.begin, half.end, at, full);
  }
}

void LogTimes::add_one_by_one(Counted& out, std::size_t begin, std::size_t end, double at, double full) const {
  for (std::size_t i = begin; i < end; ++i) out.sum += times_[i].weight * weighed(at - times_[i].value, full);
  out.steps += end - begin;
}

LogTimes::Counted LogTimes::counted_sum(Seconds predicted, double full) const {
  Counted out;
  const double at = std::log(predicted.count());
  if (halves_.empty())
    add_one_by_one(out, 0, times_.size(), at, full);
  else
    add_to(out, 0, at, full);
  return out;
}

double LogTimes::sum(Seconds predicted, double full) const { return counted_sum(predicted, full).sum; }

}  // namespace collcast
