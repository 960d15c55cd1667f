// A row's words -> the inputs of a step.
//
// What the workload layer cannot do is refused by check_step, whose words are then the reason; here only what no input
// can say. Where rows are silent their framework decides:
//   classic Megatron (Megatron-LM before runs_megatron_core, Megatron-DeepSpeed): unfused attention, dropout 0.1,
//     gradients in fp16 with fp16 and in fp32 with bf16, exchanged after the last backward in one piece
//     (github.com/NVIDIA/Megatron-LM v2.x and v3.0, megatron/model/distributed.py, megatron/arguments.py)
//   Megatron-Core with Transformer Engine: flash attention, no dropout, gradients in fp32, buckets of at least
//     40,000,000 parameters (megatron/core/distributed/distributed_data_parallel.py), a dummy gradient per shape of
//     weights (fused accumulation in Transformer Engine, module/base.py: get_dummy_wgrad), in fp8 and fp4 inputs of
//     products kept as these read them (module/linear.py, without save_original_input)
//   NeMo and Megatron-Bridge recipes for performance: the same with gradients in bf16 (grad_reduce_in_bf16)
//   FSDP in PyTorch: flash attention, no dropout, gradients in bf16; in llm-foundry by the Triton kernels of the first
//     FlashAttention (attn_impl: triton of its MPT configurations), in torchtitan and fms-fsdp by PyTorch's, which are
//     the second's; "hsdp" splits a state over a node's replicas (torch/distributed/fsdp,
//     ShardingStrategy.HYBRID_SHARD)
//   InternEvo: flash attention by the first FlashAttention (version 1.0.5 of its doc/en/install.md and images, read at
//     commit 1aea101)
//   PyTorch: rows of tools/measure-step, whose notes say which kernels ran; states are counted in fp32 all the same
//   nanotron: flash attention, no dropout, gradients that sum up in fp32 (accumulate_grad_in_fp32 of its scripts)
//   Gradients are added to their sum by kernels of their own in Megatron-LM before 2022 (v2.x,
//     megatron/model/distributed.py: main_grad.add_) and with fp16 in its first versions with fused sums, which are of
//     32 bit only (megatron/mpu/layers.py: wgrad_gemm_accum_fp32), in DeepSpeed, InternEvo (PyTorch's AccumulateGrad)
//     and nanotron (sums in fp32); others, and rows without a date, fuse that with the products, or have one
//     micro-batch
//   TP in the backward of Megatron-Core, NeMo and Megatron-Bridge: beside the products that do not need it
//     (megatron/core/tensor_parallel/layers.py), unless the row says none; rows that name tp among what they overlap
//     ran rings (NeMo's tp_comm_overlap, TorchTitan's async TP)
// Experts: how tokens get to them in Megatron-Bridge's recipes (recipes.cpp); these do not split an expert
// (expert_tensor_parallel_size 1 in its MoE recipes), others split it as everything else (Megatron-Core's default);
// with TP Megatron-Core asks for sequence parallelism. A GPU count of TP x PP x CP x EP x DP counts in DP the replicas
// of experts only. Balanced routing: Megatron-Bridge forces it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "collcast/base/product.hpp"
#include "collcast/base/words.hpp"
#include "collcast/nccl/environment.hpp"
#include "collcast/topology/host_link.hpp"
#include "collcast/validation/training.hpp"
#include "collcast/workload/limits.hpp"
#include "collcast/workload/precisions.hpp"
#include "collcast/workload/terms.hpp"
#include "gpu_name.hpp"
#include "lines.hpp"
#include "training/habits.hpp"
#include "training/hybrids.hpp"
#include "training/recipes.hpp"
#include "training/recompute.hpp"
#include "training/row_words.hpp"
#include "values.hpp"

namespace collcast {

namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Limits as a scenario's.
constexpr int most_ranks = 10'000'000, most_samples = 10'000'000;
constexpr int most_tokens = 1'000'000'000;

constexpr std::string_view in_groups = " in groups of ";

class Reading {
 public:
  Reading(const TrainingRow& row, const ScoredPlace& place) : row_(row), place_(place), habits_(habits_of(row)) {}

