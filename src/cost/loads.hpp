// What a phase puts on the links of a fabric: flows per round, bytes per phase, and who may meet whom.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "collcast/topology/fabric.hpp"

namespace collcast {

/// One sender of one lane. What it sends in different phases never meets; within a phase only if `pipelined`
/// (it may begin with the next peer before the last chunk for this one has left).
struct Connection {
  int pattern = 0;
  int lane = 0;  ///< among all lanes of all patterns
  int phase = 0;
  int from = 0, to = 0;
  bool pipelined = false;
};

class Loads {
 public:
  Loads(const Fabric&, std::size_t patterns);

  void begin_round();
  void add_flow(std::span<const LinkId>);
  /// Rate that the route gives each of its flows in this round.
  Bandwidth rate(std::span<const LinkId>) const;
  Seconds latency(std::span<const LinkId>) const;
  /// Bytes of the phase, the first of which cannot start before `start`; after all flows of the round are known.
  void carry(const Connection&, std::span<const LinkId>, Volume bytes, Seconds start, Seconds latency);

  struct Busiest {
    std::optional<LinkId> link;
    Volume bytes{};
    Seconds time{};
  };
  /// Of the links that the pattern uses in this phase, with all that crosses them.
  Busiest busiest(std::size_t pattern) const;
  void end_phase();
  /// Two transfers may have met on a link that the pattern uses.
  bool shared(std::size_t pattern) const;

 private:
  struct Tally {
    double bytes = 0;
    double first_start = std::numeric_limits<double>::infinity();
    double least_latency = std::numeric_limits<double>::infinity();
    std::int32_t flows = 0;  // of this round
    bool shared = false;     // ever
    Connection last{-1, -1, -1, -1, -1, false};
  };
  struct Used {  // by one pattern
    std::vector<bool> in_phase, ever;
    std::vector<std::uint32_t> phase_list, ever_list;
  };
  static void use(std::uint32_t link, std::vector<bool>& seen, std::vector<std::uint32_t>& list);

  std::span<const Link> links_;
  std::vector<Tally> tallies_;
  std::vector<std::uint32_t> round_list_;
  std::vector<Used> used_;
};

}  // namespace collcast
