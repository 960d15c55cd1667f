// What the collectives and the messages of one forecast take, on one machine: each request priced once, whatever asks.
#pragma once

#include <algorithm>

#include "collcast/evaluate/prices.hpp"
#include "collcast/workload/step.hpp"

namespace collcast::workload {

/// A message has one way to go: what is asked for collectives is not asked for it, but it begins as they do.
CollectivePolicy of_messages(const CollectivePolicy&);

class ForecastPrices {
 public:
  /// The fabric must outlive it.
  ForecastPrices(const Fabric& fabric, const CollectivePolicy& policy, const EngineOptions& engine = {},
                 const GoesOn& goes_on = {})
      : memory_(engine.memory),
        goes_on_(goes_on),
        collectives_(fabric, policy, engine, goes_on),
        messages_(fabric, of_messages(policy), engine, goes_on) {}
  ForecastPrices(const ForecastPrices&) = delete;
  ForecastPrices& operator=(const ForecastPrices&) = delete;

  const CollectivePolicy& policy() const { return collectives_.policy(); }
  /// What a simulation may take now: of what there was at first, less by the machine and the prices that are kept.
  Bytes room() const { return std::min(memory_, goes_on_.room().value_or(memory_)); }
  Prices& of(const CollectiveRequest& request) {
    return request.kind == CollectiveKind::sendrecv ? messages_ : collectives_;
  }
  /// Good as long as this lives.
  CollectiveTime by_estimate() {
    return [this](const CollectiveRequest& request) { return of(request).estimate(request); };
  }
  CollectiveTime by_simulation() {
    return [this](const CollectiveRequest& request) { return of(request).simulate(request); };
  }
  const Prices& collectives() const { return collectives_; }
  const Prices& messages() const { return messages_; }

 private:
  Bytes memory_;
  GoesOn goes_on_;
  Prices collectives_, messages_;
};

}  // namespace collcast::workload
