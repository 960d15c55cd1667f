#include "engine/repeats.hpp"

#include <utility>

namespace collcast::engine {

Repeats::Repeats(OwnLinks own, const Programs& programs, const Connections& connections, BusyOf busy,
                 std::uint32_t groups)
    : own_(std::move(own)), connections_(&connections), busy_(std::move(busy)) {
  if (!own_.any()) return;
  for (const Pattern& pattern : programs.patterns) messages_of_.push_back(traffic(pattern).messages);
  first_record_.assign(groups, none);
  watches_.resize(groups);
}

std::uint32_t Repeats::record(std::uint32_t group, std::uint32_t pattern) {
  for (std::uint32_t r = first_record_[group]; r != none; r = records_[r].next)
    if (records_[r].pattern == pattern) return r;
  const auto fresh = static_cast<std::uint32_t>(records_.size());
  records_.push_back({group, pattern, first_record_[group], none, unknown, 0});
  return first_record_[group] = fresh;
}

Ticks Repeats::again(std::uint32_t group, std::uint32_t number, std::uint32_t pattern, Ticks now) {
  const std::uint32_t r = record(group, pattern);
  Record& known = records_[r];
  if (known.takes >= 0) {
    ++known.times;
    messages_ += messages_of_[pattern];
    return known.takes;
  }
  Watch& watch = watches_[group];
  if (known.takes == unlike || watch.record != none) return unknown;
  watch = {r, number, 0, now, 0};
  ++watched_;
  known.first = static_cast<std::uint32_t>(uses_.size());
  uses_.resize(uses_.size() + own_.of(group).size());
  note_links(known);
  return unknown;
}

void Repeats::note_links(const Record& record) {
  Use* use = uses_.data() + record.first;  // a group of one rank has no links
  for (const std::uint32_t link : own_.of(record.group)) {
    use->carried = connections_->carried(link) - use->carried;
    use->busy = busy_(link) - use->busy;
    ++use;
  }
}

void Repeats::departed(std::uint32_t group, std::uint32_t number, std::uint32_t members, Ticks now) {
  if (group >= watches_.size() || watches_[group].record == none) return;
  Watch& watch = watches_[group];
  if (watch.number != number) return;
  Record& known = records_[watch.record];
  if (watch.departed++ == 0) watch.left = now;
  if (watch.left != now) known.takes = unlike;
  if (watch.departed < members) return;
  if (known.takes != unlike) {
    known.takes = now - watch.came;
    note_links(known);
  }
  watch.record = none;
  --watched_;
}

void Repeats::add_to(std::span<LinkUse> links) const {
  for (const Record& record : records_) {
    if (record.times == 0) continue;
    const Use* use = uses_.data() + record.first;
    for (const std::uint32_t link : own_.of(record.group)) {
      links[link].carried += Volume(use->carried * static_cast<double>(record.times));
      links[link].busy += Picoseconds(use->busy * record.times);
      ++use;
    }
  }
}

}  // namespace collcast::engine
