// The page of collcast.step.v1; the document: step_json.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "collcast/base/units.hpp"
#include "collcast/report/documents.hpp"
#include "report/breakdown.hpp"
#include "report/communication.hpp"
#include "report/document.hpp"
#include "report/faults.hpp"
#include "report/gates.hpp"
#include "report/host_waits.hpp"
#include "report/metrics.hpp"
#include "report/sent.hpp"
#include "report/step_tables.hpp"
#include "report/unfolded.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

std::string drafted(const Serving& s) { return s.speculation ? "; " + speculation_text(s) : std::string(); }

std::string inputs_text(const StepInputs& in) {
  std::string degrees = fmt::format("TP {} x PP {} x DP {}", in.layout.tp, in.layout.pp, in.layout.dp);
  if (in.layout.cp > 1) degrees += fmt::format(" x CP {} ({})", in.layout.cp, to_string(in.layout.cp_exchange));
  if (in.layout.ep > 1) degrees += fmt::format(", EP {}", in.layout.ep);
  if (in.model.experts.count > 0 && in.layout.expert_tp() != in.layout.tp)
    degrees += fmt::format(", expert TP {}", in.layout.expert_tp());
  if (in.layout.vpp > 1) degrees += fmt::format(", VPP {}", in.layout.vpp);
  if (in.layout.sequence_parallel && in.layout.tp > 1) degrees += ", sequence parallel";
  if (in.options.zero >= 2) degrees += fmt::format(", ZeRO-{}", in.options.zero);
  if (in.options.zero >= 1 && in.layout.shard_copies() > 1)
    degrees += fmt::format(" in shards of {} replicas", in.layout.dp_shard);
  std::string active;
  if (in.model.experts.count > 0)
    active = fmt::format(", {} of a token", format_count(active_parameter_count(in.model)));
  const int windowed = windowed_layers(in.model);
  if (windowed > 0)
    active += fmt::format(", windows of {} tokens in {} of {} layers", in.model.window.tokens, windowed,
                          in.model.all_layers());
  if (const int linear = linear_layers(in.model); linear > 0)
    active += fmt::format(", {} in {} of {} layers", linear_text(in.model), linear, in.model.all_layers());
  if (in.model.sparse.top_k > 0) active += fmt::format(", attends to {} of all tokens", in.model.sparse.top_k);
  active += further_tokens_text(in.model);
  if (const LowRankAdapters& lora = in.options.lora; lora.rank > 0)
    active += fmt::format("; LoRA of rank {} trains {}{}", lora.rank, format_count(adapter_parameter_count(in)),
                          lora.base_weights == BaseWeights::nf4 ? ", layers' matrices kept in NF4" : "");
  std::string out = fmt::format("{} ({} parameters{}) as {}; ", in.model.name, format_count(parameter_count(in.model)),
                                active, degrees);
  const bool in_flight = in.serving && in.serving->batching == Batching::continuous;
  if (in_flight)
    return out +
           fmt::format("{} in flight a replica, {} tokens in and {} out, {}",
                       in.serving->batch == 1 ? "1 request" : fmt::format("{} requests", in.serving->batch),
                       in.serving->prompt_tokens, in.serving->output_tokens,
                       in.serving->load ? load_text(*in.serving) : "prompts one by one between the tokens") +
           drafted(*in.serving);
  if (const auto& s = in.serving)
    return out +
           fmt::format("{} a replica, {} tokens in and {} out, in {} of {}",
                       s->batch == 1 ? "1 sequence" : fmt::format("{} sequences", s->batch), s->prompt_tokens,
                       s->output_tokens,
                       s->micro_batches == 1 ? "1 micro-batch" : fmt::format("{} micro-batches", s->micro_batches),
                       s->batch / s->micro_batches) +
           drafted(*s);
  out += fmt::format("{} x {} tokens per step in {} of {}", in.batch.global_batch, in.batch.sequence,
                     in.batch.micro_batches(in.layout) == 1
                         ? "1 micro-batch"
                         : fmt::format("{} micro-batches", in.batch.micro_batches(in.layout)),
                     in.batch.micro_batch);
  return out;
}

/// Beside "they agree", which says nothing about either.
std::string not_modelled(const StepReport& report) {
  return fmt::format(
      "not modelled: collectives slowed by kernels beside them, collectives of different groups in each other's "
      "way{}, {}data loading, failures; closed form and simulation share these limits, and only measurements tell how "
      "far both are off (docs/steps.md).",
      report.unfolded ? " (but in the unfolded step)" : "",
      has_launches(*report.inputs) ? "" : "launch gaps of the CPU, ");
}

