// TTFT, TPOT and rates of a server, of the passes that explain_serving.cpp takes apart.
#include <fmt/format.h>

#include <utility>

#include "collcast/base/units.hpp"
#include "report/explain.hpp"
#include "report/step_tables.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

/// What a share of a time is made of, and what it comes to.
void add_share(Section& out, const char* name, const std::vector<std::pair<const char*, Seconds>>& parts, Seconds whole,
               const char* of, const char* source) {
  std::vector<std::string> names, times;
  Seconds total{};
  for (const auto& [part, time] : parts) {
    total += time;
    if (!(time > 1e-9 * whole)) continue;
    names.emplace_back(part);
    times.push_back(precise(time));
  }
  if (names.empty()) {
    out.terms.push_back({name, {}, {}, 0, "", source});
    return;
  }
  const auto over = [&](const std::string& sum, const std::string& all) {
    return names.size() > 1 ? fmt::format("({}) / {}", sum, all) : fmt::format("{} / {}", sum, all);
  };
  out.terms.push_back({name, over(joined(names), of), over(joined(times), precise(whole)), total / whole, "", source});
}

void add_shares(Section& out, const ServingPhase& phase, const char* of) {
  const Breakdown& b = phase.breakdown;
  const Seconds whole = phase.time();
  add_share(out, "share of computing", {{"compute", b.compute}}, whole, of, "of the busiest stage");
  add_share(out, "share of communication",
            {{"TP exposed", b.tp_exposed}, {"EP exposed", b.ep_exposed}, {"PP exposed", b.pp_exposed}}, whole, of,
            "that the stage waits for");
  add_share(out, "share of the bubble", {{"bubble", b.bubble}}, whole, of, "that the stage waits for others");
  if (b.other > Seconds{})
    add_share(out, "share of the host", {{"first token overhead", b.other}}, whole, of, "that no GPU computes in");
}

/// What the host takes of a first token, behind what its TTFT is made of; nothing where that is nothing.
struct Overhead {
  std::string formula, numbers;
  Overhead(Section& out, const Serving& s) {
    if (!(s.first_token_overhead > Seconds{})) return;
    out.terms.push_back({"first token overhead",
                         {},
                         {},
                         s.first_token_overhead.count(),
                         "s",
                         "inference.first_token_overhead: what the host takes of a request beyond the GPUs"});
    formula = " + first token overhead";
    numbers = " + " + precise(s.first_token_overhead);
  }
};

/// A pass of tokens is a token, unless some are drafted.
struct TokenWords {
  const char* pass = "token";
  const char* passes = "tokens";
  const char* same = "passes with a token of all in them: the same";
  explicit TokenWords(const Serving& s) {
    if (!s.speculation) return;
    pass = "pass";
    passes = "passes";
    same = "of tokens of all: the same";
  }
};

/// E, how many tokens a pass brings.
Term tokens_per_pass_term(const Serving& s) {
  const Speculation& of = *s.speculation;
  std::string formula = "acceptance length", numbers = exact(of.tokens_per_pass());
  const char* source = "tokens that a pass brings: inference.speculative.acceptance_length";
  if (!of.acceptance_length) {
    const std::string rate = exact(of.acceptance_rate.value_or(0));
    formula = numbers = "";
    for (int i = 0; i < of.tokens; ++i) {
      const bool last = i + 1 == of.tokens;
      formula += last ? "1 + a" : "1 + a (";
      numbers += last ? fmt::format("1 + {}", rate) : fmt::format("1 + {} x (", rate);
    }
    const std::string closed(static_cast<std::size_t>(of.tokens - 1), ')');
    formula += closed;
    numbers += closed;
    source = "tokens that a pass brings, each of those drafted accepted with a where those before it were";
  }
  if (s.tokens_per_pass() < of.tokens_per_pass()) {
    formula = fmt::format("min({}, tokens behind the first)", formula);
    numbers = fmt::format("min({}, {} - 1)", numbers, s.mean_output_tokens());
  } else if (of.acceptance_length) {
    formula = numbers = "";
  }
  return {"E", std::move(formula), std::move(numbers), s.tokens_per_pass(), "", source};
}

