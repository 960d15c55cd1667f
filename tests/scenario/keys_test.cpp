// Every key of every YAML format, from what the readers themselves ask for: missing, misspelt, given twice, of the
// wrong type, unit, sign or range. A key added to a reader is tested here without a further line, and a key that no
// sample has fails the first test.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "mutate.hpp"
#include "samples.hpp"
#include "scenario/parse.hpp"

using namespace collcast;
using input::Holds;
using input::KnownKey;
using input::Node;
using samples::Sample;

namespace {

Node tree_of(const Sample& sample) { return input::parse_yaml(sample.text, "f.yaml").value(); }

/// Known keys that the sample has, each once.
std::vector<KnownKey> present(const Sample& sample) {
  Node tree = tree_of(sample);
  std::vector<KnownKey> keys;
  std::set<std::string> seen;
  for (const KnownKey& key : sample.read(sample.text).known) {
    if (mutate::at(tree, key.path) != nullptr && seen.insert(key.path).second) keys.push_back(key);
  }
  return keys;
}

struct Outcome {
  std::string text;
  Diagnostics errors;
  int line = 0;  ///< of the changed key
};

Outcome outcome(const Sample& sample, const Node& changed, const std::string& path) {
  const mutate::Written written = mutate::write(changed);
  const auto line = written.line.find(path);
  return {written.text, sample.read(written.text).errors, line == written.line.end() ? 0 : line->second};
}

bool says(const Diagnostics& errors, int line, const std::string& words) {
  for (const Diagnostic& d : errors) {
    const bool there = line == 0 || d.where.line == line;
    if (there && d.where.file == "f.yaml" && d.message.find(words) != std::string::npos) return true;
  }
  return false;
}

/// Values that a key must refuse, whatever its limits.
std::vector<std::string> wrong_values(Holds holds) {
  const std::vector<std::string> structures{"[1, 2]", "{a: 1}", "~", ""};
  std::vector<std::string> wrong = structures;
  const auto add = [&](std::initializer_list<const char*> more) {
    wrong.insert(wrong.end(), more.begin(), more.end());
  };
  switch (holds) {
    case Holds::text:
      break;
    case Holds::name:
      add({"a/b", "'two words'", "../x", ".x", "\"\""});
      break;
    case Holds::word:
      add({"no-such-word", "1.5"});
      break;
    case Holds::truth:
      add({"yes", "1", "True", "'true'"});
      break;
    case Holds::count:
      add({"-1", "1.5", "1e3", "5GB", "ten", "99999999999999999999", "20000000", "nan", "'4'", "0x10"});
      break;
    case Holds::number:
      add({"-1", "1e999", "nan", "inf", "5s", "many", "1000000", "'0.5'"});
      break;
    case Holds::bytes:
      add({"5", "5GB/s", "5s", "-5GB", "nanGB", "0GB", "1e30GB", "1.5B", "GB"});
      break;
    case Holds::bandwidth:
      add({"5", "5GB", "5s", "-5GB/s", "0GB/s", "infGB/s", "1e300GB/s", "1e308TB/s"});
      break;
    case Holds::time:
      add({"5", "5GB", "-5us", "nans", "1e300s", "2000000s", "soon"});
      break;
    case Holds::flop_rate:
      add({"5", "5GB/s", "-5TFLOP/s", "0TFLOP/s", "nanTFLOP/s", "1e300PFLOP/s"});
      break;
    case Holds::percent:
      add({"0.4", "40", "5s", "-5%", "0%", "101%", "nan%", "1e999%", "half"});
      break;
    case Holds::token_rate:
      add({"900", "5GB/s", "-5tokens/s", "0tokens/s", "inftokens/s", "1e300tokens/s", "900 token/s"});
      break;
    case Holds::list:
      wrong = {"{a: 1}", "~", "5", "word", "[[[]]]"};
      break;
    case Holds::map:
      wrong = {"[1, 2]", "~", "5", "word"};
      break;
  }
  return wrong;
}

/// Whether a message says which value was wrong: the text itself, or what kind of thing stands there.
bool names(const std::string& message, const std::string& value) {
  if (value.empty() || value == "~") return message.find("nothing") != std::string::npos;
  if (value == "[[[]]]") return message.find("a list") != std::string::npos;
  if (value.front() == '[')
    return message.find("a list") != std::string::npos || message.find(".0") != std::string::npos;
  if (value.front() == '{') return message.find("a map") != std::string::npos;
  const bool quoted = value.front() == '\'' || value.front() == '"';
  return message.find(quoted ? value.substr(1, value.size() - 2) : value) != std::string::npos;
}

bool placed(const Diagnostics& errors) {
  return std::all_of(errors.begin(), errors.end(),
                     [](const Diagnostic& d) { return d.where.line > 0 && d.where.column > 0; });
}

/// Removing these gives a default that makes another key meaningless, which is said of that key.
bool default_conflicts(const std::string& path) {
  return path.starts_with("attention.") || path == "grouped_gemm" || path.starts_with("grouped_gemm.") ||
         path == "node.links.1.wiring" || path == "network.spines" || path == "placement.nodes" ||
         path == "training.gradient_compression.method" || path == "training.gradient_compression.ratio" ||
         path == "inference.load";
}

/// Neither required by itself, but one of this and another key.
bool is_alternative(const std::string& path) {
  return path == "model.config" || path == "tasks" || path == "inference" || path == "faults.0.gpu" ||
         path == "faults.0.jitter" || path == "faults.1.link" || path == "faults.1.jitter" || path == "faults.2.node" ||
         path == "faults.2.jitter" || path == "inference.speculative.acceptance_length" ||
         path == "inference.speculative.acceptance_rate";
}

}  // namespace

