// NCCL's topology XML in: the files that vendors publish, and every way a file can be wrong.
#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

#include "samples.hpp"

using namespace collcast;
using test::messages_of;
using Errors = std::vector<std::string>;

namespace {

int count_of(const TopologySpec& spec, const std::string& name) {
  for (const DeviceGroup& group : spec.devices)
    if (group.name == name) return group.count;
  return 0;
}

const LinkGroup& link_of(const TopologySpec& spec, const std::string& from, const std::string& to) {
  for (const LinkGroup& link : spec.links)
    if (link.from == from && link.to == to) return link;
  FAIL("no link " << from << " - " << to);
  return spec.links.front();
}

/// One socket around what is given, each on a line of its own.
std::string system_of(const std::string& inside) {
  return "<system version=\"1\">\n<cpu numaid=\"0\">\n" + inside + "\n</cpu>\n</system>\n";
}
std::string gpu(int dev, const std::string& more = "") {
  return "<pci busid=\"0000:0" + std::to_string(dev + 1) +
         ":00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" "
         "link_width=\"16\"><gpu dev=\"" +
         std::to_string(dev) + "\" sm=\"80\" rank=\"" + std::to_string(dev) + "\" gdr=\"1\">" + more + "</gpu></pci>\n";
}

Errors errors_of(const std::string& text) {
  const auto node = exchange::read_nccl_topology(text, "f");
  return messages_of(node.errors());
}

exchange::ForeignNode node_of(const std::string& text) {
  const auto node = exchange::read_nccl_topology(text, "f");
  INFO(to_text(node.errors()));
  REQUIRE(node.ok());
  return *node;
}

}  // namespace

TEST_CASE("a vendor's file with the rest of the shipped machine has that machine's channels") {
  struct Case {
    const char *file, *machine;
    bool same_between_nodes;
  };
  for (const auto& [file, machine, same] :
       {Case{"aws-p4d-a100-topo.xml", "aws-p4d", true}, Case{"azure-ndv4-a100-topo.xml", "azure-ndv4", true},
        Case{"nemo-oci-a100-topo.xml", "oci-a100", true},
        // Sixteen ports of 180 Gb/s there, eight of 400 in the DGX: only what is inside is the same.
        Case{"oci-h100-full-dump-topo.xml", "dgx-h100", false}}) {
    INFO(file);
    const TopologySpec spec = test::imported(file, machine), shipped = test::shipped_machine(machine);
    CHECK(test::channels(spec, 1) == test::channels(shipped, 1));
    if (same) CHECK(test::channels(spec, 2) == test::channels(shipped, 2));
  }
}

TEST_CASE("OCI's full dump of an H100 node: what stands in it") {
  const TopologySpec spec = test::imported("oci-h100-full-dump-topo.xml", "dgx-h100");
  CHECK(count_of(spec, "gpu") == 8);
  CHECK(count_of(spec, "nic") == 16);  // two <net> of each of eight adapters
  CHECK(count_of(spec, "cpu") == 2);
  // Each GPU has a Broadcom switch of three bridges, which NCCL counts as one.
  CHECK(count_of(spec, "pcie") == 8);
  CHECK(link_of(spec, "gpu", "nvswitch").bandwidth == Bandwidth(18 * 25e9));  // 5 + 5 + 4 + 4 links of 25 GB/s
  CHECK(link_of(spec, "gpu", "pcie").bandwidth == Bandwidth(63e9));           // 32 GT/s x16
  CHECK(link_of(spec, "pcie", "cpu").bandwidth == Bandwidth(8e9));            // 5 GT/s x16, 8b/10b
  CHECK(spec.host.cpu == CpuFamily::intel_sapphire_rapids);                   // family 6, model 143 = 0x8f
  CHECK(std::get<LeafSpineNetwork>(spec.network).bandwidth == Bandwidth(180e9 / 8));
  // NCCL's list has 22 GB/s as the largest that a NIC of 22.5 carries; each of the sixteen has a channel of it, which
  // goes out by another, as one GPU alone is beside each.
  CHECK(test::channels(spec, 2).front() ==
        "Pattern 4, crossNic 2, nChannels 16, bw 22.000000/22.000000, type NVL/PIX, sameChannels 0");
}