/// Of requests in flight: how many passes of tokens each is in.
std::string iterations_text(const Serving& s) {
  return s.speculation ? fmt::format("(({} - 1) / {})", s.output_tokens, exact(s.tokens_per_pass()))
                       : fmt::format("{}", s.output_tokens - 1);
}

/// "2.1 x 3 ms + 1.2 x (5 ms - 3 ms)": what waiting for prompts in passes takes, by name and in numbers.
struct PromptsWaitedFor {
  std::string formula, numbers;
  PromptsWaitedFor(const InferenceResult& served, const std::string& prompts, double count, const std::string& passes,
                   double pass_count) {
    const std::string prompt = precise(served.prefill.pass.time()), further = precise(served.further_prompt());
    formula = prompts + " x prompt";
    numbers = fmt::format("{} x {}", exact(count), prompt);
    if (!served.full_pass) return;
    formula = fmt::format("{} x further prompt + {} x (prompt - further prompt)", prompts, passes);
    numbers = fmt::format("{} x {} + {} x ({} - {})", exact(count), further, exact(pass_count), prompt, further);
  }
};

/// What one more prompt adds to a pass, of a load.
void add_further_prompt(Section& out, const InferenceResult& served) {
  if (!served.full_pass) return;
  const int k = served.full_pass->prompts;
  const Seconds one = served.prefill.pass.time(), full = served.full_pass->pass.time(),
                further = served.further_prompt();
  const std::string numbers = fmt::format("({} - {}) / ({} - 1)", precise(full), precise(one), k);
  if (further == one)
    out.terms.push_back({"further prompt", "prompt", precise(one), further.count(), "s",
                         fmt::format("in a pass: no more than alone, and {} is", numbers)});
  else if (further == Seconds{})
    out.terms.push_back(
        {"further prompt", {}, {}, 0, "s", fmt::format("in a pass: no less than nothing, and {} is", numbers)});
  else
    out.terms.push_back({"further prompt", "(full pass - prompt) / (prompts of a full pass - 1)", numbers,
                         further.count(), "s", "what one more adds to a pass with prompts; the rest is of the pass"});
}

Section ttft_section(const StepReport& report) {
  const InferenceResult& served = *report.result.inference;
  const Serving& s = *report.inputs->serving;
  const Seconds prompt = served.prefill.pass.time();
  Section out;
  out.title = "TTFT";
  const TokenWords words(s);
  const Overhead host(out, s);
  if (!s.is_continuous()) {
    out.terms.push_back({"TTFT", "prompts" + host.formula, precise(prompt) + host.numbers,
                         served.prefill.time().count(), "s",
                         "until the last sequence of the batch has its first token"});
  } else if (s.load) {
    const PromptShares share = prompt_shares(s);
    const Seconds token = served.decode.pass.time();
    const PromptsWaitedFor waits(served, "prompts waited for", share.in_ttft, "passes with prompts waited for",
                                 share.prompt_passes_in_ttft);
    add_further_prompt(out, served);
    out.terms.push_back(
        {"prompts waited for",
         {},
         {},
         share.in_ttft,
         "",
         "its own among them, counted in prompts of the mean length: mean over the requests of the run"});
    if (served.full_pass)
      out.terms.push_back(
          {"passes with prompts waited for", {}, {}, share.prompt_passes_in_ttft, "", "that of its own among them"});
    out.terms.push_back({fmt::format("{} waited for", words.passes), {}, {}, share.tokens_in_ttft, "", words.same});
    out.terms.push_back(
        {"TTFT", fmt::format("{} + {} waited for x {}{}", waits.formula, words.passes, words.pass, host.formula),
         fmt::format("{} + {} x {}{}", waits.numbers, exact(share.tokens_in_ttft), precise(token), host.numbers),
         served.prefill.time().count(), "s", fmt::format("counted pass by pass in {} (docs/steps.md)", load_text(s))});
  } else {
    out.terms.push_back(
        {"TTFT", "(1 + (C - 1) / (2 K)) prompt" + host.formula,
         fmt::format("(1 + ({} - 1) / (2 x {})) x {}{}", s.batch, iterations_text(s), precise(prompt), host.numbers),
         served.prefill.time().count(), "s",
         s.speculation
             ? "C requests in flight, each in K = (output tokens - 1) / E iterations: half of those that enter "
               "at its turn come before it"
             : "C requests in flight, each in K iterations: half of those that enter at its turn come before "
               "it"});
    out.text.push_back(remark("shares are those of the prompts that a request waits for"));
  }
  add_shares(out, served.prefill, "TTFT");
  return out;
}