  Result<TrainingStep> run() {
    out_.inputs.gpu = place_.machine.gpu;
    out_.inputs.kernels = place_.kernels;
    if (const auto environment = nccl::of_job({}, place_.machine, place_.nodes))
      out_.inputs.nccl_buffers = NcclBuffers(*environment);
    out_.measure = memory_measure(row_);
    out_.framework = framework_of(row_);
    if (!place_.remark.empty()) assume(place_.remark);
    task();
    model();
    layout();
    batch();
    options();
    if (habits_.dummy_gradients && missing_.empty() && errors_.empty()) {
      out_.kept_besides = Bytes(static_cast<std::int64_t>(2 * shapes()));
    }
    if (!missing_.empty()) cannot(fmt::format("not stated: {}", fmt::join(missing_, ", ")));
    if (!errors_.empty()) return errors_;
    return std::move(out_);
  }

 private:
  /// Parameters of one matrix of each shape; of the experts one stands for all.
  double shapes() const {
    StepInputs in = out_.inputs;
    in.layout.pp = in.layout.vpp = 1;
    in.layout.schedule = PipelineSchedule::one_f_one_b;
    const ParameterTerms p = parameter_terms(in, 0);
    std::map<Mixer, double> mixers;
    std::map<FeedForward, double> feed_forwards;
    for (const LayerShape shape : shapes_of(in.model)) {
      const LayerParameters& layer = p.layer[shape];
      mixers[shape.mixer] = layer.attention + layer.latent + layer.indexer;
      feed_forwards[shape.feed_forward] =
          layer.mlp + (shape.has_experts() ? layer.experts * in.layout.ep / in.model.experts.count : 0);
    }
    double sum = 0;
    for (const auto& [mixer, size] : mixers) sum += size;
    for (const auto& [feed_forward, size] : feed_forwards) sum += size;
    return sum;
  }

  void cannot(std::string why) { errors_.push_back({{}, std::move(why), {}}); }
  void assume(std::string what) { out_.assumed.push_back(std::move(what)); }
  template <class T>
  std::optional<T> taken(const Result<Meaning<T>>& read) {
    if (!read) return append(errors_, read.errors()), std::nullopt;
    if (!read->assumed.empty()) assume(read->assumed);
    return read->value;
  }
  int needed(const std::optional<int>& value, const char* name) {
    if (!value) missing_.emplace_back(name);
    return value.value_or(1);
  }
  int or_one(const std::optional<int>& value, const char* name) {
    if (!value) assume(fmt::format("{} not stated: 1", name));
    return value.value_or(1);
  }

  void task() {
    const std::string task = lower(row_.task);
    if (task == "lora") lora();
    if (task == "whole-run" || task == "whole run" || task == "full run")
      return cannot("a whole run: its time has restarts and evaluation in it");
    if (!task.empty() && !known_task(task)) assume(fmt::format("the task {} counts as pretrain", printable(row_.task)));
  }

  /// Beside queries, keys and values alone in NeMo 1 (megatron_gpt_finetuning_config.yaml: attention_qkv, adapter_dim
  /// 32), in NeMo 2's recipes in performance mode and in Megatron-Bridge's (scripts/performance/configs: linear_qkv).
  void lora() {
    const bool nemo1 = row_.framework == "NeMo 24.07";
    out_.inputs.options.lora = {nemo1 ? 32 : 16, std::vector{AdapterModule::linear_qkv}};
    assume(fmt::format("LoRA of rank {} beside linear_qkv, as its recipes have it", nemo1 ? 32 : 16));
  }

