// NCCL_IB_HCA: which NICs NCCL takes, by name; a machine's file has no names, but a number of NICs.
#pragma once

#include <string_view>

#include "collcast/nccl/environment.hpp"

namespace collcast::nccl {

inline constexpr const char* nics_variable = "NCCL_IB_HCA";

/// Of a list as the variable has it ("mlx5_0,mlx5_1:1", "=mlx5_0": these and no others that begin so); 0 where that
/// is open: "^mlx5_0" names what is left out, "mlx5" is the beginning of all of a driver's.
int named_nics(std::string_view list);

/// A node of more GPUs than a server has is several of them, each with NICs of the same names.
bool is_rack(const TopologySpec&);

/// Fewer than a node's NICs, where the network is attached to NICs and none of sockets, and the node one server.
bool names_fewer_nics(const Setting&, const TopologySpec&);

}  // namespace collcast::nccl
