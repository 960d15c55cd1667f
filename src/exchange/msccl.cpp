// <algo> of <gpu> of <tb> of <step> [msccl-tools, msccl/language/ir.py; msccl, src/misc/msccl/msccl_parser.cc].
//
// Left out: nthreads and the protocol, which the ideal library does not have; outofplace, redop and what else newer
// writers add is counted and warned about.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "collcast/base/text.hpp"
#include "collcast/exchange/msccl_file.hpp"
#include "exchange/xml.hpp"

namespace collcast::exchange {

namespace {

constexpr int most_ranks = 4096;
constexpr int most_chunks = 1 << 16;
constexpr int most_channels = 64;

using msccl::Buffer;
using msccl::StepKind;

/// Both spellings are about: msccl-tools has reduce_scatter, older files reducescatter.
const std::map<std::string, CollectiveKind>& kinds() {
  using enum CollectiveKind;
  static const std::map<std::string, CollectiveKind> out{{"allgather", all_gather},
                                                         {"all_gather", all_gather},
                                                         {"allreduce", all_reduce},
                                                         {"all_reduce", all_reduce},
                                                         {"alltoall", alltoall},
                                                         {"broadcast", broadcast},
                                                         {"gather", gather},
                                                         {"reduce", reduce},
                                                         {"reduce_scatter", reduce_scatter},
                                                         {"reducescatter", reduce_scatter},
                                                         {"scatter", scatter}};
  return out;
}

std::vector<std::string> kind_words() {
  std::vector<std::string> out;
  for (const auto& [word, kind] : kinds()) out.push_back(word);
  return out;
}

Buffer buffer_of(Element& e, const char* attribute) {
  const std::string word = e.required_text(attribute);
  if (word == "o") return Buffer::output;
  if (word == "s") return Buffer::scratch;
  if (word != "i" && !word.empty())
    e.error(attribute, fmt::format("{} is '{}'", attribute, shown(word)),
            "expected i (input), o (output) or s (scratch)");
  return Buffer::input;
}

int number_of(Element& e, const char* attribute, int least, int most) {
  return static_cast<int>(e.required_integer(attribute, least, most).value_or(least));
}

msccl::Step step_of(XmlFile& xml, Element& e, std::size_t place) {
  msccl::Step out;
  out.where = e.place();
  const char* number = e.has("s") || !e.has("step") ? "s" : "step";
  if (const auto said = e.required_integer(number, 0); said && static_cast<std::size_t>(*said) != place)
    e.error(number, fmt::format("{} is {} where step {} of the thread block is due", number, *said, place),
            fmt::format("expected {}: steps count from 0, in order", place));
  const std::string word = e.required_text("type");
  const auto kind = msccl::parse_step(word);
  if (!kind && !word.empty())
    e.error("type", fmt::format("type is '{}'", shown(word)), expected_one_of(word, msccl::step_words()));
  out.kind = kind.value_or(StepKind::nop);
  if (out.kind == StepKind::nop) {
    e.ignore({"srcbuf", "srcoff", "dstbuf", "dstoff", "cnt"});
  } else {
    out.source = {buffer_of(e, "srcbuf"), number_of(e, "srcoff", -1, most_chunks)};
    out.destination = {buffer_of(e, "dstbuf"), number_of(e, "dstoff", -1, most_chunks)};
    out.count = number_of(e, "cnt", 1, most_chunks);
  }
  out.after_block = number_of(e, "depid", -1, std::numeric_limits<std::int32_t>::max());
  out.after_step = number_of(e, "deps", -1, std::numeric_limits<std::int32_t>::max());
  if (out.after_block >= 0 && out.after_step < 0)
    xml.error(e.place_of("deps"), "deps is -1 and depid is not", "expected the step of that thread block");
  e.ignore({"hasdep"});  // who is waited for is known from those who wait
  e.finish();
  return out;
}

msccl::ThreadBlock block_of(XmlFile& xml, Element& e, std::size_t place) {
  msccl::ThreadBlock out;
  out.where = e.place();
  if (const auto id = e.required_integer("id", 0); id && static_cast<std::size_t>(*id) != place)
    e.error("id", fmt::format("id is {} where thread block {} of the rank is due", *id, place),
            fmt::format("expected {}: ids count from 0", place));
  out.send = number_of(e, "send", -1, most_ranks);
  out.receive = number_of(e, "recv", -1, most_ranks);
  out.channel = number_of(e, "chan", 0, most_channels - 1);
  e.finish();
  for (Element& child : e.children({"step"})) out.steps.push_back(step_of(xml, child, out.steps.size()));
  return out;
}

msccl::Gpu gpu_of(XmlFile& xml, Element& e) {
  msccl::Gpu out;
  out.where = e.place();
  out.input = number_of(e, "i_chunks", 0, most_chunks);
  out.output = number_of(e, "o_chunks", 0, most_chunks);
  out.scratch = number_of(e, "s_chunks", 0, most_chunks);
  e.finish();
  for (Element& child : e.children({"tb"})) out.blocks.push_back(block_of(xml, child, out.blocks.size()));
  return out;
}

/// Ranks in any order, each once.
void read_gpus(XmlFile& xml, Element& root, int ranks, msccl::Algorithm& out) {
  std::vector<std::optional<msccl::Gpu>> gpus(static_cast<std::size_t>(ranks));
  for (Element& child : root.children({"gpu"})) {
    const auto id = child.required_integer("id", 0, most_ranks);
    msccl::Gpu gpu = gpu_of(xml, child);
    if (!id) continue;
    if (*id >= ranks)
      child.error("id", fmt::format("gpu {} of {}", *id, ranks),
                  fmt::format("expected ids from 0 to ngpus - 1 = {}", ranks - 1));
    else if (auto& there = gpus[static_cast<std::size_t>(*id)])
      child.error("id", fmt::format("gpu {} is there twice", *id),
                  fmt::format("the first is at {}", to_text(there->where)));
    else
      there = std::move(gpu);
  }
  std::vector<int> missing;
  for (int r = 0; r < ranks; ++r) {
    auto& gpu = gpus[static_cast<std::size_t>(r)];
    if (!gpu) missing.push_back(r);
    out.gpus.push_back(gpu ? std::move(*gpu) : msccl::Gpu{});
  }
  const std::size_t count = missing.size();
  if (count > 8) missing.resize(8);
  if (count > 0)
    xml.error(
        root.place(),
        fmt::format("{} of {} GPUs are missing: {}{}", count, ranks, fmt::join(missing, ", "), count > 8 ? " …" : ""),
        "expected a <gpu> for each");
}

std::optional<Bytes> size_of(Element& e, const char* attribute) {
  const auto value = e.integer(attribute, 0, std::numeric_limits<std::int64_t>::max());
  return value ? std::optional(Bytes(*value)) : std::nullopt;
}

}  // namespace

Result<ReadMsccl> read_msccl(std::string_view text, const std::string& file) {
  auto parsed = XmlFile::parse(text, file, "algo", "an algorithm of MSCCL");
  if (!parsed) return parsed.errors();
  XmlFile& xml = **parsed;
  Element root = xml.root();
  ReadMsccl out;
  msccl::Algorithm& algorithm = out.algorithm;
  algorithm.where = root.place();
  algorithm.name = shown(root.required_text("name"));
  algorithm.protocol = shown(root.text("proto"));
  const std::vector<std::string> protocols{"Simple", "LL", "LL128"};
  if (!algorithm.protocol.empty() && std::ranges::count(protocols, algorithm.protocol) == 0)
    root.error("proto", fmt::format("proto is '{}'", algorithm.protocol),
               expected_one_of(algorithm.protocol, protocols));
  const std::string coll = root.required_text("coll");
  const auto kind = kinds().find(coll);
  if (kind != kinds().end())
    algorithm.kind = kind->second;
  else if (!coll.empty())
    root.error("coll", fmt::format("coll is '{}'", shown(coll)), expected_one_of(coll, kind_words()));
  algorithm.chunks = number_of(root, "nchunksperloop", 1, most_chunks);
  algorithm.channels = number_of(root, "nchannels", 1, most_channels);
  const int ranks = number_of(root, "ngpus", 1, most_ranks);
  algorithm.in_place = root.integer("inplace", 0, 1).value_or(0) == 1;
  algorithm.least = size_of(root, "minBytes");
  algorithm.most = size_of(root, "maxBytes");
  const bool no_limit = !algorithm.most || *algorithm.most == Bytes(0);
  if (algorithm.least && !no_limit && *algorithm.most < *algorithm.least)
    root.error("maxBytes",
               fmt::format("maxBytes is {}, minBytes {}", algorithm.most->value(), algorithm.least->value()),
               "expected maxBytes no less than minBytes");
  root.ignore({"nthreads", "outofplace", "redop"});
  root.finish();
  read_gpus(xml, root, ranks, algorithm);
  if (!xml.errors().empty()) return xml.errors();
  for (const msccl::Gpu& gpu : algorithm.gpus)
    for (const msccl::ThreadBlock& block : gpu.blocks)
      if (block.channel >= algorithm.channels)
        xml.warn("a channel beyond nchannels", block.where, fmt::format("nchannels is {}", algorithm.channels));
  out.warnings = xml.warnings();
  return out;
}

}  // namespace collcast::exchange
