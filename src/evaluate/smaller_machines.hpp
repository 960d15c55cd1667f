// Machines of the same description with fewer nodes, each built once and kept.
//
// They have 1, 2, 4 ... nodes: a search asks about groups that reach to hundreds of different nodes, and a machine for
// each would be up to a million links each time. All together have less than twice the nodes of the whole machine.
#pragma once

#include <bit>
#include <map>
#include <mutex>
#include <utility>
#include <variant>

#include "collcast/topology/fabric.hpp"

namespace collcast {

class SmallerMachines {
 public:
  explicit SmallerMachines(const Fabric& whole) : whole_(whole) {}

  /// Of so many nodes, or more. May be asked by any thread.
  const Fabric& of(int at_least) {
    const auto nodes = static_cast<int>(std::bit_ceil(static_cast<unsigned>(at_least)));
    // How far a torus reaches decides its routes.
    if (nodes >= whole_.nodes() || whole_.is_placed() || std::holds_alternative<TorusNetwork>(whole_.spec().network))
      return whole_;
    const std::lock_guard lock(mutex_);
    auto found = built_.find(nodes);
    if (found == built_.end()) {
      Result<Fabric> fabric = Fabric::build(whole_.spec(), nodes);
      found = built_.emplace(nodes, fabric ? std::move(fabric).value() : whole_).first;
    }
    return found->second;
  }

 private:
  const Fabric& whole_;
  std::mutex mutex_;
  std::map<int, Fabric> built_;
};

}  // namespace collcast