TEST_CASE("GPUs are numbered by dev, or by bus id in a skeleton; sockets by NUMA node") {
  // GPU 0 and 1 of an ND A100 v4 are 0001:00:00.0 and 0002:00:00.0, on the second socket of the file.
  const auto node = exchange::read_nccl_topology(test::data_file("azure-ndv4-a100-topo.xml"), "f");
  REQUIRE(node.ok());
  REQUIRE(node->gpus.size() == 8);
  const auto socket = [&](const exchange::Attached& one) {
    return node->switches[static_cast<std::size_t>(one.up.index)].up.index;
  };
  std::vector<int> sockets;
  for (const auto& gpu : node->gpus) sockets.push_back(socket(gpu));
  CHECK(sockets == std::vector<int>{1, 1, 0, 0, 3, 3, 2, 2});
  sockets.clear();
  for (const auto& nic : node->nics) sockets.push_back(socket(nic));
  CHECK(sockets == std::vector<int>{1, 1, 0, 0, 3, 3, 2, 2});

  const auto turned = node_of(system_of(gpu(1) + gpu(0)));
  CHECK(turned.gpus.size() == 2);
}

TEST_CASE("a virtual machine that hides what its NVLinks lead to has none, as in NCCL") {
  const auto node = exchange::read_nccl_topology(test::data_file("azure-nc96v4-a100pcie-topo.xml"), "f");
  REQUIRE(node.ok());
  CHECK(node->nvlinks.shape == exchange::Nvlinks::Shape::none);
  REQUIRE(node->warnings.size() == 1);
  CHECK(node->warnings[0].message == "an NVLink of a GPU to itself is left out (4 times, this is the first)");
  CHECK(node->gpu_model == "A100-PCIe-80GB");
  const TopologySpec spec = test::imported("azure-nc96v4-a100pcie-topo.xml", "pcie-a100");
  // Neither speed nor width of a link: 8 GT/s and 16 lanes. The search finds 12 GB/s, as NCCL's own graph file says.
  CHECK(test::channels(spec, 1).front() ==
        "Pattern 4, crossNic 0, nChannels 1, bw 12.000000/12.000000, type SYS/PIX, sameChannels 1");
}

TEST_CASE("NVLinks that the file does not have are the other machine's, straight ones for as many GPUs only") {
  const TopologySpec ndv2 = test::imported("azure-ndv2-v100-topo.xml", "dgx1-v100");
  CHECK(link_of(ndv2, "gpu", "gpu").pairs == link_of(test::shipped_machine("dgx1-v100"), "gpu", "gpu").pairs);
  const auto node = exchange::read_nccl_topology(
      system_of("<pci busid=\"0000:01:00.0\" class=\"0x030200\"/><pci busid=\"0000:02:00.0\" class=\"0x030200\"/>"),
      "f");
  REQUIRE(node.ok());
  const auto machine = exchange::complete(*node, test::shipped_machine("dgx1-v100"), "m");
  REQUIRE_FALSE(machine.ok());
  CHECK(machine.errors().front().message == "f says nothing of NVLinks, and those of dgx1-v100 are of 8 GPUs, not 2");
}

