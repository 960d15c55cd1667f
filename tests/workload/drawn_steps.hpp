// Steps drawn at random: layouts, schedules and options of training that can be unfolded, the same on every compiler.
#pragma once

#include <catch2/catch.hpp>

#include <initializer_list>

#include "../support/dice.hpp"
#include "../support/sample.hpp"
#include "inputs.hpp"

namespace collcast::test {

/// TP, PP, replicas of these, an order and a schedule.
ParallelLayout drawn_layout(Dice&, std::initializer_list<int> replicas);
/// What is split, kept and overlapped of gradients, weights and messages.
void draw_sharding(Dice&, TrainingOptions&);

/// Not all of them go together: check_step says which.
StepInputs drawn_step(Dice&);
/// Of collectives whose participants end together; direct exchanges do alltoall as well, and end together too.
CollectivePolicy in_step(const StepInputs&);

/// Calls `law` with those of `rounds` drawn steps that can be, on up to so many ranks.
template <class Law>
void for_drawn_steps(int rounds, int ranks, Law law) {
  const std::uint64_t seed = 20261124;
  Dice dice(seed);
  Sample sample(5);
  int tried = 0;
  for (int round = 0; round < rounds; ++round) {
    const StepInputs in = drawn_step(dice);
    if (in.layout.world() > ranks || !check_step(in, ranks, {}).empty() || !sample.takes()) continue;
    ++tried;
    CAPTURE(seed, round, in.layout.tp, in.layout.pp, in.layout.dp, in.layout.cp, in.layout.ep, in.options.zero,
            to_string(in.layout.schedule), in.layout.sequence_parallel, in.options.overlap_dp, in.options.overlap_pp,
            in.layout.dp_shard, in.model.mtp_layers);
    law(in);
  }
  CHECK(tried > (sanitized ? 3 : rounds / 4));
}

}  // namespace collcast::test
