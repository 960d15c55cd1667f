// The run of NVLS, in a node and over the tree of nodes: chunks, and what bounds it.
#include "nccl/nvls.hpp"

#include <catch2/catch.hpp>

#include "machines.hpp"
#include "nccl/run_constants.hpp"

using namespace collcast;
using nccl::Algorithm;
using nccl::Communicator;
using nccl::Protocol;
using nccl::Run;
using test::ran;

namespace {

constexpr CollectiveKind summed = CollectiveKind::all_reduce;
constexpr std::int64_t kib = 1024, mib = 1024 * kib;

Run in_a_box(std::int64_t size, const char* machine = "dgx-h100") {
  return ran(test::communicator(machine, 1), summed, size, Algorithm::nvls, Protocol::simple);
}

}  // namespace

TEST_CASE("NVLS takes smaller chunks while there are few for its heads") {
  // 16 channels of 8 heads: 128 chunks at once, of which 64 whole ones are 1 GiB, 8 halves 64 MiB, 2 quarters 8 MiB.
  const auto chunk = [](std::int64_t size) { return in_a_box(size).chunk; };
  CHECK(chunk(1024 * mib) == Volume(128 * kib));
  CHECK(chunk(1024 * mib - 1) == Volume(64 * kib));
  CHECK(chunk(64 * mib) == Volume(64 * kib));
  CHECK(chunk(64 * mib - 1) == Volume(32 * kib));
  CHECK(chunk(8 * mib) == Volume(32 * kib));
  CHECK(chunk(8 * mib - 1) == Volume(16 * kib));
  CHECK(chunk(mib) == Volume(16 * kib));
  // 24 channels.
  const auto of_b200 = [](std::int64_t size) { return in_a_box(size, "dgx-b200").chunk; };
  CHECK(of_b200(1536 * mib) == Volume(128 * kib));
  CHECK(of_b200(1536 * mib - 1) == Volume(64 * kib));
}

TEST_CASE("NCCL_NVLS_CHUNKSIZE is the largest chunk of NVLS, up to a slot of the buffer") {
  const auto chunk = [](const std::vector<std::pair<std::string, std::string>>& variables, std::int64_t size) {
    const Communicator c = test::communicator("dgx-h100", 1, 0, test::environment(variables));
    return ran(c, summed, size, Algorithm::nvls, Protocol::simple).chunk;
  };
  // 128 chunks at once, of which 64 are 64 x 128 x 512 KiB = 4 GiB.
  CHECK(chunk({{"NCCL_NVLS_CHUNKSIZE", "524288"}}, 4096 * mib) == Volume(512 * kib));
  CHECK(chunk({{"NCCL_NVLS_CHUNKSIZE", "524288"}}, 4096 * mib - 1) == Volume(64 * kib));
  CHECK(chunk({{"NCCL_NVLS_CHUNKSIZE", "32768"}}, 4096 * mib) == Volume(32 * kib));
  // A slot is an eighth of a connection's 4 MiB, or of what the variable says.
  CHECK(chunk({{"NCCL_NVLS_CHUNKSIZE", "1048576"}}, 8192 * mib) == Volume(512 * kib));
  CHECK(chunk({{"NCCL_BUFFSIZE", "524288"}}, 4096 * mib) == Volume(64 * kib));
  // NCCL's own is what it is without the variable.
  for (const std::int64_t size : {kib, 8 * mib, 64 * mib, 1024 * mib})
    CHECK(chunk({{"NCCL_NVLS_CHUNKSIZE", "131072"}}, size) == chunk({}, size));
}

