// `nvidia-smi topo -m` in.
#include <catch2/catch.hpp>

#include "samples.hpp"

using namespace collcast;
using exchange::ForeignNode;
using test::messages_of;
using Errors = std::vector<std::string>;

namespace {

ForeignNode smi_node(const std::string& text) {
  const auto node = exchange::read_nvidia_smi(text, "f");
  INFO(to_text(node.errors()));
  REQUIRE(node.ok());
  return *node;
}
Errors smi_errors(const std::string& text) { return messages_of(exchange::read_nvidia_smi(text, "f").errors()); }

/// Switches and sockets on the way up.
std::string way_up(const ForeignNode& node, exchange::Up up) {
  std::string out;
  for (; up.is_switch; up = node.switches[static_cast<std::size_t>(up.index)].up)
    out += "s" + std::to_string(up.index) + " ";
  return out + "c" + std::to_string(up.index);
}

}  // namespace

TEST_CASE("a table of eight A100 with four NICs is the shipped machine of that wiring") {
  const TopologySpec spec = test::imported("made-8xa100-4nic-topo.txt", "aws-p4d");
  const TopologySpec shipped = test::shipped_machine("aws-p4d");
  CHECK(test::channels(spec, 1) == test::channels(shipped, 1));
  // PXB, where the instance's own file has one switch.
  auto between = test::channels(spec, 2);
  CHECK(between.front() == "Pattern 4, crossNic 0, nChannels 4, bw 12.000000/12.000000, type NVL/PXB, sameChannels 0");
}

TEST_CASE("every cell is a place in the tree") {
  const ForeignNode node = smi_node(
      "      GPU0 GPU1 GPU2 GPU3 mlx5_0\n"
      "GPU0   X   PIX  PXB  SYS  SYS\n"
      "GPU1  PIX   X   PXB  SYS  SYS\n"
      "GPU2  PXB  PXB   X   SYS  SYS\n"
      "GPU3  SYS  SYS  SYS   X   PHB\n"
      "mlx5_0 SYS SYS  SYS  PHB   X\n");
  CHECK(way_up(node, node.gpus[0].up) == "s1 s0 c0");  // below one switch with GPU 1, that below another
  CHECK(way_up(node, node.gpus[1].up) == "s1 s0 c0");
  CHECK(way_up(node, node.gpus[2].up) == "s2 s0 c0");
  CHECK(way_up(node, node.gpus[3].up) == "c1");
  CHECK(way_up(node, node.nics[0].up) == "c1");
  CHECK(node.nvlinks.shape == exchange::Nvlinks::Shape::none);
  CHECK(node.warnings.empty());
}

TEST_CASE("NODE is one socket, SOC is the old name of SYS") {
  const ForeignNode node = smi_node("     GPU0 GPU1 GPU2\nGPU0 X NODE SOC\nGPU1 NODE X SOC\nGPU2 SOC SOC X\n");
  CHECK(node.sockets == 2);
  CHECK(node.gpus[0].up == node.gpus[1].up);
}

TEST_CASE("affinity columns tell the sockets of GPUs that NVLink joins") {
  const std::string rows = "GPU0 X NV4 NV4 0-15 0\nGPU1 NV4 X NV4 16-31 1\nGPU2 NV4 NV4 X 16-31 1\n";
  const ForeignNode node = smi_node("     GPU0 GPU1 GPU2 CPU Affinity NUMA Affinity\n" + rows);
  CHECK(node.sockets == 2);
  CHECK(node.gpus[1].up == node.gpus[2].up);
  CHECK(node.nvlinks.shape == exchange::Nvlinks::Shape::straight);
  CHECK(node.nvlinks.counts == std::vector<std::vector<int>>{{0, 4, 4}, {4, 0, 4}, {4, 4, 0}});
  // N/A is none: then nothing is known, which is said.
  const ForeignNode unsaid =
      smi_node("     GPU0 GPU1 CPU Affinity NUMA Affinity\nGPU0 X NV4 N/A N/A\nGPU1 NV4 X N/A N/A\n");
  CHECK(unsaid.sockets == 1);
  REQUIRE(unsaid.warnings.size() == 1);
  CHECK(unsaid.warnings[0].message == "the table does not say on which socket its GPUs are");
}

TEST_CASE("more NVLinks between all pairs than a GPU has lead to NVSwitches") {
  const auto table = [](int gpus, const std::string& word) {
    std::string out = "    ";
    for (int i = 0; i < gpus; ++i) out += " GPU" + std::to_string(i);
    for (int i = 0; i < gpus; ++i) {
      out += "\nGPU" + std::to_string(i);
      for (int j = 0; j < gpus; ++j) out += i == j ? " X" : " " + word;
    }
    return out + "\n";
  };
  CHECK(smi_node(table(8, "NV18")).nvlinks.shape == exchange::Nvlinks::Shape::to_switch);
  CHECK(smi_node(table(8, "NV18")).nvlinks.links == 18);
  CHECK(smi_node(table(16, "NV6")).nvlinks.shape == exchange::Nvlinks::Shape::to_switch);
  CHECK(smi_node(table(4, "NV6")).nvlinks.shape == exchange::Nvlinks::Shape::straight);  // 3 x 6 = 18 links of an H100
  CHECK(smi_node(table(4, "SYS")).nvlinks.shape == exchange::Nvlinks::Shape::none);
}

