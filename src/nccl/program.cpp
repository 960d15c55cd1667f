#include "collcast/nccl/program.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "collcast/collective/in_order_tree.hpp"
#include "collcast/nccl/run.hpp"
#include "nccl/channel_machine.hpp"
#include "nccl/channel_orders.hpp"
#include "nccl/collnet_program.hpp"
#include "nccl/collnet_tuning.hpp"
#include "nccl/pat_shape.hpp"
#include "nccl/ring_loop.hpp"
#include "nccl/switch_program.hpp"
#include "nccl/tree_shape.hpp"

namespace collcast::nccl {

namespace {

/// A lane per channel, of the ideal library's ring or chain in the search's orders. Data go along the ring, those of a
/// reduce too, which end at its root [src/device/reduce.h]; the ideal library's go from its chain's end to the first.
Result<Pattern> channels_around(const Question& q, int chunks) {
  Result<Pattern> made = make_pattern({q.kind, q.group, q.size, q.root, {}}, {"ring", chunks, q.plan.channels, {}});
  if (!made) return made;
  Pattern pattern = std::move(made).value();
  const ChannelOrders orders(q.fabric, q.group);
  int channel = 0;
  for (Lane& lane : pattern.lanes) {
    lane.order = orders.ring(q.c.ring, channel);
    if (is_rooted(q.kind))
      std::rotate(lane.order.begin(), std::find(lane.order.begin(), lane.order.end(), q.root), lane.order.end());
    if (q.kind == CollectiveKind::reduce) std::reverse(lane.order.begin() + 1, lane.order.end());
    lane.route_lane = channel++;
  }
  return pattern;
}

/// What a ring's channel sends to other nodes by, where no NIC says it for all of its channels; 0: as inside.
double lines_between(const Question& q, const Limits& l, double drive, double chunk) {
  if (!q.c.nics.uneven || q.plan.protocol != Protocol::ll) return 0;
  return std::min(drive, chunk / through_network(l, chunk));
}

/// A proxy looks through a chunk's lines of LL when all are there, as the closed form's walk has it: nothing hides that
/// the time of threads and links comes beside the proxy's but what holds a loop and takes longer than the walk;
/// seconds of a hop between nodes, the mean of all loops. Of a NIC's own time nothing comes beside it, as the channels
/// that share one pass it at unlike times. Over unlike nodes lines are each channel's own, beside which the links' time
/// is the simulation's matter.
double before_lines(const Question& q, const Limits& l, const Hops& hops, const Loops& loops, double drive) {
  if (hops.out == 0) return 0;
  const auto of_chunk = [&](double chunk) {
    const double lines = through_network(l, chunk);
    if (q.c.nics.uneven) return std::min(chunk / drive, lines);
    const double links = ring_links(l, hops.all, chunk, q.plan).seconds / hops.all;
    Limits no_nics = l;
    no_nics.nics = unlimited;
    const double within = ring_links(no_nics, hops.all, chunk, q.plan).seconds / hops.all;
    const double inside = (hops.all - hops.out) * (l.hop - within_hop(l, chunk) + links);
    const double walk = inside + hops.out * (network_hop(l, chunk) + links + lines);
    const double hidden =
        std::max(message_gaps(q.c, q.plan, hops.all, chunk), ring_load(l, hops.all, chunk, q.plan).seconds);
    const double seen = std::max(0.0, walk - hidden);
    return std::min({within, lines, seen / hops.out});
  };
  if (q.c.nics.uneven) return of_chunk(loops.full > 0 ? loops.most : loops.rest);
  const double last = loops.rest > 0 ? 1 : 0;
  return (loops.full * of_chunk(loops.most) + last * of_chunk(loops.rest)) / (loops.full + last);
}

/// Every loop a phase of chunks for each position, in two slices under Simple.
Result<Program> ring_program(const Question& q) {
  const Limits l = ring_limits(q.c, q.plan);
  const Hops hops = ring_hops(q.c, q.kind);
  const Loops loops = loops_of(q.c, q.size, q.plan);
  const int slices = ring_slices(q.plan.protocol);
  Result<Pattern> made = channels_around(q, slices);
  if (!made) return made.errors();
  Pattern pattern = std::move(made).value();
  // Chunks are counted in millionths of the longest.
  constexpr double parts = 1 << 20;
  const double longest = loops.full > 0 ? loops.most : loops.rest;
  // A message's post takes as long whatever is in it: where posts hold the last loop, it has as many parts of the
  // longest as its time has.
  const auto held = [&](double chunk) {
    return std::max(message_gaps(q.c, q.plan, hops.all, chunk), ring_load(l, hops.all, chunk, q.plan).seconds);
  };
  const double share = std::max(loops.rest / longest, held(loops.rest) / held(longest));
  const int last = loops.rest > 0 ? static_cast<int>(std::lround(share * parts)) : 0;
  for (Lane& lane : pattern.lanes) {
    Phase loop = lane.phases.front();
    loop.width = static_cast<int>(parts);
    lane.block = Volume(longest / parts);
    lane.phases.assign(static_cast<std::size_t>(loops.full), loop);
    loop.width = last;
    if (last > 0) lane.phases.push_back(loop);
  }
  Limits reached = l;
  reached.gpu = ring_gpu(l, hops.all, q.plan);
  Rates rates = rates_of(q, reached, longest);
  rates.drive = ring_channel(l, hops.all);
  rates.between = lines_between(q, l, rates.drive, longest);
  rates.beyond += before_lines(q, l, hops, loops, rates.drive);
  // What Simple's hop has in proportion to a chunk is its way through NICs, too, beyond the slice that a walk waits
  // for.
  if (q.c.nodes > 1 && !nodes_alike(q.c) && slices > 1)
    rates.beyond -=
        std::min((1 - 1.0 / slices) * channels_of_a_nic(q.c, q.plan) * longest / rates.nic, hop_of_chunk(l, longest));
  const double gaps = message_gaps(q.c, q.plan, hops.all, longest);
  if (gaps > 0) {
    // Messages wait for each other's posts; the way of one is no longer for it. Over uneven NICs it passes its
    // channel's own lines meanwhile, and posts that take less have not made it longer.
    const double each = channels_of_a_nic(q.c, q.plan) * longest;
    const double lines = rates.between > 0 ? longest / rates.between : 0, before = std::max(each / rates.nic, lines);
    rates.nic = std::min(rates.nic, hops.all * each / gaps);
    rates.beyond -= std::max(0.0, each / rates.nic - before) / slices;
  }
  const RingLoop loop = ring_loop(q.c, q.kind, q.plan, l, longest, longest);
  const double first = until_first_round(q.c, q.kind, q.plan, l, loop).count();
  return assembled(q, rates, std::move(pattern), l.start + first);
}

/// Calls one after the other, until the chain is full for as long as it took to fill: what another one adds.
Result<Program> chain_program(const Question& q) {
  constexpr int enough_chunks = 64;
  const Chunks cut = chain_chunks(q.c, q.size, q.plan);
  const Limits l = chain_limits(q.c, q.plan, cut);
  const int chunks = static_cast<int>(cut.count);
  const int calls = (std::min(q.c.ranks, enough_chunks) + chunks - 1) / chunks;
  const auto of_calls = [&](int n) -> Result<Pattern> {
    Result<Pattern> made = channels_around(q, n * chunks);
    if (!made) return made;
    Pattern pattern = std::move(made).value();
    for (Lane& lane : pattern.lanes) lane.block = Volume(n * cut.count * cut.chunk);
    return pattern;
  };
  Result<Pattern> filled = of_calls(calls), twice = of_calls(2 * calls);
  if (!filled || !twice) return filled ? twice.errors() : filled.errors();
  Rates rates = rates_of(q, l, cut.chunk);
  rates.drive = l.channel;
  rates.between = lines_between(q, l, rates.drive, cut.chunk);
  Result<Program> out = assembled(q, rates, std::move(twice).value(), l.start + chain_latency(q.c, l, q.plan, cut));
  if (!out) return out;
  Program program = std::move(out).value();
  program.calls = calls;
  program.less = std::move(filled).value();
  return program;
}

/// The smallest number modulo which the `numbers` of the nodes that any one sends to, its parent and children in either
/// tree over them, are all different.
int ways_between(const std::vector<int>& numbers) {
  const int nodes = static_cast<int>(numbers.size());
  std::vector<int> other;
  for (int x = 0; x < nodes; ++x) other.push_back(numbers[static_cast<std::size_t>(in_second_tree(nodes, x))]);
  const auto meets = [](const std::vector<int>& order, int ways) {
    const int m = static_cast<int>(order.size());
    for (int x = 0; x < m; ++x) {
      std::vector<int> peers;
      if (x > 0) peers.push_back(InOrderTree::parent(m, x));
      for (int j = 0; j < InOrderTree::children(m, x); ++j) peers.push_back(InOrderTree::child(m, x, j));
      for (std::size_t a = 0; a < peers.size(); ++a)
        for (std::size_t b = a + 1; b < peers.size(); ++b)
          if (order[static_cast<std::size_t>(peers[a])] % ways == order[static_cast<std::size_t>(peers[b])] % ways)
            return true;
    }
    return false;
  };
  int ways = 1;
  while (meets(numbers, ways) || meets(other, ways)) ++ways;
  return ways;
}

/// Of a tree's chunk under LL and LL128, over several nodes: as many more than tree_pieces() as long chains of few
/// chunks need, so that passing pieces on, which GPUs do line by line, is seen no more than a little; as few as are
/// simulated in about half a second.
struct Pieces {
  int count = 1;
  bool coarse = false;  ///< fewer than needed
};
Pieces pieces_of(const Question& q, const Limits& l, const Chunks& cut) {
  Pieces out{tree_pieces(q.c, q.plan, cut)};
  const double hops = 2.0 * (q.c.most_on_a_node - 1);
  if (q.plan.protocol == Protocol::simple || q.c.nodes == 1 || hops == 0) return out;
  constexpr double most = 16, most_messages = most_messages_of_trees, seen = 0.02, much = 0.05;
  // A piece waits for the GPU's threads, whose time its hop has, and for other channels' up and down the same links.
  const double threads = cut.chunk / tree_drive(q.c, l, q.plan);
  const double shared = std::max(threads, 2 * q.plan.channels * cut.chunk / l.gpu);
  const double of_hop = run(q.c, q.kind, q.size, q.plan).time().count() / hops;
  const auto longer = [&](double pieces) { return std::max(shared - threads, shared - pieces * l.hop) / pieces; };
  const double bearable = most_messages / (2 * cut.count * q.plan.channels * q.c.ranks);
  while (longer(out.count) > seen * of_hop && out.count + 1 <= std::min(most, bearable)) ++out.count;
  out.coarse = out.count < most && threads / out.count - l.hop > much * of_hop;
  return out;
}

/// A lane per channel, of the search's chains in the tree that the channel is on.
Pattern channels_of_trees(const Question& q, const ChannelOrders& orders, int chunks) {
  Pattern pattern{"tree", q.group, chunks, {}};
  for (int channel = 0; channel < q.plan.channels; ++channel) {
    Lane lane;
    lane.block = Volume(q.bytes() / q.plan.channels);
    lane.route_lane = channel;
    std::vector<int> lengths;
    for (const std::vector<int>& chain : orders.tree(q.c.tree, channel, on_second_tree(q.c.tree, channel))) {
      lengths.push_back(static_cast<int>(chain.size()));
      lane.order.insert(lane.order.end(), chain.begin(), chain.end());
    }
    lane.phases = {tree_phase(lengths)};
    pattern.lanes.push_back(std::move(lane));
  }
  return pattern;
}

Result<Program> tree_program(const Question& q) {
  const Limits l = limits(q.c, q.plan, true);
  const Chunks cut = tree_chunks(q.c, q.size, q.plan);
  const ChannelOrders orders(q.fabric, q.group);
  const bool by_line = q.plan.protocol != Protocol::simple;
  // Up and down; over several nodes of the node that sends most: inner in one tree, a leaf in the other.
  const double sends = tree_messages(q.c);
  const auto [pieces, coarse] = pieces_of(q, l, cut);
  Pattern pattern = channels_of_trees(q, orders, static_cast<int>(cut.count) * pieces);
  Rates rates = rates_of(q, l, cut.chunk);
  const double most = sends * tree_rate(q.c, q.plan);
  rates.drive = tree_drive(q.c, l, q.plan);
  rates.port = tree_port(q.c, l, q.plan);
  if (by_line) {
    // What a GPU's threads take for the piece is not seen at each of a chain's GPUs.
    const double streamed = std::max(0.0, l.hop - cut.chunk / pieces / rates.drive);
    rates.beyond += rates.hop - streamed;
    rates.hop = streamed;
  }
  double before = l.start + tree_way_up_alone(q.c, l, q.plan, cut);
  // Chunks are all of the mean size here: what the first, a full one, takes longer on its way.
  before += tree_latency(q.c, l, q.plan, cut) - tree_latency(q.c, l, q.plan, {cut.count, cut.chunk, cut.chunk});
  if (q.c.nodes > 1) {
    const double each = channels_of_a_nic(q.c, q.plan) * cut.chunk, lines = through_network(l, cut.chunk);
    rates.nic = most / nics_of_trees(q.c);
    const double number = rates.nic;
    const double message = tree_message(q.c, l, q.plan, cut);
    if (cut.count == 1) {
      // What trees reach of NICs is of chunks that follow each other. A single one passes them by their line; what the
      // closed form has beyond that is a constant.
      before += std::max(0.0, tree_nics(q.c, q.plan, cut) / 2 - 2 * tree_levels(q.c.nodes) * message);
      rates.nic = line_of_a_nic(q.c, l);
    }
    // What Simple's hop has in proportion to a chunk is its way through NICs, too.
    if (!by_line) rates.beyond -= std::min(cut.chunk / rates.nic, hop_of_chunk(l, cut.chunk));
    if (const double posts = each / message_gap(q.c, q.plan); posts < number) {
      // Messages wait for each other's posts. Of a single chunk of each channel that is a constant, as in the closed
      // form; of several the way of one is no longer for it, but for those of the first chunk, and of pieces that of
      // the first.
      const double longer = each / posts - each / number, seen = sends / 2;
      if (cut.count == 1) {
        before += seen * longer;
      } else {
        rates.nic = posts;
        rates.beyond -= longer / pieces * (1 - seen / (2 * tree_levels(q.c.nodes)));
      }
    }
    // A head's operation down the tree writes to all below it at once; a proxy looks through each one's lines.
    rates.between = std::min(tree_threads(q.plan.protocol) * l.channel, cut.chunk / lines);
    rates.ways = ways_between(orders.numbers());
    // A NIC's message is the whole chunk, whose lines a proxy has looked through: it goes when the last piece is there.
    if (by_line) {
      const double moved = cut.chunk / l.channel;
      const double whole = cut.count == 1 ? message - moved : 0;
      rates.beyond += moved + std::max(lines, whole) * (1 - 1.0 / pieces);
    }
  }
  Result<Program> out = assembled(q, rates, std::move(pattern), before);
  if (!out) return out;
  Program program = std::move(out).value();
  program.coarse = coarse;
  return program;
}

double pat_chunks(const Question& q) {
  const double part = q.bytes() / q.plan.channels / q.c.ranks;
  return std::max(1.0, std::ceil(part / slot(q.c.environment, q.plan.protocol)));
}

/// A lane per channel; a step's message goes when what it has is there, slot by slot.
Result<Program> pat_program(const Question& q) {
  const Limits l = limits(q.c, q.plan, true);
  Pattern pattern{"pat", q.group, static_cast<int>(pat_chunks(q)), {}};
  for (int channel = 0; channel < q.plan.channels; ++channel) {
    Lane lane;
    lane.blocks = q.c.ranks;
    lane.block = Volume(q.bytes() / q.plan.channels / q.c.ranks);
    lane.route_lane = channel;
    lane.phases = {pat_phase(q.kind, q.c.ranks)};
    pattern.lanes.push_back(std::move(lane));
  }
  Rates rates;
  rates.drive = l.channel / 2;
  rates.pcie = q.c.nvlink ? 1 : pcie_share(q.c, q.plan.protocol);
  rates.nic = l.nics / l.nics_used / q.c.nics.count;
  rates.of_line = of_line(q.c, q.plan.protocol);
  rates.network = q.c.factors.network_hop;
  rates.way = q.c.factors.network_hop * q.c.network_latency.count();
  rates.beyond = network_hop(l, q.bytes() / q.plan.channels / q.c.ranks / pat_chunks(q)) - rates.way;
  return assembled(q, rates, std::move(pattern), l.start);
}

/// What the links of a GPU reach together. Over PCIe what goes to NICs passes the same port as what goes to GPUs, of
/// which the closed form takes the longer: the port is so wide that all takes as long as the GPUs' alone.
double exchange_port(const Communicator& c, CollectiveKind kind, const Exchange& e, const PointToPoint& p) {
  if (c.nvlink) return c.nodes > 1 ? unlimited : c.gpu.nvlink.value() * p.reached;
  // Of a sendrecv a rank has one peer, on its node or on another.
  return kind == CollectiveKind::sendrecv ? p.local : p.local * (c.ranks - 1) / e.local_peers;
}

/// Everything at once, by each of a rank's NICs in turn; the rank's own part takes its threads only.
Result<Program> exchange_program(const Question& q) {
  const Communicator& c = q.c;
  const Exchange e = exchange_of(c, q.kind, q.bytes(), q.plan);
  Result<Pattern> made = make_pattern({q.kind, q.group, q.size, q.root, {}}, {"direct", 1, e.lanes, {}});
  if (!made) return made.errors();
  Pattern pattern = std::move(made).value();
  // So many lanes further a GPU's next NIC is taken.
  for (Lane& lane : pattern.lanes) lane.route_lane *= q.fabric.ranks_per_node();
  const PointToPoint p = point_to_point(c, e, q.plan);
  Rates rates;
  // On one node pairs without a way over NVLink go over PCIe, which reaches as much in the closed form.
  rates.pcie = !c.nvlink ? pcie_share_of_pairs(c, q.plan) : c.nodes == 1 ? p.reached : 1;
  if (e.local_peers > 0) {
    rates.nvlink = p.reached;
    rates.port = exchange_port(c, q.kind, e, p);
  }
  // What goes to NICs passes the port, too.
  const double parts = q.kind == CollectiveKind::sendrecv ? 1 : c.ranks - 1;
  if (p.threads > 0) rates.port = std::min(rates.port, e.per_peer * parts / p.threads);
  if (e.remote_peers > 0) {
    rates.nic = std::min(e.nics_rate, e.nic_bytes / std::max(p.pair, p.gaps)) / e.nics;
    rates.network = c.factors.network_hop;
    rates.way = p.way_between;
    rates.beyond = p.latency_between - p.way_between;
    rates.of_line = e.of_line;
    rates.by_receivers_rail = c.pairs.relayed;
    rates.nics_beside = c.nics.beside_gpu;
    rates.nics_of_gpu = e.turns;
  }
  return assembled(q, rates, std::move(pattern), p.start + p.latency_inside + p.last_piece);
}

/// By a reduction in the network.
bool is_through_network(const Question& q) {
  return is_collnet(q.plan.algorithm) || is_nvls_over_network(q.c, q.plan.algorithm);
}

/// Of a channel: chunks that follow each other, loops of a ring.
double chunks_in_a_row(const Question& q) {
  if (is_through_network(q)) return collnet_chunks(q);
  if (q.plan.algorithm == Algorithm::nvls || q.plan.algorithm == Algorithm::nvls_tree) return switch_loops(q);
  if (q.plan.algorithm == Algorithm::pat) return pat_chunks(q);
  if (q.plan.algorithm == Algorithm::tree) return tree_chunks(q.c, q.size, q.plan).count;
  if (q.kind == CollectiveKind::broadcast || q.kind == CollectiveKind::reduce)
    return chain_chunks(q.c, q.size, q.plan).count;
  return loops_of(q.c, q.size, q.plan).full;
}

}  // namespace

Result<Program> program(const Fabric& fabric, const Group& group, const Communicator& c, CollectiveKind kind,
                        Bytes size, const Plan& plan, int root) {
  check(c.ranks > 1 && size.value() > 0, "a program has something to send");
  const auto not_simulated = [](const char* why) {
    return Diagnostic{{}, why, "expected --method estimate or both, or another --algorithm"};
  };
  const DeviceGroup* attached = network_group(fabric.spec());
  if (c.nodes > 1 && (attached == nullptr || attached->kind != DeviceKind::nic))
    return not_simulated("the network of this machine is not attached to NICs");
  const Question q{fabric, group, c, kind, size, plan, root};
  if (plan.point_to_point) return exchange_program(q);
  // A ring has a phase of its pattern for each, a tree or chain a chunk, of which the engine counts 2^24 and 2^31: so
  // many are more messages than anybody waits for.
  constexpr double most_loops = 1 << 21;
  if (chunks_in_a_row(q) * plan.channels > most_loops)
    return not_simulated("more than two million loops of chunks, over all channels");
  if (is_through_network(q)) return collnet_program(q);
  switch (plan.algorithm) {
    case Algorithm::tree:
      return tree_program(q);
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
      return switch_program(q);
    case Algorithm::pat:
      return pat_program(q);
    default:
      break;
  }
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ? chain_program(q) : ring_program(q);
}

}  // namespace collcast::nccl
