// Everything wrong with a model, layout, batch and GPU together; each with the nearest value that works.
#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "collcast/base/product.hpp"
#include "collcast/base/units.hpp"
#include "collcast/workload/own_schedule.hpp"
#include "collcast/workload/step.hpp"
#include "workload/checks/misfits.hpp"
#include "workload/gradient_exchange.hpp"
#include "workload/layer/parameters.hpp"

namespace collcast {

namespace {

using workload::Hint;
using workload::near_divisors;
using workload::nearest_divisors;

class Check {
 public:
  Check(const StepInputs& in, int ranks, const Origins& origins, int job_ranks = 0)
      : in_(in), ranks_(ranks), job_ranks_(job_ranks), origins_(origins), misfits_{in, origins} {}

  /// Values by themselves, which the rest divides by.
  const workload::Misfits& values() {
    sizes();
    return misfits_;
  }

  /// Values that are good by themselves, held to each other.
  const workload::Misfits& together() {
    tensor_parallel();
    workload::check_experts(misfits_);
    workload::check_linear_attention(misfits_);
    const std::size_t before_stages = misfits_.found.size();
    workload::check_pipeline(misfits_);
    const bool has_stages = misfits_.found.size() == before_stages;
    sharding();
    workload::check_context(misfits_);
    workload::check_sparse(misfits_);
    if (in_.serving)
      serving();
    else
      batch();
    machine();
    if (!in_.serving) {
      // Of layers that do not go into the stages there are no gradients to cut, and chunks beyond any number to go
      // through.
      if (has_stages) buckets();
      workload::check_communication(misfits_);
      workload::check_recompute(misfits_);
      workload::check_offloading(misfits_);
      workload::check_optimizer(misfits_);
      workload::check_adapters(misfits_);
      workload::check_narrow_products(misfits_);
    }
    workload::check_kernels(misfits_);
    return misfits_;
  }

 private:
  void wrong(const std::vector<std::string>& paths, std::string message, Hint hint) {
    misfits_.wrong(paths, std::move(message), std::move(hint));
  }
  std::string seen(const std::string& path) const { return misfits_.seen(path); }

  void positive(const std::string& section, const char* name, int value) {
    if (value < 1)
      wrong({section + "." + name}, std::string(name) + " is " + std::to_string(value), "expected at least 1");
  }

  void sizes() {
    const TransformerConfig& m = in_.model;
    const ParallelLayout& l = in_.layout;
    positive("model", "layers", m.layers);
    if (m.layers > most_layers)
      wrong({"model.layers"}, "layers is " + std::to_string(m.layers), "expected up to " + std::to_string(most_layers));
    further_tokens();
    positive("model", "hidden", m.hidden);
    positive("model", "heads", m.heads);
    positive("model", "kv_heads", m.kv_heads);
    positive("model", "head_dim", m.head_dim);
    positive("model", "ffn", m.ffn);
    positive("model", "vocab", m.vocab);
    positive("layout", "tp", l.tp);
    positive("layout", "pp", l.pp);
    positive("layout", "dp", l.dp);
    positive("layout", "vpp", l.vpp);
    positive("batch", "sequence", in_.batch.sequence);
    positive("batch", "micro_batch", in_.batch.micro_batch);
    positive("batch", "global_batch", in_.batch.global_batch);
    positive("layout", "cp", l.cp);
    positive("layout", "ep", l.ep);
    if (l.etp < 0)
      wrong({"layout.etp"}, "etp is " + std::to_string(l.etp), "expected at least 1, or 0 for as many as tp");
    workload::check_expert_sizes(misfits_);
    latent_sizes();
    window();
    workload::check_linear_sizes(misfits_);
    workload::check_hybrid(misfits_);
    workload::check_sparse_sizes(misfits_);
    gate();
    beside();
    if (in_.options.bucket && *in_.options.bucket < Bytes(1))
      wrong({"training.bucket"}, "the gradient bucket is empty", "expected a size such as 40MB");
    if (in_.options.gradient_bytes != 2 && in_.options.gradient_bytes != 4)
      wrong({"training.gradient_bytes"}, "gradient_bytes is " + std::to_string(in_.options.gradient_bytes),
            "expected 4 (fp32) or 2 (16 bit)");
    if (in_.options.zero < 0 || in_.options.zero > 3)
      wrong({"training.zero"}, "zero is " + std::to_string(in_.options.zero), "expected 0 to 3");
    if (l.dp_shard < 0)
      wrong({"layout.dp_shard"}, "dp_shard is " + std::to_string(l.dp_shard),
            "expected at least 1, or 0 for all of dp");
    if (!(m.dropout >= 0 && m.dropout < 1))
      wrong({"model.dropout"}, "dropout is " + std::to_string(m.dropout), "expected 0 to below 1");
  }

