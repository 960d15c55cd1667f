// Proof of an algorithm that is spelled out, by running its steps on sets of contributions.
//
// A chunk's value is the set of (rank, chunk of its input) that were summed into it. Which step comes before which is
// known by vector clocks over thread blocks: messages, waits and the order of a thread block's own steps. Two steps
// that touch one chunk, one of them writing, without such an order could run either way; where there are none, every
// legal interleaving moves the same values, and one run proves them all.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "collcast/base/units.hpp"
#include "collective/msccl_clock.hpp"
#include "collective/msccl_memory.hpp"

namespace collcast::msccl {

namespace {

constexpr std::size_t most_errors = 20;
constexpr std::size_t ask_every = 1024;                  ///< steps
constexpr std::size_t most_work = std::size_t{1} << 30;  // steps x thread blocks, chunks x contributions

struct Message {
  std::vector<Contributions> values;
  std::shared_ptr<const Clock> clock;
  const Step* by = nullptr;
};

class Run {
 public:
  Run(const Algorithm& algorithm, const Layout& layout, Bytes size)
      : algorithm_(algorithm), layout_(layout), size_(size) {
    for (std::size_t g = 0; g < algorithm.gpus.size(); ++g) {
      first_block_.push_back(static_cast<int>(ends_.size()));
      memory_.emplace_back(algorithm.gpus[g], layout, static_cast<int>(g));
      for (const ThreadBlock& block : algorithm.gpus[g].blocks) {
        ends_.emplace_back(block.steps.size());
      }
    }
    clocks_.assign(ends_.size(), Clock(ends_.size()));
    for (const Gpu& gpu : algorithm.gpus)
      for (const ThreadBlock& block : gpu.blocks)
        for (const Step& step : block.steps)
          if (step.after_block >= 0) awaited_.insert({&gpu - algorithm.gpus.data(), step.after_block, step.after_step});
  }

  Result<std::vector<StepRef>> all(const std::function<bool(std::size_t)>& goes_on) {
    std::vector<std::vector<int>> done;
    for (const Gpu& gpu : algorithm_.gpus) done.emplace_back(gpu.blocks.size());
    std::vector<StepRef> order;
    for (bool moved = true; moved && errors_.size() + races_.size() < most_errors;) {
      moved = false;
      for (int g = 0; g < ranks(); ++g)
        for (int b = 0; b < static_cast<int>(gpu(g).blocks.size()); ++b) {
          int& next = done[static_cast<std::size_t>(g)][static_cast<std::size_t>(b)];
          const auto& steps = block(g, b).steps;
          for (; next < static_cast<int>(steps.size()) && can_run({g, b, next}, done); ++next) {
            if (goes_on && order.size() % ask_every == 0 && !goes_on(order.size())) return ended(order.size());
            order.push_back({g, b, next});
            run(order.back());
            moved = true;
          }
        }
    }
    // Steps that race have run, and what is wrong in the order that they ran in is said, too; of what was read or
    // summed wrongly the rest follows.
    const bool followed = errors_.empty();
    say_races();
    const std::size_t said = errors_.size();
    if (followed) say_what_is_stuck(done);
    if (followed && errors_.size() == said) say_what_is_left();
    if (followed && errors_.size() == said) say_what_is_wrong();
    if (!errors_.empty()) return errors_;
    return order;
  }

 private:
  using Connection = std::tuple<int, int, int>;  // sender, receiver, channel

  int ranks() const { return static_cast<int>(algorithm_.gpus.size()); }
  const Gpu& gpu(int g) const { return algorithm_.gpus[static_cast<std::size_t>(g)]; }
  const ThreadBlock& block(int g, int b) const { return gpu(g).blocks[static_cast<std::size_t>(b)]; }
  const Step& step(const StepRef& ref) const {
    return block(ref.gpu, ref.block).steps[static_cast<std::size_t>(ref.step)];
  }
  std::size_t number(int g, int b) const {
    return static_cast<std::size_t>(first_block_[static_cast<std::size_t>(g)]) + static_cast<std::size_t>(b);
  }

