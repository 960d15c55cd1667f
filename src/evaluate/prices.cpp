#include "collcast/evaluate/prices.hpp"

#include "collcast/engine/watch.hpp"
#include "collcast/evaluate/by_nccl.hpp"
#include "evaluate/group_patterns.hpp"
#include "evaluate/place.hpp"
#include "evaluate/request_key.hpp"
#include "evaluate/simulated_beside.hpp"

namespace collcast {
namespace {

/// Instead of how far the spines are shifted.
constexpr std::int64_t any_spines = -1;
/// Links that the hops of all that is prepared cross: 200 MB or so.
constexpr std::size_t most_crossings = std::size_t{1} << 23;

RequestKey with(RequestKey key, std::int64_t last) {
  key.push_back(last);
  return key;
}

RequestKey joined(RequestKey key, const RequestKey& more) {
  key.insert(key.end(), more.begin(), more.end());
  return key;
}

CollectiveRequest resized(CollectiveRequest request, Bytes size) {
  request.size = size;
  return request;
}

}  // namespace

Prices::Prices(const Fabric& fabric, CollectivePolicy policy, EngineOptions engine, GoesOn goes_on)
    : fabric_(fabric), policy_(std::move(policy)), engine_(std::move(engine)), goes_on_(std::move(goes_on)) {
  if (policy_.library == Library::nccl) by_nccl_ = memoized(by_nccl(fabric_, policy_));
}

const Fabric& Prices::machine(const Asked& asked) {
  if (asked.nodes.empty()) return fabric_;
  if (const auto found = parts_.find(asked.on); found != parts_.end()) return found->second;
  std::optional<Fabric> part = fabric_.part(asked.nodes);
  check(part.has_value(), "nodes that a request was placed on make a part of the machine");
  part_links_ += part->links().size();
  if (part_links_ > most_kept_links) {
    prepared_.clear();  // what is prepared is so on its part
    crossings_ = 0;
    parts_.clear();
    part_links_ = part->links().size();
  }
  return parts_.emplace(asked.on, std::move(*part)).first->second;
}

const Prices::Asked& Prices::placed(const CollectiveRequest& request) {
  Key named = key_of_groups(request);
  if (const auto found = asked_.find(named); found != asked_.end()) return found->second;
  Place place = place_of(fabric_, request);
  const Key base = joined(key_of_groups(place.request), place.on);
  Asked asked{std::move(place.request), std::move(place.nodes), with(place.on, place.shift), with(base, place.shift)};
  if (place.has_spines()) {
    std::optional<PreparedCollective> first;
    auto lanes = lanes_.find(base);
    if (lanes == lanes_.end()) {
      if (Result<PreparedCollective> made = prepared(asked, request.size)) first = std::move(made).value();
      lanes = lanes_.emplace(base, first ? first->lanes() : Place::unlimited).first;
    }
    // Where no spine comes round again, which ones they are does not matter.
    if (lanes->second <= place.room) {
      asked.on.back() = asked.groups.back() = any_spines;
      if (first && request.size > Bytes(0)) prepared_.emplace(asked.groups, *first);
    }
  }
  return asked_.emplace(std::move(named), std::move(asked)).first->second;
}

Result<PreparedCollective> Prices::prepared(const Asked& asked, Bytes size) {
  // No bytes say nothing of the other sizes.
  const bool is_kept = size > Bytes(0);
  if (const auto found = prepared_.find(asked.groups); is_kept && found != prepared_.end()) return found->second;
  ++counts_.prepared;
  Result<PreparedCollective> made =
      PreparedCollective::make(machine(asked), resized(asked.request, size), policy_, goes_on_);
  if (!made || !is_kept) return made;
  crossings_ += made->crossings();
  if (crossings_ > most_crossings) {
    prepared_.clear();
    crossings_ = made->crossings();
  }
  prepared_.emplace(asked.groups, *made);
  return made;
}

Result<Prices::Known*> Prices::known(const CollectiveRequest& request) {
  const Asked& asked = placed(request);
  const Key key = with(asked.groups, request.size.value());
  if (const auto found = known_.find(key); found != known_.end()) return &found->second;
  Result<PreparedCollective> prepared = this->prepared(asked, request.size);
  // On the whole machine it fails in the words of those who asked.
  if (!prepared) prepared = PreparedCollective::make(fabric_, request, policy_, goes_on_);
  if (!prepared) return prepared.errors();
  ++counts_.chosen;
  Result<Choice> choice = prepared->fastest(request.size, goes_on_);
  if (!choice) return choice.errors();
  return &known_.emplace(key, Known{choice->options, choice->estimate.total, {}}).first->second;
}

Result<Seconds> Prices::estimate(const CollectiveRequest& request) {
  if (by_nccl_) return by_nccl_(request);
  if (takes_no_time(request)) return Seconds(0);
  const Result<Known*> known = this->known(request);
  if (!known) return known.errors();
  return policy_.stretched(request.size, (*known)->estimate + policy_.base_latency);
}

Result<Seconds> Prices::simulate(const CollectiveRequest& request) {
  if (by_nccl_) return by_nccl_(request);
  if (takes_no_time(request)) return Seconds(0);
  const Result<Known*> known = this->known(request);
  if (!known) return known.errors();
  Known& of = **known;
  if (!of.simulated) {
    ++counts_.simulated;
    const Asked& asked = placed(request);
    bool is_ended = false;
    EngineOptions engine = engine_;
    engine.watch = telling_end(engine_.watch, is_ended);
    Result<Seconds> time = simulated_beside(machine(asked), resized(asked.request, request.size), of.options, engine);
    // On the whole machine it fails in the words of those who asked.
    if (!time && !is_ended && !asked.nodes.empty()) time = simulated_beside(fabric_, request, of.options, engine);
    if (!time) return time.errors();
    of.simulated = *time;
  }
  return policy_.stretched(request.size, *of.simulated + policy_.base_latency);
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
  const Key key = with(key_of_groups(request), request.size.value());
  if (const auto found = nccl_choices_.find(key); found != nccl_choices_.end()) return found->second;
  Result<std::string> choice = nccl_choice(fabric_, request, policy_.environment);
  if (choice) nccl_choices_.emplace(key, *choice);
  return choice;
}

}  // namespace collcast
