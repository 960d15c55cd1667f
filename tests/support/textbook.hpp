// Textbook times of collectives where every pair of ranks has links of its own: the oracle of the agreement
// tests, and the only place with these formulas.
//
// alpha = latency, beta = bytes per second, N = bytes, k = ranks, c = chunks. Latency is paid on the way and
// not by the sender, so chunks of one message follow each other by tau = (bytes/c)/beta. Sources:
//   [TRG] Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005
//   [CHPV] Chan, Heimlich, Purkayastha, van de Geijn, "Collective communication: theory, practice, and
//          experience", 2007
//   [SST] Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009
//   [BHKUW] Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient Algorithms for All-to-All Communications in
//          Multiport Message-Passing Systems", 1997
//   [PY]  Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009
//   [PG]  Pjesivac-Grbovic et al., "Performance Analysis of MPI Collective Operations", 2007
#pragma once

#include <optional>
#include <string_view>

#include "collcast/collective/collective.hpp"

namespace collcast::textbook {

struct Setting {
  CollectiveKind kind = CollectiveKind::all_reduce;
  double bytes = 0;
  int ranks = 1;
  int chunks = 1;
  double alpha = 0;
  double beta = 1;
  int per_node = 1;  ///< hierarchical
};

/// What the books say. Not tight: they count steps as if all ranks took each together, and ranks need not.
struct Seconds {
  Seconds(double v, bool t = true) : value(v), tight(t) {}
  double value;
  bool tight;
};
/// Nothing where the books have no formula: irregular trees cut into chunks, folds in the middle of a scatter.
using Time = std::optional<Seconds>;

Time naive(const Setting&);               // [PG] linear, pairwise
Time direct(const Setting&);              // [CHPV] one step
Time ring(const Setting&);                // [PY], [CHPV] bucket; [PG] pipeline
Time bidirectional_ring(const Setting&);  // ring with N/2 each way
Time tree(const Setting&);                // [TRG], [CHPV] minimum spanning tree
Time double_tree(const Setting&);         // [SST]
Time recursive_doubling(const Setting&);  // [TRG]; [BHKUW]
Time halving_doubling(const Setting&);    // [TRG]
Time hierarchical(const Setting&);        // sum of ring stages
Time scatter_gather(const Setting&);      // [TRG] van de Geijn's broadcast, and backwards
Time concurrent_tree(const Setting&);     // [TRG] minimum spanning tree; links of their own for all children

/// By name.
Time time(std::string_view algorithm, const Setting&);

}  // namespace collcast::textbook
