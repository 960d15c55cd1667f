// Who may do a collective, and the chunks that suit it.
//
// Chunks: a forwarding phase costs sum (tau_1/c + alpha) + (c-1)/c * max tau_1, which falls with c towards
// sum alpha + max tau_1, and the other flows fall or do not depend on c. So there is no best number in this
// model, only one that is enough: the smallest power of two within 1 % of the least. Hops that share a link meet
// otherwise in one piece than in many, and the time over c may fall first and then rise: up to 16 chunks every
// power of two is looked at, and of the rest the most, halvings, and what lies beside the least.
#include "evaluate/candidates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "collcast/base/units.hpp"
#include "collcast/collective/resize.hpp"
#include "collcast/engine/footprint.hpp"
#include "collcast/evaluate/nodes.hpp"
#include "collcast/evaluate/passed_over.hpp"
#include "evaluate/group_patterns.hpp"
#include "evaluate/meeting.hpp"

namespace collcast {
namespace {

constexpr double enough = 1.01;
/// Links that the hops of an estimate cross, all told: a second of closed form, and half a minute.
constexpr std::int64_t much_work = std::int64_t{1} << 23;
constexpr std::int64_t too_much_work = std::int64_t{1} << 28;
/// A hop of a forwarding phase is kept beside those that wait for it, and takes the time of so many links: 0.7 us where
/// 200,000 ranks double on a star and 1.9 us where a million do; a link takes 50 to 90 ns.
constexpr std::int64_t links_per_forwarded_hop = 12;

/// Calls visit(lane, from, hop) for every stride-th hop that an estimate looks at, and returns how many those are; all
/// rounds of a circulating phase are one.
template <class Visit>
std::int64_t each_hop(const Pattern& pattern, std::int64_t stride, Visit visit) {
  std::int64_t count = 0;
  for (const Lane& lane : pattern.lanes)
    for (const Phase& phase : lane.phases)
      for (Position v = 0; v < pattern.size(); ++v) {
        const int hops = phase.ways(v);
        for (std::int64_t j = (stride - count % stride) % stride; j < hops; j += stride)
          visit(lane, v, phase.shape->send(phase, v, static_cast<int>(j)));
        count += hops;
      }
  return count;
}

/// Links that the hops of an estimate cross: their number times the average over a few hundred of them.
std::int64_t work(const Fabric& fabric, const std::vector<Pattern>& patterns) {
  constexpr std::int64_t looked_at = 256;
  const auto nothing = [](const Lane&, Position, const Hop&) {};
  double sum = 0;
  std::vector<LinkId> route;
  for (const Pattern& pattern : patterns) {
    const std::int64_t hops = each_hop(pattern, std::numeric_limits<std::int64_t>::max(), nothing);
    double links = 0, seen = 0;
    each_hop(pattern, hops / looked_at + 1, [&](const Lane& lane, Position from, const Hop& hop) {
      route.clear();
      fabric.route(pattern.rank(lane, from), pattern.rank(lane, hop.peer), lane.route_lane, route);
      links += static_cast<double>(route.size());
      seen += 1;
    });
    if (seen > 0) sum += static_cast<double>(hops) * links / seen;
  }
  return static_cast<std::int64_t>(std::min(sum, 9e18));
}

std::int64_t forwarded_hops(const std::vector<Pattern>& patterns) {
  std::int64_t hops = 0;
  for (const Pattern& pattern : patterns)
    for (const Lane& lane : pattern.lanes)
      for (const Phase& phase : lane.phases)
        for (Position v = 0; phase.flow == Flow::forwarding && v < pattern.size(); ++v)
          hops += phase.shape->sends(phase, v);
  return hops;
}

/// Estimates that best_chunks() makes at the least: of the most chunks, and of each halving of the rest.
int trials(const Candidate& c) {
  int out = 1;
  for (int left = most_doublings(c.patterns) + 1; c.choose_chunks && left > 1; left = (left + 1) / 2) ++out;
  return out;
}

/// Before any of it is done.
Diagnostics too_much(const Candidate& c, const CollectiveRequest& request) {
  const std::string who = c.options.algorithm + " among " + std::to_string(request.group.size()) +
                          " ranks here crosses " + std::to_string(c.work) + " links";
  if (c.work > too_much_work)
    return {{{},
             who + ", more than the " + std::to_string(too_much_work) + " that are looked at one by one",
             "expected fewer ranks, or another algorithm of this collective"}};
  const std::int64_t hops = c.forwarded, tried = trials(c);
  const std::int64_t all = tried * (c.work + links_per_forwarded_hop * hops);
  if (all <= too_much_work) return {};
  return {{{},
           who + " in " + std::to_string(hops) + " hops that wait for each other, and is looked at with " +
               std::to_string(tried) + (tried == 1 ? " number" : " numbers") + " of chunks: the work of " +
               std::to_string(all) + " links, more than the " + std::to_string(too_much_work) + " that are looked at",
           std::string("expected fewer ranks, ") + (tried > 1 ? "a number of chunks, " : "") +
               "or another algorithm of this collective"}};
}

std::optional<Estimate> with_chunks(const Candidate& c, std::vector<Pattern>& patterns, int chunks,
                                    const GoesOn& goes_on) {
  for (Pattern& pattern : patterns) pattern.chunks = chunks;
  return estimate_first(*c.routed, patterns, goes_on);
}

struct Chunked {
  int chunks = 1;
  Estimate estimate;
};

/// Numbers of chunks, by how often one chunk is doubled, that were looked at, and which is to be next.
class ChunkSearch {
 public:
  ChunkSearch(int most, Seconds floor) : most_(most), floor_(floor), seen_(static_cast<std::size_t>(most) + 1) {}

