#include "collcast/evaluate/library.hpp"

#include "collcast/nccl/communicator.hpp"

namespace collcast {

std::string_view to_string(Library library) { return library == Library::nccl ? "nccl" : "ideal"; }

Library usual_library(const TopologySpec& spec) {
  const bool known = !spec.gpu.model.empty() && nccl::compute_capability(spec.gpu.model);
  return known && !spec.teaching ? Library::nccl : Library::ideal;
}

Library chosen_library(const LibraryClues& clues, Library usual) {
  if (clues.named) return *clues.named;
  if (clues.of_ideal != clues.of_nccl) return clues.of_ideal ? Library::ideal : Library::nccl;
  return usual;
}

}  // namespace collcast
