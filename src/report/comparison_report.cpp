// collcast.compare.v1: the verdict first, then what moved and why.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "collcast/report/comparison.hpp"
#include "report/document.hpp"
#include "report/junit.hpp"
#include "report/metrics.hpp"
#include "report/saved_document.hpp"
#include "report/wording.hpp"

namespace collcast {

namespace {

std::string relative_or_from_zero(const FigureChange& f) {
  if (!f.base || !f.now) return {};
  return *f.base == 0 ? std::string(*f.now == 0 ? "0%" : "from 0") : relative_text(*f.base, *f.now);
}

std::string text_or_dash(const std::optional<double>& value, Unit unit) {
  return value ? value_text(*value, unit) : std::string("-");
}

std::string allowed_text(const FigureChange& f) {
  const Better direction = better(f.name);
  if (direction == Better::neither || f.by_another_method) return "any";
  const std::string amount = f.tolerance.relative ? fmt::format("{:.4g}%", 100 * f.tolerance.amount)
                                                  : change_text(f.tolerance.amount, unit_of(f.name)).substr(1);
  return (direction == Better::lower ? "+" : "-") + amount;
}

/// "llama3-70b-64xh100", or with the row that is meant.
std::string place_text(const ResultChange& result, const std::string& row) {
  return row.empty() ? result.name : fmt::format("{}: {}", result.name, row);
}

/// A finding with what it is about, in the order in which people want to read them.
struct Found {
  const ResultChange* result;
  const RowChange* row;        ///< nothing: the whole result
  const FigureChange* figure;  ///< nothing: the whole row
  Finding finding;
};

std::vector<Found> findings(const Comparison& c) {
  std::vector<Found> out;
  for (const ResultChange& result : c.results) {
    if (result.finding != Finding::within) out.push_back({&result, nullptr, nullptr, result.finding});
    for (const RowChange& row : result.rows) {
      if (row.finding != Finding::within) out.push_back({&result, &row, nullptr, row.finding});
      for (const FigureChange& figure : row.figures) {
        if (figure.finding != Finding::within) out.push_back({&result, &row, &figure, figure.finding});
      }
    }
  }
  const auto order = [](Finding f) {
    constexpr std::array ranked{Finding::missing, Finding::worse, Finding::better, Finding::added, Finding::changed};
    return std::find(ranked.begin(), ranked.end(), f) - ranked.begin();
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const Found& a, const Found& b) { return order(a.finding) < order(b.finding); });
  return out;
}

std::string verdict(const Comparison& c) {
  const int worse = c.count(Finding::worse), missing = c.count(Finding::missing);
  std::string what;
  if (worse > 0) what = fmt::format("{} worse than allowed", counted(worse, "figure"));
  if (missing > 0) what += fmt::format("{}{} missing", what.empty() ? "" : ", ", missing);
  return c.kept() ? "comparison passed: nothing is worse than allowed" : fmt::format("comparison FAILED: {}", what);
}

std::string counts_text(const Comparison& c) {
  std::string out =
      fmt::format("{} compared: {} within tolerance", counted(static_cast<std::int64_t>(c.results.size()), "result"),
                  counted(c.count(Finding::within), "figure"));
  for (const Finding f : {Finding::worse, Finding::missing, Finding::better, Finding::added, Finding::changed}) {
    if (c.count(f) > 0) out += fmt::format(", {} {}", c.count(f), to_string(f));
  }
  return out;
}

constexpr std::size_t most_shown = 40;

Table findings_table(const std::vector<Found>& found) {
  Table out{"what moved",
            {{"result", "", Align::left},
             {"figure", "", Align::left},
             {"base", "", Align::right},
             {"new", "", Align::right},
             {"change", "", Align::right},
             {"relative", "", Align::right},
             {"allowed", "", Align::right},
             {"finding", "", Align::left}},
            {}};
  for (std::size_t i = 0; i < std::min(found.size(), most_shown); ++i) {
    const Found& f = found[i];
    std::string finding(to_string(f.finding));
    if (breaks(f.finding))
      std::transform(finding.begin(), finding.end(), finding.begin(),
                     [](char letter) { return static_cast<char>(letter - 'a' + 'A'); });
    const std::string place = place_text(*f.result, f.row == nullptr ? std::string() : f.row->name);
    if (f.figure == nullptr) {
      out.rows.push_back({place, "", "", "", "", "", "", finding});
      continue;
    }
    const FigureChange& figure = *f.figure;
    if (figure.by_another_method) finding += ", by another method";
    const Unit unit = unit_of(figure.name);
    const std::string change = figure.base && figure.now ? change_text(*figure.now - *figure.base, unit) : "";
    out.rows.push_back({place, figure.name, text_or_dash(figure.base, unit), text_or_dash(figure.now, unit), change,
                        relative_or_from_zero(figure), allowed_text(figure), finding});
  }
  return out;
}

/// "TP exposed +1.1 s, bubble +0.1 s": terms down to a twentieth of the largest.
std::string terms_text(const FigureChange& f) {
  std::string out;
  const double largest = std::abs(f.terms.front().now - f.terms.front().base);
  for (const TermChange& t : f.terms) {
    const double change = t.now - t.base;
    if (std::abs(change) < 0.05 * largest) break;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", term_text(t.name), change_text(change, unit_of(f.name)));
  }
  return out;
}

Table terms_table(const std::vector<Found>& found) {
  Table out{"by which term",
            {{"result", "", Align::left},
             {"figure", "", Align::left},
             {"change", "", Align::right},
             {"of which", "", Align::left}},
            {}};
  for (const Found& f : found) {
    if (f.figure == nullptr || f.figure->terms.empty() || out.rows.size() == most_shown) continue;
    out.rows.push_back({place_text(*f.result, f.row->name), f.figure->name,
                        change_text(*f.figure->now - *f.figure->base, unit_of(f.figure->name)), terms_text(*f.figure)});
  }
  return out;
}

/// A long value by its beginning; the JSON has all of it.
std::string shortened(const std::string& text) { return harmless(text, 60); }

Table facts_table(const Comparison& c) {
  Table out{
      "inputs and choices that differ",
      {{"result", "", Align::left}, {"what", "", Align::left}, {"base", "", Align::left}, {"new", "", Align::left}},
      {}};
  const auto add = [&](const std::string& place, const std::vector<FactChange>& facts) {
    for (const FactChange& fact : facts)
      out.rows.push_back({place, fact.name, shortened(fact.base), shortened(fact.now)});
  };
  for (const ResultChange& result : c.results) {
    add(result.name, result.facts);
    for (const RowChange& row : result.rows) add(place_text(result, row.name), row.facts);
  }
  return out;
}

/// Rows that are simulated on one side only.
void say_methods(const Comparison& c, Page& out) {
  std::int64_t rows = 0;
  for (const ResultChange& result : c.results)
    rows += std::ranges::count_if(result.rows, [](const RowChange& row) {
      return std::ranges::any_of(row.figures, [](const FigureChange& f) { return f.by_another_method; });
    });
  if (rows == 0) return;
  out.blocks.push_back(Paragraph{fmt::format("{} simulated on one side and by closed form on the other: what follows "
                                             "from the time is not judged there; estimate_s is, where both have it",
                                             rows == 1 ? "1 row is" : fmt::format("{} rows are", rows)),
                                 Paragraph::Tone::note});
}

void say_versions(const Comparison& c, Page& out) {
  for (const ResultChange& r : c.results) {
    if (r.base_version == r.version || r.base_version.empty() || r.version.empty()) continue;
    out.blocks.push_back(
        Paragraph{fmt::format("BASE was written by collcast {}, NEW by {}: a model that changed moves figures too",
                              r.base_version, r.version),
                  Paragraph::Tone::note});
    return;
  }
}

void cut(Table& table, Page& out) {
  const std::size_t rows = table.rows.size();
  table.rows.resize(std::min(rows, most_shown));
  out.blocks.push_back(table);
  if (rows > most_shown)
    out.blocks.push_back(Paragraph{fmt::format("{} more are in the JSON", rows - most_shown), Paragraph::Tone::note});
}

// --- JSON ---

Json value_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json facts_json(const std::vector<FactChange>& facts) {
  Json out = Json::array();
  for (const FactChange& f : facts) out.push_back({{"name", f.name}, {"base", f.base}, {"new", f.now}});
  return out;
}

Json figure_json(const FigureChange& f) {
  Json out{{"figure", f.name},
           {"better", to_string(better(f.name))},
           {"base", value_json(f.base)},
           {"new", value_json(f.now)}};
  const bool both = f.base && f.now;
  out["change"] = both ? Json(*f.now - *f.base) : Json();
  out["relative_change"] = both && *f.base != 0 ? Json((*f.now - *f.base) / std::abs(*f.base)) : Json();
  const bool gated = better(f.name) != Better::neither;
  out["tolerance"] = gated ? Json(f.tolerance.amount) : Json();
  out["tolerance_is_relative"] = gated ? Json(f.tolerance.relative) : Json();
  out["finding"] = to_string(f.finding);
  if (f.by_another_method) out["reason"] = "by another method";
  out["terms"] = Json::array();
  for (const TermChange& t : f.terms)
    out["terms"].push_back({{"term", t.name}, {"base", t.base}, {"new", t.now}, {"change", t.now - t.base}});
  return out;
}

Json row_json(const RowChange& row) {
  Json out{{"row", row.name}, {"finding", to_string(row.finding)}, {"figures", Json::array()}};
  for (const FigureChange& f : row.figures) out["figures"].push_back(figure_json(f));
  out["choices"] = facts_json(row.facts);
  return out;
}

Json result_json(const ResultChange& r) {
  Json out{{"name", r.name},
           {"schema", r.schema},
           {"finding", to_string(r.finding)},
           {"base_version", r.base_version},
           {"new_version", r.version},
           {"base_inputs_digest", r.base_digest},
           {"new_inputs_digest", r.digest},
           {"rows", Json::array()}};
  for (const RowChange& row : r.rows) out["rows"].push_back(row_json(row));
  out["inputs"] = facts_json(r.facts);
  return out;
}

// --- JUnit ---

JunitCase whole_case(const std::string& name, Finding finding) {
  if (finding == Finding::missing) return {name, "missing: BASE has it, NEW does not", {}};
  return {name, {}, std::string(to_string(finding))};
}

JunitCase figure_case(const std::string& row, const FigureChange& f) {
  const Unit unit = unit_of(f.name);
  JunitCase out{row.empty() ? f.name : fmt::format("{}: {}", row, f.name), {}, {}};
  const std::string values = fmt::format("base {}, new {} ({}), allowed {}", text_or_dash(f.base, unit),
                                         text_or_dash(f.now, unit), relative_or_from_zero(f), allowed_text(f));
  if (breaks(f.finding)) out.failure = fmt::format("{}: {}", to_string(f.finding), values);
  out.details = values;
  if (f.by_another_method) out.details += ", by another method: not judged";
  if (!f.terms.empty()) out.details += ": " + terms_text(f);
  return out;
}

}  // namespace

