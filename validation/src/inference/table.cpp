#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>
#include <variant>

#include "collcast/base/text.hpp"
#include "collcast/base/words.hpp"
#include "collcast/validation/inference_table.hpp"
#include "csv_file.hpp"
#include "inference/server_settings.hpp"
#include "lines.hpp"
#include "values.hpp"

namespace collcast {

namespace {

namespace fs = std::filesystem;

using R = InferenceRow;
using W = ServingWorker;
using Text = std::string R::*;
using Whole = std::optional<int> R::*;
using Number = std::optional<double> R::*;
using Degree = std::optional<int> W::*;  ///< of `server`
using Worker = W R::*;                   ///< "tp_size=4/pp_size=1"

struct Column {
  const char* name;
  std::variant<Text, Whole, Number, Degree, Worker> to;
};
const std::array<Column, 23> columns{{{"row_id", &R::row_id},
                                      {"source", &R::source},
                                      {"backend", &R::backend},
                                      {"backend_version", &R::backend_version},
                                      {"model", &R::model},
                                      {"system", &R::system},
                                      {"precision", &R::precision},
                                      {"mode", &R::mode},
                                      {"isl", &R::isl},
                                      {"osl", &R::osl},
                                      {"gemm_quant_mode", &R::gemm_quant_mode},
                                      {"moe_quant_mode", &R::moe_quant_mode},
                                      {"concurrency", &R::concurrency},
                                      {"batch_size", &R::batch_size},
                                      {"tp", &W::tp},
                                      {"pp", &W::pp},
                                      {"attention_dp", &W::attention_dp},
                                      {"moe_tp", &W::moe_tp},
                                      {"moe_ep", &W::moe_ep},
                                      {"prefill", &R::prefill},
                                      {"decode", &R::decode},
                                      {"ttft_ms", &R::ttft_ms},
                                      {"tpot_ms", &R::tpot_ms}}};

constexpr int most_of_a_count = 1'000'000;  ///< of tokens, requests, ranks

/// Without these a table is of something else.
constexpr std::array<const char*, 6> telling{"row_id", "model", "system", "isl", "osl", "tpot_ms"};
constexpr std::array<const char*, 2> telling_models{"model", "config"};
constexpr std::array<const char*, 3> telling_settings{"max_running", "max_batched_tokens", "recv_interval"};

struct Setting {
  const char* name;
  Degree to;  ///< none: known and passed over
};
const std::array<Setting, 7> settings{{{"num_workers", &W::workers},
                                       {"batch_size", nullptr},
                                       {"tp_size", &W::tp},
                                       {"pp_size", &W::pp},
                                       {"attention_dp_size", &W::attention_dp},
                                       {"moe_tp_size", &W::moe_tp},
                                       {"moe_ep_size", &W::moe_ep}}};

template <class List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> out;
  for (const auto& one : list) out.emplace_back(one.name);
  return out;
}

const Column* find_column(const std::string& name) {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return name == c.name; });
  return found == columns.end() ? nullptr : &*found;
}

/// A count from `least`; 0 is not stated. Nothing, and a complaint, where it is no such number.
std::optional<int> read_count(const char* name, std::string_view text, const Location& where, int least,
                              Complaints& complaints) {
  const std::optional<int> value = read_whole(text);
  if (!value || *value < least || *value > most_of_a_count)
    complaints.add(where, fmt::format("{} is '{}'", name, printable(text)),
                   fmt::format("expected a whole number from 1 to {}, or nothing", most_of_a_count));
  return value && *value > 0 ? value : std::nullopt;
}

/// "num_workers=4/tp_size=8".
W read_worker(const char* column, std::string_view text, Location where, Complaints& complaints) {
  W out;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('/'));
    const std::size_t equals = part.find('=');
    const std::string name(part.substr(0, equals));
    const auto known = std::find_if(settings.begin(), settings.end(), [&](const Setting& s) { return name == s.name; });
    if (equals == std::string_view::npos)
      complaints.add(where, fmt::format("{} has '{}'", column, printable(part)),
                     "expected settings such as num_workers=4/tp_size=8");
    else if (known == settings.end())
      complaints.add(where, fmt::format("{} has the unknown setting '{}'", column, printable(name)),
                     expected_one_of(name, names_of(settings)));
    else if (const auto value = read_count(known->name, part.substr(equals + 1), where, 0, complaints);
             known->to != nullptr)
      out.*(known->to) = value;
    where.column += static_cast<int>(part.size()) + 1;
    text.remove_prefix(std::min(part.size() + 1, text.size()));
  }
  return out;
}