  void latent_sizes() {
    const TransformerConfig& m = in_.model;
    const LatentAttention& a = m.latent;
    if (a.kv_rank == 0) {
      if (a.q_rank > 0 || a.nope > 0 || a.rope > 0 || a.value > 0)
        wrong({"model.mla.kv_rank", "model.mla"}, "latent attention has a rank of keys and values",
              "give model.mla.kv_rank");
      return;
    }
    positive("model.mla", "nope", a.nope);
    positive("model.mla", "rope", a.rope);
    positive("model.mla", "value", a.value);
    if (m.kv_heads != m.heads || (a.nope >= 1 && a.rope >= 1 && m.head_dim != a.nope + a.rope))
      wrong({m.kv_heads != m.heads ? "model.kv_heads" : "model.head_dim", "model.mla", "model.heads"},
            "latent attention has keys and values for each of the " + std::to_string(m.heads) + " heads" +
                seen("model.heads") + ", of nope + rope elements",
            "leave out kv_heads and head_dim");
  }

  /// Which layers have none means something beside some that have one.
  void no_window() {
    const SlidingWindow& w = in_.model.window;
    const std::string key = w.full_every > 0 ? "full_every" : w.full_first > 0 ? "full_first" : "full_at";
    if (!origins_.knows("model.window.tokens"))
      return wrong({"model.window.tokens", "model.window"}, "a sliding window says how many tokens it has",
                   "give model.window.tokens");
    wrong({"model.window." + key, "model.window.tokens"},
          key + " has no meaning without a window: tokens is 0" + seen("model.window.tokens"),
          "leave it out, or use more tokens");
  }

  void window() {
    const TransformerConfig& m = in_.model;
    const SlidingWindow& w = m.window;
    for (const auto& [name, value] :
         {std::pair{"tokens", w.tokens}, {"full_every", w.full_every}, {"full_first", w.full_first}})
      if (value < 0)
        wrong({std::string("model.window.") + name}, std::string(name) + " is " + std::to_string(value),
              "expected at least 0");
    if (w.tokens == 0 && (w.full_every > 0 || w.full_first > 0 || !w.full_at.empty())) no_window();
    if (w.tokens > 0 && m.layers >= 1 && m.layers <= most_layers && windowed_layers(m) == 0)
      wrong(
          {w.full_first >= m.layers ? "model.window.full_first" : "model.window.full_every", "model.layers"},
          "none of the " + std::to_string(m.layers) + " layers" + seen("model.layers") + " has a sliding window",
          w.full_first >= m.layers ? "use a smaller full_first, or no window" : "use another full_every, or no window");
    if (w.tokens > 0 && !m.causal)
      wrong({"model.window.tokens", "model.causal"},
            "a sliding window of " + std::to_string(w.tokens) + " tokens is modelled of causal attention" +
                seen("model.causal"),
            "use causal: true, or no window");
    if (in_.serving && !in_.serving->kv_window && w.tokens == 0)
      wrong({"inference.kv_window", "model"}, "kv_window has no effect on a model without a sliding window",
            "leave it out");
  }

