// Gloo: collectives of CPU processes over TCP.
//
// Gloo has two generations of collectives: functions on a context, and older classes that are set up for given
// buffers (halving_doubling; in place only). Both are run as their own header says. Two kinds are made of the
// context's sends and receives: sendrecv, and reduce_scatter, a ring. Gloo's own ReduceScatterHalvingDoubling moves a
// rank's result to the start of its buffer while that part may still be on its way to a peer, whose result is then
// wrong (github.com/jax-ml/jax/issues/40830; seen here with 0.5.0 from 128 KiB on). Which algorithm each function
// uses: Gloo's sources, named in the entry. Leaves out: its ibverbs transport, several buffers per process.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/logging.h>
#include <gloo/config.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>
#include <limits>

#include "collcast/base/check.hpp"
#include "collcast/base/units.hpp"
#include "runner/communicator.hpp"
#include "runner/machine.hpp"
#include "runner/store.hpp"

namespace collcast::runner {

namespace {

using Reduction = void (*)(void*, const void*, const void*, std::size_t);

// Tags of messages; Gloo's own collectives keep below 2^56.
constexpr std::uint64_t sendrecv_slot = std::uint64_t{1} << 60;
constexpr std::uint64_t reduce_scatter_slot = sendrecv_slot + 1;

/// Gloo's keys inside ours.
class GlooStore : public gloo::rendezvous::Store {
 public:
  explicit GlooStore(runner::Store& store) : store_(store) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set("gloo/" + key, {data.data(), data.size()});
  }
  std::vector<char> get(const std::string& key) override {
    const auto value = store_.get("gloo/" + key, store_.timeout());
    if (!value) throw Broken("a rank did not publish its address in time");
    return {value->begin(), value->end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }

 private:
  runner::Store& store_;
};

/// The unsigned type of the same width stands for signed ones: sums wrap alike, and wrapping is defined.
template <class F>
auto with_type(DataType type, F&& f) {
  switch (type) {  // NOLINT(bugprone-branch-clone): the branches differ in their types
    case DataType::int8:
    case DataType::uint8:
      return f(std::uint8_t());
    case DataType::int32:
    case DataType::uint32:
      return f(std::uint32_t());
    case DataType::int64:
    case DataType::uint64:
      return f(std::uint64_t());
    case DataType::half:
      return f(gloo::float16());
    case DataType::float64:
      return f(double());
    case DataType::float32:
    case DataType::bfloat16:  // not offered
      break;
  }
  return f(float());
}

Reduction sum_of(DataType type) {
  return with_type(type, [](auto zero) -> Reduction { return &gloo::sum<decltype(zero)>; });
}

/// "[file:line] what happened", without the place.
std::string what_happened(const std::exception& error) {
  std::string text = error.what();
  const std::size_t bracket = text.find("] ");
  return text.starts_with('[') && bracket != std::string::npos ? text.substr(bracket + 2) : text;
}

/// Gloo's failures in our words: what a peer or the network did. Its two kinds of exception are unrelated.
template <class F>
auto guarded(F&& f) {
  try {
    return f();
  } catch (const gloo::Exception& error) {
    throw Broken(what_happened(error));
  } catch (const gloo::EnforceNotMet& error) {
    throw Broken(what_happened(error));
  }
}

std::shared_ptr<gloo::transport::Device> loopback_or_named_device(const Membership& self) {
  gloo::transport::tcp::attr where;
  // As PyTorch: an interface by name, else the address of this host's name; ranks of one host use loopback.
  if (const char* name = std::getenv("GLOO_SOCKET_IFNAME"); name != nullptr && *name != '\0') {
    where.iface = name;
  } else if (self.host == "127.0.0.1" || self.host == "localhost") {
    where.hostname = "127.0.0.1";
  } else {
    where.hostname = own_host_name();
  }
  try {
    return gloo::transport::tcp::CreateDevice(where);
  } catch (const std::exception& error) {
    const std::string here = fmt::format("{}", fmt::join(interface_names(), ", "));
    if (!where.iface.empty())
      throw Broken(
          fmt::format("GLOO_SOCKET_IFNAME: '{}' is no interface with an address here; there are {}", where.iface, here),
          Ending::refused);
    throw Broken(fmt::format("the host name '{}' is no address of this machine ({}); name an interface in "
                             "GLOO_SOCKET_IFNAME: {}",
                             where.hostname, what_happened(error), here),
                 Ending::refused);
  }
}

class GlooCommunicator final : public Communicator {
 public:
  GlooCommunicator(const MeasurePlan& plan, const Membership& self, Store& store)
      : context_(std::make_shared<gloo::rendezvous::Context>(self.rank, self.ranks)), rank_(self.rank) {
    guarded([&] {
      context_->setTimeout(plan.timeout);
      GlooStore keys(store);
      auto device = loopback_or_named_device(self);
      context_->connectFullMesh(keys, device);
    });
    const std::vector<double> mark{host_mark()};
    nodes_ = count_nodes(gather(mark));
  }

