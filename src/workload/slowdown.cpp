#include "workload/slowdown.hpp"

#include <algorithm>

#include "collcast/evaluate/nodes.hpp"

namespace collcast::workload {

Seconds beside_collective(double rate, Seconds kernels, Seconds collective) {
  return std::min(kernels / rate, kernels + (1 - rate) * collective);
}

double rate_beside(const KernelModel& model, std::span<const Operation> operations) {
  const double rate = model.beside_collectives;
  Seconds slowed{}, all{};
  for (const Operation& op : operations) {
    all += op.time;
    if (op.kind != OperationKind::memory) slowed += op.time;
  }
  if (rate == 1 || slowed == Seconds{}) return 1;
  if (slowed == all) return rate;
  return all / (slowed / rate + (all - slowed));
}

bool messages_slow(const Group& group, const Fabric& fabric) { return is_on_one_node(fabric, group); }

}  // namespace collcast::workload
