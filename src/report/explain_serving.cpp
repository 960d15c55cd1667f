// A server's forecast taken apart: the kernels of a layer for prompts and for tokens, what the busiest stage does for a
// micro-batch of either, the closed form of both passes and their parts. What TTFT, TPOT and tokens/s make of them:
// explain_serving_times.cpp. Equations: src/workload/serving/serving.hpp. Memory: explain_serving_memory.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "collcast/base/units.hpp"
#include "report/explain.hpp"
#include "report/step_tables.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

/// A pass as it is spoken of.
struct PassWords {
  const char* name;   ///< of its time: "prompts"
  const char* title;  ///< of sections on a micro-batch
  const char* when;   ///< what collectives are counted in
  bool of_tokens = false;
};
constexpr PassWords prompt_words{"prompts", "prompts of a micro-batch", "pass of the prompts"};
constexpr PassWords one_prompt_words{"prompt", "one prompt", "pass of a prompt"};
constexpr PassWords full_words{"full pass", "a full pass of prompts", "full pass of prompts"};
constexpr PassWords token_words{"token", "a token of each sequence of a micro-batch", "pass of a token each", true};
/// Speculative decoding: of those that are verified, and of drafts.
constexpr PassWords verified_words{"pass", "a pass of tokens of a micro-batch", "pass of tokens", true};

const PassWords& words_of_prompts(const StepInputs& in) {
  return in.serving->is_continuous() ? one_prompt_words : prompt_words;
}

const PassWords& words_of_tokens(const StepInputs& in) {
  return in.serving->speculation ? verified_words : token_words;
}

// --- a layer ---

Section layer_kernels(const StepInputs& in, const ServingPhase& phase, const PassWords& words, bool tokens) {
  Section out =
      kernels_section(in, fmt::format("kernels of one layer, {}", words.title), {{words.name, &phase.operations}});
  if (tokens)
    out.text.push_back(remark(fmt::format(
        "with the shortest context, {} kept tokens; servers replay a token's kernels from a graph: of products in fp8 "
        "and "
        "fp4 the overhead is bf16's, and less than twice 32 rows have the measured ratio of more (docs/steps.md)",
        in.serving->mean_prompt_tokens())));
  Seconds kernels{};
  std::vector<std::string> times;
  for (const Operation& op : phase.operations) {
    kernels += op.time;
    times.push_back(format_seconds(op.time));
  }
  out.terms.push_back({"kernels", "sum of the kernels", joined(times), kernels.count(), "s", ""});
  out.terms.push_back({"TP and EP", {}, {}, phase.layer_comm.count(), "s", "the layer's collectives; none is hidden"});
  out.terms.push_back({"layer", "kernels + TP and EP",
                       fmt::format("{} + {}", format_seconds(kernels), format_seconds(phase.layer_comm)),
                       phase.layer.count(), "s", ""});
  return out;
}

// --- the busiest stage ---

/// "layers", "the embedding".
std::string units_text(const StageTerms::Unit& unit) {
  return unit.count > 1 ? fmt::format("{} {}", unit.count, plural(unit.name)) : "the " + unit.name;
}

/// A part of what a stage does for a micro-batch: by kinds of units, and their sum.
void add_sum(Section& out, const StageTerms& stage, const std::string& part, Seconds StageTerms::Unit::*of,
             Seconds more, const std::string& source) {
  std::vector<std::string> names, times;
  Seconds sum{};
  for (const StageTerms::Unit& unit : stage.units) {
    const Seconds all = unit.count * (unit.*of);
    sum += all;
    if (all == Seconds{}) continue;
    const std::string name = fmt::format("{} of {}", part, units_text(unit));
    out.terms.push_back({name, fmt::format("{} x one", unit.count),
                         fmt::format("{} x {}", unit.count, precise(unit.*of)), all.count(), "s", ""});
    names.push_back(name);
    times.push_back(format_seconds(all));
  }
  if (more > Seconds{}) {
    names.emplace_back("longer contexts");
    times.push_back(format_seconds(more));
  }
  if (names.empty()) return;
  out.terms.push_back(
      {fmt::format("{} of a micro-batch", part), joined(names), joined(times), (sum + more).count(), "s", source});
}

