// Memory of a training rank taken apart: each item, made of what one layer keeps (explain_activations.cpp) and of the
// parameters (explain_parameters.cpp).
//
// The figures are MemoryTerms, which the forecast sums; only the texts are made here.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "collcast/base/units.hpp"
#include "collcast/workload/own_schedule.hpp"
#include "report/explain.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

Term in_flight_term(const StepInputs& in, const MemoryTerms& terms) {
  const int m = in.batch.passes(in.layout);
  const int pp = in.layout.pp, vpp = in.layout.vpp;
  if (in.layout.schedule == PipelineSchedule::interleaved)
    return {"chunks in flight",
            "min(2 (PP - 1 - stage) + (VPP - 1) PP + 1, m VPP)",
            fmt::format("min(2 x ({} - 1 - {}) + ({} - 1) x {} + 1, {} x {})", pp, terms.stage, vpp, pp, m, vpp),
            static_cast<double>(terms.in_flight),
            "",
            fmt::format("interleaved 1F1B: each a micro-batch in one of {} chunks of the stage", vpp)};
  if (from_both_ends(in.layout.schedule) && terms.in_flight == pp + 1)
    return {"chunks in flight",
            "PP + 1",
            fmt::format("{} + 1", pp),
            static_cast<double>(terms.in_flight),
            "",
            "DualPipe: forwards without their backward, each a micro-batch in one of 2 chunks of the stage"};
  if (goes_in_v(in.layout.schedule) && !is_own(in.layout.schedule))
    return {"chunks in flight",
            {},
            {},
            static_cast<double>(terms.in_flight),
            "",
            "forwards without their backward, each a micro-batch in one of 2 chunks of the stage, where "
            "the order of work holds most"};
  if (is_own(in.layout.schedule))
    return {
        in.layout.chunks() > 1 ? "chunks in flight" : "micro-batches in flight",
        {},
        {},
        static_cast<double>(terms.in_flight),
        "",
        fmt::format("'{}': forwards without their backward, where the order of work holds most", in.layout.own->name)};
  if (made_for_times(in.layout.schedule))
    return {"micro-batches in flight",
            {},
            {},
            static_cast<double>(terms.in_flight),
            "",
            fmt::format("forwards without their backward, where the order made for these times holds most; it may hold "
                        "{} micro-batches, or one that waits",
                        in.layout.schedule == PipelineSchedule::zb_2p ? "2 PP" : "PP")};
  if (splits_backward(in.layout.schedule))
    return {"micro-batches in flight",
            {},
            {},
            static_cast<double>(terms.in_flight),
            "",
            "zero bubble: forwards without their backward, where the order of work holds most"};
  const bool gpipe = in.layout.schedule == PipelineSchedule::gpipe;
  return {"micro-batches in flight",
          gpipe ? "m" : "min(m, PP - stage)",
          gpipe ? fmt::format("{}", m) : fmt::format("min({}, {} - {})", m, in.layout.pp, terms.stage),
          static_cast<double>(terms.in_flight),
          "",
          gpipe ? "GPipe keeps all" : "1F1B"};
}

/// Whether all layers attend to keys and have an MLP, so that nothing need be said of their shapes.
bool is_plain(const MemoryTerms& terms) {
  const std::vector<LayerShape> shapes = shapes_of_stage(terms.parameters);
  return shapes.empty() || (shapes.size() == 1 && shapes.front() == mlp_layer);
}

/// Of a stage whose layers have other shapes: these, and what each of them keeps.
std::string kept_formula(const MemoryTerms& terms) {
  std::string out;
  for (const LayerShape shape : shapes_of_stage(terms.parameters))
    out += fmt::format("{}{} x {}", out.empty() ? "" : " + ", layers_text(shape),
                       out.empty() ? "activations of one" : "of one");
  return out;
}
/// What a layer keeps from a zero-bubble backward to its weight gradients.
std::string kept_for_weights(const MemoryTerms& terms) {
  return terms.parameters.frozen ? "(w rows (n + m + 2 r) of each adapter beside n x m)"
                                 : "(w (4 T' h + T (2a + 2k) d / TP + MLP))";
}

