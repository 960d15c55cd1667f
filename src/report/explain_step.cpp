// A step's forecast taken apart: kernels by roofline, collectives, the layer, the pipeline, the memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "collcast/base/units.hpp"
#include "collcast/report/documents.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

/// What the roofline of an operation is made of.
struct Roofline {
  KernelEfficiency efficiency;
  FlopRate peak{};
  Bandwidth memory{};
};

Roofline roofline(const StepInputs& in, OperationKind kind, const std::string& precision) {
  if (kind == OperationKind::memory) return {in.kernels.memory_bound, {}, in.gpu.memory_bandwidth};
  const auto& table = kind == OperationKind::gemm ? in.kernels.gemm : in.kernels.attention;
  const auto efficiency = table.find(precision);
  const auto peak = in.gpu.peak.find(precision);
  check(efficiency != table.end() && peak != in.gpu.peak.end(), "an operation names the precision that timed it");
  return {efficiency->second, peak->second, in.gpu.memory_bandwidth};
}

std::string_view kind_text(OperationKind kind) {
  switch (kind) {
    case OperationKind::gemm:
      return "gemm";
    case OperationKind::attention:
      return "attention";
    case OperationKind::memory:
      return "memory";
  }
  return "";
}

Section kernels_section(const StepInputs& in, const LayerOperations& operations) {
  Section out;
  out.title = "kernels of one layer, one micro-batch";
  out.text.push_back({"time = overhead + max(FLOP / (efficiency x peak), bytes / (efficiency x memory bandwidth))",
                      Paragraph::Tone::plain});
  Table rates{"rooflines",
              {{"kernels", "", Align::left},
               {"overhead", "", Align::right},
               {"compute", "", Align::right},
               {"memory", "", Align::right},
               {"where from", "", Align::left}},
              {}};
  std::set<std::pair<OperationKind, std::string>> used;
  for (const auto* list : {&operations.forward, &operations.backward, &operations.recompute})
    for (const Operation& op : *list) used.emplace(op.kind, op.precision);
  for (const auto& [kind, precision] : used) {
    const Roofline r = roofline(in, kind, precision);
    rates.rows.push_back(
        {std::string(kind_text(kind)) + (precision.empty() ? "" : " " + precision),
         format_seconds(r.efficiency.overhead),
         kind == OperationKind::memory ? "-"
                                       : fmt::format("{:.3g} x {}", r.efficiency.compute, format_flop_rate(r.peak)),
         fmt::format("{:.3g} x {}", r.efficiency.memory, format_bandwidth(r.memory)), r.efficiency.source});
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
               {"bound by", "", Align::left}},
              {}};
  const auto add = [&](const char* pass, const std::vector<Operation>& list) {
    for (const Operation& op : list) {
      const Roofline r = roofline(in, op.kind, op.precision);
      const double rate = r.efficiency.compute * r.peak.value();
      table.rows.push_back({pass, op.name, format_count(op.flops.value()), format_bytes(op.bytes),
                            rate > 0 ? format_seconds(Seconds(op.flops.value() / rate)) : "-",
                            format_seconds(Seconds(op.bytes.value() / (r.efficiency.memory * r.memory.value()))),
                            format_seconds(op.time), op.bound});
    }
  };
  add("forward", operations.forward);
  add("backward", operations.backward);
  add("recompute", operations.recompute);
  out.tables.push_back(std::move(table));
  return out;
}

Seconds total_time(const std::vector<Operation>& operations) {
  Seconds sum{};
  for (const Operation& op : operations) sum += op.time;
  return sum;
}

Section layer_section(const StepResult& r) {
  Section out;
  out.title = "one layer, one micro-batch";
  const Seconds forward = total_time(r.operations.forward);
  const Seconds backward = total_time(r.operations.backward) + total_time(r.operations.recompute);
  const auto exposed = [](Seconds whole, Seconds compute) { return std::max(whole - compute, Seconds(0)); };
  out.terms.push_back(
      {"forward", "kernels + exposed TP",
       fmt::format("{} + {}", format_seconds(forward), format_seconds(exposed(r.layer.forward, forward))),
       r.layer.forward.count(), "s", ""});
  out.terms.push_back(
      {"backward", "kernels with recomputation + exposed TP",
       fmt::format("{} + {}", format_seconds(backward), format_seconds(exposed(r.layer.backward, backward))),
       r.layer.backward.count(), "s", ""});
  return out;
}

Section collectives_section(const std::vector<CollectiveCost>& collectives) {
  Section out;
  out.title = "collectives";
  Table table{{},
              {{"collective", "", Align::left},
               {"first group", "", Align::left},
               {"groups at once", "", Align::right},
               {"size", "", Align::right},
               {"algorithm", "", Align::left},
               {"time of one", "", Align::right},
               {"per rank and step", "", Align::right}},
              {}};
  for (const CollectiveCost& c : collectives) {
    table.rows.push_back({c.name, ranks_text(c.request.group), fmt::format("{}", c.request.alongside.size() + 1),
                          size_text(c.request.size), c.algorithm, format_seconds(c.time), fmt::format("{}", c.count)});
  }
  out.tables.push_back(std::move(table));
  return out;
}

