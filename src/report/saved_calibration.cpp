// The rows of a collcast.calibrate.v1: of each machine and band of sizes the error without and with the fit; the
// parameters are facts, by which two calibrations differ.
#include <fmt/format.h>

#include <array>

#include "collcast/base/units.hpp"
#include "report/saved_document.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

struct NamedBand {
  const char *key, *text;
};
constexpr std::array<NamedBand, 3> named_bands{
    {{"small", "below 64 KiB"}, {"medium", "64 KiB to 4 MiB"}, {"large", "above 4 MiB"}}};

std::string texts_of(const SavedValue& value, const std::string& key) {
  std::string out;
  if (!value.has(key) || !value.json()[key].is_array()) return out;
  for (const Json& one : value.json()[key])
    if (one.is_string()) out += (out.empty() ? "" : ", ") + harmless(one.get_ref<const std::string&>());
  return out;
}

/// Of no more digits than a file has.
std::string number_text(double value) { return fmt::format("{:.6g}", value); }

std::string parameter_text(const SavedValue& from) {
  const bool seconds = from.text("name") == "base_latency";
  const auto text = [&](const char* key) {
    const double value = from.required_number(key);
    return seconds ? format_seconds(Seconds(value)) : number_text(value);
  };
  std::string out = fmt::format("{}; may be {} to {}", text("value"), text("least"), text("most"));
  if (from.has("fitted") && from.json()["fitted"] == false) out += "; as described: no row depends on it";
  if (from.has("bound")) out += "; " + from.text("bound");
  return out;
}

/// "8 B to 1 GiB, 2 to 16 ranks on 1 to 2 nodes, all_reduce"
std::string range_text(const SavedValue& range) {
  const auto size = [&](const char* key) { return format_bytes(Volume(range.required_number(key))); };
  const auto from_to = [&](const char* least, const char* most) {
    const std::string first = number_text(range.required_number(least));
    const std::string last = number_text(range.required_number(most));
    return first == last ? last : first + " to " + last;
  };
  // Those of older fits do not say.
  std::string nodes = range.has("most_nodes") ? from_to("least_nodes", "most_nodes") : std::string();
  if (!nodes.empty()) nodes = " on " + nodes + (nodes == "1" ? " node" : " nodes");
  return fmt::format("{} to {}, {} ranks{}, {}", size("least_size_bytes"), size("most_size_bytes"),
                     from_to("least_ranks", "most_ranks"), nodes, texts_of(range, "collectives"));
}

void add_machine(const SavedValue& machine, SavedResult& out) {
  const std::string name = machine.text("topology");
  const SavedValue bands = machine.object("bands");
  for (const NamedBand& band : named_bands) {
    const SavedValue from = bands.object(band.key);
    if (from.number("n").value_or(0) == 0) continue;
    SavedRow row;
    row.name = fmt::format("{} {}", name, band.text);
    row.figures = {{"rows", from.number("n")},
                   {"before.median_ape", from.number("median_ape_before")},
                   {"median_ape", from.number("median_ape_after")},
                   {"measured_to_predicted_p10", from.number("measured_to_predicted_p10")},
                   {"measured_to_predicted_p90", from.number("measured_to_predicted_p90")}};
    out.rows.push_back(std::move(row));
  }
  if (const std::string digest = machine.text("digest"); !digest.empty())
    out.facts.push_back({"digest of " + name, digest, SavedFact::About::machine_digest, name});
  const bool is_older = !machine.has("parameters");
  const std::string range = is_older ? std::string() : range_text(machine.object("fitted_to"));
  out.facts.push_back(
      {"tables of " + name, texts_of(machine, "tables"), SavedFact::About::calibrated_machine, name, range});
  if (is_older) return;
  out.facts.push_back({"range of " + name, range});
  for (const SavedValue& one : machine.list("parameters")) {
    const std::string parameter = one.text("name");
    out.facts.push_back({fmt::format("parameter of {}: {}", name, parameter), parameter_text(one),
                         SavedFact::About::parameter, name, parameter});
  }
}

}  // namespace

void read_calibrate_rows(const SavedValue& value, SavedResult& out) {
  const std::vector<SavedValue> machines = value.list("machines");
  out.name = machines.size() == 1 ? "calibration of " + machines.front().text("topology") : "calibration";
  for (const char* key : {"library", "statistic", "part"})
    if (const std::string text = value.text(key); !text.empty()) out.facts.push_back({key, text});
  if (value.has("inputs"))
    if (std::string measured = value.object("inputs").text("measured_digest"); !measured.empty())
      out.facts.push_back({"inputs.measured_digest", std::move(measured)});
  for (const SavedValue& machine : machines) add_machine(machine, out);
  if (value.has("warnings") && value.json()["warnings"].is_array())
    for (const Json& warning : value.json()["warnings"])
      if (warning.is_string()) out.warnings.push_back(harmless(warning.get_ref<const std::string&>(), text_length));
  if (value.has("unused"))
    for (const SavedValue& table : value.list("unused")) {
      const std::string id = table.text("id");
      out.facts.push_back({"unused " + id, table.text("why"), SavedFact::About::unused_table, id});
    }
}

}  // namespace collcast
