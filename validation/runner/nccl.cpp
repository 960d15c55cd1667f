// NCCL: collectives of NVIDIA GPUs, all GPUs driven by one process, or one process per rank.
//
// Both ways are the same code: a process drives some ranks, each with its GPU, stream and communicator, and
// calls of several ranks are one NCCL group. Kinds that NCCL has no call for are groups of sends and receives,
// as nccl-tests does them. A repetition's calls are queued back to back; it ends when all streams are empty
// (wall clock), beside the time between two events on each stream (device clock). Everything waits with a
// deadline and looks at NCCL's asynchronous errors meanwhile.
//
// Several ranks on one GPU (--share-gpu): NCCL refuses two ranks with the same host and device, so each process
// names a host of its own (NCCL_HOSTID) and talks over loopback sockets. That shows that results are right; the
// GPU is time-sliced between processes, so times mean nothing, and the table says so.
#include <fmt/format.h>

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "collcast/base/check.hpp"
#include "collcast/base/units.hpp"
#include "runner/communicator.hpp"
#include "runner/machine.hpp"
#include "runner/nccl_library.hpp"
#include "runner/store.hpp"

namespace collcast::runner {

namespace {

ncclDataType_t nccl_type(DataType type) {
  switch (type) {
    case DataType::int8:
      return ncclInt8;
    case DataType::uint8:
      return ncclUint8;
    case DataType::int32:
      return ncclInt32;
    case DataType::uint32:
      return ncclUint32;
    case DataType::int64:
      return ncclInt64;
    case DataType::uint64:
      return ncclUint64;
    case DataType::half:
      return ncclFloat16;
    case DataType::bfloat16:
      return ncclBfloat16;
    case DataType::float32:
      return ncclFloat32;
    case DataType::float64:
      return ncclFloat64;
  }
  return ncclFloat32;
}

/// A rank that this process drives.
struct Gpu {
  int rank = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  ncclComm_t communicator = nullptr;
  CUstream stream = nullptr;
  CUevent start = nullptr, stop = nullptr;
  CUdeviceptr first = 0, second = 0;  ///< allocations; in place there is one
  CUdeviceptr input = 0, output = 0;  ///< where the rank's data begin in them
  CUgraphExec graph = nullptr;
};

/// The communicators of this process's ranks, for their peers' sake given back whatever happens: destroyed at the
/// end; aborted when a failure ends the measurement, for waiting for peers could then take forever.
class Connections {
 public:
  Connections(const CudaFunctions& cuda, const NcclFunctions& nccl) : cuda_(cuda), nccl_(nccl) {}
  ~Connections() {
    const bool failed = std::uncaught_exceptions() > before_;
    for (const auto& [context, communicator] : all_) {
      cuda_.set_context(context);
      failed ? nccl_.abort(communicator) : nccl_.destroy(communicator);
    }
  }
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  void own(CUcontext context, ncclComm_t communicator) { all_.emplace_back(context, communicator); }

 private:
  const CudaFunctions& cuda_;
  const NcclFunctions& nccl_;
  int before_ = std::uncaught_exceptions();
  std::vector<std::pair<CUcontext, ncclComm_t>> all_;
};

/// Memory and streams go with the process, which ends with its measurement.
class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const MeasurePlan& plan, NvidiaLibraries libraries,
                   const std::vector<std::pair<int, int>>& rank_devices, int ranks, const ncclUniqueId& id)
      : plan_(plan), libraries_(std::move(libraries)), ranks_(ranks) {
    for (const auto& [rank, device] : rank_devices) {
      Gpu gpu;
      gpu.rank = rank;
      cuda(c().device(&gpu.device, device), "a device");
      cuda(c().retain_context(&gpu.context, gpu.device), "a context");
      use(gpu);
      cuda(c().create_stream(&gpu.stream, CU_STREAM_NON_BLOCKING), "a stream");
      cuda(c().create_event(&gpu.start, CU_EVENT_DEFAULT), "an event");
      cuda(c().create_event(&gpu.stop, CU_EVENT_DEFAULT), "an event");
      gpus_.push_back(gpu);
    }
    connect(id);
    if (alone()) return;
    const std::vector<double> mark{host_mark()};
    nodes_ = plan.share_gpu ? 1 : count_nodes(gather(mark));
  }

