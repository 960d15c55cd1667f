#include "cli/measured_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "collcast/scenario/measured_facts.hpp"

namespace collcast::cli {

namespace fs = std::filesystem;

namespace {

bool is_stream(const std::string& file) {
  std::error_code ignored;
  const fs::file_status status = fs::status(file, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

/// The part of the report that one table is for.
MeasureReport only(const MeasureReport& report, CollectiveKind kind) {
  MeasureReport out = report;
  out.rows.clear();
  std::copy_if(report.rows.begin(), report.rows.end(), std::back_inserter(out.rows),
               [&](const MeasuredRow& row) { return row.kind == kind; });
  const std::string name(to_string(kind));
  std::erase_if(out.notes, [&](const std::string& note) {
    return !note.starts_with(name + " ") && !note.starts_with(name + ":");
  });
  return out;
}

/// A sidecar replaces the one of an earlier measurement, and no other YAML (a machine, a scenario).
Diagnostics check_sidecar(const fs::path& table) {
  const fs::path beside = fs::path(table).replace_extension(".yaml");
  std::error_code ignored;
  if (!fs::is_regular_file(beside, ignored) || load_measured_facts(beside.string(), command_line)) return {};
  return {
      {command_line,
       fmt::format("the sidecar of '{}' would be written over '{}', which is none", table.string(), beside.string()),
       "expected another file for the table"}};
}

std::string csv_text(const MeasureReport& report) {
  std::ostringstream out;
  write_csv(out, csv(report));
  return out.str();
}

}  // namespace

MeasuredFiles::MeasuredFiles(const Session& session, const MeasureQuestion& question, const OutputOptions& output,
                             Diagnostics& errors)
    : session_(session), question_(question), output_(output), format_(parse_format(output, errors)) {
  std::error_code ignored;
  folder_ = !output.file.empty() && (output.file.back() == '/' || fs::is_directory(output.file, ignored));
  if (folder_) {
    if (!output.format.empty() && format_ != Format::csv)
      errors.push_back({command_line, fmt::format("--output: '{}' is a folder, for tables", output.file),
                        "expected --format csv, or a file"});
    way_ = Way::tables;
  } else if (format_ == Format::csv) {
    way_ = is_stdout(output.file) || is_stream(output.file) ? Way::stream : Way::tables;
    if (way_ == Way::tables && question.plan.kinds.size() > 1)
      errors.push_back({command_line, fmt::format("--output: '{}' is one table, for one collective", output.file),
                        "expected a folder (its name ends in '/'), which gets a table for each"});
    if (way_ == Way::tables) append(errors, check_sidecar(output.file));
  }
}

bool MeasuredFiles::keep(const MeasureReport& report) {
  if (way_ == Way::tables) return write_table(report, report.rows.back().kind);
  return way_ != Way::stream || append_rows(report);
}

bool MeasuredFiles::shows_notes() const {
  return way_ == Way::document && is_stdout(output_.file) && (format_ == Format::table || format_ == Format::markdown);
}

std::string MeasuredFiles::place() const {
  return is_stdout(output_.file) ? "standard output" : "'" + output_.file + "'";
}

Exit MeasuredFiles::close(const MeasureReport& report) {
  if (way_ == Way::document) {
    const Exit written = deliver(session_, report, format_, output_);
    if (written == Exit::bad_input) show(report);
    return written;
  }
  if (way_ == Way::stream) return Exit::ok;
  for (const CollectiveKind kind : question_.plan.kinds) {
    const bool any =
        std::any_of(report.rows.begin(), report.rows.end(), [&](const MeasuredRow& row) { return row.kind == kind; });
    if (any && !write_table(report, kind)) return Exit::bad_input;
  }
  return Exit::ok;
}

bool MeasuredFiles::show(const MeasureReport& report) {
  return !is_stdout(output_.file) && deliver(session_, report, Format::table, {}) == Exit::ok;
}

bool MeasuredFiles::write_table(const MeasureReport& report, CollectiveKind kind) {
  const MeasureReport table = only(report, kind);
  TableFacts facts;
  facts.id = fmt::format("{}-{}-{}x{}-{}", report.system.backend, question_.system, report.system.nodes,
                         report.system.ranks_per_node, to_string(kind));
  facts.system = question_.system;
  facts.command = question_.command;
  facts.date = question_.date;
  facts.environment = steering_variables(session_.environment);
  facts.warmup = question_.plan.warmup;
  facts.calls = question_.plan.calls;
  facts.graph = question_.plan.graph;
  fs::path place = output_.file;
  if (folder_) {
    std::error_code ignored;  // a folder that is not there is said when the file cannot be written
    fs::create_directory(place.has_filename() ? place : place.parent_path(), ignored);
    place /= facts.id + ".csv";
    if (checked_.insert(place.string()).second)
      if (const Diagnostics wrong = check_sidecar(place); !wrong.empty()) {
        refuse(session_, wrong);
        return false;
      }
  }
  const fs::path beside = fs::path(place).replace_extension(".yaml");
  if (deliver(session_, {}, {{place.string(), csv_text(table)}, {beside.string(), sidecar(facts, table)}}) != Exit::ok)
    return false;
  kept_ = "in " + (folder_ ? output_.file : place.string());
  return true;
}

bool MeasuredFiles::append_rows(const MeasureReport& report) {
  const std::string text = csv_text(report);
  const std::string more = text.substr(streamed_);
  streamed_ = text.size();
  return deliver(session_, {}, {{output_.file, more}}) == Exit::ok;
}

}  // namespace collcast::cli
