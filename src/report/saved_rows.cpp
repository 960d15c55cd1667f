// The rows of each schema: which keys are figures, which are parts of a figure, which say what it was made from.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "report/breakdown.hpp"
#include "report/saved_document.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

using Keys = std::initializer_list<const char*>;

void add_figures(const SavedValue& from, Keys keys, SavedRow& row, const char* prefix = "") {
  for (const char* key : keys) row.figures.push_back({std::string(prefix) + key, from.number(key)});
}

void add_terms(const SavedValue& from, const char* of, Keys keys, SavedRow& row) {
  for (const char* key : keys) {
    if (const auto value = from.number(key)) row.terms.push_back({of, key, *value});
  }
}

/// Long enough that two values which differ do so here too.
std::string scalar_text(const Json& value) {
  if (value.is_string()) return harmless(value.get_ref<const std::string&>(), text_length);
  return harmless(value.dump(-1, ' ', false, Json::error_handler_t::replace), text_length);
}

/// Every scalar below `value` by its dotted path.
void add_facts(const Json& value, const std::string& path, std::vector<SavedFact>& facts) {
  if (!value.is_object()) {
    facts.push_back({harmless(path), scalar_text(value)});
    return;
  }
  for (const auto& [key, item] : value.items())
    add_facts(item, path.empty() ? key : fmt::format("{}.{}", path, key), facts);
}

/// The machine and the library; the rest of `keys` as they are.
void add_common_facts(const SavedValue& value, Keys keys, std::vector<SavedFact>& facts) {
  for (const char* key : keys) {
    if (value.has(key)) add_facts(value.json()[key], key, facts);
  }
}

std::string variant_name(const SavedValue& value) {
  const std::string what_if = value.text("what_if");
  const std::string name = value.text("scenario");
  return what_if.empty() ? name : fmt::format("{}, what if {}", name, what_if);
}

void read_gates(const SavedValue& value, SavedResult& out) {
  if (!value.has("gates")) return;
  for (const SavedValue& gate : value.list("gates")) {
    const bool kept = gate.has("kept") && gate.json()["kept"].is_boolean() && gate.json()["kept"].get<bool>();
    out.gates.push_back(
        {gate.text("figure"), gate.text("bound"), gate.required_number("limit"), gate.required_number("value"), kept});
  }
}

/// A row that says by which method its times are; `estimate_s` where it is no figure of the row.
void add_method(const SavedValue& from, SavedRow& row) {
  if (from.has("simulate_s"))
    row.method = "simulate";
  else if (from.has("estimate_s"))
    row.method = "estimate";
  const bool is_figure = std::ranges::any_of(row.figures, [](const auto& f) { return f.name == "estimate_s"; });
  if (!is_figure) row.estimate_s = from.number("estimate_s");
}

/// Of a run of requests: the means are ttft_s and tpot_s themselves.
void add_load_figures(const SavedValue& value, SavedRow& row) {
  if (!value.has("load")) return;
  const SavedValue load = value.object("load");
  for (const std::string times : {"ttft", "tpot"})
    add_figures(load.object(times), {"p50_s", "p90_s", "p99_s", "longest_s"}, row, (times + ".").c_str());
}

void add_step_terms(const SavedValue& value, SavedRow& row) {
  const SavedValue breakdown = value.object("breakdown");
  for (const BreakdownPart& part : breakdown_parts) add_terms(breakdown, "step_s", {part.key}, row);
  add_terms(value.object("memory"), "peak_bytes",
            {"parameters_bytes", "gradients_bytes", "gradient_copies_bytes", "optimizer_bytes", "activations_bytes",
             "buffers_bytes", "kv_cache_bytes", "fragments_bytes", "nccl_bytes", "context_bytes"},
            row);
}

/// What a GPU needs beyond the memory that it has; nothing where the document does not say both.
std::optional<double> over_capacity(const SavedValue& memory) {
  const auto peak = memory.number("peak_bytes"), capacity = memory.number("capacity_bytes");
  if (!peak || !capacity) return std::nullopt;
  return std::max(0.0, *peak - *capacity);
}

/// Rows of one name get a number.
void tell_apart(std::vector<SavedRow>& rows) {
  std::map<std::string, int> seen;
  for (SavedRow& row : rows) {
    if (const int times = ++seen[row.name]; times > 1) row.name += fmt::format(" ({})", times);
  }
}

void add_warnings(const SavedValue& value, SavedResult& out) {
  if (value.has("warnings") && value.json()["warnings"].is_array()) {
    for (const Json& warning : value.json()["warnings"]) out.warnings.push_back(scalar_text(warning));
  }
}

}  // namespace