constexpr const char* faults_in_steps =
    "faults: every rank is simulated, ranks that are alike once; the closed form has every replica as slow as the "
    "slowest one of each stage. The layer, the communication and the collectives are those of the slowest ranks "
    "(docs/steps.md).";

constexpr const char* placement_in_steps =
    "placement: 'without' is the same job on the machine's nodes in their order; every rank is simulated, ranks that "
    "are alike once, each group's collectives at the price of its own nodes (docs/steps.md).";

constexpr const char* faults_come_and_go =
    "faults that begin or end while the step runs: what is under way then has the same share of its work left, and "
    "does "
    "it at the new pace, a collective as well as a kernel; what begins at that instant is of the new pace. The closed "
    "form goes through the step at the pace of each period, which is exact only where faults slow all of it alike.";

constexpr const char* jitter_in_steps =
    "jitter: each stretch of kernels between two collectives takes a random factor of mean 1 as long, drawn by seed, "
    "rank "
    "and name, so that every rank is unlike the others. The closed form has the means: what jitter adds to the step, "
    "by "
    "the slowest at every join, it does not know.";

constexpr const char* link_jitter_in_steps =
    "jitter of links: each collective and message over the link takes what lies, by a straight line, between its "
    "prices on a slower and a faster link. That is not exact where its bottleneck changes in between, nor where "
    "messages of one collective would vary one by one.";

constexpr const char* link_jitter_by_formula =
    "the closed form has the means of links that vary: what jitter adds to the step, by the slowest at every join, it "
    "does not know.";

/// Jitter of links, or of GPUs.
bool draws(const std::vector<MachineFault>& faults, bool of_links) {
  return std::any_of(faults.begin(), faults.end(), [of_links](const MachineFault& fault) {
    return (fault.link() != nullptr) == of_links && fault.jitter() != nullptr && fault.jitter()->spread > 0;
  });
}

/// ", 64 ranks in 8 classes" of which one each is simulated.
std::string folding_text(const StepResult& r) {
  if (r.classes == 0) return {};
  return fmt::format(", {} in {}", r.ranks == 1 ? "1 rank" : fmt::format("{} ranks", r.ranks),
                     r.classes == 1 ? "1 class" : fmt::format("{} classes", r.classes));
}

Table summary_table(const StepReport& report) {
  const StepResult& r = report.result;
  Table out{{}, {{"", "", Align::left}, {"", "", Align::right}, {"", "", Align::left}}, {}};
  const auto row = [&](std::string name, std::string value, std::string remark = "") {
    out.rows.push_back({std::move(name), std::move(value), std::move(remark)});
  };
  row("step time", format_seconds(r.step),
      (r.simulate ? "simulated" + folding_text(r) : "closed form") +
          (report.partial ? ", partial: stopped before all was simulated" : ""));
  if (r.simulate) {
    const std::string difference = difference_text(*r.simulate, r.estimate);
    // With NCCL's collectives at one price in both, that the sums agree proves less.
    const char* same = nccl_collectives(report) ? "collectives by closed form in both" : "they agree";
    // A server's simulation also joins the tokens that it has made by straight lines.
    const bool by_links = report.machine.library == "ideal" && !report.faults && !r.collectives.empty() &&
                          report.inputs && !report.inputs->serving;
    const char* why = by_links ? ": where messages share links a collective's closed form is approximate" : "";
    row("closed form", format_seconds(r.estimate), difference.empty() ? same : "simulation " + difference + why);
  }
  if (const auto& unfolded = report.unfolded) {
    const std::string difference = difference_text(unfolded->step, r.step);
    row("unfolded", format_seconds(unfolded->step),
        difference.empty() ? "every rank for itself: as the step time" : "every rank for itself: " + difference);
  }
  if (const auto& measured = report.measured) {
    std::string remark = "forecast " + relative_text(measured->time.count(), r.step.count());
    remark += measured->kernel_scale
                  ? fmt::format("; as measured with --set topology.gpu.kernel_scale={:.4f}", *measured->kernel_scale)
                  : fmt::format("; no scale of its kernels from {} to {} makes it that", least_kernel_scale,
                                most_kernel_scale);
    row("measured", format_seconds(measured->time), remark);
  }
  if (!report.inputs) return out;
  row("tokens/s per GPU", figure_text(r.tokens_per_s_per_gpu));
  row("model FLOP/s per GPU", format_flop_rate(r.model_flops_per_gpu));
  row("MFU", fmt::format("{:.1f}%", 100 * r.mfu), "of the data-sheet peak");
  row("HFU", fmt::format("{:.1f}%", 100 * r.hfu), "recomputation counted");
  return out;
}

