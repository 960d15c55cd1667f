// Memory of a rank that serves, taken apart: weights, the cache of keys and values, what a pass has besides. The
// figures are ServingMemoryTerms, which the forecast sums; only the texts are made here.
#include <fmt/format.h>

#include "collcast/base/units.hpp"
#include "report/explain.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

double bytes_in(Bytes size) { return static_cast<double>(size.value()); }

Section weights_section(const StepInputs& in, const ServingMemoryTerms& t) {
  Section out = parameters_section(in, t.parameters, t.stage);
  const ParameterTerms& p = t.parameters;
  const double of_layers = p.of_layers();
  out.terms.push_back(
      {"of layers", {}, {}, of_layers, "", "of these those whose matrices are in the format of layers"});
  out.terms.push_back({"of the ends", "parameters of the rank - of layers",
                       fmt::format("{} - {}", exact(p.total()), exact(of_layers)), p.total() - of_layers, "",
                       in.model.mtp_layers > 0
                           ? "embedding, positions, output matrix and final norm, and what of multi-token prediction "
                             "is no layer, as far as the stage has them"
                           : "embedding, positions, output matrix and final norm, as far as the stage has them"});
  out.terms.push_back({"bytes of a layer's parameter", {}, {}, t.matrix_bytes, "", in.options.precision});
  out.terms.push_back({"bytes of an end's parameter", {}, {}, t.end_bytes, "", "as activations"});
  return out;
}

/// What layers with linear attention keep of each sequence, however long it is.
void add_states(Section& out, const StepInputs& in, const ServingMemoryTerms& t) {
  const LinearAttention& l = in.model.linear;
  out.terms.push_back({"elements of the states of a layer", "av dk dv / TP",
                       fmt::format("{} x {} x {} / {}", l.value_heads, l.key_dim, l.value_dim, in.layout.tp), t.state,
                       "", "linear attention: of a sequence, however long it is"});
  out.terms.push_back({"inputs of its convolution", "(taps - 1) (2 ak dk + av dv) / TP",
                       fmt::format("({} - 1) x (2 x {} x {} + {} x {}) / {}", l.conv, l.key_heads, l.key_dim,
                                   l.value_heads, l.value_dim, in.layout.tp),
                       t.inputs, "", "of the last tokens, for the next one"});
  out.terms.push_back({"states", "sequences x layers with linear attention x (bytes x states + w inputs)",
                       fmt::format("{} x {} x ({} x {} + {} x {})", exact(t.sequences), exact(t.state_layers),
                                   exact(t.state_bytes), exact(t.state), exact(t.input_bytes), exact(t.inputs)),
                       t.states().value(), "B",
                       fmt::format("{} bytes an element: inference.state_precision", exact(t.state_bytes))});
  out.terms.push_back({"KV cache", "keys and values + states",
                       fmt::format("{} + {}", exact(t.keys_and_values().value()), exact(t.states().value())),
                       t.kept().value(), "B", "all that is kept of the sequences"});
}

