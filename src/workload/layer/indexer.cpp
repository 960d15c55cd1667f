#include "workload/layer/indexer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workload/layer/adapters.hpp"

namespace collcast::workload {

namespace {

constexpr double score_bytes = 4, place_bytes = 4;  // fp32, int32

double heads_elements(const SparseAttention& a) { return static_cast<double>(a.heads) * a.dim; }

}  // namespace

double indexer_products(const TransformerConfig& m) {
  const SparseAttention& a = m.sparse;
  return m.latent.q_rank * heads_elements(a) + static_cast<double>(m.hidden) * (a.dim + a.heads);
}

double indexer_parameters(const TransformerConfig& m) { return indexer_products(m) + 2.0 * m.sparse.dim; }

bool chooses_keys(const TransformerConfig& m, int tokens) { return m.sparse.top_k > 0 && tokens > m.sparse.top_k; }
bool chooses_keys(const StepInputs& in) {
  return in.model.sparse.top_k > 0 && (in.batch.context > 0 || chooses_keys(in.model, in.batch.sequence));
}

int most_keys(const TransformerConfig& m) { return m.sparse.top_k > 0 ? m.sparse.top_k : m.window.tokens; }

SharedKeyCore::SharedKeyCore(const StepInputs& in) {
  if (!chooses_keys(in)) return;
  const double heads = static_cast<double>(in.model.heads) / in.layout.tp;
  query = heads * (in.model.latent.kv_rank + in.model.latent.rope);
  output = heads * in.model.latent.kv_rank;
}

double indexer_cache_bytes(const TransformerConfig& m) {
  constexpr double block = 128, scale_bytes = 4;
  return m.sparse.top_k > 0 ? m.sparse.dim + scale_bytes * std::ceil(m.sparse.dim / block) : 0;
}

double kept_by_indexer(const StepInputs& in) {
  if (!chooses_keys(in)) return 0;
  const SparseAttention& a = in.model.sparse;
  const double w = KernelTimer(in).precision().activation;
  const double trained = is_frozen(in.options) ? 0 : w * (heads_elements(a) + 2.0 * a.dim + a.heads);
  return Share(in).tokens * (trained + place_bytes * a.top_k);
}

double waiting_of_indexer(const StepInputs& in) {
  if (!chooses_keys(in)) return 0;
  const SparseAttention& a = in.model.sparse;
  return Share(in).tokens * (heads_elements(a) + a.dim + a.heads);
}

/// Of queries with at most so many keys (0: all before them and their own).
double Indexer::pairs(int most) const {
  return in_.batch.micro_batch * causal_keys(in_.batch.context, in_.batch.sequence, most);
}

double Indexer::position_bytes() const {
  const double most = std::min<double>(of_.top_k, in_.batch.context + static_cast<double>(in_.batch.sequence));
  return place_bytes * share_.tokens * most;
}

Operation Indexer::norm_and_rotary() const {
  const double elements = of_.dim + (chooses() ? heads_elements(of_) : 0);
  return timer_.memory("indexer norm and rotary", Volume(2 * w_ * share_.tokens * elements));
}

std::vector<Operation> Indexer::choice() const {
  const double all = in_.batch.context + static_cast<double>(in_.batch.sequence);
  const double key_bytes = in_.serving ? indexer_cache_bytes(in_.model) : w_ * of_.dim;
  const double query_bytes = (in_.serving ? 1 : w_) * heads_elements(of_);
  const Flops flops(2 * pairs(0) * heads_elements(of_));
  const Volume bytes(share_.tokens * query_bytes + in_.batch.micro_batch * all * key_bytes + score_bytes * pairs(0));
  return {timer_.index_scores("indexer scores", flops, bytes),
          timer_.memory("choice of keys", Volume(score_bytes * pairs(0) + position_bytes()))};
}

std::vector<Operation> Indexer::gradients() const {
  const double chosen = pairs(of_.top_k), elements = heads_elements(of_) + of_.dim;
  return {timer_.index_scores("indexer score gradient", Flops(4 * chosen * heads_elements(of_)),
                              Volume(2 * w_ * share_.tokens * elements + score_bytes * chosen + position_bytes())),
          timer_.memory("indexer norm and rotary gradient", Volume(3 * w_ * share_.tokens * elements))};
}

Operation Indexer::core(std::string name, bool backward) const {
  constexpr double filled_to = 64;
  const double rank = in_.model.latent.kv_rank, key = rank + in_.model.latent.rope;
  const double heads = std::ceil(static_cast<double>(in_.model.heads) / in_.layout.tp / filled_to) * filled_to;
  const double of_pair = backward ? 3 * key + 2 * rank : key + rank, moved = backward ? 2 : 1;
  const SharedKeyCore shared(in_);
  const Volume bytes(w_ * share_.tokens * moved * (shared.query + shared.output + key) + 4 * moved * share_.lse +
                     position_bytes());
  return timer_.flash(std::move(name), Flops(2 * pairs(of_.top_k) * heads * of_pair), bytes, backward);
}

}  // namespace collcast::workload
