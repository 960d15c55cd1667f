// MPI: collectives of CPU processes by whatever MPI is here, whose ranks find each other by themselves.
//
// Each kind is the MPI function of its name, called as OSU's micro-benchmarks call it: blocking, on contiguous
// buffers that are allocated once per size, counts in elements. MPI chooses the algorithm. What a call of MPI
// cannot have is a deadline: the thread that calls it is watched by another (membership of a world: world.cpp).
// Leaves out: buffers of more than 2^31 - 1 elements, half and bfloat16 (MPI has neither), GPU buffers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <tuple>
#include <unistd.h>

#include "runner/communicator.hpp"
#include "runner/inside.hpp"
#include "runner/machine.hpp"
#include "runner/mpi_library.hpp"
#include "runner/starter.hpp"

namespace collcast::runner {

namespace {

/// Memory that begins at a page, as a benchmark's does, and is touched before it is timed.
class Buffer {
 public:
  void allocate(std::size_t bytes) {
    memory_.reset();
    memory_.reset(static_cast<std::byte*>(::operator new(bytes, page)));
    std::memset(memory_.get(), 0, bytes);
  }
  void release() { memory_.reset(); }
  std::byte* begin() const { return memory_.get(); }

 private:
  static constexpr std::align_val_t page{4096};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, page); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(const Membership& self, Inside& inside) : inside_(inside), library_(open_mpi()) {
    if (library_.mpi == nullptr) throw Broken(fmt::format("{}", fmt::join(library_.lacking, "; ")), Ending::lacking);
    checked([&] { return mpi().start(&rank_, &ranks_); });
    if (ranks_ != self.ranks) throw Broken(other_world(self), Ending::refused);
    const std::vector<double> mark{host_mark()};
    nodes_ = count_nodes(gather(mark));
  }

  /// After a failure others may never come to the end: the process ends without it.
  ~MpiCommunicator() override {
    if (std::uncaught_exceptions() > exceptions_) return;
    const Inside::Call call(inside_);
    mpi().finish();
  }

  std::vector<int> ranks() const override { return {rank_}; }

  MeasuredSystem system() const override {
    MeasuredSystem out;
    out.backend = "mpi";
    out.library_version = library_.version;
    out.device = processor_name();
    out.nodes = nodes_;
    out.ranks_per_node = ranks_ / nodes_;
    return out;
  }

  void prepare(const Operation& op, int calls) override {
    calls_ = calls;
    const std::size_t width = element_bytes(op.type);
    const std::size_t inputs = static_cast<std::size_t>(input_count(op, rank_)) * width;
    const std::size_t outputs = static_cast<std::size_t>(output_count(op, rank_)) * width;
    in_.release();
    out_.release();
    if (!op.in_place) in_.allocate(inputs);
    out_.allocate(op.in_place ? std::max(inputs, outputs) : outputs);
    call_ = {op.kind, op.type, op.in_place, elements(op), op.root, rank_, ranks_, nullptr, nullptr};
    place(op);
  }

  void write_input(int, std::size_t offset, std::span<const std::byte> bytes) override {
    std::memcpy(static_cast<std::byte*>(call_.input) + offset, bytes.data(), bytes.size());
  }
  void read_output(int, std::size_t offset, std::span<std::byte> bytes) override {
    std::memcpy(bytes.data(), read_at_ + offset, bytes.size());
  }

  void barrier() override {
    checked([&] { return mpi().barrier(); });
  }

  CallTime run() override {
    CallTime out;
    checked([&] {
      const auto start = std::chrono::steady_clock::now();
      const int code = mpi().run(&call_, calls_);
      out.wall = std::chrono::steady_clock::now() - start;
      return code;
    });
    return out;
  }

  std::vector<std::vector<double>> gather(std::span<const double> values) override {
    std::vector<double> all(values.size() * static_cast<std::size_t>(ranks_));
    checked([&] { return mpi().gather(values.data(), static_cast<int>(values.size()), all.data()); });
    std::vector<std::vector<double>> out;
    for (auto at = all.begin(); at != all.end(); at += static_cast<std::ptrdiff_t>(values.size()))
      out.emplace_back(at, at + static_cast<std::ptrdiff_t>(values.size()));
    return out;
  }

 private:
  const MpiFunctions& mpi() const { return *library_.mpi; }

  /// The starter and the library do not know each other.
  std::string other_world(const Membership& self) const {
    const bool srun = self.started_by == "srun";
    return fmt::format("{} started {} ranks, but {} here sees {}: {}", self.started_by, self.ranks, library_.version,
                       ranks_ == 1 ? "each of them alone" : fmt::format("{}", ranks_),
                       srun
                           ? "srun does not offer what it needs; try srun --mpi=pmix (srun --mpi=list names what there "
                             "is), or start the ranks with its mpirun"
                           : "this mpirun is of another MPI; start the ranks with the one of the MPI that collcast was "
                             "built with");
  }

