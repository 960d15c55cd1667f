// NCCL's graph XML and its example tuner's table: read, refused, and used.
#include "collcast/exchange/nccl_files.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <set>

#include "collcast/nccl/run.hpp"
#include "collcast/topology/fabric.hpp"
#include "samples.hpp"

using namespace collcast;
using nccl::with_files;
using test::messages_of;
using Errors = std::vector<std::string>;

namespace {

constexpr Bytes operator""_MiB(unsigned long long mib) { return Bytes(static_cast<std::int64_t>(mib) << 20); }

std::string graph_of(const std::string& attributes, const std::string& channels) {
  return "<graphs version=\"1\">\n<graph " + attributes + ">" + channels + "</graph>\n</graphs>\n";
}
const std::string ring2 =
    "id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"1\" speedintra=\"20\" speedinter=\"20\" latencyinter=\"0\" "
    "typeintra=\"NVL\" typeinter=\"PIX\" samechannels=\"1\"";
const std::string channel2 = "<channel><gpu dev=\"0\"/><gpu dev=\"1\"/></channel>";

Errors graph_errors(const std::string& text) { return messages_of(exchange::read_nccl_graphs(text, "g").errors()); }
Errors tuner_errors(const std::string& text) { return messages_of(exchange::read_tuner_table(text, "t").errors()); }

nccl::Environment with_tuner(const std::string& text) {
  const auto table = exchange::read_tuner_table(text, "t");
  INFO(to_text(table.errors()));
  REQUIRE(table.ok());
  return with_files({}, {nullptr, std::make_shared<nccl::TunerFile>(*table)});
}

Result<nccl::Communicator> connected(const TopologySpec& spec, int nodes, const nccl::Environment& environment) {
  const Result<Fabric> fabric = Fabric::build(spec, nodes);
  REQUIRE(fabric.ok());
  return nccl::connect(*fabric, Group::strided(Rank(0), 1, fabric->rank_count()), environment);
}

nccl::Plan planned(const nccl::Environment& environment, CollectiveKind kind, Bytes size, int nodes = 1) {
  const auto c = connected(test::shipped_machine("dgx-h100"), nodes, environment);
  REQUIRE(c.ok());
  const auto plan = nccl::plan(*c, kind, size);
  REQUIRE(plan.ok());
  return *plan;
}

}  // namespace

TEST_CASE("Azure's graph file of four A100: rings, trees and CollNet's chains") {
  const auto read = exchange::read_nccl_graphs(test::data_file("azure-nc96v4-a100pcie-graph.xml"), "folder/graph.xml");
  REQUIRE(read.ok());
  CHECK(read->file.name == "graph.xml");
  REQUIRE(read->file.graphs.size() == 3);
  const nccl::Graph& ring = read->file.graphs[0].graph;
  CHECK(ring.channels == 2);
  CHECK(ring.inside == Bandwidth(12e9));
  CHECK(ring.type_inside == nccl::PathType::sys);
  CHECK(ring.order == std::vector<std::vector<int>>{{0, 1, 2, 3}, {0, 3, 2, 1}});
  CHECK(read->file.graphs[1].graph.channels == 4);
  CHECK(read->file.graphs[2].is_collnet());
  CHECK(read->file.graphs[2].graph.order.back() == std::vector<int>{2, 3, 0, 1});
  CHECK(read->warnings.empty());
}