namespace {

/// "layout.tp=4, layout.pp=2": the point of a sweep.
std::string point_name(const SavedValue& from) {
  std::string name = from.has("values") ? std::string() : std::string("point");
  for (const auto& [path, set] : from.object("values").json().items())
    name += fmt::format("{}{}={}", name.empty() ? "" : ", ", harmless(path, text_length),
                        set.is_null() ? "as it is" : scalar_text(set));
  return name;
}

/// Points without a step: a warning for each reason.
void add_impossible(const std::vector<SavedValue>& rows, SavedResult& out) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  for (const SavedValue& from : rows) {
    if (from.has("step_s")) continue;
    const std::string reason = from.has("reason") ? scalar_text(from.json()["reason"]) : std::string();
    auto same = std::ranges::find(by_reason, reason, [](const auto& one) { return one.first; });
    if (same == by_reason.end()) same = by_reason.insert(same, {reason, {}});
    same->second.push_back(point_name(from));
  }
  for (const auto& [reason, points] : by_reason)
    out.warnings.push_back(fmt::format("{}{} cannot be{}", points.front(),
                                       points.size() == 1 ? "" : fmt::format(" and {} more", points.size() - 1),
                                       reason.empty() ? "" : ": " + reason));
}

}  // namespace

void read_sweep_rows(const SavedValue& value, SavedResult& out) {
  out.name = "sweep of " + value.text("scenario");
  out.title = value.text("title");
  const std::vector<SavedValue> rows = value.list("rows");
  for (const SavedValue& from : rows) {
    if (!from.has("step_s")) continue;  // a point that could not be
    SavedRow row;
    row.name = point_name(from);
    add_figures(from, {"step_s", "tokens_per_s_per_gpu", "mfu", "ttft_s", "tpot_s", "tokens_per_s"}, row);
    add_load_figures(from, row);
    std::erase_if(row.figures, [](const auto& figure) { return !figure.value; });
    if (from.has("memory")) {
      add_figures(from.object("memory"), {"peak_bytes"}, row);
      if (const auto over = over_capacity(from.object("memory"))) row.figures.push_back({"over_capacity_bytes", over});
    }
    if (!from.has("tpot_s")) add_step_terms(from, row);
    add_method(from, row);
    add_common_facts(from, {"topology", "machine_digest", "library", "inputs_digest"}, row.facts);
    out.rows.push_back(std::move(row));
  }
  tell_apart(out.rows);
  add_common_facts(value, {"scenario", "machine", "library", "inputs", "partial"}, out.facts);
  add_warnings(value, out);
  add_impossible(rows, out);
  if (value.has("partial") && value.json()["partial"] == true)
    out.warnings.push_back("partial: it was stopped before every point was done");
}

void read_step_rows(const SavedValue& value, SavedResult& out) {
  out.name = variant_name(value);
  out.title = value.text("title");
  SavedRow row;
  // Tasks may take no time, a model's step cannot.
  const double step = value.has("inputs") ? value.positive_number("step_s") : value.required_number("step_s");
  row.figures.push_back({"step_s", step});
  add_figures(value, {"tokens_per_s_per_gpu", "model_flops_per_s_per_gpu", "mfu"}, row);
  const auto over = over_capacity(value.object("memory"));
  add_figures(value.object("memory"), {"peak_bytes"}, row);
  if (over) row.figures.push_back({"over_capacity_bytes", over});
  for (const char* key : {"ttft_s", "tpot_s", "tokens_per_s"}) {
    if (value.has(key)) add_figures(value, {key}, row);
  }
  if (value.has("inference")) add_load_figures(value.object("inference"), row);
  add_figures(value, {"hfu", "compute_to_communication"}, row);
  add_figures(value.object("layer"), {"forward_s", "backward_s", "tp_comm_s", "tp_exposed_s"}, row, "layer.");
  add_step_terms(value, row);
  add_method(value, row);
  out.rows.push_back(std::move(row));
  add_common_facts(value, {"scenario", "what_if", "machine", "library", "inputs", "partial"}, out.facts);
  if (value.has("partial") && value.json()["partial"] == true)
    out.warnings.push_back("partial: it was stopped before all was simulated");
  read_gates(value, out);
  // Nobody has to ask for a job that fits; a variant asks what would be, and its warning is the answer.
  if (over && *over > 0 && value.text("what_if").empty())
    out.gates.push_back({"over_capacity_bytes", "max", 0, *over, false});
  add_warnings(value, out);
}