TEST_CASE("NCCL_NVLSTREE_MAX_CHUNKSIZE goes before what NCCL has for so many nodes") {
  const auto chunk = [](std::vector<std::pair<std::string, std::string>> variables, int nodes, int version = 0) {
    nccl::Environment e = test::environment(variables);
    e.launch.version = version;
    return ran(test::communicator("dgx-h100", nodes, 0, e), summed, 4096 * mib, Algorithm::nvls_tree, Protocol::simple)
        .chunk;
  };
  CHECK(chunk({}, 2) == Volume(128 * kib));
  CHECK(chunk({{"NCCL_NVLSTREE_MAX_CHUNKSIZE", "65536"}}, 2) == Volume(64 * kib));
  CHECK(chunk({{"NCCL_NVLS_CHUNKSIZE", "262144"}}, 2) == Volume(256 * kib));
  CHECK(chunk({{"NCCL_NVLS_CHUNKSIZE", "262144"}, {"NCCL_NVLSTREE_MAX_CHUNKSIZE", "131072"}}, 2) == Volume(128 * kib));
  // From four nodes on 64 KiB, but where the variable says more; never more than the chunk of NVLS.
  CHECK(chunk({}, 4) == Volume(64 * kib));
  CHECK(chunk({{"NCCL_NVLSTREE_MAX_CHUNKSIZE", "131072"}}, 4) == Volume(128 * kib));
  CHECK(chunk({{"NCCL_NVLSTREE_MAX_CHUNKSIZE", "524288"}}, 4) == Volume(128 * kib));
  // 2.22.3 with whole slots, unless it is told otherwise.
  CHECK(chunk({}, 2, 22203) == Volume(512 * kib));
  CHECK(chunk({{"NCCL_NVLSTREE_MAX_CHUNKSIZE", "131072"}}, 2, 22203) == Volume(128 * kib));
}

TEST_CASE("NVLS moves whole chunks at NCCL's rate, and smaller ones as their flags allow") {
  // 8 heads of 40 GB/s x 0.85 x 7/8 x 2 of a bus of 8 ranks.
  const double rate = 8 * 40e9 * 0.85 * 7 / 8 * 2 * 8 / 14;
  const auto data = [](std::int64_t size) { return in_a_box(size).data.count(); };
  CHECK(data(2048 * mib) == Approx(2048.0 * mib / rate));
  const double flags = 1e-6 * nccl::fitted::nvls_flags[2] * 8;
  CHECK(data(512 * mib) == Approx(64 * (8.0 * mib / rate + flags / 2)));
  CHECK(data(32 * mib) == Approx(8 * (4.0 * mib / rate + flags * 3 / 4)));
  // Half a loop signals every head once as a whole one does.
  CHECK(data(mib) == Approx(1.0 * mib / rate + flags * 7 / 8));
  CHECK(data(mib / 1024) == Approx(1.0 * kib / rate + flags * 7 / 8));
  // What fills the pipe are loops, and no more of one than there is.
  const auto filling = [&](std::int64_t size) {
    const Run run = in_a_box(size);
    return run.latency.count() - 1e-6 * nccl::fitted::nvls_start;
  };
  CHECK(filling(512 * mib) == Approx(nccl::fitted::nvls_fill * data(512 * mib) / 64));
  CHECK(filling(mib) == Approx(nccl::fitted::nvls_fill * data(mib)));
  // A calibration's factors: of links the rate, of hops flags and start.
  Communicator c = test::communicator("dgx-h100", 1);
  c.factors.simple = 0.5;
  c.factors.hop = 3;
  const Run slow = ran(c, summed, 512 * mib, Algorithm::nvls, Protocol::simple);
  CHECK(slow.data.count() == Approx(64 * (8.0 * mib / (rate / 2) + 3 * flags / 2)));
}

TEST_CASE("a larger message is quicker where NCCL takes larger chunks for it, as measured on B300") {
  const auto time = [](std::int64_t size, const char* machine) { return in_a_box(size, machine).time(); };
  for (const std::int64_t step : {std::int64_t{64}, std::int64_t{1024}}) {
    INFO(step);
    CHECK(time(step * mib, "dgx-h100") < time(step * mib - kib, "dgx-h100"));
  }
  // The largest step saves what flags take of halves: 1 GiB in 128 loops of 8 MiB.
  const double saved = test::us(time(1024 * mib - kib, "dgx-h100") - time(1024 * mib, "dgx-h100"));
  CHECK(saved > 0.7 * 128 * nccl::fitted::nvls_flags[2] * 8 / 2);
  CHECK(saved < 128 * nccl::fitted::nvls_flags[2] * 8 / 2);
  // Nowhere else: between steps more bytes never take less.
  for (std::int64_t size = 16 * kib; size < 8 * mib - kib; size += 64 * kib)
    CHECK(time(size, "dgx-h100") <= time(size + 64 * kib < 8 * mib ? size + 64 * kib : size, "dgx-h100"));
}

