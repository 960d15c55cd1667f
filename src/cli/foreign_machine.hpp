// collcast topology import and export: machines of other programs in, machines for other programs out.
#pragma once

#include <string>

#include "cli/machine.hpp"

namespace collcast::cli {

struct ImportArgs {
  std::string file, format = "auto", like, name, nic_rate, output;
};
void add_import_options(CLI::App&, ImportArgs&);
Exit run_import(const ImportArgs&, const Session&);

struct ExportArgs {
  MachineOptions machine;
  std::string format, output;  ///< no format: by the suffix of the output, else dot
};
Exit run_export(const ExportArgs&, const Session&);

}  // namespace collcast::cli
