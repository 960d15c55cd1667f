#include "report/overview_calibrations.hpp"

#include <functional>

namespace collcast {

namespace {

constexpr const char* calibrate_schema = "collcast.calibrate.v1";

/// A row of each fact of the calibrations whose name begins so.
void for_each_fact(const Overview& o, std::string_view prefix,
                   const std::function<void(const OverviewItem&, std::string_view rest, const std::string&)>& take) {
  for (const OverviewItem& item : o.items) {
    if (item.result.result.schema != calibrate_schema) continue;
    for (const SavedFact& fact : item.result.result.facts)
      if (fact.name.starts_with(prefix)) take(item, std::string_view(fact.name).substr(prefix.size()), fact.value);
  }
}

std::string value_of(const SavedResult& result, const std::string& name) {
  for (const SavedFact& fact : result.facts)
    if (fact.name == name) return fact.value;
  return "-";
}

}  // namespace

Table calibrated_range_table(const Overview& o) {
  Table out{"calibrated on",
            {{"result", "", Align::left},
             {"machine", "", Align::left},
             {"library", "", Align::left},
             {"holds for", "", Align::left},
             {"tables", "", Align::left}},
            {}};
  for_each_fact(o, "tables of ", [&](const OverviewItem& item, std::string_view machine, const std::string& tables) {
    const SavedResult& result = item.result.result;
    const std::string name(machine);
    out.rows.push_back({item.result.name, name, value_of(result, "library"), value_of(result, "range of " + name),
                        tables.empty() ? "-" : tables});
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
  for_each_fact(o, "parameter of ", [&](const OverviewItem& item, std::string_view of, const std::string& value) {
    const std::size_t colon = of.rfind(": ");
    if (colon == std::string_view::npos) return;
    out.rows.push_back({item.result.name, std::string(of.substr(0, colon)), std::string(of.substr(colon + 2)), value});
  });
  return out;
}

Table unused_tables_table(const Overview& o) {
  Table out{
      "not calibrated by", {{"result", "", Align::left}, {"table", "", Align::left}, {"why", "", Align::left}}, {}};
  for_each_fact(o, "unused ", [&](const OverviewItem& item, std::string_view table, const std::string& why) {
    out.rows.push_back({item.result.name, std::string(table), why});
  });
  return out;
}

}  // namespace collcast
