// Where and as what a command writes that knows more formats than one: --output, repeatable, and --format.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/output.hpp"

namespace collcast::cli {

enum class TargetFormat { table, json, csv, markdown, junit, html };

struct TargetArgs {
  std::string format;
  std::vector<std::string> files;
};
/// `html`: whether the command knows pages too.
void add_target_options(CLI::App&, TargetArgs&, bool html);

struct Target {
  std::string file;  ///< empty: standard output
  TargetFormat format = TargetFormat::table;
};
std::vector<Target> parse_targets(const TargetArgs&, bool html, Diagnostics& errors);

/// Each target in its format, all of them or none.
Exit deliver(const Session&, const std::vector<Target>&,
             const std::function<std::string(TargetFormat, TextStyle)>& text);

}  // namespace collcast::cli
