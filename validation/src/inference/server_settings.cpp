#include "server_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <variant>

#include "collcast/base/text.hpp"
#include "collcast/base/words.hpp"
#include "collcast/validation/inference_table.hpp"
#include "collcast/workload/precisions.hpp"
#include "lines.hpp"
#include "values.hpp"

namespace collcast {

namespace {

using S = ServerSettings;
using Text = std::string S::*;
using Whole = std::optional<int> S::*;

struct Column {
  const char* name;
  std::variant<Text, Whole> to;
};
const std::array<Column, 11> columns{{{"backend", &S::backend},
                                      {"system", &S::system},
                                      {"precision", &S::precision},
                                      {"tp", &S::tp},
                                      {"isl", &S::isl},
                                      {"osl", &S::osl},
                                      {"concurrency_from", &S::concurrency_from},
                                      {"max_running", &S::max_running},
                                      {"max_batched_tokens", &S::max_batched_tokens},
                                      {"recv_interval", &S::recv_interval},
                                      {"source", &S::source}}};

/// Formats of what is kept.
struct Kept {
  const char* name;
  std::optional<double> S::*bytes;
  std::vector<std::string> words;
};
const std::array<Kept, 2> kept_formats{{{"kv_precision", &S::kv_bytes, {"fp8", "bf16", "fp16"}},
                                        {"state_precision", &S::state_bytes, {"fp32", "bf16", "fp16"}}}};

/// Columns whose words say whose a line is.
constexpr std::array<const char*, 4> telling{"backend", "system", "model", "precision"};

/// Of "a|b", with where each stands.
std::vector<SettingWord> words_of(const std::string& column, std::string_view text, Location where) {
  std::vector<SettingWord> out;
  while (!text.empty()) {
    const std::string_view one = column == "model" ? text.substr(0, text.find('|')) : text;
    out.push_back({column, std::string(trimmed(one)), where});
    where.column += static_cast<int>(one.size()) + 1;
    text.remove_prefix(std::min(one.size() + 1, text.size()));
  }
  return out;
}

void check_columns(const CsvFile& csv, Complaints& complaints) {
  std::vector<std::string> known{"model"};
  for (const Kept& kept : kept_formats) known.emplace_back(kept.name);
  for (const Column& column : columns) known.emplace_back(column.name);
  for (std::size_t i = 0; i < csv.heading().size(); ++i)
    if (const std::string& name = csv.heading()[i]; std::find(known.begin(), known.end(), name) == known.end())
      complaints.add(csv.heading_at(i), fmt::format("unknown column '{}' of servers' settings", printable(name)),
                     expected_one_of(name, known));
}

/// What rows have, what is described of models, and what servers can compute in. Empty: nothing is known.
std::vector<std::string> known_words(const std::string& column, const InferenceTables& tables) {
  std::vector<std::string> out;
  if (column == "precision") out = serving_precisions();
  if (column == "model")
    for (const auto& [name, model] : tables.models) out.push_back(name);
  for (const std::vector<InferenceRow>* rows : {&tables.beside, &tables.rows})
    for (const InferenceRow& row : *rows) {
      const std::string& word = column == "backend"  ? row.backend
                                : column == "system" ? row.system
                                : column == "model"  ? row.model
                                                     : row.precision;
      if (!word.empty() && std::find(out.begin(), out.end(), word) == out.end()) out.push_back(word);
    }
  return out;
}

std::optional<double> bytes_of(const Kept& kept, const std::string& word, const Location& where,
                               Complaints& complaints) {
  if (std::find(kept.words.begin(), kept.words.end(), word) != kept.words.end())
    return word == "fp8" ? 1 : word == "fp32" ? 4 : 2;
  complaints.add(where, fmt::format("{} is '{}'", kept.name, printable(word)), expected_one_of(word, kept.words));
  return std::nullopt;
}

void put(const std::string& name, const std::string& text, const Location& where, S& settings, Complaints& complaints) {
  for (const Kept& kept : kept_formats)
    if (name == kept.name) settings.*kept.bytes = bytes_of(kept, text, where, complaints);
  const auto column = std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return name == c.name; });
  if (column == columns.end()) return;
  if (const auto* of_text = std::get_if<Text>(&column->to)) {
    settings.** of_text = text;
    return;
  }
  constexpr int most = 1'000'000;
  const std::optional<int> value = read_whole(text);
  if (!value || *value < 1 || *value > most)
    complaints.add(where, fmt::format("{} is '{}'", name, printable(text)),
                   fmt::format("expected a whole number from 1 to {}, or nothing", most));
  settings.*std::get<Whole>(column->to) = value;
}

bool is_any_or(const std::string& asked, const std::string& is) { return asked.empty() || asked == is; }
bool is_any_or(const std::optional<int>& asked, const std::optional<int>& is) { return !asked || asked == is; }

}  // namespace

void read_settings(CsvFile& csv, std::vector<ServerSettings>& out, std::vector<SettingWord>& words,
                   Complaints& complaints) {
  check_columns(csv, complaints);
  std::vector<Cell> cells;
  while (csv.next_row(cells, complaints)) {
    S settings;
    settings.where = csv.at(1);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string text(trimmed(cells[i].text)), &column = csv.heading()[i];
      if (text.empty()) continue;
      const Location where = csv.at(cells[i].column);
      put(column, text, where, settings, complaints);
      if (column != "source") settings.said += fmt::format("{}{}={}", settings.said.empty() ? "" : ", ", column, text);
      if (std::find(telling.begin(), telling.end(), column) == telling.end()) continue;
      for (SettingWord& word : words_of(column, text, where)) {
        if (column == "model") settings.models.push_back(word.word);
        words.push_back(std::move(word));
      }
    }
    out.push_back(std::move(settings));
  }
}

void check_words(const std::vector<SettingWord>& words, const InferenceTables& tables, Complaints& complaints) {
  std::map<std::string, std::vector<std::string>> known;
  for (const char* column : telling) known.emplace(column, known_words(column, tables));
  for (const SettingWord& one : words) {
    const std::vector<std::string>& all = known.at(one.column);
    if (all.empty() || std::find(all.begin(), all.end(), one.word) != all.end()) continue;
    complaints.add(one.where, fmt::format("no server has the {} '{}'", one.column, printable(one.word)),
                   expected_one_of(one.word, all));
  }
}

const ServerSettings* settings_of(const std::vector<ServerSettings>& all, const InferenceRow& row,
                                  const std::string& precision) {
  const ServerSettings* found = nullptr;
  for (const ServerSettings& s : all) {
    const bool model = s.models.empty() || std::find(s.models.begin(), s.models.end(), row.model) != s.models.end();
    if (model && is_any_or(s.backend, row.backend) && is_any_or(s.system, row.system) &&
        is_any_or(s.precision, precision) && is_any_or(s.tp, row.server.tp) && is_any_or(s.isl, row.isl) &&
        is_any_or(s.osl, row.osl) && row.concurrency.value_or(0) >= s.concurrency_from.value_or(0))
      found = &s;
  }
  return found;
}

}  // namespace collcast
