// One training step of a transformer, or a batch served: operations, memory, timeline, and the closed form beside it.
//
// Per layer and micro-batch a stage computes (roofline per operation) and communicates (TP collectives on
// the critical path); stages exchange activations; replicas reduce gradients in buckets under the last
// backward; then the optimizer runs. All ranks of one pipeline stage do the same at the same time, so one
// rank per stage is simulated. Collectives enter as the time that `CollectiveTime` gives them with their
// sibling groups running alongside; contention between collectives of different kinds is left out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collcast/base/origins.hpp"
#include "collcast/evaluate/evaluate.hpp"
#include "collcast/schedule/traffic_class.hpp"
#include "collcast/workload/category.hpp"
#include "collcast/workload/config.hpp"
#include "collcast/workload/groups.hpp"
#include "collcast/workload/memory_use.hpp"
#include "collcast/workload/request_load.hpp"
#include "collcast/workload/serving_terms.hpp"
#include "collcast/workload/terms.hpp"

namespace collcast {

struct StepInputs {
  TransformerConfig model;
  ParallelLayout layout;
  Batch batch;
  TrainingOptions options;
  GpuSpec gpu;
  KernelModel kernels;
  /// Inference: `batch` is then that of a pass (the prompts', or a token's), and nothing is trained.
  std::optional<Serving> serving = {};
  /// Whose messages go first where they meet on a link, as far as messages are simulated (unfolded_step.hpp): earlier
  /// ones before later ones, and these before those of dimensions that are not named. Empty: all share.
  std::vector<Dimension> priorities = {};
  /// And how those of one priority share it, by dimension; 1 where none is named.
  std::map<Dimension, std::uint16_t> weights = {};
  /// Of each GPU to its host's memory and from there, while all of a node copy (host_link.hpp); 0: there is no way.
  Bandwidth host_bandwidth{};
  NcclBuffers nccl_buffers = {};  ///< as the variables of the job have them

