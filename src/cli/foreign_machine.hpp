// collcast topology import and export: machines of other programs in, machines for other programs out.
#pragma once

#include <string>

#include "cli/machine.hpp"

namespace collcast::cli {

struct ImportArgs {
  std::string file, format, from, like, name, nic_rate, output;  ///< format: FILE's, as from, or that of a report
};
void add_import_options(CLI::App&, ImportArgs&);
Exit run_import(const ImportArgs&, const Session&);

struct ExportArgs {
  MachineOptions machine;
  std::string format, to, output;  ///< format: as to, or that of a report; neither: by the output's suffix, else dot
};
void add_export_formats(CLI::App&, ExportArgs&);
Exit run_export(const ExportArgs&, const Session&);

}  // namespace collcast::cli
