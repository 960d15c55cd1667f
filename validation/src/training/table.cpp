#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <variant>
#include <vector>

#include "collcast/base/csv.hpp"
#include "collcast/base/text.hpp"
#include "collcast/base/words.hpp"
#include "collcast/validation/training_table.hpp"
#include "collcast/workload/limits.hpp"
#include "csv_file.hpp"
#include "lines.hpp"
#include "values.hpp"

namespace collcast {

namespace {

using Text = std::string TrainingRow::*;
using Whole = std::optional<int> TrainingRow::*;
using Number = std::optional<double> TrainingRow::*;

// Limits as a scenario's.
constexpr int most_count = 10'000'000;

struct Column {
  const char* name;
  std::variant<std::monostate, Text, Whole, Number> to;  ///< none: known and passed over
  int least = 0;                                         ///< of a whole number
  int most = most_count;                                 ///< of the same
};

using R = TrainingRow;
const std::array<Column, 51> columns{{
    {"row_id", &R::row_id},
    {"source_id", &R::source_id},
    {"locator", {}},
    {"verified", {}},
    {"tier", &R::tier},
    {"date", &R::date},
    {"framework", &R::framework},
    {"task", &R::task},
    {"model_id", &R::model_id},
    {"params_b", &R::params_b},
    {"layers", &R::layers, 1, most_layers},
    {"hidden", &R::hidden, 1},
    {"ffn", &R::ffn, 1},
    {"heads", &R::heads, 1},
    {"kv_heads", &R::kv_heads, 1},
    {"vocab", &R::vocab, 1},
    {"seq", &R::seq, 1},
    {"gated_mlp", &R::gated_mlp, 0, 1},
    {"experts", &R::experts},
    {"topk", &R::topk},
    {"gpu", &R::gpu},
    {"gpus", &R::gpus, 1},
    {"gpus_per_node", &R::gpus_per_node, 1},
    {"intra_net", &R::intra_net},
    {"inter_gbps_per_gpu", &R::inter_gbps_per_gpu},
    {"precision", &R::precision},
    {"tp", &R::tp, 1},
    {"sp", &R::sp, 0, 1},
    {"pp", &R::pp, 1},
    {"vpp", &R::vpp},
    {"cp", &R::cp, 1},
    {"ep", &R::ep, 1},
    {"etp", &R::etp, 1},
    {"dp", &R::dp, 1},
    {"zero", &R::zero},
    {"mbs", &R::mbs, 1, most_sequences},
    {"gbs", &R::gbs, 1},
    {"recompute", &R::recompute},
    {"schedule", &R::schedule},
    {"overlap", &R::overlap},
    {"iter_s", &R::iter_s},
    {"tok_s_gpu", &R::tok_s_gpu},
    {"samples_s", &R::samples_s},
    {"tflops_gpu", &R::tflops_gpu},
    {"tflops_kind", &R::tflops_kind},
    {"mfu_pct", &R::mfu_pct},
    {"hfu_pct", &R::hfu_pct},
    {"mem_gib", &R::mem_gib},
    {"mem_kind", &R::mem_kind},
    {"published", &R::published},
    {"notes", &R::notes},
}};

/// Without these a table is of something else.
constexpr std::array<const char*, 5> telling{"row_id", "source_id", "gpu", "gpus", "gbs"};

std::vector<std::string> column_names() {
  std::vector<std::string> out;
  for (const Column& column : columns) out.emplace_back(column.name);
  return out;
}

/// Puts a cell into a row; an empty one leaves it as it is.
void put(const Column& column, const Cell& cell, const Location& where, TrainingRow& row, Complaints& complaints) {
  const std::string_view text = trimmed(cell.text);
  if (text.empty()) return;
  if (const auto* to = std::get_if<Text>(&column.to)) {
    row.** to = text;
  } else if (const auto* whole = std::get_if<Whole>(&column.to)) {
    row.** whole = read_whole(text);
    if (row.**whole && *(row.**whole) >= column.least && *(row.**whole) <= column.most) return;
    complaints.add(where, fmt::format("{} is '{}'", column.name, printable(text)),
                   column.most == 1
                       ? "expected 0, 1 or nothing"
                       : fmt::format("expected a whole number from {} to {}, or nothing", column.least, column.most));
  } else if (const auto* number = std::get_if<Number>(&column.to)) {
    row.** number = read_number(text);
    if (!(row.**number))
      complaints.add(where, fmt::format("{} is '{}'", column.name, printable(text)),
                     "expected a number, at least 0, or nothing");
  }
}

/// Words that a column has: those that begin with one of these count as it.
struct Worded {
  std::string_view column;
  std::vector<std::string_view> words;
  bool counts;  ///< a time depends on it
};
const std::vector<Worded>& worded() {
  static const std::vector<Worded> all{{"tflops_kind", {"model", "hardware"}, true},
                                       {"tier", {"A", "B", "C"}, false},
                                       {"verified", {"yes", "secondary"}, false}};
  return all;
}

/// An unknown word is an error where a time depends on it, else a warning.
void check_word(const std::string& column, const Cell& cell, const Location& where, Diagnostics& warnings,
                Complaints& complaints) {
  const std::string_view text = trimmed(cell.text);
  const auto known = std::ranges::find(worded(), column, &Worded::column);
  if (text.empty() || known == worded().end()) return;
  if (std::ranges::any_of(known->words, [&](std::string_view word) { return text.starts_with(word); })) return;
  const std::string message = fmt::format("{} is '{}'", column, printable(text));
  const std::string expected = fmt::format("expected {} or nothing", fmt::join(known->words, ", "));
  if (known->counts)
    complaints.add(where, message, expected);
  else
    warnings.push_back({where, message, expected});
}

/// That models have besides.
const std::array<Column, 9> model_columns{{{"head_dim", &R::head_dim, 1},
                                           {"moe_ffn", &R::moe_ffn, 1},
                                           {"shared_experts", &R::shared_experts},
                                           {"dense_layers", &R::dense_layers},
                                           {"q_lora", &R::q_lora, 1},
                                           {"kv_lora", &R::kv_lora, 1},
                                           {"qk_nope", &R::qk_nope, 1},
                                           {"qk_rope", &R::qk_rope, 1},
                                           {"v_head", &R::v_head, 1}}};

const Column* find_column(const std::string& name) {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& c) { return name == c.name; });
  return found == columns.end() ? nullptr : &*found;
}

