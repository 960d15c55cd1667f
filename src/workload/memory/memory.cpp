#include "workload/memory/memory.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "collcast/base/units.hpp"
#include "collcast/workload/search.hpp"
#include "workload/gradient_exchange.hpp"
#include "workload/layer/adapters.hpp"
#include "workload/layer/kept.hpp"
#include "workload/layer/mtp.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/layer/share.hpp"
#include "workload/memory/optimizer_bytes.hpp"
#include "workload/memory/state_copies.hpp"
#include "workload/plan.hpp"
#include "workload/schedules/automatic_order.hpp"
#include "workload/schedules/interleaved.hpp"
#include "workload/serving/serving.hpp"
#include "workload/wire.hpp"

namespace collcast::workload {

namespace {

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
    ++c.layers[kind.shape];
    if (kind.whole) ++c.whole_layers[kind.shape];
    if (layer.number < in.options.cpu_offloading_num_layers) ++c.offloaded_layers[kind.shape];
  }
  return chunks;
}

/// Of a stage with one chunk.
void put_held(int in_flight, int waiting, MemoryTerms& terms) {
  Held held = terms.of_chunk;
  held.front().in_flight = in_flight;
  held.front().waiting = waiting;
  put(held, terms);
}

/// What a forward of each chunk leaves.
void price_chunks(MemoryTerms& terms) {
  for (MemoryTerms::Chunk& c : terms.of_chunk)
    for (const LayerShape s : layer_shapes) {
      if (!(c.layers[s] > 0)) continue;
      c.kept +=
          terms.layer[s].total() * (c.layers[s] - c.whole_layers[s]) + terms.whole_layer[s].total() * c.whole_layers[s];
      c.for_weights += terms.layer[s].weights * c.layers[s];
      c.on_host += terms.layer[s].total() * c.offloaded_layers[s];
    }
}

/// Goes through the stage's order; leaves what it holds where that is most.
void put_fullest(const StepInputs& in, int stage, MemoryTerms& terms) {
  const int m = in.batch.passes(in.layout);
  const InterleavedOrder order(in.layout.pp, in.layout.vpp, m);
  Held now = terms.of_chunk, fullest = now;
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
  Held now = terms.of_chunk, fullest = now;
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
    put_held(held, waiting, terms);
    if (held_at_once(terms) <= largest) continue;
    largest = held_at_once(terms);
    fullest = held;
    waiting_there = waiting;
  }
  put_held(fullest, waiting_there, terms);
}

/// Whether what is held most need not be on the first or the last stage.
bool any_stage_may_be_fullest(const StepInputs& in) {
  return stages_differ(in) || goes_in_v(in.layout.schedule) || is_own(in.layout.schedule) ||
         made_for_times(in.layout.schedule);
}