  std::vector<int> ranks() const override { return {rank_}; }

  MeasuredSystem system() const override {
    MeasuredSystem out;
    out.backend = "gloo";
    out.library_version = fmt::format("{}.{}.{}", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
    out.device = processor_name();
    out.nodes = nodes_;
    out.ranks_per_node = context_->size / nodes_;
    return out;
  }

  void prepare(const Operation& op, int calls) override {
    op_ = op;
    calls_ = calls;
    const std::size_t width = element_bytes(op.type);
    run_ = nullptr;  // what refers to the old buffers
    // Gloo's reductions use every rank's output as room to work in.
    const std::size_t whole = op.bytes();
    in_.assign(op.in_place ? 0 : whole, std::byte());
    out_.assign(whole, std::byte());
    in_.shrink_to_fit();
    out_.shrink_to_fit();
    input_at_ = op.in_place ? out_.data() : in_.data();
    output_at_ = out_.data();
    const std::size_t share = whole / static_cast<std::size_t>(op.ranks);
    const std::size_t own = share * static_cast<std::size_t>(rank_);
    if (op.in_place && op.kind == CollectiveKind::all_gather) input_at_ += own;
    if (op.in_place && op.kind == CollectiveKind::reduce_scatter) output_at_ += own;
    run_ = guarded([&] { return make_run(width); });
  }

  void write_input(int, std::size_t offset, std::span<const std::byte> bytes) override {
    std::memcpy(input_at_ + offset, bytes.data(), bytes.size());
  }
  void read_output(int, std::size_t offset, std::span<std::byte> bytes) override {
    std::memcpy(bytes.data(), output_at_ + offset, bytes.size());
  }

  void barrier() override {
    guarded([&] {
      gloo::BarrierOptions options(context_);
      gloo::barrier(options);
    });
  }

  CallTime run() override {
    return guarded([&] {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < calls_; ++i) run_();
      return CallTime{std::chrono::steady_clock::now() - start, {}};
    });
  }

  std::vector<std::vector<double>> gather(std::span<const double> values) override {
    return guarded([&] {
      std::vector<double> own(values.begin(), values.end());
      std::vector<double> all(own.size() * static_cast<std::size_t>(context_->size));
      gloo::AllgatherOptions options(context_);
      options.setInput(own.data(), own.size());
      options.setOutput(all.data(), all.size());
      gloo::allgather(options);
      std::vector<std::vector<double>> out;
      for (auto at = all.begin(); at != all.end(); at += static_cast<std::ptrdiff_t>(own.size()))
        out.emplace_back(at, at + static_cast<std::ptrdiff_t>(own.size()));
      return out;
    });
  }

 private:
  using Run = std::function<void()>;
  using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

  Buffer buffer(std::byte* at, std::int64_t elements, std::size_t width) {
    return context_->createUnboundBuffer(at, static_cast<std::size_t>(elements) * width);
  }

  /// Made once per size, used by every call. Where nothing is added up elements are bytes.
  template <class Options>
  std::shared_ptr<Options> options() {
    return std::make_shared<Options>(context_);
  }

