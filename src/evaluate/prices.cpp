#include "collcast/evaluate/prices.hpp"

#include "collcast/evaluate/by_nccl.hpp"
#include "evaluate/group_patterns.hpp"
#include "evaluate/request_key.hpp"
#include "evaluate/simulated_beside.hpp"

namespace collcast {
namespace {

/// Links that the hops of all that is prepared cross: 200 MB or so.
constexpr std::size_t most_crossings = std::size_t{1} << 23;

RequestKey with_size(RequestKey groups, Bytes size) {
  groups.push_back(size.value());
  return groups;
}

}  // namespace

Prices::Prices(const Fabric& fabric, CollectivePolicy policy, EngineOptions engine)
    : fabric_(fabric), policy_(std::move(policy)), engine_(std::move(engine)) {
  if (policy_.library == Library::nccl) by_nccl_ = memoized(by_nccl(fabric_, policy_.environment));
}

Result<PreparedCollective> Prices::prepared(const CollectiveRequest& request, const Key& groups) {
  // No bytes say nothing of the other sizes.
  const bool is_kept = request.size > Bytes(0);
  if (const auto found = prepared_.find(groups); is_kept && found != prepared_.end()) return found->second;
  ++counts_.prepared;
  Result<PreparedCollective> made = PreparedCollective::make(fabric_, request, policy_);
  if (!made || !is_kept) return made;
  crossings_ += made->crossings();
  if (crossings_ > most_crossings) {
    prepared_.clear();
    crossings_ = made->crossings();
  }
  prepared_.emplace(groups, *made);
  return made;
}

Result<Prices::Known*> Prices::known(const CollectiveRequest& request) {
  const Key groups = key_of_groups(request);
  const Key key = with_size(groups, request.size);
  if (const auto found = known_.find(key); found != known_.end()) return &found->second;
  const Result<PreparedCollective> prepared = this->prepared(request, groups);
  if (!prepared) return prepared.errors();
  ++counts_.chosen;
  Choice choice = prepared->fastest(request.size);
  return &known_.emplace(key, Known{std::move(choice.options), choice.estimate.total, {}}).first->second;
}

Result<Seconds> Prices::estimate(const CollectiveRequest& request) {
  if (by_nccl_) return by_nccl_(request);
  if (takes_no_time(request)) return Seconds(0);
  const Result<Known*> known = this->known(request);
  if (!known) return known.errors();
  return (*known)->estimate + policy_.base_latency;
}

Result<Seconds> Prices::simulate(const CollectiveRequest& request) {
  if (by_nccl_) return by_nccl_(request);
  if (takes_no_time(request)) return Seconds(0);
  const Result<Known*> known = this->known(request);
  if (!known) return known.errors();
  Known& of = **known;
  if (!of.simulated) {
    ++counts_.simulated;
    const Result<Seconds> time = simulated_beside(fabric_, request, of.options, engine_);
    if (!time) return time.errors();
    of.simulated = *time;
  }
  return *of.simulated + policy_.base_latency;
}

Result<CollectiveOptions> Prices::options(const CollectiveRequest& request) {
  const Result<Known*> known = this->known(request);
  if (!known) return known.errors();
  return (*known)->options;
}

Result<std::string> Prices::algorithm(const CollectiveRequest& request) {
  if (!by_nccl_) {
    const Result<Known*> known = this->known(request);
    if (!known) return known.errors();
    return (*known)->options.algorithm;
  }
  const Key key = with_size(key_of_groups(request), request.size);
  if (const auto found = nccl_choices_.find(key); found != nccl_choices_.end()) return found->second;
  Result<std::string> choice = nccl_choice(fabric_, request, policy_.environment);
  if (choice) nccl_choices_.emplace(key, *choice);
  return choice;
}

}  // namespace collcast
