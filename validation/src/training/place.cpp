// The machine of a row: by GPU, GPUs per node and network rate, from the shipped descriptions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "collcast/base/words.hpp"
#include "collcast/validation/training.hpp"
#include "collcast/workload/power.hpp"
#include "gpu_name.hpp"
#include "lines.hpp"

namespace collcast {

namespace {

int count_of(const TopologySpec& spec, DeviceKind kind) {
  for (const DeviceGroup& group : spec.devices)
    if (group.kind == kind) return group.count;
  return 0;
}

/// Per GPU and direction, in Gbit/s; 0: no network.
double network_gbps(const TopologySpec& spec) {
  return network_rate(spec.network).value() * 8e-9 * network_ports(spec) / std::max(1, count_of(spec, DeviceKind::gpu));
}

bool crosses_nodes(const TrainingRow& row, int gpus_per_node) { return row.gpus.value_or(1) > gpus_per_node; }

/// How well a machine's nodes fit, whatever the memory of its GPUs; nothing where the row cannot have run on them.
std::optional<int> likeness_of_nodes(const TopologySpec& spec, const TrainingRow& row) {
  if (!same_chip(parse_gpu(row.gpu), parse_gpu(spec.gpu.model))) return std::nullopt;
  const int gpus = count_of(spec, DeviceKind::gpu);
  const double rate = network_gbps(spec);
  if (crosses_nodes(row, gpus) && rate <= 0) return std::nullopt;
  const bool nvlink = std::any_of(spec.links.begin(), spec.links.end(),
                                  [](const LinkGroup& link) { return link.kind == LinkKind::nvlink; });
  if (lower(row.intra_net).find("nvlink") != std::string::npos && !nvlink) return std::nullopt;
  int score = 0;
  if (row.gpus_per_node == gpus) score += 16;
  if (row.gpus_per_node && gpus % *row.gpus_per_node == 0) score += 8;
  if (row.inter_gbps_per_gpu && std::abs(rate / *row.inter_gbps_per_gpu - 1) < 0.05) score += 4;
  if (std::holds_alternative<LeafSpineNetwork>(spec.network)) score += 2;
  // The vendor's own system stands for what names no other.
  if (spec.name.starts_with("dgx")) score += 1;
  return score;
}

/// How well a machine fits; nothing where the row cannot have run on it.
std::optional<int> likeness(const TopologySpec& spec, const TrainingRow& row) {
  const GpuName gpu = parse_gpu(row.gpu), known = parse_gpu(spec.gpu.model);
  if (!like_gpu(gpu, known)) return std::nullopt;
  const std::optional<int> score = likeness_of_nodes(spec, row);
  return score && same_gpu(gpu, known) ? *score + 8 : score;
}

/// Whether the row's nodes are the machine's, or parts of them: trays of a rack, jobs of half a node.
bool has_its_nodes(const TopologySpec& spec, const TrainingRow& row) {
  return !row.gpus_per_node || count_of(spec, DeviceKind::gpu) % *row.gpus_per_node == 0;
}

/// The network at the rate that the row states.
std::string adapt_network(TopologySpec& machine, const TrainingRow& row) {
  if (!crosses_nodes(row, count_of(machine, DeviceKind::gpu))) return {};
  const double own = network_gbps(machine), stated = row.inter_gbps_per_gpu.value_or(0);
  if (stated <= 0) return fmt::format("network rate not stated: {:.4g} Gb/s per GPU", own);
  if (std::abs(stated / own - 1) < 0.01) return {};
  set_network_rate(machine.network, Bandwidth(network_rate(machine.network).value() * stated / own));
  return fmt::format("network of {} at {:.4g} Gb/s per GPU instead of {:.4g}", machine.name, stated, own);
}

/// A job of more GPUs than a rack is one NVLink domain has takes as many trays of each rack as divide its trays:
/// NVIDIA's performance recipes ask the scheduler for such segments (NeMo scripts/performance/executors.py, --segment).
std::string adapt_racks(TopologySpec& machine, const TrainingRow& row) {
  const int rack = count_of(machine, DeviceKind::gpu), tray = row.gpus_per_node.value_or(rack);
  if (*row.gpus <= rack || tray >= rack || rack % tray != 0 || *row.gpus % tray != 0) return {};
  int trays = rack / tray;
  while (*row.gpus / tray % trays != 0) --trays;
  const int used = trays * tray;
  if (used == rack) return {};
  for (DeviceGroup& group : machine.devices)
    if (group.count > 1 && group.count * used % rack == 0) group.count = group.count * used / rack;
  return fmt::format("{} of the {} GPUs of each rack", used, rack);
}

/// Of boards that sources name with another power: an H100 SXM's, up to 700 W; cards of that chip have 350 and 400
/// (NVIDIA's data sheets).
double usual_watts(const GpuName& gpu) { return gpu.chip == "h100" && gpu.watts > 400 ? 700 : 0; }

/// A GPU that a row names with less power than it usually has, on a machine that was chosen for the row.
std::string adapt_power(GpuSpec& gpu, const TrainingRow& row, bool chosen) {
  const GpuName name = parse_gpu(row.gpu);
  const double usual = usual_watts(name);
  if (chosen && usual > 0 && name.watts < usual) {
    gpu.power_limit = name.watts / usual;
    return fmt::format("{} W of the {:.0f} that the GPU usually has: {:.3g} of the clock", name.watts, usual,
                       clock_at_power(gpu.power_limit));
  }
  if (name.watts > 0 && name.watts != usual) return fmt::format("the {} W of the GPU's name have no part", name.watts);
  if (gpu.power_limit < 1) return fmt::format("GPUs at {:.3g}% of their usual power", 100 * gpu.power_limit);
  return {};
}

Diagnostic cannot(std::string why) { return {{}, std::move(why), {}}; }

}  // namespace

const ScoredMachines::Known* ScoredMachines::nodes_for(const TrainingRow& row, const Known& gpu) const {
  if (has_its_nodes(gpu.spec, row)) return nullptr;
  const Known* best = nullptr;
  int most = -1;
  for (const Known& known : known_) {
    const std::optional<int> score = likeness_of_nodes(known.spec, row);
    if (!score || !has_its_nodes(known.spec, row) || *score <= most) continue;
    most = *score;
    best = &known;
  }
  return best;
}

Result<ScoredMachines> ScoredMachines::load(const std::vector<TopologySpec>& machines, const SearchPath& search) {
  ScoredMachines out;
  out.only_one_ = machines.size() == 1;
  Diagnostics errors;
  for (const TopologySpec& spec : machines) {
    const bool measured = !spec.gpu.kernels.empty();
    if (!measured && spec.gpu.model.empty()) {
      if (!out.only_one_) continue;
      return Diagnostic{spec.where, fmt::format("'{}' describes no GPU", spec.name), "expected gpu, with its figures"};
    }
    Result<KernelModel> kernels = measured ? load_kernels(spec, search) : stand_in_kernels(search, spec.where);
    if (kernels)
      out.known_.push_back({spec, std::move(kernels).value(), measured});
    else
      append(errors, kernels.errors());
  }
  if (!errors.empty()) return errors;
  return out;
}

bool ScoredMachines::has_other_gpu(const std::string& gpu) const {
  if (!only_one_) return false;
  const TopologySpec& spec = known_.front().spec;
  const bool is_its_name = gpu == spec.name || std::count(spec.systems.begin(), spec.systems.end(), gpu) > 0;
  return !is_its_name && other_gpu(gpu, spec.gpu.model);
}

Diagnostics ScoredMachines::other_gpus(const std::vector<std::string>& of_rows, const Location& asked_by) const {
  std::map<std::string, std::size_t> rows;
  for (const std::string& gpu : of_rows) ++rows[gpu];
  Diagnostics out;
  for (const auto& [gpu, count] : rows)
    if (has_other_gpu(gpu)) {
      const TopologySpec& spec = known_.front().spec;
      out.push_back({asked_by,
                     fmt::format("{} row{} measured on '{}', {} has '{}'", count, count == 1 ? "" : "s", printable(gpu),
                                 spec.name, spec.gpu.model),
                     {}});
    }
  return out;
}

Result<ScoredPlace> ScoredMachines::place(const TrainingRow& row) const {
  if (!row.gpus) return cannot("gpus is not stated");
  const Known* best = only_one_ ? &known_.front() : nullptr;
  // What was measured goes before what is likest.
  std::pair<bool, int> most{false, -1};
  for (const Known& known : known_) {
    if (only_one_) break;
    const std::optional<int> score = likeness(known.spec, row);
    if (!score || std::pair(known.measured, *score) <= most) continue;
    most = {known.measured, *score};
    best = &known;
  }
  if (best == nullptr) return cannot(fmt::format("no machine has the GPU '{}'", printable(row.gpu)));
  ScoredPlace out{best->spec, best->kernels, best->measured, 1, {}};
  std::vector<std::string> remarks;
  if (const Known* nodes = only_one_ ? nullptr : nodes_for(row, *best)) {
    out.machine = nodes->spec;
    out.machine.gpu = best->spec.gpu;
    remarks.push_back(fmt::format("GPUs of {} in nodes of {}", best->spec.name, nodes->spec.name));
  }
  if (!best->measured)
    remarks.push_back(fmt::format("kernels were not measured on {}: {}", best->spec.gpu.model, stand_in_text()));
  remarks.push_back(adapt_power(out.machine.gpu, row, !only_one_));
  out.kernels = at_power(std::move(out.kernels), out.machine.gpu.power_limit);
  remarks.push_back(adapt_network(out.machine, row));
  // The likest machine's hardware stands for the row's; NCCL's variables there are its provider's.
  if (!only_one_) out.machine.plugin.environment.clear();
  remarks.push_back(adapt_racks(out.machine, row));
  std::erase(remarks, std::string());
  out.remark = fmt::format("{}", fmt::join(remarks, "; "));
  const int gpus = count_of(out.machine, DeviceKind::gpu);
  if (gpus < 1) return cannot(fmt::format("'{}' has no GPUs", out.machine.name));
  out.nodes = (*row.gpus + gpus - 1) / gpus;
  return out;
}

}  // namespace collcast
