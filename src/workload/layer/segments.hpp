// The kernels of one micro-batch in the order they run, cut where tensor parallelism communicates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collcast/workload/step.hpp"
#include "workload/layer/parameters.hpp"

namespace collcast::workload {

/// What experts exchange: dispatch and combine among the EP ranks, gather and scatter among those that share an expert.
struct ExpertExchange {
  bool within_expert = false;  ///< of the expert's TP ranks, else of the EP group
  CollectiveKind kind = CollectiveKind::alltoall;
  double bytes = 0;
  bool combines = false;  ///< of the EP group: rows on their way back
};

/// A collective of the TP group that runs beside kernels.
struct TpBeside {
  CollectiveKind kind = CollectiveKind::all_gather;
  double bytes = 0;  ///< 0: those of all tokens' hidden states
};

/// Kernels without communication between them, then one collective of the TP group (if TP > 1). With context
/// parallelism messages of its ring beside the kernels, or an all-to-all after them; with experts their exchange.
struct Segment {
  std::string name;
  Category category = Category::forward;  ///< or backward, recompute
  std::vector<Operation> operations;
  std::optional<CollectiveKind> then;
  int ring_messages = 0;                        ///< one after the other
  double ring_bytes = 0;                        ///< of each
  double all_to_all_bytes = 0;                  ///< before `then`
  double then_bytes = 0;                        ///< of `then`; 0: those of all tokens' hidden states
  std::optional<ExpertExchange> exchange = {};  ///< after all
  std::optional<TpBeside> under = {};           ///< beside the kernels
};

/// What goes to the host's memory beside a pass of a layer, or comes back: an equal part for each layer of all that
/// moves, as Transformer Engine spreads it (host_copies.hpp).
struct HostCopies {
  Seconds time{};
  double idle = 0;  ///< share of the pass beside which nothing is copied, mean of the layers
};

/// What one layer, the embedding or the head does for one micro-batch.
struct Segments {
  std::vector<Segment> forward, backward;  ///< backward with recomputation
  std::vector<Segment> weights;            ///< zero bubble: weight gradients, which the backward leaves out
  HostCopies copies = {};                  ///< beside the forward, and the same back beside the backward
};

/// What a pass has to be launched for: by the model's code (kernels of forwards and recomputation, collectives), and by
/// what goes through the graph of gradients (kernels of backwards).
struct Launches {
  double by_model = 0, of_gradients = 0;
};
Launches launches(const std::vector<Segment>&);
/// How long the GPU waits for the host in a pass of so many launches that takes `busy` on the GPU: the host runs ahead,
/// so that only the pass as a whole can be too short for it.
Seconds launch_wait(const StepInputs&, Launches, Seconds busy);
/// The same for copies.
Seconds copy_wait(const HostCopies&, Seconds busy);

Segments layer_segments(const StepInputs&, LayerKind = {});
/// Bytes of dispatch, and of combine, for one micro-batch: w T' K h, on the busiest rank.
double dispatch_bytes(const StepInputs&);
Segments embedding_segments(const StepInputs&);
/// Final norm, logits and loss, of multi-token prediction several times with what comes before its layers;
/// `loss_reductions` all-reduces of one fp32 value per token follow the forward.
Segments head_segments(const StepInputs&);
/// Inference: logits of so many rows, gathered and read once to choose the next tokens.
std::vector<Segment> next_token_segments(const StepInputs&, double rows);
/// Of each loss its maximum, sum of exponentials, target logit (Megatron-LM).
inline int loss_reductions(const StepInputs& in) { return 3 * (1 + in.model.mtp_layers); }

/// Compression of gradients, gradient norm, Adam and zeroing on one rank of `stage`, whose GPU's kernels have so much
/// of their usual pace; and what it waits for states from the host, which is no kernel.
std::vector<Operation> optimizer_operations(const StepInputs&, int stage, double pace = 1);

}  // namespace collcast::workload
