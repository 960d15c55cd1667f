// What collcast calls of MPI: one table of plain functions between the program and the module that has MPI's headers.
//
// MPI's handles and constants differ between its implementations, so one file alone is compiled against mpi.h and
// linked with the library: the module, which the program opens when `--backend mpi` runs
// (docs/decisions/0028-mpi.md). The functions return MPI's own codes, of which only 0, success, means something here.
#pragma once

#include "runner/values.hpp"

namespace collcast::runner {

/// One collective as MPI is asked to do it. `count` is in elements: of the whole buffer, or of one rank's part where
/// the kind is cut into parts.
struct MpiCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  DataType type = DataType::float32;
  bool in_place = false;
  int count = 0;
  int root = 0, rank = 0, ranks = 1;
  void* input = nullptr;
  void* output = nullptr;
};

struct MpiFunctions {
  /// MPI_Get_library_version; works before `start`. `room` is what `text` holds, its end included.
  void (*library)(char* text, int room);
  /// All that follow are called by the thread that called this one.
  int (*start)(int* rank, int* ranks);
  int (*run)(const MpiCall*, int calls);
  int (*barrier)();
  /// `count` numbers of every rank, in the order of ranks.
  int (*gather)(const double* own, int count, double* all);
  int (*finish)();
  void (*error)(int code, char* text, int room);
};

/// The module's one symbol. Its number changes with the table, so that a module of another version is not called.
inline constexpr const char* mpi_functions_name = "collcast_mpi_functions_1";
using MpiFunctionsOf = const MpiFunctions* (*)();

}  // namespace collcast::runner
