// Slow and failed links: what they do to rates and routes, how they are named, and who is cut off.
#include "collcast/topology/faults.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "../support/dice.hpp"
#include "machines.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

MachineFault failed(const std::string& link) {
  LinkFault fault;
  fault.link = link;
  fault.failed = true;
  return {fault, {"f", 1, 1}};
}

MachineFault slow(const std::string& link, double share) {
  LinkFault fault;
  fault.link = link;
  fault.share = share;
  return {fault, {"f", 1, 1}};
}

Fabric faulty(const Fabric& fabric, const std::vector<MachineFault>& faults) {
  const Result<Fabric> out = with_faults(fabric, faults);
  INFO(to_text(out.errors()));
  REQUIRE(out.ok());
  return *out;
}

std::string refusal(const Fabric& fabric, const std::vector<MachineFault>& faults) {
  const Result<Fabric> out = with_faults(fabric, faults);
  REQUIRE(!out.ok());
  return to_text(out.errors());
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Every way of the machine is one, and none crosses a link without bandwidth; they are given back as link names.
std::set<std::string> check_ways(const Fabric& fabric, int lanes) {
  std::set<std::string> used;
  for (int from = 0; from < fabric.rank_count(); ++from)
    for (int to = 0; to < fabric.rank_count(); ++to)
      for (int lane = 0; lane < lanes && from != to; ++lane) {
        INFO(from << " to " << to << ", lane " << lane);
        const std::vector<std::string> way = stops(fabric, from, to, lane);  // also checks that the links join
        REQUIRE(way.size() >= 2);
        CHECK(way.front() == stops(fabric, from, (from + 1) % fabric.rank_count(), 0).front());
        for (const LinkId link : links_of(fabric, from, to, lane)) {
          CHECK(fabric.links()[link.value()].bandwidth.value() > 0);
          used.insert(fabric.link_name(link));
        }
      }
  return used;
}

}  // namespace

TEST_CASE("a slow link is slower where it is named: one direction, a cable, or all links of a device") {
  const Fabric fabric = build(teaching(star()), 4);  // 10 GB/s
  const Fabric one = faulty(fabric, {slow("host1 -> switch", 0.5)});
  CHECK(one.path(Rank(1), Rank(2)).bandwidth == gb_per_s(5));
  CHECK(one.path(Rank(2), Rank(1)).bandwidth == gb_per_s(10));
  CHECK(faulty(fabric, {slow("switch<->host1", 0.5)}).path(Rank(2), Rank(1)).bandwidth == gb_per_s(5));
  const Fabric device = faulty(fabric, {slow("host1", 0.5)});
  CHECK(device.path(Rank(1), Rank(2)).bandwidth == gb_per_s(5));
  CHECK(device.path(Rank(2), Rank(1)).bandwidth == gb_per_s(5));
  CHECK(device.path(Rank(2), Rank(3)).bandwidth == gb_per_s(10));
}

TEST_CASE("several faults of a link add up, and a rate or a latency is said as such") {
  const Fabric fabric = build(teaching(star()), 4);
  LinkFault more;
  more.link = "host1 -> switch";
  more.bandwidth = gb_per_s(4);
  more.added_latency = ns(700);
  const Fabric worn = faulty(fabric, {MachineFault{more}, slow("host1 -> switch", 0.5)});
  // 10 GB/s, of which 4 are left, of which half is: 2.
  CHECK(worn.path(Rank(1), Rank(2)).bandwidth == gb_per_s(2));
  CHECK(worn.path(Rank(1), Rank(2)).latency.count() ==
        Approx((fabric.path(Rank(1), Rank(2)).latency + ns(700)).count()));
  CHECK(to_text(MachineFault{more}) == "host1 -> switch: 4 GB/s, 700 ns more latency");
  CHECK(to_text(slow("host1", 0.5)) == "host1: 50% of its bandwidth");
  CHECK(to_text(failed("host1")) == "host1: failed");
  CHECK(to_text(MachineFault{GpuFault{12, 0.8}}) == "gpu 12: 80% of its compute");
  CHECK(to_text(MachineFault{GpuFault{{8, 15}, 0.8}}) == "gpus 8-15: 80% of their compute");
  CHECK(to_text(MachineFault{GpuFault{{1, 1, true}, 0.8, Jitter{0.05, JitterShape::normal, 3}}}) ==
        "node 1: 80% of their compute, 5% jitter, normal, seed 3");
  MachineFault passing{GpuFault{Gpus::all(), 1, Jitter{0.03, JitterShape::exponential, 7}}};
  passing.from = Seconds(2);
  passing.until = Seconds(3);
  CHECK(to_text(passing) == "all gpus: 3% jitter, exponential, seed 7, from 2 s, until 3 s");
}

