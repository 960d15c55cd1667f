// Any bytes as what `nvidia-smi topo -m` prints; what can be read is completed, written and read back.
#include <cstddef>
#include <cstdint>

#include "collcast/exchange/machine.hpp"
#include "collcast/scenario/scenario.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace collcast;
  static const auto like = load_topology("dgx-a100", {{COLLCAST_SOURCE_DIR "/topologies"}, {}, {}});
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto node = exchange::read_nvidia_smi(text, "fuzz.txt");
  if (!node) (void)to_text(node.errors());
  if (!node || !like) return 0;
  const auto machine = exchange::complete(*node, *like, "fuzz");
  if (machine)
    check(parse_topology(topology_text(machine->spec, machine->remarks), "m").ok(), "what is written can be read");
  return 0;
}
