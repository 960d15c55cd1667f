// Groups keep their order, whether as a descriptor or as a list.
#include "collcast/schedule/group.hpp"

#include <catch2/catch.hpp>

using namespace collcast;

namespace {
std::vector<Rank> ranks(std::initializer_list<std::uint32_t> values) {
  std::vector<Rank> result;
  for (const std::uint32_t v : values) result.emplace_back(v);
  return result;
}
}  // namespace

TEST_CASE("a group lists its ranks in the order they were given") {
  for (const auto& list : {ranks({}), ranks({7}), ranks({4, 2}), ranks({0, 8, 16, 24}), ranks({9, 6, 3, 0}),
                           ranks({0, 1, 3}), ranks({5, 1, 4, 2}), ranks({0, 4294967295U})}) {
    const Group group = Group::listed(list);
    REQUIRE(group.size() == static_cast<int>(list.size()));
    CHECK(group.ranks() == list);
    for (int i = 0; i < group.size(); ++i) CHECK(group[i] == list[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("regular ranks become a descriptor, others stay a list") {
  CHECK(Group::listed(ranks({0, 8, 16, 24})).is_strided());
  CHECK(Group::listed(ranks({0, 8, 16, 24})).stride() == 8);
  CHECK(Group::listed(ranks({9, 6, 3, 0})).stride() == -3);
  CHECK(Group::listed(ranks({7})).is_strided());
  CHECK(Group::listed(ranks({7, 7, 8})).is_strided() == false);
  CHECK(Group::listed(ranks({0, 1, 3})).is_strided() == false);
  CHECK(Group::listed(ranks({0, 4294967295U})).is_strided() == false);  // further apart than a stride can say
}

TEST_CASE("a strided group counts from its first rank") {
  const Group group = Group::strided(Rank(3), 64, 8);  // the data-parallel group of rank 3 in 8 x 8 x 8
  CHECK(group[0] == Rank(3));
  CHECK(group[7] == Rank(3 + 7 * 64));
  CHECK(group.ranks().size() == 8);
}
