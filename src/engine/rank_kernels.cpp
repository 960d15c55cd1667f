#include "engine/rank_kernels.hpp"

#include <algorithm>
#include <utility>

#include "engine/event.hpp"

namespace collcast::engine {

RankKernels::RankKernels(const Programs& programs) {
  if (programs.slows()) kernels_.resize(programs.ranks());
}

RankKernels::End RankKernels::announced(Kernel& kernel) {
  // 0 is of what nothing slows.
  if ((++kernel.version & Due::version_mask) == 0) ++kernel.version;
  return {kernel.work.rest().count(), kernel.version & Due::version_mask};
}

void RankKernels::go_on(Kernel& kernel, Ticks now) {
  kernel.work.go_on(Picoseconds(now - kernel.since));
  kernel.since = now;
}

RankKernels::End RankKernels::begin(std::uint32_t rank, const instruction::Spend& spend, Ticks now) {
  Kernel& kernel = kernels_[rank];
  kernel.work = {spend.time, kernel.slowed_by > 0 ? SlowedWork::rate_of(spend.rate) : SlowedWork::one};
  kernel.present = &spend;
  kernel.since = now;
  return announced(kernel);
}

void RankKernels::end(std::uint32_t rank, bool beside_is_over, Ticks now) {
  Kernel& kernel = kernels_[rank];
  const instruction::Spend& spend = *std::exchange(kernel.present, nullptr);
  go_on(kernel, now);
  const Ticks lost = kernel.work.lost().count();
  kernel.late += spend.instructions == 0 ? lost : beside_is_over ? std::min(lost, now - kernel.beside_over) : 0;
}

bool RankKernels::is_outdated(std::uint32_t rank, std::uint32_t version) const {
  const Kernel& kernel = kernels_[rank];
  return kernel.present == nullptr || (kernel.version & Due::version_mask) != version;
}

std::optional<RankKernels::End> RankKernels::slow(std::uint32_t rank, bool more, Ticks now) {
  Kernel& kernel = kernels_[rank];
  const bool was = kernel.slowed_by > 0;
  kernel.slowed_by += more ? 1U : ~0U;
  const bool is = kernel.slowed_by > 0;
  if (is == was || kernel.present == nullptr) return std::nullopt;
  go_on(kernel, now);
  kernel.work.set_rate(is ? SlowedWork::rate_of(kernel.present->rate) : SlowedWork::one);
  return announced(kernel);
}

void RankKernels::passed(std::uint32_t rank, std::uint32_t stream, std::uint32_t instructions, Ticks now) {
  Kernel& kernel = kernels_[rank];
  if (kernel.present != nullptr && stream == kernel.present->beside && instructions == kernel.present->instructions)
    kernel.beside_over = now;
}

void RankKernels::begin_pass(std::uint32_t rank) { kernels_[rank].late_before_pass = kernels_[rank].late; }

Ticks RankKernels::left_to_wait(std::uint32_t rank, Ticks all) const {
  return all - std::min(kernels_[rank].late - kernels_[rank].late_before_pass, all);
}

}  // namespace collcast::engine