std::string json(const Comparison& c) {
  Json out = document("collcast.compare.v1");
  out["kept"] = c.kept();
  for (const Finding f :
       {Finding::within, Finding::worse, Finding::missing, Finding::better, Finding::added, Finding::changed})
    out["counts"][std::string(to_string(f))] = c.count(f);
  out["results"] = Json::array();
  for (const ResultChange& r : c.results) out["results"].push_back(result_json(r));
  return text(out);
}

Table csv(const Comparison& c) {
  Table out;
  for (const char* title :
       {"result", "row", "figure", "base", "new", "change", "tolerance", "tolerance_is_relative", "finding"})
    out.columns.push_back({title, {}, Align::left});
  const auto number_text = [](const std::optional<double>& value) {
    return value ? Json(*value).dump() : std::string();
  };
  for (const ResultChange& r : c.results) {
    if (r.finding != Finding::within)
      out.rows.push_back({csv_name(r.name), "", "", "", "", "", "", "", std::string(to_string(r.finding))});
    for (const RowChange& row : r.rows) {
      if (row.finding != Finding::within)
        out.rows.push_back(
            {csv_name(r.name), csv_name(row.name), "", "", "", "", "", "", std::string(to_string(row.finding))});
      for (const FigureChange& f : row.figures) {
        const auto change = f.base && f.now ? std::optional<double>(*f.now - *f.base) : std::nullopt;
        const bool gated = better(f.name) != Better::neither;
        out.rows.push_back({csv_name(r.name), csv_name(row.name), f.name, number_text(f.base), number_text(f.now),
                            number_text(change), gated ? number_text(f.tolerance.amount) : "",
                            !gated                 ? ""
                            : f.tolerance.relative ? "true"
                                                   : "false",
                            std::string(to_string(f.finding))});
      }
    }
  }
  return out;
}

