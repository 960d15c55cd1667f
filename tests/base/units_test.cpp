// Quantities as people write them.
#include "collcast/base/units.hpp"

#include <catch2/catch.hpp>

#include <limits>

#include "collcast/base/product.hpp"

using namespace collcast;

TEST_CASE("decimal and binary sizes differ") {
  CHECK(parse_bytes("1GB").value == Bytes(1'000'000'000));
  CHECK(parse_bytes("1GiB").value == Bytes(std::int64_t{1} << 30));
  // Beyond 2^53, which doubles do not tell apart.
  CHECK(parse_bytes("9007199254740993B").value == Bytes((std::int64_t{1} << 53) + 1));
  CHECK(parse_bytes_or_number("4611686018427387903").value == Bytes((std::int64_t{1} << 62) - 1));
  CHECK(parse_bytes_or_number("4611686018427387904").value == Bytes(std::int64_t{1} << 62));
  CHECK_FALSE(parse_bytes_or_number("4611686018427387905").ok);
  CHECK_FALSE(parse_bytes("4503599627370497KiB").ok);  // 2^52 + 1 of them
  CHECK(parse_bytes("256 KiB").value == Bytes(256 * 1024));
  CHECK(parse_bytes("1.5KiB").value == Bytes(1536));
  // 28.3 x 2^30 = 30386893619.2; the nearest whole byte. Of less than one none is near.
  CHECK(parse_bytes("28.3GiB").value == Bytes(30386893619));
  CHECK(parse_bytes("4.9MiB").value == Bytes(5138022));
  CHECK_FALSE(parse_bytes("0.0001KiB").ok);
}

TEST_CASE("a bare number is bytes only where allowed") {
  CHECK_FALSE(parse_bytes("8").ok);
  CHECK(parse_bytes_or_number("8").value == Bytes(8));
  CHECK(parse_bytes_or_number("8 ").value == Bytes(8));
  CHECK(parse_bytes_or_number("1e3").value == Bytes(1000));
  CHECK(parse_bytes_or_number("2KiB").value == Bytes(2048));
  CHECK(parse_bytes_or_number("1kb").expected == parse_bytes("1kb").expected);
  for (const char* text : {"", "-1", "1.5", "1e30", "x"}) CHECK_FALSE(parse_bytes_or_number(text).ok);
}

TEST_CASE("sizes that make no sense are refused") {
  for (const char* text : {"", "B", "-1B", "1.5B", "nanB", "infGB", "1e30GB", "8TB/s", "1 G", "0x10B", "1GBs"})
    CHECK_FALSE(parse_bytes(text).ok);
  CHECK(parse_bytes("9999999EiB").expected.ends_with("; this is too large, 4 EiB is the most"));
  CHECK(parse_bytes("1mib").expected.ends_with("; did you mean 'MiB'?"));
  CHECK(parse_bytes("1gb").expected.ends_with("; did you mean 'GB'?"));
  CHECK(parse_bytes("1zb").expected == parse_bytes("").expected);
  CHECK(parse_bandwidth("1gb/s").expected.ends_with("; did you mean 'GB/s' or 'Gb/s'?"));
  CHECK(parse_seconds("1NS").expected.ends_with("; did you mean 'ns'?"));
  CHECK(parse_bytes("0B").ok);
}

TEST_CASE("bits are eighths of bytes") {
  CHECK(parse_bandwidth("400Gb/s").value == Bandwidth(50e9));
  CHECK(parse_bandwidth("50GB/s").value == Bandwidth(50e9));
  for (const char* text : {"0GB/s", "-1GB/s", "5", "5GB", "GB/s"}) CHECK_FALSE(parse_bandwidth(text).ok);
}

TEST_CASE("times keep their decimal value") {
  CHECK(parse_seconds("500ns").value.count() == 5e-7);
  CHECK(parse_seconds("1.5us").value.count() == 1.5e-6);
  CHECK(parse_seconds("0s").value.count() == 0.0);
  for (const char* text : {"-1us", "3", "3 min", ""}) CHECK_FALSE(parse_seconds(text).ok);
}

TEST_CASE("crossing to engine time rounds up, but not past a whole picosecond") {
  CHECK(to_picoseconds(Seconds(1e-12)).count() == 1);
  CHECK(to_picoseconds(Seconds(1.0000001e-12)).count() == 2);
  CHECK(to_picoseconds(Seconds(0)).count() == 0);
  CHECK(to_picoseconds(Seconds(-1)).count() == 0);
  // 1 GiB at 10 GB/s is 107374182400 ps exactly.
  CHECK(to_picoseconds(Bytes(std::int64_t{1} << 30) / Bandwidth(10e9)).count() == 107'374'182'400);
  CHECK(to_picoseconds(Seconds(1e300)).count() == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("printers pick the unit") {
  CHECK(format_bytes(Bytes(std::int64_t{1} << 30)) == "1 GiB");
  CHECK(format_bytes(Bytes(1000)) == "1000 B");
  // 4435088 KiB is exact, but nobody reads it: 4.22963... GiB.
  CHECK(format_bytes(Bytes(4'435'088 * std::int64_t{1024})) == "4.23 GiB");
  CHECK(format_bytes(Bytes(std::int64_t{1} << 62)) == "4 EiB");
  CHECK(format_bytes(Volume(0x1p62)) == "4 EiB");
  CHECK(format_bytes(Volume(1.5 * 0x1p50)) == "1.5 PiB");
  CHECK(format_seconds(Seconds(1.738e5)) == "173800 s");
  CHECK(format_seconds(Seconds(9999.6)) == "10000 s");
  CHECK(format_bandwidth(Bandwidth(300e9)) == "300 GB/s");
  CHECK(format_seconds(Seconds(1.2345e-5)) == "12.35 us");
  CHECK(format_seconds(Seconds(0)) == "0 s");
  CHECK(format_flop_rate(FlopRate(312e12)) == "312 TFLOP/s");
  CHECK(format_count(70.6e9) == "70.6 G");
}

TEST_CASE("a product is known up to its limit, and is nothing beyond it, however much 64 bits wrap it") {
  CHECK(product_within({}, 10) == 1);
  CHECK(product_within({2, 5}, 10) == 10);
  CHECK_FALSE(product_within({2, 5, 2}, 10));
  CHECK(product_within({3, 0, 4}, 10) == 0);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(product_within({most, 1}, most) == most);
  // 2^22 x 2^22 x 2^20 = 2^64, which is 0 in 64 bits.
  CHECK_FALSE(product_within({4194304, 4194304, 1048576}, most));
}
