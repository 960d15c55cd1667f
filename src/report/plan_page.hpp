// What the page of a plan and that of a server's plan have in common, private to this layer.
#pragma once

#include <string>
#include <vector>

#include "collcast/report/plan_document.hpp"

namespace collcast {

std::string gibibytes(Bytes);
/// "compute 74%, TP 22%, bubble 4%": what is at least a hundredth, largest first.
std::string where_it_goes(const Breakdown&);
/// Of a choice in the place of the layout of `base`.
std::string layout_text(const LayoutChoice&, const StepInputs& base);
/// Ranks that each expert is split over.
int expert_tp_of(const LayoutChoice&, const StepInputs& base);
/// "+3.1%", "<0.1%"; empty: none, or nothing to compare with.
std::string difference(double own, double best);
/// "+1.2 ms"; "+0 s" of what rounding alone tells apart.
std::string time_difference(Seconds own, Seconds best);

// --- a server's plan: plan_server_page.cpp ---
std::string server_text(const LayoutChoice&);
std::string server_title(const PlanReport&);
/// The run of requests that each replica serves, as far as layouts have it in common.
std::string server_load_text(const Serving&);
std::vector<Column> server_columns(const PlanReport&);
std::vector<std::string> server_row(const PlanReport&, std::string number, const PlannedLayout&);
/// "no layout fits", or of a search that was stopped what it saw.
std::string none_fits_text(bool all_seen, std::int64_t evaluated, const std::string& stopped_by);
/// Where nothing keeps the limits.
std::string none_keeps_limits(const PlanReport&, const NearestToLimits&);
Table server_variants(const PlanReport&);
/// Both layouts' times by closed form, and what each of them is made of.
std::vector<Table> server_times(const char* name, const WhyLayout& own, const WhyLayout& best);

}  // namespace collcast