Section pipeline_section(const StepReport& report) {
  const StepInputs& in = *report.inputs;
  const StepResult& r = report.result;
  Section out;
  out.title = "pipeline";
  const double m = r.micro_batches, p = in.layout.pp;
  out.terms.push_back({"m", "global batch / (micro-batch x DP)",
                       fmt::format("{} / ({} x {})", in.batch.global_batch, in.batch.micro_batch, in.layout.dp), m, "",
                       "micro-batches of a replica"});
  out.terms.push_back({"layers per stage", "layers / PP", fmt::format("{} / {}", in.model.layers, in.layout.pp),
                       static_cast<double>(in.model.layers) / p, "", ""});
  const Seconds busy = r.breakdown.compute + r.breakdown.tp_exposed;
  out.terms.push_back({"bubble of equal stages", "(p-1)/m x (compute + TP exposed)",
                       fmt::format("({} - 1)/{} x ({} + {})", p, m, format_seconds(r.breakdown.compute),
                                   format_seconds(r.breakdown.tp_exposed)),
                       (p - 1) / m * busy.count(), "s", "the step's bubble below has each stage's own time"});
  return out;
}

Section step_section(const StepReport& report) {
  const StepResult& r = report.result;
  Section out;
  out.title = "step";
  const Breakdown& b = r.breakdown;
  const auto add = [&](const char* name, Seconds time, const char* source) {
    if (!(std::abs(time.count()) > 1e-9 * r.step.count())) return;
    out.terms.push_back({name,
                         {},
                         {},
                         time.count(),
                         "s",
                         report.inputs ? source : "tasks of the scenario, as far as nothing hides them"});
  };
  add("compute", b.compute, "kernels of all layers and micro-batches of the slowest stage");
  add("TP exposed", b.tp_exposed, "TP collectives that computing waits for");
  add("PP exposed", b.pp_exposed, "waits for activations of other stages beyond the bubble");
  add("DP exposed", b.dp_exposed, "gradient and parameter collectives that computing waits for");
  add("bubble", b.bubble, "filling and draining the pipeline");
  add("optimizer", b.optimizer, "memory-bound update of the rank's share");
  add("other", b.other, "what is none of these");
  out.terms.push_back({"step",
                       "sum of the parts",
                       {},
                       b.total().count(),
                       "s",
                       r.simulate ? "from the simulated timeline" : "by closed form"});
  out.terms.push_back({"closed form", {}, {}, r.estimate.count(), "s", ""});
  if (r.simulate) out.terms.push_back({"simulation", {}, {}, r.simulate->count(), "s", ""});
  return out;
}

Section rates_section(const StepReport& report) {
  const StepInputs& in = *report.inputs;
  const StepResult& r = report.result;
  Section out;
  out.title = "rates";
  const double tokens = static_cast<double>(in.batch.global_batch) * in.batch.sequence;
  const int world = in.layout.world();
  out.terms.push_back(
      {"tokens/s per GPU", "sequence x global batch / (step x GPUs)",
       fmt::format("{} x {} / ({} x {})", in.batch.sequence, in.batch.global_batch, format_seconds(r.step), world),
       tokens / (r.step.count() * world), "", ""});
  if (const auto peak = in.gpu.peak.find(in.options.precision); peak != in.gpu.peak.end()) {
    out.terms.push_back(
        {"MFU", "model FLOP/s per GPU / peak",
         fmt::format("{} / {}", format_flop_rate(r.model_flops_per_gpu), format_flop_rate(peak->second)), r.mfu, "",
         fmt::format("{} peak of {}, data sheet", in.options.precision, in.gpu.model)});
  }
  return out;
}

Section memory_section(const MemoryUse& m) {
  Section out;
  out.title = fmt::format("memory of the fullest rank (stage {})", m.stage);
  const auto add = [&](const char* name, Bytes bytes, const char* source) {
    out.terms.push_back({name, {}, {}, static_cast<double>(bytes.value()), "B", source});
  };
  add("parameters", m.parameters, "of the rank's share of its stage's layers");
  add("gradients", m.gradients, "as kept for the reduction");
  add("optimizer", m.optimizer, "master weights and two moments");
  add("activations", m.activations, "kept for the backward passes in flight");
  add("buffers", m.buffers, "the recomputed layer, the logits");
  out.terms.push_back({"peak",
                       "sum",
                       {},
                       static_cast<double>(m.peak.value()),
                       "B",
                       fmt::format("of {} on the GPU", size_text(m.capacity))});
  return out;
}

}  // namespace

ExplainReport explain(const StepReport& report) {
  ExplainReport out;
  out.title =
      fmt::format("{} on {}: step of {}", report.scenario, report.machine.topology, format_seconds(report.result.step));
  const StepResult& r = report.result;
  if (report.inputs) {
    out.sections.push_back(kernels_section(*report.inputs, r.operations));
    out.sections.push_back(layer_section(r));
  }
  if (!r.collectives.empty()) out.sections.push_back(collectives_section(r.collectives));
  if (report.inputs) out.sections.push_back(pipeline_section(report));
  out.sections.push_back(step_section(report));
  if (report.inputs) {
    out.sections.push_back(rates_section(report));
    out.sections.push_back(memory_section(r.memory));
  }
  return out;
}

}  // namespace collcast
