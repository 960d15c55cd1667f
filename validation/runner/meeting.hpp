// Before anything is measured: is everyone there, once, and does everyone want the same?
#pragma once

#include "collcast/runner/runner.hpp"
#include "runner/communicator.hpp"
#include "runner/store.hpp"

namespace collcast::runner {

/// Throws Broken that says which ranks are missing, there twice, or of another mind.
void meet(const MeasurePlan&, const Membership&, Store&);

/// The same of ranks that are there already: throws Broken on every one where one is of another mind than rank 0.
void agree(const MeasurePlan&, Communicator&);

}  // namespace collcast::runner
