#include "support/reference_engine.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace collcast::test {

namespace {

using Ps = std::int64_t;
__extension__ using Grains = __int128;  ///< 2^-24 * 1e-12 bytes, as src/engine/progress.hpp says

/// value * factor to the nearest whole number; factor has at most 60 bits.
Grains rounded(double value, std::int64_t factor) {
  int binary = 0;
  const double fraction = std::frexp(value, &binary);
  const Grains scaled = Grains{static_cast<std::int64_t>(fraction * 0x1p53)} * factor;
  Grains power = 1;
  for (int i = std::abs(binary - 53); i > 0 && power < (Grains{1} << 120); --i) power *= 2;
  return binary >= 53 ? scaled * power : (scaled + power / 2) / power;
}
constexpr std::int64_t grains_per_bps = std::int64_t{1} << 24;

/// 1e12 grains per 2^-24 bytes: 5^12 * 2^36 per byte, which has 64 bits; so the powers of two go into the value.
Grains size_in_grains(double bytes) { return rounded(bytes * 0x1p36, 244140625); }

Grains whole_picoseconds(Grains amount, Grains per_picosecond) {
  Grains whole = amount / per_picosecond;
  if (whole * per_picosecond < amount) ++whole;
  return whole;
}

constexpr Ps unknown = std::numeric_limits<Ps>::max();

enum class State { waiting, asking, flowing, travelling, running, over };

struct Op {
  State state = State::waiting;
  Interval times;
  bool has_left = false;
  Ps due = unknown;  ///< when its present state ends
  const Transfer* transfer = nullptr;
  std::vector<LinkId> route;
  Ps latency = 0;
  Ps asked = 0;
  Ps since = 0;
  Grains remaining = 0;
  double rate = 0;
};

class Reference {
 public:
  Reference(const Fabric& fabric, const Schedule& schedule, Sharing sharing)
      : fabric_(fabric), schedule_(schedule), sharing_(sharing), ops_(schedule.size()), use_(fabric.links().size()) {
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (const auto* transfer = std::get_if<Transfer>(&schedule.work(id(i)))) prepare(ops_[i], *transfer);
  }

  Timeline run() {
    for (Ps next = 0; next != unknown;) {
      account(next - now_);
      now_ = next;
      while (step_without_time()) {
      }
      if (sharing_ == Sharing::max_min) share_fairly();
      if (sharing_ == Sharing::fifo) start_in_turn();
      if (sharing_ == Sharing::none) start_all();
      next = unknown;
      for (const Op& op : ops_) next = std::min(next, op.due);
    }
    Timeline timeline;
    for (const Op& op : ops_) {
      if (op.state != State::over) throw std::logic_error("the reference engine has work left over");
      timeline.ops.push_back(op.times);
      timeline.finish = std::max(timeline.finish, op.times.finish);
    }
    timeline.links = use_;
    return timeline;
  }

 private:
  static OpId id(std::size_t i) { return OpId(static_cast<std::uint32_t>(i)); }
  static SimTime at(Ps t) { return SimTime(Picoseconds(t)); }
  double capacity(LinkId link) const { return fabric_.links()[link.value()].bandwidth.value(); }

  void prepare(Op& op, const Transfer& transfer) {
    op.transfer = &transfer;
    fabric_.route(transfer.from, transfer.to, transfer.lane, op.route);
    Seconds latency{};
    for (const LinkId link : op.route) latency += fabric_.links()[link.value()].latency;
    op.latency = to_picoseconds(latency).count();
  }

  void account(Ps elapsed) {
    std::set<LinkId> in_use;
    for (const Op& op : ops_)
      if (op.state == State::flowing) in_use.insert(op.route.begin(), op.route.end());
    for (const LinkId link : in_use) use_[link.value()].busy += Picoseconds(elapsed);
  }

  bool may_start(std::size_t i) const {
    return std::ranges::all_of(schedule_.after(id(i)), [&](const After& edge) {
      const Op& before = ops_[edge.op.value()];
      return before.state == State::over || (edge.until == Until::left && before.has_left);
    });
  }

  /// One thing that happens at this instant; false if there is none left.
  bool step_without_time() {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      Op& op = ops_[i];
      if (op.state == State::waiting && may_start(i)) return start(i), true;
      if (op.due != now_) continue;
      if (op.state == State::flowing) return leave(op), true;
      op.state = State::over;
      op.times.finish = at(now_);
      if (op.transfer == nullptr) op.times.left = at(now_);
      op.due = unknown;
      return true;
    }
    return false;
  }

  void start(std::size_t i) {
    Op& op = ops_[i];
    op.times.start = at(now_);
    const Work& work = schedule_.work(id(i));
    if (op.transfer != nullptr) {
      op.state = State::asking;
      op.asked = now_;
      if (!(op.transfer->size.value() > 0) || op.route.empty()) leave(op);
      return;
    }
    op.state = State::running;
    const auto* compute = std::get_if<Compute>(&work);
    op.due = now_ + to_picoseconds(compute != nullptr ? compute->duration : std::get<Delay>(work).duration).count();
  }