TEST_CASE("straight NVLinks, links to a hidden device, and unlike numbers of either") {
  const auto link = [](const char* target, int count, const char* tclass) {
    return "<nvlink target=\"" + std::string(target) + "\" count=\"" + std::to_string(count) + "\" tclass=\"" + tclass +
           "\"/>";
  };
  const auto straight =
      node_of(system_of(gpu(0, link("0000:02:00.0", 2, "0x030200")) + gpu(1, link("0000:01:00.0", 2, "0x030200"))));
  CHECK(straight.nvlinks.shape == exchange::Nvlinks::Shape::straight);
  CHECK(straight.nvlinks.counts == std::vector<std::vector<int>>{{0, 2}, {2, 0}});
  CHECK(straight.warnings.empty());
  // A bus id is a number, however it is written.
  std::string upper = gpu(0, link("0000:02:00.0", 2, "0x030200"));
  upper.replace(upper.find("0000:01"), 7, "0000:1B");
  const auto written = node_of(system_of(upper + gpu(1, link("0000:1b:00.0", 2, "0x030200"))));
  CHECK(written.nvlinks.counts == straight.nvlinks.counts);
  CHECK(written.warnings.empty());
  CHECK(errors_of(
            system_of("<pci busid=\"0000:1b:00.0\" class=\"0x030200\"/><pci busid=\"0:1B:0.0\" class=\"0x030200\"/>"))
            .front()
            .ends_with("busid '0000:1b:00.0' is there twice"));
  const auto unlike = node_of(system_of(gpu(0, link("0000:02:00.0", 2, "0x030200")) + gpu(1)));
  CHECK(unlike.nvlinks.counts == std::vector<std::vector<int>>{{0, 2}, {2, 0}});
  CHECK(unlike.warnings.size() == 1);
  const auto hidden = node_of(
      system_of(gpu(0, link("fffffff:ffff:ff", 6, "0x068000")) + gpu(1, link("fffffff:ffff:ff", 6, "0x068000"))));
  CHECK(hidden.nvlinks.shape == exchange::Nvlinks::Shape::to_switch);
  CHECK(hidden.nvlinks.links == 6);
  const auto nowhere = node_of(system_of(gpu(0, link("0000:77:00.0", 6, "0x030200")) + gpu(1)));
  CHECK(nowhere.nvlinks.shape == exchange::Nvlinks::Shape::none);
  CHECK(nowhere.warnings.size() == 1);
}

TEST_CASE("what is no topology of NCCL is refused at its place") {
  CHECK(errors_of("") == Errors{"f:1:1: the file is empty"});
  CHECK(errors_of(" \n\t") == Errors{"f:1:1: the file is empty"});
  CHECK(errors_of("GPU0 GPU1\n") == Errors{"f:1:1: this is not XML"});
  CHECK(errors_of(std::string("<system>\0</system>", 18)) ==
        Errors{"f:1:9: control character 0x00 at offset 8 in a text file"});
  CHECK(errors_of("\x89PNG\r\n") == Errors{"f:1:1: byte 0x89 at offset 0 is not UTF-8"});
  CHECK(errors_of("<graphs version=\"1\"/>") == Errors{"f:1:1: the root element is <graphs>"});
  CHECK(errors_of("<system version=\"1\"/><system/>") == Errors{"f:1:22: a second root element <system>"});
  CHECK(errors_of("<system version=\"2\"/>") ==
        Errors{"f:1:18: version is 2: RCCL's, of AMD GPUs", "f:1:1: there is no GPU in this file"});
  CHECK(errors_of("<system version=\"1\">\n</system>") == Errors{"f:1:1: there is no GPU in this file"});
  CHECK(errors_of(system_of("<pci busid=\"0000:00:16.0\"/>")) ==
        Errors{"f:3:1: 1 PCI devices have no class, so none is known to be a GPU"});
}

TEST_CASE("entities of one's own are refused, never expanded") {
  const std::string bomb =
      "<?xml version=\"1.0\"?>\n<!DOCTYPE lolz [\n<!ENTITY a \"aaaaaaaaaa\">\n<!ENTITY b "
      "\"&a;&a;&a;&a;&a;&a;&a;&a;\">\n]>\n"
      "<system version=\"1\"><cpu numaid=\"&b;\"/></system>";
  const Errors errors = errors_of(bomb);
  REQUIRE(errors.size() == 1);
  CHECK_THAT(errors[0], Catch::EndsWith("a DOCTYPE is not read: no entity is expanded"));
  // Without one, an entity that nobody declared is an error wherever it stands, but for comments.
  CHECK(errors_of("<system version=\"1\"><cpu numaid=\"&lol;\"/></system>") ==
        Errors{"f:1:34: the entity '&lol;' is not defined"});
  CHECK(errors_of("<system version=\"1\">\n<!-- &a; -->\n<cpu numaid=\"0\" affinity=\"&foo;,&amp;\"/></system>") ==
        Errors{"f:3:27: the entity '&foo;' is not defined"});
}