  void further_tokens() {
    const char* path = "model.mtp_num_layers";
    const int layers = in_.model.mtp_layers;
    if (layers < 0 || layers > most_mtp_layers)
      wrong({path}, "mtp_num_layers is " + std::to_string(layers), "expected 0 to " + std::to_string(most_mtp_layers));
    const bool drafts = in_.serving && in_.serving->speculation;
    const bool by_modules = drafts && in_.serving->speculation->method == DraftMethod::mtp;
    if (by_modules && in_.model.learned_positions > 0)
      wrong({"inference.speculative.method", "model.learned_positions"},
            "method mtp drafts by layers that go with rotary positions or none" + seen("model.learned_positions"),
            "use method ngram");
    else if (by_modules && layers < 1)
      wrong({path, "inference.speculative.method"},
            "method mtp" + seen("inference.speculative.method") + " drafts by layers that predict further tokens",
            "use 1 or more of them, or method ngram");
    else if (layers > 0 && in_.model.learned_positions > 0)
      wrong({path, "model.learned_positions"},
            "layers that predict further tokens go with rotary positions or none" + seen("model.learned_positions"),
            "leave mtp_num_layers out, or learned_positions");
    if (layers > 0 && in_.serving && !by_modules)
      wrong({path, "inference"}, "a server has no use of layers that predict further tokens here" + seen("inference"),
            "leave mtp_num_layers out, or draft by them: inference.speculative with method mtp");
    if (layers > 0 && !in_.serving && !in_.options.embedding_and_logits)
      wrong({path, "training.embedding_and_logits"},
            "layers that predict further tokens need embedding and logits" + seen("training.embedding_and_logits"),
            "leave mtp_num_layers out, or use embedding_and_logits: true");
  }

  void gate() {
    const TransformerConfig& m = in_.model;
    if (m.attention_gate && m.latent.kv_rank > 0)
      wrong({"model.attention_gate", "model.mla"},
            "a gate of what latent attention gives is not modelled" + seen("model.mla"), "leave attention_gate out");
    if (m.attention_gate && m.biases)
      wrong({"model.attention_gate", "model.biases"},
            "a gate of what attention gives is modelled without biases" + seen("model.biases"), "use biases: false");
  }

  void beside() {
    const TransformerConfig& m = in_.model;
    if (m.parallel_mlp.norms < 0 || m.parallel_mlp.norms > 2)
      wrong({"model.parallel_mlp.norms"}, "norms is " + std::to_string(m.parallel_mlp.norms),
            "expected 1 or 2, or 0: the MLP comes after attention");
    if (m.parallel_mlp.norms > 0 && m.experts.count > 0)
      wrong({"model.parallel_mlp.norms", "model.parallel_mlp", "model.experts.count"},
            "experts beside attention are not modelled" + seen("model.experts.count"), "use norms 0");
  }

  struct Divided {
    const char *what, *path;
    int value;
  };
  /// What sequence parallelism splits: of a sample, or of the part of it that a rank of CP has.
  Divided rows_of_sequence() const {
    const int cp = in_.layout.cp, tokens = in_.batch.sequence;
    if (cp == 1 || tokens % cp != 0) return {"sequence (sequence_parallel)", "batch.sequence", tokens};
    return {"sequence / cp (sequence_parallel)", "batch.sequence", tokens / cp};
  }