TEST_CASE("the samples are good, and between them have every key of every format") {
  std::set<std::string> known, used;
  for (const Sample& sample : samples::all()) {
    INFO(sample.name);
    CHECK(to_text(sample.read(sample.text).errors) == "");
    for (const KnownKey& key : sample.read(sample.text).known) known.insert(key.path);
    for (const KnownKey& key : present(sample)) used.insert(key.path);
  }
  std::set<std::string> unused;
  for (const std::string& path : known) {
    // Elements of one list share their keys.
    std::string twin = path;
    if (const std::size_t at = path.find(".0."); at != std::string::npos) twin.replace(at, 3, ".1.");
    if (used.count(path) + used.count(twin) == 0) unused.insert(path);
  }
  CHECK(unused == std::set<std::string>{});
}

TEST_CASE("a missing key is named if it is required, and has a default if not") {
  for (const Sample& sample : samples::all()) {
    const Node tree = tree_of(sample);
    for (const KnownKey& key : present(sample)) {
      const Outcome result = outcome(sample, mutate::without(tree, key.path), key.path);
      INFO(sample.name << ": without " << key.path << "\n" << to_text(result.errors));
      const std::string missing = "required key '" + mutate::last_key(key.path) + "' is missing";
      CHECK(says(result.errors, 0, missing) == key.required);
      CHECK(placed(result.errors));
      if (!key.required && !default_conflicts(key.path) && !is_alternative(key.path)) CHECK(result.errors.empty());
      if (key.path.starts_with("faults.") && is_alternative(key.path)) CHECK_FALSE(result.errors.empty());
    }
  }
}

TEST_CASE("a misspelt key is an error at its place with the right word") {
  for (const Sample& sample : samples::all()) {
    const Node tree = tree_of(sample);
    for (const KnownKey& key : present(sample)) {
      const std::string wrong = mutate::last_key(key.path).substr(0, 1) + mutate::last_key(key.path);
      const std::size_t dot = key.path.rfind('.');
      const std::string path = (dot == std::string::npos ? "" : key.path.substr(0, dot + 1)) + wrong;
      const Outcome result = outcome(sample, mutate::renamed(tree, key.path, wrong), path);
      INFO(sample.name << ": " << path << "\n" << to_text(result.errors));
      CHECK(says(result.errors, result.line, "unknown key '" + wrong + "'"));
      CHECK(placed(result.errors));
      CHECK(to_text(result.errors).find("did you mean '" + mutate::last_key(key.path) + "'?") != std::string::npos);
    }
  }
}

TEST_CASE("a key given twice is an error at the second place") {
  for (const Sample& sample : samples::all()) {
    const Node tree = tree_of(sample);
    for (const KnownKey& key : present(sample)) {
      const Outcome result = outcome(sample, mutate::doubled(tree, key.path), key.path);
      INFO(sample.name << ": " << key.path << "\n" << to_text(result.errors));
      CHECK(says(result.errors, result.line, "key '" + mutate::last_key(key.path) + "' is given twice"));
    }
  }
}

TEST_CASE("a value of the wrong type, unit, sign or range is an error at its place, with what was expected") {
  for (const Sample& sample : samples::all()) {
    const Node tree = tree_of(sample);
    for (const KnownKey& key : present(sample)) {
      for (const std::string& value : wrong_values(key.holds)) {
        if (value == "0%" && key.path.ends_with(".jitter")) continue;  // none
        const Outcome result = outcome(sample, mutate::with_value(tree, key.path, value), key.path);
        INFO(sample.name << ": " << key.path << " = " << value << "\n" << to_text(result.errors));
        bool found = false;
        for (const Diagnostic& d : result.errors)
          found = found || (d.where.file == "f.yaml" && d.where.line == result.line && d.message.find(key.path) == 0 &&
                            !d.hint.empty() && names(d.message, value));
        CHECK(found);
        CHECK(placed(result.errors));
      }
    }
  }
}
