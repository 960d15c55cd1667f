#include "engine/one_pattern.hpp"

#include <algorithm>

#include "engine/describe.hpp"

namespace collcast::engine {

void OnePattern::begin() {
  if (finish_.empty()) return;
  exchange_ = exchanges_.open({&pattern_, 0, 0, 0, 1});
  for (int participant = 0; participant < pattern_.size(); ++participant) exchanges_.ready(exchange_, participant);
}

void OnePattern::finished(std::uint32_t participant) {
  finish_[participant] = agenda_.now;
  --unfinished_;
}

std::string OnePattern::describe(std::uint32_t participant) const {
  return engine::describe(pattern_, static_cast<int>(participant));
}

std::string OnePattern::left_over() const {
  std::uint32_t participant = 0;
  while (finish_[participant] != never) ++participant;
  return describe(participant) + " never finished" + exchanges_.waits_for(exchange_, static_cast<int>(participant));
}

Timeline OnePattern::output() {
  Timeline timeline;
  timeline.ops.reserve(finish_.size());
  for (const Ticks finish : finish_) {
    const SimTime at{Picoseconds(finish)};
    timeline.ops.push_back({SimTime{}, at, at});
    timeline.finish = std::max(timeline.finish, at);
  }
  return timeline;
}

}  // namespace collcast::engine
