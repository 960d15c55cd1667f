#include "workload/serving/serving_passes.hpp"

#include <algorithm>
#include <utility>

#include "workload/layer/attention_core.hpp"
#include "workload/layer/indexer.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/serving/drafts.hpp"
#include "workload/serving/serving.hpp"
#include "workload/ways.hpp"

namespace collcast::workload {

namespace {

/// The chosen tokens on their way to the embedding, of the slowest TP rank.
Result<Seconds> tokens_back(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  if (in.layout.pp == 1) return Seconds{};
  constexpr double token_bytes = 4;
  Seconds slowest{};
  const int last = in.layout.pp - 1;
  const Bytes size = whole(token_bytes * in.batch.micro_batch * in.batch.sequence);
  for (const Way& way : message_ways(in.layout, fabric, last))
    for (const CollectiveRequest& request : stage_messages(in.layout, fabric, last, size, way.rank)) {
      const Result<Seconds> one = time(request);
      if (!one) return one.errors();
      slowest = std::max(slowest, *one);
    }
  return slowest;
}

/// Of one layer: attention over so many kept keys, and what chooses among them.
Seconds core_time(StepInputs& pass, int context, bool windowed) {
  pass.batch.context = context;
  const KernelTimer timer(pass);
  const Share share(pass);
  Seconds time =
      AttentionCore(pass, timer, share, windowed).forward(Category::forward, 0).front().operations.front().time;
  const Indexer indexer(pass, timer, share);
  if (indexer.exists())
    for (const Operation& op : indexer.choice()) time += op.time;
  return time;
}

}  // namespace

Result<PricedPasses> price_passes(const StepInputs& in, const Fabric& fabric, const CollectiveTime& time) {
  const StepInputs token = token_pass(in, in.serving->mean_prompt_tokens());
  Result<StepPlan> prompts = make_plan(prompt_pass(in), fabric, time);
  if (!prompts) return prompts.errors();
  Result<StepPlan> tokens = make_plan(token, fabric, time);
  if (!tokens) return tokens.errors();
  const Result<Seconds> back = tokens_back(token, fabric, time);
  if (!back) return back.errors();
  PricedPasses out{std::move(prompts).value(), std::move(tokens).value(), *back};
  if (in.serving->prompts_in_full_pass() > 1) {
    Result<StepPlan> full = make_plan(full_prompt_pass(in), fabric, time);
    if (!full) return full.errors();
    out.full = std::move(full).value();
  }
  return out;
}

ContextGrowth::ContextGrowth(const StepInputs& in)
    : pass_(token_pass(in, in.serving->mean_prompt_tokens())),
      draft_(draft_pass(pass_)),
      drafts_(further_drafts(pass_) > 0),
      draft_windowed_(has_window(in.model, in.model.all_layers() - 1)) {
  for (int layer = 0; layer < in.model.layers; ++layer)
    if (!has_linear_attention(in.model, layer)) (has_window(in.model, layer) ? windowed_ : full_) = true;
  first_ = cores(in.serving->mean_prompt_tokens());
}

LongerContext ContextGrowth::at(int context) {
  const LongerContext now = cores(context);
  return {now.full - first_.full, now.windowed - first_.windowed, now.draft - first_.draft};
}

LongerContext ContextGrowth::cores(int context) {
  return {full_ ? core_time(pass_, context, false) : Seconds{}, windowed_ ? core_time(pass_, context, true) : Seconds{},
          drafts_ ? core_time(draft_, context, draft_windowed_) : Seconds{}};
}

Seconds longer_of(const LongerContext& longer, UnitKind kind) {
  if (kind == UnitKind::draft) return longer.draft;
  if (!attends_to_keys(kind)) return {};
  return is_windowed(kind) ? longer.windowed : longer.full;
}

}  // namespace collcast::workload
