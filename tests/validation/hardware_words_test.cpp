// What words of a sidecar say of NVLinks and NICs.
#include "src/hardware_words.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace collcast;

TEST_CASE("words of a sidecar on NVLink") {
  const auto links = [](const char* text) { return parse_nvlink(text).links; };
  CHECK(links("NVLink4 NVSwitch") == GpuLinks::switched);
  CHECK(links("NVLink5 NVSwitch NVL72") == GpuLinks::switched);
  CHECK(links("NVLink3 (4 links per pair, no NVSwitch)") == GpuLinks::straight);
  CHECK(links("NVLink2 hybrid cube mesh") == GpuLinks::straight);
  CHECK(links("NVLink4") == GpuLinks::nvlink);
  CHECK(links("none (PCIe gen5)") == GpuLinks::pcie);
  for (const char* nothing : {"", "unknown", "n/a"}) CHECK(links(nothing) == GpuLinks::unsaid);
  const NvlinkWords mesh = parse_nvlink("NVLink3 (4 links per pair, no NVSwitch)");
  CHECK(mesh.generation == 3);
  CHECK(mesh.count == 4);
  CHECK(mesh.per_pair);
  CHECK(parse_nvlink("NVLink4 NVSwitch (8 links, 200 GB/s/dir)").per_gpu->value() == 200e9);
  // Links that are counted are there, also where the GPU is a card.
  CHECK(links("12 links per pair") == GpuLinks::straight);
  CHECK(links("300 GB/s/dir") == GpuLinks::nvlink);
  CHECK(links("none (0 links)") == GpuLinks::pcie);
  CHECK(parse_nvlink("none (PCIe gen5)").pcie_generation == 5);
  for (const char* of_links : {"NVLink gen4", "NVLink4 NVSwitch gen3", "NVSwitch (gen 4)", "gen4 NVSwitch"})
    CHECK(parse_nvlink(of_links).pcie_generation == 0);
  CHECK(parse_nvlink("NVLink gen4, PCIe gen5").pcie_generation == 5);
  CHECK(parse_nvlink("NVLink gen4, PCIe gen5").generation == 4);
}

TEST_CASE("words of a sidecar on NVLink's bridges") {
  const NvlinkWords pairs = parse_nvlink("NVLink bridge, pairs");
  CHECK(pairs.links == GpuLinks::nvlink);
  CHECK(pairs.bridges);
  CHECK(pairs.together == 2);
  CHECK(parse_nvlink("NVLink3 bridge").together == 0);
  CHECK(parse_nvlink("4-way NVLink bridges").together == 4);
  CHECK(parse_nvlink("NV bridge").links == GpuLinks::nvlink);
  for (const char* none : {"no NVLink bridge", "without NVLink", "none (no bridge)", "no bridges", "without bridges",
                           "bridge not installed", "NVLink bridge not fitted", "NVLink bridge: none"})
    CHECK(parse_nvlink(none).links == GpuLinks::pcie);
  const auto rate = [](const char* gpu) {
    const auto card = bridged_card(parse_gpu(gpu));
    return card ? card->links * card->link_rate / 1e9 : 0;
  };
  for (const char* ga102 : {"NVIDIA RTX A6000", "NVIDIA GeForce RTX 3090", "NVIDIA A40"})
    CHECK(rate(ga102) == Approx(56.25));
  for (const char* of_three : {"NVIDIA A100-PCIE-40GB", "NVIDIA H100 PCIe", "NVIDIA H100 NVL"})
    CHECK(rate(of_three) == Approx(300));
  for (const char* none : {"H100-SXM5-80GB", "NVIDIA L40S", "Tesla V100-PCIE-32GB", "NVIDIA RTX 6000 Ada Generation"})
    CHECK(rate(none) == 0);
}

