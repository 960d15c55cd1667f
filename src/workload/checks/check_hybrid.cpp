// Hybrid models: a letter for each layer, and what these need.
#include <algorithm>
#include <string>

#include "workload/checks/misfits.hpp"

namespace collcast::workload {

namespace {

constexpr const char* path = "model.hybrid_layer_pattern";
constexpr const char* letters = "M linear attention, * attention to keys, - an MLP, E experts";

class HybridCheck {
 public:
  explicit HybridCheck(Misfits& misfits) : misfits_(misfits), m_(misfits.in.model) {}

  void all() {
    if (m_.pattern.empty()) return;
    if (const std::size_t at = m_.pattern.find_first_not_of("M*-E"); at != std::string::npos)
      return wrong("hybrid_layer_pattern has another letter as layer " + std::to_string(at),
                   std::string("expected of each layer one letter: ") + letters);
    if (static_cast<int>(m_.pattern.size()) != m_.layers)
      misfits_.wrong({path, "model.layers"},
                     "hybrid_layer_pattern names " + std::to_string(m_.pattern.size()) + " layers, the model has " +
                         std::to_string(m_.layers) + misfits_.seen("model.layers"),
                     "expected one letter for each layer");
    const Experts& e = m_.experts;
    needs('M', m_.linear.key_heads > 0, "linear_attention");
    needs('E', e.count > 0, "experts");
    const char* elsewhere = "hybrid_layer_pattern says which layers these are";
    refuse(m_.linear.full_every != 0, "model.linear_attention.full_every", elsewhere);
    refuse(!m_.linear.full_at.empty(), "model.linear_attention.full_at", elsewhere);
    refuse(e.every != 1 || e.phase != 0, "model.experts.every", elsewhere);
    refuse(e.dense_layers != 0, "model.experts.dense_layers", elsewhere);
    refuse(!e.dense_at.empty(), "model.experts", elsewhere);
    const char* unknown = "not modelled in a hybrid model";
    refuse(misfits_.in.options.recompute_layers < 1, "training.recompute_layers", unknown);
    // What linear attention does not go with is said where that is checked.
    if (m_.linear.key_heads > 0) return;
    refuse(m_.window.tokens > 0, "model.window.tokens", unknown);
    refuse(m_.latent.kv_rank > 0, "model.mla", unknown);
    refuse(m_.parallel_mlp.norms > 0, "model.parallel_mlp.norms", unknown);
    refuse(misfits_.in.options.lora.rank > 0, "training.lora.rank", unknown);
  }

 private:
  void wrong(std::string message, Hint hint) { misfits_.wrong({path}, std::move(message), std::move(hint)); }
  void needs(char letter, bool there, const std::string& part) {
    const auto count = std::ranges::count(m_.pattern, letter);
    if (count > 0 && !there)
      wrong("hybrid_layer_pattern has layers '" + std::string(1, letter) + "', and the model no " + part,
            "give model." + part + ", or other letters");
    if (count == 0 && there)
      wrong("hybrid_layer_pattern has no layer '" + std::string(1, letter) + "'" + misfits_.seen("model." + part),
            "leave out " + part + ", or give it layers: " + letters);
  }
  void refuse(bool there, const std::string& key, const std::string& why) {
    if (there)
      misfits_.wrong({key, path},
                     key.substr(key.find('.') + 1) + " beside hybrid_layer_pattern" + misfits_.seen(path) + ": " + why,
                     "leave one of them out");
  }

  Misfits& misfits_;
  const TransformerConfig& m_;
};

}  // namespace

void check_hybrid(Misfits& misfits) { HybridCheck(misfits).all(); }

}  // namespace collcast::workload
