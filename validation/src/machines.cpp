#include "collcast/validation/machines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "collcast/nccl/communicator.hpp"
#include "collcast/report/documents.hpp"
#include "collcast/topology/switches.hpp"
#include "derive_machine.hpp"
#include "gpu_name.hpp"
#include "lines.hpp"
#include "rank_count.hpp"

namespace collcast {

namespace {

/// More GPUs than any one server has: a node of so many is a rack.
constexpr int most_gpus_of_a_server = 16;

/// That the machine which the user named has other GPUs than the table; empty: it has not.
std::string gpu_remark(const MeasuredFacts& facts, const TopologySpec& spec) {
  if (!other_gpu(facts.gpu, spec.gpu.model)) return {};
  return fmt::format("measured on '{}', {} has '{}'", printable(facts.gpu), spec.name, spec.gpu.model);
}

/// That the machine is a guess by its GPU, or how it was derived.
std::string guess_text(const MeasuredFacts& facts, const DerivedMachine& made) {
  const Derivation& d = made.derivation;
  std::string out;
  if (d.changed.empty()) {
    out = fmt::format("{} is a guess by the GPU '{}'", made.spec.name, printable(facts.gpu));
    if (!d.equals.empty()) out += fmt::format("; {} would fit as well", fmt::join(d.equals, ", "));
  } else {
    out = fmt::format("{} is derived from {} by {}: {}", made.spec.name, d.base, fmt::join(d.used, ", "),
                      fmt::join(d.changed, ", "));
  }
  if (!d.assumed.empty()) out += fmt::format("; not said: {}", fmt::join(d.assumed, ", "));
  const bool nics_unsaid = facts.nodes > 1 && facts.nics.empty();
  return out + "; --topology names the machine" + (nics_unsaid ? ", --link-bandwidth beside it the NICs' rate" : "");
}

std::vector<Rank> ranks_of(const MeasuredFacts& facts, const TopologySpec& spec, int per_node) {
  const int size = endpoints_of(spec);
  const int server = facts.gpus_per_node;
  const bool rack = server > 0 && server < size && size % server == 0 && per_node <= server &&
                    (facts.nvlink_domain == size || size > most_gpus_of_a_server);
  const int step = spec.teaching ? per_node : rack ? server : size;
  std::vector<Rank> out;
  for (int node = 0; node < facts.nodes; ++node)
    for (int i = 0; i < per_node; ++i) out.emplace_back(static_cast<std::uint32_t>(node * step + i));
  return out;
}

/// Of what `collcast measure` records: Gloo's binomial tree sends to all children at once, and what it calls the ring
/// of a reduce is a reduce_scatter and a gather (gloo/broadcast.cc, gloo/reduce.cc).
std::string_view own_name(const MeasuredFacts& facts, CollectiveKind kind) {
  const bool of_gloo = facts.backend == "gloo";
  if (facts.algorithm == "binomial_tree") return of_gloo ? "concurrent_tree" : "tree";
  if (facts.algorithm == "ring" && kind == CollectiveKind::reduce && of_gloo) return "scatter_gather";
  if (facts.algorithm == "point_to_point") return "direct";
  return facts.algorithm;
}

void add_remark(std::string& remark, const std::string& more) { remark += (remark.empty() ? "" : "; ") + more; }

std::string algorithm_of(const MeasuredFacts& facts, CollectiveKind kind, std::string& remark) {
  for (const AlgorithmInfo& info : algorithms()) {
    const bool does_it = std::find(info.kinds.begin(), info.kinds.end(), kind) != info.kinds.end();
    if (info.name == own_name(facts, kind) && does_it) return info.name;
  }
  if (!facts.algorithm.empty())
    add_remark(remark, fmt::format("its algorithm '{}' is not known for {}: auto is taken", printable(facts.algorithm),
                                   to_string(kind)));
  return "auto";
}

Diagnostic cannot(std::string why, std::string hint = {}) { return {{}, std::move(why), std::move(hint)}; }

/// 20804 of "2.8.4", 21800 of "2.18"; 0 of what is none.
int version_of(std::string_view text) {
  int parts[3] = {0, 0, 0};
  int part = 0, digits = 0;
  for (const char c : text) {
    if (c == '.' && digits > 0 && part < 2) {
      ++part;
      digits = 0;
    } else if (c >= '0' && c <= '9' && digits < 3) {
      parts[part] = parts[part] * 10 + (c - '0');
      ++digits;
    } else {
      break;
    }
  }
  return part == 0 ? 0 : parts[0] * 10'000 + parts[1] * 100 + parts[2];
}

/// What the table says, else what its machine's file says of its system.
std::string_view stated_version(const MeasuredFacts& facts, const TopologySpec& spec) {
  if (version_of(facts.nccl_version) > 0) return facts.nccl_version;
  const auto of_system = std::ranges::find(spec.nccl_versions, facts.system, [](const auto& one) { return one.first; });
  return of_system == spec.nccl_versions.end() ? std::string_view() : of_system->second;
}

/// The variables that NCCL would follow; what it would not is passed over, and said.
nccl::Environment environment_of(const MeasuredFacts& facts, const TopologySpec& spec, std::string& remark) {
  std::vector<nccl::Setting> settings;
  for (const auto& [name, value] : facts.environment) {
    if (!name.starts_with("NCCL_") || value == "unknown") continue;  // another program's; not stated
    const nccl::Setting one{name, value, {}};
    if (nccl::read_environment(std::span(&one, 1)))
      settings.push_back(one);
    else
      add_remark(remark, fmt::format("{}={} is not understood and passed over", printable(name), printable(value)));
  }
  const Result<nccl::Environment> all = nccl::read_environment(settings);
  nccl::Environment out = all ? *all : nccl::Environment();
  out.launch = {version_of(stated_version(facts, spec)), facts.one_process, {facts.datatype, facts.rows.operation}};
  return out;
}

}  // namespace

Result<Machines> Machines::shipped(const SearchPath& search) {
  Machines out;
  Diagnostics errors;
  for (const TopologyEntry& entry : list_topologies(search)) {
    Result<TopologySpec> spec = load_topology(entry.name, search);
    if (spec)
      out.specs_.push_back(std::move(spec).value());
    else
      append(errors, spec.errors());
  }
  if (!errors.empty()) return errors;
  return out;
}

std::string other_description(const Calibration& by, const TopologySpec& described,
                              const std::vector<std::string>& set) {
  const std::string here = digest(described);
  if (by.description.empty() || by.description == here) return {};
  const auto with = [](const std::vector<std::string>& values) {
    std::string out;
    for (const std::string& value : values) out += (out.empty() ? "set " : ", ") + printable(value);
    return values.empty() ? std::string("nothing set") : out;
  };
  return fmt::format("the overlay was fitted on another description of {}: {} ({}), here it is {} ({})", described.name,
                     printable(by.description), with(by.set), here, with(set));
}

Machines Machines::among(std::vector<TopologySpec> specs) {
  Machines out;
  out.specs_ = std::move(specs);
  return out;
}

Machines Machines::only(TopologySpec spec, std::vector<std::string> set) {
  Machines out;
  out.set_ = std::move(set);
  out.specs_.push_back(std::move(spec));
  out.only_one_ = true;
  return out;
}

std::vector<std::string> Machines::names() const {
  std::vector<std::string> out;
  for (const TopologySpec& spec : specs_) out.push_back(spec.name);
  for (const auto& one : derived_) out.push_back(one.first);
  return out;
}

void Machines::calibrate(Overlay overlay, Library library) {
  overlay_ = std::move(overlay);
  library_ = library;
  fabrics_.clear();
}

Result<Machines::Choice> Machines::choose(const MeasuredFacts& facts) {
  if (only_one_) {
    const TopologySpec& spec = specs_.front();
    return Choice{&spec, "option", gpu_remark(facts, spec), {}};
  }
  for (const TopologySpec& spec : specs_)
    if (std::find(spec.systems.begin(), spec.systems.end(), facts.system) != spec.systems.end()) {
      // Its GPU in words that nobody knows speaks for nothing.
      const bool knows = nccl::compute_capability(facts.gpu).has_value();
      return Choice{&spec, "system", knows ? gpu_remark(facts, spec) : std::string(), {}};
    }
  // Nobody's list has it, but it is how a machine is called here.
  for (const TopologySpec& spec : specs_)
    if (spec.name == facts.system) return Choice{&spec, "system", gpu_remark(facts, spec), {}};
  const int per_node = facts.ranks_per_node > 0 ? facts.ranks_per_node : facts.ranks / std::max(1, facts.nodes);
  Result<DerivedMachine> made = derive_machine(specs_, facts, per_node);
  if (!made) {
    Diagnostics errors = made.errors();
    for (Diagnostic& one : errors)
      if (one.where.file.empty()) one.where = facts.place_of(facts.system.empty() ? "gpu" : "system");
    return errors;
  }
  DerivedMachine machine = std::move(made).value();
  Choice out{nullptr, machine.derivation.changed.empty() ? "gpu" : "derived", guess_text(facts, machine),
             machine.derivation};
  std::string name = machine.spec.name;
  out.spec = &derived_.emplace(std::move(name), std::move(machine.spec)).first->second;
  return out;
}

void Machines::derive(const std::vector<MeasuredTable>& tables) {
  for (const MeasuredTable& table : tables) {
    const bool can_be_placed = table.facts.ranks > 0 && table.facts.nodes > 0;
    if (can_be_placed) static_cast<void>(choose(table.facts));
  }
}

Result<std::shared_ptr<const Fabric>> Machines::built(const TopologySpec& spec, int nodes) {
  auto& fabric = fabrics_[{spec.name, nodes}];
  if (fabric == nullptr) {
    const Calibration* by = overlay_.find(spec.name, library_);
    Result<Fabric> made = Fabric::build(by == nullptr ? spec : calibrated(spec, *by), nodes);
    if (!made) return made.errors();
    fabric = std::make_shared<const Fabric>(std::move(made).value());
  }
  return fabric;
}

Result<PlacedTable> Machines::place(const MeasuredTable& table) {
  const MeasuredFacts& facts = table.facts;
  const auto kind = parse_collective(facts.collective);
  if (facts.collective.empty())
    return cannot("it does not say which collective it is", "name it with --collective, or in the file's name");
  if (!kind)
    return cannot(fmt::format("no forecast of the collective '{}'", printable(facts.collective)),
                  expected_one_of(facts.collective, collective_names()));
  if (facts.ranks == 0 || facts.nodes == 0)
    return cannot("it does not say how many ranks on how many nodes there were",
                  "give --ranks and --nodes; of a CSV table its sidecar, the .yaml of its name beside it, says so too");
  if (!facts.contradiction.empty())
    return Diagnostic{facts.contradicting, facts.contradiction,
                      "is it the sidecar of another table? Correct it, or remove it and give --ranks and --nodes"};
  if (const std::string other = collective_contradiction(facts); !other.empty())
    return Diagnostic{facts.rows.where, other,
                      "is it of another test? Correct its name, its column 'collective', or --collective"};
  if (!facts.doubt.empty())
    return cannot(facts.doubt,
                  "lines are missing in the log, or the test split its ranks into groups; give --ranks and "
                  "--nodes of one collective");
  if (facts.ranks < 2) return Diagnostic{facts.place_of("nranks"), "one rank alone communicates with nobody", {}};
  const int per_node = facts.ranks_per_node > 0 ? facts.ranks_per_node : facts.ranks / facts.nodes;
  const bool is_spread = std::int64_t{per_node} * facts.nodes == facts.ranks;
  if (!is_spread && facts.ranks_per_node > 0 && facts.ranks % facts.nodes == 0) {
    const int each = facts.ranks / facts.nodes;
    return Diagnostic{facts.place_of("ranks_per_node"),
                      fmt::format("ranks_per_node is {}, but {} ranks on {} node{} are {} on each", per_node,
                                  facts.ranks, facts.nodes, facts.nodes == 1 ? "" : "s", each),
                      fmt::format("expected {}, or other nodes or nranks", each)};
  }
  if (!is_spread)
    return Diagnostic{facts.place_of("nranks"),
                      fmt::format("{} ranks do not spread evenly over {} nodes", facts.ranks, facts.nodes),
                      "were lines lost? Give --ranks and --nodes"};
  const Result<Choice> choice = choose(facts);
  if (!choice) return choice.errors();
  const TopologySpec& spec = *choice->spec;
  const int size = endpoints_of(spec);
  if (per_node > size && !spec.teaching)
    return Diagnostic{facts.place_of("nranks"),
                      fmt::format("{} ranks per node, but a node of {} has {}", per_node, spec.name, size),
                      "name another machine with --topology"};
  std::vector<Rank> ranks = ranks_of(facts, spec, per_node);
  const int nodes = static_cast<int>(ranks.back().value()) / size + 1;
  Result<std::shared_ptr<const Fabric>> fabric = built(spec, nodes);
  if (!fabric) return fabric.errors();
  const Calibration* by = overlay_.find(spec.name, library_);
  std::string remark = choice->remark;
  std::string algorithm = algorithm_of(facts, *kind, remark);
  nccl::Environment environment = environment_of(facts, spec, remark);
  for (const Diagnostic& one : warnings(environment, nodes, spec, *kind == CollectiveKind::alltoall))
    add_remark(remark, one.message);
  return PlacedTable{&table,
                     spec.name,
                     choice->matched_by,
                     choice->derived,
                     *fabric,
                     *kind,
                     Group::listed(std::move(ranks)),
                     std::move(algorithm),
                     by != nullptr,
                     by == nullptr ? Seconds(0) : by->base_latency,
                     std::move(environment),
                     std::move(remark),
                     by == nullptr ? std::string() : other_description(*by, spec, set_)};
}

void MachineWarnings::add(const Fabric& fabric) {
  MachineSummary machine = summary(fabric);
  machine.library = library_;
  machine.interval_of_fitted_rows = false;  // tables are scored without intervals
  Diagnostics found = switches_apart(fabric.spec());
  for (std::string& text : machine_warnings(machine)) found.push_back({{fabric.spec().file}, std::move(text), ""});
  for (Diagnostic& one : found)
    if (seen_.insert(fabric.spec().name + one.message).second) all_.push_back(std::move(one));
}

Diagnostics machine_warnings(const std::vector<MeasuredTable>& tables, Machines& machines, Library library) {
  MachineWarnings out{std::string(to_string(library))};
  for (const MeasuredTable& table : tables)
    if (const Result<PlacedTable> place = machines.place(table)) out.add(*place->fabric);
  return out.all();
}

Library usual_library(const std::vector<MeasuredTable>& tables, Machines& machines) {
  bool any = false;
  for (const MeasuredTable& table : tables) {
    const Result<PlacedTable> place = machines.place(table);
    if (place && usual_library(place->fabric->spec()) == Library::nccl) return Library::nccl;
    any = any || place.ok();
  }
  // Of tables that have no place the machine that was named for all.
  const bool is_named = !any && machines.specs().size() == 1;
  return is_named ? usual_library(machines.specs().front()) : Library::ideal;
}

}  // namespace collcast
