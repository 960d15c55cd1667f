#include "report/unfolded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collcast/base/units.hpp"
#include "report/breakdown.hpp"
#include "report/metrics.hpp"
#include "report/wording.hpp"

namespace collcast {

Json unfolded_json(const UnfoldedStep& unfolded, const StepResult& folded) {
  return {{"step_s", unfolded.step.count()},   {"folded_s", number(folded.simulate)},
          {"ranks", unfolded.ranks},           {"exchanges", unfolded.exchanges},
          {"transfers", unfolded.transfers},   {"messages", unfolded.messages},
          {"repeated", unfolded.repeated},     {"events", unfolded.events},
          {"breakdown_stage", unfolded.stage}, {"breakdown", breakdown_json(unfolded.breakdown)}};
}

Table unfolded_table(const UnfoldedStep& unfolded, const StepResult& folded) {
  Table out{fmt::format("unfolded, every rank for itself: mean of the ranks of stage {}", unfolded.stage),
            {{"part", "", Align::left},
             {"folded", "", Align::right},
             {"unfolded", "", Align::right},
             {"difference", "", Align::right}},
            {}};
  const auto row = [&](const char* name, Seconds before, Seconds now) {
    // Less than a billionth of the step is the rounding of sums.
    if (!(std::max(std::abs(before.count()), std::abs(now.count())) > 1e-9 * unfolded.step.count())) return;
    const Seconds more = now - before;
    const bool same = std::abs(more.count()) <= 1e-9 * unfolded.step.count();
    const std::string sign = more > Seconds{} ? "+" : "-";
    out.rows.push_back({name, format_seconds(before), format_seconds(now),
                        same ? "" : sign + format_seconds(Seconds(std::abs(more.count())))});
  };
  for (const BreakdownPart& part : breakdown_parts)
    row(part.name, folded.breakdown.*part.time, unfolded.breakdown.*part.time);
  row("step", folded.simulate.value_or(folded.step), unfolded.step);
  return out;
}

std::string unfolded_text(const UnfoldedStep& unfolded, Sharing sharing) {
  return fmt::format(
      "unfolded: {} ranks, {} collectives and {} messages of the pipeline, {} messages in one simulation{}. It differs "
      "from the step time, whose collectives have times found apart, by collectives that meet on links (longer), by "
      "ranks that go on when their own part of a collective is over, by shares of messages that are gathered "
      "beside the next message, and by kernels that a collective of DP slows while it waits for other ranks{} "
      "(docs/steps.md).",
      format_count(unfolded.ranks), format_count(static_cast<double>(unfolded.exchanges)),
      format_count(static_cast<double>(unfolded.transfers)), format_count(static_cast<double>(unfolded.messages)),
      unfolded.repeated == 0 ? std::string()
                             : fmt::format(", {} of them as the same group's of the time before, to the picosecond",
                                           format_count(static_cast<double>(unfolded.repeated))),
      sharing == Sharing::fifo ? ". With fifo ranks of one collective end at different times, and the step time has "
                                 "each collective as long as its last rank's: much longer than unfolded"
                               : "");
}

}  // namespace collcast
