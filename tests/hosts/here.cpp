#include "hosts/here.hpp"

#include <catch2/catch.hpp>

namespace collcast::test {

const std::string with_hosts =
    "export COLLCAST_DATA=" COLLCAST_SOURCE_DIR "; hosts=" COLLCAST_SOURCE_DIR "/tools/hosts; ";

Hosts::Hosts(const Folder& folder, const std::string& options) : folder_(folder) {
  const Outcome up = run_shell(with_hosts + "$hosts up " + options, folder.path());
  if (up.exit == 3) {
    WARN("skipped: no hosts can be made here: " << up.err);
    return;
  }
  CAPTURE(up.err);
  REQUIRE(up.exit == 0);
  name_ = up.out.substr(0, up.out.find('\n'));
}

Hosts::~Hosts() {
  if (there()) run_shell(with_hosts + "$hosts down --set " + name_, folder_.path());
}

Outcome Hosts::run(const std::string& command) const {
  return run_shell(with_hosts + "$hosts run --set " + name_ + " -- " + command, folder_.path());
}

}  // namespace collcast::test
