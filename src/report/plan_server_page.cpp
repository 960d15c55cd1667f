// A server's plan for people: TTFT, TPOT and tokens/s of each layout, where a token's time goes, one beside the best.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "collcast/base/units.hpp"
#include "report/breakdown.hpp"
#include "report/metrics.hpp"
#include "report/plan_page.hpp"
#include "report/step_tables.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

bool has_experts_told(const PlanReport& report) { return report.inputs.base.model.experts.count > 0; }

bool has_server_intervals(const PlanReport& report) {
  return std::ranges::any_of(report.result.ranked,
                             [](const PlannedLayout& p) { return p.server && p.server->tpot_interval.has_value(); });
}

std::string limits_text(const PlanReport& report) {
  std::string out;
  for (const Gate& gate : report.inputs.limits) {
    out += fmt::format("{}{} {} {}", out.empty() ? "" : ", ", gate.figure,
                       gate_figure(gate.figure).bound == Bound::max ? "at most" : "at least",
                       value_text(gate.limit, unit_of(gate.figure)));
  }
  return out;
}

/// A time of a run of requests: "TTFT p99".
struct RunTime {
  const char* figure;
  TimeSpread LoadTimes::*times;
  TimeStatistic statistic;
  std::string name() const { return fmt::format("{} {}", figure, statistic.name); }
  Seconds of(const LoadTimes& load) const { return load.*times.*statistic.of; }
};

/// What is limited or ranked by of a run of requests, of TTFT or of TPOT.
std::vector<RunTime> told_of_run(const PlanReport& report, bool ttft) {
  using Figure = ServingObjective::Figure;
  const ServingObjective& objective = report.inputs.objective;
  std::vector<RunTime> out;
  for (const TimeStatistic& s : limited_statistics) {
    const bool ranks = objective.statistic != nullptr && objective.statistic->name == s.name &&
                       objective.figure == (ttft ? Figure::ttft : Figure::tpot);
    const bool is_limited = std::ranges::any_of(report.inputs.limits, [&](const Gate& gate) {
      const GateFigure& figure = gate_figure(gate.figure);
      return figure.statistic == s.name && figure.among == (ttft ? "ttft_s" : "tpot_s");
    });
    if (ranks || is_limited) out.push_back({ttft ? "TTFT" : "TPOT", ttft ? &LoadTimes::ttft : &LoadTimes::tpot, s});
  }
  return out;
}

std::string objective_text(const ServingObjective& objective) {
  using Figure = ServingObjective::Figure;
  const char* figure = objective.figure == Figure::tpot   ? "TPOT"
                       : objective.figure == Figure::ttft ? "TTFT"
                                                          : "tokens/s per GPU";
  return objective.statistic == nullptr ? figure : fmt::format("{} {}", figure, objective.statistic->name);
}

std::string stars(const PlannedLayout& p) { return p.simulate ? "" : " *"; }

}  // namespace

std::string server_text(const LayoutChoice& c) {
  std::string out = fmt::format("TP {} x PP {}", c.tp, c.pp);
  if (c.dp > 0) out += fmt::format(" x DP {}", c.dp);
  if (c.ep > 1) out += fmt::format(", EP {}", c.ep);
  if (c.etp > 0 && c.etp != c.tp) out += fmt::format(", expert TP {}", c.etp);
  out += fmt::format(", batch {}", c.batch);
  if (c.micro_batch < c.batch) out += fmt::format(" in micro-batches of {}", c.micro_batch);
  if (c.sequence_parallel) out += ", sequence parallel";
  return out;
}

const char* batching_text(const Serving& s) {
  if (s.load) return ", continuous batching, times of a run of requests";
  return s.is_continuous() ? ", continuous batching" : "";
}

std::string server_load_text(const Serving& s) {
  const RequestLoad& load = *s.load;
  const std::string clients =
      load.concurrency > 0 ? fmt::format("{} clients", load.concurrency) : "as many clients as its batch";
  const std::string requests = load.requests > 0 ? fmt::format("{} requests", load.requests) : "ten requests of each";
  return fmt::format("each replica serves a run: {} at once, {}{}", clients, requests, load_terms_text(load));
}

std::string server_title(const PlanReport& report) {
  const StepInputs& in = report.inputs.base;
  const Serving& s = *in.serving;
  const std::string limits = limits_text(report);
  return fmt::format(
      "{} ({} parameters{}), prompts of {} and answers of {} tokens{}, on {}, library {}; ranked by {}{}",
      in.model.name, format_count(parameter_count(in.model)), further_tokens_text(in.model), s.prompt_tokens,
      s.output_tokens, batching_text(s), gpus_text(report.inputs.gpus, report.machine), report.machine.library,
      objective_text(report.inputs.objective), limits.empty() ? std::string() : "; limits: " + limits);
}

std::vector<Column> server_columns(const PlanReport& report) {
  std::vector<Column> out{
      {"#", "", Align::right}, {"TP", "", Align::right}, {"PP", "", Align::right}, {"DP", "", Align::right}};
  if (has_experts_told(report)) {
    out.push_back({"EP", "", Align::right});
    out.push_back({"expert TP", "", Align::right});
  }
  for (const char* name : {"batch", "mb"}) out.push_back({name, "", Align::right});
  out.push_back({"SP", "", Align::left});
  out.push_back({"tokens/s/GPU", "", Align::right});
  for (const bool ttft : {true, false}) {
    out.push_back({ttft ? "TTFT" : "TPOT", "", Align::right});
    for (const RunTime& time : told_of_run(report, ttft)) out.push_back({time.name(), "", Align::right});
  }
  if (has_server_intervals(report)) out.push_back({"8 of 10", "", Align::left});
  out.push_back({"tokens/s", "", Align::right});
  out.push_back({"peak", "GiB", Align::right});
  out.push_back({"free", "GiB", Align::right});
  out.push_back({"where a token's time goes", "", Align::left});
  return out;
}