Page page(const Comparison& c) {
  Page out;
  out.title = verdict(c);
  out.blocks.push_back(Paragraph{counts_text(c), Paragraph::Tone::plain});
  const std::vector<Found> found = findings(c);
  if (!found.empty()) out.blocks.push_back(findings_table(found));
  if (found.size() > most_shown)
    out.blocks.push_back(
        Paragraph{fmt::format("{} more are in the JSON", found.size() - most_shown), Paragraph::Tone::note});
  if (const Table terms = terms_table(found); !terms.rows.empty()) out.blocks.push_back(terms);
  if (Table facts = facts_table(c); !facts.rows.empty()) cut(facts, out);
  say_methods(c, out);
  say_versions(c, out);
  return out;
}

std::string junit(const Comparison& c) {
  std::vector<JunitSuite> suites;
  for (const ResultChange& r : c.results) {
    JunitSuite suite{r.name, {}};
    if (r.finding != Finding::within) suite.cases.push_back(whole_case("result", r.finding));
    for (const RowChange& row : r.rows) {
      if (row.finding != Finding::within) suite.cases.push_back(whole_case(row.name, row.finding));
      for (const FigureChange& f : row.figures) suite.cases.push_back(figure_case(row.name, f));
    }
    suites.push_back(std::move(suite));
  }
  return junit_text("collcast compare", suites);
}

}  // namespace collcast
