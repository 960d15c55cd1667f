#include "collcast/workload/own_schedule.hpp"

#include <algorithm>
#include <unordered_map>

#include "collcast/base/check.hpp"
#include "collcast/base/fnv1a.hpp"

namespace collcast {

std::string to_text(const Turn& turn, int chunks) {
  const char* what = turn.weights ? "W" : turn.backward ? (turn.whole ? "BW" : "B") : "F";
  return what + std::to_string(turn.micro_batch) + (chunks > 1 ? "." + std::to_string(turn.chunk) : std::string());
}

namespace {

template <class Is>
bool any_turn(const Orders& orders, Is is) {
  return std::any_of(orders.begin(), orders.end(),
                     [&](const std::vector<Turn>& order) { return std::any_of(order.begin(), order.end(), is); });
}

/// What a turn does, whether its backward is whole or not.
enum class Deed { forward, backward, weights };
Deed deed_of(const Turn& turn) { return turn.weights ? Deed::weights : turn.backward ? Deed::backward : Deed::forward; }

class OrderCheck {
 public:
  OrderCheck(const OwnSchedule& own, const TurnPlace& place, const std::vector<bool>& unread)
      : own_(own), place_(place), unread_(unread), splits_(own.splits()), known_(own.orders.size()) {}

  Diagnostics run() {
    for (std::size_t i = 0; i < own_.orders.size(); ++i) stage(i);
    // Who waits for whom is only known of stages that do all that they should.
    if (found_.empty() && std::find(unread_.begin(), unread_.end(), true) == unread_.end()) waits();
    return std::move(found_);
  }

 private:
  using Known = std::unordered_map<std::int64_t, std::size_t>;  ///< turn of a deed, by its key

  std::int64_t key(Deed deed, int micro_batch, int chunk) const {
    return (std::int64_t{chunk} * own_.micro_batches + micro_batch) * 3 + static_cast<int>(deed);
  }
  const std::size_t* find(std::size_t i, Deed deed, int micro_batch, int chunk) const {
    const auto found = known_[i].find(key(deed, micro_batch, chunk));
    return found == known_[i].end() ? nullptr : &found->second;
  }
  std::string text(const Turn& turn) const { return to_text(turn, own_.chunks); }
  static std::string stage_name(std::size_t i) { return "stage " + std::to_string(i); }
  std::string at(std::size_t i, std::size_t turn) const { return " (" + collcast::to_text(place_(i, turn)) + ")"; }

  void wrong(std::size_t i, std::optional<std::size_t> turn, std::string message, std::string hint) {
    found_.push_back({place_(i, turn), std::move(message), std::move(hint)});
  }

  void stage(std::size_t i) {
    const std::vector<Turn>& order = own_.orders[i];
    for (std::size_t n = 0; n < order.size(); ++n) turn(i, n);
    for (std::size_t n = 0; n < order.size(); ++n) behind(i, n);
    if (i >= unread_.size() || !unread_[i]) missing(i);
  }

  /// Whether a turn can be at all, and is the first of its kind.
  void turn(std::size_t i, std::size_t n) {
    const std::vector<Turn>& order = own_.orders[i];
    const Turn& t = order[n];
    const std::string name = stage_name(i) + ", " + text(t);
    if (t.micro_batch >= own_.micro_batches)
      return wrong(i, n, name + ": there is no micro-batch " + std::to_string(t.micro_batch),
                   "expected 0 to " + std::to_string(own_.micro_batches - 1) + ", as the schedule is for " +
                       std::to_string(own_.micro_batches) + " micro-batches");
    if (t.chunk >= own_.chunks)
      return wrong(i, n, name + ": there is no chunk " + std::to_string(t.chunk),
                   own_.chunks == 1 ? "expected none, as a stage has one chunk; or say how many 'chunks' there are"
                                    : "expected 0 to " + std::to_string(own_.chunks - 1));
    const auto [first, is_new] = known_[i].emplace(key(deed_of(t), t.micro_batch, t.chunk), n);
    if (!is_new)
      wrong(i, n, name + " is there already" + at(i, first->second), "expected each once: remove one of them");
    if (t.with_next && (t.backward || n + 1 == order.size() || !order[n + 1].backward || order[n + 1].weights))
      wrong(i, n, name + " is together with what is no backward", "expected a forward and a backward, such as F4+B2");
  }

  /// A backward has its forward in front of it, weight gradients their backward.
  void behind(std::size_t i, std::size_t n) {
    const Turn& t = own_.orders[i][n];
    if (!t.backward || t.micro_batch >= own_.micro_batches || t.chunk >= own_.chunks) return;
    const Turn earlier{t.weights, t.micro_batch, t.chunk};
    const std::size_t* other = find(i, deed_of(earlier), t.micro_batch, t.chunk);
    if (other == nullptr) return;  // that it is missing is said by itself
    const std::string name = stage_name(i) + ", " + text(t);
    const Turn& it = own_.orders[i][*other];
    if (t.weights && it.whole)
      return wrong(i, n, name + ": " + text(it) + at(i, *other) + " has these weight gradients already",
                   "write " + text(earlier) + " there, or remove this one");
    if (*other > n)
      return wrong(i, n, name + " comes before " + text(it) + at(i, *other),
                   "move it behind " + text(it) + ", whose result it needs");
    if (*other + 1 == n && it.with_next)
      wrong(i, n, name + " is together with its own forward, for which it waits",
            "expected two different micro-batches or chunks");
  }

