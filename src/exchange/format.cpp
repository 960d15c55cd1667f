#include "collcast/exchange/machine.hpp"

namespace collcast::exchange {

std::optional<MachineFormat> machine_format(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string_view::npos) return std::nullopt;
  if (text[first] == '<') return MachineFormat::nccl_xml;
  return text.find("GPU0") != std::string_view::npos ? std::optional(MachineFormat::nvidia_smi) : std::nullopt;
}

}  // namespace collcast::exchange