TEST_CASE("a file's graphs of CollNet are taken where the machine has it, and only there") {
  const std::string text = R"(<graphs version="1">
  <graph id="2" pattern="3" crossnic="0" nchannels="1" speedintra="20" speedinter="10" latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="1">
    <channel><net dev="1"/><gpu dev="1"/><gpu dev="0"/><net dev="1"/></channel>
  </graph>
  <graph id="4" pattern="6" crossnic="0" nchannels="1" speedintra="30" speedinter="15" latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="1">
    <channel><net dev="0"/><gpu dev="0"/><gpu dev="1"/><net dev="0"/></channel>
  </graph>
</graphs>)";
  auto read = exchange::read_nccl_graphs(text, "g");
  INFO(to_text(read.errors()));
  REQUIRE(read.ok());
  const std::vector<nccl::Setting> enabled{{"NCCL_COLLNET_ENABLE", "1", {}}};
  const nccl::Environment environment =
      with_files(*read_environment(enabled), {std::make_shared<nccl::GraphFile>(read->file), nullptr});
  TopologySpec spec = test::shipped_machine("dgx-h100");
  const auto connected = [&] {
    return *nccl::connect(*Fabric::build(spec, 2), Group::listed({Rank(0), Rank(1), Rank(8), Rank(9)}), environment);
  };
  CHECK_FALSE(connected().collnet);
  spec.plugin.collnet = true;
  const nccl::Communicator c = connected();
  REQUIRE(c.collnet);
  CHECK(c.collnet->chain.inside == Bandwidth(20e9));
  CHECK(c.collnet->chain.order == std::vector<std::vector<int>>{{1, 0}});
  CHECK(c.collnet->direct->between == Bandwidth(15e9));
  // Chains have more inside than between: half as many channels again.
  CHECK(c.channels == 2 * c.ring.channels + c.ring.channels);
}

namespace {

/// Of the first `ranks` GPUs of one node, with eight heads of NVLS at so many GB/s.
nccl::Communicator with_stated_nvls(const char* machine, int ranks, const std::string& speed,
                                    const std::vector<nccl::Setting>& variables = {}) {
  std::string heads;
  for (int gpu = 0; gpu < 8; ++gpu) heads += fmt::format("<channel><gpu dev=\"{}\"/></channel>", gpu);
  const auto read = exchange::read_nccl_graphs(
      graph_of(
          "id=\"3\" pattern=\"5\" nchannels=\"8\" speedinter=\"60\" typeintra=\"NVL\" typeinter=\"PIX\" speedintra=\"" +
              speed + "\"",
          heads),
      "g");
  INFO(to_text(read.errors()));
  REQUIRE(read.ok());
  const Result<Fabric> fabric = Fabric::build(test::shipped_machine(machine), 1);
  const auto c =
      nccl::connect(*fabric, Group::strided(Rank(0), 1, ranks),
                    with_files(*read_environment(variables), {std::make_shared<nccl::GraphFile>(read->file), nullptr}));
  INFO(to_text(c.errors()));
  REQUIRE(c.ok());
  return *c;
}

}  // namespace

TEST_CASE("a file's NVLS is taken where NCCL's search has some, and only there") {
  CHECK(with_stated_nvls("dgx-h100", 8, "30").nvls->inside == Bandwidth(30e9));
  const std::vector<nccl::Setting> apart{{"NCCL_P2P_DISABLE", "1", {}}};
  // Ampere; no NVLink; two GPUs, of which NCCL sets none up.
  for (const nccl::Communicator& c :
       {with_stated_nvls("dgx-a100", 8, "30"), with_stated_nvls("dgx-h100", 8, "30", apart),
        with_stated_nvls("dgx-h100", 2, "30")}) {
    CHECK_FALSE(c.nvls);
    const auto plan = nccl::plan(c, CollectiveKind::all_reduce, 1_MiB);
    REQUIRE(plan.ok());
    CHECK(nccl::run(c, CollectiveKind::all_reduce, 1_MiB, *plan).time() > Seconds(0));
    CHECK_FALSE(nccl::plan(c, CollectiveKind::all_reduce, 1_MiB, nccl::Algorithm::nvls).ok());
  }
}

TEST_CASE("channels of a file without bandwidth are not available, as in NCCL") {
  const nccl::Communicator c = with_stated_nvls("dgx-h100", 8, "0");
  for (const nccl::Candidate& one : nccl::tuning_table(c, CollectiveKind::all_reduce, 64_MiB)) {
    CHECK(one.available == one.reason.empty());
    CHECK(one.time < Seconds(1));
    if (one.algorithm == nccl::Algorithm::nvls && one.protocol == nccl::Protocol::simple)
      CHECK(one.reason == "its channels have no bandwidth");
  }
  const auto plan = nccl::plan(c, CollectiveKind::all_reduce, 1_MiB, nccl::Algorithm::nvls);
  REQUIRE_FALSE(plan.ok());
  CHECK_THAT(plan.errors().front().message, Catch::EndsWith("its channels have no bandwidth"));
}