TEST_CASE("a rate that some links at a device do not exceed anyway is told, link by link") {
  const Fabric fabric = build(dgx(rails(2, 2, 1)), 2);
  const auto told = [&](const char* link, double rate) {
    LinkFault fault;
    fault.link = link;
    fault.bandwidth = gb_per_s(rate);
    const std::vector<MachineFault> faults{{fault, {"f", 1, 1}}};
    return rates_without_effect(fabric, faults);
  };
  CHECK(told("node0.nic3", 20).empty());
  const std::vector<std::string> some = told("node0.nic3", 30);  // PCIe has 25, the cable 50
  REQUIRE(some.size() == 1);
  CHECK(has(some[0], "changes nothing at 'node0."));
  CHECK(has(some[0], "and its like, which have 25 GB/s"));
  CHECK(told("node0.nic3", 55).size() == 2);
  CHECK(told("node0.nic3 -> leaf3", 50).size() == 1);
  CHECK(told("node0.nic3 -> leaf3", 49).empty());
}

TEST_CASE("the node of a link is where it ends, whatever digits the name of its devices ends with") {
  for (const std::string name : {"h1", "gh200"}) {
    INFO(name);
    TopologySpec spec = teaching(star());
    spec.devices.front().name = spec.network_devices = name;
    const Fabric fabric = build(spec, 4);
    // Node 3's device is the name and a 3.
    CHECK(has(refusal(fabric, {failed(name + "3")}), "failed links cut off rank 3 from all others"));
    CHECK(touched_nodes(fabric, faulty(fabric, {slow(name + "2", 0.5)})) ==
          std::vector<bool>{false, false, true, false});
  }
}

TEST_CASE("what faults of one link leave does not depend on their order") {
  const Fabric fabric = build(teaching(star()), 4);
  LinkFault rate;
  rate.link = "host1";
  rate.bandwidth = gb_per_s(6);
  LinkFault less = rate;
  less.bandwidth = gb_per_s(3);
  less.added_latency = ns(0.1);
  LinkFault late = rate;
  late.bandwidth = {};
  late.added_latency = ns(700.3);
  std::vector<MachineFault> faults{MachineFault{rate}, slow("host1", 0.7), MachineFault{less},
                                   slow("host1", 0.3), slow("host1", 0.9), MachineFault{late}};
  const Fabric one = faulty(fabric, faults);
  CHECK(one.path(Rank(1), Rank(2)).bandwidth.value() == Approx(3e9 * 0.7 * 0.3 * 0.9));
  Dice dice(20261124);
  for (int round = 0; round < 50; ++round) {
    std::vector<MachineFault> other;
    for (const int i : dice.permutation(static_cast<int>(faults.size())))
      other.push_back(faults[static_cast<std::size_t>(i)]);
    const Fabric two = faulty(fabric, other);
    for (std::size_t l = 0; l < fabric.links().size(); ++l) {
      REQUIRE(one.links()[l].bandwidth == two.links()[l].bandwidth);
      REQUIRE(one.links()[l].latency == two.links()[l].latency);
    }
  }
}

