// The page of a server's forecast: TTFT, TPOT and rates, where the time of both goes, memory, collectives.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "collcast/base/units.hpp"
#include "report/gates.hpp"
#include "report/metrics.hpp"
#include "report/step_tables.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

/// One of several numbers of the same thing, and how the other method's differs.
std::string by_other_method(const ServingPhase& phase, bool same_prices) {
  if (!phase.simulate) return "closed form";
  const std::string difference = difference_text(*phase.simulate, phase.estimate);
  if (!difference.empty()) return "simulated; closed form " + format_seconds(phase.estimate);
  return same_prices ? "simulated; collectives by closed form" : "simulated, as by closed form";
}

bool in_flight(const StepReport& report) {
  return report.inputs && report.inputs->serving && report.inputs->serving->batching == Batching::continuous;
}

bool speculates(const StepReport& report) {
  return report.inputs && report.inputs->serving && report.inputs->serving->speculation;
}

/// Of speculative decoding, behind TPOT: the pass that several of them come with.
void add_pass(Table& out, const StepReport& report) {
  if (!speculates(report)) return;
  const Serving& s = *report.inputs->serving;
  const auto tpot = std::ranges::find(out.rows, "TPOT", [](const auto& row) { return row.front(); });
  out.rows.insert(tpot + 1, {"a pass of tokens", format_seconds(report.result.inference->decode.pass.time()),
                             fmt::format("verifies {} tokens of each sequence, brings {:.4g}", s.verified_tokens(),
                                         s.tokens_per_pass())});
}

Table serving_table(const StepReport& report) {
  const StepResult& r = report.result;
  const InferenceResult& s = *r.inference;
  const bool same = nccl_collectives(report);
  Table out{{}, {{"", "", Align::left}, {"", "", Align::right}, {"", "", Align::left}}, {}};
  if (s.load) {
    const auto mean = [](const std::string& remark) { return remark.empty() ? "mean" : "mean; " + remark; };
    out.rows = {{"TTFT", format_seconds(s.prefill.time()), mean(by_other_method(s.prefill, same))},
                {"TPOT", format_seconds(s.decode.time()), mean(by_other_method(s.decode, same))},
                {"from prompt to last token", format_seconds(r.step), "of a longest answer, at these"},
                {"the whole run", format_seconds(s.load->duration), ""},
                {"output tokens/s", figure_text(s.tokens_per_s), "of all replicas, over the run"},
                {"output tokens/s per GPU", figure_text(r.tokens_per_s_per_gpu), ""}};
    return out;
  }
  if (in_flight(report)) {
    out.rows = {{"TTFT", format_seconds(s.prefill.time()), by_other_method(s.prefill, same)},
                {"TPOT", format_seconds(s.decode.time()), by_other_method(s.decode, same)},
                {"from prompt to last token", format_seconds(r.step), "of one request: TTFT and all further tokens"},
                {"output tokens/s", figure_text(s.tokens_per_s), "of all replicas"},
                {"output tokens/s per GPU", figure_text(r.tokens_per_s_per_gpu), ""}};
    return out;
  }
  out.rows = {{"TTFT", format_seconds(s.prefill.time()), by_other_method(s.prefill, same)},
              {"TPOT", format_seconds(s.decode.time()), by_other_method(s.decode, same)},
              {"with the shortest context", format_seconds(s.first_token), "closed form"},
              {"with the longest", format_seconds(s.last_token), "closed form"},
              {"output tokens/s", figure_text(s.tokens_per_s), "of all replicas, while they decode"},
              {"from prompts to last tokens", format_seconds(r.step), "TTFT and all further tokens"},
              {"output tokens/s per GPU", figure_text(r.tokens_per_s_per_gpu), "over that time"}};
  return out;
}

Table load_table(const LoadTimes& load, const Serving& s) {
  Table out{fmt::format("times of the run's {} requests", s.run_requests()), {{"", "", Align::left}}, {}};
  for (const char* name : {"mean", "median", "90th percentile", "99th", "longest"})
    out.columns.push_back({name, "", Align::right});
  for (const auto& [name, times] : {std::pair("TTFT", &load.ttft), std::pair("TPOT", &load.tpot)})
    out.rows.push_back({name, format_seconds(times->mean), format_seconds(times->p50), format_seconds(times->p90),
                        format_seconds(times->p99), format_seconds(times->longest)});
  return out;
}

Table phases_table(const StepReport& report) {
  const InferenceResult& s = *report.result.inference;
  Table out{"where the time goes" + of_stage(report),
            {{"part", "", Align::left},
             {"TTFT", "", Align::right},
             {"share", "", Align::right},
             {"TPOT", "", Align::right},
             {"share", "", Align::right},
             {"", "", Align::left}},
            {}};
  const double ttft = s.prefill.time().count(), tpot = s.decode.time().count();
  const auto row = [&](const char* name, Seconds prefill, Seconds decode) {
    // Less than a millionth of both is the rounding of sums and of the simulator's clock.
    if (!(prefill.count() > 1e-6 * ttft) && !(decode.count() > 1e-6 * tpot)) return;
    const auto shown = [](Seconds time, double all) {
      return format_seconds(time.count() > 1e-6 * all ? time : Seconds{});
    };
    out.rows.push_back({name, shown(prefill, ttft), percent_of(prefill.count(), ttft), shown(decode, tpot),
                        percent_of(decode.count(), tpot), bar(decode.count(), tpot)});
  };
  const Breakdown &a = s.prefill.breakdown, &b = s.decode.breakdown;
  row("compute", a.compute, b.compute);
  row("TP exposed", a.tp_exposed, b.tp_exposed);
  row("EP exposed", a.ep_exposed, b.ep_exposed);
  row("PP exposed", a.pp_exposed, b.pp_exposed);
  row("bubble", a.bubble, b.bubble);
  row("the host", a.other, b.other);
  out.rows.push_back(
      {"all", format_seconds(s.prefill.time()), "100.0%", format_seconds(s.decode.time()), "100.0%", ""});
  return out;
}