TEST_CASE("a graph of CollNet with another pattern is refused") {
  const auto read = exchange::read_nccl_graphs(
      R"(<graphs version="1"><graph id="4" pattern="5" nchannels="1" speedintra="1" speedinter="1" typeintra="NVL" typeinter="PIX"><channel><net dev="0"/><gpu dev="0"/><net dev="0"/></channel></graph></graphs>)",
      "g");
  REQUIRE_FALSE(read.ok());
  CHECK(read.errors().front().message == "graph 4 has pattern 5");
}

TEST_CASE("NCCL's channels are the file's, doubled as those of a search") {
  const TopologySpec spec = test::imported("azure-nc96v4-a100pcie-topo.xml", "pcie-a100");
  auto read = exchange::read_nccl_graphs(test::data_file("azure-nc96v4-a100pcie-graph.xml"), "g");
  REQUIRE(read.ok());
  const nccl::Environment environment = with_files({}, {std::make_shared<nccl::GraphFile>(read->file), nullptr});
  CHECK(text_of(environment) == "NCCL_GRAPH_FILE=g");
  const auto c = connected(spec, 1, environment);
  REQUIRE(c.ok());
  CHECK(c->ring.channels == 2);
  CHECK(c->channels == 4);
  CHECK(connected(spec, 1, {})->ring.channels == 1);  // the search finds one

  // The same communicator asked for with and without the file is not mixed up.
  nccl::Communicators cache;
  const Result<Fabric> fabric = Fabric::build(spec, 1);
  const Group all = Group::strided(Rank(0), 1, 4);
  CHECK(cache.of(*fabric, all, environment)->ring.channels == 2);
  CHECK(cache.of(*fabric, all, {})->ring.channels == 1);
}

TEST_CASE("rings and trees of a file run on the same channels, the fewer of both") {
  // The file has two rings and four trees.
  auto read = exchange::read_nccl_graphs(test::data_file("azure-nc96v4-a100pcie-graph.xml"), "g");
  REQUIRE(read.ok());
  const auto c = connected(test::imported("azure-nc96v4-a100pcie-topo.xml", "pcie-a100"), 1,
                           with_files({}, {std::make_shared<nccl::GraphFile>(read->file), nullptr}));
  REQUIRE(c.ok());
  CHECK(c->ring.channels == 2);
  CHECK(c->tree.channels == 2);
  CHECK(c->tree.order.size() == 2);
  // A tree's bandwidth in NCCL's choice is two channels' of 12 GB/s, not four's.
  for (const nccl::Candidate& one : nccl::tuning_table(*c, CollectiveKind::all_reduce, 64_MiB))
    if (one.algorithm == nccl::Algorithm::tree && one.protocol == nccl::Protocol::simple)
      CHECK(one.bandwidth.value() <= 2 * 12e9 * 0.5);
}

TEST_CASE("trees beside rings of a file are as many as these, as fast as the links then allow") {
  std::string two = ring2;
  two.replace(two.find("nchannels=\"1\""), 13, "nchannels=\"2\"");
  const std::string channel = "<channel><gpu dev=\"0\"/><gpu dev=\"1\"/><gpu dev=\"2\"/><gpu dev=\"3\"/></channel>";
  const auto read = exchange::read_nccl_graphs(graph_of(two, channel + channel), "g");
  REQUIRE(read.ok());
  const Result<Fabric> fabric = Fabric::build(test::shipped_machine("dgx-a100"), 1);
  REQUIRE(fabric.ok());
  const auto c = nccl::connect(*fabric, Group::strided(Rank(0), 1, 4),
                               with_files({}, {std::make_shared<nccl::GraphFile>(read->file), nullptr}));
  REQUIRE(c.ok());
  CHECK(c->ring.channels == 2);
  CHECK(c->tree.channels == 2);
  // Of 12 NVLinks of 20 GB/s two trees leave 120 GB/s each; the fastest that NCCL tries is 40.
  CHECK(c->tree.inside == Bandwidth(40e9));
  CHECK(c->channels == 4);
}

