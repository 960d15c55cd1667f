#include "training/row_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "collcast/base/words.hpp"
#include "lines.hpp"
#include "values.hpp"

namespace collcast {

namespace {

template <class T>
struct RowWord {
  std::string word;
  T value;
  std::string counts_as = {};  ///< told where that is less than the word says
  bool listed = true;          ///< among what is expected: another spelling is not
};

template <class T>
const RowWord<T>* find(const std::vector<RowWord<T>>& known, std::string_view word) {
  for (const RowWord<T>& one : known)
    if (one.word == word) return &one;
  return nullptr;
}

/// "the precision fp8-rowwise counts as fp8"; a remark in brackets behind a word is passed over, and told.
template <class T>
Result<Meaning<T>> meaning(const char* what, const std::string& cell, const std::vector<RowWord<T>>& known) {
  const std::string text = lower(cell);
  const auto counts_as = [&](const std::string& as) { return fmt::format("the {} {} counts as {}", what, cell, as); };
  if (const RowWord<T>* one = find(known, text))
    return Meaning<T>{one->value, one->counts_as.empty() ? std::string() : counts_as(one->counts_as)};
  const std::size_t bracket = text.find('(');
  if (text.ends_with(')') && bracket != std::string::npos)
    if (const RowWord<T>* one = find(known, trimmed(std::string_view(text).substr(0, bracket))))
      return Meaning<T>{one->value, counts_as(one->counts_as.empty() ? one->word : one->counts_as)};
  std::vector<std::string> expected;
  for (const RowWord<T>& one : known)
    if (one.listed) expected.push_back(one.word);
  return Diagnostic{
      {}, fmt::format("the {} {} is not modelled: {}", what, printable(cell), expected_one_of(text, expected)), {}};
}

}  // namespace

Result<Meaning<std::string>> precision_of_row(const std::string& cell) {
  std::vector<RowWord<std::string>> known;
  for (const std::string& word : training_precisions()) known.push_back({word, word});
  // Scales of blocks are what MX formats have; one of each tensor, row or other block has the same products here.
  for (const char* word : {"fp8-cs", "fp8-tensorwise", "fp8-rowwise", "fp8-mx/blockwise"})
    known.push_back({word, "fp8", "fp8", false});
  known.push_back({"mxfp8", "fp8"});
  known.push_back({"fp8-mx", "fp8", {}, false});
  known.push_back({"nvfp4", "fp4"});
  known.push_back({"fp16/bf16", "bf16", "bf16", false});
  return meaning("precision", cell, known);
}

Result<Meaning<int>> zero_of_row(const std::string& cell) {
  std::vector<RowWord<int>> known;
  for (int stage = 0; stage <= 3; ++stage) {
    known.push_back({std::to_string(stage), stage});
    known.push_back({fmt::format("zero{}", stage), stage});
    for (const char* spelling : {"zero-{}", "zero {}"})
      known.push_back({fmt::format(fmt::runtime(spelling), stage), stage, {}, false});
  }
  known.push_back({"dist-opt", 1});
  known.push_back({"zero1 (distributed optimizer)", 1, {}, false});
  known.push_back({"zero1 over all dp", 1, {}, false});
  known.push_back({"fsdp", 3});
  known.push_back({"fsdp2", 3});
  for (const char* version : {"fsdp", "fsdp2"})
    for (const int stage : {2, 3}) known.push_back({fmt::format("{}(zero{})", version, stage), stage});
  known.push_back({"fsdp(grad+opt sharded, no reshard after fwd)", 2, {}, false});
  known.push_back({"fsdp+dp", 3, "fsdp over all replicas", false});
  known.push_back({"hsdp", 3});
  known.push_back({"fsdpN", 3});  // what is read is in small letters: no cell is this word
  return fsdp_ranks(cell) ? Meaning<int>{3, {}} : meaning("sharding", cell, known);
}

Result<Meaning<PipelineSchedule>> schedule_of_row(const std::string& cell) {
  using enum PipelineSchedule;
  std::vector<RowWord<PipelineSchedule>> known;
  for (const PipelineSchedule one :
       {gpipe, one_f_one_b, interleaved, zb_h1, zb_h2, zb_1p, zb_2p, zb_v, dualpipe, dualpipe_v})
    known.push_back({std::string(to_string(one)), one});
  known.push_back({"interleaved-1f1b", interleaved});
  known.push_back({"1f1b-i", interleaved});
  known.push_back({"interleaved-1f1b flexible", interleaved, "interleaved", false});
  known.push_back({"dualpipev", dualpipe_v, {}, false});
  return meaning("schedule", cell, known);
}

bool known_task(const std::string& text) {
  static const std::vector<std::string> known{"pretrain", "sft", "lora", "memory"};
  return std::ranges::find(known, text) != known.end();
}

bool names_overlap(const std::string& text) {
  static const std::vector<std::string> known{"none", "default", "defaults", "dp", "ddp", "fsdp", "hsdp",
                                              "tp",   "pp",      "p2p",      "cp", "ep",  "all"};
  std::string word;
  for (const char c : text + ' ') {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    if (std::ranges::find(known, word) != known.end()) return true;
    word.clear();
  }
  return false;
}

std::optional<int> fsdp_ranks(const std::string& cell) {
  constexpr std::string_view word = "fsdp";
  const std::string text = lower(cell);
  if (!text.starts_with(word)) return std::nullopt;
  const std::optional<int> ranks = read_whole(std::string_view(text).substr(word.size()));
  return ranks && *ranks > 2 ? ranks : std::nullopt;
}

}  // namespace collcast
