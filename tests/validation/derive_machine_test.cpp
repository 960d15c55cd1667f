// Machines that no file describes, from what a sidecar says of them.
#include "src/derive_machine.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "collcast/nccl/communicator.hpp"
#include "collcast/validation/validate.hpp"
#include "shipped.hpp"
#include "src/gpu_name.hpp"
#include "src/hardware_words.hpp"

using namespace collcast;
using namespace collcast::test;

namespace {

std::vector<TopologySpec> described() { return Machines::shipped(source_tree).value().specs(); }

MeasuredFacts facts(const std::string& gpu, const std::string& nvlink, const std::string& nics, int nodes,
                    int gpus_per_node) {
  MeasuredFacts out;
  out.id = "t";
  out.collective = "all_reduce";
  out.system = "nobody-knows";
  out.gpu = gpu;
  out.nvlink = nvlink;
  out.nics = nics;
  out.nodes = nodes;
  out.gpus_per_node = gpus_per_node;
  out.ranks = nodes * gpus_per_node;
  return out;
}

DerivedMachine derived(const MeasuredFacts& of) {
  Result<DerivedMachine> out = derive_machine(described(), of, of.ranks / of.nodes);
  INFO((out ? std::string() : out.errors().front().message));
  REQUIRE(out.ok());
  return std::move(out).value();
}

int count(const TopologySpec& spec, DeviceKind kind) {
  int out = 0;
  for (const DeviceGroup& group : spec.devices) out += group.kind == kind ? group.count : 0;
  return out;
}

struct RateOf {
  double operator()(const std::monostate&) const { return 0; }
  template <class Network>
  double operator()(const Network& network) const {
    return network.bandwidth.value() * 8 / 1e9;
  }
};
struct LatencyOf {
  double operator()(const std::monostate&) const { return 0; }
  template <class Network>
  double operator()(const Network& network) const {
    return network.latency.count();
  }
};
double gigabits(const TopologySpec& spec) { return std::visit(RateOf{}, spec.network); }
double nic_latency(const TopologySpec& spec) { return std::visit(LatencyOf{}, spec.network); }

double nvlink(const TopologySpec& spec) {
  for (const LinkGroup& link : spec.links)
    if (link.kind == LinkKind::nvlink) return link.bandwidth.value() / 1e9;
  return 0;
}

/// A forecast of 1 GiB on it, in seconds.
double priced(const TopologySpec& spec, const MeasuredFacts& of) {
  MeasuredTable table;
  table.facts = of;
  table.points = {{Bytes(std::int64_t{1} << 30), Seconds(1e-3), false, std::nullopt}};
  Machines only = Machines::only(spec);
  const ValidateReport report = validate({table}, only, nccl_prediction(), Statistic::mean);
  INFO((report.unscored.empty() ? std::string() : report.unscored.front().why));
  REQUIRE(report.tables.size() == 1);
  return report.tables.front().rows.front().predicted.count();
}

}  // namespace

TEST_CASE("the likest machine as it is, where a sidecar says nothing else") {
  const DerivedMachine out = derived(facts("H100-SXM5-80GB", "NVLink4 NVSwitch", "8x IB NDR 400Gb/s", 4, 8));
  CHECK(out.spec.name == "dgx-h100");
  CHECK(out.derivation.changed.empty());
  CHECK(out.derivation.assumed.empty());
}

TEST_CASE("NICs of another number, rate and kind are put right, and the forecast follows them") {
  const MeasuredFacts wide = facts("H100-SXM5-80GB", "NVLink4 NVSwitch", "8x IB NDR 400Gb/s", 2, 8);
  const MeasuredFacts narrow = facts("H100-SXM5-80GB", "NVLink4 NVSwitch", "4x IB HDR 200Gb/s", 2, 8);
  const DerivedMachine out = derived(narrow);
  CHECK(count(out.spec, DeviceKind::nic) == 4);
  CHECK(gigabits(out.spec) == Approx(200));
  CHECK_FALSE(out.derivation.changed.empty());
  // A quarter of the bandwidth: 1 GiB is bound by the NICs, but for NVLS, which moves less over them.
  const double ratio = priced(out.spec, narrow) / priced(derived(wide).spec, wide);
  CHECK(ratio > 2);
  CHECK(ratio < 5);

  const DerivedMachine efa = derived(facts("H200-SXM5-141GB", "NVLink4 NVSwitch", "16x EFA 200Gb/s", 2, 8));
  CHECK(efa.derivation.network == "aws-p5");
  CHECK(count(efa.spec, DeviceKind::nic) == 8);  // two beside each GPU are one of twice the rate
  CHECK(gigabits(efa.spec) == Approx(400));
  CHECK(nic_latency(efa.spec) == Approx(4e-6));
  CHECK(efa.spec.gpu.model == "H200-SXM5-141GB");
}

