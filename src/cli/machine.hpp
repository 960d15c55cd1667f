// The machine that the command line names, built.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/session.hpp"
#include "collcast/scenario/overlay.hpp"
#include "collcast/topology/fabric.hpp"

namespace CLI {
class App;
}

namespace collcast::cli {

struct MachineOptions {
  std::string topology;
  std::string nodes, ranks;  ///< empty: not given
  std::string link_bandwidth, link_latency;
  std::vector<std::string> sets;
  std::string overlay;               ///< a calibration to put in; empty: none
  std::vector<std::string> outputs;  ///< that may be none of the files that are read
};
void add_machine_options(CLI::App&, MachineOptions&);

/// The file that --overlay names.
Result<Overlay> read_overlay(const std::string& file, const Session&);
/// The calibration of that machine and library in the file that --overlay names; that there is none is an error unless
/// it `may_lack`.
std::optional<Calibration> load_calibration(const std::string& file, const std::string& machine, Library, bool may_lack,
                                            const Session&, Diagnostics& errors);

/// `usual`, or the other library where the overlay calibrates this machine, or every one that it has, for that only.
Library library_with(const Overlay&, const std::string& machine, Library usual);

/// A warning where the overlay was fitted on another description than this one, and those of line_rate_warnings().
Diagnostics overlay_warnings(const std::string& file, const Calibration&, const TopologySpec& described,
                             const std::vector<Override>& set);

/// A warning where the overlay's factors have links or NICs of the machine carry more than their line rate.
Diagnostics line_rate_warnings(const std::string& file, const TopologySpec& calibrated);

/// --set, then the short forms for the network's links; `prefix` is what the machine's paths begin with.
std::vector<Override> parse_overrides(const MachineOptions&, const std::string& prefix, Diagnostics& errors);

/// "path=value" of each.
std::vector<std::string> texts(const std::vector<Override>&);
/// " (with topology.gpu.peak.bf16=1TFLOP/s)": of --set and of a point of a sweep; empty without.
std::string settings_text(const std::vector<std::string>& sets, const std::vector<Override>& swept);

/// An error if --set gives `path` another value than `option` does.
void check_contradiction(const char* option, const std::string& value, const std::string& path,
                         const std::vector<Override>& sets, Diagnostics& errors);

struct Machine {
  Fabric fabric;
  int ranks;                               ///< that take part: --ranks, else all
  Library library;                         ///< that was asked for, else what people run there
  std::optional<Calibration> calibration;  ///< of the overlay, which is put in
  Diagnostics warnings;                    ///< on the calibration and on the description
};

/// Large enough for --nodes, for --ranks and for `ranks_needed`; a teaching machine is exactly as large.
/// The library's calibration is put in. The library is chosen_library(), usual being that of the machine or the only
/// one that the overlay has a calibration of.
std::optional<Machine> load_machine(const MachineOptions&, int ranks_needed, const Session&, Diagnostics& errors,
                                    const LibraryClues& = {});

/// Fabric::build, unless its links alone take more memory than there is (footprint.hpp): then an error of memory.
Result<Fabric> build_within_memory(const TopologySpec&, int nodes, const Location& asked_at);

}  // namespace collcast::cli
