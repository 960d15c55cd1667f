// Scenarios as a person chooses among them: what each is about, and its variants.
#pragma once

#include <string>
#include <vector>

#include "collcast/scenario/scenario.hpp"

namespace collcast {

struct ScenarioEntry {
  std::string name, title;
  struct Variant {
    std::string name, title;
  };
  std::vector<Variant> what_if;
};

/// Of a shipped name or a file, which is not checked beyond what is listed.
Result<ScenarioEntry> describe_scenario(const std::string& name_or_file, const SearchPath&);

}  // namespace collcast
