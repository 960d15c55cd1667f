#include "nccl_prediction.hpp"

#include <algorithm>
#include <memory>

#include "collcast/nccl/run.hpp"
#include "collcast/validation/validate.hpp"

namespace collcast {

namespace {

/// What is given goes before what the table was measured with.
Result<nccl::Environment> merged(const std::vector<nccl::Setting>& given, const nccl::Environment& measured) {
  if (given.empty()) return measured;
  std::vector<nccl::Setting> all = given;
  for (const nccl::Setting& one : measured.given)
    if (std::none_of(given.begin(), given.end(), [&](const nccl::Setting& g) { return g.name == one.name; }))
      all.push_back(one);
  Result<nccl::Environment> out = nccl::read_environment(all);
  if (!out) return out;
  nccl::Environment environment = std::move(out).value();
  environment.launch = measured.launch;
  return environment;
}

}  // namespace

Result<nccl::Plan> nccl_plan(const nccl::Communicator& communicator, const PlacedTable& place,
                             const CollectiveRequest& request) {
  const auto ran = nccl::is_point_to_point(request.kind) ? std::nullopt : nccl::parse_algorithm(place.algorithm);
  return nccl::plan(communicator, request.kind, request.size, ran);
}

Prediction nccl_prediction(std::vector<nccl::Setting> given, nccl::Files files) {
  return [given = std::move(given), files = std::move(files), communicators = std::make_shared<nccl::Communicators>()](
             const PlacedTable& place, const CollectiveRequest& request) -> Result<Predicted> {
    const Result<nccl::Environment> environment = merged(given, place.environment);
    if (!environment) return environment.errors();
    const Result<nccl::Communicator> communicator =
        communicators->of(*place.fabric, request.group, with_files(*environment, files));
    if (!communicator) return communicator.errors();
    const Result<nccl::Plan> plan = nccl_plan(*communicator, place, request);
    if (!plan) return plan.errors();
    const Seconds time = nccl::run(*communicator, request.kind, request.size, *plan).time();
    const std::string algorithm = plan->point_to_point ? "p2p" : std::string(to_string(plan->algorithm));
    return Predicted{time, algorithm + " " + std::string(to_string(plan->protocol))};
  };
}

}  // namespace collcast
