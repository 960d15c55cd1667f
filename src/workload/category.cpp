#include "collcast/workload/category.hpp"

#include <algorithm>
#include <array>

#include "collcast/base/check.hpp"

namespace collcast {

namespace {

using enum Category;
constexpr std::array categories{compute, forward, backward, recompute, optimizer, tp, pp, dp, cp, ep};

}  // namespace

std::string_view to_string(Category category) {
  switch (category) {
    case compute:
      return "compute";
    case forward:
      return "forward";
    case backward:
      return "backward";
    case recompute:
      return "recompute";
    case optimizer:
      return "optimizer";
    case tp:
      return "tp";
    case pp:
      return "pp";
    case dp:
      return "dp";
    case cp:
      return "cp";
    case ep:
      return "ep";
  }
  check(false, "a known category");
  return {};
}

std::optional<Category> parse_category(std::string_view name) {
  const auto found =
      std::find_if(categories.begin(), categories.end(), [&](Category c) { return to_string(c) == name; });
  return found == categories.end() ? std::nullopt : std::optional(*found);
}

}  // namespace collcast
