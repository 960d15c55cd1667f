// Commands called in this process, their streams kept.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace collcast::test {

struct Called {
  int exit = 0;
  std::string out, err;
};

/// `words` as after "collcast", separated by blanks but for those in '...'; shipped files are the source tree's,
/// nothing is a terminal.
Called call(const std::string& words);
/// The JSON of a command that has to succeed.
nlohmann::json document_of(const std::string& words);

}  // namespace collcast::test
