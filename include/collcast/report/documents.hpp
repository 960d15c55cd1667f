// The results that collcast hands out, as plain values, and each of them as JSON, CSV or a page.
//
// One struct per document. `json` keeps the keys of docs/formats.md: units in the names, null for what was
// not run, `schema` and `tool` first, nothing of the moment or the machine it ran on. `csv` is the rows of
// the same document, or its keys and values where it has no rows. `page` is for people.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/cost/estimate.hpp"
#include "collcast/evaluate/evaluate.hpp"
#include "collcast/nccl/channels.hpp"
#include "collcast/report/table.hpp"
#include "collcast/topology/fabric.hpp"
#include "collcast/workload/faulty_step.hpp"
#include "collcast/workload/gates.hpp"
#include "collcast/workload/groups.hpp"
#include "collcast/workload/step.hpp"
#include "collcast/workload/unfolded_step.hpp"

namespace collcast {

std::string_view tool_version();

/// The machine that a result is for.
struct MachineSummary {
  std::string topology;  ///< its name
  std::string title;
  std::string gpu;     ///< model; empty for hosts
  std::string digest;  ///< of all that its description says, so that results can be told apart
  std::string library = "ideal";
  bool calibrated = false;               ///< by an overlay
  bool interval_of_fitted_rows = false;  ///< whose intervals have no row that its fit had not seen
  std::string nccl_factors;              ///< "launch 1.2, hop 0.8": of a calibration of library nccl; else empty
  int nodes = 0;
  int ranks = 0;
  double oversubscription = 1;  ///< of the leaves' uplinks, where there are nodes on several leaves
  bool collnet = false;         ///< switches of its network add up what NICs send
};
MachineSummary summary(const Fabric&);
/// What the machine has and its library does not see: `warnings` of every document on it, and of its pages.
std::vector<std::string> machine_warnings(const MachineSummary&);
/// Of what a machine's description says: equal digests, equal machines but for their name and number of nodes.
std::string digest(const TopologySpec&);
/// What every page on a calibrated machine says.
std::string calibrated_text(const MachineSummary&, Seconds base_latency);

// --- collcast.collective.v1 -----------------------------------------------------------------------------

/// A phase of the closed form, with its link by name.
struct PhaseRow {
  PhaseEstimate estimate;
  std::string busiest_link;  ///< empty: none
};

/// A link in a simulation.
struct LinkRow {
  std::string link;
  Volume carried{};
  Seconds busy{};          ///< with at least one message on it
  double utilisation = 0;  ///< carried / (bandwidth x time until the end)
};
/// Those that carried anything, longest busy first, then the most utilised.
std::vector<LinkRow> link_rows(const Fabric&, const Timeline&);

struct CollectiveRow {
  std::string algorithm;
  std::optional<std::string> protocol;  ///< the ideal library has none
  int group = 0;                        ///< index into CollectiveReport::groups
  int nodes = 0;                        ///< that the group is on
  Bytes size{};
  std::int64_t chunks = 1;
  int channels = 1;
  std::optional<Seconds> estimate, simulate;              ///< with the other groups, if concurrent
  std::optional<Seconds> estimate_alone, simulate_alone;  ///< only if concurrent
  std::optional<std::int64_t> classes;  ///< of ranks (and channels) that do the same, of which one is simulated
  std::optional<std::int64_t> messages, stepped;  ///< simulated, and of these one by one; where it is of one group
  bool approximate = false;                       ///< the closed form
  bool shared = false;                            ///< approximate because transfers share links
  bool bound = false;                             ///< approximate because it is a lower bound, of a user's file
  Seconds rounding{};                             ///< what the simulator's clock may add
  std::vector<PhaseRow> phases;
  std::vector<LinkRow> links;  ///< if asked for and simulated, longest busy first; of all groups if concurrent
  struct RunnerUp {
    std::string algorithm;
    std::int64_t chunks = 1;
    Seconds estimate{};
    std::optional<Seconds> simulate;           ///< where the closed form could not tell the two apart
    std::optional<std::string> protocol = {};  ///< of library nccl
  };
  std::optional<RunnerUp> runner_up;  ///< next best of `auto`
  /// Of library nccl, where it is simulated: the link that has most to carry, beside what the closed form takes.
  struct Busiest {
    std::string link;
    bool shared = false;     ///< by GPUs or channels: not a GPU's port, nor the threads of a channel
    Seconds load{};          ///< what it takes for its bytes
    Seconds data{};          ///< the closed form's busiest resource
    std::string bound = {};  ///< which that is
  };
  std::optional<Busiest> busiest = {};
  /// Between these 8 of 10 measurements of this band of sizes were, by the machine's calibration.
  std::optional<TimeRange> interval = {};