void warn_of_unknown_columns(const CsvFile& csv, Diagnostics& warnings) {
  for (std::size_t i = 0; i < csv.heading().size(); ++i) {
    const std::string& name = csv.heading()[i];
    if (find_column(name) != nullptr) continue;
    const auto near = nearest_word(name, column_names());
    warnings.push_back({csv.heading_at(i), fmt::format("unknown column '{}' is passed over", printable(name)),
                        near ? fmt::format("did you mean '{}'?", *near) : std::string()});
  }
}

/// Dimensions that a row may state beside its model's.
constexpr std::array<std::pair<const char*, Whole>, 9> dimensions{{{"layers", &R::layers},
                                                                   {"hidden", &R::hidden},
                                                                   {"ffn", &R::ffn},
                                                                   {"heads", &R::heads},
                                                                   {"kv_heads", &R::kv_heads},
                                                                   {"vocab", &R::vocab},
                                                                   {"gated_mlp", &R::gated_mlp},
                                                                   {"experts", &R::experts},
                                                                   {"topk", &R::topk}}};
/// Columns of the line where they stand.
using Stated = std::array<int, dimensions.size()>;

/// By how much two figures of one step may differ that a source has rounded.
constexpr double most_rounding = 0.02;

/// Of a step's time the first figure that there is counts (measured_step): others that say something else are told.
void compare_times(const TrainingRow& row, const std::map<std::string, Location>& places, Diagnostics& warnings) {
  if (!row.iter_s || !row.gbs || !row.gpus) return;
  const auto compare = [&](const char* column, std::optional<double> rate, double work) {
    if (!(rate.value_or(0) > 0)) return;
    const double time = work / *rate;
    if (std::abs(time - *row.iter_s) <= most_rounding * *row.iter_s) return;
    warnings.push_back(
        {places.at(column),
         fmt::format("{} is '{:.10g}', a step of {:.6g} s, beside iter_s '{:.10g}'", column, *rate, time, *row.iter_s),
         "iter_s is taken; correct one of them, or leave the wrong one empty"});
  };
  compare("samples_s", row.samples_s, *row.gbs);
  if (row.seq) compare("tok_s_gpu", row.tok_s_gpu, static_cast<double>(*row.gbs) * *row.seq / *row.gpus);
}

void read_rows(CsvFile& csv, TrainingTables& out, std::vector<Stated>& stated, Complaints& complaints) {
  warn_of_unknown_columns(csv, out.warnings);
  std::vector<Cell> cells;
  while (csv.next_row(cells, complaints)) {
    TrainingRow row;
    row.where = csv.at(1);
    std::map<std::string, Location> places;
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (const Column* column = find_column(csv.heading()[i])) {
        const Location& at = places[column->name] = csv.at(cells[i].column);
        put(*column, cells[i], at, row, complaints);
        check_word(column->name, cells[i], at, out.warnings, complaints);
      }
    compare_times(row, places, out.warnings);
    Stated& columns_of_row = stated.emplace_back();
    for (std::size_t d = 0; d < dimensions.size(); ++d) columns_of_row[d] = places[dimensions[d].first].column;
    for (const auto& [name, value] : {std::pair{"row_id", &row.row_id}, std::pair{"source_id", &row.source_id}})
      if (value->empty()) complaints.add(csv.at(1), fmt::format("{} is empty", name), "expected a name");
    if (row.iter_s && *row.iter_s == 0)
      complaints.add(csv.at(1), "iter_s is '0'", "expected seconds above 0, or nothing");
    out.rows.push_back(std::move(row));
    if (out.rows.size() > most_training_rows) {
      complaints.add(csv.at(1), fmt::format("more than {} rows", most_training_rows), "is this a table of steps?");
      return;
    }
  }
}