TEST_CASE("all that does not fit of a graph is said, at each channel and GPU") {
  auto read = exchange::read_nccl_graphs(test::data_file("azure-nc96v4-a100pcie-graph.xml"), "g");
  const nccl::Environment environment = with_files({}, {std::make_shared<nccl::GraphFile>(read->file), nullptr});
  const auto other = connected(test::shipped_machine("dgx-a100"), 1, environment);
  REQUIRE_FALSE(other.ok());
  Errors channels;
  for (const char* at :
       {"3:5: graph 0", "9:5: graph 0", "17:5: graph 1", "23:5: graph 1", "29:5: graph 1", "35:5: graph 1"})
    channels.push_back("g:" + std::string(at) + " of g: a channel has 4 GPUs, the group 8 on a node");
  CHECK(messages_of(other.errors()) == channels);
  const auto nodes = connected(test::imported("azure-nc96v4-a100pcie-topo.xml", "pcie-a100"), 2, environment);
  REQUIRE_FALSE(nodes.ok());
  CHECK(messages_of(nodes.errors()) ==
        Errors{"g:2:3: graph 0 of g: its channels have no NIC, and the group is on 2 nodes",
               "g:16:3: graph 1 of g: its channels have no NIC, and the group is on 2 nodes"});
  std::string two = ring2;
  two.replace(two.find("nchannels=\"1\""), 13, "nchannels=\"2\"");
  // Two GPUs of the second channel are not in the group.
  const auto strange =
      exchange::read_nccl_graphs(graph_of(two,
                                          "<channel><gpu dev=\"0\"/><gpu dev=\"1\"/></channel>"
                                          "\n<channel><gpu dev=\"0\"/>\n<gpu dev=\"6\"/>\n<gpu dev=\"7\"/></channel>"),
                                 "g");
  REQUIRE(strange.ok());
  const Result<Fabric> fabric = Fabric::build(test::shipped_machine("dgx-a100"), 1);
  const auto pair = nccl::connect(*fabric, Group::strided(Rank(0), 1, 2),
                                  with_files({}, {std::make_shared<nccl::GraphFile>(strange->file), nullptr}));
  REQUIRE_FALSE(pair.ok());
  Errors at;
  for (const std::string& one : messages_of(pair.errors())) at.push_back(one.substr(one.find(": graph 0 of g: ") + 16));
  CHECK(at == Errors{"GPU 6 of a channel is not in the group", "GPU 7 of a channel is not in the group",
                     "a channel has 3 GPUs, the group 2 on a node"});
  CHECK(pair.errors()[1].where.line == pair.errors()[0].where.line + 1);
  CHECK(pair.errors()[2].where.line == pair.errors()[0].where.line - 1);
}

TEST_CASE("device numbers are hexadecimal") {
  const auto read = exchange::read_nccl_graphs(
      graph_of(ring2, "<channel><net dev=\"0\"/><gpu dev=\"a\"/><gpu dev=\"0xb\"/><net dev=\"10\"/></channel>"), "g");
  REQUIRE(read.ok());
  CHECK(read->file.graphs[0].graph.order[0] == std::vector<int>{10, 11});
  CHECK(read->file.graphs[0].nics == 2);
  CHECK(read->file.graphs[0].graph.nics == std::vector<nccl::ChannelNics>{{0, 16}});
}

TEST_CASE("a file's NICs have the ways that the machine has to them") {
  // A DGX H100 has NIC i beside GPU i alone: GPU 7 reaches NIC 0 through GPU 0.
  const std::string gpus =
      "<gpu dev=\"0\"/><gpu dev=\"1\"/><gpu dev=\"2\"/><gpu dev=\"3\"/><gpu dev=\"4\"/>"
      "<gpu dev=\"5\"/><gpu dev=\"6\"/><gpu dev=\"7\"/>";
  const auto read = exchange::read_nccl_graphs(
      graph_of(ring2, "<channel><net dev=\"0\"/>" + gpus + "<net dev=\"0\"/></channel>"), "g");
  REQUIRE(read.ok());
  const nccl::Environment environment = with_files({}, {std::make_shared<nccl::GraphFile>(read->file), nullptr});
  const auto c = connected(test::shipped_machine("dgx-h100"), 2, environment);
  REQUIRE(c.ok());
  CHECK(c->ring.nics == std::vector<nccl::ChannelNics>{{0, 0, nccl::PathType::pix, nccl::PathType::pxn}});
}

