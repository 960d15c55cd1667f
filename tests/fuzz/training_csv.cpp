// Any bytes as a table of training steps.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "collcast/validation/training_table.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  const auto tables = collcast::read_training_csv(in, "fuzz");
  if (!tables) (void)collcast::to_text(tables.errors());
  return 0;
}
