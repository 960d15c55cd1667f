// Any bytes as a pipeline schedule, in either form; what is taken is written and read back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "collcast/scenario/scenario.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char* file : {"fuzz.yaml", "fuzz.csv"}) {
    const auto own = collcast::parse_schedule(text, file);
    if (!own) {
      (void)collcast::to_text(own.errors());
      continue;
    }
    const auto again = collcast::parse_schedule(collcast::schedule_text(*own), "again.yaml");
    if (!again || again->orders != own->orders) std::abort();
  }
  return 0;
}