TEST_CASE("a sidecar that counts the NICs that NCCL_IB_HCA leaves is not warned of it") {
  const auto remark = [](const char* nics) {
    MeasuredTable table;
    table.facts = facts("H100-SXM5-80GB", "NVLink4 NVSwitch", nics, 2, 8);
    table.facts.environment = {{"NCCL_IB_HCA", "mlx5_0"}};
    Machines all = Machines::shipped(source_tree).value();
    return all.place(table).value().remark;
  };
  CHECK(remark("1x IB NDR 400Gb/s").find("NCCL_IB_HCA") == std::string::npos);
  CHECK(remark("8x IB NDR 400Gb/s").find("NCCL_IB_HCA=mlx5_0 names 1 of a node's 8 NICs") != std::string::npos);
}

TEST_CASE("a network that is taken from another machine comes with NCCL's plugin for it, and without the likest's") {
  // Its GPUs and rates are those of Google's A3 Mega, whose variables are of TCPXO.
  const MeasuredFacts ndr = facts("H100-SXM5-80GB", "NVLink4 NVSwitch", "8x NDR200", 2, 8);
  const DerivedMachine infiniband = derived(ndr);
  CHECK(infiniband.derivation.base == "gcp-a3-mega");
  CHECK_FALSE(infiniband.derivation.network.empty());
  CHECK(infiniband.spec.plugin == NetworkPlugin());
  CHECK(infiniband.derivation.assumed.empty());
  CHECK(load_topology("gcp-a3-mega", source_tree)->plugin != NetworkPlugin());

  const DerivedMachine efa = derived(facts("B200-SXM6-180GB", "NVLink5 NVSwitch", "8x 400Gb/s EFA", 2, 8));
  CHECK(efa.derivation.network == "aws-p5");
  CHECK(efa.spec.plugin == load_topology("aws-p5", source_tree)->plugin);
  CHECK(efa.spec.plugin.latency == Seconds(75e-6));

  // Nothing that is described has such NICs: the likest's plugin is of others, too.
  std::vector<TopologySpec> only = described();
  std::erase_if(only, [](const TopologySpec& spec) { return spec.name != "gcp-a3-mega"; });
  const DerivedMachine none = derive_machine(only, ndr, 8).value();
  CHECK(none.spec.plugin == NetworkPlugin());
  CHECK(none.derivation.assumed == std::vector<std::string>{"the latency of infiniband"});
}

TEST_CASE("where nobody says what the NICs are, the plugin that is taken is listed") {
  const auto assumed = [](const char* nics) {
    return fmt::format(
        "{}", fmt::join(derived(facts("H100-SXM5-80GB", "NVLink4 NVSwitch", nics, 2, 8)).derivation.assumed, "; "));
  };
  CHECK(assumed("8x 200Gb/s").find("NCCL's network plugin (that of gcp-a3-mega, which sets NCCL_PROTO=Simple,LL128") !=
        std::string::npos);
  CHECK(assumed("8x 400Gb/s").find("plugin") == std::string::npos);  // the vendor's own system has none
  CHECK(assumed("8x TCPXO 200Gb/s").empty());
}

TEST_CASE("NICs of a kind that no word here has are taken for the likest's, and listed") {
  const auto assumed = [](const char* nics) {
    return derived(facts("H100-SXM5-80GB", "NVLink4 NVSwitch", nics, 2, 8)).derivation.assumed;
  };
  CHECK(assumed("8x OPA 400Gb/s") ==
        std::vector<std::string>{"a kind of NICs that is known here (taken: infiniband of dgx-h100)"});
  CHECK(assumed("8x 200Gb/s").front() == "a kind of NICs that is known here (taken: tcpx of gcp-a3-mega)");
  for (const char* known : {"8x NDR 400Gb/s", "32x EFAv2 100Gb/s"}) CHECK(assumed(known).empty());
}