  void missing(std::size_t i) {
    std::vector<Deed> deeds{Deed::forward, Deed::backward};
    if (splits_) deeds.push_back(Deed::weights);
    for (const Deed deed : deeds) {
      constexpr int shown = 6;
      std::string list;
      int count = 0;
      for (int c = 0; c < own_.chunks && count <= shown; ++c)
        for (int k = 0; k < own_.micro_batches && count <= shown; ++k) {
          if (find(i, deed, k, c) != nullptr) continue;
          if (deed == Deed::weights) {
            const std::size_t* backward = find(i, Deed::backward, k, c);
            if (backward == nullptr || own_.orders[i][*backward].whole) continue;
          }
          if (++count > shown) break;
          list += (list.empty() ? "" : ", ") + text({deed != Deed::forward, k, c, deed == Deed::weights});
        }
      if (count == 0) continue;
      if (count > shown) list += " and more";
      const std::string each = std::to_string(own_.micro_batches) + " micro-batches" +
                               (own_.chunks > 1 ? " in each of " + std::to_string(own_.chunks) + " chunks" : "");
      wrong(i, {}, stage_name(i) + " never does " + list,
            deed == Deed::weights
                ? "expected weight gradients of every backward; one that has them itself is written BW0"
                : "expected forward and backward of " + each);
    }
  }

  // --- who waits for whom -------------------------------------------------------------------------------

  int stages() const { return static_cast<int>(own_.orders.size()); }
  int slice(int stage, int chunk) const {
    if (own_.in_v) return chunk == 0 ? stage : 2 * stages() - 1 - stage;
    return chunk * stages() + stage;
  }
  std::pair<std::size_t, int> place_of(int slice) const {
    const int p = stages();
    if (own_.in_v) return slice < p ? std::pair{std::size_t(slice), 0} : std::pair{std::size_t(2 * p - 1 - slice), 1};
    return {std::size_t(slice % p), slice / p};
  }

  /// The slice whose result a turn waits for.
  std::optional<int> source(std::size_t i, const Turn& t) const {
    if (t.weights) return std::nullopt;
    const int from = slice(static_cast<int>(i), t.chunk) + (t.backward ? 1 : -1);
    return from < 0 || from == stages() * own_.chunks ? std::nullopt : std::optional(from);
  }

  std::vector<bool>::reference done(bool backward, int slice, int micro_batch) {
    const auto slices = static_cast<std::size_t>(stages() * own_.chunks);
    return done_[((backward ? slices : 0) + static_cast<std::size_t>(slice)) *
                     static_cast<std::size_t>(own_.micro_batches) +
                 static_cast<std::size_t>(micro_batch)];
  }

  bool lacks_input(std::size_t i, const Turn& t) {
    const std::optional<int> from = source(i, t);
    return from && !done(t.backward, *from, t.micro_batch);
  }

  /// The first input that is not there of the turn that a stage has come to, or of those that go together.
  std::optional<std::size_t> held_up(std::size_t i) {
    const std::vector<Turn>& order = own_.orders[i];
    for (std::size_t n = next_[i]; n < order.size(); ++n) {
      if (!moved_[i][n] && lacks_input(i, order[n])) return n;
      if (!order[n].with_next) break;
    }
    return std::nullopt;
  }

  void waits() {
    next_.assign(own_.orders.size(), 0);
    done_.assign(
        own_.orders.size() * 2 * static_cast<std::size_t>(own_.chunks) * static_cast<std::size_t>(own_.micro_batches),
        false);
    for (const std::vector<Turn>& order : own_.orders) moved_.emplace_back(order.size());
    go_on();
    std::vector<bool> told(own_.orders.size());
    for (std::size_t i = 0; i < own_.orders.size(); ++i)
      if (next_[i] < own_.orders[i].size()) circle_from(i, told);
    if (found_.empty()) return;
    const std::string hint = moves();
    for (Diagnostic& circle : found_) circle.hint = hint;
  }

  /// Every stage as far as it comes.
  void go_on() {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < own_.orders.size(); ++i)
        while (next_[i] < own_.orders[i].size() && !held_up(i)) {
          pass(i);
          more = true;
        }
    }
  }

  /// What is to be moved for all stages to come to their ends: each time that they cannot go on, a turn that could.
  std::string moves() {
    std::string list;
    int count = 0;
    for (std::size_t i = 0; i < own_.orders.size(); ++i)
      for (; next_[i] < own_.orders[i].size(); go_on(), ++count)
        list += (count == 0 ? "" : ", ") + move_ahead(could_go_on(i, *held_up(i)));
    return count == 1 ? list : "several turns wait for each other: " + list;
  }