std::vector<std::string> server_row(const PlanReport& report, std::string number, const PlannedLayout& p) {
  const LayoutChoice& c = p.choice;
  const PlannedServer& s = *p.server;
  std::vector<std::string> out{std::move(number), fmt::format("{}", c.tp), fmt::format("{}", c.pp),
                               fmt::format("{}", c.dp)};
  if (has_experts_told(report)) {
    out.push_back(fmt::format("{}", c.ep));
    out.push_back(fmt::format("{}", c.etp > 0 ? c.etp : c.tp));
  }
  for (const int count : {c.batch, c.micro_batch}) out.push_back(fmt::format("{}", count));
  out.emplace_back(c.sequence_parallel ? "yes" : "no");
  out.push_back(figure_text(p.rates.tokens_per_s_per_gpu) + stars(p));
  for (const bool ttft : {true, false}) {
    out.push_back(format_seconds(ttft ? s.times().ttft : s.times().tpot));
    for (const RunTime& time : told_of_run(report, ttft)) out.push_back(format_seconds(time.of(*s.load)));
  }
  if (has_server_intervals(report)) out.push_back(s.tpot_interval ? format_range(*s.tpot_interval) : std::string());
  out.push_back(figure_text(s.tokens_per_s));
  out.push_back(gibibytes(p.memory.peak()));
  out.push_back(gibibytes(p.headroom()));
  out.push_back(where_it_goes(s.decode));
  return out;
}

std::string none_keeps_limits(const PlanReport& report, const NearestToLimits& nearest) {
  const PlannedServer& server = *nearest.layout.server;
  std::string of_run;
  for (const bool ttft : {true, false})
    for (const RunTime& time : told_of_run(report, ttft))
      of_run += fmt::format(" ({} {})", time.name(), format_seconds(time.of(*server.load)));
  return fmt::format(
      "no layout that fits keeps the limits; the nearest, {}, has a TTFT of {}, a TPOT of {}{} and {} "
      "tokens/s per GPU: {:.3g} times a limit",
      server_text(nearest.layout.choice), format_seconds(server.times().ttft), format_seconds(server.times().tpot),
      of_run, figure_text(nearest.layout.rates.tokens_per_s_per_gpu), nearest.excess);
}

Table server_variants(const PlanReport& report) {
  const ServingObjective& objective = report.inputs.objective;
  Table table{"what if: the best layout of each variant",
              {{"variant", "", Align::left},
               {"on", "", Align::left},
               {"fit", "", Align::right},
               {"best layout", "", Align::left},
               {"tokens/s/GPU", "", Align::right},
               {"TTFT", "", Align::right},
               {"TPOT", "", Align::right},
               {fmt::format("{} against the base", objective_text(objective)), "", Align::right}},
              {}};
  const std::optional<PlannedLayout>& base = report.variants.front().best;
  for (const PlanVariant& v : report.variants) {
    std::vector<std::string> row{v.name.empty() ? "(as it is)" : v.name, gpus_text(v.gpus, v.machine),
                                 fmt::format("{}{}", v.feasible, v.partial ? " (partial)" : "")};
    if (v.best && v.best->server) {
      const ServerTimes& times = v.best->server->times();
      row.insert(row.end(), {server_text(v.best->choice), figure_text(v.best->rates.tokens_per_s_per_gpu),
                             format_seconds(times.ttft), format_seconds(times.tpot),
                             base && base->server && !v.name.empty()
                                 ? difference(value_of(objective, *v.best), value_of(objective, *base))
                                 : ""});
    } else {
      row.insert(row.end(), {"none fits", "", "", "", ""});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<Table> server_times(const char* name, const WhyLayout& own, const WhyLayout& best) {
  const auto table = [&](const char* title) {
    return Table{title,
                 {{"part", "", Align::left},
                  {name, "", Align::right},
                  {"best", "", Align::right},
                  {"difference", "", Align::right}},
                 {}};
  };
  const auto add = [](Table& to, const char* part, Seconds a, Seconds b) {
    to.rows.push_back({part, format_seconds(a), format_seconds(b), time_difference(a, b)});
  };
  Table rates = table("by closed form");
  const auto rate = [&](const char* figure, double a, double b) {
    rates.rows.push_back({figure, figure_text(a), figure_text(b), difference(a, b)});
  };
  rate("tokens/s per GPU", own.tokens_per_s_per_gpu, best.tokens_per_s_per_gpu);
  rate("tokens/s", own.server->tokens_per_s, best.server->tokens_per_s);
  std::vector<Table> out{std::move(rates)};
  const auto phase = [&](const char* title, const char* total, Breakdown PlannedServer::*parts) {
    const Breakdown &a = (*own.server).*parts, &b = (*best.server).*parts;
    Table times = table(title);
    for (const BreakdownPart& part : breakdown_parts)
      if (std::max(a.*part.time, b.*part.time) > 1e-9 * b.total()) add(times, part.name, a.*part.time, b.*part.time);
    add(times, total, a.total(), b.total());
    out.push_back(std::move(times));
  };
  phase("TPOT by closed form", "TPOT", &PlannedServer::decode);
  phase("TTFT by closed form", "TTFT", &PlannedServer::prefill);
  return out;
}

}  // namespace collcast
