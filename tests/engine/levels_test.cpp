// Rates kept up to date by what changes are the rates worked out from nothing, bit for bit.
#include "engine/levels.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include "collcast/engine/engine.hpp"
#include "engine/times.hpp"
#include "support/dice.hpp"
#include "support/small_fabrics.hpp"

using namespace collcast;
using namespace collcast::engine;
using namespace collcast::test;

namespace {

/// Flows that come and go on a leaf-spine network whose links all have other rates, or only a few different ones.
class ComingAndGoing {
 public:
  ComingAndGoing(int hosts, bool with_ties, Dice& dice)
      : dice_(dice),
        hosts_(hosts),
        fabric_(network(hosts, with_ties, dice)),
        connections_(fabric_, true),
        links_(connections_),
        levels_(links_) {
    links_.begin(fabric_.links());
    levels_.begin();
  }

  void come(TrafficClass traffic = {}) {
    const std::uint32_t flow = connections_.acquire();
    const int from = dice_.roll(hosts_), to = (from + 1 + dice_.roll(hosts_ - 1)) % hosts_;
    connections_.connect(flow, {Rank(static_cast<std::uint32_t>(from)), Rank(static_cast<std::uint32_t>(to))},
                         Volume(1e6), traffic);
    const ConnectionRoute& route = connections_.route(flow);
    for (std::uint32_t i = route.first; i < route.first + route.length; ++i) {
      links_.enter(flow, i, 0);
      changed_.push_back(connections_.crossing(i).link);
    }
    flows_.push_back(flow);
  }
  void go() {
    const auto place = flows_.begin() + dice_.roll(static_cast<int>(flows_.size()));
    for (const Crossing& crossing : connections_.crossings(*place)) {
      links_.leave(crossing, 0);
      changed_.push_back(crossing.link);
    }
    connections_.release(*place);
    flows_.erase(place);
  }
  bool settle(std::size_t visits = ~std::size_t{0}) {
    const bool settled = levels_.settle(changed_, visits);
    changed_.clear();
    return settled;
  }

  bool rates_are_right() const {
    std::vector<Bandwidth> capacity, rates(flows_.size());
    for (const Link& link : fabric_.links()) capacity.push_back(link.bandwidth);
    std::vector<std::vector<LinkId>> routes;
    for (const std::uint32_t flow : flows_) {
      routes.emplace_back();
      for (const Crossing& crossing : links_.links_of(flow)) routes.back().emplace_back(crossing.link);
    }
    std::vector<FlowDemand> demands;
    for (const auto& route : routes) demands.push_back({route, 0});
    max_min_rates(demands, capacity, rates);
    for (std::size_t i = 0; i < flows_.size(); ++i)
      if (levels_.rate(flows_[i]) != rates[i].value()) return false;
    return true;
  }
  std::size_t flows() const { return flows_.size(); }
  std::size_t touched() const { return levels_.touched().size(); }

 private:
  static Fabric network(int hosts, bool with_ties, Dice& dice) {
    LeafSpineNetwork spec;
    spec.rail_optimized = false;
    spec.nodes_per_leaf = 8;
    spec.spines = 4;
    spec.oversubscription = 4;
    spec.bandwidth = gb_per_s(10);
    const Fabric equal = teaching_fabric(hosts, spec);
    std::vector<Link> links(equal.links().begin(), equal.links().end());
    for (Link& link : links)
      link.bandwidth = Bandwidth(link.bandwidth.value() * (with_ties ? dice.pick({1.0, 0.5}) : dice.between(0.2, 2)));
    return equal.with_links(std::move(links));
  }

  Dice& dice_;
  int hosts_;
  Fabric fabric_;
  Connections connections_;
  SharedLinks links_;
  Levels levels_;
  std::vector<std::uint32_t> flows_, changed_;
};

}  // namespace

TEST_CASE("rates after every coming and going are those worked out from nothing") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    Dice dice(seed);
    ComingAndGoing traffic(8 << dice.roll(4), dice.roll(2) == 0, dice);
    for (int round = 0; round < 200; ++round) {
      for (int coming = dice.roll(4); coming > 0; --coming) traffic.come();
      for (int going = dice.roll(4); going > 0 && traffic.flows() > 0; --going) traffic.go();
      REQUIRE(traffic.settle());
      REQUIRE(traffic.rates_are_right());
    }
  }
}

TEST_CASE("a flow more touches few of a thousand") {
  Dice dice(1);
  ComingAndGoing traffic(512, false, dice);
  for (int flow = 0; flow < 1000; ++flow) traffic.come();
  REQUIRE(traffic.settle());
  std::size_t touched = 0;
  for (int change = 0; change < 100; ++change) {
    if (change % 2 == 0)
      traffic.come();
    else
      traffic.go();
    REQUIRE(traffic.settle());
    REQUIRE(traffic.rates_are_right());
    touched += traffic.touched();
  }
  CHECK(touched < 100 * 100);
}

TEST_CASE("levels are not settled by too few visits, nor for several priorities") {
  Dice dice(1);
  ComingAndGoing few(64, false, dice);
  for (int flow = 0; flow < 100; ++flow) few.come();
  CHECK_FALSE(few.settle(50));

  ComingAndGoing mixed(8, false, dice);
  for (int flow = 0; flow < 20; ++flow) mixed.come(flow % 2);
  CHECK_FALSE(mixed.settle());
}
