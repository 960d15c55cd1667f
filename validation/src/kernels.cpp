#include "collcast/validation/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include "collcast/base/text.hpp"
#include "collcast/scenario/gemm_check.hpp"
#include "collcast/workload/gemm_time.hpp"
#include "lines.hpp"

namespace collcast {

namespace {

namespace fs = std::filesystem;

class Loader {
 public:
  explicit Loader(const Location& asked_by) : asked_by_(asked_by) {}

  void load(const std::string& path) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) return file(path, true);
    const std::vector<std::string> files = csv_files(path);
    if (files.empty())
      errors_.push_back(
          {asked_by_, fmt::format("'{}' has no .csv file", path), "expected tables of measured products"});
    for (const std::string& one : files) file(one, false);
  }

  Result<KernelTables> take() {
    if (errors_.empty() && out_.tables.empty())
      errors_.push_back(
          {asked_by_, "no table of matrix products was read", "expected CSV with the columns dtype,m,n,k,latency_ms"});
    if (!errors_.empty()) return std::move(errors_);
    return std::move(out_);
  }

 private:
  void file(const std::string& path, bool named) {
    const Result<std::string> text = read_file(path, asked_by_);
    if (!text) {
      errors_.insert(errors_.end(), text.errors().begin(), text.errors().end());
      return;
    }
    const std::string id = fs::path(path).filename().string();
    if (const auto missing = missing_gemm_columns(*text); !named && !missing.empty()) {
      const auto rows = std::max<std::ptrdiff_t>(std::count(text->begin(), text->end(), '\n') - 1, 0);
      out_.unread.push_back({id, fmt::format("no table of matrix products: no column {}", fmt::join(missing, ", ")),
                             static_cast<int>(rows)});
      return;
    }
    Result<std::vector<GemmRow>> rows = parse_gemm_table(*text, path);
    if (rows)
      out_.tables.push_back({id, std::move(rows).value(), path, has_gemm_column(*text, "system")});
    else
      errors_.insert(errors_.end(), rows.errors().begin(), rows.errors().end());
  }

  const Location& asked_by_;
  Diagnostics errors_;
  KernelTables out_;
};

/// Machines by the systems that tables name.
class Places {
 public:
  explicit Places(const ScoredMachines& machines) : machines_(machines) {}

  const Result<ScoredPlace>& of(const std::string& system) {
    if (const auto found = seen_.find(system); found != seen_.end()) return found->second;
    TrainingRow row;
    row.gpu = system;
    row.gpus = 1;
    Result<ScoredPlace> place = machines_.place(row);
    // What stands in for a kernel table has no products of that GPU.
    if (system.empty() && place && !place->measured)
      place = Diagnostic{{}, fmt::format("'{}' names no kernel table", place->machine.name), {}};
    else if (!place || !place->measured)
      place = Diagnostic{{}, fmt::format("no machine with a kernel table has the GPU '{}'", printable(system)), {}};
    return seen_.emplace(system, std::move(place)).first->second;
  }

  /// The kernel tables, by name, of the GPUs that the rows are of.
  std::map<std::string, KernelModel> tables(const KernelTables& tables) {
    std::map<std::string, KernelModel> out;
    for (const KernelTable& table : tables.tables)
      for (const GemmRow& row : table.rows)
        if (const Result<ScoredPlace>& place = of(row.system)) out.try_emplace(place->kernels.name, place->kernels);
    return out;
  }

 private:
  const ScoredMachines& machines_;
  std::map<std::string, Result<ScoredPlace>> seen_;
};

/// Why a row without a system has no machine: whose fault is said at its place.
UnscoredKernels without_system(const KernelTable& table, const GemmRow& row) {
  if (!table.names_systems) return {table.id, "no column system, which names the GPU", 0, {table.file, 1, 1}};
  return {table.id, "system is empty, which names the GPU", 0, {table.file, row.line, 1}};
}

/// The forecast of a row, or why there is none.
Result<KernelDeviation> forecast(const GemmRow& row, const ScoredPlace& place) {
  const std::string precision = row.precision();
  const auto kernel = place.kernels.gemm.find(precision);
  const auto peak = place.machine.gpu.peak.find(precision);
  if (kernel == place.kernels.gemm.end() || peak == place.machine.gpu.peak.end())
    return Diagnostic{{}, fmt::format("kernel table '{}' has no products of {}", place.kernels.name, precision), {}};
  KernelDeviation out;
  out.precision = precision;
  if (row.pass) out.pass = to_string(*row.pass);
  out.topology = place.machine.name;
  out.m = row.shape.m;
  out.n = row.shape.n;
  out.k = row.shape.k;
  out.measured = row.time;
  out.roofline =
      roofline(kernel->second, peak->second, place.machine.gpu.memory_bandwidth, row.shape, row.bytes()).total();
  out.predicted = out.roofline;
  const auto measured = place.kernels.measured_gemm.find(precision);
  if (measured == place.kernels.measured_gemm.end()) return out;
  if (const std::optional<double> ratio = measured->second.ratio_of_unseen(row.pass, row.shape)) {
    out.predicted = out.roofline * *ratio;
    out.interpolated = true;
  }
  return out;
}

