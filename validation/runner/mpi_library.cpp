#include "runner/mpi_library.hpp"

#include <fmt/format.h>

#include <array>
#include <dlfcn.h>
#include <filesystem>
#include <sstream>

namespace collcast::runner {

namespace {

namespace fs = std::filesystem;

/// Beside the program, in the build tree as after an installation.
fs::path module_file() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return self.parent_path() / COLLCAST_MPI_MODULE;
}

}  // namespace

std::string mpi_version_text(const std::string& library) {
  // "Open MPI v4.1.4, package: Open MPI someone@somewhere Distribution, ...", "MPICH Version:\t4.0.2\nMPICH Release
  // ..."
  std::istringstream words(library.substr(0, library.find_first_of(",\n")));
  std::string out;
  for (std::string word; words >> word;) {
    if (word == "Version:" || word == "Version" || word == ":") continue;
    if (word.size() > 1 && word[0] == 'v' && word[1] >= '0' && word[1] <= '9') word.erase(0, 1);
    out += (out.empty() ? "" : " ") + word;
  }
  return out;
}

MpiLibrary open_mpi() {
  MpiLibrary out;
  const fs::path file = module_file();
  std::error_code error;
  if (!fs::exists(file, error)) {
    out.lacking.push_back(fmt::format(
        "{} is missing beside the program: copy it along, or install with cmake --install", file.filename().string()));
    return out;
  }
  // Global: parts of MPI that it opens itself look for its symbols.
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    out.lacking.push_back(
        fmt::format("MPI cannot be opened: {}; install openmpi-bin, or name the folder of MPI's "
                    "library in LD_LIBRARY_PATH",
                    ::dlerror()));
    return out;
  }
  const auto functions = reinterpret_cast<MpiFunctionsOf>(::dlsym(handle, mpi_functions_name));
  if (functions == nullptr) {
    out.lacking.push_back(fmt::format("{} is of another version of collcast", file.filename().string()));
    return out;
  }
  out.mpi = functions();
  std::array<char, 8192> text{};
  out.mpi->library(text.data(), static_cast<int>(text.size()));
  out.version = mpi_version_text(text.data());
  return out;
}

}  // namespace collcast::runner
