#include "cli/measure_options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "cli/values.hpp"
#include "collcast/base/units.hpp"

namespace collcast::cli {

namespace {

constexpr int most_launched = 1024;

const BackendEntry::Kind* find_kind(const BackendEntry& entry, CollectiveKind kind) {
  const auto found =
      std::find_if(entry.kinds.begin(), entry.kinds.end(), [&](const auto& k) { return k.kind == kind; });
  return found == entry.kinds.end() ? nullptr : &*found;
}

std::vector<CollectiveKind> parse_kinds(const std::string& text, const BackendEntry& entry, Diagnostics& errors) {
  std::vector<CollectiveKind> out;
  std::vector<std::string> known;
  for (const BackendEntry::Kind& kind : entry.kinds) known.emplace_back(to_string(kind.kind));
  if (text == "all") {
    for (const BackendEntry::Kind& kind : entry.kinds) out.push_back(kind.kind);
    return out;
  }
  if (text.empty()) {
    errors.push_back({command_line, "KIND is missing: which collective?",
                      fmt::format("expected all or one of: {}", fmt::join(known, ", "))});
    return out;
  }
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    const std::string word = text.substr(from, comma - from);
    from = comma + 1;
    const auto kind = parse_collective(word);
    if (!kind || find_kind(entry, *kind) == nullptr) {
      errors.push_back(
          {command_line, fmt::format("{} has no collective '{}'", entry.name, word), expected_one_of(word, known)});
    } else if (std::find(out.begin(), out.end(), *kind) == out.end()) {
      out.push_back(*kind);
    }
  }
  return out;
}

/// Every kind that is asked for must know the algorithm.
void check_algorithm(const MeasurePlan& plan, const BackendEntry& entry, Diagnostics& errors) {
  if (plan.algorithm.empty()) return;
  for (const CollectiveKind kind : plan.kinds) {
    const auto& known = find_kind(entry, kind)->algorithms;
    if (std::find(known.begin(), known.end(), plan.algorithm) != known.end()) continue;
    errors.push_back({command_line,
                      fmt::format("--algorithm: {} of {} has no '{}'", to_string(kind), entry.name, plan.algorithm),
                      known.empty() ? fmt::format("{} chooses by itself; {}", entry.name, entry.steering)
                                    : expected_one_of(plan.algorithm, known)});
  }
}

/// A type that this library has none of is no misspelt word.
void check_datatype(const std::string& name, const BackendEntry& entry, Diagnostics& errors) {
  if (std::ranges::find(entry.datatypes, name) == entry.datatypes.end() && is_datatype(name))
    errors.push_back({command_line, fmt::format("--datatype: {} has no '{}'", entry.name, name),
                      fmt::format("expected one of: {}", fmt::join(entry.datatypes, ", "))});
  else
    parse_word("--datatype", name, entry.datatypes, errors);
}

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

std::string parse_date(const std::string& text, Diagnostics& errors) {
  if (text.empty()) return today();
  std::tm read{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%d", &read);
  if (end == nullptr || *end != '\0' || text.size() != 10)
    errors.push_back({command_line, fmt::format("--date: '{}' is no date", text), "expected YYYY-MM-DD"});
  return text;
}

std::chrono::milliseconds parse_timeout(const std::string& text, Diagnostics& errors) {
  const auto seconds = parse_seconds(text);
  if (seconds.ok && seconds.value >= Seconds(0.1) && seconds.value <= Seconds(3600))
    return std::chrono::ceil<std::chrono::milliseconds>(seconds.value);
  errors.push_back(
      {command_line, fmt::format("--timeout: '{}' is no time to wait", text), "expected 100ms to 3600s, such as 30s"});
  return std::chrono::milliseconds(0);
}

/// How many ranks there will be, and whether --ranks agrees with what started us.
int count_ranks(const MeasureArgs& args, const MeasureQuestion& q, const BackendEntry& entry, Diagnostics& errors) {
  const auto given = args.ranks.empty() ? std::nullopt : parse_count("--ranks", args.ranks, 1, errors);
  if (q.member) {
    if (given && *given != q.member->ranks)
      errors.push_back({command_line,
                        fmt::format("--ranks: {}, but {} started {}", *given, q.member->started_by, q.member->ranks),
                        fmt::format("leave --ranks out, or start {} ranks", *given)});
    return q.member->ranks;
  }
  // Without a GPU the exit says so, not the number of ranks.
  const auto most = entry.lacking.empty() && !q.plan.share_gpu ? entry.devices : std::nullopt;
  if (given && most && *given > *most) {
    errors.push_back(
        {command_line, fmt::format("--ranks: {} ranks, but {} GPUs here", *given, *most),
         fmt::format("expected 1 to {}; --share-gpu puts several ranks on one GPU, as a functional test", *most)});
  }
  if (given && !one_process_drives_all(q.plan) && *given > most_launched)
    errors.push_back({command_line, fmt::format("--ranks: {} processes on one machine", *given),
                      fmt::format("expected {} or fewer", most_launched)});
  if (given && q.plan.backend == "gloo" && *given < 2)
    errors.push_back(
        {command_line, fmt::format("--ranks: {}: Gloo needs someone to talk to", *given), "expected 2 or more"});
  return given.value_or(most.value_or(2));
}

/// The command line that measures the same: no paths, no addresses, and only what is not the default.
std::string command_of(const MeasureArgs& args, const MeasureQuestion& q) {
  const MeasureArgs usual;
  std::string out = fmt::format("collcast measure {} --backend {}", args.kinds, args.backend);
  if (!q.member) out += fmt::format(" --ranks {}", q.ranks);
  out += " --size " + args.sizes;
  const auto option = [&](const char* name, const std::string& value, const std::string& unsaid) {
    if (value != unsaid) out += fmt::format(" {} {}", name, value);
  };
  option("--datatype", args.datatype, usual.datatype);
  option("--algorithm", args.algorithm, usual.algorithm);
  option("--root", args.root, usual.root);
  option("--warmup", args.warmup, usual.warmup);
  option("--repetitions", args.repetitions, usual.repetitions);
  option("--calls", args.calls, usual.calls);
  if (args.graph) out += " --graph";
  if (args.share_gpu) out += " --share-gpu";
  if (q.member) out += fmt::format(" (each of {} ranks started by {})", q.ranks, q.member->started_by);
  return out;
}

}  // namespace

int parse_repetitions(const char* option, const std::string& text, int least, Diagnostics& errors) {
  constexpr int most = 100'000;
  const int read = parse_count(option, text, least, errors).value_or(least);
  if (read > most)
    errors.push_back({typed(option, text), fmt::format("more than {} repetitions", most), "expected fewer"});
  return read;
}

void add_measure_options(CLI::App& app, MeasureArgs& args) {
  app.add_option("KIND", args.kinds, "all_reduce, or all_reduce,broadcast, or all")->type_name("");
  const auto option = [&](const char* group, const char* name, std::string& value, const char* type, const char* text) {
    app.add_option(name, value, text)->type_name(type)->group(group);
  };
  option("Ranks", "--backend", args.backend, "NAME",
         "gloo or mpi (CPU processes), or nccl (GPUs); 'collcast backends' lists them");
  option("Ranks", "--ranks", args.ranks, "K",
         "ranks on this machine (default: 2 processes, or every GPU); under torchrun, srun or mpirun theirs");
  option("Ranks", "--rendezvous", args.rendezvous, "HOST:PORT",
         "where rank 0 listens, under srun and mpirun (default: MASTER_ADDR and MASTER_PORT)");
  option("Ranks", "--timeout", args.timeout, "TIME", "for a rank to come or to answer (default: 30s)");
  app.add_flag("--share-gpu", args.share_gpu, "nccl: several ranks on one GPU, to see that it works and not how fast")
      ->group("Ranks");
  option("Sweep", "--size", args.sizes, "SIZE",
         "256KiB, or several: 8,256KiB,1GiB; 8:16GiB:x2 or 8:64:+8 sweeps (default: 8:16MiB:x2)");
  option("Sweep", "--datatype", args.datatype, "TYPE",
         "int8 uint8 int32 uint32 int64 uint64 half bfloat16 float double (default: float)");
  option("Sweep", "--algorithm", args.algorithm, "NAME", "of the backend (default: its first)");
  option("Sweep", "--root", args.root, "RANK", "of broadcast, reduce, gather and scatter (default: 0)");
  option("Sweep", "--warmup", args.warmup, "N", "repetitions before the clock runs (default: 5)");
  option("Sweep", "--repetitions", args.repetitions, "N", "timed, each after a barrier (default: 20)");
  option("Sweep", "--calls", args.calls, "N",
         "back to back in a repetition, which is divided by them (default: gloo and mpi 1, nccl 20)");
  app.add_flag("--graph", args.graph, "nccl: the calls of a repetition as one CUDA graph")->group("Sweep");
  option("Sidecar", "--system", args.system, "NAME",
         "of the machine, as topologies list it (default: loopback or unknown)");
  option("Sidecar", "--date", args.date, "YYYY-MM-DD", "of the measurement (default: today, UTC)");
}

std::optional<MeasureQuestion> understand(const MeasureArgs& args, const Session& session, Diagnostics& errors) {
  const std::vector<std::string> offered = measuring_backends();
  if (args.backend.empty()) {
    errors.push_back({command_line, "--backend is missing: which library?",
                      fmt::format("expected one of: {}", fmt::join(offered, ", "))});
    return std::nullopt;
  }
  if (!parse_word("--backend", args.backend, offered, errors)) return std::nullopt;
  const BackendEntry entry = measuring_backend(args.backend);
  MeasureQuestion q;
  q.lacking = entry.lacking;
  q.plan.backend = args.backend;
  // What is not built in knows no words to check the rest against.
  if (!entry.built) return q;
  q.plan.kinds = parse_kinds(args.kinds, entry, errors);
  q.plan.sizes = parse_sizes(args.sizes, errors);
  check_datatype(args.datatype, entry, errors);
  q.plan.datatype = args.datatype;
  q.plan.algorithm = args.algorithm;
  check_algorithm(q.plan, entry, errors);
  q.plan.warmup = parse_repetitions("--warmup", args.warmup, 0, errors);
  q.plan.repetitions = parse_repetitions("--repetitions", args.repetitions, 1, errors);
  q.plan.calls = args.calls.empty() ? entry.default_calls : parse_count("--calls", args.calls, 1, errors).value_or(1);
  q.plan.timeout = parse_timeout(args.timeout, errors);
  q.plan.graph = args.graph;
  q.plan.share_gpu = args.share_gpu;
  if ((args.graph || args.share_gpu) && args.backend != "nccl")
    errors.push_back(
        {command_line, fmt::format("{} has no GPU", args.backend), "expected --graph and --share-gpu with nccl"});

  q.plan.words = session.words;

  const bool by_library = args.backend == "mpi";
  if (by_library && !args.rendezvous.empty())
    errors.push_back({command_line, "--rendezvous has no meaning: MPI's ranks find each other", "remove it"});
  const Result<std::optional<Membership>> world =
      by_library ? mpi_membership(session.environment) : membership(session.environment, args.rendezvous);
  if (!world) {
    append(errors, world.errors());
    return std::nullopt;
  }
  q.member = *world;
  q.ranks = count_ranks(args, q, entry, errors);
  q.plan.root = parse_count("--root", args.root, 0, errors).value_or(0);
  if (q.plan.root > 0 && !q.plan.kinds.empty() && std::ranges::none_of(q.plan.kinds, is_rooted))
    errors.push_back({command_line, fmt::format("--root has no meaning: {} has none", args.kinds), "remove it"});
  if (q.plan.root >= q.ranks)
    errors.push_back({command_line, fmt::format("--root: {} is outside the {} ranks", q.plan.root, q.ranks),
                      fmt::format("expected a rank from 0 to {}", q.ranks - 1)});
  q.date = parse_date(args.date, errors);
  q.system = !args.system.empty() ? args.system : args.backend != "nccl" && !q.member ? "loopback" : "unknown";
  if (q.system.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") !=
      std::string::npos)
    errors.push_back({command_line, fmt::format("--system: '{}' is no name", q.system),
                      "expected letters, digits, '-', '_' and '.'"});
  q.command = command_of(args, q);
  return q;
}

}  // namespace collcast::cli