  void put(int doublings, Estimate estimate) { at(doublings) = std::move(estimate); }

  /// Whether what is taken of those seen, which are all up to some number, is so whatever the others take: fewer are
  /// too slow already, and it is near enough to what none comes below.
  bool is_settled() const { return at(taken())->total <= floor_ * enough; }

  /// Nothing: enough are known. `beside_least`: of a curve that rises again also those between which it is least.
  std::optional<int> next(bool beside_least) const {
    const int taken = this->taken(), below = seen_before(taken);
    if (taken - below > 1) return between(below, taken);
    const int low = least();
    constexpr double rises = 1.001;
    if (!beside_least || at(most_)->total <= at(low)->total * rises) return std::nullopt;
    const int before = seen_before(low), behind = seen_from(low + 1);
    if (before >= 0 && low - before > 1) return between(before, low);
    if (behind <= most_ && behind - low > 1) return between(low, behind);
    return std::nullopt;
  }

  Chunked best() && {
    const int doublings = taken();
    return {1 << doublings, std::move(*at(doublings))};
  }

 private:
  std::optional<Estimate>& at(int doublings) { return seen_[static_cast<std::size_t>(doublings)]; }
  const std::optional<Estimate>& at(int doublings) const { return seen_[static_cast<std::size_t>(doublings)]; }
  static int between(int low, int high) { return low + (high - low) / 2; }
  /// The next that was seen, -1 or one more than the most: none.
  int seen_before(int doublings) const {
    while (--doublings >= 0 && !at(doublings)) {
    }
    return doublings;
  }
  int seen_from(int doublings) const {
    while (doublings <= most_ && !at(doublings)) ++doublings;
    return doublings;
  }
  int least() const {
    int least = seen_from(0);
    for (int d = seen_from(least + 1); d <= most_; d = seen_from(d + 1))
      if (at(d)->total < at(least)->total) least = d;
    return least;
  }
  int taken() const {
    const Seconds limit = at(least())->total * enough;
    int taken = seen_from(0);
    while (!(at(taken)->total <= limit)) taken = seen_from(taken + 1);
    return taken;
  }

