// Any bytes as a graph XML of NCCL.
#include <cstddef>
#include <cstdint>

#include "collcast/exchange/nccl_files.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace collcast;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = exchange::read_nccl_graphs(text, "fuzz.xml");
  if (!read) (void)to_text(read.errors());
  return 0;
}
