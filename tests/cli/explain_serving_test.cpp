// collcast explain step of a server: TTFT, TPOT, tokens/s, shares and memory worked out anew from the terms that are
// printed, and the terms held to what the step itself says of its kernels and collectives.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "cli/arithmetic.hpp"
#include "cli/called.hpp"

using namespace collcast::test;
using Catch::Contains;
using Json = nlohmann::json;

namespace {

constexpr double nine_digits = 1e-9;

/// The terms of an explanation by section and name.
class Terms {
 public:
  explicit Terms(const Json& doc) {
    for (const Json& term : doc.at("terms"))
      all_[term.at("section")].emplace_back(term.at("name"), term.at("value").get<double>());
  }
  /// Of the section that begins so; nothing: it has none of that name.
  std::optional<double> find(const std::string& section, const std::string& name) const {
    for (const auto& [title, terms] : all_) {
      if (!title.starts_with(section)) continue;
      for (const auto& [known, value] : terms)
        if (known == name) return value;
    }
    return std::nullopt;
  }
  double at(const std::string& section, const std::string& name) const {
    const auto value = find(section, name);
    INFO(section << ": " << name);
    REQUIRE(value.has_value());
    return *value;
  }
  double or_zero(const std::string& section, const std::string& name) const { return find(section, name).value_or(0); }
  /// Of all terms of the section whose name begins so.
  double sum(const std::string& section, const std::string& begins, const std::string& but) const {
    double out = 0;
    for (const auto& [title, terms] : all_)
      if (title.starts_with(section))
        for (const auto& [name, value] : terms)
          if (name.starts_with(begins) && name != but) out += value;
    return out;
  }

