// What `collective` and `explain collective` have in common: the options that say which collective, among whom, how.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/collective_question.hpp"
#include "cli/machine.hpp"
#include "cli/output.hpp"
#include "cli/patience.hpp"
#include "collcast/evaluate/evaluate.hpp"
#include "collcast/nccl/environment.hpp"

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

/// The same, understood; nothing, and why, if anything is wrong.
std::optional<CollectiveQuestion> understand(const CollectiveArgs&, const Session&, Diagnostics& errors);

/// What both commands begin with; from then on the clock runs. Stays where it is: the question asks its patience.
struct CollectiveOpening {
  CollectiveOpening(const CollectiveArgs&, const LimitArgs&, const OutputOptions&, const Session&);

  Diagnostics errors;  ///< in the order in which they are told
  Format format;
  const Patience patience;
  std::optional<CollectiveQuestion> question;  ///< with the patience, and with the memory that there is
};

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

}  // namespace collcast::cli
