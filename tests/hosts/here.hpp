// Hosts for a test: made by tools/hosts, and taken away with the object.
#pragma once

#include <string>

#include "cli/process.hpp"

namespace collcast::test {

/// Before a command: where the tool and what is shipped are.
extern const std::string with_hosts;

class Hosts {
 public:
  /// `options` of `tools/hosts up`, such as "4 --rate 100Mbit".
  Hosts(const Folder&, const std::string& options);
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  /// False where this machine cannot make any; a warning has said why.
  bool there() const { return !name_.empty(); }
  const std::string& name() const { return name_; }
  /// The command once on each host.
  Outcome run(const std::string& command) const;

 private:
  const Folder& folder_;
  std::string name_;
};

}  // namespace collcast::test
