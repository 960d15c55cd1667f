// What a command may touch: two streams, how to write to them, and where shipped files are.
#pragma once

#include <iosfwd>

#include "collcast/base/diagnostic.hpp"
#include "collcast/report/table.hpp"
#include "collcast/scenario/scenario.hpp"

namespace collcast::cli {

/// 3: this machine lacks what the command needs.
enum class Exit : int { ok = 0, gate_failed = 1, bad_input = 2, lacking = 3 };

struct Session {
  std::ostream& out;
  std::ostream& err;
  TextStyle style;        ///< of `out`
  bool progress = false;  ///< `err` is a terminal
  SearchPath search;
};

inline const Location command_line{"command line"};

/// Prints them to `err`, those without a place as of the command line; bad_input.
Exit refuse(const Session&, Diagnostics);

}  // namespace collcast::cli
