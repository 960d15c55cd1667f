// Any bytes as a calibration.
#include "collcast/scenario/overlay.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto overlay = collcast::parse_overlay(text, "fuzz.yaml");
  if (!overlay) (void)collcast::to_text(overlay.errors());
  return 0;
}
