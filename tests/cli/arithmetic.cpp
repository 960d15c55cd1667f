#include "cli/arithmetic.hpp"

#include <catch2/catch.hpp>

#include <cctype>
#include <cmath>
#include <map>
#include <string>

namespace collcast::test {

namespace {

double scale(const std::string& unit) {
  static const std::map<std::string, double> units{
      {"s", 1},        {"ms", 1e-3},    {"us", 1e-6},     {"ns", 1e-9},      {"ps", 1e-12},     {"B", 1},
      {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},  {"TiB", 0x1p40},   {"kB", 1e3},       {"MB", 1e6},
      {"GB", 1e9},     {"TB", 1e12},    {"B/s", 1},       {"kB/s", 1e3},     {"MB/s", 1e6},     {"GB/s", 1e9},
      {"TB/s", 1e12},  {"FLOP", 1},     {"GFLOP", 1e9},   {"TFLOP", 1e12},   {"PFLOP", 1e15},   {"EFLOP", 1e18},
      {"FLOP/s", 1},   {"MFLOP", 1e6},  {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {"kFLOP", 1e3},
      {"k", 1e3},      {"M", 1e6},      {"G", 1e9}};
  const auto found = units.find(unit);
  INFO("unit '" << unit << "'");
  REQUIRE(found != units.end());
  return found->second;
}

class Reading {
 public:
  explicit Reading(std::string_view text) : text_(text) {}

  double all() {
    const double value = sum();
    CHECK(rest().empty());
    return value;
  }

 private:
  std::string_view rest() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return text_.substr(at_);
  }
  bool take(std::string_view token) {
    if (!rest().starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  char next() { return rest().empty() ? '\0' : rest().front(); }

  double sum() {
    double value = product();
    for (;;) {
      if (take("+ "))
        value += product();
      else if (take("- "))
        value -= product();
      else
        return value;
    }
  }

  double product() {
    double value = factor();
    for (;;) {
      if (take("x "))
        value *= factor();
      else if (take("/ "))
        value /= factor();
      else if (next() == '(' || next() == 'm' || std::isdigit(static_cast<unsigned char>(next())) != 0)
        value *= factor();
      else
        return value;
    }
  }

  double factor() {
    if (take("max(")) return of_two([](double a, double b) { return std::max(a, b); });
    if (take("min(")) return of_two([](double a, double b) { return std::min(a, b); });
    const bool ceil = take("ceil");
    if (take("(")) {
      const double value = sum();
      CHECK(take(")"));
      return ceil ? std::ceil(value) : value;
    }
    return quantity();
  }

  template <class Function>
  double of_two(Function function) {
    const double first = sum();
    CHECK(take(","));
    const double second = sum();
    CHECK(take(")"));
    return function(first, second);
  }

  double quantity() {
    std::size_t digits = 0;
    const double value = std::stod(std::string(rest()), &digits);
    at_ += digits;
    const std::string_view after = rest();
    std::size_t length = 0;
    while (length < after.size() &&
           (std::isalpha(static_cast<unsigned char>(after[length])) != 0 || (length > 0 && after[length] == '/')))
      ++length;
    const std::string unit(after.substr(0, length));
    if (unit.empty() || unit == "x" || unit == "max" || unit == "min") return value;
    at_ += length;
    return value * scale(unit);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

double worth(std::string_view text) {
  INFO(text);
  return Reading(text).all();
}

}  // namespace collcast::test