TEST_CASE("four GPUs that are joined straight share the NVLinks that a module has") {
  const DerivedMachine out =
      derived(facts("A100-SXM4-64GB", "NVLink3 (4 links per pair, no NVSwitch)", "4x IB HDR100", 2, 4));
  CHECK(count(out.spec, DeviceKind::gpu) == 4);
  CHECK(nvlink(out.spec) == Approx(100));
  CHECK(out.spec.gpu.model == "A100-SXM4-64GB");
  CHECK(count(out.spec, DeviceKind::nic) == 4);
  CHECK(gigabits(out.spec) == Approx(100));
  // Eight links between two, of a pair.
  const DerivedMachine pair = derived(facts("A100-SXM4-40GB", "NVLink3 (12 links per pair, no NVSwitch)", "", 1, 2));
  CHECK(count(pair.spec, DeviceKind::gpu) == 2);
  CHECK(nvlink(pair.spec) == Approx(300));
}

TEST_CASE("a card that no file has goes by its generation, its slot and its NIC") {
  const MeasuredFacts a10 = facts("NVIDIA A10G", "none", "1x Ethernet 100Gb/s (no RDMA)", 2, 4);
  const DerivedMachine out = derived(a10);
  CHECK(out.spec.gpu.model == "NVIDIA A10G");
  CHECK(nvlink(out.spec) == 0);
  CHECK(count(out.spec, DeviceKind::nic) == 1);
  CHECK(gigabits(out.spec) == Approx(100));
  CHECK(priced(out.spec, a10) > 0);
  const DerivedMachine h100 = derived(facts("NVIDIA H100 PCIe", "", "", 1, 8));
  CHECK(nvlink(h100.spec) == 0);
  CHECK(h100.spec.links.front().bandwidth.value() == Approx(63e9));  // PCI Express 5.0
  const DerivedMachine gen3 = derived(facts("Tesla T4", "none (PCIe gen3)", "", 1, 4));
  CHECK(gen3.spec.links.front().bandwidth.value() == Approx(15.75e9));
}

TEST_CASE("NVLink's bridges join cards two by two, at the card's own rate") {
  const auto pairs = [](const TopologySpec& spec) {
    std::vector<std::pair<int, int>> out;
    for (const LinkGroup& link : spec.links)
      if (link.kind == LinkKind::nvlink) out.insert(out.end(), link.pairs.begin(), link.pairs.end());
    return out;
  };
  const double size = static_cast<double>(1 << 30);

  const MeasuredFacts a6000 = facts("NVIDIA RTX A6000", "NVLink bridge, pairs", "", 1, 4);
  const DerivedMachine four = derived(a6000);
  CHECK(nvlink(four.spec) == Approx(56.25));
  CHECK(pairs(four.spec)[0] == std::pair(0, 1));
  CHECK(pairs(four.spec)[1] == std::pair(2, 3));
  CHECK(fmt::format("{}", fmt::join(four.derivation.assumed, "; ")) ==
        "the rate of NVLink's bridges (taken: the card's data sheet, 56.25 GB/s per direction)");
  // From pair to pair it is PCI Express, below 31.5 GB/s: rings of all four have no more.
  CHECK(size * 1.5 / priced(four.spec, a6000) < 31.5e9);

  const MeasuredFacts two = facts("NVIDIA GeForce RTX 3090", "NVLink3 bridge", "", 1, 2);
  const double busbw = size / priced(derived(two).spec, two);
  CHECK(busbw > 31.5e9);
  CHECK(busbw < 56.25e9);

  CHECK(nvlink(derived(facts("NVIDIA H100 NVL", "NVLink4", "", 1, 2)).spec) == Approx(300));
  CHECK(nvlink(derived(facts("NVIDIA A100 80GB PCIe", "NVLink3 bridges", "", 1, 8)).spec) == Approx(300));
  CHECK(nvlink(derived(facts("A100-PCIE-40GB", "NVLink3 (4 links per pair)", "", 1, 2)).spec) == Approx(100));
  // Four that are joined with each other: a third of 450 GB/s to each.
  const DerivedMachine way = derived(facts("NVIDIA H200 NVL", "4-way NVLink bridge", "", 1, 8));
  CHECK(nvlink(way.spec) == Approx(150));
  CHECK(pairs(way.spec).size() == 12);
  // Which are joined is said to be a guess where more than two could be.
  const DerivedMachine unsaid = derived(facts("NVIDIA A40", "NVLink bridges (50 GB/s/dir)", "", 1, 8));
  CHECK(nvlink(unsaid.spec) == Approx(50));
  REQUIRE(unsaid.derivation.assumed.size() == 1);
  CHECK(unsaid.derivation.assumed.front() == "which GPUs bridges join (taken: two by two, others by PCIe)");

  // No card's data sheet: over PCIe, and said so. Cards without NVLink are nothing's like.
  const DerivedMachine v100 = derived(facts("Tesla V100-PCIE-32GB", "NVLink2 bridge", "", 1, 2));
  CHECK(nvlink(v100.spec) == 0);
  CHECK(v100.derivation.assumed.back().find("what bridges") == 0);
  CHECK_FALSE(derive_machine(described(), facts("L40S", "NVLink bridge", "", 1, 2), 2).ok());
  // Modules keep theirs.
  CHECK(nvlink(derived(facts("A100-SXM4-80GB", "NVLink3 NVSwitch", "", 1, 8)).spec) == Approx(300));
}