  void model() {
    TransformerConfig& m = out_.inputs.model;
    if (std::optional<TransformerConfig> hybrid = hybrid_model(row_.model_id); hybrid && !row_.layers) {
      m = *std::move(hybrid);
      m.name = row_.model_id;
      assume(fmt::format("layers and sizes not stated: {} layers{}, by the model's config.json", m.layers,
                         m.mtp_layers == 0 ? "" : fmt::format(" and {} that predict further tokens", m.mtp_layers)));
      return;
    }
    m.name = row_.model_id;
    m.layers = needed(row_.layers, "layers");
    m.hidden = needed(row_.hidden, "hidden");
    m.ffn = needed(row_.ffn, "ffn");
    m.heads = needed(row_.heads, "heads");
    m.kv_heads = row_.kv_heads.value_or(m.heads);
    // github.com/MooreThreads/SimuMax, simu_tools/megatron_scripts/scripts/run_pretrain_llama3.sh: num_query_groups.
    if (row_.source_id == "simumax-b200" && m.name == "llama3.1-405b") {
      m.kv_heads = 16;
      assume("16 KV heads, as SimuMax's script runs Llama 3.1 405B");
    }
    m.head_dim = row_.head_dim.value_or(std::max(1, m.hidden / m.heads));
    m.vocab = vocabulary();
    m.gated_mlp = row_.gated_mlp.value_or(0) == 1;
    // GPT-2's descendants have biases, learned positions and one embedding for both ends; of them MPT and Nemotron have
    // no biases, BLOOM and MPT no positions (ALiBi), Nemotron rotary ones and two embeddings.
    const bool mpt = m.name.starts_with("mpt"), nemotron = m.name.starts_with("nemotron");
    m.biases = !m.gated_mlp && !mpt && !nemotron;
    m.tied_embeddings = !m.gated_mlp && !nemotron;
    if (m.biases && !m.name.starts_with("bloom")) m.learned_positions = row_.seq.value_or(0);
    m.dropout = habits_.dropout;
    if (row_.experts.value_or(0) > 0) experts(m.experts);
    if (row_.kv_lora) latent(m);
    // huggingface.co/openai/gpt-oss-120b, config.json: sliding_window 128, layer_types sliding and full by turns.
    if (m.name.starts_with("gpt-oss")) m.window = {128, 0, 2, {}}, m.experts.biases = m.experts.clamp = true;
  }

  void experts(Experts& e) {
    e.count = *row_.experts;
    e.top_k = needed(row_.topk, "topk");
    e.ffn = row_.moe_ffn.value_or(row_.ffn.value_or(1));
    e.shared_ffn = row_.shared_experts.value_or(0) * e.ffn;
    e.dense_layers = row_.dense_layers.value_or(0);
    // github.com/MooreThreads/SimuMax, simu_tools/megatron_scripts/scripts/run_pretrain_deepseekv2.sh: MOE_LAYER_FREQ.
    if (row_.source_id == "simumax-b200" && e.dense_layers > 1) {
      assume("one layer without experts, as SimuMax's script cuts DeepSeek-V3");
      e.dense_layers = 1;
    }
    // huggingface.co/deepseek-ai/DeepSeek-V3, config.json: n_group, topk_group.
    if (row_.model_id.starts_with("deepseek-v3") && e.count == 256) {
      e.groups = 8;
      e.group_top_k = 4;
    }
    if (row_.model_id != "deepseek-v3" || row_.layers != 61) return;
    if (row_.notes.find("MTP depth 1") != std::string::npos)
      out_.inputs.model.mtp_layers = 1;
    else if (row_.notes.find("MTP") == std::string::npos)
      assume("the layer that predicts a second token is left out");
  }

  void latent(TransformerConfig& m) {
    m.latent = {row_.q_lora.value_or(0), *row_.kv_lora, needed(row_.qk_nope, "qk_nope"),
                needed(row_.qk_rope, "qk_rope"), needed(row_.v_head, "v_head")};
    m.kv_heads = m.heads;
    m.head_dim = m.latent.nope + m.latent.rope;
  }

  /// Megatron's --make-vocab-size-divisible-by, 128 for each TP rank (megatron/tokenizer/tokenizer.py).
  int padded(int vocab) const {
    if (!lower(row_.framework).starts_with("megatron")) return vocab;
    const std::int64_t step = std::int64_t{128} * std::max(1, row_.tp.value_or(1));
    const std::int64_t rows = (vocab + step - 1) / step * step;
    return rows > std::numeric_limits<int>::max() ? vocab : static_cast<int>(rows);
  }