/// Keys and values of what each sequence has when it is over, or requests in flight have on the mean.
Section cache_section(const StepInputs& in, const ServingMemoryTerms& t) {
  const TransformerConfig& m = in.model;
  const Serving& s = *in.serving;
  Section out;
  out.title = fmt::format("keys and values kept by the fullest rank (stage {})", t.stage);
  if (m.latent.kv_rank > 0)
    out.terms.push_back({"elements of a token in a layer", "rkv + dr",
                         fmt::format("{} + {}", m.latent.kv_rank, m.latent.rope), t.kept_elements, "",
                         "latent attention: one vector for all heads, on every TP rank"});
  else
    out.terms.push_back(
        {"elements of a token in a layer", m.kv_heads >= in.layout.tp ? "2 k d / TP" : "2 d",
         m.kv_heads >= in.layout.tp ? fmt::format("2 x {} x {} / {}", m.kv_heads, m.head_dim, in.layout.tp)
                                    : fmt::format("2 x {}", m.head_dim),
         t.kept_elements, "",
         m.kv_heads >= in.layout.tp ? "key and value of the rank's KV heads"
                                    : "key and value of one KV head, which several TP ranks have copies of"});
  if (t.indexer_bytes > 0)
    out.terms.push_back({"bytes of the indexer's key", "d + 4 for each 128 elements",
                         fmt::format("{} + {}", m.sparse.dim, exact(t.indexer_bytes - m.sparse.dim)), t.indexer_bytes,
                         "B", "of a token in a layer: fp8 with scales of fp32, on every TP rank"});
  const int drafted = s.verified_tokens() - 1;
  out.terms.push_back({"tokens of a sequence",
                       fmt::format("{}{}", s.is_steady() ? "prompt + output / 2" : "prompt + output - 1",
                                   drafted > 0 ? " + drafted" : ""),
                       fmt::format("{} + {} {}{}", s.prompt_tokens, s.output_tokens, s.is_steady() ? "/ 2" : "- 1",
                                   drafted > 0 ? fmt::format(" + {}", drafted) : std::string()),
                       t.kept_tokens, "",
                       s.is_steady() ? "requests in flight are anywhere in their answers: the mean"
                                     : "in the end: the last one is no more attended to"});
  if (t.windowed_layers > 0)
    out.terms.push_back({"in a window",
                         drafted > 0 ? "the fewer of tokens of a sequence and the window's with those drafted"
                                     : "the fewer of tokens of a sequence and the window's",
                         fmt::format("min({}, {}{})", exact(t.kept_tokens), m.window.tokens,
                                     drafted > 0 ? fmt::format(" + {}", drafted) : std::string()),
                         t.window_tokens, "", fmt::format("kept by {} layers", exact(t.windowed_layers))});
  std::string formula = "bytes x elements x sequences x ",
              numbers = fmt::format("{} x {} x {} x ", exact(t.kept_bytes), exact(t.kept_elements), exact(t.sequences));
  if (t.indexer_bytes > 0) {
    formula = "(bytes x elements + bytes of the indexer's key) x sequences x ";
    numbers = fmt::format("({} x {} + {}) x {} x ", exact(t.kept_bytes), exact(t.kept_elements), exact(t.indexer_bytes),
                          exact(t.sequences));
  }
  if (t.windowed_layers > 0) {
    formula += "(layers x tokens of a sequence + windowed layers x in a window)";
    numbers += fmt::format("({} x {} + {} x {})", exact(t.full_layers), exact(t.kept_tokens), exact(t.windowed_layers),
                           exact(t.window_tokens));
  } else {
    formula += "layers of the stage x tokens of a sequence";
    numbers += fmt::format("{} x {}", exact(t.full_layers), exact(t.kept_tokens));
  }
  const std::string source =
      fmt::format("the batch of a replica; {} bytes an element: inference.kv_precision", exact(t.kept_bytes));
  if (t.state_layers == 0) {
    out.terms.push_back({"KV cache", formula, numbers, t.kept().value(), "B", source});
    return out;
  }
  out.terms.push_back({"keys and values", formula, numbers, t.keys_and_values().value(), "B", source});
  add_states(out, in, t);
  return out;
}

const char* name_of(const ServingMemoryTerms& t, const PassMemoryTerms& pass) {
  return &pass == &t.prompts ? "prompts" : "tokens";
}

/// The pass that needs more of it.
const PassMemoryTerms& deciding(const ServingMemoryTerms& t, Volume (PassMemoryTerms::*of)() const) {
  return (t.prompts.*of)() >= (t.tokens.*of)() ? t.prompts : t.tokens;
}

void add_activations(Section& out, const StepInputs& in, const ServingMemoryTerms& t, const MemoryUse& use) {
  const PassMemoryTerms& pass = deciding(t, &PassMemoryTerms::activations);
  const std::string gated = in.model.gated_mlp ? "2 f" : "f";
  std::string of_rows = fmt::format("({} x {})", exact(pass.rows), exact(pass.of_a_row()));
  std::string formula = pass.attention >= pass.mlp ? "T (a + 2k) d / TP" : fmt::format("T {} / TP", gated);
  const bool wider = in.model.latent.kv_rank > 0 || in.model.attention_gate || in.model.linear.key_heads > 0;
  if (wider && pass.attention >= pass.mlp)
    formula =
        in.model.latent.kv_rank > 0 ? "T (queries, keys and values) / TP" : "T (what the first product gives) / TP";
  if (&pass == &t.prompts && t.indexer_bytes > 0 && in.serving->mean_prompt_tokens() > in.model.sparse.top_k &&
      pass.attention >= pass.mlp)
    formula = "T (queries, the same and outputs in the rank of keys) / TP";
  if (pass.mtp > std::max(pass.attention, pass.mlp)) formula = "T 2 h, of multi-token prediction";
  if (pass.expert_width * pass.expert_rows > pass.of_a_row() * pass.rows) {
    formula = fmt::format("rows of the experts ({} + {}e / expert TP)", in.model.experts.latent > 0 ? "l" : "h", gated);
    of_rows = fmt::format("({} x {})", exact(pass.expert_rows), exact(pass.expert_width));
  }
  out.terms.push_back(
      {"widest place of a layer", formula, of_rows, pass.widest(), "",
       in.serving->load && &pass == &t.prompts
           ? fmt::format("elements of the prompts of a fullest pass, T = {}", exact(pass.rows))
           : fmt::format("elements of the {} of a micro-batch, T = {}", name_of(t, pass), exact(pass.rows))});
  out.terms.push_back({"activations", "w (2 T h + widest place)",
                       fmt::format("{} x (2 x {} x {} + {})", exact(pass.element_bytes), exact(pass.rows),
                                   exact(pass.hidden), exact(pass.widest())),
                       bytes_in(use.activations), "B", "input and output of a layer, and what it has in between"});
}

