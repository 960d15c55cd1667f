// Values of the command line.
#include "cli/values.hpp"

#include <catch2/catch.hpp>

using namespace collcast;
using namespace collcast::cli;

namespace {

std::vector<std::int64_t> sizes(const std::string& text) {
  Diagnostics errors;
  std::vector<std::int64_t> out;
  for (const Bytes size : parse_sizes(text, errors)) out.push_back(size.value());
  CHECK(errors.empty());
  return out;
}

std::string size_error(const std::string& text) {
  Diagnostics errors;
  CHECK(parse_sizes(text, errors).empty());
  REQUIRE(errors.size() == 1);
  return errors[0].message;
}

std::vector<std::uint32_t> group(const std::string& text) {
  Diagnostics errors;
  const auto found = parse_group(text, errors);
  REQUIRE(found);
  std::vector<std::uint32_t> out;
  for (int i = 0; i < found->size(); ++i) out.push_back((*found)[i].value());
  return out;
}

using Sizes = std::vector<std::int64_t>;
using Ranks = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("a size is a number of bytes or a quantity, and several make a list") {
  CHECK(sizes("8") == Sizes{8});
  CHECK(sizes("256KiB") == Sizes{262'144});
  CHECK(sizes("1GB,1GiB") == Sizes{1'000'000'000, 1'073'741'824});
}

TEST_CASE("a multiplying sweep includes its end when it meets it") {
  CHECK(sizes("8:64:x2") == Sizes{8, 16, 32, 64});
  CHECK(sizes("8:63:x2") == Sizes{8, 16, 32});
  CHECK(sizes("8:16GiB:x2").size() == 32);  // 2^3 ... 2^34
  CHECK(sizes("8:8:x2") == Sizes{8});
}

TEST_CASE("an adding sweep takes its step in any unit") {
  CHECK(sizes("8:32:+8") == Sizes{8, 16, 24, 32});
  CHECK(sizes("0:2KiB:+1KiB") == Sizes{0, 1024, 2048});
}

TEST_CASE("a sweep that would never end, or never begin, is refused") {
  CHECK(size_error("8:64:x1") == "--size: the sweep '8:64:x1' never gets on");
  CHECK(size_error("0:64:x2") == "--size: the sweep '0:64:x2' never gets on");
  CHECK(size_error("8:64:+0") == "--size: the sweep '8:64:+0' never gets on");
  CHECK(size_error("64:8:x2") == "--size: the sweep '64:8:x2' starts above its end");
  CHECK(size_error("1:1GiB:+1") == "--size: '1:1GiB:+1' has more than 10000 sizes");
}

TEST_CASE("a sweep up to the largest size stops there") {
  CHECK(sizes("1:4194304TiB:x2").size() == 63);  // 2^0 ... 2^62
  CHECK(sizes("3000000TiB:4194304TiB:x2147483647").size() == 1);
}

TEST_CASE("sizes as nccl-tests spells them are told what they are here") {
  const auto hint = [](const std::string& text) {
    Diagnostics errors;
    CHECK(parse_sizes(text, errors).empty());
    REQUIRE(errors.size() == 1);
    return errors[0].hint;
  };
  CHECK(hint("1M").ends_with("; nccl-tests' 1M is 1MiB here"));
  CHECK(hint("8G").ends_with("; nccl-tests' 8G is 8GiB here"));
  CHECK(hint("64k").ends_with("; nccl-tests' 64k is 64KiB here"));
  CHECK(hint("8:8G:x2").ends_with("; nccl-tests' 8G is 8GiB here"));
  CHECK(hint("1K:8GiB:x2").ends_with("; nccl-tests' 1K is 1KiB here"));
  CHECK(hint("8:64KiB:+1K").ends_with("; nccl-tests' 1K is 1KiB here"));
  for (const char* other : {"1X", "M", "8:64:x", "1kb"}) CHECK(hint(other).find("nccl-tests") == std::string::npos);
}

TEST_CASE("what is no size is named") {
  for (const char* text :
       {"", "8 apples", "-8", "8:64", "8:64:2", "8:64:x", "8:64:x2.5", ":64:x2", "8,,9", "8:64:x2:3"})
    CHECK(size_error(text).find("--size: ") == 0);
}

TEST_CASE("a group is a list, a range, or a range with a stride") {
  CHECK(group("0,1,8,9") == Ranks{0, 1, 8, 9});
  CHECK(group("4-7") == Ranks{4, 5, 6, 7});
  CHECK(group("0-56:8") == Ranks{0, 8, 16, 24, 32, 40, 48, 56});
  CHECK(group("0-3,9") == Ranks{0, 1, 2, 3, 9});
  CHECK(group("3,1") == Ranks{3, 1});  // the order is the user's
}

TEST_CASE("a group names each rank once, and only ranks") {
  for (const char* text :
       {"", "a", "0-", "-3", "3-1", "0,0", "0-4,2", "0-8:0", "0:2", "1-2-3", "99999999999", "0-4294967295"}) {
    Diagnostics errors;
    CHECK_FALSE(parse_group(text, errors));
    CHECK(errors.size() == 1);
  }
}

TEST_CASE("ranks are cut into neighbouring or into strided groups, each rank in one") {
  Diagnostics errors;
  const auto near = cut_into_groups({4, 1}, 8, errors);
  REQUIRE(near.size() == 2);
  CHECK(near[1][0] == Rank(4));
  const auto apart = cut_into_groups({2, 4}, 16, errors);
  REQUIRE(apart.size() == 8);
  CHECK(apart[1][0] == Rank(1));
  CHECK(apart[1][1] == Rank(5));
  CHECK(apart[4][0] == Rank(8));  // the next block
  CHECK(errors.empty());
  CHECK(cut_into_groups({3, 1}, 8, errors).empty());
  CHECK(errors.at(0).hint == "expected ranks in multiples of 3");
}

TEST_CASE("--groups-of is a size, or a size and a stride") {
  Diagnostics errors;
  CHECK(parse_groups_of("8", errors)->stride == 1);
  CHECK(parse_groups_of("8:64", errors)->stride == 64);
  CHECK(errors.empty());
  for (const char* text : {"", "0", "8:0", "8:", "8:1:1", "x"}) CHECK_FALSE(parse_groups_of(text, errors));
  CHECK(errors.size() == 6);
}

TEST_CASE("counts are whole and in range") {
  Diagnostics errors;
  CHECK(parse_count("--nodes", "12", 1, errors) == 12);
  CHECK(errors.empty());
  for (const char* text : {"0", "-1", "1.5", "", "two", "99999999999", "8x"})
    CHECK_FALSE(parse_count("--nodes", text, 1, errors));
  CHECK(errors.size() == 7);
}

TEST_CASE("an unknown word is answered with the nearest") {
  Diagnostics errors;
  CHECK(parse_word("--format", "json", {"table", "json"}, errors) == 1);
  CHECK_FALSE(parse_word("--format", "jsn", {"table", "json"}, errors));
  CHECK(errors.at(0).message == "--format: unknown word 'jsn'");
  CHECK(errors.at(0).hint == "did you mean 'json'? expected one of: table, json");
}

TEST_CASE("auto is offered where it is read") {
  Diagnostics errors;
  CHECK(parse_auto_or_count("--chunks", "auto", 8, errors) == 0);
  CHECK(parse_auto_or_count("--chunks", "3", 8, errors) == 3);
  CHECK(errors.empty());
  parse_auto_or_count("--chunks", "abc", 8, errors);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].hint == "expected a whole number from 1 to 8, or auto");
}