  /// GPT-2's, padded as Megatron does, where a GPT has none.
  int vocabulary() {
    constexpr int gpt2 = 50'304;
    // github.com/VIA-Research/vTrain, src/config.py and src/model/gpt_modeling.py: 50257 // TP rows on each TP rank. On
    // one node a token takes the ends of the model 8 us with TP 1 and 1.5 us with TP 2 (h 2048). On the cluster they
    // take as long as padded ones do: 9.7 ms with TP 8 (h 12288, 4096 tokens; the rows of 8 and 32 stages apart).
    if (row_.source_id == "vtrain-single") {
      constexpr int unpadded = 50'257;
      const int tp = std::max(1, row_.tp.value_or(1));
      assume(fmt::format("vocab {} on each TP rank, not padded", unpadded / tp));
      return unpadded / tp * tp;
    }
    if (row_.vocab) return padded(*row_.vocab);
    // Its script takes a SentencePiece model. With 32,000 rows counted once, and not with GPT-2's 50,304, the models
    // have the sizes that they are named for: 1.48, 6.17, 14.63 and 28.28 billion.
    if (row_.source_id == "zero-bubble") {
      constexpr int named = 32'000;
      assume(fmt::format("vocab not stated: {}, by the model's name", named));
      return padded(named);
    }
    if (!row_.model_id.starts_with("gpt-")) return needed(row_.vocab, "vocab");
    assume(fmt::format("vocab not stated: {}", gpt2));
    return gpt2;
  }

  void layout() {
    ParallelLayout& l = out_.inputs.layout;
    l.tp = needed(row_.tp, "tp");
    l.pp = needed(row_.pp, "pp");
    l.cp = or_one(row_.cp, "cp");
    const int gpus = needed(row_.gpus, "gpus");
    const std::optional<std::int64_t> replica = product_within({l.tp, l.pp, l.cp}, most_ranks);
    l.dp = row_.dp.value_or(replica ? std::max(1, static_cast<int>(gpus / *replica)) : 1);
    const bool countable = product_within({l.tp, l.pp, l.cp, l.dp}, most_ranks).has_value();
    if (!countable) {
      cannot(fmt::format("tp {} x pp {} x cp {} x dp {} are more than {} GPUs", l.tp, l.pp, l.cp, l.dp, most_ranks));
      l.tp = l.pp = l.cp = l.dp = 1;  // what else is wrong is asked of these
    }
    if (countable) fsdp_layout(l, gpus, static_cast<int>(*replica));
    const bool has_experts = out_.inputs.model.experts.count > 0;
    if (countable && has_experts) expert_layout(l, gpus, static_cast<int>(*replica));
    if (!has_experts && row_.ep.value_or(1) > 1)
      assume(fmt::format("ep {} counts as 1, as the model has no experts", *row_.ep));
    if (countable && missing_.empty() && l.world() != gpus)
      cannot(fmt::format("tp {} x pp {} x cp {} x dp {} are {} GPUs, not {}", l.tp, l.pp, l.cp, l.dp, l.world(), gpus));
    l.sequence_parallel = row_.sp.value_or(0) == 1 && l.tp > 1;
    if (l.tp > 1 && !row_.sp) assume_sequence_parallel(l);
    // Megatron's, DeepSpeed's and PyTorch's: replicas next to each other, stages farthest apart.
    l.uneven_stages = true;
    l.order = RankOrder::tp_cp_ep_dp_pp;
    schedule(l);
  }

  void assume_sequence_parallel(ParallelLayout& l) {
    const bool bridge = has_recipe(row_);
    if (!bridge && out_.inputs.model.experts.count == 0) return;
    assume(bridge ? "sp not stated: 1, as Megatron-Bridge's recipes have it with TP"
                  : "sp not stated: 1, which experts with TP need");
    l.sequence_parallel = true;
  }

  /// MaxText's tables say FSDP=128 of 512 GPUs and more, and dp counts the copies that are left
  /// (github.com/NVIDIA/dgxc-benchmarking, maxtext/README_70b.md at 143b90d).
  void fsdp_layout(ParallelLayout& l, int gpus, int replica) {
    const std::optional<int> ranks = fsdp_ranks(row_.zero);
    if (!ranks) return;
    l.dp_shard = *ranks;
    if (l.world() == gpus || product_within({replica, l.dp, *ranks}, gpus) != gpus) return;
    assume(fmt::format("dp {} counts the copies of what {} share: {} replicas", l.dp, *ranks, l.dp * *ranks));
    l.dp *= *ranks;
  }

