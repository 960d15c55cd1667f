#include "cli/process.hpp"

#include <fstream>
#include <iterator>
#include <pty.h>
#include <set>
#include <stdexcept>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

namespace collcast::test {

namespace fs = std::filesystem;

namespace {

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What differs from machine to machine is taken out of the environment.
std::string in_clean_environment(const std::string& command, const fs::path& directory) {
  const std::string bin = fs::path(COLLCAST_EXECUTABLE).parent_path().string();
  return "unset COLLCAST_DATA NO_COLOR; TERM=xterm; PATH='" + bin + "':$PATH; export TERM PATH; cd '" +
         directory.string() + "' && " + command;
}

int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

Outcome run_shell(const std::string& command, const fs::path& directory) {
  const Folder streams;
  const std::string out = (streams.path() / "out").string(), err = (streams.path() / "err").string();
  const std::string line =
      in_clean_environment("{ " + command + "\n} >'" + out + "' 2>'" + err + "' </dev/null", directory);
  const int status = std::system(line.c_str());
  return {exit_code(status), contents(out), contents(err)};
}

Outcome run_on_terminal(const std::string& command, const fs::path& directory, const std::string& until) {
  const std::string line = in_clean_environment(command, directory);
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) throw std::runtime_error("no pseudo-terminal");
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  constexpr char control_c = 3;
  Outcome outcome;
  char buffer[4096];
  bool waits = !until.empty();
  // The far end of a terminal that closes reads as an error.
  for (ssize_t got; (got = ::read(terminal, buffer, sizeof buffer)) > 0;) {
    outcome.out.append(buffer, static_cast<std::size_t>(got));
    if (!waits || outcome.out.find(until) == std::string::npos) continue;
    waits = false;
    if (::write(terminal, &control_c, 1) != 1) throw std::runtime_error("the pseudo-terminal takes no input");
  }
  ::close(terminal);
  int status = 0;
  ::waitpid(child, &status, 0);
  outcome.exit = exit_code(status);
  return outcome;
}

Folder::Folder() {
  std::string name = (fs::temp_directory_path() / "collcast-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void Folder::write(const std::string& name, const std::string& content) const {
  std::ofstream(path_ / name, std::ios::binary) << content;
}

std::string Folder::read(const std::string& name) const { return contents(path_ / name); }

std::string Folder::listing() const {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) names.insert(entry.path().filename().string());
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : " ") + name;
  return out;
}

}  // namespace collcast::test
