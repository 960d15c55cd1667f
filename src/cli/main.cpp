// The process: its streams and environment on one side, the commands on the other.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "cli/commands.hpp"
#include "cli/data_path.hpp"

namespace {

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::map<std::string, std::string> whole_environment() {
  std::map<std::string, std::string> out;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) out[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return out;
}

bool is_capable_terminal(int descriptor) {
  return environment("TERM").value_or("dumb") != "dumb" && ::isatty(descriptor) == 1;
}

/// https://no-color.org: any value but the empty one.
bool may_colour() { return environment("NO_COLOR").value_or("").empty() && is_capable_terminal(STDOUT_FILENO); }

/// What one simulation gives back the next one takes, without the kernel clearing it in between: a step simulates its
/// collectives one after the other, each with arrays over the links of the machine
/// (docs/decisions/0023-state-of-a-run.md). Limits of memory hold as they are.
void keep_freed_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest that glibc takes
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  using namespace collcast::cli;
  keep_freed_memory();
  // A closed pipe becomes a failed write: temporary files are taken away before the program ends.
  std::signal(SIGPIPE, SIG_IGN);
  const Session session{std::cout,
                        std::cerr,
                        {may_colour()},
                        is_capable_terminal(STDERR_FILENO),
                        data_search_path(environment("COLLCAST_DATA"), own_executable()),
                        whole_environment()};
  return static_cast<int>(run(argc, argv, session));
}
