#include "support/spelled_programs.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "collcast/base/check.hpp"

namespace collcast::test {

namespace {

class Speller {
 public:
  Speller(const Programs& all, bool messages) : all_(all), messages_(messages) {
    out_.ops.resize(all.ranks());
    arrived_.resize(all.ranks(), std::vector<std::vector<OpId>>(all.channels));
    for (std::uint32_t r = 0; r < all.ranks(); ++r) out_.ops[r].resize(program(r).streams.size());
  }

  SpelledPrograms run() {
    for (bool more = true; more;) {
      more = false;
      for (std::uint32_t r = 0; r < all_.ranks(); ++r)
        for (std::size_t s = 0; s < out_.ops[r].size(); ++s)
          while (add_next(r, s)) more = true;
      for (auto& [key, members] : joining_)
        if (static_cast<int>(members.size()) == all_.sets[all_.collectives[std::get<1>(key)].set].members()) {
          exchange(std::get<1>(key), std::get<2>(key), members);
          members.clear();
          more = true;
        }
      for (auto& [number, ranks] : meeting_)
        if (ranks.size() == all_.ranks()) {
          meet(ranks);
          ranks.clear();
          more = true;
        }
    }
    for (std::uint32_t r = 0; r < all_.ranks(); ++r)
      for (std::size_t s = 0; s < out_.ops[r].size(); ++s)
        check(out_.ops[r][s].size() == program(r).streams[s].size(), "programs do not wait for each other");
    return std::move(out_);
  }

 private:
  struct At {
    std::uint32_t rank = 0;
    std::size_t stream = 0;
  };

  const Program& program(std::uint32_t rank) const { return all_.programs[all_.of_rank[rank]]; }

  std::vector<After> after(std::uint32_t rank, std::size_t stream) const {
    const std::vector<OpId>& before = out_.ops[rank][stream];
    return before.empty() ? std::vector<After>{} : std::vector<After>{{before.back()}};
  }

  bool add_next(std::uint32_t rank, std::size_t stream) {
    std::vector<OpId>& ops = out_.ops[rank][stream];
    if (ops.size() == program(rank).streams[stream].size()) return false;
    const auto& what = program(rank).streams[stream][ops.size()].what;
    std::vector<After> waits = after(rank, stream);
    if (const auto* spend = std::get_if<instruction::Spend>(&what)) {
      ops.push_back(out_.schedule.add(Delay{to_seconds(spend->time)}, waits));
      return true;
    }
    if (const auto* part = std::get_if<instruction::TakePart>(&what)) {
      const GroupSet& set = all_.sets[all_.collectives[part->collective].set];
      joining_[{part->number, part->collective, set.group_of(Rank(rank))}][set.member(Rank(rank))] = {rank, stream};
      return false;
    }
    if (const auto* send = std::get_if<instruction::Send>(&what)) {
      const std::uint32_t to = rank + static_cast<std::uint32_t>(send->offset);
      ops.push_back(out_.schedule.add(Transfer{Rank(rank), Rank(to), send->size, 0, send->traffic}, waits));
      arrived_[to][send->channel].push_back(ops.back());
      return true;
    }
    if (const auto* receive = std::get_if<instruction::Receive>(&what)) {
      const std::vector<OpId>& there = arrived_[rank][receive->channel];
      if (there.size() < receive->messages) return false;
      for (std::size_t i = 0; i < receive->messages; ++i) waits.push_back({there[i]});
      ops.push_back(out_.schedule.add(Delay{}, waits));
      return true;
    }
    if (const auto* await = std::get_if<instruction::Await>(&what)) {
      if (out_.ops[rank][await->stream].size() < await->instructions) return false;
      waits.push_back({out_.ops[rank][await->stream][await->instructions - 1]});
      ops.push_back(out_.schedule.add(Delay{}, waits));
      return true;
    }
    meeting_[std::get<instruction::Meet>(what).number][rank] = stream;
    return false;
  }

  void exchange(std::uint32_t collective, std::uint32_t group, const std::map<int, At>& members) {
    Pattern pattern = all_.pattern(all_.collectives[collective], group);
    pattern.group = all_.sets[all_.collectives[collective].set].group(group);
    std::vector<OpId> ready;
    for (const auto& [member, at] : members) ready.push_back(out_.schedule.add(Delay{}, after(at.rank, at.stream)));
    if (all_.collectives[collective].together) {
      std::vector<After> all;
      for (const OpId one : ready) all.push_back({one});
      std::fill(ready.begin(), ready.end(), out_.schedule.add(Delay{}, all));
    }
    std::vector<OpId> over;
    if (messages_) {
      over = append(out_.schedule, pattern, ready, all_.collectives[collective].traffic);
    } else {
      const OpId first = out_.schedule.add_exchange(pattern, ready, all_.collectives[collective].traffic);
      for (std::size_t i = 0; i < ready.size(); ++i) over.emplace_back(first.value() + static_cast<std::uint32_t>(i));
    }
    for (const auto& [member, at] : members)
      out_.ops[at.rank][at.stream].push_back(over[static_cast<std::size_t>(member)]);
  }

  void meet(const std::map<std::uint32_t, std::size_t>& ranks) {
    std::vector<After> all;
    for (const auto& [rank, stream] : ranks)
      for (const After& one : after(rank, stream)) all.push_back(one);
    const OpId met = out_.schedule.add(Delay{}, all);
    for (const auto& [rank, stream] : ranks) out_.ops[rank][stream].push_back(met);
  }

  const Programs& all_;
  bool messages_;
  SpelledPrograms out_;
  std::vector<std::vector<std::vector<OpId>>> arrived_;  ///< by rank and channel
  /// By number, collective and group: who has come, by member.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::map<int, At>> joining_;
  std::map<std::uint32_t, std::map<std::uint32_t, std::size_t>> meeting_;
};

}  // namespace

SpelledPrograms spell_out(const Programs& all, bool messages) { return Speller(all, messages).run(); }

}  // namespace collcast::test