TEST_CASE("a NIC that the machine does not have is refused where any graph of a file states it") {
  const auto errors_of = [](TopologySpec spec, const char* id, const char* pattern, const std::string& channel) {
    spec.plugin.collnet = true;
    const auto read = exchange::read_nccl_graphs(
        graph_of(fmt::format("id=\"{}\" pattern=\"{}\" nchannels=\"{}\" speedintra=\"20\" speedinter=\"20\" "
                             "typeintra=\"NVL\" typeinter=\"PIX\"",
                             id, pattern, channel.find("<channel>", 1) == std::string::npos ? 1 : 2),
                 channel),
        "g");
    REQUIRE(read.ok());
    const std::vector<nccl::Setting> collnet{{"NCCL_COLLNET_ENABLE", "1", {}}};
    const auto c =
        connected(std::move(spec), 2,
                  with_files(*read_environment(collnet), {std::make_shared<nccl::GraphFile>(read->file), nullptr}));
    REQUIRE_FALSE(c.ok());
    return c.errors();
  };
  std::string all;
  for (int gpu = 0; gpu < 8; ++gpu) all += fmt::format("<gpu dev=\"{}\"/>", gpu);
  struct Of {
    const char *id, *pattern;
    std::string gpus;
  };
  // Rings, trees, CollNet's chains and direct channels, NVLS, whose channels state their head.
  const std::vector<Of> graphs{
      {"0", "4", all}, {"1", "3", all}, {"2", "3", all}, {"3", "5", "<gpu dev=\"0\"/>"}, {"4", "6", all}};
  for (const Of& graph : graphs) {
    CAPTURE(graph.id);
    // A DGX H100's are 0 to 7; pcie-a100 has one.
    const auto two = errors_of(test::shipped_machine("dgx-h100"), graph.id, graph.pattern,
                               "<channel>\n<net dev=\"8\"/>" + graph.gpus + "\n <net dev=\"ff\"/></channel>");
    CHECK(messages_of(two) == Errors{fmt::format("g:3:1: graph {} of g: the machine has no NIC 8", graph.id),
                                     fmt::format("g:4:2: graph {} of g: the machine has no NIC 255", graph.id)});
    CHECK_THAT(two.front().hint, Catch::Contains("a node has NICs 0 to 7"));
    if (graph.id[0] > '1') continue;
    const auto one = errors_of(test::shipped_machine("pcie-a100"), graph.id, graph.pattern,
                               "<channel><net dev=\"0\"/>" + graph.gpus + "\n<net dev=\"1\"/></channel>");
    CHECK(messages_of(one) == Errors{fmt::format("g:3:1: graph {} of g: the machine has no NIC 1", graph.id)});
    CHECK_THAT(one.front().hint, Catch::Contains("a node has NIC 0;"));
  }
  const std::string head = "<channel>\n<net dev=\"0\"/><gpu dev=\"0\"/><net dev=\"0\"/></channel>";
  CHECK(messages_of(errors_of(test::shipped_machine("dgx-h100"), "3", "5", head + head)) ==
        Errors{"g:4:15: graph 3 of g: GPU 0 is the head of two channels"});
}

