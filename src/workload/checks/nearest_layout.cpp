// Inputs of a step that are wrong, mended: values that are wrong by themselves, and a layout in which several do not
// fit.
//
// The nearest layout is the one of least distance among those next to it: sum over tp, pp, dp, cp and ep, and over etp
// and dp_shard where they are at fault, of how far the degree is from what was asked, |log of the ratio|; degrees that
// divide what they split come into question, the rest of the layout stays. Of what could not be read nothing is known:
// there the divisors of the degree itself come into question. Stages are uneven where that lets the degrees be nearer;
// only where neither works is the schedule plain 1F1B. Left out: other micro-batches, schedules and orders.
#include "collcast/workload/nearest_layout.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "workload/checks/misfits.hpp"
#include "workload/layer/parameters.hpp"

namespace collcast::workload {

namespace {

double distance(int asked, int degree) { return std::abs(std::log(static_cast<double>(degree) / asked)); }

/// Divisors of `n`, and what was asked where `any` will do, nearest first.
std::vector<int> degrees(std::int64_t n, int asked, bool any = false, std::size_t most = 8) {
  std::vector<int> out;
  for (std::int64_t d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    out.push_back(static_cast<int>(d));
    if (d != n / d && n / d <= std::numeric_limits<int>::max()) out.push_back(static_cast<int>(n / d));
  }
  if (any || out.empty()) out.push_back(asked);
  std::sort(out.begin(), out.end());
  std::stable_sort(out.begin(), out.end(), [&](int a, int b) { return distance(asked, a) < distance(asked, b); });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  if (out.size() > most) out.resize(most);
  return out;
}

struct Choice {
  int tp, pp, dp, cp, ep, etp, dp_shard;
  double far;

  void put(ParallelLayout& l) const {
    l.tp = tp;
    l.pp = pp;
    l.dp = dp;
    l.cp = cp;
    l.ep = ep;
    l.etp = etp;
    l.dp_shard = dp_shard;
  }
};

/// What of a layout is looked for besides, as it is at fault.
struct Sought {
  bool etp = false, dp_shard = false;

  Sought(const ParallelLayout& l, const std::vector<std::string>& blamed) {
    const auto at_fault = [&](const char* path) {
      return std::find(blamed.begin(), blamed.end(), path) != blamed.end();
    };
    etp = l.etp > 0 && at_fault("layout.etp");
    dp_shard = l.dp_shard > 0 && at_fault("layout.dp_shard");
  }
};

constexpr double anywhere = std::numeric_limits<double>::infinity();

/// With the rest of `in` as it is, and nearer than `limit`.
std::optional<Choice> nearest_degrees(const StepInputs& in, int ranks, const Origins& origins, const Sought& sought,
                                      double limit = anywhere) {
  constexpr std::size_t most_checks = 2'000, few = 4;
  constexpr double rounding = 1e-9;  // of sums that are the same in another order
  const ParallelLayout& l = in.layout;
  const bool serves = in.serving.has_value();
  const int samples = serves ? 0 : in.batch.global_batch / std::max(in.batch.micro_batch, 1);
  const bool good_batch = origins.good("batch.global_batch") && origins.good("batch.micro_batch");
  const auto split = [&](bool good, int n, int asked, bool any = false) {
    return good ? degrees(std::max(n, 1), asked, any) : degrees(asked, asked);
  };
  const std::vector<int> etps = sought.etp ? degrees(in.model.experts.ffn, l.etp, false, few) : std::vector<int>{l.etp};
  std::vector<Choice> choices;
  const auto add = [&](int tp, int pp, int dp, int cp, int ep) {
    const double far =
        distance(l.tp, tp) + distance(l.pp, pp) + distance(l.dp, dp) + distance(l.cp, cp) + distance(l.ep, ep);
    for (const int etp : etps)
      for (const int shard : sought.dp_shard ? degrees(dp, l.dp_shard, false, few) : std::vector<int>{l.dp_shard})
        choices.push_back(
            {tp, pp, dp, cp, ep, etp, shard,
             far + (sought.etp ? distance(l.etp, etp) : 0) + (sought.dp_shard ? distance(l.dp_shard, shard) : 0)});
  };
  for (const int tp : split(origins.good("model.heads"), in.model.heads, l.tp))
    for (const int pp : split(origins.good("model.layers"), in.model.layers, l.pp, l.uneven_stages))
      for (const int dp : split(good_batch && !serves, samples, l.dp))
        for (const int cp : split(origins.good("batch.sequence") && l.cp > 1, in.batch.sequence, l.cp))
          for (const int ep :
               split(origins.good("model.experts.count") && in.model.experts.count > 0, in.model.experts.count, l.ep))
            if (std::int64_t{tp} * pp * cp <= ranks / dp) add(tp, pp, dp, cp, ep);
  std::erase_if(choices, [&](const Choice& c) { return c.far >= limit - rounding; });
  std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) { return a.far < b.far; });
  if (choices.size() > most_checks) choices.resize(most_checks);
  StepInputs other = in;
  for (const Choice& c : choices) {
    c.put(other.layout);
    if (goes_together(other, ranks, origins)) return c;
  }
  return {};
}

