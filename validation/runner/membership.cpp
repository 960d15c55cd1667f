// Which world this process is one of, by the variables of torchrun, srun and mpirun.
//
// torchrun: RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT. srun: SLURM_PROCID, SLURM_STEP_NUM_TASKS (or
// SLURM_NTASKS), SLURM_LOCALID. Open MPI: OMPI_COMM_WORLD_RANK/SIZE/LOCAL_RANK. MPICH and Intel MPI: PMI_RANK,
// PMI_SIZE, MPI_LOCALRANKID. srun and mpirun name no address for rank 0: MASTER_ADDR and MASTER_PORT or
// --rendezvous do; MPI's ranks need none. mpirun inside a Slurm job is asked before srun, which it uses to start its
// own daemons: their variables are in the environment of its ranks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "collcast/base/numbers.hpp"
#include "collcast/runner/runner.hpp"
#include "runner/starter.hpp"

namespace collcast {

namespace {

struct Starter {
  const char* name;
  const char* rank;
  const char* ranks;
  const char* ranks_instead;  ///< where `ranks` is not set
  const char* local_rank;
};
constexpr std::array<Starter, 4> starters{
    {{"torchrun", "RANK", "WORLD_SIZE", "WORLD_SIZE", "LOCAL_RANK"},
     {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
     {"mpirun", "PMI_RANK", "PMI_SIZE", "PMI_SIZE", "MPI_LOCALRANKID"},
     {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_LOCALID"}}};

constexpr int most_world = 1 << 20;

std::optional<std::string> value(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::nullopt : std::optional(found->second);
}

std::optional<int> number(const std::string& text, int least, int most) {
  const auto out = to_number<int>(text);
  return out && *out >= least && *out <= most ? out : std::nullopt;
}

std::optional<int> read(const Environment& environment, const std::string& name, int least, int most,
                        Diagnostics& errors) {
  const std::string text = value(environment, name).value_or("");
  const auto out = number(text, least, most);
  if (!out)
    errors.push_back({{"environment"},
                      fmt::format("{}: '{}' is no whole number from {} to {}", name, text, least, most),
                      "expected what torchrun, srun or mpirun set"});
  return out;
}

/// "HOST:PORT", "[::1]:29500".
bool split_address(const std::string& text, Membership& out) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  out.host = text.substr(0, colon);
  if (out.host.size() > 2 && out.host.front() == '[' && out.host.back() == ']')
    out.host = out.host.substr(1, out.host.size() - 2);
  const auto port = number(text.substr(colon + 1), 1, 65535);
  out.port = port.value_or(0);
  return port.has_value();
}

void find_rendezvous(const Environment& environment, const std::string& rendezvous, Membership& out,
                     Diagnostics& errors) {
  if (!rendezvous.empty()) {
    if (!split_address(rendezvous, out))
      errors.push_back({{},
                        fmt::format("--rendezvous: '{}' is no address", rendezvous),
                        "expected HOST:PORT of rank 0, such as node1:29500"});
    return;
  }
  const auto host = value(environment, "MASTER_ADDR");
  if (!host || !value(environment, "MASTER_PORT")) {
    errors.push_back({{},
                      fmt::format("{} names no address where the ranks can meet", out.started_by),
                      "expected --rendezvous HOST:PORT of rank 0, or MASTER_ADDR and MASTER_PORT"});
    return;
  }
  out.host = *host;
  // torchrun's agent listens at MASTER_PORT itself where it shares its store; the next one is ours.
  const bool taken = value(environment, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  out.port = read(environment, "MASTER_PORT", 1, 65534, errors).value_or(0) + (taken ? 1 : 0);
}

/// A world without a rank in it, or a rank without a world: a launch that went wrong. SLURM_NTASKS is there inside an
/// allocation too, before srun starts anything.
Diagnostics half_told(const Environment& environment) {
  Diagnostics out;
  for (const Starter& starter : starters) {
    const bool has_rank = value(environment, starter.rank).has_value();
    const bool has_size = value(environment, starter.ranks).has_value();
    if (has_rank == has_size || starter.name == std::string_view("srun")) continue;
    const char* there = has_rank ? starter.rank : starter.ranks;
    const char* missing = has_rank ? starter.ranks : starter.rank;
    out.push_back({{"environment"},
                   fmt::format("{} is {}, and {} is missing", there, *value(environment, there), missing),
                   fmt::format("expected both, as {} sets them, or neither: unset {}", starter.name, there)});
  }
  return out;
}

bool has_started(const Starter& starter, const Environment& environment) {
  return value(environment, starter.rank) &&
         (value(environment, starter.ranks) || value(environment, starter.ranks_instead));
}

/// Where it stands in the world that `starter` tells of.
Membership read_member(const Starter& starter, const Environment& environment, Diagnostics& errors) {
  Membership out;
  out.started_by = starter.name;
  const char* size = value(environment, starter.ranks) ? starter.ranks : starter.ranks_instead;
  out.ranks = read(environment, size, 1, most_world, errors).value_or(1);
  out.rank = read(environment, starter.rank, 0, most_world, errors).value_or(0);
  if (errors.empty() && out.rank >= out.ranks)
    errors.push_back({{"environment"},
                      fmt::format("{} is {}, but {} is {}", starter.rank, out.rank, size, out.ranks),
                      fmt::format("expected a rank from 0 to {}", out.ranks - 1)});
  out.local_rank = out.rank;
  if (value(environment, starter.local_rank))
    out.local_rank = read(environment, starter.local_rank, 0, most_world, errors).value_or(0);
  return out;
}

}  // namespace

Result<std::optional<Membership>> membership(const Environment& environment, const std::string& rendezvous) {
  for (const Starter& starter : starters) {
    if (!has_started(starter, environment)) continue;
    Diagnostics errors;
    Membership out = read_member(starter, environment, errors);
    // A world of one meets nobody.
    if (out.ranks > 1) find_rendezvous(environment, rendezvous, out, errors);
    if (!errors.empty()) return errors;
    return std::optional(out);
  }
  if (Diagnostics half = half_told(environment); !half.empty()) return half;
  if (!rendezvous.empty())
    return Diagnostic{{},
                      "--rendezvous needs ranks that something else started",
                      "expected to run under torchrun, srun or mpirun (RANK and WORLD_SIZE, SLURM_PROCID ..., "
                      "OMPI_COMM_WORLD_RANK ...)"};
  return std::optional<Membership>();
}

bool runner::is_started_by_another() {
  return std::any_of(starters.begin(), starters.end(),
                     [](const Starter& starter) { return std::getenv(starter.rank) != nullptr; });
}

Result<std::optional<Membership>> mpi_membership(const Environment& environment) {
  bool by_another = false;
  for (const Starter& starter : starters) {
    if (!has_started(starter, environment)) continue;
    by_another = starter.name == std::string_view("torchrun");
    if (by_another) continue;
    Diagnostics errors;
    const Membership out = read_member(starter, environment, errors);
    if (!errors.empty()) return errors;
    return std::optional(out);
  }
  if (by_another)
    return Diagnostic{{"environment"},
                      "RANK and WORLD_SIZE are set: torchrun starts no MPI ranks",
                      "expected mpirun or srun to start them, or --ranks; unset RANK and WORLD_SIZE"};
  if (Diagnostics half = half_told(environment); !half.empty()) return half;
  return std::optional<Membership>();
}

}  // namespace collcast
