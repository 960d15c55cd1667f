// What a host takes of a call, which is seen where its GPUs are done before.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>

#include "machines.hpp"
#include "nccl/run_constants.hpp"

using namespace collcast;

TEST_CASE("a host's time is seen where the GPUs are done before, and not beside theirs") {
  const nccl::Communicator plain = test::communicator("dgx-h100", 2);
  nccl::Communicator slow = plain;
  slow.factors.host = 50 / nccl::fitted::host;
  for (const CollectiveKind kind :
       {CollectiveKind::broadcast, CollectiveKind::reduce, CollectiveKind::all_reduce, CollectiveKind::all_gather,
        CollectiveKind::reduce_scatter, CollectiveKind::alltoall, CollectiveKind::gather, CollectiveKind::scatter,
        CollectiveKind::sendrecv}) {
    for (std::int64_t size = 8; size <= 1 << 30; size *= 8) {
      const auto best = nccl::plan(plain, kind, Bytes(size));
      REQUIRE(best);
      const double before = test::us(nccl::run(plain, kind, Bytes(size), *best).time());
      CHECK(test::us(nccl::run(slow, kind, Bytes(size), *best).time()) == Approx(std::max(50.0, before)));
    }
  }
}

TEST_CASE("before 2.9 a process starts the kernels of all its GPUs together, which its host takes the longer for") {
  const auto time = [](int ranks, CollectiveKind kind, int version, bool one_process, const char* mode = nullptr) {
    nccl::Environment environment;
    if (mode != nullptr) environment = *nccl::read_environment(std::array{nccl::Setting{"NCCL_LAUNCH_MODE", mode, {}}});
    environment.launch.version = version;
    environment.launch.one_process = one_process;
    const nccl::Communicator c = test::communicator("dgx-a100", 1, ranks, environment);
    const auto best = nccl::plan(c, kind, Bytes(8));
    REQUIRE(best);
    return test::us(nccl::run(c, kind, Bytes(8), *best).time());
  };
  // 4 us and 2.4 for each GPU; of sends and receives 3.7 and 3.3 for each peer.
  CHECK(time(8, CollectiveKind::broadcast, 20703, true) == Approx(4 + 8 * 2.4));
  CHECK(time(8, CollectiveKind::alltoall, 20703, true) == Approx(4 + 8 * 2.4 + 3.7 + 7 * 3.3));
  CHECK(time(4, CollectiveKind::sendrecv, 20804, true) == Approx(4 + 4 * 2.4 + 3.7 + 3.3));
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::alltoall, CollectiveKind::sendrecv}) {
    CHECK(time(8, kind, 20703, true, "PARALLEL") == time(8, kind, 20703, false));
    CHECK(time(8, kind, 20703, true, "GROUP") == time(8, kind, 20703, true));
    CHECK(time(8, kind, 20900, true) == time(8, kind, 20900, false));
    CHECK(time(8, kind, 0, true) == time(8, kind, 0, false));
  }
}
