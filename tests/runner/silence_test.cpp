// Ranks that say nothing, as a message names them.
#include "runner/silence.hpp"

#include <catch2/catch.hpp>

#include <numeric>

using collcast::runner::silence_text;

TEST_CASE("silent ranks are named by ranges") {
  CHECK(silence_text({1}, 2, 8) == "no word from rank 1");
  CHECK(silence_text({1, 2}, 4, 8) == "no word from ranks 1, 2");
  CHECK(silence_text({1, 2, 4, 5, 6, 9}, 10, 16) == "no word from ranks 1, 2, 4 to 6, 9");
}

TEST_CASE("with more ranks than processors the message says what would help") {
  std::vector<std::size_t> silent(296);
  std::iota(silent.begin(), silent.end(), std::size_t{4});
  CHECK(silence_text(silent, 300, 2) ==
        "no word from ranks 4 to 299; 300 ranks take turns on 2 processors: fewer --ranks, or a longer --timeout");
  CHECK(silence_text({1}, 2, 0) == "no word from rank 1");  // nobody knows how many there are
}
