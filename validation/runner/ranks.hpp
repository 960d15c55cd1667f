// The ranks of one measurement, seen from the process that started them.
//
// Each has a pipe or a socket to here, on which it says what it does, its rows (rank 0) and how it ended. A rank that
// dies closes it, so that is seen at once; then the others have a moment to say what they saw.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runner/descriptor.hpp"
#include "runner/frames.hpp"
#include "runner/messages.hpp"
#include "runner/signals.hpp"

namespace collcast::runner {

struct RankProcess {
  pid_t id = -1;  ///< of a child of this process; else somebody else's
  Descriptor pipe;
  FrameReader reader{};
  std::optional<MeasureOutcome> outcome{};  ///< as it said
  std::string death{};                      ///< why it ended without a word
};

/// What is left of children is ended with it.
class Ranks {
 public:
  Ranks(const MeasureSink& sink, const SignalsAsData& signals) : sink_(sink), signals_(signals) {}
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// In the order of ranks.
  void add(RankProcess process) { processes_.push_back(std::move(process)); }
  /// In a fork: they are another's children.
  void forget() { processes_.clear(); }
  /// Until all have ended, or one has failed.
  MeasureOutcome watch();
  /// True where a rank ended without a word.
  bool any_died() const;

 private:
  bool hear(RankProcess&);
  bool pass_on(RankProcess&, const Message&);
  bool failed() const;
  MeasureOutcome verdict() const;

  const MeasureSink& sink_;
  const SignalsAsData& signals_;
  std::vector<RankProcess> processes_;
  std::string doing_;
};

}  // namespace collcast::runner
