// 1,000 random contended cases on random trees and meshes: every message must end when SimGrid says so.
//
// The largest relative difference of any end is printed; above `most` the program says where and exits 1. Links have no
// latency here, because CM02 weighs flows by it. Sizes are hundreds of megabytes, so that rounding up to whole
// picoseconds is 1e-12 of a message.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "cases.hpp"
#include "collcast/engine/engine.hpp"

namespace {

using namespace collcast;
using namespace bench;

constexpr double most = 1e-9;

std::vector<PeerSender> random_senders(Dice& dice, int hosts) {
  std::vector<PeerSender> senders;
  for (int i = 1 + dice.roll(24); i > 0; --i) {
    PeerSender sender;
    sender.host = dice.roll(hosts);
    sender.start_s = dice.roll(3) == 0 ? 0 : dice.between(0, 2);
    for (int m = 1 + dice.roll(4); m > 0; --m)
      sender.messages.push_back({(sender.host + 1 + dice.roll(hosts - 1)) % hosts, std::floor(dice.between(1e8, 1e9))});
    senders.push_back(std::move(sender));
  }
  return senders;
}

/// Largest relative difference of an end, or nothing if a tool failed.
std::optional<double> difference(const Fabric& fabric, const std::vector<PeerSender>& senders) {
  PeerMachine machine = as_peer(fabric, senders);
  machine.precision = 1e-13;
  const auto peer = simgrid_senders(machine, senders);
  const auto ours = simulate(fabric, as_schedule(senders));
  if (!peer || !ours) return std::nullopt;
  double worst = 0;
  std::size_t op = 0, message = 0;
  for (const PeerSender& sender : senders) {
    ++op;  // its start
    for (std::size_t i = 0; i < sender.messages.size(); ++i, ++op, ++message) {
      const double end = to_seconds(ours.value().ops[op].finish).count();
      worst = std::max(worst, std::abs(end / peer->finish_s[message] - 1));
    }
  }
  return worst;
}

}  // namespace

int main(int count, char** arguments) {
  const int cases = count > 1 ? std::atoi(arguments[1]) : 1000;
  double worst = 0;
  std::size_t messages = 0, shared = 0;
  for (int i = 0; i < cases; ++i) {
    Dice dice(static_cast<std::uint64_t>(i));
    const int hosts = 2 + dice.roll(15);
    const Fabric fabric = random_machine(dice, hosts);
    const std::vector<PeerSender> senders = random_senders(dice, hosts);
    const auto apart = difference(fabric, senders);
    if (!apart || *apart > most) {
      fmt::print("case {}: {}\n", i, apart ? fmt::format("ends differ by {:.3g}", *apart) : "a tool failed");
      return 1;
    }
    worst = std::max(worst, *apart);
    for (const PeerSender& sender : senders) messages += sender.messages.size();
    shared += senders.size() > 1 ? 1 : 0;
  }
  fmt::print("{} cases, {} with several senders, {} messages: ends differ by at most {:.2g} (relative)\n", cases,
             shared, messages, worst);
  return 0;
}