  /// The simulated time if there is one, else the estimate.
  std::optional<Seconds> time() const { return simulate ? simulate : estimate; }
};

struct CollectiveReport {
  MachineSummary machine;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::vector<Group> groups;
  bool concurrent = false;
  bool links = false;  ///< each row's links are asked for
  struct Inputs {
    std::vector<Bytes> sizes;
    int root = 0;
    CollectivePolicy policy;  ///< with the base latency of a calibration
    bool all_algorithms = false;
    Sharing sharing = Sharing::max_min;
    bool estimate = true, simulate = true;   ///< what was asked for, or is run where it is quick
    std::optional<std::string> environment;  ///< of library nccl: "NCCL_PROTO=LL ..." as given
    std::vector<MachineFault> faults = {};   ///< of the machine's links
  } inputs;
  std::vector<CollectiveRow> rows;
  struct Skipped {
    std::string algorithm, reason;
  };
  std::vector<Skipped> skipped;  ///< algorithms that do not apply
  struct Curve {
    std::string algorithm;
    Bytes size{};
    int taken = 1;  ///< chunks of the rows
    std::vector<ChunkPoint> points;
  };
  std::vector<Curve> curves;       ///< time over the number of chunks
  std::vector<std::string> notes;  ///< what was left out, and why
  bool partial = false;            ///< ended before every simulation; a note says what is missing
  std::vector<std::string> said;   ///< warnings that people had on the error stream; documents list them too
};

// --- collcast.step.v1 -----------------------------------------------------------------------------------

struct StepReport {
  MachineSummary machine;
  std::string scenario, title, what_if;
  std::optional<StepInputs> inputs;  ///< nothing for a graph of measured tasks
  CollectivePolicy collectives;      ///< and how they shared links
  Sharing sharing = Sharing::max_min;
  StepResult result;
  bool partial = false;  ///< a simulation was ended: the closed form alone, or no unfolded step
  std::vector<GateResult> gates;
  /// Options of `collcast explain collective` that name this machine, and how its collectives run; empty: unknown.
  std::string machine_options, policy_options;
  bool list_operations = false;               ///< people's page only: kernel by kernel
  std::vector<std::string> said;              ///< as of CollectiveReport
  std::optional<FaultEffect> faults;          ///< what they cost; nothing on a machine without
  std::optional<UnfoldedStep> unfolded = {};  ///< every rank for itself, if asked for
  /// On a calibrated machine that knows how far measurements were from forecasts: with all collectives as short, or as
  /// long, as 8 of 10 were. Of the step; of a batch that is served also of its two times.
  std::optional<TimeRange> interval = {}, ttft_interval = {}, tpot_interval = {};
  std::string beyond_fit = {};  ///< how collectives are beyond what the calibration was fitted to; in warnings, too
  /// What somebody measured of it, and the machine's gpu.kernel_scale with which the forecast would be that; nothing
  /// where no scale from 0.1 to 10 would.
  struct Measured {
    Seconds time{};
    std::optional<double> kernel_scale;
  };
  std::optional<Measured> measured = {};
};
/// Whether a forecast is outside where measurements were by its calibration, and what that means.
bool is_outside(Seconds forecast, const std::optional<TimeRange>&);
inline constexpr const char* outside_text =
    "the forecast itself is outside: the measurements lay elsewhere, and the calibration's fit does not hold for these "
    "sizes";
/// "with all collectives as far from the forecast as 8 of 10 measurements were, the step takes 1 s .. 2 s"
std::optional<std::string> interval_text(const StepReport&);

/// At the limits that the figures missed.
Diagnostics broken_gates(const StepReport&);

// --- collcast.groups.v1 ---------------------------------------------------------------------------------

/// What the traffic between neighbours of the groups of one dimension crosses.
struct Crossing {
  std::string dimension;  ///< tp, pp, dp ...
  int size = 1;           ///< ranks per group
  int groups = 0;
  int nodes = 1;                   ///< that the widest group is on
  std::vector<std::string> kinds;  ///< of links along the routes
  Bandwidth bandwidth{};           ///< smallest of any route
  Seconds latency{};               ///< largest of any route
};

struct GroupsReport {
  ParallelLayout layout;
  std::vector<RankGroups> rows;
  std::optional<MachineSummary> machine;
  std::vector<Crossing> crossings;  ///< with a machine
  std::vector<std::string> said;    ///< as of CollectiveReport
};
/// One Crossing per dimension, over every group of the world; a group's neighbours are consecutive members.
std::vector<Crossing> crossings(const Fabric&, const ParallelLayout&);

// --- collcast.topology.v1, collcast.topologies.v1, collcast.check.v1 --------------------------------------

struct TopologyReport {
  MachineSummary machine;
  TopologySpec spec;
  std::int64_t links = 0;
  struct Example {
    Rank from, to;
    Path path;
    std::vector<std::string> links;
  };
  std::vector<Example> paths;
  std::vector<std::string> nccl;  ///< what NCCL finds on it, line by line; empty: not asked for
  nccl::Channels nccl_channels;   ///< with these lines: those that run among all its ranks
  std::vector<std::string> said;  ///< as of CollectiveReport
};
TopologyReport describe(const Fabric&);

struct TopologyListing {
  struct Entry {
    std::string name, title, gpu;
    int ranks_per_node = 0;
    int default_nodes = 0;
    bool teaching = false;
  };
  std::vector<Entry> entries;
};

struct CheckReport {
  std::string name;
  std::optional<TopologyReport> topology;  ///< nothing where it is wrong
  Diagnostics errors;
};

// --- collcast.explain.v1 --------------------------------------------------------------------------------

/// One figure: its formula, the formula with numbers put in, its value, and where the numbers came from.
struct Term {
  std::string name, formula, numbers;
  double value = 0;
  std::string unit;  ///< s, B, B/s, FLOP, FLOP/s or empty for a count
  std::string source;
};
struct Section {
  std::string title;
  std::vector<Paragraph> text;
  std::vector<Term> terms;
  std::vector<Table> tables;
  std::vector<std::string> commands;  ///< that explain further
};
struct ExplainReport {
  std::string title;
  std::string library = {};  ///< that collectives run by; empty: there are none, as in a graph of measured tasks
  std::vector<Section> sections;
  std::vector<std::string> said = {};  ///< as of CollectiveReport
  std::string partial = {};            ///< what was ended before it was through: "partial: ..."; empty: nothing
};
/// `candidates` as of `choose`: the first is explained, the others are what it was preferred to.
ExplainReport explain(const Fabric&, const CollectiveRequest&, const std::vector<Choice>& candidates,
                      std::optional<Seconds> simulated, const std::vector<ChunkPoint>& curve,
                      Seconds base_latency = {});
ExplainReport explain(const StepReport&);
/// The links that a simulation kept busy longest: bytes, busy time and utilisation until its end.
Section link_use(const Fabric&, const Timeline&);
/// What several groups take; together only if they run at once.
struct GroupTimes {
  Group group;
  std::optional<Seconds> estimate_alone, simulate_alone, estimate, simulate;
};
Section group_times(const std::vector<GroupTimes>&);
/// The links that several of the patterns use, and each one's share of them.
Section shared_links(const Fabric&, std::span<const Pattern>);

// --- each of them, in each format -----------------------------------------------------------------------

std::string json(const CollectiveReport&);
std::string json(const StepReport&);
std::string json(const GroupsReport&);
std::string json(const TopologyReport&);
std::string json(const TopologyListing&);
std::string json(const CheckReport&);
std::string json(const ExplainReport&);

Table csv(const CollectiveReport&);
Table csv(const StepReport&);
Table csv(const GroupsReport&);
Table csv(const TopologyReport&);
Table csv(const TopologyListing&);
Table csv(const CheckReport&);
Table csv(const ExplainReport&);

Page page(const CollectiveReport&);
Page page(const StepReport&);
Page page(const GroupsReport&);
Page page(const TopologyReport&);
Page page(const TopologyListing&);
Page page(const CheckReport&);
Page page(const ExplainReport&);

enum class Format { table, json, csv, markdown };

template <class Document>
void write(std::ostream& out, const Document& document, Format format, TextStyle style = {}) {
  switch (format) {
    case Format::table:
      return write_text(out, page(document), style);
    case Format::json:
      out << json(document);
      return;
    case Format::csv:
      return write_csv(out, csv(document));
    case Format::markdown:
      return write_markdown(out, page(document));
  }
}

}  // namespace collcast