 private:
  std::map<std::string, std::vector<std::pair<std::string, double>>> all_;
};

/// What is asked, as sections name it.
struct Asked {
  Json inputs;
  bool continuous() const { return inputs["inference"]["batching"] == "continuous"; }
  bool load() const { return inputs["inference"].contains("load"); }
  bool drafts() const { return inputs["inference"].contains("speculative"); }
  std::string prompts() const { return continuous() ? "prompt" : "prompts"; }
  std::string token() const { return drafts() ? "pass of tokens" : "token"; }
  std::string pass() const { return drafts() ? "pass" : "token"; }
  std::string section_of_prompts() const { return continuous() ? "a prompt" : "the prompts"; }
  std::string section_of_tokens() const { return "a " + token(); }
  double number(const char* section, const char* key) const { return inputs[section][key]; }
};

/// The closed form of all prompts, from F, C and M.
double prompts_of(const Terms& t, const Asked& asked) {
  const std::string section = "closed form of the " + asked.prompts();
  return t.at(section, "sum(F)") + t.or_zero(section, "sum(C)") + (t.at(section, "M") - 1) * t.at(section, "slowest");
}

/// And of a token, mean over all of them.
double token_of(const Terms& t, const Asked& asked) {
  const std::string section = "closed form of a " + asked.token();
  const double round = t.at(section, "sum(F)") + t.or_zero(section, "sum(C)") + t.or_zero(section, "B") +
                       t.or_zero(section, "longer contexts");
  const double slowest =
      t.find(section, "F of the slowest stage")
          ? t.at(section, "F of the slowest stage") + t.at(section, "longer contexts of the slowest stage")
          : t.or_zero(section, "slowest");
  const double go_round = t.or_zero(section, "tokens that go round"), queue = t.or_zero(section, "tokens that queue");
  return (go_round * round + queue * t.at(section, "M") * slowest) / (go_round + queue);
}

/// The parts of a pass add up to it, each from what a micro-batch takes.
void check_parts(const Terms& t, const std::string& section, const std::string& stage, const std::string& name,
                 double micro_batches) {
  INFO(section);
  double sum = 0;
  for (const char* part : {"compute", "TP", "EP"}) {
    const std::string whole = std::string(part) + " of a micro-batch";
    const double longer = std::string(part) == "compute" ? t.or_zero(stage, "longer contexts") : 0;
    const double of_micro_batch = t.sum(stage, std::string(part) + " of ", whole) + longer;
    CHECK(of_micro_batch == Approx(t.or_zero(stage, whole)).epsilon(nine_digits).margin(1e-15));
    const double shown =
        t.or_zero(section, std::string(part) == "compute" ? "compute" : std::string(part) + " exposed");
    CHECK(shown == Approx(micro_batches * of_micro_batch).epsilon(nine_digits).margin(1e-9 * t.at(section, name)));
    sum += shown;
  }
  sum += t.or_zero(section, "PP exposed") + t.or_zero(section, "bubble");
  CHECK(sum == Approx(t.at(section, name)).epsilon(nine_digits));
}

double kernels_of(const Json& phase) {
  double sum = 0;
  for (const Json& op : phase.at("operations")) sum += op.at("time_s").get<double>();
  return sum;
}

double of_dimension(const Json& phase, const char* dimension) {
  double sum = 0;
  for (const Json& c : phase.at("collectives"))
    if (c.at("dimension") == dimension) sum += c.at("time_s").get<double>() * c.at("count").get<double>();
  return sum;
}

/// The closed forms of all prompts and of a token, as they are printed, from their parts.
struct ClosedForms {
  double prompts = 0, token = 0;
};
ClosedForms check_closed_forms(const Terms& t, const Asked& asked) {
  const ClosedForms closed{t.at("closed form of the " + asked.prompts(), "closed form"),
                           t.at("closed form of a " + asked.token(), "closed form")};
  CHECK(prompts_of(t, asked) == Approx(closed.prompts).epsilon(nine_digits));
  CHECK(token_of(t, asked) == Approx(closed.token).epsilon(nine_digits));
  return closed;
}

/// How many passes a request waits for until its first token, and between two of them.
struct Waits {
  double prompts_in_ttft = 0, tokens_in_ttft = 0;
  double prompts_in_tpot = 0, passes_in_tpot = 0;
};
Waits waits_of(const Terms& t, const Asked& asked) {
  const double batch = asked.number("inference", "batch"), output = asked.number("inference", "output_tokens");
  const double per_pass = asked.drafts() ? t.at("TPOT", "E") : 1;
  if (asked.load())
    return {t.at("TTFT", "prompts waited for"),
            t.at("TTFT", asked.drafts() ? "passes waited for" : "tokens waited for"),
            t.at("TPOT", "prompts between two tokens"),
            asked.drafts() ? t.at("TPOT", "passes between two tokens") : 1 / per_pass};
  if (!asked.continuous()) return {1, 0, 0, 1 / per_pass};
  const double before = (batch - 1) / (2 * (output - 1) / per_pass);
  return {1 + before, 0, (batch - 1 - before) / (output - 1), 1 / per_pass};
}

/// Of a run whose passes may have several prompts: what a further one takes, by the forecast and by the closed form,
/// and how many such passes there are, of which what is of the pass counts once. Without: each prompt takes all of it.
struct FullPass {
  double further = 0, closed_further = 0;
  double passes_in_ttft = 0, passes_in_tpot = 0;
};
FullPass check_full_pass(const Terms& t, double prompt, double closed_prompts, const Json& step) {
  const Json& prefill = step["inference"]["prefill"];
  const bool full = t.find("a full pass", "full pass").has_value();
  CHECK(full == prefill.contains("full_pass_s"));
  if (!full) return {prompt, closed_prompts, 0, 0};
  const std::string form = "closed form of the full pass";
  const double k = t.at(form, "prompts of a full pass"), all = t.at(form, "closed form"),
               whole_pass = t.at("a full pass", "full pass");
  CHECK(all == Approx(t.at(form, "sum(F)") + t.or_zero(form, "sum(C)")).epsilon(nine_digits));
  check_parts(t, "a full pass",
              "stage " + std::to_string(step["breakdown_stage"].get<int>()) + ", a full pass of prompts", "full pass",
              1);
  const FullPass out{std::clamp((whole_pass - prompt) / (k - 1), 0.0, prompt),
                     std::clamp((all - closed_prompts) / (k - 1), 0.0, closed_prompts),
                     t.at("TTFT", "passes with prompts waited for"),
                     t.at("TPOT", "passes with prompts between two tokens")};
  CHECK(t.at("TTFT", "further prompt") == Approx(out.further).epsilon(1e-7));
  CHECK(prefill["full_pass_prompts"] == k);
  CHECK(prefill["full_pass_s"].get<double>() == Approx(whole_pass).epsilon(nine_digits));
  CHECK(prefill["prompt_s"].get<double>() == Approx(prompt).epsilon(nine_digits));
  CHECK(prefill["further_prompt_s"].get<double>() == Approx(out.further).epsilon(1e-7));
  return out;
}

/// The two times of a server, and what of the first is its host's.
struct ServerTimes {
  double ttft = 0, tpot = 0, host = 0;
};
/// From the passes waited for, as the step says them: by the forecast, and by the closed form.
ServerTimes check_ttft_and_tpot(const Terms& t, const Asked& asked, const Json& step, const ClosedForms& closed,
                                double prompt, double pass) {
  const Waits waits = waits_of(t, asked);
  const FullPass full = check_full_pass(t, prompt, closed.prompts, step);
  const double host = t.or_zero("TTFT", "first token overhead");
  CHECK(host == asked.inputs["inference"].value("first_token_overhead_s", 0.0));
  const auto wait = [](double prompts, double one, double more, double in_passes) {
    return prompts * more + in_passes * (one - more);
  };
  const auto ttft_of = [&](double one, double more, double token) {
    return wait(waits.prompts_in_ttft, one, more, full.passes_in_ttft) + waits.tokens_in_ttft * token + host;
  };
  const auto tpot_of = [&](double one, double more, double token) {
    return waits.passes_in_tpot * token + wait(waits.prompts_in_tpot, one, more, full.passes_in_tpot);
  };
  const ServerTimes out{ttft_of(prompt, full.further, pass), tpot_of(prompt, full.further, pass), host};
  CHECK(t.at("TTFT", "TTFT") == Approx(out.ttft).epsilon(nine_digits));
  CHECK(t.at("TPOT", "TPOT") == Approx(out.tpot).epsilon(nine_digits));
  CHECK(out.ttft == Approx(step["ttft_s"].get<double>()).epsilon(nine_digits));
  CHECK(out.tpot == Approx(step["tpot_s"].get<double>()).epsilon(nine_digits));
  const Json& phases = step["inference"];
  CHECK(ttft_of(closed.prompts, full.closed_further, closed.token) ==
        Approx(phases["prefill"]["estimate_s"].get<double>()).epsilon(nine_digits));
  CHECK(tpot_of(closed.prompts, full.closed_further, closed.token) ==
        Approx(phases["decode"]["estimate_s"].get<double>()).epsilon(nine_digits));
  return out;
}

/// Both passes are the sums of their stages' parts.
void check_passes(const Terms& t, const Asked& asked, const Json& step) {
  const double m = step["micro_batches"];
  const std::string stage = "stage " + std::to_string(step["breakdown_stage"].get<int>());
  check_parts(t, asked.section_of_prompts(), stage + (asked.continuous() ? ", one prompt" : ", prompts"),
              asked.prompts(), m);
  check_parts(t, asked.section_of_tokens(), stage + ", " + asked.section_of_tokens(), asked.pass(), m);
}

/// Shares are the step's own breakdown.
void check_shares(const Terms& t, const Json& step, const ServerTimes& times) {
  const Json &prefill = step["inference"]["prefill"], &decode = step["inference"]["decode"];
  for (const auto& [name, phase, whole] : {std::tuple("TTFT", &prefill, times.ttft), {"TPOT", &decode, times.tpot}}) {
    const Json& b = phase->at("breakdown");
    const double all = whole;
    const auto share = [&](std::initializer_list<const char*> parts) {
      double sum = 0;
      for (const char* part : parts) sum += b.at(part).get<double>();
      return Approx(sum / all).epsilon(nine_digits).margin(3e-9);
    };
    CHECK(t.at(name, "share of computing") == share({"compute_s"}));
    CHECK(t.at(name, "share of communication") == share({"tp_exposed_s", "ep_exposed_s", "pp_exposed_s"}));
    CHECK(t.at(name, "share of the bubble") == share({"bubble_s"}));
  }
  CHECK(prefill["breakdown"]["other_s"] == Approx(times.host).margin(1e-15));
  CHECK(decode["breakdown"]["other_s"] == 0);
  CHECK(t.or_zero("TTFT", "share of the host") == Approx(times.host / times.ttft).epsilon(nine_digits));
}

/// Kernels and collectives are the step's.
void check_layers(const Terms& t, const Asked& asked, const Json& step) {
  const Json &prefill = step["inference"]["prefill"], &decode = step["inference"]["decode"];
  const std::string tokens = asked.section_of_tokens();
  for (const auto& [begin, phase] :
       {std::pair(asked.continuous() ? "one prompt" : "prompts", &prefill), std::pair(tokens.c_str(), &decode)}) {
    const std::string section = std::string("kernels of one layer, ") + begin;
    CHECK(t.at(section, "kernels") == Approx(kernels_of(*phase)).epsilon(nine_digits));
    CHECK(t.at(section, "kernels") + t.at(section, "TP and EP") == Approx(t.at(section, "layer")).epsilon(nine_digits));
    CHECK(t.at(section, "layer") == Approx(phase->at("layer_s").get<double>()).epsilon(nine_digits));
  }
  CHECK(t.or_zero(asked.section_of_prompts(), "TP exposed") ==
        Approx(of_dimension(prefill, "tp")).epsilon(nine_digits).margin(1e-12));
  CHECK(t.or_zero(tokens, "TP exposed") == Approx(of_dimension(decode, "tp")).epsilon(nine_digits).margin(1e-12));
}

/// Tokens a second of a run with requests that come and go.
void check_rates_of_run(const Terms& t, const Asked& asked, const Json& step, const ServerTimes& times) {
  const Json& run = step["inference"]["load"];
  CHECK(run["ttft"]["mean_s"].get<double>() == Approx(times.ttft).epsilon(nine_digits));
  CHECK(run["tpot"]["mean_s"].get<double>() == Approx(times.tpot).epsilon(nine_digits));
  CHECK(t.at("rates", "the whole run") == Approx(run["duration_s"].get<double>()).epsilon(nine_digits));
  const double of_run = asked.number("layout", "dp") * run["tokens_per_s"].get<double>();
  CHECK(t.at("rates", "tokens/s") == Approx(of_run).epsilon(nine_digits));
  CHECK(of_run == Approx(step["tokens_per_s"].get<double>()).epsilon(nine_digits));
  CHECK(t.at("rates", "tokens/s per GPU") == Approx(of_run / step["gpus"].get<double>()).epsilon(nine_digits));
}

void check_rates(const Terms& t, const Asked& asked, const Json& step, const ServerTimes& times) {
  const double batch = asked.number("inference", "batch"), output = asked.number("inference", "output_tokens");
  const double whole = times.ttft + (output - 1) * times.tpot, dp = asked.number("layout", "dp");
  CHECK(t.at("rates", "from prompts to last tokens") == Approx(whole).epsilon(nine_digits));
  CHECK(whole == Approx(step["step_s"].get<double>()).epsilon(nine_digits));
  if (asked.load()) {
    check_rates_of_run(t, asked, step, times);
    return;
  }
  const double rate = asked.continuous() ? batch * dp * output / whole : batch * dp / times.tpot;
  CHECK(t.at("rates", "tokens/s") == Approx(rate).epsilon(nine_digits));
  CHECK(rate == Approx(step["tokens_per_s"].get<double>()).epsilon(nine_digits));
  const double per_gpu = batch * dp * output / (whole * step["gpus"].get<double>());
  CHECK(t.at("rates", "tokens/s per GPU") == Approx(per_gpu).epsilon(nine_digits));
  CHECK(per_gpu == Approx(step["tokens_per_s_per_gpu"].get<double>()).epsilon(nine_digits));
}

void check_times(const Terms& t, const Asked& asked, const Json& step) {
  const double prompt = t.at(asked.section_of_prompts(), asked.prompts()),
               pass = t.at(asked.section_of_tokens(), asked.pass());
  if (asked.drafts()) CHECK(pass == Approx(step["inference"]["decode"]["pass_s"].get<double>()).epsilon(nine_digits));
  const ClosedForms closed = check_closed_forms(t, asked);
  const ServerTimes times = check_ttft_and_tpot(t, asked, step, closed, prompt, pass);
  check_passes(t, asked, step);
  check_shares(t, step, times);
  check_layers(t, asked, step);
  check_rates(t, asked, step, times);
}

void check_memory(const Terms& t, const Json& step) {
  const Json& m = step["memory"];
  const auto bytes = [&](const char* key) { return m.at(key).get<double>(); };
  const std::string rank = "parameters of the fullest rank", cache = "keys and values", items = "memory";
  const double weights = t.at(rank, "bytes of a layer's parameter") * t.at(rank, "of layers") +
                         t.at(rank, "bytes of an end's parameter") * t.at(rank, "of the ends");
  // Sizes are whole, rounded up.
  CHECK(std::ceil(weights) == Approx(bytes("parameters_bytes")).epsilon(nine_digits));
  CHECK(t.at(rank, "of layers") + t.at(rank, "of the ends") ==
        Approx(t.at(rank, "parameters of the rank")).epsilon(nine_digits));
  CHECK(std::ceil(t.at(cache, "KV cache")) == Approx(bytes("kv_cache_bytes")).epsilon(nine_digits));
  for (const auto& [name, key] : {std::pair("parameters", "parameters_bytes"),
                                  {"KV cache", "kv_cache_bytes"},
                                  {"activations", "activations_bytes"},
                                  {"buffers", "buffers_bytes"},
                                  {"fragments", "fragments_bytes"},
                                  {"NCCL's buffers", "nccl_bytes"},
                                  {"CUDA context", "context_bytes"},
                                  {"peak", "peak_bytes"}})
    CHECK(t.at(items, name) == bytes(key));
  double allocated = 0;
  for (const char* part : {"parameters", "KV cache", "activations", "buffers"}) allocated += t.at(items, part);
  CHECK(allocated == t.at(items, "allocated"));
  CHECK(allocated + t.at(items, "fragments") + t.at(items, "NCCL's buffers") + t.at(items, "CUDA context") ==
        t.at(items, "peak"));
}

void check_numbers(const Json& doc) {
  for (const Json& term : doc.at("terms")) {
    const std::string numbers = term.at("numbers");
    if (numbers.empty()) continue;
    INFO(term.dump());
    // Four digits are shown of some; a bubble is a small difference of long times, told to nine.
    CHECK(worth(numbers) == Approx(term.at("value").get<double>()).epsilon(1e-3).margin(2e-9));
  }
}

void check_server(const std::string& step) {
  INFO(step);
  const Json doc = document_of("explain step " + step), result = document_of("step " + step);
  const Terms terms(doc);
  check_times(terms, {result["inputs"]}, result);
  check_memory(terms, result);
  check_numbers(doc);
}

}  // namespace

