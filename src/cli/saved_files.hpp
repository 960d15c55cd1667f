// JSON results on disk: a file, standard input, or a folder of files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/report/comparison.hpp"

namespace collcast::cli {

/// What a path of the command line leads to. A folder's results are named by their files, those of one file by
/// themselves.
struct SavedFiles {
  std::vector<std::string> passed_over;  ///< documents of a folder that are no results, and what they are
  bool is_folder = false;
  std::vector<NamedResult> results;
  std::vector<std::string> left_out = {};  ///< by reports among them, each with the reason
};
Result<SavedFiles> read_saved_files(const std::string& path);

/// That a file is a table or a log of nccl-tests, which people take for a result, and what reads it; nothing of others.
std::optional<Diagnostic> measured_table(const std::string& path);

}  // namespace collcast::cli