/// Dimensions by model_id, in the columns that rows have too.
using Models = std::map<std::string, TrainingRow>;

void read_models(CsvFile& csv, Models& out, Complaints& complaints) {
  std::vector<Cell> cells;
  while (csv.next_row(cells, complaints)) {
    TrainingRow model;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string& name = csv.heading()[i];
      const auto of_models =
          std::find_if(model_columns.begin(), model_columns.end(), [&](const Column& c) { return name == c.name; });
      const Column* column = of_models != model_columns.end() ? &*of_models : find_column(name);
      if (column != nullptr) put(*column, cells[i], csv.at(cells[i].column), model, complaints);
    }
    out.insert_or_assign(model.model_id, model);
  }
}

void read_sources(CsvFile& csv, std::map<std::string, std::string>& out, Complaints& complaints) {
  std::vector<Cell> cells;
  while (csv.next_row(cells, complaints)) {
    std::string id, title;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (csv.heading()[i] == "source_id") id = cells[i].text;
      if (csv.heading()[i] == "title") title = cells[i].text;
    }
    out.insert_or_assign(id, title);
  }
}

/// What a row leaves open is its model's. What it has otherwise is told, but fewer layers: models are cut short for few
/// GPUs.
void fill_in(const Models& models, const Stated& stated, TrainingRow& row, Diagnostics& warnings) {
  const auto found = models.find(row.model_id);
  if (found == models.end()) return;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const auto [name, value] = dimensions[d];
    const std::optional<int> own = row.*value, of_model = found->second.*value;
    if (!own || !of_model || *own == *of_model || (value == &R::layers && *own < *of_model)) continue;
    warnings.push_back({{row.where.file, row.where.line, stated[d]},
                        fmt::format("{} is '{}', and {} of model '{}'", name, *own, *of_model, printable(row.model_id)),
                        fmt::format("{} is taken; correct one of them, or name another model", *own)});
  }
  const auto take = [&](Whole value) {
    if (!(row.*value)) row.*value = found->second.*value;
  };
  for (const Whole value : {&R::layers, &R::hidden, &R::ffn, &R::heads, &R::kv_heads, &R::head_dim, &R::vocab,
                            &R::gated_mlp, &R::experts, &R::topk, &R::moe_ffn, &R::shared_experts, &R::dense_layers,
                            &R::q_lora, &R::kv_lora, &R::qk_nope, &R::qk_rope, &R::v_head})
    take(value);
}

bool is_rows(const CsvFile& csv) {
  return std::all_of(telling.begin(), telling.end(), [&](const char* name) { return csv.has(name); });
}

CsvKind training_steps(TrainingTables& out, Models& models, std::vector<Stated>& stated) {
  return {"training steps",
          fmt::format("expected a table of training steps, with the columns {} and more", fmt::join(telling, ", ")),
          [&](CsvFile& csv, Complaints& complaints) {
            if (is_rows(csv))
              read_rows(csv, out, stated, complaints);
            else if (csv.has("model_id") && csv.has("hidden") && !csv.has("row_id"))
              read_models(csv, models, complaints);
            else if (csv.has("source_id") && csv.has("title") && !csv.has("row_id"))
              read_sources(csv, out.sources, complaints);
            else
              return false;
            return true;
          }};
}

}  // namespace

bool TrainingRow::out_of_memory() const { return lower(published) == "oom"; }

Result<TrainingTables> load_training(const std::vector<std::string>& paths, const Location& asked_by) {
  TrainingTables out;
  Models models;
  std::vector<Stated> stated;
  const CsvKind kind = training_steps(out, models, stated);
  Complaints complaints;
  for (const std::string& path : paths) read_tables(path, asked_by, kind, complaints, out.warnings);
  check_row_ids(out.rows, complaints);
  if (complaints.empty() && out.rows.empty())
    complaints.add(asked_by, "no row of a training step was read", kind.expected);
  if (!complaints.empty()) return complaints.take();
  for (std::size_t i = 0; i < out.rows.size(); ++i) fill_in(models, stated[i], out.rows[i], out.warnings);
  return out;
}

Result<TrainingTables> read_training_csv(std::istream& in, const std::string& file) {
  TrainingTables out;
  Models none;
  std::vector<Stated> unused;
  Complaints complaints;
  read_table(in, file, training_steps(out, none, unused), complaints);
  check_row_ids(out.rows, complaints);
  if (!complaints.empty()) return complaints.take();
  return out;
}

}  // namespace collcast
