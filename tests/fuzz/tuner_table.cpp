// Any bytes as a table of NCCL's example tuner.
#include <cstddef>
#include <cstdint>

#include "collcast/exchange/nccl_files.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace collcast;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = exchange::read_tuner_table(text, "fuzz.conf");
  if (!read) (void)to_text(read.errors());
  return 0;
}
