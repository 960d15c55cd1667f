// What of NVIDIA's is here: driver, GPUs, NCCL and its version.
//
// Asked in a process of its own: once CUDA has been initialised in this one, ranks could not be forked any more.
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/descriptor.hpp"
#include "runner/frames.hpp"
#include "runner/nccl_library.hpp"

namespace collcast::runner {

void look_for_gpus(BackendEntry& entry) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return entry.lacking.push_back("no pipe to look for GPUs");
  Descriptor reading(ends[0]), writing(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return entry.lacking.push_back("no process to look for GPUs");
  if (child == 0) {
    const NvidiaLibraries found = open_nvidia_libraries();
    std::string out;
    pack(out, std::to_string(found.devices));
    pack(out, std::to_string(found.nccl_version));
    for (const std::string& lacking : found.lacking) pack(out, lacking);
    const bool told = ::write(writing.number(), out.data(), out.size()) == static_cast<ssize_t>(out.size());
    ::_exit(told ? 0 : 1);
  }
  writing.close();
  std::string text(1 << 16, '\0');
  std::size_t size = 0;
  for (;;) {
    const ssize_t got = ::read(reading.number(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (status != 0) return entry.lacking.push_back("the NVIDIA driver or NCCL crashes when it is opened");
  std::string_view rest(text.data(), size);
  entry.devices = std::atoi(unpack(rest).c_str());
  const int version = std::atoi(unpack(rest).c_str());
  if (version > 0) entry.version = nccl_version_text(version);
  while (!rest.empty()) entry.lacking.push_back(unpack(rest));
}

}  // namespace collcast::runner
