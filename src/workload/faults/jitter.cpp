#include "workload/faults/jitter.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>

#include "collcast/base/fnv1a.hpp"

namespace collcast::workload {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr int fraction_bits = 32;
constexpr std::uint64_t ln_2 = 2'977'044'472;  // ln 2 in units of 2^-32

/// Finalizer of SplitMix64 (Steele, Lea, Flood 2014): every bit of the input moves every bit of the output.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}
constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;

constexpr std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>(static_cast<Wide>(a) * b >> fraction_bits);
}

/// Of a number from 1 on, bit by bit: squaring the mantissa doubles the logarithm. Good to 2^-29.
std::uint64_t log_2(std::uint64_t x) {
  const int whole = 63 - std::countl_zero(x);
  std::uint64_t mantissa = whole >= 31 ? x >> (whole - 31) : x << (31 - whole);  // of 31 places, 1 to 2
  std::uint64_t out = static_cast<std::uint64_t>(whole);
  for (int bit = 0; bit < fraction_bits; ++bit) {
    mantissa = mantissa * mantissa >> 31;
    const bool above = mantissa >> fraction_bits != 0;
    out = out << 1 | static_cast<std::uint64_t>(above);
    if (above) mantissa >>= 1;
  }
  return out;
}

/// -ln(x / 2^of).
std::uint64_t minus_ln(std::uint64_t x, int of) {
  return product((static_cast<std::uint64_t>(of) << fraction_bits) - log_2(x), ln_2);
}

/// Rounded down. The square root of a double is exact to its last bit everywhere; what the double lacks is put right.
std::uint64_t square_root(std::uint64_t x) {
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(x)));
  while (root > 0 && static_cast<Wide>(root) * root > x) --root;
  while (static_cast<Wide>(root + 1) * (root + 1) <= x) ++root;
  return root;
}

/// e^x of x in units of 2^-32, by powers of 2 and a series for the rest.
std::uint64_t exponential(std::int64_t x) {
  const auto step = static_cast<std::int64_t>(ln_2);
  const std::int64_t doublings = x >= 0 ? x / step : -((-x + step - 1) / step);
  const auto rest = static_cast<std::uint64_t>(x - doublings * step);  // 0 to ln 2
  std::uint64_t sum = one_factor, term = one_factor;
  for (std::uint64_t k = 1; term > 0; ++k) sum += term = product(term, rest) / k;
  if (doublings < -63) return 0;
  return doublings >= 0 ? sum << std::min<std::int64_t>(doublings, 29) : sum >> -doublings;
}

/// Standard normal, by Marsaglia's polar method, in units of 2^-32.
std::int64_t normal(std::uint64_t key) {
  for (std::uint64_t i = 1;; ++i) {
    const std::uint64_t bits = mixed(key + i * golden);
    const std::int64_t u = static_cast<std::int64_t>(bits >> 32) - (std::int64_t{1} << 31);
    const std::int64_t v = static_cast<std::int64_t>(bits & 0xffffffffU) - (std::int64_t{1} << 31);
    const auto square = static_cast<std::uint64_t>(u * u) + static_cast<std::uint64_t>(v * v);  // of 62 places
    if (square == 0 || square >= std::uint64_t{1} << 62) continue;
    // u sqrt(-2 ln s / s): the root of 28 places, at most 9.3.
    const auto root = static_cast<std::int64_t>(square_root(2 * minus_ln(square, 62) << 24));
    return u * root / static_cast<std::int64_t>(square_root(square)) * 16;
  }
}

/// p * z, p from 0 on.
std::int64_t scaled(std::uint64_t p, std::int64_t z) {
  const auto size = static_cast<std::int64_t>(product(p, static_cast<std::uint64_t>(z < 0 ? -z : z)));
  return z < 0 ? -size : size;
}

/// ln(1 + p^2), in units of 2^-64.
std::uint64_t log_variance(std::uint64_t p) {
  const Wide square = static_cast<Wide>(p) * p;  // of 64 places
  if (square >> 56 == 0) {                       // below 2^-8: q - q^2/2 + q^3/3 to within a millionth of it
    const auto q = static_cast<std::uint64_t>(square);
    const auto second = static_cast<std::uint64_t>(static_cast<Wide>(q) * q >> 64);
    const auto third = static_cast<std::uint64_t>(static_cast<Wide>(second) * q >> 64);
    return q - second / 2 + third / 3;
  }
  const std::uint64_t sum = (std::uint64_t{1} << 62) + static_cast<std::uint64_t>(square >> 2);
  return product(log_2(sum) - (std::uint64_t{62} << fraction_bits), ln_2) << fraction_bits;
}

}  // namespace

