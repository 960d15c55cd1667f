// The module: the only file that knows mpi.h. What each kind is in MPI, and nothing else.
//
// Buffers are contiguous, calls are the blocking ones, as OSU's micro-benchmarks time them. In place is
// MPI_IN_PLACE where MPI has it; a broadcast has one buffer and is always in place; sendrecv has none
// (MPI_Sendrecv_replace is another call). Leaves out: counts of more than 31 bits (MPI 4's _c functions), derived
// datatypes, the nonblocking and persistent collectives.
#include <algorithm>
#include <cstring>
#include <mpi.h>
#include <string>

#include "runner/mpi_functions.hpp"

namespace collcast::runner {

namespace {

MPI_Datatype mpi_type(DataType type) {
  switch (type) {
    case DataType::int8:
      return MPI_INT8_T;
    case DataType::uint8:
      return MPI_UINT8_T;
    case DataType::int32:
      return MPI_INT32_T;
    case DataType::uint32:
      return MPI_UINT32_T;
    case DataType::int64:
      return MPI_INT64_T;
    case DataType::uint64:
      return MPI_UINT64_T;
    case DataType::float64:
      return MPI_DOUBLE;
    case DataType::float32:
    case DataType::half:      // MPI has none
    case DataType::bfloat16:  // MPI has none
      break;
  }
  return MPI_FLOAT;
}

int send_to_next(const MpiCall& c, MPI_Datatype type) {
  const int next = (c.rank + 1) % c.ranks, previous = (c.rank + c.ranks - 1) % c.ranks;
  return MPI_Sendrecv(c.input, c.count, type, next, 0, c.output, c.count, type, previous, 0, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE);
}

int call_once(const MpiCall& c, MPI_Datatype type) {
  const bool at_root = c.rank == c.root;
  void* const input = c.in_place ? MPI_IN_PLACE : c.input;
  switch (c.kind) {
    case CollectiveKind::all_reduce:
      return MPI_Allreduce(input, c.output, c.count, type, MPI_SUM, MPI_COMM_WORLD);
    case CollectiveKind::broadcast:
      return MPI_Bcast(c.output, c.count, type, c.root, MPI_COMM_WORLD);
    case CollectiveKind::reduce:
      return MPI_Reduce(at_root ? input : c.input, c.output, c.count, type, MPI_SUM, c.root, MPI_COMM_WORLD);
    case CollectiveKind::all_gather:
      return MPI_Allgather(input, c.count, type, c.output, c.count, type, MPI_COMM_WORLD);
    case CollectiveKind::reduce_scatter:
      return MPI_Reduce_scatter_block(input, c.output, c.count, type, MPI_SUM, MPI_COMM_WORLD);
    case CollectiveKind::alltoall:
      return MPI_Alltoall(input, c.count, type, c.output, c.count, type, MPI_COMM_WORLD);
    case CollectiveKind::gather:
      return MPI_Gather(at_root ? input : c.input, c.count, type, c.output, c.count, type, c.root, MPI_COMM_WORLD);
    case CollectiveKind::scatter:
      return MPI_Scatter(c.input, c.count, type, at_root && c.in_place ? MPI_IN_PLACE : c.output, c.count, type, c.root,
                         MPI_COMM_WORLD);
    case CollectiveKind::sendrecv:
      return send_to_next(c, type);
  }
  return MPI_ERR_OTHER;
}

void copy_text(const std::string& from, char* text, int room) {
  const std::size_t size = std::min(from.size(), static_cast<std::size_t>(room) - 1);
  std::memcpy(text, from.data(), size);
  text[size] = '\0';
}

void library(char* text, int room) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(version, &length);
  copy_text(version, text, room);
}

/// Funneled: one thread calls MPI, and it need not be the one that runs main.
int start(int* rank, int* ranks) {
  int provided = 0;
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided); code != MPI_SUCCESS)
    return code;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (const int code = MPI_Comm_rank(MPI_COMM_WORLD, rank); code != MPI_SUCCESS) return code;
  return MPI_Comm_size(MPI_COMM_WORLD, ranks);
}

int run(const MpiCall* call, int calls) {
  const MPI_Datatype type = mpi_type(call->type);
  int code = MPI_SUCCESS;
  for (int i = 0; i < calls && code == MPI_SUCCESS; ++i) code = call_once(*call, type);
  return code;
}

int barrier() { return MPI_Barrier(MPI_COMM_WORLD); }

int gather(const double* own, int count, double* all) {
  return MPI_Allgather(own, count, MPI_DOUBLE, all, count, MPI_DOUBLE, MPI_COMM_WORLD);
}

int finish() { return MPI_Finalize(); }

void error(int code, char* text, int room) {
  char what[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, what, &length);
  copy_text(what, text, room);
}

}  // namespace

}  // namespace collcast::runner

extern "C" __attribute__((visibility("default"))) const collcast::runner::MpiFunctions* collcast_mpi_functions_1() {
  using namespace collcast::runner;
  static constexpr MpiFunctions functions{library, start, run, barrier, gather, finish, error};
  return &functions;
}
