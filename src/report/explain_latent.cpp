// What a layer with latent attention keeps for its backward, taken apart: of heads, of the small ranks, and of the
// indexer of sparse attention. The figures are ActivationTerms; only the texts are made here.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "report/explain.hpp"

namespace collcast {

void add_latent_activations(Section& out, const StepInputs& in, const MemoryTerms& terms, LayerShape shape,
                            const std::string& tokens, const std::string& kept_rows) {
  const TransformerConfig& m = in.model;
  const std::string w = exact(terms.weight_bytes);
  const int tp = in.layout.tp;
  const ActivationTerms& a = terms.layer[shape];
  const KeptTensors kept = kept_tensors(in, shape);
  const KeptTerms add(out);
  const LatentAttention& l = m.latent;
  const bool shares = a.indexer > Volume{};
  if (shares && !kept.query)
    add("projections", "w T a (rkv + dv) / TP",
        fmt::format("{} x {} x {} x ({} + {}) / {}", w, tokens, m.heads, l.kv_rank, l.value, tp), a.projections,
        "the core's output, in the rank of keys and values and out of it");
  else if (shares)
    add("projections", "w T a (dn + dr + 2 rkv + dr + dv) / TP",
        fmt::format("{} x {} x {} x ({} + {} + 2 x {} + {} + {}) / {}", w, tokens, m.heads, l.nope, l.rope, l.kv_rank,
                    l.rope, l.value, tp),
        a.projections,
        "query, and in the rank of keys and values: heads share these, which are not expanded; output in it, and out "
        "of it");
  else if (!kept.query)
    add("projections", "w T a dv / TP", fmt::format("{} x {} x {} x {} / {}", w, tokens, m.heads, l.value, tp),
        a.projections, "the core's output");
  else
    add("projections", "2 w T a (dn + dr + dv) / TP",
        fmt::format("2 x {} x {} x {} x ({} + {} + {}) / {}", w, tokens, m.heads, l.nope, l.rope, l.value, tp),
        a.projections, "query, key, value, and the core's output");
  if (terms.parameters.frozen)
    add("small ranks",
        l.q_rank > 0 ? "w T' (rq + rkv + dr + what adapters read)" : "w T' (rkv + dr + what adapters read)",
        fmt::format("{} x {} x {}", w, kept_rows, exact(a.latent.value() / (terms.weight_bytes * terms.rows))),
        a.latent, "before their norm, and after it where the matrix behind has an adapter");
  else
    add("small ranks", l.q_rank > 0 ? "w T' (2 rq + 2 rkv + dr)" : "w T' (2 rkv + dr)",
        fmt::format("{} x {} x (2 x {} + 2 x {} + {})", w, kept_rows, l.q_rank, l.kv_rank, l.rope), a.latent,
        "before and after their norm");
  if (const SparseAttention& s = m.sparse; terms.parameters.frozen)
    add("indexer", "4 T top_k", fmt::format("4 x {} x {}", tokens, s.top_k), a.indexer, "places of the chosen keys");
  else
    add("indexer", "w T (H d + 2 d + H) + 4 T top_k",
        fmt::format("{} x {} x ({} x {} + 2 x {} + {}) + 4 x {} x {}", w, tokens, s.heads, s.dim, s.dim, s.heads,
                    tokens, s.top_k),
        a.indexer, "queries, keys before and behind their norm, weights, and places of the chosen keys");
}

}  // namespace collcast
