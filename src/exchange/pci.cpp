#include "exchange/pci.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

namespace collcast::exchange {

namespace {

/// Generations: transfers, and GB/s of 16 lanes. 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s, flits of 242 B in 256 B
/// at 64 GT/s [PCI Express Base Specification 6.0]; rounded as machine files have them.
struct Generation {
  double gigatransfers, rate;
  const char* text;
};
constexpr std::array generations{Generation{2.5, 4, "2.5 GT/s PCIe"},   Generation{5, 8, "5.0 GT/s PCIe"},
                                 Generation{8, 15.75, "8.0 GT/s PCIe"}, Generation{16, 31.5, "16.0 GT/s PCIe"},
                                 Generation{32, 63, "32.0 GT/s PCIe"},  Generation{64, 121, "64.0 GT/s PCIe"}};

/// Device ids of GPUs that machines of several have [README.md of NVIDIA/open-gpu-kernel-modules; those of V100:
/// The PCI ID Repository, pci-ids.ucw.cz, from its well-known list, not looked up].
struct Gpu {
  unsigned device;
  const char* model;
};
constexpr std::array gpus{Gpu{0x1db1, "V100-SXM2-16GB"},
                          Gpu{0x1db5, "V100-SXM2-32GB"},
                          Gpu{0x1db8, "V100-SXM3-32GB"},
                          Gpu{0x1db4, "V100-PCIe-16GB"},
                          Gpu{0x1db6, "V100-PCIe-32GB"},
                          Gpu{0x1e04, "RTX-2080-Ti"},
                          Gpu{0x1e07, "RTX-2080-Ti"},
                          Gpu{0x1eb8, "T4"},
                          Gpu{0x20b0, "A100-SXM4-40GB"},
                          Gpu{0x20b2, "A100-SXM4-80GB"},
                          Gpu{0x20b3, "A100-SXM-64GB"},
                          Gpu{0x20b5, "A100-PCIe-80GB"},
                          Gpu{0x20b7, "A30"},
                          Gpu{0x20bd, "A800-SXM4-40GB"},
                          Gpu{0x20f1, "A100-PCIe-40GB"},
                          Gpu{0x20f3, "A800-SXM4-80GB"},
                          Gpu{0x20f5, "A800-PCIe-80GB"},
                          Gpu{0x2203, "RTX-3090-Ti"},
                          Gpu{0x2204, "RTX-3090"},
                          Gpu{0x2230, "RTX-A6000"},
                          Gpu{0x2231, "RTX-A5000"},
                          Gpu{0x2232, "RTX-A4500"},
                          Gpu{0x2233, "RTX-A5500"},
                          Gpu{0x2235, "A40"},
                          Gpu{0x2236, "A10"},
                          Gpu{0x2237, "A10G"},
                          Gpu{0x2321, "H100-NVL"},
                          Gpu{0x2322, "H800-PCIe"},
                          Gpu{0x2324, "H800-SXM5-80GB"},
                          Gpu{0x2329, "H20-SXM5-96GB"},
                          Gpu{0x232c, "H20-3e"},
                          Gpu{0x2330, "H100-SXM5-80GB"},
                          Gpu{0x2331, "H100-PCIe-80GB"},
                          Gpu{0x2335, "H200-SXM5-141GB"},
                          Gpu{0x233a, "H800-NVL"},
                          Gpu{0x2342, "GH200-120GB"},
                          Gpu{0x24b0, "RTX-A4000"},
                          Gpu{0x2684, "RTX-4090"},
                          Gpu{0x2685, "RTX-4090-D"},
                          Gpu{0x26b1, "RTX-6000-Ada"},
                          Gpu{0x26b5, "L40"},
                          Gpu{0x26b9, "L40S"},
                          Gpu{0x26ba, "L20"},
                          Gpu{0x27b6, "L2"},
                          Gpu{0x27b8, "L4"},
                          Gpu{0x2901, "B200-SXM6-180GB"},
                          Gpu{0x2941, "GB200"},
                          Gpu{0x3182, "B300-SXM6-270GB"},
                          Gpu{0x31c2, "GB300"},
                          Gpu{0x2bb5, "RTX-PRO-6000-Blackwell-Server"}};

}  // namespace

Bandwidth pcie_rate(double gigatransfers, int width) {
  for (const Generation& one : generations)
    if (one.gigatransfers == gigatransfers) return Bandwidth(one.rate * 1e9 * width / 16);
  return Bandwidth(gigatransfers * 1e9 * 16 / 8 * 128 / 130 * width / 16);
}

PcieLink pcie_link(Bandwidth rate) {
  PcieLink best;
  double least = INFINITY;
  for (const int width : {16, 8, 4, 2, 1})
    for (const Generation& one : generations) {
      const double off = std::abs(std::log(pcie_rate(one.gigatransfers, width).value() / rate.value()));
      if (off >= least - 1e-9) continue;
      least = off;
      best = {one.text, width};
    }
  return best;
}

std::optional<double> parse_gigatransfers(std::string_view text) {
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (failed != std::errc{} || !(value > 0) || value > 1000 || !rest.starts_with(" GT/s")) return std::nullopt;
  return value;
}

std::string_view gpu_model_of(unsigned device) {
  for (const Gpu& one : gpus)
    if (one.device == device) return one.model;
  return {};
}

std::optional<unsigned> device_of(std::string_view gpu_model) {
  for (const Gpu& one : gpus)
    if (gpu_model == one.model) return one.device;
  return std::nullopt;
}

}  // namespace collcast::exchange
