// Overlays: collcast.overlay.v1 -> Overlay and back.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "collcast/base/units.hpp"
#include "collcast/collective/collective.hpp"
#include "collcast/scenario/overlay.hpp"
#include "scenario/files.hpp"
#include "scenario/parse.hpp"

namespace collcast {

std::string_view to_string(LinkClass link_class) {
  switch (link_class) {
    case LinkClass::nvlink:
      return "nvlink";
    case LinkClass::pcie:
      return "pcie";
    case LinkClass::network:
      break;
  }
  return "network";
}

LinkClass class_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
    case LinkKind::c2c:
      return LinkClass::nvlink;
    case LinkKind::pcie:
    case LinkKind::socket:
      return LinkClass::pcie;
    case LinkKind::nic_port:
    case LinkKind::network:
    case LinkKind::direct:
      break;
  }
  return LinkClass::network;
}

namespace input {

namespace {

const std::vector<std::string> band_words{"small", "medium", "large"};

struct AsBaseLatency : AsTime {
  bool operator()(Reader& reader, const Node& node, const std::string& path, Seconds& out) const {
    if (!AsTime::operator()(reader, node, path, out)) return false;
    if (out <= most_base_latency) return true;
    mismatch(reader, node, path, expected());
    return false;
  }
  std::string expected() const {
    return AsTime::expected() + fmt::format(", up to {}ms", most_base_latency.count() * 1e3);
  }
};

std::array<double, 3> read_efficiency(Reader& reader, const Node& node, const std::string& path) {
  std::array<double, 3> out{1, 1, 1};
  Object o(reader, node, path);
  for (const LinkClass link_class : link_classes)
    o.optional(to_string(link_class), out[static_cast<std::size_t>(link_class)],
               AsNumber{least_efficiency, most_efficiency});
  o.finish();
  return out;
}

std::vector<Calibration::Residual> read_residuals(Reader& reader, const Node& node, const std::string& path) {
  std::vector<Calibration::Residual> out;
  Object o(reader, node, path);
  for (const std::string& band : band_words) {
    const Node* one = o.optional_map(band);
    if (one == nullptr) continue;
    Calibration::Residual residual{band};
    Object r(reader, *one, o.path_of(band));
    r.required("rows", residual.rows, AsCount{});
    r.required("before", residual.before, AsNumber{0, 1e9});
    r.required("after", residual.after, AsNumber{0, 1e9});
    r.optional("low", residual.low, AsNumber{0, 1e9});
    r.optional("high", residual.high, AsNumber{0, 1e9});
    if ((residual.low > 0) != (residual.high > 0))
      reader.error(one->at, fmt::format("{} has {} alone", o.path_of(band), residual.low > 0 ? "low" : "high"),
                   "expected both ends of the interval, or neither");
    else if (residual.low > residual.high)
      reader.error(one->at, fmt::format("{}.low is above its high", o.path_of(band)),
                   "expected the lower end of the interval first");
    r.finish();
    out.push_back(residual);
  }
  o.finish();
  return out;
}

NcclFactors read_factors(Reader& reader, const Node& node, const std::string& path) {
  NcclFactors out;
  Object o(reader, node, path);
  for (const NcclFactor& factor : nccl_factors)
    o.optional(factor.name, out.*factor.value, AsNumber{factor.least, factor.most});
  o.optional("takes_ll128", out.takes_ll128, AsTruth{});
  o.optional("nic_rate", out.nic_rate, AsNumber{least_nic_rate, 1});
  o.finish();
  return out;
}

Calibration::Range read_range(Reader& reader, const Node& node, const std::string& path) {
  Calibration::Range out;
  Object o(reader, node, path);
  o.required("least_size", out.least_size, AsBytes{});
  o.required("most_size", out.most_size, AsBytes{});
  o.required("least_ranks", out.least_ranks, AsCount{});
  o.required("most_ranks", out.most_ranks, AsCount{});
  o.optional("least_nodes", out.least_nodes, AsCount{});
  o.optional("most_nodes", out.most_nodes, AsCount{});
  const bool has_least = node.find("least_nodes") != nullptr;
  if (has_least != (node.find("most_nodes") != nullptr))
    reader.error(node.at, fmt::format("{} has {}_nodes alone", path, has_least ? "least" : "most"),
                 "expected both, or neither");
  o.required("collectives", out.collectives,
             AsList<AsWord<std::string>, std::string>{{collective_names(), collective_names()}});
  for (const auto& [name, wrong] : {std::pair("size", out.most_size.value() > 0 && out.least_size > out.most_size),
                                    std::pair("ranks", out.most_ranks > 0 && out.least_ranks > out.most_ranks),
                                    std::pair("nodes", out.most_nodes > 0 && out.least_nodes > out.most_nodes)})
    if (wrong)
      reader.error(node.at, fmt::format("{0}.least_{1} is above its most_{1}", path, name), "exchange the two");
  o.finish();
  return out;
}

Calibration read_calibration(Reader& reader, const Node& node, const std::string& path) {
  Calibration out;
  Object o(reader, node, path);
  o.required("machine", out.machine, AsName{});
  const bool known = o.optional("library", out.library, as_word<Library>({Library::ideal, Library::nccl}));
  if (!known && node.find("library") != nullptr) return out;  // what else it should have is the library's to say
  if (out.library == Library::nccl) {
    if (const Node* factors = o.required_map("factors")) out.nccl = read_factors(reader, *factors, path + ".factors");
  } else {
    o.required("base_latency", out.base_latency, AsBaseLatency{});
    o.required("latency_scale", out.latency_scale, AsNumber{least_latency_scale, most_latency_scale});
    if (const Node* efficiency = o.required_map("efficiency"))
      out.efficiency = read_efficiency(reader, *efficiency, path + ".efficiency");
  }
  if (const Node* range = o.optional_map("fitted_to")) out.range = read_range(reader, *range, path + ".fitted_to");
  if (const Node* residual = o.optional_map("median_error"))
    out.residuals = read_residuals(reader, *residual, path + ".median_error");
  o.optional("interval_of_unseen_tables", out.interval_of_unseen_tables, AsTruth{});
  o.optional("tables", out.tables, AsList<AsText, std::string>{});
  o.optional("description", out.description, AsText{});
  o.optional("set", out.set, AsList<AsText, std::string>{});
  o.finish();
  return out;
}

Overlay read_overlay(Reader& reader, const Node& tree, const std::string& file) {
  Overlay out;
  out.file = file;
  Object o(reader, tree, "");
  // What calibrates machines is an overlay, whatever it calls itself; a file of another kind is said once.
  if (!read_schema(reader, o, "collcast.overlay.v1") && tree.find("machines") == nullptr) return out;
  o.required("fitted_by", out.fitted_by, AsText{});
  const Node* list = o.required_list("machines");
  if (list != nullptr && expect_list(reader, *list, "machines", 10'000)) {
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      Calibration one = read_calibration(reader, list->items[i], fmt::format("machines.{}", i));
      if (!one.machine.empty() && out.find(one.machine, one.library) != nullptr)
        reader.error(
            list->items[i].at,
            fmt::format("machine '{}' is calibrated twice for library {}", one.machine, to_string(one.library)),
            "remove one");
      out.machines.push_back(std::move(one));
    }
    if (list->items.empty()) reader.error(list->at, "machines is empty", "expected at least one machine");
  }
  o.finish();
  return out;
}

}  // namespace

}  // namespace input