/// How much longer kernels are with the contexts behind the shortest, mean: of a stage, or of all.
Term longer_term(std::string name, const ContextLayers& layers, const LongerContext& longer, Seconds value,
                 const char* which) {
  std::vector<std::string> names, numbers;
  const auto add = [&](const char* what, int count, Seconds one) {
    names.emplace_back(what);
    numbers.push_back(fmt::format("{} x {}", count, precise(one)));
  };
  const bool windows = layers.windowed > 0;
  add(windows ? "layers with all keys x longer attention" : "layers x longer attention", layers.full, longer.full);
  if (windows) add("layers with a window x theirs", layers.windowed, longer.windowed);
  if (layers.drafts > 0) add("drafts x theirs", layers.drafts, longer.draft);
  return {std::move(name), joined(names), joined(numbers), value.count(), "s", which};
}

/// By how much attention over the kept keys takes longer than behind the prompts, mean over tokens.
void add_longer_attention(Section& out, const StepInputs& in, const TokenTerms& t) {
  const int last = in.serving->mean_prompt_tokens() + in.serving->mean_output_tokens() - 2;
  const auto add = [&](const char* name, Seconds mean) {
    out.terms.push_back(
        {name,
         fmt::format("mean over c = {} ... {} of attention(c) - attention({})", in.serving->mean_prompt_tokens(), last,
                     in.serving->mean_prompt_tokens()),
         {},
         mean.count(),
         "s",
         in.model.sparse.top_k > 0
             ? "scores of c kept tokens and its own, the choice, and attention over the chosen ones, by "
               "the rooflines above"
             : "attention over c kept tokens and its own, by the roofline above"});
  };
  add("longer attention", t.longer.full);
  if (windowed_layers(in.model) > 0) add("longer attention in a window", t.longer.windowed);
  if (t.longer.draft > Seconds{}) add("longer attention of a draft", t.longer.draft);
}

Section stage_of_pass(const StepReport& report, const ServingPass& pass, const PassWords& words) {
  const bool tokens = words.of_tokens;
  const StepInputs& in = *report.inputs;
  const TokenTerms& t = report.result.inference->tokens;
  const StageTerms& stage = pass.stage;
  Section out;
  out.title = fmt::format("stage {}, {}", stage.stage, words.title);
  out.text.push_back(remark(
      in.layout.pp > 1 ? fmt::format("the stage with the most work of {}, prompts and tokens together", in.layout.pp)
                       : "all ranks do the same"));
  if (tokens) {
    add_longer_attention(out, in, t);
    out.terms.push_back(longer_term("longer contexts", t.layers[static_cast<std::size_t>(stage.stage)], t.longer,
                                    pass.longer, "of this stage, mean over the tokens"));
  }
  add_sum(out, stage, "compute", &StageTerms::Unit::compute, pass.longer,
          tokens ? "kernels, mean over the tokens" : "kernels");
  add_sum(out, stage, "TP", &StageTerms::Unit::tp, {}, "collectives; none is hidden");
  add_sum(out, stage, "EP", &StageTerms::Unit::ep, {}, "dispatch and combine; none is hidden");
  return out;
}

// --- the closed form ---

/// "3 x 1.2 ms + 1.1 ms": what is the same once; empty where that is more than a person reads.
std::string sum_of_equals(const std::vector<Seconds>& times) {
  constexpr std::size_t most = 8;
  std::vector<std::pair<Seconds, int>> groups;
  for (const Seconds time : times) {
    const auto known = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == time; });
    if (known == groups.end())
      groups.emplace_back(time, 1);
    else
      ++known->second;
  }
  if (groups.size() > most) return {};
  std::vector<std::string> out;
  for (const auto& [time, count] : groups)
    out.push_back(count == 1 ? format_seconds(time) : fmt::format("{} x {}", count, format_seconds(time)));
  return joined(out);
}

Seconds total_of(const std::vector<Seconds>& times) {
  Seconds out{};
  for (const Seconds time : times) out += time;
  return out;
}

/// Runs of stages that take the same, and send the same.
Table stages_table(const ServingTimes& t) {
  Table out{"stages", {{"stage", "", Align::left}, {"F", "", Align::right}, {"C", "", Align::right}}, {}};
  const auto message = [&](std::size_t i) { return i < t.transfer.size() ? t.transfer[i] : Seconds{}; };
  for (std::size_t i = 0, end = 0; i < t.stage.size(); i = end) {
    for (end = i + 1; end < t.stage.size() && t.stage[end] == t.stage[i] && message(end) == message(i);) ++end;
    out.rows.push_back({end - i == 1 ? fmt::format("{}", i) : fmt::format("{}-{}", i, end - 1),
                        format_seconds(t.stage[i]), i < t.transfer.size() ? format_seconds(t.transfer[i]) : "-"});
  }
  return out;
}

