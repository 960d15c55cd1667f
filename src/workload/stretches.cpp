#include "workload/stretches.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "workload/slowdown.hpp"

namespace collcast::workload {

namespace {

class StretchMaker {
 public:
  StretchMaker(const StepInputs& in, Pace pace, const StretchPrices& prices)
      : in_(in), pace_(pace), prices_(prices), message_(tp_bytes(in)) {}

  UnitWork make(const Segments& segments, bool has_loss) {
    UnitWork w{stretches(segments.forward), stretches(segments.backward), {}, {}, stretches(segments.weights)};
    const bool reduces = has_loss && in_.layout.tp > 1 && !in_.serving;
    if (reduces) {
      const PricedTime one = prices_.tp(CollectiveKind::all_reduce, loss_bytes(in_), loss_reductions(in_));
      w.forward.push_back(communication("loss all_reduce", Category::tp, loss_reductions(in_) * one));
    }
    if (in_.options.overlap_ep) {
      hide_exchange(w.forward);
      if (has_whole_backwards(in_.layout)) hide_exchange_of_whole(w);
      hide_exchange(w.backward);
    }
    Launches of_forward = launches(segments.forward);
    if (reduces) of_forward.by_model += loss_reductions(in_);
    add_wait(w.forward, of_forward, segments.copies, Category::forward);
    add_wait(w.backward, launches(segments.backward), segments.copies, Category::backward);
    add_wait(w.weights, launches(segments.weights), {}, Category::backward);
    if (w.whole_backward.empty()) return w;
    add_wait(w.whole_backward, launches(segments.backward), segments.copies, Category::backward);
    add_wait(w.whole_weights, launches(segments.weights), {}, Category::backward);
    return w;
  }

 private:
  static Stretch communication(std::string name, Category category, const PricedTime& priced) {
    return {std::move(name), category, priced.time, {}, Category::cp, priced.uses, 1, {}};
  }

  /// Of a pass: its exchange, and the computing that has nothing beside it, with its rate beside the exchange.
  struct Free {
    Seconds exchange{}, computing{}, slowed{};
    double rate() const { return slowed > computing ? computing / slowed : 1; }
  };
  static Free free_of(const std::vector<Stretch>& pass) {
    Free all;
    for (const Stretch& s : pass) {
      if (s.category == Category::ep) all.exchange += s.time;
      if (!is_free(s)) continue;
      all.computing += s.time;
      all.slowed += s.time / s.rate;
    }
    return all;
  }
  /// Computing that has nothing beside it.
  static bool is_free(const Stretch& s) { return s.computes() && s.beside == Seconds{}; }

  /// What the exchange of a whole backward is longer than its computing without weight gradients runs beside these, as
  /// far as they go: max(computing, exchange) of both together.
  static void hide_exchange_of_whole(UnitWork& w) {
    const Free backward = free_of(w.backward), weights = free_of(w.weights);
    if (backward.exchange == Seconds{} || weights.computing == Seconds{}) return;
    w.whole_backward = w.backward;
    w.whole_weights = w.weights;
    const Seconds moved = std::clamp(backward.exchange - backward.computing / backward.rate(), Seconds{},
                                     weights.computing / weights.rate());
    for (Stretch& s : w.whole_backward)
      if (s.category == Category::ep) s.time *= (backward.exchange - moved) / backward.exchange;
    put_beside(w.whole_weights, weights, moved);
    hide_exchange(w.whole_backward);
  }

  /// The exchange of a pass runs beside all its computing that has nothing beside it, as if that were another
  /// micro-batch's: max(computing, exchange) in all.
  static void hide_exchange(std::vector<Stretch>& pass) {
    const Free free = free_of(pass);
    if (free.exchange == Seconds{} || free.computing == Seconds{}) return;
    std::erase_if(pass, [](const Stretch& s) { return s.category == Category::ep; });
    put_beside(pass, free, free.exchange);
    // What follows the pass waits for both.
    pass.push_back({"exchange is over", Category::ep, {}, {}});
  }

  /// Shares `exchange` out to the free computing of a pass, which goes at one rate beside it.
  static void put_beside(std::vector<Stretch>& pass, const Free& free, Seconds exchange) {
    for (Stretch& s : pass) {
      if (!is_free(s)) continue;
      const Seconds alone = s.time;
      s.beside = exchange * (alone / free.computing);
      s.beside_is = Category::ep;
      s.time = beside_collective(free.rate(), alone, s.beside);
      s.slowed = s.time - alone;
    }
  }

