// Ways through a GPU between two that have no NVLink, by every group of a cube mesh's GPUs.
#include "nccl/nvlink_ways.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

#include "collcast/evaluate/by_nccl.hpp"
#include "collcast/nccl/program.hpp"
#include "machines.hpp"
#include "nccl/search.hpp"
#include "nccl/search_speeds.hpp"

using namespace collcast;
using nccl::Communicator;
using nccl::PathType;
using nccl::Protocol;

namespace {

nccl::System cube_mesh(bool through_gpus = true) {
  nccl::System out = nccl::system_of(test::shipped("dgx1-v100"), 70, {});
  out.through_gpus = through_gpus;
  return out;
}

/// Groups of two GPUs of the eight and more.
std::vector<std::vector<int>> groups_of_eight() {
  std::vector<std::vector<int>> out;
  for (unsigned bits = 0; bits < 256; ++bits) {
    std::vector<int> gpus;
    for (int gpu = 0; gpu < 8; ++gpu)
      if ((bits >> gpu & 1U) != 0) gpus.push_back(gpu);
    if (gpus.size() > 1) out.push_back(std::move(gpus));
  }
  return out;
}

Group ranks_of(const std::vector<int>& gpus) {
  std::vector<Rank> ranks;
  for (const int gpu : gpus) ranks.emplace_back(static_cast<std::uint32_t>(gpu));
  return Group::listed(std::move(ranks));
}

double simulation_over_closed(const Fabric& fabric, const Group& group, CollectiveKind kind, std::int64_t bytes,
                              const nccl::Environment& environment = {}) {
  const Communicator c = *nccl::connect(fabric, group, environment);
  const nccl::Plan plan = nccl::plan(c, kind, Bytes(bytes)).value();
  const auto program = nccl::program(fabric, group, c, kind, Bytes(bytes), plan);
  REQUIRE(program.ok());
  return simulate(*program)->count() / nccl::run(c, kind, Bytes(bytes), plan).time().count();
}

}  // namespace