TEST_CASE("TTFT, TPOT, tokens/s, shares and memory of every shipped server come out of the terms that are printed") {
  for (const char* name : {"llama3-70b-inference-8xh100", "gpt3-175b-inference-512gpu", "llama3-70b-batches-8xh100",
                           "deepseek-v3.2-inference-8xh200"})
    for (const char* method : {"estimate", "both"}) {
      std::vector<std::string> variants{""};
      const Json all = document_of(std::string("step --list ") + name);
      for (const Json& variant : all.at("rows").at(0).at("what_if")) variants.push_back(variant.at("name"));
      for (const std::string& variant : variants)
        check_server(std::string(name) + " --method " + method + (variant.empty() ? "" : " --what-if " + variant) +
                     (std::string(name) == "llama3-70b-batches-8xh100" ? " --set inference.batch=4 --set "
                                                                         "inference.prompt_tokens=512"
                                                                       : ""));
    }
}

TEST_CASE("figures and memory of servers drawn at random come out of the terms that are printed") {
  std::mt19937 random(20261126);
  const auto pick = [&](std::initializer_list<const char*> of) {
    return std::string(*(of.begin() + random() % of.size()));
  };
  int experts = 0, windows = 0, continuous = 0, loads = 0, queues = 0, drafts = 0;
  for (int i = 0; i < 60; ++i) {
    std::string step = "llama3-70b-inference-8xh100 --set model.config=models/llama3-8b/config.json";
    const auto set = [&](const std::string& path, const std::string& value) { step += " --set " + path + "=" + value; };
    const bool in_flight = random() % 4 == 0;
    const std::string tp = pick({"1", "2", "4", "8"}), pp = in_flight ? "1" : pick({"1", "2", "3", "4"});
    set("nodes", "8");
    set("layout.tp", tp);
    set("layout.pp", pp);
    set("layout.uneven_stages", "true");
    set("layout.dp", pick({"1", "2"}));
    set("inference.batch", pick({"8", "24", "64"}));
    set("inference.prompt_tokens", pick({"1", "64", "777", "2048"}));
    set("inference.output_tokens", pick({"2", "3", "4", "17", "200"}));
    set("inference.precision", pick({"bf16", "fp8", "fp16"}));
    set("inference.kv_precision", pick({"bf16", "fp8"}));
    if (i % 3 == 0) set("inference.first_token_overhead", "30ms");
    if (in_flight) {
      set("inference.batching", "continuous");
      ++continuous;
      if (i % 2 == 0) {
        set("inference.load.range_ratio", "0.7");
        set("inference.load.requests", "90");
        ++loads;
      }
    } else if (random() % 2 == 0) {
      set("inference.microbatches", pick({"1", "2", "4", "8"}));
    }
    if (random() % 3 == 0) {
      set("model.window.tokens", pick({"16", "100", "800"}));
      set("model.window.full_every", "2");
      ++windows;
    }
    if (random() % 3 == 0) {
      set("model.experts.count", "8");
      set("model.experts.top_k", "2");
      set("model.experts.ffn", "2048");
      set("layout.order", "tp-cp-ep-dp-pp");
      ++experts;
    }
    if (random() % 3 == 0) {
      set("inference.speculative.method", pick({"mtp", "mtp", "ngram"}));
      set("inference.speculative.num_speculative_tokens", pick({"1", "3", "4"}));
      if (random() % 2 == 0)
        set("inference.speculative.acceptance_rate", pick({"0", "0.7", "1"}));
      else
        set("inference.speculative.acceptance_length", pick({"1", "1.5", "2"}));
      ++drafts;
    }
    step += " --method " + pick({"estimate", "both"});
    check_server(step);
    const Terms terms(document_of("explain step " + step));
    for (const char* section : {"closed form of a token", "closed form of a pass of tokens"})
      queues += terms.find(section, "tokens that queue") ? 1 : 0;
  }
  CHECK(experts > 5);
  CHECK(windows > 5);
  CHECK(continuous > 5);
  CHECK(loads > 3);
  CHECK(queues > 5);
  CHECK(drafts > 10);
}

