// Any bytes as a table of measured servers.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "collcast/validation/inference_table.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const auto tables = collcast::read_inference_csv(in, "fuzz");
  if (!tables) (void)collcast::to_text(tables.errors());
  return 0;
}