  void expert_layout(ParallelLayout& l, int gpus, int replica) {
    l.ep = or_one(row_.ep, "ep");
    if (row_.etp) {
      l.etp = *row_.etp;
    } else if (l.tp > 1) {
      l.etp = contains(lower(row_.framework), "bridge") ? 1 : l.tp;
      assume(fmt::format("etp not stated: {}", l.etp));
    }
    if (l.world() == gpus || product_within({replica, l.ep, l.dp}, gpus) != gpus) return;
    assume(fmt::format("dp {} counts the replicas of experts: {} of the others", l.dp, gpus / replica));
    l.dp = gpus / replica;
  }

  void schedule(ParallelLayout& l) {
    std::optional<PipelineSchedule> known;
    if (!row_.schedule.empty()) known = taken(schedule_of_row(row_.schedule));
    l.vpp = chunks(l);
    const bool interleaved = row_.schedule.empty() ? l.vpp > 1 : known == PipelineSchedule::interleaved;
    l.schedule = known.value_or(PipelineSchedule::one_f_one_b);
    if (interleaved && l.pp > 1)
      l.schedule = PipelineSchedule::interleaved;
    else if (l.schedule == PipelineSchedule::interleaved)
      l.schedule = PipelineSchedule::one_f_one_b;
    if (l.schedule != PipelineSchedule::interleaved) one_chunk(l);
    // A row that names no schedule and no chunks may have either.
    if (l.pp > 1 && row_.vpp.empty() && (interleaved || row_.schedule.empty())) missing_.emplace_back("vpp");
  }

  /// Stages of a V have two, which no other schedule than interleaved says with vpp.
  void one_chunk(ParallelLayout& l) {
    const bool has_two = goes_in_v(l.schedule) || from_both_ends(l.schedule);
    if (l.pp == 1 && l.vpp > 1)
      assume(fmt::format("vpp {} counts as 1, as there is one stage", l.vpp));
    else if (has_two && l.vpp > 2)
      assume(fmt::format("vpp {} counts as the two chunks of {}", l.vpp, to_string(l.schedule)));
    else if (!has_two && l.vpp > 1)
      assume(fmt::format("vpp {} counts as 1, as {} is not interleaved", l.vpp, to_string(l.schedule)));
    l.vpp = 1;
  }

  int chunks(const ParallelLayout& l) {
    if (row_.vpp.empty()) return 1;
    if (row_.vpp.starts_with("1 layer")) {
      const int layers = row_.layers.value_or(1);
      // The first stage and the last have one layer less.
      return std::max(1, (layers % l.pp == 0 ? layers : layers + 2) / l.pp);
    }
    const std::optional<int> value = read_whole(row_.vpp);
    if (value && *value >= 1 && *value <= most_layers) return *value;
    cannot(fmt::format("vpp is '{}', no whole number from 1 to {}", printable(row_.vpp), most_layers));
    return 1;
  }

  void batch() {
    Batch& b = out_.inputs.batch;
    b.sequence = needed(row_.seq, "seq");
    b.global_batch = needed(row_.gbs, "gbs");
    b.micro_batch = needed(row_.mbs, "mbs");
    if (!product_within({b.sequence, b.micro_batch}, most_tokens))
      cannot(fmt::format("seq {} x mbs {} are more than {} tokens", b.sequence, b.micro_batch, most_tokens));
    if (const int dp = out_.inputs.layout.dp; !product_within({b.micro_batch, dp}, most_samples))
      cannot(fmt::format("mbs {} x dp {} are more than {} samples", b.micro_batch, dp, most_samples));
  }

  void options() {
    TrainingOptions& o = out_.inputs.options;
    precision(o);
    const bool is_32_bit = o.precision == "fp32" || o.precision == "tf32";
    o.attention = habits_.attention;
    o.launch = habits_.launch;
    if (o.launch > Seconds{}) o.launch_backward = eager_gradient_launch;
    if (habits_.flash != FlashAttention::table) open_flash_attention();
    if (row_.source_id == "bloom-prequel") wait_for_each_launch(o);
    o.gradient_bytes = is_32_bit ? 4 : o.precision == "fp16" ? habits_.gradient_bytes_16 : habits_.gradient_bytes;
    o.precision_aware_optimizer = recipe_optimizer(row_);
    o.fuse_accumulation = !adds_gradients_apart();
    o.save_original_input = has_narrow_products(o.precision) && !habits_.keeps_casts;
    o.fuse_loss =
        habits_.fuse_loss && !(lower(row_.framework).starts_with("torchtitan") && contains(row_.notes, "eager"));
    recompute();
    offload(o);
    sharding(o);
    overlap(o);
    if (out_.inputs.layout.ep > 1) send_tokens(o);
    assume(habits_text(row_, out_.inputs));
  }

