// Text -> document -> rows. nlohmann's exceptions end here.
#include "collcast/report/saved.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "collcast/report/comparison.hpp"
#include "report/json_place.hpp"
#include "report/saved_document.hpp"

namespace collcast {

std::string harmless(std::string_view text, std::size_t longest) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    // Never within a character, whose further bytes are 10xxxxxx.
    if (out.size() >= longest && (byte & 0xC0U) != 0x80U) return out + "...";
    const auto next = [&](std::size_t ahead) {
      return at + ahead < text.size() ? static_cast<unsigned char>(text[at + ahead]) : 0U;
    };
    if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\u{:04x}", byte);
    } else if (byte == 0xC2 && next(1) < 0xA0) {  // C1 controls
      out += fmt::format("\\u{:04x}", next(1));
      at += 1;
    } else if (byte == 0xE2 && ((next(1) == 0x80 && next(2) >= 0xA8 && next(2) <= 0xAE) ||
                                (next(1) == 0x81 && next(2) >= 0xA6 && next(2) <= 0xA9))) {
      // Line separators, and U+202A ... U+2069, which turn the direction of what follows.
      out += fmt::format("\\u{:04x}", 0x2000U + ((next(1) & 0x3FU) << 6U) + (next(2) & 0x3FU));
      at += 2;
    } else if (byte == 0xEF && next(1) == 0xBF && next(2) >= 0xBE) {  // U+FFFE and U+FFFF, which XML cannot hold
      out += fmt::format("\\uff{:02x}", next(2) + 0x40U);
      at += 2;
    } else {
      out += text[at];
    }
  }
  return out;
}

NamedResult::NamedResult(const std::string& name_of_a_stranger, SavedResult saved)
    // There and back: bytes that are not UTF-8 are replaced.
    : name(harmless(Json::parse(Json(name_of_a_stranger).dump(-1, ' ', false, Json::error_handler_t::replace))
                        .get<std::string>())),
      result(std::move(saved)) {}

std::string SavedValue::path_text(const std::string& key) const {
  std::string out;
  for (const std::string& part : path_) out += part + ".";
  return harmless(out + key);
}

void SavedValue::error(std::string message, std::string hint) const {
  text_.errors.push_back({place_of(text_.text, path_, text_.file), std::move(message), std::move(hint)});
}

SavedValue SavedValue::at(const std::string& key, const Json& value) const {
  std::vector<std::string> path = path_;
  path.push_back(key);
  return {text_, value, std::move(path)};
}

const Json* SavedValue::find(const std::string& key, bool required) const {
  if (has(key)) return &value_[key];
  if (required) error(fmt::format("'{}' is missing", path_text(key)), "was the file changed since collcast wrote it?");
  return nullptr;
}

std::string SavedValue::text(const std::string& key) const {
  const Json* found = find(key, false);
  if (found == nullptr) return {};
  if (found->is_string()) return harmless(found->get_ref<const std::string&>());
  at(key, *found).error(fmt::format("{} is no text", path_text(key)), "expected \"...\"");
  return {};
}

std::optional<double> SavedValue::number(const std::string& key) const {
  const Json* found = find(key, false);
  if (found == nullptr) return std::nullopt;
  if (found->is_number()) {
    const double value = found->get<double>();
    if (value < 0 && (key.ends_with("_s") || key.ends_with("_bytes")))
      at(key, *found).error(fmt::format("{} is {}", path_text(key), value), "expected 0 or more");
    return value;
  }
  at(key, *found).error(fmt::format("{} is no number", path_text(key)), "expected a number in the unit of the key");
  return std::nullopt;
}

double SavedValue::required_number(const std::string& key) const {
  if (find(key, true) == nullptr) return 0;
  return number(key).value_or(0);
}

double SavedValue::positive_number(const std::string& key) const {
  const double value = required_number(key);
  if (value == 0 && has(key) && value_[key].is_number())
    at(key, value_[key]).error(fmt::format("{} is 0", path_text(key)), "expected more than 0; was the file edited?");
  return value;
}

SavedValue SavedValue::object(const std::string& key) const {
  static const Json empty = Json::object();
  const Json* found = find(key, false);
  if (found == nullptr) return at(key, empty);
  if (!found->is_object()) {
    at(key, *found).error(fmt::format("{} is no object", path_text(key)), "expected {...}");
    return at(key, empty);
  }
  return at(key, *found);
}

std::vector<SavedValue> SavedValue::list(const std::string& key) const {
  const Json* found = find(key, true);
  std::vector<SavedValue> out;
  if (found == nullptr) return out;
  const SavedValue here = at(key, *found);
  if (!found->is_array()) {
    here.error(fmt::format("{} is no list", path_text(key)), "expected [...]");
    return out;
  }
  for (std::size_t i = 0; i < found->size(); ++i) {
    const SavedValue item = here.at(std::to_string(i), (*found)[i]);
    if (item.json().is_object())
      out.push_back(item);
    else
      item.error(fmt::format("{}.{} is no object", path_text(key), i), "expected {...}");
  }
  return out;
}

