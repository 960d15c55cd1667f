// Measured matrix products, forecast one by one.
#pragma once

#include <string>
#include <vector>

#include "collcast/report/kernels_document.hpp"
#include "collcast/scenario/gemm_table.hpp"
#include "collcast/validation/scored_machines.hpp"

namespace collcast {

/// A file of measured products, or why it is none.
struct KernelTable {
  std::string id;  ///< file name without its folders
  std::vector<GemmRow> rows;
  std::string file = {};      ///< with its folders, for messages
  bool names_systems = true;  ///< it has the column `system`
};
struct KernelTables {
  std::vector<KernelTable> tables;
  std::vector<UnscoredKernels> unread;
};
/// CSV files, and those of folders. A file of a folder that has other columns is listed, one that is named an error.
Result<KernelTables> load_kernel_tables(const std::vector<std::string>& paths, const Location& asked_by);

/// Rows that are faster than the GPU which they name can be, and repeats of a product that are no repeats: each an
/// error at its place, as of a kernel table's `measured.file`. Not of rows that a single machine with another GPU
/// stands for.
Diagnostics impossible_products(const KernelTables&, const ScoredMachines&);

/// Every row forecast on the machine with the GPU that its system names, or counted with the reason why not.
KernelReport validate_kernels(const KernelTables&, const ScoredMachines&);

}  // namespace collcast