  TrafficClass traffic(Dimension) const;
};

/// Everything wrong with the combination (degrees that do not divide, layouts larger than the fabric, a
/// precision the GPU lacks), each with the nearest value that works. `origins` knows the values by their paths in a
/// scenario: "layout.tp", "model.heads", "batch.global_batch", "training.precision", "nodes", "topology".
/// A job that has a number of ranks of its own (`job_ranks`, the scenario's "ranks") is told that one where these are
/// too few; 0: it has all of the machine's.
Diagnostics check_step(const StepInputs&, int ranks_available, const Origins& origins, int job_ranks = 0);
/// One thing of these: which value is the one to change, by its path, and what is said of it.
struct StepMisfit {
  std::string blamed;
  Diagnostic said;
};
/// The same, each with its value: two combinations have the same fault where they blame the same one.
std::vector<StepMisfit> step_misfits(const StepInputs&, int ranks_available, const Origins& origins, int job_ranks = 0);

/// cached_attention: over kept keys and values, at the rate at which kernels that are bound by memory stream them.
enum class OperationKind {
  gemm,
  grouped_gemm,
  grouped_gemm_gradient,
  attention,
  attention_gradient,
  cached_attention,
  memory
};
/// One kernel of one rank for one micro-batch.
struct Operation {
  std::string name;
  OperationKind kind = OperationKind::gemm;
  Flops flops{};
  Volume bytes{};  ///< moved to and from memory, at least
  Seconds time{};
  std::string bound;           ///< "compute", "memory" or "overhead": the largest term; "power"; "copies": a wait
  std::string precision = {};  ///< whose rate and efficiency counted; empty for memory operations
  /// Of measured products like this one to the roofline above, by which its time was multiplied; 0: there are none.
  double measured_ratio = 0;
  bool extrapolated = false;  ///< beyond the measured products: the ratio is of their edge
  double kernels = 1;         ///< that the host launches for it, one after the other
  /// Which level of what is known of kernels its time is of: "roofline", "measured", "extrapolated" or "sustained".
  bool is_wait() const { return bound == "copies"; }
  const char* level() const {
    if (bound == "power") return "sustained";
    if (measured_ratio > 0) return extrapolated ? "extrapolated" : "measured";
    return "roofline";
  }
};
struct LayerOperations {
  std::vector<Operation> forward;
  std::vector<Operation> backward;   ///< input and weight gradients
  std::vector<Operation> recompute;  ///< forward again inside the backward
  bool empty() const { return forward.empty(); }
};
/// Of the layer that is shown for all: with experts if the model has them, in hybrid models one that attends to keys.
LayerOperations layer_operations(const StepInputs&);
/// Of a layer with linear attention, where another kind is shown (layer_operations); empty without.
LayerOperations linear_attention_operations(const StepInputs&);
/// Of a layer with experts or an MLP alone, of a hybrid model where another is shown; empty for others.
LayerOperations feed_forward_operations(const StepInputs&);
/// The names of such layers' rules among them, and the kernels that each is; its gradient is twice as many.
inline constexpr const char* delta_rule = "gated delta rule";
inline constexpr int delta_rule_kernels = 5;
inline constexpr const char* ssd_scan = "SSD scan";
inline constexpr int ssd_kernels = 5;  ///< decays, products, states, their passing, scan

struct LayerTimes {    ///< the layer that is shown (layer_operations), one micro-batch
  Seconds forward{};   ///< compute and exposed TP, CP and EP
  Seconds backward{};  ///< with recomputation, compute and exposed TP, CP and EP
  Seconds tp_comm{};   ///< all TP collectives, forward and backward
  Seconds tp_exposed{};
  Seconds cp_comm{};  ///< all CP messages and exchanges, forward and backward
  Seconds cp_exposed{};
  Seconds ep_comm{};  ///< all exchanges of experts, forward and backward
  Seconds ep_exposed{};
  Seconds forward_waits{}, backward_waits{};  ///< of forward and backward: for launches, and for copies of activations
};

struct Breakdown {  ///< of the step on its slowest stage; the terms sum to the step
  Seconds compute{}, tp_exposed{}, pp_exposed{}, cp_exposed{}, ep_exposed{}, dp_exposed{}, bubble{}, optimizer{},
      other{};
  Seconds total() const {
    return compute + tp_exposed + pp_exposed + cp_exposed + ep_exposed + dp_exposed + bubble + optimizer + other;
  }
};

/// Of the breakdown's computing: by how much it is longer because collectives hold a part of the GPU beside it, by
/// whose they are. Seconds of a step, of the breakdown's stage.
struct Slowdown {
  double rate = 1;  ///< of products and attention while one runs (KernelModel::beside_collectives)
  Seconds tp{}, cp{}, ep{}, dp{};
  Seconds total() const { return tp + cp + ep + dp; }
};

struct CollectiveCost {                 ///< one kind of collective of the step, as priced
  Dimension dimension = Dimension::tp;  ///< whose exposed time it is part of; embedding gradients: dp
  std::string name;                     ///< "tp all_reduce", "dp reduce_scatter" ...
  CollectiveRequest request;
  std::string algorithm;
  Seconds time{};          ///< of one
  std::int64_t count = 0;  ///< per rank and step
  /// Where the stage's groups of this kind lie on the machine in ways that take different times: how many there are,
  /// and how many as slow as the request's, which counts for all; else 0.
  int groups = 0, slowest_groups = 0;
};

/// Time on the critical path by what is done; `wait`: none of these (a transfer that queues).
struct PathTimes {
  Seconds compute{}, tp{}, pp{}, dp{}, optimizer{}, wait{}, cp{}, ep{};
  Seconds total() const { return compute + tp + pp + dp + optimizer + wait + cp + ep; }
};
struct PathRun {  ///< visits of stages that follow each other and do the same
  int first_stage = 0, last_stage = 0;
  std::string what;  ///< "F mb0 ... mb3, send on"
  int times = 1;     ///< visits, or repetitions of several
  PathTimes time;    ///< of all of them
};
/// The chain of operations that ends last: what would have to be faster for the step to be.
struct CriticalPath {
  PathTimes time;                   ///< sums to the simulated step
  std::vector<PathTimes> by_stage;  ///< a message counts at its sender
  std::vector<PathRun> runs;        ///< first to last; 16 at most, the middle of a longer list summed up
};

struct StageTerms {  ///< of the stage with the most work, of which the layer, the breakdown and the collectives are
  int stage = 0;
  struct Unit {
    std::string name;  ///< "layer", "expert layer", "embedding" or "head"
    int count = 0;
    Seconds compute{}, tp{};  ///< of one, for one micro-batch: forward, backward and recomputation
    Seconds cp{};             ///< of that exposed
    Seconds ep{};             ///< the same
    Seconds waits{};          ///< of compute: for the host's launches, and for copies of activations
  };
  std::vector<Unit> units;
  std::vector<Operation> optimizer;
  Seconds gather{};       ///< of updated parameters
  double dispatched = 1;  ///< of the bytes of all experts' rows, what dispatch and combine send (TokenDispatcher)
};

/// What passes the stages of a server: all prompts (continuous batching: one), or a token of each sequence, mean over
/// the context.
struct ServingPass {
  Seconds estimate{};
  std::optional<Seconds> simulate{};
  Breakdown breakdown;    ///< of the stage with the most work; sums to time()
  int micro_batches = 1;  ///< that it is cut into
  StageTerms stage;       ///< what that stage does for one of them, with the shortest context
  Seconds longer{};       ///< by which its kernels take longer behind more context, mean
  Seconds messages{};     ///< what they add to the pass, at the prices that count
  Seconds time() const { return simulate.value_or(estimate); }
};
/// Until the first token, or from token to token: a pass, and what is waited for others' prompts and tokens.
struct ServingPhase {
  Seconds estimate{};
  std::optional<Seconds> simulate{};
  Breakdown breakdown;                                  ///< of the stage with the most work; sums to time()
  Seconds layer{};                                      ///< one layer, one micro-batch: kernels and communication
  Seconds layer_comm{};                                 ///< of that TP and EP
  std::vector<Operation> operations;                    ///< of that layer
  std::vector<Operation> linear_operations = {};        ///< of one with linear attention, where others have none
  std::vector<Operation> feed_forward_operations = {};  ///< of one with experts or an MLP alone
  std::vector<CollectiveCost> collectives;              ///< of the stage's rank
  ServingPass pass;
  Seconds time() const { return simulate.value_or(estimate); }
};
/// As many prompts of a run of requests as a pass has room for, and two at the least, together.
struct FullPromptPass {
  int prompts = 1;
  ServingPass pass;
  ServingTimes times;  ///< of the closed form
};
struct InferenceResult {
  ServingPhase prefill;                 ///< until the last sequence of the batch has its first token: TTFT
  ServingPhase decode;                  ///< mean over the further tokens: TPOT. Kernels are those of the first of them
  Seconds first_token{}, last_token{};  ///< of decode, by closed form: with the shortest and the longest context
  double tokens_per_s = 0;              ///< of all replicas while they decode
  ServingTimes prompts;                 ///< of the closed form
  TokenTerms tokens;                    ///< the same
  std::optional<SimulatedTokens> simulated_tokens = {};
  std::optional<LoadTimes> load = {};            ///< of a server with one, at the prices that count
  std::optional<FullPromptPass> full_pass = {};  ///< of a server with a load
  /// What one more prompt adds to a pass with one, at the prices that count.
  Seconds further_prompt() const {
    const Seconds one = prefill.pass.time();
    return full_pass ? collcast::further_prompt(one, full_pass->pass.time(), full_pass->prompts) : one;
  }
};

struct StepResult {
  Seconds estimate{};                 ///< closed form
  std::optional<Seconds> simulate{};  ///< timeline
  Seconds step{};                     ///< simulate if there, else estimate
  double tokens_per_s_per_gpu = 0;
  FlopRate model_flops_per_gpu{};  ///< achieved
  double mfu = 0, hfu = 0;
  LayerTimes layer;
  LayerOperations operations;
  LayerOperations linear_operations = {};  ///< linear_attention_operations()
  LayerOperations feed_forward_operations = {};
  Breakdown breakdown;
  Slowdown slowdown;
  MemoryUse memory;  ///< of the fullest rank
  std::vector<MemoryUse> memory_by_stage;
  std::vector<CollectiveCost> collectives;
  std::vector<CollectiveCost> uneven;         ///< those with slowest_groups, of all stages
  std::optional<CriticalPath> critical_path;  ///< of the timeline
  /// Of one layer: TP, exposed CP and EP; of a server from the prompts to the last token, exposed TP and EP; of tasks
  /// all that communicate. Below 2 is warned about; 0: none.
  double compute_to_communication = 0;
  std::vector<std::string> warnings;
  int micro_batches = 0;
  StageTerms stage;                       ///< as priced by the method that counts
  Orders made;                            ///< of a schedule that is made for times, by that method
  ClosedForm closed_form;                 ///< of `estimate`
  std::int64_t simulated_operations = 0;  ///< of the timeline
  int ranks = 0, classes = 0;  ///< simulated: so many that are alike are simulated once; 0: of tasks, or none
  /// `step` is then the batch from its prompts to its last token.
  std::optional<InferenceResult> inference = {};
};

/// A timeline for a trace, one track per stage and stream.
struct StepTimeline {
  Schedule schedule;
  Timeline timeline;
};

enum class Method { estimate, simulate, both };

/// What each stage does in this step, turn by turn: the order of its schedule, and of one that is made for times that
/// for the times of `method`. `inputs` has passed check_step.
Result<OwnSchedule> order_of_work(const StepInputs& inputs, const Fabric&, const CollectivePolicy&, Method,
                                  const EngineOptions& engine = {});

/// `timeline`, if given, receives what was simulated; `engine` is how simulated collectives share links;
/// `origins` as for check_step, and "collectives"; `goes_on` ends closed forms.
Result<StepResult> forecast_step(const StepInputs&, const Fabric&, const CollectivePolicy&, Method,
                                 StepTimeline* timeline = nullptr, const EngineOptions& engine = {},
                                 const Origins& origins = {}, const GoesOn& goes_on = {});

/// By both methods; `by_formula` is the closed form alone where the engine's watch ended the rest, and it was known.
struct StepAsFar {
  Result<StepResult> result;
  std::optional<StepResult> by_formula;
};
StepAsFar forecast_step_as_far(const StepInputs&, const Fabric&, const CollectivePolicy&, StepTimeline* timeline,
                               const EngineOptions&, const Origins& = {}, const GoesOn& goes_on = {});

/// Tasks with given times, for what has been measured already: compute on the compute stream and
/// communication on its own streams of one rank, in order, with waits.
struct Task {
  std::string name;
  std::string stream;  ///< "compute" or a communication stream
  Seconds duration{};
  std::vector<std::string> after;  ///< names of earlier tasks, of other streams
  Category category = Category::compute;
};
struct TaskGraph {
  std::vector<Task> tasks;
  bool overlap = true;  ///< false: everything one after the other
};
Result<StepResult> forecast_tasks(const TaskGraph&, const Fabric&, StepTimeline* timeline = nullptr);

}  // namespace collcast
