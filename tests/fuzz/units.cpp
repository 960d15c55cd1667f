// Any bytes as each kind of quantity. What parses is finite, within its promised range, and prints.
#include "collcast/base/units.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "collcast/base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace collcast;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& bytes : {parse_bytes(text), parse_bytes_or_number(text)}) {
    if (bytes.ok) {
      check(bytes.value >= Bytes(0), "a size is not negative");
      (void)format_bytes(bytes.value);
    }
  }
  const auto rate = parse_bandwidth(text);
  if (rate.ok) {
    check(rate.value.value() > 0, "a rate is positive");
    (void)format_bandwidth(rate.value);
  }
  const auto time = parse_seconds(text);
  if (time.ok) {
    check(time.value.count() >= 0, "a time is not negative");
    check(to_picoseconds(time.value).count() >= 0, "engine time is not negative");
    (void)format_seconds(time.value);
  }
  const auto flops = parse_flop_rate(text);
  if (flops.ok) {
    check(flops.value.value() > 0, "a compute rate is positive");
    (void)format_flop_rate(flops.value);
  }
  return 0;
}