  std::vector<int> ranks() const override {
    std::vector<int> out;
    for (const Gpu& gpu : gpus_) out.push_back(gpu.rank);
    return out;
  }

  MeasuredSystem system() const override {
    MeasuredSystem out;
    out.backend = "nccl";
    out.library_version = out.nccl_version = nccl_version_text(libraries_.nccl_version);
    std::array<char, 256> name{};
    c().device_name(name.data(), static_cast<int>(name.size()), gpus_.front().device);
    out.device = name.data();
    out.driver = nvidia_driver_version();
    out.gpu = true;
    out.nodes = nodes_;
    out.ranks_per_node = ranks_ / nodes_;
    if (plan_.share_gpu)
      out.notes.emplace_back(
          "ranks share a GPU and talk over loopback sockets: results are checked, times say nothing about NCCL");
    return out;
  }

  void prepare(const Operation& op, int calls) override {
    op_ = op;
    calls_ = calls;
    const std::size_t share = op.bytes() / static_cast<std::size_t>(op.ranks);
    for (Gpu& gpu : gpus_) {
      use(gpu);
      release(gpu);
      gpu.first = allocate(op.bytes());
      if (!op.in_place) gpu.second = allocate(op.bytes());
      gpu.input = gpu.first;
      gpu.output = op.in_place ? gpu.first : gpu.second;
      // NCCL's meaning of in place: a rank's share lies where it belongs in the whole.
      const std::size_t own = share * static_cast<std::size_t>(gpu.rank);
      if (op.in_place && op.kind == CollectiveKind::all_gather) gpu.input += own;
      if (op.in_place && op.kind == CollectiveKind::reduce_scatter) gpu.output += own;
    }
    if (plan_.graph) capture();
  }

  void write_input(int rank, std::size_t offset, std::span<const std::byte> bytes) override {
    const Gpu& gpu = of(rank);
    use(gpu);
    cuda(c().copy_in(gpu.input + offset, bytes.data(), bytes.size()), "copying to the GPU");
    // The streams of the collectives do not wait for this copy by themselves.
    cuda(c().synchronize(), "copying to the GPU");
  }
  void read_output(int rank, std::size_t offset, std::span<std::byte> bytes) override {
    const Gpu& gpu = of(rank);
    use(gpu);
    cuda(c().copy_out(bytes.data(), gpu.output + offset, bytes.size()), "copying from the GPU");
  }

  void barrier() override {
    // One process queues for all its GPUs at once.
    if (alone()) return;
    const std::array<double, 1> nothing{};
    gather(nothing);
  }

  CallTime run() override {
    const auto start = std::chrono::steady_clock::now();
    for (const Gpu& gpu : gpus_) {
      use(gpu);
      cuda(c().record(gpu.start, gpu.stream), "an event");
    }
    if (plan_.graph) {
      for (const Gpu& gpu : gpus_) {
        use(gpu);
        cuda(c().launch(gpu.graph, gpu.stream), "launching a graph");
      }
    } else {
      queue_calls();
    }
    for (const Gpu& gpu : gpus_) {
      use(gpu);
      cuda(c().record(gpu.stop, gpu.stream), "an event");
    }
    wait();
    CallTime out{std::chrono::steady_clock::now() - start, Seconds()};
    for (const Gpu& gpu : gpus_) {
      float milliseconds = 0;
      cuda(c().elapsed(&milliseconds, gpu.start, gpu.stop), "an event");
      out.device = std::max(*out.device, Seconds(static_cast<double>(milliseconds) * 1e-3));
    }
    return out;
  }

  std::vector<std::vector<double>> gather(std::span<const double> values) override {
    if (alone()) return {{values.begin(), values.end()}};
    const Gpu& gpu = gpus_.front();
    use(gpu);
    const std::size_t count = values.size(), world = static_cast<std::size_t>(ranks_);
    std::vector<double> all(count * world);
    const CUdeviceptr own = allocate(count * sizeof(double)), whole = allocate(all.size() * sizeof(double));
    cuda(c().copy_in(own, values.data(), count * sizeof(double)), "copying to the GPU");
    cuda(c().synchronize(), "copying to the GPU");
    nccl(n().all_gather(at(own), at(whole), count, ncclFloat64, gpu.communicator, gpu.stream), "gathering times");
    wait();
    cuda(c().copy_out(all.data(), whole, all.size() * sizeof(double)), "copying from the GPU");
    c().free(own);
    c().free(whole);
    std::vector<std::vector<double>> out;
    for (std::size_t from = 0; from < all.size(); from += count) out.emplace_back(&all[from], &all[from] + count);
    return out;
  }

