// collcast.explain.v1 of a collective under library nccl.
#include <fmt/format.h>

#include <algorithm>

#include "collcast/base/units.hpp"
#include "collcast/report/nccl_report.hpp"
#include "report/explain.hpp"
#include "report/metrics.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

constexpr const char* tuning_source = "tuning model of NCCL 2.28.9 (src/graph/tuning.cc)";
constexpr const char* run_source = "docs/nccl.md, 'The run'";

std::string gb(Bandwidth rate) { return figure_text(rate.value() / 1e9); }

Paragraph plain(std::string text) { return {std::move(text), Paragraph::Tone::plain}; }

Section communicator_section(const nccl::Communicator& c, const TopologySpec& spec) {
  Section out;
  out.title = "communicator";
  out.text.push_back(plain(
      fmt::format("{} on {}, compute capability {}.{}, inside {}{}", counted(c.ranks, "rank"), counted(c.nodes, "node"),
                  c.compute_capability / 10, c.compute_capability % 10, to_string(c.ring.type_inside),
                  c.nodes > 1 ? fmt::format(", NICs at {}", to_string(c.ring.type_between)) : std::string())));
  if (!c.environment.given.empty()) {
    out.text.push_back(plain("variables: " + text_of(c.environment)));
    if (const auto names = unused(c.environment, c.nodes, spec); !names.empty())
      out.text.push_back(
          {fmt::format("without effect on a forecast: {}", fmt::join(names, ", ")), Paragraph::Tone::note});
  }
  Table table{"what the search finds: channels x speed",
              {{"pattern", "", Align::left},
               {"channels", "", Align::right},
               {"inside", "GB/s", Align::right},
               {"between", "GB/s", Align::right}},
              {}};
  const auto row = [&](const char* name, const nccl::Graph& graph) {
    // On one node NCCL has a number for it, too, and no use.
    table.rows.push_back(
        {name, fmt::format("{}", graph.channels), gb(graph.inside), c.nodes > 1 ? gb(graph.between) : "-"});
  };
  row("ring", c.ring);
  row("tree", c.tree);
  if (c.collnet) row("collnet chain", c.collnet->chain);
  if (c.collnet && c.collnet->direct) row("collnet direct", *c.collnet->direct);
  if (c.nvls) row("nvls", *c.nvls);
  out.tables.push_back(std::move(table));
  out.text.push_back(plain(fmt::format("{} channels run{}, {} point to point, {} to a peer", c.channels,
                                       c.nvls ? fmt::format(", {} of NVLS", c.nvls_channels) : std::string(),
                                       c.p2p_channels, c.p2p_channels_per_peer)));
  return out;
}

/// Every algorithm and protocol: what NCCL believes, and what the run takes.
Section table_section(const nccl::Communicator& c, const CollectiveRequest& request, const nccl::Plan& chosen) {
  Section out;
  out.title = "NCCL's table";
  const std::string decides =
      chosen.tuner_line > 0 ? fmt::format("line {} of {} decides", chosen.tuner_line, c.environment.files.tuner->name)
                            : std::string("the least is taken");
  Table table{fmt::format("latency + size / bandwidth, as NCCL believes; {}. The forecast is of the run", decides),
              {{"algorithm", "", Align::left},
               {"protocol", "", Align::left},
               {"latency", "", Align::right},
               {"bandwidth", "GB/s", Align::right},
               {"NCCL's time", "", Align::right},
               {"channels", "", Align::right},
               {"forecast", "", Align::right},
               {"", "", Align::left}},
              {}};
  for (const nccl::Candidate& one : tuning_table(c, request.kind, request.size)) {
    if (!one.available) {
      if (one.protocol == nccl::Protocol::simple || one.algorithm <= nccl::Algorithm::ring)
        table.rows.push_back({std::string(to_string(one.algorithm)), std::string(to_string(one.protocol)), "-", "-",
                              "-", "-", "-", one.reason});
      continue;
    }
    const bool taken = one.algorithm == chosen.algorithm && one.protocol == chosen.protocol;
    const nccl::Plan plan = taken ? chosen : plan_of(c, request.kind, request.size, one);
    table.rows.push_back({std::string(to_string(one.algorithm)), std::string(to_string(one.protocol)),
                          format_seconds(one.latency), gb(one.bandwidth), format_seconds(one.time),
                          fmt::format("{}", plan.channels),
                          format_seconds(run(c, request.kind, request.size, plan).time()), taken ? "<- taken" : ""});
  }
  out.tables.push_back(std::move(table));
  return out;
}

/// As it is described, but for its network, of so many times the rate.
Result<Fabric> with_network(const Fabric& fabric, double factor) {
  TopologySpec spec = fabric.spec();
  set_network_rate(spec.network, network_rate(spec.network) * factor);
  return Fabric::build(spec, fabric.nodes());
}

