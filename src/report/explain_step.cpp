// A step's forecast taken apart: kernels by roofline and the layer; then its time (explain_time.cpp), FLOPs
// (explain_rates.cpp) and memory (explain_memory.cpp). Of a server: explain_serving.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "collcast/base/units.hpp"
#include "collcast/workload/gemm_time.hpp"
#include "report/explain.hpp"
#include "report/sent.hpp"
#include "report/step_tables.hpp"

namespace collcast {

namespace {

/// What the roofline of an operation is made of.
struct Rates {
  KernelEfficiency efficiency;
  FlopRate peak{};
  Bandwidth memory{};
};

const std::map<std::string, KernelEfficiency>& table_of(const KernelModel& kernels, OperationKind kind) {
  switch (kind) {
    case OperationKind::grouped_gemm:
      return kernels.grouped_gemm;
    case OperationKind::grouped_gemm_gradient:
      return kernels.grouped_gemm_gradient;
    case OperationKind::attention:
      return kernels.attention;
    case OperationKind::attention_gradient:
      return kernels.attention_gradient;
    case OperationKind::cached_attention:
    case OperationKind::gemm:
    case OperationKind::memory:
      break;
  }
  return kernels.gemm;
}

Rates rates_of(const StepInputs& in, OperationKind kind, const std::string& precision) {
  if (kind == OperationKind::memory) return {in.kernels.memory_bound, {}, in.gpu.memory_bandwidth};
  if (kind == OperationKind::cached_attention)
    return {cached_attention_efficiency(in.kernels, precision), in.gpu.peak.at(precision), in.gpu.memory_bandwidth};
  const auto& table = table_of(in.kernels, kind);
  const auto efficiency = table.find(precision);
  const auto peak = in.gpu.peak.find(precision);
  check(efficiency != table.end() && peak != in.gpu.peak.end(), "an operation names the precision that timed it");
  return {efficiency->second, peak->second, in.gpu.memory_bandwidth};
}

std::string_view kind_text(OperationKind kind) {
  switch (kind) {
    case OperationKind::gemm:
      return "gemm";
    case OperationKind::grouped_gemm:
      return "grouped gemm";
    case OperationKind::grouped_gemm_gradient:
      return "grouped gemm gradient";
    case OperationKind::attention:
      return "attention";
    case OperationKind::attention_gradient:
      return "attention gradient";
    case OperationKind::cached_attention:
      return "attention over kept keys";
    case OperationKind::memory:
      return "memory";
  }
  return "";
}

/// "measured: of products like this one, ... (gemm-h100.csv, 1025 of bf16)".
std::string measured_text(const StepInputs& in, const std::vector<KernelPass>& passes) {
  std::set<std::string> precisions, tables;
  bool beyond = false;
  for (const KernelPass& pass : passes)
    for (const Operation& op : *pass.kernels)
      if (op.measured_ratio > 0) {
        precisions.insert(op.precision);
        beyond = beyond || op.extrapolated;
      }
  for (const std::string& precision : precisions) {
    const GemmTables& table = in.kernels.measured_gemm.at(precision);
    tables.insert(fmt::format("{} of {} in {}", table.products(), precision, table.name()));
  }
  return fmt::format(
      "measured: how much longer than this roofline products of like shape took, interpolated among {}; "
      "the time is multiplied by it{}",
      fmt::join(tables, ", "), beyond ? "; edge: the shape is beyond them, and the ratio that of their edge" : "");
}

}  // namespace

namespace {

bool has_kernel(const std::vector<KernelPass>& passes, const char* name) {
  return std::any_of(passes.begin(), passes.end(), [&](const KernelPass& p) {
    return std::any_of(p.kernels->begin(), p.kernels->end(), [&](const Operation& op) { return op.name == name; });
  });
}

}  // namespace

Section kernels_section(const StepInputs& in, std::string title, const std::vector<KernelPass>& passes) {
  Section out;
  out.title = std::move(title);
  std::string formula = "overhead + max(FLOP / (efficiency x peak), bytes / (efficiency x memory bandwidth))";
  if (in.gpu.kernel_scale != 1)
    formula = fmt::format("{:.4g} x ({}), the machine's gpu.kernel_scale", in.gpu.kernel_scale, formula);
  out.text.push_back({"time = " + formula, Paragraph::Tone::plain});
  Table rates{"rooflines",
              {{"kernels", "", Align::left},
               {"overhead", "", Align::right},
               {"compute", "", Align::right},
               {"memory", "", Align::right},
               {"where from", "", Align::left}},
              {}};
  std::set<std::pair<OperationKind, std::string>> used;
  for (const KernelPass& pass : passes)
    for (const Operation& op : *pass.kernels) used.emplace(op.kind, op.precision);
  for (const auto& [kind, precision] : used) {
    const Rates r = rates_of(in, kind, precision);
    rates.rows.push_back(
        {std::string(kind_text(kind)) + (precision.empty() ? "" : " " + precision),
         format_seconds(r.efficiency.overhead),
         kind == OperationKind::memory ? "-"
                                       : fmt::format("{:.3g} x {}", r.efficiency.compute, format_flop_rate(r.peak)),
         fmt::format("{:.3g} x {}", r.efficiency.memory, format_bandwidth(r.memory)), r.efficiency.source});
    if (kind == OperationKind::gemm && r.efficiency.sustained < 1)
      out.text.push_back(
          {fmt::format("products of {} have no more than {:.3g} x {} for as long as a step takes ('power'): {}",
                       precision, r.efficiency.sustained, format_flop_rate(r.peak), r.efficiency.sustained_source),
           Paragraph::Tone::plain});
  }
  out.tables.push_back(std::move(rates));
  Table table{"operations",
              {{"pass", "", Align::left},
               {"kernel", "", Align::left},
               {"FLOP", "", Align::right},
               {"moved", "", Align::right},
               {"compute term", "", Align::right},
               {"memory term", "", Align::right},
               {"time", "", Align::right},
               {"bound by", "", Align::left},
               {"measured", "", Align::right}},
              {}};
  bool measured = false;
  for (const KernelPass& pass : passes)
    for (const Operation& op : *pass.kernels) {
      const Rates r = rates_of(in, op.kind, op.precision);
      const Roofline time = roofline(r.efficiency, r.peak, r.memory, op.flops, op.bytes);
      table.rows.push_back({pass.name, op.name, format_count(op.flops.value()), format_bytes(op.bytes),
                            op.kind == OperationKind::memory ? "-" : format_seconds(time.compute),
                            format_seconds(time.memory), format_seconds(op.time), op.bound,
                            op.measured_ratio > 0
                                ? fmt::format("x {:.3f}{}", op.measured_ratio, op.extrapolated ? ", edge" : "")
                                : "-"});
      measured = measured || op.measured_ratio > 0;
    }
  if (measured) out.text.push_back({measured_text(in, passes), Paragraph::Tone::plain});
  for (const auto& [rule, kernels] : {std::pair(delta_rule, delta_rule_kernels), std::pair(ssd_scan, ssd_kernels)})
    if (has_kernel(passes, rule))
      out.text.push_back({fmt::format("the {} is {} kernels one after the other, its gradient {}: so many overheads",
                                      rule, kernels, 2 * kernels),
                          Paragraph::Tone::plain});
  out.tables.push_back(std::move(table));
  return out;
}

namespace {

Seconds total_time(const std::vector<Operation>& operations) {
  Seconds sum{};
  for (const Operation& op : operations) sum += op.time;
  return sum;
}

/// "TP", "TP and CP": what a layer waits for.
std::string exposed_kinds(const LayerTimes& layer) {
  std::string out = "TP";
  if (layer.cp_comm > Seconds{}) out += layer.ep_comm > Seconds{} ? ", CP" : " and CP";
  if (layer.ep_comm > Seconds{}) out += " and EP";
  return out;
}

/// What a layer's own exchanges do to the kernels that they run beside.
std::string slowed_text(const StepInputs& in, const Slowdown& slowdown) {
  if (slowdown.tp + slowdown.cp + slowdown.ep <= Seconds{}) return {};
  return fmt::format("products and attention go at {:.2f} of their rate while a collective runs{}{}",
                     in.kernels.beside_collectives, in.kernels.beside_source.empty() ? "" : ": ",
                     in.kernels.beside_source);
}

/// Kernels of a GPU at less than full speed, as a sum at full speed over it.
std::string at_speed(Seconds full, double speed) {
  return format_seconds(full) + (speed < 1 ? fmt::format(" / {:.9g}", speed) : "");
}

Section layer_section(const StepReport& report) {
  const StepResult& r = report.result;
  const double speed = report.faults ? report.faults->speed : 1;
  Section out;
  out.title = "one layer, one micro-batch";
  if (speed < 1)
    out.text.push_back(
        {fmt::format("of the slowest GPU of stage {}, with {:.4g}% of its speed", r.stage.stage, 100 * speed),
         Paragraph::Tone::plain});
  const std::string over = speed < 1 ? " / speed" : "";
  const Seconds forward_full = total_time(r.operations.forward);
  const Seconds backward_full = total_time(r.operations.backward) + total_time(r.operations.recompute);
  const Seconds forward = forward_full / speed, backward = backward_full / speed;
  const auto exposed = [](Seconds whole, Seconds compute) { return std::max(whole - compute, Seconds(0)); };
  const std::string slowed = slowed_text(*report.inputs, r.slowdown);
  const std::string kinds =
      exposed_kinds(r.layer) + (slowed.empty() ? "" : ", and what collectives beside them slow them by");
  const auto beside = [&](Seconds waits) { return " + exposed " + kinds + waits_for_host(*report.inputs, waits); };
  out.terms.push_back(
      {"forward", "kernels" + over + beside(r.layer.forward_waits),
       fmt::format("{} + {}", at_speed(forward_full, speed), format_seconds(exposed(r.layer.forward, forward))),
       r.layer.forward.count(), "s", ""});
  out.terms.push_back(
      {"backward", "kernels with recomputation" + over + beside(r.layer.backward_waits),
       fmt::format("{} + {}", at_speed(backward_full, speed), format_seconds(exposed(r.layer.backward, backward))),
       r.layer.backward.count(), "s", slowed});
  return out;
}

std::string length_text(const StepResult& r) {
  if (!r.inference) return "step of " + format_seconds(r.step);
  return fmt::format("TTFT of {}, TPOT of {}", format_seconds(r.inference->prefill.time()),
                     format_seconds(r.inference->decode.time()));
}

void add_training(ExplainReport& out, const StepReport& report) {
  const StepResult& r = report.result;
  if (report.faults) out.sections.push_back(faults_section(report));
  if (report.inputs) {
    out.sections.push_back(kernels_section(*report.inputs, "kernels of one layer, one micro-batch",
                                           {{"forward", &r.operations.forward},
                                            {"backward", &r.operations.backward},
                                            {"recompute", &r.operations.recompute}}));
    out.sections.push_back(layer_section(report));
    for (const auto& [of, name] : {std::pair(&r.linear_operations, linear_text(report.inputs->model)),
                                   std::pair(&r.feed_forward_operations, feed_forward_text(report.inputs->model))})
      if (!of->empty())
        out.sections.push_back(
            kernels_section(*report.inputs, fmt::format("kernels of one layer with {}, one micro-batch", name),
                            {{"forward", &of->forward}, {"backward", &of->backward}, {"recompute", &of->recompute}}));
  }
  if (!r.collectives.empty()) out.sections.push_back(collectives_section(report, "collectives", "step", r.collectives));
  if (report.inputs)
    if (Table sent = sent_table(*report.inputs, r.stage); !sent.rows.empty()) {
      Section section;
      section.title = std::exchange(sent.title, {});
      section.text.push_back(
          {"casts and compression move bytes of memory, formulas: docs/steps.md#what-is-sent", Paragraph::Tone::plain});
      section.tables.push_back(std::move(sent));
      out.sections.push_back(std::move(section));
    }
  if (report.inputs) {
    out.sections.push_back(stage_section(report));
    if (std::optional<Section> copies =
            state_copies_section(*report.inputs, r.stage.stage, report.faults ? report.faults->speed : 1))
      out.sections.push_back(*std::move(copies));
    out.sections.push_back(closed_form_section(report));
  }
  out.sections.push_back(step_section(report));
  if (report.inputs) {
    out.sections.push_back(rates_section(*report.inputs, r));
    for (Section& section : memory_sections(*report.inputs, r, report.machine.ranks / report.machine.nodes))
      out.sections.push_back(std::move(section));
  }
}

}  // namespace

ExplainReport explain(const StepReport& report) {
  ExplainReport out;
  if (report.inputs) out.library = report.machine.library;
  out.title = fmt::format("{} on {}{}{}: {}", report.scenario, report.machine.topology,
                          report.machine.calibrated ? ", calibrated" : "",
                          out.library.empty() ? "" : ", library " + out.library, length_text(report.result));
  out.said = report.said;
  // Of a step that is partial the last that was said is why.
  if (report.partial && !out.said.empty()) {
    out.partial = out.said.back();
    out.said.pop_back();
  }
  std::vector<std::string> warnings = machine_warnings(report.machine);
  out.said.insert(out.said.end(), warnings.begin(), warnings.end());
  if (!warnings.empty() || report.machine.calibrated) {
    Section& machine = out.sections.emplace_back();
    machine.title = "machine";
    for (std::string& text : warnings) machine.text.push_back({std::move(text), Paragraph::Tone::warning});
  }
  if (report.machine.calibrated) {
    Section& machine = out.sections.front();
    machine.text.push_back({calibrated_text(report.machine, report.collectives.base_latency), Paragraph::Tone::note});
    machine.terms.push_back({"base latency",
                             {},
                             {},
                             report.collectives.base_latency.count(),
                             "s",
                             "of the calibration, in front of every collective"});
    if (std::optional<std::string> text = interval_text(report))
      machine.text.push_back({std::move(*text), Paragraph::Tone::note});
    if (!report.beyond_fit.empty()) machine.text.push_back({report.beyond_fit, Paragraph::Tone::warning});
  }
  if (report.result.inference) {
    for (Section& section : serving_sections(report)) out.sections.push_back(std::move(section));
  } else {
    add_training(out, report);
  }
  return out;
}

}  // namespace collcast
