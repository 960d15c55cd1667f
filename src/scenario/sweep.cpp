// `sweep` of a scenario and --sweep: paths with the values that they have one after the other.
#include "collcast/scenario/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "collcast/base/numbers.hpp"
#include "scenario/files.hpp"
#include "scenario/parse.hpp"

namespace collcast {

namespace {

constexpr const char* range_hint = "expected FIRST:LAST:xK or FIRST:LAST:+K of whole numbers, such as 1:64:x2";

std::optional<std::int64_t> whole(std::string_view text) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  const auto out = to_number<std::int64_t>(text);
  return out && *out >= 0 && *out <= most ? out : std::nullopt;
}

Result<std::vector<SweepValue>> range(std::string_view text, const Location& where) {
  const std::size_t first_end = text.find(':'), last_end = text.find(':', first_end + 1);
  const auto wrong = [&](const char* what) {
    return Diagnostic{where, fmt::format("'{}' {}", text, what), range_hint};
  };
  if (last_end == std::string_view::npos || last_end + 2 >= text.size()) return wrong("is no range of values");
  const char by = text[last_end + 1];
  const auto first = whole(text.substr(0, first_end)),
             last = whole(text.substr(first_end + 1, last_end - first_end - 1)),
             step = whole(text.substr(last_end + 2));
  if ((by != 'x' && by != '+') || !first || !last || !step) return wrong("is no range of values");
  if (*last < *first) return wrong("ends before it begins");
  if (by == 'x' ? *step < 2 || *first < 1 : *step < 1) return wrong("does not go on");
  std::vector<SweepValue> out;
  for (std::int64_t value = *first; value <= *last; value = by == 'x' ? value * *step : value + *step) {
    if (out.size() == most_sweep_points) return wrong("has too many values");
    out.push_back({std::to_string(value), std::to_string(value), where});
    if (by == 'x' && value > *last / *step) break;
  }
  return out;
}

/// Blanks around it do not count.
SweepValue value_of(std::string_view text, Location where) {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
    ++where.column;
  }
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return {std::string(text), shown(text), std::move(where)};
}

/// Commas inside brackets, and inside quotes at the beginning of a value, part nothing.
std::vector<SweepValue> listed(std::string_view text, const Location& where) {
  std::vector<SweepValue> out;
  std::size_t begin = 0;
  int depth = 0;
  char quote = 0;
  bool began = false;
  const auto end_at = [&](std::size_t end) {
    Location at = where;
    at.column += static_cast<int>(begin);
    out.push_back(value_of(text.substr(begin, end - begin), std::move(at)));
    begin = end + 1;
    began = false;
    depth = 0;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if ((c == '"' || c == '\'') && !began) {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      depth = std::max(0, depth - 1);
    } else if (c == ',' && depth == 0) {
      end_at(i);
      continue;
    }
    began = began || (c != ' ' && depth == 0 && quote == 0);
  }
  end_at(text.size());
  return out;
}

bool looks_like_range(std::string_view text) {
  return text.find(':') != std::string_view::npos &&
         text.find_first_not_of("0123456789:x+-*") == std::string_view::npos;
}

/// Of 100Gb/s:400Gb/s:x2 and 0.5:2:x2, which are no values either: how to ask for them; nothing of other texts.
std::optional<std::string> hint_for_quantities(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::size_t first_end = text.find(':'), last_end = text.rfind(':');
  if (first_end == last_end || last_end + 2 >= text.size() || !is_digit(text[0]) || !is_digit(text[last_end + 2]) ||
      (text[last_end + 1] != 'x' && text[last_end + 1] != '+') ||
      text.find_first_of(",[{\"'") != std::string_view::npos)
    return std::nullopt;
  const std::string_view first = text.substr(0, first_end), last = text.substr(first_end + 1, last_end - first_end - 1);
  return fmt::format("ranges are of whole numbers alone: list other values, such as {},{}", shown(first), shown(last));
}

}  // namespace

std::size_t points_of(const std::vector<SweepAxis>& axes) {
  std::size_t out = 1;
  for (const SweepAxis& axis : axes) {
    if (axis.values.empty()) return 0;
    if (out > most_sweep_points) return out;
    out *= axis.values.size();
  }
  return out;
}

