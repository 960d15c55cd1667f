// Sidecars of measured tables -> MeasuredFacts.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "collcast/base/words.hpp"
#include "collcast/scenario/measured_facts.hpp"
#include "scenario/parse.hpp"
#include "scenario/reader.hpp"

namespace collcast {

std::string_view to_string(Health health) {
  switch (health) {
    case Health::yes:
      return "yes";
    case Health::no:
      return "no";
    case Health::unknown:
      break;
  }
  return "unknown";
}

Location MeasuredFacts::place_of(std::string_view key) const {
  const auto found = std::ranges::find(places, key, &std::pair<std::string, Location>::first);
  return found == places.end() ? Location{} : found->second;
}

namespace input {

namespace {

constexpr double most_microseconds = 1e12;

/// A line of text that may be empty.
struct AsAnyText {
  static constexpr Holds holds = Holds::text;
  bool operator()(Reader& reader, const Node& node, const std::string& path, std::string& out) const {
    if (node.kind == Node::Kind::null) return true;
    if (node.kind == Node::Kind::scalar) {
      out = node.text;
      return true;
    }
    mismatch(reader, node, path, expected());
    return false;
  }
  std::string expected() const { return "a line of text"; }
};

struct AsMicroseconds {
  static constexpr Holds holds = Holds::number;
  AsNumber number{0, most_microseconds};
  bool operator()(Reader& reader, const Node& node, const std::string& path, Seconds& out) const {
    double value = 0;
    if (!number(reader, node, path, value)) return false;
    out = Seconds(value * 1e-6);
    return true;
  }
  std::string expected() const { return number.expected(); }
};

MeasuredFacts::Spread read_spread(Reader& reader, const Node& node, const std::string& path) {
  MeasuredFacts::Spread out;
  int in_place = 0;
  double bytes = 0;
  Object o(reader, node, path);
  // Sizes are wider than a count.
  o.required("size_bytes", bytes, AsNumber{0, 4.0e18});
  o.required("inplace", in_place, AsCount{0, 1});
  o.required("min_us", out.least, AsMicroseconds{});
  o.required("median_us", out.median, AsMicroseconds{});
  o.required("p95_us", out.p95, AsMicroseconds{});
  o.required("max_us", out.most, AsMicroseconds{});
  out.size = Bytes(static_cast<std::int64_t>(bytes));
  out.in_place = in_place == 1;
  return out;
}

/// Whatever names a sidecar gives; values are taken as they stand.
void read_environment(Reader& reader, const Node& node, MeasuredFacts& out) {
  if (node.kind != Node::Kind::map) return mismatch(reader, node, "env", "a map of variables and their values");
  for (const Entry& entry : node.entries) {
    std::string value;
    if (AsAnyText{}(reader, entry.value, "env." + entry.key, value)) out.environment.emplace_back(entry.key, value);
  }
}

/// Keys that sidecars have and no forecast goes by: of published tables, of `collcast measure`.
constexpr std::array without_use{"units",  "library_version",      "driver",    "processor", "command", "date",
                                 "warmup", "calls_per_repetition", "cuda_graph"};

/// Those of a map that are neither read nor known to be of no use.
std::vector<std::string> unknown_keys(const Node& tree) {
  constexpr std::array read{"id",        "collective",    "nodes",          "nranks",        "system",     "gpu",
                            "nvlink",    "nics_per_node", "nccl_version",   "dtype",         "source",     "note",
                            "algorithm", "healthy",       "ranks_per_node", "gpus_per_node", "nvl_domain", "complete",
                            "env",       "spread",        "backend",        "mode"};
  std::vector<std::string> out;
  const auto is_in = [](const auto& words, const std::string& key) {
    return std::find(words.begin(), words.end(), key) != words.end();
  };
  for (const Entry& entry : tree.entries)
    if (!is_in(read, entry.key) && !is_in(without_use, entry.key)) out.push_back(entry.key);
  return out;
}

bool is_negative(const std::string& text) {
  return text.size() > 1 && text[0] == '-' && text[1] >= '0' && text[1] <= '9';
}

/// Words that are taken as they stand, but for what no machine has.
void refuse_negative(Reader& reader, const Node& tree, const char* key, const std::string& text, const char* expected) {
  if (is_negative(text)) reader.error(tree.find(key)->at, fmt::format("{} is '{}'", key, text), expected);
}

/// A node has a GPU for each of its ranks.
void check_gpus(Reader& reader, const Node& tree, const MeasuredFacts& facts) {
  if (facts.gpus_per_node <= 0 || facts.nodes <= 0 || facts.ranks <= 0) return;
  const int ranks = facts.ranks_per_node > 0 ? facts.ranks_per_node : (facts.ranks - 1) / facts.nodes + 1;
  if (ranks > facts.gpus_per_node)
    reader.error(tree.find("gpus_per_node")->at,
                 fmt::format("gpus_per_node is {}, but {} ranks on {} node{} are {} on each", facts.gpus_per_node,
                             facts.ranks, facts.nodes, facts.nodes == 1 ? "" : "s", ranks),
                 fmt::format("expected {} or more, or other nodes, nranks or ranks_per_node", ranks));
}

/// "one process, one thread per GPU", "a single process per node": of a node, and not of a GPU.
bool is_one_process(const std::string& said) {
  const std::string text = lower(said);
  std::string_view rest = text;
  const auto skip = [&](std::initializer_list<std::string_view> words) {
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    const auto found = std::ranges::find_if(words, [&](std::string_view word) { return rest.starts_with(word); });
    if (found != words.end()) rest.remove_prefix(found->size());
    return found != words.end();
  };
  if (!skip({"one process", "a single process", "single process", "1 process"})) return false;
  if (!skip({"per ", "a ", "for each ", "for every ", "on each ", "each ", "/"})) return true;
  return skip({"node", "host", "server", "machine"});
}

MeasuredFacts read_measured_facts(Reader& reader, const Node& tree) {
  MeasuredFacts out;
  Object o(reader, tree, "");
  o.required("id", out.id, AsAnyText{});
  o.required("collective", out.collective, AsText{});
  o.required("nodes", out.nodes, AsCount{});
  o.required("nranks", out.ranks, AsCount{});
  o.optional("system", out.system, AsAnyText{});
  o.optional("gpu", out.gpu, AsAnyText{});
  o.optional("nvlink", out.nvlink, AsAnyText{});
  o.optional("nics_per_node", out.nics, AsAnyText{});
  o.optional("nccl_version", out.nccl_version, AsAnyText{});
  o.optional("dtype", out.datatype, AsAnyText{});
  o.optional("source", out.source, AsAnyText{});
  o.optional("note", out.note, AsAnyText{});
  o.optional("algorithm", out.algorithm, AsAnyText{});
  o.optional("backend", out.backend, AsAnyText{});
  o.optional("healthy", out.health, as_word<Health>({Health::yes, Health::no, Health::unknown}));
  o.optional("ranks_per_node", out.ranks_per_node, AsCount{});
  o.optional("gpus_per_node", out.gpus_per_node, AsCount{});
  o.optional("nvl_domain", out.nvlink_domain, AsCount{});
  o.optional("complete", out.complete, AsTruth{});
  // Nobody's list of words: what is none of ours says nothing.
  const Node* const mode = tree.find("mode");
  out.one_process = mode != nullptr && mode->kind == Node::Kind::scalar && is_one_process(mode->text);
  if (const Node* environment = o.optional_map("env")) read_environment(reader, *environment, out);
  if (const Node* spread = o.optional_list("spread");
      spread != nullptr && expect_list(reader, *spread, "spread", 10'000)) {
    for (std::size_t i = 0; i < spread->items.size(); ++i)
      out.spread.push_back(read_spread(reader, spread->items[i], fmt::format("spread.{}", i)));
  }
  refuse_negative(reader, tree, "nics_per_node", out.nics, "expected a number with a rate, such as 8x HDR200, or none");
  refuse_negative(reader, tree, "nccl_version", out.nccl_version, "expected a version such as 2.27.3");
  check_gpus(reader, tree, out);
  out.unknown_keys = unknown_keys(tree);
  for (const Entry& entry : tree.entries) out.places.emplace_back(entry.key, entry.value.at.location());
  return out;
}

}  // namespace

}  // namespace input

Result<MeasuredFacts> parse_measured_facts(std::string_view text, std::string_view file_name) {
  const Result<input::Node> tree = input::parse_yaml(text, std::string(file_name));
  if (!tree) return tree.errors();
  input::Reader reader;
  reader.error(repeated_keys(*tree));
  MeasuredFacts facts = input::read_measured_facts(reader, *tree);
  if (!reader.ok()) return reader.take();
  return facts;
}

Result<MeasuredFacts> load_measured_facts(const std::string& file, const Location& asked_by) {
  const Result<std::string> text = read_file(file, asked_by);
  if (!text) return text.errors();
  return parse_measured_facts(*text, file);
}

}  // namespace collcast