  static std::string name(const StepRef& ref) {
    return fmt::format("rank {}, thread block {}, step {}", ref.gpu, ref.block, ref.step);
  }
  void error(const Location& where, std::string message, std::string hint) {
    if (errors_.size() < most_errors) errors_.push_back({where, std::move(message), std::move(hint)});
  }

  Diagnostic ended(std::size_t steps) const {
    return {algorithm_.where, fmt::format("the proof was ended from outside after {} steps", steps),
            "nothing is known of the algorithm"};
  }

  bool can_run(const StepRef& ref, const std::vector<std::vector<int>>& done) {
    const Step& s = step(ref);
    if (s.after_block >= 0 &&
        done[static_cast<std::size_t>(ref.gpu)][static_cast<std::size_t>(s.after_block)] <= s.after_step)
      return false;
    const ThreadBlock& own = block(ref.gpu, ref.block);
    return !receives(s.kind) || !in_flight_[{own.receive, ref.gpu, own.channel}].empty();
  }

  void run(const StepRef& ref) {
    const Step& s = step(ref);
    const ThreadBlock& own = block(ref.gpu, ref.block);
    const std::size_t n = number(ref.gpu, ref.block);
    Clock& clock = clocks_[n];
    if (s.after_block >= 0) clock.learn(*ends_[number(ref.gpu, s.after_block)][static_cast<std::size_t>(s.after_step)]);
    std::vector<Contributions> values(s.kind == StepKind::nop ? 0 : static_cast<std::size_t>(s.count));
    if (receives(s.kind)) values = take(ref, clock);
    if (reduces(s.kind) || s.kind == StepKind::send || s.kind == StepKind::copy) {
      for (int i = 0; i < s.count; ++i) add(ref, read(ref, {s.source.buffer, s.source.offset + i}), i, values);
    }
    if (s.kind == StepKind::reduce)
      for (int i = 0; i < s.count; ++i)
        add(ref, read(ref, {s.destination.buffer, s.destination.offset + i}), i, values);
    const bool keeps = s.kind != StepKind::send && s.kind != StepKind::receive_reduce_send && s.kind != StepKind::nop;
    for (int i = 0; keeps && i < s.count; ++i)
      write(ref, {s.destination.buffer, s.destination.offset + i}, values[static_cast<std::size_t>(i)]);
    clock.set(n, ref.step + 1);
    const bool is_awaited = awaited_.contains({ref.gpu, ref.block, ref.step});
    const auto end = sends(s.kind) || is_awaited ? std::make_shared<const Clock>(clock) : nullptr;
    if (is_awaited) ends_[n][static_cast<std::size_t>(ref.step)] = end;
    if (sends(s.kind)) in_flight_[{ref.gpu, own.send, own.channel}].push_back({std::move(values), end, &s});
  }

  std::vector<Contributions> take(const StepRef& ref, Clock& clock) {
    const ThreadBlock& own = block(ref.gpu, ref.block);
    const Step& s = step(ref);
    auto& queue = in_flight_[{own.receive, ref.gpu, own.channel}];
    Message message = std::move(queue.front());
    queue.pop_front();
    clock.learn(*message.clock);
    if (static_cast<int>(message.values.size()) != s.count)
      error(s.where,
            fmt::format("{} receives {} chunks, and rank {} sends {}", name(ref), s.count, own.receive,
                        message.values.size()),
            fmt::format("the send is at {}", to_text(message.by->where)));
    message.values.resize(static_cast<std::size_t>(s.count));
    return std::move(message.values);
  }

  const Contributions& read(const StepRef& ref, Place place) {
    Cell& cell = memory_[static_cast<std::size_t>(ref.gpu)].at(place);
    const Step& s = step(ref);
    if (cell.value.empty())
      error(s.where, fmt::format("{} reads {}, which holds nothing then", name(ref), text_of(place, place.offset)),
            "expected a step before it that fills it");
    check_order(ref, cell.written, place);
    cell.read.push_back({static_cast<int>(number(ref.gpu, ref.block)), ref.step, &s});
    return cell.value;
  }