  void tensor_parallel() {
    const TransformerConfig& m = in_.model;
    const int tp = in_.layout.tp;
    if (m.heads % m.kv_heads != 0)
      wrong({"model.kv_heads", "model.heads"},
            std::to_string(m.kv_heads) + " kv_heads do not divide " + std::to_string(m.heads) + " heads" +
                seen("model.heads"),
            "use " + nearest_divisors(m.heads, m.kv_heads) + " kv_heads");
    std::vector<Divided> all;
    if (m.pattern.empty() || attending_layers(m) > 0) all.push_back({"heads", "model.heads", m.heads});
    if (mlp_layers(m) > 0) all.push_back({"ffn", "model.ffn", m.ffn});
    if (m.experts.count > 0 && m.experts.shared_ffn > 0)
      all.push_back({"shared_ffn", "model.experts.shared_ffn", m.experts.shared_ffn});
    if (m.linear.key_heads > 0) all.push_back({"key_heads", "model.linear_attention.key_heads", m.linear.key_heads});
    // A server's prompts pass together, of as many sequences as serving() asks for, or each alone.
    if (in_.layout.sequence_parallel && !in_.serving)
      all.push_back(rows_of_sequence());
    else if (in_.layout.sequence_parallel && in_.serving->is_continuous())
      all.push_back({"prompt_tokens (sequence_parallel)", "inference.prompt_tokens", in_.serving->prompt_tokens});
    int common = 0;
    for (const auto& [what, path, value] : all)
      if (origins_.good(path)) common = std::gcd(common, value);
    // Whole KV heads per rank, or whole ranks per KV head.
    const auto fits_kv = [&](int degree) {
      return !origins_.good("model.kv_heads") || m.kv_heads % degree == 0 || degree % m.kv_heads == 0;
    };
    // One tp is one mistake, however much it does not divide.
    std::string misfits;
    for (const auto& [what, path, value] : all)
      if (value % tp != 0 && origins_.good(path))
        misfits +=
            std::string(misfits.empty() ? "does not divide " : ", ") + what + " " + std::to_string(value) + seen(path);
    if (!fits_kv(tp) && (misfits.empty() || m.kv_heads != m.heads))
      misfits += std::string(misfits.empty() ? "" : ", and ") + "neither divides kv_heads " +
                 std::to_string(m.kv_heads) + " nor is a multiple of it" + seen("model.kv_heads");
    if (!misfits.empty())
      wrong({"layout.tp"}, "tp " + std::to_string(tp) + " " + misfits,
            Hint::use("tp", &ParallelLayout::tp, near_divisors(common, tp, fits_kv)));
    if (in_.options.overlap_tp == TpOverlap::ring && tp > 1 && !in_.layout.sequence_parallel && !in_.serving)
      wrong({"training.overlap_tp", "layout.sequence_parallel", "layout.tp"},
            "rings of overlap_tp need sequence parallelism with tp " + std::to_string(tp) + seen("layout.tp") +
                ": without it nothing is gathered",
            "use sequence_parallel: true, or overlap_tp: backward");
  }

  void sharding() {
    const ParallelLayout& l = in_.layout;
    if (l.dp_shard > 0 && l.dp % l.dp_shard != 0)
      wrong(
          {"layout.dp_shard", "layout.dp"},
          "dp_shard " + std::to_string(l.dp_shard) + " does not divide dp " + std::to_string(l.dp) + seen("layout.dp"),
          Hint::use("dp_shard", &ParallelLayout::dp_shard, near_divisors(l.dp, l.dp_shard)));
    if (in_.options.no_sync && in_.options.zero == 2 && (l.replicas() > 1 || l.expert_replicas() > 1))
      wrong({"training.no_sync", "training.zero"},
            "zero 2" + seen("training.zero") + " splits gradients after every micro-batch, which no_sync puts off",
            "use zero 1, which is zero 2 put off, or zero 3");
  }

  /// On a stage of zero bubble.
  std::int64_t turns_of_micro_batch() const { return std::int64_t{3} * in_.layout.chunks() / in_.layout.twins(); }

