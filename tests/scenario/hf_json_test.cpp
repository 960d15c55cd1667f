// The text of a config.json that is no JSON, or none of an object.
#include <catch2/catch.hpp>

#include "samples.hpp"
#include "scenario/files.hpp"

using namespace collcast;

TEST_CASE("what is not JSON is placed by line and column") {
  struct Case {
    const char* text;
    int line, column;
  };
  for (const Case& c :
       {Case{"{\n  \"a\": 1,\n  \"b\" 2\n}", 3, 7}, Case{"{\"a\": 01}", 1, 8}, Case{"{\"a\": \"b", 1, 9},
        Case{"{\n\"a\": 1\n\"long\": 2}", 3, 1}, Case{"{\"a\": \"x\"\n  \"long\": 2}", 2, 3},
        Case{"[1 \"long\"]", 1, 4}, Case{"{\"a\": 1,, \"b\": 2}", 1, 9}, Case{"{\"a\" : : 1}", 1, 8},
        Case{"{\"a\": 1, 2345: 1}", 1, 10}, Case{"{\"a\": 1} x", 1, 10}, Case{"{\"a\": \"\\q\"}", 1, 9},
        Case{"nope", 1, 2}}) {
    const auto m = parse_hf_config(c.text, "config.json");
    INFO(c.text);
    INFO(to_text(m.errors()));
    REQUIRE(m.errors().size() == 1);
    CHECK(m.errors()[0].where.line == c.line);
    CHECK(m.errors()[0].where.column == c.column);
    CHECK(m.errors()[0].message.find("this is not JSON") == 0);
  }
}

TEST_CASE("JSON that was cut off is called incomplete, and a long word in it does not hide what is wrong") {
  for (const char* text : {"[1, 2", "{\"a\": ", "{\"a\": 1, "}) {
    const auto m = parse_hf_config(text, "config.json");
    REQUIRE(m.errors().size() == 1);
    CHECK(m.errors()[0].message == "the JSON ends before it is complete");
    CHECK(m.errors()[0].where.line == 1);
    CHECK(m.errors()[0].where.column > 1);
  }
  const auto m = parse_hf_config("{\"a\": \"\\q" + std::string(500, 'x') + "\"}", "config.json");
  REQUIRE(m.errors().size() == 1);
  // "invalid string: forbidden character after backslash" is the library's reason.
  CHECK(m.errors()[0].message.find("forbidden character after backslash, at '") != std::string::npos);
}

TEST_CASE("hostile JSON ends in a diagnostic") {
  CHECK(parse_hf_config("", "c").errors().at(0).message == "the file is empty");
  CHECK(parse_hf_config("", "c").errors().at(0).hint == "expected a model's config.json");
  CHECK(parse_hf_config(" \n", "c").errors().at(0).message == "the file is empty");
  CHECK(parse_hf_config(std::string(1'000, '['), "c").errors().at(0).message == "too deeply nested");
  CHECK(parse_hf_config("{\"a\": 1, \"b\": 2, \"a\": 3}", "c").errors().at(1).message == "key 'a' is given twice");
  CHECK(parse_hf_config("{\"a\": \"\xFF\"}", "c").errors().at(0).message == "byte 0xFF at offset 7 is not UTF-8");
  CHECK(parse_hf_config("[1]", "c").errors().at(0).message == "the file is a list");
  CHECK(parse_hf_config("3", "c").errors().at(0).message == "the file is '3'");
  // A byte order mark is no part of the text.
  CHECK(parse_hf_config("\xEF\xBB\xBF{\"architectures\": [\"GPT2LMHeadModel\"], \"n_embd\": 768, \"n_layer\": 12, "
                        "\"n_head\": 12, \"n_positions\": 1024, \"vocab_size\": 50257}",
                        "c")
            .ok());
}
