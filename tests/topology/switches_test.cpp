// Several NVSwitches of a node: one where they are alike to the GPUs, told apart where not.
#include "collcast/topology/switches.hpp"

#include <catch2/catch.hpp>

#include "machines.hpp"
#include "support/dice.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

/// Four GPUs and no links yet.
TopologySpec bare(int switches) {
  TopologySpec spec;
  spec.name = spec.file = "test";
  spec.devices = {{"gpu", DeviceKind::gpu, 4, {}}, {"sw", DeviceKind::nvswitch, switches, {"test", 7, 3}}};
  return spec;
}

LinkGroup nvlink(double rate) {
  LinkGroup link;
  link.from = "gpu";
  link.to = "sw";
  link.kind = LinkKind::nvlink;
  link.bandwidth = gb_per_s(rate);
  link.latency = ns(500);
  link.source = "a data sheet";
  return link;
}

LinkGroup pairs(double rate, std::vector<std::pair<int, int>> listed) {
  LinkGroup link = nvlink(rate);
  link.wiring = Wiring::pairs;
  link.pairs = std::move(listed);
  return link;
}

/// `switches` of them with `rate` each.
TopologySpec planes(int switches, double rate) {
  TopologySpec spec = bare(switches);
  spec.links = {nvlink(rate)};
  return spec;
}

void check_same(const TopologySpec& spec, const TopologySpec& one) {
  const Fabric fabric = build(spec, 1), expected = build(one, 1);
  REQUIRE(fabric.links().size() == expected.links().size());
  for (std::size_t i = 0; i < fabric.links().size(); ++i) {
    CHECK(fabric.links()[i].bandwidth.value() == Approx(expected.links()[i].bandwidth.value()).epsilon(1e-12));
    CHECK(fabric.links()[i].latency == expected.links()[i].latency);
  }
}

}  // namespace

TEST_CASE("switches that every GPU is linked to are one with the sum, however the file says it") {
  Dice dice(5);
  for (int round = 0; round < 20; ++round) {
    const int switches = 2 + dice.roll(5);
    std::vector<double> rates;
    double sum = 0;
    for (int s = 0; s < switches; ++s) sum += rates.emplace_back(25.0 * (1 + dice.roll(6)));
    const TopologySpec one = planes(1, sum);

    // A list of pairs for each switch.
    TopologySpec listed = bare(switches);
    for (int s = 0; s < switches; ++s)
      listed.links.push_back(pairs(rates[static_cast<std::size_t>(s)], {{0, s}, {1, s}, {2, s}, {3, s}}));
    check_same(with_switches_joined(listed), one);

    // A group for each, its links the other way round.
    TopologySpec named = bare(1);
    named.links = {nvlink(rates[0])};
    for (int s = 1; s < switches; ++s) {
      const std::string name = "sw" + std::to_string(s);
      named.devices.push_back({name, DeviceKind::nvswitch, 1, {}});
      named.links.push_back(nvlink(rates[static_cast<std::size_t>(s)]));
      named.links.back().from = name;
      named.links.back().to = "gpu";
    }
    check_same(with_switches_joined(named), one);

    // A number of equal ones.
    check_same(with_switches_joined(planes(switches, 25)), planes(1, 25 * switches));
    CHECK(with_switches_joined(planes(switches, 25)).devices.back().stands_for == switches);
    CHECK(joined_switches_text(with_switches_joined(planes(switches, 25))).starts_with(std::to_string(switches)));
  }
}

TEST_CASE("what is spread over switches is there by the way to the farthest of them") {
  TopologySpec spec = bare(3);
  spec.links = {pairs(100, {{0, 0}, {1, 0}, {2, 0}, {3, 0}}), pairs(100, {{0, 1}, {1, 1}, {2, 1}, {3, 1}}),
                pairs(50, {{0, 2}, {1, 2}, {2, 2}, {3, 2}})};
  spec.links[1].latency = ns(900);
  spec.links[2].latency = ns(300);
  TopologySpec one = planes(1, 250);
  one.links[0].latency = ns(900);
  check_same(with_switches_joined(spec), one);
  CHECK(switches_apart(with_switches_joined(spec)).empty());
}

