#include "cost/crossings.hpp"

#include <algorithm>

namespace collcast {
namespace {

constexpr double just_under = 1 - 1e-9;  // what begins as a hop ends does not meet it

}  // namespace

void Crossings::add(double moment, double bytes, double duty) {
  if (entries_.empty() || entries_.back().moment != moment) entries_.push_back({moment, {}});
  Sums& own = entries_.back().upto;
  own.hops += 1;
  own.bytes += bytes;
  own.busy += bytes * duty;
  own.hops_by_moment += moment;
  own.bytes_by_moment += bytes * moment;
}

void Crossings::close() {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.moment < b.moment; });
  std::vector<Entry> merged;
  Sums upto;
  for (const Entry& entry : entries_) {
    upto.hops += entry.upto.hops;
    upto.bytes += entry.upto.bytes;
    upto.busy += entry.upto.busy;
    upto.hops_by_moment += entry.upto.hops_by_moment;
    upto.bytes_by_moment += entry.upto.bytes_by_moment;
    if (merged.empty() || merged.back().moment != entry.moment) merged.push_back(entry);
    merged.back().upto = upto;
  }
  entries_ = std::move(merged);
}

Crossings::Sums Crossings::between(std::size_t begin, std::size_t end) const {
  if (begin >= end) return {};
  Sums out = entries_[end - 1].upto;
  if (begin == 0) return out;
  const Sums& before = entries_[begin - 1].upto;
  out.hops -= before.hops;
  out.bytes -= before.bytes;
  out.busy -= before.busy;
  out.hops_by_moment -= before.hops_by_moment;
  out.bytes_by_moment -= before.bytes_by_moment;
  return out;
}

Crossings::Others Crossings::beside(double moment, double bytes, double pace, int chunks) {
  while (next_ < entries_.size() && entries_[next_].moment < moment) ++next_;
  if (next_ == entries_.size() || entries_[next_].moment != moment || !(pace > 0)) return {};
  const auto from = [this](double time) {
    return static_cast<std::size_t>(std::lower_bound(entries_.begin(), entries_.end(), time,
                                                     [](const Entry& e, double t) { return e.moment < t; }) -
                                    entries_.begin());
  };
  const double reach = chunks * pace, now = moment / pace;
  const Sums going = between(from(moment - reach * just_under), next_);
  const Sums begun = between(from(moment - reach + pace), next_);
  const Sums later = between(next_ + 1, from(moment + reach * just_under));
  const double c = chunks;
  Others out;
  out.begun = std::min(going.busy, going.hops * bytes);
  out.earlier = std::min((c - 1 - now) * begun.bytes + begun.bytes_by_moment / pace,
                         ((c - 1 - now) * begun.hops + begun.hops_by_moment / pace) * bytes);
  out.later = std::min((c + now) * later.bytes - later.bytes_by_moment / pace,
                       ((c + now) * later.hops - later.hops_by_moment / pace) * bytes);
  return out;
}

}  // namespace collcast