  void batch() {
    const std::int64_t per_pass = std::int64_t{in_.batch.micro_batch} * in_.layout.dp;
    const std::int64_t global = in_.batch.global_batch;
    const bool rounds = in_.layout.schedule == PipelineSchedule::interleaved;
    // The stages of an interleaved schedule pass micro-batches round pp at a time; DualPipe has as many from either
    // end.
    const std::int64_t fits = per_pass * (rounds ? in_.layout.pp : in_.layout.twins());
    const std::int64_t below = global / fits * fits;
    std::vector<std::int64_t> samples{below + fits};
    if (below > 0) samples.insert(samples.begin(), below);
    const Hint nearest = Hint::use("", samples, [](StepInputs& in, int value) { in.batch.global_batch = value; });
    if (global % per_pass != 0)
      wrong({"batch.global_batch", "batch.micro_batch", "layout.dp"},
            "global_batch " + std::to_string(global) + " is not a multiple of micro_batch " +
                std::to_string(in_.batch.micro_batch) + seen("batch.micro_batch") + " x dp " +
                std::to_string(in_.layout.dp) + seen("layout.dp"),
            nearest);
    else if (is_own(in_.layout.schedule))
      workload::check_own_micro_batches(misfits_, global / per_pass, per_pass);
    else if (global % fits != 0)
      wrong(
          {"batch.global_batch", "batch.micro_batch", "layout.dp", "layout.pp", "layout.schedule"},
          "global_batch " + std::to_string(global) + " is " + std::to_string(global / per_pass) +
              (rounds ? " micro-batches, not a multiple of pp " + std::to_string(in_.layout.pp) + seen("layout.pp") +
                            ", as schedule interleaved" + seen("layout.schedule") + " needs"
                      : " micro-batches; schedule dualpipe" + seen("layout.schedule") + " has as many from either end"),
          nearest);
    else if (!splits_backward(in_.layout.schedule))
      turns(global, per_pass, rounds ? in_.layout.pp : 1);
    else if (const std::int64_t most = made_for_times(in_.layout.schedule) ? 1'000'000 : 10'000'000;
             global / per_pass > most / (turns_of_micro_batch() * in_.layout.pp))
      wrong({"batch.global_batch", "batch.micro_batch", "layout.dp", "layout.pp", "layout.schedule"},
            "global_batch " + std::to_string(global) + " makes more than " + std::to_string(most) + " turns of " +
                std::to_string(turns_of_micro_batch()) + " x micro-batches x pp " + std::to_string(in_.layout.pp) +
                seen("layout.pp"),
            "use fewer samples, or schedule: 1f1b");
    if (in_.model.learned_positions > 0 && in_.batch.sequence > in_.model.learned_positions)
      wrong({"batch.sequence", "model.learned_positions"},
            "sequence " + std::to_string(in_.batch.sequence) + " is longer than the model's " +
                std::to_string(in_.model.learned_positions) + " learned positions" + seen("model.learned_positions"),
            {"use a sequence of at most " + std::to_string(in_.model.learned_positions),
             [](StepInputs& in) { in.batch.sequence = in.model.learned_positions; }});
  }

  /// What a batch of prompts and answers needs.
  void serving() {
    const Serving& s = *in_.serving;
    const int batch = std::max(s.batch, 1), cut = std::max(s.micro_batches, 1);
    for (const auto& [name, value, least] : {std::tuple<const char*, int, int>{"batch", s.batch, 1},
                                             {"prompt_tokens", s.prompt_tokens, 1},
                                             {"output_tokens", s.output_tokens, 2},
                                             {"microbatches", s.micro_batches, 1}})
      if (value < least)
        wrong({"inference." + std::string(name)}, std::string(name) + " is " + std::to_string(value),
              "expected at least " + std::to_string(least));
    if (batch % cut != 0)
      wrong({"inference.microbatches", "inference.batch"},
            "microbatches " + std::to_string(cut) + " does not divide batch " + std::to_string(batch) +
                seen("inference.batch"),
            "use microbatches " + nearest_divisors(batch, cut));
    else if (in_.layout.sequence_parallel && batch / cut % in_.layout.tp != 0)
      wrong({"inference.batch", "layout.sequence_parallel", "layout.tp", "inference.microbatches"},
            "a token of each of the " + std::to_string(batch / cut) +
                " sequences of a micro-batch cannot be split over tp " + std::to_string(in_.layout.tp) +
                seen("layout.tp") + ", as sequence_parallel" + seen("layout.sequence_parallel") + " does",
            "use a batch of " + std::to_string(in_.layout.tp * cut) + " or a multiple");
    const std::int64_t longest = std::int64_t{s.prompt_tokens} + s.output_tokens;
    if (in_.model.learned_positions > 0 && longest > in_.model.learned_positions)
      wrong({"inference.prompt_tokens", "inference.output_tokens", "model.learned_positions"},
            "prompt_tokens " + std::to_string(s.prompt_tokens) + " and output_tokens " +
                std::to_string(s.output_tokens) + seen("inference.output_tokens") + " are more than the model's " +
                std::to_string(in_.model.learned_positions) + " learned positions" + seen("model.learned_positions"),
            "use " + std::to_string(in_.model.learned_positions) + " together or less");
    if (s.batching == Batching::continuous) in_flight();
    if (s.load) load();
    workload::check_speculation(misfits_);
    not_of_serving();
  }

