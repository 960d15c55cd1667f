// MSCCL's XML: read, refused with places, the same after being written.
#include "collcast/exchange/msccl_file.hpp"

#include <catch2/catch.hpp>

#include "../support/msccl_samples.hpp"
#include "collcast/base/text.hpp"
#include "samples.hpp"

using namespace collcast;
using test::messages_of;
using Errors = std::vector<std::string>;

namespace {

Errors errors(const std::string& text) { return messages_of(exchange::read_msccl(text, "a").errors()); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

const std::string chain = test::to_xml(test::msccl_chain_broadcast(2, 1));

}  // namespace

TEST_CASE("what is written is read back, and proved") {
  for (const msccl::Algorithm& a : {test::msccl_ring_all_gather(5), test::msccl_ring_all_reduce(4, 2),
                                    test::msccl_chain_broadcast(4, 3), test::msccl_direct_alltoall(3)}) {
    const auto read = exchange::read_msccl(test::to_xml(a), "a");
    INFO(to_text(read.errors()));
    REQUIRE(read.ok());
    CHECK(messages_of(read->warnings).empty());
    CHECK(test::to_xml(read->algorithm) == test::to_xml(a));
    CHECK(prove(read->algorithm, Bytes(1 << 20)).ok());
  }
}

// Some 28 thousand steps: with a place that is counted from the start of the file for each this takes minutes.
TEST_CASE("the place of the last step of a large file is right") {
  const int ranks = 120;
  const std::string text = test::to_xml(test::msccl_ring_all_reduce(ranks));
  const auto read = exchange::read_msccl(text, "a");
  REQUIRE(read.ok());
  REQUIRE(read->algorithm.gpus.size() == static_cast<std::size_t>(ranks));
  const msccl::Step& last = read->algorithm.gpus.back().blocks.back().steps.back();
  const Location there = place_at(text, text.rfind("<step"), "a");
  CHECK(last.where.line == there.line);
  CHECK(last.where.column == there.column);
}

TEST_CASE("ranks may stand in any order; what is not read is counted") {
  const std::string text =
      "<algo name=\"x\" nchannels=\"1\" nchunksperloop=\"1\" ngpus=\"2\" coll=\"broadcast\" redop=\"nop\" new=\"1\" "
      "minBytes=\"8\">\n"
      "<gpu id=\"1\" i_chunks=\"0\" o_chunks=\"1\" s_chunks=\"0\"><tb id=\"0\" send=\"-1\" recv=\"0\" chan=\"0\">"
      "<step s=\"0\" type=\"r\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" depid=\"-1\" deps=\"-1\" "
      "hasdep=\"0\"/></tb></gpu>\n"
      "<gpu id=\"0\" i_chunks=\"1\" o_chunks=\"1\" s_chunks=\"0\"><tb id=\"0\" send=\"1\" recv=\"-1\" chan=\"0\">"
      "<step s=\"0\" type=\"cpy\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" depid=\"-1\" "
      "deps=\"-1\" hasdep=\"0\"/>"
      "<step s=\"1\" type=\"s\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"0\" cnt=\"1\" depid=\"-1\" deps=\"-1\" "
      "hasdep=\"0\"/></tb></gpu>\n"
      "</algo>\n";
  const auto read = exchange::read_msccl(text, "a");
  INFO(to_text(read.errors()));
  REQUIRE(read.ok());
  CHECK(messages_of(read->warnings) == Errors{"a:1:93: attribute 'new' of <algo> is not read"});
  CHECK(read->algorithm.least == Bytes(8));
  CHECK(read->algorithm.gpus[0].blocks[0].send == 1);
  CHECK(prove(read->algorithm, Bytes(8)).ok());
}

TEST_CASE("what cannot be is refused, all at once, with its place") {
  CHECK(errors("").front() == "a:1:1: the file is empty");
  CHECK(errors("not XML").front() == "a:1:1: this is not XML");
  CHECK(errors("\x7f\x45\x4c\x46\x80").size() == 1);
  CHECK(errors(chain.substr(0, chain.size() / 2)).size() == 1);
  CHECK(errors("<system/>").front() == "a:1:1: the root element is <system>");
  CHECK(errors("<!DOCTYPE algo [<!ENTITY a \"b\">]>\n" + chain).front() ==
        "a:1:11: a DOCTYPE is not read: no entity is expanded");
  CHECK(errors("<algo/>").size() == 6);
  CHECK(errors(replaced(chain, "coll=\"broadcast\"", "coll=\"broadcats\"")) == Errors{"a:1:84: coll is 'broadcats'"});
  CHECK(errors(replaced(chain, "ngpus=\"2\"", "ngpus=\"3\"")) == Errors{"a:1:1: 1 of 3 GPUs are missing: 2"});
  CHECK(errors(replaced(chain, "ngpus=\"2\"", "ngpus=\"1\"")).front() == "a:7:12: gpu 1 of 1");
  CHECK(errors(replaced(chain, "gpu id=\"1\"", "gpu id=\"0\"")).front() == "a:7:12: gpu 0 is there twice");
  CHECK(errors(replaced(chain, "nchannels=\"1\"", "nchannels=\"-1\"")).size() == 1);
  CHECK(errors(replaced(chain, "proto=\"Simple\"", "proto=\"FOO\"")).front().ends_with("proto is 'FOO'"));
  const auto with = [](const std::string& attributes) {
    return replaced(chain, "<algo ", "<algo " + attributes + " ");
  };
  CHECK(errors(with("minBytes=\"100\" maxBytes=\"50\"")) == Errors{"a:1:32: maxBytes is 50, minBytes 100"});
  for (const char* fine : {"minBytes=\"50\" maxBytes=\"50\"", "minBytes=\"50\" maxBytes=\"0\"", "maxBytes=\"50\""})
    CHECK(errors(with(fine)).empty());
  CHECK(errors(replaced(chain, "type=\"s\"", "type=\"x\"")) == Errors{"a:4:25: type is 'x'"});
  CHECK(errors(replaced(chain, "cnt=\"1\"", "cnt=\"0\"")).size() == 1);
  CHECK(errors(replaced(chain, "cnt=\"1\"", "cnt=\"1e9\"")).size() == 1);
  CHECK(errors(replaced(chain, "srcoff=\"0\"", "srcoff=\"NaN\"")).size() == 1);
  CHECK(errors(replaced(chain, "srcbuf=\"o\"", "srcbuf=\"q\"")) == Errors{"a:4:36: srcbuf is 'q'"});
  CHECK(errors(replaced(chain, "<tb id=\"0\"", "<tb id=\"7\"")) ==
        Errors{"a:3:13: id is 7 where thread block 0 of the rank is due"});
  CHECK(errors(replaced(chain, "<step s=\"0\"", "<step s=\"2\"")).front() ==
        "a:4:16: s is 2 where step 0 of the thread block is due");
  CHECK(errors(replaced(chain, "depid=\"-1\"", "depid=\"0\"")).front().find("deps is -1 and depid is not") !=
        std::string::npos);
}