TEST_CASE("what is no graph of NCCL is refused at its place") {
  CHECK(graph_errors("") == Errors{"g:1:1: the file is empty"});
  CHECK(graph_errors("\xEF\xBB\xBF \n") == Errors{"g:1:1: the file is empty"});  // but for a byte order mark
  CHECK(graph_errors("<system/>") == Errors{"g:1:1: the root element is <system>"});
  CHECK(graph_errors("<graphs version=\"1\"/>") ==
        Errors{"g:1:1: there is no graph of rings, trees or NVLS in this file"});
  CHECK(graph_errors("<graphs version=\"2\"/>").front() == "g:1:18: version of <graphs> is '2'");
  CHECK(graph_errors(graph_of(ring2, "")) == Errors{"g:2:51: nchannels is 1, and there are 0 channels"});
  CHECK(graph_errors(graph_of(ring2, "<channel><gpu dev=\"0\"/><gpu dev=\"0\"/></channel>")) ==
        Errors{"g:2:185: GPU 0 is twice in one channel"});
  CHECK(graph_errors(graph_of(ring2, "<channel/>")) == Errors{"g:2:152: a channel without GPUs"});
  CHECK(graph_errors(graph_of("id=\"7\" pattern=\"4\" nchannels=\"-1\" speedintra=\"nan\" typeintra=\"NVX\"", "")) ==
        Errors{"g:2:12: id of <graph> is '7'", "g:2:38: nchannels of <graph> is '-1'",
               "g:2:1: <graph> has no 'speedinter'", "g:2:54: speedintra of <graph> is 'nan'",
               "g:2:70: typeintra is 'NVX'", "g:2:1: <graph> has no 'typeinter'"});
  // One mistake, one error.
  std::string negative = ring2;
  negative.replace(negative.find("speedintra=\"20\""), 15, "speedintra=\"-2\"");
  CHECK(graph_errors(graph_of(negative, channel2)) == Errors{"g:2:66: speedintra of <graph> is '-2'"});
  for (const std::string speed : {"1e-300", "1e300", "0"}) {
    std::string odd = ring2;
    odd.replace(odd.find("speedintra=\"20\"") + 12, 2, speed);
    const Errors errors = graph_errors(graph_of(odd, channel2));
    REQUIRE(errors.size() == 1);
    CHECK_THAT(errors[0], Catch::Contains("g:2:66: speedintra is "));
  }
  const std::string two = graph_of(ring2, channel2);
  CHECK(graph_errors("<graphs>" + two.substr(two.find("<graph "), two.find("</graphs>") - two.find("<graph ")) +
                     two.substr(two.find("<graph "), two.find("</graphs>") - two.find("<graph ")) + "</graphs>") ==
        Errors{"g:2:1: graph 0 is there twice"});
}

TEST_CASE("a file's rings run, whatever their number, or are refused at it: never are they the search's") {
  const auto text_of = [](int id, int channels) {
    std::string attributes =
        fmt::format("id=\"{}\" pattern=\"{}\" nchannels=\"{}\" speedintra=\"1\" speedinter=\"1\" ", id,
                    id == 3   ? 5
                    : id == 0 ? 4
                              : 1,
                    channels);
    std::string all;
    for (int i = 0; i < channels; ++i)
      all += id == 3 ? "<channel><gpu dev=\"0\"/></channel>"
                     : "<channel><gpu dev=\"0\"/><gpu dev=\"1\"/><gpu dev=\"2\"/><gpu dev=\"3\"/><gpu dev=\"4\"/>"
                       "<gpu dev=\"5\"/><gpu dev=\"6\"/><gpu dev=\"7\"/></channel>";
    return graph_of(attributes + "typeintra=\"NVL\" typeinter=\"PIX\"", all);
  };
  // dgx-a100's search has 12.
  for (int channels = 1; channels <= 64; ++channels) {
    CAPTURE(channels);
    const auto read = exchange::read_nccl_graphs(text_of(0, channels), "g");
    REQUIRE(read.ok() == (channels <= 32));
    if (!read.ok()) {
      CHECK(messages_of(read.errors()) == Errors{fmt::format("g:2:38: nchannels of graph 0 is {}", channels)});
      continue;
    }
    const auto file = std::make_shared<nccl::GraphFile>(read->file);
    const auto c = connected(test::shipped_machine("dgx-a100"), 1, with_files({}, {file, nullptr}));
    REQUIRE(c.ok());
    CHECK(c->ring.channels == channels);
    CHECK(c->channels == 2 * channels);
  }
  CHECK(graph_errors(text_of(1, 33)) == Errors{"g:2:38: nchannels of graph 1 is 33"});
  // NVLS has a channel per head, run once.
  CHECK(graph_errors(text_of(3, 64)).empty());
}

