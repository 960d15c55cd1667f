#include "engine/folded_patterns.hpp"

#include <algorithm>

#include "engine/describe.hpp"

namespace collcast::engine {

FoldedPatterns::FoldedPatterns(const Input& input, Connections& connections, Exchanges& exchanges, Agenda& agenda)
    : input_(input), exchanges_(exchanges), agenda_(agenda), finish_(input.patterns.size()) {
  connections.stand_for(input.fold.link);
  for (std::size_t p = 0; p < input.patterns.size(); ++p) {
    const Pattern& pattern = input.patterns[p];
    first_.push_back(static_cast<std::uint32_t>(is_over_.size()));
    is_over_.resize(is_over_.size() + static_cast<std::size_t>(pattern.size()), true);
    for (std::size_t l = 0; l < pattern.lanes.size(); ++l)
      for (Position v = 0; v < pattern.size(); ++v)
        if (input.fold.first[p][l][static_cast<std::size_t>(v)] == static_cast<std::uint32_t>(v))
          is_over_[first_.back() + static_cast<std::size_t>(pattern.lanes[l].participant(v))] = false;
  }
  unfinished_ = std::count(is_over_.begin(), is_over_.end(), false);
}

void FoldedPatterns::begin() {
  for (std::size_t p = 0; p < input_.patterns.size(); ++p) {
    const Pattern& pattern = input_.patterns[p];
    if (pattern.size() == 0 || pattern.lanes.empty()) continue;
    Occasion occasion{&pattern, 0, {}, first_[p], 1};
    occasion.stands_for = &input_.fold.first[p];
    exchange_.resize(p + 1, Exchanges::none);
    exchange_[p] = exchanges_.open(occasion);
    // Only those that do something: with the last of them the exchange may be over.
    for (int participant = 0; participant < pattern.size(); ++participant)
      if (!is_over_[first_[p] + static_cast<std::size_t>(participant)]) exchanges_.ready(exchange_[p], participant);
  }
}

std::size_t FoldedPatterns::pattern_of(std::uint32_t participant) const {
  return static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), participant) - first_.begin()) - 1;
}

void FoldedPatterns::finished(std::uint32_t participant) {
  is_over_[participant] = true;
  --unfinished_;
  finish_[pattern_of(participant)] = SimTime(Picoseconds(agenda_.now));
}

std::string FoldedPatterns::describe(std::uint32_t participant) const {
  const std::size_t p = pattern_of(participant);
  return engine::describe(input_.patterns[p], static_cast<int>(participant - first_[p]));
}

std::string FoldedPatterns::left_over() const {
  const auto at = static_cast<std::uint32_t>(std::find(is_over_.begin(), is_over_.end(), false) - is_over_.begin());
  const std::size_t p = pattern_of(at);
  return describe(at) + " never finished" + exchanges_.waits_for(exchange_[p], static_cast<int>(at - first_[p]));
}

}  // namespace collcast::engine
