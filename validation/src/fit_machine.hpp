// One machine's calibration, per library: what its tables say of the library's parameters.
#pragma once

#include "collcast/report/calibrate_document.hpp"
#include "collcast/scenario/overlay.hpp"
#include "collcast/validation/machines.hpp"

namespace collcast {

/// A row that is fitted to.
struct FitRow {
  const PlacedTable* place = nullptr;
  Bytes size{};
  Seconds measured{};
  double weight = 1;  ///< beside the others
};

/// The best calibration of the machine; `report` receives what it took and which parameters were found. Once `goes_on`
/// says no the fit is over soon, and its result is none.
Calibration fit_ideal(const TopologySpec&, const std::vector<FitRow>&, CalibrateReport::Machine& report,
                      const GoesOn& goes_on);
/// Likewise of library nccl. Tables count alike, however many rows they have.
Calibration fit_nccl(const TopologySpec&, const std::vector<FitRow>&, CalibrateReport::Machine& report,
                     const GoesOn& goes_on);

}  // namespace collcast
