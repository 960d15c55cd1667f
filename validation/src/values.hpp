// Numbers of tables and logs.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "collcast/base/quantity.hpp"

namespace collcast {

/// A whole number of bytes from 0 to 2^62.
std::optional<Bytes> read_size(std::string_view);
/// Microseconds above 0 and up to 10^12 (eleven days).
std::optional<Seconds> read_microseconds(std::string_view);
/// What a test prints where it has no time: 0, nan or inf.
bool is_no_time(std::string_view);
/// And at least one.
bool all_digits(std::string_view);
/// Digits with an optional sign, to 10^9.
std::optional<int> read_whole(std::string_view);
/// A number of 0 or more as it was printed: it was within `rounding`, half a unit of its last digit, of that.
struct PrintedNumber {
  double value = 0, rounding = 0;
  double least() const { return std::max(0.0, value - rounding); }
  double most() const { return value + rounding; }
};
/// Nothing where it is none, or has an exponent: its last digit is then none of the value's.
std::optional<PrintedNumber> read_printed(std::string_view);
/// What any column of numbers may hold, nan and inf too.
bool is_number(std::string_view);
/// "all_reduce" in "./build/all_reduce_perf_mpi"; empty where no test is named.
std::string_view test_named_in(std::string_view);
/// "2.27.3" for 22703, NCCL's own way of counting.
std::string nccl_version_text(int code);

}  // namespace collcast
