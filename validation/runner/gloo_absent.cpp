// Gloo where it is not built in: what to do about it.
#include "runner/communicator.hpp"

namespace collcast::runner {

Backend gloo_backend() {
  Backend out;
  out.entry.name = "gloo";
  out.entry.what = "CPU processes over TCP";
  out.entry.lacking = {
      "Gloo is not built in: install libgloo-dev and build again (tools/setup does; cmake -DCOLLCAST_WITH_GLOO=ON)"};
  return out;
}

}  // namespace collcast::runner
