// What `collective` and `explain collective` have in common: which collective, among whom, how.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/machine.hpp"
#include "cli/patience.hpp"
#include "collcast/collective/msccl.hpp"
#include "collcast/evaluate/evaluate.hpp"
#include "collcast/nccl/environment.hpp"
#include "collcast/report/documents.hpp"

namespace collcast::cli {

/// Files that variables of NCCL's name: --graph and --tuner.
struct NcclFileArgs {
  std::string graph, tuner;
};

struct CollectiveArgs {
  std::string kind;
  MachineOptions machine;
  std::vector<std::string> groups;
  std::string groups_of;
  std::string size = "1KiB:1GiB:x32";
  std::string root = "0";
  std::string algorithm = "auto";
  std::string chunks = "auto";
  std::string channels = "auto";
  std::string library;           ///< empty: what people run on the machine
  std::string of_ideal;          ///< another option that asks for what only library ideal has; empty: none
  std::vector<std::string> env;  ///< NAME=VALUE, of library nccl
  std::vector<std::string> faults;
  NcclFileArgs files;
  std::string method;  ///< empty: both, the simulation where it is quick
  std::string sharing = "max_min";
  bool concurrent = false;
};
void add_collective_options(CLI::App&, CollectiveArgs&);

/// The same, understood.
struct CollectiveQuestion {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Fabric fabric;
  std::vector<Group> groups;
  std::vector<Bytes> sizes;
  int root = 0;
  bool all_algorithms = false;
  CollectivePolicy policy;
  bool estimate = true, simulate = true;
  bool method_given = false;
  EngineOptions engine;
  bool concurrent = false;
  std::optional<Calibration> calibration;
  Diagnostics warnings;                ///< on it
  std::vector<MachineFault> faults{};  ///< that the fabric has
  Library library = Library::ideal;
  nccl::Environment environment{};                ///< of library nccl
  std::optional<nccl::Algorithm> nccl_algorithm;  ///< that --algorithm names under it
  std::optional<msccl::Algorithm> brought = {};   ///< that --algorithm msccl:FILE names
  const Patience* patience = nullptr;             ///< with its watch in `engine`; null: simulations end when they end

  bool is_over() const { return patience != nullptr && patience->is_over(); }
  GoesOn closed_forms_go_on() const;
  bool closed_forms_are_over() const { return patience != nullptr && patience->is_over_for_closed_forms(); }

  Seconds base_latency() const { return calibration ? calibration->base_latency : Seconds(0); }
  /// Of one group; with the other groups alongside if all run at once.
  CollectiveRequest request(std::size_t group, Bytes size) const;
  CollectiveRequest request_alone(std::size_t group, Bytes size) const { return {kind, groups[group], size, root, {}}; }

  /// As of choose(); by simulation between near candidates where the groups are simulated one at a time.
  Result<std::vector<Choice>> choices(const CollectiveRequest&, const CollectivePolicy&) const;
  /// What `auto` did not look at of the largest group; empty: it looked at all.
  std::string passed_over() const;
};
/// Nothing, and why, if anything is wrong.
std::optional<CollectiveQuestion> understand(const CollectiveArgs&, const Session&, Diagnostics& errors);

/// A warning where the chunks that were asked for come out smaller than a byte, at the smallest of them.
Diagnostics fine_chunks(const std::string& given, const std::vector<std::pair<Bytes, const Pattern*>>& sizes);

/// The note of a row whose closed form stands alone because its simulation failed.
std::string not_simulated(const std::string& algorithm, Bytes size, const Diagnostics& errors);

/// "max_min" or "fifo".
std::optional<Sharing> parse_sharing(const std::string&, Diagnostics& errors);
/// "ideal" or "nccl"; nothing where it is not given, or wrong.
std::optional<Library> parse_library(const std::string&, Diagnostics& errors);
/// NCCL's variables as --env gives them; under another library they are an error.
void add_env_option(CLI::App&, std::vector<std::string>&);

void add_graph_option(CLI::App&, std::string&);
void add_tuner_option(CLI::App&, std::string&);
/// Both read; warnings are printed.
nccl::Files read_nccl_files(const NcclFileArgs&, std::optional<Library>, const Session&, Diagnostics& errors);
std::vector<nccl::Setting> parse_env(const std::vector<std::string>&, std::optional<Library>, Diagnostics& errors);
/// "estimate", "simulate", "both" or nothing given.
std::optional<Method> parse_method(const std::string&, Diagnostics& errors);

/// Where 8 of 10 measurements like this row's were, by the calibration; nothing where it does not say.
std::optional<TimeRange> interval_of(const CollectiveQuestion&, const CollectiveRow&);
std::optional<TimeRange> interval_of(const CollectiveQuestion&, Bytes, std::optional<Seconds> time);
/// That the machine is calibrated, and what of the rows is beyond what the calibration has seen.
void add_calibration_notes(const CollectiveQuestion&, CollectiveReport&);
/// In which way what is asked is beyond what the calibration has seen; empty: in none, or there is no calibration.
std::string beyond_calibration(const CollectiveQuestion&);

}  // namespace collcast::cli
