// What ranks put in and must get out, for every kind: against the definition, spelled out element by element.
#include "runner/values.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <map>
#include <numeric>
#include <tuple>

using namespace collcast;
using namespace collcast::runner;

namespace {

std::vector<std::byte> input(const Operation& op, int rank) {
  std::vector<std::byte> out(static_cast<std::size_t>(input_count(op, rank)) * element_bytes(op.type));
  fill(op, rank, 0, out);
  return out;
}

/// Integers only: their sums need no rounding rules here.
std::vector<std::int64_t> numbers(const std::vector<std::byte>& bytes) {
  std::vector<std::int64_t> out(bytes.size() / sizeof(std::int64_t));
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

/// The collective by its definition: what `rank` holds afterwards, from everyone's input.
std::vector<std::int64_t> by_definition(const Operation& op, int rank) {
  std::vector<std::vector<std::int64_t>> in;
  for (int r = 0; r < op.ranks; ++r) in.push_back(numbers(input(op, r)));
  const auto share = static_cast<std::size_t>(op.count / op.ranks), at = share * static_cast<std::size_t>(rank);
  const auto part = [](const std::vector<std::int64_t>& v, std::size_t from, std::size_t n) {
    return std::vector<std::int64_t>(v.begin() + static_cast<std::ptrdiff_t>(from),
                                     v.begin() + static_cast<std::ptrdiff_t>(from + n));
  };
  std::vector<std::int64_t> sum(static_cast<std::size_t>(op.count), 0), all, to_me;
  for (const auto& v : in) {
    if (v.size() == sum.size()) std::transform(v.begin(), v.end(), sum.begin(), sum.begin(), std::plus<>());
    all.insert(all.end(), v.begin(), v.end());
    if (op.kind == CollectiveKind::alltoall) {
      const auto mine = part(v, at, share);
      to_me.insert(to_me.end(), mine.begin(), mine.end());
    }
  }
  const bool root = rank == op.root;
  const auto& from_root = in[static_cast<std::size_t>(op.root)];
  switch (op.kind) {
    case CollectiveKind::all_reduce:
      return sum;
    case CollectiveKind::reduce:
      return root ? sum : std::vector<std::int64_t>();
    case CollectiveKind::reduce_scatter:
      return part(sum, at, share);
    case CollectiveKind::broadcast:
      return from_root;
    case CollectiveKind::scatter:
      return part(from_root, at, share);
    case CollectiveKind::all_gather:
      return all;
    case CollectiveKind::gather:
      return root ? all : std::vector<std::int64_t>();
    case CollectiveKind::alltoall:
      return to_me;
    case CollectiveKind::sendrecv:
      return in[static_cast<std::size_t>((rank + op.ranks - 1) % op.ranks)];
  }
  return {};
}

ReadOutput reader(const std::vector<std::byte>& output, DataType type) {
  return [&output, type](std::int64_t first, std::span<std::byte> out) {
    REQUIRE(static_cast<std::size_t>(first) * element_bytes(type) + out.size() <= output.size());
    if (!out.empty())
      std::memcpy(out.data(), &output[static_cast<std::size_t>(first) * element_bytes(type)], out.size());
  };
}

std::vector<std::byte> bytes_of(const std::vector<std::int64_t>& values) {
  std::vector<std::byte> out(values.size() * sizeof(std::int64_t));
  if (!out.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

}  // namespace

TEST_CASE("a result by the definition is accepted, and one wrong element is found where it is") {
  for (int k = 0; k < collective_kinds; ++k) {
    for (const int ranks : {1, 2, 3, 5}) {
      // More than one period of 1021 per share, and not a multiple of it.
      Operation op{static_cast<CollectiveKind>(k), {}, DataType::int64, 1500L * ranks, ranks - 1, ranks, false};
      for (int rank = 0; rank < ranks; ++rank) {
        CAPTURE(to_string(op.kind), ranks, rank);
        std::vector<std::int64_t> right = by_definition(op, rank);
        REQUIRE(static_cast<std::int64_t>(right.size()) == output_count(op, rank));
        const std::vector<std::byte> good = bytes_of(right);
        CHECK_FALSE(first_mismatch(op, rank, reader(good, op.type)));
        if (right.empty()) continue;
        const std::size_t spoilt = right.size() * 2 / 3;
        right[spoilt] += 1;
        const std::vector<std::byte> bad = bytes_of(right);
        const auto found = first_mismatch(op, rank, reader(bad, op.type));
        REQUIRE(found);
        CHECK(found->index == static_cast<std::int64_t>(spoilt));
        CHECK(found->got == found->expected + 1);
      }
    }
  }
}

TEST_CASE("blocks in each other's place are found") {
  // An all-gather of 4 ranks with the blocks of ranks 1 and 2 exchanged.
  const Operation op{CollectiveKind::all_gather, {}, DataType::float32, 4 * 256, 0, 4, false};
  std::vector<std::byte> out;
  for (const int rank : {0, 2, 1, 3}) {
    const auto block = input(op, rank);
    out.insert(out.end(), block.begin(), block.end());
  }
  const auto found = first_mismatch(op, 0, reader(out, op.type));
  REQUIRE(found);
  CHECK(found->index == 256);
}

TEST_CASE("sums over all ranks are exact in every datatype") {
  // The largest sum is at most the largest whole number up to which all are exact: half has 11 bits of
  // significand (2048), bfloat16 8 (256), int8 holds 127.
  const std::map<std::string, double> exact{{"int8", 127}, {"uint8", 255}, {"half", 2048}, {"bfloat16", 256}};
  for (const auto& [name, most] : exact) {
    for (const int ranks : {2, 8, 100, 300}) {
      const Operation op{CollectiveKind::all_reduce, {}, *parse_datatype(name), 3000, 0, ranks, false};
      double largest = 0;
      const ReadOutput zeros = [&](std::int64_t, std::span<std::byte> out) {
        std::fill(out.begin(), out.end(), std::byte());
      };
      // With nothing but zeros as the result, what is reported is the first expected sum that is not zero.
      if (const auto found = first_mismatch(op, 0, zeros)) largest = found->expected;
      CAPTURE(name, ranks);
      CHECK(largest > 0);
      CHECK(largest <= most);
    }
  }
}

TEST_CASE("half and bfloat16 are encoded as IEEE and truncated binary32 say") {
  // 1 = 0x3c00 and 0x3f80; 0 is 0: a broadcast from one rank must give back what it put in.
  for (const char* name : {"half", "bfloat16", "double", "uint8", "int32"}) {
    const Operation op{CollectiveKind::broadcast, {}, *parse_datatype(name), 2000, 0, 2, false};
    const auto sent = input(op, 0);
    CHECK_FALSE(first_mismatch(op, 1, reader(sent, op.type)));
  }
  // A sum whose parts are known: two ranks, so the decoded expectation is the sum of the decoded inputs.
  for (const char* name : {"half", "bfloat16"}) {
    const Operation op{CollectiveKind::all_reduce, {}, *parse_datatype(name), 64, 0, 2, false};
    // Decoded through a mismatch: feed rank r's input as a broadcast result that is expected of nobody.
    const auto a = input(op, 0), b = input(op, 1);
    const auto value = [&](const std::vector<std::byte>& bytes, std::size_t i) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, &bytes[2 * i], 2);
      if (bits == 0) return 0.0;
      const bool half = std::string(name) == "half";
      const int exponent = half ? (bits >> 10) - 15 : (bits >> 7) - 127;
      const double significand = half ? 1 + (bits & 0x3ff) / 1024.0 : 1 + (bits & 0x7f) / 128.0;
      return std::ldexp(significand, exponent);
    };
    std::vector<std::byte> nothing(128, std::byte());
    const auto found = first_mismatch(op, 0, reader(nothing, op.type));
    REQUIRE(found);
    const auto i = static_cast<std::size_t>(found->index);
    CHECK(found->expected == value(a, i) + value(b, i));
  }
}

TEST_CASE("sizes are cut to whole elements per rank") {
  const auto count = [](CollectiveKind kind, const char* type, std::int64_t bytes, int ranks) {
    return whole_elements(kind, *parse_datatype(type), Bytes(bytes), ranks);
  };
  CHECK(count(CollectiveKind::all_reduce, "float", 10, 3) == 2);      // 10 / 4
  CHECK(count(CollectiveKind::all_gather, "float", 100, 6) == 24);    // 100 / (4 * 6) = 4 per rank
  CHECK(count(CollectiveKind::alltoall, "double", 1000, 3) == 123);   // 1000 / 24 = 41 per rank
  CHECK_FALSE(count(CollectiveKind::reduce_scatter, "float", 8, 3));  // 2 floats for 3 ranks
}