  void write(const StepRef& ref, Place place, const Contributions& value) {
    Cell& cell = memory_[static_cast<std::size_t>(ref.gpu)].at(place);
    check_order(ref, cell.written, place);
    for (const Access& access : cell.read) check_order(ref, access, place);
    cell.value = value;
    cell.read.clear();
    cell.written = {static_cast<int>(number(ref.gpu, ref.block)), ref.step, &step(ref)};
  }

  void check_order(const StepRef& ref, const Access& before, Place place) {
    const std::size_t own = number(ref.gpu, ref.block);
    if (before.by == nullptr || static_cast<std::size_t>(before.block) == own) return;
    if (clocks_[own].of(static_cast<std::size_t>(before.block)) > before.step) return;
    const Step& s = step(ref);
    const auto goes_on = std::find_if(races_.rbegin(), races_.rend(), [&](const Race& race) {
      return race.by == &s && race.with == before.by && race.first.buffer == place.buffer &&
             (race.last == place.offset || race.last + 1 == place.offset);
    });
    if (goes_on != races_.rend())
      goes_on->last = place.offset;
    else if (races_.size() < most_errors)
      races_.push_back({ref, &s, before.by, place, place.offset});
  }

  /// Chunks in a row that the same two steps touch are said once.
  void say_races() {
    for (const Race& race : races_)
      error(race.by->where,
            fmt::format("{} touches {} and nothing orders it with the step at {}", name(race.ref),
                        text_of(race.first, race.last), to_text(race.with->where)),
            "expected depid and deps on one of the two");
  }

  /// "chunk 1 of output (bytes 250 to 499)", of the buffer itself.
  std::string text_of(Place first, int last) const {
    const std::int64_t begin = begin_of(first.offset), end = begin_of(last + 1);
    return fmt::format(
        "{} of {} (bytes {} to {})",
        first.offset == last ? fmt::format("chunk {}", last) : fmt::format("chunks {} to {}", first.offset, last),
        to_string(first.buffer), begin, std::max(begin, end - 1));
  }

  void add(const StepRef& ref, const Contributions& more, int i, std::vector<Contributions>& values) {
    Contributions& value = values[static_cast<std::size_t>(i)];
    if (const int twice = value.first_common(more); twice >= 0)
      error(step(ref).where,
            fmt::format("{} adds the contribution of rank {} (its chunk {}, {}) twice", name(ref),
                        twice / algorithm_.chunks, twice % algorithm_.chunks,
                        bytes(twice % algorithm_.chunks, twice % algorithm_.chunks)),
            "a sum counts each contribution once");
    value.merge(more);
  }

  void say_what_is_stuck(const std::vector<std::vector<int>>& done) {
    for (int g = 0; g < ranks(); ++g)
      for (int b = 0; b < static_cast<int>(gpu(g).blocks.size()); ++b) {
        const StepRef ref{g, b, done[static_cast<std::size_t>(g)][static_cast<std::size_t>(b)]};
        if (ref.step == static_cast<int>(block(g, b).steps.size())) continue;
        const Step& s = step(ref);
        const bool waits = s.after_block >= 0 &&
                           done[static_cast<std::size_t>(g)][static_cast<std::size_t>(s.after_block)] <= s.after_step;
        error(s.where,
              waits ? fmt::format("{} never runs: it waits for step {} of thread block {}", name(ref), s.after_step,
                                  s.after_block)
                    : fmt::format("{} never runs: nothing comes from rank {} on channel {}", name(ref),
                                  block(g, b).receive, block(g, b).channel),
              "the steps named here wait for each other, or for what nobody sends");
      }
  }

  void say_what_is_left() {
    for (const auto& [connection, queue] : in_flight_)
      for (const Message& message : queue)
        error(message.by->where,
              fmt::format("rank {} sends this to rank {} on channel {} and nobody receives it", std::get<0>(connection),
                          std::get<1>(connection), std::get<2>(connection)),
              "expected a step that receives it");
  }

  std::int64_t begin_of(int chunk) const {
    return static_cast<std::int64_t>(static_cast<double>(size_.value()) * chunk / algorithm_.chunks);
  }
  std::string bytes(int first, int last) const {
    return fmt::format("bytes {} to {} of {}", begin_of(first), std::max(begin_of(first), begin_of(last + 1) - 1),
                       format_bytes(size_));
  }

