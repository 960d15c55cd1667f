// What GPUs have to their host: links that several share, and machines without a way.
#include "collcast/topology/host_link.hpp"

#include <catch2/catch.hpp>

#include "machines.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

double gigabytes_per_s(const TopologySpec& spec) {
  const std::optional<Bandwidth> rate = host_bandwidth(spec);
  return rate ? rate->value() / 1e9 : 0;
}

LinkGroup& link_between(TopologySpec& spec, const std::string& from, const std::string& to) {
  for (LinkGroup& group : spec.links)
    if (group.from == from && group.to == to) return group;
  FAIL("no links from " << from << " to " << to);
  return spec.links.front();
}

}  // namespace

TEST_CASE("two GPUs share the link of their PCIe switch to its CPU, and NVLink is no way there") {
  TopologySpec spec = dgx(star());
  CHECK(gigabytes_per_s(spec) == Approx(25.0 / 2));
  link_between(spec, "plx", "cpu").bandwidth = gb_per_s(100);  // then each GPU's own is the slowest
  CHECK(gigabytes_per_s(spec) == Approx(25));
  link_between(spec, "gpu", "nvswitch").bandwidth = gb_per_s(1);
  CHECK(gigabytes_per_s(spec) == Approx(25));
  link_between(spec, "cpu", "cpu").bandwidth = gb_per_s(1);  // the nearest CPU is a GPU's host
  CHECK(gigabytes_per_s(spec) == Approx(25));
}

TEST_CASE("GPUs on CPUs themselves have their own links") { CHECK(gigabytes_per_s(pcie_box(star())) == Approx(25)); }

TEST_CASE("the way of fewest links counts, and the slowest GPU") {
  TopologySpec spec = pcie_box(star());
  // GPU 3's link is slower than the others'; all of them are still reached.
  link_between(spec, "gpu", "cpu").wiring = Wiring::pairs;
  link_between(spec, "gpu", "cpu").pairs = {{0, 0}, {1, 0}, {2, 1}};
  LinkGroup slow = link_between(spec, "gpu", "cpu");
  slow.pairs = {{3, 1}};
  slow.bandwidth = gb_per_s(8);
  spec.links.push_back(slow);
  CHECK(gigabytes_per_s(spec) == Approx(8));
}

TEST_CASE("no more bandwidth of any link makes the way slower, and no less makes it faster") {
  for (const TopologySpec& machine : {dgx(star()), pcie_box(star())}) {
    const double as_it_is = gigabytes_per_s(machine);
    for (std::size_t l = 0; l < machine.links.size(); ++l) {
      TopologySpec wider = machine, narrower = machine;
      wider.links[l].bandwidth = machine.links[l].bandwidth * 3.0;
      narrower.links[l].bandwidth = machine.links[l].bandwidth / 3.0;
      CHECK(gigabytes_per_s(wider) >= as_it_is);
      CHECK(gigabytes_per_s(narrower) <= as_it_is);
    }
  }
}

TEST_CASE("where a GPU reaches no CPU, or a node has none, there is no way") {
  CHECK_FALSE(host_bandwidth(isolated_rails(4, star())));
  CHECK_FALSE(host_bandwidth(teaching(star())));
  TopologySpec broken = dgx(star());
  link_between(broken, "plx", "cpu").to = "cqu";
  CHECK_FALSE(host_bandwidth(broken));
}
