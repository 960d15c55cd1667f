// The matrices of an indexer in a layer's passes (indexer.hpp), and where its kernels stand among the others.
#include "workload/layer/layer.hpp"

namespace collcast::workload {

void Layer::take_indexer() {
  const SparseAttention& a = in_.model.sparse;
  const double heads = a.heads, dim = a.dim;
  index_queries_ = {"indexer queries", static_cast<double>(in_.model.latent.q_rank), heads * dim};
  // Without a choice the keys alone are of use, to a server.
  index_keys_ = indexer_.chooses() ? Linear{"indexer keys and weights", share_.hidden, dim + heads}
                                   : Linear{"indexer keys", share_.hidden, dim};
}

bool Layer::runs_indexer() const { return indexer_.chooses() || (in_.serving && indexer_.exists()); }

double Layer::indexer_bytes() const { return runs_indexer() ? w_ * share_.tokens * index_keys_.out : 0; }

Operations Layer::indexer_keys() const { return runs_indexer() ? forward_of(index_keys_, rows_down()) : Operations(); }

Operations Layer::indexer_choice() const {
  if (!runs_indexer()) return {};
  Operations ops;
  if (indexer_.chooses()) extend(ops, forward_of(index_queries_));
  ops.push_back(indexer_.norm_and_rotary());
  if (indexer_.chooses()) extend(ops, indexer_.choice());
  return ops;
}

Operations Layer::indexer_backward() const {
  return indexer_.chooses() && !frozen_ ? indexer_.gradients() : Operations();
}

Operations Layer::indexer_weights() const {
  if (!indexer_.chooses() || frozen_) return {};
  return {linear_.weight_gradient(index_queries_), linear_.weight_gradient(index_keys_, rows_down())};
}

}  // namespace collcast::workload
