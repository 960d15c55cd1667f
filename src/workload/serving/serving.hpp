// Inference: a batch of prompts, then a token of each sequence at a time, through the stages of a pipeline.
//
// With F_i the time of stage i for a micro-batch, C_i that of the message behind it, B that of the tokens from the last
// stage back to the first, and M micro-batches:
//   prompts  sum F + sum C + (M - 1) max(F, C)            until the last micro-batch has its first tokens
//   a token  max(sum F + sum C + B, M max(F, C, B))       micro-batches follow each other round the stages
// the second with the context that a token has: of the tokens behind the first, n - 1 of them, the mean. Only attention
// over the kept keys and values depends on the context. The simulation runs the micro-batches through the stages: all
// prompts, then two rounds of tokens with the shortest context, and two with one in the middle and with the longest; a
// round is as long as the second ends behind the first, and between these contexts time is a straight line.
//
// A layer is that of training's forward (layer.cpp); the head has logits of each sequence's last token alone, which TP
// ranks gather. Memory of a rank, at the last token:
//   parameters   w of each; a layer's matrices in fp8 1, of four bits half a byte and their scales
//   KV cache     layers x sequences of a replica x tokens x 2 k d/t elements (latent attention: r_kv + d_r;
//                of sparse attention d bytes and their scales besides)
//   activations  the widest place of a layer with the prompts or the tokens of a micro-batch, whichever are more:
//                w T (2h + max((a + 2k) d, g f, K g f_e + h)/t), g = 2 gated or 1
//   buffers      a message received and one sent; logits w b V
// All sequences of a batch have prompts and answers of one length and come at once; replicas serve a batch each. Left
// out: chunks of prompts beside tokens, tables of pages of the cache, and what the host takes, but for a time of each
// first token that is given (`first_token_overhead`): TTFT is longer by it, in the run of a load each request's, and
// that run by as many as a client has requests.
//
// Continuous batching (Yu et al. 2022, Orca: scheduling by iteration) has C requests of a replica in flight. One that
// has its last token makes place for the next, whose prompt passes before the next iteration, alone, in P; then an
// iteration gives each of the C a token, in D: the time of a token above with a batch of C, mean over the context, as
// requests are anywhere in their answers. So nobody sits out an iteration, and a request is in K = n - 1 of them: its
// place in the batch turns every K iterations. The C - 1 others enter at one of these K turns each, whichever is as
// likely:
//   TTFT = (1 + (C - 1)/(2K)) P          of the (C - 1)/K others that enter at its own turn half come before it
//   TPOT = D + ((C - 1)(1 - 1/(2K))/K) P the prompts of all the others fall between its tokens
//   TTFT + K TPOT = C P + K D            work is conserved: replicas give C n tokens in that (Little's law)
// With speculative decoding (drafts.hpp) a pass of 1 + k tokens of each sequence takes D and brings E of them on the
// mean: of a batch that comes at once TPOT is D/E; requests in flight are in K = (n - 1)/E iterations, and
//   TPOT = D/E + ((C - 1)(1 - 1/(2K))/(n - 1)) P        TTFT + (n - 1) TPOT = C P + K D
// The cache is that of requests in the middle of their answers. Left out besides: requests that wait for memory,
// several prompts in a pass, prompts and tokens in one pass (an iteration that reads its weights once for both), stages
// of a pipeline.
//
// A run of requests (`load`) begins with all clients at once and has lengths that are drawn. It is gone through pass by
// pass (collcast/workload/request_load.hpp), and TTFT and TPOT are what a request waits for on the mean, in prompts, in
// passes with prompts and in tokens. Of mean lengths a prompt alone takes P, as many as a pass has room for, k, take
// P_k together, and a token of all D:
//   P' = (P_k - P)/(k - 1), 0 <= P' <= P     a further prompt of a pass
//   prompts x P' + passes with prompts x (P - P') + tokens x D
// P - P' is what a pass takes whatever is in it: weights are read once, kernels started once. A pass that has room for
// one prompt or a part of it takes that, too: there k is 2, a pass that is priced and never run, so that each part of a
// prompt reads the weights once more.
#pragma once

#include "collcast/workload/step.hpp"
#include "workload/forecast_prices.hpp"
#include "workload/plan.hpp"

namespace collcast::workload {

/// What passes the model at once: the prompts of a micro-batch, or a token of each of its sequences behind `context`,
/// with speculative decoding those that are verified.
StepInputs prompt_pass(const StepInputs&);
/// As many prompts of a load as a pass has room for, and two at the least: what a further one adds is read off them.
StepInputs full_prompt_pass(const StepInputs&);
StepInputs token_pass(const StepInputs&, int context);

Seconds prompts_time(const ServingTimes&);
/// Once round all stages, or the turns of all micro-batches on the slowest: what takes longer.
Seconds round_time(const ServingTimes&);
Seconds turns_time(const ServingTimes&);
Seconds token_time(const ServingTimes&);

/// More memory than sizes are counted to.
Diagnostics check_serving_memory(const StepInputs&, const Origins&);
/// `inputs` with serving.
MemoryUse serving_memory(const StepInputs&, int stage, int gpus_per_node);
/// Of a server whose fullest rank needs that.
std::vector<std::string> serving_warnings(const StepInputs&, const Fabric&, const MemoryUse&);
Result<StepResult> forecast_inference(const StepInputs&, const Fabric&, ForecastPrices&, Method, StepTimeline*,
                                      const EngineOptions&, const Origins&);

}  // namespace collcast::workload
