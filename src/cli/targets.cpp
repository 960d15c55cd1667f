#include "cli/targets.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>

#include "cli/values.hpp"

namespace collcast::cli {

namespace {

std::vector<std::string> words(bool html) {
  std::vector<std::string> out{"table", "json", "csv", "markdown", "junit"};
  if (html) out.emplace_back("html");
  return out;
}

std::optional<TargetFormat> by_suffix(const std::string& file, bool html) {
  const std::string suffix = lower_suffix(file);
  if (suffix.empty() || suffix == ".txt") return TargetFormat::table;
  if (suffix == ".json") return TargetFormat::json;
  if (suffix == ".csv") return TargetFormat::csv;
  if (suffix == ".md" || suffix == ".markdown") return TargetFormat::markdown;
  if (suffix == ".xml") return TargetFormat::junit;
  if (html && (suffix == ".html" || suffix == ".htm")) return TargetFormat::html;
  return std::nullopt;
}

}  // namespace

void add_target_options(CLI::App& app, TargetArgs& args, bool html) {
  app.add_option("--format", args.format,
                 fmt::format("{} (default: by FILE's suffix, else table)", fmt::join(words(html), ", ")))
      ->type_name("WORD")
      ->group("Output");
  app.add_option(
         "--output", args.files,
         fmt::format(
             "write to FILE (.json, .csv, .md, .xml{}), complete or not at all; '-': standard output (repeatable)",
             html ? ", .html" : ""))
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->group("Output");
}

std::vector<Target> parse_targets(const TargetArgs& args, bool html, Diagnostics& errors) {
  std::optional<TargetFormat> asked;
  if (!args.format.empty()) {
    if (const auto index = parse_word("--format", args.format, words(html), errors))
      asked = static_cast<TargetFormat>(*index);
    else
      asked = TargetFormat::table;  // said; the suffixes do not matter then
  }
  if (args.files.empty()) return {{"", asked.value_or(TargetFormat::table)}};
  if (asked && args.files.size() > 1)
    errors.push_back(
        {typed("--format", args.format), "--format is for one --output", "let each file's suffix say its format"});
  std::vector<Target> out;
  for (const std::string& file : args.files) {
    const auto format = asked ? asked : by_suffix(file, html);
    if (!format)
      errors.push_back({typed("--output", file),
                        fmt::format("no format has the suffix '{}'", std::filesystem::path(file).extension().string()),
                        fmt::format("expected .json, .csv, .md, .markdown, .xml{} or .txt, or give --format",
                                    html ? ", .html" : "")});
    out.push_back({file, format.value_or(TargetFormat::table)});
  }
  return out;
}

Exit deliver(const Session& session, const std::vector<Target>& targets,
             const std::function<std::string(TargetFormat, TextStyle)>& text) {
  std::string shown;
  std::vector<OutputFile> files;
  for (const Target& target : targets) {
    if (is_stdout(target.file) && shown.empty())
      shown = text(target.format, session.style);
    else
      files.push_back({target.file, text(target.format, {})});
  }
  return deliver(session, shown, files);
}

}  // namespace collcast::cli
