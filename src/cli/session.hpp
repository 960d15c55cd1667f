// What a command may touch: two streams, how to write to them, and where shipped files are.
#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/report/table.hpp"
#include "collcast/scenario/scenario.hpp"

namespace collcast::cli {

/// lacking: this machine lacks what the command needs. interrupted: by Ctrl-C, and unread: the reader of a pipe has
/// gone, as a shell reports SIGINT and SIGPIPE (128 + 2, 128 + 13).
enum class Exit : int { ok = 0, gate_failed = 1, bad_input = 2, lacking = 3, interrupted = 130, unread = 141 };

struct Session {
  std::ostream& out;
  std::ostream& err;
  TextStyle style;        ///< of `out`
  bool progress = false;  ///< `err` is a terminal
  SearchPath search;
  std::map<std::string, std::string> environment{};  ///< of the process
  std::vector<std::string> words{};                  ///< of the command line, behind the program's name
};

inline const Location command_line{"command line"};

/// Prints them to `err`, those without a place as of the command line; bad_input, or lacking where all are of memory
/// (footprint.hpp).
Exit refuse(const Session&, Diagnostics);
/// The same where this machine lacks what is needed.
Exit lack(const Session&, const Diagnostics&);

}  // namespace collcast::cli