bool paths_meet(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.substr(0, a.size()) == a && (b.size() == a.size() || b[a.size()] == '.');
}

Diagnostics check_sweep(const std::vector<SweepAxis>& axes) {
  Diagnostics out;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      if (paths_meet(axes[i].path, axes[j].path))
        out.push_back({axes[i].where,
                       axes[i].path == axes[j].path
                           ? fmt::format("'{}' is swept twice", shown(axes[i].path))
                           : fmt::format("'{}' is swept, and '{}', too", shown(axes[i].path), shown(axes[j].path)),
                       "expected all its values in one"});
    std::set<std::string> seen;
    for (const SweepValue& value : axes[i].values)
      if (!seen.insert(value.yaml).second)
        out.push_back({value.where, fmt::format("value '{}' is there twice", value.label), "leave one out"});
  }
  if (points_of(axes) > most_sweep_points)
    out.push_back({axes.front().where, fmt::format("the sweep has more than {} points", most_sweep_points),
                   "expected fewer values"});
  return out;
}

Result<std::vector<SweepValue>> parse_sweep_values(std::string_view text, const Location& where) {
  if (looks_like_range(text)) return range(text, where);
  if (std::optional<std::string> hint = hint_for_quantities(text))
    return Diagnostic{where, fmt::format("'{}' is no range of values", shown(text)), std::move(*hint)};
  std::vector<SweepValue> out = listed(text, where);
  for (const SweepValue& value : out)
    if (value.yaml.empty())
      return Diagnostic{value.where, fmt::format("'{}' has an empty value", shown(text)),
                        "expected V1,V2 ... or a range"};
  return out;
}

Result<SweepAxis> parse_sweep(std::string_view text) {
  constexpr std::string_view option = "--sweep ";
  const std::string typed = std::string(option) + shown(text);
  const auto at = [&](std::size_t offset) { return Location{typed, 1, static_cast<int>(option.size() + offset) + 1}; };
  const std::size_t equals = text.find('=');
  const char* hint = "expected PATH=V1,V2 ... or PATH=FIRST:LAST:xK, such as inference.batch=1:64:x2";
  if (equals == std::string_view::npos)
    return Diagnostic{at(text.size()), fmt::format("'{}' has no '=' and sweeps nothing", shown(text)), hint};
  if (equals == 0) return Diagnostic{at(0), fmt::format("'{}' names no path", shown(text)), hint};
  Result<std::vector<SweepValue>> values = parse_sweep_values(text.substr(equals + 1), at(equals + 1));
  if (!values) return values.errors();
  return SweepAxis{std::string(text.substr(0, equals)), std::move(values).value(), at(0)};
}

namespace input {

std::vector<SweepAxis> read_sweep(Reader& reader, const Node& sweep) {
  std::vector<SweepAxis> out;
  if (sweep.kind != Node::Kind::map || sweep.entries.empty()) {
    mismatch(reader, sweep, "sweep", "a map of paths to lists of values, such as inference.batch: [1, 8, 64]");
    return out;
  }
  for (const Entry& entry : sweep.entries) {
    SweepAxis axis{entry.key, {}, entry.at.location()};
    const std::string path = "sweep." + entry.key;
    if (entry.value.kind == Node::Kind::list) {
      for (const Node& value : entry.value.items) {
        if (value.kind == Node::Kind::scalar)
          axis.values.push_back({flow_text(value), shown(value.text), value.at.location()});
        else
          mismatch(reader, value, path, "one value each");
      }
    } else if (entry.value.kind == Node::Kind::scalar) {
      Result<std::vector<SweepValue>> values = parse_sweep_values(entry.value.text, entry.value.at.location());
      if (values)
        axis.values = std::move(values).value();
      else
        reader.error(values.errors());
    } else {
      mismatch(reader, entry.value, path, "a list of values, or a range such as 1:64:x2");
    }
    if (entry.value.kind == Node::Kind::list && axis.values.empty())
      reader.error(entry.value.at, fmt::format("{} has no values", path), "expected at least one");
    if (!axis.values.empty()) out.push_back(std::move(axis));
  }
  reader.error(check_sweep(out));
  return out;
}

}  // namespace input

}  // namespace collcast
