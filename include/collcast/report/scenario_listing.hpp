// collcast.scenarios.v1: the scenarios that can be named, and their variants.
#pragma once

#include <string>
#include <vector>

#include "collcast/report/table.hpp"

namespace collcast {

struct ScenarioListing {
  struct Variant {
    std::string name, title;
  };
  struct Entry {
    std::string name, title;
    std::vector<Variant> what_if;
  };
  std::vector<Entry> entries;
};

std::string json(const ScenarioListing&);
Table csv(const ScenarioListing&);
Page page(const ScenarioListing&);

}  // namespace collcast