  /// MPI's failures in our words.
  template <class F>
  void checked(F&& call) {
    int code = 0;
    {
      const Inside::Call inside(inside_);
      code = call();
    }
    if (code == 0) return;
    std::array<char, 1024> text{};
    mpi().error(code, text.data(), static_cast<int>(text.size()));
    throw Broken(fmt::format("{}: {}", library_.version, text.data()));
  }

  /// As MPI counts them: of a rank's part where there are parts.
  static int elements(const Operation& op) {
    const std::int64_t count = is_cut(op.kind) ? op.count / op.ranks : op.count;
    if (count > std::numeric_limits<int>::max())
      throw Broken("MPI counts elements in 31 bits; this buffer has more", Ending::refused);
    return static_cast<int>(count);
  }

  /// Where MPI reads and writes, and where a rank's own data are in that. In place one buffer is both, and a rank's own
  /// part has its place in the whole; MPI_Reduce_scatter_block leaves its result at the beginning.
  void place(const Operation& op) {
    call_.output = out_.begin();
    call_.input = op.in_place ? out_.begin() : in_.begin();
    read_at_ = out_.begin();
    if (!op.in_place) return;
    const std::size_t own =
        static_cast<std::size_t>(op.count / op.ranks) * element_bytes(op.type) * static_cast<std::size_t>(rank_);
    const bool at_root = rank_ == op.root;
    if (op.kind == CollectiveKind::all_gather || (op.kind == CollectiveKind::gather && at_root))
      call_.input = out_.begin() + own;
    if (op.kind == CollectiveKind::scatter && at_root) read_at_ = out_.begin() + own;
  }

  Inside& inside_;
  MpiLibrary library_;
  int exceptions_ = std::uncaught_exceptions();
  int rank_ = 0, ranks_ = 1, nodes_ = 1;
  MpiCall call_;
  int calls_ = 1;
  Buffer in_, out_;
  std::byte* read_at_ = nullptr;
};

std::unique_ptr<Communicator> join(const Membership& self, Inside& inside) {
  return std::make_unique<MpiCommunicator>(self, inside);
}

std::string mpirun() { return find_program({"mpirun", "mpiexec"}); }

const char* const no_mpirun =
    "mpirun is not in PATH, to start ranks with: install openmpi-bin, or start them with srun";

void look(BackendEntry& entry) {
  const MpiLibrary library = open_mpi();
  entry.version = library.version;
  entry.lacking = library.lacking;
  if (mpirun().empty() && !is_started_by_another()) entry.lacking.emplace_back(no_mpirun);
}

/// Open MPI's mpirun refuses root, and more ranks than cores, unless these say otherwise. What runs is this program
/// again, by whoever runs it already and on this machine, so both are as asked. The user's own settings stay.
void allow_what_was_asked() {
  const bool root = ::geteuid() == 0;
  for (const auto& [name, value, as_root] : {std::tuple{"OMPI_ALLOW_RUN_AS_ROOT", "1", true},
                                             {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", true},
                                             {"OMPI_MCA_rmaps_base_oversubscribe", "1", false},
                                             {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", false}}) {
    if (root || !as_root) ::setenv(name, value, 0);
  }
}

std::vector<std::string> starter(int ranks) {
  const std::string program = mpirun();
  if (program.empty()) throw Broken(no_mpirun, Ending::lacking);
  allow_what_was_asked();
  return {program, "-np", std::to_string(ranks)};
}

}  // namespace

Backend mpi_backend() {
  using enum CollectiveKind;
  Backend out;
  out.entry.name = "mpi";
  out.entry.what = "CPU processes over MPI";
  out.entry.built = true;
  // MPI chooses the algorithm.
  out.entry.kinds = {
      {all_reduce, {}, true, true, {}}, {broadcast, {}, true, false, {}},     {reduce, {}, true, true, {}},
      {all_gather, {}, true, true, {}}, {reduce_scatter, {}, true, true, {}}, {alltoall, {}, true, true, {}},
      {gather, {}, true, true, {}},     {scatter, {}, true, true, {}},        {sendrecv, {}, false, true, {}}};
  out.entry.datatypes = {"int8", "uint8", "int32", "uint32", "int64", "uint64", "float", "double"};
  out.entry.steering = "its own variables steer it, such as OMPI_MCA_coll_tuned_allreduce_algorithm";
  out.look = look;
  out.join = join;
  out.starter = starter;
  return out;
}

}  // namespace collcast::runner
