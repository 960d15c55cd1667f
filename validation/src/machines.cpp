#include "collcast/validation/machines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>

#include "collcast/report/documents.hpp"
#include "gpu_name.hpp"
#include "lines.hpp"
#include "values.hpp"

namespace collcast {

namespace {

/// More GPUs than any one server has: a node of so many is a rack.
constexpr int most_gpus_of_a_server = 16;

const DeviceGroup& endpoints(const TopologySpec& spec) {
  const auto found = std::find_if(spec.devices.begin(), spec.devices.end(), [](const DeviceGroup& group) {
    return group.kind == DeviceKind::gpu || group.kind == DeviceKind::host;
  });
  check(found != spec.devices.end(), "a machine has one group of endpoints");
  return *found;
}

bool has_link(const TopologySpec& spec, LinkKind kind) {
  return std::any_of(spec.links.begin(), spec.links.end(), [&](const LinkGroup& link) { return link.kind == kind; });
}
bool has_device(const TopologySpec& spec, DeviceKind kind) {
  return std::any_of(spec.devices.begin(), spec.devices.end(), [&](const DeviceGroup& d) { return d.kind == kind; });
}

/// Whether both name a GPU and these are not one; "RTX2080Ti (PCIe gen3)" is an "RTX-2080-Ti".
bool other_gpu(std::string_view a, std::string_view b) {
  const auto squeezed = [](std::string_view name) {
    std::string out = lower(name);
    std::erase_if(out, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
    return out;
  };
  const std::string x = squeezed(a), y = squeezed(b);
  if (x.empty() || y.empty() || x == "none" || x == "unknown") return false;
  return !same_gpu(parse_gpu(a), parse_gpu(b)) && !x.starts_with(y) && !y.starts_with(x);
}

/// "8x IB NDR 400Gb/s": how many, how fast.
struct Nics {
  int count = 0;
  double rate = 0;  ///< bytes per second
};
std::optional<Nics> parse_nics(std::string_view text) {
  const std::size_t by = text.find('x'), unit = text.find("Gb/s");
  if (by == std::string_view::npos || unit == std::string_view::npos) return std::nullopt;
  std::size_t begin = unit;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
  const auto count = read_whole(text.substr(0, by)), rate = read_whole(text.substr(begin, unit - begin));
  if (!count || !rate) return std::nullopt;
  return Nics{*count, *rate * 1e9 / 8};
}

struct NetworkRate {
  double operator()(const std::monostate&) const { return 0; }
  template <class Network>
  double operator()(const Network& network) const {
    return network.bandwidth.value();
  }
};

int network_ports(const TopologySpec& spec) {
  for (const DeviceGroup& group : spec.devices)
    if (group.name == spec.network_devices) return group.count;
  return 0;
}

/// How well a machine fits what is known of a table's; nothing where it cannot be it.
std::optional<int> likeness(const TopologySpec& spec, const MeasuredFacts& facts, int per_node) {
  if (spec.gpu.model.empty() || !same_gpu(parse_gpu(facts.gpu), parse_gpu(spec.gpu.model))) return std::nullopt;
  const int endpoints_per_node = endpoints(spec).count;
  if (per_node > endpoints_per_node) return std::nullopt;
  if (facts.nodes > 1 && std::holds_alternative<std::monostate>(spec.network)) return std::nullopt;
  int score = 0;
  const std::string nvlink = lower(facts.nvlink);
  if (nvlink.starts_with("none") && has_link(spec, LinkKind::nvlink)) return std::nullopt;
  if (nvlink.starts_with("nvlink")) {
    if (!has_link(spec, LinkKind::nvlink)) return std::nullopt;
    const bool said = nvlink.find("nvswitch") != std::string::npos && nvlink.find("no nvswitch") == std::string::npos;
    if (said == has_device(spec, DeviceKind::nvswitch)) score += 4;
  }
  if (facts.gpus_per_node == endpoints_per_node) score += 8;
  if (const auto nics = parse_nics(facts.nics); nics && facts.nodes > 1) {
    const double rate = std::visit(NetworkRate{}, spec.network);
    if (rate > 0 && std::abs(rate * network_ports(spec) / (nics->rate * nics->count) - 1) < 0.1) score += 2;
    if (rate > 0 && std::abs(rate / nics->rate - 1) < 0.1) score += 1;
  }
  return score;
}

/// That the first of equally likely machines was taken.
std::string guess_text(const MeasuredFacts& facts, const std::vector<const TopologySpec*>& best) {
  std::string out = fmt::format("{} is a guess by the GPU '{}'", best.front()->name, printable(facts.gpu));
  if (best.size() > 1) {
    std::vector<std::string> others;
    for (std::size_t i = 1; i < best.size(); ++i) others.push_back(best[i]->name);
    out += fmt::format("; {} would fit as well", fmt::join(others, ", "));
  }
  return out + "; --topology names the machine";
}

std::vector<Rank> ranks_of(const MeasuredFacts& facts, const TopologySpec& spec, int per_node) {
  const int size = endpoints(spec).count;
  const int server = facts.gpus_per_node;
  const bool rack = server > 0 && server < size && size % server == 0 && per_node <= server &&
                    (facts.nvlink_domain == size || size > most_gpus_of_a_server);
  const int step = spec.teaching ? per_node : rack ? server : size;
  std::vector<Rank> out;
  for (int node = 0; node < facts.nodes; ++node)
    for (int i = 0; i < per_node; ++i) out.emplace_back(static_cast<std::uint32_t>(node * step + i));
  return out;
}

/// Other names, by which `collcast measure` records what Gloo ran.
std::string_view own_name(std::string_view algorithm) {
  if (algorithm == "binomial_tree") return "tree";
  if (algorithm == "point_to_point") return "direct";
  return algorithm;
}

void add_remark(std::string& remark, const std::string& more) { remark += (remark.empty() ? "" : "; ") + more; }

std::string algorithm_of(const MeasuredFacts& facts, CollectiveKind kind, std::string& remark) {
  for (const AlgorithmInfo& info : algorithms()) {
    const bool does_it = std::find(info.kinds.begin(), info.kinds.end(), kind) != info.kinds.end();
    if (info.name == own_name(facts.algorithm) && does_it) return info.name;
  }
  if (!facts.algorithm.empty())
    add_remark(remark, fmt::format("its algorithm '{}' is not known for {}: auto is taken", printable(facts.algorithm),
                                   to_string(kind)));
  return "auto";
}

Diagnostic cannot(std::string why, std::string hint = {}) { return {{}, std::move(why), std::move(hint)}; }

/// The variables that NCCL would follow; what it would not is passed over, and said.
nccl::Environment environment_of(const MeasuredFacts& facts, std::string& remark) {
  std::vector<nccl::Setting> settings;
  for (const auto& [name, value] : facts.environment) {
    if (!name.starts_with("NCCL_")) continue;  // another program's
    const nccl::Setting one{name, value, {}};
    if (nccl::read_environment(std::span(&one, 1)))
      settings.push_back(one);
    else
      add_remark(remark, fmt::format("{}={} is not understood and passed over", printable(name), printable(value)));
  }
  const Result<nccl::Environment> all = nccl::read_environment(settings);
  return all ? *all : nccl::Environment();
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
  return out;
}

void Machines::calibrate(Overlay overlay, Library library) {
  overlay_ = std::move(overlay);
  library_ = library;
  fabrics_.clear();
}

Result<Machines::Choice> Machines::choose(const MeasuredFacts& facts) const {
  if (only_one_) {
    const TopologySpec& spec = specs_.front();
    if (!other_gpu(facts.gpu, spec.gpu.model)) return Choice{&spec, "option", {}};
    return Choice{&spec, "option",
                  fmt::format("measured on '{}', {} has '{}'", printable(facts.gpu), spec.name, spec.gpu.model)};
  }
  for (const TopologySpec& spec : specs_)
    if (std::find(spec.systems.begin(), spec.systems.end(), facts.system) != spec.systems.end())
      return Choice{&spec, "system", {}};
  const int per_node = facts.ranks_per_node > 0 ? facts.ranks_per_node : facts.ranks / std::max(1, facts.nodes);
  std::vector<const TopologySpec*> best;
  int most = -1;
  for (const TopologySpec& spec : specs_) {
    const std::optional<int> score = likeness(spec, facts, per_node);
    if (!score || *score < most) continue;
    if (*score > most) best.clear();
    most = *score;
    best.push_back(&spec);
  }
  if (!best.empty()) return Choice{best.front(), "gpu", guess_text(facts, best)};
  const std::string system =
      facts.system.empty() ? "" : fmt::format("lists the system '{}' or ", printable(facts.system));
  return cannot(
      facts.gpu.empty() && system.empty()
          ? std::string("it names neither a system nor a GPU")
          : fmt::format("no machine {}has its GPU '{}' with {} ranks per node", system, printable(facts.gpu), per_node),
      "name its machine with --topology");
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
    return cannot("it does not say how many ranks on how many nodes there were", "give --ranks and --nodes");
  if (!facts.contradiction.empty())
    return cannot(facts.contradiction,
                  "is it the sidecar of another table? Correct it, or remove it and give --ranks and --nodes");
  if (!facts.doubt.empty())
    return cannot(facts.doubt,
                  "lines are missing in the log, or the test split its ranks into groups; give --ranks and "
                  "--nodes of one collective");
  if (facts.ranks < 2) return cannot("one rank alone communicates with nobody");
  const int per_node = facts.ranks_per_node > 0 ? facts.ranks_per_node : facts.ranks / facts.nodes;
  if (per_node * facts.nodes != facts.ranks)
    return cannot(fmt::format("{} ranks do not spread evenly over {} nodes", facts.ranks, facts.nodes),
                  "were lines lost? Give --ranks and --nodes");
  const Result<Choice> choice = choose(facts);
  if (!choice) return choice.errors();
  const TopologySpec& spec = *choice->spec;
  const int size = endpoints(spec).count;
  if (per_node > size && !spec.teaching)
    return cannot(fmt::format("{} ranks per node, but a node of {} has {}", per_node, spec.name, size),
                  "name another machine with --topology");
  std::vector<Rank> ranks = ranks_of(facts, spec, per_node);
  const int nodes = static_cast<int>(ranks.back().value()) / size + 1;
  Result<std::shared_ptr<const Fabric>> fabric = built(spec, nodes);
  if (!fabric) return fabric.errors();
  const Calibration* by = overlay_.find(spec.name, library_);
  std::string remark = choice->remark;
  std::string algorithm = algorithm_of(facts, *kind, remark);
  nccl::Environment environment = environment_of(facts, remark);
  return PlacedTable{&table,
                     spec.name,
                     choice->matched_by,
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

Library usual_library(const std::vector<MeasuredTable>& tables, Machines& machines) {
  for (const MeasuredTable& table : tables) {
    const Result<PlacedTable> place = machines.place(table);
    if (place && usual_library(place->fabric->spec()) == Library::nccl) return Library::nccl;
  }
  return Library::ideal;
}

}  // namespace collcast
