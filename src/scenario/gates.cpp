// `gates`: limits that a scenario's step has to keep, one map per figure with its `max` or `min`. Of a run of requests
// such a map has others in it, one per statistic of the requests' times: ttft_s: {max: 1s, p99: {max: 4s}}.
#include "collcast/workload/gates.hpp"

#include <algorithm>
#include <utility>

#include "scenario/files.hpp"

namespace collcast::input {

namespace {

struct Read {
  Object& limits;
  std::string_view key;
  bool required;

  template <class T, class As>
  std::optional<T> as(const As& reads) const {
    T value{};
    const bool read = required ? limits.required(key, value, reads) : limits.optional(key, value, reads);
    return read ? std::optional<T>(value) : std::nullopt;
  }
};

/// The limit of a figure in the unit that its name ends in.
std::optional<double> read_limit(std::string_view name, const Read& read) {
  if (name == "mfu" || name == "hfu") return read.as<double>(AsPercent{});
  if (name == "tokens_per_s_per_gpu" || name == "tokens_per_s") return read.as<double>(AsTokenRate{});
  if (name == "model_flops_per_s_per_gpu") {
    const auto rate = read.as<FlopRate>(AsFlopRate{});
    return rate ? std::optional<double>(rate->value()) : std::nullopt;
  }
  if (name.ends_with("_bytes")) {
    const auto bytes = read.as<Bytes>(AsBytes{});
    return bytes ? std::optional<double>(static_cast<double>(bytes->value())) : std::nullopt;
  }
  const auto time = read.as<Seconds>(AsTime{});
  return time ? std::optional<double>(time->count()) : std::nullopt;
}

/// Why a scenario has not a figure; empty: it has.
std::string lacks(GateFigure::Of of, const std::optional<StepInputs>& step) {
  if (of == GateFigure::Of::all) return {};
  if (!step) return "the scenario is made of 'tasks'";
  if (of == GateFigure::Of::training && step->serving) return "the scenario is of 'inference'";
  if (of == GateFigure::Of::inference && !step->serving) return "the scenario is not of 'inference'";
  if (of == GateFigure::Of::load && !(step->serving && step->serving->load))
    return "the scenario has no run of requests ('inference.load')";
  return {};
}

class GateReader {
 public:
  GateReader(Reader& reader, const std::optional<StepInputs>& step) : reader_(reader), step_(step) {}

  /// What stands among the limits of a figure: one on itself, unless it has others (misspelt ones, too), and these.
  void read(const GateFigure& figure, const Node& node, const std::string& path) {
    Object limits(reader_, node, path);
    const bool has_others =
        std::ranges::any_of(gate_figures(),
                            [&](const GateFigure& f) { return f.among == figure.name && limits.has(f.statistic); }) ||
        std::ranges::any_of(node.entries, [](const Entry& e) { return e.value.kind == Node::Kind::map; });
    limit(figure, limits, !has_others);
    for (const GateFigure& other : gate_figures()) {
      if (other.among != figure.name) continue;
      // Asked for also where it has no meaning: a word beside it is a slip of it there, too.
      const Node* map = limits.optional_map(other.statistic);
      if (const std::string why = lacks(other.of, step_); !why.empty()) {
        limits.refuse(other.statistic, why);
      } else if (map != nullptr) {
        Object own(reader_, *map, limits.path_of(other.statistic));
        limit(other, own, true);
        own.finish();
      }
    }
    limits.finish();
  }

  std::vector<Gate> take() { return std::move(gates_); }

 private:
  void limit(const GateFigure& figure, Object& limits, bool required) {
    const std::string_view key = to_string(figure.bound);
    if (const auto value = read_limit(figure.name, {limits, key, required}))
      gates_.push_back({std::string(figure.name), *value, limits.node().find(key)->at.location()});
  }

  Reader& reader_;
  const std::optional<StepInputs>& step_;
  std::vector<Gate> gates_;
};

}  // namespace

std::vector<Gate> read_gates(Reader& reader, const Node& node, const std::optional<StepInputs>& step) {
  GateReader gates(reader, step);
  Object o(reader, node, "gates");
  for (const GateFigure& figure : gate_figures()) {
    if (!figure.among.empty()) continue;
    if (const std::string why = lacks(figure.of, step); !why.empty())
      o.refuse(figure.name, why);
    else if (const Node* limits = o.optional_map(figure.name))
      gates.read(figure, *limits, o.path_of(figure.name));
  }
  o.finish();
  return gates.take();
}

}  // namespace collcast::input
