// MPI where it is not built in: what to do about it.
#include "runner/communicator.hpp"

namespace collcast::runner {

Backend mpi_backend() {
  Backend out;
  out.entry.name = "mpi";
  out.entry.what = "CPU processes over MPI";
  out.entry.lacking = {
      "MPI is not built in: install libopenmpi-dev and openmpi-bin and build again (tools/setup does; "
      "cmake -DCOLLCAST_WITH_MPI=ON)"};
  return out;
}

}  // namespace collcast::runner