TEST_CASE("every number of cards with bridges makes a machine that NCCL runs on") {
  for (const char* gpu : {"NVIDIA RTX A6000", "NVIDIA A100 80GB PCIe", "NVIDIA H100 NVL", "NVIDIA GeForce RTX 2080 Ti"})
    for (const int gpus : {2, 3, 4, 8, 10})
      for (const int nodes : {1, 2}) {
        const MeasuredFacts of = facts(gpu, "NVLink bridge", "1x 100GbE RoCE", nodes, gpus);
        INFO(gpu << ", " << gpus << " GPUs, " << nodes << " nodes");
        CHECK(priced(derived(of).spec, of) > 0);
      }
}

TEST_CASE("a slot is as wide as the NIC whose network was borrowed") {
  const auto nic_slot = [](const TopologySpec& spec) {
    for (const LinkGroup& link : spec.links)
      if (link.from == spec.network_devices || link.to == spec.network_devices) return link.bandwidth.value();
    return 0.0;
  };
  // Both are made of v100-pcie-ethernet, whose 10 GbE is in eight lanes of generation 3: 7.88 GB/s.
  const MeasuredFacts a10 = facts("NVIDIA A10G", "none", "EFA 100Gb/s", 4, 1);
  const MeasuredFacts gh200 = facts("GH200-120GB", "none", "1x Slingshot 200Gb/s", 4, 1);
  const double size = static_cast<double>(1 << 30);
  for (const auto& [of, line] : {std::pair(a10, 12.5e9), std::pair(gh200, 25e9)}) {
    INFO(of.gpu);
    const DerivedMachine out = derived(of);
    CHECK(out.derivation.base == "v100-pcie-ethernet");
    CHECK(gigabits(out.spec) == Approx(line * 8 / 1e9));
    CHECK(nic_slot(out.spec) >= line);
    // Bound by NICs over the host's bridge, which carry 0.76 of line rate.
    CHECK(size * 2 * 3 / 4 / priced(out.spec, of) == Approx(0.76 * line).epsilon(0.05));
  }
}

TEST_CASE("networks of one kind and several rates are machines of several names") {
  const auto name = [](const char* nics) { return derived(facts("GH200-120GB", "none", nics, 2, 1)).spec.name; };
  CHECK(name("1x EFA 100Gb/s") != name("1x EFA 400Gb/s"));
}

