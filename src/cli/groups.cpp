// collcast groups: which ranks talk to which, and over what.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <memory>
#include <utility>

#include "cli/commands.hpp"
#include "cli/machine.hpp"
#include "cli/output.hpp"
#include "cli/values.hpp"
#include "collcast/report/documents.hpp"

namespace collcast::cli {

namespace {

struct GroupsArgs {
  std::string tp = "1", pp = "1", dp = "1", cp = "1", ep = "1", etp;
  std::string order = "tp-pp-dp";
  std::string rank;
  MachineOptions machine;
  OutputOptions output;
};

constexpr std::int64_t most_ranks = 1 << 20;
/// Of all ranks' groups together, as text 60 MB; all of them in memory are ten times that.
constexpr std::int64_t most_members = 10'000'000;

/// The experts of a stage cut its ranks anew; in other orders than tp-cp-ep-dp-pp only along DP.
void check_experts(const ParallelLayout& l, Diagnostics& errors) {
  if (l.order != RankOrder::tp_cp_ep_dp_pp && l.expert_tp() != l.tp)
    errors.push_back({command_line, fmt::format("--etp: {} has no place in the order {}", l.etp, to_string(l.order)),
                      fmt::format("expected --order tp-cp-ep-dp-pp, or --etp {}", l.tp)});
  else if (l.order != RankOrder::tp_cp_ep_dp_pp && l.dp % l.ep != 0)
    errors.push_back(
        {command_line, fmt::format("--ep: {} does not divide --dp {}", l.ep, l.dp),
         fmt::format("in the order {} expert groups are parts of data-parallel groups", to_string(l.order))});
  else if (l.tp * l.cp * l.dp % l.expert_tp() != 0 || l.tp * l.cp * l.dp / l.expert_tp() % l.ep != 0)
    errors.push_back({command_line,
                      fmt::format("--ep: {} x expert TP {} does not divide the {} ranks of a stage, --tp {} x --cp {} "
                                  "x --dp {}",
                                  l.ep, l.expert_tp(), l.tp * l.cp * l.dp, l.tp, l.cp, l.dp),
                      "expert groups are parts of a stage"});
}

/// Nothing where its ranks are not known.
std::optional<ParallelLayout> parse_layout(const GroupsArgs& args, Diagnostics& errors) {
  const std::size_t before = errors.size();
  ParallelLayout layout;
  std::int64_t world = 1;
  const auto degree = [&](const char* option, const std::string& text, int& value) {
    value = parse_count(option, text, 1, errors).value_or(1);
    const std::string name = option;
    if (name != "--ep" && name != "--etp") world = std::min(world * value, most_ranks + 1);
  };
  degree("--tp", args.tp, layout.tp);
  degree("--pp", args.pp, layout.pp);
  degree("--dp", args.dp, layout.dp);
  degree("--cp", args.cp, layout.cp);
  degree("--ep", args.ep, layout.ep);
  if (!args.etp.empty()) degree("--etp", args.etp, layout.etp);
  const auto order = parse_word("--order", args.order, {"tp-pp-dp", "tp-cp-ep-dp-pp", "dp-pp-tp"}, errors);
  if (order) layout.order = static_cast<RankOrder>(*order);
  if (world > most_ranks)
    errors.push_back(
        {command_line, fmt::format("the layout has more than {} ranks", most_ranks), "expected smaller degrees"});
  const bool read = errors.size() == before;
  if (layout.cp > 1 && layout.order != RankOrder::tp_cp_ep_dp_pp)
    errors.push_back({command_line, fmt::format("--cp has no place in the order {}", to_string(layout.order)),
                      "expected --order tp-cp-ep-dp-pp"});
  else if (read)
    check_experts(layout, errors);
  if (!read) return std::nullopt;
  return layout;
}

/// Options of a machine that would have no effect.
void check_machine_options(const MachineOptions& machine, const std::optional<ParallelLayout>& layout,
                           Diagnostics& errors) {
  const std::array<std::pair<const char*, bool>, 5> given{{{"--nodes", !machine.nodes.empty()},
                                                           {"--ranks", !machine.ranks.empty()},
                                                           {"--link-bandwidth", !machine.link_bandwidth.empty()},
                                                           {"--link-latency", !machine.link_latency.empty()},
                                                           {"--set", !machine.sets.empty()}}};
  if (machine.topology.empty())
    for (const auto& [option, is_given] : given)
      if (is_given)
        errors.push_back({command_line, fmt::format("{} has no meaning without --topology", option),
                          "expected --topology NAME|FILE, or none of the machine's options"});
  const auto ranks = machine.topology.empty() || machine.ranks.empty()
                         ? std::nullopt
                         : parse_count("--ranks", machine.ranks, 1, errors);
  if (ranks && layout && *ranks != layout->world())
    errors.push_back({command_line, fmt::format("--ranks: {}, and the layout has {}", *ranks, layout->world()),
                      "the layout says how many there are: remove --ranks"});
}

Exit run_groups(const GroupsArgs& args, const Session& session) {
  Diagnostics errors;
  const Format format = parse_format(args.output, errors);
  const auto layout = parse_layout(args, errors);
  const auto rank = args.rank.empty() ? std::nullopt : parse_count("--rank", args.rank, 0, errors);
  if (rank && layout && *rank >= layout->world())
    errors.push_back({command_line,
                      fmt::format("--rank: {} is outside the {} ranks of the layout", *rank, layout->world()),
                      fmt::format("expected a rank from 0 to {}", layout->world() - 1)});
  if (layout && !rank) {
    const ParallelLayout& l = *layout;
    const std::int64_t members = std::int64_t{l.world()} * (l.tp + l.pp + l.dp + l.cp + l.ep);
    if (members > most_members)
      errors.push_back({command_line, fmt::format("the groups of all {} ranks have {} members", l.world(), members),
                        fmt::format("expected --rank R for those of one, or up to {} in all", most_members)});
  }
  check_machine_options(args.machine, layout, errors);
  std::optional<Machine> machine;
  if (layout && !args.machine.topology.empty()) machine = load_machine(args.machine, layout->world(), session, errors);
  if (!errors.empty()) return refuse(session, errors);

  GroupsReport report;
  report.layout = *layout;
  if (machine) {
    report.machine = summary(machine->fabric);
    report.crossings = crossings(machine->fabric, *layout);
    report.said = warn(session, machine->warnings);
    if (format == Format::csv)
      say(session,
          {"what the groups' traffic crosses is not in CSV, which has one row per rank; --format table, json or "
           "markdown has it"});
  }
  const int first = rank.value_or(0), last = rank.value_or(layout->world() - 1);
  for (int r = first; r <= last; ++r) report.rows.push_back(groups_of(*layout, Rank(static_cast<std::uint32_t>(r))));
  return deliver(session, report, format, args.output);
}

}  // namespace

Command add_groups(CLI::App& parent) {
  const auto args = std::make_shared<GroupsArgs>();
  CLI::App& app =
      *parent.add_subcommand("groups", "process groups of a rank or of the world, and what their traffic crosses");
  const auto option = [&](const char* name, std::string& value, const char* type, const char* text) {
    app.add_option(name, value, text)->type_name(type)->group("Layout");
  };
  option("--tp", args->tp, "N", "tensor-parallel degree (default: 1)");
  option("--pp", args->pp, "N", "pipeline-parallel degree (default: 1)");
  option("--dp", args->dp, "N", "data-parallel degree (default: 1)");
  option("--cp", args->cp, "N", "context-parallel degree (default: 1)");
  option("--ep", args->ep, "N", "expert-parallel degree; EP x ETP divides TP x CP x DP (default: 1)");
  option("--etp", args->etp, "N", "ranks that each expert is split over (default: as TP)");
  option("--order", args->order, "ORDER", "tp-pp-dp, tp-cp-ep-dp-pp or dp-pp-tp, fastest first (default: tp-pp-dp)");
  option("--rank", args->rank, "R", "only the groups of this rank");
  add_machine_options(app, args->machine);
  app.get_option("--ranks")->description("as many as the layout has, which needs no saying: TP x PP x CP x DP");
  add_output_options(app, args->output);
  app.footer(
      "Examples:\n"
      "  collcast groups --tp 8 --pp 8 --dp 8 --rank 0\n"
      "  collcast groups --tp 8 --pp 2 --dp 4 --topology dgx-h100 --format markdown");
  return [args](const Session& session) {
    args->machine.outputs = {args->output.file};
    return run_groups(*args, session);
  };
}

}  // namespace collcast::cli