  void precision(TrainingOptions& o) {
    if (row_.precision.empty()) return cannot("not stated: precision");
    if (contains(lower(row_.precision), "not resolved"))
      return cannot(fmt::format("the precision is not resolved: {}", printable(row_.precision)));
    // github.com/sail-sg/zero-bubble-pipeline-parallelism, examples/pretrain_zero_bubble.sh.
    if (row_.source_id == "zero-bubble") {
      assume("fp16, as the authors' script runs");
      o.precision = "fp16";
    } else if (const auto known = taken(precision_of_row(row_.precision))) {
      o.precision = *known;
    }
  }

  /// Recipes of Megatron-Bridge, and rows of tools/measure-step.
  void offload(TrainingOptions& o) {
    out_.inputs.host_bandwidth = host_bandwidth(place_.machine).value_or(Bandwidth{});
    if (const int layers = recipe_offloads(row_); layers > 0) {
      o.cpu_offloading_num_layers = layers;
      return assume(
          fmt::format("activations of {} layers in the host's memory, as Megatron-Bridge's recipe says", layers));
    }
    constexpr std::string_view words = "activations of ";
    const std::size_t at = row_.notes.find(words);
    if (!lower(row_.framework).starts_with("pytorch") || at == std::string::npos) return;
    const std::string_view rest = std::string_view(row_.notes).substr(at + words.size());
    const std::size_t digits = rest.find_first_not_of("0123456789");
    if (digits == std::string_view::npos || !rest.substr(digits).starts_with(" layers on the host")) return;
    o.cpu_offloading_num_layers = read_whole(std::string(rest.substr(0, digits))).value_or(0);
  }

  void send_tokens(TrainingOptions& o) {
    const ExpertRecipe recipe = expert_recipe(row_);
    if (*recipe.source == 0) return assume("tokens by an all-to-all that nothing hides, as no recipe is known");
    o.moe_token_dispatcher = recipe.dispatcher;
    o.overlap_ep = recipe.overlap, o.moe_grouped_mlp_fusion = recipe.fused;
    if (!recipe.overlap_dp) o.overlap_dp = false;
    assume(
        fmt::format("tokens {}{}{}{}, as Megatron-Bridge's recipe says",
                    recipe.dispatcher == TokenDispatcher::flex ? "sent once to a node and a rank" : "by an all-to-all",
                    recipe.overlap ? ", beside computing" : "", recipe.overlap_dp ? "" : ", gradients behind it",
                    recipe.fused ? ", experts' kernels fused" : ""));
  }

  /// Dao 2023 (arXiv 2307.08691): FlashAttention reaches 25 to 40 % of an A100's peak; its second version 230 TFLOP/s
  /// there, 63 % of the peak backward, and, without Hopper's instructions, 335 on an H100. PyTorch's second version on
  /// an H100, all 23 shapes of validation/data/one-gpu/torch-h100.csv: 317 TFLOP/s forward, 257 backward, beyond 50 us.
  /// Rates of the table are an upper bound: it stands for the best kernels.
  void open_flash_attention() {
    constexpr double a100 = 312e12, on_a100 = 230e12, back_on_a100 = 197e12, on_hopper = 335e12;
    constexpr double seen_on_hopper = 317e12, seen_back_on_hopper = 257e12;
    KernelModel& kernels = out_.inputs.kernels;
    for (const auto& [precision, kernel] : kernels.attention) kernels.attention_gradient.try_emplace(precision, kernel);
    const auto lower = [&](std::map<std::string, KernelEfficiency>& of, double ampere, double hopper) {
      for (auto& [precision, kernel] : of) {
        const auto found = out_.inputs.gpu.peak.find(precision);
        if (found == out_.inputs.gpu.peak.end()) continue;
        const double peak = found->second.value();
        const bool newer = peak > 2 * a100;
        const double rate = habits_.flash == FlashAttention::first ? 0.325 * a100 * (newer ? on_hopper / on_a100 : 1)
                                                                   : (newer ? hopper : ampere);
        kernel.compute = std::min(kernel.compute, rate / peak);
        if (newer) kernel.overhead = std::max(kernel.overhead, Seconds(50e-6));
      }
    };
    lower(kernels.attention, on_a100, seen_on_hopper);
    lower(kernels.attention_gradient, back_on_a100, seen_back_on_hopper);
    assume(habits_.flash == FlashAttention::first ? "attention by FlashAttention's first kernels"
                                                  : "attention by FlashAttention 2, without Hopper's instructions");
  }

