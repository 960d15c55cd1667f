// The sections of a scenario: layout, batch, training, tasks; the model is in model_section.cpp.
//
// Only what each section can know by itself is checked here; whether they fit together and fit the machine
// is check_step's question.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "collcast/base/product.hpp"
#include "collcast/workload/limits.hpp"
#include "collcast/workload/precisions.hpp"
#include "scenario/files.hpp"
#include "scenario/parse.hpp"

namespace collcast::input {

namespace {

/// `layout.schedule`: a word, or the file of a schedule of one's own.
struct AsSchedule {
  static constexpr Holds holds = Holds::word;
  AsWord<PipelineSchedule> words;
  struct Choice {
    PipelineSchedule word = PipelineSchedule::one_f_one_b;
    std::string file;
  };
  bool operator()(Reader& reader, const Node& node, const std::string& path, Choice& out) const {
    if (node.kind == Node::Kind::scalar && is_schedule_file(node.text)) {
      out.file = node.text;
      return true;
    }
    return words(reader, node, path, out.word);
  }
  std::string expected() const { return words.expected() + ", or a file such as ./orders.yaml"; }
};

void read_own_schedule(Reader& reader, const Node& at, std::string name, const std::string& file,
                       const std::vector<std::string>& scenarios, bool has_vpp, ParallelLayout& l) {
  const Location where = at.at.location();
  const Result<std::string> text = read_named(name, where, folder_of(where, file), scenarios);
  Result<OwnSchedule> read = text ? parse_schedule(*text, name) : Result<OwnSchedule>(text.errors());
  if (!read) {
    reader.error(read.errors());
    reader.spoil("layout.schedule");
    return;
  }
  OwnSchedule own = std::move(read).value();
  own.file = name;
  l.schedule = own.kind();
  if (!has_vpp && !own.in_v) l.vpp = own.chunks;
  l.own = std::make_shared<const OwnSchedule>(std::move(own));
}

/// What only training has.
void read_training_layout(Reader& reader, Object& o, ParallelLayout& l, const std::string& file,
                          const std::vector<std::string>& scenarios) {
  o.optional("cp", l.cp, AsCount{});
  o.optional("cp_exchange", l.cp_exchange, as_word<ContextExchange>({ContextExchange::ring, ContextExchange::ulysses}));
  o.optional("dp_shard", l.dp_shard, AsCount{});
  const AsSchedule as{as_word<PipelineSchedule>(
      {PipelineSchedule::one_f_one_b, PipelineSchedule::gpipe, PipelineSchedule::interleaved, PipelineSchedule::zb_h1,
       PipelineSchedule::zb_h2, PipelineSchedule::zb_1p, PipelineSchedule::zb_2p, PipelineSchedule::zb_v,
       PipelineSchedule::dualpipe, PipelineSchedule::dualpipe_v})};
  AsSchedule::Choice schedule;
  o.optional("schedule", schedule, as);
  l.schedule = schedule.word;
  const bool has_vpp = o.has("vpp");
  o.optional("vpp", l.vpp, AsCount{1, most_layers});
  if (!schedule.file.empty())
    read_own_schedule(reader, *o.node().find("schedule"), schedule.file, file, scenarios, has_vpp, l);
}

}  // namespace

ParallelLayout read_layout(Reader& reader, const Node& node, const std::string& file,
                           const std::vector<std::string>& scenarios, bool serves) {
  ParallelLayout l;
  Object o(reader, node, "layout");
  o.optional("tp", l.tp, AsCount{});
  o.optional("pp", l.pp, AsCount{});
  o.optional("dp", l.dp, AsCount{});
  o.optional("ep", l.ep, AsCount{});
  o.optional("etp", l.etp, AsCount{});
  o.optional("order", l.order,
             as_word<RankOrder>({RankOrder::tp_pp_dp, RankOrder::tp_cp_ep_dp_pp, RankOrder::dp_pp_tp}));
  o.optional("sequence_parallel", l.sequence_parallel, AsTruth{});
  o.optional("uneven_stages", l.uneven_stages, AsTruth{});
  if (serves) {
    for (const char* key : {"cp", "cp_exchange", "dp_shard", "schedule", "vpp"})
      o.refuse(key, "the scenario is of 'inference'");
  } else {
    read_training_layout(reader, o, l, file, scenarios);
  }
  o.finish();
  if (!product_within({l.tp, l.pp, l.dp, l.cp}, max_count)) {
    const char* largest = l.tp >= std::max({l.pp, l.dp, l.cp}) ? "layout.tp"
                          : l.pp >= std::max(l.dp, l.cp)       ? "layout.pp"
                          : l.dp >= l.cp                       ? "layout.dp"
                                                               : "layout.cp";
    reader.error({reader.origins().of(largest),
                  fmt::format("layout.tp {} x pp {} x dp {}{} are too many ranks", l.tp, l.pp, l.dp,
                              l.cp > 1 ? fmt::format(" x cp {}", l.cp) : std::string()),
                  fmt::format("expected up to {}", max_count)});
    reader.spoil("layout");
    l.tp = l.pp = l.dp = l.cp = 1;
  }
  if (!product_within({l.pp, l.vpp}, max_count)) {
    reader.error({reader.origins().of(l.vpp > l.pp ? "layout.vpp" : "layout.pp"),
                  fmt::format("layout.pp {} x vpp {} are too many slices of the model", l.pp, l.vpp),
                  fmt::format("expected up to {}", max_count)});
    reader.spoil("layout");
    l.pp = l.vpp = 1;
  }
  return l;
}

Batch read_batch(Reader& reader, const Node& node, const ParallelLayout& layout) {
  Batch b;
  Object o(reader, node, "batch");
  o.required("sequence", b.sequence, AsCount{});
  o.optional("micro_batch", b.micro_batch, AsCount{1, most_sequences});
  o.required("global_batch", b.global_batch, AsCount{});
  o.finish();
  constexpr std::int64_t most_tokens = 1'000'000'000;
  if (std::int64_t{b.sequence} * b.micro_batch > most_tokens)
    reader.error({reader.origins().of(b.sequence > b.micro_batch ? "batch.sequence" : "batch.micro_batch"),
                  fmt::format("batch.sequence {} x micro_batch {} are too many tokens", b.sequence, b.micro_batch),
                  fmt::format("expected up to {}", most_tokens)});
  if (std::int64_t{b.micro_batch} * layout.dp > max_count)
    reader.error({reader.origins().of("batch.micro_batch"),
                  fmt::format("batch.micro_batch {} x layout.dp {}{} are too many samples", b.micro_batch, layout.dp,
                              seen_at(reader, "layout.dp")),
                  fmt::format("expected up to {}", max_count)});
  return b;
}

namespace {

constexpr std::initializer_list<WireFormat> wire_formats{WireFormat::fp8, WireFormat::bf16, WireFormat::fp16,
                                                         WireFormat::fp32};

void read_communication(Reader& reader, const Node& node, CommunicationFormats& f) {
  Object o(reader, node, "training.communication");
  const auto read = [&](const char* key, std::optional<WireFormat>& to, std::initializer_list<WireFormat> words) {
    if (WireFormat format{}; o.optional(key, format, as_word<WireFormat>(words))) to = format;
  };
  read("tp_gather", f.tp_gather, wire_formats);
  read("tp_reduce", f.tp_reduce, wire_formats);
  read("ep_dispatch", f.ep_dispatch, wire_formats);
  read("ep_combine", f.ep_combine, wire_formats);
  read("parameters", f.parameters, wire_formats);
  read("gradients", f.gradients, {WireFormat::bf16, WireFormat::fp16, WireFormat::fp32});
  o.optional("scale_block", f.scale_block, AsCount{1, 1'000'000});
  o.finish();
}

void read_compression(Reader& reader, const Node& node, GradientCompression& c) {
  Object o(reader, node, "training.gradient_compression");
  const bool has_method = o.optional(
      "method", c.method,
      as_word<CompressionMethod>({CompressionMethod::none, CompressionMethod::powersgd, CompressionMethod::ratio}));
  o.optional("rank", c.rank, AsCount{1, 10'000});
  o.optional("min_rate", c.min_rate, AsNumber{0, 10'000});
  const bool has_ratio = o.optional("ratio", c.ratio, AsNumber{1, 10'000});
  o.optional("moved", c.moved, AsNumber{0, 10'000});
  const bool has_feedback = o.optional("error_feedback", c.error_feedback, AsTruth{});
  o.finish();
  // PyTorch's hook has it on unless told otherwise.
  if (!has_feedback) c.error_feedback = c.method == CompressionMethod::powersgd;
  const auto only = [&](const char* key, const char* method, bool fits) {
    if (!o.has(key) || fits || !reader.origins().good("training.gradient_compression.method")) return;
    reader.error({reader.origins().of(fmt::format("training.gradient_compression.{}", key)),
                  fmt::format("training.gradient_compression.{} is of method {}", key, method),
                  has_method ? "leave it out, or choose that method" : fmt::format("add method: {}", method)});
  };
  for (const char* key : {"rank", "min_rate"}) only(key, "powersgd", c.method == CompressionMethod::powersgd);
  for (const char* key : {"ratio", "moved"}) only(key, "ratio", c.method == CompressionMethod::ratio);
  only("error_feedback", "powersgd or ratio", c.method != CompressionMethod::none);
  if (c.method == CompressionMethod::ratio && !has_ratio && !o.has("ratio"))
    reader.error({reader.origins().of("training.gradient_compression.method"),
                  "training.gradient_compression.method ratio needs a ratio",
                  "add ratio: bytes kept over bytes sent, such as 4"});
}

void read_lora(Reader& reader, const Node& node, LowRankAdapters& lora) {
  Object o(reader, node, "training.lora");
  o.also_called("rank", {"r", "dim", "lora_rank"});
  o.required("rank", lora.rank, AsCount{1, 100'000});
  std::vector<AdapterModule> targets;
  if (o.optional("target_modules", targets,
                 AsList<AsWord<AdapterModule>, AdapterModule>{as_word<AdapterModule>(adapter_modules())}))
    lora.target_modules = std::move(targets);
  o.optional("base_weights", lora.base_weights, as_word<BaseWeights>({BaseWeights::as_computed, BaseWeights::nf4}));
  o.finish();
}

PrecisionAwareOptimizer read_precision_aware(Reader& reader, const Node& node) {
  using enum StateFormat;
  PrecisionAwareOptimizer aware;
  Object o(reader, node, "training.precision_aware_optimizer");
  const auto moment = as_word<StateFormat>({fp32, bf16, fp16, fp8});
  o.optional("exp_avg_dtype", aware.exp_avg_dtype, moment);
  o.optional("exp_avg_sq_dtype", aware.exp_avg_sq_dtype, moment);
  o.optional("main_params_dtype", aware.main_params_dtype, as_word<StateFormat>({fp32, fp16}));
  o.optional("store_param_remainders", aware.store_param_remainders, AsTruth{});
  o.finish();
  return aware;
}

OptimizerStateOffload read_state_offload(Reader& reader, const Node& node) {
  OptimizerStateOffload offload;
  Object o(reader, node, "training.optimizer_state_offload");
  o.optional("fraction", offload.fraction, AsNumber{0, 1});
  o.optional("chunk_size_mb", offload.chunk_size_mb, AsCount{0, 1'000'000});
  o.finish();
  return offload;
}

}  // namespace

TrainingOptions read_training(Reader& reader, const Node& node) {
  TrainingOptions t;
  Object o(reader, node, "training");
  o.optional("precision", t.precision, AsWord<std::string>{training_precisions(), training_precisions()});
  o.optional("num_layers_at_start_in_bf16", t.bf16_first_layers, AsCount{0, most_layers});
  o.optional("num_layers_at_end_in_bf16", t.bf16_last_layers, AsCount{0, most_layers});
  o.optional("recompute", t.recompute, as_word<Recompute>({Recompute::none, Recompute::selective, Recompute::full}));
  o.optional("recompute_modules", t.recompute_modules,
             AsList<AsWord<RecomputeModule>, RecomputeModule>{as_word<RecomputeModule>(recompute_modules())});
  o.optional("recompute_layers", t.recompute_layers, AsPercent{});
  o.optional("attention", t.attention, as_word<Attention>({Attention::flash, Attention::unfused}));
  o.optional("zero", t.zero, AsCount{0, 3});
  o.optional("reshard_after_forward", t.reshard_after_forward, AsTruth{});
  o.optional("no_sync", t.no_sync, AsTruth{});
  o.optional("gradient_bytes", t.gradient_bytes, AsWord<int>{{"4", "2"}, {4, 2}});
  o.optional("cross_entropy_loss_fusion", t.fuse_loss, AsTruth{});
  o.optional("moe_grouped_gemm", t.moe_grouped_gemm, AsTruth{});
  o.optional("moe_grouped_mlp_fusion", t.moe_grouped_mlp_fusion, AsTruth{});
  o.optional("gradient_accumulation_fusion", t.fuse_accumulation, AsTruth{});
  o.optional("save_original_input", t.save_original_input, AsTruth{});
  o.optional("overlap_dp", t.overlap_dp, AsTruth{});
  o.optional("align_grad_reduce", t.align_grad_reduce, AsTruth{});
  if (Bytes bucket{}; o.optional("bucket", bucket, AsBytes{})) t.bucket = bucket;
  o.optional("overlap_pp", t.overlap_pp, AsTruth{});
  o.optional("overlap_tp", t.overlap_tp, as_word<TpOverlap>({TpOverlap::none, TpOverlap::backward, TpOverlap::ring}));
  o.optional("launch", t.launch, AsTime{});
  if (Seconds backward{}; o.optional("launch_backward", backward, AsTime{})) t.launch_backward = backward;
  o.optional("overlap_cp", t.overlap_cp, AsTruth{});
  o.optional("overlap_ep", t.overlap_ep, AsTruth{});
  o.optional("moe_token_dispatcher", t.moe_token_dispatcher,
             as_word<TokenDispatcher>({TokenDispatcher::alltoall, TokenDispatcher::flex}));
  o.optional("expert_imbalance", t.expert_imbalance, AsNumber{1, 1'000});
  o.optional("moe_capacity_factor", t.moe_capacity_factor, AsNumber{0, 1'000, true});
  read_communication(reader, o.section("communication"), t.communication);
  read_compression(reader, o.section("gradient_compression"), t.compression);
  o.optional("delayed_all_reduce", t.delayed_all_reduce, AsTruth{});
  o.optional("cpu_offloading_num_layers", t.cpu_offloading_num_layers, AsCount{0, most_layers});
  if (const Node* lora = o.optional_map("lora")) read_lora(reader, *lora, t.lora);
  if (const Node* aware = o.optional_map("precision_aware_optimizer"))
    t.precision_aware_optimizer = read_precision_aware(reader, *aware);
  if (const Node* offload = o.optional_map("optimizer_state_offload"))
    t.optimizer_state_offload = read_state_offload(reader, *offload);
  o.optional("optimizer", t.optimizer, AsTruth{});
  o.optional("embedding_and_logits", t.embedding_and_logits, AsTruth{});
  o.finish();
  return t;
}

namespace {

RequestLoad read_load(Reader& reader, const Node& node) {
  constexpr int most_clients = 1'000'000, most_requests = 1'000'000;
  RequestLoad load;
  Object o(reader, node, "inference.load");
  o.also_called("concurrency", {"max_concurrency"});
  o.also_called("requests", {"num_prompts", "num_requests"});
  o.also_called("range_ratio", {"random_range_ratio"});
  o.also_called("recv_interval", {"scheduler_recv_interval"});
  o.also_called("max_batched_tokens", {"max_num_batched_tokens", "max_num_tokens"});
  o.optional("concurrency", load.concurrency, AsCount{1, most_clients});
  o.optional("requests", load.requests, AsCount{1, most_requests});
  o.optional("range_ratio", load.range_ratio, AsNumber{0, 1, true});
  o.optional("max_batched_tokens", load.max_batched_tokens, AsCount{2, 10'000'000});
  o.optional("recv_interval", load.recv_interval, AsCount{1, 10'000});
  o.optional("seed", load.seed, AsCount{0, 10'000'000});
  o.finish();
  return load;
}

Speculation read_speculation(Reader& reader, const Node& node) {
  Speculation s;
  Object o(reader, node, "inference.speculative");
  o.also_called("num_speculative_tokens", {"speculative_num_steps", "max_draft_len", "tokens"});
  o.also_called("acceptance_length", {"mean_acceptance_length", "accept_length"});
  o.required("method", s.method, as_word<DraftMethod>({DraftMethod::mtp, DraftMethod::ngram}));
  o.optional("num_speculative_tokens", s.tokens, AsCount{1, most_speculative_tokens});
  double rate = 0, length = 0;
  const bool has_rate = o.optional("acceptance_rate", rate, AsNumber{0, 1}),
             has_length = o.optional("acceptance_length", length, AsNumber{1, 1.0 + most_speculative_tokens});
  if (has_rate) s.acceptance_rate = rate;
  if (has_length) s.acceptance_length = length;
  if (has_rate && has_length)
    reader.error({reader.origins().of("inference.speculative.acceptance_rate"),
                  "acceptance_rate and acceptance_length" + seen_at(reader, "inference.speculative.acceptance_length") +
                      " say the same thing",
                  "leave one of them out"});
  if (!o.has("acceptance_rate") && !o.has("acceptance_length"))
    reader.error({node.at.location(), "inference.speculative does not say how many tokens are accepted",
                  "give acceptance_length, tokens of a pass as servers log them, or acceptance_rate"});
  o.finish();
  return s;
}

}  // namespace

Serving read_inference(Reader& reader, const Node& node, const ParallelLayout& layout, TrainingOptions& options) {
  constexpr int most_tokens = 100'000;
  Serving s;
  options.optimizer = false;
  Object o(reader, node, "inference");
  o.also_called("microbatches", {"micro_batches"});
  o.optional("batch", s.batch, AsCount{1, most_sequences});
  o.required("prompt_tokens", s.prompt_tokens, AsCount{1, 10'000'000});
  o.required("output_tokens", s.output_tokens, AsCount{2, most_tokens});
  s.cut_by_stages = !o.optional("microbatches", s.micro_batches, AsCount{1, most_sequences});
  o.optional("precision", options.precision, AsWord<std::string>{serving_precisions(), serving_precisions()});
  const bool kept =
      o.optional("kv_precision", s.kv_bytes, AsWord<double>{{"bf16", "fp16", "fp8", "fp32"}, {2, 2, 1, 4}});
  o.optional("state_precision", s.state_bytes, AsWord<double>{{"fp32", "bf16", "fp16"}, {4, 2, 2}});
  o.optional("kv_window", s.kv_window, AsTruth{});
  o.optional("expert_imbalance", options.expert_imbalance, AsNumber{1, 1'000});
  o.optional("first_token_overhead", s.first_token_overhead, AsTime{});
  o.optional("batching", s.batching, as_word<Batching>({Batching::at_once, Batching::continuous}));
  if (const Node* load = o.optional_map("load")) s.load = read_load(reader, *load);
  if (const Node* drafts = o.optional_map("speculative")) s.speculation = read_speculation(reader, *drafts);
  o.finish();
  if (std::int64_t{s.batch} * layout.dp > max_count)
    reader.error({reader.origins().of("inference.batch"),
                  fmt::format("inference.batch {} x layout.dp {}{} are too many sequences", s.batch, layout.dp,
                              seen_at(reader, "layout.dp")),
                  fmt::format("expected up to {}", max_count)});
  constexpr std::int64_t most_together = 1'000'000'000;
  if (std::int64_t{s.batch} * s.prompt_tokens > most_together)
    reader.error({reader.origins().of(s.batch > s.prompt_tokens ? "inference.batch" : "inference.prompt_tokens"),
                  fmt::format("inference.batch {} x prompt_tokens {} are too many tokens", s.batch, s.prompt_tokens),
                  fmt::format("expected up to {}", most_together)});
  s.cut(layout);
  if (!kept && (options.precision == "fp32" || options.precision == "tf32")) s.kv_bytes = 4;
  return s;
}

SearchSpace read_search(Reader& reader, const Node& node, bool serves) {
  SearchSpace s;
  const AsWord<Recompute> recompute = as_word<Recompute>({Recompute::none, Recompute::selective, Recompute::full});
  Object o(reader, node, "search");
  constexpr int most = 64;
  if (serves)
    for (const char* key : {"recompute", "zero", "cp", "vpp", "values"})
      o.refuse(key, "the scenario is of 'inference'");
  else
    o.refuse("batch", "the scenario is not of 'inference'");
  o.optional("batch", s.batch, AsList<AsCount, int>{{1, most_sequences}, most});
  o.optional("tp", s.tp, AsList<AsCount, int>{{}, most});
  o.optional("pp", s.pp, AsList<AsCount, int>{{}, most});
  o.optional("dp", s.dp, AsList<AsCount, int>{{}, most});
  o.optional("micro_batch", s.micro_batch, AsList<AsCount, int>{{1, most_sequences}, most});
  o.optional("sequence_parallel", s.sequence_parallel, AsList<AsTruth, bool>{{}, most});
  o.optional("recompute", s.recompute, AsList<AsWord<Recompute>, Recompute>{recompute, most});
  o.optional("zero", s.zero, AsList<AsCount, int>{{0, 3}, most});
  o.optional("cp", s.cp, AsList<AsCount, int>{{}, most});
  o.optional("ep", s.ep, AsList<AsCount, int>{{}, most});
  o.optional("vpp", s.vpp, AsList<AsCount, int>{{1, most_layers}, most});
  o.optional("values", s.values, as_word<SearchValues>({SearchValues::usual, SearchValues::all}));
  o.finish();
  return s;
}

namespace {

constexpr int most_tasks = 10'000;
using Places = std::unordered_map<std::string, std::size_t>;

Task read_task(Reader& reader, const Node& node, const std::string& path) {
  Task task;
  Object o(reader, node, path);
  o.required("name", task.name, AsName{});
  o.required("stream", task.stream, AsName{});
  o.required("duration", task.duration, AsTime{});
  o.optional("after", task.after, AsList<AsName, std::string>{});
  o.required("category", task.category,
             as_word<Category>({Category::compute, Category::tp, Category::cp, Category::ep, Category::pp, Category::dp,
                                Category::optimizer}));
  o.finish();
  return task;
}

/// The task above that was probably meant. Comparing words is slow, so only in a list that a person wrote.
std::string hint_earlier(const std::string& name, std::size_t index, const Places& places) {
  constexpr std::size_t few = 200;
  std::vector<std::string> earlier;
  for (const auto& [other, place] : places) {
    if (place < index && places.size() <= few) earlier.push_back(other);
  }
  std::sort(earlier.begin(), earlier.end());
  const auto near = nearest_word(name, earlier);
  return near ? fmt::format("did you mean '{}'?", *near) : std::string("expected the name of a task above this one");
}

/// A task waits for tasks above it, which also rules out circles. `all_named`: `places` lacks none whose own name
/// could not be read.
void check_waits(Reader& reader, const Node& node, const Task& task, std::size_t index, const Places& places,
                 bool all_named) {
  for (std::size_t i = 0; i < task.after.size(); ++i) {
    const std::string& name = task.after[i];
    if (name.empty()) continue;  // no name at all, which has been said
    const auto found = places.find(name);
    const Place& at = node.find("after")->items[i].at;
    if (found == places.end()) {
      if (!all_named) continue;
      reader.error(at, fmt::format("task '{}' waits for '{}', which does not exist", task.name, name),
                   hint_earlier(name, index, places));
    } else if (found->second == index) {
      reader.error(at, fmt::format("task '{}' waits for itself", task.name), "a task waits for tasks above it");
    } else if (found->second > index) {
      reader.error(at, fmt::format("task '{}' waits for '{}', which comes later", task.name, name),
                   "put the task that is waited for above the one that waits");
    }
  }
}

}  // namespace

TaskGraph read_tasks(Reader& reader, const Node& node) {
  TaskGraph graph;
  Object o(reader, node, "tasks");
  o.optional("overlap", graph.overlap, AsTruth{});
  const Node* list = o.required_list("list");
  o.finish();
  if (list == nullptr || !expect_list(reader, *list, "tasks.list", most_tasks)) return graph;
  if (list->items.empty()) reader.error(list->at, "tasks.list is empty", "expected at least one task");
  Places places;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    graph.tasks.push_back(read_task(reader, list->items[i], fmt::format("tasks.list.{}", i)));
    const std::string& name = graph.tasks.back().name;
    if (!name.empty() && !places.emplace(name, i).second)
      reader.error(list->items[i].at, fmt::format("task '{}' is described twice", name), "each task has its own name");
  }
  const bool all_named =
      std::none_of(graph.tasks.begin(), graph.tasks.end(), [](const Task& task) { return task.name.empty(); });
  for (std::size_t i = 0; i < graph.tasks.size(); ++i)
    check_waits(reader, list->items[i], graph.tasks[i], i, places, all_named);
  return graph;
}

}  // namespace collcast::input