TEST_CASE("faults told together leave what each leaves after the others, however their links are named") {
  const Fabric fabric = build(dgx(rails(4, 2, 1)), 4);
  std::vector<MachineFault> all;
  for (int node = 0; node < 4; ++node) {
    const std::string at = "node" + std::to_string(node);
    for (int i = 0; i < 8; ++i) {
      const std::string gpu = at + ".gpu" + std::to_string(i), plane = at + ".nvswitch0";
      all.push_back(slow(i % 3 == 0 ? gpu + " -> " + plane : i % 3 == 1 ? plane + "<->" + gpu : gpu, 0.5));
    }
    all.push_back(slow(at + ".nic0", 0.25));
    all.push_back(MachineFault{GpuFault{node, 0.8}});
  }
  const Fabric together = faulty(fabric, all);
  Fabric one_by_one = fabric;
  for (const MachineFault& fault : all) one_by_one = faulty(one_by_one, {fault});
  std::size_t slower = 0;
  for (std::size_t l = 0; l < fabric.links().size(); ++l) {
    CHECK(together.links()[l].bandwidth == one_by_one.links()[l].bandwidth);
    if (together.links()[l].bandwidth < fabric.links()[l].bandwidth) ++slower;
  }
  CHECK(slower > 4 * 8);
  std::vector<MachineFault> rates;
  for (const MachineFault& fault : all)
    if (fault.link() != nullptr) {
      LinkFault rate = *fault.link();
      rate.share = 1;
      rate.bandwidth = gb_per_s(200);
      rates.push_back({rate, {"f", 1, 1}});
    }
  std::vector<std::string> each;
  for (const MachineFault& rate : rates)
    for (std::string& one : rates_without_effect(fabric, std::vector{rate})) each.push_back(std::move(one));
  CHECK(!each.empty());
  CHECK(rates_without_effect(fabric, rates) == each);
}

TEST_CASE("a fault that leaves everything is the machine as it was") {
  const Fabric fabric = build(dgx(rails(4, 2, 1)), 2);
  const Fabric same = faulty(fabric, {slow("node0.nic3", 1)});
  for (std::size_t l = 0; l < fabric.links().size(); ++l) {
    CHECK(same.links()[l].bandwidth == fabric.links()[l].bandwidth);
    CHECK(same.links()[l].latency == fabric.links()[l].latency);
  }
  CHECK(touched_nodes(fabric, same) == std::vector<bool>{false, false});
  CHECK(touched_nodes(fabric, faulty(fabric, {slow("node1.nic3", 0.5)})) == std::vector<bool>{false, true});
  // What leaves and spines carry may be anybody's.
  CHECK(touched_nodes(fabric, faulty(fabric, {slow("leaf0 -> spine1", 0.5)})) == std::vector<bool>{true, true});
}

TEST_CASE("a GPU whose NIC has failed takes the nearest that is left, and only its way changes") {
  const Fabric fabric = build(dgx(rails(4, 2, 1)), 3);
  const Fabric broken = faulty(fabric, {failed("node1.nic2")});
  for (const std::string& link : check_ways(broken, 16)) CHECK(!has(link, "node1.nic2"));
  // NICs 2 and 3 are on the switch of GPUs 2 and 3.
  const std::vector<std::string> way = stops(broken, 8 + 2, 16);
  CHECK(std::find(way.begin(), way.end(), "node1.nic3") != way.end());
  for (const int from : {0, 3, 7, 16, 23})
    for (const int to : {1, 17}) CHECK((from == to || links_of(broken, from, to) == links_of(fabric, from, to)));
}

TEST_CASE("without NVLink to the switch a GPU goes over PCIe, and over the network where nothing else is left") {
  const Fabric fabric = build(dgx(rails(4, 2, 1)), 2);
  const Fabric broken = faulty(fabric, {failed("node0.gpu5 <-> node0.nvswitch0")});
  for (const std::string& link : check_ways(broken, 2)) CHECK(link != "node0.gpu5 -> node0.nvswitch0");
  const std::vector<std::string> way = stops(broken, 5, 0);
  CHECK(std::none_of(way.begin(), way.end(), [](const std::string& stop) { return has(stop, "nvswitch"); }));

  // GPU i with NIC i on a switch of its own: without NVLink only the spines join them.
  const Fabric rails_only = build(isolated_rails(4, rails(2, 2, 1)), 2);
  const Fabric apart = faulty(rails_only, {failed("node0.nvswitch0")});
  const std::vector<std::string> around = stops(apart, 1, 2);
  CHECK(std::count_if(around.begin(), around.end(), [](const std::string& stop) { return has(stop, "spine"); }) == 1);
  check_ways(apart, 3);
}

TEST_CASE("another spine carries what a failed uplink did") {
  for (const bool by_rails : {true, false}) {
    const Fabric fabric = build(dgx(by_rails ? rails(1, 3, 1) : plain_leaves(1, 3, 1)), 3);
    const Fabric broken = faulty(fabric, {failed("leaf0 <-> spine1"), failed("leaf1 <-> spine2")});
    for (const std::string& link : check_ways(broken, 24)) {
      CHECK(link != "leaf0 -> spine1");
      CHECK(link != "spine2 -> leaf1");
    }
  }
}

