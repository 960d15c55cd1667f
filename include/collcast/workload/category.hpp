// What an operation of a step's timeline is: work of one kind, or communication of one dimension.
#pragma once

#include <optional>
#include <string_view>

namespace collcast {

/// A schedule's labels carry its name. `compute` is a task's; a model's kernels are forward, backward or recompute.
enum class Category { compute, forward, backward, recompute, optimizer, tp, pp, dp, cp, ep };

std::string_view to_string(Category);
/// Nothing if none is called so.
std::optional<Category> parse_category(std::string_view);

}  // namespace collcast
