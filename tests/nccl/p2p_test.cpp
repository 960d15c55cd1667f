// Sends and receives between pairs of ranks: their channels, and what rate these reach.
#include <catch2/catch.hpp>

#include "machines.hpp"
#include "nccl/run_constants.hpp"

using namespace collcast;
using nccl::Communicator;
using nccl::Protocol;
using test::ran;

TEST_CASE("a pair of ranks takes more channels once a channel's part is above 16 MiB") {
  // Public runs of 8 H100: 422 us at 32 MiB, 820 at 64, 826 at 128, 896 at 256: 4, 4, 8, 16 channels of about 20 GB/s.
  const Communicator c = test::communicator("dgx-h100", 1);
  const auto channels = [&](std::int64_t mib) {
    return nccl::plan(c, CollectiveKind::sendrecv, Bytes(mib << 20)).value().channels;
  };
  CHECK(channels(32) == 4);
  CHECK(channels(64) == 4);
  CHECK(channels(65) == 8);
  CHECK(channels(128) == 8);
  CHECK(channels(256) == 16);
  CHECK(channels(1024) == 32);
  const double rate = nccl::fitted::p2p_channel[2] * 1e9;
  CHECK(ran(c, CollectiveKind::sendrecv, 32 << 20).data.count() == Approx((32 << 20) / (4 * rate)));
}

TEST_CASE("a channel to a peer has 64 KiB at least") {
  const Communicator c = test::communicator("dgx-h100", 1, 2);
  const auto channels = [&](std::int64_t bytes) {
    return nccl::plan(c, CollectiveKind::sendrecv, Bytes(bytes)).value().channels;
  };
  CHECK(channels(1) == 1);
  CHECK(channels(64 << 10) == 1);
  CHECK(channels((64 << 10) + 1) == 2);
  CHECK(channels(512 << 10) == 8);
  CHECK(channels(16 << 20) == 16);  // as many as leave one of 32 for each of two
}

TEST_CASE("the parts of a pair's channels follow NCCL's version") {
  const auto planned = [](int version, std::int64_t bytes, int nodes = 1) {
    nccl::Environment environment;
    environment.version = version;
    const Communicator c = test::communicator("dgx-h100", nodes, 2 / nodes, environment);
    return nccl::plan(c, CollectiveKind::sendrecv, Bytes(bytes)).value();
  };
  constexpr std::int64_t kib = 1024, mib = 1 << 20;
  // Until 2.7 parts of 2 MiB each: 8 x A100 of one host take 125 us for 1.5 MiB, 172 for 3, 210 for 24.
  CHECK(planned(20708, 2 * mib).channels == 1);
  CHECK(planned(20708, 2 * mib + 1).channels == 2);
  CHECK(planned(20708, 24 * mib).channels == 12);
  CHECK(planned(20804, 2 * mib).channels == 4);
  CHECK(planned(21803, 2 * mib).channels == 16);
  // LL for 16 KiB of all 32 channels that a pair may have, in parts of 8 KiB; before 2.20 and since 2.29 of one.
  for (const int version : {22000, 22304, 22809}) {
    CHECK(planned(version, 512 * kib).protocol == Protocol::ll);
    CHECK(planned(version, 512 * kib + 1).protocol == Protocol::simple);
    CHECK(planned(version, 64 * kib).channels == 8);
    CHECK(planned(version, 32 * kib, 2).protocol == Protocol::ll);
    CHECK(planned(version, 32 * kib, 2).channels == 1);
    CHECK(planned(version, 32 * kib + 1, 2).protocol == Protocol::simple);
  }
  for (const int version : {0, 21803, 22902}) {
    CHECK(planned(version, 16 * kib).protocol == Protocol::ll);
    CHECK(planned(version, 16 * kib + 1).protocol == Protocol::simple);
  }
}

TEST_CASE("among several peers sends and receives reach less of NVLink until channels are shared") {
  const Communicator c = test::communicator("dgx-h100", 1);
  const double link = 450e9 * nccl::fitted::nvlink_efficiency[2];
  const auto reached = [&](CollectiveKind kind, std::int64_t size, int peers) {
    return static_cast<double>(size) / (kind == CollectiveKind::sendrecv ? 1 : 8) * peers /
           ran(c, kind, size).data.count() / link;
  };
  constexpr std::int64_t mib = 1 << 20;
  CHECK(reached(CollectiveKind::sendrecv, 4096 * mib, 1) == Approx(1));
  // Four channels to each of eight ranks are all 32; from 16 MiB a channel on there are more, and peers share them.
  CHECK(reached(CollectiveKind::alltoall, 512 * mib, 7) == Approx(nccl::fitted::p2p_apart));
  CHECK(reached(CollectiveKind::alltoall, 1024 * mib, 7) == Approx(nccl::fitted::p2p_shared));
}

TEST_CASE("a pair of ranks on different nodes has two channels' rate, among many ranks one") {
  const std::int64_t size = std::int64_t{1} << 32;
  const double channel = nccl::fitted::p2p_network_channel * 1e9;
  const double two = channel * (1 + nccl::fitted::p2p_network_further);
  CHECK(ran(test::communicator("dgx-h100", 2, 1), CollectiveKind::sendrecv, size).data.count() ==
        Approx(static_cast<double>(size) / two));
  // Measured among 10, 40 and 80 H100: 24.9, 26.3 and 15.2 GB/s.
  CHECK(ran(test::communicator("dgx-h100", 10, 1), CollectiveKind::sendrecv, size).data.count() ==
        Approx(static_cast<double>(size) / two));
  CHECK(ran(test::communicator("dgx-h100", 10, 4), CollectiveKind::sendrecv, size).data.count() ==
        Approx(static_cast<double>(size) / two));
  CHECK(ran(test::communicator("dgx-h100", 10), CollectiveKind::sendrecv, size).data.count() ==
        Approx(static_cast<double>(size) / channel));
}