TEST_CASE("a GPU in the place of a Grace's module reaches its CPU over PCIe") {
  const auto count = [](const TopologySpec& spec, LinkKind kind) {
    return std::count_if(spec.links.begin(), spec.links.end(),
                         [&](const LinkGroup& link) { return link.kind == kind; });
  };
  // The only machine that is described: of Grace Hoppers, on Slingshot.
  std::vector<TopologySpec> only = described();
  std::erase_if(only, [](const TopologySpec& spec) { return spec.name != "gh200"; });
  REQUIRE(only.size() == 1);
  REQUIRE(count(only.front(), LinkKind::c2c) == 1);
  const auto on_it = [&](const char* gpu) {
    return derive_machine(only, facts(gpu, "NVLink3 (4 links per pair, no NVSwitch)", "2x Slingshot-11 200Gb/s", 2, 4),
                          4)
        .value()
        .spec;
  };
  CHECK(count(on_it("GH200-120GB"), LinkKind::c2c) == 1);
  const TopologySpec a100 = on_it("A100-SXM4-40GB");
  CHECK(count(a100, LinkKind::c2c) == 0);
  const Fabric fabric = Fabric::build(a100, 2).value();
  const nccl::Communicator c = nccl::connect(fabric, Group::strided(Rank(0), 1, 8)).value();
  CHECK(c.ring.type_between == nccl::PathType::phb);
}

TEST_CASE("cards of one brand are not one GPU") {
  const auto chip = [](const char* name) { return parse_gpu(name).chip; };
  CHECK(chip("NVIDIA GeForce RTX 4090") == "rtx4090");
  CHECK(chip("RTX2080Ti (PCIe gen3, P2P disabled)") == chip("NVIDIA GeForce RTX 2080 Ti"));
  CHECK(chip("NVIDIA RTX PRO 6000 Blackwell Server Edition") == chip("RTX-PRO-6000-Blackwell-Server"));
  CHECK(chip("NVIDIA RTX 6000 Ada Generation") != chip("Quadro RTX 6000"));
  CHECK(chip("NVIDIA RTX A6000") == "rtxa6000");
  CHECK(parse_gpu("NVIDIA H100 NVL").form == "pci");
  CHECK(derived(facts("NVIDIA GeForce RTX 4090", "", "", 1, 4)).spec.gpu.model == "RTX-4090");
  CHECK(derived(facts("NVIDIA RTX A6000", "none", "", 1, 4)).spec.gpu.model == "NVIDIA RTX A6000");
}

TEST_CASE("NVLinks of the first generation, and more than a GPU has") {
  const auto has = [](const char* gpu, const char* nvlink, const char* words) {
    const auto changed = derived(facts(gpu, nvlink, "", 1, 8)).derivation.changed;
    return fmt::format("{}", fmt::join(changed, "; ")).find(words) != std::string::npos;
  };
  // Four of 20 GB/s per direction [Tesla P100 data sheet: 160 both ways].
  CHECK(has("P100-SXM2-16GB", "NVLink1", "NVLink of 80 GB/s per GPU instead of 150 (nvlink)"));
  // 2 of 25 GB/s to each of 7 others.
  CHECK(has("V100-SXM2-16GB", "NVLink2, 2 links per pair, no NVSwitch", "350 GB/s per GPU instead of 150, where a"));
  CHECK(has("H100-SXM5-80GB", "NVLink4 NVSwitch, 4500 GB/s/dir", "has 450 at most"));
  CHECK_FALSE(has("H100-SXM5-80GB", "NVLink4 NVSwitch, 200 GB/s/dir", "at most"));
}

TEST_CASE("a smaller NVLink rate is the table's own") {
  const DerivedMachine out = derived(facts("H100-SXM5-80GB", "NVLink4 NVSwitch (8 links, 200 GB/s/dir)", "", 1, 8));
  CHECK(nvlink(out.spec) == Approx(200));
}

TEST_CASE("a part of a larger host stays a part of it") {
  const DerivedMachine out = derived(facts("H200-SXM5-141GB", "NVLink4 NVSwitch", "1x RoCE 400Gb/s", 2, 1));
  CHECK(count(out.spec, DeviceKind::gpu) == 8);
  CHECK(out.spec.name == "gcp-a3-ultra");
}

TEST_CASE("what nobody said is taken from the likest, and listed") {
  const DerivedMachine out = derived(facts("NVIDIA H100 80GB HBM3", "", "", 2, 8));
  REQUIRE(out.derivation.assumed.size() == 1);
  CHECK(out.derivation.assumed.front() == "nics_per_node (taken: 8 of 400 Gb/s)");
  const DerivedMachine rate_only =
      derived(facts("H100-SXM5-80GB", "NVLink4 NVSwitch", "unknown count x 200Gb/s class", 2, 8));
  CHECK(rate_only.derivation.assumed.front().find("the number of NICs") == 0);
  CHECK(gigabits(rate_only.spec) == Approx(200));
}