std::string kept_numbers(const MemoryTerms& terms) {
  std::string out;
  for (const LayerShape shape : shapes_of_stage(terms.parameters))
    out += fmt::format("{}{} x {}", out.empty() ? "" : " + ", exact(terms.parameters.layers[shape]),
                       format_bytes(terms.layer[shape].total()));
  return out;
}

std::string weights_numbers(const MemoryTerms& terms) {
  std::string out;
  for (const LayerShape shape : shapes_of_stage(terms.parameters))
    out += fmt::format("{}{} x {}", out.empty() ? "" : " + ", exact(terms.parameters.layers[shape]),
                       format_bytes(terms.layer[shape].weights));
  return out;
}

double layers_left_out(const MemoryTerms::Chunk& c) {
  double sum = 0;
  for (const LayerShape shape : layer_shapes) sum += c.whole_layers[shape];
  return sum;
}
/// Whether layers are left out of recomputation.
bool leaves_out(const MemoryTerms& terms) {
  return std::any_of(terms.of_chunk.begin(), terms.of_chunk.end(),
                     [](const MemoryTerms::Chunk& c) { return layers_left_out(c) > 0; });
}

bool chunks_are_alike(const MemoryTerms& terms) {
  return !leaves_out(terms) &&
         std::all_of(terms.of_chunk.begin(), terms.of_chunk.end(),
                     [&](const MemoryTerms::Chunk& c) { return c.layers == terms.of_chunk.front().layers; });
}

/// Where the chunks of a stage differ in their layers: what each keeps, and keeps for its weight gradients.
std::pair<std::string, std::string> kept_by_chunk(const MemoryTerms& terms) {
  std::vector<LayerShape> shapes = shapes_of_stage(terms.parameters);
  std::ranges::reverse(shapes);
  const bool waits = terms.waiting > 0;
  std::string numbers;
  using Chunk = MemoryTerms::Chunk;
  const auto add = [&](int count, const Chunk& c, double (*layers)(const Chunk&, LayerShape),
                       Volume (*of)(const MemoryTerms&, LayerShape)) {
    std::string all;
    for (const LayerShape shape : shapes)
      all +=
          fmt::format("{}{} x {}", all.empty() ? "" : " + ", exact(layers(c, shape)), format_bytes(of(terms, shape)));
    numbers += fmt::format("{}{} x ({})", numbers.empty() ? "" : " + ", count, all);
  };
  for (const Chunk& c : terms.of_chunk)
    add(
        c.in_flight, c, [](const Chunk& of, LayerShape shape) { return of.layers[shape] - of.whole_layers[shape]; },
        [](const MemoryTerms& of, LayerShape shape) { return of.layer[shape].total(); });
  for (const Chunk& c : terms.of_chunk)
    if (layers_left_out(c) > 0)
      add(
          c.in_flight, c, [](const Chunk& of, LayerShape shape) { return of.whole_layers[shape]; },
          [](const MemoryTerms& of, LayerShape shape) { return of.whole_layer[shape].total(); });
  for (const Chunk& c : terms.of_chunk)
    if (waits)
      add(
          c.waiting, c, [](const Chunk& of, LayerShape shape) { return of.layers[shape]; },
          [](const MemoryTerms& of, LayerShape shape) { return of.layer[shape].weights; });
  std::string each;
  for (const LayerShape shape : shapes)
    each += (each.empty() ? "" : " + ") + std::string(layers_text(shape)) + " x of one";
  if (is_plain(terms)) each = "its layers x of one";
  std::string formula = fmt::format("chunk by chunk in flight x ({}) of activations", each);
  if (leaves_out(terms)) formula += ", of layers with recomputation and then of those without";
  if (waits) formula += fmt::format(" + waiting x ({}) of what is kept for weight gradients", each);
  return {formula, numbers};
}

