#include "cli/called.hpp"

#include <catch2/catch.hpp>

#include <iomanip>
#include <sstream>
#include <vector>

#include "cli/commands.hpp"
#include "cli/data_path.hpp"

namespace collcast::test {

Called call(const std::string& words) {
  std::istringstream in("collcast " + words);
  std::vector<std::string> list;
  for (std::string word; in >> std::quoted(word, '\'');) list.push_back(word);
  std::vector<const char*> argv;
  for (const std::string& word : list) argv.push_back(word.c_str());
  std::ostringstream out, err;
  const cli::Session session{out, err, {}, false, cli::data_search_path(COLLCAST_SOURCE_DIR, "")};
  const cli::Exit exit = cli::run(static_cast<int>(argv.size()), argv.data(), session);
  return {static_cast<int>(exit), out.str(), err.str()};
}

nlohmann::json document_of(const std::string& words) {
  const Called called = call(words + " --format json");
  INFO(words << "\n" << called.err);
  REQUIRE(called.exit == 0);
  return nlohmann::json::parse(called.out);
}

}  // namespace collcast::test
