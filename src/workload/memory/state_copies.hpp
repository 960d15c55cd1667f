// The update of a rank's parameters, and optimizer states that are in the host's memory between updates
// (training.optimizer_state_offload), as Megatron-Core moves them
// (megatron/core/optimizer/cpu_offloading/chunked_optimizer_state_offload.py).
//
// Of the share f of the parameters that a rank updates: their fp32 parameters (or what of these the weights do not
// have), p bytes each, and their moments, m bytes each, in n chunks of as many parameters. One stream copies to the
// GPU, one back, both at line rate of the way to the host while all GPUs of a node copy (host_link.hpp) x host_copies
// of the kernel table. c: copy of a chunk one way, s: its kernels.
//
//   gradients are reduced      the norm runs; fp32 parameters, and behind them the first chunk, set out
//   fp32 parameters are there  what stays on the GPU is updated
//   chunk i is there, and      chunk i is updated, and behind that goes back; chunk i + 1 sets out, when chunk i - 1,
//   the kernels before it over whose place on the GPU it takes, has gone back
//   all is updated             fp32 parameters go back, beside what comes next
//
// So two chunks in a row take 2 c + s, or 2 s where that is more.
//
// On the GPU: between updates 1 - f of the states; at an update besides f of the fp32 parameters, two chunks of moments
// (one, where there is no other) and, of states that are kept narrower, fp32 copies of those that are updated together;
// and when the forwards are over that are held what has not gone back, the more the shorter they are.
//
// Left out: that chunks are of whole parameters; that experts have chunks, and two places, of their own; that the first
// copies set out with the last of the gradients' exchange, which is over here; the wait of the next update for copies
// that are not over (`step` says where that would be); copies of activations on the same way.
#pragma once

#include <vector>

#include "workload/layer/kernels.hpp"

namespace collcast::workload {

/// That a rank of the stage updates.
double owned_parameters(const StepInputs&, int stage);
/// Of so many parameters: the norm of their gradients, behind their copy in fp32 where the optimizer has one; and what
/// updates them, in so many goes.
std::vector<Operation> norm_kernels(const StepInputs&, double parameters);
std::vector<Operation> update_kernels(const StepInputs&, double parameters, int updates);

/// Share of the optimizer's states that is on the host between updates; 0: none.
double offloaded_states(const TrainingOptions&);
/// Chunks that the moments of so many parameters come in, if any are on the host.
int state_chunks(const TrainingOptions&, double parameters);
/// Of so many bytes that are on the GPU at an update what is there yet when so many forwards (of a chunk of the
/// model's) are over, if these are products alone, at the rate of a linear layer's.
Volume still_returning(const StepInputs&, Volume returned, int forwards);

}  // namespace collcast::workload
