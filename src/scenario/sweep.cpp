// `sweep` of a scenario and --sweep: paths with the values that they have one after the other.
#include "collcast/scenario/sweep.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <set>

#include "scenario/files.hpp"
#include "scenario/parse.hpp"

namespace collcast {

namespace {

constexpr const char* range_hint = "expected FIRST:LAST:xK or FIRST:LAST:+K of whole numbers, such as 1:64:x2";

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  constexpr std::int64_t most = std::int64_t{1} << 53;
  if (error != std::errc() || end != text.data() + text.size() || out < 0 || out > most) return std::nullopt;
  return out;
}

Result<std::vector<std::string>> range(std::string_view text) {
  const std::size_t first_end = text.find(':'), last_end = text.find(':', first_end + 1);
  const auto wrong = [&](const char* what) { return Diagnostic{{}, fmt::format("'{}' {}", text, what), range_hint}; };
  if (last_end == std::string_view::npos || last_end + 2 >= text.size()) return wrong("is no range of values");
  const char by = text[last_end + 1];
  const auto first = whole(text.substr(0, first_end)),
             last = whole(text.substr(first_end + 1, last_end - first_end - 1)),
             step = whole(text.substr(last_end + 2));
  if ((by != 'x' && by != '+') || !first || !last || !step) return wrong("is no range of values");
  if (*last < *first) return wrong("ends before it begins");
  if (by == 'x' ? *step < 2 || *first < 1 : *step < 1) return wrong("does not go on");
  std::vector<std::string> out;
  for (std::int64_t value = *first; value <= *last; value = by == 'x' ? value * *step : value + *step) {
    if (out.size() == most_sweep_points) return wrong("has too many values");
    out.push_back(std::to_string(value));
    if (by == 'x' && value > *last / *step) break;
  }
  return out;
}

/// Commas inside brackets and quotes part nothing.
std::vector<std::string> listed(std::string_view text) {
  std::vector<std::string> out(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      out.emplace_back();
      continue;
    }
    if (c != ' ' || !out.back().empty()) out.back() += c;
  }
  return out;
}

bool looks_like_range(std::string_view text) {
  return text.find(':') != std::string_view::npos &&
         text.find_first_not_of("0123456789:x+-*") == std::string_view::npos;
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

Diagnostics check_sweep(const std::vector<SweepAxis>& axes) {
  Diagnostics out;
  std::set<std::string> paths;
  for (const SweepAxis& axis : axes)
    if (!paths.insert(axis.path).second)
      out.push_back({axis.where, fmt::format("'{}' is swept twice", axis.path), "expected all its values in one"});
  if (points_of(axes) > most_sweep_points)
    out.push_back({axes.front().where, fmt::format("the sweep has more than {} points", most_sweep_points),
                   "expected fewer values"});
  return out;
}

Result<std::vector<std::string>> parse_sweep_values(std::string_view text) {
  if (looks_like_range(text)) return range(text);
  std::vector<std::string> out = listed(text);
  for (const std::string& value : out)
    if (value.empty())
      return Diagnostic{{}, fmt::format("'{}' has an empty value", shown(text)), "expected V1,V2 ... or a range"};
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
  Result<std::vector<std::string>> values = parse_sweep_values(text.substr(equals + 1));
  if (!values) {
    Diagnostic wrong = values.errors().front();
    wrong.where = at(equals + 1);
    return wrong;
  }
  const std::vector<Location> places(values->size(), at(equals + 1));
  return SweepAxis{std::string(text.substr(0, equals)), std::move(values).value(), at(0), places};
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
        if (value.kind == Node::Kind::scalar) {
          axis.values.push_back(flow_text(value));
          axis.places.push_back(value.at.location());
        } else {
          mismatch(reader, value, path, "one value each");
        }
      }
    } else if (entry.value.kind == Node::Kind::scalar) {
      Result<std::vector<std::string>> values = parse_sweep_values(entry.value.text);
      if (values) {
        axis.values = std::move(values).value();
        axis.places.assign(axis.values.size(), entry.value.at.location());
      } else {
        reader.error(entry.value.at, values.errors().front().message, values.errors().front().hint);
      }
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
