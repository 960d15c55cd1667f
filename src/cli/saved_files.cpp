#include "cli/saved_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "cli/output.hpp"
#include "cli/session.hpp"
#include "collcast/base/text.hpp"

namespace collcast::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_bytes = std::size_t{256} << 20;

Diagnostic cannot_read(const std::string& path, const char* why) {
  return {command_line, fmt::format("cannot read '{}': {}", path, why), "expected a JSON result of collcast, or '-'"};
}

Result<std::string> read_all(std::FILE* file, const std::string& path) {
  std::string text;
  char buffer[1 << 16];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;) {
    text.append(buffer, got);
    if (text.size() > most_bytes) return cannot_read(path, "it is larger than 256 MiB");
  }
  if (std::ferror(file) != 0) return cannot_read(path, std::strerror(errno));
  return text;
}

Result<std::string> read_text(const std::string& path) {
  if (path == "-") return read_all(stdin, "-");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) return cannot_read(path, std::strerror(errno));
  return read_all(file.get(), path);
}

constexpr const char* standard_input = "standard input";

/// Where the beginning of a file says that it is measured: the name of its rates, which results of collcast have, too.
std::optional<Diagnostic> measured(std::string_view beginning, const std::string& path) {
  if (beginning.find("collcast.") != std::string_view::npos) return std::nullopt;
  const std::size_t at = std::min(beginning.find("busbw"), beginning.find("\"bus_bw\""));
  if (at == std::string_view::npos) return std::nullopt;
  const bool piped = path == "-";
  return Diagnostic{place_at(beginning, at, piped ? standard_input : path),
                    "this is a measured table or a log of nccl-tests, and no result",
                    fmt::format("expected a JSON result of collcast; 'collcast validate --measured {} --topology NAME "
                                "--output errors.json' reads tables, and writes one",
                                piped ? "FILE" : path)};
}

constexpr std::size_t beginning_bytes = std::size_t{1} << 16;

/// What reports left out goes to `left_out`.
Result<std::vector<SavedResult>> read_one(const std::string& path, std::vector<std::string>& left_out) {
  const Result<std::string> text = read_text(path);
  if (!text) return text.errors();
  if (const auto table = measured(std::string_view(*text).substr(0, beginning_bytes), path)) return *table;
  for (std::string& one : left_out_of(*text)) left_out.push_back(std::move(one));
  return read_saved(*text, path == "-" ? standard_input : path);
}

std::vector<fs::path> json_files(const std::string& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (lower_suffix(entry.path().string()) == ".json") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::optional<Diagnostic> measured_table(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) return std::nullopt;
  std::string beginning(beginning_bytes, '\0');
  beginning.resize(std::fread(beginning.data(), 1, beginning.size(), file.get()));
  return measured(beginning, path);
}

Result<SavedFiles> read_saved_files(const std::string& path) {
  SavedFiles out;
  std::error_code ignored;
  out.is_folder = fs::is_directory(path, ignored);
  if (!out.is_folder) {
    const auto results = read_one(path, out.left_out);
    if (!results) return results.errors();
    for (const SavedResult& result : *results) out.results.emplace_back(result.name, result);
    return out;
  }
  Diagnostics errors;
  for (const fs::path& file : json_files(path)) {
    const auto results = read_one(file.string(), out.left_out);
    if (!results) {
      const Result<std::string> text = read_text(file.string());
      if (const std::string schema = text ? no_result(*text) : std::string(); !schema.empty()) {
        out.passed_over.push_back(fmt::format("'{}' is a {} and no result: passed over", file.string(), schema));
        continue;
      }
      append(errors, results.errors());
      continue;
    }
    const std::string stem = file.stem().string();
    for (const SavedResult& result : *results)
      out.results.emplace_back(results->size() == 1 ? stem : fmt::format("{}: {}", stem, result.name), result);
  }
  if (!errors.empty()) return errors;
  if (out.results.empty())
    return Diagnostic{command_line, fmt::format("'{}' holds no JSON files", path), "expected results named *.json"};
  return out;
}

}  // namespace collcast::cli
