// Channels' ways through a node of several: by a NIC in, past all its GPUs, and by a NIC out.
#pragma once

#include <vector>

#include "nccl/nearest_nics.hpp"
#include "nccl/system.hpp"
#include "nccl/terms.hpp"

namespace collcast::nccl {

inline constexpr int most_searched_channels = 32;

/// Channels of one speed, and how they run.
struct Rings {
  int count = 0;
  std::vector<std::vector<int>> order;
  std::vector<ChannelNics> nics = {};  ///< across nodes

  void keep(int channels) {
    count = channels;
    keep_first(static_cast<std::size_t>(channels), order, nics);
  }
};

/// Which NIC and GPU a channel comes in by.
struct Entry {
  int nic = 0, gpu = 0;
};

/// One after the other on each of the nearest NICs, and again while they have room: booked on the NIC and on the way to
/// its GPU with most left [search.cc: ncclTopoSearchRecNet begins at the channel's number].
std::vector<Entry> entries(const System&, const Nearest&, double speed);

/// The most rings that straight NVLinks have room for; those that end where they began first, if they need not.
Rings rings_over_nvlinks(const System&, const std::vector<int>& gpus, const Nearest&, double speed);

/// The most that go back to the NIC that they came in by, from a GPU that is beside none over NVLink or by the host.
Rings rings_back_to_nics(const System&, const std::vector<int>& gpus, const Nearest&, double speed);

/// Trees' chains over straight NVLinks from these entries: `inside` is booked on NVLinks, `between` on NICs.
Rings chains_over_nvlinks(const System&, const std::vector<int>& gpus, const Nearest&, std::vector<Entry> entries,
                          double inside, double between);

/// The GPUs in their order from this one on, the first one after the last.
std::vector<int> upwards(const std::vector<int>& gpus, int first);

/// All GPUs from the one that each channel comes in by: behind a switch as NCCL's logs have them, over PCIe in order.
Rings rings_in_order(const System&, const std::vector<int>& gpus, const Nearest&, double speed);

}  // namespace collcast::nccl
