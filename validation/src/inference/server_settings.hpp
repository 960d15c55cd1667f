// The lines of servers.csv.
#pragma once

#include <string>
#include <vector>

#include "collcast/validation/inference_table.hpp"
#include "collcast/validation/server_settings.hpp"
#include "csv_file.hpp"

namespace collcast {

/// Whose a line is, in a word: "system", "h200_sxm".
struct SettingWord {
  std::string column, word;
  Location where;
};

/// Every line behind the heading, and their words; every bad cell and unknown column is a complaint at its place.
void read_settings(CsvFile&, std::vector<ServerSettings>&, std::vector<SettingWord>&, Complaints&);

/// Words that no server has, which would leave their line without effect: neither one that is described nor of a row,
/// scored or beside.
void check_words(const std::vector<SettingWord>&, const InferenceTables&, Complaints&);

}  // namespace collcast
