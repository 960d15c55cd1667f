// Speculative decoding by itself, and what of the model it does not go with (drafts.hpp).
#include <string>

#include "collcast/base/units.hpp"
#include "workload/checks/misfits.hpp"
#include "workload/serving/drafts.hpp"

namespace collcast::workload {

namespace {

constexpr const char* drafted = "inference.speculative.num_speculative_tokens";

void check_parts(Misfits& misfits, const Speculation& s) {
  if (s.tokens < 1 || s.tokens > most_speculative_tokens)
    misfits.wrong({drafted}, "num_speculative_tokens is " + std::to_string(s.tokens),
                  "expected 1 to " + std::to_string(most_speculative_tokens));
  if (s.acceptance_length && !(*s.acceptance_length >= 1 && *s.acceptance_length <= 1.0 + s.tokens))
    misfits.wrong({"inference.speculative.acceptance_length", drafted},
                  "a pass over " + std::to_string(1 + s.tokens) + " tokens" + misfits.seen(drafted) +
                      " does not bring " + format_count(*s.acceptance_length),
                  "expected 1 to " + std::to_string(1 + s.tokens) + ": the model's own token and those accepted");
}

}  // namespace

void check_speculation(Misfits& misfits) {
  const StepInputs& in = misfits.in;
  if (!in.serving || !in.serving->speculation) return;
  const Speculation& s = *in.serving->speculation;
  check_parts(misfits, s);
  const int modules = in.model.mtp_layers;
  if (drafts_by_modules(in) && modules > s.tokens)
    misfits.wrong({"model.mtp_num_layers", drafted},
                  std::to_string(modules) + " layers that predict further tokens draft more than " +
                      std::to_string(s.tokens) + misfits.seen(drafted),
                  "use " + std::to_string(s.tokens) + " or fewer");
  if (in.model.linear.key_heads > 0)
    misfits.wrong({"inference.speculative", "model.linear_attention", "model"},
                  "speculative decoding is not modelled with linear attention" +
                      misfits.seen("model.linear_attention") + ", whose states would have to be taken back",
                  "leave it out");
}

}  // namespace collcast::workload