TEST_CASE(
    "figures and memory of drawn servers whose attention chooses its keys come out of the terms that are printed") {
  std::mt19937 random(20261127);
  const auto pick = [&](std::initializer_list<const char*> of) {
    return std::string(*(of.begin() + random() % of.size()));
  };
  for (int i = 0; i < 12; ++i) {
    std::string step = "deepseek-v3.2-inference-8xh200 --set model.layers=8";
    const auto set = [&](const std::string& path, const std::string& value) { step += " --set " + path + "=" + value; };
    set("model.sparse_attention.top_k", pick({"1", "64", "500", "2048"}));
    set("model.sparse_attention.heads", pick({"1", "64"}));
    set("model.sparse_attention.dim", pick({"64", "129"}));
    set("inference.prompt_tokens", pick({"1", "64", "499", "777", "2048", "5000"}));
    set("inference.output_tokens", pick({"2", "3", "200"}));
    set("inference.batching", pick({"static", "continuous"}));
    set("inference.precision", pick({"bf16", "fp8"}));
    check_server(step + " --method " + pick({"estimate", "both"}));
  }
}

TEST_CASE("longer contexts are what attention behind them takes longer, token by token") {
  const std::string step = "llama3-70b-inference-8xh100 --method estimate";
  const auto attention = [&](int context) {
    const Json doc = document_of(
        "step " + step + " --set inference.output_tokens=2 --set inference.prompt_tokens=" + std::to_string(context));
    for (const Json& op : doc["inference"]["decode"]["operations"])
      if (op["name"] == "attention over the cache") return op["time_s"].get<double>();
    return 0.0;
  };
  double mean = 0;
  for (int k = 0; k < 9; ++k) mean += (attention(2048 + k) - attention(2048)) / 9;
  const Terms terms(document_of("explain step " + step + " --set inference.output_tokens=10"));
  CHECK(mean > 0);
  CHECK(terms.at("stage 0, a token", "longer attention") == Approx(mean).epsilon(1e-9));
}