TEST_CASE("a pair without an NVLink goes through one GPU of the group that has one to both, the widest way") {
  const nccl::System mesh = cube_mesh(), straight = cube_mesh(false);
  const auto link = [&](int a, int b) {
    return mesh.nvlinks[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
  };
  for (const std::vector<int>& gpus : groups_of_eight())
    for (const int a : gpus)
      for (const int b : gpus) {
        if (a == b) continue;
        INFO(test::words(gpus) << "from " << a << " to " << b);
        const nccl::NvlinkWay way = nvlink_way(mesh, gpus, a, b);
        double widest = 0;
        for (const int between : gpus) widest = std::max(widest, std::min(link(a, between), link(between, b)));
        CHECK(way.speed == (link(a, b) > 0 ? link(a, b) : widest));
        CHECK(way.type == (link(a, b) > 0 ? PathType::nvl : widest > 0 ? PathType::nvb : PathType::dis));
        CHECK(way.hops.size() == (way.type == PathType::dis ? 0 : way.type == PathType::nvl ? 1 : 2));
        if (way.type == PathType::nvb) CHECK(std::count(gpus.begin(), gpus.end(), way.hops.front().second) == 1);
        CHECK(nvlink_way(straight, gpus, a, b).type == (link(a, b) > 0 ? PathType::nvl : PathType::dis));
      }
}

TEST_CASE("channels through GPUs book no NVLink beyond its speed, and are taken where no straight ones go round") {
  const nccl::System mesh = cube_mesh(), straight = cube_mesh(false);
  for (const std::vector<int>& gpus : groups_of_eight()) {
    INFO(test::words(gpus));
    const auto found = nccl::search(mesh, gpus, 1), without = nccl::search(straight, gpus, 1);
    REQUIRE(found.has_value());
    REQUIRE(without.has_value());
    const PathType type = found->ring.type_inside;
    CHECK((type != PathType::nvl || found->ring.order == without->ring.order));
    const bool pairs_joined = std::ranges::all_of(gpus, [&](int a) {
      return a == gpus.front() || nccl::over_nvlink(nvlink_way(mesh, gpus, gpus.front(), a).type);
    });
    if (without->ring.type_inside > PathType::nvl && pairs_joined && type > PathType::nvb) CHECK(gpus.size() == 2);
    // PCIe 3 carries 12 GB/s at the most, a single NVLink 20.
    CHECK(found->ring.channels * found->ring.inside.value() >= without->ring.channels * without->ring.inside.value());
    CHECK(found->nvlink == nccl::over_nvlink(type));
    if (!found->nvlink) continue;
    std::map<std::pair<int, int>, double> booked;
    for (const std::vector<int>& order : found->ring.order) {
      CHECK(order.size() == gpus.size());
      for (std::size_t i = 0; i < order.size(); ++i)
        for (const auto& hop : nvlink_way(mesh, gpus, order[i], order[(i + 1) % order.size()]).hops)
          booked[hop] += found->ring.inside.value() / 1e9;
    }
    for (const auto& [hop, sum] : booked)
      CHECK(sum <=
            mesh.nvlinks[static_cast<std::size_t>(hop.first)][static_cast<std::size_t>(hop.second)] + nccl::slack);
  }
}

TEST_CASE("five GPUs of a DGX-1 go round through the one that the fifth has an NVLink to") {
  // GPU 4 has two links, 40 GB/s, to GPU 0 alone: its own hop and one through GPU 0 take 20 each way, twice.
  const Communicator c = test::communicator("dgx1-v100", 1, 5);
  CHECK(c.ring.type_inside == PathType::nvb);
  CHECK(c.ring.channels * c.ring.inside.value() == Approx(40e9));
  CHECK(c.nvlink);
  CHECK(c.p2p_channels_per_peer == 2);
  // Over PCIe and the sockets it took 44.75 ms.
  const nccl::Run gathered = test::ran(c, CollectiveKind::gather, 256 << 20);
  CHECK(gathered.time().count() < 0.01);
}

TEST_CASE("over PCIe no small call among GPUs that have NVLinks is quicker than over these") {
  for (const std::vector<int>& gpus : groups_of_eight())
    for (const Protocol protocol : nccl::protocols) {
      INFO(test::words(gpus) << to_string(protocol));
      const auto time = [&](const char* disabled) {
        const auto c =
            nccl::connect(test::built("dgx1-v100", 1), ranks_of(gpus),
                          test::environment({{"NCCL_NVB_DISABLE", disabled}, {"NCCL_PROTO", "LL,LL128,Simple"}}));
        REQUIRE(c.ok());
        return test::ran(*c, CollectiveKind::all_reduce, 1024, nccl::Algorithm::ring, protocol).time().count();
      };
      CHECK(time("1") >= time("0") * (1 - 1e-9));
    }
}

TEST_CASE("where rings of like nodes share NICs unevenly, the one that most go by is what both methods have") {
  // Of three channels two end at the GPU that has one NVLink of the group's; their closed form had three NICs for them.
  const Fabric two = test::built("dgx1-v100", 2);
  for (const int last : {4, 5, 6, 7}) {
    std::vector<int> ranks;
    for (const int first : {0, 8})
      for (const int gpu : {0, 1, 2, 3, last}) ranks.push_back(first + gpu);
    INFO(test::words(ranks));
    const nccl::Environment straight =
        test::environment({{"NCCL_NVB_DISABLE", "1"}, {"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}});
    const Communicator c = *nccl::connect(two, ranks_of(ranks), straight);
    REQUIRE(c.nics.uneven.has_value());
    CHECK(c.nics.uneven->of_rings == Approx(1.5));
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather})
      CHECK(simulation_over_closed(two, ranks_of(ranks), kind, 64 << 20, straight) == Approx(1).epsilon(0.1));
  }
}

TEST_CASE("rings that go back to their NIC by a GPU beside it have that NVLink, too, and no other channel has it") {
  // Both methods and the search had none of it: over GPUs 0, 1, 2, 4, 6 and 7 the simulation went by PCIe, half as much
  // again as the closed form.
  const Fabric two = test::built("dgx1-v100", 2);
  const nccl::Environment straight =
      test::environment({{"NCCL_NVB_DISABLE", "1"}, {"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}});
  for (const std::vector<int>& gpus : groups_of_eight()) {
    if (gpus.size() < 3) continue;
    std::vector<int> ranks = gpus;
    for (const int gpu : gpus) ranks.push_back(8 + gpu);
    INFO(test::words(ranks));
    CHECK(simulation_over_closed(two, ranks_of(ranks), CollectiveKind::all_gather, 64 << 20, straight) ==
          Approx(1).epsilon(0.1));
  }
}

TEST_CASE("what a root relays to other GPUs' NICs passes the NVLinks to those, and no others") {
  // The closed form had it on the busiest link of the root's parts for GPUs: an eighth more than simulated.
  const Fabric two = test::built("dgx1-v100", 2);
  for (const std::vector<int>& ranks :
       std::vector<std::vector<int>>{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                     {0, 1, 2, 3, 4, 5, 6, 7, 8, 10},
                                     {0, 1, 2, 3, 4, 5, 6, 7, 8, 11}})
    for (const CollectiveKind kind : {CollectiveKind::scatter, CollectiveKind::gather, CollectiveKind::alltoall}) {
      INFO(test::words(ranks) << to_string(kind));
      CHECK(simulation_over_closed(two, ranks_of(ranks), kind, 64 << 20) == Approx(1).epsilon(0.02));
    }
}

TEST_CASE("over every group of a cube mesh's GPUs, also of two nodes, both methods agree within a tenth") {
  const Fabric fabric = test::built("dgx1-v100", 1);
  for (const std::vector<int>& gpus : groups_of_eight())
    for (const CollectiveKind kind :
         {CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::sendrecv, CollectiveKind::all_gather}) {
      INFO(test::words(gpus) << to_string(kind));
      CHECK(simulation_over_closed(fabric, ranks_of(gpus), kind, 16 << 20) == Approx(1).epsilon(0.1));
    }
  // Of the first node three GPUs and one of the other: their gather's simulation took 0.22 of its closed form.
  const Fabric two = test::built("dgx1-v100", 2);
  for (const std::vector<int>& gpus : std::vector<std::vector<int>>{{1, 2, 5, 9}, {1, 2, 5, 9, 10, 13}, {0, 4, 6, 8}})
    for (const CollectiveKind kind : {CollectiveKind::alltoall, CollectiveKind::gather, CollectiveKind::scatter,
                                      CollectiveKind::sendrecv, CollectiveKind::broadcast}) {
      INFO(test::words(gpus) << to_string(kind));
      CHECK(simulation_over_closed(two, ranks_of(gpus), kind, 256 << 20) == Approx(1).epsilon(0.1));
    }
}

TEST_CASE("over two nodes every group of a cube mesh has channels, and leaves by the NICs that they end at") {
  // Where one GPU is beside the only NIC no way ends beside it: those go back over NVLink, or all go over PCIe. A
  // search without either had one channel of 0.12 GB/s.
  for (const char* machine : {"aws-p3dn", "dgx1-v100", "dgx1-v100-roce"}) {
    const nccl::System system = nccl::system_of(test::shipped(machine), 70, {});
    for (const std::vector<int>& gpus : groups_of_eight()) {
      INFO(machine << ", " << test::words(gpus));
      const auto found = nccl::search(system, gpus, 2);
      REQUIRE(found.has_value());
      CHECK(found->ring.channels * found->ring.between.value() >= 4e9);
      CHECK(found->tree.channels == found->ring.channels);
    }
  }
  // Relayed to the receiver's rail, which takes NVLinks of other channels, these were simulated up to 1.31 of it.
  const Fabric two = test::built("dgx1-v100", 2);
  for (const std::vector<int>& gpus : std::vector<std::vector<int>>{{1, 2, 4, 5, 6}, {1, 2, 5, 6}, {2, 3, 4, 5, 7}}) {
    std::vector<int> both = gpus;
    for (const int gpu : gpus) both.push_back(gpu + 8);
    INFO(test::words(gpus));
    CHECK(simulation_over_closed(two, ranks_of(both), CollectiveKind::all_gather, 64 << 20) == Approx(1).epsilon(0.1));
  }
}

namespace {

/// Eight A40 on PCIe, of which these pairs have four NVLinks of 14.0625 GB/s between them.
Communicator of_a40(const std::vector<std::pair<int, int>>& pairs, const std::vector<int>& gpus,
                    const std::vector<std::pair<std::string, std::string>>& variables = {}) {
  TopologySpec spec = test::shipped("pcie-a100");
  spec.gpu.model = "A40";
  LinkGroup bridges = spec.links.front();
  bridges.from = bridges.to = spec.links.front().from;
  bridges.wiring = Wiring::pairs;
  bridges.pairs = pairs;
  bridges.kind = LinkKind::nvlink;
  bridges.bandwidth = Bandwidth(4 * 14.0625e9);
  spec.links.push_back(std::move(bridges));
  const Result<Fabric> fabric = Fabric::build(spec, 1);
  INFO(to_text(fabric.errors()));
  REQUIRE(fabric.ok());
  const auto c = nccl::connect(*fabric, ranks_of(gpus), test::environment(variables));
  REQUIRE(c.ok());
  return *c;
}

}  // namespace

TEST_CASE("a group's own GPUs say what NVLinks a GPU has, not the node's first") {
  const Communicator first = of_a40({{0, 1}}, {0, 1}), later = of_a40({{2, 3}}, {2, 3});
  for (const Communicator& c : {first, later}) {
    CHECK(c.nvlink);
    CHECK(c.ring.type_inside == PathType::nvl);
    CHECK(c.gpu.nvlink.value() == Approx(4 * 14.0625e9));
  }
  CHECK(later.ring.inside == first.ring.inside);
  CHECK(later.gpu.pair_rates.all == first.gpu.pair_rates.all);
  // Those of others are not theirs.
  CHECK_FALSE(of_a40({{2, 3}}, {0, 1}).nvlink);
  CHECK_FALSE(of_a40({{2, 3}}, {0, 1}).gpu.has_nvlinks);
  CHECK_FALSE(of_a40({{2, 3}}, {2}).gpu.nvlink > Bandwidth());
}

TEST_CASE("a pair has two channels for each NVLink, whose speed is its generation's") {
  const std::vector<std::pair<std::string, std::string>> many{{"NCCL_MIN_P2P_NCHANNELS", "16"}};
  CHECK(of_a40({{0, 1}}, {0, 1}, many).p2p_channels_per_peer == 8);  // four links of 12 GB/s as NCCL counts them
}
