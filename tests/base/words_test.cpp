// Words of a line: what is cut off, what is left between separators, and which letters become small.
#include "collcast/base/words.hpp"

#include <catch2/catch.hpp>

using namespace collcast;

TEST_CASE("blanks at both ends go, those within stay, and only those that are named") {
  CHECK(trimmed("") == "");
  CHECK(trimmed(" \t ") == "");
  CHECK(trimmed("a") == "a");
  CHECK(trimmed("\t a b\t") == "a b");
  CHECK(trimmed("a\r\n") == "a\r\n");
  CHECK(trimmed("\t a ", " ") == "\t a");
  CHECK(trimmed("\v\f\r\n\t a ", white_space) == "a");
}

TEST_CASE("a text has one part more than separators, empty ones too") {
  CHECK(split("", ',') == std::vector<std::string_view>{""});
  CHECK(split("a", ',') == std::vector<std::string_view>{"a"});
  CHECK(split(",a,,b ,", ',') == std::vector<std::string_view>{"", "a", "", "b ", ""});
  CHECK(split("8:64", ':') == std::vector<std::string_view>{"8", "64"});
}

TEST_CASE("letters of ASCII become small, all else stays") {
  CHECK(lower("") == "");
  CHECK(lower("AZ az @[ 09") == "az az @[ 09");
  CHECK(lower("GB200 \xC3\x84\xC4\xB0") == "gb200 \xC3\x84\xC4\xB0");
}
