// What the results of a report are called: no two the same.
#include <fmt/format.h>

#include <map>
#include <set>

#include "collcast/report/overview.hpp"
#include "report/saved_document.hpp"

namespace collcast {

namespace {

/// `name (beside)`, no longer than a name may be, so that reading it back cuts nothing off.
std::string with(const std::string& name, const std::string& beside) {
  constexpr std::size_t dots = 3, longest_beside = 60;
  const std::string end = fmt::format(" ({})", harmless(beside, longest_beside));
  return harmless(name, line_length - end.size() - dots) + end;
}

/// Without its folder, and safe to show.
std::string stem(const std::string& file) {
  const std::size_t folder = file.rfind('/') + 1, suffix = file.rfind('.');  // of no '/': 0
  return NamedResult(file.substr(folder, suffix > folder ? suffix - folder : std::string::npos), {}).name;
}

}  // namespace

void tell_apart(Overview& overview, const std::vector<std::string>& files) {
  std::map<std::string, std::set<std::string>> files_of_name;
  for (std::size_t i = 0; i < files.size(); ++i) files_of_name[overview.items[i].result.name].insert(files[i]);
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::string& name = overview.items[i].result.name;
    if (!files[i].empty() && files_of_name.at(name).size() > 1) name = with(name, stem(files[i]));
  }
  std::set<std::string> taken;
  for (OverviewItem& item : overview.items) {
    const std::string name = item.result.name;
    for (int number = 2; !taken.insert(item.result.name).second; ++number)
      item.result.name = with(name, fmt::format("{}", number));
  }
}

}  // namespace collcast