  /// Of a reduction: as many elements in as out, of the operation's type.
  template <class Options>
  void set_buffers(Options& o) {
    with_type(op_.type, [&](auto zero) {
      using T = decltype(zero);
      const auto elements = static_cast<std::size_t>(op_.count);
      if (!op_.in_place) o.setInput(reinterpret_cast<T*>(input_at_), elements);
      o.setOutput(reinterpret_cast<T*>(output_at_), elements);
    });
  }

  Run make_run(std::size_t width) {
    const std::int64_t inputs = input_count(op_, rank_), outputs = output_count(op_, rank_);
    switch (op_.kind) {
      case CollectiveKind::all_reduce:
        return make_all_reduce();
      case CollectiveKind::reduce_scatter:
        return make_reduce_scatter();
      case CollectiveKind::reduce:
        return make_reduce();
      case CollectiveKind::broadcast: {
        const auto o = options<gloo::BroadcastOptions>();
        if (inputs > 0 && !op_.in_place) o->setInput<std::byte>(buffer(input_at_, inputs, width));
        o->setOutput<std::byte>(buffer(output_at_, outputs, width));
        o->setRoot(op_.root);
        return [o] { gloo::broadcast(*o); };
      }
      case CollectiveKind::all_gather: {
        const auto o = options<gloo::AllgatherOptions>();
        if (!op_.in_place) o->setInput<std::byte>(buffer(input_at_, inputs, width));
        o->setOutput<std::byte>(buffer(output_at_, outputs, width));
        return [o] { gloo::allgather(*o); };
      }
      case CollectiveKind::alltoall: {
        const auto o = options<gloo::AlltoallOptions>();
        o->setInput<std::byte>(buffer(input_at_, inputs, width));
        o->setOutput<std::byte>(buffer(output_at_, outputs, width));
        return [o] { gloo::alltoall(*o); };
      }
      case CollectiveKind::gather: {
        const auto o = options<gloo::GatherOptions>();
        o->setInput<std::byte>(buffer(input_at_, inputs, width));
        if (outputs > 0) o->setOutput<std::byte>(buffer(output_at_, outputs, width));
        o->setRoot(op_.root);
        return [o] { gloo::gather(*o); };
      }
      case CollectiveKind::scatter: {
        const auto o = options<gloo::ScatterOptions>();
        if (inputs > 0) {
          std::vector<Buffer> parts;
          for (int rank = 0; rank < op_.ranks; ++rank)
            parts.push_back(buffer(input_at_ + static_cast<std::size_t>(rank * outputs) * width, outputs, width));
          o->setInputs<std::byte>(std::move(parts));
        }
        o->setOutput<std::byte>(buffer(output_at_, outputs, width));
        o->setRoot(op_.root);
        return [o] { gloo::scatter(*o); };
      }
      case CollectiveKind::sendrecv:
        return make_sendrecv();
    }
    check(false, "every kind has its call");
    return {};
  }

  Run make_all_reduce() {
    if (op_.algorithm == "halving_doubling") {
      return with_type(op_.type, [&](auto zero) -> Run {
        using T = decltype(zero);
        const auto a = std::make_shared<gloo::AllreduceHalvingDoubling<T>>(
            context_, std::vector<T*>{reinterpret_cast<T*>(output_at_)}, small_count());
        return [a] { a->run(); };
      });
    }
    const auto o = options<gloo::AllreduceOptions>();
    set_buffers(*o);
    o->setReduceFunction(sum_of(op_.type));
    o->setAlgorithm(op_.algorithm == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                             : gloo::AllreduceOptions::Algorithm::RING);
    return [o] { gloo::allreduce(*o); };
  }

