// Measured matrix products of one GPU, and what they say of shapes that were not measured.
//
// Kept is the ratio of measured time to that of the roofline of KernelEfficiency, which carries size; between shapes
// its logarithm is interpolated by ordinary kriging over log2 m, n, k (a mean that is unknown but locally constant,
// covariance exp(-distance/2), a nugget for what neighbours do not share: tiles, waves, the measurement). Ratios vary
// smoothly, times do not. Constants: least error of products whose (n, k) was left out, over eleven tables of five
// GPUs (docs/steps.md, "Kernels"). Left out: layouts of operands, unless a pass has a table of its own.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "collcast/base/quantity.hpp"

namespace collcast {

/// C[m, n] = A[m, k] B[k, n].
struct GemmShape {
  double m = 0, n = 0, k = 0;
  bool operator==(const GemmShape&) const = default;
};

/// What a product is for: the three of a linear layer differ in the layout of their operands.
enum class GemmPass { forward, input_gradient, weight_gradient };
std::string_view to_string(GemmPass);

struct MeasuredGemm {
  GemmShape shape;
  double ratio = 1;  ///< of measured time to the roofline's
};

class MeasuredGemms {
 public:
  MeasuredGemms() = default;
  explicit MeasuredGemms(const std::vector<MeasuredGemm>&);

  std::size_t size() const;
  /// What to multiply the roofline's time by; nothing for shapes beyond the measured ones by more than a factor of 2
  /// in m, n or k. Remembers what it was asked.
  std::optional<double> ratio(const GemmShape&) const;
  /// The same from products of other (n, k) only: how good the table is for what it has not seen.
  std::optional<double> ratio_of_unseen(const GemmShape&) const;
  /// That of the nearest shape that ratio() has, how far off it is in octaves, and it; nothing without products.
  struct AtEdge {
    double ratio = 1, distance = 0;
    GemmShape shape;
  };
  std::optional<AtEdge> ratio_at_edge(const GemmShape&) const;

 private:
  struct Table;
  std::shared_ptr<const Table> table_;
};

}  // namespace collcast
