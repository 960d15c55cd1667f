// What the totals of a step are made of: parameters, memory, FLOPs, and the closed form of its time.
//
// The forecast sums these very values, so that an explanation (`collcast explain step`) cannot differ from its
// figure. Formulas and sources: src/workload/layer/parameters.hpp, memory.hpp, pipeline.hpp, estimate_step.hpp.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "collcast/base/quantity.hpp"
#include "collcast/workload/config.hpp"
#include "collcast/workload/own_schedule.hpp"

namespace collcast {

struct StepInputs;

struct LayerParameters {                              ///< of one layer on one rank
  double attention = 0, mlp = 0, sharded_biases = 0;  ///< 1/TP of the layer's; mlp: of the shared experts too
  double norms = 0, replicated_biases = 0;            ///< the same on every TP rank
  double latent = 0;         ///< the same: matrices of latent attention into the small ranks, and their norms
  double indexer = 0;        ///< the same: matrices of sparse attention's indexer, and its norm
  double router = 0;         ///< the same; with the shared experts' gate
  double experts = 0;        ///< of the experts that tokens are sent to, 1/(EP x expert TP)
  double expert_latent = 0;  ///< the same on every TP rank: matrices into the latent of experts, and out of it
  double sharded() const { return attention + mlp + sharded_biases; }
  double replicated() const { return norms + replicated_biases + latent + indexer + router + expert_latent; }
  double total() const { return sharded() + replicated() + experts; }
  /// With the norms of the small ranks.
  double matrices() const { return attention + latent + indexer + mlp + experts + expert_latent; }
};
struct AdapterParameters {  ///< of the low-rank adapters of one layer on one rank
  double sharded = 0;       ///< 1/TP of the layer's
  double replicated = 0;    ///< the same on every TP rank
  double experts = 0;       ///< of the experts that tokens are sent to, that this rank has
  double total() const { return sharded + replicated + experts; }
};
struct ParameterTerms {                  ///< held by one rank of a stage
  PerShape<double> layers;               ///< of the stage
  PerShape<LayerParameters> layer;       ///< of each, where the stage has any
  PerShape<AdapterParameters> adapters;  ///< beside each
  double embedding = 0, output = 0;      ///< 1/TP of the padded vocabulary; first and last stage
  double positions = 0, final_norm = 0;  ///< the same on every TP rank
  bool frozen = false;                   ///< adapters alone are trained
  /// Of multi-token prediction, on the stage with the head: matrices that join embeddings and hidden states, and a copy
  /// of the embedding's, 1/TP; and norms.
  double mtp_projections = 0, mtp_embedding = 0, mtp_norms = 0;
  /// Of the layers of the stage: `of` gives that of one of a shape.
  template <class Of>
  double sum(Of of) const {
    double all = 0;
    for (const LayerShape shape : layer_shapes)
      if (layers[shape] > 0) all += layers[shape] * of(shape);
    return all;
  }
  double all_layers() const {
    return sum([](LayerShape) { return 1; });
  }
  double expert_layers() const {
    return sum([](LayerShape s) { return s.has_experts() ? 1 : 0; });
  }
  double sharded() const {
    return sum([&](LayerShape s) { return layer[s].sharded() + adapters[s].sharded; }) + embedding + output +
           mtp_projections + mtp_embedding;
  }
  double replicated() const {
    return sum([&](LayerShape s) { return layer[s].replicated() + adapters[s].replicated; }) + positions + final_norm +
           mtp_norms;
  }
  double experts() const {
    return sum([&](LayerShape s) { return layer[s].experts + adapters[s].experts; });
  }
  double total() const { return sharded() + replicated() + experts(); }
  /// Of the layers, without adapters.
  double of_layers() const {
    return sum([&](LayerShape s) { return layer[s].total(); });
  }
  /// Of the embedding and the head.
  double ends() const {
    return embedding + output + positions + final_norm + mtp_projections + mtp_embedding + mtp_norms;
  }
  double trained_ends() const { return frozen ? 0 : ends(); }
  double of_adapters() const {
    return sum([&](LayerShape s) { return adapters[s].total(); });
  }
  /// That have gradients and an optimizer, and of these the experts'.
  double trained() const { return frozen ? of_adapters() : total(); }
  double trained_experts() const {
    return frozen ? sum([&](LayerShape s) { return adapters[s].experts; }) : experts();
  }
  /// Matrices of the layers, which can be kept in fewer bits where they are frozen; without the router's.
  double base_matrices() const {
    return sum([&](LayerShape s) { return layer[s].matrices(); });
  }
};
ParameterTerms parameter_terms(const StepInputs&, int stage);
/// Of the low-rank adapters of the whole model, replicas not counted.
double adapter_parameter_count(const StepInputs&);

struct KeptTensors {  ///< of one layer, which of its parts are kept until the backward
  int norms = 0;      ///< of the inputs and outputs of its norms
  bool query = true, key = true, value = true;
  int mlp = 0;              ///< of what the activation function reads and writes: of the MLP, or the shared experts
  int experts = 0;          ///< the same of the experts
  bool dispatched = true;   ///< the experts' rows and the router's probabilities
  bool expert_rows = true;  ///< of these, the rows that came to the experts
  bool core = true;
  int read_once = 0;              ///< outputs of norms that one product alone reads
  bool activated = true;          ///< what the MLP's activation function, or the shared experts', gives
  bool experts_activated = true;  ///< the same of the experts
};
/// Of a layer of which all is kept, and as TrainingOptions::recompute_modules says.
KeptTensors all_tensors(const StepInputs&, LayerShape);
KeptTensors kept_tensors(const StepInputs&, LayerShape);

/// Elements that products alone read of what a layer keeps for the gradients of their weights; fp8 and fp4 keep these
/// as the products read them.
struct ProductInputs {
  double norms = 0;          ///< outputs of norms that one product alone reads
  double latent = 0;         ///< what has been brought down to the small ranks, behind its norm
  double mlp = 0;            ///< what the activation function of the MLP gives, or of the shared experts
  double rows = 0;           ///< that came to the experts
  double experts = 0;        ///< what their activation function gives
  double expert_latent = 0;  ///< what the experts of a token give together, before it is brought up
  double total() const { return norms + latent + mlp + rows + experts + expert_latent; }
};
ProductInputs product_inputs(const StepInputs&, const KeptTensors&, LayerShape);

struct ActivationTerms {  ///< of one layer and micro-batch
  Volume norms{}, projections{}, mlp{}, core{};
  Volume latent{};    ///< latent attention: what has been brought down to the small ranks, before and after its norm
  Volume indexer{};   ///< sparse attention: what the gradients of its indexer need, and the chosen places
  Volume experts{};   ///< rows of the experts on this rank, and latent ones; mlp is the shared ones' then
  Volume input{};     ///< full recomputation keeps nothing else
  Volume adapters{};  ///< what the first matrices of low-rank adapters give
  Volume weights{};   ///< zero bubble: inputs and output gradients of the matrices, from the backward to the weights'
  /// fp8 and fp4: so much less, as inputs of products are kept as these read them.
  Volume cast{};
  Volume total() const {
    return norms + projections + latent + indexer + mlp + experts + core + input + adapters - cast;
  }
};
struct MemoryTerms {  ///< of one rank of a stage
  int stage = 0;
  ParameterTerms parameters;
  double weight_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;  ///< per parameter
  double operand_bytes = 0;  ///< of an element of activations as a layer's product reads it
  double base_bytes = 0;     ///< per parameter of the layers' matrices: fewer where they are kept quantised
  int weight_shares = 1, gradient_shares = 1, optimizer_shares = 1;  ///< ranks that each is split over with ZeRO
  int zero = 0;
  double apart = 0;                       ///< of the parameters those of experts that go their own way,
  double trained_apart = 0;               ///< of these what is trained,
  int expert_shares = 1;                  ///< and both are split over so many ranks with ZeRO
  double tokens = 0, rows = 0;            ///< of a micro-batch: T, and T' of norms and residuals
  PerShape<ActivationTerms> layer;        ///< kept
  PerShape<ActivationTerms> whole_layer;  ///< of layers that are left out of recomputation
  Volume embedding_mask{}, final_norm{};  ///< kept besides by the end stages, per micro-batch
  int chunks = 1;                         ///< of the stage's layers; interleaved, V
  /// A chunk of the stage: its layers, and how many forwards of it are held, and wait for their weight gradients.
  struct Chunk {
    PerShape<double> layers;
    PerShape<double> whole_layers;      ///< of these, left out of recomputation
    PerShape<double> offloaded_layers;  ///< of these, with activations in the host's memory
    int in_flight = 0, waiting = 0;
    Volume kept{}, for_weights{};  ///< of one forward of it: until its backward, and from there to its weight gradients
    Volume on_host{};              ///< of what is kept
  };
  std::vector<Chunk> of_chunk;
  int in_flight = 0;        ///< forwards (a micro-batch's, of a chunk each) whose activations are kept at once
  int first_in_flight = 0;  ///< of these, of the stage's first chunk,
  int last_in_flight = 0;   ///< and of its last; without chunks all of them
  int waiting = 0;          ///< zero bubble: of forwards those whose weight gradients alone are still to come
  int last_waiting = 0;     ///< of these, of the stage's last chunk
  Volume head_weights{};    ///< zero bubble: the head's input and the logits' gradient, which wait likewise
  Volume probabilities{};   ///< of the losses, per micro-batch; last stage
  Volume mtp{};             ///< per micro-batch: what norms and projections of multi-token prediction read and give
  Volume recomputed{};      ///< of the one layer that is being recomputed, or has come back from the host
  Volume recomputed_beside_weights{};  ///< the same without what its weight gradients wait for, which is counted there
  bool ends_backward = false;          ///< zero bubble: a stage holds most at the end of a backward, whose weights wait
  Volume logits{};                     ///< of the one micro-batch at the loss
  Volume shifted{};                    ///< the same less their largest, in fp32: of a loss that runs kernel by kernel
  Volume gathered{};                   ///< weights that are whole for a time, with ZeRO-3
  Volume dequantised{};                ///< the largest matrix that is kept quantised, as the pass through it reads it
  Volume unreduced{};                  ///< gradients before they are split, with ZeRO-2 and 3
  bool sums_whole = false;             ///< these are there from one micro-batch to the next
  Volume copied{};                     ///< the optimizer's fp32 copies of 16-bit gradients, of the rank's part
  Volume unscaled{};                   ///< the optimizer's states in fp32 that are kept narrower, at its step
  double share_on_host = 0;            ///< share of the optimizer's states that is in the host's memory between updates
  Volume returned{};                   ///< of them what is on the GPU at once for an update,
  Volume returning{};                  ///< and have not gone back when the forwards are over that are held
  Volume stale{};                      ///< gradients of the step before, on their way to the other replicas
  Volume error_feedback{};             ///< what compression lost of them
  Volume low_rank{};                   ///< PowerSGD's P and Q
  /// Bytes of the rank's part of the weights, the gradients, the optimizer.
  Volume weights() const {
    return Volume(weight_bytes * (parameters.total() - apart) / weight_shares +
                  weight_bytes * apart / (zero >= 3 ? expert_shares : 1) +
                  (base_bytes - weight_bytes) * parameters.base_matrices());
  }
  Volume gradients() const { return Volume(trained(gradient_bytes, gradient_shares, zero >= 2)); }
  Volume optimizer() const { return (1 - share_on_host) * optimizer_states(); }
  Volume optimizer_states() const { return Volume(trained(optimizer_bytes, optimizer_shares, zero >= 1)); }
  /// So many bytes of each parameter that is trained.
  double trained(double each, int shares, bool split) const {
    return each * (parameters.trained() - trained_apart) / shares + each * trained_apart / (split ? expert_shares : 1);
  }
  Volume activations() const {
    Volume sum = embedding_mask * first_in_flight + (final_norm + mtp) * last_in_flight + head_weights * last_waiting +
                 probabilities * std::max(last_in_flight - 1, 0);
    for (const Chunk& c : of_chunk) sum += (c.kept - c.on_host) * c.in_flight + c.for_weights * c.waiting;
    return sum;
  }
  /// Activations in the host's memory.
  Volume on_host() const {
    Volume sum;
    for (const Chunk& c : of_chunk) sum += c.on_host * c.in_flight;
    return sum;
  }
  /// Of the micro-batch at the loss, where a forward of the model's last chunk is held.
  Volume loss() const { return last_in_flight > 0 ? logits + probabilities + shifted : Volume{}; }
  /// Of the layer that is being recomputed, beside what is held.
  Volume brought_back() const { return ends_backward ? recomputed_beside_weights : recomputed; }
  /// What a backward has at once: the loss is over when a layer is recomputed.
  Volume loss_or_recomputed() const { return std::max(loss(), brought_back()); }
  Volume gradient_copies() const { return stale + error_feedback + low_rank; }
  /// Beside state and, but for the last, activations: at the end of a forward, in a backward, at the optimizer's step.
  Volume buffers_of_forward() const {
    return loss() + gathered + dequantised + returning + (sums_whole ? unreduced : Volume{});
  }
  Volume buffers_of_backward() const { return loss_or_recomputed() + gathered + dequantised + returning + unreduced; }
  Volume buffers_of_optimizer() const { return copied + unscaled + returned; }
};
/// `made`: the orders of a schedule that is made for times, once they are known; before, the most that such may hold.
MemoryTerms memory_terms(const StepInputs&, int stage, const Orders& made = {});

/// Activations that wait in the host's memory, of one rank and micro-batch (src/workload/layer/host_copies.hpp).
struct OffloadingTerms {
  int layers = 0, of_layers = 0;  ///< 0: none wait there
  Volume copied{};                ///< to the host in the forward, and back in the backward
  Bandwidth rate{};
  Seconds each_way() const { return copied / rate; }
};
OffloadingTerms offloading_terms(const StepInputs&);

/// The optimizer's states on their way from the host's memory and back, of one rank
/// (src/workload/memory/state_copies.hpp).
struct StateCopies {
  int chunks = 0;               ///< 0: nothing of the rank's is on the host
  Volume parameters{};          ///< fp32 parameters, or what the weights do not have of them: all before any update
  Volume moments{};             ///< in chunks, each with an update of its own
  Bandwidth rate{};             ///< each way, both at once
  Seconds norm{};               ///< of gradients, while the first copies are on their way
  Seconds resident{}, chunk{};  ///< kernels that update what stays on the GPU, and one chunk
  /// Of chunks, and of what stays on the GPU.
  int updates() const { return chunks + (chunks == 0 || resident > Seconds{} ? 1 : 0); }
  Seconds parameters_time() const { return parameters / rate; }
  Seconds chunk_time() const { return chunks > 0 ? moments / chunks / rate : Seconds{}; }
  /// From the first copy's begin to the last update's end, and to the end of the copies of moments to the host.
  Seconds updated() const;
  Seconds moments_back() const;
  /// Behind the last update, until all is back on the host.
  Seconds left() const { return moments_back() - updated() + parameters_time(); }
  /// That updates wait for copies.
  Seconds wait() const { return updated() - (norm + resident + chunks * chunk); }
};
/// `pace`: of the GPU's kernels, of what they usually have.
StateCopies state_copies(const StepInputs&, int stage, double pace = 1);

struct FlopTerms {  ///< of the forward pass of one sample through the whole model, but for `samples`
  double linear = 0, core = 0, logits = 0;  ///< linear: of the experts those that a token is sent to
  double adapters = 0;                      ///< low-rank ones
  bool frozen = false;                      ///< these alone are trained: there are no gradients of other weights
  double copies = 0;      ///< of KV heads that several TP ranks hold: computed besides, of no use to the model
  double recomputed = 0;  ///< of all these, once more in the backward
  double samples = 0;     ///< of the step
  double mtp = 0;         ///< of multi-token prediction: what joins embeddings and hidden states
  /// Of the indexer of sparse attention: a forward, and its backward.
  double indexer = 0, indexer_gradients = 0;
  double forward() const { return linear + core + indexer + logits + mtp + adapters; }
  /// Passes through a matrix: forward, and gradients of inputs and of weights.
  double passes() const { return frozen ? 2 : 3; }
  /// Forward once, backward twice that; of frozen matrices once.
  Flops model() const {
    return Flops(samples * (passes() * (linear + logits + mtp) + 3 * (core + adapters) + indexer + indexer_gradients));
  }
  Flops hardware() const { return model() + Flops(samples * (passes() * copies + recomputed)); }
};
FlopTerms flop_terms(const StepInputs&);

/// What a rank sends in another format or compressed, beside what it would be, and the kernels that this takes.
struct SentOtherwise {
  std::string what;  ///< "TP gathers in fp8"
  std::string per;   ///< "a layer and micro-batch", "a step"
  Volume as_is{}, sent{};
  Seconds kernels{};
};
/// Of a training step's rank of that stage (StageTerms: its number, and what it dispatches); empty where all is sent as
/// it is.
std::vector<SentOtherwise> sent_otherwise(const StepInputs&, int stage, double dispatched = 1);

/// The pipeline from its first forward to its last backward. F, B and C are a stage's forward and backward and a
/// transfer of one micro-batch; blocking transfers are in F and B instead of C.
struct PipelineTerms {
  Seconds work{};                                 ///< F + B of all stages
  Seconds transfers{};                            ///< C of all boundaries; with chunks: of all between two of them
  int first = 0, last = 0;                        ///< all but GPipe: the window of stages that sets the pace,
  Seconds window_work{}, window_transfers{};      ///< F + B of its stages, C of its inner boundaries
  Seconds slowest_forward{}, slowest_backward{};  ///< GPipe: of the stages and the transfers between them
  Seconds filled{};                               ///< zb-h1, zb-h2: weight gradients in the place of waiting
  Seconds ends{};                                 ///< zb-1p, zb-2p, V: what begin and end of the order add
  Seconds rest{};                                 ///< of the micro-batches after the first
  Seconds
      order{};  ///< 1F1B, interleaved: what its order of work, gone through stage by stage, adds to that or takes away
  Seconds total() const { return work + 2 * transfers + rest + order; }
};

/// From the end of the pipeline until every gradient is exchanged, as the last stage to finish sees it. The sum of tied
/// embeddings begins when both end stages have theirs, which may be before the pipeline's end. Delayed: those of the
/// step before, of which `left` is then all of the pipeline.
struct GradientTerms {
  int stage = 0;
  Seconds buckets{};  ///< its buckets from the deciding one on
  Seconds left{};     ///< its backward left (and waits in it) when that one is full; without overlap 0
  Seconds ahead{};    ///< by which its last backward ends before the pipeline
  Seconds tied{};     ///< tied embedding's gradients, where that is last: of the end stage that they wait for
  int times = 1;      ///< ZeRO-2: after every micro-batch
  bool delayed = false;
  Seconds exchanged() const;  ///< from the end of the pipeline, below 0 before it: its backward and buckets are over
  Seconds exposed() const;
};

/// ZeRO-3: what gathers and reductions add to a micro-batch; turn by turn, with ZeRO-2 too, what they add to the
/// pipeline with the exchange of tied embeddings.
struct ShardingTerms {
  Seconds first{};        ///< the first gather
  Seconds waits{};        ///< of passes for what runs beside the one before; without overlap for all
  Seconds last{};         ///< the last reduction
  int times = 1;          ///< micro-batches
  bool by_turns = false;  ///< all of it is `turns`
  Seconds turns{};
  Seconds exposed() const { return by_turns ? turns : times * (first + waits + last); }
};

struct ClosedForm {  ///< of a step
  PipelineTerms pipeline;
  Seconds transfers{};  ///< what they add to the pipeline
  Seconds slowed{};     ///< by which it is longer, as DP's collectives slow the kernels that they run beside
  GradientTerms gradients;
  ShardingTerms sharding;
  int update_stage = 0;  ///< with the longest optimizer and gather
  Seconds optimizer{}, gather{};
  Seconds total() const {
    return pipeline.total() + slowed + gradients.exposed() + sharding.exposed() + optimizer + gather;
  }
};

}  // namespace collcast
