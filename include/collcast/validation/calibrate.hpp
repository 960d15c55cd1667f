// Fits a machine's few physical parameters to measured tables: NLopt's subplex method (SBPLX) on the mean of
// |log(predicted / measured)|, within the bounds of overlay.hpp. Which algorithm is fastest depends on the parameters,
// so fitting and choosing take turns. Same tables, same overlay, to the last digit.
//
// Set-ups that their source calls broken are left out, and so are, of library ideal, tables of more than 512 ranks,
// whose forecasts take too long for a fit; smaller tables of the same machine have the same links.
#pragma once

#include "collcast/report/calibrate_document.hpp"
#include "collcast/scenario/overlay.hpp"
#include "collcast/validation/validate.hpp"

namespace collcast {

inline constexpr int most_ranks_of_a_fit = 512;
/// Of a table's sizes in a fit of library ideal; more do not make a fit of five parameters better.
inline constexpr std::size_t most_sizes_of_a_fit = 16;

struct CalibrateResult {
  Overlay overlay;
  CalibrateReport report;
};
/// Fails where no table can be used, and where `goes_on` ends it before a machine is fitted; after that, those that are
/// not are listed.
Result<CalibrateResult> calibrate(const std::vector<MeasuredTable>&, Machines&, Statistic, Library = Library::ideal,
                                  const Telling& tell = {}, const GoesOn& goes_on = {});

/// Every table with a calibration that was fitted to the other tables of its system on the same machine. Tables that
/// have none are listed; those that `goes_on` leaves no time for are counted.
ValidateReport leave_one_out(const std::vector<MeasuredTable>&, Machines&, Library, Statistic, const Telling& tell = {},
                             const GoesOn& goes_on = {});

/// Every `of`-th size of each table beginning with the `index`-th (from 1): fit to one part, validate on another.
struct SizePart {
  int index = 1, of = 1;
};
/// Tables that no size is left of go, and are returned with the reason.
std::vector<UnscoredTable> keep_part(std::vector<MeasuredTable>&, SizePart);

}  // namespace collcast