TEST_CASE("a ring goes round the other way, a mesh and a torus round the hole") {
  const Fabric ring = build(teaching(torus({}, true)), 6);
  const Fabric broken = faulty(ring, {failed("host1 <-> host2")});
  CHECK(stops(broken, 1, 2) == std::vector<std::string>{"host1", "host0", "host5", "host4", "host3", "host2"});
  CHECK(links_of(broken, 3, 4) == links_of(ring, 3, 4));
  check_ways(broken, 2);
  for (const bool wrap : {false, true}) {
    const Fabric grid = build(teaching(torus({3, 4}, wrap)), 12);
    const Fabric holed = faulty(grid, {failed("host5 <-> host6"), failed("host1 <-> host5")});
    check_ways(holed, 2);
    // Three hops go round one square.
    CHECK(links_of(holed, 5, 6).size() == 3);
  }
}

TEST_CASE("random failures leave ways or are refused, and no way uses a failed link") {
  Dice dice(12345);
  const std::vector<Fabric> machines{build(dgx(rails(2, 2, 1)), 3), build(pcie_box(star()), 3),
                                     build(teaching(torus({3, 3}, true)), 9), build(teaching(torus({2, 4}, false)), 8)};
  int whole = 0, cut = 0;
  for (int round = 0; round < 60; ++round) {
    const Fabric& fabric = machines[static_cast<std::size_t>(dice.roll(4))];
    std::vector<MachineFault> faults;
    const int count = 1 + dice.roll(4), links = static_cast<int>(fabric.links().size());
    for (int i = 0; i < count; ++i)
      faults.push_back(failed(fabric.link_name(LinkId(static_cast<std::uint32_t>(dice.roll(links))))));
    const Result<Fabric> broken = with_faults(fabric, faults);
    CAPTURE(round);
    if (broken) {
      check_ways(*broken, 2);
      ++whole;
    } else {
      CHECK(has(to_text(broken.errors()), "failed links cut off rank"));
      ++cut;
    }
  }
  CHECK(whole > 5);
  CHECK(cut > 5);
}

TEST_CASE("ranks that are cut off are named") {
  const Fabric star_of_4 = build(teaching(star()), 4);
  CHECK(has(refusal(star_of_4, {failed("host2")}), "failed links cut off rank 2 from all others"));
  CHECK(has(refusal(star_of_4, {failed("switch")}), "failed links cut off ranks 0, 1, 2, 3 from all others"));
  // A line of 2 x 2 loses two cables: 0 and 1 stay together, and so do 2 and 3.
  const Fabric mesh = build(teaching(torus({2, 2}, false)), 4);
  CHECK(has(refusal(mesh, {failed("host0 <-> host2"), failed("host1 <-> host3")}),
            "failed links cut off rank 0 from rank 2, and more such pairs"));
  CHECK(has(refusal(build(dgx(star()), 2), {failed("switch")}), "failed links cut off rank 0 from rank 8"));
}

TEST_CASE("names that are of nothing are answered with the nearest, rates above the link's with its own") {
  const Fabric fabric = build(dgx(rails(4, 2, 1)), 2);
  const std::string text = refusal(fabric, {slow("node0.nik3", 0.5), slow("node0.gpu0 -> node0.gpu1", 0.5),
                                            failed("leaf0 -> spin1"), MachineFault{GpuFault{16, 0.5}, {"f", 2, 1}}});
  CHECK(has(text, "there is no link at 'node0.nik3'"));
  CHECK(has(text, "did you mean 'node0.nic3'?"));
  CHECK(has(text, "no link joins 'node0.gpu0' and 'node0.gpu1'"));
  CHECK(has(text, "'node0.gpu0' has links to: node0.nvswitch0, node0.plx0"));
  CHECK(has(text, "there is no link at 'spin1'"));
  CHECK(has(text, "did you mean 'spine1'?"));
  CHECK(has(text, "there is no GPU 16: the machine has 16"));
  CHECK(has(text, "expected 0 to 15"));
  LinkFault fast;
  fast.link = "node0.gpu0";
  fast.bandwidth = gb_per_s(301);
  CHECK(
      has(refusal(fabric, {MachineFault{fast, {"f", 1, 1}}}), "'node0.gpu0' has 300 GB/s, and 301 GB/s would be more"));
}
