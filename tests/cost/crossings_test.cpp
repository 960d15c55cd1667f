// What hops of other moments leave a hop, by the hand derivation of the file's header.
#include "cost/crossings.hpp"

#include <catch2/catch.hpp>

using namespace collcast;

TEST_CASE("three hops of a sender, a chunk apart, end 3c-3, 3c-1 and 3c after the first began") {
  // One byte a chunk, one second a byte. First chunks end after 1, 1+2 and 1+2+3.
  for (const int c : {3, 8}) {
    Crossings link;
    for (const double moment : {0.0, 1.0, 2.0}) link.add(moment, 1, 1);
    link.close();
    double start = 0;
    const double expected[] = {3.0 * c - 3, 3.0 * c - 1, 3.0 * c};
    for (int hop = 0; hop < 3; ++hop) {
      const Crossings::Others others = link.beside(hop, 1, 1, c);
      CHECK(others.begun == hop);
      const double first = start + 1 + others.begun;
      CHECK(first + (c - 1) + others.earlier + others.later == Approx(expected[hop]));
      start = first;
    }
  }
}

TEST_CASE("what begins when a hop is over does not meet it") {
  Crossings link;
  link.add(0, 1, 1);
  link.add(4, 1, 1);
  link.close();
  for (const double moment : {0.0, 4.0}) {
    const Crossings::Others others = link.beside(moment, 1, 1, 4);
    CHECK(others.begun == 0);
    CHECK(others.earlier == 0);
    CHECK(others.later == 0);
  }
}

TEST_CASE("a large hop keeps a small one only by as much as the small one has") {
  // 1 byte beside 8: equal shares until it is done, so one more byte.
  Crossings link;
  link.add(0, 8, 1);
  link.add(2, 1, 1);
  link.close();
  CHECK(link.beside(0, 8, 8, 1).later == Approx(0.75));  // 2 of its 8 seconds before: (1 - 2/8) of the small one
  CHECK(link.beside(2, 1, 1, 3).begun == 1);
}

TEST_CASE("a hop whose chunks come slowly is met only as often as one is there") {
  Crossings link;
  link.add(0, 1, 0.25);
  link.add(1, 1, 1);
  link.close();
  CHECK(link.beside(1, 1, 1, 4).begun == 0.25);
}
