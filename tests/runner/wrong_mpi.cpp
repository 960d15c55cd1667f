// An MPI whose all-reduce is wrong in one element on rank 1: preloaded before the real one, which does the rest.
#include <dlfcn.h>
#include <mpi.h>

extern "C" int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  using Function = int (*)(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
  const auto real = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, "PMPI_Allreduce"));
  const int code = real(in, out, count, type, op, comm);
  const auto rank_of = reinterpret_cast<int (*)(MPI_Comm, int*)>(::dlsym(RTLD_DEFAULT, "PMPI_Comm_rank"));
  int rank = 0;
  rank_of(comm, &rank);
  if (rank == 1 && count > 3) static_cast<float*>(out)[3] += 1;
  return code;
}
