// Measured matrix products against their forecasts.
#include "collcast/validation/kernels.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cmath>

#include "../cli/process.hpp"
#include "shipped.hpp"
#include "training_rows.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

KernelReport kernel_report(const std::string& table) {
  const Result<std::vector<GemmRow>> rows = parse_gemm_table(table, "t.csv");
  REQUIRE(to_text(rows.errors()) == "");
  return validate_kernels({{{"t.csv", *rows}}, {}}, training_machines());
}

}  // namespace

TEST_CASE("products that were not measured are foreseen to 4 % (median) and 12 % (90th percentile)") {
  const auto tables = load_kernel_tables({COLLCAST_SOURCE_DIR "/topologies/kernels"}, {"test"});
  REQUIRE(to_text(tables.errors()) == "");
  const KernelReport report = validate_kernels(*tables, training_machines());
  CHECK(report.unscored.empty());
  for (const KernelSummaryRow& row : summary(report)) {
    CAPTURE(row.source_id, row.precision, row.time.median_ape, row.time.p90_ape);
    CHECK(row.interpolated == row.time.n);
    CHECK(row.time.median_ape < row.roofline.median_ape);
    CHECK(row.time.p90_ape < row.roofline.p90_ape);
    if (!row.source_id.empty() || !row.precision.empty()) continue;
    CHECK(row.time.n > 7000);
    CHECK(row.time.median_ape < 0.04);
    CHECK(row.time.p90_ape < 0.12);
  }
}

TEST_CASE("products of one GPU are met better with another's measured ones than by its roofline alone") {
  const auto tables = load_kernel_tables({COLLCAST_SOURCE_DIR "/topologies/kernels"}, {"test"});
  REQUIRE(to_text(tables.errors()) == "");
  const KernelReport report = validate_kernels(*tables, training_machines());
  // Of H100, H200 and B200, each by the two others, in bf16 and fp8; fp4 is of the B200 alone.
  REQUIRE(report.foreign.size() == 12);
  const auto error = [](std::vector<double> ratios) {
    double sum = 0;
    for (const double ratio : ratios) sum += std::abs(ratio - 1);
    return sum / static_cast<double>(ratios.size());
  };
  for (const ForeignKernels& of : report.foreign) {
    CAPTURE(of.source_id, of.kernels, of.precision);
    CHECK(of.source_id.substr(0, 4) != of.kernels);
    CHECK(of.time.size() > 900);
    CHECK(of.time.size() == of.roofline.size());
    CHECK(error(of.time) < error(of.roofline));
    CHECK(error(of.time) < 0.18);
  }
  // A table of one GPU's products has none of another's.
  CHECK(kernel_report("system,dtype,m,n,k,latency_ms\nh100_sxm,bfloat16,4096,4096,4096,0.2\n").foreign.empty());
}

TEST_CASE("a product is never scored by itself") {
  // The table's own row, and the same with another time: what is foreseen does not move with it.
  const KernelReport own = kernel_report("system,dtype,m,n,k,latency_ms\nh100_sxm,bfloat16,4096,4096,4096,0.2\n"),
                     other = kernel_report("system,dtype,m,n,k,latency_ms\nh100_sxm,bfloat16,4096,4096,4096,2\n");
  REQUIRE(own.rows.size() == 1);
  CHECK(own.rows[0].predicted == other.rows[0].predicted);
  CHECK(own.rows[0].interpolated);
  CHECK(own.rows[0].row_id == "t.csv:2");
  CHECK(own.rows[0].topology == "dgx-h100");
  // 4 us + 2 x 4096^3 FLOP at 0.77 of 989.4 TFLOP/s: 184.4 us.
  CHECK(own.rows[0].roofline.count() == Approx(4e-6 + 2 * 4096.0 * 4096 * 4096 / (0.77 * 989.4e12)));
}

TEST_CASE("what cannot be forecast is counted with its reason") {
  const KernelReport report = kernel_report(
      "system,dtype,m,n,k,latency_ms\nmi300x,bfloat16,64,512,512,1\nmi300x,fp8,64,512,512,1\na100_sxm,fp8,64,512,512,"
      "1\n"
      "a100_sxm,bfloat16,64,512,512,0.01\n");
  REQUIRE(report.rows.size() == 1);
  CHECK_FALSE(report.rows[0].interpolated);  // the A100's kernel table has a roofline only
  CHECK(report.rows[0].predicted == report.rows[0].roofline);
  REQUIRE(report.unscored.size() == 2);
  CHECK(report.unscored[0].source_id == "a100_sxm");
  CHECK(report.unscored[0].why == "kernel table 'a100' has no products of fp8");
  CHECK(report.unscored[1].source_id == "mi300x");
  CHECK(report.unscored[1].rows == 2);
  CHECK(report.unscored[1].why.find("no machine with a kernel table has the GPU 'mi300x'") == 0);
  const Table all = csv(report);
  REQUIRE(all.rows.size() == 3);
  CHECK(all.rows[1].back() == "1 row: kernel table 'a100' has no products of fp8");
  CHECK(all.rows[2].back().find("2 rows: no machine") == 0);
  for (const ForeignKernels& of : report.foreign) CHECK(of.time.size() + static_cast<std::size_t>(of.uncovered) == 1);
}