  /// BLOOM's search ran with CUDA_LAUNCH_BLOCKING=1, without which its jobs hung (bigscience, train/tr11-176B-ml/
  /// chronicles-prequel.md, "dealing with JZ hanging on the large model"; there 7 % slower on 80 GPUs, as fast on 160):
  /// the host begins with a kernel when the one before is over.
  void wait_for_each_launch(TrainingOptions& o) {
    const auto later = [&](KernelEfficiency& kernel) { kernel.overhead += mean_eager_launch; };
    KernelModel& kernels = out_.inputs.kernels;
    for (auto& [precision, kernel] : kernels.gemm) later(kernel);
    for (auto& [precision, kernel] : kernels.attention) later(kernel);
    for (auto& [precision, kernel] : kernels.attention_gradient) later(kernel);
    later(kernels.memory_bound);
    o.launch = {};
    o.launch_backward.reset();
    out_.collective_launch = mean_eager_launch;
    assume("CUDA_LAUNCH_BLOCKING=1: kernels begin when the host has seen the end of the one before");
  }

  void recompute() {
    std::string assumed, why;
    if (!put_recomputation(row_, out_.inputs, assumed, why))
      cannot(why.empty() ? fmt::format("the recomputation {} is not modelled", printable(row_.recompute)) : why);
    if (!assumed.empty()) assume(assumed);
  }

  void sharding(TrainingOptions& o) {
    const std::string text = lower(row_.zero);
    if (text.empty()) {
      assume("zero not stated: 0");
      return;
    }
    // PyTorch's HYBRID_SHARD: whole within a node, copies across nodes.
    if (text == "hsdp") {
      o.zero = 3;
      ParallelLayout& l = out_.inputs.layout;
      const int of_a_node = std::max(1, needed(row_.gpus_per_node, "gpus_per_node") / (l.tp * l.cp));
      l.dp_shard = std::min(of_a_node, l.dp);
      assume(fmt::format("hsdp: split over the {} replicas of a node", l.dp_shard));
      return;
    }
    const std::size_t groups = text.find(in_groups);
    if (const auto known = taken(zero_of_row(row_.zero.substr(0, groups)))) o.zero = *known;
    // deepspeed/runtime/engine.py takes contiguous gradients from stage 1, without which zero/stage_1_and_2.py sums its
    // buckets on every rank (allreduce_bucket); so does bf16_optimizer.py with the whole gradient.
    if (out_.framework == Framework::deepspeed && o.zero == 1) {
      out_.gradients_by_all_reduce = true;
      assume("gradients summed by all-reduce, as DeepSpeed does with ZeRO 1");
    }
    // internlm/solver/optimizer/hybrid_zero_optim.py: there is no rank to reduce to (reduce_rank = None).
    if (out_.framework == Framework::internevo && o.zero == 1) {
      out_.gradients_by_all_reduce = true;
      assume("gradients summed by all-reduce, as InternEvo does with ZeRO 1");
    }
    if (groups != std::string::npos) shard_groups(text.substr(groups + in_groups.size()));
  }

  /// " in groups of 8": replicas that share a state; others have copies.
  void shard_groups(const std::string& of) {
    const std::optional<int> size = read_whole(of);
    if (size && *size > 0)
      out_.inputs.layout.dp_shard = std::min(*size, out_.inputs.layout.dp);
    else
      cannot(fmt::format("the sharding {} is not modelled", printable(row_.zero)));
  }