  void leave(Op& op) {
    op.state = State::travelling;
    op.has_left = true;
    op.times.left = at(now_);
    op.due = now_ + op.latency;
    for (const LinkId link : op.route) use_[link.value()].carried += op.transfer->size;
  }

  void start_flowing(Op& op, double rate) {
    op.state = State::flowing;
    op.times.start = at(now_);
    const Grains all = size_in_grains(op.transfer->size.value());
    op.remaining = std::max<Grains>(1, all - all / (std::int64_t{1} << 51));
    op.rate = 0;
    op.since = now_;
    set_rate(op, rate);
  }

  void set_rate(Op& op, double rate) {
    if (rate == op.rate) return;
    op.remaining -= rounded(op.rate, grains_per_bps) * (now_ - op.since);
    op.since = now_;
    op.rate = rate;
    op.due = unknown;
    if (rate == 0) return;
    // Beyond the clock at this rate is not known: another rate will follow.
    const Grains due = now_ + whole_picoseconds(op.remaining, rounded(rate, grains_per_bps));
    if (due < unknown) op.due = static_cast<Ps>(due);
  }

  double bandwidth(const Op& op) const {
    double smallest = std::numeric_limits<double>::infinity();
    for (const LinkId link : op.route) smallest = std::min(smallest, capacity(link));
    return smallest;
  }

  void start_all() {
    for (Op& op : ops_)
      if (op.state == State::asking) start_flowing(op, bandwidth(op));
  }

  void start_in_turn() {
    std::set<LinkId> taken;
    std::vector<std::size_t> asking;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].state == State::flowing) taken.insert(ops_[i].route.begin(), ops_[i].route.end());
      if (ops_[i].state == State::asking) asking.push_back(i);
    }
    std::ranges::sort(asking, [&](std::size_t a, std::size_t b) {
      const auto turn = [&](std::size_t i) {
        const Transfer& t = *ops_[i].transfer;
        return std::tuple(t.traffic.priority, ops_[i].asked, t.from, t.to, t.lane, t.size, i);
      };
      return turn(a) < turn(b);
    });
    for (const std::size_t i : asking) {
      Op& op = ops_[i];
      const bool is_first = std::ranges::none_of(op.route, [&](LinkId link) { return taken.contains(link); });
      taken.insert(op.route.begin(), op.route.end());  // those behind wait for this one either way
      if (is_first) start_flowing(op, bandwidth(op));
    }
  }

  void share_fairly() {
    for (Op& op : ops_)
      if (op.state == State::asking) start_flowing(op, 0);
    std::map<int, std::vector<Op*>> classes;
    for (Op& op : ops_)
      if (op.state == State::flowing) classes[op.transfer->traffic.priority].push_back(&op);
    std::map<LinkId, double> left;
    std::map<LinkId, int> users;
    for (const auto& [priority, flows] : classes)
      for (const Op* op : flows)
        for (const LinkId link : op->route) {
          left[link] = capacity(link);
          ++users[link];
        }
    for (auto& [priority, flows] : classes) {
      for (auto& [link, rest] : left)
        if (rest < 1e-12 * capacity(link)) rest = 0;
      fill(flows, left, users);
    }
  }

  /// A flow of weight w is as w flows, and has all of a link of its own that stops it.
  void fill(std::vector<Op*> growing, std::map<LinkId, double>& left, const std::map<LinkId, int>& users) {
    std::map<LinkId, double> share;
    while (!growing.empty()) {
      std::map<LinkId, int> flows_on;
      for (const Op* op : growing)
        for (const LinkId link : op->route) flows_on[link] += op->transfer->traffic.weight;
      double level = std::numeric_limits<double>::infinity();
      for (const auto& [link, flows] : flows_on) {
        const double fresh = left[link] / flows;
        const auto [known, is_new] = share.try_emplace(link, fresh);
        if (!is_new) known->second = std::max(known->second, fresh);
        level = std::min(level, known->second);
      }
      std::vector<Op*> still_growing;
      std::map<LinkId, int> stopped_on;
      for (Op* op : growing) {
        if (std::ranges::none_of(op->route, [&](LinkId link) { return share[link] == level; })) {
          still_growing.push_back(op);
          continue;
        }
        double rate = level * op->transfer->traffic.weight;
        for (const LinkId link : op->route)
          if (users.at(link) == 1 && share[link] == level) rate = capacity(link);
        set_rate(*op, rate);
        for (const LinkId link : op->route) stopped_on[link] += op->transfer->traffic.weight;
      }
      for (const auto& [link, flows] : stopped_on) left[link] -= flows * level;
      growing = still_growing;
    }
  }

  const Fabric& fabric_;
  const Schedule& schedule_;
  Sharing sharing_;
  std::vector<Op> ops_;
  std::vector<LinkUse> use_;
  Ps now_ = 0;
};

}  // namespace

Timeline reference_simulate(const Fabric& fabric, const Schedule& schedule, Sharing sharing) {
  return Reference(fabric, schedule, sharing).run();
}

}  // namespace collcast::test
