// A row's words -> requests in flight on the ranks of a layout.
//
// What the workload layer cannot do is refused by check_step, whose words are then the reason; here only what no input
// can say. What rows leave open, or say in a way of their own:
//   requests      `concurrency` of them are in flight, and each that is done is followed by the next; attention_dp
//                 replicas share them evenly: where some are left over, all have as many as the busiest
//   experts       moe_tp x moe_ep ranks are the tp x attention_dp ranks of attention. Rows that state 16 or 64 GPUs,
//                 the square of moe_tp = moe_ep, count them twice: 25 measurements of the shipped table are in it
//                 under both layouts, such as tp 64, moe_tp 8, moe_ep 8 and tp 8, moe_tp 1, moe_ep 8. One of 4 GPUs is
//                 as it says
//   load          ten requests of each client, all of which begin at once, and passes of up to 8192 tokens. Rows of
//                 1024 and 8192 tokens in and out are InferenceMAX's, whose README has prompts and answers of 80 to
//                 100 % of the row's tokens; the others are the source's own, whose tools (AIConfigurator's
//                 eval/benchmarks: genai-perf with deviations of 0, bench_serving with a range ratio of 1, ten requests
//                 of each client) have all of one length. What servers.csv says of how a row's server was started goes
//                 before: its places, its passes (at least two tokens of each request), its looks for requests, its
//                 cache
//   precision     where a row names none, its checkpoint's
//   cache         where servers.csv does not say: TensorRT-LLM keeps keys and values in fp8 with checkpoints of fp8 and
//   fp4 (their hf_quant_config.json:
//                 kv_cache_quant_algo FP8), vLLM and SGLang in 16 bit (kv_cache_dtype auto)
//   disaggregated tokens come from the decode workers, which share the requests evenly; what a first token waits for in
//                 the queue of the prefill workers is not modelled
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "collcast/base/text.hpp"
#include "collcast/validation/inference.hpp"
#include "lines.hpp"

namespace collcast {

namespace {

constexpr std::int64_t most_ranks = 1'000'000;

class Reading {
 public:
  Reading(const InferenceRow& row, const ServedModels& models, const std::vector<ServerSettings>& servers)
      : row_(row), models_(models), servers_(servers) {}

  Result<ServedRow> run() {
    out_.inputs.serving.emplace();
    Serving& s = *out_.inputs.serving;
    const bool disaggregated = row_.mode == "disagg";
    out_.first_token = !disaggregated;
    model();
    s.prompt_tokens = needed(row_.isl, "isl");
    s.output_tokens = needed(row_.osl, "osl");
    layout(disaggregated ? row_.decode : row_.server);
    requests(disaggregated ? row_.decode : row_.server);
    s.batching = disaggregated ? Batching::at_once : Batching::continuous;
    if (!disaggregated) load(s);
    out_.inputs.batch.sequence = s.prompt_tokens;
    const ParallelLayout& l = out_.inputs.layout;
    if (std::int64_t{l.tp} * l.pp * l.dp > most_ranks || std::int64_t{s.batch} * l.dp > most_ranks)
      return Diagnostic{{}, fmt::format("more than {} GPUs or requests", most_ranks), {}};
    if (disaggregated && l.pp > 1) cannot("decode workers that are pipelines are not modelled");
    out_.inputs.batch.global_batch = s.batch * l.dp;
    out_.inputs.options.optimizer = false;
    if (!missing_.empty()) cannot(fmt::format("not stated: {}", fmt::join(missing_, ", ")));
    if (!errors_.empty()) return std::move(errors_);
    return std::move(out_);
  }

 private:
  void cannot(std::string why) { errors_.push_back({{}, std::move(why), {}}); }
  void assume(std::string what) { out_.assumed.push_back(std::move(what)); }
  int needed(const std::optional<int>& value, const char* name) {
    if (!value) missing_.emplace_back(name);
    return value.value_or(1);
  }

  void model() {
    const ServedModels::Known* known = models_.find(row_.model);
    if (known == nullptr) return cannot(fmt::format("no description of the model {}", printable(row_.model)));
    out_.inputs.model = known->config;
    std::string precision = row_.precision;
    if (precision.empty() && !known->precision.empty()) {
      precision = known->precision;
      assume(fmt::format("precision not stated: {}, the checkpoint's", precision));
    }
    if (precision.empty()) return missing_.emplace_back("precision"), void();
    out_.inputs.options.precision = precision;
    const bool small = precision == "fp8" || precision == "fp4";
    out_.inputs.serving->kv_bytes = small && row_.backend == "trtllm" ? 1 : 2;
  }

  void load(Serving& s) {
    const auto of_grid = [](const std::optional<int>& tokens) { return tokens == 1024 || tokens == 8192; };
    const double range_ratio = of_grid(row_.isl) && of_grid(row_.osl) ? 0.8 : 1;
    s.load = RequestLoad{0, 0, range_ratio, std::max(8192, 2 * s.batch), 1, 1};
    const ServerSettings* known = settings_of(servers_, row_, out_.inputs.options.precision);
    if (known == nullptr) return;
    assume(fmt::format("the server was started as line {} of {} says", known->where.line,
                       std::filesystem::path(known->where.file).filename().string()));
    s.load->recv_interval = known->recv_interval.value_or(1);
    if (known->max_batched_tokens) s.load->max_batched_tokens = std::max(*known->max_batched_tokens, 2 * s.batch);
    if (known->kv_bytes) s.kv_bytes = *known->kv_bytes;
    if (known->state_bytes) s.state_bytes = *known->state_bytes;
    if (known->max_running && *known->max_running < s.batch) {
      s.load->concurrency = s.batch;
      s.batch = *known->max_running;
    }
  }