TEST_CASE("links that a GPU splits in its own way are one sum all the same: 5, 4, 4 and 5 of 18") {
  TopologySpec spec = bare(4);
  spec.links = {pairs(125, {{0, 0}, {0, 3}, {1, 1}, {1, 2}, {2, 0}, {2, 1}, {3, 2}, {3, 3}}),
                pairs(100, {{0, 1}, {0, 2}, {1, 0}, {1, 3}, {2, 2}, {2, 3}, {3, 0}, {3, 1}})};
  check_same(with_switches_joined(spec), planes(1, 450));
  CHECK(switches_apart(with_switches_joined(spec)).empty());
}

TEST_CASE("other links keep their places, and a joined machine joins to itself") {
  TopologySpec spec = planes(4, 100);
  spec.devices.insert(spec.devices.begin(), {"cpu", DeviceKind::cpu, 1, {}});
  LinkGroup pcie = nvlink(32);
  pcie.to = "cpu";
  pcie.kind = LinkKind::pcie;
  spec.links.insert(spec.links.begin(), pcie);
  const TopologySpec once = with_switches_joined(spec);
  REQUIRE(once.links.size() == 2);
  CHECK(once.links[0].to == "cpu");
  CHECK(once.links[1].bandwidth == gb_per_s(400));
  REQUIRE(once.devices.size() == 3);
  CHECK(once.devices[2].count == 1);
  const TopologySpec twice = with_switches_joined(once);
  CHECK(twice.devices[2].stands_for == 4);
  CHECK(twice.links[1].bandwidth == gb_per_s(400));
}

TEST_CASE("switches that are not alike stay apart, and it is said that routes take one of them") {
  const auto stays = [](const TopologySpec& spec) {
    const TopologySpec kept = with_switches_joined(spec);
    CHECK(kept.devices.size() == spec.devices.size());
    CHECK(kept.devices[1].count == spec.devices[1].count);
    const Diagnostics said = switches_apart(kept);
    REQUIRE(said.size() == 1);
    CHECK(said[0].where.line == 7);
    CHECK(said[0].message.find("goes through one of") != std::string::npos);
    CHECK(joined_switches_text(kept).empty());
  };
  // Two boards with trunks between their switches.
  TopologySpec boards = bare(4);
  LinkGroup trunks = pairs(100, {{0, 2}, {1, 3}});
  trunks.from = "sw";
  boards.links = {pairs(100, {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 2}, {2, 3}, {3, 2}, {3, 3}}), trunks};
  stays(boards);
  // One GPU with less, another latency of one GPU's, a GPU without a link to one of them.
  TopologySpec less = bare(2);
  less.links = {pairs(100, {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}, {3, 0}}), pairs(50, {{3, 1}})};
  stays(less);
  TopologySpec late = bare(2);
  late.links = {pairs(100, {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {0, 1}, {1, 1}, {2, 1}}), pairs(100, {{3, 1}})};
  late.links[1].latency = ns(900);
  stays(late);
  TopologySpec none = bare(2);
  none.links = {pairs(100, {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}, {3, 0}})};
  stays(none);
}

TEST_CASE("nothing is said of switches that no two GPUs share, nor of one") {
  TopologySpec apart = bare(2);
  LinkGroup trunk = pairs(100, {{0, 1}});
  trunk.from = "sw";
  apart.links = {pairs(100, {{0, 0}, {1, 0}, {2, 1}, {3, 1}}), trunk};
  CHECK(switches_apart(apart).empty());
  CHECK(switches_apart(planes(1, 100)).empty());
  CHECK(switches_apart(bare(2)).empty());
}

TEST_CASE("what is wrong with a machine is left for its check, with the places of its file") {
  TopologySpec wrong = planes(4, 100);
  wrong.links.push_back(pairs(100, {{0, 0}}));  // joined already
  CHECK(with_switches_joined(wrong).links.size() == 2);
  TopologySpec outside = bare(2);
  outside.links = {pairs(100, {{0, 0}, {9, 0}, {-1, 1}, {0, 7}})};
  CHECK(with_switches_joined(outside).devices[1].count == 2);
  CHECK(switches_apart(outside).empty());
  TopologySpec unknown = planes(2, 100);
  unknown.links[0].to = "nothing";
  CHECK(with_switches_joined(unknown).devices[1].count == 2);
}
