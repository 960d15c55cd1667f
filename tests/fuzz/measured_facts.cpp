// Any bytes as the sidecar of a measured table.
#include "collcast/scenario/measured_facts.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto facts = collcast::parse_measured_facts(text, "fuzz.yaml");
  if (!facts) (void)collcast::to_text(facts.errors());
  return 0;
}
