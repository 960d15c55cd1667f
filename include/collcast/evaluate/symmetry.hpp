// Requests that the machine cannot tell apart: the same ranks, some nodes further on.
//
// Nodes are equal, and so is what joins them wherever the network looks the same from each: behind one switch, or
// within a pod of a leaf/spine network, or a whole number of pods further. There a request costs what it costs at the
// front of the machine, and it needs no larger machine than its last node. A torus is left as it is: only its
// wrap-around makes nodes alike.
#pragma once

#include "collcast/collective/collective.hpp"
#include "collcast/evaluate/evaluate.hpp"

namespace collcast {

/// The request moved down by as many whole nodes as change no route, rate or sharing of links; where nodes are placed,
/// by none.
CollectiveRequest moved_to_front(const Fabric&, const CollectiveRequest&);

/// by_estimate's time, to the last bit, of requests that moved_to_front leaves where they are; computed on as few
/// nodes as each needs. May be called by several threads at once. Fails where `goes_on` says no; of library ideal.
CollectiveTime by_estimate_at_front(const Fabric&, CollectivePolicy, GoesOn goes_on = {});

}  // namespace collcast
