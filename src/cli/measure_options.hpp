// The options of `collcast measure`, and what they ask for.
#pragma once

#include <optional>
#include <string>

#include "cli/output.hpp"
#include "cli/session.hpp"
#include "collcast/runner/runner.hpp"

namespace CLI {
class App;
}

namespace collcast::cli {

struct MeasureArgs {
  std::string kinds, backend;
  std::string ranks;
  std::string sizes = "8:16MiB:x2";
  std::string datatype = "float";
  std::string algorithm, root = "0";
  std::string warmup = "5", repetitions = "20", calls;
  std::string timeout = "30s";
  bool graph = false, share_gpu = false;
  std::string rendezvous;
  std::string system, date;
  OutputOptions output;
};
void add_measure_options(CLI::App&, MeasureArgs&);
/// From `least` to a hundred thousand.
int parse_repetitions(const char* option, const std::string& text, int least, Diagnostics& errors);

/// A measurement that can be tried: everything is one of the words that the backend knows.
struct MeasureQuestion {
  MeasurePlan plan;
  int ranks = 0;
  std::optional<Membership> member;  ///< of a world that something else started
  std::string system, date;          ///< for the sidecar
  std::string command;               ///< to measure the same again
  std::vector<std::string> lacking;  ///< why it cannot run here
};
/// Nothing, and errors, where the options make no sense.
std::optional<MeasureQuestion> understand(const MeasureArgs&, const Session&, Diagnostics& errors);

}  // namespace collcast::cli
