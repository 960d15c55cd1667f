// Patterns at once, folded: the positions that stand for their classes take part, and their messages cross the links
// that stand for theirs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collcast/engine/engine.hpp"
#include "engine/agenda.hpp"
#include "engine/connections.hpp"
#include "engine/exchanges.hpp"
#include "engine/fold.hpp"
#include "engine/work.hpp"

namespace collcast::engine {

class FoldedPatterns : public PatternsAlone {
 public:
  struct Input {
    std::span<const Pattern> patterns;
    const Fold& fold;
  };
  struct Output {
    std::vector<SimTime> finish;  ///< by pattern
    std::vector<LinkUse> links;   ///< of those that stand for others
    EngineCounters counters;
  };

  FoldedPatterns(const Input& input, Connections& connections, Exchanges& exchanges, Agenda& agenda);

  void begin();
  void finished(std::uint32_t participant);

  bool all_finished() const { return unfinished_ == 0; }
  std::string describe(std::uint32_t participant) const;
  std::string left_over() const;
  Output output() { return {std::move(finish_), {}, {}}; }

 private:
  std::size_t pattern_of(std::uint32_t participant) const;

  const Input& input_;
  Exchanges& exchanges_;
  Agenda& agenda_;
  std::vector<std::uint32_t> first_;     ///< by pattern: its participant 0 among those of all
  std::vector<std::uint32_t> exchange_;  ///< by pattern
  std::vector<bool> is_over_;            ///< by participant; those that stand for none have nothing to do
  std::vector<SimTime> finish_;
  std::int64_t unfinished_ = 0;
};

}  // namespace collcast::engine
