// What rows have in common: those of one job, and those of one configuration of it.
#include <fmt/format.h>

#include <string>
#include <type_traits>

#include "collcast/validation/training.hpp"

namespace collcast {

namespace {

template <class... T>
std::string joined(const T&... values) {
  std::string out;
  const auto add = [&](const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>)
      out += value;
    else if (value)
      out += fmt::format("{}", *value);
    out += '|';
  };
  (add(values), ...);
  return out;
}

}  // namespace

std::string job_of(const TrainingRow& r) {
  return joined(r.source_id, r.framework, r.model_id, r.layers, r.hidden, r.heads, r.seq, r.gpu, r.gpus, r.precision,
                r.gbs);
}

std::string configuration_of(const TrainingRow& r) {
  return joined(r.model_id, r.layers, r.hidden, r.ffn, r.heads, r.kv_heads, r.seq, r.gpu, r.gpus, r.precision) +
         joined(r.tp, r.sp, r.pp, r.vpp, r.cp, r.ep, r.dp, r.zero, r.mbs, r.gbs, r.recompute, r.schedule);
}

}  // namespace collcast