/// What the head keeps, of multi-token prediction several times.
struct HeadTexts {
  std::string mtp;  ///< of all modules
  std::string probabilities = "the loss's probabilities (4 T ceil(V / TP))";
  std::string weights = "head's input and the logits' gradient (w (T' h + T ceil(V / TP)))";
  HeadTexts(const StepInputs& in, const MemoryTerms& terms) {
    const int further = in.model.mtp_layers;
    if (further == 0) return;
    const bool mask = in.model.dropout > 0;
    mtp = fmt::format("MTP ({} x ({} w T' h{}))", further, terms.parameters.frozen ? 3 : 6, mask ? " + T' h" : "");
    probabilities = fmt::format("the losses' probabilities ({} x 4 T ceil(V / TP))", 1 + further);
    weights = fmt::format(
        "heads' inputs, the logits' gradients and what MTP's projections read "
        "({} x w (T' h + T ceil(V / TP)) + {} x w (2 T' h + T h / TP))",
        1 + further, further);
  }
};

/// With chunks: what comes besides is of those at an end of the model.
Term chunk_activations_term(const StepInputs& in, const MemoryTerms& terms, const MemoryUse& use) {
  const int chunks = in.layout.chunks();
  const std::string layers = stage_layers_text(in, terms.parameters.all_layers()).numbers;
  const ActivationTerms& layer = terms.layer[mlp_layer];
  std::string formula = "in flight x layers of a chunk x activations of a layer";
  std::string numbers = fmt::format("{} x {} / {} x {}", terms.in_flight, layers, chunks, format_bytes(layer.total()));
  if (!is_plain(terms)) {
    formula = fmt::format("in flight / {} x ({})", goes_in_v(in.layout.schedule) ? "2" : "VPP", kept_formula(terms));
    numbers = fmt::format("{} / {} x ({})", terms.in_flight, chunks, kept_numbers(terms));
  }
  if (!chunks_are_alike(terms)) {
    std::tie(formula, numbers) = kept_by_chunk(terms);
  } else if (terms.waiting > 0 && !is_plain(terms)) {
    formula += fmt::format(" + waiting / {} x what the layers keep for weight gradients",
                           goes_in_v(in.layout.schedule) ? "2" : "VPP");
    numbers += fmt::format(" + {} / {} x ({})", terms.waiting, chunks, weights_numbers(terms));
  } else if (terms.waiting > 0) {
    formula += " + waiting x layers of a chunk x kept for weight gradients " + kept_for_weights(terms);
    numbers += fmt::format(" + {} x {} / {} x {}", terms.waiting, layers, chunks, format_bytes(layer.weights));
  }
  const auto add = [&](int count, const char* name, Volume value) {
    if (count <= 0 || !(value > Volume{})) return;
    formula += fmt::format(" + {}", name);
    numbers += fmt::format(" + {} x {}", count, format_bytes(value));
  };
  add(terms.first_in_flight, "first chunk in flight x dropout mask of the embedding (T' h)", terms.embedding_mask);
  add(terms.last_in_flight,
      terms.parameters.frozen ? "last chunk in flight x final norm (w T' h)"
                              : "last chunk in flight x final norm (2 w T' h)",
      terms.final_norm);
  const HeadTexts texts(in, terms);
  add(terms.last_in_flight, ("last chunk in flight x " + texts.mtp).c_str(), terms.mtp);
  add(terms.last_waiting, ("last chunk waiting x " + texts.weights).c_str(), terms.head_weights);
  add(terms.last_in_flight - 1, ("(last chunk in flight - 1) x " + texts.probabilities).c_str(), terms.probabilities);
  return {"activations", formula,
          numbers,       static_cast<double>(use.activations.value()),
          "B",           "kept until their backward; where the order of work holds most"};
}

