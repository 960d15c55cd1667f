#include "engine/fold.hpp"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

namespace collcast::engine {
namespace {

using Colour = std::uint64_t;

// None of these changes a result, only whether folding is tried.
constexpr std::int64_t fewest_positions = 16;             ///< fewer are simulated in microseconds
constexpr std::size_t fewest_a_class = 4;                 ///< on average: refinement costs some messages a send
constexpr std::size_t most_sends = std::size_t{1} << 20;  ///< that are looked at: within a second, 80 MB
/// From so many on a send must be of so many messages, or looking at it costs what simulating it does.
constexpr std::size_t many_sends = std::size_t{1} << 16;
constexpr std::int64_t fewest_messages_a_send = 4;
constexpr std::size_t bytes_a_send = 80;  ///< with a route of two links
/// Of refinement. A colour travels one hop a round: what needs more is a long line, whose ends make all its positions
/// differ in the end.
constexpr int most_rounds = 64;

/// One step of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
Colour mixed(Colour a, Colour b) {
  Colour z = a * 0x9e3779b97f4a7c15U + b + 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/// What a position sends in one hop; all hops of a circulating phase go the same way and count as the first.
struct Send {
  std::uint32_t from = 0, to = 0;       ///< positions of all lanes
  std::uint32_t first = 0, length = 0;  ///< links in crossed_
  std::uint32_t phase = 0, hop = 0;
  int times = 1;  ///< for how many hops it counts
  int slot = 0, after = 0, blocks = 0;

  auto form() const { return std::tuple(phase, hop, times, slot, after, blocks, length); }
};

class Partition {
 public:
  Partition(const Fabric& fabric, std::span<const Pattern> patterns) : fabric_(fabric), patterns_(patterns) {}

  std::optional<Fold> fold(const EngineWatch& watch, Bytes room) {
    if (!read(room) || !refine(watch)) return std::nullopt;
    // From here on classes are fixed.
    number_classes();
    if (!is_exact()) return std::nullopt;
    return made();
  }

 private:
  /// False if there are too many sends, or too few positions.
  bool read(Bytes room) {
    std::int64_t positions = 0;
    for (const Pattern& pattern : patterns_) positions += std::int64_t{pattern.size()} * std::ssize(pattern.lanes);
    if (positions < fewest_positions || positions > std::int64_t{most_sends}) return false;
    count_sends();
    if (!pays(room)) return false;
    sends_.reserve(count_);
    for (const Pattern& pattern : patterns_)
      for (const Lane& lane : pattern.lanes) {
        const auto base = static_cast<std::uint32_t>(position_.size());
        for (Position v = 0; v < pattern.size(); ++v) read(pattern, lane, v, base);
        ++lanes_;
      }
    first_send_.push_back(static_cast<std::uint32_t>(sends_.size()));
    link_.reserve(used_.size());
    for (const LinkId id : used_) {
      const Link& link = fabric_.links()[id.value()];
      link_.push_back(
          mixed(std::bit_cast<Colour>(link.bandwidth.value()), std::bit_cast<Colour>(link.latency.count())));
    }
    return true;
  }

  /// Before any is looked at, so that it costs nothing where there are too many; no further than that.
  void count_sends() {
    for (const Pattern& pattern : patterns_)
      for (const Lane& lane : pattern.lanes)
        for (const Phase& phase : lane.phases)
          for (Position v = 0; v < pattern.size() && count_ <= most_sends; ++v) {
            count_ += static_cast<std::size_t>(phase.ways(v));
            messages_ += std::int64_t{phase.shape->sends(phase, v)} * pattern.chunks;
          }
  }

  bool pays(Bytes room) const {
    if (count_ > most_sends || static_cast<std::int64_t>(count_ * bytes_a_send) > room.value()) return false;
    return count_ <= many_sends || messages_ / fewest_messages_a_send >= static_cast<std::int64_t>(count_);
  }

  void read(const Pattern& pattern, const Lane& lane, Position v, std::uint32_t base) {
    first_send_.push_back(static_cast<std::uint32_t>(sends_.size()));
    Colour colour = lanes_;
    for (std::uint32_t p = 0; p < lane.phases.size(); ++p) {
      const Phase& phase = lane.phases[p];
      const int sends = phase.shape->sends(phase, v);
      colour = mixed(mixed(colour, static_cast<Colour>(sends)), static_cast<Colour>(phase.shape->receives(phase, v)));
      for (int hop = 0; hop < phase.ways(v); ++hop) {
        read(pattern, lane, v, base, p, hop);
        if (phase.flow == Flow::circulating) sends_.back().times = sends;
      }
    }
    position_.push_back(colour);
    lane_.push_back(lanes_);
  }

  void read(const Pattern& pattern, const Lane& lane, Position v, std::uint32_t base, std::uint32_t p, int index) {
    const Phase& phase = lane.phases[p];
    const Hop hop = phase.shape->send(phase, v, index);
    route_.clear();
    fabric_.route(pattern.rank(lane, v), pattern.rank(lane, hop.peer), lane.route_lane, route_);
    Send send{base + static_cast<std::uint32_t>(v), base + static_cast<std::uint32_t>(hop.peer)};
    send.first = static_cast<std::uint32_t>(crossed_.size());
    send.length = static_cast<std::uint32_t>(route_.size());
    send.phase = p;
    send.hop = static_cast<std::uint32_t>(index);
    send.slot = phase.flow == Flow::forwarding ? hop.slot : 0;  // others count all that come in as one
    send.after = hop.after;
    send.blocks = hop.blocks;
    for (const LinkId link : route_) crossed_.push_back(number(link));
    sends_.push_back(send);
  }

  /// Among the links that are crossed.
  std::uint32_t number(LinkId link) {
    if (numbers_.empty()) numbers_.assign(fabric_.links().size(), none);
    std::uint32_t& number = numbers_[link.value()];
    if (number == none) {
      number = static_cast<std::uint32_t>(used_.size());
      used_.push_back(link);
    }
    return number;
  }

  /// Colours by the colours around, until there are no more of them than before; false as soon as there are too many.
  bool refine(const EngineWatch& watch) {
    std::size_t before = 0;
    for (int round = 0; round < most_rounds; ++round) {
      if (watch && !watch({})) return false;
      const std::size_t positions = different(position_);
      if (positions * fewest_a_class > position_.size()) return false;  // they only grow
      const std::size_t now = positions + different(link_);
      if (now == before) return true;
      before = now;
      recolour();
    }
    return false;
  }

  void recolour() {
    std::vector<Colour> position(position_.size()), link(link_.size());
    for (std::size_t x = 0; x < position.size(); ++x) position[x] = mixed(position_[x], 1);
    for (std::size_t l = 0; l < link.size(); ++l) link[l] = mixed(link_[l], 2);
    for (const Send& send : sends_) {
      Colour way = mixed(position_[send.from], position_[send.to]);
      way = mixed(mixed(way, send.phase), mixed(send.hop, static_cast<Colour>(send.slot)));
      way = mixed(mixed(way, static_cast<Colour>(send.after)), static_cast<Colour>(send.blocks));
      for (std::uint32_t i = 0; i < send.length; ++i) way = mixed(way, link_[crossed_[send.first + i]]);
      position[send.from] += mixed(way, 3);  // a sum: in whatever order they come
      position[send.to] += mixed(way, 4);
      for (std::uint32_t i = 0; i < send.length; ++i) link[crossed_[send.first + i]] += mixed(way, 5 + i);
    }
    position_.swap(position);
    link_.swap(link);
  }

  static std::size_t different(std::vector<Colour> colours) {
    std::sort(colours.begin(), colours.end());
    return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
  }

  void number_classes() {
    classes_ = stand_for(position_, stands_for_);
    stand_for(link_, link_stands_for_);
  }
  /// For each, the first of its colour; returns how many colours there are.
  static std::int64_t stand_for(const std::vector<Colour>& colours, std::vector<std::uint32_t>& first) {
    std::vector<std::uint32_t> order(colours.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return colours[a] < colours[b]; });
    first.resize(colours.size());
    std::int64_t different = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool is_new = i == 0 || colours[order[i]] != colours[order[i - 1]];
      different += is_new;
      first[order[i]] = is_new ? order[i] : first[order[i - 1]];
    }
    return different;
  }