void add_buffers(Section& out, const ServingMemoryTerms& t, const MemoryUse& use) {
  const PassMemoryTerms& pass = deciding(t, &PassMemoryTerms::buffers);
  std::vector<std::string> names, numbers;
  if (pass.messages > Volume{}) {
    names.emplace_back("2 w T h");
    numbers.push_back(fmt::format("2 x {} x {} x {}", exact(pass.element_bytes), exact(pass.rows), exact(pass.hidden)));
  }
  if (pass.vocab > 0) {
    names.emplace_back("w b V");
    numbers.push_back(
        fmt::format("{} x {} x {}", exact(pass.element_bytes), exact(pass.logit_rows), exact(pass.vocab)));
  }
  out.terms.push_back({"buffers", joined(names), joined(numbers), bytes_in(use.buffers), "B",
                       names.empty()
                           ? "no messages between stages, and no logits on this stage"
                           : fmt::format("a message that comes and one that goes, logits of {}, as far as the "
                                         "stage has them; of the {}",
                                         pass.logit_rows > t.prompts.logit_rows ? "each token that is verified"
                                                                                : "each sequence's last token",
                                         name_of(t, pass))});
}

Section items_section_of_server(const StepInputs& in, const ServingMemoryTerms& t, const MemoryUse& use,
                                int gpus_per_node) {
  Section out;
  out.title = fmt::format("memory of the fullest rank (stage {})", t.stage);
  const ParameterTerms& p = t.parameters;
  const double of_layers = p.of_layers();
  out.terms.push_back(
      {"parameters", "bytes of a layer's parameter x of layers + bytes of an end's parameter x of the ends",
       fmt::format("{} x {} + {} x {}", exact(t.matrix_bytes), exact(of_layers), exact(t.end_bytes),
                   exact(p.total() - of_layers)),
       bytes_in(use.parameters), "B", fmt::format("weights: inference.precision {}", in.options.precision)});
  out.terms.push_back({"KV cache", {}, {}, bytes_in(use.kv_cache), "B", "as above"});
  add_activations(out, in, t, use);
  add_buffers(out, t, use);
  out.terms.push_back(
      {"allocated", "parameters + KV cache + activations + buffers",
       fmt::format("{} + {} + {} + {}", format_bytes(volume(use.parameters)), format_bytes(volume(use.kv_cache)),
                   format_bytes(volume(use.activations)), format_bytes(volume(use.buffers))),
       bytes_in(use.allocated()), "B", "tensors"});
  const std::string passing = format_bytes(volume(use.activations + use.buffers));
  out.terms.push_back({"fragments", "(activations + buffers) / allocated of reserved - (activations + buffers)",
                       fmt::format("{0} / {1} - {0}", passing, allocated_of_reserved), bytes_in(use.fragments), "B",
                       "SimuMax's share of what the allocator reserves; weights and the cache are taken once"});
  out.terms.push_back(nccl_term(talking_layout(in), in.nccl_buffers, use, gpus_per_node));
  out.terms.push_back(context_term(use));
  out.terms.push_back(peak_term(use));
  return out;
}

}  // namespace

std::vector<Section> serving_memory_sections(const StepInputs& in, const StepResult& result, int gpus_per_node) {
  const ServingMemoryTerms terms = serving_memory_terms(in, result.memory.stage);
  return {weights_section(in, terms), cache_section(in, terms),
          items_section_of_server(in, terms, result.memory, gpus_per_node)};
}

}  // namespace collcast
