#include "workload/memory.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "collcast/base/units.hpp"
#include "collcast/workload/search.hpp"
#include "workload/adapters.hpp"
#include "workload/automatic_order.hpp"
#include "workload/gradient_exchange.hpp"
#include "workload/indexer.hpp"
#include "workload/interleaved.hpp"
#include "workload/linear_attention.hpp"
#include "workload/parameters.hpp"
#include "workload/plan.hpp"
#include "workload/serving.hpp"
#include "workload/share.hpp"
#include "workload/wire.hpp"

namespace collcast::workload {

namespace {

/// Norms of a layer that have an input of their own, and those whose output is kept for gradients of weights.
int norm_inputs(const StepInputs& in) { return in.model.parallel_mlp.norms == 0 ? 2 : 1; }
int norm_outputs(const StepInputs& in, bool with_experts) {
  using enum AdapterModule;
  const bool one = in.model.parallel_mlp.norms == 1;
  if (!is_frozen(in.options)) return one ? 1 : 2;
  const auto any = [&](std::initializer_list<AdapterModule> modules) {
    return std::any_of(modules.begin(), modules.end(), [&](AdapterModule m) { return has_adapter(in, m); });
  };
  const bool heads = any({linear_qkv, linear_q_proj, linear_q_down_proj, linear_kv_down_proj});
  // Experts have rows of their own.
  const bool up = any({linear_fc1}) && (!with_experts || in.model.experts.shared_ffn > 0);
  return one ? (heads || up ? 1 : 0) : (heads ? 1 : 0) + (up ? 1 : 0);
}

double rows_of_latent(const StepInputs& in, const Share& share) {
  return in.model.latent.q_rank > 0 ? share.rows : share.tokens;
}

/// Elements of a row of latent attention before and after the norms of its small ranks; what frozen matrices alone read
/// is not kept.
double kept_of_latent(const StepInputs& in) {
  const LatentAttention& l = in.model.latent;
  const bool frozen = is_frozen(in.options);
  const double queries = !frozen || has_adapter(in, AdapterModule::linear_q_up_proj) ? l.q_rank : 0;
  const double keys = !frozen || has_adapter(in, AdapterModule::linear_kv_up_proj) ? l.kv_rank : 0;
  return l.q_rank + l.kv_rank + l.rope + queries + keys;
}

/// Bytes that an element takes less as the products read it than as it is computed; 0 where it is kept as it is. With
/// some layers in bf16 all count as these.
double saved_by_casts(const StepInputs& in) {
  const TrainingOptions& o = in.options;
  if (in.serving || is_frozen(o) || o.save_original_input || o.bf16_first_layers + o.bf16_last_layers > 0) return 0;
  const Precision precision = KernelTimer(in).precision();
  return std::max(0.0, precision.activation - precision.operand);
}

ActivationTerms activations_with(const StepInputs& in, const KeptTensors& tensors, bool with_experts) {
  const Share share(in);
  const double w = KernelTimer(in).precision().activation;
  const bool dropout = in.model.dropout > 0;
  ActivationTerms kept;
  kept.norms = Volume(share.rows * share.hidden * (tensors.norms * w + (dropout ? 2 : 0)));
  kept.projections = Volume(w * share.tokens *
                            ((tensors.query ? share.query : 0) + share.output + (tensors.query ? 2 : 1) * share.gate +
                             SharedKeyCore(in).kept(share, tensors.key, tensors.value)));
  kept.indexer = Volume(kept_by_indexer(in));
  if (share.latent > 0) kept.latent = Volume(w * rows_of_latent(in, share) * kept_of_latent(in));
  kept.mlp = Volume(w * share.tokens * (with_experts ? share.shared : share.ffn) * tensors.mlp);
  if (with_experts && tensors.dispatched)
    kept.experts =
        Volume(w * share.taken * ((tensors.expert_rows ? share.hidden : 0) + share.expert * tensors.experts) +
               8 * share.rows * in.model.experts.count);
  kept.adapters = Volume(w * kept_by_adapters(in, with_experts));
  kept.cast = Volume(saved_by_casts(in) * product_inputs(in, tensors, with_experts).total());
  if (tensors.core)
    kept.core =
        Volume(in.options.attention == Attention::flash ? 4 * share.lse : share.scores * (w + (dropout ? w + 1 : 0)));
  return kept;
}

ActivationTerms kept_activations(const StepInputs& in, bool with_experts) {
  if (in.options.recompute != Recompute::full)
    return activations_with(in, kept_tensors(in, with_experts), with_experts);
  const Share share(in);
  ActivationTerms kept;
  kept.input = Volume(KernelTimer(in).precision().activation * share.rows * share.hidden);
  return kept;
}

/// What the chunks of a stage hold.
using Held = std::vector<MemoryTerms::Chunk>;

void put(const Held& held, MemoryTerms& terms) {
  terms.of_chunk = held;
  terms.in_flight = terms.waiting = 0;
  for (const MemoryTerms::Chunk& c : held) {
    terms.in_flight += c.in_flight;
    terms.waiting += c.waiting;
  }
  terms.first_in_flight = held.front().in_flight;
  terms.last_in_flight = held.back().in_flight;
  terms.last_waiting = held.back().waiting;
}

/// Of what turns change.
Volume held_at_once(const MemoryTerms& terms) { return terms.activations() + terms.loss_or_recomputed(); }

/// The layers of each chunk of a stage, nothing held.
Held chunks_of(const StepInputs& in, int stage) {
  Held chunks(static_cast<std::size_t>(in.layout.chunks()));
  for (const StageLayer& layer : layers_of_stage(in, stage)) {
    MemoryTerms::Chunk& c = chunks[static_cast<std::size_t>(layer.chunk)];
    const LayerKind kind = kind_of_layer(in, layer.number);
    ++(kind.experts ? c.expert_layers : c.layers);
    if (kind.linear) ++c.linear_layers;
    if (kind.linear && kind.whole) ++c.whole_linear_layers;
    if (kind.whole) ++(kind.experts ? c.whole_expert_layers : c.whole_layers);
    if (layer.number < in.options.cpu_offloading_num_layers)
      ++(kind.experts ? c.offloaded_expert_layers : c.offloaded_layers);
  }
  return chunks;
}

/// Of a stage with one chunk.
void put_held(const StepInputs& in, int stage, int in_flight, int waiting, MemoryTerms& terms) {
  Held held = chunks_of(in, stage);
  held.front().in_flight = in_flight;
  held.front().waiting = waiting;
  put(held, terms);
}

/// Goes through the stage's order; leaves what it holds where that is most.
void put_fullest(const StepInputs& in, int stage, MemoryTerms& terms) {
  const int m = in.batch.passes(in.layout);
  const InterleavedOrder order(in.layout.pp, in.layout.vpp, m);
  Held now = chunks_of(in, stage), fullest = now;
  Volume most{-1};
  // From the end of the warm-up on one goes for each that comes: after a round through all chunks it is the same again.
  const int turns = std::min(2 * order.forwards(), order.warm_up(stage) + 2 * in.layout.pp * in.layout.vpp + 1);
  for (int n = 0; n < turns; ++n) {
    const Turn turn = order.turn(stage, n);
    now[static_cast<std::size_t>(turn.chunk)].in_flight += turn.backward ? -1 : 1;
    if (turn.backward) continue;
    put(now, terms);
    if (held_at_once(terms) <= most) continue;
    most = held_at_once(terms);
    fullest = now;
  }
  put(fullest, terms);
}

/// The order of a stage, as far as what it holds goes up.
std::vector<Turn> order_of(const StepInputs& in, int stage, const Orders& made) {
  const PipelineSchedule schedule = in.layout.schedule;
  if (!made.empty()) return made[static_cast<std::size_t>(stage)];
  if (is_own(schedule)) return in.layout.own->orders[static_cast<std::size_t>(stage)];
  const int pp = in.layout.pp, m = in.batch.passes(in.layout);
  // From 2p on a V goes through the same again and again.
  return stage_order(schedule, pp, stage, goes_in_v(schedule) ? std::min(m, 3 * pp) : m, in.layout.chunks());
}

/// The same for zero bubble, with what waits for its weight gradients, and for one's own schedule.
void put_fullest_of_turns(const StepInputs& in, int stage, const Orders& made, MemoryTerms& terms) {
  const bool splits = splits_backward(in.layout.schedule);
  bool at_end = false;
  Held now = chunks_of(in, stage), fullest = now;
  Volume most{-1};
  for (const Turn& turn : order_of(in, stage, made)) {
    MemoryTerms::Chunk& of = now[static_cast<std::size_t>(turn.chunk)];
    of.in_flight += turn.weights ? 0 : turn.backward ? -1 : 1;
    of.waiting += turn.weights ? -1 : splits && turn.backward && !turn.whole ? 1 : 0;
    put(now, terms);
    terms.ends_backward = splits && turn.backward && !turn.whole;
    if (held_at_once(terms) <= most) continue;
    most = held_at_once(terms);
    fullest = now;
    at_end = terms.ends_backward;
  }
  put(fullest, terms);
  terms.ends_backward = at_end;
}

/// The same for an order that is made for times, as long as only is known what it may hold.
void put_most_held(const StepInputs& in, int stage, MemoryTerms& terms) {
  const int m = in.batch.passes(in.layout), pp = in.layout.pp;
  const int in_flight = most_in_flight(in.layout.schedule, pp, stage, m);
  const double most = most_held(in.layout.schedule, pp), share = share_for_weights(terms);
  int fullest = 0, waiting_there = 0;
  Volume largest{-1};
  for (int held = in_flight; held >= 0; --held) {
    // A backward is never kept from ending when nothing waits.
    const double room = share > 0 ? std::floor((most - held) / share + 1e-9) : m;
    const int waiting = static_cast<int>(std::clamp<double>(room, held < in_flight ? 1 : 0, m - held));
    put_held(in, stage, held, waiting, terms);
    if (held_at_once(terms) <= largest) continue;
    largest = held_at_once(terms);
    fullest = held;
    waiting_there = waiting;
  }
  put_held(in, stage, fullest, waiting_there, terms);
}

/// Whether what is held most need not be on the first or the last stage.
bool any_stage_may_be_fullest(const StepInputs& in) {
  return stages_differ(in) || goes_in_v(in.layout.schedule) || is_own(in.layout.schedule) ||
         made_for_times(in.layout.schedule);
}

/// Weights, gradients with their copies, and optimizer.
double state_bytes(const MemoryTerms& terms) {
  return terms.weights() + terms.gradients() + terms.optimizer() + terms.gradient_copies().value();
}

/// Of a stage's units one after the other as many as `together`, where that is most.
double largest(const std::vector<UnitParameters>& units, double (UnitParameters::*size)() const, std::size_t together) {
  double most = 0;
  for (std::size_t first = 0; first < units.size(); ++first) {
    double sum = 0;
    for (std::size_t u = first; u < std::min(first + together, units.size()); ++u) sum += (units[u].*size)();
    most = std::max(most, sum);
  }
  return most;
}

/// What a layer keeps from a zero-bubble backward to its weight gradients.
Volume kept_for_weights(const StepInputs& in, const Share& s, bool with_experts) {
  const double w = KernelTimer(in).precision().activation, rows = s.rows * s.hidden;
  const double widths = in.model.gated_mlp ? 3 : 2;
  const double attention = s.tokens * (s.query + s.gate + s.output + SharedKeyCore(in).kept(s, true, true)) +
                           rows_of_latent(in, s) * 2 * s.latent + waiting_of_indexer(in);
  if (is_frozen(in.options)) return Volume(w * waiting_of_adapters(in, with_experts));
  // Inputs of the matrices, and gradients of what they give: attention and MLP beside each other have one of these.
  const int tensors = all_tensors(in, with_experts).norms;
  if (!with_experts) return Volume(w * (tensors * rows + attention + s.tokens * s.ffn * widths));
  return Volume(w *
                (4 * rows + attention + s.tokens * s.shared * widths + s.taken * (2 * s.hidden + s.expert * widths)));
}

/// Of what a layer has in its backward what its weight gradients wait for: the inputs of its matrices.
Volume inputs_of_weights(const StepInputs& in, const Share& s, bool with_experts) {
  if (!splits_backward(in.layout.schedule)) return {};
  const double w = KernelTimer(in).precision().activation;
  if (is_frozen(in.options)) return Volume(w * inputs_of_adapters(in, with_experts));
  const double ranks = in.model.latent.q_rank + in.model.latent.kv_rank;
  const double attention = s.tokens * s.output + (s.latent > 0 ? rows_of_latent(in, s) * ranks : 0);
  const double mlp = s.tokens * (with_experts ? s.shared : s.ffn);
  const double experts = with_experts ? s.taken * (s.hidden + s.expert) : 0;
  return Volume(w * (norm_outputs(in, with_experts) * s.rows * s.hidden + attention + mlp + experts));
}

/// What selective recomputation brings back of one layer at once, beside what the layer kept, as it was computed:
/// single operations all together, modules those of the MLP or the experts and then those of attention.
Volume brought_back(const StepInputs& in, const ActivationTerms& all, const ActivationTerms& kept) {
  const RecomputeModules& modules = in.options.recompute_modules;
  if (in.model.parallel_mlp.norms > 0 || std::any_of(modules.begin(), modules.end(), is_single_operation))
    return (all.total() + all.cast) - (kept.total() + kept.cast);
  const Volume norm = (all.norms - kept.norms) * 0.5;
  return norm + std::max((all.mlp - kept.mlp) + (all.experts - kept.experts),
                         (all.projections - kept.projections) + (all.core - kept.core));
}

/// What layers of a kind keep, and the most that recomputation brings back of one.
void put_layer(const StepInputs& in, const Share& share, bool with_experts, MemoryTerms& terms) {
  double layers = 0;
  for (const MemoryTerms::Chunk& c : terms.of_chunk)
    layers += with_experts ? c.expert_layers - c.whole_expert_layers : c.layers - c.whole_layers;
  ActivationTerms& layer = with_experts ? terms.expert_layer : terms.layer;
  ActivationTerms& whole = with_experts ? terms.whole_expert_layer : terms.whole_layer;
  whole = activations_with(in, all_tensors(in, with_experts), with_experts);
  layer = kept_activations(in, with_experts);
  if (splits_backward(in.layout.schedule))
    layer.weights = whole.weights = kept_for_weights(in, share, with_experts) - whole.cast;
  for (const MemoryTerms::Chunk& c : terms.of_chunk)
    if ((with_experts ? c.offloaded_expert_layers : c.offloaded_layers) > 0)
      terms.recomputed = std::max(terms.recomputed, layer.total());
  if (layers == 0 || in.options.recompute == Recompute::none) return;
  const bool full = in.options.recompute == Recompute::full;
  terms.recomputed = std::max(terms.recomputed, full ? whole.total() : brought_back(in, whole, layer));
  terms.recomputed_beside_weights =
      full ? std::max(terms.recomputed_beside_weights,
                      whole.total() - (inputs_of_weights(in, share, with_experts) - whole.cast))
           : terms.recomputed;
}

/// In the place of parameters their bytes, of layers those in which they are gathered: the units between the ends.
std::vector<UnitParameters> bytes_as_gathered(const StepInputs& in, int stage, std::vector<UnitParameters> units) {
  for (std::size_t u = 0; u < units.size(); ++u) {
    const bool embedding = u == 0 && has_embedding(in, stage), head = u + 1 == units.size() && has_head(in, stage);
    const double each = gathered_weight_bytes(in, !embedding && !head);
    units[u].used *= each;
    units[u].used_experts *= each;
  }
  return units;
}

/// Of a stage's units what ranks have parts of; the rest is whole as it is.
std::vector<UnitParameters> split_units(const StepInputs& in, const MemoryTerms& terms) {
  std::vector<UnitParameters> units = unit_parameters(in, terms.stage);
  for (UnitParameters& unit : units) {
    if (in.layout.shards() == 1) unit.own = unit.used = 0;
    if (terms.expert_shares == 1) unit.experts = unit.used_experts = 0;
  }
  return units;
}
/// Of so many parameters, and those of them that go their own way, the same.
double split_parameters(const StepInputs& in, const MemoryTerms& terms, double of, double apart) {
  return (in.layout.shards() > 1 ? of - apart : 0) + (terms.expert_shares > 1 ? apart : 0);
}

/// What of a sharded state is whole for a time.
void put_whole(const StepInputs& in, MemoryTerms& terms) {
  const int zero = in.options.zero;
  const double split = split_parameters(in, terms, terms.parameters.total(), terms.apart);
  const double all =
      terms.gradient_bytes * split_parameters(in, terms, terms.parameters.trained(), terms.trained_apart);
  if (zero < 2 || !(split > 0)) return;
  const std::vector<UnitParameters> units = split_units(in, terms);
  const std::size_t together = in.options.overlap_dp ? 2 : 1;
  if (zero == 2) {
    const double one = terms.gradient_bytes * largest(units, &UnitParameters::all, 1);
    const double part = one + bucket_of(in, all);
    terms.unreduced = Volume(in.options.overlap_dp ? std::min(part, all) : all);
    return;
  }
  terms.gathered = Volume(terms.weight_bytes *
                          (in.options.reshard_after_forward ? largest(units, &UnitParameters::read, together) : split));
  if (in.options.communication.parameters && products_read_gathered(in)) {
    const std::vector<UnitParameters> sent = bytes_as_gathered(in, terms.stage, units);
    const std::size_t all_units = in.options.reshard_after_forward ? together : sent.size();
    terms.gathered = Volume(largest(sent, &UnitParameters::read, all_units));
  }
  terms.unreduced = Volume(terms.gradient_bytes * largest(units, &UnitParameters::all, together));
  // Of one micro-batch the last backward is the only one.
  if (!in.options.no_sync || in.batch.passes(in.layout) == 1) return;
  terms.unreduced = Volume(all);
  terms.sums_whole = in.layout.schedule != PipelineSchedule::gpipe;
}

}  // namespace

Volume layer_activations(const StepInputs& in, bool with_experts) { return kept_activations(in, with_experts).total(); }
Volume layer_working_set(const StepInputs& in, bool with_experts) {
  return activations_with(in, all_tensors(in, with_experts), with_experts).total();
}

double share_for_weights(const MemoryTerms& terms) {
  Volume kept, needed;
  for (const MemoryTerms::Chunk& c : terms.of_chunk) {
    kept += terms.layer.total() * (c.layers - c.whole_layers) + terms.whole_layer.total() * c.whole_layers +
            terms.expert_layer.total() * (c.expert_layers - c.whole_expert_layers) +
            terms.whole_expert_layer.total() * c.whole_expert_layers +
            terms.linear_more.kept * (c.linear_layers - c.whole_linear_layers) +
            terms.whole_linear_more.kept * c.whole_linear_layers;
    needed += terms.linear_more.weights * c.linear_layers;
    needed += terms.layer.weights * c.layers + terms.expert_layer.weights * c.expert_layers;
  }
  const double all = kept.value(), weights = needed.value();
  return all > 0 ? weights / all : 0;
}

int in_flight(const StepInputs& in, int stage) { return memory_terms(in, stage).in_flight; }

}  // namespace collcast::workload