struct Slowest {
  Seconds time{};
  std::string where;
};
Slowest slowest_of(const ServingTimes& t) {
  Slowest out;
  const auto take = [&](Seconds time, std::string where) {
    if (time > out.time) out = {time, std::move(where)};
  };
  for (std::size_t i = 0; i < t.stage.size(); ++i) take(t.stage[i], fmt::format("stage {}", i));
  for (std::size_t i = 0; i < t.transfer.size(); ++i)
    take(t.transfer[i], fmt::format("the message behind stage {}", i));
  take(t.back, "the tokens on their way back to stage 0");
  return out;
}

/// M, the sums over stages, and the table of stages where there are several.
void add_times(Section& out, const ServingTimes& t) {
  out.text.push_back(
      remark("F: a micro-batch on a stage, C: the message behind it; collectives priced by closed form"));
  out.terms.push_back({"M", {}, {}, static_cast<double>(t.micro_batches), "", "micro-batches"});
  out.terms.push_back({"sum(F)", t.stage.size() == 1 ? "" : "over the stages",
                       t.stage.size() == 1 ? std::string() : sum_of_equals(t.stage), total_of(t.stage).count(), "s",
                       t.stage.size() == 1 ? "of the one stage" : ""});
  if (t.stage.size() == 1) return;
  out.terms.push_back(
      {"sum(C)", "over the messages", sum_of_equals(t.transfer), total_of(t.transfer).count(), "s", ""});
  out.tables.push_back(stages_table(t));
}

/// A run of requests has passes of several prompts: how many a full one has.
void add_prompts_of_full_pass(Section& out, const Serving& s) {
  const int fit = s.load->max_batched_tokens / s.mean_prompt_tokens();
  const std::string tokens = fmt::format("of the mean length, {} tokens", s.mean_prompt_tokens());
  const std::string note =
      s.batch < 2 || fit < 2
          ? fmt::format("{}: so many never pass together, and show what a further one would add", tokens)
      : s.batch < fit ? "all places, of the mean length"
                      : fmt::format("{}, whole ones in up to {} tokens", tokens, s.load->max_batched_tokens);
  out.terms.push_back({"prompts of a full pass", {}, {}, static_cast<double>(s.prompts_in_full_pass()), "", note});
}

Section closed_form_of_prompts(const StepReport& report, const PassWords& words, const ServingTimes& t,
                               const ServingPass& pass) {
  Section out;
  out.title = fmt::format("closed form of the {}", words.name);
  add_times(out, t);
  const Slowest slowest = slowest_of(t);
  out.terms.push_back({"slowest", "max(F, C)", {}, slowest.time.count(), "s", slowest.where});
  out.terms.push_back({"closed form", "sum(F) + sum(C) + (M - 1) slowest",
                       fmt::format("{} + {} + ({} - 1) {}", precise(total_of(t.stage)), precise(total_of(t.transfer)),
                                   t.micro_batches, precise(slowest.time)),
                       pass.estimate.count(), "s",
                       &words == &full_words                     ? "all of them together"
                       : report.inputs->serving->is_continuous() ? "a prompt passes alone"
                                                                 : "until the last micro-batch has its first tokens"});
  return out;
}

/// The tokens whose time is the way round all stages.
void add_round(Section& out, const TokenTerms& t) {
  ContextLayers all;
  for (const ContextLayers& layers : t.layers) {
    all.full += layers.full;
    all.windowed += layers.windowed;
    all.drafts += layers.drafts;
  }
  out.terms.push_back({"tokens that go round",
                       {},
                       {},
                       static_cast<double>(t.round.tokens),
                       "",
                       "whose micro-batches do not wait for each other"});
  const ServingTimes& f = t.shortest;
  const Seconds longer = all.of(t.round.longer);
  out.terms.push_back(
      longer_term("longer contexts", all, t.round.longer, longer, "of all stages, mean over these tokens"));
  out.terms.push_back({"way round", "sum(F) + longer contexts + sum(C) + B",
                       fmt::format("{} + {} + {} + {}", precise(total_of(f.stage)), precise(longer),
                                   precise(total_of(f.transfer)), precise(f.back)),
                       t.round.time.count(), "s", "mean over these tokens"});
}

