// DualPipe (DeepSeek-V3, arXiv 2412.19437, section 3.2.1): micro-batches come from both ends of the pipeline. The model
// is cut into as many slices as there are stages, an even number p; stages i and p-1-i both hold slices i and p-1-i,
// the one nearer to the model's begin as chunk 0. Half of the micro-batches go from stage 0 to stage p-1, the others
// from p-1 to 0, so that each (stage, chunk) passes micro-batches of one way only.
//
// So i and p-1-i do the same at the same time, and what they do is what stage min(i, p-1-i) of DualPipeV does, of p/2
// stages and half of the micro-batches (dualpipe_v.hpp has order and closed form). What is unlike a V: the two stages
// in the middle send each other what the last of a V has by itself, gradients are summed over both stages of a pair,
// and parameters are held twice. DeepSeek's table: bubble (p/2 - 1) (F&B + B - 3W) of a slice's times, activations of
// p + 1 micro-batches.
#pragma once

#include <optional>

#include "workload/schedules/order_walk.hpp"

namespace collcast::workload {

/// Of m micro-batches half come from either end: `passes`, numbered from 0 in each way.
std::vector<Turn> dualpipe_order(int stages, int stage, int passes);

/// As next_place.
std::optional<ChunkPlace> next_in_dualpipe(int stages, int stage, const Turn&);

/// Whether what a chunk of a stage passes goes from the first stage to the last.
bool goes_down(int stages, int stage, int chunk);

/// The closed form, without what the order adds; blocking messages are part of their sender's turns. Of the two stages
/// of a pair the slower counts.
PipelineTerms dualpipe_terms(const ChunkedStages&, int passes);

}  // namespace collcast::workload