  void layout(const ServingWorker& worker) {
    ParallelLayout& l = out_.inputs.layout;
    l.order = RankOrder::tp_cp_ep_dp_pp;
    l.tp = needed(worker.tp, "tp");
    l.pp = worker.pp.value_or(1);
    if (out_.inputs.model.experts.count == 0) {
      l.dp = worker.attention_dp.value_or(1);
      return;
    }
    l.ep = worker.moe_ep.value_or(1);
    l.etp = needed(worker.moe_tp, "moe_tp");
    const std::int64_t of_experts = std::int64_t{l.ep} * l.etp;
    if (worker.attention_dp)
      l.dp = *worker.attention_dp;
    else if (of_experts % l.tp == 0)
      l.dp = static_cast<int>(std::min<std::int64_t>(of_experts / l.tp, most_ranks));
    if ((l.etp == 4 || l.etp == 8) && l.etp == l.ep && std::int64_t{l.tp} * l.dp == of_experts &&
        (l.dp % l.etp == 0 || l.tp % l.etp == 0))
      count_once(l);
    if (missing_.empty() && std::int64_t{l.tp} * l.dp != std::int64_t{l.ep} * l.etp)
      cannot(fmt::format("moe_tp x moe_ep and tp x attention_dp are not as many GPUs"));
    // Ranks of one replica have the same tokens, unless replicas exchange them: then each has its own.
    l.sequence_parallel = l.tp > 1 && l.dp > 1;
  }
  void count_once(ParallelLayout& l) {
    assume(fmt::format("{} GPUs, tp {} and attention_dp {}, are {} counted twice", l.tp * l.dp, l.tp, l.dp, l.ep));
    (l.dp % l.etp == 0 ? l.dp : l.tp) /= l.etp;
    l.etp = 1;
  }

  void requests(const ServingWorker& worker) {
    const bool disaggregated = row_.mode == "disagg";
    std::int64_t in_flight = 0;
    if (row_.concurrency) {
      in_flight = *row_.concurrency;
      const std::int64_t replicas = worker.attention_dp.value_or(out_.inputs.layout.dp);
      if (row_.batch_size && !disaggregated && in_flight > *row_.batch_size * replicas)
        cannot(fmt::format("more requests in flight than batch_size on each of its replicas"));
    } else if (row_.batch_size && !disaggregated) {
      in_flight = std::int64_t{*row_.batch_size} * out_.inputs.layout.dp;
      assume(fmt::format("concurrency not stated: {}, batch_size of every replica", in_flight));
    } else {
      missing_.emplace_back("concurrency");
    }
    const std::int64_t workers = disaggregated ? needed(worker.workers, "num_workers of decode") : 1;
    const std::int64_t replicas = workers * out_.inputs.layout.dp;
    const std::int64_t batch = std::clamp<std::int64_t>((in_flight + replicas - 1) / replicas, 1, most_ranks);
    if (row_.concurrency && in_flight < batch * replicas)
      assume(fmt::format("{} requests in flight on {} replicas: {} on each", in_flight, replicas, batch));
    out_.inputs.serving->batch = static_cast<int>(batch);
  }

  const InferenceRow& row_;
  const ServedModels& models_;
  const std::vector<ServerSettings>& servers_;
  ServedRow out_;
  std::vector<std::string> missing_;
  Diagnostics errors_;
};

}  // namespace

Result<ServedModels> ServedModels::load(const std::map<std::string, ServedModel>& named, const SearchPath& search) {
  ServedModels out;
  Diagnostics errors;
  for (const auto& [name, model] : named) {
    const std::string file = fmt::format("models/{}/config.json", model.config);
    Result<std::string> text =
        Diagnostic{model.where, fmt::format("'{}' is to be as '{}', which is not there", name, model.config),
                   fmt::format("expected a folder of models with a config.json, among the scenarios ({})",
                               fmt::join(search.scenarios, ", "))};
    std::string found;
    for (const std::string& folder : search.scenarios) {
      Result<std::string> read = read_file(folder + "/" + file, model.where);
      if (!read) continue;
      found = folder + "/" + file;
      text = std::move(read);
      break;
    }
    const Result<TransformerConfig> config =
        text ? parse_hf_config(*text, found) : Result<TransformerConfig>(text.errors());
    if (config)
      out.known_[name] = {*config, model.precision};
    else
      append(errors, config.errors());
  }
  if (!errors.empty()) return errors;
  return out;
}

const ServedModels::Known* ServedModels::find(const std::string& model) const {
  const auto found = known_.find(model);
  return found == known_.end() ? nullptr : &found->second;
}

Result<ServedRow> served_row(const InferenceRow& row, const ServedModels& models,
                             const std::vector<ServerSettings>& servers) {
  return Reading(row, models, servers).run();
}

}  // namespace collcast
