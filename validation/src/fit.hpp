// Least values of a function of a few positive parameters: NLopt's subplex method (SBPLX) on their logarithms.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "collcast/cost/estimate.hpp"

namespace collcast {

/// Logarithms of parameters.
using Point = std::vector<double>;

/// Bounds, where a fit begins, and what the parameter stays at where no row depends on it; logarithms.
struct Parameter {
  const char* name;
  double least, most, start, neutral;
  double held = 1;      ///< its part in the prior
  double drawn_to = 0;  ///< by the prior, in proportion to the square up to `in_full`
  double in_full = std::numeric_limits<double>::infinity();
};

/// How much a parameter of that logarithm is drawn to 1: its square up to `in_full`, and beyond that no more than in
/// proportion to the logarithm of the distance, as an error that counts less and less: where all rows are far off
/// alike, the prior would else cost more than the error that it keeps.
double drawn(double logarithm, double in_full);

class Fit {
 public:
  /// `loss` is what is made least, by at most so many calls in one minimise(); `prior` times the sum of drawn() of the
  /// point, each by how its parameter is held, is added to it, so that rows which hardly tell keep a parameter near 1.
  /// Once `goes_on` says no, every point is as good as the other: what is under way is over soon, and its
  /// result none.
  Fit(std::vector<Parameter>, std::function<double(const Point&)> loss, int most_evaluations, double prior = 0,
      GoesOn goes_on = {});

  Point start() const;
  /// Parameters that the loss does not depend on near `x` become neutral and stay out of minimise().
  void leave_out_what_has_no_effect(Point& x);
  /// The best of a few values of each parameter, one after the other: where the loss is flat around a point, as of a
  /// bound that does not bind, minimise() would stay there.
  Point scan(const Point& from);
  /// The best of the values of one free parameter that are whole steps from there, within the bounds; there, clamped,
  /// where none is better.
  Point walk(const Point& from, std::size_t parameter, double step);
  /// Other bounds for the same parameters from here on.
  void narrow(std::vector<Parameter> to) { parameters_ = std::move(to); }
  /// From there. Same loss, same point, to the last digit.
  Point minimise(const Point& from);
  double loss(const Point&);
  /// The same with the prior.
  double priced(const Point&);

  int evaluations() const { return evaluations_; }
  const std::vector<std::size_t>& free() const { return free_; }
  std::vector<std::string> names(const std::vector<std::size_t>& which) const;
  /// Those of them that ended at a bound.
  std::vector<std::string> at_bounds(const std::vector<std::size_t>& which, const Point&) const;

 private:
  std::vector<Parameter> parameters_;
  std::function<double(const Point&)> loss_;
  int most_evaluations_;
  double prior_;
  GoesOn goes_on_;
  std::vector<std::size_t> free_;
  int evaluations_ = 0;
};

}  // namespace collcast
