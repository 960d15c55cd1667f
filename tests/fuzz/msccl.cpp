// Any bytes as an algorithm of MSCCL: read and, where that goes, proved and spelled out.
#include <cstddef>
#include <cstdint>

#include "collcast/exchange/msccl_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace collcast;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = exchange::read_msccl(text, "fuzz.xml");
  if (!read) {
    (void)to_text(read.errors());
    return 0;
  }
  const msccl::Algorithm& algorithm = read->algorithm;
  const auto ranks = static_cast<int>(algorithm.gpus.size());
  const auto order = prove(algorithm, Bytes(1024));
  if (order) (void)spell_out(algorithm, Group::strided(Rank(0), 1, ranks), Bytes(1024), 2);
  return 0;
}