TEST_CASE("of machines that are equally likely the vendor's is taken, else one with a usual network") {
  const MeasuredFacts of = facts("H100-SXM5-80GB", "NVLink4 NVSwitch", "unknown count x 400Gb/s class", 2, 8);
  CHECK(derived(of).derivation.base == "dgx-h100");
  const auto as = [](const char* name, double latency) {
    TopologySpec spec = load_topology("dgx-h100", source_tree).value();
    spec.name = spec.title = name;
    std::get<LeafSpineNetwork>(spec.network).latency = Seconds(latency);
    return spec;
  };
  const auto base = [&](const std::vector<TopologySpec>& specs) {
    return derive_machine(specs, of, 8).value().derivation.base;
  };
  CHECK(base({as("a", 9e-6), as("b", 1e-6), as("c", 2e-6)}) == "c");
  CHECK(base({as("a", 9e-6), as("b", 1e-6)}) == "b");
  CHECK(base({as("a", 1e-6), as("b", 1e-6)}) == "a");
}

TEST_CASE("what cannot be derived says which field is missing") {
  const auto why = [](const MeasuredFacts& of) {
    const auto out = derive_machine(described(), of, 8);
    REQUIRE_FALSE(out.ok());
    CHECK_FALSE(out.errors().front().hint.empty());
    return out.errors().front().message;
  };
  CHECK(why(facts("", "NVLink4", "", 1, 8)).find("names no GPU ('gpu:')") != std::string::npos);
  CHECK(why(facts("unknown", "", "", 1, 8)).find("names no GPU") != std::string::npos);
  CHECK(why(facts("L40S", "NVLink4 NVSwitch", "", 1, 8)).find("'L40S' and 'NVLink4 NVSwitch'") != std::string::npos);
  CHECK(why(facts("MI300X", "none", "", 1, 8)).find("'MI300X' is none that NCCL is known to run on") !=
        std::string::npos);
}

TEST_CASE("from every machine any number of GPUs and NICs makes one that NCCL runs on") {
  for (const TopologySpec& spec : described()) {
    if (spec.teaching || spec.gpu.model.empty()) continue;
    for (const int gpus : {1, 2, 3, 4, 8, 16})
      for (const int nics : {1, 3, 8}) {
        const MeasuredFacts of = facts(spec.gpu.model, "", fmt::format("{}x RoCE 200Gb/s", nics), 2, gpus);
        INFO(spec.name << ", " << gpus << " GPUs, " << nics << " NICs");
        const auto out = derive_machine({spec, load_topology("h100-roce", source_tree).value()}, of, gpus);
        INFO((out ? std::string() : out.errors().front().message));
        REQUIRE(out.ok());
        CHECK(priced(out->spec, of) > 0);
      }
  }
}