 private:
  const CudaFunctions& c() const { return libraries_.cuda; }
  const NcclFunctions& n() const { return libraries_.nccl; }
  bool alone() const { return static_cast<int>(gpus_.size()) == ranks_; }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are integers, NCCL's pointers
  static void* at(CUdeviceptr p) { return reinterpret_cast<void*>(p); }

  void cuda(CUresult result, const char* what) const {
    if (result == CUDA_SUCCESS) return;
    const char* text = nullptr;
    c().error_string(result, &text);
    const bool memory = result == CUDA_ERROR_OUT_OF_MEMORY;
    throw Broken(fmt::format("CUDA: {}: {}", what, text == nullptr ? "unknown error" : text),
                 memory ? Ending::lacking : Ending::broken);
  }
  void nccl(ncclResult_t result, const char* what) const {
    if (result == ncclSuccess) return;
    throw Broken(fmt::format("NCCL: {}: {} ({})", what, n().error_string(result), n().last_error(nullptr)));
  }

  void use(const Gpu& gpu) const { cuda(c().set_context(gpu.context), "a context"); }
  const Gpu& of(int rank) const {
    for (const Gpu& gpu : gpus_) {
      if (gpu.rank == rank) return gpu;
    }
    check(false, "a rank is asked of the process that drives it");
    return gpus_.front();
  }
  CUdeviceptr allocate(std::size_t bytes) const {
    CUdeviceptr out = 0;
    cuda(c().allocate(&out, bytes), "allocating GPU memory");
    return out;
  }
  void release(Gpu& gpu) const {
    if (gpu.graph != nullptr) c().destroy_executable(gpu.graph);
    if (gpu.first != 0) c().free(gpu.first);
    if (gpu.second != 0) c().free(gpu.second);
    gpu.graph = nullptr;
    gpu.first = gpu.second = 0;
  }