  /// The host's launches and the copies to its memory go on beside a pass: it ends when all of them are over.
  void add_wait(std::vector<Stretch>& pass, Launches launches, const HostCopies& copies, Category category) const {
    const auto wait = [&](Seconds busy) { return std::max(launch_wait(in_, launches, busy), copy_wait(copies, busy)); };
    const Seconds busy = length(pass), alone = wait(busy);
    if (alone == Seconds{}) return;
    const bool for_copies = copy_wait(copies, busy) > launch_wait(in_, launches, busy);
    pass.push_back({for_copies ? copy_wait_name : launch_wait_name, category, wait(at_slowest(pass)), {}});
    pass.back().spared = alone - pass.back().time;
  }

  /// A pass goes at the pace of the slowest GPU of its groups; faster ones have launched what they wait with.
  Seconds at_slowest(const std::vector<Stretch>& pass) const {
    if (!(pace_.slowest < pace_.own)) return length(pass);
    std::vector<Stretch> slower = pass;
    for (Stretch& s : slower)
      if (s.computes()) s.time = s.time * (pace_.own / pace_.slowest);
    return length(slower);
  }

  static void slow(Stretch& s) {
    const Seconds alone = s.time;
    s.time = beside_collective(s.rate, alone, s.beside);
    s.slowed = s.time - alone;
  }

  std::string name_of(const Segment& s, std::string_view what = {}) const {
    if (!prices_.named) return {};
    std::string name = s.category == Category::recompute ? "recompute " + s.name : s.name;
    return what.empty() ? name : name.append(" ").append(what);
  }

  std::vector<Stretch> stretches(const std::vector<Segment>& segments) {
    std::vector<Stretch> result;
    result.reserve(segments.size() + 1);
    for (const Segment& s : segments) {
      Seconds compute{};
      for (const Operation& op : s.operations) compute += op.time;
      compute /= pace_.own;
      const PricedTime ring = s.ring_messages * prices_.cp(CollectiveKind::sendrecv, s.ring_bytes, s.ring_messages);
      const bool beside = in_.options.overlap_cp && !s.operations.empty();
      const double rate = rate_beside(in_.kernels, s.operations);
      if (s.under) {
        const PricedTime under = prices_.tp(s.under->kind, s.under->bytes > 0 ? s.under->bytes : message_, 1);
        result.push_back({name_of(s), s.category, compute, under.time, Category::tp, under.uses, rate, {}});
        slow(result.back());
      } else if (!s.operations.empty()) {
        const PricedTime under = beside ? ring : PricedTime();
        result.push_back({name_of(s), s.category, compute, under.time, Category::cp, under.uses, rate, {}});
        if (under.slows) slow(result.back());
      }
      if (ring.time > Seconds{} && !beside) result.push_back(communication(name_of(s, "messages"), Category::cp, ring));
      if (s.all_to_all_bytes > 0)
        result.push_back(communication(name_of(s, "alltoall"), Category::cp,
                                       prices_.cp(CollectiveKind::alltoall, s.all_to_all_bytes, 1)));
      if (s.then)
        result.push_back(communication(name_of(s, to_string(*s.then)), Category::tp,
                                       prices_.tp(*s.then, s.then_bytes > 0 ? s.then_bytes : message_, 1)));
      if (s.exchange)
        result.push_back(
            communication(name_of(s, to_string(s.exchange->kind)), Category::ep, prices_.experts(*s.exchange)));
    }
    return result;
  }

  const StepInputs& in_;
  Pace pace_;
  const StretchPrices& prices_;
  double message_;
};

}  // namespace

PricedTime operator+(PricedTime a, const PricedTime& b) {
  a.time += b.time;
  std::size_t end = 0;
  while (end < a.uses.collectives.size() && a.uses.collectives[end] != Uses::none) ++end;
  for (const int c : b.uses.collectives) {
    if (c == Uses::none) continue;
    check(end < a.uses.collectives.size(), "a time is made of four collectives at most");
    a.uses.collectives[end++] = c;
  }
  return a;
}

PricedTime operator*(int times, PricedTime one) {
  one.time *= times;
  one.uses.times = times;
  return one;
}

UnitWork unit_work(const StepInputs& in, const Segments& segments, bool has_loss, Pace pace,
                   const StretchPrices& prices) {
  return StretchMaker(in, pace, prices).make(segments, has_loss);
}

}  // namespace collcast::workload
