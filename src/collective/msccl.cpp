#include "collcast/collective/msccl.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

namespace collcast::msccl {

namespace {

constexpr std::array<std::string_view, 9> words{"s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop"};

}  // namespace

std::string_view to_string(StepKind kind) { return words[static_cast<std::size_t>(kind)]; }

std::optional<StepKind> parse_step(std::string_view word) {
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return std::nullopt;
  return static_cast<StepKind>(found - words.begin());
}

std::vector<std::string> step_words() { return {words.begin(), words.end()}; }

bool receives(StepKind kind) {
  using enum StepKind;
  return kind == receive || kind == receive_copy_send || kind == receive_reduce_send || kind == receive_reduce_copy ||
         kind == receive_reduce_copy_send;
}

bool sends(StepKind kind) {
  using enum StepKind;
  return kind == send || kind == receive_copy_send || kind == receive_reduce_send || kind == receive_reduce_copy_send;
}

bool reduces(StepKind kind) {
  using enum StepKind;
  return kind == receive_reduce_send || kind == receive_reduce_copy || kind == receive_reduce_copy_send ||
         kind == reduce;
}

namespace {

class Speller {
 public:
  Speller(const Algorithm& algorithm, const Group& group, Volume chunk)
      : algorithm_(algorithm), group_(group), chunk_(chunk) {
    for (const Gpu& gpu : algorithm.gpus) {
      progress_.emplace_back(gpu.blocks.size());
      for (std::size_t b = 0; b < gpu.blocks.size(); ++b) progress_.back()[b].joins.resize(gpu.blocks[b].steps.size());
      for (const ThreadBlock& block : gpu.blocks)
        for (const Step& step : block.steps)
          if (step.after_block >= 0) join_of(progress_.back(), step).awaited = true;
    }
  }

  void add(const StepRef& ref) {
    std::vector<Progress>& gpu = progress_[static_cast<std::size_t>(ref.gpu)];
    Progress& own = gpu[static_cast<std::size_t>(ref.block)];
    const ThreadBlock& block =
        algorithm_.gpus[static_cast<std::size_t>(ref.gpu)].blocks[static_cast<std::size_t>(ref.block)];
    const Step& step = block.steps[static_cast<std::size_t>(ref.step)];
    if (step.after_block >= 0) own.pending.push_back({join_of(gpu, step).op});
    if (receives(step.kind)) {
      auto& queue = in_flight_[{block.receive, ref.gpu, block.channel}];
      own.pending.push_back({queue.front()});
      queue.pop_front();
    }
    if (sends(step.kind)) {
      const Transfer transfer{group_[ref.gpu], group_[block.send], chunk_ * step.count, block.channel};
      const OpId op = schedule_.add(transfer, own.pending);
      own.pending = {{op, Until::left}};
      in_flight_[{ref.gpu, block.send, block.channel}].push_back(op);
    }
    if (Join& join = own.joins[static_cast<std::size_t>(ref.step)]; join.awaited) {
      join.op = schedule_.add(Delay{}, own.pending);
      own.pending = {{join.op}};
    }
  }

  Schedule take() { return std::move(schedule_); }

 private:
  /// The end of a step that others wait for, in the present loop.
  struct Join {
    bool awaited = false;
    OpId op{};
  };
  struct Progress {              // of a thread block
    std::vector<After> pending;  // what its next operation waits for
    std::vector<Join> joins;     // by step
  };
  static Join& join_of(std::vector<Progress>& gpu, const Step& step) {
    return gpu[static_cast<std::size_t>(step.after_block)].joins[static_cast<std::size_t>(step.after_step)];
  }

  const Algorithm& algorithm_;
  const Group& group_;
  Volume chunk_;
  Schedule schedule_;
  std::vector<std::vector<Progress>> progress_;                      // by GPU and thread block
  std::map<std::tuple<int, int, int>, std::deque<OpId>> in_flight_;  // by sender, receiver and channel
};

}  // namespace

Schedule spell_out(const Algorithm& algorithm, const std::vector<StepRef>& order, const Group& group, Bytes size,
                   int loops) {
  Speller speller(algorithm, group, volume(size) * (1.0 / (static_cast<double>(algorithm.chunks) * loops)));
  for (int loop = 0; loop < loops; ++loop)
    for (const StepRef& ref : order) speller.add(ref);
  return speller.take();
}

}  // namespace collcast::msccl
