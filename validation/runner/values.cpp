#include "runner/values.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "collcast/base/check.hpp"

namespace collcast::runner {

namespace {

struct TypeInfo {
  std::string_view name;
  std::size_t bytes;
  std::int64_t exact;  ///< whole numbers up to here are represented exactly
};
constexpr std::array<TypeInfo, 10> types{{{"int8", 1, 127},
                                          {"uint8", 1, 255},
                                          {"int32", 4, 1 << 24},
                                          {"uint32", 4, 1 << 24},
                                          {"int64", 8, 1 << 24},
                                          {"uint64", 8, 1 << 24},
                                          {"half", 2, 1 << 11},
                                          {"bfloat16", 2, 1 << 8},
                                          {"float", 4, 1 << 24},
                                          {"double", 8, 1 << 24}}};
const TypeInfo& info(DataType type) { return types[static_cast<std::size_t>(type)]; }

/// Elements after which the numbers repeat: prime, so no block of a power of two falls on its like.
constexpr std::int64_t period = 1021;
/// Elements that are filled or read at a time.
constexpr std::int64_t piece_elements = period * 1024;

/// IEEE binary16 of a whole number that it holds exactly.
std::uint16_t half_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (bits == 0) return 0;
  return static_cast<std::uint16_t>((((bits >> 23) - 112) << 10) | ((bits >> 13) & 0x3ff));
}

double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const double fraction = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1f)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * fraction * 0x1p-24;
  const double scale = exponent >= 25 ? static_cast<double>(1 << (exponent - 25)) : 1.0 / (1 << (25 - exponent));
  return sign * (1024 + fraction) * scale;
}

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}
template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void encode(DataType type, std::int64_t value, std::byte* to) {
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
      return store(to, static_cast<std::uint8_t>(value));
    case DataType::int32:
    case DataType::uint32:
      return store(to, static_cast<std::uint32_t>(value));
    case DataType::int64:
    case DataType::uint64:
      return store(to, value);
    case DataType::half:
      return store(to, half_bits(static_cast<float>(value)));
    case DataType::bfloat16:
      return store(to, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16));
    case DataType::float32:
      return store(to, static_cast<float>(value));
    case DataType::float64:
      return store(to, static_cast<double>(value));
  }
}

double decode(DataType type, const std::byte* from) {
  switch (type) {
    case DataType::int8:
      return load<std::int8_t>(from);
    case DataType::uint8:
      return load<std::uint8_t>(from);
    case DataType::int32:
      return load<std::int32_t>(from);
    case DataType::uint32:
      return load<std::uint32_t>(from);
    case DataType::int64:
      return static_cast<double>(load<std::int64_t>(from));
    case DataType::uint64:
      return static_cast<double>(load<std::uint64_t>(from));
    case DataType::half:
      return half_value(load<std::uint16_t>(from));
    case DataType::bfloat16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(from)) << 16);
    case DataType::float32:
      return load<float>(from);
    case DataType::float64:
      return load<double>(from);
  }
  return 0;
}

/// Splitmix64 (Steele, Lea, Flood 2014) of rank and place.
std::uint64_t mixed(int rank, std::int64_t place) {
  std::uint64_t z = static_cast<std::uint64_t>(rank + 1) * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(place);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/// At most exact / ranks where all ranks' are added up; ranks beyond `exact` put in zeros.
std::int64_t element(const Operation& op, int rank, std::int64_t place) {
  const std::int64_t exact = info(op.type).exact;
  if (reduces(op.kind) && rank >= exact) return 0;
  const std::int64_t most = reduces(op.kind) ? std::max<std::int64_t>(1, exact / op.ranks) : exact;
  return static_cast<std::int64_t>(mixed(rank, place) % static_cast<std::uint64_t>(most + 1));
}

/// Two periods of a source's elements, encoded: any stretch of one period is in there as it is. No source: the
/// sum over all ranks.
std::vector<std::byte> encoded_periods(const Operation& op, std::optional<int> source) {
  const std::size_t width = element_bytes(op.type);
  std::vector<std::byte> out(2 * period * width);
  for (std::int64_t place = 0; place < period; ++place) {
    std::int64_t value = 0;
    if (source) {
      value = element(op, *source, place);
    } else {
      for (int rank = 0; rank < op.ranks; ++rank) value += element(op, rank, place);
    }
    for (std::int64_t copy = 0; copy < 2; ++copy)
      encode(op.type, value, &out[static_cast<std::size_t>(place + copy * period) * width]);
  }
  return out;
}

/// Part of a rank's output: `count` elements of `source`'s input from `from` on, or of the sum of all.
struct Part {
  std::optional<int> source;
  std::int64_t from, count;
};

std::vector<Part> expected_parts(const Operation& op, int rank) {
  const std::int64_t share = op.count / op.ranks;
  std::vector<Part> out;
  switch (op.kind) {
    case CollectiveKind::all_reduce:
      return {{std::nullopt, 0, op.count}};
    case CollectiveKind::reduce:
      if (rank == op.root) out = {{std::nullopt, 0, op.count}};
      return out;
    case CollectiveKind::reduce_scatter:
      return {{std::nullopt, rank * share, share}};
    case CollectiveKind::broadcast:
      return {{op.root, 0, op.count}};
    case CollectiveKind::scatter:
      return {{op.root, rank * share, share}};
    case CollectiveKind::sendrecv:
      return {{(rank + op.ranks - 1) % op.ranks, 0, op.count}};
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
      if (op.kind == CollectiveKind::gather && rank != op.root) return out;
      for (int source = 0; source < op.ranks; ++source) out.push_back({source, 0, share});
      return out;
    case CollectiveKind::alltoall:
      for (int source = 0; source < op.ranks; ++source) out.push_back({source, rank * share, share});
      return out;
  }
  return out;
}

}  // namespace

