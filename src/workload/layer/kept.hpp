// Activations of one layer and micro-batch on one rank.
#pragma once

#include "collcast/workload/step.hpp"
#include "workload/layer/share.hpp"

namespace collcast::workload {

/// Of a layer that keeps these.
ActivationTerms activations_with(const StepInputs&, const KeptTensors&, LayerShape);
/// As recomputation leaves them.
ActivationTerms kept_activations(const StepInputs&, LayerShape);
/// What a layer keeps from a zero-bubble backward to its weight gradients.
Volume kept_for_weights(const StepInputs&, const Share&, LayerShape);
/// Of what a layer has in its backward what its weight gradients wait for: the inputs of its matrices.
Volume inputs_of_weights(const StepInputs&, const Share&, LayerShape);
/// Of one layer and micro-batch; the working set of full recomputation not counted.
Volume layer_activations(const StepInputs&, LayerShape = {});

}  // namespace collcast::workload
