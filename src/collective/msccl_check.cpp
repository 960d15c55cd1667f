#include <fmt/format.h>

#include <map>
#include <utility>

#include "collective/msccl_memory.hpp"

namespace collcast::msccl {

namespace {

constexpr std::size_t most_errors = 20;

class Check {
 public:
  Check(const Algorithm& algorithm, const Layout& layout) : algorithm_(algorithm), layout_(layout) {}

  Diagnostics all() {
    if (std::string why = layout_.wrong(); !why.empty()) {
      error(algorithm_.where, std::move(why), "expected nchunksperloop as the collective needs it");
      return errors_;
    }
    for (int g = 0; g < ranks(); ++g) {
      const Gpu& gpu = algorithm_.gpus[static_cast<std::size_t>(g)];
      const Memory memory(gpu, layout_, g);
      std::map<std::pair<int, int>, const ThreadBlock*> senders, receivers;
      for (const ThreadBlock& block : gpu.blocks) {
        peer(g, block, block.send, "send", senders);
        peer(g, block, block.receive, "recv", receivers);
        for (const Step& step : block.steps) check(gpu, memory, block, step);
      }
    }
    return errors_;
  }

 private:
  int ranks() const { return static_cast<int>(algorithm_.gpus.size()); }
  void error(const Location& where, std::string message, std::string hint) {
    if (errors_.size() < most_errors) errors_.push_back({where, std::move(message), std::move(hint)});
  }

  void peer(int g, const ThreadBlock& block, int other, const char* what,
            std::map<std::pair<int, int>, const ThreadBlock*>& seen) {
    if (other < 0) return;
    if (other >= ranks() || other == g)
      return error(block.where, fmt::format("{} of a thread block of rank {} is {}", what, g, other),
                   fmt::format("expected another rank below {}, or -1", ranks()));
    const auto [there, is_new] = seen.emplace(std::pair(other, block.channel), &block);
    if (!is_new)
      error(block.where, fmt::format("{} {} on channel {} twice in rank {}", what, other, block.channel, g),
            fmt::format("the first is at {}; expected a channel of its own", to_text(there->second->where)));
  }

  void check(const Gpu& gpu, const Memory& memory, const ThreadBlock& block, const Step& step) {
    if (sends(step.kind) && block.send < 0)
      error(step.where, fmt::format("'{}' in a thread block without send", to_string(step.kind)),
            "expected send=\"RANK\" in its <tb>");
    if (receives(step.kind) && block.receive < 0)
      error(step.where, fmt::format("'{}' in a thread block without recv", to_string(step.kind)),
            "expected recv=\"RANK\" in its <tb>");
    if (step.after_block >= 0) {
      const auto blocks = static_cast<int>(gpu.blocks.size());
      if (step.after_block >= blocks)
        error(step.where, fmt::format("depid is {}, and the rank has {} thread blocks", step.after_block, blocks),
              "expected the id of one of them, or -1");
      else if (const auto steps = static_cast<int>(gpu.blocks[static_cast<std::size_t>(step.after_block)].steps.size());
               step.after_step < 0 || step.after_step >= steps)
        error(step.where,
              fmt::format("deps is {}, and thread block {} has {} steps", step.after_step, step.after_block, steps),
              "expected the place of one of them");
    }
    if (step.kind == StepKind::nop) return;
    if (step.kind == StepKind::send || step.kind == StepKind::copy || reduces(step.kind))
      inside(memory, step, step.source, "src");
    if (step.kind != StepKind::send && step.kind != StepKind::receive_reduce_send)
      inside(memory, step, step.destination, "dst");
  }

  void inside(const Memory& memory, const Step& step, Place place, const char* what) {
    const int length = memory.length(place.buffer);
    if (place.offset >= 0 && step.count >= 0 && step.count <= length && place.offset <= length - step.count) return;
    error(step.where,
          fmt::format("{}off {} with cnt {} is outside the {} buffer", what, place.offset, step.count,
                      to_string(place.buffer)),
          fmt::format("it has {} chunks on this rank", length));
  }

  const Algorithm& algorithm_;
  const Layout& layout_;
  Diagnostics errors_;
};

}  // namespace

Diagnostics check_structure(const Algorithm& algorithm, const Layout& layout) { return Check(algorithm, layout).all(); }

}  // namespace collcast::msccl