  /// Initialises all communicators of this process at once. NCCL waits here for its peers without a limit, so a
  /// thread of its own does, which a peer that never comes leaves behind.
  void connect(const ncclUniqueId& id) {
    struct Attempt {
      std::mutex guard;
      std::condition_variable changed;
      bool done = false;
      ncclResult_t result = ncclSuccess;
      std::vector<ncclComm_t> communicators;
    };
    const auto attempt = std::make_shared<Attempt>();
    attempt->communicators.resize(gpus_.size());
    std::thread([attempt, id, ranks = ranks_, gpus = gpus_, f = n(), set_context = c().set_context] {
      f.group_start();
      ncclResult_t result = ncclSuccess;
      for (std::size_t i = 0; i < gpus.size() && result == ncclSuccess; ++i) {
        set_context(gpus[i].context);
        result = f.init_rank(&attempt->communicators[i], ranks, id, gpus[i].rank);
      }
      const ncclResult_t end = f.group_end();
      const std::lock_guard<std::mutex> lock(attempt->guard);
      attempt->result = result == ncclSuccess ? end : result;
      attempt->done = true;
      attempt->changed.notify_all();
    }).detach();
    std::unique_lock<std::mutex> lock(attempt->guard);
    if (!attempt->changed.wait_for(lock, plan_.timeout, [&] { return attempt->done; })) {
      Broken late(fmt::format("NCCL: the ranks did not connect within {} s",
                              static_cast<double>(plan_.timeout.count()) / 1000));
      late.library_busy = true;
      throw late;
    }
    nccl(attempt->result, "connecting the ranks");
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      gpus_[i].communicator = attempt->communicators[i];
      connections_.own(gpus_[i].context, gpus_[i].communicator);
    }
  }

  void queue_calls() {
    for (int i = 0; i < calls_; ++i) {
      nccl(n().group_start(), "a group");
      for (const Gpu& gpu : gpus_) {
        use(gpu);
        nccl(queue_call(gpu), to_string(op_.kind).data());
      }
      nccl(n().group_end(), "a group");
    }
  }

  ncclResult_t queue_call(const Gpu& gpu) const {
    const ncclDataType_t type = nccl_type(op_.type);
    const auto count = static_cast<std::size_t>(op_.count);
    const std::size_t share = count / static_cast<std::size_t>(op_.ranks);
    void* const in = at(gpu.input);
    void* const out = at(gpu.output);
    switch (op_.kind) {
      case CollectiveKind::all_reduce:
        return n().all_reduce(in, out, count, type, ncclSum, gpu.communicator, gpu.stream);
      case CollectiveKind::broadcast:
        return n().broadcast(in, out, count, type, op_.root, gpu.communicator, gpu.stream);
      case CollectiveKind::reduce:
        return n().reduce(in, out, count, type, ncclSum, op_.root, gpu.communicator, gpu.stream);
      case CollectiveKind::all_gather:
        return n().all_gather(in, out, share, type, gpu.communicator, gpu.stream);
      case CollectiveKind::reduce_scatter:
        return n().reduce_scatter(in, out, share, type, ncclSum, gpu.communicator, gpu.stream);
      case CollectiveKind::alltoall:
      case CollectiveKind::gather:
      case CollectiveKind::scatter:
      case CollectiveKind::sendrecv:
        return queue_messages(gpu, share);
    }
    return ncclInvalidArgument;
  }

  /// Kinds that are sends and receives; the caller's group makes them one.
  ncclResult_t queue_messages(const Gpu& gpu, std::size_t share) const {
    const bool root = gpu.rank == op_.root;
    const bool all = op_.kind == CollectiveKind::alltoall;
    ncclResult_t result = ncclSuccess;
    const auto send = [&](int to, std::size_t first, std::size_t count) {
      if (result == ncclSuccess)
        result = n().send(at(gpu.input + first * element_bytes(op_.type)), count, nccl_type(op_.type), to,
                          gpu.communicator, gpu.stream);
    };
    const auto recv = [&](int from, std::size_t first, std::size_t count) {
      if (result == ncclSuccess)
        result = n().recv(at(gpu.output + first * element_bytes(op_.type)), count, nccl_type(op_.type), from,
                          gpu.communicator, gpu.stream);
    };
    if (op_.kind == CollectiveKind::sendrecv) {
      send((gpu.rank + 1) % ranks_, 0, static_cast<std::size_t>(op_.count));
      recv((gpu.rank + ranks_ - 1) % ranks_, 0, static_cast<std::size_t>(op_.count));
      return result;
    }
    for (int peer = 0; peer < ranks_; ++peer) {
      const std::size_t at_peer = share * static_cast<std::size_t>(peer);
      if (all || (op_.kind == CollectiveKind::scatter && root)) send(peer, at_peer, share);
      if (all || (op_.kind == CollectiveKind::gather && root)) recv(peer, at_peer, share);
    }
    if (op_.kind == CollectiveKind::gather) send(op_.root, 0, share);
    if (op_.kind == CollectiveKind::scatter) recv(op_.root, 0, share);
    return result;
  }

  void capture() {
    for (const Gpu& gpu : gpus_) {
      use(gpu);
      cuda(c().begin_capture(gpu.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "capturing a graph");
    }
    queue_calls();
    for (Gpu& gpu : gpus_) {
      use(gpu);
      CUgraph graph = nullptr;
      cuda(c().end_capture(gpu.stream, &graph), "capturing a graph");
      cuda(c().instantiate(&gpu.graph, graph, 0), "a graph");
      cuda(c().destroy_graph(graph), "a graph");
    }
  }

  /// Until all streams are empty.
  void wait() {
    const Deadline deadline = std::chrono::steady_clock::now() + plan_.timeout;
    for (const Gpu& gpu : gpus_) {
      use(gpu);
      for (;;) {
        const CUresult state = c().query_stream(gpu.stream);
        if (state == CUDA_SUCCESS) break;
        if (state != CUDA_ERROR_NOT_READY) cuda(state, "running the collective");
        ncclResult_t behind = ncclSuccess;
        nccl(n().async_error(gpu.communicator, &behind), "asking for errors");
        nccl(behind, "running the collective");
        if (std::chrono::steady_clock::now() < deadline) continue;
        throw Broken(fmt::format("NCCL: rank {} did not finish within {} s", gpu.rank,
                                 static_cast<double>(plan_.timeout.count()) / 1000));
      }
    }
  }

  const MeasurePlan& plan_;
  NvidiaLibraries libraries_;
  Connections connections_{libraries_.cuda, libraries_.nccl};
  int ranks_;
  int nodes_ = 1;
  std::vector<Gpu> gpus_;
  Operation op_;
  int calls_ = 1;
};

