// Collectives that a group does again: not walked a second time.
//
// A group with links that nobody else ever uses (own_links.hpp), whose members all come at one instant and all leave at
// one instant, has nothing under way before and nothing after. What happens between follows from the pattern alone and
// is the same each time, only later. So the first time is simulated, message by message; from then on all members that
// come at one instant leave that much later, and the links have carried that much more. Exact: whole picoseconds,
// counted from when they came. Members that do not come together are simulated as ever.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "collcast/engine/engine.hpp"
#include "engine/connections.hpp"
#include "engine/own_links.hpp"
#include "engine/ticks.hpp"

namespace collcast::engine {

class Repeats {
 public:
  using BusyOf = std::function<Ticks(std::size_t link)>;

  Repeats() = default;
  Repeats(OwnLinks own, const Programs& programs, const Connections& connections, BusyOf busy, std::uint32_t groups);

  bool may_repeat(std::uint32_t group) const { return own_.has(group); }

  /// All members of the group have come to its collective of that number at one instant. How long they take, if that is
  /// known: it is then counted as done. Else -1: it is to be simulated, from now on watched.
  Ticks again(std::uint32_t group, std::uint32_t number, std::uint32_t pattern, Ticks now);
  /// Of a collective that is watched, else of no effect: one of so many members has left. Who leaves early may leave
  /// the next one, too, before the last has left this one.
  void departed(std::uint32_t group, std::uint32_t number, std::uint32_t members, Ticks now);
  bool is_watching() const { return watched_ > 0; }

  /// Messages that were not walked.
  std::int64_t messages() const { return messages_; }
  /// What these add to the links.
  void add_to(std::span<LinkUse> links) const;

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr Ticks unknown = -1, unlike = -2;  ///< unlike: members leave one after the other

  /// What a group takes for a pattern.
  struct Record {
    std::uint32_t group = 0, pattern = 0;
    std::uint32_t next = none;   ///< of the group
    std::uint32_t first = none;  ///< in uses_, one for each link of the group
    Ticks takes = unknown;
    std::int64_t times = 0;  ///< not walked
  };
  struct Use {
    double carried = 0;
    Ticks busy = 0;
  };
  struct Watch {
    std::uint32_t record = none;  ///< none: not watched
    std::uint32_t number = 0;     ///< of the collective
    std::uint32_t departed = 0;
    Ticks came = 0, left = 0;
  };

  std::uint32_t record(std::uint32_t group, std::uint32_t pattern);
  /// What the group's links have seen until now, less what is noted already.
  void note_links(const Record& record);

  OwnLinks own_;
  const Connections* connections_ = nullptr;
  BusyOf busy_;
  std::vector<std::int64_t> messages_of_;    ///< by pattern
  std::vector<std::uint32_t> first_record_;  ///< by group
  std::vector<Record> records_;
  std::vector<Use> uses_;
  std::vector<Watch> watches_;  ///< by group
  std::uint32_t watched_ = 0;
  std::int64_t messages_ = 0;
};

}  // namespace collcast::engine
