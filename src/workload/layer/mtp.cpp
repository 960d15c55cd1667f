#include "workload/layer/mtp.hpp"

#include <utility>

#include "workload/layer/adapters.hpp"
#include "workload/layer/share.hpp"

namespace collcast::workload {

namespace {

/// Of one module, on each TP rank its columns.
Linear projection_of(const Share& share, int tp) { return {"MTP projection", 2 * share.hidden, share.hidden / tp}; }

}  // namespace

RankParameters mtp_parameters(const TransformerConfig& m, int tp) {
  const double h = m.hidden, norms = 3 * (m.biases ? 2 : 1) * h;
  return {m.mtp_layers * 2 * h * h / tp, m.mtp_layers * norms, 0};
}

double mtp_embedding_copy(const StepInputs& in) {
  const bool has_one = in.model.tied_embeddings || in.layout.ends_together();
  return in.model.mtp_layers > 0 && !has_one ? embedding_parameters(in.model, in.layout.tp).sharded : 0;
}

Segments mtp_input_segments(const StepInputs& in) {
  const KernelTimer timer(in);
  const Share share(in);
  const LinearKernels linear(in, timer, share);
  const TpCollectives tp(in.layout);
  const Linear projection = projection_of(share, in.layout.tp);
  const bool splits = splits_backward(in.layout.schedule), frozen = is_frozen(in.options);
  const double w = timer.precision().activation, rows = share.rows * share.hidden;
  const double both = 2 * w * share.tokens * share.hidden;
  const auto memory = [&](const char* name, double bytes) { return timer.memory(name, Volume(bytes)); };

  Segments s = embedding_segments(in);
  add_segments(s.forward, {{"MTP norms",
                            Category::forward,
                            {memory("MTP embedding norm", 2 * w * rows), memory("MTP hidden norm", 2 * w * rows),
                             memory("MTP concatenation", 4 * w * rows)},
                            tp.gather,
                            0,
                            0,
                            0,
                            both},
                           {"MTP projection", Category::forward, {linear.forward(projection)}, tp.columns}});
  s.forward = joined(std::move(s.forward));

  const Operation weights = linear.weight_gradient(projection);
  const std::vector<Operation> accumulation = gradient_accumulation(
      in, timer, frozen ? 0 : mtp_parameters(in.model, in.layout.tp).total() / in.model.mtp_layers);
  std::vector<Segment> backward{{"MTP projection", Category::backward, {}, tp.gather}};
  add_segments(backward,
               column_backward(in, {"MTP projection",
                                    {},
                                    "MTP projection",
                                    {linear.input_gradient(projection)},
                                    splits || frozen ? std::vector<Operation>() : std::vector<Operation>{weights},
                                    both,
                                    frozen}));
  const double norm = (frozen ? 3 : 5) * w * rows;
  std::vector<Operation> norms{memory("MTP concatenation gradient", 4 * w * rows),
                               memory("MTP hidden norm gradient", norm), memory("MTP embedding norm gradient", norm)};
  if (!splits) norms.insert(norms.end(), accumulation.begin(), accumulation.end());
  backward.push_back({"MTP norms", Category::backward, std::move(norms), std::nullopt});
  add_segments(backward, std::move(s.backward));
  s.backward = joined(std::move(backward));

  if (!splits || frozen) return s;
  std::vector<Segment> of_weights{{"MTP projection input", Category::backward, {}, tp.gather, 0, 0, 0, both},
                                  {"MTP projection weights", Category::backward, {weights}, std::nullopt},
                                  {"MTP projection weights", Category::backward, accumulation, std::nullopt}};
  add_segments(of_weights, std::move(s.weights));
  s.weights = joined(std::move(of_weights));
  return s;
}

Volume mtp_kept(const StepInputs& in) {
  const Share share(in);
  // Without gradients of weights a norm keeps what it reads, and the projection nothing.
  const double tensors = is_frozen(in.options) ? 3 : 6, mask = in.model.dropout > 0 ? 1 : 0;
  const double bytes = tensors * KernelTimer(in).precision().activation + mask;
  return Volume(in.model.mtp_layers * bytes * share.rows * share.hidden);
}

Volume mtp_kept_for_weights(const StepInputs& in) {
  const Share share(in);
  const double w = KernelTimer(in).precision().activation;
  const double head = share.rows * share.hidden + share.tokens * share.vocab;
  const double projection = 2 * share.rows * share.hidden + share.tokens * share.hidden / in.layout.tp;
  return Volume(in.model.mtp_layers * w * (head + projection));
}

}  // namespace collcast::workload
