#include "workload/gradient_exchange.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workload/layer/linear_attention.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/layer/share.hpp"
#include "workload/wire.hpp"

namespace collcast::workload {

namespace {

struct Matrix {
  double rows = 0, columns = 0, count = 1;
};

/// Of one rank: the others of its gradients are vectors.
class Matrices {
 public:
  Matrices(const StepInputs& in, int stage) : in_(in), share_(in), gated_(in.model.gated_mlp ? 2 : 1) {
    const ParameterTerms held = parameter_terms(in, stage);
    for (const LayerShape shape : layer_shapes) {
      const double layers = held.layers[shape];
      if (!(layers > 0)) continue;
      if (shape.attends()) add_attention(layers);
      if (shape.is_linear()) add_linear_attention(layers);
      if (shape.has_mlp()) add_mlp(share_.ffn, layers);
      if (shape.has_experts()) add_experts(layers);
    }
    if (held.embedding > 0) own.push_back({share_.vocab, share_.hidden});
    if (held.output > 0) own.push_back({share_.vocab, share_.hidden});
    if (held.mtp_projections > 0)
      own.push_back({2 * share_.hidden, share_.hidden / in.layout.tp, static_cast<double>(in.model.mtp_layers)});
    if (held.mtp_embedding > 0) own.push_back({share_.vocab, share_.hidden});
    if (held.positions > 0) own.push_back({static_cast<double>(in.model.learned_positions), share_.hidden});
  }

  std::vector<Matrix> own, experts;

 private:
  void add_attention(double layers) {
    const LatentAttention& a = in_.model.latent;
    if (a.kv_rank == 0) {
      own.push_back({share_.hidden, share_.query + share_.gate + share_.key + share_.value, layers});
    } else {
      const double kv = a.kv_rank, q = a.q_rank, heads = static_cast<double>(in_.model.heads) / in_.layout.tp;
      if (q > 0) own.push_back({share_.hidden, q, layers});
      own.push_back({q > 0 ? q : share_.hidden, share_.query, layers});
      own.push_back({share_.hidden, kv + a.rope, layers});
      own.push_back({kv, heads * a.nope + share_.value, layers});
      add_indexer(layers);
    }
    own.push_back({share_.output, share_.hidden, layers});
  }
  void add_linear_attention(double layers) {
    const LinearShare linear(in_);
    own.push_back({share_.hidden, linear.columns, layers});
    own.push_back({linear.values, share_.hidden, layers});
  }
  void add_indexer(double layers) {
    const SparseAttention& a = in_.model.sparse;
    if (a.top_k == 0) return;
    own.push_back({static_cast<double>(in_.model.latent.q_rank), static_cast<double>(a.heads) * a.dim, layers});
    own.push_back({share_.hidden, static_cast<double>(a.dim), layers});
    own.push_back({share_.hidden, static_cast<double>(a.heads), layers});
  }
  void add_mlp(double width, double layers) {
    own.push_back({share_.hidden, gated_ * width, layers});
    own.push_back({width, share_.hidden, layers});
  }
  void add_experts(double layers) {
    const double each = layers * share_.local_experts;
    std::vector<Matrix>& to = in_.layout.experts_apart() ? experts : own;
    to.push_back({share_.expert_row, gated_ * share_.expert, each});
    to.push_back({share_.expert, share_.expert_row, each});
    if (const double latent = in_.model.experts.latent; latent > 0) {
      own.push_back({share_.hidden, latent, layers});
      own.push_back({latent, share_.hidden, layers});
    }
    own.push_back({share_.hidden, static_cast<double>(in_.model.experts.count), layers});
    if (share_.shared > 0) add_mlp(share_.shared, layers);
  }