TEST_CASE("fewer channels of NVLS than NCCL takes by itself move less, more of them no more") {
  const auto data = [](const char* channels) {
    const auto c = test::communicator("dgx-h100", 1, 0, test::environment({{"NCCL_NVLS_NCHANNELS", channels}}));
    return ran(c, summed, 2048 * mib, Algorithm::nvls, Protocol::simple).data.count();
  };
  const double usual = data("16");
  CHECK(usual == Approx(in_a_box(2048 * mib).data.count()));
  CHECK(data("4") == Approx(4 * usual));
  CHECK(data("32") == Approx(usual).epsilon(0.1));
}

TEST_CASE("the tree of NVLS takes smaller chunks while there are few for its heads") {
  // 16 channels of 8 heads: 128 chunks at once. 128 KiB from 4 x 16 MiB on, 64 KiB from 8 MiB on, else 32 KiB; from
  // four nodes on no more than 64 KiB.
  const auto chunk = [](int nodes, std::int64_t mib) {
    return ran(test::communicator("dgx-h100", nodes), summed, mib << 20, Algorithm::nvls_tree, Protocol::simple).chunk;
  };
  CHECK(chunk(2, 64) == Volume(128 << 10));
  CHECK(chunk(2, 63) == Volume(64 << 10));
  CHECK(chunk(2, 8) == Volume(64 << 10));
  CHECK(chunk(2, 7) == Volume(32 << 10));
  CHECK(chunk(4, 1024) == Volume(64 << 10));
  CHECK(chunk(4, 7) == Volume(32 << 10));
  CHECK(chunk(2, 16384) == Volume(128 << 10));
}

TEST_CASE("before 2.23 the tree of NVLS takes larger chunks where there are many for its heads") {
  // 512 KiB from 32 x 64 MiB on, 256 KiB from 16 x 32 MiB on.
  nccl::Environment environment;
  environment.launch.version = 22203;
  const auto chunk = [&](int nodes, std::int64_t mib) {
    return ran(test::communicator("dgx-h100", nodes, 0, environment), summed, mib << 20, Algorithm::nvls_tree,
               Protocol::simple)
        .chunk;
  };
  CHECK(chunk(2, 2048) == Volume(512 << 10));
  CHECK(chunk(2, 2047) == Volume(256 << 10));
  CHECK(chunk(2, 512) == Volume(256 << 10));
  CHECK(chunk(2, 511) == Volume(128 << 10));
  CHECK(chunk(2, 63) == Volume(64 << 10));
  CHECK(chunk(4, 2048) == Volume(64 << 10));
}

TEST_CASE("the tree of NVLS goes no faster than its NICs' messages follow one another") {
  // 16 channels of 8 heads over 8 NICs: 16 messages each for a loop's 8 MiB, in chunks of 64 KiB.
  Communicator slow = test::communicator("dgx-h100", 2);
  slow.factors.message_gap = 5;
  const auto run = [&](std::int64_t mib) {
    return ran(slow, summed, mib << 20, Algorithm::nvls_tree, Protocol::simple);
  };
  CHECK(test::us(run(32).data) == Approx(4 * 16 * 5 * nccl::fitted::nvls_tree_message_gap));
  CHECK(run(32).bound == "messages");
}

TEST_CASE("the tree of NVLS is as fast as its heads on two nodes, and has NCCL's cap on a few heads beyond") {
  const std::int64_t size = std::int64_t{16} << 30;
  const auto data = [&](const Communicator& c) {
    return ran(c, summed, size, Algorithm::nvls_tree, Protocol::simple).data.count();
  };
  // Eight heads of Hopper: 40 GB/s x 0.85 x 7/8 x 2 of a bus of 16 ranks, above NCCL's cap of 57.7 for two nodes.
  const double bytes = static_cast<double>(size), heads = 8 * 40e9 * 0.85 * 7 / 8 * 2;
  CHECK(data(test::communicator("dgx-h100", 2)) == Approx(bytes * 30 / 16 / heads));
  CHECK(data(test::communicator("dgx-h100", 4)) == Approx(bytes * 62 / 32 / (8 * 45.5e9)));
  // A rack has 32 heads, of which a tree beyond two racks keeps ten busy.
  const double cap = nccl::fitted::most_nvls_tree_heads * 43.8e9;
  CHECK(data(test::communicator("gb200-nvl72", 3)) == Approx(bytes * 2 * 215 / 216 / cap));
  CHECK(data(test::communicator("gb200-nvl72", 2)) < 0.6 * data(test::communicator("gb200-nvl72", 3)));
  // A calibration's factors: of links the heads', of NICs the way between.
  Communicator two = test::communicator("dgx-h100", 2), four = test::communicator("dgx-h100", 4);
  const double before = data(two), before_of_four = data(four);
  two.factors.simple = 0.5;
  four.factors.network = 0.5;
  CHECK(data(two) == Approx(2 * before));
  CHECK(data(four) == Approx(2 * before_of_four));
}