Term activations_term(const StepInputs& in, const MemoryTerms& terms, const MemoryUse& use) {
  if (in.layout.schedule == PipelineSchedule::interleaved || in.layout.chunks() > 1 || leaves_out(terms))
    return chunk_activations_term(in, terms, use);
  std::string formula = "layers of the stage x activations of a layer";
  const std::string layers = stage_layers_text(in, terms.parameters.all_layers()).numbers;
  const ActivationTerms& layer = terms.layer[mlp_layer];
  std::string numbers = fmt::format("{} x {}", layers, format_bytes(layer.total()));
  if (!is_plain(terms)) {
    formula = kept_formula(terms);
    numbers = kept_numbers(terms);
  }
  const auto add = [&](const char* name, Volume value) {
    if (!(value > Volume{})) return;
    formula += fmt::format(" + {}", name);
    numbers += fmt::format(" + {}", format_bytes(value));
  };
  add("dropout mask of the embedding (T' h)", terms.embedding_mask);
  add(terms.parameters.frozen ? "final norm (w T' h)" : "final norm (2 w T' h)", terms.final_norm);
  const HeadTexts texts(in, terms);
  add(texts.mtp.c_str(), terms.mtp);
  if (terms.on_host() > Volume{}) {
    formula += " - what the host has of a micro-batch";
    numbers += fmt::format(" - {}", format_bytes(terms.on_host() / terms.in_flight));
  }
  formula = fmt::format("in flight x ({})", formula);
  numbers = fmt::format("{} x ({})", terms.in_flight, numbers);
  if (terms.waiting > 0 && !is_plain(terms)) {
    formula += " + waiting x what the layers keep for weight gradients";
    numbers += fmt::format(" + {} x ({})", terms.waiting, weights_numbers(terms));
  } else if (terms.waiting > 0) {
    formula += " + waiting x layers of the stage x kept for weight gradients " + kept_for_weights(terms);
    numbers += fmt::format(" + {} x {} x {}", terms.waiting, layers, format_bytes(layer.weights));
  }
  if (terms.waiting > 0 && terms.head_weights > Volume{}) {
    formula += " + waiting x " + texts.weights;
    numbers += fmt::format(" + {} x {}", terms.waiting, format_bytes(terms.head_weights));
  }
  if (terms.in_flight > 1 && terms.probabilities > Volume{}) {
    formula += " + (in flight - 1) x " + texts.probabilities;
    numbers += fmt::format(" + ({} - 1) x {}", terms.in_flight, format_bytes(terms.probabilities));
  }
  return {
      "activations", formula, numbers, static_cast<double>(use.activations.value()), "B", "kept until their backward"};
}

/// "2 narrower states as fp32 (4 bytes each of the rank's part)".
std::string narrower_text(const TrainingOptions& options) {
  const PrecisionAwareOptimizer aware = options.precision_aware_optimizer.value_or(PrecisionAwareOptimizer());
  const std::array formats{aware.exp_avg_dtype, aware.exp_avg_sq_dtype, aware.main_params_dtype};
  const auto narrow = std::ranges::count_if(formats, [](StateFormat f) { return f != StateFormat::fp32; });
  const char* together = options.optimizer_state_offload && options.optimizer_state_offload->fraction > 0
                             ? "the parameters that are updated together"
                             : "the rank's part";
  return fmt::format("{} narrower {} as fp32 (4 bytes{} of {})", narrow, narrow == 1 ? "state" : "states",
                     narrow == 1 ? "" : " each", together);
}

void add_buffers(Section& out, const StepInputs& in, const MemoryTerms& terms, const MemoryUse& use) {
  std::string formula, numbers;
  const auto add = [&](const char* name, Volume value) {
    if (!(value > Volume{})) return;
    formula += (formula.empty() ? "" : " + ") + std::string(name);
    numbers += (numbers.empty() ? "" : " + ") + format_bytes(value);
  };
  if (use.moment == MemoryMoment::optimizer) {
    add("16-bit gradients as fp32 (4 bytes of the rank's part)", terms.copied);
    add(narrower_text(in.options).c_str(), terms.unscaled);
    add(state_copies(in, terms.stage).chunks > 2 ? "states from the host (of moments two chunks)"
                                                 : "states from the host",
        terms.returned);
  } else {
    if (use.moment == MemoryMoment::backward && terms.brought_back() > terms.loss()) {
      const bool core = in.options.recompute_modules == TrainingOptions().recompute_modules;
      add(in.options.cpu_offloading_num_layers > 0 ? "activations of the layer that comes back from the host"
          : in.options.recompute == Recompute::full && terms.ends_backward
              ? "activations of the layer that is recomputed, without the inputs that wait"
          : in.options.recompute == Recompute::full ? "all activations of the layer that is recomputed"
          : core                                    ? "attention core of the layer that is recomputed"
                                                    : "what comes back of the layer that is recomputed",
          terms.brought_back());
    } else if (terms.loss() > Volume{}) {
      add("logits (w T ceil(V / TP))", terms.logits);
      add(HeadTexts(in, terms).probabilities.c_str(), terms.probabilities);
      add("the logits less their largest, in fp32 (4 T ceil(V / TP))", terms.shifted);
    }
    add("states on their way back to the host", terms.returning);
    const char* all = terms.apart > 0 && terms.expert_shares == 1 ? "all weights but experts" : "all weights";
    add(in.options.reshard_after_forward ? "weights of the units that are gathered" : all, terms.gathered);
    add("the largest matrix in 4 bit, brought back", terms.dequantised);
    if (use.moment == MemoryMoment::backward || terms.sums_whole)
      add("gradients that are not split yet", terms.unreduced);
  }
  out.terms.push_back(
      {"buffers", formula, numbers, static_cast<double>(use.buffers.value()), "B",
       formula.empty() ? "nothing is recomputed, and no logits on this stage" : "once, not per micro-batch"});
}

