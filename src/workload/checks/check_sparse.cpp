// Sparse attention by itself, and what it does not go with.
#include <string>

#include "workload/checks/misfits.hpp"

namespace collcast::workload {

namespace {

void check_parts(Misfits& misfits) {
  const SparseAttention& a = misfits.in.model.sparse;
  for (const auto& [name, value] : {std::pair{"heads", a.heads}, {"dim", a.dim}, {"top_k", a.top_k}})
    if (value < 1)
      misfits.wrong({std::string("model.sparse_attention.") + name, "model.sparse_attention"},
                    std::string(name) + " is " + std::to_string(value), "expected at least 1");
}

}  // namespace

void check_sparse_sizes(Misfits& misfits) {
  const TransformerConfig& m = misfits.in.model;
  const SparseAttention& a = m.sparse;
  if (!a.is_given()) return;
  check_parts(misfits);
  if (m.latent.kv_rank == 0)
    misfits.wrong({"model.sparse_attention", "model.sparse_attention.top_k", "model"},
                  "sparse attention chooses among the vectors that latent attention keeps, and the model has none",
                  "give model.mla, or leave it out");
  else if (m.latent.q_rank == 0)
    misfits.wrong({"model.mla.q_rank", "model.mla", "model.sparse_attention"},
                  "the indexer of sparse attention" + misfits.seen("model.sparse_attention") +
                      " has its queries out of the compressed ones, and the model's are not compressed",
                  "give model.mla.q_rank");
  else if (a.dim >= 1 && a.dim < m.latent.rope)
    misfits.wrong({"model.sparse_attention.dim", "model.mla.rope"},
                  "dim " + std::to_string(a.dim) + " is less than the " + std::to_string(m.latent.rope) +
                      " elements that turn with the position" + misfits.seen("model.mla.rope"),
                  "use a dim of at least mla.rope");
  if (m.window.tokens > 0)
    misfits.wrong({"model.window.tokens", "model.window", "model.sparse_attention"},
                  "a sliding window does not go with sparse attention" + misfits.seen("model.sparse_attention") +
                      ", which chooses among all tokens",
                  "leave one of them out");
  if (!m.causal)
    misfits.wrong({"model.causal", "model.sparse_attention"},
                  "sparse attention" + misfits.seen("model.sparse_attention") + " is modelled of causal attention",
                  "use causal: true");
}

void check_sparse(Misfits& misfits) {
  const StepInputs& in = misfits.in;
  if (!in.model.sparse.is_given()) return;
  const std::string sparse = "sparse attention" + misfits.seen("model.sparse_attention");
  if (in.layout.cp > 1)
    misfits.wrong({"layout.cp", "model.sparse_attention"},
                  "cp " + std::to_string(in.layout.cp) + " is not modelled with " + sparse +
                      ", whose queries choose among the tokens of all ranks",
                  {"use cp 1", [](StepInputs& other) { other.layout.cp = 1; }});
  if (!in.serving && in.options.attention != Attention::flash)
    misfits.wrong({"training.attention", "model.sparse_attention"}, sparse + " is modelled with fused kernels",
                  {"use attention: flash", [](StepInputs& other) { other.options.attention = Attention::flash; }});
}

}  // namespace collcast::workload