TEST_CASE("a DOCTYPE that is none does not turn the check of entities off") {
  const std::string bomb = "<system version=\"1\">\n<cpu numaid=\"&b;\"/></system>";
  const Errors undefined{"f:3:14: the entity '&b;' is not defined"};
  CHECK(errors_of("<!-- <!DOCTYPE lolz [<!ENTITY b \"&a;&a;\">]> -->\n" + bomb) == undefined);
  CHECK(errors_of("<?note <!DOCTYPE lolz> ?>\n" + bomb) == undefined);
  CHECK(errors_of("<system version=\"1\"><![CDATA[<!DOCTYPE]]>\n\n<cpu numaid=\"&b;\"/></system>") == undefined);
  CHECK(errors_of("<system version=\"1\" name='<!DOCTYPE'>\n\n<cpu numaid=\"&b;\"/></system>") == undefined);
  // Nor does a comment that is an attribute's value.
  CHECK(errors_of("<system version=\"1\" name=\"<!--\">\n\n<cpu numaid=\"&b;\"/></system>") == undefined);
  // One behind such a comment is still refused, and nothing else said of what it defines.
  CHECK(errors_of("<!-- <!DOCTYPE -->\n<!DOCTYPE lolz [<!ENTITY b \"x\">]>\n" + bomb) ==
        Errors{"f:2:11: a DOCTYPE is not read: no entity is expanded"});
}

TEST_CASE("a gdr that is neither yes nor no is warned of") {
  const auto warned = [](const std::string& value) {
    std::string text = system_of(gpu(0) + gpu(1));
    text.replace(text.find("gdr=\"1\"") + 5, 1, value);
    const auto node = exchange::read_nccl_topology(text, "f");
    REQUIRE(node.ok());
    const Errors said = messages_of(node->warnings);
    return std::count_if(said.begin(), said.end(), [](const std::string& one) {
      return one.find("a gdr that is neither 0 nor 1") != std::string::npos;
    });
  };
  CHECK(warned("0") == 0);
  CHECK(warned("1") == 0);
  CHECK(warned("7") == 1);
}

TEST_CASE("values that cannot be are errors at the value, all at once") {
  const std::string text = system_of(
      "<pci busid=\"zz\" class=\"0x030200\" link_width=\"-16\"><gpu dev=\"0\" sm=\"eighty\" rank=\"0\" gdr=\"1\">"
      "<nvlink target=\"0000:01:00.0\" count=\"-4\" tclass=\"0x\"/></gpu></pci>\n"
      "<nic><net name=\"a\" dev=\"-1\" speed=\"-100\" latency=\"nan\"/></nic>");
  CHECK(errors_of(text) == Errors{"f:3:13: busid is 'zz'", "f:3:46: link_width of <pci> is '-16'",
                                  "f:3:68: sm of <gpu> is 'eighty'", "f:3:130: count of <nvlink> is '-4'",
                                  "f:3:142: tclass of <nvlink> is '0x'", "f:4:25: dev of <net> is '-1'",
                                  "f:4:36: speed of <net> is '-100'", "f:4:51: latency of <net> is 'nan'"});
}

TEST_CASE("a NIC's latency is bounded, and none beyond is taken for another") {
  const auto of = [](const std::string& latency) {
    return errors_of(system_of("<nic><net name=\"a\" dev=\"0\" speed=\"100\" latency=\"" + latency + "\"/></nic>"));
  };
  const auto refuses = [&](const std::string& latency) {
    const Errors errors = of(latency);
    return std::ranges::count(errors, "f:3:49: latency of <net> is '" + latency + "'") == 1;
  };
  for (const char* latency : {"5e6", "100000.1", "1e300", "inf"}) CHECK(refuses(latency));
  for (const char* latency : {"0", "5", "100000"}) CHECK_FALSE(refuses(latency));
}