/// What delaying and compressing gradients takes.
void add_gradient_copies(Section& out, const MemoryTerms& terms, const MemoryUse& use) {
  std::string formula, numbers;
  const auto add = [&](const char* name, Volume value) {
    if (!(value > Volume{})) return;
    formula += (formula.empty() ? "" : " + ") + std::string(name);
    numbers += (numbers.empty() ? "" : " + ") + format_bytes(value);
  };
  add("gradients of the step before", terms.stale);
  add("error feedback", terms.error_feedback);
  add("P and Q of low rank", terms.low_rank);
  if (!formula.empty())
    out.terms.push_back({"gradient copies", formula, numbers, static_cast<double>(use.gradient_copies.value()), "B",
                         "whole on each rank, beside the gradients that are summed up"});
}

/// Bytes of each parameter, and of how many ranks this one has a part.
Term state_term(const char* name, double bytes, const MemoryTerms& terms, int shares, int from, const ParallelLayout& l,
                Bytes value, std::string source) {
  const bool trained = from < 3 && terms.parameters.frozen;
  const double of = trained ? terms.parameters.trained() : terms.parameters.total();
  const double apart = trained ? terms.trained_apart : terms.apart;
  const std::string count = exact(of);
  if (apart > 0 && terms.zero >= from && shares * terms.expert_shares > 1)
    return {name,
            trained ? "bytes each x (adapters but experts' / shards + experts' / their replicas)"
                    : "bytes each x (parameters but experts / shards + experts / their replicas)",
            fmt::format("{} x ({} / {} + {} / {})", exact(bytes), exact(of - apart), shares, exact(apart),
                        terms.expert_shares),
            static_cast<double>(value.value()),
            "B",
            std::move(source)};
  const std::string over =
      shares > 1 ? fmt::format(" / {}", l.shard_copies() > 1 || l.cp * l.twins() > 1 ? "shards" : "DP") : std::string();
  return {name,
          (trained ? "bytes each x adapters of the rank" : "bytes each x parameters of the rank") + over,
          fmt::format("{} x {}{}", exact(bytes), count, shares > 1 ? fmt::format(" / {}", shares) : std::string()),
          static_cast<double>(value.value()),
          "B",
          std::move(source)};
}

/// "exp_avg in bf16, exp_avg_sq in bf16, of fp32 main_params the 16 bits that the weights do not have".
std::string states_text(const TrainingOptions& options) {
  const PrecisionAwareOptimizer& aware = *options.precision_aware_optimizer;
  return fmt::format("exp_avg in {}, exp_avg_sq in {}, {}", to_string(aware.exp_avg_dtype),
                     to_string(aware.exp_avg_sq_dtype),
                     keeps_remainders(options) ? "of fp32 main_params the 16 bits that the weights do not have"
                                               : fmt::format("main_params in {}", to_string(aware.main_params_dtype)));
}

