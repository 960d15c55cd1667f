// How far training steps are off: scales fitted to other rows, summaries by source and tier, the order of alternatives.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "collcast/validation/training.hpp"

using namespace collcast;

namespace {

TrainingDeviation deviation(const std::string& configuration, double measured, double predicted) {
  TrainingDeviation out;
  out.row_id = configuration;
  out.source_id = "s";
  out.tier = "A";
  out.job = "j";
  out.configuration = configuration;
  out.measured = Seconds(measured);
  out.predicted = Seconds(predicted);
  return out;
}

}  // namespace

TEST_CASE("a scale is fitted to other configurations only, and is exact where all are off alike") {
  std::vector<TrainingDeviation> rows{deviation("a", 2, 1), deviation("b", 4, 2), deviation("c", 6, 3)};
  cross_validate(rows);
  for (const TrainingDeviation& row : rows) CHECK(*row.calibrated_ape() == Approx(0).margin(1e-12));

  // What a row says itself, or another of its configuration, does not move its scale.
  rows = {deviation("a", 100, 1), deviation("a", 90, 1), deviation("b", 2, 1), deviation("c", 2, 1)};
  cross_validate(rows);
  CHECK(*rows[0].scale == Approx(2));
  CHECK(*rows[1].scale == Approx(2));

  rows = {deviation("a", 3, 1), deviation("a", 3, 1)};
  cross_validate(rows);
  CHECK_FALSE(rows[0].scale.has_value());
  CHECK_FALSE(rows[0].calibrated_ape().has_value());
}

TEST_CASE("a schedule's remainder is found over all sources, beside their scales") {
  // Sources off by 2 and by 3, pipelines by 1.25 more. Enough configurations that no fold has all of one kind.
  std::vector<TrainingDeviation> rows;
  for (int i = 0; i < 80; ++i) {
    const bool pipeline = i % 2 == 1, second = i % 4 > 1;
    rows.push_back(deviation("c" + std::to_string(i), (second ? 3 : 2) * (pipeline ? 1.25 : 1), 1));
    rows.back().source_id = second ? "t" : "s";
    rows.back().schedule = pipeline ? "1f1b" : "none";
  }
  cross_validate(rows);
  for (const TrainingDeviation& row : rows) CHECK(*row.calibrated_ape() == Approx(0).margin(1e-9));
}

TEST_CASE("a ranking: Spearman over the alternatives, and what the pick costs") {
  TrainingReport report;
  for (int i = 1; i <= 5; ++i) report.rows.push_back(deviation(std::string(1, static_cast<char>('a' + i)), i, 2 * i));
  REQUIRE(rankings(report).size() == 1);
  CHECK(rankings(report)[0].spearman == Approx(1));
  CHECK(rankings(report)[0].slowdown == Approx(0).margin(1e-12));
  // Predicted in the reverse order: the slowest, 5, is picked where 1 is the best.
  for (int i = 0; i < 5; ++i) report.rows[static_cast<std::size_t>(i)].predicted = Seconds(10 - i);
  CHECK(rankings(report)[0].spearman == Approx(-1));
  CHECK(rankings(report)[0].slowdown == Approx(4));
  report.rows.pop_back();
  CHECK(rankings(report).empty());
}

TEST_CASE("a source with more than half of a tier's rows, or of the jobs, is left out once beside all of them") {
  TrainingReport report;
  for (int i = 0; i < 4; ++i) {
    report.rows.push_back(deviation(std::to_string(i), 1, i < 3 ? 1.0 : 1.5));
    report.rows.back().source_id = i < 3 ? "many" : "few";
  }
  const std::vector<TrainingSummaryRow> rows = summary(report);
  REQUIRE(rows.size() == 6);  // few.A, many.A, all A, all A but many, all, all but many
  CHECK(rows[2].without.empty());
  CHECK(rows[2].time.median_ape == Approx(0));
  for (const std::size_t i : {3U, 5U}) {
    CHECK(rows[i].source_id.empty());
    CHECK(rows[i].without == "many");
    CHECK(rows[i].rows == 1);
    CHECK(rows[i].time.median_ape == Approx(0.5));
  }
  report.rows.resize(1);  // all of one source: nothing is left without it
  CHECK(summary(report).size() == 3);

  const std::vector<TrainingRankingSummary> jobs =
      summary({{"few", "j", 5, 0.5, 0.25}, {"many", "j", 5, 0.75, 0}, {"many", "k", 5, 1, 0}});
  REQUIRE(jobs.size() == 4);  // few, many, all, all but many
  CHECK(jobs[1].median_spearman == Approx(0.875));
  CHECK(jobs[2].jobs == 3);
  CHECK(jobs[2].median_spearman == Approx(0.75));
  CHECK(jobs[2].least_spearman == Approx(0.5));
  CHECK(jobs[2].most_slowdown == Approx(0.25));
  CHECK(jobs[3].without == "many");
  CHECK(jobs[3].median_spearman == Approx(0.5));
}

TEST_CASE("a summary: tiers apart, memory, out of memory and rows without a scale") {
  TrainingReport report;
  report.rows = {deviation("a", 1, 1.1), deviation("b", 1, 0.7)};
  report.rows[1].tier = "B";
  report.rows[0].measured_memory = Bytes(100);
  report.rows[0].memory.use.activations = Bytes(90);
  report.rows[0].memory.use.context = Bytes(10);  // outside the allocator, of which the row's figure is
  report.rows[0].memory.use.capacity = Bytes(100);
  report.rows[1].measured_oom = true;
  report.rows[1].memory.use.nccl = Bytes(1);
  report.unscored.push_back({"x", "s", "A", "because"});
  const std::vector<TrainingSummaryRow> rows = summary(report);
  REQUIRE(rows.size() == 5);  // s.A, s.B, all A, all B, all
  CHECK(rows[0].time.mean_ape == Approx(0.1));
  CHECK(rows[0].memory.median_ape == Approx(0.1));
  CHECK(rows[0].unscored == 1);
  CHECK(rows[0].scaled == 0);
  CHECK(rows[0].calibrated.mean_ape == Approx(0.1));
  CHECK(rows[1].oom == 1);
  CHECK(rows[1].flagged == 1);
  CHECK(rows[4].time.mean_ape == Approx(0.2));
}