NvidiaLibraries libraries_or_lacking() {
  NvidiaLibraries out = open_nvidia_libraries();
  if (!out.lacking.empty()) throw Broken(fmt::format("{}", fmt::join(out.lacking, "; ")), Ending::lacking);
  return out;
}

ncclUniqueId fresh_id(const NvidiaLibraries& libraries) {
  ncclUniqueId id{};
  if (libraries.nccl.unique_id(&id) != ncclSuccess)
    throw Broken(fmt::format("NCCL: no unique id: {}", libraries.nccl.last_error(nullptr)));
  return id;
}

std::unique_ptr<Communicator> start_all(const MeasurePlan& plan, int ranks) {
  NvidiaLibraries libraries = libraries_or_lacking();
  const ncclUniqueId id = fresh_id(libraries);
  std::vector<std::pair<int, int>> rank_devices;
  for (int rank = 0; rank < ranks; ++rank) rank_devices.emplace_back(rank, rank);
  return std::make_unique<NcclCommunicator>(plan, std::move(libraries), std::move(rank_devices), ranks, id);
}

/// So that NCCL takes ranks of one GPU for ranks of several hosts. What the user set stays.
void pretend_own_host(int rank) {
  ::setenv("NCCL_HOSTID", fmt::format("collcast-{}", rank).c_str(), 0);
  ::setenv("NCCL_NET", "Socket", 0);
  ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  ::setenv("NCCL_MNNVL_ENABLE", "0", 0);
}

std::unique_ptr<Communicator> start_rank(const MeasurePlan& plan, const Membership& self, Store& store) {
  if (plan.share_gpu) pretend_own_host(self.rank);
  NvidiaLibraries libraries = libraries_or_lacking();
  if (self.local_rank >= libraries.devices && !plan.share_gpu)
    throw Broken(fmt::format("rank {} is number {} of this node, which has {} GPUs (--share-gpu: a functional test)",
                             self.rank, self.local_rank, libraries.devices),
                 Ending::lacking);
  ncclUniqueId id{};
  if (self.rank == 0) {
    id = fresh_id(libraries);
    store.set("nccl id", {id.internal, sizeof id.internal});
  } else {
    const auto text = store.get("nccl id", plan.timeout);
    if (!text || text->size() != sizeof id.internal) throw Broken("rank 0 gave no NCCL id in time");
    std::memcpy(id.internal, text->data(), sizeof id.internal);
  }
  const int device = self.local_rank % libraries.devices;
  return std::make_unique<NcclCommunicator>(plan, std::move(libraries), std::vector{std::pair(self.rank, device)},
                                            self.ranks, id);
}

}  // namespace

Backend nccl_backend() {
  using enum CollectiveKind;
  Backend out;
  out.entry.name = "nccl";
  out.entry.what = "NVIDIA GPUs";
  out.entry.built = true;
  // NCCL chooses algorithms itself; NCCL_ALGO and NCCL_PROTO steer it. Messages cannot be in place.
  out.entry.kinds = {
      {all_reduce, {}, true, true, {}}, {broadcast, {}, true, true, {}},      {reduce, {}, true, true, {}},
      {all_gather, {}, true, true, {}}, {reduce_scatter, {}, true, true, {}}, {alltoall, {}, false, true, {}},
      {gather, {}, false, true, {}},    {scatter, {}, false, true, {}},       {sendrecv, {}, false, true, {}}};
  out.entry.datatypes = {"int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "bfloat16", "float", "double"};
  out.entry.default_calls = 20;  // nccl-tests' -n
  out.entry.steering = "NCCL_ALGO and NCCL_PROTO steer it";
  out.look = look_for_gpus;
  out.start_all = start_all;
  out.start_rank = start_rank;
  return out;
}

}  // namespace collcast::runner
