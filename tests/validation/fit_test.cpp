// The search for the least of a function of logarithms: what each step of it keeps, whatever the function.
#include "fit.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

using namespace collcast;

namespace {

std::vector<Parameter> three() { return {{"a", -2, 2, 0, 0}, {"b", -3, 1, 0, 0}, {"c", -2, 2, 0, 0}}; }

/// Some valleys along each of the first two; the third has no effect.
double hills(const Point& x) { return 2 + std::sin(5 * x[0]) + std::cos(4 * x[1] + 1) + 0.1 * std::abs(x[1] + x[0]); }

Fit fit_of(double prior = 0) {
  Fit out(three(), hills, 500, prior);
  Point x = out.start();
  out.leave_out_what_has_no_effect(x);
  return out;
}

}  // namespace

TEST_CASE("a walk ends at the least of whole steps along one parameter within its bounds, and moves no other") {
  std::mt19937 random(7);
  const auto drawn_from = [&](double least, double most) {
    return least + (most - least) * static_cast<double>(random()) / static_cast<double>(std::mt19937::max());
  };
  for (int turn = 0; turn < 50; ++turn) {
    Fit fit = fit_of(turn % 2 == 0 ? 0 : 0.05);
    const std::vector<Parameter> bounds = three();
    const std::size_t along = turn % 4 < 2 ? 0 : 1;
    const double step = drawn_from(0.1, 0.8);
    const Point from{drawn_from(-2, 2), drawn_from(-3, 1), 0};
    CAPTURE(turn, along, step, from[0], from[1]);
    const int before = fit.evaluations();
    const Point to = fit.walk(from, along, step);
    const int taken = fit.evaluations() - before;
    CHECK(fit.priced(to) <= fit.priced(from));
    const double steps = (to[along] - from[along]) / step;
    CHECK(std::abs(steps - std::round(steps)) < 1e-9);
    CHECK((to[along] >= bounds[along].least - 1e-9 && to[along] <= bounds[along].most + 1e-9));
    for (std::size_t i = 0; i < to.size(); ++i)
      if (i != along) CHECK(to[i] == from[i]);
    // Of all of these there is none that is less.
    int reachable = 0;
    for (int i = -60; i <= 60; ++i) {
      Point other = from;
      other[along] += i * step;
      if (other[along] < bounds[along].least || other[along] > bounds[along].most) continue;
      ++reachable;
      CHECK(fit.priced(to) <= fit.priced(other) + 1e-12);
    }
    CHECK(taken == reachable + 1);
  }
}

TEST_CASE("a walk finds a valley that a descent from the same point does not") {
  // Two valleys, the deeper one far off behind a ridge.
  const auto loss = [](const Point& x) { return std::min(std::abs(x[0]), 0.2 * std::abs(x[0] + 3) - 0.4) + 1; };
  Fit fit({{"a", -4, 1, 0, 0}}, loss, 500);
  Point x = fit.start();
  fit.leave_out_what_has_no_effect(x);
  CHECK(fit.minimise({0.01})[0] == Approx(0).margin(0.01));
  const Point far = fit.walk({0.0}, 0, 0.15);
  CHECK(fit.priced(far) < fit.priced({0.0}));
  CHECK(fit.minimise(far)[0] == Approx(-3).margin(0.01));
}

TEST_CASE("a walk begins within the bounds, and stays where its parameter has no effect") {
  Fit fit = fit_of();
  CHECK(fit.free() == std::vector<std::size_t>{0, 1});
  const Point outside = fit.walk({5, -7, 0}, 0, 0.5);
  CHECK(outside[0] <= 2);
  CHECK(outside[1] == -3);
  CHECK(fit.walk({0.5, 0.25, 0}, 2, 0.5) == Point{0.5, 0.25, 0});
}

TEST_CASE("what draws a parameter to 1 is its square near it, smooth, and grows ever less in proportion beyond") {
  const double in_full = std::log(3.0);
  double before = 0, slope_before = 0, share_before = 1e300;
  constexpr double step = 1e-3;
  for (double x = step; x < 6; x += step) {
    const double here = drawn(x, in_full), slope = (here - before) / step;
    REQUIRE(here == drawn(-x, in_full));
    REQUIRE(here > before);
    REQUIRE(here <= x * x * (1 + 1e-12));
    if (x <= in_full) REQUIRE(here == x * x);
    REQUIRE(std::abs(slope - slope_before) < 4 * step);  // no kink
    if (x > 2 * in_full) {
      REQUIRE(here / x < share_before);
      share_before = here / x;
    }
    before = here;
    slope_before = slope;
  }
}