/// Weights, gradients with their copies, and optimizer.
Volume state_bytes(const MemoryTerms& terms) {
  return terms.weights() + terms.gradients() + terms.optimizer() + terms.gradient_copies();
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

/// What selective recomputation brings back of one layer at once, beside what the layer kept, as it was computed:
/// single operations all together, modules those of the MLP or the experts and then those of attention.
Volume brought_back(const StepInputs& in, LayerShape shape, const ActivationTerms& all, const ActivationTerms& kept) {
  const RecomputeModules& modules = in.options.recompute_modules;
  if (in.model.parallel_mlp.norms > 0 || std::any_of(modules.begin(), modules.end(), is_single_operation))
    return (all.total() + all.cast) - (kept.total() + kept.cast);
  const Volume norm = (all.norms - kept.norms) * (1.0 / shape.branches());
  return norm + std::max((all.mlp - kept.mlp) + (all.experts - kept.experts),
                         (all.projections - kept.projections) + (all.core - kept.core));
}

/// What layers of a shape keep, and the most that recomputation brings back of one.
void put_layer(const StepInputs& in, const Share& share, LayerShape shape, MemoryTerms& terms) {
  double layers = 0, offloaded = 0;
  for (const MemoryTerms::Chunk& c : terms.of_chunk) {
    layers += c.layers[shape] - c.whole_layers[shape];
    offloaded += c.offloaded_layers[shape];
  }
  ActivationTerms& layer = terms.layer[shape];
  ActivationTerms& whole = terms.whole_layer[shape];
  whole = activations_with(in, all_tensors(in, shape), shape);
  layer = kept_activations(in, shape);
  if (splits_backward(in.layout.schedule))
    layer.weights = whole.weights = kept_for_weights(in, share, shape) - whole.cast;
  if (offloaded > 0) terms.recomputed = std::max(terms.recomputed, layer.total());
  if (layers == 0 || in.options.recompute == Recompute::none) return;
  const bool full = in.options.recompute == Recompute::full;
  terms.recomputed = std::max(terms.recomputed, full ? whole.total() : brought_back(in, shape, whole, layer));
  terms.recomputed_beside_weights = full ? std::max(terms.recomputed_beside_weights,
                                                    whole.total() - (inputs_of_weights(in, share, shape) - whole.cast))
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

/// Bytes of each parameter's weight and gradient, and the largest matrix that is kept quantised.
void put_weights(const StepInputs& in, MemoryTerms& terms) {
  const Precision precision = KernelTimer(in).precision();
  const double w = precision.activation;
  terms.weight_bytes = w;
  terms.operand_bytes = precision.operand;
  terms.gradient_bytes = in.options.gradient_bytes;
  terms.base_bytes = is_quantised(in.options) ? nf4_bytes : w;
  if (!is_quantised(in.options)) return;
  for (const LayerShape shape : layer_shapes)
    if (terms.parameters.layers[shape] > 0)
      terms.dequantised = std::max(terms.dequantised, Volume(w * largest_matrix(in, shape)));
}

/// Over how many ranks ZeRO splits what.
void put_sharding(const StepInputs& in, MemoryTerms& terms) {
  const auto shares = [&](int from) { return in.options.zero >= from ? in.layout.shards() : 1; };
  terms.zero = in.options.zero;
  terms.optimizer_shares = shares(1);
  terms.gradient_shares = shares(2);
  terms.weight_shares = shares(3);
  if (!in.layout.experts_apart()) return;
  terms.apart = terms.parameters.experts();
  terms.trained_apart = terms.parameters.trained_experts();
  if (in.options.zero > 0) terms.expert_shares = expert_shards(in.layout);
}

/// The optimizer's bytes of the rank's part, and what its step needs besides: copies of gradients, states in fp32,
/// states that come back from the host.
void put_optimizer(const StepInputs& in, MemoryTerms& terms) {
  const OptimizerBytes optimizer = optimizer_bytes(in.options);
  terms.optimizer_bytes = optimizer.kept;
  const auto of_part = [&](double each) { return terms.trained(each, terms.optimizer_shares, terms.zero >= 1); };
  terms.copied = Volume(of_part(optimizer.copied));
  terms.unscaled = Volume(of_part(optimizer.unscaled));
  const int chunks = state_chunks(in.options, of_part(1));
  if (chunks <= 0) return;
  const double moved = offloaded_states(in.options);
  terms.share_on_host = moved;
  terms.returned =
      Volume(moved * of_part(optimizer.kept - optimizer.moments + optimizer.moments * std::min(chunks, 2) / chunks));
  terms.unscaled = terms.unscaled * std::max(1 - moved, moved / chunks);
}

void put_gradient_copies(const StepInputs& in, MemoryTerms& terms) {
  const GradientCopies copies = gradient_copies(in, terms.stage);
  terms.stale = Volume(copies.stale);
  terms.error_feedback = Volume(copies.error);
  terms.low_rank = Volume(copies.low_rank);
}

/// What a forward leaves of the stage's layers, chunk by chunk.
void put_layers(const StepInputs& in, const Share& share, MemoryTerms& terms) {
  terms.tokens = share.tokens;
  terms.rows = share.rows;
  terms.chunks = in.layout.chunks();
  terms.of_chunk = chunks_of(in, terms.stage);
  for (const LayerShape shape : layer_shapes)
    if (terms.parameters.layers[shape] > 0) put_layer(in, share, shape, terms);
  price_chunks(terms);
}

/// What a forward leaves of embedding and head, on the stages that have them.
void put_ends(const StepInputs& in, const Share& share, MemoryTerms& terms) {
  const double w = terms.weight_bytes, rows = share.rows * share.hidden;
  if (has_embedding(in, terms.stage) && in.model.dropout > 0) terms.embedding_mask = Volume(rows);
  if (!has_head(in, terms.stage)) return;
  const bool frozen = is_frozen(in.options);
  terms.final_norm = Volume((frozen ? 1 : 2) * w * rows);
  terms.probabilities = Volume(4 * share.tokens * share.vocab * (1 + in.model.mtp_layers));
  terms.mtp = mtp_kept(in);
  terms.logits = Volume(w * share.tokens * share.vocab);
  if (!in.options.fuse_loss) terms.shifted = Volume(4 * share.tokens * share.vocab);
  if (splits_backward(in.layout.schedule) && !frozen)
    terms.head_weights = Volume(w * rows) + terms.logits + mtp_kept_for_weights(in);
}

/// How many forwards are held where that is most, and what comes back from the host behind them.
void put_in_flight(const StepInputs& in, const Orders& made, MemoryTerms& terms) {
  const PipelineSchedule schedule = in.layout.schedule;
  const int m = in.batch.passes(in.layout);
  if (schedule == PipelineSchedule::interleaved)
    put_fullest(in, terms.stage, terms);
  else if (made_for_times(schedule) && made.empty())
    put_most_held(in, terms.stage, terms);
  else if (splits_backward(schedule) || is_own(schedule))
    put_fullest_of_turns(in, terms.stage, made, terms);
  else
    put_held(schedule == PipelineSchedule::gpipe ? m : std::min(m, in.layout.pp - terms.stage), 0, terms);
  terms.returning = still_returning(in, terms.returned, terms.in_flight);
}

}  // namespace

double share_for_weights(const MemoryTerms& terms) {
  Volume kept, needed;
  for (const MemoryTerms::Chunk& c : terms.of_chunk) {
    kept += c.kept;
    needed += c.for_weights;
  }
  return kept > Volume{} ? needed.value() / kept.value() : 0;
}

int in_flight(const StepInputs& in, int stage) { return memory_terms(in, stage).in_flight; }

}  // namespace collcast::workload