TEST_CASE("a file's speeds over PCIe count up to what a slot carries") {
  std::string channel = "<channel>";
  for (int i = 0; i < 8; ++i) channel += fmt::format("<gpu dev=\"{}\"/>", i);
  channel += "</channel>";
  const auto gigabytes_per_second = [&](int speed) {
    const auto read = exchange::read_nccl_graphs(
        graph_of(fmt::format("id=\"0\" pattern=\"4\" nchannels=\"2\" speedintra=\"{}\" speedinter=\"{}\" "
                             "typeintra=\"SYS\" typeinter=\"PIX\"",
                             speed, speed),
                 channel + channel),
        "g");
    REQUIRE(read.ok());
    const auto file = std::make_shared<nccl::GraphFile>(read->file);
    const auto c = connected(test::shipped_machine("l40s-pcie"), 1, with_files({}, {file, nullptr}));
    REQUIRE(c.ok());
    const auto plan = nccl::plan(*c, CollectiveKind::all_reduce, Bytes(1 << 30), nccl::Algorithm::ring);
    REQUIRE(plan.ok());
    // Bus bandwidth of 8 ranks: 2 * 7 / 8 of the bytes.
    const Seconds time = nccl::run(*c, CollectiveKind::all_reduce, Bytes(1 << 30), *plan).time();
    return 1.75 * (1 << 30) / time.count() / 1e9;
  };
  // 8 of 10 GB/s that 2 channels of 5 book; 25.2 of a slot's 31.5 (generation 4, x16).
  CHECK(gigabytes_per_second(5) == Approx(8).epsilon(0.02));
  CHECK(gigabytes_per_second(300) == Approx(25.2).epsilon(0.02));
  CHECK(gigabytes_per_second(3000) == gigabytes_per_second(300));
}

TEST_CASE("a graph of a file has one of NCCL's patterns for it, and keeps both numbers") {
  // Trees 1 to 3, a ring 4, NVLS 5, CollNet direct 6; with one GPU per node both of CollNet are trees.
  const std::vector<std::set<int>> patterns{{4}, {1, 2, 3}, {3}, {5}, {3, 6}};
  for (int id = 0; id <= 4; ++id)
    for (int pattern = 1; pattern <= 6; ++pattern) {
      CAPTURE(id, pattern);
      const auto read = exchange::read_nccl_graphs(
          graph_of(fmt::format("id=\"{}\" pattern=\"{}\" nchannels=\"1\" speedintra=\"1\" speedinter=\"1\" "
                               "typeintra=\"NVL\" typeinter=\"PIX\"",
                               id, pattern),
                   "<channel><gpu dev=\"0\"/></channel>"),
          "g");
      REQUIRE(read.ok() == patterns[static_cast<std::size_t>(id)].contains(pattern));
      if (!read.ok()) {
        CHECK(messages_of(read.errors()) == Errors{fmt::format("g:2:24: graph {} has pattern {}", id, pattern)});
        continue;
      }
      REQUIRE(read->file.graphs.size() == 1);
      CHECK(static_cast<int>(read->file.graphs[0].id) == id);
      CHECK(static_cast<int>(read->file.graphs[0].graph.pattern) == pattern);
    }
}

TEST_CASE("a graph file cut off anywhere is an error with a place") {
  const std::string whole = test::data_file("azure-nc96v4-a100pcie-graph.xml");
  for (std::size_t length = 0; length < whole.find_last_of('>'); ++length) {
    const auto read = exchange::read_nccl_graphs(whole.substr(0, length), "g");
    INFO(length);
    REQUIRE_FALSE(read.ok());
    CHECK(read.errors().front().where.line > 0);
  }
}

TEST_CASE("the first rule that matches decides; one whose choice cannot be run is passed over") {
  const nccl::Environment environment = with_tuner(
      "# sizes of one node\n"
      "allreduce,0,1048576,collnet_direct,simple,-1,-1,-1\n"
      "allreduce,0,1048576,tree,ll128,4,-1,-1\n"
      "allreduce,0,1048576,ring,ll,-1,-1,-1\n"
      "allgather,0,4294967295,ring,simple,2,-1,-1,-1,-1\n"
      "allreduce,1048577,4294967295,ring,ll128,-1,4,32\n"
      "allreduce,1048577,4294967295,ring,simple,-1,-1,-1,-1,1\n");
  const nccl::Plan small = planned(environment, CollectiveKind::all_reduce, 1_MiB);
  CHECK(small.tuner_line == 3);
  CHECK(small.algorithm == nccl::Algorithm::tree);
  CHECK(small.protocol == nccl::Protocol::ll128);
  CHECK(small.channels == 4);
  CHECK(planned(environment, CollectiveKind::all_gather, 64_MiB).channels == 2);
  // Another number of nodes and registered buffers do not match: NCCL's own choice.
  const nccl::Plan large = planned(environment, CollectiveKind::all_reduce, 64_MiB);
  CHECK(large.tuner_line == 0);
  CHECK(large.algorithm == planned({}, CollectiveKind::all_reduce, 64_MiB).algorithm);
  CHECK(planned(environment, CollectiveKind::all_reduce, 64_MiB, 4).tuner_line == 6);
  CHECK(planned(environment, CollectiveKind::broadcast, 1_MiB).tuner_line == 0);
}

