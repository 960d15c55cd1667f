#include "collcast/report/scenario_listing.hpp"

#include "report/document.hpp"

namespace collcast {

std::string json(const ScenarioListing& listing) {
  Json out = document("collcast.scenarios.v1");
  out["rows"] = Json::array();
  for (const ScenarioListing::Entry& entry : listing.entries) {
    Json variants = Json::array();
    for (const ScenarioListing::Variant& v : entry.what_if) variants.push_back({{"name", v.name}, {"title", v.title}});
    out["rows"].push_back({{"name", entry.name}, {"title", entry.title}, {"what_if", std::move(variants)}});
  }
  return text(out);
}

Table csv(const ScenarioListing& listing) {
  Table out{{}, {{"scenario", {}, Align::left}, {"what_if", {}, Align::left}, {"title", {}, Align::left}}, {}};
  for (const ScenarioListing::Entry& entry : listing.entries) {
    out.rows.push_back({csv_name(entry.name), "", csv_name(entry.title)});
    for (const ScenarioListing::Variant& v : entry.what_if)
      out.rows.push_back({csv_name(entry.name), csv_name(v.name), csv_name(v.title)});
  }
  return out;
}

Page page(const ScenarioListing& listing) {
  Page out;
  out.title = "scenarios";
  Table table{{}, {{"scenario", "", Align::left}, {"--what-if", "", Align::left}, {"what it is", "", Align::left}}, {}};
  for (const ScenarioListing::Entry& entry : listing.entries) {
    table.rows.push_back({entry.name, "", entry.title});
    for (const ScenarioListing::Variant& v : entry.what_if) table.rows.push_back({"", v.name, v.title});
  }
  out.blocks.push_back(std::move(table));
  return out;
}

}  // namespace collcast
