// JUnit XML, as CI systems read it: suites of cases. pugixml ends here.
#pragma once

#include <string>
#include <vector>

namespace collcast {

struct JunitCase {
  std::string name;
  std::string failure;       ///< empty: passed
  std::string details;       ///< of a failure, or said beside a case that passed
  std::string skipped = {};  ///< why it was not looked at; empty: it was
};
struct JunitSuite {
  std::string name;
  std::vector<JunitCase> cases;
};
std::string junit_text(const std::string& name, const std::vector<JunitSuite>&);

}  // namespace collcast
