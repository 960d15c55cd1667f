// Textbook = estimate = simulation = recurrence = critical path, for every algorithm and kind, where every pair
// of ranks has links of its own.
#include <catch2/catch.hpp>

#include "agreement/answers.hpp"
#include "support/textbook.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

constexpr double beta = 10e9;

int per_node_of(int ranks) {
  for (int m = 4; m > 1; --m)
    if (ranks % m == 0 && ranks > m) return m;
  return ranks;
}

bool same(double a, double b) { return std::abs(a - b) <= 1e-12 * std::abs(b); }
bool within(double value, double low, double high) {
  const double slack = 1e-12 * high + 1e-12;
  return value >= low - slack && value <= high + slack;
}

void check_laws(const Fabric& fabric, const Pattern& pattern, const std::string& algorithm,
                const textbook::Setting& setting) {
  INFO(algorithm << " " << to_string(setting.kind) << " k=" << setting.ranks << " N=" << setting.bytes
                 << " S=" << setting.chunks << " alpha=" << setting.alpha);
  const Answers a = answers(fabric, pattern);
  const double estimated = a.estimate.total.count();
  const textbook::Time book = textbook::time(algorithm, setting);
  CHECK(a.simulated >= a.critical);
  if (book && book->tight) CHECK(within(a.critical, book->value, book->value + a.rounding));
  if (a.recurrence) CHECK(*a.recurrence == a.simulated);
  if (a.estimate.shared) {
    // Two lanes over one link: simulation and estimate bound each other by the number of lanes.
    CHECK(a.simulated <= 2 * estimated + a.rounding);
    CHECK(estimated <= 2 * a.simulated + 1e-12);
    return;
  }
  CHECK(a.recurrence.has_value());
  CHECK(a.simulated == a.critical);
  // Nobody waits for the others to change phase: where they need not, the textbook's sum of phases is above.
  if (book && book->tight) CHECK(same(estimated, book->value));
  if (book && !book->tight) CHECK(within(estimated, 0.5 * book->value, book->value));
  CHECK(within(a.simulated, estimated, estimated + a.rounding));
}

}  // namespace

TEST_CASE("all answers agree on dedicated links") {
  for (const int k : {2, 3, 4, 5, 6, 7, 8, 9, 16, 17})
    for (const double alpha : {0.0, 1.5e-6}) {
      const Fabric fabric = dedicated_fabric(k, Bandwidth(beta), Seconds(alpha));
      for (const AlgorithmInfo& algorithm : algorithms())
        for (const CollectiveKind kind : algorithm.kinds)
          for (const std::int64_t bytes : {1LL, 1000LL, 1LL << 20, 10'000'000'001LL})
            for (const int chunks : {1, 2, 5}) {
              const int m = per_node_of(k);
              const Pattern pattern =
                  make_pattern(request(kind, k, bytes), options(algorithm.name, chunks, 1, node_blocks(k / m, m)))
                      .value();
              check_laws(fabric, pattern, algorithm.name,
                         {kind, static_cast<double>(bytes), k, chunks, alpha, beta, m});
            }
    }
}
