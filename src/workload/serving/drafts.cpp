#include "workload/serving/drafts.hpp"

#include <algorithm>
#include <utility>

#include "workload/layer/mtp.hpp"
#include "workload/layer/share.hpp"

namespace collcast::workload {

bool drafts_by_modules(const StepInputs& in) {
  return in.serving && in.serving->speculation && in.serving->speculation->method == DraftMethod::mtp;
}

int further_drafts(const StepInputs& pass) {
  if (!drafts_by_modules(pass) || pass.batch.context == 0) return 0;
  return std::max(0, pass.serving->speculation->tokens - pass.model.mtp_layers);
}

StepInputs draft_pass(const StepInputs& pass) {
  StepInputs draft = pass;
  draft.batch.sequence = 1;
  return draft;
}

Segments draft_segments(const StepInputs& draft, LayerKind kind) {
  Segments s;
  s.forward = mtp_input_segments(draft).forward;
  add_segments(s.forward, layer_segments(draft, kind).forward);
  add_segments(s.forward, next_token_segments(draft, draft.batch.micro_batch));
  s.forward = joined(std::move(s.forward));
  return s;
}

}  // namespace collcast::workload

namespace collcast {

std::string_view to_string(DraftMethod method) { return method == DraftMethod::mtp ? "mtp" : "ngram"; }

double Speculation::tokens_per_pass() const {
  if (acceptance_length) return *acceptance_length;
  double sum = 1, accepted = 1;
  for (int i = 0; i < tokens; ++i) sum += accepted *= acceptance_rate.value_or(0);
  return sum;
}

}  // namespace collcast
