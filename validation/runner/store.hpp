// How processes of one world find each other: keys and values at rank 0, over TCP.
//
// The process of rank 0 serves the keys from a thread of its own until it is done; every process, rank 0 too, is
// a client. A key is set once; a get waits until its key is set. That is all that a rendezvous needs: addresses,
// NCCL's unique id, and whether everyone wants the same. Frames are a length and a payload, an answer has the
// number of its request (one that comes after its deadline is not taken for another's), a greeting keeps
// strangers out, and everything has a deadline. Leaves out: authentication (as PyTorch's and NCCL's own
// bootstrap do), so a port is open to the cluster's network while ranks meet.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "runner/descriptor.hpp"
#include "runner/frames.hpp"

namespace collcast::runner {

using Deadline = std::chrono::steady_clock::time_point;

/// A listening socket; throws Broken where the address is taken or not of this machine.
struct Listener {
  Descriptor socket;
  int port = 0;
};
/// Port 0: any free one. An empty host: every address of this machine.
Listener listen_at(const std::string& host, int port);

class StoreServer {
 public:
  explicit StoreServer(Descriptor listening);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

 private:
  Descriptor listening_, stop_reader_, stop_writer_;
  std::thread thread_;
};

class Store {
 public:
  /// Tries until `timeout` is over: rank 0 may start later. Setting a key later has as long.
  Store(const std::string& host, int port, std::chrono::milliseconds timeout);

  /// False where the key is there already.
  bool set(std::string_view key, std::string_view value);
  /// Nothing where nobody sets it in time.
  std::optional<std::string> get(std::string_view key, std::chrono::milliseconds timeout);
  std::chrono::milliseconds timeout() const { return timeout_; }

 private:
  std::string request(char what, std::string_view key, std::string_view value, std::chrono::milliseconds timeout);

  Descriptor socket_;
  FrameReader reader_;
  std::uint64_t requests_ = 0;
  std::chrono::milliseconds timeout_;
};

}  // namespace collcast::runner