  /// What a run of requests needs.
  void load() {
    const Serving& s = *in_.serving;
    if (!s.is_continuous()) {
      wrong({"inference.load", "inference.batching"},
            "requests that come and go are not of batching static" + seen("inference.batching"),
            {"use batching: continuous", [](StepInputs& in) { in.serving->batching = Batching::continuous; }});
      return;
    }
    const int batch = std::max(s.batch, 1), clients = s.clients();
    if (clients < batch)
      wrong({"inference.load.concurrency", "inference.batch"},
            "concurrency " + std::to_string(clients) + " never fills batch " + std::to_string(batch) +
                seen("inference.batch"),
            {"use batch " + std::to_string(clients), [clients](StepInputs& in) { in.serving->batch = clients; }});
    if (s.run_requests() < clients)
      wrong({"inference.load.requests", "inference.load.concurrency", "inference.batch"},
            "requests " + std::to_string(s.run_requests()) + " are fewer than the " + std::to_string(clients) +
                " that come at once" + seen("inference.load.concurrency"),
            "use at least as many; benchmarks take ten of each client");
    const int tokens = s.load->max_batched_tokens;
    const int each = s.verified_tokens(), running = each * batch;
    if (tokens <= running)
      wrong({"inference.load.max_batched_tokens", "inference.batch"},
            "max_batched_tokens " + std::to_string(tokens) + " leaves no room for prompts beside " +
                (each == 1 ? "a token" : std::to_string(each) + " tokens") + " of each of " + std::to_string(batch) +
                " requests" + seen("inference.batch"),
            each == 1 ? "use more than the batch" : "use more than " + std::to_string(running));
    else
      passes_of_load(tokens - running);
  }
  /// The run is gone through pass by pass, request by request.
  void passes_of_load(int room) {
    constexpr std::int64_t most_requests = 1'000'000, most = 10'000'000;
    const Serving& s = *in_.serving;
    if (s.run_requests() > most_requests) {
      wrong({"inference.load.requests", "inference.load.concurrency", "inference.batch"},
            std::to_string(s.run_requests()) + " requests, ten of each client, are more than " +
                std::to_string(most_requests),
            {"use requests: " + std::to_string(most_requests),
             [](StepInputs& in) { in.serving->load->requests = most_requests; }});
      return;
    }
    const std::int64_t of_a_prompt = 1 + std::max(s.prompt_tokens, 1) / room;
    if (std::int64_t{s.run_requests()} <= most / of_a_prompt) return;
    wrong({"inference.load.requests", "inference.load.max_batched_tokens", "inference.load.concurrency",
           "inference.batch"},
          std::to_string(s.run_requests()) + " requests with prompts in " + std::to_string(of_a_prompt) +
              " parts are more than " + std::to_string(most) + " passes",
          "use fewer requests, or more max_batched_tokens");
  }

  void in_flight() {
    const ParallelLayout& l = in_.layout;
    const int cut = in_.serving->micro_batches;
    if (l.pp > 1)
      wrong({"layout.pp", "inference.batching"},
            "pp " + std::to_string(l.pp) + " is not modelled with batching continuous" + seen("inference.batching"),
            "use pp 1, or batching: static");
    else if (cut > 1)
      wrong({"inference.microbatches", "inference.batching"},
            "microbatches " + std::to_string(cut) + " cut a batch that comes at once: not with batching continuous" +
                seen("inference.batching"),
            "leave it out, or use batching: static");
  }