  /// A ring: in step j a rank passes on what ranks added to the block of the rank j + 1 behind it. The input stays.
  Run make_reduce_scatter() {
    struct Ring {
      std::vector<std::byte> sums[2];  ///< of the block that comes, of the block that goes
      Buffer input, at[2];
    };
    const auto ring = std::make_shared<Ring>();
    const std::size_t share = op_.bytes() / static_cast<std::size_t>(op_.ranks);
    ring->input = context_->createUnboundBuffer(input_at_, op_.bytes());
    for (std::size_t i = 0; i < 2; ++i) {
      ring->sums[i].resize(share);
      ring->at[i] = context_->createUnboundBuffer(ring->sums[i].data(), share);
    }
    const int ranks = op_.ranks, rank = rank_;
    const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    const Reduction sum = sum_of(op_.type);
    const std::size_t elements = static_cast<std::size_t>(op_.count / ranks);
    return [=, input = input_at_, output = output_at_, timeout = context_->getTimeout()] {
      for (int step = 0; step + 1 < ranks; ++step) {
        const auto offset_of = [&](int behind) {
          return share * static_cast<std::size_t>((rank + 2 * ranks - behind) % ranks);
        };
        const int come = step % 2, go = 1 - come;
        ring->at[come]->recv(previous, reduce_scatter_slot);
        if (step == 0)
          ring->input->send(next, reduce_scatter_slot, offset_of(1), share);
        else
          ring->at[go]->send(next, reduce_scatter_slot);
        ring->at[come]->waitRecv(timeout);
        std::byte* sums = ring->sums[come].data();
        const bool last = step + 2 == ranks;
        sum(last ? output : sums, sums, input + offset_of(step + 2), elements);
        (step == 0 ? ring->input : ring->at[go])->waitSend(timeout);
      }
    };
  }

  Run make_reduce() {
    const auto o = options<gloo::ReduceOptions>();
    set_buffers(*o);
    o->setReduceFunction(sum_of(op_.type));
    o->setRoot(op_.root);
    return [o] { gloo::reduce(*o); };
  }

  Run make_sendrecv() {
    const std::shared_ptr<gloo::transport::UnboundBuffer> in = context_->createUnboundBuffer(input_at_, op_.bytes());
    const std::shared_ptr<gloo::transport::UnboundBuffer> out = context_->createUnboundBuffer(output_at_, op_.bytes());
    const int next = (rank_ + 1) % op_.ranks, previous = (rank_ + op_.ranks - 1) % op_.ranks;
    return [in, out, next, previous, timeout = context_->getTimeout()] {
      out->recv(previous, sendrecv_slot);
      in->send(next, sendrecv_slot);
      out->waitRecv(timeout);
      in->waitSend(timeout);
    };
  }

  int small_count() const {
    if (op_.count > std::numeric_limits<int>::max())
      throw Broken("Gloo's algorithm counts elements in 31 bits; this buffer has more", Ending::refused);
    return static_cast<int>(op_.count);
  }

  std::shared_ptr<gloo::rendezvous::Context> context_;
  int rank_;
  int nodes_ = 1;
  Operation op_;
  int calls_ = 1;
  std::vector<std::byte> in_, out_;
  std::byte* input_at_ = nullptr;
  std::byte* output_at_ = nullptr;
  Run run_;
};

std::unique_ptr<Communicator> start_rank(const MeasurePlan& plan, const Membership& self, Store& store) {
  if (self.ranks < 2) throw Broken("Gloo needs 2 ranks or more", Ending::refused);
  return std::make_unique<GlooCommunicator>(plan, self, store);
}

}  // namespace

Backend gloo_backend() {
  using enum CollectiveKind;
  Backend out;
  out.entry.name = "gloo";
  out.entry.what = "CPU processes over TCP";
  out.entry.built = true;
  out.entry.version = fmt::format("{}.{}.{}", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
  out.entry.kinds = {{all_reduce, {"ring", "bcube", "halving_doubling"}, true, true, {"halving_doubling"}},
                     {broadcast, {"binomial_tree"}, true, true, {}},
                     {reduce, {"ring"}, true, true, {}},
                     {all_gather, {"ring"}, true, true, {}},
                     {reduce_scatter, {"ring"}, true, true, {}},
                     {alltoall, {"direct"}, false, true, {}},
                     {gather, {"direct"}, false, true, {}},
                     {scatter, {"direct"}, false, true, {}},
                     {sendrecv, {"point_to_point"}, false, true, {}}};
  out.entry.datatypes = {"int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double"};
  out.start_rank = start_rank;
  return out;
}

}  // namespace collcast::runner
