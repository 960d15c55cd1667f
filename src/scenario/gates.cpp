// `gates`: limits that a scenario's step has to keep, one map per figure with its `max` or `min`.
#include "collcast/workload/gates.hpp"

#include "scenario/files.hpp"

namespace collcast::input {

namespace {

struct Read {
  Object& figure;
  std::string_view key;

  template <class T, class As>
  std::optional<T> as(const As& reads) const {
    T value{};
    return figure.required(key, value, reads) ? std::optional<T>(value) : std::nullopt;
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
  return {};
}

}  // namespace

std::vector<Gate> read_gates(Reader& reader, const Node& node, const std::optional<StepInputs>& step) {
  std::vector<Gate> out;
  Object o(reader, node, "gates");
  for (const GateFigure& figure : gate_figures()) {
    if (const std::string why = lacks(figure.of, step); !why.empty()) {
      o.refuse(figure.name, why);
      continue;
    }
    const Node* limits = o.optional_map(figure.name);
    if (limits == nullptr) continue;
    Object limit(reader, *limits, o.path_of(figure.name));
    const std::string_view key = to_string(figure.bound);
    const auto value = read_limit(figure.name, {limit, key});
    limit.finish();
    if (value) out.push_back({std::string(figure.name), *value, limits->find(key)->at.location()});
  }
  o.finish();
  return out;
}

}  // namespace collcast::input