  void overlap(TrainingOptions& o) {
    std::string text = lower(row_.overlap);
    if (!text.empty() && !names_overlap(text)) {
      assume(fmt::format("overlap is '{}', of which no word is known: as if not stated", printable(row_.overlap)));
      text.clear();
    }
    const bool named = contains(text, "dp") || contains(text, "default");
    o.overlap_dp = text.starts_with("none") ? false : named || habits_.overlap_dp;
    o.overlap_tp = tp_overlap(text);
    // Megatron's buckets; without overlap the whole gradient at once.
    const double parameters = std::max(40e6, 1e6 * out_.inputs.layout.dp);
    o.bucket =
        o.overlap_dp ? Bytes(static_cast<std::int64_t>(parameters * o.gradient_bytes)) : Bytes(std::int64_t{1} << 50);
  }

  TpOverlap tp_overlap(const std::string& text) const {
    const bool rings = out_.inputs.layout.sequence_parallel;
    if (contains(text, "with wgrad")) return TpOverlap::backward;
    if (contains(text, "tp")) return rings ? TpOverlap::ring : TpOverlap::backward;
    if (text.empty() && rings && recipe_has_rings(row_)) return TpOverlap::ring;
    return text.starts_with("none") || !is_core() ? TpOverlap::none : TpOverlap::backward;
  }

  /// Megatron-Core, and what is built on it.
  bool is_core() const {
    const std::string framework = lower(row_.framework);
    return runs_megatron_core(row_) || contains(framework, "bridge") || contains(framework, "nemo");
  }

  /// vTrain's single node is put together of layers that were passed once: there is nothing to add to.
  bool adds_gradients_apart() const {
    const std::string framework = lower(row_.framework);
    if (framework.starts_with("interne") || framework.starts_with("nanotron")) return true;
    if (!framework.starts_with("megatron") || row_.source_id == "vtrain-single") return false;
    const bool fp16 = out_.inputs.options.precision == "fp16";
    if (contains(framework, "deepspeed")) return true;
    return !is_core() && !row_.date.empty() && row_.date < (fp16 ? "2022-07" : "2022");
  }

  const TrainingRow& row_;
  const ScoredPlace& place_;
  Habits habits_;
  TrainingStep out_;
  std::vector<std::string> missing_;
  Diagnostics errors_;
};

}  // namespace

Result<TrainingStep> training_step(const TrainingRow& row, const ScoredPlace& place) {
  return Reading(row, place).run();
}

std::optional<MeasuredStep> measured_step(const TrainingRow& row, const StepInputs& in) {
  const double samples = in.batch.global_batch, gpus = in.layout.world();
  if (row.iter_s) return MeasuredStep{Seconds(*row.iter_s), "iter_s"};
  if (row.tok_s_gpu.value_or(0) > 0)
    return MeasuredStep{Seconds(samples * in.batch.sequence / (*row.tok_s_gpu * gpus)), "tok_s_gpu"};
  if (row.samples_s.value_or(0) > 0) return MeasuredStep{Seconds(samples / *row.samples_s), "samples_s"};
  // Megatron-LM's papers count FLOPs as flop_terms does; others have conventions of their own.
  if (row.tflops_gpu.value_or(0) > 0 && row.framework.starts_with("Megatron-LM") && !row.tflops_kind.empty()) {
    const FlopTerms flops = flop_terms(in);
    const Flops counted = row.tflops_kind.starts_with("hardware") ? flops.hardware() : flops.model();
    return MeasuredStep{Seconds(counted.value() / (*row.tflops_gpu * 1e12 * gpus)), "tflops_gpu"};
  }
  return std::nullopt;
}

CollectiveTime as_run(const TrainingStep& step, const CollectiveTime& price) {
  if (!step.gradients_by_all_reduce && step.collective_launch == Seconds{}) return price;
  // With sequence parallelism there are reduce-scatters of activations, too.
  const bool sums = step.gradients_by_all_reduce && !step.inputs.layout.sequence_parallel;
  return [price, sums, launch = step.collective_launch](const CollectiveRequest& request) -> Result<Seconds> {
    CollectiveRequest asked = request;
    if (sums && asked.kind == CollectiveKind::reduce_scatter) asked.kind = CollectiveKind::all_reduce;
    const Result<Seconds> time = price(asked);
    if (!time) return time.errors();
    return *time + launch;
  };
}

}  // namespace collcast
