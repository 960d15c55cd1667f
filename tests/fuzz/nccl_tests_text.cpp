// Any bytes as a log of nccl-tests.
#include <cstddef>
#include <cstdint>
#include <sstream>

#include "collcast/validation/measured_table.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const auto readings = collcast::read_nccl_tests_text(in, "fuzz");
  if (!readings) (void)collcast::to_text(readings.errors());
  return 0;
}