namespace collcast {

namespace {

using workload::has_adapter;
using workload::is_frozen;
using workload::norm_inputs;
using workload::norm_outputs;

/// What the activation function gives is read by the down matrix alone, which is frozen.
bool drops_activation(const StepInputs& in) {
  return is_frozen(in.options) && !has_adapter(in, AdapterModule::linear_fc2);
}

}  // namespace

KeptTensors all_tensors(const StepInputs& in, bool with_experts) {
  KeptTensors all;
  // Norms beside each other have one input. What a frozen matrix reads is kept for its adapter alone.
  all.norms = norm_inputs(in) + norm_outputs(in, with_experts);
  if (in.model.parallel_mlp.norms != 1) all.read_once = (in.model.latent.kv_rank > 0 ? 0 : 1) + (with_experts ? 0 : 1);
  all.mlp = all.experts = in.model.gated_mlp ? 3 : 2;
  if (drops_activation(in)) --all.mlp, --all.experts;
  all.expert_rows = !is_frozen(in.options) || has_adapter(in, AdapterModule::linear_fc1);
  return all;
}

KeptTensors kept_tensors(const StepInputs& in, bool with_experts) {
  KeptTensors kept = all_tensors(in, with_experts);
  const auto again = [&](RecomputeModule module) { return recomputes(in.options, module); };
  const int behind_each = in.model.parallel_mlp.norms;
  if (again(RecomputeModule::layernorm)) kept.norms -= norm_outputs(in, with_experts);
  if (again(RecomputeModule::o_proj) && behind_each == 0) --kept.norms;
  const bool up = again(RecomputeModule::mla_up_proj);
  kept.query = !up && !again(RecomputeModule::q_proj);
  kept.key = !up && !again(RecomputeModule::k_proj);
  kept.value = !up && !again(RecomputeModule::v_proj);
  kept.core = !again(RecomputeModule::core_attn);
  if (again(RecomputeModule::layernorm)) kept.read_once = 0;
  if (with_experts) {
    kept.dispatched = !again(RecomputeModule::moe);
    if (again(RecomputeModule::moe_act) && !drops_activation(in)) --kept.experts;
    if (!kept.dispatched) kept.experts = 0;
    if (!kept.dispatched || again(RecomputeModule::shared_experts)) kept.mlp = 0;
    kept.activated = kept.mlp > 0;
    kept.experts_activated = !again(RecomputeModule::moe_act);
    return kept;
  }
  for (const RecomputeModule one : {RecomputeModule::gate_proj, RecomputeModule::up_proj, RecomputeModule::mlp_act})
    if (again(one) && !(one == RecomputeModule::mlp_act && drops_activation(in))) --kept.mlp;
  if (again(RecomputeModule::mlp)) kept.mlp = 0;
  kept.activated = kept.mlp > 0 && !again(RecomputeModule::mlp_act);
  return kept;
}

// The first norm's output goes to two products in latent attention, the second's to the router, too; what attention
// gives is kept by attention.
ProductInputs product_inputs(const StepInputs& in, const KeptTensors& kept, bool with_experts) {
  const workload::Share share(in);
  const LatentAttention& l = in.model.latent;
  ProductInputs of;
  of.norms = kept.read_once * share.rows * share.hidden;
  if (share.latent > 0) of.latent = workload::rows_of_latent(in, share) * (l.q_rank + l.kv_rank);
  if (kept.activated) of.mlp = share.tokens * (with_experts ? share.shared : share.ffn);
  if (!with_experts || !kept.dispatched) return of;
  if (kept.expert_rows) of.rows = share.taken * share.hidden;
  if (kept.experts_activated) of.experts = share.taken * share.expert;
  return of;
}

MemoryTerms memory_terms(const StepInputs& in, int stage, const Orders& made) {
  const workload::Precision precision = workload::KernelTimer(in).precision();
  const workload::Share share(in);
  const double w = precision.activation, rows = share.rows * share.hidden;

  MemoryTerms terms;
  terms.stage = stage;
  terms.parameters = parameter_terms(in, stage);
  terms.weight_bytes = w;
  terms.operand_bytes = precision.operand;
  terms.base_bytes = workload::is_quantised(in.options) ? workload::nf4_bytes : w;
  if (workload::is_quantised(in.options))
    terms.dequantised =
        Volume(w * std::max(terms.parameters.layers > 0 ? workload::largest_matrix(in, false) : 0,
                            terms.parameters.expert_layers > 0 ? workload::largest_matrix(in, true) : 0));
  terms.gradient_bytes = in.options.gradient_bytes;
  terms.optimizer_bytes = in.options.optimizer ? precision.optimizer : 0;
  const auto shares = [&](int from) { return in.options.zero >= from ? in.layout.shards() : 1; };
  terms.zero = in.options.zero;
  terms.optimizer_shares = shares(1);
  terms.gradient_shares = shares(2);
  terms.weight_shares = shares(3);
  if (in.layout.experts_apart()) {
    terms.apart = terms.parameters.experts();
    terms.trained_apart = terms.parameters.trained_experts();
    terms.expert_shares = expert_shards(in.layout);
  }
  if (in.options.optimizer && terms.gradient_bytes < 4)
    terms.copied = terms.trained(4, terms.optimizer_shares, terms.zero >= 1);
  workload::put_whole(in, terms);
  const workload::GradientCopies copies = workload::gradient_copies(in, stage);
  terms.stale = Volume(copies.stale);
  terms.error_feedback = Volume(copies.error);
  terms.low_rank = Volume(copies.low_rank);
  terms.tokens = share.tokens;
  terms.rows = share.rows;
  terms.of_chunk = workload::chunks_of(in, stage);
  if (terms.parameters.layers > 0) workload::put_layer(in, share, false, terms);
  if (terms.parameters.expert_layers > 0) workload::put_layer(in, share, true, terms);
  workload::put_linear_layers(in, terms);
  terms.chunks = in.layout.chunks();
  if (workload::has_embedding(in, stage) && in.model.dropout > 0) terms.embedding_mask = Volume(rows);
  if (workload::has_head(in, stage)) {
    const bool frozen = workload::is_frozen(in.options);
    terms.final_norm = Volume((frozen ? 1 : 2) * w * rows);
    terms.probabilities = Volume(4 * share.tokens * share.vocab);
    terms.logits = Volume(w * share.tokens * share.vocab);
    if (!in.options.fuse_loss) terms.shifted = terms.probabilities;
    if (splits_backward(in.layout.schedule) && !frozen) terms.head_weights = Volume(w * rows) + terms.logits;
  }
  const int m = in.batch.passes(in.layout);
  const int held = in.layout.schedule == PipelineSchedule::gpipe ? m : std::min(m, in.layout.pp - stage);
  if (in.layout.schedule == PipelineSchedule::interleaved)
    workload::put_fullest(in, stage, terms);
  else if (made_for_times(in.layout.schedule) && made.empty())
    workload::put_most_held(in, stage, terms);
  else if (splits_backward(in.layout.schedule) || is_own(in.layout.schedule))
    workload::put_fullest_of_turns(in, stage, made, terms);
  else
    workload::put_held(in, stage, held, 0, terms);
  return terms;
}

namespace {

/// 2^60: a sum of a few such sizes still fits 64 bits.
constexpr double most_bytes = 0x1p60;

/// Stages one of which is the fullest. Else a middle stage holds no more of anything than the first: as many layers, as
/// many micro-batches, no embedding.
std::vector<int> stages_to_ask(const StepInputs& in) {
  const int last = in.layout.pp - 1;
  const int stride = in.serving || workload::any_stage_may_be_fullest(in) ? 1 : std::max(last, 1);
  std::vector<int> stages;
  for (int stage = 0; stage <= last; stage += stride) stages.push_back(stage);
  return stages;
}

/// As numbers, which have no end.
double bytes_of(const MemoryTerms& terms) {
  return workload::state_bytes(terms) + (terms.activations() + terms.buffers_of_backward()).value();
}

MemoryUse use_of(const StepInputs& in, const MemoryTerms& terms, int gpus_per_node) {
  MemoryUse use;
  use.stage = terms.stage;
  use.parameters = workload::whole(terms.weights());
  use.gradients = workload::whole(terms.gradients());
  use.optimizer = workload::whole(terms.optimizer());
  use.gradient_copies = workload::whole(terms.gradient_copies().value());
  const std::array kept{terms.activations(), terms.activations(), Volume{}};
  const std::array buffers{terms.buffers_of_forward(), terms.buffers_of_backward(), terms.buffers_of_optimizer()};
  for (const MemoryMoment moment : memory_moments) {
    const auto i = static_cast<std::size_t>(moment);
    const Bytes activations = workload::whole(kept[i].value()), beside = workload::whole(buffers[i].value());
    use.by_moment[i] = use.state() + activations + beside;
    if (i > 0 && use.by_moment[i] <= use.allocated()) continue;
    use.moment = moment;
    use.activations = activations;
    use.buffers = beside;
  }
  use.capacity = in.gpu.memory;
  use.on_host = workload::whole(terms.on_host().value());
  add_runtime(use, in.layout, gpus_per_node);
  return use;
}

}  // namespace

Diagnostics check_memory(const StepInputs& in, const Origins& origins) {
  if (in.serving) return workload::check_serving_memory(in, origins);
  double states = 0, needed = 0;
  for (const int stage : stages_to_ask(in)) {
    const MemoryTerms terms = memory_terms(in, stage);
    states = std::max(states, workload::state_bytes(terms));
    needed = std::max(needed, bytes_of(terms));
  }
  // What a TP group gathers is whole on every rank, however many share the rest.
  needed = std::max(needed, workload::tp_bytes(in));
  if (needed <= most_bytes) return {};
  const double in_flight = static_cast<double>(workload::in_flight(in, 0)) * in.batch.micro_batch;
  const char* path = states > most_bytes             ? "model"
                     : in_flight > in.batch.sequence ? "batch.global_batch"
                                                     : "batch.sequence";
  return {{origins.of(path), "a rank of this step needs " + format_bytes(Volume(needed)) + " of memory",
           "expected up to " + format_bytes(Volume(most_bytes))}};
}

std::optional<MemoryUse> countable_peak_memory(const StepInputs& in, int gpus_per_node) {
  if (in.serving) {
    if (!check_memory(in, {}).empty()) return std::nullopt;
    return peak_memory(in, gpus_per_node);
  }
  if (workload::tp_bytes(in) > most_bytes) return std::nullopt;
  std::optional<MemoryUse> most;
  for (const int stage : stages_to_ask(in)) {
    const MemoryTerms terms = memory_terms(in, stage);
    if (bytes_of(terms) > most_bytes) return std::nullopt;
    if (const MemoryUse use = use_of(in, terms, gpus_per_node); !most || use.peak() > most->peak()) most = use;
  }
  return most;
}

MemoryUse stage_memory(const StepInputs& in, int stage, int gpus_per_node, const Orders& made) {
  if (in.serving) return workload::serving_memory(in, stage, gpus_per_node);
  return use_of(in, memory_terms(in, stage, made), gpus_per_node);
}

MemoryUse peak_memory(const StepInputs& in, int gpus_per_node, const Orders& made) {
  std::optional<MemoryUse> most;
  for (const int stage : stages_to_ask(in))
    if (const MemoryUse use = stage_memory(in, stage, gpus_per_node, made); !most || use.peak() > most->peak())
      most = use;
  return *most;
}

}  // namespace collcast
