// NCCL's variables by name, and how the value of each is read.
//
// A variable is known by its row of one table alone: what reads it, and the names that an error offers, are of it.
#pragma once

#include <span>

#include "collcast/nccl/environment.hpp"

namespace collcast::nccl {

struct Variable {
  std::string_view name;
  void (*read)(const Setting&, Environment&, Diagnostics&);
  bool followed = false;  ///< forecasts change with it; else it is accepted, and warned of or named as without effect
};
std::span<const Variable> variables();

/// By the row of its name; a name that no row has is an error.
void read_variable(const Setting&, Environment&, Diagnostics&);

}  // namespace collcast::nccl
