#include <fmt/format.h>

#include <algorithm>

#include "collcast/validation/machines.hpp"

namespace collcast {

void Remarks::add(const std::string& table, const std::string& remark) {
  if (remark.empty()) return;
  const auto found = std::find_if(of_.begin(), of_.end(), [&](const auto& one) { return one.first == remark; });
  if (found == of_.end())
    of_.push_back({remark, {table}});
  else
    found->second.push_back(table);
}

std::vector<std::string> Remarks::texts() const {
  constexpr std::size_t most_named = 3;
  std::vector<std::string> out;
  for (const auto& [remark, tables] : of_) {
    const auto end = tables.begin() + static_cast<std::ptrdiff_t>(std::min(tables.size(), most_named));
    out.push_back(fmt::format("{}{}: {}", fmt::join(tables.begin(), end, ", "),
                              tables.size() > most_named ? fmt::format(" and {} more", tables.size() - most_named) : "",
                              remark));
  }
  return out;
}

}  // namespace collcast