TEST_CASE("files of a folder that hold something else are listed; one that is named is an error") {
  const std::string training = COLLCAST_SOURCE_DIR "/validation/data/training";
  const auto mixed = load_kernel_tables({training, COLLCAST_SOURCE_DIR "/topologies/kernels/gemm-h100.csv"}, {"test"});
  REQUIRE(to_text(mixed.errors()) == "");
  CHECK(mixed->tables.size() == 1);
  CHECK(mixed->unread.size() > 10);
  CHECK(mixed->unread[0].why.find("no table of matrix products: no column dtype") == 0);
  CHECK(load_kernel_tables({training}, {"test"}).errors().at(0).message == "no table of matrix products was read");
  const auto named = load_kernel_tables({training + "/models.csv"}, {"test"});
  REQUIRE_FALSE(named);
  CHECK(named.errors()[0].message == "the columns dtype, m, n, k, latency_ms are missing");
  CHECK(load_kernel_tables({"/nowhere/at/all.csv"}, {"command line"}).errors().size() == 1);
}

TEST_CASE("products that are faster than their GPU can be are errors, all at once at their places") {
  const Folder folder;
  folder.write("k.csv",
               "system,dtype,m,n,k,latency_ms\n"
               "h100_sxm,bfloat16,16384,3584,3072,0.000455225\n"
               "h100_sxm,bfloat16,16384,3584,3072,0.455225\n"
               "b200_sxm,fp8,16384,3584,3072,0.0001\n");
  const Outcome outcome = run_shell(with_data + "collcast validate --kernels k.csv", folder.path());
  INFO(outcome.err);
  CHECK(outcome.exit == 2);
  CHECK(outcome.err.find("k.csv:2:35: error: latency_ms is '0.000455225', and at the gpu.peak of ") !=
        std::string::npos);
  CHECK(outcome.err.find("hint: expected milliseconds; if these are seconds, write 0.455225") != std::string::npos);
  CHECK(outcome.err.find("k.csv:4:30: error: latency_ms is '0.0001'") != std::string::npos);
  CHECK(outcome.err.find("k.csv:3:") == std::string::npos);

  const auto rows = load_kernel_tables({(folder.path() / "k.csv").string()}, {"test"});
  REQUIRE(to_text(rows.errors()) == "");
  CHECK(impossible_products(*rows, training_machines()).size() == 2);
  const auto all = load_kernel_tables({COLLCAST_SOURCE_DIR "/topologies/kernels"}, {"test"});
  REQUIRE(to_text(all.errors()) == "");
  CHECK(to_text(impossible_products(*all, training_machines())) == "");
}

TEST_CASE("products on a machine with another GPU are warned of, and not held to its rates") {
  const Folder folder;
  folder.write("k.csv",
               "system,dtype,m,n,k,latency_ms\n"
               "b200_sxm,bfloat16,16384,16384,16384,5.5\n"
               "b200_sxm,bfloat16,8192,16384,16384,2.8\n"
               "h100_sxm,bfloat16,4096,4096,4096,0.2\n");
  const Outcome outcome =
      run_shell(with_data + "collcast validate --kernels k.csv --topology dgx-h100 --format json", folder.path());
  CHECK(outcome.exit == 0);
  CHECK(outcome.err == "command line: warning: 2 rows measured on 'b200_sxm', dgx-h100 has 'H100-SXM5-80GB'\n");
  const auto document = nlohmann::json::parse(outcome.out);
  REQUIRE(document["warnings"].size() == 1);
  CHECK(document["warnings"][0].get<std::string>().find("2 rows measured on 'b200_sxm'") != std::string::npos);
  CHECK(run_shell(with_data + "collcast validate --kernels k.csv --format json", folder.path()).err == "");
}

TEST_CASE("products that do not say their GPU are said at their table's place") {
  const Folder folder;
  folder.write("k.csv", "dtype,m,n,k,latency_ms\nbfloat16,4096,4096,4096,0.2\nbfloat16,4096,4096,2048,0.1\n");
  folder.write("e.csv",
               "system,dtype,m,n,k,latency_ms\nh100_sxm,bfloat16,4096,4096,4096,0.2\n"
               ",bfloat16,4096,4096,2048,0.1\n");
  const Outcome none = run_shell(with_data + "collcast validate --kernels k.csv", folder.path());
  CHECK(none.exit == 2);
  CHECK(none.err.find("k.csv:1:1: error: 2 rows of k.csv cannot be scored: no column system, which names the GPU\n") !=
        std::string::npos);
  CHECK(none.err.find("command line") == std::string::npos);
  const auto tables =
      load_kernel_tables({(folder.path() / "k.csv").string(), (folder.path() / "e.csv").string()}, {"test"});
  REQUIRE(to_text(tables.errors()) == "");
  const KernelReport report = validate_kernels(*tables, training_machines());
  CHECK(report.rows.size() == 1);
  REQUIRE(report.unscored.size() == 2);
  CHECK(report.unscored[0].why == "system is empty, which names the GPU");
  CHECK(report.unscored[0].where.line == 3);
  CHECK(report.unscored[1].rows == 2);
  // One machine is for all rows.
  CHECK(run_shell(with_data + "collcast validate --kernels k.csv --topology dgx-h100", folder.path()).exit == 0);
}
