// The process: its streams and environment on one side, the commands on the other.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/data_path.hpp"

namespace {

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

bool is_capable_terminal(int descriptor) {
  return environment("TERM").value_or("dumb") != "dumb" && ::isatty(descriptor) == 1;
}

/// https://no-color.org: any value but the empty one.
bool may_colour() { return environment("NO_COLOR").value_or("").empty() && is_capable_terminal(STDOUT_FILENO); }

}  // namespace

int main(int argc, char** argv) {
  using namespace collcast::cli;
  // A closed pipe becomes a failed write with a message and an exit code, not a silent death.
  std::signal(SIGPIPE, SIG_IGN);
  const Session session{std::cout,
                        std::cerr,
                        {may_colour()},
                        is_capable_terminal(STDERR_FILENO),
                        data_search_path(environment("COLLCAST_DATA"), own_executable())};
  return static_cast<int>(run(argc, argv, session));
}
