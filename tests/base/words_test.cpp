// Words of a line: what is cut off, what is left between separators, and which letters become small; numbers.
#include "collcast/base/words.hpp"

#include <catch2/catch.hpp>

#include <cstdint>

#include "collcast/base/numbers.hpp"

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

TEST_CASE("a number is all of a text, and of a kind that holds it") {
  CHECK(to_number<int>("12") == 12);
  CHECK(to_number<int>("-12") == -12);
  CHECK(to_number<double>("-0.5") == -0.5);
  CHECK(to_number<double>("1e3") == 1000);
  for (const char* none : {"", " ", " 12", "12 ", "+12", "12x", "x", "-", "0x10", "1.5.2"}) {
    CAPTURE(none);
    CHECK_FALSE(to_number<int>(none));
    CHECK_FALSE(to_number<double>(none));
  }
  CHECK_FALSE(to_number<int>("1.5"));
  CHECK_FALSE(to_number<int>("2147483648"));
  CHECK(to_number<std::int64_t>("2147483648") == std::int64_t{1} << 31);
  CHECK_FALSE(to_number<double>("1e999"));
}
