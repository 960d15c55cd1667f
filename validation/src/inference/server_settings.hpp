// The lines of servers.csv.
#pragma once

#include "collcast/validation/server_settings.hpp"
#include "csv_file.hpp"

namespace collcast {

/// Every line behind the heading; every bad cell is a complaint at its place.
void read_settings(CsvFile&, std::vector<ServerSettings>&, Complaints&);

}  // namespace collcast
