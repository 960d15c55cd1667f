#include "collcast/evaluate/by_nccl.hpp"

#include <algorithm>
#include <memory>
#include <span>

#include "collcast/evaluate/nodes.hpp"
#include "collcast/evaluate/symmetry.hpp"

namespace collcast {

namespace {

bool is_on(const Fabric& fabric, const Group& group, NodeId node) {
  for (int i = 0; i < group.size(); ++i)
    if (fabric.node_of(group[i]) == node) return true;
  return false;
}

/// The communicator with its share of the first node's NICs beside the groups alongside.
nccl::Communicator beside(nccl::Communicator c, const Fabric& fabric, const CollectiveRequest& request) {
  if (c.nodes < 2 || request.alongside.empty()) return c;
  const int there_are = network_ports(fabric.spec());
  const NodeId node = fabric.node_of(request.group[0]);
  const auto here = std::count_if(request.alongside.begin(), request.alongside.end(), [&](const Group& group) {
    return is_on(fabric, group, node) && !is_on_one_node(fabric, group);
  });
  const auto share = [&](double nics, Bandwidth& rate) {
    const double wanted = nics * static_cast<double>(here + 1);
    if (wanted > there_are) rate = rate * (there_are / wanted);
  };
  share(c.nics.count, c.nics.rate);
  // Beside others a GPU has one NIC before all have less of theirs.
  if (c.pairs.nics * static_cast<double>(here + 1) > there_are) {
    c.pairs.nics /= c.pairs.nics_of_gpu;
    c.pairs.nics_of_gpu = 1;
  }
  share(c.pairs.nics, c.pairs.nic_rate);
  return c;
}

/// And with what those alongside send over the same spines, where leaves are oversubscribed.
Result<nccl::Communicator> with_spines_shared(nccl::Communicator c, const Fabric& fabric,
                                              const CollectiveRequest& request, const nccl::Environment& environment,
                                              nccl::Communicators& known) {
  if (!c.spines) return c;
  for (const Group& group : request.alongside) {
    if (group.size() < 2 || is_on_one_node(fabric, group)) continue;
    const Result<nccl::Communicator> other = known.of(fabric, group, environment);
    if (!other) return other.errors();
    if (other->spines) add_alongside(*other->spines, *c.spines);
  }
  return c;
}

}  // namespace

CollectiveTime by_nccl(const Fabric& fabric, nccl::Environment environment) {
  return [&fabric, environment = std::move(environment),
          communicators = std::make_shared<nccl::Communicators>()](const CollectiveRequest& asked) -> Result<Seconds> {
    if (asked.group.size() < 2 || asked.size == Bytes(0)) return Seconds(0);
    const CollectiveRequest request = moved_to_front(fabric, asked);
    const Result<nccl::Communicator> communicator = communicators->of(fabric, request.group, environment);
    if (!communicator) return communicator.errors();
    const Result<nccl::Plan> plan = nccl::plan(*communicator, request.kind, request.size);
    if (!plan) return plan.errors();
    const Result<nccl::Communicator> shared =
        with_spines_shared(beside(*communicator, fabric, request), fabric, request, environment, *communicators);
    if (!shared) return shared.errors();
    return nccl::run(*shared, request.kind, request.size, *plan).time();
  };
}

CollectiveTime by_nccl(const Fabric& fabric, const CollectivePolicy& policy) {
  CollectiveTime price = by_nccl(fabric, policy.environment);
  if (policy.stretch == CollectivePolicy{}.stretch) return price;
  return [price = std::move(price), policy](const CollectiveRequest& request) -> Result<Seconds> {
    const Result<Seconds> time = price(request);
    if (!time) return time.errors();
    return policy.stretched(request.size, *time);
  };
}

namespace {

/// Calls follow one another: `less` are the same links without the last ones.
void put_busiest(const nccl::Program& program, const Timeline& all, const Timeline* less, NcclSimulation& out) {
  const std::span<const Link> links = program.machine.links();
  // Ports and drives are no links of the machine's own, which are named where they are as busy.
  constexpr double as_busy = 0.99;
  double most = 0;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const double carried = all.links[i].carried.value() - (less != nullptr ? less->links[i].carried.value() : 0);
    const double load = carried / links[i].bandwidth.value() / program.calls;
    const double weight = load * (links[i].kind == LinkKind::direct ? as_busy : 1);
    if (weight <= most) continue;
    most = weight;
    out.busiest = LinkId(static_cast<std::uint32_t>(i));
    out.load = Seconds(load);
  }
}

}  // namespace

Result<NcclSimulation> simulate_with_links(const nccl::Program& program, const EngineOptions& options) {
  const Result<Timeline> all = simulate(program.machine, program.pattern, options);
  if (!all) return all.errors();
  NcclSimulation out;
  if (!program.less) {
    out.time = std::max(program.host, program.start + to_seconds(all->finish));
    put_busiest(program, *all, nullptr, out);
    return out;
  }
  const Result<Timeline> less = simulate(program.machine, *program.less, options);
  if (!less) return less.errors();
  out.time = std::max(program.host, program.start + to_seconds(all->finish - less->finish) / program.calls);
  put_busiest(program, *all, &*less, out);
  return out;
}

Result<Seconds> simulate(const nccl::Program& program, const EngineOptions& options) {
  const Result<NcclSimulation> simulated = simulate_with_links(program, options);
  if (!simulated) return simulated.errors();
  return simulated->time;
}

Result<std::string> nccl_choice(const Fabric& fabric, const CollectiveRequest& request,
                                const nccl::Environment& environment) {
  const Result<nccl::Communicator> communicator = nccl::connect(fabric, request.group, environment);
  if (!communicator) return communicator.errors();
  const Result<nccl::Plan> plan = nccl::plan(*communicator, request.kind, request.size);
  if (!plan) return plan.errors();
  return std::string(plan->point_to_point ? "p2p" : to_string(plan->algorithm)) + " " +
         std::string(to_string(plan->protocol));
}

}  // namespace collcast
