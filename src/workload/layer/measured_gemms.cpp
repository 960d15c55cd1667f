#include "collcast/workload/measured_gemms.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <utility>

#include "collcast/base/check.hpp"
#include "collcast/workload/config.hpp"

namespace collcast {

namespace {

constexpr std::size_t most_neighbours = 16;
constexpr double nugget = 0.05;
constexpr double slack = 2;  // beyond the measured range, in each of m, n and k

using Point = std::array<double, 3>;  // log2 of m, n, k

Point point_of(const GemmShape& s) { return {std::log2(s.m), std::log2(s.n), std::log2(s.k)}; }

GemmShape shape_at(const Point& p) { return {std::exp2(p[0]), std::exp2(p[1]), std::exp2(p[2])}; }

double squared_distance(const Point& a, const Point& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

double covariance(const Point& a, const Point& b) { return std::exp(-std::sqrt(squared_distance(a, b)) / 2); }

using Matrix = std::array<std::array<double, most_neighbours>, most_neighbours>;
using Vector = std::array<double, most_neighbours>;

/// Lower triangle L of A = L L^T, in place; the nugget on the diagonal keeps it away from 0.
void factorize(Matrix& a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (std::size_t c = 0; c < j; ++c) sum -= a[i][c] * a[j][c];
      a[i][j] = i == j ? std::sqrt(sum) : sum / a[j][j];
    }
}

Vector solved(const Matrix& l, Vector b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t c = 0; c < i; ++c) b[i] -= l[i][c] * b[c];
    b[i] /= l[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t c = i + 1; c < n; ++c) b[i] -= l[c][i] * b[c];
    b[i] /= l[i][i];
  }
  return b;
}

struct Sample {
  Point at;
  double log_ratio;
};

/// mu + c^T A^-1 (z - mu), with mu = 1^T A^-1 z / 1^T A^-1 1.
double kriged(const Point& at, std::span<const Sample* const> near) {
  const std::size_t n = near.size();
  Matrix a{};
  Vector z{}, one{};
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) a[i][j] = covariance(near[i]->at, near[j]->at) + (i == j ? nugget : 0);
    z[i] = near[i]->log_ratio;
    one[i] = 1;
  }
  factorize(a, n);
  const Vector by_z = solved(a, z, n), by_one = solved(a, one, n);
  double sum_z = 0, sum_one = 0, prediction = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sum_z += by_z[i];
    sum_one += by_one[i];
  }
  const double mean = sum_z / sum_one;
  for (std::size_t i = 0; i < n; ++i) prediction += covariance(at, near[i]->at) * (by_z[i] - mean * by_one[i]);
  return mean + prediction;
}

}  // namespace

std::string_view to_string(GemmPass pass) {
  switch (pass) {
    case GemmPass::forward:
      return "forward";
    case GemmPass::input_gradient:
      return "input_gradient";
    case GemmPass::weight_gradient:
      break;
  }
  return "weight_gradient";
}

struct MeasuredGemms::Table {
  std::vector<Sample> samples;
  Point least{}, most{};
  mutable std::shared_mutex mutex;  // of `seen`: planners ask for the same few shapes from all threads
  mutable std::map<Point, double> seen;

  bool covers(const Point& p) const {
    for (std::size_t i = 0; i < p.size(); ++i)
      if (!(p[i] >= least[i] - std::log2(slack) && p[i] <= most[i] + std::log2(slack))) return false;
    return true;
  }

  Point nearest_covered(Point p) const {
    for (std::size_t i = 0; i < p.size(); ++i)
      p[i] = std::clamp(p[i], least[i] - std::log2(slack), most[i] + std::log2(slack));
    return p;
  }

  double interpolated(const Point& p, bool unseen) const {
    std::vector<std::pair<double, std::size_t>> order;
    order.reserve(samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i)
      if (!unseen || samples[i].at[1] != p[1] || samples[i].at[2] != p[2])
        order.emplace_back(squared_distance(p, samples[i].at), i);
    const std::size_t n = std::min(order.size(), most_neighbours);
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end());
    std::array<const Sample*, most_neighbours> near{};
    for (std::size_t i = 0; i < n; ++i) near[i] = &samples[order[i].second];
    return n == 0 ? 1 : std::exp(kriged(p, std::span(near).first(n)));
  }

  double remembered(const Point& p) const {
    {
      const std::shared_lock lock(mutex);
      if (const auto found = seen.find(p); found != seen.end()) return found->second;
    }
    const double ratio = interpolated(p, false);
    const std::unique_lock lock(mutex);
    seen.emplace(p, ratio);
    return ratio;
  }
};

MeasuredGemms::MeasuredGemms(const std::vector<MeasuredGemm>& measured) {
  if (measured.empty()) return;
  auto table = std::make_shared<Table>();
  for (const MeasuredGemm& gemm : measured) {
    check(gemm.ratio > 0 && gemm.shape.m > 0 && gemm.shape.n > 0 && gemm.shape.k > 0, "measured products have sizes");
    const Point p = point_of(gemm.shape);
    table->samples.push_back({p, std::log(gemm.ratio)});
    for (std::size_t i = 0; i < p.size(); ++i) {
      table->least[i] = table->samples.size() == 1 ? p[i] : std::min(table->least[i], p[i]);
      table->most[i] = table->samples.size() == 1 ? p[i] : std::max(table->most[i], p[i]);
    }
  }
  table_ = std::move(table);
}

std::size_t MeasuredGemms::size() const { return table_ ? table_->samples.size() : 0; }

std::optional<double> MeasuredGemms::ratio(const GemmShape& shape) const {
  const Point p = point_of(shape);
  if (!table_ || !table_->covers(p)) return std::nullopt;
  return table_->remembered(p);
}

std::optional<MeasuredGemms::AtEdge> MeasuredGemms::ratio_at_edge(const GemmShape& shape) const {
  if (!table_) return std::nullopt;
  const Point beyond = point_of(shape), edge = table_->nearest_covered(beyond);
  return AtEdge{table_->remembered(edge), std::sqrt(squared_distance(beyond, edge)), shape_at(edge)};
}

std::optional<double> MeasuredGemms::ratio_of_unseen(const GemmShape& shape) const {
  const Point p = point_of(shape);
  if (!table_ || !table_->covers(p)) return std::nullopt;
  return table_->interpolated(p, true);
}

std::optional<MeasuredGemms::AtEdge> GemmTables::ratio(std::optional<GemmPass> pass, const GemmShape& shape) const {
  const auto found = pass ? of_pass.find(*pass) : of_pass.end();
  auto own = found != of_pass.end() ? found->second.ratio_at_edge(shape) : std::nullopt;
  if (!own) return any.ratio_at_edge(shape);
  if (own->distance > 0)
    if (const auto all = any.ratio_at_edge(shape)) own->ratio *= all->ratio / any.ratio_at_edge(own->shape)->ratio;
  return own;
}

std::optional<double> GemmTables::ratio_of_unseen(std::optional<GemmPass> pass, const GemmShape& shape) const {
  if (const auto found = pass ? of_pass.find(*pass) : of_pass.end(); found != of_pass.end())
    if (const std::optional<double> ratio = found->second.ratio_of_unseen(shape)) return ratio;
  return any.ratio_of_unseen(shape);
}

std::size_t GemmTables::products() const {
  std::size_t all = any.size();
  for (const auto& [pass, table] : of_pass) all += table.size();
  return all;
}

std::string GemmTables::name() const { return file.substr(file.rfind('/') + 1); }

}  // namespace collcast
