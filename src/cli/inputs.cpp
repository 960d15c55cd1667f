#include "cli/inputs.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <sstream>

#include "cli/output.hpp"
#include "cli/session.hpp"

namespace collcast::cli {

namespace fs = std::filesystem;

Diagnostics check_overwriting(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  Diagnostics out;
  std::error_code none;
  for (const std::string& output : outputs) {
    // A terminal or a pipe may be both.
    if (is_stdout(output) || !fs::is_regular_file(output, none)) continue;
    for (const std::string& input : inputs) {
      if (input.empty() || input == "-" || !fs::equivalent(input, output, none) || none) continue;
      out.push_back({command_line, fmt::format("'{}' would be written over the input '{}'", output, input),
                     "expected another file for the result"});
      break;
    }
  }
  return out;
}

Result<std::string> read_stdin(const std::string& expected) {
  std::ostringstream text;
  text << std::cin.rdbuf();
  if (text.view().empty()) return Diagnostic{command_line, "standard input is empty", expected};
  return text.str();
}

std::vector<std::string> files_of_machine(const TopologySpec& spec) {
  std::vector<std::string> out;
  for (const SourceFile& source : spec.files) out.push_back(source.file);
  return out;
}

std::vector<std::string> files_of_kernels(const KernelModel& kernels) {
  std::vector<std::string> out{kernels.file};
  for (const auto& [precision, measured] : kernels.measured_gemm) out.push_back(measured.file);
  return out;
}

std::vector<std::string> files_of(const std::string& input, const std::string& suffix) {
  std::error_code error;
  if (!fs::is_directory(input, error)) return {input};
  std::vector<std::string> out;
  for (fs::directory_iterator it(input, error), end; !error && it != end; it.increment(error))
    if (suffix.empty() || it->path().extension() == suffix) out.push_back(it->path().string());
  return out;
}

}  // namespace collcast::cli
