// Network model CM02 with all correction factors off, so that both tools solve the same problem; the
// simulated times are compared by the caller. Each rank is an actor that posts its send, waits for its
// receive, then for its send, round after round.
#include "simgrid_ring.hpp"

#include <simgrid/s4u.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace bench {

namespace {

namespace sg = simgrid::s4u;

PeerRun run_here(int ranks, int rounds, double slice_bytes, double bandwidth, double latency) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> words{"peer",
                                 "--cfg=network/model:CM02",
                                 "--cfg=network/TCP-gamma:0",
                                 "--cfg=network/crosstraffic:0",
                                 "--cfg=network/bandwidth-factor:1",
                                 "--cfg=network/latency-factor:1",
                                 "--cfg=network/weight-S:0",
                                 "--cfg=contexts/stack-size:64",
                                 "--log=root.threshold:error"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  sg::Engine engine(&count, arguments.data());

  sg::NetZone* zone = sg::create_full_zone("ring");
  std::vector<sg::Host*> hosts;
  for (int i = 0; i < ranks; ++i) hosts.push_back(zone->create_host("h" + std::to_string(i), 1e9));
  for (int i = 0; i < ranks; ++i) {
    sg::Link* link = zone->create_link("l" + std::to_string(i), bandwidth)->set_latency(latency)->seal();
    zone->add_route(hosts[static_cast<std::size_t>(i)]->get_netpoint(),
                    hosts[static_cast<std::size_t>((i + 1) % ranks)]->get_netpoint(), nullptr, nullptr,
                    {sg::LinkInRoute(link)}, false);
  }
  zone->seal();

  static int token = 0;
  for (int i = 0; i < ranks; ++i) {
    sg::Mailbox* out = sg::Mailbox::by_name("m" + std::to_string((i + 1) % ranks));
    sg::Mailbox* in = sg::Mailbox::by_name("m" + std::to_string(i));
    sg::Actor::create("r" + std::to_string(i), hosts[static_cast<std::size_t>(i)], [=] {
      for (int round = 0; round < rounds; ++round) {
        const sg::CommPtr send = out->put_async(&token, static_cast<std::uint64_t>(slice_bytes));
        in->get<int>();
        send->wait();
      }
    });
  }
  engine.run();

  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  return {wall.count(), sg::Engine::get_clock(), static_cast<double>(ranks) * rounds};
}

}  // namespace

std::optional<PeerRun> simgrid_ring(int ranks, int rounds, double slice_bytes, double bandwidth, double latency) {
  int channel[2];
  if (pipe(channel) != 0) return std::nullopt;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return std::nullopt;
  if (child == 0) {
    const PeerRun run = run_here(ranks, rounds, slice_bytes, bandwidth, latency);
    const bool written = write(channel[1], &run, sizeof run) == static_cast<ssize_t>(sizeof run);
    _exit(written ? 0 : 1);
  }
  close(channel[1]);
  PeerRun run;
  const bool complete = read(channel[0], &run, sizeof run) == static_cast<ssize_t>(sizeof run);
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!complete || status != 0) return std::nullopt;
  return run;
}

}  // namespace bench
