// docs/formats.md lists every key that a reader knows.
#include <catch2/catch.hpp>

#include <fstream>
#include <set>

#include "mutate.hpp"
#include "samples.hpp"

using namespace collcast;

TEST_CASE("every key of every format is in docs/formats.md") {
  std::ifstream in(COLLCAST_SOURCE_DIR "/docs/formats.md");
  const std::string text(std::istreambuf_iterator<char>(in), {});
  REQUIRE_FALSE(text.empty());
  std::set<std::string> undocumented;
  for (const samples::Sample& sample : samples::all()) {
    for (const input::KnownKey& known : sample.read(sample.text).known) {
      const std::string key = mutate::last_key(known.path);
      const bool named_by_user = known.path == "what_if.wide";
      // A row of a table: the key in code quotes after a bar, alone or as the end of a path.
      if (!named_by_user && text.find("`" + key + "`") == std::string::npos &&
          text.find("." + key + "`") == std::string::npos)
        undocumented.insert(known.path);
    }
  }
  CHECK(undocumented == std::set<std::string>{});
}
