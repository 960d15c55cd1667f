#include "simgrid_peer.hpp"

#include <fmt/core.h>
#include <simgrid/s4u.hpp>

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace bench {

namespace {

namespace sg = simgrid::s4u;

using Hosts = std::vector<sg::Host*>;

Hosts build(const PeerMachine& machine) {
  sg::NetZone* zone = sg::create_full_zone("machine");
  Hosts hosts;
  for (int i = 0; i < machine.hosts; ++i) hosts.push_back(zone->create_host("h" + std::to_string(i), 1e9));
  std::vector<sg::Link*> links;
  for (const PeerLink& link : machine.links)
    links.push_back(
        zone->create_link("l" + std::to_string(links.size()), link.bandwidth)->set_latency(link.latency)->seal());
  for (const PeerRoute& route : machine.routes) {
    std::vector<sg::LinkInRoute> hops;
    for (const int link : route.links) hops.emplace_back(links[static_cast<std::size_t>(link)]);
    zone->add_route(hosts[static_cast<std::size_t>(route.from)]->get_netpoint(),
                    hosts[static_cast<std::size_t>(route.to)]->get_netpoint(), nullptr, nullptr, hops, false);
  }
  zone->seal();
  return hosts;
}

void post(const Hosts& hosts, const std::vector<PeerSender>& senders, PeerRun& run) {
  std::size_t first = 0;
  for (const PeerSender& sender : senders) {
    sg::Host* host = hosts[static_cast<std::size_t>(sender.host)];
    double* finish = run.finish_s.data() + first;
    first += sender.messages.size();
    sg::Actor::create("s", host, [&hosts, &sender, host, finish] {
      if (sender.start_s > 0) sg::this_actor::sleep_until(sender.start_s);
      double* end = finish;
      for (const PeerMessage& message : sender.messages) {
        sg::Comm::sendto(host, hosts[static_cast<std::size_t>(message.to)], static_cast<std::uint64_t>(message.bytes));
        *end++ = sg::Engine::get_clock();
      }
    });
  }
}

void post(const Hosts& hosts, const PeerRing& ring) {
  static int token = 0;
  const std::size_t size = ring.hosts.size();
  for (std::size_t i = 0; i < size; ++i) {
    sg::Mailbox* out = sg::Mailbox::by_name("m" + std::to_string((i + 1) % size));
    sg::Mailbox* in = sg::Mailbox::by_name("m" + std::to_string(i));
    const auto member = [&ring, out, in] {
      for (int round = 0; round < ring.rounds; ++round) {
        const sg::CommPtr send = out->put_async(&token, static_cast<std::uint64_t>(ring.bytes));
        in->get<int>();
        send->wait();
      }
    };
    // A mailbox with a receiver lets a message leave before that asks for it.
    in->set_receiver(
        sg::Actor::create("r" + std::to_string(i), hosts[static_cast<std::size_t>(ring.hosts[i])], member));
  }
}

double resident_bytes() {
  long all = 0, resident = 0;
  if (std::FILE* statm = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(statm, "%ld %ld", &all, &resident) != 2) resident = 0;
    std::fclose(statm);
  }
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

PeerRun run_here(const PeerMachine& machine, std::size_t finishes,
                 const std::function<void(const Hosts&, PeerRun&)>& post) {
  const double bytes_before = resident_bytes();
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
  if (machine.precision > 0)
    for (const char* which : {"maxmin", "surf"})
      words.push_back(fmt::format("--cfg={}/precision:{}", which, machine.precision));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  sg::Engine engine(&count, arguments.data());

  PeerRun run;
  run.finish_s.resize(finishes);
  const Hosts hosts = build(machine);
  post(hosts, run);
  engine.run();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  run.wall_s = wall.count();
  run.bytes = resident_bytes() - bytes_before;
  run.simulated_s = sg::Engine::get_clock();
  return run;
}

bool write_all(int to, const void* data, std::size_t size) {
  for (const char* at = static_cast<const char*>(data); size > 0;) {
    const ssize_t n = write(to, at, size);
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool read_all(int from, void* data, std::size_t size) {
  for (char* at = static_cast<char*>(data); size > 0;) {
    const ssize_t n = read(from, at, size);
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

std::optional<PeerRun> run_apart(const PeerMachine& machine, std::size_t finishes,
                                 const std::function<void(const Hosts&, PeerRun&)>& post) {
  int channel[2];
  if (pipe(channel) != 0) return std::nullopt;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return std::nullopt;
  if (child == 0) {
    close(channel[0]);
    const PeerRun run = run_here(machine, finishes, post);
    const bool written = write_all(channel[1], &run.wall_s, sizeof run.wall_s) &&
                         write_all(channel[1], &run.bytes, sizeof run.bytes) &&
                         write_all(channel[1], &run.simulated_s, sizeof run.simulated_s) &&
                         write_all(channel[1], run.finish_s.data(), finishes * sizeof(double));
    _exit(written ? 0 : 1);
  }
  close(channel[1]);
  PeerRun run;
  run.finish_s.resize(finishes);
  const bool complete = read_all(channel[0], &run.wall_s, sizeof run.wall_s) &&
                        read_all(channel[0], &run.bytes, sizeof run.bytes) &&
                        read_all(channel[0], &run.simulated_s, sizeof run.simulated_s) &&
                        read_all(channel[0], run.finish_s.data(), finishes * sizeof(double));
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!complete || status != 0) return std::nullopt;
  return run;
}

}  // namespace

std::optional<PeerRun> simgrid_senders(const PeerMachine& machine, const std::vector<PeerSender>& senders) {
  std::size_t messages = 0;
  for (const PeerSender& sender : senders) messages += sender.messages.size();
  return run_apart(machine, messages, [&](const Hosts& hosts, PeerRun& run) { post(hosts, senders, run); });
}

std::optional<PeerRun> simgrid_ring(const PeerMachine& machine, const PeerRing& ring) {
  return run_apart(machine, 0, [&](const Hosts& hosts, PeerRun&) { post(hosts, ring); });
}

}  // namespace bench