namespace {

/// "all_reduce 64 MiB, group 1": what a row answers.
std::string collective_name(const SavedValue& row, bool groups) {
  std::string name = row.text("collective");
  const double size = row.required_number("size_bytes");
  // Beyond 2^62 no size is one of ours, and a double may not fit an integer.
  if (size >= 0 && size <= 0x1p62) name += " " + size_text(Bytes(static_cast<std::int64_t>(size)));
  if (groups) name += fmt::format(", group {}", row.number("group").value_or(0));
  return name;
}

void add_phases(const SavedValue& value, SavedRow& row) {
  if (!value.has("phases") || !value.json()["phases"].is_array()) return;
  std::vector<SavedTerm> terms;
  double sum = 0;
  for (const SavedValue& phase : value.list("phases")) {
    const double time = phase.number("time_s").value_or(0);
    terms.push_back({"estimate_s", fmt::format("phase {} {}", terms.size() + 1, phase.text("shape")), time});
    sum += time;
  }
  // With several groups at once the phases are those of one of them alone.
  const double estimate = value.number("estimate_s").value_or(0);
  if (std::abs(sum - estimate) <= 1e-9 * estimate) row.terms = std::move(terms);
}

/// "ring", or "ring LL128" where the library has protocols: how a row does it.
std::string way_name(const SavedValue& row) {
  const std::string protocol = row.text("protocol");
  return protocol.empty() ? row.text("algorithm") : row.text("algorithm") + " " + protocol;
}

/// Whether rows are told apart by their ways: every way was asked for, of which another document may have more, or a
/// question has several rows. Else each question has the one answer that was chosen, and pairs with another choice.
bool by_way(const SavedValue& document, const std::vector<SavedValue>& rows, bool groups) {
  if (document.has("inputs") && document.object("inputs").text("algorithm") == "all") return true;
  std::set<std::string> seen;
  return std::any_of(rows.begin(), rows.end(),
                     [&](const SavedValue& row) { return !seen.insert(collective_name(row, groups)).second; });
}

}  // namespace

void read_collective_rows(const SavedValue& value, SavedResult& out) {
  const SavedValue machine = value.object("machine");
  const bool groups = value.has("groups") && value.json()["groups"].is_array() && value.json()["groups"].size() > 1;
  const std::vector<SavedValue> rows = value.list("rows");
  const bool ways = by_way(value, rows, groups);
  std::set<std::string> kinds, libraries;
  for (const SavedValue& from : rows) {
    SavedRow row;
    row.name = collective_name(from, groups);
    if (ways) row.name += ", " + way_name(from);
    add_figures(from, {"estimate_s", "simulate_s", "busbw_bytes_per_s"}, row);
    add_phases(from, row);
    add_method(from, row);
    add_common_facts(from, {"algorithm", "protocol", "chunks", "channels", "ranks", "nodes"}, row.facts);
    kinds.insert(from.text("collective"));
    if (from.has("library")) libraries.insert(from.text("library"));
    out.rows.push_back(std::move(row));
  }
  tell_apart(out.rows);
  std::string kind;
  for (const std::string& name : kinds) kind += (kind.empty() ? "" : " ") + name;
  out.name = fmt::format("{} on {}", kind, machine.text("topology"));
  add_common_facts(value, {"machine", "concurrent", "inputs", "partial"}, out.facts);
  // Of every row, and so told once, under the name that it has in other documents; older ones have it in rows alone.
  std::erase_if(out.facts, [](const SavedFact& fact) { return fact.name == "inputs.library"; });
  if (!libraries.empty()) out.facts.push_back({"library", fmt::format("{}", fmt::join(libraries, ", "))});
  add_warnings(value, out);
  if (value.has("partial") && value.json()["partial"] == true)
    out.warnings.push_back("partial: it was stopped before every simulation had ended");
}