  const StepInputs& in_;
  Share share_;
  double gated_;
};

/// Of the stage's two kinds of gradients those that somebody else has too.
std::vector<GradientExchange> exchanges_of(const StepInputs& in, int stage) {
  std::vector<GradientExchange> out;
  if (in.layout.replicas() > 1) out.emplace_back(in, stage, false);
  if (in.layout.experts_apart() && in.layout.expert_replicas() > 1) out.emplace_back(in, stage, true);
  return out;
}

}  // namespace

GradientExchange::GradientExchange(const StepInputs& in, int stage, bool experts) {
  const GradientCompression& c = in.options.compression;
  const double kept = in.options.gradient_bytes, cast = sent_gradient_bytes(in) / kept;
  const RankParameters held = trained_parameters(in, stage);
  const double apart = in.layout.experts_apart() ? held.experts : 0;
  of_experts = experts;
  gradients = experts ? apart : held.total() - apart;
  share_ = {cast / c.ratio, 0, 0};
  low_rank_ = c.method == CompressionMethod::powersgd && gradients > 0;
  if (!low_rank_) return;
  const Matrices all(in, stage);
  for (const Matrix& m : experts ? all.experts : all.own) {
    const double rank = std::min({static_cast<double>(c.rank), m.rows, m.columns});
    if (!(m.count > 0) || !((m.rows + m.columns) * rank * c.min_rate < m.rows * m.columns)) continue;
    matrices += m.count;
    compressed += m.count * m.rows * m.columns;
    rows += m.count * m.rows * rank;
    columns += m.count * m.columns * rank;
    orthogonal += m.count * (m.rows + m.columns) * (3 * rank + 3 * rank * (rank - 1));
    orthogonal_kernels += m.count * 2 * (7 * rank - 4);
  }
  share_ = {cast * std::max(gradients - compressed, 0.0) / gradients, cast * rows / gradients,
            cast * columns / gradients};
}

std::array<double, 3> GradientExchange::sent(double kept) const {
  return {kept * share_[0], kept * share_[1], kept * share_[2]};
}

double largest_gradients(const StepInputs& in) {
  double largest = 0;
  for (const int stage : {0, in.layout.pp / 2, in.layout.pp - 1}) {
    const RankParameters held = trained_parameters(in, stage);
    largest = std::max(largest, in.options.gradient_bytes * (in.layout.replicas() > 1 ? held.total() : held.experts));
  }
  return largest;
}

bool is_bucket_too_small(Bytes bucket, double gradients) {
  return gradients / static_cast<double>(bucket.value()) > most_buckets;
}

double bucket_of(const StepInputs& in, double gradients) {
  if (!in.options.bucket && is_bucket_too_small(default_bucket, gradients)) return std::ceil(gradients / most_buckets);
  return static_cast<double>(in.options.bucket.value_or(default_bucket).value());
}

bool exchanges_gradients(const StepInputs& in) {
  return in.layout.replicas() > 1 || (in.layout.experts_apart() && in.layout.expert_replicas() > 1);
}

bool reduces_each_pass(const StepInputs& in) { return in.options.zero >= 2 && !in.options.no_sync; }

double sent_gradient_bytes(const StepInputs& in) {
  return wire_bytes(in.options.communication.gradients, in.options.gradient_bytes);
}

double cast_bytes(const StepInputs& in, bool experts) {
  const double kept = in.options.gradient_bytes, sent = sent_gradient_bytes(in);
  if (sent >= kept) return 0;
  const int owners = in.options.zero == 0 ? 1 : experts ? expert_shards(in.layout) : in.layout.shards();
  return (kept + sent) * (1 + 1.0 / owners);
}

std::vector<Operation> compression_operations(const StepInputs& in, int stage) {
  const GradientCompression& c = in.options.compression;
  const double kept = in.options.gradient_bytes, d = sent_gradient_bytes(in);
  if (d >= kept && c.method == CompressionMethod::none) return {};
  const KernelTimer timer(in);
  GradientExchange all;
  double casts = 0;
  for (const GradientExchange& one : exchanges_of(in, stage)) {
    casts += cast_bytes(in, one.of_experts) * one.gradients;
    all.gradients += one.gradients;
    all.compressed += one.compressed;
    all.matrices += one.matrices;
    all.rows += one.rows;
    all.columns += one.columns;
    all.orthogonal += one.orthogonal;
    all.orthogonal_kernels += one.orthogonal_kernels;
  }
  std::vector<Operation> ops;
  const auto memory = [&](const char* name, double bytes, double kernels = 1) {
    if (bytes > 0) ops.push_back(timer.memory(name, Volume(bytes), kernels));
  };
  if (!reduces_each_pass(in) && d < kept) memory("gradient casts", casts);
  if (c.method == CompressionMethod::ratio) memory("gradient compression", c.moved * all.gradients);
  if (c.error_feedback) memory("error feedback", 8 * d * all.gradients, 3);
  if (!(all.matrices > 0)) return ops;
  const Volume products(d * (all.compressed + all.rows + all.columns));
  const Flops flops(2 * c.rank * all.compressed);
  memory("powersgd orthogonal", d * all.orthogonal, all.orthogonal_kernels);
  for (const char* name : {"powersgd P", "powersgd Q", "powersgd restore"})
    ops.push_back(timer.core_gemm(name, flops, products, all.matrices));
  memory("powersgd others", 4 * d * (all.gradients - all.compressed), 2);
  return ops;
}

std::array<ReplicaCollective, 2> reductions_of(const StepInputs& in, double bytes, bool experts) {
  const ParallelLayout& l = in.layout;
  if (in.options.zero == 0)
    return {{{experts ? expert_replica_group : replica_group, CollectiveKind::all_reduce, bytes}, {}}};
  const int shards = experts ? expert_shards(l) : l.shards();
  return {{{experts ? expert_shard_group : shard_group, CollectiveKind::reduce_scatter, bytes},
           {experts ? expert_copies_group : shard_copies, CollectiveKind::all_reduce, bytes / shards}}};
}

ReplicaCollective gather_of(double bytes, bool experts) {
  return {experts ? expert_shard_group : shard_group, CollectiveKind::all_gather, bytes};
}

GradientCopies gradient_copies(const StepInputs& in, int stage) {
  GradientCopies out;
  const GradientCompression& c = in.options.compression;
  const double d = sent_gradient_bytes(in);
  for (const GradientExchange& one : exchanges_of(in, stage)) {
    if (in.options.delayed_all_reduce) out.stale += in.options.gradient_bytes * one.gradients;
    if (c.error_feedback) out.error += d * one.gradients;
    out.low_rank += d * (one.rows + one.columns);
  }
  return out;
}

}  // namespace collcast::workload
