// Any bytes as a table of measured matrix products.
#include <cstddef>
#include <cstdint>

#include "collcast/scenario/gemm_table.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)collcast::missing_gemm_columns(text);
  const auto rows = collcast::parse_gemm_table(text, "fuzz.csv");
  if (!rows) (void)collcast::to_text(rows.errors());
  return 0;
}