std::string_view to_string(DataType type) { return info(type).name; }
std::size_t element_bytes(DataType type) { return info(type).bytes; }

std::optional<DataType> parse_datatype(std::string_view name) {
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i].name == name) return static_cast<DataType>(i);
  }
  return std::nullopt;
}

bool is_cut(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::alltoall || kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
}

std::optional<std::int64_t> whole_elements(CollectiveKind kind, DataType type, Bytes size, int ranks) {
  const std::int64_t parts = is_cut(kind) ? ranks : 1;
  const std::int64_t unit = static_cast<std::int64_t>(element_bytes(type)) * parts;
  const std::int64_t count = size.value() / unit * parts;
  return count > 0 ? std::optional(count) : std::nullopt;
}

std::int64_t input_count(const Operation& op, int rank) {
  const bool takes_part =
      rank == op.root || (op.kind != CollectiveKind::broadcast && op.kind != CollectiveKind::scatter);
  if (!takes_part) return 0;
  const bool share = op.kind == CollectiveKind::all_gather || op.kind == CollectiveKind::gather;
  return share ? op.count / op.ranks : op.count;
}

std::int64_t output_count(const Operation& op, int rank) {
  std::int64_t sum = 0;
  for (const Part& part : expected_parts(op, rank)) sum += part.count;
  return sum;
}

void fill(const Operation& op, int rank, std::int64_t first, std::span<std::byte> out) {
  const std::size_t width = element_bytes(op.type);
  check(out.size() % width == 0, "whole elements are filled");
  const std::vector<std::byte> numbers = encoded_periods(op, rank);
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t place = static_cast<std::size_t>(first) % period;
    const std::size_t bytes = std::min(out.size() - done, period * width);
    std::memcpy(&out[done], &numbers[place * width], bytes);
    done += bytes;
    // A whole period further on the place is the same.
  }
}

std::optional<Mismatch> first_mismatch(const Operation& op, int rank, const ReadOutput& read) {
  const std::size_t width = element_bytes(op.type);
  std::int64_t at = 0;  // of the rank's output
  std::vector<std::byte> got;
  for (const Part& part : expected_parts(op, rank)) {
    const std::vector<std::byte> numbers = encoded_periods(op, part.source);
    for (std::int64_t done = 0; done < part.count;) {
      const std::int64_t count = std::min(part.count - done, piece_elements);
      got.resize(static_cast<std::size_t>(count) * width);
      read(at + done, got);
      for (std::int64_t i = 0; i < count; i += period) {
        const auto here = static_cast<std::size_t>(std::min(count - i, period));
        const std::byte* expected = &numbers[static_cast<std::size_t>((part.from + done + i) % period) * width];
        const std::byte* actual = &got[static_cast<std::size_t>(i) * width];
        if (std::memcmp(expected, actual, here * width) == 0) continue;
        for (std::size_t j = 0; j < here; ++j) {
          if (std::memcmp(expected + j * width, actual + j * width, width) == 0) continue;
          return Mismatch{at + done + i + static_cast<std::int64_t>(j), decode(op.type, expected + j * width),
                          decode(op.type, actual + j * width)};
        }
      }
      done += count;
    }
    at += part.count;
  }
  return std::nullopt;
}

}  // namespace collcast::runner
