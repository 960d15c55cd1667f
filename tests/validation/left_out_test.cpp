// Tables that fits leave out together.
#include "left_out.hpp"

#include <catch2/catch.hpp>

#include <set>

using namespace collcast;

namespace {

/// So many tables of each setting, one of each in turn.
std::vector<Variables> tables_of(std::vector<int> counts) {
  std::vector<Variables> out;
  for (bool any = true; any;) {
    any = false;
    for (std::size_t s = 0; s < counts.size(); ++s)
      if (counts[s]-- > 0) {
        out.push_back({{"UCX_TLS", std::to_string(s)}});
        any = true;
      }
  }
  return out;
}

}  // namespace

TEST_CASE("up to 40 tables are left out each alone") {
  for (const std::vector<int>& counts : {std::vector<int>{1}, {40}, {38, 2}, {20, 19, 1}})
    for (const std::vector<std::size_t>& group : left_out_together(tables_of(counts))) CHECK(group.size() == 1);
}

TEST_CASE("of 41 and more every table is left out once, and of a setting with two and more some stay in every fit") {
  for (const std::vector<int>& counts :
       {std::vector<int>{41}, {39, 2}, {38, 3}, {40, 1}, {20, 19, 2}, {900, 97, 2, 1}, std::vector<int>(30, 2)}) {
    const std::vector<Variables> settings = tables_of(counts);
    const auto groups = left_out_together(settings);
    std::multiset<std::size_t> seen;
    for (const std::vector<std::size_t>& group : groups) {
      REQUIRE_FALSE(group.empty());
      const Variables& own = settings[group.front()];
      for (const std::size_t i : group) CHECK(settings[i] == own);
      const auto alike = static_cast<std::size_t>(std::count(settings.begin(), settings.end(), own));
      CHECK((alike == 1 || group.size() < alike));
      seen.insert(group.begin(), group.end());
    }
    CHECK(seen.size() == settings.size());
    CHECK(std::set<std::size_t>(seen.begin(), seen.end()).size() == settings.size());
    // Its share of 40, but two at the least.
    CHECK(groups.size() <= most_fits_of_unseen + 2 * counts.size());
  }
}