/// Empty where none is found nearby.
std::string nearest_in_words(const StepInputs& in, int ranks, const Origins& origins, const Sought& sought) {
  const auto text = [&](const Choice& c) {
    std::string out = "tp " + std::to_string(c.tp) + ", pp " + std::to_string(c.pp) + ", dp " + std::to_string(c.dp);
    if (in.layout.cp > 1) out += ", cp " + std::to_string(c.cp);
    if (in.layout.ep > 1) out += ", ep " + std::to_string(c.ep);
    if (sought.etp) out += ", etp " + std::to_string(c.etp);
    if (sought.dp_shard) out += ", dp_shard " + std::to_string(c.dp_shard);
    return out;
  };
  StepInputs uneven = in, plain = in;
  uneven.layout.uneven_stages = true;
  plain.layout.schedule = PipelineSchedule::one_f_one_b;
  plain.layout.own = nullptr;
  plain.layout.vpp = 1;
  const std::optional<Choice> as_it_is = nearest_degrees(in, ranks, origins, sought),
                              of_uneven =
                                  nearest_degrees(uneven, ranks, origins, sought, as_it_is ? as_it_is->far : anywhere);
  if (as_it_is) return of_uneven ? text(*of_uneven) + ", uneven_stages true" : text(*as_it_is);
  const std::optional<Choice> of_plain = nearest_degrees(plain, ranks, origins, sought);
  if (of_uneven && (!of_plain || of_uneven->far <= of_plain->far)) return text(*of_uneven) + ", uneven_stages true";
  return of_plain ? text(*of_plain) + ", schedule 1f1b, vpp 1" : std::string();
}

bool is_of_layout(const std::string& path) {
  return path == "ranks" || path.starts_with("layout.") || path.starts_with("batch.");
}

/// What of a hint's offers goes with the rest.
Hint offers_that_work(Hint hint, const StepInputs& in, int ranks, const Origins& known) {
  std::erase_if(hint.offers, [&](const Hint::Offer& offer) {
    if (!offer.change) return true;
    StepInputs other = in;
    offer.change(other);
    return !goes_together(other, ranks, known);
  });
  return hint;
}

}  // namespace

StepInputs mended(const StepInputs& in) {
  StepInputs out = in;
  TransformerConfig& m = out.model;
  ParallelLayout& l = out.layout;
  for (int* value : {&m.layers, &m.hidden, &m.heads, &m.kv_heads, &m.head_dim, &m.ffn, &m.vocab, &l.tp, &l.pp, &l.dp,
                     &l.vpp, &l.cp, &l.ep, &out.batch.sequence, &out.batch.micro_batch, &out.batch.global_batch})
    *value = std::max(*value, 1);
  m.layers = std::min(m.layers, most_layers);
  l.etp = std::max(l.etp, 0);
  l.dp_shard = std::max(l.dp_shard, 0);
  if (!(m.dropout >= 0 && m.dropout < 1)) m.dropout = 0;
  m.window = {};
  m.parallel_mlp = {};
  Experts& e = m.experts;
  if (e.count > 0) {
    e.ffn = std::max(e.ffn, 1);
    e.every = std::max(e.every, 1);
    e.top_k = std::clamp(e.top_k, 1, e.count);
    e.groups = e.group_top_k = 1;
    const int latent = std::max(e.latent, 0);
    if (expert_layers(m) == 0) e = {e.count, e.top_k, e.ffn, e.shared_ffn};
    e.latent = latent;
  } else {
    e = {};
    l.ep = 1;
    l.etp = 0;
  }
  LatentAttention& a = m.latent;
  if (a.kv_rank > 0) {
    for (int* value : {&a.nope, &a.rope, &a.value}) *value = std::max(*value, 1);
    m.kv_heads = m.heads;
    m.head_dim = a.nope + a.rope;
  } else {
    a = {};
  }
  if (a.q_rank < 1 || std::min({m.sparse.heads, m.sparse.dim, m.sparse.top_k}) < 1) m.sparse = {};
  TrainingOptions& o = out.options;
  const TrainingOptions usual;
  if (o.bucket && *o.bucket < Bytes(1)) o.bucket = usual.bucket;
  if (o.gradient_bytes != 2 && o.gradient_bytes != 4) o.gradient_bytes = usual.gradient_bytes;
  o.zero = std::clamp(o.zero, 0, 3);
  if (!(o.expert_imbalance >= 1)) o.expert_imbalance = 1;
  if (!(o.moe_capacity_factor >= 0)) o.moe_capacity_factor = 0;
  return out;
}

void name_nearest(const StepInputs& in, int ranks, Origins known, bool alone, Misfits& misfits) {
  std::size_t count = 0, last = 0;
  for (std::size_t i = 0; i < misfits.blamed.size(); ++i) {
    if (!is_of_layout(misfits.blamed[i])) {
      known.spoil(misfits.blamed[i]);
      alone = false;
      continue;
    }
    ++count;
    last = i;
  }
  if (count == 0) return;
  if (count == 1 && !misfits.too_large) {
    const Hint left = offers_that_work(misfits.hints[last], in, ranks, known);
    if (!left.offers.empty()) {
      misfits.found[last].hint = left.text();
      return;
    }
  }
  // Which degrees divide a model is not to be known where none of it could be read.
  if (!known.good("model.layers") && !known.good("model.heads")) return;
  const std::string nearest = nearest_in_words(in, ranks, known, {in.layout, misfits.blamed}),
                    others = alone ? "" : " but for the other errors";
  if (!nearest.empty())
    misfits.found[last].hint += "; the nearest layout that works" + others + ": " + nearest;
  else if (count == 1 && !misfits.hints[last].offers.empty())
    misfits.found[last].hint += "; that alone does not do, and no other degrees nearby either" + others;
}

}  // namespace collcast::workload

namespace collcast {

std::string nearest_layout(const StepInputs& in, int ranks, const Origins& origins) {
  std::vector<std::string> blamed;
  for (const StepMisfit& one : step_misfits(in, ranks, origins)) {
    if (!workload::is_of_layout(one.blamed)) return {};
    blamed.push_back(one.blamed);
  }
  const StepInputs good = workload::mended(in);
  return workload::nearest_in_words(good, ranks, origins, {good.layout, blamed});
}

}  // namespace collcast
