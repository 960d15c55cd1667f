// What the end stages do besides their layers, and the optimizer.
//
// Embedding: look-up of T rows of h (each TP rank has V/t rows of the table and fills in zeros), then one TP
// reduction of w T h; learned positions and dropout after it. Head: final norm, logits 2 T h V/t, loss reading
// the logits in fp32 three times (12 bytes per logit) and, backward, the saved probabilities once (4) for the
// 16-bit gradient, or kernel by kernel (unfused_loss); rows of logits that are no multiple of 8 bytes long feed tensor
// cores badly (kernels.hpp). Adam on fp32 state reads gradient, master and moments and writes master, moments and the
// 16-bit weight: 26 + g bytes per locally owned parameter (others: optimizer_bytes.hpp); the norm pass reads its
// gradient once more (g). A gradient in 16 bit is copied in fp32 first (g + 4), and both read the copy (4), but where
// the optimizer reads it as it is. The whole gradient buffer is zeroed (g; with ZeRO-2 and 3 the owned part). 38 bytes
// at g = 4 without a distributed optimizer. Before them what compressing gradients takes (gradient_exchange.hpp),
// behind them the cast of weights that are gathered in fp8 (wire.hpp).
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "workload/gradient_exchange.hpp"
#include "workload/layer/adapters.hpp"
#include "workload/layer/mtp.hpp"
#include "workload/layer/parameters.hpp"
#include "workload/layer/share.hpp"
#include "workload/memory/state_copies.hpp"
#include "workload/plan.hpp"
#include "workload/wire.hpp"

