// Any bytes as a saved result; what can be read is compared with itself and written in every format.
#include <cstddef>
#include <cstdint>
#include <sstream>

#include "collcast/report/overview.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace collcast;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = read_saved(text, "fuzz.json");
  if (!read) {
    (void)to_text(read.errors());
    return 0;
  }
  Overview overview;
  std::vector<NamedResult> results;
  for (const SavedResult& result : *read) {
    // Names of files are any bytes too.
    results.emplace_back(std::to_string(results.size()) + std::string(text.substr(0, 40)), result);
    overview.items.push_back({results.back(), {}});
  }
  const auto same = compare(results, results, {});
  check(same.ok() && same->kept(), "a result is no worse than itself");
  std::ostringstream out;
  write_markdown(out, page(*same));
  write_csv(out, csv(*same));
  write_markdown(out, page(overview));
  write_csv(out, csv(overview));
  out << json(*same) << junit(*same) << json(overview) << junit(overview);
  if (html_lacks().empty()) out << html(overview);
  return 0;
}
