// How far simulations of library nccl are from its closed form, and whether both rank alike: the figures of
// docs/nccl.md, printed.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "machines.hpp"

using namespace collcast;
using nccl::Algorithm;
using nccl::Communicator;
using nccl::Plan;
using nccl::Protocol;

namespace {

struct TimedBothWays {
  std::string name;
  double closed, simulated;
};

struct Spread {
  std::vector<std::pair<double, std::string>> deviations;  ///< |simulated / closed - 1| of rings and trees
  std::vector<std::pair<double, std::string>> of_nvls;     ///< the same of NVLS and its trees
  int pairs = 0, reversed = 0, sizes = 0, alike = 0;
  int eighth_apart = 0;          ///< of the reversed, by the closed form
  double apart = 1, nearly = 1;  ///< the furthest of these by the closed form, and by the simulation
  double lost = 1;               ///< simulated, what is quickest by the closed form over what is
  double at(double share) const {
    return deviations[static_cast<std::size_t>(share * static_cast<double>(deviations.size() - 1))].first;
  }
};

void rank(const std::vector<TimedBothWays>& all, Spread& out) {
  const auto ratio = [](double a, double b) { return std::max(a, b) / std::min(a, b); };
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      const TimedBothWays &a = all[i], &b = all[j];
      ++out.pairs;
      if ((a.closed < b.closed) == (a.simulated < b.simulated)) continue;
      ++out.reversed;
      if (const double apart = ratio(a.closed, b.closed); apart > 1.125) {
        ++out.eighth_apart;
        out.apart = std::max(out.apart, apart);
        out.nearly = std::max(out.nearly, ratio(a.simulated, b.simulated));
      }
    }
  const auto closed = std::ranges::min_element(all, {}, &TimedBothWays::closed);
  const auto simulated = std::ranges::min_element(all, {}, &TimedBothWays::simulated);
  ++out.sizes;
  out.alike += closed == simulated;
  out.lost = std::max(out.lost, closed->simulated / simulated->simulated);
}

/// All choices of 1 to 8 nodes by both methods, and what is printed of them.
Spread spread_of(std::initializer_list<const char*> machines) {
  Spread all;
  for (const char* machine : machines)
    for (const int nodes : {1, 2, 3, 4, 6, 8}) {
      const Fabric fabric = test::built(machine, nodes);
      const Communicator c =
          test::communicator(machine, nodes, 0, test::environment({{"NCCL_PROTO", "LL,LL128,Simple"}}));
      for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather})
        for (const std::int64_t kib : {0, 1, 16, 64, 256, 512, 1024, 2048, 4096, 16384, 65536}) {
          const Bytes size(kib == 0 ? 8 : kib << 10);
          std::vector<TimedBothWays> choices;
          for (const auto& [algorithm, protocol] : test::choices(c, kind)) {
            const Plan plan = test::planned_as(c, kind, size, algorithm, protocol);
            choices.push_back({fmt::format("{} {}", to_string(algorithm), to_string(protocol)),
                               nccl::run(c, kind, size, plan).time().count(),
                               test::simulated(fabric, c, kind, size, plan).count()});
            const TimedBothWays& last = choices.back();
            const bool nvls = algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree;
            (nvls ? all.of_nvls : all.deviations)
                .emplace_back(std::abs(last.simulated / last.closed - 1),
                              fmt::format("{} x{} {} {} {}", machine, nodes, to_string(kind), last.name, size.value()));
          }
          if (kind == CollectiveKind::all_reduce) rank(choices, all);
        }
    }
  for (auto* deviations : {&all.deviations, &all.of_nvls}) std::ranges::sort(*deviations);
  if (!all.of_nvls.empty())
    std::cout << fmt::format("{} runs of NVLS: median {:.1f} %, worst {:.1f} % ({})\n", all.of_nvls.size(),
                             100 * all.of_nvls[all.of_nvls.size() / 2].first, 100 * all.of_nvls.back().first,
                             all.of_nvls.back().second);
  std::cout << fmt::format(
      "{} runs of rings and trees: median {:.1f} %, 90 % {:.1f} %, worst {:.1f} % ({})\n"
      "{} pairs of all_reduce, {} the other way round; {} of these an eighth or more apart by the closed form (to "
      "{:.3f}), within {:.3f} simulated\n"
      "quickest alike for {} of {} sizes, within {:.3f} for all\n",
      all.deviations.size(), 100 * all.at(0.5), 100 * all.at(0.9), 100 * all.deviations.back().first,
      all.deviations.back().second, all.pairs, all.reversed, all.eighth_apart, all.apart, all.nearly, all.alike,
      all.sizes, all.lost);
  return all;
}

}  // namespace

// A minute: run by the ctest nccl_spread (preset long).
TEST_CASE("spread of simulations and closed forms of rings, trees and NVLS, and how they rank", "[.][spread]") {
  const Spread all = spread_of({"dgx-a100", "dgx-h100", "dgx-b200", "aws-p4d"});
  CHECK(all.at(0.5) < 0.01);
  CHECK(all.at(0.9) < 0.04);
  CHECK(all.deviations.back().first < 0.125);
  CHECK(all.of_nvls.back().first < 0.15);
  CHECK(all.reversed * 60 < all.pairs);
  CHECK(all.eighth_apart == 0);
  CHECK(all.lost < 1.09);
}

TEST_CASE("spread and ranks of boxes with PCIe alone, and where messages cross the host's bridge", "[.][spread]") {
  const Spread all = spread_of({"l40s-pcie", "rtxpro6000-pcie", "polaris"});
  CHECK(all.at(0.5) < 0.02);
  CHECK(all.at(0.9) < 0.09);
  CHECK(all.deviations.back().first < 0.27);
  CHECK(all.reversed * 40 < all.pairs);
  CHECK(all.nearly < 1.09);
  CHECK(all.lost < 1.07);
}
