// Published training steps, forecast: each row as a step of its model on its machine, and how far off that is.
//
// A row becomes the inputs of a step by its words alone. What no step can be yet (a schedule, an architecture, a
// precision without a kernel table) and what a row does not state is the reason why it is not scored. Which of several
// defaults a framework has where its rows are silent is in validation/src/training/inputs.cpp.
#pragma once

#include <string>
#include <vector>

#include "collcast/evaluate/evaluate.hpp"
#include "collcast/report/training_document.hpp"
#include "collcast/scenario/scenario.hpp"
#include "collcast/validation/scored_machines.hpp"
#include "collcast/validation/telling.hpp"
#include "collcast/validation/training_table.hpp"
#include "collcast/workload/step.hpp"

namespace collcast {

/// Whose memory beside the model's is known (validation/src/training/memory.cpp).
enum class Framework { other, deepspeed, torchtitan, nanotron, llm_foundry, internevo, megatron };

struct TrainingStep {
  StepInputs inputs;
  Framework framework = Framework::other;
  MemoryMeasure measure = MemoryMeasure::allocated;
  bool gradients_by_all_reduce = false;  ///< where ZeRO 1 needs no more than a reduce-scatter
  Seconds collective_launch{};           ///< of each collective, where the host waits for every kernel
  Bytes kept_besides{};                  ///< by the framework all the time, beyond what the model's step needs
  std::vector<std::string> assumed;      ///< what the row does not state, and was taken
};
/// The row as a step on that machine, or every reason why it is none yet.
Result<TrainingStep> training_step(const TrainingRow&, const ScoredPlace&);

/// Seconds of one step as the row states or implies them; nothing where it does not.
struct MeasuredStep {
  Seconds time{};
  std::string by;  ///< the column: iter_s, tok_s_gpu, samples_s, tflops_gpu
};
std::optional<MeasuredStep> measured_step(const TrainingRow&, const StepInputs&);

/// Of the stage that allocates most; `made` as for memory_terms.
TrainingMemory training_memory(const TrainingStep&, int gpus_per_node, const Orders& made = {});
/// What the row's figure counts.
MemoryMeasure memory_measure(const TrainingRow&);
/// Nothing where the row states none, or ended for want of it.
std::optional<Bytes> measured_memory(const TrainingRow&);

/// What a collective of the step takes as the row's framework runs it.
CollectiveTime as_run(const TrainingStep&, const CollectiveTime&);

/// Which rows are alternatives for one job, and which are one configuration measured twice.
std::string job_of(const TrainingRow&);
std::string configuration_of(const TrainingRow&);

struct TrainingQuestion {
  CollectivePolicy collectives;  ///< library nccl unless asked otherwise
  bool simulate = false;
  EngineOptions engine = {};  ///< of simulations
};
/// Every row scored, or listed with the reason why not. The same bytes whatever the number of threads, unless
/// `goes_on`, which they all ask, ends it: rows that there was no time for are counted.
TrainingReport validate_training(const TrainingTables&, const ScoredMachines&, const TrainingQuestion&,
                                 const Telling& tell = {}, const GoesOn& goes_on = {});

/// Puts into each row the forecast times one scale per source, GPU and precision, fitted to the others of them: never
/// to rows of the same configuration. A row that has no others keeps none.
void cross_validate(std::vector<TrainingDeviation>&);

}  // namespace collcast