/// By system, kernel table and precision.
using Foreign = std::map<std::tuple<std::string, std::string, std::string>, ForeignKernels>;

/// A product by every kernel table that is not its own GPU's.
void add_foreign(const std::string& source, const GemmRow& row, const ScoredPlace& own,
                 const std::map<std::string, KernelModel>& tables, Foreign& out) {
  const std::string precision = row.precision();
  const auto peak = own.machine.gpu.peak.find(precision);
  if (peak == own.machine.gpu.peak.end()) return;
  for (const auto& [name, kernels] : tables) {
    const auto kernel = kernels.gemm.find(precision);
    const auto measured = kernels.measured_gemm.find(precision);
    if (name == own.kernels.name || kernel == kernels.gemm.end() || measured == kernels.measured_gemm.end()) continue;
    const Seconds time =
        roofline(kernel->second, peak->second, own.machine.gpu.memory_bandwidth, row.shape, row.bytes()).total();
    const std::optional<double> ratio = measured->second.ratio_of_unseen(row.pass, row.shape);
    ForeignKernels& of = out[{source, name, precision}];
    if (!ratio) {
      ++of.uncovered;
      continue;
    }
    of.time.push_back(*ratio * time / row.time);
    of.roofline.push_back(time / row.time);
  }
}

}  // namespace

Result<KernelTables> load_kernel_tables(const std::vector<std::string>& paths, const Location& asked_by) {
  Loader loader(asked_by);
  for (const std::string& path : paths) loader.load(path);
  return loader.take();
}

Diagnostics impossible_products(const KernelTables& tables, const ScoredMachines& machines) {
  Diagnostics out;
  Places places(machines);
  for (const KernelTable& table : tables.tables) {
    std::map<std::pair<std::string, std::string>, std::vector<GemmRow>> products;  // by system and type
    for (const GemmRow& row : table.rows)
      if (!machines.has_other_gpu(row.system)) products[{row.system, row.dtype}].push_back(row);
    for (const auto& [of, rows] : products) {
      const Result<ScoredPlace>& place = places.of(of.first);
      if (!place) continue;
      const GpuSpec& gpu = place->machine.gpu;
      if (const auto peak = gpu.peak.find(rows.front().precision()); peak != gpu.peak.end())
        append(out, impossible_rows(rows, of.second, {peak->second, gpu.memory_bandwidth}, table.file, "gpu"));
    }
  }
  return out;
}

KernelReport validate_kernels(const KernelTables& tables, const ScoredMachines& machines) {
  KernelReport out;
  out.unscored = tables.unread;
  std::map<std::pair<std::string, std::string>, UnscoredKernels> unscored;
  Places places(machines);
  const std::map<std::string, KernelModel> known = places.tables(tables);
  Foreign foreign;
  for (const KernelTable& table : tables.tables)
    for (const GemmRow& row : table.rows) {
      const std::string source = row.system.empty() ? table.id : row.system;
      const Result<ScoredPlace>& place = places.of(row.system);
      Result<KernelDeviation> one = place ? forecast(row, *place) : Result<KernelDeviation>(place.errors());
      if (!one) {
        const bool nameless = row.system.empty() && !machines.is_single();
        const UnscoredKernels why =
            nameless ? without_system(table, row) : UnscoredKernels{source, one.errors().front().message, 0, {}};
        ++unscored.try_emplace({source, why.why}, why).first->second.rows;
        continue;
      }
      out.rows.push_back(std::move(one).value());
      out.rows.back().source_id = source;
      out.rows.back().row_id = fmt::format("{}:{}", table.id, row.line);
      add_foreign(source, row, *place, known, foreign);
    }
  for (auto& [key, of] : foreign) {
    std::tie(of.source_id, of.kernels, of.precision) = key;
    out.foreign.push_back(std::move(of));
  }
  for (const auto& [key, rows] : unscored) out.unscored.push_back(rows);
  return out;
}

}  // namespace collcast
