// Operations, order edges, streams and labels.
#include "collcast/schedule/schedule.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include "support/small_shapes.hpp"

using namespace collcast;

TEST_CASE("operations are numbered in the order they are added and keep their work and edges") {
  Schedule s;
  const OpId a = s.add(Compute{Rank(2), Seconds(1e-3)}, {}, {"layer 0", "forward"});
  const OpId b = s.add(Delay{Seconds(2e-3)}, std::vector<After>{{a}});
  const OpId c = s.add(Transfer{Rank(0), Rank(1), Volume(5), 3, -1}, std::vector<After>{{a, Until::left}, {b}});

  CHECK(s.size() == 3);
  CHECK(c.value() == 2);
  CHECK(std::get<Compute>(s.work(a)).rank == Rank(2));
  CHECK(std::get<Transfer>(s.work(c)).traffic.priority == -1);
  CHECK(s.after(a).empty());
  REQUIRE(s.after(c).size() == 2);
  CHECK(s.after(c)[0].op == a);
  CHECK(s.after(c)[0].until == Until::left);
  CHECK(s.after(c)[1].op == b);
  CHECK(s.after(c)[1].until == Until::finished);
}

TEST_CASE("labels are shared, and absent ones are empty") {
  Schedule s;
  const OpId a = s.add(Delay{}, {}, {"bucket", "dp"});
  const OpId b = s.add(Delay{}, {}, {"bucket", "dp"});
  const OpId c = s.add(Delay{});
  CHECK(s.name(a) == "bucket");
  CHECK(s.category(a) == "dp");
  CHECK(s.name(a).data() == s.name(b).data());
  CHECK(s.name(c).empty());
  CHECK(s.category(c).empty());
}

TEST_CASE("an operation on a stream also waits for the one before it there, and only for that") {
  Schedule s;
  const StreamId compute = s.add_stream({"compute", Rank(0)});
  const StreamId tp = s.add_stream({"tp", Rank(0)});
  const OpId a = s.add(compute, Delay{});
  const OpId b = s.add(tp, Delay{});
  const OpId c = s.add(compute, Delay{});
  const OpId d = s.add(compute, Delay{}, std::vector<After>{{b}});

  CHECK(s.after(a).empty());
  CHECK(s.after(b).empty());
  REQUIRE(s.after(c).size() == 1);
  CHECK(s.after(c)[0].op == a);
  REQUIRE(s.after(d).size() == 2);
  CHECK(s.after(d)[0].op == b);
  CHECK(s.after(d)[1].op == c);
  CHECK(s.stream(d) == compute);
  CHECK(s.stream(s.add(Delay{})) == std::nullopt);
  CHECK(s.streams()[1].name == "tp");
}

TEST_CASE("an exchange is one part per participant, each after its own ready operation") {
  Schedule s;
  std::vector<OpId> ready;
  for (int i = 0; i < 4; ++i) ready.push_back(s.add(Delay{}));
  const OpId first = s.add_exchange(test::ring_all_reduce(4, Volume(4096)), ready, 2, {"grads", "dp"});

  CHECK(s.size() == 8);
  REQUIRE(s.exchanges().size() == 1);
  CHECK(s.exchanges()[0].first == first);
  CHECK(s.exchanges()[0].traffic.priority == 2);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const OpId part(first.value() + i);
    CHECK(std::get<Part>(s.work(part)).participant == static_cast<int>(i));
    REQUIRE(s.after(part).size() == 1);
    CHECK(s.after(part)[0].op == ready[i]);
    CHECK(s.name(part) == "grads");
  }
  CHECK(s.after(s.add_exchange(test::ring_all_reduce(4, Volume(1)))).empty());
}
