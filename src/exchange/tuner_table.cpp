// The table of NCCL's example tuner [ext-tuner/example of v2.28.9]: a rule per line, '#' comments, 8 to 10 fields. The
// example takes an unknown word for all-reduce, ring or Simple and text for the number 0; here each is an error.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <limits>

#include "collcast/base/numbers.hpp"
#include "collcast/base/text.hpp"
#include "collcast/exchange/nccl_files.hpp"
#include "collcast/nccl/environment.hpp"

namespace collcast::exchange {

namespace {

constexpr std::size_t longest_line = 255;  // the example reads lines into 256 bytes
constexpr std::size_t most_errors = 100;

struct Field {
  std::string_view text;
  int column = 1;
};

std::vector<Field> fields_of(std::string_view line) {
  std::vector<Field> out;
  for (std::size_t start = 0; start <= line.size();) {
    const std::size_t end = std::min(line.find(',', start), line.size());
    std::string_view cell = line.substr(start, end - start);
    std::size_t column = start;
    while (!cell.empty() && (cell.front() == ' ' || cell.front() == '\t')) cell.remove_prefix(1), ++column;
    while (!cell.empty() && std::string_view(" \t\r").find(cell.back()) != std::string_view::npos)
      cell.remove_suffix(1);
    out.push_back({cell, static_cast<int>(column) + 1});
    start = end + 1;
  }
  return out;
}

class Reading {
 public:
  explicit Reading(const std::string& file) : file_(file) {}

  void line(std::string_view text, int number) {
    line_ = number;
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    if (text.empty() || text.front() == '#' || text.find_first_not_of(" \t") == std::string_view::npos) return;
    if (text.size() > longest_line)
      return error(static_cast<int>(longest_line) + 1, "the line is too long",
                   "NCCL's example reads 255 bytes of a line");
    const std::vector<Field> fields = fields_of(text);
    if (rules_.empty() && errors_.empty() && fields[0].text == "collective_type") return;  // a spreadsheet's head
    if (fields.size() < 8 || fields.size() > 10)
      return error(
          1, fmt::format("{} field{}", fields.size(), fields.size() == 1 ? "" : "s"),
          "expected collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]]");
    rule(fields);
  }

  Result<nccl::TunerFile> take() {
    if (rules_.empty() && errors_.empty())
      error(1, "there is no rule in this file", "expected a line such as allreduce,0,65536,tree,ll,-1,-1,-1");
    if (!errors_.empty()) return errors_;
    return nccl::TunerFile{shown(std::filesystem::path(file_).filename().string()), std::move(rules_)};
  }

 private:
  void error(int column, std::string message, std::string hint) {
    if (errors_.size() < most_errors) errors_.push_back({{file_, line_, column}, std::move(message), std::move(hint)});
  }

  template <class T, std::size_t n>
  T word(const Field& field, const char* what, const std::array<std::pair<const char*, T>, n>& known) {
    std::vector<std::string> words;
    for (const auto& [text, value] : known) {
      if (field.text == text) return value;
      words.emplace_back(text);
    }
    error(field.column, fmt::format("{} is '{}'", what, shown(field.text)), expected_one_of(field.text, words));
    return known.front().second;
  }

  std::optional<std::int64_t> number(const Field& field, const char* what, std::int64_t least) {
    if (const auto value = to_number<std::int64_t>(field.text); value && *value >= least) return value;
    error(field.column, fmt::format("{} is '{}'", what, shown(field.text)),
          least < 0 ? "expected a whole number, or -1 for any" : fmt::format("expected a whole number from {}", least));
    return std::nullopt;
  }

  /// -1 is any; 0 matches nothing.
  std::optional<int> count(const Field& field, const char* what) {
    const auto value = number(field, what, -1);
    if (!value || *value == -1) return std::nullopt;
    if (*value == 0 || *value > std::numeric_limits<int>::max())
      error(field.column, fmt::format("{} is '{}'", what, shown(field.text)),
            fmt::format("expected 1 to {}, or -1 for any", std::numeric_limits<int>::max()));
    return static_cast<int>(*value);
  }

  void rule(const std::vector<Field>& fields) {
    using K = CollectiveKind;
    using A = nccl::Algorithm;
    using P = nccl::Protocol;
    nccl::TunerRule out;
    out.line = line_;
    out.kind = word<K, 5>(fields[0], "the collective",
                          {{{"allreduce", K::all_reduce},
                            {"broadcast", K::broadcast},
                            {"reduce", K::reduce},
                            {"allgather", K::all_gather},
                            {"reducescatter", K::reduce_scatter}}});
    out.least = Bytes(number(fields[1], "min_bytes", 0).value_or(0));
    // The example reads it by strtoull, of which -1 is the largest number: any size.
    if (fields[2].text != "-1") out.most = Bytes(number(fields[2], "max_bytes", 0).value_or(out.least.value()));
    if (out.most < out.least)
      error(fields[2].column, fmt::format("max_bytes is {}, min_bytes {}", out.most.value(), out.least.value()),
            "such a rule never matches");
    out.algorithm = word<A, 7>(fields[3], "the algorithm",
                               {{{"tree", A::tree},
                                 {"ring", A::ring},
                                 {"collnet_direct", A::collnet_direct},
                                 {"collnet_chain", A::collnet_chain},
                                 {"nvls", A::nvls},
                                 {"nvls_tree", A::nvls_tree},
                                 {"pat", A::pat}}});
    out.protocol = word<P, 3>(fields[4], "the protocol", {{{"ll", P::ll}, {"ll128", P::ll128}, {"simple", P::simple}}});
    out.channels = count(fields[5], "channels");
    out.nodes = count(fields[6], "nNodes");
    out.ranks = count(fields[7], "nRanks");
    if (fields.size() > 8) out.operations = count(fields[8], "numPipeOps");
    if (fields.size() > 9) {
      const auto value = number(fields[9], "regBuff", -1);
      if (value && *value > 1)
        error(fields[9].column, fmt::format("regBuff is '{}'", *value), "expected 0, 1 or -1 for either");
      if (value && *value >= 0) out.registered = *value == 1;
    }
    rules_.push_back(out);
  }

  const std::string& file_;
  int line_ = 1;
  std::vector<nccl::TunerRule> rules_;
  Diagnostics errors_;
};

}  // namespace

Result<nccl::TunerFile> read_tuner_table(std::string_view text, const std::string& file) {
  if (text.size() > max_file_bytes)
    return Diagnostic{{file},
                      fmt::format("{} bytes are too many", text.size()),
                      fmt::format("files are read up to {} MiB", max_file_bytes >> 20)};
  if (Diagnostics wrong = check_encoding(text, file); !wrong.empty()) return wrong;
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return Diagnostic{{file, 1, 1}, "the file is empty", "expected rules of NCCL's example tuner"};
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Reading reading(file);
  int number = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    reading.line(text.substr(start, end - start), ++number);
    start = end + 1;
  }
  return reading.take();
}

}  // namespace collcast::exchange