  /// What only training has.
  void not_of_serving() {
    const ParallelLayout& l = in_.layout;
    if (l.cp > 1) wrong({"layout.cp"}, "cp " + std::to_string(l.cp) + " is not modelled for inference", "use cp 1");
    if (l.vpp > 1 || l.schedule != PipelineSchedule::one_f_one_b)
      wrong({"layout.schedule"}, "a schedule of backward passes has no effect on inference", "leave it out");
    if (in_.options.recompute != Recompute::none || in_.options.zero > 0 || in_.options.optimizer)
      wrong({"inference"}, "recomputation, ZeRO and the optimizer have no part in inference", "leave them out");
    if (in_.options.attention != Attention::flash)
      wrong({"inference"}, "inference is modelled with flash attention", "use attention: flash");
    if (!in_.model.causal)
      wrong({"model.causal"}, "a model whose attention looks ahead keeps no keys and values", "use causal: true");
  }

  /// The order of work is gone through turn by turn: no more of them than a person could mean.
  void turns(std::int64_t global, std::int64_t per_pass, int in_round) {
    constexpr std::int64_t most = 10'000'000;
    const ParallelLayout& l = in_.layout;
    const std::int64_t fits = per_pass * in_round;
    const bool has_chunks = l.schedule == PipelineSchedule::interleaved;
    const std::optional<std::int64_t> round = product_within({in_round, l.pp, l.chunks()}, most);
    if (!round || global / fits > most / *round)
      wrong({"batch.global_batch", "batch.micro_batch", "layout.dp", "layout.pp", "layout.vpp"},
            "global_batch " + std::to_string(global) + " makes more than " + std::to_string(most) +
                " turns of micro-batches x pp " + std::to_string(l.pp) + seen("layout.pp") +
                (has_chunks ? " x vpp " + std::to_string(l.vpp) + seen("layout.vpp") : std::string()),
            round ? "use " + std::to_string(most / *round * fits) + " or less" : "use a smaller pp");
  }

  /// The most replicas up to so many that all goes with that goes with dp now.
  Hint fewer_replicas(int most) const {
    const ParallelLayout& l = in_.layout;
    const auto passes = [&](int dp) { return in_.batch.global_batch / (std::int64_t{in_.batch.micro_batch} * dp); };
    const bool batch = !in_.serving && origins_.good("batch.global_batch") && origins_.good("batch.micro_batch");
    const std::function<bool(int)> conditions[] = {
        [&](int dp) { return l.dp_shard == 0 || dp % l.dp_shard == 0; },
        [&](int dp) { return !batch || in_.batch.global_batch % (std::int64_t{in_.batch.micro_batch} * dp) == 0; },
        [&](int dp) { return !batch || l.schedule != PipelineSchedule::interleaved || passes(dp) % l.pp == 0; },
        [&](int dp) { return !batch || passes(dp) % l.twins() == 0; },
        [&](int dp) { return !batch || !is_own(l.schedule) || passes(dp) == l.own->micro_batches; },
        [&](int dp) { return std::int64_t{l.tp} * l.cp * dp % (std::int64_t{l.expert_tp()} * l.ep) == 0; },
    };
    int dp = most;
    while (dp > 0 && !std::ranges::all_of(conditions, [&](const auto& goes) { return !goes(l.dp) || goes(dp); })) --dp;
    return dp > 0 ? "use dp " + std::to_string(dp) + ", or more nodes"
                  : std::string("use a smaller tp or pp, or more nodes");
  }

