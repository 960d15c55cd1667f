// Small random machines, schedules and patterns, drawn so that the awkward cases are common: equal rates
// and unequal ones, ties in time, zero bytes, one byte, no latency, priorities, ranks that talk to themselves.
#pragma once

#include "collcast/schedule/schedule.hpp"
#include "collcast/topology/fabric.hpp"
#include "support/dice.hpp"

namespace collcast::test {

Fabric random_fabric(Dice& dice);
/// The same machine with links of 1 B/s to 1 TB/s.
Fabric with_extreme_rates(Dice& dice, const Fabric& fabric);
/// Compute, delays and transfers among the fabric's ranks; each after up to three earlier ones.
Schedule random_schedule(Dice& dice, const Fabric& fabric);
/// Senders with messages one after the other, most of them to one rank: what keeps its links from message to message.
Schedule random_chains(Dice& dice, const Fabric& fabric);
/// The same, all to one rank, with weights of one to eleven.
Schedule random_weighted_chains(Dice& dice, const Fabric& fabric);
/// One to three lanes of one to three phases of any shape over some of the fabric's ranks.
Pattern random_pattern(Dice& dice, const Fabric& fabric);
/// The same among all of a group.
Pattern random_pattern(Dice& dice, Group group);

}  // namespace collcast::test
