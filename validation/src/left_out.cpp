#include "left_out.hpp"

#include <algorithm>
#include <map>

namespace collcast {

std::vector<std::vector<std::size_t>> left_out_together(const std::vector<Variables>& settings) {
  std::map<Variables, std::vector<std::size_t>> of_setting;
  for (std::size_t i = 0; i < settings.size(); ++i) of_setting[settings[i]].push_back(i);
  std::vector<std::vector<std::size_t>> out;
  if (settings.size() <= most_fits_of_unseen) {
    for (std::size_t i = 0; i < settings.size(); ++i) out.push_back({i});
    return out;
  }
  for (const auto& [setting, alike] : of_setting) {
    const std::size_t begin = out.size(), share = most_fits_of_unseen * alike.size() / settings.size();
    const std::size_t turns = std::max(share, std::min<std::size_t>(2, alike.size()));
    out.resize(begin + turns);
    for (std::size_t i = 0; i < alike.size(); ++i) out[begin + i % turns].push_back(alike[i]);
  }
  return out;
}

}  // namespace collcast
