// Any bytes as a scenario. The machine is always the same one, so that a run does not wander over the disk.
#include "collcast/scenario/scenario.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  collcast::ScenarioOptions options;
  options.search = {{COLLCAST_SOURCE_DIR "/topologies"}, {COLLCAST_SOURCE_DIR "/scenarios"}};
  options.topology = "ring";
  const auto scenario = collcast::parse_scenario(text, "fuzz.yaml", options);
  if (!scenario) (void)collcast::to_text(scenario.errors());
  return 0;
}