TEST_CASE("every collective of a server comes with the command that explains it, and its time is the server's") {
  for (const char* step : {"llama3-70b-inference-8xh100", "llama3-70b-inference-8xh100 --library ideal",
                           "gpt3-175b-inference-512gpu --method estimate"}) {
    const Json doc = document_of(std::string("explain step ") + step),
               result = document_of(std::string("step ") + step);
    std::vector<double> times;
    for (const char* phase : {"prefill", "decode"})
      for (const Json& c : result["inference"][phase]["collectives"]) times.push_back(c["time_s"]);
    REQUIRE(doc["commands"].size() == times.size());
    const bool is_nccl = doc["library"] == "nccl";
    for (std::size_t i = 0; i < times.size(); ++i) {
      const std::string command = doc["commands"][i]["command"];
      INFO(command);
      const Terms terms(document_of(command.substr(std::string("collcast ").size())));
      double time = terms.at(is_nccl ? "run" : "total", is_nccl ? "estimate" : "simulation");
      // A pair of A100 alone has both NICs of its switch for its two channels; eight pairs beside each other, as the
      // server's stages are, have one each: HDR's 25 GB/s, of which sends and receives reach 0.88.
      if (is_nccl && command.find("sendrecv") != std::string::npos && command.find("--size 3MiB") != std::string::npos)
        time = terms.at("run", "start") + terms.at("run", "latency") + 3 * 1024 * 1024 / (0.88 * 25e9);
      CHECK(time == Approx(times[i]).epsilon(1e-9));
    }
  }
}

TEST_CASE("a server is explained in every format, and the title has its two times") {
  const std::string step = "explain step llama3-70b-inference-8xh100";
  CHECK_THAT(call(step).out, Contains(": TTFT of 1.326 s, TPOT of 14.39 ms\n") && Contains("\nTPOT\n") &&
                                 Contains("KV cache = bytes x elements x sequences x layers of the stage x tokens"));
  CHECK_THAT(call(step + " --format markdown").out, Contains("TTFT"));
  CHECK_THAT(call(step + " --format csv").out, Contains("rates,tokens/s,"));
  CHECK(call(step + " --fault 'gpu: 3, compute: 80%'").exit == 2);
}
