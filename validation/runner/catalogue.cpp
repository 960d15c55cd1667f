// The backends, those that are not built in too.
#include "collcast/base/check.hpp"
#include "collcast/nccl/environment.hpp"
#include "runner/communicator.hpp"

namespace collcast {

namespace {

/// Not a library that runs: what the forecasts do, so that it can be held against the others.
BackendEntry simulated() {
  BackendEntry out;
  out.name = "ideal";
  out.what = "simulated: textbook algorithms on a described machine (collcast collective)";
  out.runs = false;
  out.built = true;
  out.version = tool_version();
  for (const AlgorithmInfo& algorithm : algorithms()) out.forecasts.push_back(algorithm.name);
  for (int i = 0; i < collective_kinds; ++i) {
    BackendEntry::Kind kind{static_cast<CollectiveKind>(i), {}, false, false, {}};
    for (const AlgorithmInfo& algorithm : algorithms()) {
      for (const CollectiveKind can : algorithm.kinds) {
        if (can == kind.kind) kind.algorithms.push_back(algorithm.name);
      }
    }
    out.kinds.push_back(std::move(kind));
  }
  return out;
}

/// As rows of `collcast collective --library nccl` name them.
std::vector<std::string> nccl_forecasts() {
  std::vector<std::string> out = nccl::algorithm_names();
  out.push_back("p2p");
  return out;
}

BackendEntry asked(runner::Backend backend) {
  if (backend.look != nullptr) backend.look(backend.entry);
  if (backend.entry.name == "nccl") backend.entry.forecasts = nccl_forecasts();
  return std::move(backend.entry);
}

}  // namespace

std::optional<runner::Backend> runner::find_backend(const std::string& name) {
  if (name == "nccl") return nccl_backend();
  if (name == "gloo") return gloo_backend();
  if (name == "mpi") return mpi_backend();
  return std::nullopt;
}

bool is_datatype(const std::string& name) { return runner::parse_datatype(name).has_value(); }

std::vector<std::string> measuring_backends() { return {"nccl", "gloo", "mpi"}; }

BackendEntry measuring_backend(const std::string& name) {
  const auto backend = runner::find_backend(name);
  check(backend.has_value(), "every backend that measures has its entry");
  return asked(*backend);
}

BackendsReport backends() {
  BackendsReport out;
  for (const std::string& name : measuring_backends()) out.entries.push_back(measuring_backend(name));
  out.entries.push_back(simulated());
  return out;
}

}  // namespace collcast