const Calibration* Overlay::find(const std::string& machine, Library library) const {
  const auto found = std::find_if(machines.begin(), machines.end(),
                                  [&](const Calibration& c) { return c.machine == machine && c.library == library; });
  return found == machines.end() ? nullptr : &*found;
}

Result<Overlay> parse_overlay(std::string_view text, std::string_view file_name) {
  const std::string file(file_name);
  const Result<input::Node> tree = input::parse_yaml(text, file);
  if (!tree) return tree.errors();
  input::Reader reader;
  reader.error(repeated_keys(*tree));
  Overlay overlay = input::read_overlay(reader, *tree, file);
  if (!reader.ok()) return reader.take();
  return overlay;
}

Result<Overlay> load_overlay(const std::string& name_or_file, const SearchPath& search, const Location& asked_by) {
  std::string file = name_or_file;
  std::error_code unreadable;
  if (!std::filesystem::exists(file, unreadable)) {
    std::vector<std::string> folders;
    for (const std::string& folder : search.topologies) folders.push_back(folder + "/overlays");
    Result<std::string> found = input::find_file({name_or_file, {}, asked_by}, folders, "overlay");
    if (!found) return found.errors();
    file = std::move(found).value();
  }
  const Result<std::string> text = read_file(file, asked_by);
  if (!text) return text.errors();
  return parse_overlay(*text, file);
}

