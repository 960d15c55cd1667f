// Diagnostics name the place, the value and the nearest right word.
#include "collcast/base/diagnostic.hpp"

#include <catch2/catch.hpp>

#include "collcast/base/text.hpp"

using namespace collcast;

TEST_CASE("a diagnostic prints file, line and column, then the hint") {
  const Diagnostics d{{{"a.yaml", 3, 7}, "unknown key 'nodse'", "did you mean 'nodes'?"}};
  CHECK(to_text(d) == "a.yaml:3:7: error: unknown key 'nodse'\n    hint: did you mean 'nodes'?\n");
}

TEST_CASE("a place without line prints the file alone") {
  CHECK(to_text({{{"command line"}, "no size", ""}}) == "command line: error: no size\n");
}

TEST_CASE("the nearest word is offered only when it is near") {
  CHECK(nearest_word("brodcast", {"broadcast", "reduce"}) == "broadcast");
  CHECK(nearest_word("xyzzy", {"broadcast", "reduce"}) == std::nullopt);
  CHECK(nearest_word("ab", {"cd"}) == std::nullopt);
  // Cut short, where only one word begins so.
  CHECK(nearest_word("nvsw", {"gpu", "nvswitch", "nic"}) == "nvswitch");
  CHECK(nearest_word("rec", {"recursive_doubling", "recursive_halving"}) == std::nullopt);
  CHECK(nearest_word(std::string(1000, 'a'), {"aaaa"}) == std::nullopt);
}

TEST_CASE("a Result holds a value or its reasons") {
  const Result<int> good = 3;
  CHECK(good.ok());
  CHECK(good.value() == 3);
  const Result<int> bad = Diagnostic{{"f", 1, 1}, "no", ""};
  CHECK_FALSE(bad.ok());
  CHECK(bad.errors().size() == 1);
}

TEST_CASE("a hint lists the known words, of many only the first or the nearest") {
  CHECK(expected_one_of("rnig", {"ring", "star"}) == "did you mean 'ring'? expected one of: ring, star");
  std::vector<std::string> many;
  for (int i = 10; i < 35; ++i) many.push_back("machine-" + std::to_string(i));
  CHECK(expected_one_of("machine-1x", many) == "did you mean 'machine-10'? expected one of 25 known words");
  const std::string listed = expected_one_of("q", many);
  CHECK(listed.find("machine-29, ... (25 in all)") != std::string::npos);
  CHECK(listed.find("machine-30") == std::string::npos);
}

TEST_CASE("an index of line starts finds the places that counting finds") {
  for (const std::string text : {"", "\n", "a", "\n\n", "one\ntwo\n\nfour", "last\n", "\r\nx\r\n"}) {
    const LineStarts lines(text);
    for (std::size_t offset = 0; offset <= text.size() + 2; ++offset) {
      INFO(shown(text) << " at " << offset);
      const Location counted = place_at(text, offset, "f"), found = lines.place_at(offset, "f");
      CHECK(found.file == "f");
      CHECK(found.line == counted.line);
      CHECK(found.column == counted.column);
    }
  }
}
