// The store where ranks meet: over real sockets on loopback.
#include "runner/store.hpp"

#include <catch2/catch.hpp>

#include <arpa/inet.h>
#include <future>
#include <sys/socket.h>

#include "runner/communicator.hpp"
#include "runner/frames.hpp"
#include "runner/meeting.hpp"

using namespace collcast;
using namespace collcast::runner;
using namespace std::chrono_literals;

namespace {

struct Served {
  Listener listener = listen_at("127.0.0.1", 0);
  int port = listener.port;
  StoreServer server{std::move(listener.socket)};
};

}  // namespace

TEST_CASE("a key is set once and read by all, also by those who asked before it was set") {
  Served served;
  Store first("127.0.0.1", served.port, 5s);
  auto waiting = std::async(std::launch::async, [&] {
    Store second("127.0.0.1", served.port, 5s);
    return second.get("address", 5s);
  });
  const std::string binary("a\0b", 3);
  CHECK(first.set("address", binary));
  CHECK_FALSE(first.set("address", "again"));
  CHECK(waiting.get() == binary);
  CHECK(first.get("address", 5s) == binary);
}

TEST_CASE("waiting ends at the deadline") {
  Served served;
  Store store("127.0.0.1", served.port, 5s);
  CHECK_FALSE(store.get("never", 50ms));
  const int free_port = listen_at("127.0.0.1", 0).port;  // closed again at once
  CHECK_THROWS_AS(Store("127.0.0.1", free_port, 100ms), Broken);
}

TEST_CASE("an answer that comes after its deadline is not taken for the next one's") {
  Served served;
  Store hasty("127.0.0.1", served.port, 5s), other("127.0.0.1", served.port, 5s);
  REQUIRE_FALSE(hasty.get("late", 20ms));
  // The server answers the get that nobody waits for before it answers this set.
  REQUIRE(other.set("late", "1"));
  REQUIRE(other.set("key", "2"));
  CHECK(hasty.get("key", 5s) == "2");
  CHECK_FALSE(hasty.set("key", "3"));
  CHECK(hasty.get("late", 5s) == "1");
}

TEST_CASE("a stranger is shown out and the ranks go on") {
  Served served;
  const Descriptor stranger(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(served.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(stranger.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  const std::string request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  REQUIRE(::send(stranger.number(), request.data(), request.size(), 0) == static_cast<ssize_t>(request.size()));
  char byte = 0;
  CHECK(::recv(stranger.number(), &byte, 1, 0) <= 0);  // closed
  Store store("127.0.0.1", served.port, 5s);
  CHECK(store.set("key", "value"));
}

TEST_CASE("ranks that want different things, or come twice, are told so") {
  Served served;
  MeasurePlan plan;
  plan.backend = "gloo";
  plan.timeout = 2s;
  const auto meeting = [&](int rank, MeasurePlan its_plan) {
    return std::async(std::launch::async, [&served, rank, its_plan]() -> std::string {
      Store store("127.0.0.1", served.port, its_plan.timeout);
      Membership self;
      self.rank = rank;
      self.ranks = 2;
      try {
        meet(its_plan, self, store);
      } catch (const Broken& broken) {
        return broken.what();
      }
      return "met";
    });
  };
  SECTION("the same") {
    auto a = meeting(0, plan), b = meeting(1, plan);
    CHECK(a.get() == "met");
    CHECK(b.get() == "met");
  }
  SECTION("another datatype") {
    MeasurePlan other = plan;
    other.datatype = "double";
    auto a = meeting(0, plan), b = meeting(1, other);
    const std::string said = a.get();
    CHECK(said.find("rank 1 measures something else than rank 0") == 0);
    CHECK(b.get() == said);
  }
  SECTION("one GPU for all or not") {
    MeasurePlan other = plan;
    other.share_gpu = true;
    auto a = meeting(0, plan), b = meeting(1, other);
    const std::string said = a.get();
    CHECK(said.find("rank 1 measures something else than rank 0") == 0);
    CHECK(said.find(" share-gpu") != std::string::npos);
    CHECK(b.get() == said);
  }
  SECTION("twice the same rank") {
    auto a = meeting(0, plan);
    a.wait_for(300ms);
    CHECK(meeting(0, plan).get().find("rank 0 is there already") == 0);
    CHECK(meeting(1, plan).get() == "met");
    CHECK(a.get() == "met");
  }
}

TEST_CASE("frames come out as they went in, however they are cut") {
  const std::string bytes = frame("one") + frame("") + frame(std::string(70000, 'x'));
  for (const std::size_t piece : {1UL, 3UL, 4096UL, bytes.size()}) {
    FrameReader reader;
    std::vector<std::size_t> lengths;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.append(&bytes[at], std::min(piece, bytes.size() - at));
      while (const auto one = reader.next()) lengths.push_back(one->size());
    }
    CHECK(lengths == std::vector<std::size_t>{3, 0, 70000});
  }
  FrameReader broken;
  broken.append("HTTP", 4);  // as a length: a gigabyte
  CHECK_FALSE(broken.next());
  CHECK(broken.broken());
}