TEST_CASE("escape codes, a prompt above, a legend below and rows of NICs that are missing do not matter") {
  const ForeignNode node = smi_node(
      "$ nvidia-smi topo -m\n\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\x1b[0m\nGPU0\t X \tPHB\tPIX\t0-7\nGPU1\tPHB\t X "
      "\tPHB\t0-7\n\n"
      "Legend:\n  X    = Self\n  NV#  = anything\n\nNIC Legend:\n\n  NIC0: mlx5_0\n");
  CHECK(node.gpus.size() == 2);
  CHECK(way_up(node, node.gpus[0].up) == "s0 c0");
  CHECK(way_up(node, node.nics[0].up) == "s0 c0");
  CHECK(way_up(node, node.gpus[1].up) == "c0");
}

TEST_CASE("a byte order mark does not matter, a second table is said") {
  const std::string table = "GPU0 GPU1\nGPU0 X PIX\nGPU1 PIX X\n\nLegend:\n  X = Self\n";
  CHECK(smi_node("\xEF\xBB\xBF" + table).gpus.size() == 2);
  CHECK(messages_of(smi_node(table + "\n" + table).warnings) == Errors{"f:8:1: a second table is not read"});
}

TEST_CASE("what is no such table is refused at its place") {
  CHECK(smi_errors("\xFF\xFEG\0P\0") ==
        Errors{"f:1:1: the file is UTF-16 text, as '>' of Windows PowerShell writes it"});
  CHECK(smi_errors("\x1F\x8B\x08") == Errors{"f:1:1: the file is compressed (gzip)"});
  CHECK(smi_errors("hello\n") == Errors{"f:1:1: there is no table of 'nvidia-smi topo -m' in this file"});
  CHECK(smi_errors("  GPU0 GPU1\nGPU0 X PIX\n") == Errors{"f:1:3: there is no row of GPU1"});
  CHECK(smi_errors("  GPU0 GPU1\nGPU0 X\nGPU1 PIX X\n") == Errors{"f:2:6: the row of GPU0 has 1 of 2 cells"});
  CHECK(smi_errors("  GPU0 GPU1\nGPU0 X PIK\nGPU1 PIX X\n") == Errors{"f:2:8: 'PIK' between GPU0 and GPU1"});
  CHECK(smi_errors("  GPU0 GPU1\nGPU0 X PIX\nGPU1 PIX X\nGPU1 PIX X\n") == Errors{"f:4:1: a second row of GPU1"});
  CHECK(smi_errors("  GPU0 GPU0\nGPU0 X PIX\n") == Errors{"f:1:8: 'GPU0' is there twice"});
  CHECK(smi_errors("  GPU0 GPU1\nGPU0 PIX PIX\nGPU1 X X\n") ==
        Errors{"f:2:6: 'PIX' between GPU0 and GPU0", "f:3:6: 'X' between GPU1 and GPU0"});
  CHECK(smi_errors("  GPU0 NIC0\nGPU0 X NV2\nNIC0 NV2 X\n") ==
        Errors{"f:2:8: 'NV2' between GPU0 and NIC0", "f:3:6: 'NV2' between NIC0 and GPU0"});
  CHECK(smi_errors("  GPU0 GPU1\nGPU0 X NV-2\nGPU1 NV99999999999 X\n").size() == 2);
  CHECK(smi_errors("  GPU0\nGPU0 X\nGPU9 X\n") == Errors{"f:3:1: a row of 'GPU9', which the first line does not name"});
  std::string many;
  for (int i = 0; i < 1030; ++i) many += "GPU" + std::to_string(i) + " ";
  CHECK(smi_errors(many + "GPU0\n").front() == "f:1:1: 1031 devices");
  CHECK(smi_errors("  GPU0\nGPU0 \xff\n").front() == "f:2:6: byte 0xFF at offset 12 is not UTF-8");
}

TEST_CASE("a table cut off anywhere is an error or has all of its GPUs") {
  const std::string whole = test::data_file("made-8xa100-4nic-topo.txt");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto node = exchange::read_nvidia_smi(whole.substr(0, length), "f");
    INFO(length);
    if (node.ok())
      CHECK(node->gpus.size() == 8);
    else
      CHECK(node.errors().front().where.line > 0);
  }
}

TEST_CASE("cells that are no tree are said") {
  const ForeignNode unlike = smi_node("  GPU0 GPU1\nGPU0 X PIX\nGPU1 SYS X\n");
  CHECK(messages_of(unlike.warnings) == Errors{"f:3:6: GPU0 and GPU1 are apart otherwise than in the other's row"});
  const ForeignNode far = smi_node("  GPU0 GPU1 GPU2\nGPU0 X PIX SYS\nGPU1 PIX X PIX\nGPU2 SYS PIX X\n");
  CHECK(messages_of(far.warnings) ==
        Errors{"f:2:12: GPU0 and GPU2 are SYS apart, though others put them on one socket"});
}

TEST_CASE("more NVLinks of a GPU than its kind has are warned of, straight ones, too") {
  const auto warned = [](const std::string& word) {
    const std::string text = "     GPU0 GPU1 GPU2 GPU3 CPU Affinity NUMA Affinity\nGPU0 X " + word +
                             " SYS SYS 0-15 0\nGPU1 " + word + " X SYS SYS 0-15 0\nGPU2 SYS SYS X " + word +
                             " 16-31 1\nGPU3 SYS SYS " + word + " X 16-31 1\n";
    const auto machine = exchange::complete(smi_node(text), test::shipped_machine("dgx-a100"), "m", {});
    REQUIRE(machine.ok());
    Errors out = messages_of(machine->warnings);
    std::erase_if(out, [](const std::string& one) { return one.find("at most") == std::string::npos; });
    return out;
  };
  CHECK(warned("NV12").empty());
  CHECK(warned("NV99") == Errors{"f:1:6: 99 NVLinks of a GPU, where A100-SXM4-80GB has 12 at most"});
}
