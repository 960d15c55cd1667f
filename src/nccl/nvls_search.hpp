// What NCCL's search finds for NVLS [src/graph/search.cc of v2.28.9, graph 3].
//
// A head books twice its speed v on its own GPU's links and once on every other GPU's, both ways: (H + 1) v of H heads.
// On one node every GPU is a head. Over several a NIC has one at most, a GPU beside it, and no GPU is one twice; v is
// searched inside and between nodes together. More heads win whatever their speed, then more heads x speed; no speed is
// looked at any more once every GPU is a head, or below 49 % of the best. What heads have between nodes is then raised
// step by step, while NICs have it, until it is no less than twice what they have inside.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "nccl/nearest_nics.hpp"
#include "nccl/system.hpp"

namespace collcast::nccl {

/// Of these GPUs on one node; nothing where they have no NVLS.
std::optional<Graph> search_nvls(const System&, const std::vector<int>& gpus);
/// In one of several nodes.
std::optional<Graph> search_nvls(const System&, const std::vector<int>& gpus, const Nearest&);

/// GB/s that a GPU's links take in under NVLS however many heads there are and whatever NICs hold them to: as the
/// search books it, and NCCL's tuning counts it, where every GPU is a head. A GPU has all data and, of H heads, a
/// head's part of 1/H of them once more, each way. 0: no NVLS.
double nvls_link(const System&, const std::vector<int>& gpus, std::span<const double> list);

}  // namespace collcast::nccl
