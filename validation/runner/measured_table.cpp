// The sidecar of a measured table: YAML with the keys of published nccl-tests tables, and more after them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "collcast/runner/runner.hpp"

namespace collcast {

namespace {

/// YAML's single-quoted style holds any printable text on one line.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += '\'';
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return out + "'";
}

std::string microseconds(Seconds s) { return fmt::format("{:.3f}", s.count() * 1e6); }

std::string joined(const std::vector<std::string>& lines) { return fmt::format("{}", fmt::join(lines, "; ")); }

std::string spread_line(const MeasuredRow& row) {
  std::string out = fmt::format(
      "  - {{size_bytes: {}, inplace: {}, repetitions: {}, min_us: {}, median_us: {}, p95_us: {}, max_us: {}",
      row.size.value(), row.in_place ? 1 : 0, row.repetitions, microseconds(row.least), microseconds(row.median),
      microseconds(row.p95), microseconds(row.most));
  if (row.device) out += fmt::format(", device_us: {}", microseconds(*row.device));
  return out + "}\n";
}

/// Of Open MPI's parameters those that choose transports, algorithms and places; its mpirun sets others for itself.
bool steers(std::string_view name) {
  constexpr std::array<std::string_view, 17> beginnings{"NCCL_",
                                                        "GLOO_",
                                                        "OMPI_MCA_btl",
                                                        "OMPI_MCA_coll",
                                                        "OMPI_MCA_pml",
                                                        "OMPI_MCA_mtl",
                                                        "OMPI_MCA_mpi_",
                                                        "OMPI_MCA_op",
                                                        "OMPI_MCA_hwloc_base_binding",
                                                        "PRTE_MCA_hwloc",
                                                        "MPICH_",
                                                        "MPIR_CVAR_",
                                                        "I_MPI_ADJUST",
                                                        "I_MPI_FABRICS",
                                                        "I_MPI_PIN",
                                                        "UCX_",
                                                        "FI_"};
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

}  // namespace

Environment steering_variables(const Environment& environment) {
  // Values that name a host, an address or a file say nothing about speed that others could use.
  constexpr std::array<std::string_view, 2> private_names{"NCCL_COMM_ID", "NCCL_HOSTID"};
  Environment out;
  for (const auto& [name, value] : environment) {
    if (!steers(name)) continue;
    const bool hidden = value.find('/') != std::string::npos ||
                        std::find(private_names.begin(), private_names.end(), name) != private_names.end();
    out[name] = hidden ? "(left out: a path or an address)" : value;
  }
  return out;
}

std::string sidecar(const TableFacts& facts, const MeasureReport& report) {
  const MeasuredSystem& system = report.system;
  const std::vector<MeasuredRow>& rows = report.rows;
  std::string out;
  const auto line = [&](std::string_view key, const std::string& value) { out += fmt::format("{}: {}\n", key, value); };
  line("id", quoted(facts.id));
  line("collective", rows.empty() ? "unknown" : std::string(to_string(rows.front().kind)));
  line("system", quoted(facts.system));
  line("gpu", quoted(system.gpu ? system.device : "none"));
  line("gpus_per_node", fmt::format("{}", system.ranks_per_node));
  line("ranks_per_node", fmt::format("{}", system.ranks_per_node));
  line("nodes", fmt::format("{}", system.nodes));
  line("nranks", fmt::format("{}", report.ranks));
  line("nics_per_node", "unknown");
  line("nvlink", system.gpu ? "unknown" : "none");
  line("nccl_version", quoted(system.nccl_version.empty() ? "none" : system.nccl_version));
  line("dtype", report.datatype);
  if (facts.environment.empty())
    line("env", "{}");
  else
    out += "env:\n";
  for (const auto& [name, value] : facts.environment) out += fmt::format("  {}: {}\n", name, quoted(value));
  line("healthy", "unknown");
  std::vector<std::string> notes = system.notes;
  notes.insert(notes.end(), report.notes.begin(), report.notes.end());
  if (const std::string text = unsteady_text(report); !text.empty()) notes.push_back(text);
  line("note", quoted(joined(notes)));
  line("source", quoted("measured by collcast " + std::string(tool_version())));
  line("backend", system.backend);
  line("library_version", quoted(system.library_version));
  if (!rows.empty() && !rows.front().algorithm.empty()) line("algorithm", rows.front().algorithm);
  if (system.gpu)
    line("driver", quoted(system.driver.empty() ? "unknown" : system.driver));
  else
    line("processor", quoted(system.device));
  line("command", quoted(facts.command));
  line("date", quoted(facts.date));
  line("warmup", fmt::format("{}", facts.warmup));
  line("calls_per_repetition", fmt::format("{}", facts.calls));
  if (system.gpu) line("cuda_graph", facts.graph ? "true" : "false");
  line("complete", report.complete ? "true" : "false");
  out +=
      "units:\n"
      "  time_us: microseconds per call; mean over repetitions of the slowest rank's wall-clock time\n"
      "  algbw_gbps: GB/s (1e9), size/time\n"
      "  busbw_gbps: GB/s (1e9), algbw times the nccl-tests factor for the collective\n"
      "spread:\n";
  for (const MeasuredRow& row : rows) out += spread_line(row);
  return out;
}

}  // namespace collcast
