// Whose collectives are forecast.
#pragma once

#include <optional>
#include <string_view>

#include "collcast/topology/spec.hpp"

namespace collcast {

enum class Library {
  ideal,  ///< the textbook's algorithms on the fabric
  nccl,   ///< NCCL as it runs
};
std::string_view to_string(Library);

/// What people run on such a machine: nccl where its GPUs are NVIDIA's, as far as nccl::compute_capability() knows them
/// by name; ideal on teaching machines and everywhere else.
Library usual_library(const TopologySpec&);

/// What a question says of libraries: by name, and by options or keys that only one of them has.
struct LibraryClues {
  std::optional<Library> named = {};
  bool of_ideal = false, of_nccl = false;
};
/// The one named; else the one that what is given is of; else (nothing given, or of both, which is an error to be told)
/// the usual one.
Library chosen_library(const LibraryClues&, Library usual);

}  // namespace collcast
