#include "workload/changes.hpp"

#include <algorithm>

namespace collcast::workload {

std::string text_of(const Values& values) {
  std::string out;
  for (const auto& [path, value] : values) out += (out.empty() ? "" : ", ") + path + ": " + value;
  return out;
}

Values both(Values first, const Values& then) {
  for (const auto& [path, value] : then) {
    const auto same = std::ranges::find(first, path, &std::pair<std::string, std::string>::first);
    if (same == first.end())
      first.emplace_back(path, value);
    else
      same->second = value;
  }
  return first;
}

std::optional<Change> traded(const StepInputs& in, const Degree& smaller, const Degree& larger, int times) {
  if (smaller.value == larger.value || in.layout.*smaller.value % times != 0) return {};
  Change out{{}, in};
  out.in.layout.*larger.value *= times;
  out.in.layout.*smaller.value /= times;
  for (const Degree& degree : {larger, smaller})
    out.values.emplace_back(degree.path, std::to_string(out.in.layout.*degree.value));
  return out;
}

}  // namespace collcast::workload