std::string optimizer_source(const StepInputs& in, const MemoryTerms& terms) {
  std::string out = in.options.precision_aware_optimizer ? states_text(in.options)
                    : terms.weight_bytes < 4             ? "fp32 master weight and two moments, 4 bytes each"
                                             : "two moments of 4 bytes; the fp32 weights are their own master";
  return terms.optimizer_shares > 1 ? out + fmt::format("; ZeRO-{} splits them over the replicas", in.options.zero)
                                    : out;
}

/// Adam's states: on the GPU, and on the host between updates.
void add_optimizer(Section& out, const StepInputs& in, const MemoryTerms& terms, const MemoryUse& use) {
  if (!(terms.optimizer_bytes > 0)) {
    out.terms.push_back({"optimizer", {}, {}, 0, "B", "training.optimizer is false"});
    return;
  }
  const auto term = [&](const char* name, Bytes value, std::string source) {
    return state_term(name, terms.optimizer_bytes, terms, terms.optimizer_shares, 1, in.layout, value,
                      std::move(source));
  };
  Term on_gpu = term("optimizer", use.optimizer, optimizer_source(in, terms));
  if (terms.share_on_host > 0) {
    const Volume moved = terms.share_on_host * terms.optimizer_states();
    Term on_host = term("optimizer states on the host", Bytes(static_cast<std::int64_t>(moved.value())),
                        "between updates (optimizer_state_offload); no part of what the GPU holds");
    for (Term* one : {&on_gpu, &on_host}) {
      one->formula = (one == &on_gpu ? "(1 - fraction) x " : "fraction x ") + one->formula;
      one->numbers = fmt::format(fmt::runtime(one == &on_gpu ? "(1 - {}) x {}" : "{} x {}"), exact(terms.share_on_host),
                                 one->numbers);
    }
    out.terms.push_back(std::move(on_gpu));
    out.terms.push_back(std::move(on_host));
    return;
  }
  out.terms.push_back(std::move(on_gpu));
}

/// Of what is there beside the step's own items.
void add_runtime_terms(Section& out, const StepInputs& in, const MemoryUse& use, int gpus_per_node) {
  const auto value = [](Bytes bytes) { return static_cast<double>(bytes.value()); };
  const bool copies = use.gradient_copies > Bytes(0);
  out.terms.push_back(
      {"allocated",
       fmt::format("parameters + gradients + optimizer + activations + buffers{}", copies ? " + gradient copies" : ""),
       fmt::format("{} + {} + {} + {} + {}{}", format_bytes(volume(use.parameters)),
                   format_bytes(volume(use.gradients)), format_bytes(volume(use.optimizer)),
                   format_bytes(volume(use.activations)), format_bytes(volume(use.buffers)),
                   copies ? " + " + format_bytes(volume(use.gradient_copies)) : std::string()),
       value(use.allocated()), "B", "tensors of the step"});
  out.terms.push_back({"fragments", "allocated / allocated of reserved - allocated",
                       fmt::format("{0} / {1} - {0}", format_bytes(volume(use.allocated())), allocated_of_reserved),
                       value(use.fragments), "B", "SimuMax's share of what the allocator reserves"});
  out.terms.push_back(nccl_term(talking_layout(in), in.nccl_buffers, use, gpus_per_node));
  out.terms.push_back(context_term(use));
}