namespace collcast::workload {

namespace {

/// What the loss moves for each logit, and in how many kernels its forward is.
struct LossBytes {
  double forward = 0, backward = 0, kernels = 1;
};

/// Kernel by kernel as Megatron-LM (core/tensor_parallel/cross_entropy.py) and PyTorch run it, in fp32: the copy (w +
/// 4), the largest (4), the difference (8), its exponential (8), their sum (4), the quotient (8); backward the product
/// (8) and the copy back (4 + w). On an H100 and an H200 PyTorch's took as long as 46 to 50 bytes at 0.8 of the
/// memory's rate.
LossBytes unfused_loss(double w) { return {36 + w, 12 + w, 6}; }

}  // namespace

Segments embedding_segments(const StepInputs& in) {
  const KernelTimer timer(in);
  const Share share(in);
  const TpCollectives tp(in.layout);
  const double w = timer.precision().activation, rows = share.rows * share.hidden, all = share.tokens * share.hidden;

  Segments s;
  s.forward = {{"embedding", Category::forward, {timer.memory("embedding", Volume(2 * w * all))}, tp.reduce}};
  std::vector<Operation> after, before;
  if (in.model.learned_positions > 0) after.push_back(timer.memory("position embedding", Volume(2 * w * rows)));
  if (in.model.dropout > 0) {
    after.push_back(timer.memory("embedding dropout", Volume((2 * w + 1) * rows)));
    before.push_back(timer.memory("embedding dropout gradient", Volume((2 * w + 1) * rows)));
  }
  if (in.model.learned_positions > 0) before.push_back(timer.memory("position gradient", Volume(w * rows)));
  if (!after.empty()) s.forward.push_back({"embedding", Category::forward, after, std::nullopt});
  // A frozen embedding is where gradients end.
  if (in.serving || is_frozen(in.options)) return s;

  // Every rank scatters the rows of its part of the vocabulary: T/t on average.
  const bool fused = in.options.fuse_accumulation;
  const double rows_of_table = share.vocab * share.hidden;
  const double scattered =
      2.0 * (fused ? in.options.gradient_bytes : w) * all / in.layout.tp + (fused ? 0 : w * rows_of_table);
  // All but dropout's is a gradient of weights.
  std::vector<Segment> backward{{"embedding", Category::backward, before, tp.gather}};
  Segment weights{
      "embedding", Category::backward, {timer.memory("embedding gradient", Volume(w * all + scattered))}, std::nullopt};
  for (Operation& op : gradient_accumulation(in, timer, embedding_parameters(in.model, in.layout.tp).total()))
    weights.operations.push_back(std::move(op));
  if (splits_backward(in.layout.schedule))
    s.weights = {weights};
  else
    backward.push_back(weights);
  s.backward = joined(std::move(backward));
  return s;
}

std::vector<Segment> next_token_segments(const StepInputs& in, double rows) {
  const KernelTimer timer(in);
  const TpCollectives tp(in.layout);
  const double w = timer.precision().activation, h = in.model.hidden;
  const double v = Share(in).vocab, hidden = w * rows * h, logits = w * rows * in.model.vocab;
  return joined(
      {{"final norm", Category::forward, {timer.memory("final norm", Volume(2 * hidden))}, tp.gather, 0, 0, 0, hidden},
       {"logits",
        Category::forward,
        {timer.logits("logits", GemmPass::forward, {rows, v, h}, Volume(w * (rows * h + h * v + rows * v)))},
        tp.columns,
        0,
        0,
        0,
        logits},
       {"sampling", Category::forward, {timer.memory("sampling", Volume(logits))}, std::nullopt}});
}

namespace {

/// Logits of the model's layers, or of one that predicts further tokens, from its final norm to the loss.
Segments prediction_segments(const StepInputs& in) {
  const KernelTimer timer(in);
  const Share share(in);
  const TpCollectives tp(in.layout);
  const double w = timer.precision().activation, g = in.options.gradient_bytes;
  const double T = share.tokens, h = share.hidden, v = share.vocab, rows = share.rows * h;

  Segments s;
  const bool aligned = std::fmod(w * v, 8) == 0;
  const bool fused_loss = in.options.fuse_loss;
  const LossBytes loss_bytes = fused_loss ? LossBytes{12, 4 + w, 1} : unfused_loss(w);
  const Operation products =
      timer.logits("logits", GemmPass::forward, {T, v, h}, Volume(w * (T * h + h * v + T * v)), aligned);
  s.forward = joined({{"final norm", Category::forward, {timer.memory("final norm", Volume(2 * w * rows))}, tp.gather},
                      {"logits",
                       Category::forward,
                       {products, timer.memory("loss", Volume(loss_bytes.forward * T * v), loss_bytes.kernels)},
                       std::nullopt}});
  const bool splits = splits_backward(in.layout.schedule), frozen = is_frozen(in.options);
  const Operation logits = timer.logits("logits input gradient", GemmPass::input_gradient, {T, h, v},
                                        Volume(w * (T * v + h * v + T * h)), aligned);
  const bool fused = in.options.fuse_accumulation;
  const Operation weights = timer.logits("logits weight gradient", GemmPass::weight_gradient, {v, h, T},
                                         Volume(w * (T * v + T * h) + (fused ? 2 * g : w) * h * v), aligned);
  const std::vector<Operation> accumulation =
      gradient_accumulation(in, timer, frozen ? 0 : head_parameters(in.model, in.layout.tp, false).total());
  if (splits && !frozen)
    s.weights = joined({{"logits input", Category::backward, {}, tp.gather},
                        {"logits weights", Category::backward, {weights}, std::nullopt},
                        {"logits weights", Category::backward, accumulation, std::nullopt}});
  s.backward =
      column_backward(in, {"loss",
                           {timer.memory("loss gradient", Volume(loss_bytes.backward * T * v), fused_loss ? 1 : 2)},
                           "logits",
                           {logits},
                           splits || frozen ? std::vector<Operation>() : std::vector<Operation>{weights},
                           0,
                           frozen});
  s.backward.push_back({"final norm",
                        Category::backward,
                        {timer.memory("final norm gradient", Volume((frozen ? 3 : 5) * w * rows))},
                        std::nullopt});
  if (!splits && !accumulation.empty())
    s.backward.push_back({"final norm", Category::backward, accumulation, std::nullopt});
  s.backward = joined(std::move(s.backward));
  return s;
}

/// Logits of the last token of each prompt, or of all tokens of a pass of them; then what drafts the next ones, with
/// logits of one token of each sequence.
Segments serving_head(const StepInputs& in) {
  const double sequences = in.batch.micro_batch;
  Segments s;
  s.forward = next_token_segments(in, in.batch.context > 0 ? sequences * in.batch.sequence : sequences);
  for (int i = 0; i < in.model.mtp_layers; ++i) {
    add_segments(s.forward, mtp_input_segments(in).forward);
    add_segments(s.forward, next_token_segments(in, sequences));
  }
  s.forward = joined(std::move(s.forward));
  return s;
}

}  // namespace

Segments head_segments(const StepInputs& in) {
  if (in.serving) return serving_head(in);
  Segments s = prediction_segments(in);
  if (in.model.mtp_layers == 0) return s;
  const Segments prediction = s, before = mtp_input_segments(in);
  const std::array passes{&Segments::forward, &Segments::backward, &Segments::weights};
  for (int i = 0; i < in.model.mtp_layers; ++i)
    for (const auto pass : passes) {
      add_segments(s.*pass, before.*pass);
      add_segments(s.*pass, prediction.*pass);
    }
  for (const auto pass : passes) s.*pass = joined(std::move(s.*pass));
  return s;
}

std::vector<Operation> optimizer_operations(const StepInputs& in, int stage, double pace) {
  std::vector<Operation> ops = compression_operations(in, stage);
  const auto at_pace = [&] {
    for (Operation& op : ops)
      if (!op.is_wait()) op.time /= pace;
    return std::move(ops);
  };
  if (!in.options.optimizer) return at_pace();
  const KernelTimer timer(in);
  const double g = in.options.gradient_bytes;
  const double owned = owned_parameters(in, stage);
  for (Operation& op : norm_kernels(in, owned)) ops.push_back(std::move(op));
  const StateCopies copies = state_copies(in, stage, pace);
  if (copies.chunks > 0)
    // What sums of times that are rounded leave is no time.
    ops.push_back(
        {"wait for states from the host", OperationKind::memory, {}, {}, std::max(copies.wait(), Seconds{}), "copies"});
  for (Operation& op : update_kernels(in, owned, copies.updates())) ops.push_back(std::move(op));
  const double zeroed = in.options.zero >= 2 ? owned : trained_parameters(in, stage).total();
  ops.push_back(timer.memory("zero gradients", Volume(g * zeroed)));
  for (Operation& cast : casts_of_weights(in, timer, stage)) ops.push_back(std::move(cast));
  return at_pace();
}

}  // namespace collcast::workload