/// The tokens whose time is the turns of the micro-batches on the slowest stage or link.
void add_turns(Section& out, const TokenTerms& t) {
  const int m = t.shortest.micro_batches;
  const std::string source = "mean over these tokens";
  out.terms.push_back({"tokens that queue",
                       {},
                       {},
                       static_cast<double>(t.turns.tokens),
                       "",
                       "whose micro-batches wait for the slowest"});
  if (!t.slowest) {
    const Seconds one = t.turns.time / m;
    out.terms.push_back({"slowest",
                         {},
                         {},
                         one.count(),
                         "s",
                         "max(F, C, B), mean over these tokens: a link, or not always the same stage"});
    out.terms.push_back(
        {"turns", "M x slowest", fmt::format("{} x {}", m, precise(one)), t.turns.time.count(), "s", source});
    return;
  }
  const auto stage = static_cast<std::size_t>(*t.slowest);
  const Seconds longer = t.layers[stage].of(t.turns.longer);
  out.terms.push_back(longer_term("longer contexts of the slowest stage", t.layers[stage], t.turns.longer, longer,
                                  "mean over these tokens"));
  out.terms.push_back({"F of the slowest stage",
                       {},
                       {},
                       t.shortest.stage[stage].count(),
                       "s",
                       fmt::format("stage {}, with the shortest context", *t.slowest)});
  out.terms.push_back({"slowest", "F of the slowest stage + longer contexts of the slowest stage",
                       fmt::format("{} + {}", precise(t.shortest.stage[stage]), precise(longer)),
                       (t.shortest.stage[stage] + longer).count(), "s", fmt::format("stage {}", *t.slowest)});
  out.terms.push_back({"turns", "M x slowest", fmt::format("{} x {}", m, precise(t.shortest.stage[stage] + longer)),
                       t.turns.time.count(), "s", source});
}

Section closed_form_of_tokens(const StepReport& report) {
  const InferenceResult& served = *report.result.inference;
  const TokenTerms& t = served.tokens;
  Section out;
  const char* pass = report.inputs->serving->speculation ? "pass of tokens" : "token";
  out.title = fmt::format("closed form of a {}", pass);
  out.text.push_back(remark(fmt::format(
      "a {} takes the way round the stages, or the turns of the micro-batches on the slowest: what is longer", pass)));
  add_times(out, t.shortest);
  if (t.shortest.stage.size() > 1)
    out.terms.push_back(
        {"B", {}, {}, t.shortest.back.count(), "s", "the chosen tokens, from the last stage to the first"});
  if (t.round.tokens > 0) add_round(out, t);
  if (t.turns.tokens > 0) add_turns(out, t);
  const int all = t.round.tokens + t.turns.tokens;
  const char* source = "mean over the tokens behind the first, each with a context of one more";
  if (t.turns.tokens == 0)
    out.terms.push_back({"closed form", "way round", precise(t.round.time), t.mean.count(), "s", source});
  else if (t.round.tokens == 0)
    out.terms.push_back({"closed form", "turns", precise(t.turns.time), t.mean.count(), "s", source});
  else
    out.terms.push_back({"closed form", "(tokens that go round x way round + tokens that queue x turns) / tokens",
                         fmt::format("({} x {} + {} x {}) / {}", t.round.tokens, precise(t.round.time), t.turns.tokens,
                                     precise(t.turns.time), all),
                         t.mean.count(), "s", source});
  return out;
}

// --- a pass in parts ---

void add_part(Section& out, const char* name, const char* of, const ServingPass& pass, Seconds part, Seconds whole) {
  if (!(part > 1e-9 * whole)) return;
  out.terms.push_back({name, fmt::format("M x {} of a micro-batch", of),
                       fmt::format("{} x {}", pass.micro_batches, precise(part / pass.micro_batches)), part.count(),
                       "s", ""});
}

