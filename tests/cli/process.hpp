// Runs a command line as a shell does, for tests of the program as a whole.
#pragma once

#include <filesystem>
#include <string>

namespace collcast::test {

struct Outcome {
  int exit = 0;
  std::string out, err;
};

/// `command` under /bin/sh in `directory`, with `collcast` found by its name and no terminal anywhere.
Outcome run_shell(const std::string& command, const std::filesystem::path& directory);

/// The same with standard output and error on a terminal of its own; both come back in `out`. Once `until` is seen
/// there, Ctrl-C is typed (nothing: never).
Outcome run_on_terminal(const std::string& command, const std::filesystem::path& directory,
                        const std::string& until = {});

/// A new, empty folder that is removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& content) const;
  std::string read(const std::string& name) const;
  /// Names of what is in it, sorted.
  std::string listing() const;

 private:
  std::filesystem::path path_;
};

}  // namespace collcast::test
