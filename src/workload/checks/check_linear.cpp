// Linear attention by itself, and what it does not go with.
#include <string>
#include <utility>

#include "workload/checks/misfits.hpp"

namespace collcast::workload {

namespace {

std::string figure(int value) { return std::to_string(value); }

class LinearCheck {
 public:
  explicit LinearCheck(Misfits& misfits) : misfits_(misfits), in_(misfits.in), l_(in_.model.linear) {}

  void sizes() {
    const TransformerConfig& m = in_.model;
    const bool said = misfits_.origins.knows("inference.state_precision");
    if (in_.serving && (said || in_.serving->state_bytes != 4) && l_.key_heads == 0)
      misfits_.wrong({"inference.state_precision", "model"},
                     "state_precision has no effect on a model without linear attention", "leave it out");
    if (l_.key_heads == 0) {
      if (l_.value_heads > 0 || l_.key_dim > 0 || l_.value_dim > 0 || l_.full_every > 0 || !l_.full_at.empty())
        misfits_.wrong({"model.linear_attention.key_heads", "model.linear_attention"},
                       "linear attention has heads of queries and keys", "give model.linear_attention.key_heads");
      return;
    }
    for (const auto& [name, value] : {std::pair{"key_heads", l_.key_heads},
                                      {"value_heads", l_.value_heads},
                                      {"key_dim", l_.key_dim},
                                      {"value_dim", l_.value_dim},
                                      {"conv", l_.conv}})
      if (value < 1) wrong(name, std::string(name) + " is " + figure(value), "expected at least 1");
    if (l_.full_every < 0) wrong("full_every", "full_every is " + figure(l_.full_every), "expected at least 0");
    if (l_.key_heads >= 1 && l_.value_heads >= 1 && l_.value_heads % l_.key_heads != 0)
      wrong("value_heads",
            figure(l_.value_heads) + " heads of values are no multiple of " + figure(l_.key_heads) +
                " heads of queries and keys" + misfits_.seen("model.linear_attention.key_heads"),
            "use " +
                either({l_.value_heads / l_.key_heads * l_.key_heads > 0 ? l_.value_heads / l_.key_heads * l_.key_heads
                                                                         : l_.key_heads,
                        (l_.value_heads / l_.key_heads + 1) * l_.key_heads}));
    beside(m.latent.kv_rank > 0, "model.mla", "latent attention in the other layers", "mla");
    beside(m.window.tokens > 0, "model.window.tokens", "sliding windows in the other layers", "window");
    beside(m.parallel_mlp.norms > 0, "model.parallel_mlp.norms", "an MLP beside it", "parallel_mlp");
    beside(m.biases, "model.biases", "biases", "biases");
    beside(!m.causal, "model.causal", "attention that is not causal", "causal: false");
  }

  void together() {
    if (in_.model.attention_gate && in_.options.lora.rank > 0)
      misfits_.wrong({"training.lora.rank", "model.attention_gate"},
                     "low-rank adapters beside a gate of what attention gives are not modelled" +
                         misfits_.seen("model.attention_gate"),
                     "leave lora out");
    if (l_.key_heads == 0) return;
    const int cp = in_.layout.cp, offloaded = in_.options.cpu_offloading_num_layers;
    if (cp > 1)
      misfits_.wrong({"layout.cp", "model.linear_attention"},
                     "cp " + figure(cp) + ": linear attention over parts of a sequence is not modelled",
                     {"use cp 1", [](StepInputs& in) { in.layout.cp = 1; }});
    if (in_.options.lora.rank > 0 && !in_.model.attention_gate)
      misfits_.wrong({"training.lora.rank", "model.linear_attention"},
                     "low-rank adapters of linear attention are not modelled", "leave lora out");
    if (offloaded > 0)
      misfits_.wrong({"training.cpu_offloading_num_layers", "model.linear_attention"},
                     "activations of linear attention in the host's memory are not modelled", "leave it out");
  }

 private:
  void wrong(const std::string& key, std::string message, Hint hint) {
    misfits_.wrong({"model.linear_attention." + key, "model.linear_attention"}, std::move(message), std::move(hint));
  }
  void beside(bool there, const std::string& path, const std::string& what, const std::string& key) {
    if (there)
      misfits_.wrong({"model.linear_attention.key_heads", "model.linear_attention", path},
                     "linear attention and " + what + " are not modelled in one model" + misfits_.seen(path),
                     "leave out " + key + ", or linear_attention");
  }

  Misfits& misfits_;
  const StepInputs& in_;
  const LinearAttention& l_;
};

}  // namespace

void check_linear_sizes(Misfits& misfits) { LinearCheck(misfits).sizes(); }
void check_linear_attention(Misfits& misfits) { LinearCheck(misfits).together(); }

}  // namespace collcast::workload
