// What a search's channels have left of a node's links of PCIe and between sockets.
#pragma once

#include <map>
#include <utility>

#include "nccl/system.hpp"

namespace collcast::nccl {

class LinksLeft {
 public:
  explicit LinksLeft(const System&);

  /// GB/s on every link of the way, on those of PCIe times `of_pcie` (pcie_booked). Nothing, and false, where one has
  /// no room.
  bool book(const Way&, double speed, double of_pcie = 1);
  /// What was booked with no more on PCIe.
  void give_back(const Way&, double speed);

 private:
  std::map<std::pair<int, int>, double> left_;
};

}  // namespace collcast::nccl