Table layer_table(const StepInputs& in, const LayerTimes& layer) {
  Table out{layer_title(in),
            {{"", "", Align::left}, {"", "", Align::right}},
            {{"forward", format_seconds(layer.forward)},
             {"backward", format_seconds(layer.backward)},
             {"TP communication", format_seconds(layer.tp_comm)},
             {"of which exposed", format_seconds(layer.tp_exposed)}}};
  for (const auto& [name, all, exposed] : {std::tuple("CP communication", layer.cp_comm, layer.cp_exposed),
                                           {"EP communication", layer.ep_comm, layer.ep_exposed}})
    if (all > Seconds{}) {
      out.rows.push_back({name, format_seconds(all)});
      out.rows.push_back({"of which exposed", format_seconds(exposed)});
    }
  return out;
}

Table breakdown_table(const StepReport& report) {
  const StepResult& r = report.result;
  Table out{"where the time goes" + of_stage(report),
            {{"part", "", Align::left}, {"time", "", Align::right}, {"share", "", Align::right}, {"", "", Align::left}},
            {}};
  const double step = r.step.count();
  for (const BreakdownPart& part : breakdown_parts) {
    const Seconds time = r.breakdown.*part.time;
    // Less than a billionth of the step is the rounding of sums.
    if (!(std::abs(time.count()) > 1e-9 * step)) continue;
    out.rows.push_back({part.name, format_seconds(time), percent_of(time.count(), step), bar(time.count(), step)});
  }
  out.rows.push_back({"step", format_seconds(r.step), "100.0%", ""});
  return out;
}

/// What collectives beside the kernels cost; empty: nothing.
std::string slowdown_text(const StepResult& r) {
  const Slowdown& s = r.slowdown;
  if (!(s.total() > 1e-9 * r.step)) return {};
  std::string parts;
  for (const auto& [name, time] :
       {std::pair("TP", s.tp), std::pair("CP", s.cp), std::pair("EP", s.ep), std::pair("DP", s.dp)})
    if (time > 1e-9 * r.step) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, format_seconds(time));
  return fmt::format(
      "of compute {} ({} of the step) are for collectives beside it, while which products and attention go at {:.2f} "
      "of their rate: {}",
      format_seconds(s.total()), percent_of(s.total().count(), r.step.count()), s.rate, parts);
}

/// What goes to the host's memory beside the computing, and how long passes wait for it and for launches; empty: for
/// neither.
std::string host_text(const StepReport& report) {
  const OffloadingTerms of = offloading_terms(*report.inputs);
  const std::string waits = host_waits_text(report);
  if (of.layers == 0) return waits;
  std::string text = fmt::format(
      "activations of {} layers go to the host's memory in the forward, and come back in the backward: {} of a "
      "micro-batch, {} each way",
      of.layers, format_bytes(of.copied), format_seconds(of.each_way()));
  if (!waits.empty()) return text + "; " + waits;
  return host_waits(report) ? text + "; no pass waits for them" : text;
}

/// How long an update waits for states that are in the host's memory, and when they are back there; empty: none are.
std::string state_copies_text(const StepInputs& in, const StepResult& r) {
  const auto wait_op = std::ranges::find_if(r.stage.optimizer, &Operation::is_wait);
  if (wait_op == r.stage.optimizer.end()) return {};
  const Seconds wait = wait_op->time;
  const StateCopies of = state_copies(in, r.stage.stage);
  const double share = in.options.optimizer_state_offload->fraction;
  std::string text = fmt::format(
      "{} optimizer states{}, {}, are in the host's memory between updates: an update waits {} for them ({} of the "
      "step)",
      share < 1 ? percent_of(share, 1) + " of the" : "the",
      in.layout.pp > 1 ? fmt::format(" of stage {}", r.stage.stage) : std::string(),
      format_bytes(of.parameters + of.moments), format_seconds(wait), percent_of(wait.count(), r.step.count()));
  const Seconds passes = r.step - r.breakdown.optimizer, a_forward = (passes / r.micro_batches) / 3;
  text += fmt::format(", and the last are back {} behind it", format_seconds(of.left()));
  if (of.left() > passes)
    return text + ", when the next update would begin: that wait is left out, and the step forecast too short";
  if (of.left() > a_forward) text += ", longer than a forward takes: until then the GPU holds them, too";
  return text;
}

