#include "report/step_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collcast/base/units.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

std::string level_text(const Operation& op) {
  const std::string_view level = op.level();
  if (level == "measured") return fmt::format("roofline x {:.3f}, as measured", op.measured_ratio);
  if (level == "extrapolated") return fmt::format("roofline x {:.3f}, of the table's edge", op.measured_ratio);
  return std::string(level);
}

std::string gigabytes(Bytes b) { return fmt::format("{:.2f}", static_cast<double>(b.value()) / 0x1p30); }

}  // namespace

std::string percent_of(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f}%", 100 * part / whole) : "-";
}

std::string bar(double part, double whole) {
  constexpr int width = 40;
  if (!(whole > 0) || !(part > 0)) return "";
  const double share = std::clamp(part / whole, 0.0, 1.0);
  return std::string(static_cast<std::size_t>(std::lround(share * width)), '#');
}

bool nccl_collectives(const StepReport& report) {
  const auto& inference = report.result.inference;
  return report.machine.library == "nccl" &&
         !(inference ? inference->decode.collectives : report.result.collectives).empty();
}

std::string further_tokens_text(const TransformerConfig& m) {
  if (m.mtp_layers == 0) return {};
  return fmt::format(", with {} layer{} of multi-token prediction", m.mtp_layers, m.mtp_layers == 1 ? "" : "s");
}
const char* linear_text(const TransformerConfig& m) { return m.linear.is_ssd() ? "Mamba-2" : "linear attention"; }
const char* feed_forward_text(const TransformerConfig& m) {
  return m.experts.count > 0 ? "experts alone" : "an MLP alone";
}

std::string layer_title(const StepInputs& in) {
  const int attending = attending_layers(in.model) - windowed_layers(in.model);
  const bool mixed = attending > 0 && attending < in.model.all_layers();
  return std::string("one layer") + (mixed ? " that attends to all tokens" : "") + ", one micro-batch";
}

std::string of_stage(const StepReport& report) {
  if (!report.inputs || report.inputs->layout.pp == 1) return {};
  return fmt::format(", of the stage with the most work (stage {})", report.result.stage.stage);
}

Table memory_table(const MemoryUse& m) {
  const bool trains = m.by_moment.front() > Bytes(0);
  Table out{fmt::format("memory of the fullest rank (stage {}){}", m.stage,
                        trains ? fmt::format(", {}", moment_text(m.moment)) : std::string()),
            {{"item", "", Align::left},
             {"size", "GiB", Align::right},
             {"of the GPU", "", Align::right},
             {"", "", Align::left}},
            {}};
  const auto capacity = static_cast<double>(m.capacity.value());
  const auto row = [&](const char* name, Bytes bytes) {
    const auto size = static_cast<double>(bytes.value());
    out.rows.push_back({name, gigabytes(bytes), percent_of(size, capacity), bar(size, capacity)});
  };
  const bool serves = m.kv_cache > Bytes(0);
  const auto concerns = [&](Bytes MemoryUse::*size) {
    if (size == &MemoryUse::framework) return false;
    if (size == &MemoryUse::gradient_copies) return m.gradient_copies > Bytes(0);
    if (size == &MemoryUse::kv_cache) return serves;
    return !serves || (size != &MemoryUse::gradients && size != &MemoryUse::optimizer);
  };
  for (const MemoryPart& part : memory_parts)
    if (concerns(part.size)) row(part.name, m.*part.size);
  row("peak", m.peak());
  out.rows.push_back({"capacity", gigabytes(m.capacity), "", ""});
  if (m.on_host > Bytes(0)) out.rows.push_back({"in the host's memory", gigabytes(m.on_host), "", ""});
  return out;
}

Table collectives_table(const StepReport& report, const std::vector<CollectiveCost>& collectives, const char* per) {
  Table out{fmt::format("collectives, per rank and {}{}", per, of_stage(report)),
            {{"collective", "", Align::left},
             {"algorithm", "", Align::left},
             {"ranks", "", Align::right},
             {"groups at once", "", Align::right},
             {"size", "", Align::right},
             {"time of one", "", Align::right},
             {"count", "", Align::right},
             {"in total", "", Align::right}},
            {}};
  for (const CollectiveCost& c : collectives) {
    out.rows.push_back({c.name, c.algorithm, fmt::format("{}", c.request.group.size()),
                        fmt::format("{}", c.request.alongside.size() + 1), size_text(c.request.size),
                        format_seconds(c.time), fmt::format("{}", c.count),
                        format_seconds(c.time * static_cast<double>(c.count))});
  }
  return out;
}

void append_operations(Table& out, const char* pass, const std::vector<Operation>& operations) {
  for (const Operation& op : operations) {
    out.rows.push_back({pass, op.name, format_count(op.flops.value()), format_bytes(op.bytes), format_seconds(op.time),
                        op.bound, level_text(op)});
  }
}

std::optional<std::string> unmeasured_text(const StepInputs& in) {
  if (linear_layers(in.model) == 0) return std::nullopt;
  return std::string(linear_text(in.model)) +
         ": none of its kernels between the two products was measured; they have the efficiencies of attention's "
         "products, of attention over a cache and of memory-bound kernels (docs/steps.md).";
}

Table operations_table(const StepInputs& in, const LayerOperations& operations) {
  const double scale = in.gpu.kernel_scale;
  Table out{fmt::format("kernels of one layer, one micro-batch{}",
                        scale == 1 ? std::string() : fmt::format("; all times x {:.4g} (gpu.kernel_scale)", scale)),
            {{"pass", "", Align::left},
             {"kernel", "", Align::left},
             {"FLOP", "", Align::right},
             {"moved", "", Align::right},
             {"time", "", Align::right},
             {"bound by", "", Align::left},
             {"level", "", Align::left}},
            {}};
  append_operations(out, "forward", operations.forward);
  append_operations(out, "backward", operations.backward);
  append_operations(out, "recompute", operations.recompute);
  return out;
}

void add_price_notes(Page& out, const StepReport& report) {
  if (report.machine.calibrated)
    out.blocks.push_back(
        Paragraph{calibrated_text(report.machine, report.collectives.base_latency), Paragraph::Tone::note});
  if (std::optional<std::string> text = interval_text(report))
    out.blocks.push_back(Paragraph{std::move(*text), Paragraph::Tone::note});
  if (nccl_collectives(report)) out.blocks.push_back(Paragraph{nccl_in_steps, Paragraph::Tone::note});
  for (std::string& text : machine_warnings(report.machine))
    out.blocks.push_back(Paragraph{std::move(text), Paragraph::Tone::warning});
}

}  // namespace collcast