/// Whether NICs of twice the rate, with which NCCL would search and choose anew, would leave a run that is mostly its
/// data's time as it is.
bool leaves_nics_unused(const Fabric& fabric, const nccl::Communicator& c, const CollectiveRequest& request,
                        const nccl::Run& run, std::optional<nccl::Algorithm> only) {
  if (c.nodes == 1 || c.nics.by_pcie || run.data < run.time() * 0.5) return false;
  const Result<Fabric> machine = with_network(fabric, 2);
  if (!machine) return false;
  const auto faster = nccl::connect(*machine, request.group, c.environment);
  if (!faster) return false;
  const auto plan = nccl::plan(*faster, request.kind, request.size, only);
  return plan && nccl::run(*faster, request.kind, request.size, *plan).time() > run.time() * 0.99;
}

/// Whose number of channels it is.
std::string channels_source(const nccl::Communicator& c, const nccl::Plan& plan) {
  if (plan.point_to_point) return run_source;
  if (plan.tuner_channels == 0) return "of those above, as many as the size is worth to NCCL";
  const std::string rule = fmt::format("line {} of {}", plan.tuner_line, c.environment.files.tuner->name);
  if (plan.tuner_channels == plan.channels) return rule;
  return fmt::format("all that there are; {} asks for {}", rule, plan.tuner_channels);
}

Section run_section(const Fabric& fabric, const nccl::Communicator& c, const CollectiveRequest& request,
                    const nccl::Plan& plan, std::optional<nccl::Algorithm> only) {
  const nccl::Run run = nccl::run(c, request.kind, request.size, plan);
  Section out;
  const std::string protocol = protocols_text(plan);
  out.title = plan.point_to_point ? fmt::format("run: point to point, {}", protocol)
                                  : fmt::format("run: {} {}", to_string(plan.algorithm), protocol);
  out.terms.push_back({plan.point_to_point ? "channels to a peer" : "channels",
                       {},
                       {},
                       static_cast<double>(plan.channels),
                       "",
                       channels_source(c, plan)});
  if (plan.point_to_point && plan.channels_between != plan.channels)
    out.terms.push_back(
        {"channels to a peer on another node", {}, {}, static_cast<double>(plan.channels_between), "", run_source});
  if (!plan.point_to_point) {
    out.terms.push_back({"threads", {}, {}, static_cast<double>(plan.threads), "", tuning_source});
    out.terms.push_back({"NCCL's time", {}, {}, plan.believed.count(), "s", tuning_source});
  }
  out.terms.push_back({"chunk", {}, {}, run.chunk.value(), "B", "payload that one step moves, at most"});
  out.terms.push_back({"loops", {}, {}, run.loops, "", "of chunks, on a channel"});
  out.terms.push_back({"start", {}, {}, run.start.count(), "s", "launch and the protocol's start; fitted"});
  out.terms.push_back(
      {"latency", {}, {}, run.latency.count(), "s", "what hops add beyond the data's time; fitted hops"});
  out.terms.push_back({"data", {}, {}, run.data.count(), "s", fmt::format("of the busiest: {}", run.bound)});
  const double time = run.time().count();
  out.terms.push_back(
      {"estimate", "start + latency + data",
       fmt::format("{} + {} + {}", format_seconds(run.start), format_seconds(run.latency), format_seconds(run.data)),
       time, "s", run_source});
  if (!(time > 0)) return out;
  if (leaves_nics_unused(fabric, c, request, run, only))
    out.text.push_back(
        {"NICs of twice the rate would change nothing here: what NCCL's channels move, or the GPUs' own links, is what "
         "holds the data",
         Paragraph::Tone::note});
  const double rate = volume(request.size).value() / time, factor = bus_factor(request.kind, request.group.size());
  out.terms.push_back(
      {"algbw", "N / T", fmt::format("{} / {}", size_text(request.size), format_seconds(run.time())), rate, "B/s", ""});
  out.terms.push_back({"busbw", "algbw x bus factor",
                       fmt::format("{} x {:.4g}", format_bandwidth(Bandwidth(rate)), factor), rate * factor, "B/s",
                       "bus factor of nccl-tests for this collective"});
  return out;
}

}  // namespace

Result<ExplainReport> explain(const Fabric& fabric, const nccl::Communicator& c, const CollectiveRequest& request,
                              std::optional<nccl::Algorithm> only) {
  const Result<nccl::Plan> plan = nccl::plan(c, request.kind, request.size, only);
  if (!plan) return plan.errors();
  ExplainReport out;
  out.title = fmt::format("{} of {} among {} of {}, library nccl", to_string(request.kind), size_text(request.size),
                          counted_ranks(request.group), fabric.spec().name);
  out.library = "nccl";
  out.sections.push_back(communicator_section(c, fabric.spec()));
  if (!plan->point_to_point) out.sections.push_back(table_section(c, request, *plan));
  out.sections.push_back(run_section(fabric, c, request, *plan, only));
  if (fabric.spec().calibrated)
    out.sections.back().text.push_back({calibrated_text(summary(fabric), Seconds(0)), Paragraph::Tone::note});
  MachineSummary machine = summary(fabric);
  machine.library = out.library;
  for (const std::string& text : machine_warnings(machine)) {
    out.sections.back().text.push_back({text, Paragraph::Tone::warning});
    out.said.push_back(text);
  }
  return out;
}

}  // namespace collcast