Section items_section(const StepInputs& in, const MemoryTerms& terms, const MemoryUse& use, int gpus_per_node) {
  Section out;
  out.title = fmt::format("memory of the fullest rank (stage {}), {}", terms.stage, moment_text(use.moment));
  Table moments{"allocated at each moment", {{"moment", "", Align::left}, {"size", "", Align::right}}, {}};
  for (const MemoryMoment moment : memory_moments)
    moments.rows.push_back(
        {std::string(moment_text(moment)), format_bytes(volume(use.by_moment[static_cast<std::size_t>(moment)]))});
  out.tables.push_back(std::move(moments));
  if (terms.base_bytes < terms.weight_bytes)
    out.terms.push_back(
        {"parameters", "4.127 bits each x matrices of layers + bytes each x the rest",
         fmt::format("{} x {} + {} x {}", exact(terms.base_bytes), exact(terms.parameters.base_matrices()),
                     exact(terms.weight_bytes), exact(terms.parameters.total() - terms.parameters.base_matrices())),
         static_cast<double>(use.parameters.value()), "B",
         "NF4 with double quantisation (Dettmers et al. 2023); embedding, head, norms and adapters in 16 "
         "bit"});
  else
    out.terms.push_back(state_term("parameters", terms.weight_bytes, terms, terms.weight_shares, 3, in.layout,
                                   use.parameters,
                                   fmt::format("weights in {}", terms.weight_bytes < 4 ? "16 bit" : "fp32")));
  out.terms.push_back(state_term("gradients", terms.gradient_bytes, terms, terms.gradient_shares, 2, in.layout,
                                 use.gradients, "as kept for the reduction: training.gradient_bytes"));
  add_optimizer(out, in, terms, use);
  if (use.moment == MemoryMoment::optimizer) {
    out.terms.push_back({"activations", {}, {}, 0, "B", "none are kept at the optimizer's step"});
  } else {
    out.terms.push_back(in_flight_term(in, terms));
    out.terms.push_back(activations_term(in, terms, use));
    if (terms.on_host() > Volume{})
      out.terms.push_back({"activations on the host",
                           fmt::format("in flight x what the first {} layers keep (cpu_offloading_num_layers)",
                                       in.options.cpu_offloading_num_layers),
                           fmt::format("{} x {}", terms.in_flight, format_bytes(terms.on_host() / terms.in_flight)),
                           terms.on_host().value(), "B", "no part of what the GPU holds"});
  }
  add_buffers(out, in, terms, use);
  add_gradient_copies(out, terms, use);
  add_runtime_terms(out, in, use, gpus_per_node);
  out.terms.push_back(peak_term(use));
  return out;
}

}  // namespace

Term nccl_term(const ParallelLayout& layout, const NcclBuffers& nccl, const MemoryUse& use, int gpus_per_node) {
  const Communicators of = communicators(layout, gpus_per_node);
  const std::string source =
      nccl == NcclBuffers()
          ? "NCCL's DEFAULT_*_BUFFSIZE; channels of eight GPUs behind NVSwitch"
          : fmt::format(
                "NCCL_BUFFSIZE {}, NCCL_LL_BUFFSIZE {}, NCCL_LL128_BUFFSIZE {}; {} channels within a node, "
                "{} across",
                format_bytes(volume(nccl.simple)), format_bytes(volume(nccl.ll)), format_bytes(volume(nccl.ll128)),
                nccl.channels_within, nccl.channels_across);
  return {"NCCL's buffers",
          "bytes of a connection x (communicators within a node x their connections + those across nodes x theirs)",
          fmt::format("{} x ({} x {} + {} x {})", format_bytes(volume(nccl.connection())), of.within,
                      nccl.connections_within(), of.across, nccl.connections_across()),
          static_cast<double>(use.nccl.value()),
          "B",
          source};
}

Term context_term(const MemoryUse& use) {
  return {"CUDA context",
          {},
          {},
          static_cast<double>(use.context.value()),
          "B",
          "PyTorch on an A100, as BigScience measured it"};
}

Term peak_term(const MemoryUse& use) {
  return {"peak",
          "allocated + fragments + NCCL's buffers + CUDA context",
          fmt::format("{} + {} + {} + {}", format_bytes(volume(use.allocated())), format_bytes(volume(use.fragments)),
                      format_bytes(volume(use.nccl)), format_bytes(volume(use.context))),
          static_cast<double>(use.peak().value()),
          "B",
          fmt::format("of {} that CUDA has to give", size_text(use.capacity))};
}

std::vector<Section> memory_sections(const StepInputs& in, const StepResult& result, int gpus_per_node) {
  const MemoryUse& use = result.memory;
  const MemoryTerms terms = memory_terms(in, use.stage, result.made);
  return {parameters_section(in, terms.parameters, terms.stage), activations_section(in, terms),
          items_section(in, terms, use, gpus_per_node)};
}

}  // namespace collcast
