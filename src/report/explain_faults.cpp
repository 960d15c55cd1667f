// What a step's explanation says of a machine that is not as described: what holds when, what each period does of the
// step, and what that costs.
#include <fmt/format.h>

#include <algorithm>

#include "collcast/base/units.hpp"
#include "report/explain.hpp"
#include "report/faults.hpp"
#include "report/wording.hpp"

namespace collcast {

bool is_steady(const StepReport& report) {
  return !report.faults || (report.faults->periods.size() <= 1 && !report.faults->jitter);
}

namespace {

void add_rules(Section& out, const FaultEffect& effect) {
  const std::vector<MachineFault>& faults = effect.machine.faults;
  if (!faults.empty()) out.text.push_back({"faults: " + faults_text(faults), Paragraph::Tone::plain});
  if (effect.machine.placement.any())
    out.text.push_back({"placement: " + to_text(effect.machine.placement), Paragraph::Tone::plain});
  if (std::any_of(faults.begin(), faults.end(), [](const MachineFault& fault) { return fault.gpu() != nullptr; }))
    out.text.push_back(
        {"a kernel takes its time at full speed / the GPU's speed; ranks wait for the slowest of their "
         "groups, stages for each other, replicas at the exchange of gradients",
         Paragraph::Tone::plain});
  if (any_of_links(faults))
    out.text.push_back(
        {"collectives and messages of a group, or beside one, with a GPU on a node that the faulty links "
         "are on the way of take what they take on the machine with the faults, and never less than "
         "without; all others what they take without",
         Paragraph::Tone::plain});
  if (effect.machine.placement.any())
    out.text.push_back({"all collectives and messages take what they take between the nodes that the job has",
                        Paragraph::Tone::plain});
  if (effect.jitter)
    out.text.push_back(
        {"jitter: every operation's time is drawn; the step is that of the first draw, the closed form "
         "has the means",
         Paragraph::Tone::plain});
}

/// What is done of the step in each period, and how long it takes then.
void add_periods(Section& out, const FaultEffect& effect, Seconds estimate) {
  Table table{"periods",
              {{"from", "", Align::right},
               {"faults", "", Align::left},
               {"step if it stayed so", "", Align::right},
               {"of the step", "", Align::right}},
              {}};
  std::string left = "1";
  for (std::size_t p = 0; p < effect.periods.size(); ++p) {
    const FaultPeriod& here = effect.periods[p];
    table.rows.push_back({format_seconds(here.begin), here.faults.empty() ? "none" : faults_text(here.faults),
                          format_seconds(here.step), fmt::format("{:.1f}%", 100 * here.share)});
    if (p + 1 == effect.periods.size()) {
      out.terms.push_back({"closed form", "from + (1 - done before) x step at this pace",
                           fmt::format("{} + ({}) x {}", precise(here.begin), left, precise(here.step)),
                           estimate.count(), "s", "the period that it ends in"});
      break;
    }
    const Seconds next = effect.periods[p + 1].begin;
    out.terms.push_back({fmt::format("done from {} on", format_seconds(here.begin)),
                         "(until - from) / step at this pace",
                         fmt::format("({} - {}) / {}", precise(next), precise(here.begin), precise(here.step)),
                         here.share, "", "of the step, by closed form"});
    left += fmt::format(" - {:.9g}", here.share);
  }
  out.tables.push_back(std::move(table));
}

void add_jitter(Section& out, const JitterEffect& jitter) {
  out.terms.push_back({"without jitter", {}, {}, jitter.without.count(), "s", "from the simulated timeline"});
  Seconds sum{};
  for (const Seconds draw : jitter.draws) sum += draw;
  const auto count = static_cast<double>(jitter.draws.size());
  if (jitter.draws.size() > 1)
    out.terms.push_back({"mean of the draws", "sum of the draws / draws",
                         fmt::format("{} / {}", precise(sum), jitter.draws.size()), sum.count() / count, "s", ""});
}

}  // namespace

Section faults_section(const StepReport& report) {
  const FaultEffect& effect = *report.faults;
  const StepResult& r = report.result;
  const char* how = r.simulate ? "from the simulated timeline" : "by closed form";
  Section out;
  out.title = "the machine as it is";
  add_rules(out, effect);
  out.terms.push_back({"step as described", {}, {}, effect.step.count(), "s", how});
  if (effect.periods.size() > 1) add_periods(out, effect, r.estimate);
  if (effect.jitter) add_jitter(out, *effect.jitter);
  out.terms.push_back({"cost", "step - step as described",
                       fmt::format("{} - {}", precise(r.step), precise(effect.step)), (r.step - effect.step).count(),
                       "s", fmt::format("of {}", cause_text(effect.machine))});
  if (!effect.classes.empty()) {
    out.tables.push_back(classes_table(effect, r));
    if (const std::string more = more_classes(effect); !more.empty()) out.text.push_back({more, Paragraph::Tone::note});
  }
  return out;
}

}  // namespace collcast
