// Request -> Pattern: which algorithm does what, said once.
//
// One file of src/collective/ per algorithm; catalogue.cpp lists them. Sizes mean what nccl-tests means:
// all_gather: the gathered result; reduce_scatter: one rank's input; alltoall: one rank's whole send buffer;
// gather, scatter: the root's buffer; sendrecv: what each rank sends to the next; else: the buffer.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/schedule/pattern.hpp"

namespace collcast {

enum class CollectiveKind : std::uint8_t {
  broadcast,
  reduce,
  all_reduce,
  all_gather,
  reduce_scatter,
  alltoall,
  gather,
  scatter,
  sendrecv
};
inline constexpr int collective_kinds = 9;

std::string_view to_string(CollectiveKind);
/// One rank has what all get, or gets what all have: CollectiveRequest::root.
bool is_rooted(CollectiveKind);
/// What ranks give is summed up, or joined by another operation.
bool reduces(CollectiveKind);
std::optional<CollectiveKind> parse_collective(std::string_view);
std::vector<std::string> collective_names();

struct CollectiveRequest {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Group group;
  Bytes size{};
  int root = 0;                  ///< index into group; broadcast, reduce, gather, scatter
  std::vector<Group> alongside;  ///< other groups that do the same at the same time and share links
};

struct CollectiveOptions {
  std::string algorithm = "ring";
  int chunks = 1;
  int channels = 1;          ///< lanes with rotated orders, each with its part of the data; any algorithm
  std::vector<int> node_of;  ///< node of each group index, for hierarchical and rotated orders; empty: one node
};

/// What an algorithm is, for catalogues and help.
struct AlgorithmInfo {
  std::string name;
  std::string summary;                ///< one line
  std::vector<CollectiveKind> kinds;  ///< that it can do
  bool chunked = false;               ///< cutting into chunks can help
  bool channelled = false;            ///< few ranks of a node talk across: more channels use more rails
};
std::span<const AlgorithmInfo> algorithms();

/// The pattern, or why there is none: the algorithm does not do this kind, the group is not regular enough
/// (hierarchical), chunks < 1, a rank twice. A group of one gives a pattern without hops.
Result<Pattern> make_pattern(const CollectiveRequest&, const CollectiveOptions&);

/// bus bandwidth over algorithm bandwidth, as nccl-tests prints: 2(k-1)/k, (k-1)/k or 1.
double bus_factor(CollectiveKind, int ranks);
/// Of (k-1)/k in it: 2 or 1; nothing where it is 1 whatever k is.
std::optional<double> bus_weight(CollectiveKind);

/// Runs the pattern symbolically on sets of contributions, message by message, and says (up to 20 times) how
/// a rank does not end with exactly what the collective promises (each contribution once), a hop breaks its
/// Flow's rules, or sends and receives do not match. Empty: proved, for every legal interleaving.
std::vector<std::string> prove(const Pattern&, CollectiveKind, int root = 0);

}  // namespace collcast
