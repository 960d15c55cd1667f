// What gradients and gathered weights add to a step, as its closed form has it.
#include <fmt/format.h>

#include <string>

#include "collcast/base/units.hpp"
#include "report/explain.hpp"

namespace collcast {

namespace {

Term delayed_term(const GradientTerms& g) {
  return {
      "exposed gradients",
      "max(buckets - step so far, 0)",
      fmt::format("max({} - {}, 0)", precise(g.buckets), precise(g.left)),
      g.exposed().count(),
      "s",
      "delayed: the gradients of the step before are exchanged from the begin of this one on, and applied at its end"};
}

}  // namespace

Term gradients_term(const GradientTerms& g) {
  if (g.delayed) return delayed_term(g);
  std::string formula = "max(buckets - backward left - ahead, 0)";
  std::string numbers = fmt::format("max({} - {} - {}, 0)", precise(g.buckets), precise(g.left), precise(g.ahead));
  if (g.times > 1) {
    formula = "m max(buckets - backward left, 0)";
    numbers = fmt::format("{} x max({} - {}, 0)", g.times, precise(g.buckets), precise(g.left));
  } else if (g.tied > Seconds{}) {
    formula = "max(max(buckets - backward left, 0) - ahead + tied embedding, 0)";
    numbers = fmt::format("max(max({} - {}, 0) - {} + {}, 0)", precise(g.buckets), precise(g.left), precise(g.ahead),
                          precise(g.tied));
  }
  if (g.times > 1)
    return {"exposed gradients",
            formula,
            numbers,
            g.exposed().count(),
            "s",
            "ZeRO-2, after every micro-batch: the buckets from the one that decides, and the backward left when that "
            "one is full"};
  return {
      "exposed gradients",
      formula,
      numbers,
      g.exposed().count(),
      "s",
      fmt::format("stage {} is last: its buckets from the one that decides, its backward left when that one is full, "
                  "and by how much it ends before the pipeline",
                  g.stage)};
}

Term sharding_term(const ShardingTerms& s, bool overlap) {
  if (s.by_turns)
    return {"exposed sharding",
            {},
            {},
            s.exposed().count(),
            "s",
            fmt::format("gone through turn by turn with what each gathers and reduces{}: less the pipeline",
                        overlap ? " beside its passes" : "")};
  const char* source =
      overlap ? "ZeRO-3: the next unit's weights are gathered and the last one's gradients reduced beside each pass"
              : "ZeRO-3 without overlap: every gather and reduction";
  return {"exposed sharding",
          overlap ? "m (first gather + sum(max(beside - pass, 0)) + last reduction)" : "m sum(gathers + reductions)",
          overlap ? fmt::format("{} x ({} + {} + {})", s.times, format_seconds(s.first), format_seconds(s.waits),
                                format_seconds(s.last))
                  : fmt::format("{} x {}", s.times, format_seconds(s.waits)),
          s.exposed().count(),
          "s",
          source};
}

}  // namespace collcast
