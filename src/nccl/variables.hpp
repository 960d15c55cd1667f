// NCCL's variables by name, and how the value of each is read.
//
// A variable is known by its row of one table alone: what reads it, and the names that an error offers, are of it.
#pragma once

#include <span>

#include "collcast/nccl/environment.hpp"

namespace collcast::nccl {

/// The groups of ranks that a variable says something of.
enum class OfGroups { any, on_one_node, on_several };

struct Variable {
  std::string_view name;
  void (*read)(const Setting&, Environment&, Diagnostics&);
  bool followed = false;  ///< forecasts change with it; else it is accepted, and warned of or named as without effect
  OfGroups groups = OfGroups::any;
};
std::span<const Variable> variables();
/// Of a name that no row has: any.
OfGroups groups_of(std::string_view name);

/// By the row of its name; a name that no row has is an error.
void read_variable(const Setting&, Environment&, Diagnostics&);

}  // namespace collcast::nccl
