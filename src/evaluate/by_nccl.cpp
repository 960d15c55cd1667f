#include "collcast/evaluate/by_nccl.hpp"

#include <memory>

namespace collcast {

CollectiveTime by_nccl(const Fabric& fabric, nccl::Environment environment) {
  return [&fabric, environment = std::move(environment), communicators = std::make_shared<nccl::Communicators>()](
             const CollectiveRequest& request) -> Result<Seconds> {
    if (request.group.size() < 2 || request.size == Bytes(0)) return Seconds(0);
    if (!request.alongside.empty())
      return Diagnostic{{}, "library nccl does not know groups that run at once", "expected --library ideal"};
    const Result<nccl::Communicator> communicator = communicators->of(fabric, request.group, environment);
    if (!communicator) return communicator.errors();
    const Result<nccl::Plan> plan = nccl::plan(*communicator, request.kind, request.size);
    if (!plan) return plan.errors();
    return nccl::run(*communicator, request.kind, request.size, *plan).time();
  };
}

}  // namespace collcast
