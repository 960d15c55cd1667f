// What a page of results says of calibrations.
#pragma once

#include "collcast/report/overview.hpp"

namespace collcast {

/// Tables of what they were fitted to, and of their parameters with what each may be; empty where there are none.
Table calibrated_range_table(const Overview&);
Table calibrated_parameters_table(const Overview&);
Table unused_tables_table(const Overview&);

}  // namespace collcast
