// What every JSON document shares.
#include "report/document.hpp"

#include <fmt/format.h>

#include <array>
#include <ostream>
#include <utility>

#include "collcast/base/check.hpp"
#include "report/breakdown.hpp"

namespace collcast {

std::string_view tool_version() { return COLLCAST_VERSION; }

Json document(std::string_view schema) {
  Json out;
  out["schema"] = schema;
  out["tool"]["name"] = "collcast";
  out["tool"]["version"] = tool_version();
  return out;
}

namespace {

/// A value per line, but lists of scalars on one: a group of 512 ranks stays readable.
void append_text(const Json& value, const std::string& indent, std::string& out) {
  if (!value.is_structured() || value.empty()) {
    // Names in a user's files need not be UTF-8; what is not is replaced rather than refused.
    out += value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return;
  }
  if (value.is_array() && !value.front().is_structured()) {
    const char* between = "[";
    for (const Json& item : value) {
      out += between;
      append_text(item, indent, out);
      between = ", ";
    }
    out += ']';
    return;
  }
  const std::string inner = indent + "  ";
  const char* separator = "\n";
  out += value.is_object() ? '{' : '[';
  for (const auto& [key, item] : value.items()) {
    out += separator + inner;
    if (value.is_object()) out += Json(key).dump(-1, ' ', false, Json::error_handler_t::replace) + ": ";
    append_text(item, inner, out);
    separator = ",\n";
  }
  out += "\n" + indent + (value.is_object() ? '}' : ']');
}

}  // namespace

std::string text(const Json& json) {
  std::string out;
  append_text(json, "", out);
  return out + "\n";
}

JsonMembers::JsonMembers(std::ostream& out, char opening, std::string indent)
    : out_(out), indent_(std::move(indent)), is_object_(opening == '{') {
  out_ << opening;
}

void JsonMembers::separate(std::string_view key) {
  out_ << (any_ ? ",\n" : "\n") << indent_ << "  ";
  if (is_object_) out_ << compact(Json(key)) << ": ";
  any_ = true;
}

void JsonMembers::add(std::string_view key, const Json& value) {
  separate(key);
  std::string text;
  append_text(value, indent_ + "  ", text);
  out_ << text;
}

void JsonMembers::add(const Json& value) { add({}, value); }

void JsonMembers::add_all(const Json& members) {
  for (const auto& [key, value] : members.items()) add(key, value);
}

JsonMembers JsonMembers::begin(std::string_view key, char opening) {
  separate(key);
  return {out_, opening, indent_ + "  "};
}

void JsonMembers::end() {
  if (any_) out_ << '\n' << indent_;
  out_ << (is_object_ ? '}' : ']');
}

Json number(std::optional<Seconds> seconds) {
  if (!seconds) return nullptr;
  return seconds->count();
}
Json range_json(const TimeRange& range) { return {{"low_s", range.low.count()}, {"high_s", range.high.count()}}; }

namespace {

Json spread_json(const TimeSpread& times) {
  Json out;
  for (const TimeStatistic& statistic : time_statistics)
    out[fmt::format("{}_s", statistic.name)] = (times.*statistic.of).count();
  return out;
}

}  // namespace

Json load_times_json(const LoadTimes& load) {
  return {{"duration_s", load.duration.count()},
          {"tokens_per_s", load.tokens_per_s},
          {"ttft", spread_json(load.ttft)},
          {"tpot", spread_json(load.tpot)}};
}

Json ranks(const Group& group) {
  Json out = Json::array();
  for (int i = 0; i < group.size(); ++i) out.push_back(group[i].value());
  return out;
}

Json machine(const MachineSummary& m) {
  Json out;
  out["topology"] = m.topology;
  out["title"] = m.title;
  out["gpu"] = m.gpu.empty() ? Json() : Json(m.gpu);
  out["nodes"] = m.nodes;
  out["ranks"] = m.ranks;
  out["digest"] = m.digest;
  out["calibrated"] = m.calibrated;
  return out;
}

Json breakdown_json(const Breakdown& b) {
  Json out;
  for (const BreakdownPart& part : breakdown_parts) out[part.key] = (b.*part.time).count();
  return out;
}

namespace {

struct MemoryKey {
  const char* key;
  Bytes MemoryUse::*size;
};
constexpr std::array memory_keys{MemoryKey{"parameters_bytes", &MemoryUse::parameters},
                                 MemoryKey{"kv_cache_bytes", &MemoryUse::kv_cache},
                                 MemoryKey{"gradients_bytes", &MemoryUse::gradients},
                                 MemoryKey{"optimizer_bytes", &MemoryUse::optimizer},
                                 MemoryKey{"gradient_copies_bytes", &MemoryUse::gradient_copies},
                                 MemoryKey{"activations_bytes", &MemoryUse::activations},
                                 MemoryKey{"buffers_bytes", &MemoryUse::buffers},
                                 MemoryKey{"framework_bytes", &MemoryUse::framework},
                                 MemoryKey{"fragments_bytes", &MemoryUse::fragments},
                                 MemoryKey{"nccl_bytes", &MemoryUse::nccl},
                                 MemoryKey{"context_bytes", &MemoryUse::context}};
static_assert(memory_keys.size() == memory_parts.size());

/// The key of the part that breaks the limit; null where none does.
Json breaking_key(const MemoryUse& m) {
  if (m.fits()) return {};
  const MemoryPart& part = breaking_part(m);
  for (const MemoryKey& one : memory_keys)
    if (one.size == part.size) return one.key;
  return {};
}

}  // namespace

Json memory_json(const MemoryUse& m) {
  Json out{{"parameters_bytes", m.parameters.value()},
           {"gradients_bytes", m.gradients.value()},
           {"optimizer_bytes", m.optimizer.value()},
           {"activations_bytes", m.activations.value()},
           {"buffers_bytes", m.buffers.value()},
           {"allocated_bytes", m.allocated().value()},
           {"fragments_bytes", m.fragments.value()},
           {"nccl_bytes", m.nccl.value()},
           {"context_bytes", m.context.value()},
           {"peak_bytes", m.peak().value()},
           {"capacity_bytes", m.capacity.value()},
           {"breaks", breaking_key(m)},
           {"stage", m.stage}};
  if (m.gradient_copies > Bytes(0)) out["gradient_copies_bytes"] = m.gradient_copies.value();
  if (m.kv_cache > Bytes(0)) out["kv_cache_bytes"] = m.kv_cache.value();
  if (m.on_host > Bytes(0)) out["host_bytes"] = m.on_host.value();
  if (m.by_moment.front() == Bytes(0)) return out;
  out["moment"] = to_string(m.moment);
  for (const MemoryMoment moment : memory_moments)
    out["moments"][std::string(to_string(moment)) + "_bytes"] = m.by_moment[static_cast<std::size_t>(moment)].value();
  return out;
}

std::string compact(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string Digest::text() const { return fmt::format("fnv1a64:{:016x}", hash_.value()); }

std::string digest(const Json& json) {
  Digest out;
  out.add(compact(json));
  return out.text();
}

namespace {

std::string cell(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string joined;
  for (const Json& item : value) joined += (joined.empty() ? "" : " ") + cell(item);
  return joined;
}

/// Lists of scalars fit a cell; lists of objects do not.
bool fits_a_cell(const Json& value) {
  if (value.is_object()) return false;
  return !value.is_array() || value.empty() || !value.front().is_structured();
}

void append_values(const Json& value, const std::string& path, Table& out) {
  if (fits_a_cell(value)) {
    out.rows.push_back({path, cell(value)});
    return;
  }
  const std::string prefix = path.empty() ? path : path + ".";
  for (const auto& [key, item] : value.items()) append_values(item, prefix + key, out);
}

}  // namespace

Table csv_rows(const Json& rows, std::span<const std::string_view> columns) {
  Table out;
  for (const std::string_view column : columns) out.columns.push_back({std::string(column), {}, Align::left});
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const std::string_view column : columns) {
      const auto value = row.find(column);
      check(value == row.end() || fits_a_cell(*value), "a column of CSV holds no structured values");
      cells.push_back(value == row.end() ? std::string() : cell(*value));
    }
    out.rows.push_back(std::move(cells));
  }
  return out;
}

Json without_values(Json row) {
  for (Json& value : row) value = nullptr;
  return row;
}

Table csv_rows(const Json& rows) {
  std::vector<std::string_view> columns;
  if (!rows.empty())
    for (const auto& item : rows.front().items()) columns.push_back(item.key());
  return csv_rows(rows, columns);
}

void CsvRows::add(const Json& row) {
  if (columns_.empty()) {
    for (const auto& item : row.items()) columns_.push_back(item.key());
    write_csv_line(out_, columns_);
  }
  std::vector<std::string> cells;
  for (const auto& item : row.items()) cells.push_back(cell(item.value()));
  check(cells.size() == columns_.size(), "rows of CSV have the same keys");
  write_csv_line(out_, cells);
}

std::string csv_name(std::string_view name) {
  const bool formula = !name.empty() && std::string_view("=+-@").find(name.front()) != std::string_view::npos;
  return (formula ? "'" : "") + std::string(name);
}

Table csv_values(const Json& json) {
  Table out{{}, {{"key", {}, Align::left}, {"value", {}, Align::left}}, {}};
  append_values(json, "", out);
  return out;
}

}  // namespace collcast