JitterDraw::JitterDraw(const Jitter& jitter)
    : shape_(jitter.shape),
      seed_(static_cast<std::uint64_t>(jitter.seed)),
      spread_(static_cast<std::uint64_t>(jitter.spread * static_cast<double>(one_factor) + 0.5)),
      variance_(log_variance(spread_)),
      sigma_(square_root(variance_)) {}

std::uint64_t JitterDraw::factor(int seed, Rank rank, std::uint64_t operation) const {
  std::uint64_t key = mixed((seed_ + static_cast<std::uint64_t>(seed) + 1) * golden);
  key = mixed(key ^ (std::uint64_t{rank.value()} + 1) * golden);
  key = mixed(key ^ operation);
  switch (shape_) {
    case JitterShape::exponential:
      return one_factor - spread_ + product(spread_, minus_ln(key | 1, 64));
    case JitterShape::lognormal:
      return exponential(scaled(sigma_, normal(key)) - static_cast<std::int64_t>(variance_ >> (fraction_bits + 1)));
    case JitterShape::normal:
      break;
  }
  const auto one = static_cast<std::int64_t>(one_factor);
  return static_cast<std::uint64_t>(std::clamp(one + scaled(spread_, normal(key)), std::int64_t{0}, 2 * one));
}

Picoseconds times_factor(Picoseconds time, std::uint64_t factor) {
  constexpr auto longest = static_cast<Wide>(std::numeric_limits<std::int64_t>::max());
  const Wide rounded = (static_cast<Wide>(time.count()) * factor + one_factor / 2) >> fraction_bits;
  return Picoseconds(static_cast<std::int64_t>(std::min(rounded, longest)));
}

StepDraws::StepDraws(const StepSchedule& step, std::vector<RankJitter> jitters) : jitters_(std::move(jitters)) {
  // Each rounds the picoseconds of the one before: an order of their own, whatever order they are given in.
  std::sort(jitters_.begin(), jitters_.end(), [](const RankJitter& a, const RankJitter& b) {
    const auto key = [](const RankJitter& one) {
      return std::tie(one.jitter.seed, one.jitter.shape, one.jitter.spread, one.ranks, one.periods);
    };
    return key(a) < key(b);
  });
  for (const RankJitter& one : jitters_) draws_.emplace_back(one.jitter);
  std::unordered_map<std::uint64_t, std::uint64_t> seen;  // only looked up
  auto wait = step.launch_waits.begin();
  for (std::uint32_t op = 0; op < step.schedule.size(); ++op) {
    if (wait != step.launch_waits.end() && wait->op == OpId(op)) {
      ++wait;
      continue;
    }
    const auto* compute = std::get_if<Compute>(&step.schedule.work(OpId(op)));
    if (compute == nullptr) continue;
    const bool drawn = std::any_of(jitters_.begin(), jitters_.end(),
                                   [&](const RankJitter& one) { return one.ranks[compute->rank.value()]; });
    if (!drawn) continue;
    // Of one name by their order.
    const std::uint64_t name = fnv1a(step.schedule.name(OpId(op)));
    const std::uint64_t same = seen[mixed(name ^ (std::uint64_t{compute->rank.value()} + 1) * golden)]++;
    ops_.push_back({op, compute->rank, name + same * golden});
  }
}

PeriodTimes StepDraws::drawn(const PeriodTimes& mean, int draw) const {
  PeriodTimes out = mean;
  for (const Drawn& op : ops_)
    for (std::size_t j = 0; j < jitters_.size(); ++j) {
      if (!jitters_[j].ranks[op.rank.value()]) continue;
      const std::uint64_t factor = draws_[j].factor(draw, op.rank, op.name);
      for (std::size_t p = 0; p < out.of.size(); ++p)
        if (jitters_[j].periods[p]) out.of[p][op.op] = times_factor(out.of[p][op.op], factor);
    }
  return out;
}

}  // namespace collcast::workload