TEST_CASE("what may be there once is refused twice, with both places") {
  CHECK(errors_of(system_of(gpu(0) + gpu(0))) == Errors{"f:4:13: busid '0000:01:00.0' is there twice",
                                                        "f:4:91: gpu dev '0' is there twice",
                                                        "f:4:108: rank '0' is there twice"});
  CHECK(errors_of("<system version=\"1\"><cpu numaid=\"0\"/><cpu numaid=\"0\"/></system>").front() ==
        "f:1:51: numaid '0' is there twice");
  CHECK(errors_of(
            "<system version=\"1\"><cpu numaid=\"0\" host_hash=\"0x1\"/><cpu numaid=\"1\" host_hash=\"0x2\"/></system>")
            .front() == "f:1:1: 2 hosts in one file");
  CHECK(errors_of("<system version=\"1\" version=\"1\"/>") == Errors{"f:1:1: <system> has 'version' twice"});
}

TEST_CASE("attributes and elements that nobody knows are counted, and the rest is read") {
  const auto node =
      node_of(system_of("<pci busid=\"0000:01:00.0\" class=\"0x030200\" colour=\"red\"/>\n"
                        "<pci busid=\"0000:02:00.0\" class=\"0x030200\" colour=\"blue\"><fan/></pci>"));
  CHECK(node.gpus.size() == 2);
  CHECK(messages_of(node.warnings) ==
        Errors{"f:4:58: <fan> inside <pci> is not read",
               "f:3:52: attribute 'colour' of <pci> is not read (2 times, this is the first)"});
}

