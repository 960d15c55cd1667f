#include "msccl_samples.hpp"

#include <utility>

namespace collcast::test {

namespace {

using msccl::Buffer;
using msccl::Place;
using msccl::Step;
using msccl::StepKind;
using msccl::ThreadBlock;

Step step(StepKind kind, Place source, Place destination) {
  Step out;
  out.kind = kind;
  out.source = source;
  out.destination = destination;
  out.count = 1;
  return out;
}

ThreadBlock block(int send, int receive, int channel = 0) {
  ThreadBlock out;
  out.send = send;
  out.receive = receive;
  out.channel = channel;
  return out;
}

msccl::Algorithm algorithm(std::string name, CollectiveKind kind, int ranks, int chunks) {
  msccl::Algorithm out;
  out.name = std::move(name);
  out.kind = kind;
  out.chunks = chunks;
  out.gpus.resize(static_cast<std::size_t>(ranks));
  return out;
}

int around(int rank, int ranks) { return (rank % ranks + ranks) % ranks; }

const char* word(Buffer buffer) { return buffer == Buffer::input ? "i" : buffer == Buffer::output ? "o" : "s"; }

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + value + '"';
}
std::string attribute(const char* name, int value) { return attribute(name, std::to_string(value)); }

}  // namespace

msccl::Algorithm msccl_ring_all_gather(int ranks) {
  using enum StepKind;
  msccl::Algorithm out = algorithm("ring", CollectiveKind::all_gather, ranks, ranks);
  for (int r = 0; r < ranks; ++r) {
    ThreadBlock tb = block(around(r + 1, ranks), around(r - 1, ranks));
    const auto at = [&](int chunk) { return Place{Buffer::output, around(chunk, ranks)}; };
    tb.steps.push_back(step(copy, {Buffer::input, 0}, at(r)));
    tb.steps.push_back(step(send, {Buffer::input, 0}, at(r)));
    for (int t = 1; t < ranks - 1; ++t) tb.steps.push_back(step(receive_copy_send, at(r - t), at(r - t)));
    tb.steps.push_back(step(receive, at(r + 1), at(r + 1)));
    out.gpus[static_cast<std::size_t>(r)] = {1, ranks, 0, {std::move(tb)}, {}};
  }
  return out;
}

msccl::Algorithm msccl_ring_all_reduce(int ranks, int channels) {
  using enum StepKind;
  msccl::Algorithm out = algorithm("ring", CollectiveKind::all_reduce, ranks, ranks * channels);
  out.in_place = true;
  out.channels = channels;
  for (int r = 0; r < ranks; ++r) {
    msccl::Gpu& gpu = out.gpus[static_cast<std::size_t>(r)];
    gpu.input = gpu.output = ranks * channels;
    for (int channel = 0; channel < channels; ++channel) {
      ThreadBlock tb = block(around(r + 1, ranks), around(r - 1, ranks), channel);
      const auto add = [&](StepKind kind, int chunk) {
        const Place place{Buffer::input, around(chunk, ranks) * channels + channel};
        tb.steps.push_back(step(kind, place, place));
      };
      add(send, r);
      for (int t = 1; t < ranks - 1; ++t) add(receive_reduce_send, r - t);
      add(receive_reduce_copy_send, r + 1);
      for (int t = 0; t < ranks - 2; ++t) add(receive_copy_send, r - t);
      add(receive, r + 2);
      gpu.blocks.push_back(std::move(tb));
    }
  }
  return out;
}

msccl::Algorithm msccl_chain_broadcast(int ranks, int chunks) {
  using enum StepKind;
  msccl::Algorithm out = algorithm("chain", CollectiveKind::broadcast, ranks, chunks);
  out.in_place = true;
  for (int r = 0; r < ranks; ++r) {
    ThreadBlock in = block(-1, r - 1), on = block(r + 1, -1);
    for (int c = 0; c < chunks; ++c) {
      const Place place{Buffer::output, c};
      in.steps.push_back(step(receive, place, place));
      on.steps.push_back(step(send, place, place));
      if (r > 0) on.steps.back().after_block = 0, on.steps.back().after_step = c;
    }
    msccl::Gpu& gpu = out.gpus[static_cast<std::size_t>(r)];
    gpu.input = gpu.output = chunks;
    if (r > 0) gpu.blocks.push_back(std::move(in));
    if (r < ranks - 1) gpu.blocks.push_back(std::move(on));
  }
  return out;
}

msccl::Algorithm msccl_direct_alltoall(int ranks) {
  using enum StepKind;
  msccl::Algorithm out = algorithm("direct", CollectiveKind::alltoall, ranks, ranks);
  for (int r = 0; r < ranks; ++r) {
    msccl::Gpu& gpu = out.gpus[static_cast<std::size_t>(r)];
    gpu.input = gpu.output = ranks;
    ThreadBlock own;
    own.steps.push_back(step(copy, {Buffer::input, r}, {Buffer::output, r}));
    gpu.blocks.push_back(std::move(own));
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer == r) continue;
      ThreadBlock tb = block(peer, peer);
      tb.steps.push_back(step(send, {Buffer::input, peer}, {Buffer::output, r}));
      tb.steps.push_back(step(receive, {Buffer::input, peer}, {Buffer::output, peer}));
      gpu.blocks.push_back(std::move(tb));
    }
  }
  return out;
}

std::string to_xml(const msccl::Algorithm& a) {
  std::string kind(to_string(a.kind));
  if (kind == "all_reduce" || kind == "all_gather") kind.erase(3, 1);
  std::string out = "<algo" + attribute("name", a.name) + attribute("proto", std::string("Simple")) +
                    attribute("nchannels", a.channels) + attribute("nchunksperloop", a.chunks) +
                    attribute("ngpus", static_cast<int>(a.gpus.size())) + attribute("coll", kind) +
                    attribute("inplace", a.in_place ? 1 : 0) + ">\n";
  for (std::size_t g = 0; g < a.gpus.size(); ++g) {
    const msccl::Gpu& gpu = a.gpus[g];
    out += "  <gpu" + attribute("id", static_cast<int>(g)) + attribute("i_chunks", gpu.input) +
           attribute("o_chunks", gpu.output) + attribute("s_chunks", gpu.scratch) + ">\n";
    for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
      const ThreadBlock& tb = gpu.blocks[b];
      out += "    <tb" + attribute("id", static_cast<int>(b)) + attribute("send", tb.send) +
             attribute("recv", tb.receive) + attribute("chan", tb.channel) + ">\n";
      for (std::size_t s = 0; s < tb.steps.size(); ++s) {
        const Step& one = tb.steps[s];
        bool awaited = false;
        for (const ThreadBlock& other : gpu.blocks)
          for (const Step& later : other.steps)
            awaited = awaited || (later.after_block == static_cast<int>(b) && later.after_step == static_cast<int>(s));
        out += "      <step" + attribute("s", static_cast<int>(s)) +
               attribute("type", std::string(to_string(one.kind))) +
               attribute("srcbuf", std::string(word(one.source.buffer))) + attribute("srcoff", one.source.offset) +
               attribute("dstbuf", std::string(word(one.destination.buffer))) +
               attribute("dstoff", one.destination.offset) + attribute("cnt", one.count) +
               attribute("depid", one.after_block) + attribute("deps", one.after_step) +
               attribute("hasdep", awaited ? 1 : 0) + "/>\n";
      }
      out += "    </tb>\n";
    }
    out += "  </gpu>\n";
  }
  return out + "</algo>\n";
}

}  // namespace collcast::test
