// The files that a command reads are not written over by what it writes.
#pragma once

#include <string>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/topology/spec.hpp"
#include "collcast/workload/config.hpp"

namespace collcast::cli {

/// An error, with both names, for every output that is one of the files read. Empty names, '-' and names of no file are
/// none.
Diagnostics check_overwriting(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

/// All of standard input, or that it is empty, with what was expected of it.
Result<std::string> read_stdin(const std::string& expected);

/// A machine's file and what it extends.
std::vector<std::string> files_of_machine(const TopologySpec&);
/// A kernel table's file and those of its measured products.
std::vector<std::string> files_of_kernels(const KernelModel&);

/// What is read of an input: itself, or the files of a folder (with this suffix, if one is given).
std::vector<std::string> files_of(const std::string& input, const std::string& suffix = "");

}  // namespace collcast::cli
