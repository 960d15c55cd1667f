// Documents read back: what is wrong with them, at its place.
#include "collcast/report/saved.hpp"

#include <catch2/catch.hpp>

#include <sstream>

#include "collcast/report/documents.hpp"

using namespace collcast;

namespace {

std::string errors_of(const std::string& text) {
  const auto read = read_saved(text, "f.json");
  return read ? "" : to_text(read.errors());
}

const std::string saved_step =
    "{\"schema\": \"collcast.step.v1\",\n \"scenario\": \"s\",\n \"step_s\": 1,\n"
    " \"gates\": [{\"figure\": \"step_s\", \"bound\": \"max\", \"limit\": 2, \"value\": 1, \"kept\": true}]}";

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  return text.replace(text.find(what), what.size(), with);
}

}  // namespace

TEST_CASE("a step that this tool writes is read back with its figures, terms and gates") {
  StepReport report;
  report.scenario = "s";
  report.title = "A step";
  report.inputs = StepInputs();
  report.result.step = Seconds(3);
  report.result.mfu = 0.5;
  report.result.breakdown.compute = Seconds(3);
  report.gates = {{{"mfu", 0.6, {}}, Bound::min, 0.5}};
  const SavedResult read = read_saved(json(report), "f.json").value().front();
  CHECK(read.name == "s");
  CHECK(read.title == "A step");
  CHECK(read.version == tool_version());
  CHECK((read.rows.at(0).figures.at(0).name == "step_s" && read.rows.at(0).figures.at(0).value == 3.0));
  double sum = 0;
  for (const SavedTerm& term : read.rows.at(0).terms) sum += term.of == "step_s" ? term.value : 0;
  CHECK(sum == 3.0);
  REQUIRE(read.gates.size() == 1);
  CHECK_FALSE(read.gates.front().kept);
  CHECK(read.gates.front().limit == 0.6);
}

TEST_CASE("a document that ends early is named as such wherever it was cut") {
  CHECK(errors_of(saved_step) == "");
  for (std::size_t length = 1; length < saved_step.size(); ++length) {
    INFO(length);
    const std::string said = errors_of(saved_step.substr(0, length));
    CHECK(said.find("f.json:") == 0);
    CHECK(said.find("ends before it is complete") != std::string::npos);
  }
  CHECK(errors_of("").find("f.json:1:1: error: the file is empty") == 0);
}

TEST_CASE("what is wrong has its place") {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"{\"a\": 1,,}", "f.json:1:9: error: this is not JSON"},
      {"{\n  \"a\": nope}", "f.json:2:9: error: this is not JSON"},
      {"collective,size_bytes\nall_reduce,8\n", "f.json:1:1: error: this is not JSON"},
      {"{\"a\": \"\xff\"}", "f.json:1:8: error: this is not JSON"},
      {"{\"a\": 1e999}", "f.json:1:1: error: this is not JSON"},
      {"[1, 2]", "f.json:1:1: error: this is no result of collcast"},
      {"{\"version\": \"2.17\"}", "f.json:1:1: error: this is no result of collcast"},
      {"{\"schema\":\n \"collcast.step.v2\"}", "f.json:2:2: error: 'collcast.step.v2' is nothing that can be compared"},
      {replaced(saved_step, "\"step_s\": 1,", "\"step_s\": \"fast\","), "f.json:3:12: error: step_s is no number"},
      {replaced(saved_step, "\"step_s\": 1,", "\"step_s\": -1,"), "f.json:3:12: error: step_s is -1"},
      {replaced(saved_step, "\"step_s\": 1,", "\"inputs\": {}, \"step_s\": 0,"), "f.json:3:26: error: step_s is 0"},
      {replaced(saved_step, "\"step_s\": 1,", ""), "f.json:1:1: error: 'step_s' is missing"},
      {replaced(saved_step, "\"s\"", "7"), "f.json:2:14: error: scenario is no text"},
      {replaced(saved_step, "\"limit\": 2", "\"limit\": []"), "f.json:4:58: error: gates.0.limit is no number"},
      {replaced(saved_step, "[{", "[5, {"), "f.json:4:12: error: gates.0 is no object"},
      {replaced(saved_step,
                "[{\"figure\": \"step_s\", \"bound\": \"max\", \"limit\": 2, \"value\": 1, \"kept\": true}]", "{}"),
       "f.json:4:11: error: gates is no list"},
      {std::string(100, '[') + std::string(100, ']'), "f.json:1:65: error: too deeply nested"},
      {"{\"schema\": \"collcast.report.v1\", \"results\": []}", "f.json:1:1: error: the report holds no results"},
      {"{\"schema\": \"collcast.report.v1\", \"results\": [{}]}", "f.json:1:46: error: this is no result of collcast"}};
  for (const auto& [text, said] : wrong) {
    INFO(text);
    INFO(errors_of(text));
    CHECK(errors_of(text).find(said) == 0);
  }
}