  void machine() {
    const ParallelLayout& l = in_.layout;
    const std::int64_t replica = std::int64_t{l.tp} * l.pp * l.cp;
    const std::string degrees = "tp " + std::to_string(l.tp) + " x pp " + std::to_string(l.pp) +
                                (l.cp > 1 ? " x cp " + std::to_string(l.cp) : std::string());
    const std::string there =
        " GPUs, the machine has " + std::to_string(ranks_) + seen(origins_.knows("nodes") ? "nodes" : "topology");
    const std::size_t before = misfits_.found.size();
    if (job_ranks_ > 0 && l.dp > job_ranks_ / replica)
      wrong({"ranks", "layout.tp", "layout.pp", "layout.cp", "layout.dp"},
            "the layout needs " + std::to_string(replica * l.dp) + " GPUs, ranks is " + std::to_string(job_ranks_),
            "use ranks " + std::to_string(replica * l.dp) + ", or a smaller layout");
    else if (replica > ranks_)
      wrong({l.tp >= l.pp ? "layout.tp" : "layout.pp", "layout.tp", "layout.pp", "nodes", "topology.devices"},
            degrees + " needs " + std::to_string(replica) + there, "use a smaller tp or pp, or more nodes");
    else if (l.dp > ranks_ / replica)
      wrong({"layout.dp", "layout.tp", "layout.pp", "nodes", "topology.devices"},
            degrees + " x dp " + std::to_string(l.dp) + " needs " + std::to_string(replica * l.dp) + there,
            fewer_replicas(static_cast<int>(ranks_ / replica)));
    misfits_.too_large = misfits_.found.size() > before;
  }

  /// Of a bucket that the user chose. ZeRO-3 has none: it gathers weights and reduces gradients layer by layer.
  void buckets() {
    const std::vector<std::string> paths{"training.bucket", "training", "model", "layout"};
    const bool known = std::ranges::all_of(paths, [&](const std::string& path) { return origins_.good(path); });
    if (!known || !in_.options.bucket || in_.options.zero == 3 || !workload::exchanges_gradients(in_)) return;
    const double largest = workload::largest_gradients(in_);
    if (!workload::is_bucket_too_small(*in_.options.bucket, largest)) return;
    wrong(paths,
          "a gradient bucket of " + format_bytes(*in_.options.bucket) + " cuts " + format_bytes(Volume(largest)) +
              " of gradients into more than " + std::to_string(workload::most_buckets) + " pieces",
          "use a bucket of " + format_bytes(Bytes(static_cast<std::int64_t>(largest / workload::most_buckets) + 1)) +
              " or more");
  }

  const StepInputs& in_;
  int ranks_, job_ranks_;
  const Origins& origins_;
  workload::Misfits misfits_;
};

}  // namespace

namespace workload {

bool goes_together(const StepInputs& in, int ranks, const Origins& origins) {
  return Check(in, ranks, origins).values().found.empty() && Check(in, ranks, origins).together().found.empty();
}

}  // namespace workload

std::vector<StepMisfit> step_misfits(const StepInputs& in, int ranks_available, const Origins& origins, int job_ranks) {
  if (job_ranks > 0) ranks_available = std::min(ranks_available, job_ranks);
  const workload::Misfits values = Check(in, ranks_available, origins).values();
  Origins known = origins;
  for (const std::string& path : values.blamed) known.spoil(path);
  // Searches ask of thousands of layouts that are good by themselves: these are not copied.
  std::optional<StepInputs> changed;
  if (!values.found.empty()) changed = workload::mended(in);
  const StepInputs& mended = changed ? *changed : in;
  workload::Misfits together = Check(mended, ranks_available, known, job_ranks).together();
  const bool written = origins.knows("layout") || origins.knows("layout.tp") || origins.knows("layout.pp") ||
                       origins.knows("layout.dp") || origins.knows("layout.ep") || origins.knows("layout.cp") ||
                       job_ranks > 0;
  if (written) workload::name_nearest(mended, ranks_available, known, known.all_good(), together);
  std::vector<StepMisfit> all;
  for (const workload::Misfits* part : {&values, static_cast<const workload::Misfits*>(&together)})
    for (std::size_t i = 0; i < part->found.size(); ++i) all.push_back({part->blamed[i], part->found[i]});
  return all;
}

Diagnostics check_step(const StepInputs& in, int ranks_available, const Origins& origins, int job_ranks) {
  Diagnostics said;
  for (StepMisfit& one : step_misfits(in, ranks_available, origins, job_ranks)) said.push_back(std::move(one.said));
  return said;
}

}  // namespace collcast
