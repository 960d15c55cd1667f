// Ranks that a library's own starter starts here, such as mpirun: found, run, and watched until they are gone.
//
// The starter runs this program again, once per rank, with the words it was called with. Each rank finds in its
// environment the name of a socket, says there which rank it is, and measures as any rank of its world does; what it
// has to say goes to the program that the user called, which alone writes results. The socket has no file (Linux'
// abstract names), and takes processes of the same user only.
#pragma once

#include "runner/communicator.hpp"
#include "runner/descriptor.hpp"

namespace collcast::runner {

/// Starts, watches and ends them. Throws Broken.
MeasureOutcome measure_under_starter(const MeasurePlan&, const Backend&, int ranks, const MeasureSink&);

/// In one of these ranks: the socket to that program. Throws Broken.
Descriptor reach_parent(const std::string& name, int rank);
/// Until that program has closed the socket, or `most` is over.
void await_end(const Descriptor& parent, std::chrono::milliseconds most);

/// True in a rank that a starter of any kind has started.
bool is_started_by_another();

/// The first of these programs that is in PATH; empty: none.
std::string find_program(const std::vector<std::string>& names);

}  // namespace collcast::runner
