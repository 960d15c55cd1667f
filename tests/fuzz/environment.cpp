// Any bytes as NCCL's variables, a line of NAME=value each. What is read says all that was given, and reads the same
// again.
#include "collcast/nccl/environment.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace collcast;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<nccl::Setting> settings;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size()), equals = text.substr(0, end).find('=');
    if (equals != std::string_view::npos)
      settings.push_back({std::string(text.substr(0, equals)), std::string(text.substr(equals + 1, end - equals - 1)),
                          Location{"fuzz", static_cast<int>(settings.size()) + 1, 1}});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto read = nccl::read_environment(settings);
  if (!read) {
    (void)to_text(read.errors());
    return 0;
  }
  check(read->given.size() == settings.size(), "each variable is kept as it was given");
  const auto again = nccl::read_environment(read->given);
  check(again && nccl::text_of(*again) == nccl::text_of(*read), "what was read is read again");
  for (int k = 0; k < collective_kinds; ++k)
    for (const nccl::Algorithm algorithm : nccl::algorithms)
      (void)read->allows(static_cast<CollectiveKind>(k), algorithm);
  return 0;
}
