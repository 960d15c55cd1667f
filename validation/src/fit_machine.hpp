// One machine's calibration, per library: what its tables say of the library's parameters.
#pragma once

#include "collcast/report/calibrate_document.hpp"
#include "collcast/scenario/overlay.hpp"
#include "fit_rows.hpp"

namespace collcast {

/// The best calibration of the machine; `report` receives what it took and which parameters were found. Once `goes_on`
/// says no the fit is over soon, and its result is none.
Calibration fit_ideal(const TopologySpec&, const std::vector<FitTable>&, Statistic, CalibrateReport::Machine& report,
                      const GoesOn& goes_on);
/// Likewise of library nccl. Tables count alike, however many rows they have.
Calibration fit_nccl(const TopologySpec&, const std::vector<FitTable>&, Statistic, CalibrateReport::Machine& report,
                     const GoesOn& goes_on);

}  // namespace collcast