TEST_CASE("a rule changes the choice and nothing else: naming NCCL's own choice is NCCL's own forecast") {
  const auto free = connected(test::shipped_machine("dgx-h100"), 1, {});
  REQUIRE(free.ok());
  for (const Bytes size : {1_MiB, 64_MiB}) {
    const auto own = nccl::plan(*free, CollectiveKind::all_reduce, size);
    REQUIRE(own.ok());
    std::string algorithm(to_string(own->algorithm)), protocol = own->protocol == nccl::Protocol::ll      ? "ll"
                                                                 : own->protocol == nccl::Protocol::ll128 ? "ll128"
                                                                                                          : "simple";
    const auto environment = with_tuner("allreduce,0,99999999999," + algorithm + "," + protocol + ",-1,-1,-1\n");
    const auto ruled = connected(test::shipped_machine("dgx-h100"), 1, environment);
    const auto plan = nccl::plan(*ruled, CollectiveKind::all_reduce, size);
    REQUIRE(plan.ok());
    CHECK(plan->tuner_line == 1);
    CHECK(nccl::run(*ruled, CollectiveKind::all_reduce, size, *plan).time() ==
          nccl::run(*free, CollectiveKind::all_reduce, size, *own).time());
  }
}

TEST_CASE("what the example tuner would pass over in silence is an error at its place") {
  CHECK(tuner_errors("") == Errors{"t:1:1: the file is empty"});
  CHECK(tuner_errors("# nothing\n") == Errors{"t:1:1: there is no rule in this file"});
  CHECK(tuner_errors("allreduce,0,1,ring\n") == Errors{"t:1:1: 4 fields"});
  CHECK(tuner_errors("allreduce,0,1,ring,simple,1,1,1,1,1,1\n") == Errors{"t:1:1: 11 fields"});
  CHECK(tuner_errors("\nallreduse, -1,nan,rings,simpel,0,many,-2,1,2\n") ==
        Errors{"t:2:1: the collective is 'allreduse'", "t:2:12: min_bytes is '-1'", "t:2:15: max_bytes is 'nan'",
               "t:2:19: the algorithm is 'rings'", "t:2:25: the protocol is 'simpel'", "t:2:32: channels is '0'",
               "t:2:34: nNodes is 'many'", "t:2:39: nRanks is '-2'", "t:2:44: regBuff is '2'"});
  CHECK(tuner_errors("allreduce,9,1,ring,simple,1,1,1\n") == Errors{"t:1:13: max_bytes is 1, min_bytes 9"});
  CHECK(tuner_errors("allreduce,0,1," + std::string(300, 'r')) == Errors{"t:1:256: the line is too long"});
  CHECK(tuner_errors(std::string("a\0b", 3)) == Errors{"t:1:2: control character 0x00 at offset 1 in a text file"});
  // strtoull makes the largest number of -1.
  const auto open = exchange::read_tuner_table("allreduce,0,-1,ring,simple,1,1,1\n", "t");
  REQUIRE(open.ok());
  CHECK(open->rules.front().most == Bytes(std::numeric_limits<std::int64_t>::max()));
  CHECK(tuner_errors("allreduce,0,-2,ring,simple,1,1,1\n") == Errors{"t:1:13: max_bytes is '-2'"});
  // A spreadsheet's head and CRLF are fine.
  CHECK(tuner_errors("collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\r\nreduce,0,1,ring,"
                     "ll,-1,-1,-1\r\n")
            .empty());
}
