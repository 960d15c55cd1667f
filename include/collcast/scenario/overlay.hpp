// Calibration of machines: a few physical parameters per machine, kept in a file of their own, so that the description
// of the hardware stays what data sheets say (docs/formats.md, "Overlays").
//
// Of library ideal, a link of latency a and bandwidth b counts with a * latency_scale and b * efficiency of its class;
// every collective begins base_latency later (what the library, the launch and the first byte cost whatever the size).
// Of library nccl, its constants count times NcclFactors. A machine may have one calibration of each.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/evaluate/library.hpp"
#include "collcast/scenario/scenario.hpp"
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
  /// Over the rows it was fitted to, per band of size: median error without and with it.
  struct Residual {
    std::string band;
    int rows = 0;
    double before = 0, after = 0;
    /// Between which at least 8 of 10 of measured over forecast with it are; 0: the file does not say.
    double low = 0, high = 0;
    /// The fit took from these rows what it gave to others: by more than the tenth of a point that people are shown.
    bool is_worse() const { return after > before + 0.001; }
    /// Half of the rows are still this far off: something that no parameter stands for, or a machine that is not this.
    bool is_far_off() const { return after >= far_off; }
    static constexpr double far_off = 0.2;
  };
  std::vector<Residual> residuals;
  std::vector<std::string> tables;  ///< ids of what it was fitted to
  std::string description = {};     ///< digest of the machine that it was fitted on; empty: an older file does not say
  std::vector<std::string> set = {};  ///< "path=value" of --set at the fit
  using Range = Scenario::FittedTo;
  std::optional<Range> range = {};  ///< empty: an older file does not say
  Library library = Library::ideal;
  NcclFactors nccl = {};                  ///< library nccl has these, and none of the latencies and efficiencies above
  std::vector<std::string> remarks = {};  ///< for people, as comments; not read back
  /// Intervals of `residuals` have rows of tables that a fit had not seen, too; false: of those fitted to alone.
  bool interval_of_unseen_tables = false;
};

struct Overlay {
  std::string file, fitted_by;
  std::vector<Calibration> machines;
  /// For people, lines of a comment at the file's top; not read back.
  std::vector<std::string> remarks = {};

  const Calibration* find(const std::string& machine, Library) const;
};

Result<Overlay> parse_overlay(std::string_view text, std::string_view file_name);
/// From a file, or a shipped one by its name; errors that keep it from being read are at `asked_by`.
Result<Overlay> load_overlay(const std::string& name_or_file, const SearchPath&, const Location& asked_by);
/// As a file, that parse_overlay reads back.
std::string overlay_text(const Overlay&);
/// The calibration of that machine and library, or an error at `asked_by` with those that there are.
Result<Calibration> calibration_of(const Overlay&, const std::string& machine, Library, const Location& asked_by);

/// The description with the parameters put in, but for base_latency, which is no link's.
TopologySpec calibrated(TopologySpec, const Calibration&);

}  // namespace collcast