namespace {

/// What a person typed, in quotes that YAML takes off again.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

std::string factors_text(const NcclFactors& factors) {
  std::vector<std::string> out;
  for (const NcclFactor& factor : nccl_factors)
    out.push_back(fmt::format("{}: {:.6g}", factor.name, factors.*factor.value));
  if (!factors.takes_ll128) out.emplace_back("takes_ll128: false");
  if (factors.nic_rate != 1) out.push_back(fmt::format("nic_rate: {:.6g}", factors.nic_rate));
  return fmt::format("    library: nccl\n    factors: {{{}}}\n", fmt::join(out, ", "));
}

std::string links_text(const Calibration& c) {
  return fmt::format("    base_latency: {:.6g}us\n    latency_scale: {:.6g}\n", c.base_latency.count() * 1e6,
                     c.latency_scale) +
         fmt::format("    efficiency: {{nvlink: {:.6g}, pcie: {:.6g}, network: {:.6g}}}\n", c.efficiency[0],
                     c.efficiency[1], c.efficiency[2]);
}

std::string residual_text(const Calibration::Residual& r, Library library) {
  const std::string interval = r.high > 0 ? fmt::format(", low: {:.4f}, high: {:.4f}", r.low, r.high) : "";
  return fmt::format("      {}: {{rows: {}, before: {:.4f}, after: {:.4f}{}}}{}\n", r.band, r.rows, r.before, r.after,
                     interval,
                     r.is_worse()      ? "   # worse than without the fit"
                     : !r.is_far_off() ? ""
                     : library == Library::nccl
                         ? "   # still far off: the fit found none better; errors beyond a fifth count less in it, and "
                           "factors are held near 1"
                         : "   # still far off: the fit found none better");
}

std::string range_text(const Calibration::Range& range) {
  const std::string nodes =
      range.most_nodes > 0 ? fmt::format(", least_nodes: {}, most_nodes: {}", range.least_nodes, range.most_nodes) : "";
  return fmt::format(
      "    fitted_to: {{least_size: {}B, most_size: {}B, least_ranks: {}, most_ranks: {}{}, collectives: [{}]}}\n",
      range.least_size.value(), range.most_size.value(), range.least_ranks, range.most_ranks, nodes,
      fmt::join(range.collectives, ", "));
}

}  // namespace

std::string overlay_text(const Overlay& overlay) {
  std::string out = "# Fitted to measured tables; the hardware's description is elsewhere and unchanged.\n";
  for (const std::string& remark : overlay.remarks) out += fmt::format("# {}\n", remark);
  out += fmt::format("schema: collcast.overlay.v1\nfitted_by: \"{}\"\nmachines:\n", overlay.fitted_by);
  for (const Calibration& c : overlay.machines) {
    out += fmt::format("  - machine: {}\n", c.machine);
    if (!c.description.empty()) out += fmt::format("    description: \"{}\"\n", c.description);
    if (!c.set.empty()) out += "    set:\n";
    for (const std::string& one : c.set) out += fmt::format("      - {}\n", quoted(one));
    out += c.library == Library::nccl ? factors_text(c.nccl) : links_text(c);
    for (const std::string& remark : c.remarks) out += fmt::format("    # {}\n", remark);
    if (c.range) out += range_text(*c.range);
    if (!c.residuals.empty()) out += "    median_error:\n";
    for (const Calibration::Residual& r : c.residuals) out += residual_text(r, c.library);
    if (c.interval_of_unseen_tables) out += "    interval_of_unseen_tables: true\n";
    if (!c.tables.empty()) out += "    tables:\n";
    for (const std::string& table : c.tables) out += fmt::format("      - \"{}\"\n", table);
  }
  return out;
}

Result<Calibration> calibration_of(const Overlay& overlay, const std::string& machine, Library library,
                                   const Location& asked_by) {
  if (const Calibration* found = overlay.find(machine, library)) return *found;
  const Library other = library == Library::nccl ? Library::ideal : Library::nccl;
  const bool of_other = std::ranges::all_of(overlay.machines, [&](const Calibration& c) { return c.library == other; });
  if (of_other && !overlay.machines.empty())
    return Diagnostic{
        asked_by, fmt::format("this overlay is a calibration of library {}", to_string(other)),
        fmt::format("expected --library {}, or an overlay of library {}", to_string(other), to_string(library))};
  std::vector<std::string> names;
  for (const Calibration& c : overlay.machines)
    names.push_back(c.library == Library::nccl ? c.machine + " with library nccl" : c.machine);
  return Diagnostic{asked_by,
                    fmt::format("'{}' does not calibrate '{}'{}", shown(overlay.file), machine,
                                library == Library::nccl ? " with library nccl" : ""),
                    fmt::format("it is for: {}", fmt::join(names, ", "))};
}

namespace {

struct Scale {
  double bandwidth = 1, latency = 1;
  void operator()(std::monostate&) const {}
  template <class Network>
  void operator()(Network& network) const {
    network.bandwidth = network.bandwidth * bandwidth;
    network.latency *= latency;
    if constexpr (requires { network.spine_latency; }) network.spine_latency *= latency;
  }
};

}  // namespace

TopologySpec calibrated(TopologySpec spec, const Calibration& by) {
  spec.calibrated = true;
  spec.interval_of_fitted_rows = !by.interval_of_unseen_tables &&
                                 std::ranges::any_of(by.residuals, [](const auto& band) { return band.high > 0; });
  if (by.library == Library::nccl) {
    spec.nccl = by.nccl;
    if (by.nccl.nic_rate != 1) std::visit(Scale{.bandwidth = by.nccl.nic_rate}, spec.network);
    return spec;
  }
  for (LinkGroup& link : spec.links) {
    link.bandwidth = link.bandwidth * by.efficiency[static_cast<std::size_t>(class_of(link.kind))];
    link.latency *= by.latency_scale;
  }
  std::visit(Scale{by.efficiency[static_cast<std::size_t>(LinkClass::network)], by.latency_scale}, spec.network);
  return spec;
}

}  // namespace collcast