/// The parts of a pass, on the busiest stage; what is left is the bubble.
Section parts_of_pass(const StepReport& report, const ServingPass& pass, const PassWords& words) {
  const Breakdown& b = pass.breakdown;
  const Seconds whole = pass.time();
  Section out;
  out.title = fmt::format("{} {}", &words == &prompt_words ? "the" : "a",
                          &words == &verified_words ? "pass of tokens" : words.name);
  if (pass.simulate)
    out.text.push_back(remark("as simulated: micro-batches through the stages, operation by operation"));
  add_part(out, "compute", "compute", pass, b.compute, whole);
  add_part(out, "TP exposed", "TP", pass, b.tp_exposed, whole);
  add_part(out, "EP exposed", "EP", pass, b.ep_exposed, whole);
  if (b.pp_exposed > 1e-9 * whole)
    out.terms.push_back({"PP exposed",
                         {},
                         {},
                         b.pp_exposed.count(),
                         "s",
                         b.pp_exposed < pass.messages
                             ? "all that the stage waits for: less than what messages add to the pass"
                             : "closed form less that without messages: what they add to the pass"});
  std::vector<std::string> names, times;
  for (const Term& term : out.terms) {
    names.push_back(term.name);
    times.push_back(precise(Seconds(term.value)));
  }
  if (b.bubble > 1e-9 * whole) {
    std::string numbers = precise(whole);
    for (const std::string& time : times) numbers += " - " + time;
    out.terms.push_back(
        {"bubble", fmt::format("{} - all other parts", words.name), numbers, b.bubble.count(), "s",
         b.bubble > 1e-6 * whole ? "the stage waits for others" : "what rounding to picoseconds leaves"});
    names.emplace_back("bubble");
    times.push_back(precise(b.bubble));
  }
  out.terms.push_back({words.name, joined(names), joined(times), b.total().count(), "s",
                       pass.simulate ? "from the simulated timeline" : "by closed form"});
  out.terms.push_back({"closed form", {}, {}, pass.estimate.count(), "s", "as above"});
  if (!pass.simulate) return out;
  const auto& rounds = report.result.inference->simulated_tokens;
  if (words.of_tokens && rounds) {
    out.terms.push_back({"round with the shortest context", {}, {}, rounds->at_first.count(), "s", "simulated"});
    out.terms.push_back({"round between",
                         {},
                         {},
                         rounds->at_middle.count(),
                         "s",
                         fmt::format("simulated: token {} of {}", rounds->middle + 1, rounds->count)});
    out.terms.push_back({"round with the longest", {}, {}, rounds->at_last.count(), "s", "simulated"});
    out.terms.push_back(
        {"simulation", "((m + 1) (first + middle) / 2 + (n - m) (middle + last) / 2 - middle) / n",
         fmt::format("(({0} + 1) x ({1} + {2}) / 2 + ({3} - {0}) x ({2} + {4}) / 2 - {2}) / {3}", rounds->middle,
                     precise(rounds->at_first), precise(rounds->at_middle), rounds->count, precise(rounds->at_last)),
         pass.simulate->count(), "s", "straight lines between the three, m: the one between, of n"});
    return out;
  }
  const std::string difference = difference_text(*pass.simulate, pass.estimate);
  out.terms.push_back({"simulation",
                       {},
                       {},
                       pass.simulate->count(),
                       "s",
                       difference.empty() ? "as the closed form" : difference + " against the closed form"});
  return out;
}

}  // namespace

std::vector<Section> serving_sections(const StepReport& report) {
  const StepInputs& in = *report.inputs;
  const InferenceResult& served = *report.result.inference;
  const PassWords &prompts = words_of_prompts(in), &tokens = words_of_tokens(in);
  std::vector<Section> out{layer_kernels(in, served.prefill, prompts, false),
                           layer_kernels(in, served.decode, tokens, true)};
  for (const auto& [phase, words] : {std::pair(&served.prefill, &prompts), std::pair(&served.decode, &tokens)})
    for (const auto& [operations, of] : {std::pair(&phase->linear_operations, linear_text(in.model)),
                                         std::pair(&phase->feed_forward_operations, feed_forward_text(in.model))})
      if (!operations->empty())
        out.push_back(kernels_section(in, fmt::format("kernels of one layer with {}, {}", of, words->title),
                                      {{words->name, operations}}));
  for (const auto& [phase, words] : {std::pair(&served.prefill, &prompts), std::pair(&served.decode, &tokens)})
    if (!phase->collectives.empty())
      out.push_back(
          collectives_section(report, fmt::format("collectives, {}", words->name), words->when, phase->collectives));
  const FullPromptPass* full = served.full_pass ? &*served.full_pass : nullptr;
  out.push_back(stage_of_pass(report, served.prefill.pass, prompts));
  if (full) out.push_back(stage_of_pass(report, full->pass, full_words));
  out.push_back(stage_of_pass(report, served.decode.pass, tokens));
  out.push_back(closed_form_of_prompts(report, prompts, served.prompts, served.prefill.pass));
  if (full) {
    out.push_back(closed_form_of_prompts(report, full_words, full->times, full->pass));
    add_prompts_of_full_pass(out.back(), *in.serving);
  }
  out.push_back(closed_form_of_tokens(report));
  out.push_back(parts_of_pass(report, served.prefill.pass, prompts));
  if (full) out.push_back(parts_of_pass(report, full->pass, full_words));
  out.push_back(parts_of_pass(report, served.decode.pass, tokens));
  for (Section& section : serving_times_sections(report)) out.push_back(std::move(section));
  for (Section& section : serving_memory_sections(in, report.result, report.machine.ranks / report.machine.nodes))
    out.push_back(std::move(section));
  return out;
}

}  // namespace collcast