  int most_;
  Seconds floor_;  ///< of all numbers
  std::vector<std::optional<Estimate>> seen_;
};

std::optional<Chunked> best_chunks(const Candidate& c, std::vector<Pattern>& patterns, Bytes size,
                                   const GoesOn& goes_on) {
  constexpr int each_to = 4;
  const int most = most_doublings(patterns);
  ChunkSearch search(most, c.at_least(size));
  const auto look_at = [&](int doublings) {
    std::optional<Estimate> estimate = with_chunks(c, patterns, 1 << doublings, goes_on);
    if (estimate) search.put(doublings, std::move(*estimate));
    return estimate.has_value();
  };
  // Of what takes long no more are looked at than a curve that falls needs.
  const bool all_may_be = (most + 1) * (c.work + links_per_forwarded_hop * c.forwarded) <= too_much_work;
  for (int doublings = 0; all_may_be && doublings < most && doublings <= each_to; ++doublings) {
    if (!look_at(doublings)) return std::nullopt;
    if (search.is_settled()) return std::move(search).best();
  }
  if (!look_at(most)) return std::nullopt;
  while (const std::optional<int> doublings = search.next(all_may_be))
    if (!look_at(*doublings)) return std::nullopt;
  return std::move(search).best();
}

int ranks_on_least_used_node(const Fabric& fabric, const Group& group) {
  std::map<NodeId, int> count;
  for (int i = 0; i < group.size(); ++i) ++count[fabric.node_of(group[i])];
  int least = group.size();
  for (const auto& [node, ranks] : count) least = std::min(least, ranks);
  return count.size() > 1 ? least : 1;
}

int channels_for(const Fabric& fabric, const CollectiveRequest& request, const AlgorithmInfo& info) {
  if (!info.channelled) return 1;
  return std::max(1, std::min(fabric.nics_per_node(), ranks_on_least_used_node(fabric, request.group)));
}

/// Messages that all begin at once and that nobody waits for share a link for as long in one piece as in many: of an
/// every-to-every among nodes of one GPU, say, no other number of chunks need be looked at.
bool chunks_matter(const std::vector<Pattern>& patterns) {
  for (const Pattern& pattern : patterns)
    for (const Lane& lane : pattern.lanes)
      if (lane.phases.size() > 1 || (!lane.phases.empty() && lane.phases.front().flow != Flow::concurrent)) return true;
  return false;
}

const AlgorithmInfo* find_info(const std::string& name) {
  for (const AlgorithmInfo& info : algorithms())
    if (info.name == name) return &info;
  return nullptr;
}

/// With the links that its hops cross, however many these are.
Result<Candidate> uncounted(const Fabric& fabric, const CollectiveRequest& request, const CollectivePolicy& policy,
                            const std::string& name) {
  CollectiveOptions options{name, std::max(1, policy.chunks), std::max(1, policy.channels), {}};
  const AlgorithmInfo* info = find_info(name);
  if (info != nullptr && policy.channels == 0) options.channels = channels_for(fabric, request, *info);
  Result<std::vector<Pattern>> patterns = group_patterns(fabric, request, options);
  if (!patterns) return patterns.errors();
  Candidate out;
  out.options = std::move(options);
  out.kind = request.kind;
  out.size = request.size;
  out.patterns = std::move(patterns).value();
  out.choose_chunks = policy.chunks == 0 && info->chunked && chunks_matter(out.patterns);
  out.work = work(fabric, out.patterns);
  out.forwarded = forwarded_hops(out.patterns);
  return out;
}

Result<Candidate> candidate(const Fabric& fabric, const CollectiveRequest& request, const CollectivePolicy& policy,
                            const std::string& name) {
  Result<Candidate> made = uncounted(fabric, request, policy, name);
  if (!made) return made;
  Candidate out = std::move(made).value();
  if (Diagnostics wrong = too_much(out, request); !wrong.empty()) return wrong;
  if (out.work <= much_work) out.patterns = that_meet_the_first(fabric, std::move(out.patterns));
  out.options.node_of = node_of_each(fabric, request.group);
  return out;
}

bool does(const AlgorithmInfo& info, CollectiveKind kind) {
  return std::find(info.kinds.begin(), info.kinds.end(), kind) != info.kinds.end();
}

/// All that do the kind and suit the group; the last reasons why not if there are none.
Result<std::vector<Candidate>> all_that_can(const Fabric& fabric, const CollectiveRequest& request,
                                            const CollectivePolicy& policy, const GoesOn& goes_on) {
  std::vector<Candidate> lean, heavy;
  Diagnostics why_not;
  for (const AlgorithmInfo& info : algorithms()) {
    if (!does(info, request.kind)) continue;
    if (goes_on && !goes_on()) return ended(request);
    Result<Candidate> one = candidate(fabric, request, policy, info.name);
    if (!one) {
      why_not = one.errors();
      continue;
    }
    auto& list = one->work > much_work ? heavy : lean;
    list.push_back(std::move(one).value());
  }
  if (lean.empty() && heavy.empty()) return why_not;
  return lean.empty() ? std::move(heavy) : std::move(lean);
}

/// Where the closed forms of all of them, which are kept, and the making of the largest take more than there is.
std::optional<Diagnostic> lacks_memory(const Fabric& fabric, const std::vector<Candidate>& all,
                                       const CollectiveRequest& request, const GoesOn& goes_on) {
  constexpr Bytes is_there_always{std::int64_t{1} << 22};
  if (!goes_on.room()) return std::nullopt;
  Bytes kept{}, beside{};
  for (const Candidate& c : all) {
    const ClosedFormSize size = closed_form_size(fabric, c.patterns, c.work);
    kept += size.kept;
    beside = std::max(beside, size.beside);
  }
  const Bytes needed = kept + beside;
  if (needed <= is_there_always) return std::nullopt;
  const Bytes room = *goes_on.room();
  if (needed <= room) return std::nullopt;
  const std::string who = all.size() == 1 ? "the closed form of " + all.front().options.algorithm
                                          : "the closed forms of " + std::to_string(all.size()) + " algorithms";
  return Diagnostic{{std::string(memory_place)},
                    who + " among " + std::to_string(request.group.size()) + " ranks" +
                        (all.size() == 1 ? " takes" : " take") + " at least " + format_bytes(needed) +
                        " of memory, more than the " + format_bytes(room) + " that there is room for",
                    all.size() == 1 ? "expected fewer ranks, another algorithm, or a larger --memory-limit"
                                    : "expected --algorithm with one name, fewer ranks, or a larger --memory-limit"};
}

}  // namespace

int most_doublings(const std::vector<Pattern>& patterns) {
  double largest = 1;
  for (const Pattern& pattern : patterns)
    for (const Lane& lane : pattern.lanes) largest = std::max(largest, lane.block.value());
  return std::min(12, static_cast<int>(std::floor(std::log2(largest))));
}

Seconds Candidate::at_least(Bytes bytes) const {
  if (bytes == size) return least.at(1);
  return least.at(static_cast<double>(bytes.value()) / static_cast<double>(size.value()));
}

Result<std::vector<Candidate>> candidates(const Fabric& fabric, const CollectiveRequest& request,
                                          const CollectivePolicy& policy, const GoesOn& goes_on) {
  if (Diagnostics wrong = wrong_with_ranks(fabric, request); !wrong.empty()) return wrong;
  std::vector<Candidate> all;
  if (policy.algorithm == "auto") {
    Result<std::vector<Candidate>> able = all_that_can(fabric, request, policy, goes_on);
    if (!able) return able.errors();
    all = std::move(able).value();
  } else {
    Result<Candidate> one = candidate(fabric, request, policy, policy.algorithm);
    if (!one) return one.errors();
    all.push_back(std::move(one).value());
  }
  if (auto lacks = lacks_memory(fabric, all, request, goes_on)) return std::move(*lacks);
  for (Candidate& c : all) {
    if (goes_on && !goes_on()) return ended(request);
    c.routed.emplace(fabric, c.patterns);
  }
  return all;
}

Diagnostic ended(const CollectiveRequest& request) {
  return {{},
          "the choice of an algorithm for " + std::string(to_string(request.kind)) + " among " +
              std::to_string(request.group.size()) + " ranks was ended from outside",
          "let it run longer, or name an algorithm"};
}

std::vector<PassedOver> passed_over_by_auto(const Fabric& fabric, const CollectiveRequest& request,
                                            const CollectivePolicy& policy) {
  if (policy.algorithm != "auto" || !wrong_with_ranks(fabric, request).empty()) return {};
  std::vector<PassedOver> heavy;
  bool has_lean = false;
  for (const AlgorithmInfo& info : algorithms()) {
    if (!does(info, request.kind)) continue;
    const Result<Candidate> one = uncounted(fabric, request, policy, info.name);
    if (!one) continue;
    const bool by_name = too_much(*one, request).empty();
    if (one->work > much_work || !by_name)
      heavy.push_back({info.name, one->work, by_name});
    else
      has_lean = true;
  }
  // Without another these are what is looked at.
  if (!has_lean) std::erase_if(heavy, [](const PassedOver& p) { return p.by_name; });
  return heavy;
}

std::string to_text(const std::vector<PassedOver>& all) {
  std::string each;
  for (const PassedOver& one : all)
    each += (each.empty() ? "" : "; ") + one.algorithm + ", whose hops cross " +
            format_count(static_cast<double>(one.links)) + " links" +
            (one.by_name ? " (--algorithm " + one.algorithm + " does)" : " (nor does --algorithm)");
  if (each.empty()) return {};
  return "auto did not look at what crosses more than " + format_count(static_cast<double>(much_work)) +
         " links, which takes long, and may be faster: " + each;
}

std::optional<Choice> priced(const Candidate& c, Bytes size, const GoesOn& goes_on) {
  std::vector<Pattern> patterns = c.patterns;
  if (size != c.size)
    for (Pattern& pattern : patterns) resize(pattern, c.kind, size);
  std::optional<Chunked> best;
  if (c.choose_chunks)
    best = best_chunks(c, patterns, size, goes_on);
  else if (std::optional<Estimate> estimate = with_chunks(c, patterns, c.options.chunks, goes_on))
    best = Chunked{c.options.chunks, std::move(*estimate)};
  if (!best) return std::nullopt;
  CollectiveOptions options = c.options;
  options.chunks = patterns.front().chunks = best->chunks;
  return Choice{std::move(options), std::move(patterns.front()), std::move(best->estimate), {}};
}

}  // namespace collcast
