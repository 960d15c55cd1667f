// How long an all-reduce over all GPUs of a machine takes, by both methods: forecast FILE.yaml NODES
#include <collcast/evaluate/evaluate.hpp>
#include <collcast/scenario/scenario.hpp>
#include <cstdio>
#include <cstdlib>

using namespace collcast;

int fail(const Diagnostics& errors) {
  std::fputs(to_text(errors).c_str(), stderr);
  return 2;
}

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: forecast FILE.yaml NODES\n", stderr), 2;
  const Result<TopologySpec> machine = load_topology(argv[1], SearchPath{});
  if (!machine) return fail(machine.errors());
  const Result<Fabric> fabric = Fabric::build(*machine, std::atoi(argv[2]));
  if (!fabric) return fail(fabric.errors());

  const Group everybody = Group::strided(Rank(0), 1, fabric->rank_count());
  for (const std::int64_t mebibytes : {1, 16, 256}) {
    const CollectiveRequest request{CollectiveKind::all_reduce, everybody, Bytes(mebibytes << 20), 0, {}};
    const Result<Choice> best = fastest(*fabric, request, {});
    if (!best) return fail(best.errors());
    const Result<Seconds> simulated = by_simulation(*fabric, {best->options.algorithm})(request);
    if (!simulated) return fail(simulated.errors());
    std::printf("%4lld MiB  %-18s  estimate %8.3f ms  simulation %8.3f ms\n", static_cast<long long>(mebibytes),
                best->options.algorithm.c_str(), 1e3 * best->estimate.total.count(), 1e3 * simulated->count());
  }
}
