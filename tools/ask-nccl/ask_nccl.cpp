// Asks NCCL itself what it estimates: RANKS processes on one GPU, each naming a host of its own (NCCL_HOSTID), make a
// communicator of RANKS nodes, and rank 0 writes what ncclGroupSimulateEnd says of every collective and size as
// "collective,bytes,microseconds". Nothing is launched. NCCL's own log (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=
// INIT,GRAPH,TUNING) of rank 0 has its table of algorithms and protocols.
//
//   ask_nccl RANKS OUTPUT.csv [LARGEST_BYTES]
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

[[noreturn]] void fail(const char* what, const char* why) {
  std::fprintf(stderr, "ask_nccl: %s: %s\n", what, why);
  std::exit(1);
}
void check(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) fail(what, ncclGetLastError(nullptr));
}
void check(cudaError_t result, const char* what) {
  if (result != cudaSuccess) fail(what, cudaGetErrorString(result));
}

void ask(int rank, int ranks, const ncclUniqueId& id, const char* output, std::size_t largest) {
  check(cudaSetDevice(0), "the device");
  float* memory = nullptr;
  check(cudaMalloc(&memory, 1 << 20), "memory");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "a stream");
  ncclComm_t comm = nullptr;
  check(ncclCommInitRank(&comm, ranks, id, rank), "ncclCommInitRank");
  std::FILE* out = rank == 0 ? std::fopen(output, "w") : nullptr;
  if (out != nullptr) std::fprintf(out, "collective,size_bytes,time_us\n");
  const auto n = static_cast<std::size_t>(ranks);
  for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"})
    for (std::size_t bytes = 64; bytes <= largest; bytes *= 2) {
      const std::string name = kind;
      const bool shared = name == "all_gather" || name == "reduce_scatter";
      const std::size_t count = shared ? bytes / 4 / n : bytes / 4;
      if (count == 0) continue;
      ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
      check(ncclGroupStart(), "ncclGroupStart");
      if (name == "all_reduce")
        check(ncclAllReduce(memory, memory, count, ncclFloat, ncclSum, comm, stream), kind);
      else if (name == "all_gather")
        check(ncclAllGather(memory, memory, count, ncclFloat, comm, stream), kind);
      else if (name == "reduce_scatter")
        check(ncclReduceScatter(memory, memory, count, ncclFloat, ncclSum, comm, stream), kind);
      else if (name == "broadcast")
        check(ncclBroadcast(memory, memory, count, ncclFloat, 0, comm, stream), kind);
      else
        check(ncclReduce(memory, memory, count, ncclFloat, ncclSum, 0, comm, stream), kind);
      check(ncclGroupSimulateEnd(&info), "ncclGroupSimulateEnd");
      if (out != nullptr)
        std::fprintf(out, "%s,%zu,%.6g\n", kind, shared ? count * 4 * n : count * 4,
                     static_cast<double>(info.estimatedTime));
      if (out != nullptr) std::fflush(out);
    }
  if (out != nullptr) std::fclose(out);
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) fail("usage", "ask_nccl RANKS OUTPUT.csv [LARGEST_BYTES]");
  const int ranks = std::atoi(words[1]);
  const std::size_t largest = count > 3 ? std::strtoull(words[3], nullptr, 10) : std::size_t{1} << 30;
  std::vector<int> to(static_cast<std::size_t>(ranks), -1);
  std::vector<pid_t> all;
  int up[2];
  if (::pipe(up) != 0) fail("pipe", "none");
  for (int rank = 0; rank < ranks; ++rank) {
    int down[2];
    if (::pipe(down) != 0) fail("pipe", "none");
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(45);
      ::setenv("NCCL_HOSTID", ("node" + std::to_string(rank)).c_str(), 1);
      if (rank > 0) ::setenv("NCCL_DEBUG", "WARN", 1);
      if (rank > 0) ::unsetenv("NCCL_DEBUG_FILE");
      ncclUniqueId id;
      if (rank == 0) {
        check(ncclGetUniqueId(&id), "ncclGetUniqueId");
        if (::write(up[1], &id, sizeof id) != sizeof id) fail("write", "short");
      }
      if (::read(down[0], &id, sizeof id) != sizeof id) fail("read", "short");
      ask(rank, ranks, id, words[2], largest);
      std::fflush(nullptr);
      ::_exit(0);  // the communicator moves nothing, so nothing is taken down either
    }
    to[static_cast<std::size_t>(rank)] = down[1];
    ::close(down[0]);
    all.push_back(child);
  }
  ncclUniqueId id;
  if (::read(up[0], &id, sizeof id) != sizeof id) fail("rank 0", "did not start");
  for (const int pipe : to)
    if (::write(pipe, &id, sizeof id) != sizeof id) fail("write", "short");
  int failed = 0;
  for (const pid_t child : all) {
    int status = 0;
    ::waitpid(child, &status, 0);
    failed += status != 0;
  }
  return failed == 0 ? 0 : 1;
}
