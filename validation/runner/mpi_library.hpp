// MPI, opened when it is used: the module beside the program, and through it MPI's library.
#pragma once

#include <string>
#include <vector>

#include "runner/mpi_functions.hpp"

namespace collcast::runner {

struct MpiLibrary {
  const MpiFunctions* mpi = nullptr;
  std::string version;               ///< "Open MPI 4.1.4"
  std::vector<std::string> lacking;  ///< why there is none
};
/// Opened for the life of the process; MPI itself is not started.
MpiLibrary open_mpi();

/// Name and version out of MPI_Get_library_version's text, whose rest may name who built it and where.
std::string mpi_version_text(const std::string& library);

}  // namespace collcast::runner