TEST_CASE("words of a sidecar on NICs") {
  struct Case {
    const char* text;
    int count;
    double gigabits;
    const char* kind;
  };
  for (const Case& one : {Case{"8x IB NDR 400Gb/s", 8, 400, "infiniband"},
                          {"32x EFA 100Gb/s", 32, 100, "efa"},
                          {"4x TCPX 200Gb/s", 4, 200, "tcpx"},
                          {"8x TCPXO 200Gb/s", 8, 200, "tcpx"},
                          {"2x HPE Slingshot-11 200Gb/s", 2, 200, "slingshot"},
                          {"4x IB NDR200/400 (4 GDRDMA HCAs in the log)", 4, 200, "infiniband"},
                          {"8x IB NDR 400Gb/s (16 NICs in all)", 8, 400, "infiniband"},
                          {"unknown count x 400Gb/s class", 0, 400, ""},
                          {"1x 100Gb/s Ethernet (no RDMA)", 1, 100, "tcp"},
                          {"1x Ethernet (TCP)", 1, 0, "tcp"},
                          {"2 x 25GbE", 2, 25, "ethernet"},
                          {"8x400G RoCE", 8, 400, "roce"},
                          {"4x HDR", 4, 200, "infiniband"},
                          {"2x HDR100", 2, 100, "infiniband"},
                          {"8x ConnectX-7", 8, 400, ""},
                          {"4x 50GB/s", 4, 400, ""},
                          {"16x EFAv3 200Gb/s", 16, 200, "efa"},
                          {"4x 100Gb/s EFAv2", 4, 100, "efa"},
                          {"8x RoCEv2 400Gb/s", 8, 400, "roce"},
                          {"1x gVNIC 100Gb/s", 1, 100, "tcp"},
                          {"8xFasTrak", 8, 0, "tcpx"},
                          {"GPUDirect-TCPX 4x 200Gb/s", 4, 200, "tcpx"},
                          {"4xHDR", 4, 200, "infiniband"},
                          {"8x XDR", 8, 800, "infiniband"},
                          {"8 XDR", 0, 800, "infiniband"},
                          {"InfiniBand, 8 NICs, 400Gb/s", 8, 400, "infiniband"},
                          {"ConnectX-7 x8 RoCE", 0, 400, "roce"},
                          {"NDR200 x4", 0, 200, "infiniband"},
                          {"HDR (PCIe gen 4 x16)", 0, 200, "infiniband"},
                          {"8x OPA 100Gb/s", 8, 100, ""},
                          {"400 Gbps (4x100)", 4, 100, ""},
                          {"800Gb/s IB (4 x 200 Gb/s)", 4, 200, "infiniband"},
                          {"200GB/s (4x50)", 4, 400, ""},
                          {"400Gb/s (8x400)", 8, 400, ""},
                          {"2 x 200 GbE (400 Gbps total)", 2, 200, "ethernet"},
                          {"4 NICs, 800 Gb/s in total", 4, 200, ""},
                          {"8x400G, 25GbE for storage", 8, 400, "ethernet"},
                          {"dual 200GbE", 2, 200, "ethernet"},
                          {"quad HDR", 4, 200, "infiniband"},
                          {"dual-port ConnectX-7", 0, 400, ""},
                          {"HDR100 x2", 2, 100, "infiniband"},
                          {"200GbE x 2", 2, 200, "ethernet"},
                          {"HDR (PCIe gen 4 x2)", 0, 200, "infiniband"},
                          {"none", 0, 0, ""},
                          {"n/a", 0, 0, ""},
                          {"unknown", 0, 0, ""},
                          {"", 0, 0, ""}}) {
    INFO(one.text);
    const NicWords said = parse_nics(one.text);
    CHECK(said.count == one.count);
    CHECK((said.rate ? said.rate->value() * 8 / 1e9 : 0) == Approx(one.gigabits));
    CHECK(said.kind == one.kind);
    CHECK(said.any() == (one.count > 0 || one.gigabits > 0));
  }
}

TEST_CASE("a total that NICs do not have together contradicts them") {
  const auto wrong = [](const char* text) { return parse_nics(text).contradiction; };
  CHECK(wrong("400 Gbps (4x200)") == "4 of 200 Gb/s are 800 Gb/s, not 400 Gb/s");
  CHECK(wrong("2 x 200 GbE (800 Gbps total)") == "2 of 200 Gb/s are 400 Gb/s, not 800 Gb/s");
  for (const char* right : {"400 Gbps (4x100)", "400Gb/s (8x400)", "8x400Gb/s", "8x400G, 25GbE for storage", "4x HDR",
                            "8x IB NDR 400Gb/s (16 NICs in all)", "200Gb/s HDR (PCIe gen 4 x16)"})
    CHECK(wrong(right) == "");
}
