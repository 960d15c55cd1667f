// Calibration of machines: a few physical parameters per machine, kept in a file of their own, so that the description
// of the hardware stays what data sheets say (docs/formats.md, "Overlays").
//
// A link of latency a and bandwidth b counts with a * latency_scale and b * efficiency of its class; every collective
// begins base_latency later (what the library, the launch and the first byte cost whatever the size).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/topology/spec.hpp"

namespace collcast {

/// Links that lose their bandwidth in the same way: NVLink and chip-to-chip; PCIe and between sockets; the network.
enum class LinkClass { nvlink, pcie, network };
inline constexpr std::array<LinkClass, 3> link_classes{LinkClass::nvlink, LinkClass::pcie, LinkClass::network};
std::string_view to_string(LinkClass);
LinkClass class_of(LinkKind);

/// What a parameter may be, in files and in fits.
inline constexpr Seconds most_base_latency{0.1};
inline constexpr double least_latency_scale = 0.1, most_latency_scale = 1000;
inline constexpr double least_efficiency = 0.01, most_efficiency = 1;

struct Calibration {
  std::string machine;  ///< name of the topology
  Seconds base_latency{};
  double latency_scale = 1;
  std::array<double, 3> efficiency{1, 1, 1};  ///< by LinkClass
  /// Median error over the rows it was fitted to, per band of size, without and with it.
  struct Residual {
    std::string band;
    int rows = 0;
    double before = 0, after = 0;
    /// The fit took from these rows what it gave to others: by more than the tenth of a point that people are shown.
    bool is_worse() const { return after > before + 0.001; }
  };
  std::vector<Residual> residuals;
  std::vector<std::string> tables;  ///< ids of what it was fitted to
  std::string description = {};     ///< digest of the machine that it was fitted on; empty: an older file does not say
  std::vector<std::string> set = {};  ///< "path=value" of --set at the fit
};

struct Overlay {
  std::string file, fitted_by;
  std::vector<Calibration> machines;

  const Calibration* find(const std::string& machine) const;
};

Result<Overlay> parse_overlay(std::string_view text, std::string_view file_name);
/// From a file; errors that keep it from being read are at `asked_by`.
Result<Overlay> load_overlay(const std::string& file, const Location& asked_by);
/// As a file, that parse_overlay reads back.
std::string overlay_text(const Overlay&);
/// The calibration of that machine, or an error at `asked_by` with the machines that there are.
Result<Calibration> calibration_of(const Overlay&, const std::string& machine, const Location& asked_by);

/// The description with the parameters put in, but for base_latency, which is no link's.
TopologySpec calibrated(TopologySpec, const Calibration&);

}  // namespace collcast
