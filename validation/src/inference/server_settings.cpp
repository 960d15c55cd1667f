#include "server_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "collcast/base/text.hpp"
#include "collcast/validation/inference_table.hpp"
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

std::vector<std::string> names_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find('|'));
    out.emplace_back(trimmed(one));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
  }
  return out;
}

std::optional<double> bytes_of(const std::string& precision, const Location& where, Complaints& complaints) {
  if (precision == "fp8") return 1;
  if (precision == "bf16" || precision == "fp16") return 2;
  complaints.add(where, fmt::format("kv_precision is '{}'", printable(precision)),
                 expected_one_of(precision, {"fp8", "bf16", "fp16"}));
  return std::nullopt;
}

void put(const std::string& name, const std::string& text, const Location& where, S& settings, Complaints& complaints) {
  if (name == "model") settings.models = names_of(text);
  if (name == "kv_precision") settings.kv_bytes = bytes_of(text, where, complaints);
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

void read_settings(CsvFile& csv, std::vector<ServerSettings>& out, Complaints& complaints) {
  std::vector<Cell> cells;
  while (csv.next_row(cells, complaints)) {
    S settings;
    settings.where = csv.at(1);
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (const std::string text(trimmed(cells[i].text)); !text.empty())
        put(csv.heading()[i], text, csv.at(cells[i].column), settings, complaints);
    out.push_back(std::move(settings));
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
