// The parts of a step's explanation, private to this layer. Every term has its formula, the formula with numbers
// that give the figure (to the digits shown), the figure, and where the numbers come from.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collcast/report/documents.hpp"

namespace collcast {

/// A term of so many bytes, where there are any.
class KeptTerms {
 public:
  explicit KeptTerms(Section& out) : out_(out) {}
  void operator()(std::string name, std::string formula, std::string numbers, Volume value, std::string source) const {
    if (value > Volume{})
      out_.terms.push_back(
          {std::move(name), std::move(formula), std::move(numbers), value.value(), "B", std::move(source)});
  }

 private:
  Section& out_;
};

/// A sentence above a section's terms.
inline Paragraph remark(std::string text) { return {std::move(text), Paragraph::Tone::plain}; }

// --- memory and FLOPs: explain_parameters.cpp, explain_memory.cpp, explain_rates.cpp ---
Section parameters_section(const StepInputs&, const ParameterTerms&, int stage);
/// Of one layer of a training step and micro-batch.
Section activations_section(const StepInputs&, const MemoryTerms&);
/// How many layers a stage has: "layers / PP", "80 / 8", with those of multi-token prediction besides; of uneven stages
/// their number.
struct StageLayersText {
  std::string formula, numbers;
  bool uneven = false;
};
StageLayersText stage_layers_text(const StepInputs&, double layers);
/// Of layers: "a layer with an MLP", "layers with an MLP".
const char* layer_text(LayerShape);
const char* layers_text(LayerShape);
/// Those of a stage that it has, in their order.
std::vector<LayerShape> shapes_of_stage(const ParameterTerms&);
std::vector<Section> memory_sections(const StepInputs&, const StepResult&, int gpus_per_node);
Section rates_section(const StepInputs&, const StepResult&);

// --- kernels: explain_step.cpp ---
struct KernelPass {
  const char* name;
  const std::vector<Operation>* kernels;
};
Section kernels_section(const StepInputs&, std::string title, const std::vector<KernelPass>&);

// --- time: explain_time.cpp ---
/// `when`: "step", what they are counted in.
Section collectives_section(const StepReport&, std::string title, const std::string& when,
                            const std::vector<CollectiveCost>&);
/// Of the rank that the parts are of: with faults not all ranks of the stage take the same.
const StageTerms& terms_of_stage(const StepReport&);
Section stage_section(const StepReport&);
Section step_section(const StepReport&);

// --- its closed form: explain_pipeline.cpp ---
Section closed_form_section(const StepReport&);

// --- waits for the host: explain_host.cpp ---
/// ", and 3.2 ms that they wait for the copies": of what is listed before; empty where that is nothing.
std::string waits_for_host(const StepInputs&, Seconds waits);
Term copies_term(const StepInputs&);
/// Which share of the line rate copies have, and where that is from; nothing: the kernel table does not say.
std::optional<std::string> copies_text(const StepInputs&);
/// What an update waits for of the stage's optimizer states that are in the host's memory, if any are; on a GPU whose
/// kernels have so much of their usual pace.
std::optional<Section> state_copies_section(const StepInputs&, int stage, double pace);

// --- gradients and gathered weights: explain_exchange.cpp ---
Term gradients_term(const GradientTerms&);
/// ZeRO-3.
Term sharding_term(const ShardingTerms&, bool overlap);

// --- a machine that is not as described: explain_faults.cpp ---
Section faults_section(const StepReport&);
/// Whether the machine is the same all the step long, so that its parts are multiples of what a micro-batch takes.
bool is_steady(const StepReport&);

// --- a server: explain_serving.cpp, explain_serving_times.cpp, explain_serving_memory.cpp ---
std::vector<Section> serving_sections(const StepReport&);
std::vector<Section> serving_times_sections(const StepReport&);
std::vector<Section> serving_memory_sections(const StepInputs&, const StepResult&, int gpus_per_node);
/// What there is around what is allocated; `layout`: whose ranks talk to each other.
Term nccl_term(const ParallelLayout&, const NcclBuffers&, const MemoryUse&, int gpus_per_node);
Term context_term(const MemoryUse&);
Term peak_term(const MemoryUse&);

/// A sum, of symbols or of numbers.
std::string joined(const std::vector<std::string>& parts);
/// A count, unrounded.
std::string exact(double);
/// Of what a layer keeps for its backward that of latent attention and its indexer: T tokens, in words, and the rows of
/// its small ranks.
void add_latent_activations(Section&, const StepInputs&, const MemoryTerms&, LayerShape, const std::string& tokens,
                            const std::string& rows);
/// Enough digits for the difference of two long times.
std::string precise(Seconds);

}  // namespace collcast
