// One pattern alone, all participants ready at time 0: what a Schedule with one exchange is, without a Schedule.
//
// A participant is the time at which it has finished, 8 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collcast/engine/engine.hpp"
#include "engine/agenda.hpp"
#include "engine/connections.hpp"
#include "engine/exchanges.hpp"
#include "engine/work.hpp"

namespace collcast::engine {

class OnePattern : public PatternsAlone {
 public:
  using Input = Pattern;
  using Output = Timeline;

  OnePattern(const Pattern& pattern, Connections& /*connections*/, Exchanges& exchanges, Agenda& agenda)
      : pattern_(pattern),
        exchanges_(exchanges),
        agenda_(agenda),
        finish_(static_cast<std::size_t>(pattern.size()), never),
        unfinished_(finish_.size()) {}

  void begin();
  void finished(std::uint32_t participant);

  bool all_finished() const { return unfinished_ == 0; }
  std::string describe(std::uint32_t participant) const;
  std::string left_over() const;
  /// Times alone; an operation is a participant.
  Timeline output();

 private:
  const Pattern& pattern_;
  Exchanges& exchanges_;
  Agenda& agenda_;
  std::uint32_t exchange_ = Exchanges::none;
  std::vector<Ticks> finish_;  ///< by participant; never: not yet
  std::size_t unfinished_ = 0;
};

}  // namespace collcast::engine