/// "84.2% compute, 15.8% TP": the larger first, without those that would read 0.0%.
std::string shares_text(const PathTimes& t) {
  std::array<std::pair<const char*, Seconds>, 8> parts{{{"compute", t.compute},
                                                        {"TP", t.tp},
                                                        {"CP", t.cp},
                                                        {"EP", t.ep},
                                                        {"PP", t.pp},
                                                        {"DP", t.dp},
                                                        {"optimizer", t.optimizer},
                                                        {"waits", t.wait}}};
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out;
  for (const auto& [name, time] : parts) {
    if (time / t.total() >= 0.0005)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", percent_of(time.count(), t.total().count()), name);
  }
  return out;
}

Table path_table(const CriticalPath& path) {
  Table out{fmt::format("critical path of the simulation: {}", shares_text(path.time)),
            {{"where", "", Align::left},
             {"what", "", Align::left},
             {"times", "", Align::right},
             {"time", "", Align::right},
             {"share", "", Align::right}},
            {}};
  const double all = path.time.total().count();
  for (const PathRun& run : path.runs) {
    const std::string where = run.first_stage == run.last_stage
                                  ? fmt::format("stage {}", run.first_stage)
                                  : fmt::format("stages {} ... {}", run.first_stage, run.last_stage);
    out.rows.push_back({where, run.what, fmt::format("{}", run.times), format_seconds(run.time.total()),
                        percent_of(run.time.total().count(), all)});
  }
  return out;
}

Table communication_table(const StepReport& report) {
  const StepResult& r = report.result;
  Table out{"communication of a rank, hidden and exposed" + of_stage(report),
            {{"", "", Align::left},
             {"in total", "", Align::right},
             {"hidden", "", Align::right},
             {"exposed", "", Align::right}},
            {}};
  for (const Communication& c : communication(r)) {
    std::string name(c.dimension);
    for (char& letter : name) letter = static_cast<char>(letter - 'a' + 'A');
    if (c.total.count() > 0)
      out.rows.push_back({name, format_seconds(c.total), format_seconds(c.hidden()), format_seconds(c.exposed)});
  }
  return out;
}

/// Where a rank waits for more than its own messages.
bool waits_for_others(const StepResult& r) {
  constexpr double least_told = 1e-4;  // what four digits show; picoseconds add up to less

  for (const Communication& c : communication(r))
    if (c.exposed > c.total * (1 + least_told) && c.total.count() > 0) return true;
  return false;
}

}  // namespace

bool is_outside(Seconds forecast, const std::optional<TimeRange>& range) {
  constexpr double rounding = 1e-9;
  return range && (forecast < range->low * (1 - rounding) || forecast > range->high * (1 + rounding));
}

std::optional<std::string> interval_text(const StepReport& report) {
  if (!report.interval) return std::nullopt;
  std::string out =
      "with all collectives as far from the forecast as 8 of 10 measurements were at most, by the "
      "calibration, ";
  const auto with_remark = [](std::string text, bool outside) {
    return outside ? fmt::format("{}; {}", text, outside_text) : text;
  };
  if (!report.ttft_interval || !report.tpot_interval)
    return with_remark(out + "the step takes " + format_range(*report.interval),
                       is_outside(report.result.step, report.interval));
  const InferenceResult& served = *report.result.inference;
  return with_remark(out + fmt::format("TTFT is {} and TPOT {}", format_range(*report.ttft_interval),
                                       format_range(*report.tpot_interval)),
                     is_outside(served.prefill.time(), report.ttft_interval) ||
                         is_outside(served.decode.time(), report.tpot_interval));
}

