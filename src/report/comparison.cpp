#include "collcast/report/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "report/metrics.hpp"

namespace collcast {

std::string_view to_string(Finding finding) {
  switch (finding) {
    case Finding::within:
      return "within";
    case Finding::better:
      return "better";
    case Finding::worse:
      return "worse";
    case Finding::changed:
      return "changed";
    case Finding::missing:
      return "missing";
    case Finding::added:
      break;
  }
  return "added";
}

Tolerance Tolerances::of(std::string_view figure) const {
  // The last word counts.
  for (auto it = own.rbegin(); it != own.rend(); ++it) {
    if (it->first == figure) return it->second;
  }
  if (all) return *all;
  // An error is a percentage already: a twentieth of 2 % is nothing that anyone measures.
  if (unit_of(figure) == Unit::share && better(figure) == Better::lower) return {0.01, false};
  return {0.01, true};
}

namespace {

/// What moved by more than rounding of a sum that is computed in another order.
bool moved(double base, double now) { return std::abs(now - base) > 1e-12 * std::max(std::abs(base), std::abs(now)); }

Finding judge(std::string_view name, double base, double now, const Tolerance& tolerance) {
  const double allowed = tolerance.relative ? tolerance.amount * std::abs(base) : tolerance.amount;
  const double change = now - base;
  // The boundary itself is allowed, whatever the last place of a product says.
  if (!moved(base, now) || std::abs(change) <= allowed * (1 + 1e-12)) return Finding::within;
  const Better direction = better(name);
  if (direction == Better::neither) return Finding::changed;
  return (change < 0) == (direction == Better::lower) ? Finding::better : Finding::worse;
}

bool has_terms(const SavedRow& row, std::string_view of) {
  return std::any_of(row.terms.begin(), row.terms.end(), [&](const SavedTerm& term) { return term.of == of; });
}

/// What explains `change`: nothing where a side has no terms, as another library's run may not, or where they do not
/// sum to it.
std::vector<TermChange> term_changes(std::string_view of, const SavedRow& base, const SavedRow& now, double change) {
  std::vector<TermChange> out;
  if (!has_terms(base, of) || !has_terms(now, of)) return out;
  const auto at = [&](const std::string& name) -> TermChange& {
    const auto found = std::find_if(out.begin(), out.end(), [&](const TermChange& t) { return t.name == name; });
    if (found != out.end()) return *found;
    out.push_back({name});
    return out.back();
  };
  for (const SavedTerm& term : base.terms) {
    if (term.of == of) at(term.name).base = term.value;
  }
  for (const SavedTerm& term : now.terms) {
    if (term.of == of) at(term.name).now = term.value;
  }
  double sum = 0, size = 0;
  for (const TermChange& t : out) {
    sum += t.now - t.base;
    size += std::abs(t.now) + std::abs(t.base);
  }
  // Nanoseconds of a step of seconds are the rounding of its parts.
  if (std::abs(sum - change) > 1e-9 * size) return {};
  std::erase_if(out, [](const TermChange& t) { return !moved(t.base, t.now); });
  std::stable_sort(out.begin(), out.end(), [](const TermChange& a, const TermChange& b) {
    return std::abs(a.now - a.base) > std::abs(b.now - b.base);
  });
  return out;
}

std::optional<double> value_of(const SavedRow& row, const std::string& name) {
  for (const SavedFigure& figure : row.figures) {
    if (figure.name == name) return figure.value;
  }
  return std::nullopt;
}

/// Whether only a method was not run: a simulation is left out where it is not quick, and both sides have the other
/// time.
bool is_method_left_out(const std::string& name, const SavedRow& base, const SavedRow& now) {
  const char* other = name == "simulate_s" ? "estimate_s" : name == "estimate_s" ? "simulate_s" : nullptr;
  return other != nullptr && value_of(base, other) && value_of(now, other);
}

/// Whether the times of one side are simulated and those of the other by closed form.
bool differ_in_method(const SavedRow& base, const SavedRow& now) {
  return !base.method.empty() && !now.method.empty() && base.method != now.method;
}

/// Figures that say nothing of a change, as the sides have them by different methods.
enum class Unlike { none, those_of_times, all };

Unlike unlike(const SavedRow& base, const SavedRow& now, const std::vector<FactChange>& facts) {
  if (!differ_in_method(base, now)) return Unlike::none;
  // The best by simulation need not be the best by closed form: then nothing of the two is of one layout.
  const bool other_layout = std::ranges::any_of(facts, [](const FactChange& f) { return f.name == "layout"; });
  return other_layout ? Unlike::all : Unlike::those_of_times;
}

FigureChange figure_change(const std::string& name, const SavedRow& base, const SavedRow& now,
                           const Tolerances& tolerances, Unlike unlike) {
  FigureChange out{name, value_of(base, name), value_of(now, name), tolerances.of(name), Finding::within, {}};
  if (out.base && out.now) {
    out.finding = judge(name, *out.base, *out.now, out.tolerance);
  } else if (out.base) {
    // What nobody gates may go, and so may one method's time while the other's is compared.
    const bool may_go = better(name) == Better::neither || is_method_left_out(name, base, now);
    out.finding = may_go ? Finding::changed : Finding::missing;
  } else if (out.now) {
    out.finding = Finding::added;
  }
  const bool is_unlike = unlike == Unlike::all || (unlike == Unlike::those_of_times && follows_method(name));
  if (is_unlike && out.base && out.now) {
    out.by_another_method = true;
    if (out.finding != Finding::within) out.finding = Finding::changed;
  } else if (out.base && out.now && moved(*out.base, *out.now)) {
    out.terms = term_changes(name, base, now, *out.now - *out.base);
  }
  return out;
}

std::vector<FactChange> fact_changes(const std::vector<SavedFact>& base, const std::vector<SavedFact>& now) {
  std::vector<FactChange> out;
  std::map<std::string, std::string> later;
  for (const SavedFact& fact : now) later.emplace(fact.name, fact.value);
  std::set<std::string> seen;
  for (const SavedFact& fact : base) {
    seen.insert(fact.name);
    const auto found = later.find(fact.name);
    const std::string value = found == later.end() ? std::string() : found->second;
    if (value != fact.value) out.push_back({fact.name, fact.value, value});
  }
  for (const SavedFact& fact : now) {
    // An empty text is as good as none, which is what the other side has.
    if (seen.insert(fact.name).second && !fact.value.empty()) out.push_back({fact.name, {}, fact.value});
  }
  return out;
}

FigureChange estimate_change(double base, double now, const Tolerances& tolerances, Unlike unlike) {
  const std::string name = "estimate_s";
  SavedRow before, after;
  before.figures.push_back({name, base});
  after.figures.push_back({name, now});
  return figure_change(name, before, after, tolerances, unlike);
}

RowChange row_change(const SavedRow& base, const SavedRow& now, const Tolerances& tolerances) {
  RowChange out{base.name, Finding::within, {}, fact_changes(base.facts, now.facts)};
  const Unlike which = unlike(base, now, out.facts);
  for (const SavedFigure& figure : base.figures) {
    // Null on both sides is nothing to compare.
    if (figure.value || value_of(now, figure.name))
      out.figures.push_back(figure_change(figure.name, base, now, tolerances, which));
  }
  for (const SavedFigure& figure : now.figures) {
    const bool known = std::any_of(base.figures.begin(), base.figures.end(),
                                   [&](const SavedFigure& f) { return f.name == figure.name; });
    if (!known && figure.value) out.figures.push_back(figure_change(figure.name, base, now, tolerances, which));
  }
  if (which == Unlike::none) return out;
  if (std::ranges::none_of(out.facts, [](const FactChange& f) { return f.name == "method"; }))
    out.facts.push_back({"method", base.method, now.method});
  // What both have by one method holds the row in the place of what it cannot be held by.
  if (base.estimate_s && now.estimate_s)
    out.figures.push_back(estimate_change(*base.estimate_s, *now.estimate_s, tolerances, which));
  return out;
}

/// Pairs by name: each of `base` with its partner in `now`, then what only `now` has.
template <class Item, class Pair, class Alone>
void pair_up(const std::vector<Item>& base, const std::vector<Item>& now, Pair both, Alone alone) {
  std::map<std::string, const Item*> later;
  for (const Item& item : now) later.emplace(item.name, &item);
  for (const Item& item : base) {
    const auto found = later.find(item.name);
    if (found == later.end()) {
      alone(item, Finding::missing);
    } else {
      both(item, *found->second);
      later.erase(found);
    }
  }
  for (const Item& item : now) {
    if (later.count(item.name) > 0) alone(item, Finding::added);
  }
}

/// Of inputs that only one of the documents lists, as those of older versions do not, nothing can be said.
std::vector<SavedFact> comparable(std::vector<SavedFact> facts, const SavedResult& other) {
  if (other.digest.empty())
    std::erase_if(facts, [](const SavedFact& fact) { return fact.name.starts_with("inputs."); });
  return facts;
}

bool was_cut(const SavedResult& result) {
  return std::any_of(result.rows.begin(), result.rows.end(), [](const SavedRow& row) { return row.of_cut_list; });
}

ResultChange result_change(const NamedResult& base, const NamedResult& now, const Tolerances& tolerances) {
  const SavedResult &b = base.result, &n = now.result;
  ResultChange out{base.name, b.schema,  Finding::within,
                   b.version, n.version, b.digest,
                   n.digest,  {},        fact_changes(comparable(b.facts, n), comparable(n.facts, b))};
  // A row that one side's list has and the other's lacks may be among those that were cut off either.
  const bool cut = was_cut(b) || was_cut(n);
  pair_up(
      b.rows, n.rows,
      [&](const SavedRow& before, const SavedRow& after) { out.rows.push_back(row_change(before, after, tolerances)); },
      [&](const SavedRow& row, Finding finding) {
        if (!cut) out.rows.push_back({row.name, finding, {}, {}});
      });
  // Where inputs that all rows share differ, so do the digests of each row's: said once, by their names.
  if (std::ranges::any_of(out.facts, [](const FactChange& fact) { return fact.name.starts_with("inputs."); })) {
    for (RowChange& row : out.rows)
      std::erase_if(row.facts, [](const FactChange& fact) { return fact.name == "inputs_digest"; });
  }
  return out;
}

void check_unique(const std::vector<NamedResult>& results, const char* side, Diagnostics& errors) {
  std::set<std::string> seen;
  for (const NamedResult& r : results) {
    if (!seen.insert(r.name).second)
      errors.push_back({{}, fmt::format("{} has two results named '{}'", side, r.name), "give each a name of its own"});
  }
}

}  // namespace

Result<Comparison> compare(const std::vector<NamedResult>& base, const std::vector<NamedResult>& now,
                           const Tolerances& tolerances) {
  Diagnostics errors;
  check_unique(base, "BASE", errors);
  check_unique(now, "NEW", errors);
  Comparison out;
  pair_up(
      base, now,
      [&](const NamedResult& before, const NamedResult& after) {
        if (before.result.schema == after.result.schema) {
          out.results.push_back(result_change(before, after, tolerances));
        } else {
          errors.push_back(
              {{},
               fmt::format("'{}' is {} in BASE and {} in NEW", before.name, before.result.schema, after.result.schema),
               "expected results of one kind"});
        }
      },
      [&](const NamedResult& r, Finding finding) {
        const bool in_base = finding == Finding::missing;
        out.results.push_back({r.name,
                               r.result.schema,
                               finding,
                               in_base ? r.result.version : std::string(),
                               in_base ? std::string() : r.result.version,
                               in_base ? r.result.digest : std::string(),
                               in_base ? std::string() : r.result.digest,
                               {},
                               {}});
      });
  if (!errors.empty()) return errors;
  return out;
}

int Comparison::count(Finding finding) const {
  int out = 0;
  for (const ResultChange& result : results) {
    if (result.finding == finding && finding != Finding::within) ++out;
    for (const RowChange& row : result.rows) {
      if (row.finding == finding && finding != Finding::within) ++out;
      for (const FigureChange& figure : row.figures) out += figure.finding == finding ? 1 : 0;
    }
  }
  return out;
}

}  // namespace collcast
