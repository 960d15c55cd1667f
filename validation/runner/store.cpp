#include "runner/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <list>
#include <map>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <vector>

#include "runner/communicator.hpp"

namespace collcast::runner {

namespace {

constexpr std::string_view greeting = "collcast store 2";
constexpr char set_request = 's', get_request = 'g';
constexpr char yes = 'y', no = 'n';

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& host, int port, int flags) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (error != 0)
    throw Broken(fmt::format("the address '{}' of rank 0 cannot be resolved: {}", host, ::gai_strerror(error)),
                 Ending::refused);
  return {found, &::freeaddrinfo};
}

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

/// Waits until the socket can be read or written; false at the deadline.
bool wait_for(int socket, short events, Deadline deadline) {
  for (;;) {
    pollfd poll{socket, events, 0};
    const int ready = ::poll(&poll, 1, milliseconds_until(deadline));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) return false;
  }
}

bool send_all(int socket, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(socket, POLLOUT, deadline)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

/// A connection, or the errno why there is none.
Descriptor connect_to(const addrinfo& address, Deadline deadline, int& error) {
  Descriptor out(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol));
  error = errno;
  if (!out.is_open()) return out;
  if (::connect(out.number(), address.ai_addr, address.ai_addrlen) != 0) {
    error = errno;
    if (error != EINPROGRESS) return {};
    if (!wait_for(out.number(), POLLOUT, deadline)) {
      error = ETIMEDOUT;
      return {};
    }
    socklen_t size = sizeof error;
    ::getsockopt(out.number(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return {};
  }
  const int on = 1;
  ::setsockopt(out.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  error = 0;
  return out;
}

int port_of(const Descriptor& listening) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(listening.number(), reinterpret_cast<sockaddr*>(&bound), &size);
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

/// A client as the server sees it.
struct Guest {
  Descriptor socket;
  FrameReader reader;
  bool greeted = false;
  struct Get {
    std::string number, key;
  };
  std::optional<Get> waits_for;
};

/// The server's thread: all state is here, so nothing needs a lock.
class Serving {
 public:
  Serving(int listening, int stop) : listening_(listening), stop_(stop) {}

  void run() {
    for (;;) {
      std::vector<pollfd> polls{{stop_, POLLIN, 0}, {listening_, POLLIN, 0}};
      std::vector<Guest*> order;
      for (Guest& guest : guests_) {
        polls.push_back({guest.socket.number(), POLLIN, 0});
        order.push_back(&guest);
      }
      if (::poll(polls.data(), polls.size(), -1) < 0 && errno != EINTR) return;
      if (polls[0].revents != 0) return;
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (polls[i + 2].revents != 0 && !hear(*order[i])) order[i]->socket.close();
      }
      guests_.remove_if([](const Guest& guest) { return !guest.socket.is_open(); });
      if (polls[1].revents != 0) {
        Descriptor socket(::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (socket.is_open()) guests_.push_back({std::move(socket), {}, false, {}});
      }
    }
  }

 private:
  /// False once the guest is to be shown out.
  bool hear(Guest& guest) {
    char buffer[4096];
    const ssize_t got = ::recv(guest.socket.number(), buffer, sizeof buffer, 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    guest.reader.append(buffer, static_cast<std::size_t>(got));
    while (const auto message = guest.reader.next()) {
      if (!guest.greeted) {
        if (*message != greeting) return false;
        guest.greeted = true;
      } else if (!serve(guest, *message)) {
        return false;
      }
    }
    return !guest.reader.broken();
  }

  bool serve(Guest& guest, std::string_view message) {
    if (message.empty()) return false;
    const char what = message.front();
    message.remove_prefix(1);
    const std::string number = unpack(message), key = unpack(message);
    if (what == get_request) {
      guest.waits_for = Guest::Get{number, key};
      return answer_if_there(guest);
    }
    if (what != set_request) return false;
    const bool fresh = values_.emplace(key, unpack(message)).second;
    if (!reply(guest, number, fresh ? yes : no, {})) return false;
    for (Guest& other : guests_) {
      if (!answer_if_there(other)) other.socket.close();
    }
    return true;
  }

  bool answer_if_there(Guest& guest) {
    if (!guest.waits_for) return true;
    const auto found = values_.find(guest.waits_for->key);
    if (found == values_.end()) return true;
    const std::string number = guest.waits_for->number;
    guest.waits_for.reset();
    return reply(guest, number, yes, found->second);
  }

  static bool reply(const Guest& guest, std::string_view number, char what, const std::string& value) {
    std::string message;
    pack(message, number);
    // Answers are small: a guest that takes none for a second has gone.
    return send_all(guest.socket.number(), frame(message + what + value),
                    std::chrono::steady_clock::now() + std::chrono::seconds(1));
  }

  int listening_, stop_;
  std::list<Guest> guests_;
  std::map<std::string, std::string> values_;
};

}  // namespace

Listener listen_at(const std::string& host, int port) {
  const Addresses addresses = resolve(host, port, AI_PASSIVE);
  std::vector<const addrinfo*> order;
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) order.push_back(a);
  // IPv6 first: its socket takes IPv4 too.
  std::stable_partition(order.begin(), order.end(), [](const addrinfo* a) { return a->ai_family == AF_INET6; });
  int error = EADDRNOTAVAIL;
  for (const addrinfo* a : order) {
    Listener out{Descriptor(::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol)), port};
    error = errno;
    if (!out.socket.is_open()) continue;
    const int on = 1, off = 0;
    ::setsockopt(out.socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6) ::setsockopt(out.socket.number(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (::bind(out.socket.number(), a->ai_addr, a->ai_addrlen) != 0 || ::listen(out.socket.number(), 512) != 0) {
      error = errno;
      continue;
    }
    out.port = port_of(out.socket);
    return out;
  }
  throw Broken(fmt::format("rank 0 cannot listen at port {}: {}", port, std::strerror(error)), Ending::refused);
}

StoreServer::StoreServer(Descriptor listening) : listening_(std::move(listening)) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Broken(fmt::format("no pipe: {}", std::strerror(errno)));
  stop_reader_ = Descriptor(ends[0]);
  stop_writer_ = Descriptor(ends[1]);
  thread_ = std::thread([socket = listening_.number(), stop = ends[0]] { Serving(socket, stop).run(); });
}

StoreServer::~StoreServer() {
  stop_writer_.close();
  thread_.join();
}

Store::Store(const std::string& host, int port, std::chrono::milliseconds timeout) : timeout_(timeout) {
  const Deadline deadline = std::chrono::steady_clock::now() + timeout;
  const Addresses addresses = resolve(host, port, 0);
  int error = 0;
  do {
    for (const addrinfo* a = addresses.get(); a != nullptr && !socket_.is_open(); a = a->ai_next)
      socket_ = connect_to(*a, deadline, error);
    if (socket_.is_open()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  } while (std::chrono::steady_clock::now() < deadline);
  if (!socket_.is_open())
    throw Broken(fmt::format("rank 0 does not answer at {}:{} within {} s: {}", host, port,
                             static_cast<double>(timeout.count()) / 1000, std::strerror(error)));
  if (!send_all(socket_.number(), frame(greeting), deadline)) throw Broken("rank 0 closed the connection");
}

bool Store::set(std::string_view key, std::string_view value) {
  return request(set_request, key, value, timeout_).front() == yes;
}

std::optional<std::string> Store::get(std::string_view key, std::chrono::milliseconds timeout) {
  const std::string reply = request(get_request, key, {}, timeout);
  if (reply.front() != yes) return std::nullopt;
  return reply.substr(1);
}

std::string Store::request(char what, std::string_view key, std::string_view value, std::chrono::milliseconds timeout) {
  const Deadline deadline = std::chrono::steady_clock::now() + timeout;
  const std::string number = std::to_string(++requests_);
  std::string message(1, what);
  pack(message, number);
  pack(message, key);
  if (what == set_request) pack(message, value);
  if (!send_all(socket_.number(), frame(message), deadline)) throw Broken("rank 0 closed the connection");
  for (;;) {
    while (const auto reply = reader_.next()) {
      std::string_view rest = *reply;
      // Others answer requests whose deadline is over.
      if (unpack(rest) == number && !rest.empty()) return std::string(rest);
    }
    if (reader_.broken()) throw Broken("what answers at the address of rank 0 is not rank 0");
    if (!wait_for(socket_.number(), POLLIN, deadline)) return std::string(1, no);
    char buffer[4096];
    const ssize_t got = ::recv(socket_.number(), buffer, sizeof buffer, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) throw Broken("rank 0 ended while the ranks were meeting");
    reader_.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace collcast::runner