namespace {

struct Errors {
  std::map<std::string, double> of_table;  ///< median error
  std::vector<double> one[3], several[3];  ///< rows by band
  int unscored = 0, derived = 0;
  std::vector<std::string> reasons;
};

double middle(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void add(Errors& out, const ValidateReport& report) {
  out.unscored += static_cast<int>(report.unscored.size());
  for (const UnscoredTable& table : report.unscored) out.reasons.push_back(table.id + ": " + table.why);
  for (const ScoredTable& table : report.tables) {
    if (table.healthy == "no") continue;
    out.derived += table.matched_by == "derived" ? 1 : 0;
    for (const Deviation& row : table.rows)
      (table.nodes > 1 ? out.several : out.one)[static_cast<std::size_t>(band_of(row.size))].push_back(row.ape());
  }
}

Errors errors_of(const std::vector<MeasuredTable>& tables, Machines machines) {
  Errors out;
  add(out, validate(tables, machines, memoized(nccl_prediction()), Statistic::mean));
  return out;
}

std::string text(const Errors& e) {
  return fmt::format("one node {:.1f} {:.1f} {:.1f}, several {:.1f} {:.1f} {:.1f}, {} derived, {} not scored",
                     100 * middle(e.one[0]), 100 * middle(e.one[1]), 100 * middle(e.one[2]), 100 * middle(e.several[0]),
                     100 * middle(e.several[1]), 100 * middle(e.several[2]), e.derived, e.unscored);
}

/// A row of the page's table of these figures.
std::string row_of_page(const char* name, const Errors& e) {
  const auto cells = [](const std::vector<double>(&rows)[3]) {
    return fmt::format("{:.1f}%, {:.1f}%, {:.1f}%", 100 * middle(rows[0]), 100 * middle(rows[1]),
                       100 * middle(rows[2]));
  };
  return fmt::format("| {} | {} | {} |", name, cells(e.one), cells(e.several));
}

}  // namespace

TEST_CASE("a kind of NICs without a rate has the likest's, and one whose number fits goes before one whose does not") {
  const DerivedMachine roce = derived(facts("H100-SXM5-80GB", "NVLink4 NVSwitch", "8x RoCEv2", 2, 8));
  CHECK(network_rate(roce.spec.network).value() == Approx(50e9));
  const std::vector<std::string>& said = roce.derivation.assumed;
  CHECK(std::ranges::any_of(
      said, [](const std::string& one) { return one.find("the rate of a NIC (taken: 400 Gb/s of ") == 0; }));
  const DerivedMachine efa = derived(facts("B200", "NVLink5 NVSwitch", "8x EFA", 2, 8));
  CHECK(efa.derivation.network == "aws-p5");
  CHECK(derived(facts("H100-SXM5-80GB", "NVLink4 NVSwitch", "8xFasTrak", 2, 8)).spec.name.find("gcp-a3-mega") == 0);
  CHECK(derived(facts("H100-SXM5-80GB", "NVLink4 NVSwitch", "4x GPUDirect-TCPX", 2, 8)).spec.name.find("gcp-a3-high") ==
        0);
}

TEST_CASE("shipped tables whose system is forgotten are forecast nearly as well as under its name") {
  const std::vector<MeasuredTable> named = load_measured(source_tree.measured.front(), {"test"})->tables;
  std::vector<MeasuredTable> forgotten = named;
  for (MeasuredTable& table : forgotten) table.facts.system = "unknown";
  const Machines all = Machines::shipped(source_tree).value();
  const Errors known = errors_of(named, all), unknown = errors_of(forgotten, all);

  // The same without the description of its own machine: what is left is other machines' and the sidecar.
  Errors alone;
  std::set<std::string> systems;
  for (const MeasuredTable& table : named) systems.insert(table.facts.system);
  for (const std::string& system : systems) {
    std::vector<MeasuredTable> its;
    for (std::size_t i = 0; i < named.size(); ++i)
      if (named[i].facts.system == system) its.push_back(forgotten[i]);
    std::vector<TopologySpec> others_specs = all.specs();
    std::erase_if(others_specs, [&](const TopologySpec& spec) {
      return std::find(spec.systems.begin(), spec.systems.end(), system) != spec.systems.end();
    });
    Machines others = Machines::among(std::move(others_specs));
    add(alone, validate(its, others, memoized(nccl_prediction()), Statistic::mean));
  }
  const std::string figures = "named: " + text(known) + "\nforgotten: " + text(unknown) + "\nalone: " + text(alone) +
                              fmt::format("\n{}", fmt::join(alone.reasons, "\n"));
  INFO(figures);
  CHECK(unknown.unscored == 0);
  CHECK(alone.unscored == 0);
  for (std::size_t band = 0; band < 3; ++band) {
    CHECK(middle(unknown.one[band]) < middle(known.one[band]) + 0.005);
    CHECK(middle(unknown.several[band]) < middle(known.several[band]) + 0.005);
    CHECK(middle(alone.one[band]) < middle(known.one[band]) + (band == 1 ? 0.02 : 0.005));
    CHECK(middle(alone.several[band]) < middle(known.several[band]) + 0.01);
  }
  std::ifstream file(COLLCAST_SOURCE_DIR "/docs/validation.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const std::string& row :
       {row_of_page("under the table's `system`", known), row_of_page("`system` forgotten", unknown),
        row_of_page("the machine's own file taken away, too", alone)}) {
    INFO(row);
    CHECK(page.find(row) != std::string::npos);
  }
}