namespace {

struct Reads {
  const char* schema;
  void (*rows)(const SavedValue&, SavedResult&);
};
constexpr std::array<Reads, 6> readers{{{"collcast.step.v1", read_step_rows},
                                        {"collcast.sweep.v1", read_sweep_rows},
                                        {"collcast.collective.v1", read_collective_rows},
                                        {"collcast.plan.v1", read_plan_rows},
                                        {"collcast.validate.v1", read_validate_rows},
                                        {"collcast.calibrate.v1", read_calibrate_rows}}};
constexpr const char* report_schema = "collcast.report.v1";

std::vector<std::string> schemas() {
  std::vector<std::string> out;
  for (const Reads& reads : readers) out.emplace_back(reads.schema);
  out.emplace_back(report_schema);
  return out;
}

SavedResult read_one(const SavedValue& value, const Reads& reads) {
  SavedResult out;
  out.schema = reads.schema;
  out.version = value.object("tool").text("version");
  Json inputs = Json::object();
  for (const char* key : {"machine", "library", "groups", "concurrent", "inputs"}) {
    if (value.has(key)) inputs[key] = value.json()[key];
  }
  if (value.has("inputs")) out.digest = digest(inputs);
  out.document = value.json().dump();
  reads.rows(value, out);
  return out;
}

/// What the report calls its results, which their own documents do not know. Older ones do not say.
void name_results(const SavedValue& report, std::vector<SavedResult>& results) {
  if (!report.has("names")) return;
  const Json& names = report.json()["names"];
  if (!names.is_array() || names.size() != results.size() ||
      !std::ranges::all_of(names, [](const Json& name) { return name.is_string(); })) {
    report.at("names", names)
        .error("names is not one text for each result", "was the file changed since collcast wrote it?");
    return;
  }
  for (std::size_t i = 0; i < results.size(); ++i) results[i].name = harmless(names[i].get_ref<const std::string&>());
}

std::vector<SavedResult> read_any(const SavedValue& value) {
  if (!value.json().is_object() || !value.has("schema")) {
    value.error(
        "this is no result of collcast: it has no 'schema'",
        "expected what 'collcast step --format json', or collective, plan, validate, calibrate or report, writes");
    return {};
  }
  const std::string schema = value.text("schema");
  std::vector<SavedResult> out;
  if (schema == report_schema) {
    for (const SavedValue& inner : value.list("results")) {
      std::vector<SavedResult> held = read_any(inner);
      out.insert(out.end(), held.begin(), held.end());
    }
    name_results(value, out);
    return out;
  }
  const auto reads = std::find_if(readers.begin(), readers.end(), [&](const Reads& r) { return schema == r.schema; });
  if (reads != readers.end()) return {read_one(value, *reads)};
  value.unknown_schema(schema, expected_one_of(schema, schemas()));
  return {};
}

Diagnostic not_json(const nlohmann::json::exception& error, std::size_t byte, std::string_view text,
                    const std::string& file) {
  const std::string what = error.what();
  const Location where = place_at(text, byte > 0 ? byte - 1 : 0, file);
  // The end of the text counts as a character that was read.
  if (byte > text.size())
    return {where, "the JSON ends before it is complete", "is the file whole? A quote, bracket or brace is still open"};
  const std::size_t tail = what.find("syntax error");
  std::string remark = tail == std::string::npos ? what.substr(what.find("] ") + 2) : what.substr(tail);
  remark = remark.substr(0, remark.find("; last read"));
  return {where, fmt::format("this is not JSON: {}", harmless(remark)),
          "check quotes, commas and brackets here and just above"};
}

}  // namespace

void SavedValue::unknown_schema(const std::string& schema, std::string hint) const {
  at("schema", value_["schema"])
      .error(fmt::format("'{}' is nothing that can be compared or reported", schema), std::move(hint));
}

Result<std::vector<SavedResult>> read_saved(std::string_view text, const std::string& file) {
  constexpr int deepest = 64;
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return Diagnostic{{file, 1, 1}, "the file is empty", "expected a JSON result of collcast"};
  if (const auto at = too_deep(text, deepest))
    return Diagnostic{place_at(text, *at, file), "too deeply nested", fmt::format("up to {} levels are read", deepest)};
  SavedText source{text, file, {}};
  std::vector<SavedResult> out;
  try {
    const Json document = Json::parse(text);
    out = read_any({source, document});
  } catch (const nlohmann::json::parse_error& error) {
    return not_json(error, error.byte, text, file);
  } catch (const nlohmann::json::out_of_range& error) {  // a number beyond what a double holds
    return not_json(error, 1, text, file);
  }
  if (!source.errors.empty()) return source.errors;
  if (out.empty()) return Diagnostic{{file, 1, 1}, "the report holds no results", ""};
  return out;
}

std::vector<std::string> left_out_of(std::string_view text) {
  std::vector<std::string> out;
  if (text.find("\"left_out\"") == std::string_view::npos) return out;
  const Json document = Json::parse(text, nullptr, false);
  if (!document.is_object() || document.value("schema", Json()) != Json(report_schema)) return out;
  const auto list = document.find("left_out");
  if (list == document.end() || !list->is_array()) return out;
  for (const Json& one : *list)
    if (one.is_string()) out.push_back(harmless(one.get_ref<const std::string&>(), text_length));
  return out;
}

std::string no_result(std::string_view text) {
  const Json document = Json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("schema") || !document["schema"].is_string()) return {};
  const std::string schema = document["schema"].get<std::string>();
  const std::string what = schema.substr(0, schema.rfind(".v"));
  if (!what.starts_with("collcast.")) return {};
  for (const std::string& known : schemas())
    if (known.substr(0, known.rfind(".v")) == what) return {};
  return harmless(schema);
}

}  // namespace collcast