/// Those of others, between two tokens of a request of a run.
PromptsWaitedFor add_prompts_between(Section& out, const InferenceResult& served, const PromptShares& share,
                                     const char* mean) {
  out.terms.push_back({"prompts between two tokens",
                       {},
                       {},
                       share.in_tpot,
                       "",
                       fmt::format("of others, counted in prompts of the mean length: {}", mean)});
  if (served.full_pass)
    out.terms.push_back(
        {"passes with prompts between two tokens", {}, {}, share.prompt_passes_in_tpot, "", "in which they pass"});
  return {served, "prompts between two tokens", share.in_tpot, "passes with prompts between two tokens",
          share.prompt_passes_in_tpot};
}

/// With speculative decoding.
void add_tpot_of_passes(Section& out, const Serving& s, const InferenceResult& served) {
  const Seconds prompt = served.prefill.pass.time(), pass = served.decode.pass.time();
  const double tokens = s.tokens_per_pass();
  const double tpot = served.decode.time().count();
  if (!s.is_continuous()) {
    out.terms.push_back({"TPOT", "pass / E", fmt::format("{} / {}", precise(pass), exact(tokens)), tpot, "s",
                         "mean over the tokens behind the first"});
    return;
  }
  out.text.push_back(remark("shares count the waiting for others' prompts, too"));
  if (!s.load) {
    out.terms.push_back({"TPOT", "pass / E + (C - 1) (1 - 1 / (2 K)) / (output tokens - 1) x prompt",
                         fmt::format("{} / {} + ({} - 1) x (1 - 1 / (2 x {})) / ({} - 1) x {}", precise(pass),
                                     exact(tokens), s.batch, iterations_text(s), s.output_tokens, precise(prompt)),
                         tpot, "s", "the prompts of all others fall between its tokens"});
    return;
  }
  const PromptShares share = prompt_shares(s);
  out.terms.push_back({"passes between two tokens",
                       {},
                       {},
                       share.passes_in_tpot,
                       "",
                       "of an answer of n tokens (n - 1) / E, rounded up, over n - 1: mean over the requests of the "
                       "run"});
  const PromptsWaitedFor waits = add_prompts_between(out, served, share, "the same");
  out.terms.push_back({"TPOT", fmt::format("passes between two tokens x pass + {}", waits.formula),
                       fmt::format("{} x {} + {}", exact(share.passes_in_tpot), precise(pass), waits.numbers), tpot,
                       "s", "every pass has tokens of each running request in it"});
}

Section tpot_section(const StepReport& report) {
  const InferenceResult& served = *report.result.inference;
  const Serving& s = *report.inputs->serving;
  const Seconds prompt = served.prefill.pass.time(), token = served.decode.pass.time();
  Section out;
  out.title = "TPOT";
  if (s.speculation) {
    out.terms.push_back(tokens_per_pass_term(s));
    add_tpot_of_passes(out, s, served);
  } else if (!s.is_continuous()) {
    out.terms.push_back(
        {"TPOT", "token", precise(token), served.decode.time().count(), "s", "mean over the tokens behind the first"});
  } else if (s.load) {
    const PromptShares share = prompt_shares(s);
    const PromptsWaitedFor waits = add_prompts_between(out, served, share, "mean over the requests of the run");
    out.terms.push_back({"TPOT", fmt::format("token + {}", waits.formula),
                         fmt::format("{} + {}", precise(token), waits.numbers), served.decode.time().count(), "s",
                         "every pass has a token of each running request in it"});
    out.text.push_back(remark("shares count the waiting for others' prompts, too"));
  } else {
    out.terms.push_back({"TPOT", "token + (C - 1) (1 - 1 / (2 K)) / K x prompt",
                         fmt::format("{0} + ({1} - 1) x (1 - 1 / (2 x {2})) / {2} x {3}", precise(token), s.batch,
                                     s.output_tokens - 1, precise(prompt)),
                         served.decode.time().count(), "s", "the prompts of all others fall between its tokens"});
    out.text.push_back(remark("shares count the waiting for others' prompts, too"));
  }
  add_shares(out, served.decode, "TPOT");
  return out;
}