TEST_CASE("NVLS on a node takes no longer than its tree does over that node and another one") {
  // Two racks of GB200 had 8 KiB in 49 us, one in 88, of which 71 are for the flags of its 32 heads.
  for (const char* machine : {"gb200-nvl72", "dgx-h100", "dgx-b200"}) {
    const Communicator one = test::communicator(machine, 1), two = test::communicator(machine, 2);
    for (std::int64_t bytes = 8; bytes <= std::int64_t{1} << 30; bytes *= 2) {
      INFO(machine << ", " << bytes << " B");
      const auto time = [&](const Communicator& c, Algorithm a) {
        return ran(c, CollectiveKind::all_reduce, bytes, a).time();
      };
      CHECK(time(one, Algorithm::nvls) <= time(two, Algorithm::nvls_tree));
    }
  }
}

TEST_CASE("what the switch moves depends on the number of heads, not on the NICs that they have") {
  const auto inside = [](const Fabric& fabric) {
    const auto c =
        nccl::connect(fabric, Group::strided(Rank(0), 1, 16), test::environment({{"NCCL_ALGO", "NVLSTree"}}));
    REQUIRE(c.ok());
    const Bytes size(std::int64_t{1} << 30);
    const nccl::Plan plan = test::planned_as(*c, summed, size, Algorithm::nvls_tree, Protocol::simple);
    return nccl::nvls_tree_run(*c, summed, size, plan).inside;
  };
  const double usual = inside(test::built("dgx-h100", 2));
  for (const char* rate : {"50Gb/s", "200Gb/s", "800Gb/s"})
    CHECK(inside(test::built("dgx-h100", 2, {std::string("network.link.bandwidth=") + rate})) == Approx(usual));
  // A GPU has all data and a head's part of them once more.
  CHECK(inside(test::without_nic("dgx-h100", 3, 2)) == Approx(usual * (1 + 1.0 / 7) / (1 + 1.0 / 8)));
  CHECK(inside(test::built("gcp-a3-high", 2)) == Approx(usual * (1 + 1.0 / 4) / (1 + 1.0 / 8)));
}

TEST_CASE("what holds a tree of NVLS across nodes is called by its name") {
  const auto bound = [](const char* machine, int nodes) {
    return ran(test::communicator(machine, nodes), summed, std::int64_t{4} << 30, Algorithm::nvls_tree,
               Protocol::simple)
        .bound;
  };
  CHECK(bound("dgx-h100", 2) == "NVLink");
  CHECK(bound("dgx-h100", 4) == "NCCL's cap on an NVLS tree's head");
  CHECK(bound("gcp-a3-mega", 2) == "NIC");
  CHECK(bound("gcp-a3-mega", 4) == "NIC");
}

TEST_CASE("what holds a tree across nodes is called by its name") {
  const auto bound = [](const char* machine, int nodes) {
    return ran(test::communicator(machine, nodes), summed, std::int64_t{1} << 30, Algorithm::tree, Protocol::simple)
        .bound;
  };
  CHECK(bound("dgx-h100", 2) == "NCCL's cap on a tree's channel");
  // NCCL books what it found inside: eight channels of 20 GB/s fill the 160 of an A800's NVLinks, whatever the NICs.
  CHECK(bound("hgx-a800", 2) == "NVLink");
  CHECK(bound("hgx-a800", 4) == "NCCL's cap on a tree's channel");
  // Of the 15 GB/s of a V100's channel 13.5 are reached, of its cap 12.
  CHECK(bound("dgx2-v100", 2) == "NCCL's cap on a tree's channel");
  CHECK(bound("l40s-pcie", 2) == "PCIe");
  CHECK(bound("v100-pcie-ethernet", 2) == "NIC");
  CHECK(bound("gcp-a3-mega", 4) == "NIC");
}
