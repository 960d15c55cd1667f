#include "report/overview_calibrations.hpp"

#include <functional>

namespace collcast {

namespace {

void for_each_fact(const Overview& o, SavedFact::About about,
                   const std::function<void(const OverviewItem&, const SavedFact&)>& take) {
  for (const OverviewItem& item : o.items)
    for (const SavedFact& fact : item.result.result.facts)
      if (fact.about == about) take(item, fact);
}

std::string library_of_facts(const SavedResult& result) {
  for (const SavedFact& fact : result.facts)
    if (fact.name == "library") return fact.value;
  return "-";
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace

Table calibrated_range_table(const Overview& o) {
  Table out{"calibrated on",
            {{"result", "", Align::left},
             {"machine", "", Align::left},
             {"library", "", Align::left},
             {"holds for", "", Align::left},
             {"tables", "", Align::left}},
            {}};
  for_each_fact(o, SavedFact::About::calibrated_machine, [&](const OverviewItem& item, const SavedFact& fact) {
    out.rows.push_back(
        {item.result.name, fact.of, library_of_facts(item.result.result), or_dash(fact.part), or_dash(fact.value)});
  });
  return out;
}

Table calibrated_parameters_table(const Overview& o) {
  Table out{"calibrated parameters",
            {{"result", "", Align::left},
             {"machine", "", Align::left},
             {"parameter", "", Align::left},
             {"value", "", Align::left}},
            {}};
  for_each_fact(o, SavedFact::About::parameter, [&](const OverviewItem& item, const SavedFact& fact) {
    out.rows.push_back({item.result.name, fact.of, fact.part, fact.value});
  });
  return out;
}

Table unused_tables_table(const Overview& o) {
  Table out{
      "not calibrated by", {{"result", "", Align::left}, {"table", "", Align::left}, {"why", "", Align::left}}, {}};
  for_each_fact(o, SavedFact::About::unused_table, [&](const OverviewItem& item, const SavedFact& fact) {
    out.rows.push_back({item.result.name, fact.of, fact.value});
  });
  return out;
}

}  // namespace collcast