  /// The first turn of all that this one waits for, directly or not.
  std::pair<std::size_t, std::size_t> could_go_on(std::size_t i, std::size_t n) {
    for (;;) {
      const Turn& t = own_.orders[i][n];
      if (t.backward && !done(false, slice(static_cast<int>(i), t.chunk), t.micro_batch)) {
        n = *find(i, Deed::forward, t.micro_batch, t.chunk);
      } else if (lacks_input(i, t)) {
        const auto [stage, chunk] = place_of(*source(i, t));
        n = *find(stage, deed_of(t), t.micro_batch, chunk);
        i = stage;
      } else {
        return {i, n};
      }
    }
  }

  std::string move_ahead(std::pair<std::size_t, std::size_t> which) {
    const auto [i, n] = which;
    const std::vector<Turn>& order = own_.orders[i];
    std::size_t first = next_[i];
    while (moved_[i][first]) ++first;
    const std::string where = " of " + stage_name(i) + at(i, n);
    moved_[i][n] = true;
    done(order[n].backward, slice(static_cast<int>(i), order[n].chunk), order[n].micro_batch) = true;
    if (n == first)
      return "write " + text(order[n]) + where + " and its " + text(order[n + 1]) + " one after the other";
    return "move " + text(order[n]) + where + " in front of its " + text(order[first]);
  }

  void pass(std::size_t i) {
    const std::vector<Turn>& order = own_.orders[i];
    bool more = true;
    for (; more; ++next_[i]) {
      const Turn& t = order[next_[i]];
      if (!t.weights) done(t.backward, slice(static_cast<int>(i), t.chunk), t.micro_batch) = true;
      more = t.with_next;
    }
  }

  /// Of a stage that is held up: what it waits for.
  struct Wait {
    std::size_t turn = 0;  ///< its own
    std::size_t stage = 0, of = 0;
  };
  Wait wait_of(std::size_t i) {
    const std::size_t n = *held_up(i);
    const Turn& t = own_.orders[i][n];
    const auto [stage, chunk] = place_of(*source(i, t));
    return {n, stage, *find(stage, deed_of(t), t.micro_batch, chunk)};
  }

  /// The stages that wait for each other in a circle, which this one comes to by following what it waits for.
  void circle_from(std::size_t i, std::vector<bool>& told) {
    std::vector<std::size_t> way;
    while (!told[i]) {
      told[i] = true;
      way.push_back(i);
      i = wait_of(i).stage;
    }
    const auto first = std::find(way.begin(), way.end(), i);
    if (first == way.end()) return;  // of a circle that has been told
    way.erase(way.begin(), first);
    std::string message = "no stage can go on: ";
    for (const std::size_t s : way) {
      const Wait wait = wait_of(s);
      message += (s == way.front() ? "" : ", ") + stage_name(s) + " at " + text(own_.orders[s][wait.turn]) +
                 " waits for " + text(own_.orders[wait.stage][wait.of]) + " of " + stage_name(wait.stage);
    }
    wrong(way.front(), wait_of(way.front()).turn, std::move(message), {});
  }

  const OwnSchedule& own_;
  const TurnPlace& place_;
  const std::vector<bool>& unread_;
  bool splits_;
  std::vector<Known> known_;       ///< by stage
  std::vector<std::size_t> next_;  ///< turn that each stage has come to
  std::vector<bool> done_;
  std::vector<std::vector<bool>> moved_;  ///< turns that are done before those in front of them
  Diagnostics found_;
};

}  // namespace

bool OwnSchedule::splits() const {
  return any_turn(orders, [](const Turn& t) { return t.weights; });
}

bool OwnSchedule::has_whole() const {
  return any_turn(orders, [](const Turn& t) { return t.whole; });
}

void OwnSchedule::call_whole_plain() {
  if (splits()) return;
  for (std::vector<Turn>& order : orders)
    for (Turn& turn : order) turn.whole = false;
}

PipelineSchedule OwnSchedule::kind() const {
  if (in_v) return splits() ? PipelineSchedule::own_v_split : PipelineSchedule::own_v;
  return splits() ? PipelineSchedule::own_split : PipelineSchedule::own;
}

Diagnostics check_order(const OwnSchedule& own, const TurnPlace& place, const std::vector<bool>& unread) {
  check(!own.in_v || own.chunks == 2, "a V has two chunks a stage");
  return OrderCheck(own, place, unread).run();
}

std::uint64_t digest(const OwnSchedule& own) {
  Fnv1a sum;
  const auto add = [&sum](std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte, value >>= 8) sum.add(static_cast<unsigned char>(value));
  };
  add(static_cast<std::uint64_t>(own.chunks) << 1 | (own.in_v ? 1U : 0U));
  for (const std::vector<Turn>& order : own.orders) {
    add(order.size());
    for (const Turn& t : order) {
      add(static_cast<std::uint64_t>(t.micro_batch) << 32 | static_cast<std::uint32_t>(t.chunk));
      add((t.backward ? 1U : 0U) | (t.weights ? 2U : 0U) | (t.whole ? 4U : 0U) | (t.with_next ? 8U : 0U));
    }
  }
  return sum.value();
}

}  // namespace collcast