Section rates_of_server(const StepReport& report) {
  const StepInputs& in = *report.inputs;
  const StepResult& r = report.result;
  const InferenceResult& served = *r.inference;
  const Serving& s = *in.serving;
  const Seconds tpot = served.decode.time();
  Section out;
  out.title = "rates";
  out.terms.push_back(
      {"from prompts to last tokens", "TTFT + (output tokens - 1) x TPOT",
       fmt::format("{} + ({} - 1) x {}", precise(served.prefill.time()), s.output_tokens, precise(tpot)),
       r.step.count(), "s", s.is_continuous() ? "of one request" : "of the batch"});
  if (served.load) {
    const LoadRun run = run_load(s);
    const double prompts = static_cast<double>(run.all.prompt_tokens) / s.mean_prompt_tokens();
    const PromptsWaitedFor waits(served, "prompts of the run", prompts, "passes with prompts",
                                 static_cast<double>(run.all.prompt_passes));
    out.terms.push_back(
        {"prompts of the run", {}, {}, prompts, "", "of all requests, counted in prompts of the mean length"});
    if (served.full_pass)
      out.terms.push_back(
          {"passes with prompts", {}, {}, static_cast<double>(run.all.prompt_passes), "", "in which they pass"});
    out.terms.push_back({"passes of tokens",
                         {},
                         {},
                         static_cast<double>(run.all.token_passes),
                         "",
                         fmt::format("with {} of each running request in them", s.speculation ? "tokens" : "a token")});
    std::string host, of_host;
    if (s.first_token_overhead > Seconds{}) {
      out.terms.push_back(
          {"requests of a client", {}, {}, run.requests_of_client, "", "one after the other, each with the overhead"});
      host = " + requests of a client x first token overhead";
      of_host = fmt::format(" + {} x {}", exact(run.requests_of_client), precise(s.first_token_overhead));
    }
    out.terms.push_back({"the whole run",
                         fmt::format("{} + passes of tokens x {}{}", waits.formula, TokenWords(s).pass, host),
                         fmt::format("{} + {} x {}{}", waits.numbers, run.all.token_passes,
                                     precise(served.decode.pass.time()), of_host),
                         served.load->duration.count(), "s", "until the last token of all"});
    out.terms.push_back({"tokens/s", "DP x output tokens of the run / the whole run",
                         fmt::format("{} x {} / {}", in.layout.dp, exact(static_cast<double>(run.output_tokens)),
                                     precise(served.load->duration)),
                         served.tokens_per_s, "", "of all replicas"});
    out.terms.push_back({"tokens/s per GPU", "tokens/s / GPUs",
                         fmt::format("{} / {}", exact(served.tokens_per_s), in.layout.world()), r.tokens_per_s_per_gpu,
                         "", "over the run"});
    return out;
  }
  if (s.is_continuous())
    out.terms.push_back({"tokens/s", "requests in flight x DP x output tokens / from prompts to last tokens",
                         fmt::format("{} x {} x {} / {}", s.batch, in.layout.dp, s.output_tokens, precise(r.step)),
                         served.tokens_per_s, "", "of all replicas (Little's law)"});
  else
    out.terms.push_back({"tokens/s", "batch x DP / TPOT",
                         fmt::format("{} x {} / {}", s.batch, in.layout.dp, precise(tpot)), served.tokens_per_s, "",
                         "of all replicas, while they decode"});
  out.terms.push_back({"tokens/s per GPU", "batch x DP x output tokens / (from prompts to last tokens x GPUs)",
                       fmt::format("{} x {} x {} / ({} x {})", s.batch, in.layout.dp, s.output_tokens, precise(r.step),
                                   in.layout.world()),
                       r.tokens_per_s_per_gpu, "", "over that time, prompts included"});
  return out;
}

}  // namespace

std::vector<Section> serving_times_sections(const StepReport& report) {
  return {ttft_section(report), tpot_section(report), rates_of_server(report)};
}

}  // namespace collcast
