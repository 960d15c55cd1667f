// Any bytes as the rows of a measured table.
#include <cstddef>
#include <cstdint>
#include <sstream>

#include "collcast/validation/measured_table.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const auto readings = collcast::read_table_csv(in, "fuzz", std::nullopt);
  if (!readings) (void)collcast::to_text(readings.errors());
  return 0;
}