namespace {

std::string layout_name(const SavedValue& row) {
  const auto part = [&](const char* key) { return row.has(key) ? scalar_text(row.json()[key]) : "?"; };
  const std::string sequence = part("sequence_parallel") == "true" ? ", sequence parallel" : "";
  const std::string chunks = row.has("vpp") && part("vpp") != "1" ? ", VPP " + part("vpp") : "";
  const std::string context = row.has("cp") && part("cp") != "1" ? " x CP " + part("cp") : "";
  const std::string experts = row.has("ep") && part("ep") != "1" ? ", EP " + part("ep") : "";
  const std::string split = row.has("etp") && part("etp") != part("tp") ? ", expert TP " + part("etp") : "";
  // Of a server: nothing is trained.
  if (row.has("batch")) {
    return fmt::format("TP {} x PP {} x DP {}{}{}, batch {}, micro-batch {}{}", part("tp"), part("pp"), part("dp"),
                       experts, split, part("batch"), part("microbatch"), sequence);
  }
  const bool splits = row.has("dp_shard") && part("zero") != "0" && part("dp_shard") != part("dp");
  const std::string shards = splits ? " in shards of " + part("dp_shard") : "";
  return fmt::format("TP {} x PP {}{} x DP {}{}{}, micro-batch {}{}{}, recompute {}, ZeRO {}{}", part("tp"), part("pp"),
                     context, part("dp"), experts, split, part("microbatch"), chunks, sequence, part("recompute"),
                     part("zero"), shards);
}

SavedRow layout_row(const SavedValue& from, std::string name) {
  SavedRow row;
  row.name = std::move(name);
  row.figures.push_back({"step_s", from.positive_number("step_s")});
  add_figures(from, {"tokens_per_s_per_gpu"}, row);
  if (from.has("ttft_s")) add_figures(from, {"ttft_s", "tpot_s", "tokens_per_s"}, row);
  add_load_figures(from, row);
  add_figures(from, {"mfu", "peak_bytes"}, row);
  add_step_terms(from, row);
  // Older documents that have neither do not say.
  add_method(from, row);
  if (from.has("estimate_s")) row.facts.push_back({"method", row.method});
  return row;
}

/// "no layout fits; rejected: 20 (memory), 4 (tp does not divide the heads)": the commonest reasons first. Of a
/// server's that break its limits alone the nearest.
std::string nothing_fits(const SavedValue& value) {
  constexpr std::size_t most_named = 3;
  std::vector<std::pair<double, std::string>> reasons;
  if (value.has("rejected"))
    for (const SavedValue& one : value.list("rejected"))
      reasons.emplace_back(one.number("count").value_or(0), harmless(one.text("reason")));
  std::ranges::stable_sort(reasons, std::greater<>(), &std::pair<double, std::string>::first);
  std::string out = "no layout fits";
  if (value.has("nearest_to_limits"))
    out = "no layout that fits keeps the limits; the nearest: " + layout_name(value.object("nearest_to_limits"));
  for (std::size_t i = 0; i < std::min(reasons.size(), most_named); ++i)
    out += fmt::format("{} {} ({})", i == 0 ? "; rejected:" : ",", reasons[i].first, reasons[i].second);
  return reasons.size() > most_named ? out + fmt::format(" and {} reasons more", reasons.size() - most_named) : out;
}

}  // namespace

void read_plan_rows(const SavedValue& value, SavedResult& out) {
  out.name = "plan of " + variant_name(value);
  const std::vector<SavedValue> ranked = value.list("ranked");
  SavedRow whole;
  whole.name = "best layout";
  if (!ranked.empty()) {
    whole = layout_row(ranked.front(), "best layout");
    whole.facts.push_back({"layout", layout_name(ranked.front())});
  }
  add_figures(value, {"evaluated", "feasible"}, whole);
  out.rows.push_back(std::move(whole));
  if (value.has("nearest_to_limits"))
    out.rows.push_back(layout_row(value.object("nearest_to_limits"), "nearest to the limits"));
  const bool cut = static_cast<double>(ranked.size()) < value.number("feasible").value_or(0);
  for (const SavedValue& from : ranked) {
    out.rows.push_back(layout_row(from, layout_name(from)));
    out.rows.back().of_cut_list = cut;
  }
  tell_apart(out.rows);
  add_common_facts(value, {"scenario", "what_if", "machine", "library", "partial"}, out.facts);
  // What older documents say of their inputs is in `inputs` of the newer.
  if (value.has("inputs"))
    add_common_facts(value, {"inputs"}, out.facts);
  else
    add_common_facts(value, {"model", "batch", "order", "gpus"}, out.facts);
  add_warnings(value, out);
  if (ranked.empty() && value.has("ranked")) out.warnings.push_back(nothing_fits(value));
  if (value.has("partial") && value.json()["partial"] == true)
    out.warnings.push_back("partial: the plan was stopped before every layout was seen or the best were simulated");
}