namespace collcast {

MemoryTerms memory_terms(const StepInputs& in, int stage, const Orders& made) {
  const workload::Share share(in);
  MemoryTerms terms;
  terms.stage = stage;
  terms.parameters = parameter_terms(in, stage);
  workload::put_weights(in, terms);
  workload::put_sharding(in, terms);
  workload::put_optimizer(in, terms);
  workload::put_whole(in, terms);
  workload::put_gradient_copies(in, terms);
  workload::put_layers(in, share, terms);
  workload::put_ends(in, share, terms);
  workload::put_in_flight(in, made, terms);
  return terms;
}

namespace {

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
Volume bytes_of(const MemoryTerms& terms) {
  return workload::state_bytes(terms) + (terms.activations() + terms.buffers_of_backward());
}

MemoryUse use_of(const StepInputs& in, const MemoryTerms& terms, int gpus_per_node) {
  MemoryUse use;
  use.stage = terms.stage;
  use.parameters = workload::whole(terms.weights().value());
  use.gradients = workload::whole(terms.gradients().value());
  use.optimizer = workload::whole(terms.optimizer().value());
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
  use.on_host = workload::whole((terms.on_host() + terms.share_on_host * terms.optimizer_states()).value());
  add_runtime(use, talking_layout(in), in.nccl_buffers, gpus_per_node);
  return use;
}

}  // namespace

Diagnostics check_memory(const StepInputs& in, const Origins& origins) {
  if (in.serving) return workload::check_serving_memory(in, origins);
  Volume states, needed;
  for (const int stage : stages_to_ask(in)) {
    const MemoryTerms terms = memory_terms(in, stage);
    states = std::max(states, workload::state_bytes(terms));
    needed = std::max(needed, bytes_of(terms));
  }
  // What a TP group gathers is whole on every rank, however many share the rest.
  needed = std::max(needed, Volume(workload::tp_bytes(in)));
  constexpr Volume most(workload::most_bytes);
  if (needed <= most) return {};
  const double in_flight = static_cast<double>(workload::in_flight(in, 0)) * in.batch.micro_batch;
  const char* path = states > most ? "model" : in_flight > in.batch.sequence ? "batch.global_batch" : "batch.sequence";
  return {{origins.of(path), "a rank of this step needs " + format_bytes(needed) + " of memory",
           "expected up to " + format_bytes(most)}};
}

std::optional<MemoryUse> countable_peak_memory(const StepInputs& in, int gpus_per_node) {
  if (in.serving) {
    if (!check_memory(in, {}).empty()) return std::nullopt;
    return peak_memory(in, gpus_per_node);
  }
  if (workload::tp_bytes(in) > workload::most_bytes) return std::nullopt;
  std::optional<MemoryUse> most;
  for (const int stage : stages_to_ask(in)) {
    const MemoryTerms terms = memory_terms(in, stage);
    if (bytes_of(terms) > Volume(workload::most_bytes)) return std::nullopt;
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