TEST_CASE("a name is cut between characters, and holds nothing that a format cannot") {
  const auto name_of = [](const std::string& name) {
    return read_saved("{\"schema\": \"collcast.step.v1\", \"step_s\": 1, \"scenario\": \"" + name + "\"}", "f.json")
        .value()
        .front()
        .name;
  };
  std::string umlauts;
  for (int i = 0; i < 200; ++i) umlauts += "\xC3\xBC";
  for (const char* before : {"", "x"}) {
    const std::string cut = name_of(before + umlauts);
    CHECK(cut.ends_with("\xC3\xBC..."));
    CHECK(cut.size() < 170);
  }
  CHECK(name_of("a\xEF\xBF\xBE\xEF\xBF\xBF") == "a\\ufffe\\uffff");
  CHECK(name_of("\xE2\x80\xAE\xC2\x9B\\u001b") == "\\u202e\\u009b\\u001b");
  CHECK(name_of("\xE2\x82\xAC \xEF\xBF\xBD") == "\xE2\x82\xAC \xEF\xBF\xBD");
}

TEST_CASE("two mistakes are two errors") {
  std::string text = replaced(saved_step, "\"step_s\": 1,", "\"step_s\": true,");
  text = replaced(text, "\"limit\": 2", "\"limit\": null");
  CHECK(read_saved(text, "f.json").errors().size() == 2);
}

TEST_CASE("every key of a step with every wrong kind of value ends in a result or in placed errors") {
  const std::string whole =
      "{\"schema\": \"collcast.step.v1\", \"tool\": {\"version\": \"1\"}, \"scenario\": \"s\", \"title\": \"t\", "
      "\"what_if\": \"w\", \"machine\": {}, \"library\": \"ideal\", \"step_s\": 1, \"mfu\": 1, \"layer\": {}, "
      "\"breakdown\": {}, \"memory\": {}, \"gates\": [], \"warnings\": [], \"inputs\": {}}";
  for (const char* key : {"tool", "scenario", "title", "what_if", "machine", "library", "step_s", "mfu", "layer",
                          "breakdown", "memory", "gates", "warnings", "inputs"}) {
    for (const char* value : {"null", "true", "-1", "1e300", "\"x\"", "[]", "[[]]", "{}", "{\"a\": {\"b\": [1]}}"}) {
      const std::size_t at = whole.find(std::string("\"") + key + "\":");
      REQUIRE(at != std::string::npos);
      const std::string text =
          "{\"" + std::string(key) + "\": " + value + ", " + whole.substr(1, at - 1) + "\"_" + whole.substr(at + 1);
      INFO(text);
      const auto read = read_saved(text, "f.json");
      if (read) continue;
      for (const Diagnostic& d : read.errors()) CHECK((d.where.line == 1 && d.where.column > 0 && !d.message.empty()));
    }
  }
}
