// docs/formats.md lists every key that a reader knows.
#include <catch2/catch.hpp>

#include <fstream>
#include <set>
#include <sstream>

#include "collcast/base/units.hpp"
#include "mutate.hpp"
#include "samples.hpp"
#include "scenario/files.hpp"

using namespace collcast;

namespace {

/// The units that the row of a kind of quantity lists, in the rules for all files.
std::set<std::string> units_of(const std::string& text, const std::string& kind) {
  const std::size_t row = text.find("| " + kind + " | "), begin = row + kind.size() + 5;
  std::set<std::string> units;
  if (row == std::string::npos) return units;
  const std::string cell = text.substr(begin, text.find(" | ", begin) - begin);
  for (std::size_t at = cell.find('`'); at != std::string::npos; at = cell.find('`', cell.find('`', at + 1) + 1)) {
    std::istringstream words(cell.substr(at + 1, cell.find('`', at + 1) - at - 1));
    for (std::string unit; words >> unit;) units.insert(unit);
  }
  return units;
}

}  // namespace

TEST_CASE("the units in docs/formats.md are those that are read") {
  std::ifstream in(COLLCAST_SOURCE_DIR "/docs/formats.md");
  const std::string text(std::istreambuf_iterator<char>(in), {});
  // Every prefix before every unit: what is read is listed, and what is not is not.
  const auto check = [&](const std::string& kind, const std::vector<std::string>& ends, auto parse) {
    const std::set<std::string> listed = units_of(text, kind);
    CHECK(listed.size() >= 5);
    for (const std::string& unit : listed) CHECK((parse("1" + unit).ok || unit == "b/s" || unit == "bit/s"));
    for (const char* prefix :
         {"", "k", "K", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "m", "u", "µ", "n", "p", "f"})
      for (const std::string& end : ends) {
        INFO(kind << ": " << prefix + end);
        CHECK(parse("8" + std::string(prefix) + end).ok == (listed.count(prefix + end) > 0));
      }
  };
  // 4 EiB are the most: 8 EiB are read as a unit, but are too large.
  check("size", {"B"}, [](const std::string& t) { return t == "8EiB" ? parse_bytes("4EiB") : parse_bytes(t); });
  check("rate", {"B/s", "b/s", "bit/s", "bps"}, [](const std::string& t) { return parse_bandwidth(t); });
  check("time", {"s"}, [](const std::string& t) { return parse_seconds(t); });
  check("compute rate", {"FLOP/s", "FLOPS"}, [](const std::string& t) { return parse_flop_rate(t); });
}

TEST_CASE("every key of every format is in docs/formats.md") {
  std::ifstream in(COLLCAST_SOURCE_DIR "/docs/formats.md");
  const std::string text(std::istreambuf_iterator<char>(in), {});
  REQUIRE_FALSE(text.empty());
  std::set<std::string> undocumented;
  for (const samples::Sample& sample : samples::all()) {
    for (const input::KnownKey& known : sample.read(sample.text).known) {
      const std::string key = mutate::last_key(known.path);
      const bool named_by_user = known.path == "what_if.wide";
      // A row of a table: the key in code quotes after a bar, alone or as the end of a path.
      if (!named_by_user && text.find("`" + key + "`") == std::string::npos &&
          text.find("." + key + "`") == std::string::npos)
        undocumented.insert(known.path);
    }
  }
  CHECK(undocumented == std::set<std::string>{});
}

TEST_CASE("the keys that docs/formats.md has as required of the Llama family are those that must be there") {
  std::ifstream in(COLLCAST_SOURCE_DIR "/docs/formats.md");
  const std::string text(std::istreambuf_iterator<char>(in), {});
  for (const std::string name : {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    std::size_t begin = text.find("`" + name + "`");
    REQUIRE(begin != std::string::npos);
    begin = text.rfind('\n', begin) + 1;
    const std::string row = text.substr(begin, text.find('\n', begin) - begin);
    for (const std::string key : {"num_key_value_heads", "head_dim"}) {
      std::string file = "{\"architectures\": [\"" + name + "\"], \"hidden_size\": 64, \"num_hidden_layers\": 2, " +
                         "\"num_attention_heads\": 4, \"intermediate_size\": 128, \"vocab_size\": 100";
      for (const std::string other : {"num_key_value_heads", "head_dim"})
        if (other != key) file += ", \"" + other + "\": 4";
      INFO(name << " without " << key);
      CHECK((row.find("**`" + key + "`**") != std::string::npos) == !parse_hf_config(file + "}", "config.json").ok());
    }
  }
}