TEST_CASE("attributes and kinds of warnings without end are refused or summed up") {
  std::string attributes;
  for (int i = 0; i < 100'000; ++i) attributes += " a" + std::to_string(i) + "=\"1\"";
  CHECK(errors_of("<system version=\"1\"" + attributes + "/>") == Errors{"f:1:1: <system> has too many attributes"});
  std::string fans = "<pci busid=\"0000:01:00.0\" class=\"0x030200\"/>";
  for (int i = 0; i < 1000; ++i) fans += "<fan" + std::to_string(i) + "/>";
  const auto node = node_of(system_of(fans));
  CHECK(node.warnings.size() == 51);  // fifty kinds, and the rest
  CHECK(std::any_of(node.warnings.begin(), node.warnings.end(), [](const Diagnostic& warning) {
    return warning.message.find("more that is not read (950 times") == 0;
  }));
}

TEST_CASE("text around and within elements is not passed over in silence") {
  const std::string whole =
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x030200\"/></cpu></system>";
  CHECK(errors_of(whole).empty());
  CHECK(errors_of(whole + "\nKilled\n") == Errors{"f:2:1: text outside of <system>"});
  CHECK(errors_of("<!-- a --> b " + whole) == Errors{"f:1:12: text outside of <system>"});
  CHECK(errors_of("Usage: all_reduce_perf <options>\n") == Errors{"f:1:1: this is not XML"});
  std::string within = whole;
  within.insert(within.find("<cpu"), "<![CDATA[ <gpu/> ]]>");
  CHECK(messages_of(node_of(within).warnings) == Errors{"f:1:1: text inside <system> is not read"});
}

TEST_CASE("versions that NCCL would not read are said") {
  const std::string whole = "><cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" class=\"0x030200\"/></cpu></system>";
  CHECK(node_of("<system version=\"1\"" + whole).warnings.empty());
  CHECK(messages_of(node_of("<system version=\"9\"" + whole).warnings) == Errors{"f:1:18: version of <system> is 9"});
  CHECK(messages_of(node_of("<system" + whole).warnings) == Errors{"f:1:1: <system> has no version"});
}

TEST_CASE("a device has one <gpu>, and a number that is none is not held against others") {
  const std::string two = gpu(0);
  std::string twice = two;
  twice.insert(twice.find("</pci>"), "<gpu dev=\"7\" sm=\"80\" rank=\"7\" gdr=\"1\"/>");
  REQUIRE(errors_of(system_of(twice)).size() == 1);
  CHECK_THAT(errors_of(system_of(twice)).front(), Catch::Contains("has a second <gpu>"));
  std::string negative = gpu(1);
  negative.replace(negative.find("dev=\"1\""), 7, "dev=\"-1\"");
  CHECK(errors_of(system_of(two + negative)).size() == 1);  // -1, and not GPU 0 once more
}

TEST_CASE("a file cut off anywhere is an error with a place or a whole machine, never half of one") {
  const std::string whole = test::data_file("oci-h100-full-dump-topo.xml");
  const std::size_t end = whole.find_last_of('>');
  for (std::size_t length = 0; length < end; length += 7) {
    const auto node = exchange::read_nccl_topology(whole.substr(0, length), "f");
    INFO(length);
    REQUIRE_FALSE(node.ok());
    CHECK(node.errors().front().where.line > 0);
  }
}

TEST_CASE("bytes changed at random never do more than fail with a place") {
  std::mt19937 random(20240607);
  for (const char* file : {"oci-h100-full-dump-topo.xml", "azure-nc96v4-a100pcie-topo.xml"}) {
    const std::string whole = test::data_file(file);
    for (int i = 0; i < 400; ++i) {
      std::string text = whole;
      for (int k = 0; k < 1 + i % 5; ++k) text[random() % text.size()] = static_cast<char>(random() % 128);
      const auto node = exchange::read_nccl_topology(text, "f");
      for (const Diagnostic& d : node.errors()) CHECK(d.where.line > 0);
      if (node.ok()) (void)exchange::complete(*node, test::shipped_machine("dgx-h100"), "m");
    }
  }
}

TEST_CASE("GPUs that the other machine does not have are refused, other models of the same chip said") {
  const auto node = exchange::read_nccl_topology(test::data_file("oci-h100-full-dump-topo.xml"), "f");
  REQUIRE(node.ok());
  const auto wrong = exchange::complete(*node, test::shipped_machine("dgx-a100"), "m");
  REQUIRE_FALSE(wrong.ok());
  CHECK(wrong.errors().front().message ==
        "the GPUs of f are of compute capability 90 (H100-SXM5-80GB), those of dgx-a100 (A100-SXM4-80GB) of 80");
  const auto other = exchange::complete(*node, test::shipped_machine("dgx-h200"), "m");
  REQUIRE(other.ok());
  CHECK(std::any_of(other->warnings.begin(), other->warnings.end(), [](const Diagnostic& d) {
    return d.message == "the GPU is H100-SXM5-80GB by its PCI id, dgx-h200 has H200-SXM5-141GB";
  }));
  for (const char* none : {"ethernet-hosts", "ring"})
    CHECK_FALSE(exchange::complete(*node, test::shipped_machine(none), "m").ok());
}

TEST_CASE("what GPUs count as is said, by their name or, where nobody knows it, by their PCI id") {
  const auto warnings = [](const std::string& first, const std::string& second) {
    const auto of = [](int dev, const std::string& id) {
      std::string out = gpu(dev);
      out.replace(out.find("sm=\"80\""), 7, "sm=\"89\"");
      return out.replace(out.find("class="), 6, "vendor=\"0x10de\" device=\"" + id + "\" class=");
    };
    const auto made =
        exchange::complete(node_of(system_of(of(0, first) + of(1, second))), test::shipped_machine("l40s-pcie"), "m");
    REQUIRE(made.ok());
    Errors out;
    for (const Diagnostic& d : made->warnings)
      if (d.message.find("PCI id") != std::string::npos) out.push_back(d.message);
    return out;
  };
  CHECK(warnings("0x26b9", "0x26b9").empty());
  CHECK(warnings("0x27b8", "0x27b8") == Errors{"the GPU is L4 by its PCI id, l40s-pcie has L40S"});
  const std::string unknown = "no GPU of PCI id 0x27bf is known: it counts as l40s-pcie's L40S";
  CHECK(warnings("0x27bf", "0x27bf") == Errors{unknown});
  CHECK(warnings("0x27bf", "0x26b9") == Errors{unknown});
}

namespace {

/// A NIC on a PCIe port of its own, of 16 lanes at 16 GT/s: 24 GB/s as NCCL counts it.
std::string nic(int dev, int gigabits, const char* bus) {
  const std::string number = std::to_string(dev);
  return "<pci busid=\"0000:" + std::string(bus) +
         ":00.0\" class=\"0x020000\" link_speed=\"16 GT/s\" link_width=\"16\">" + "<nic><net name=\"mlx5_" + number +
         "\" dev=\"" + number + "\" speed=\"" + std::to_string(gigabits) +
         "000\" latency=\"9\" gdr=\"0\"/></nic></pci>\n";
}
std::string below_switch(const std::string& inside, const char* bus) {
  return "<pci busid=\"0000:" + std::string(bus) +
         ":00.0\" class=\"0x060400\" link_speed=\"16 GT/s\" link_width=\"16\">\n" + inside + "</pci>\n";
}
/// Two sockets, the first with a GPU and a NIC of 200 Gb/s.
std::string two_sockets(const std::string& on_second, const std::string& model) {
  const std::string cpu = " arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"" + model + "\">\n";
  return "<system version=\"1\">\n<cpu numaid=\"0\"" + cpu + gpu(0) + nic(0, 200, "20") + "</cpu>\n<cpu numaid=\"1\"" +
         cpu + on_second + "</cpu>\n</system>\n";
}

}  // namespace

TEST_CASE("a slow NIC that no GPU would take is left out, and the others keep their rate") {
  const TopologySpec shipped = test::shipped_machine("dgx-h100");
  const std::string dump = exchange::nccl_topology_xml(shipped)->text;
  for (const bool on_socket : {true, false}) {
    // For storage: 100 Gb/s beside eight of 400, right at the first socket or on a switch of its own.
    const std::string slow = on_socket ? nic(8, 100, "77") : below_switch(nic(8, 100, "77"), "76");
    std::string text = dump;
    text.insert(text.find("</cpu>"), slow);
    const exchange::ForeignNode node = node_of(text), without = node_of(dump);
    CHECK(messages_of(without.warnings) == Errors{});
    REQUIRE(node.warnings.size() == 1);
    CHECK(node.warnings[0].message == "NIC 'mlx5_8' of 100 Gb/s is left out");
    CHECK(node.nics.size() == 8);
    CHECK(node.switches.size() == without.switches.size());
    CHECK(node.nic_rate == Bandwidth(50e9));
    CHECK(node.gpudirect == without.gpudirect);  // its gdr="0" and latency are none of theirs
    CHECK(node.nic_latency == without.nic_latency);
    const auto spec = exchange::complete(node, shipped, "m"), as_before = exchange::complete(without, shipped, "m");
    REQUIRE(spec.ok());
    CHECK(test::channels(spec->spec, 2) == test::channels(as_before->spec, 2));
  }
}

TEST_CASE("a slower NIC stays where the way to it is some GPU's fastest") {
  const auto nics = [](const std::string& on_second, const char* model) {
    const exchange::ForeignNode node = node_of(two_sockets(on_second, model));
    return std::pair(node.nics.size(), messages_of(node.warnings));
  };
  const std::string beside = gpu(1) + nic(1, 100, "30");
  // Skylake's sockets are joined by 10 GB/s as NCCL counts them: less than the 12.5 beside the second GPU.
  const auto [both, warned] = nics(beside, "85");
  CHECK(both == 2);
  CHECK(warned == Errors{"f:8:86: NICs of unlike speed"});
  // Emerald Rapids' by 40: the way to the faster one has 24, its PCIe port's, as the GPU's own.
  const auto [left, said] = nics(beside, "207");
  CHECK(left == 1);
  CHECK(said.size() == 1);
  // As fast is as good, wherever it is.
  CHECK(nics(gpu(1) + nic(1, 200, "30"), "207").first == 2);
  // A NIC of 100 Gb/s on the GPU's switch is nearer, and the one of 200 beyond it still faster.
  const auto [kept, why] = nics(below_switch(gpu(1) + nic(1, 100, "30"), "2f") + nic(2, 200, "40"), "85");
  CHECK(kept == 2);
  REQUIRE(why.size() == 1);
  CHECK_THAT(why[0], Catch::EndsWith("NIC 'mlx5_1' of 100 Gb/s is left out"));
}