  /// Chunks in a row that are wrong in the same way are said once.
  void say_what_is_wrong() {
    for (int g = 0; g < ranks(); ++g) {
      int first = -1;
      std::string what;
      const auto say = [&](int end) {
        if (first >= 0)
          error(gpu(g).where,
                fmt::format(
                    "rank {} ends with {} in its output's {} ({})", g, what,
                    first + 1 == end ? fmt::format("chunk {}", first) : fmt::format("chunks {} to {}", first, end - 1),
                    bytes(first, end - 1)),
                fmt::format("as {} promises it", collcast::to_string(algorithm_.kind)));
        first = -1;
      };
      for (int chunk = 0; chunk < layout_.outputs(g); ++chunk) {
        std::string now = wrong(g, chunk);
        if (now != what) say(chunk);
        if (!now.empty() && first < 0) first = chunk;
        what = std::move(now);
      }
      say(layout_.outputs(g));
    }
  }

  std::string wrong(int g, int chunk) {
    const Contributions& there = memory_[static_cast<std::size_t>(g)].at({Buffer::output, chunk}).value;
    const Contributions due = layout_.due(g, chunk);
    if (there.empty()) return "nothing";
    const int one = there.first_difference(due);
    if (one < 0) return {};
    const int rank = one / algorithm_.chunks;
    if (due.contains(one)) return fmt::format("no contribution of rank {}", rank);
    return fmt::format("data of rank {} that belongs elsewhere", rank);
  }

  const Algorithm& algorithm_;
  const Layout& layout_;
  const Bytes size_;
  std::vector<int> first_block_;                                 // by GPU, of all thread blocks
  std::vector<Memory> memory_;                                   // by GPU
  std::vector<Clock> clocks_;                                    // by thread block of all
  std::vector<std::vector<std::shared_ptr<const Clock>>> ends_;  // by thread block of all and step, of those waited for
  std::set<std::tuple<std::ptrdiff_t, int, int>> awaited_;
  std::map<Connection, std::deque<Message>> in_flight_;
  Diagnostics errors_;
  /// A step that touches chunks of a buffer, from `first` to `last`, which another one touches in no order with it.
  struct Race {
    StepRef ref;
    const Step* by;
    const Step* with;
    Place first;
    int last;
  };
  std::vector<Race> races_;
};

}  // namespace

Result<std::vector<StepRef>> prove(const Algorithm& algorithm, Bytes size, int root,
                                   const std::function<bool(std::size_t)>& goes_on) {
  if (algorithm.kind == CollectiveKind::sendrecv)
    return Diagnostic{algorithm.where, "sendrecv has no algorithm of its own to bring", "expected another collective"};
  const auto ranks = static_cast<int>(algorithm.gpus.size());
  if (root < 0 || root >= ranks)
    return Diagnostic{algorithm.where, fmt::format("root {} is not among {} ranks", root, ranks),
                      "expected one of them"};
  std::size_t steps = 0, blocks = 0, chunks = 0;
  for (const Gpu& gpu : algorithm.gpus) {
    blocks += gpu.blocks.size();
    chunks += static_cast<std::size_t>(gpu.input) + static_cast<std::size_t>(gpu.output) +
              static_cast<std::size_t>(gpu.scratch) + 2 * static_cast<std::size_t>(algorithm.chunks);
    for (const ThreadBlock& block : gpu.blocks) steps += block.steps.size();
  }
  const std::size_t contributions = static_cast<std::size_t>(ranks) * static_cast<std::size_t>(algorithm.chunks);
  if (steps * blocks > most_work || chunks * contributions > 4 * most_work)
    return Diagnostic{
        algorithm.where,
        fmt::format("too large to be proved: {} steps in {} thread blocks, {} chunks", steps, blocks, chunks),
        "fewer steps, or fewer chunks"};
  const Layout layout(algorithm, root);
  if (Diagnostics errors = check_structure(algorithm, layout); !errors.empty()) return errors;
  return Run(algorithm, layout, size).all(goes_on);
}

}  // namespace collcast::msccl
