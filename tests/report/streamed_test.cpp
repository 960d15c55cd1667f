// Documents that are written row by row end where what they are written to takes no more.
#include <catch2/catch.hpp>

#include <chrono>
#include <functional>
#include <ostream>
#include <streambuf>

#include "collcast/report/calibrate_document.hpp"
#include "collcast/report/validate_document.hpp"

using namespace collcast;

namespace {

/// Takes so many characters, and no more.
class Disk : public std::streambuf {
 public:
  explicit Disk(std::int64_t room) : room_(room) {}
  std::int64_t taken() const { return taken_; }

 protected:
  int_type overflow(int_type c) override {
    if (taken_ == room_) return traits_type::eof();
    ++taken_;
    return traits_type::not_eof(c);
  }
  std::streamsize xsputn(const char*, std::streamsize n) override {
    const std::streamsize fits = std::min<std::streamsize>(n, room_ - taken_);
    taken_ += fits;
    return fits;
  }

 private:
  std::int64_t room_, taken_ = 0;
};

/// Seconds that it takes to write on a disk with so much room, and what of it was taken.
std::pair<double, std::int64_t> written(const std::function<void(std::ostream&)>& write, std::int64_t room) {
  Disk disk(room);
  std::ostream out(&disk);
  const auto begin = std::chrono::steady_clock::now();
  write(out);
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), disk.taken()};
}

}  // namespace

TEST_CASE("no row is made once the disk is full: that takes less than a quarter of writing all of them") {
  constexpr std::size_t rows = 100'000;
  ValidateReport scored;
  for (int t = 0; t < 2; ++t) {
    scored.tables.emplace_back().algorithms = {"ring"};
    scored.tables.back().rows.assign(rows / 2, {Bytes(8), Seconds(1e-5), Seconds(2e-5), {}, false, 0});
  }
  CalibrateReport fitted;
  CalibrateReport::Residuals& left = fitted.machines.emplace_back().residuals.emplace_back();
  left.forecasts.push_back({Bytes(8), Seconds(1e-5), Seconds(1e-5)});
  left.rows.assign(rows, {Seconds(1e-5), 0, false});
  for (const auto& write : {std::function<void(std::ostream&)>([&](std::ostream& out) { write_json(out, scored); }),
                            {[&](std::ostream& out) { write_residuals(out, fitted); }}}) {
    const auto [all, size] = written(write, std::int64_t{1} << 40);
    CHECK(size > std::int64_t{20} * std::int64_t{rows});
    constexpr std::int64_t block = 1 << 16;
    const auto [until_full, taken] = written(write, block);
    CHECK(taken == block);
    CHECK(until_full < all / 4);
  }
}
