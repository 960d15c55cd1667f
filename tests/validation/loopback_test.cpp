// The whole chain for real: Gloo on loopback measured, a machine calibrated on every second size, validated on the
// rest. The same on tables that were recorded on a quiet host, where the goal of 15 % must be met.
//
// Times of a shared machine jump by what the measurement's own spread says, so the law asserted is: on sizes that the
// fit never saw the median error is within 15 %, or within that spread where it is larger; and the calibration is worth
// its while: it takes at least half of the error away.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "cli/process.hpp"
#include "shipped.hpp"

using namespace collcast::test;
using Json = nlohmann::json;

namespace {

const std::string measurement = " --measured t.csv --statistic median ";

struct BandErrors {
  double median_ape = 0, spread = 0;
};

BandErrors band_errors(const Folder& folder, const std::string& options) {
  const auto run = run_shell(with_data + "collcast validate" + options + " --format json", folder.path());
  CAPTURE(run.err);
  REQUIRE(run.exit == 0);
  const Json table = Json::parse(run.out)["tables"][0];
  CHECK(table["topology"] == "loopback");
  CHECK(table["matched_by"] == "system");
  BandErrors out;
  int rows = 0;
  for (const char* name : {"small", "medium", "large"}) {
    const Json& band = table["bands"][name];
    const int n = band["n"];
    if (n == 0) continue;
    rows += n;
    out.median_ape += n * band["median_ape"].get<double>();
    out.spread += n * band["measured_spread"].get<double>();
  }
  return {out.median_ape / rows, out.spread / rows};
}

}  // namespace

TEST_CASE("measure, calibrate on half of the sizes, validate on the other half") {
  BandErrors before, after;
  // A host that is busy elsewhere spreads repetitions over more than their median: then it is asked again.
  for (int turn = 0; turn < 3 && (turn == 0 || after.spread > 1.1); ++turn) {
    const Folder folder;
    const auto measured = run_shell(with_data +
                                        "collcast measure all_reduce --backend gloo --ranks 4 --size 1KiB:16MiB:x2 "
                                        "--warmup 3 --repetitions 21 --date 2026-01-02 --output t.csv",
                                    folder.path());
    CAPTURE(measured.err);
    REQUIRE(measured.exit == 0);
    const auto fitted =
        run_shell(with_data + "collcast calibrate" + measurement + "--part 1/2 --output o.yaml", folder.path());
    CAPTURE(fitted.err);
    REQUIRE(fitted.exit == 0);
    before = band_errors(folder, measurement + "--part 2/2");
    after = band_errors(folder, measurement + "--part 2/2 --overlay o.yaml");
    WARN("median error " << after.median_ape * 100 << " % (before: " << before.median_ape * 100 << " %), spread "
                         << after.spread * 100 << " %");
  }
  CHECK(after.median_ape <= std::max(0.15, after.spread));
  CHECK(after.median_ape < before.median_ape / 2);
}

TEST_CASE("recorded tables of a quiet host: calibrated on half of the sizes, within 15 % on the other half") {
  const Folder folder;
  const std::string recorded = " --measured " + std::string(COLLCAST_SOURCE_DIR) +
                               "/validation/data/gloo-loopback/gloo-loopback-1x2-all_reduce.csv --statistic median ";
  REQUIRE(run_shell(with_data + "collcast calibrate" + recorded + "--part 1/2 --output o.yaml", folder.path()).exit ==
          0);
  CHECK(band_errors(folder, recorded + "--part 2/2").median_ape > 0.8);
  CHECK(band_errors(folder, recorded + "--part 2/2 --overlay o.yaml").median_ape < 0.15);
}
