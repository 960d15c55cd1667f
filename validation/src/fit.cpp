#include "fit.hpp"

#include <algorithm>
#include <cmath>
#include <nlopt.hpp>
#include <utility>

namespace collcast {

double drawn(double logarithm, double in_full) {
  const double distance = std::abs(logarithm);
  if (distance <= in_full) return distance * distance;
  return in_full * in_full * (1 + 2 * std::log(distance / in_full));
}

Fit::Fit(std::vector<Parameter> parameters, std::function<double(const Point&)> loss, int most_evaluations,
         double prior, GoesOn goes_on)
    : parameters_(std::move(parameters)),
      loss_(std::move(loss)),
      most_evaluations_(most_evaluations),
      prior_(prior),
      goes_on_(std::move(goes_on)) {}

Point Fit::start() const {
  Point out;
  for (const Parameter& one : parameters_) out.push_back(one.start);
  return out;
}

double Fit::loss(const Point& x) {
  ++evaluations_;
  return goes_on_ && !goes_on_() ? 0 : loss_(x);
}

double Fit::priced(const Point& x) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    sum += parameters_[i].held * drawn(x[i] - parameters_[i].drawn_to, parameters_[i].in_full);
  return loss(x) + prior_ * sum;
}

void Fit::leave_out_what_has_no_effect(Point& x) {
  constexpr double step = 0.7;  // about a factor of two
  const double here = loss(x);
  free_.clear();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto matters = [&](double by) {
      Point other = x;
      other[i] = std::clamp(x[i] + by, parameters_[i].least, parameters_[i].most);
      return std::abs(loss(other) - here) > 1e-9;
    };
    if (matters(step) || matters(-step) || matters(3 * step) || matters(-3 * step))
      free_.push_back(i);
    else
      x[i] = parameters_[i].neutral;
  }
}

Point Fit::scan(const Point& from) {
  constexpr double step = 0.7;
  Point best = from;
  double least = priced(best);
  for (const std::size_t i : free_) {
    const Point here = best;
    for (const int steps : {-3, -2, -1, 1, 2, 3}) {
      Point other = here;
      other[i] = std::clamp(here[i] + steps * step, parameters_[i].least, parameters_[i].most);
      if (const double value = priced(other); value < least) {
        least = value;
        best = other;
      }
    }
  }
  return best;
}

Point Fit::walk(const Point& from, std::size_t parameter, double step) {
  Point best = from;
  for (const std::size_t i : free_) best[i] = std::clamp(best[i], parameters_[i].least, parameters_[i].most);
  if (std::ranges::find(free_, parameter) == free_.end()) return best;
  const Point here = best;
  const Parameter& range = parameters_[parameter];
  double least = priced(best);
  const auto first = static_cast<int>(std::ceil((range.least - here[parameter]) / step));
  const auto last = static_cast<int>(std::floor((range.most - here[parameter]) / step));
  for (int steps = first; steps <= last; ++steps) {
    Point other = here;
    other[parameter] += steps * step;
    if (const double value = priced(other); value < least) {
      least = value;
      best = other;
    }
  }
  return best;
}

Point Fit::minimise(const Point& from) {
  if (free_.empty()) return from;
  Point whole = from, start, lower, upper;
  for (const std::size_t i : free_) {
    lower.push_back(parameters_[i].least);
    upper.push_back(parameters_[i].most);
    start.push_back(std::clamp(from[i], lower.back(), upper.back()));
  }
  struct Call {
    Fit* fit;
    Point whole;
  } call{this, from};
  nlopt::opt method(nlopt::LN_SBPLX, static_cast<unsigned>(free_.size()));
  method.set_lower_bounds(lower);
  method.set_upper_bounds(upper);
  method.set_min_objective(
      [](unsigned n, const double* values, double*, void* data) {
        auto& c = *static_cast<Call*>(data);
        for (unsigned i = 0; i < n; ++i) c.whole[c.fit->free_[i]] = values[i];
        return c.fit->priced(c.whole);
      },
      &call);
  method.set_initial_step(std::vector<double>(free_.size(), 0.5));
  method.set_xtol_abs(1e-4);
  method.set_ftol_abs(1e-6);
  method.set_maxeval(most_evaluations_);
  double reached = 0;
  try {
    method.optimize(start, reached);
  } catch (const nlopt::roundoff_limited&) {
    // Its last point is as good as doubles allow.
  }
  for (std::size_t i = 0; i < free_.size(); ++i) whole[free_[i]] = start[i];
  return whole;
}

std::vector<std::string> Fit::names(const std::vector<std::size_t>& which) const {
  std::vector<std::string> out;
  for (const std::size_t i : which) out.emplace_back(parameters_[i].name);
  return out;
}

std::vector<std::string> Fit::at_bounds(const std::vector<std::size_t>& which, const Point& x) const {
  constexpr double near = 1e-3;  // a thousandth of the parameter
  std::vector<std::string> out;
  for (const std::size_t i : which)
    if (x[i] <= parameters_[i].least + near || x[i] >= parameters_[i].most - near)
      out.emplace_back(parameters_[i].name);
  return out;
}

}  // namespace collcast
