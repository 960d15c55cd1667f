// Any bytes as a Hugging Face config.json.
#include <cstddef>
#include <cstdint>

#include "collcast/scenario/scenario.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto model = collcast::parse_hf_config(text, "fuzz/config.json");
  if (!model) (void)collcast::to_text(model.errors());
  return 0;
}
