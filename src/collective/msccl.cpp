#include "collcast/collective/msccl.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

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

SpelledOut spell_out(const Algorithm& algorithm, const Group& group, Bytes size, int loops) {
  SpelledOut out;
  out.unit = volume(size) * (1.0 / (static_cast<double>(algorithm.chunks) * loops));
  out.loops = static_cast<std::uint32_t>(loops);
  std::map<std::tuple<int, int, int>, std::uint32_t> receivers;  // by sender, receiver and channel
  std::vector<std::uint32_t> first;                              // thread of a GPU
  for (std::size_t g = 0; g < algorithm.gpus.size(); ++g) {
    first.push_back(static_cast<std::uint32_t>(out.threads.size()));
    for (const ThreadBlock& block : algorithm.gpus[g].blocks) {
      const auto thread = static_cast<std::uint32_t>(out.threads.size());
      if (block.receive >= 0) receivers[{block.receive, static_cast<int>(g), block.channel}] = thread;
      out.threads.push_back({group[static_cast<int>(g)], static_cast<std::uint32_t>(out.steps.size()),
                             static_cast<std::uint32_t>(block.steps.size()), SpelledStep::none, block.channel});
      for (const Step& step : block.steps) {
        SpelledStep& row = out.steps.emplace_back();
        row.receives = receives(step.kind);
        row.sends = sends(step.kind);
        row.units = static_cast<std::uint32_t>(step.count);
        if (step.after_block < 0) continue;
        row.after_thread = first[g] + static_cast<std::uint32_t>(step.after_block);
        row.after_step = static_cast<std::uint32_t>(step.after_step);
      }
    }
  }
  std::size_t thread = 0;
  for (std::size_t g = 0; g < algorithm.gpus.size(); ++g)
    for (const ThreadBlock& block : algorithm.gpus[g].blocks) {
      if (block.send >= 0)
        if (const auto to = receivers.find({static_cast<int>(g), block.send, block.channel}); to != receivers.end())
          out.threads[thread].to = to->second;
      ++thread;
    }
  return out;
}

}  // namespace collcast::msccl
