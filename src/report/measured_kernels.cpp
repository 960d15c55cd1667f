#include "collcast/report/measured_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collcast/base/units.hpp"
#include "report/document.hpp"
#include "report/metrics.hpp"

namespace collcast {

namespace {

std::optional<double> flops_per_s(const MeasuredKernel& row) {
  if (!row.what.is_product()) return std::nullopt;
  return row.what.flops().value() / row.median.count();
}
double bytes_per_s(const MeasuredKernel& row) { return row.what.moved().value() / row.median.count(); }

}  // namespace

const char* to_string(KernelKind kind) {
  switch (kind) {
    case KernelKind::gemm:
      return "gemm";
    case KernelKind::attention:
      return "attention";
    case KernelKind::copy:
      return "copy";
    case KernelKind::fill:
      return "fill";
  }
  return "";
}

Flops KernelCase::flops() const {
  return Flops(2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
               static_cast<double>(k));
}

std::array<std::int64_t, 3> KernelCase::operands() const {
  if (kind == KernelKind::copy) return {bytes.value(), bytes.value(), 0};
  if (kind == KernelKind::fill) return {bytes.value(), 0, 0};
  const std::int64_t operand = (dtype == "fp8" ? 1 : 2) * batch, result = 2 * batch;
  return {operand * m * k, operand * k * n, result * m * n};
}

Volume KernelCase::moved() const {
  double sum = 0;
  for (const std::int64_t operand : operands()) sum += static_cast<double>(operand);
  return Volume(sum);
}

std::string KernelCase::text() const {
  if (!is_product()) return fmt::format("{} of {}", to_string(kind), format_bytes(bytes));
  const std::string shape = fmt::format("{} {} x {} x {}", dtype, m, n, k);
  return batch > 1 ? fmt::format("{} products of {}", batch, shape) : fmt::format("product of {}", shape);
}

std::string json(const KernelsMeasured& report) {
  Json out = document("collcast.kerneltimes.v1");
  const auto known = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  out["system"] = {{"name", report.system},
                   {"device", report.device},
                   {"driver", known(report.driver)},
                   {"library", known(report.library)}};
  out["complete"] = report.complete;
  out["rows"] = Json::array();
  for (const MeasuredKernel& row : report.rows) {
    const KernelCase& c = row.what;
    const bool product = c.is_product();
    out["rows"].push_back({{"kernel", to_string(c.kind)},
                           {"dtype", product ? Json(c.dtype) : Json()},
                           {"batch", product ? Json(c.batch) : Json()},
                           {"m", product ? Json(c.m) : Json()},
                           {"n", product ? Json(c.n) : Json()},
                           {"k", product ? Json(c.k) : Json()},
                           {"bytes", product ? Json() : Json(c.bytes.value())},
                           {"repetitions", row.repetitions},
                           {"calls", row.calls},
                           {"median_s", row.median.count()},
                           {"min_s", row.least.count()},
                           {"product_flops_per_s", product ? Json(*flops_per_s(row)) : Json()},
                           {"moved_bytes_per_s", bytes_per_s(row)}});
  }
  out["notes"] = report.notes;
  out["problems"] = report.problems;
  return text(out);
}

Table csv(const KernelsMeasured& report) {
  Table out;
  const bool products = std::all_of(report.rows.begin(), report.rows.end(),
                                    [](const MeasuredKernel& row) { return row.what.kind == KernelKind::gemm; });
  const auto shape_names = products ? std::vector<const char*>{"dtype", "m", "n", "k"}
                                    : std::vector<const char*>{"dtype", "kernel", "shape"};
  for (const char* name : {"system", "device"}) out.columns.push_back({name, "", Align::left});
  for (const char* name : shape_names) out.columns.push_back({name, "", Align::left});
  for (const char* name : {"latency_ms", "min_ms", "tflops", "gbytes_per_s"})
    out.columns.push_back({name, "", Align::left});
  for (const MeasuredKernel& row : report.rows) {
    const KernelCase& c = row.what;
    std::vector<std::string> cells{report.system, report.device, c.dtype};
    if (products)
      for (const std::int64_t of : {c.m, c.n, c.k}) cells.push_back(fmt::format("{}", of));
    else
      cells.insert(cells.end(), {to_string(c.kind), c.is_product() ? fmt::format("{}x{}x{}x{}", c.batch, c.m, c.n, c.k)
                                                                   : fmt::format("{}", c.bytes.value())});
    const auto flops = flops_per_s(row);
    cells.insert(
        cells.end(),
        {fmt::format("{:.6f}", row.median.count() * 1e3), fmt::format("{:.6f}", row.least.count() * 1e3),
         flops ? fmt::format("{:.6g}", *flops / 1e12) : std::string(), fmt::format("{:.6g}", bytes_per_s(row) / 1e9)});
    out.rows.push_back(std::move(cells));
  }
  return out;
}

Page page(const KernelsMeasured& report) {
  Page out;
  out.title = fmt::format("kernels of {}{}{}", report.device, report.driver.empty() ? "" : ", driver " + report.driver,
                          report.library.empty() ? "" : ", " + report.library);
  if (!report.rows.empty()) {
    Table rows{"median of repetitions by the GPU's clock, calls back to back",
               {{"kernel", "", Align::left},
                {"time", "", Align::right},
                {"min", "", Align::right},
                {"rate", "TFLOP/s", Align::right},
                {"memory", "GB/s", Align::right}},
               {}};
    for (const MeasuredKernel& row : report.rows) {
      const auto flops = flops_per_s(row);
      rows.rows.push_back({row.what.text(), format_seconds(row.median), format_seconds(row.least),
                           flops ? figure_text(*flops / 1e12) : "-", figure_text(bytes_per_s(row) / 1e9)});
    }
    out.blocks.push_back(std::move(rows));
  }
  for (const std::string& note : report.notes) out.blocks.push_back(Paragraph{note, Paragraph::Tone::note});
  if (!report.complete)
    out.blocks.push_back(
        Paragraph{"not every kernel was measured; these are the ones that were", Paragraph::Tone::warning});
  return out;
}

}  // namespace collcast
