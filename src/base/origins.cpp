#include "collcast/base/origins.hpp"

#include <algorithm>

namespace collcast {

void Origins::add(const Origins& more) {
  for (const auto& [path, where] : more.places_) set(path, where);
  spoiled_.insert(more.spoiled_.begin(), more.spoiled_.end());
}

Origins Origins::below(std::string_view prefix) const {
  Origins out(whole_);
  for (const auto& [path, where] : places_)
    if (path.starts_with(prefix)) out.set(path.substr(prefix.size()), where);
  return out;
}

bool Origins::good(std::string_view path) const {
  const auto within = [](std::string_view inner, std::string_view outer) {
    return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '.');
  };
  return std::none_of(spoiled_.begin(), spoiled_.end(),
                      [&](const std::string& s) { return within(path, s) || within(s, path); });
}

const Location& Origins::of(std::string_view path) const {
  for (;;) {
    if (const auto found = places_.find(path); found != places_.end()) return found->second;
    const std::size_t dot = path.rfind('.');
    if (dot == std::string_view::npos) return whole_;
    path = path.substr(0, dot);
  }
}

}  // namespace collcast
