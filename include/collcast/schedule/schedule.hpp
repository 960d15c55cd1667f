// The DAG of work that the engine runs: compute, transfers, delays, joins, and whole exchanges.
//
// An operation only waits for operations that already exist, so a Schedule has no cycles by construction.
// Streams (one compute stream and one stream per process group on every rank) are order edges: an
// operation put on a stream also waits for the one before it on that stream; a wait for an operation of
// another stream is what CUDA calls an event. An exchange is a Pattern that stays implicit: it costs one
// operation per participant, not one per message.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "collcast/base/id.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/schedule/pattern.hpp"
#include "collcast/schedule/traffic_class.hpp"

namespace collcast {

struct Compute {  ///< work of a rank's processor
  Rank rank;
  Seconds duration{};
};
struct Transfer {  ///< bytes over the route of (from, to, lane)
  Rank from, to;
  Volume size{};
  int lane = 0;
  TrafficClass traffic = {};
};
struct Delay {  ///< holds nothing; zero is a join
  Seconds duration{};
};
struct Part {  ///< what one participant does in an exchange; made by add_exchange
  ExchangeId exchange;
  int participant = 0;
};
using Work = std::variant<Compute, Transfer, Delay, Part>;

/// What of an operation must be over: all of it, or (transfers) its last byte have left the sender.
enum class Until : std::uint8_t { finished, left };
struct After {
  OpId op;
  Until until = Until::finished;
};

/// For people and traces. `category` colours a timeline: forward, backward, tp, pp, dp, optimizer ...
struct Label {
  std::string name;
  std::string category;
};

struct Stream {
  std::string name;  ///< "compute", "tp", "dp" ...
  std::optional<Rank> rank;
};

struct Exchange {
  Pattern pattern;
  TrafficClass traffic;
  OpId first;  ///< its Part of participant i is first + i
};

class Schedule {
 public:
  /// Room for so many operations, each after so many others on average: nothing but speed.
  void reserve(std::size_t operations, std::size_t edges_each = 1);

  OpId add(const Work& work, std::span<const After> after = {}, const Label& label = {});
  /// Also after the previous operation of the stream.
  OpId add(StreamId stream, const Work& work, std::span<const After> after = {}, const Label& label = {});
  StreamId add_stream(Stream stream);

  /// Runs `pattern` among its group; `ready` is empty (start at once) or names one operation per
  /// participant, after which that participant takes part. Returns the operation that finishes when
  /// participant 0 has finished; participant i's is i further on.
  OpId add_exchange(Pattern pattern, std::span<const OpId> ready = {}, TrafficClass traffic = {},
                    const Label& label = {});

  std::size_t size() const { return works_.size(); }
  const Work& work(OpId op) const { return works_[op.value()]; }
  std::span<const After> after(OpId op) const;
  std::string_view name(OpId op) const { return strings_[labels_[op.value()].name]; }
  std::string_view category(OpId op) const { return strings_[labels_[op.value()].category]; }
  std::optional<StreamId> stream(OpId op) const;
  std::span<const Stream> streams() const { return streams_; }
  std::span<const Exchange> exchanges() const { return exchanges_; }

 private:
  struct Names {
    std::uint32_t name = 0, category = 0;
  };
  std::uint32_t intern(const std::string&);

  std::vector<Work> works_;
  std::vector<std::uint32_t> after_begin_{0};
  std::vector<After> after_;
  std::vector<std::int32_t> op_stream_;  ///< -1: none
  std::vector<Names> labels_;
  std::vector<Stream> streams_;
  std::vector<std::int64_t> stream_last_;  ///< -1: none yet
  std::vector<Exchange> exchanges_;
  std::vector<std::string> strings_{std::string()};
  std::unordered_map<std::string, std::uint32_t> string_ids_;  ///< only looked up, never walked
};

/// Spells a pattern out as Transfers, Delays and joins, for proofs, small tests and comparison with the
/// implicit run (same picoseconds). `ready` as in add_exchange. Returns one join per participant.
std::vector<OpId> append(Schedule&, const Pattern&, std::span<const OpId> ready = {}, TrafficClass traffic = {});

}  // namespace collcast