/// Puts a cell into a row; an empty one leaves it as it is.
void put(const Column& column, const Cell& cell, const Location& where, R& row, Complaints& complaints) {
  const std::string_view text = trimmed(cell.text);
  if (text.empty()) return;
  if (const auto* of_text = std::get_if<Text>(&column.to)) {
    row.** of_text = text;
    if (*of_text == &R::mode && row.mode != "agg" && row.mode != "disagg")
      complaints.add(where, fmt::format("mode is '{}'", printable(row.mode)),
                     expected_one_of(row.mode, {"agg", "disagg"}));
  } else if (const auto* whole = std::get_if<Whole>(&column.to)) {
    row.** whole = read_count(column.name, text, where, 1, complaints);
  } else if (const auto* degree = std::get_if<Degree>(&column.to)) {
    row.server.** degree = read_count(column.name, text, where, 0, complaints);
  } else if (const auto* worker = std::get_if<Worker>(&column.to)) {
    row.** worker = read_worker(column.name, text, where, complaints);
  } else if (const auto* number = std::get_if<Number>(&column.to)) {
    row.** number = read_number(text);
    if (!(row.**number) || *(row.**number) == 0)
      complaints.add(where, fmt::format("{} is '{}'", column.name, printable(text)),
                     "expected milliseconds above 0, or nothing");
  }
}

void warn_of_unknown_columns(const CsvFile& csv, Diagnostics& warnings) {
  for (std::size_t i = 0; i < csv.heading().size(); ++i) {
    const std::string& name = csv.heading()[i];
    if (find_column(name) != nullptr) continue;
    const auto near = nearest_word(name, names_of(columns));
    warnings.push_back({csv.heading_at(i), fmt::format("unknown column '{}' is passed over", printable(name)),
                        near ? fmt::format("did you mean '{}'?", *near) : std::string()});
  }
}

void read_rows(CsvFile& csv, InferenceTables& out, Complaints& complaints) {
  warn_of_unknown_columns(csv, out.warnings);
  std::vector<Cell> cells;
  while (csv.next_row(cells, complaints)) {
    R row;
    row.where = csv.at(1);
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (const Column* column = find_column(csv.heading()[i]))
        put(*column, cells[i], csv.at(cells[i].column), row, complaints);
    if (row.row_id.empty()) complaints.add(csv.at(1), "row_id is empty", "expected a name");
    out.rows.push_back(std::move(row));
    if (out.rows.size() > most_inference_rows) {
      complaints.add(csv.at(1), fmt::format("more than {} rows", most_inference_rows), "is this a table of servers?");
      return;
    }
  }
}

void read_models(CsvFile& csv, InferenceTables& out, Complaints& complaints) {
  std::vector<Cell> cells;
  while (csv.next_row(cells, complaints)) {
    std::string name;
    ServedModel model;
    model.where = csv.at(1);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string& column = csv.heading()[i];
      if (column == "model") name = trimmed(cells[i].text);
      if (column == "config") model.config = trimmed(cells[i].text);
      if (column == "precision") model.precision = trimmed(cells[i].text);
    }
    out.models.insert_or_assign(name, model);
  }
}

template <std::size_t N>
bool has_all(const CsvFile& csv, const std::array<const char*, N>& names) {
  return std::all_of(names.begin(), names.end(), [&](const char* name) { return csv.has(name); });
}

template <std::size_t N>
bool has_any(const CsvFile& csv, const std::array<const char*, N>& names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return csv.has(name); });
}

CsvKind servers(InferenceTables& out, std::vector<SettingWord>& words) {
  return {"measured servers",
          fmt::format("expected a table of measured servers, with the columns {} and more", fmt::join(telling, ", ")),
          [&out, &words](CsvFile& csv, Complaints& complaints) {
            if (has_all(csv, telling))
              read_rows(csv, out, complaints);
            else if (has_all(csv, telling_models) && !csv.has("row_id"))
              read_models(csv, out, complaints);
            else if (has_any(csv, telling_settings) && !csv.has("row_id"))
              read_settings(csv, out.servers, words, complaints);
            else
              return false;
            return true;
          }};
}

}  // namespace

Result<InferenceTables> load_inference(const std::vector<std::string>& paths, const std::vector<std::string>& more,
                                       const Location& asked_by) {
  InferenceTables out;
  std::vector<SettingWord> words;
  const CsvKind kind = servers(out, words);
  Complaints complaints;
  std::error_code ignored;
  for (const std::string& file : more)
    if (fs::is_regular_file(file, ignored)) read_tables(file, asked_by, kind, complaints, out.warnings);
  out.beside = std::exchange(out.rows, {});
  for (const std::string& path : paths) read_tables(path, asked_by, kind, complaints, out.warnings);
  check_row_ids(out.rows, complaints);
  check_words(words, out, complaints);
  if (complaints.empty() && out.rows.empty()) complaints.add(asked_by, "no row of a server was read", kind.expected);
  if (!complaints.empty()) return complaints.take();
  return out;
}

Result<InferenceTables> read_inference_csv(std::istream& in, const std::string& file) {
  InferenceTables out;
  std::vector<SettingWord> words;
  Complaints complaints;
  read_table(in, file, servers(out, words), complaints);
  check_row_ids(out.rows, complaints);
  check_words(words, out, complaints);
  if (!complaints.empty()) return complaints.take();
  return out;
}

}  // namespace collcast