namespace {

void add_plain(Page& out, std::string text) {
  out.blocks.push_back(Paragraph{std::move(text), Paragraph::Tone::plain});
}

/// Empty: there is nothing to say.
void add_note(Page& out, std::string text) {
  if (!text.empty()) out.blocks.push_back(Paragraph{std::move(text), Paragraph::Tone::note});
}

/// What is forecast, on which machine.
void add_head(Page& out, const StepReport& report) {
  out.title = report.title.empty() ? report.scenario : fmt::format("{}: {}", report.scenario, report.title);
  if (!report.what_if.empty()) out.title += fmt::format(", what if {}", report.what_if);
  if (report.inputs) add_plain(out, inputs_text(*report.inputs));
  // A graph of tasks says no layout: what it runs on is the machine as it is.
  const int gpus = report.inputs ? report.inputs->layout.world() : report.machine.ranks;
  const std::string library = report.inputs ? ", library " + report.machine.library : std::string();
  add_plain(out, fmt::format("on {}{}", gpus_text(gpus, report.machine), library));
  if (!report.faults) return;
  const MachineState& machine = report.faults->machine;
  if (!machine.faults.empty()) add_plain(out, "faults: " + faults_text(machine.faults));
  if (machine.placement.any()) add_plain(out, "placement: " + to_text(machine.placement));
}

void add_times(Page& out, const StepReport& report) {
  const StepResult& r = report.result;
  out.blocks.push_back(summary_table(report));
  if (report.faults) add_effect(out, *report.faults, r);
  if (!report.gates.empty()) out.blocks.push_back(gates_table(report.gates));
  if (report.inputs) out.blocks.push_back(layer_table(*report.inputs, r.layer));
  out.blocks.push_back(breakdown_table(report));
  add_note(out, slowdown_text(r));
  if (report.inputs) add_note(out, host_text(report));
  if (report.inputs) add_note(out, state_copies_text(*report.inputs, r));
}

/// What ranks wait for: of the step, and along its critical path.
void add_waits(Page& out, const StepReport& report) {
  const StepResult& r = report.result;
  if (report.unfolded) out.blocks.push_back(unfolded_table(*report.unfolded, r));
  if (!r.collectives.empty()) out.blocks.push_back(communication_table(report));
  if (waits_for_others(r))
    add_note(out, "exposed is more than the total where a stage also waits for messages of other stages");
  if (r.critical_path && !r.critical_path->runs.empty()) out.blocks.push_back(path_table(*r.critical_path));
}

void add_operations_tables(Page& out, const StepInputs& in, const StepResult& r) {
  out.blocks.push_back(operations_table(in, r.operations));
  for (const auto& [operations, of] : {std::pair(&r.linear_operations, linear_text(in.model)),
                                       std::pair(&r.feed_forward_operations, feed_forward_text(in.model))}) {
    if (operations->empty()) continue;
    Table table = operations_table(in, *operations);
    table.title.insert(std::string("kernels of one layer").size(), fmt::format(" with {}", of));
    out.blocks.push_back(std::move(table));
  }
}

/// What is meant by faults, a placement and jitter.
void add_fault_notes(Page& out, const FaultEffect& effect) {
  const std::vector<MachineFault>& faults = effect.machine.faults;
  if (!faults.empty()) add_note(out, faults_in_steps);
  if (effect.machine.placement.any()) add_note(out, placement_in_steps);
  if (std::ranges::any_of(faults, &MachineFault::comes_or_goes)) add_note(out, faults_come_and_go);
  if (!effect.jitter) return;
  const bool of_gpus = draws(faults, false), of_links = draws(faults, true);
  if (of_gpus) add_note(out, jitter_in_steps);
  if (of_links) add_note(out, link_jitter_in_steps);
  if (of_links && !of_gpus) add_note(out, link_jitter_by_formula);
}

/// How prices came about, and what is left out.
void add_notes(Page& out, const StepReport& report) {
  add_price_notes(out, report);
  if (report.faults) add_fault_notes(out, *report.faults);
  if (report.unfolded) add_note(out, unfolded_text(*report.unfolded, report.sharing));
  if (report.inputs) add_note(out, not_modelled(report));
  if (report.inputs) add_note(out, unmeasured_text(*report.inputs).value_or(std::string()));
}

}  // namespace

Page page(const StepReport& report) {
  const StepResult& r = report.result;
  Page out;
  add_head(out, report);
  if (r.inference) {
    add_serving(out, report);
    return out;
  }
  add_times(out, report);
  add_waits(out, report);
  if (report.inputs) {
    out.blocks.push_back(memory_table(r.memory));
    if (Table sent = sent_table(*report.inputs, r.stage); !sent.rows.empty()) out.blocks.push_back(std::move(sent));
  }
  if (!r.collectives.empty()) out.blocks.push_back(collectives_table(report, r.collectives, "step"));
  if (report.list_operations && report.inputs) add_operations_tables(out, *report.inputs, r);
  add_notes(out, report);
  for (const std::string& warning : r.warnings) out.blocks.push_back(Paragraph{warning, Paragraph::Tone::warning});
  return out;
}

}  // namespace collcast