  /// Whether the first of each class may stand for all.
  bool is_exact() const {
    for (std::uint32_t x = 0; x < position_.size(); ++x)
      if (!sends_alike(x, stands_for_[x])) return false;
    // By link, then by position, what it carries and receives: (class of the sender, phase, hop) and place on the
    // route, or slot. So no route has two links of a class, which would be one link twice where one stands for both.
    return meets_alike(link_.size(), link_stands_for_,
                       [this](const Send& send, const auto& visit) {
                         for (std::uint32_t i = 0; i < send.length; ++i)
                           visit(crossed_[send.first + i], static_cast<int>(i));
                       }) &&
           meets_alike(position_.size(), stands_for_,
                       [](const Send& send, const auto& visit) { visit(send.to, send.slot); }) &&
           links_alike();
  }

  bool sends_alike(std::uint32_t x, std::uint32_t first) const {
    const std::uint32_t count = first_send_[x + 1] - first_send_[x];
    if (first_send_[first + 1] - first_send_[first] != count || lane_[x] != lane_[first]) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Send &a = sends_[first_send_[x] + i], &b = sends_[first_send_[first] + i];
      if (a.form() != b.form() || stands_for_[a.to] != stands_for_[b.to]) return false;
      for (std::uint32_t l = 0; l < a.length; ++l)
        if (link_stands_for_[crossed_[a.first + l]] != link_stands_for_[crossed_[b.first + l]]) return false;
    }
    return true;
  }

