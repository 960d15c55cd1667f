#include "runner/meeting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "runner/communicator.hpp"
#include "runner/frames.hpp"

namespace collcast::runner {

namespace {

/// All of a plan that every rank must agree on.
std::string agreement(const MeasurePlan& plan) {
  std::string out = fmt::format("{} {} {} root {} warmup {} repetitions {} calls {}{}{}", plan.backend, plan.datatype,
                                plan.algorithm, plan.root, plan.warmup, plan.repetitions, plan.calls,
                                plan.graph ? " graph" : "", plan.share_gpu ? " share-gpu" : "");
  for (const CollectiveKind kind : plan.kinds) out += fmt::format(" {}", to_string(kind));
  for (const Bytes size : plan.sizes) out += fmt::format(" {}", size.value());
  return out;
}

std::string other_mind(int rank, const std::string& its_plan, const std::string& wanted_plan) {
  return fmt::format("rank {} measures something else than rank 0: '{}', not '{}'", rank, its_plan, wanted_plan);
}

/// Every process's text, by what a group can do: a number for each character, behind how many there are.
std::vector<std::string> gather_text(Communicator& group, const std::string& own) {
  const std::vector<double> size{static_cast<double>(own.size())};
  double longest = 0;
  for (const std::vector<double>& one : group.gather(size)) longest = std::max(longest, one.front());
  std::vector<double> letters(own.begin(), own.end());
  letters.resize(static_cast<std::size_t>(longest));
  std::vector<std::string> out;
  for (const std::vector<double>& one : group.gather(letters)) {
    std::string text;
    for (const double letter : one) text += static_cast<char>(letter);
    text.resize(std::min(text.find('\0'), text.size()));
    out.push_back(std::move(text));
  }
  return out;
}

std::string key_of(int rank) { return fmt::format("rank/{}", rank); }
std::string heard_by(int rank) { return fmt::format("heard/{}", rank); }

/// What rank 0 lets all ranks know.
struct Verdict {
  enum class Kind : char { go = 'g', missing = 'm', disagreement = 'd' };
  Kind kind = Kind::go;
  std::string text;
};

/// A rank's card against that of rank 0. `ranks` is for the text where there is no card.
Verdict judge(int rank, const std::optional<std::string>& card, std::string_view first, int ranks,
              std::chrono::milliseconds timeout) {
  if (!card)
    return {Verdict::Kind::missing, fmt::format("rank {} of {} did not come within {} s", rank, ranks,
                                                static_cast<double>(timeout.count()) / 1000)};
  std::string_view rest = *card;
  const std::string its_ranks = unpack(rest), its_plan = unpack(rest);
  const std::string wanted_ranks = unpack(first), wanted_plan = unpack(first);
  if (its_ranks != wanted_ranks)
    return {Verdict::Kind::disagreement,
            fmt::format("rank {} was started as one of {}, rank 0 as one of {}", rank, its_ranks, wanted_ranks)};
  if (its_plan != wanted_plan) return {Verdict::Kind::disagreement, other_mind(rank, its_plan, wanted_plan)};
  return {};
}

/// Looks at every rank's card and tells all of them what it found. After anything but go this process ends, and
/// the store with it: those who came have a moment to hear why.
Verdict judge_all(const MeasurePlan& plan, int ranks, const std::string& own_card, Store& store) {
  const auto left_of = [](Deadline deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    return std::max(left, std::chrono::milliseconds(1));
  };
  const Deadline deadline = std::chrono::steady_clock::now() + plan.timeout;
  Verdict out;
  std::vector<int> came;
  for (int rank = 1; rank < ranks && out.kind == Verdict::Kind::go; ++rank) {
    const auto card = store.get(key_of(rank), left_of(deadline));
    if (card) came.push_back(rank);
    out = judge(rank, card, own_card, ranks, plan.timeout);
  }
  store.set("verdict", static_cast<char>(out.kind) + out.text);
  const Deadline heard = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (const int rank : came) {
    if (out.kind != Verdict::Kind::go) store.get(heard_by(rank), left_of(heard));
  }
  return out;
}

/// Rank 0 waits for the last one as long as this rank may have waited for rank 0.
Verdict hear_verdict(const MeasurePlan& plan, int rank, Store& store) {
  const auto text = store.get("verdict", 2 * plan.timeout);
  if (!text || text->empty()) return {Verdict::Kind::missing, "rank 0 did not say in time whether all ranks are there"};
  if (text->front() != static_cast<char>(Verdict::Kind::go)) store.set(heard_by(rank), "");
  return {static_cast<Verdict::Kind>(text->front()), text->substr(1)};
}

}  // namespace

void meet(const MeasurePlan& plan, const Membership& self, Store& store) {
  std::string card;
  pack(card, std::to_string(self.ranks));
  pack(card, agreement(plan));
  // A rank that rank 0 does not count, because it has another idea of the world, must find out by itself.
  Verdict own;
  if (self.rank > 0) {
    const auto first = store.get(key_of(0), plan.timeout);
    if (!first) throw Broken("rank 0 answers, but does not say what it measures");
    own = judge(self.rank, card, *first, self.ranks, plan.timeout);
  }
  if (!store.set(key_of(self.rank), card))
    throw Broken(fmt::format("rank {} is there already: two processes are rank {}, or another run uses this address",
                             self.rank, self.rank),
                 Ending::refused);
  if (own.kind == Verdict::Kind::go)
    own = self.rank == 0 ? judge_all(plan, self.ranks, card, store) : hear_verdict(plan, self.rank, store);
  else
    store.set(heard_by(self.rank), "");
  if (own.kind == Verdict::Kind::go) return;
  // That a rank is late may be nobody's mistake.
  throw Broken(own.text, own.kind == Verdict::Kind::missing ? Ending::broken : Ending::refused);
}

void agree(const MeasurePlan& plan, Communicator& group) {
  const std::vector<std::string> wants = gather_text(group, agreement(plan));
  for (std::size_t rank = 1; rank < wants.size(); ++rank) {
    if (wants[rank] != wants.front())
      throw Broken(other_mind(static_cast<int>(rank), wants[rank], wants.front()), Ending::refused);
  }
}

}  // namespace collcast::runner