Table layers_table(const StepInputs& in, const InferenceResult& s) {
  const int verified = in.serving->verified_tokens();
  const std::string of_tokens = verified == 1 ? "a token each" : fmt::format("{} tokens each", verified);
  return {layer_title(in),
          {{"", "", Align::left}, {"prompts", "", Align::right}, {of_tokens, "", Align::right}},
          {{"kernels and communication", format_seconds(s.prefill.layer), format_seconds(s.decode.layer)},
           {"of which TP and EP", format_seconds(s.prefill.layer_comm), format_seconds(s.decode.layer_comm)}}};
}

Table serving_operations(const StepInputs& in, const InferenceResult& s) {
  Table out = operations_table(in, {});
  const std::string tokens = in.serving->speculation ? "tokens" : "a token";
  append_operations(out, "prompts", s.prefill.operations);
  append_operations(out, tokens.c_str(), s.decode.operations);
  append_operations(out, "prompts, linear", s.prefill.linear_operations);
  append_operations(out, (tokens + ", linear").c_str(), s.decode.linear_operations);
  append_operations(out, fmt::format("prompts, {}", feed_forward_text(in.model)).c_str(),
                    s.prefill.feed_forward_operations);
  append_operations(out, fmt::format("{}, {}", tokens, feed_forward_text(in.model)).c_str(),
                    s.decode.feed_forward_operations);
  return out;
}

constexpr const char* not_modelled_of_serving =
    "all sequences of the batch come at once, with prompts and answers of one length; not modelled: requests that come "
    "and go, prompts in chunks beside tokens, the host's scheduling and launch gaps (docs/steps.md).";
constexpr const char* not_modelled_in_flight =
    "requests have prompts and answers of one length, and one follows each that is done, as they long have: a run that "
    "begins with all at once is inference.load; not modelled: requests that wait for memory, prompts and tokens in one "
    "pass, the host's scheduling and launch gaps (docs/steps.md).";

constexpr const char* not_modelled_in_run =
    "all clients begin at once, and each sends its next request when it has its last token; a pass with prompts in it "
    "takes what one takes whatever is in it, what they add and what {} takes; not modelled: weights read once for "
    "both, requests that wait "
    "for memory, the host's scheduling and launch gaps (docs/steps.md).";
constexpr const char* not_modelled_of_drafts =
    "every pass brings each sequence the mean of tokens; not modelled: sequences that have more accepted than others, "
    "drafts that branch, a vocabulary of the drafts' own.";
std::string not_modelled_of(const StepReport& report) {
  if (report.result.inference->load)
    return fmt::format(not_modelled_in_run, speculates(report) ? "a pass of tokens of all" : "a token of all");
  return in_flight(report) ? not_modelled_in_flight : not_modelled_of_serving;
}

}  // namespace

std::string load_terms_text(const RequestLoad& load) {
  std::string out;
  if (load.range_ratio < 1) out += fmt::format(", of {:.4g}% of these lengths and more", 100 * load.range_ratio);
  out += fmt::format(", at most {} tokens in a pass", load.max_batched_tokens);
  if (load.recv_interval > 1) out += fmt::format(", new ones looked for every {} tokens", load.recv_interval);
  return out;
}

std::string load_text(const Serving& s) {
  return fmt::format("a run of {} requests by {} clients at once", s.run_requests(), s.clients()) +
         load_terms_text(*s.load);
}

std::string speculation_text(const Serving& s) {
  const int drafted = s.speculation->tokens;
  return fmt::format("{} drafted by {} for a pass, which brings {:.4g}",
                     drafted == 1 ? "1 token" : fmt::format("{} tokens", drafted), to_string(s.speculation->method),
                     s.tokens_per_pass());
}

void add_serving(Page& out, const StepReport& report) {
  const InferenceResult& s = *report.result.inference;
  out.blocks.push_back(serving_table(report));
  add_pass(std::get<Table>(out.blocks.back()), report);
  if (s.load) out.blocks.push_back(load_table(*s.load, *report.inputs->serving));
  if (!report.gates.empty()) out.blocks.push_back(gates_table(report.gates));
  out.blocks.push_back(phases_table(report));
  out.blocks.push_back(layers_table(*report.inputs, s));
  out.blocks.push_back(memory_table(report.result.memory));
  if (!s.prefill.collectives.empty()) {
    out.blocks.push_back(
        collectives_table(report, s.prefill.collectives, in_flight(report) ? "prompt" : "batch of prompts"));
    out.blocks.push_back(collectives_table(report, s.decode.collectives,
                                           speculates(report) ? "pass of tokens of the batch" : "token of the batch"));
  }
  if (report.list_operations) out.blocks.push_back(serving_operations(*report.inputs, s));
  add_price_notes(out, report);
  out.blocks.push_back(Paragraph{not_modelled_of(report), Paragraph::Tone::note});
  if (speculates(report)) out.blocks.push_back(Paragraph{not_modelled_of_drafts, Paragraph::Tone::note});
  if (const auto unmeasured = unmeasured_text(*report.inputs))
    out.blocks.push_back(Paragraph{*unmeasured, Paragraph::Tone::note});
  for (const std::string& warning : report.result.warnings)
    out.blocks.push_back(Paragraph{warning, Paragraph::Tone::warning});
}

}  // namespace collcast
