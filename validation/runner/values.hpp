// What ranks put in and what they must get out, whatever library moves it.
//
// Input element i of rank r is a whole number that depends on r and i, small enough that sums over all ranks
// are exact in every datatype, in any order: results are compared bit by bit. The numbers repeat with a prime
// period, so that a block in the wrong place shows, filling and checking copy memory, and no expected buffer
// is ever stored. Leaves out: other reductions than the sum, the 8-bit floating-point types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/collective/collective.hpp"

namespace collcast::runner {

enum class DataType : std::uint8_t { int8, uint8, int32, uint32, int64, uint64, half, bfloat16, float32, float64 };
/// nccl-tests' names: "float" is float32, "double" is float64.
std::string_view to_string(DataType);
std::optional<DataType> parse_datatype(std::string_view);
std::size_t element_bytes(DataType);

/// One collective on one buffer size, as a library is asked to do it.
struct Operation {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::string algorithm;
  DataType type = DataType::float32;
  std::int64_t count = 0;  ///< elements that nccl-tests' size stands for; a multiple of the ranks where it is cut
  int root = 0;
  int ranks = 1;
  bool in_place = false;

  std::size_t bytes() const { return static_cast<std::size_t>(count) * element_bytes(type); }
};

/// True where each rank holds or gets a k-th of the buffer.
bool is_cut(CollectiveKind);

/// The largest operation of at most `size`, or nothing where not one element per rank remains.
std::optional<std::int64_t> whole_elements(CollectiveKind, DataType, Bytes size, int ranks);

/// Elements that `rank` puts in and gets out; 0 where it takes no part on that side.
std::int64_t input_count(const Operation&, int rank);
std::int64_t output_count(const Operation&, int rank);

/// The bytes of `rank`'s input from element `first` on.
void fill(const Operation&, int rank, std::int64_t first, std::span<std::byte> out);

struct Mismatch {
  std::int64_t index = 0;  ///< element of the rank's output
  double expected = 0, got = 0;
};
/// Reads a rank's output piece by piece through `read(first element, bytes)`; the first wrong element.
using ReadOutput = std::function<void(std::int64_t, std::span<std::byte>)>;
std::optional<Mismatch> first_mismatch(const Operation&, int rank, const ReadOutput& read);

}  // namespace collcast::runner
