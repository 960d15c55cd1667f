#include "planner/sentences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "collcast/base/units.hpp"
#include "collcast/evaluate/nodes.hpp"
#include "collcast/workload/terms.hpp"

namespace collcast::planner {

namespace {

using Collectives = std::vector<CollectiveCost>;

Seconds total(const CollectiveCost& c) { return c.time * static_cast<double>(c.count); }

/// The collective of a dimension that a rank spends most time in, of those so named, or of all; nullptr without one.
const CollectiveCost* main_collective(const Collectives& of, Dimension dimension, const std::string& named = {}) {
  const CollectiveCost* most = nullptr;
  for (const CollectiveCost& c : of)
    if (c.dimension == dimension && (named.empty() || c.name == named))
      if (most == nullptr || total(c) > total(*most)) most = &c;
  return most;
}

/// Of both layouts the collective of a dimension in whose time they differ most; of one that has no such the largest.
std::pair<const CollectiveCost*, const CollectiveCost*> main_collectives(const Collectives& own,
                                                                         const Collectives& best, Dimension dimension) {
  std::map<std::string, Seconds> differences;
  for (const CollectiveCost& c : own)
    if (c.dimension == dimension) differences[c.name] += total(c);
  for (const CollectiveCost& c : best)
    if (c.dimension == dimension) differences[c.name] -= total(c);
  std::string name;
  Seconds most{};
  for (const auto& [each, difference] : differences)
    if (Seconds size(std::abs(difference.count())); size > most) {
      most = size;
      name = each;
    }
  const auto of = [&](const Collectives& all) {
    const CollectiveCost* named = main_collective(all, dimension, name);
    return named != nullptr ? named : main_collective(all, dimension);
  };
  return {of(own), of(best)};
}

/// Slowest link between neighbours of a group.
Bandwidth slowest(const Fabric& fabric, const Group& group) {
  Bandwidth rate = fabric.path(group[0], group[1]).bandwidth;
  for (int i = 1; i + 1 < group.size(); ++i) rate = std::min(rate, fabric.path(group[i], group[i + 1]).bandwidth);
  return rate;
}

std::string place(const Fabric& fabric, const Group& group) {
  const int nodes = node_count(fabric, group);
  return nodes == 1 ? std::string("stays inside a node") : fmt::format("crosses {} nodes", nodes);
}

/// "TP group of 16 crosses 2 nodes: its all_reduce of 48 MiB runs at 25 GB/s ..."; `per`: "step", what is counted in.
std::string group_sentence(const Fabric& fabric, const char* name, Dimension dimension, const Collectives& own,
                           const Collectives& best, const char* per = "step") {
  const auto [mine, theirs] = main_collectives(own, best, dimension);
  const auto kind = [](const CollectiveCost& c) { return to_string(c.request.kind); };
  if (mine == nullptr)
    return theirs == nullptr
               ? std::string()
               : fmt::format("there is no {} group, so nothing of {}'s {} is waited for", name, name, kind(*theirs));
  const char* whose = mine->name.starts_with("expert ") ? "experts' " : "";
  std::string text =
      fmt::format("{}{} group of {} {}: ", whose, name, mine->request.group.size(), place(fabric, mine->request.group));
  const Bandwidth rate = slowest(fabric, mine->request.group);
  if (theirs == nullptr)
    return text + fmt::format("its {} of {} takes {}, {} times a {}; the best layout has no {} group", kind(*mine),
                              format_bytes(volume(mine->request.size)), format_seconds(mine->time), mine->count, per,
                              name);
  const Bandwidth their_rate = slowest(fabric, theirs->request.group);
  text += rate == their_rate ? fmt::format("its {} of {} ", kind(*mine), format_bytes(volume(mine->request.size)))
                             : fmt::format("its {} of {} runs over links of {} instead of {} and ", kind(*mine),
                                           format_bytes(volume(mine->request.size)), format_bandwidth(rate),
                                           format_bandwidth(their_rate));
  return text + fmt::format("takes {}, {} times a {} (best: {} of {} in {}, {} times)", format_seconds(mine->time),
                            mine->count, per, kind(*theirs), format_bytes(volume(theirs->request.size)),
                            format_seconds(theirs->time), theirs->count);
}

std::string compute_sentence(const Subject& own, const Subject& best) {
  const Recompute mine = own.inputs.options.recompute, theirs = best.inputs.options.recompute;
  if (mine != theirs)
    return fmt::format("recompute {} runs {:.3g}x the model's operations, recompute {} {:.3g}x", to_string(mine),
                       own.result.hfu / own.result.mfu, to_string(theirs), best.result.hfu / best.result.mfu);
  // Operations of the whole step over the time that the busiest stage computes.
  const auto share = [](const Subject& s) { return 100 * s.result.hfu * (s.result.step / s.result.breakdown.compute); };
  const auto shape = [](const Subject& s) {
    return fmt::format("TP {} with micro-batches of {}{}", s.inputs.layout.tp, s.inputs.batch.micro_batch,
                       s.inputs.layout.sequence_parallel || s.inputs.layout.tp == 1 ? "" : " and norms on every rank");
  };
  return fmt::format(
      "while it computes the busiest stage reaches {:.0f}% of the peak ({}); the best layout's {:.0f}% ({})",
      share(own), shape(own), share(best), shape(best));
}

std::string bubble_sentence(const Subject& own, const Subject& best) {
  const auto pipeline = [](const Subject& s) {
    return s.inputs.layout.pp == 1
               ? std::string("no pipeline")
               : fmt::format("{} stages{} for {} micro-batches", s.inputs.layout.pp,
                             s.inputs.layout.chunks() > 1 ? fmt::format(" of {} chunks", s.inputs.layout.chunks())
                                                          : std::string(),
                             s.result.micro_batches);
  };
  return fmt::format("{}: the busiest stage waits {} a step; best: {}, {}", pipeline(own),
                     format_seconds(own.result.breakdown.bubble), pipeline(best),
                     format_seconds(best.result.breakdown.bubble));
}

std::string optimizer_sentence(const Subject& own, const Subject& best) {
  const auto owned = [](const Subject& s) {
    const MemoryTerms terms = memory_terms(s.inputs, s.result.stage.stage);
    return format_count(terms.trained(1, terms.optimizer_shares, terms.zero >= 1));
  };
  return fmt::format("a GPU of the busiest stage updates {} parameters, in the best layout {}", owned(own),
                     owned(best));
}

std::string memory_sentence(const Subject& own, const Subject& best) {
  const MemoryUse &m = own.result.memory, &b = best.result.memory;
  const MemoryPart& grown = *std::ranges::max_element(
      memory_parts, {}, [&](const MemoryPart& p) { return (m.*p.size).value() - (b.*p.size).value(); });
  return fmt::format(
      "memory: stage {} needs {} of {}; what breaks the limit: {}; most of the difference is in {}, {} against {}",
      m.stage, format_bytes(volume(m.peak())), format_bytes(volume(m.capacity)), breaking_part(m).name, grown.name,
      format_bytes(volume(m.*grown.size)), format_bytes(volume(b.*grown.size)));
}

std::string transfer_sentence(const Subject& own, const Subject& best) {
  return fmt::format("messages between {} stages delay the pipeline by {}; best: {} stages, {}", own.inputs.layout.pp,
                     format_seconds(own.result.breakdown.pp_exposed), best.inputs.layout.pp,
                     format_seconds(best.result.breakdown.pp_exposed));
}

/// A time of a server, by parts: until the first token, or from token to token.
struct PhaseOf {
  const char *name, *per;
  ServingPhase InferenceResult::*phase;
};

std::string server_compute_sentence(const Subject& own, const Subject& best) {
  const auto shape = [](const Subject& s) {
    const Serving& serving = *s.inputs.serving;
    const int sequences = serving.batch / serving.micro_batches;
    return fmt::format(
        "{} of {} through {}, 1/{} of each matrix on a GPU",
        serving.micro_batches == 1 ? std::string("one micro-batch")
                                   : fmt::format("{} micro-batches", serving.micro_batches),
        sequences == 1 ? std::string("one sequence") : fmt::format("{} sequences", sequences),
        s.inputs.layout.pp == 1 ? std::string("one stage") : fmt::format("{} stages", s.inputs.layout.pp),
        s.inputs.layout.tp);
  };
  return fmt::format("{}; best: {}", shape(own), shape(best));
}

/// The parts of one time that differ by at least a fiftieth of the best layout's, largest first.
void add_phase(const Fabric& fabric, const Subject& own, const Subject& best, const PhaseOf& of,
               std::vector<std::string>& out) {
  const ServingPhase &mine = (*own.result.inference).*of.phase, &theirs = (*best.result.inference).*of.phase;
  struct Part {
    const char* name;
    Seconds Breakdown::*part;
    std::string text;
  };
  const auto stages = [](const Subject& s) {
    return fmt::format("{} stages for {} micro-batches", s.inputs.layout.pp, s.inputs.serving->micro_batches);
  };
  const std::string idle = fmt::format("{}; best: {}", stages(own), stages(best));
  std::vector<Part> parts{{"compute", &Breakdown::compute, server_compute_sentence(own, best)},
                          {"TP exposed", &Breakdown::tp_exposed,
                           group_sentence(fabric, "TP", Dimension::tp, mine.collectives, theirs.collectives, of.per)},
                          {"EP exposed", &Breakdown::ep_exposed,
                           group_sentence(fabric, "EP", Dimension::ep, mine.collectives, theirs.collectives, of.per)},
                          {"PP exposed", &Breakdown::pp_exposed, "messages between stages: " + idle},
                          {"bubble", &Breakdown::bubble, idle}};
  const auto difference = [&](const Part& p) { return mine.breakdown.*p.part - theirs.breakdown.*p.part; };
  std::ranges::stable_sort(parts, [&](const Part& a, const Part& b) {
    return std::abs(difference(a).count()) > std::abs(difference(b).count());
  });
  for (const Part& p : parts) {
    const Seconds d = difference(p);
    if (std::abs(d.count()) < theirs.time().count() / 50) continue;
    out.push_back(fmt::format("{}, {} {}{}: {}", of.name, p.name, d.count() > 0 ? "+" : "-",
                              format_seconds(Seconds(std::abs(d.count()))), p.text));
  }
}

std::vector<std::string> server_sentences(const Fabric& fabric, const Subject& own, const Subject& best) {
  std::vector<std::string> out;
  add_phase(fabric, own, best,
            {"TPOT", own.inputs.serving->speculation ? "pass of tokens" : "token", &InferenceResult::decode}, out);
  add_phase(fabric, own, best, {"TTFT", "pass", &InferenceResult::prefill}, out);
  const auto sequences = [](const Subject& s) { return std::int64_t{s.inputs.serving->batch} * s.inputs.layout.dp; };
  if (sequences(own) != sequences(best))
    out.push_back(fmt::format("tokens/s: {} sequences at once, {} on each of {} replicas; best: {}, {} on each of {}",
                              sequences(own), own.inputs.serving->batch, own.inputs.layout.dp, sequences(best),
                              best.inputs.serving->batch, best.inputs.layout.dp));
  if (!own.result.memory.fits()) out.push_back(memory_sentence(own, best));
  return out;
}

}  // namespace

std::vector<std::string> sentences(const Fabric& fabric, const Subject& own, const Subject& best) {
  if (own.inputs.serving) return server_sentences(fabric, own, best);
  struct Term {
    const char* name;
    Seconds Breakdown::*part;
    std::function<std::string()> text;
  };
  const Collectives &mine = own.result.collectives, &theirs = best.result.collectives;
  std::array terms{Term{"compute", &Breakdown::compute, [&] { return compute_sentence(own, best); }},
                   Term{"TP exposed", &Breakdown::tp_exposed,
                        [&] { return group_sentence(fabric, "TP", Dimension::tp, mine, theirs); }},
                   Term{"PP exposed", &Breakdown::pp_exposed, [&] { return transfer_sentence(own, best); }},
                   Term{"CP exposed", &Breakdown::cp_exposed,
                        [&] { return group_sentence(fabric, "CP", Dimension::cp, mine, theirs); }},
                   Term{"EP exposed", &Breakdown::ep_exposed,
                        [&] { return group_sentence(fabric, "EP", Dimension::ep, mine, theirs); }},
                   Term{"DP exposed", &Breakdown::dp_exposed,
                        [&] { return group_sentence(fabric, "DP", Dimension::dp, mine, theirs); }},
                   Term{"bubble", &Breakdown::bubble, [&] { return bubble_sentence(own, best); }},
                   Term{"optimizer", &Breakdown::optimizer, [&] { return optimizer_sentence(own, best); }}};
  const auto difference = [&](const Term& t) { return own.result.breakdown.*t.part - best.result.breakdown.*t.part; };
  std::ranges::stable_sort(terms, [&](const Term& a, const Term& b) {
    return std::abs(difference(a).count()) > std::abs(difference(b).count());
  });
  std::vector<std::string> out;
  for (const Term& t : terms) {
    const Seconds d = difference(t);
    if (std::abs(d.count()) < best.result.step.count() / 50) continue;
    out.push_back(fmt::format("{} {}{}: {}", t.name, d.count() > 0 ? "+" : "-",
                              format_seconds(Seconds(std::abs(d.count()))), t.text()));
  }
  if (!own.result.memory.fits()) out.push_back(memory_sentence(own, best));
  return out;
}

}  // namespace collcast::planner
