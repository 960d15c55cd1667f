// One process of a group of ranks, as the sweep drives it, and the library behind it.
//
// The base class stands for the outside world: a library, its transport and the other processes. It is one
// level deep. What goes wrong out there ends the sweep, from any depth of it: an exception that stays inside
// this layer.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "collcast/runner/runner.hpp"
#include "runner/values.hpp"

namespace collcast::runner {

/// The library, a peer or the machine failed: the sweep cannot go on.
struct Broken : std::runtime_error {
  explicit Broken(const std::string& what, Ending how = Ending::broken) : std::runtime_error(what), ending(how) {}
  Ending ending;
  bool library_busy = false;  ///< as MeasureOutcome's
};

struct CallTime {
  Seconds wall{};                 ///< of all calls, on this process: until all its ranks are done
  std::optional<Seconds> device;  ///< of its slowest device
};

class Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// The ranks that this process drives, in order.
  virtual std::vector<int> ranks() const = 0;
  virtual MeasuredSystem system() const = 0;

  /// Buffers and whatever the library sets up once; `calls` will be made at a time.
  virtual void prepare(const Operation&, int calls) = 0;
  virtual void write_input(int rank, std::size_t offset, std::span<const std::byte>) = 0;
  virtual void read_output(int rank, std::size_t offset, std::span<std::byte>) = 0;

  virtual void barrier() = 0;
  virtual CallTime run() = 0;
  /// Every process's values, by its first rank; each gives as many.
  virtual std::vector<std::vector<double>> gather(std::span<const double>) = 0;
};

class Store;
class Inside;

/// A library: what it can do and how to begin. What begins throws Broken.
struct Backend {
  BackendEntry entry;
  /// Fills in what only this machine can tell: version, devices, what is missing. Null: nothing to tell.
  void (*look)(BackendEntry&) = nullptr;
  /// All ranks in this process.
  std::unique_ptr<Communicator> (*start_all)(const MeasurePlan&, int ranks) = nullptr;
  /// One rank of many; the store is for meeting the others.
  std::unique_ptr<Communicator> (*start_rank)(const MeasurePlan&, const Membership&, Store&) = nullptr;
  /// One rank of many that the library itself brings together. Its calls know no deadline: they are seen from outside.
  std::unique_ptr<Communicator> (*join)(const Membership&, Inside&) = nullptr;
  /// Such a library's own command that starts so many ranks; the program's own follows.
  std::vector<std::string> (*starter)(int ranks) = nullptr;
};

Backend gloo_backend();
Backend mpi_backend();
Backend nccl_backend();
std::optional<Backend> find_backend(const std::string& name);

}  // namespace collcast::runner
