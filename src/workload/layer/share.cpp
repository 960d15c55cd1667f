#include "workload/layer/share.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "workload/gradient_exchange.hpp"
#include "workload/layer/parameters.hpp"

namespace collcast::workload {

Share::Share(const StepInputs& in) {
  const TransformerConfig& m = in.model;
  const double t = in.layout.tp, c = in.layout.cp, b = in.batch.micro_batch, s = in.batch.sequence;
  tokens = b * s / c;
  rows = in.layout.sequence_parallel ? tokens / t : tokens;
  hidden = m.hidden;
  const double keys = kv_heads_per_rank(m, in.layout.tp);
  query = static_cast<double>(m.heads) * m.key_dim() / t;
  key = keys * m.key_dim();
  value = keys * m.value_dim();
  const double spread = in.layout.cp_exchange == ContextExchange::ulysses ? std::max(keys, c) : keys;
  core_key = spread * m.key_dim();
  core_value = spread * m.value_dim();
  output = static_cast<double>(m.heads) * m.value_dim() / t;
  if (m.attention_gate) gate = query;
  if (m.latent.kv_rank > 0) latent = m.latent.q_rank + m.latent.kv_rank + m.latent.rope;
  ffn = m.ffn / t;
  vocab = vocabulary_rows(m, in.layout.tp);
  lse = b * m.heads * s / (t * c);
  scores = lse * (s + in.batch.context);
  core = Flops(2 * scores * m.key_dim());
  of_values = static_cast<double>(m.value_dim()) / m.key_dim();
  if (m.experts.count == 0) return;
  const double etp = in.layout.expert_tp();
  if (replicates_tokens(in)) {
    sent = tokens * m.experts.top_k / in.layout.ep * expert_load(in.options, in.layout);
    taken = sent;
  } else {
    sent = rows * m.experts.top_k;
    taken = sent * etp * expert_load(in.options, in.layout);
  }
  shared = m.experts.shared_ffn / t;
  expert = m.experts.ffn / etp;
  local_experts = static_cast<double>(m.experts.count) / in.layout.ep;
  expert_row = m.expert_row();
}

Operation LinearKernels::timed(std::string name, GemmPass pass, const GemmShape& shape, Volume bytes,
                               double matrices) const {
  if (matrices == 1) return timer_.linear(std::move(name), pass, shape, bytes);
  return timer_.grouped(std::move(name), pass, Flops(2 * shape.m * shape.n * shape.k), bytes, matrices);
}

Operation LinearKernels::forward(const Linear& l, double rows, double matrices) const {
  const Precision& p = timer_.precision();
  return timed(l.name, GemmPass::forward, {rows, l.out, l.in},
               Volume(p.operand * rows * l.in + p.weight * matrices * l.in * l.out + p.activation * rows * l.out),
               matrices);
}

Operation LinearKernels::input_gradient(const Linear& l, double rows, double matrices) const {
  const Precision& p = timer_.precision();
  return timed(std::string(l.name) + " input gradient", GemmPass::input_gradient, {rows, l.in, l.out},
               Volume(p.operand * (rows * l.out + matrices * l.in * l.out) + p.activation * rows * l.in), matrices);
}

Operation LinearKernels::weight_gradient(const Linear& l, double rows, double matrices) const {
  const Precision& p = timer_.precision();
  const double accumulate = in_.options.fuse_accumulation ? 2.0 * in_.options.gradient_bytes : p.activation;
  return timed(std::string(l.name) + " weight gradient", GemmPass::weight_gradient, {l.out, l.in, rows},
               Volume(p.operand * rows * (l.in + l.out) + accumulate * matrices * l.in * l.out), matrices);
}

TpCollectives::TpCollectives(const ParallelLayout& layout) {
  if (layout.tp == 1) return;
  if (layout.sequence_parallel) gather = CollectiveKind::all_gather;
  reduce = layout.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  columns = CollectiveKind::all_gather;
}

std::vector<Operation> gradient_accumulation(const StepInputs& in, const KernelTimer& timer, double parameters) {
  if (!(parameters > 0)) return {};
  std::vector<Operation> ops;
  const double kept = in.options.gradient_bytes;
  if (!in.options.fuse_accumulation)
    ops.push_back(
        timer.memory("gradient accumulation", Volume((timer.precision().activation + 2 * kept) * parameters)));
  if (const double casts = cast_bytes(in, false); casts > 0 && reduces_each_pass(in) && exchanges_gradients(in))
    ops.push_back(timer.memory("gradient casts", Volume(casts * parameters)));
  return ops;
}

std::vector<Segment> column_backward(const StepInputs& in, ColumnBackward of) {
  const TpCollectives tp(in.layout);
  const bool splits = splits_backward(in.layout.schedule);
  const auto extend = [](std::vector<Operation>& to, std::vector<Operation>& more) {
    std::move(more.begin(), more.end(), std::back_inserter(to));
  };
  const double gathered = of.input_bytes > 0 ? of.input_bytes : of.bytes;
  if (in.options.overlap_tp == TpOverlap::none || in.layout.tp == 1 || splits) {
    extend(of.inputs, of.weights);
    const auto gather = splits || of.gathered ? std::nullopt : tp.gather;
    return {{of.before, Category::backward, std::move(of.first), gather, 0, 0, 0, gathered},
            {of.name, Category::backward, std::move(of.inputs), tp.reduce, 0, 0, 0, of.bytes}};
  }
  Segment first{of.before, Category::backward, std::move(of.first), std::nullopt};
  Segment inputs{std::string(of.name) + " input gradients", Category::backward, std::move(of.inputs), std::nullopt};
  if (tp.gather && !of.gathered) inputs.under = TpBeside{*tp.gather, gathered};
  Segment weights{of.name, Category::backward, std::move(of.weights), std::nullopt};
  if (weights.operations.empty()) {  // of frozen ones: nothing to hide behind
    weights.then = tp.reduce;
    weights.then_bytes = of.bytes;
    return {std::move(first), std::move(inputs), std::move(weights)};
  }
  weights.under = TpBeside{*tp.reduce, of.bytes};
  return {std::move(first), std::move(inputs), std::move(weights)};
}

void add_segments(std::vector<Segment>& to, std::vector<Segment> more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

std::vector<Segment> joined(std::vector<Segment> segments) {
  std::vector<Segment> result;
  for (Segment& s : segments) {
    const auto stands_alone = [](const Segment& x) { return x.ring_messages > 0 || x.under.has_value(); };
    const bool open = !result.empty() && !result.back().then && !result.back().exchange &&
                      result.back().all_to_all_bytes == 0 && !stands_alone(result.back());
    if (open && !stands_alone(s) && result.back().category == s.category) {
      std::vector<Operation>& operations = result.back().operations;
      operations.insert(operations.end(), s.operations.begin(), s.operations.end());
      result.back().then = s.then;
      result.back().then_bytes = s.then_bytes;
      result.back().exchange = s.exchange;
      result.back().all_to_all_bytes = s.all_to_all_bytes;
      result.back().name = s.name;
    } else {
      result.push_back(std::move(s));
    }
  }
  return result;
}

}  // namespace collcast::workload