  bool links_alike() const {
    for (std::uint32_t l = 0; l < link_.size(); ++l) {
      const Link &a = fabric_.links()[used_[l].value()], &b = fabric_.links()[used_[link_stands_for_[l]].value()];
      if (a.bandwidth != b.bandwidth || a.latency != b.latency) return false;
    }
    return true;
  }

  /// A send as whoever it meets sees it.
  using Met = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, int>;

  /// Whether each of `count` meets the same sends as the one that stands for it, and of each class at most one.
  template <class Where>
  bool meets_alike(std::size_t count, const std::vector<std::uint32_t>& first, const Where& where) const {
    std::vector<std::uint32_t> begin(count + 1, 0);
    for (const Send& send : sends_) where(send, [&](std::uint32_t at, int) { ++begin[at + std::size_t{1}]; });
    for (std::size_t i = 0; i < count; ++i) begin[i + 1] += begin[i];
    std::vector<Met> met(begin.back());
    std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
    for (const Send& send : sends_)
      where(send, [&](std::uint32_t at, int place) {
        met[next[at]++] = {stands_for_[send.from], send.phase, send.hop, place};
      });
    const auto row = [&](std::size_t i) { return std::span(met).subspan(begin[i], begin[i + 1] - begin[i]); };
    for (std::size_t i = 0; i < count; ++i) {
      const auto own = row(i);
      std::sort(own.begin(), own.end());
      const auto is_twice = [](const Met& a, const Met& b) {
        return std::tuple(std::get<0>(a), std::get<1>(a), std::get<2>(a)) ==
               std::tuple(std::get<0>(b), std::get<1>(b), std::get<2>(b));
      };
      if (std::adjacent_find(own.begin(), own.end(), is_twice) != own.end()) return false;
      if (!std::ranges::equal(own, row(first[i]))) return false;  // the first of a class comes first: it is in order
    }
    return true;
  }

  Fold made() const {
    Fold out;
    std::uint32_t base = 0;
    for (const Pattern& pattern : patterns_) {
      auto& lanes = out.first.emplace_back(pattern.lanes.size());
      for (std::vector<std::uint32_t>& lane : lanes) {
        for (std::uint32_t v = 0; v < static_cast<std::uint32_t>(pattern.size()); ++v)
          lane.push_back(stands_for_[base + v] - base);
        base += static_cast<std::uint32_t>(pattern.size());
      }
    }
    out.link.resize(fabric_.links().size());
    for (std::uint32_t l = 0; l < out.link.size(); ++l) out.link[l] = l;
    for (std::size_t l = 0; l < used_.size(); ++l) out.link[used_[l].value()] = used_[link_stands_for_[l]].value();
    out.positions = std::ssize(position_);
    out.classes = classes_;
    out.messages = messages_;
    return out;
  }

  static constexpr std::uint32_t none = ~std::uint32_t{0};

  const Fabric& fabric_;
  std::span<const Pattern> patterns_;
  std::uint32_t lanes_ = 0;  ///< of all patterns, those that are read
  std::size_t count_ = 0;    ///< of sends
  std::int64_t messages_ = 0;
  std::vector<std::uint32_t> lane_;        ///< by position
  std::vector<std::uint32_t> first_send_;  ///< by position; one more at the end
  std::vector<Send> sends_;
  std::vector<std::uint32_t> crossed_;  ///< links by number, route after route
  std::vector<LinkId> used_;            ///< by number
  std::vector<std::uint32_t> numbers_;  ///< by link
  std::vector<LinkId> route_;           ///< scratch
  std::vector<Colour> position_, link_;
  std::vector<std::uint32_t> stands_for_, link_stands_for_;
  std::int64_t classes_ = 0;
};

}  // namespace

std::optional<Fold> fold(const Fabric& fabric, std::span<const Pattern> patterns, const EngineWatch& watch,
                         Bytes room) {
  return Partition(fabric, patterns).fold(watch, room);
}

}  // namespace collcast::engine