namespace {

/// Everything below that has a mean or median error, by what leads to it.
void add_errors(const SavedValue& value, const std::string& name, SavedResult& out) {
  if (value.has("mean_ape") || value.has("median_ape")) {
    SavedRow row;
    row.name = name;
    add_figures(value, {"mean_ape", "median_ape"}, row);
    if (value.has("n")) row.facts.push_back({"n", scalar_text(value.json()["n"])});
    out.rows.push_back(std::move(row));
    return;
  }
  for (const auto& [key, item] : value.json().items()) {
    if (item.is_object()) add_errors(value.object(key), name + " " + harmless(key), out);
  }
}

/// What a row of a summary calls itself.
std::string row_title(const SavedValue& row) {
  std::string out;
  for (const char* key : {"id", "row_id", "source_id", "collective", "band"}) {
    if (row.has(key)) out += (out.empty() ? "" : " ") + scalar_text(row.json()[key]);
  }
  if (row.has("healthy") && row.json()["healthy"] == false) out += ", broken set-ups";
  return out;
}

/// Of rows by source: with the tier or the precision that they are of.
std::string summary_title(const SavedValue& row) {
  std::string out = row_title(row);
  for (const char* key : {"tier", "precision"})
    if (row.has(key)) out += " " + scalar_text(row.json()[key]);
  return out;
}

/// What a budget of --training, --kernels or of tables limits.
std::string budget_title(const SavedValue& budget) {
  if (budget.has("figure"))
    return fmt::format("{}.{}.{}", budget.text("figure"), budget.text("source_id"), budget.text("tier"));
  if (budget.has("precision")) return budget.text("source_id") + "." + budget.text("precision");
  return budget.text("collective") + "." + budget.text("band");
}

void add_tables(const SavedValue& value, SavedResult& out) {
  for (const SavedValue& table : value.list("tables")) {
    add_errors(table.object("bands"), row_title(table), out);
    if (table.has("topology")) out.facts.push_back({row_title(table) + " topology", table.text("topology")});
    if (!table.has("faults")) continue;  // of an older version
    std::vector<std::string> causes;
    for (const SavedValue& fault : table.list("faults"))
      causes.push_back(fault.text("cause") + (causes.empty() ? " (" + fault.text("evidence") + ")" : std::string()));
    if (causes.empty()) continue;
    const std::string title = row_title(table);
    out.facts.push_back({"fault of " + title, harmless(fmt::format("{}", fmt::join(causes, ", else "))),
                         SavedFact::About::fault, title});
  }
}

}  // namespace

namespace {

/// Which facts of the inputs are digests of machines.
void name_machines(const SavedValue& value, std::vector<SavedFact>& facts) {
  if (!value.has("inputs") || !value.json()["inputs"].is_object()) return;
  const Json& inputs = value.json()["inputs"];
  const auto machines = inputs.find("machines");
  if (machines == inputs.end() || !machines->is_object()) return;
  for (const auto& [name, machine] : machines->items()) {
    const auto fact =
        std::ranges::find(facts, harmless(fmt::format("inputs.machines.{}.digest", name)), &SavedFact::name);
    if (fact == facts.end()) continue;
    fact->about = SavedFact::About::machine_digest;
    fact->of = harmless(name);
  }
}

}  // namespace

void read_validate_rows(const SavedValue& value, SavedResult& out) {
  out.name = "validation";
  // What a page that has to cut begins with.
  if (value.has("summary") && value.json()["summary"].is_array()) {
    for (const SavedValue& row : value.list("summary")) add_errors(row, "summary " + summary_title(row), out);
  } else {
    add_errors(value.object("summary"), "summary", out);
  }
  if (value.has("tables") || !value.has("rows")) add_tables(value, out);
  if (value.has("rows")) {
    for (const SavedValue& from : value.list("rows")) {
      SavedRow row;
      row.name = row_title(from);
      add_figures(from, {"ape", "predicted_s", "measured_s"}, row);
      out.rows.push_back(std::move(row));
    }
  }
  if (value.has("budgets"))
    for (const SavedValue& budget : value.list("budgets")) {
      const bool met = budget.has("met") && budget.json()["met"].is_boolean() && budget.json()["met"].get<bool>();
      // No row to judge by is a budget missed.
      out.gates.push_back({budget_title(budget) + ".median_ape", "max", budget.required_number("limit_ape"),
                           budget.number("median_ape").value_or(std::numeric_limits<double>::infinity()), met});
    }
  add_warnings(value, out);
  add_common_facts(value, {"library", "inputs"}, out.facts);
  name_machines(value, out.facts);
  if (value.has("unscored"))
    for (const SavedValue& row : value.list("unscored"))
      out.facts.push_back({"unscored " + row_title(row), row.text("why")});
  tell_apart(out.rows);
}

}  // namespace collcast
