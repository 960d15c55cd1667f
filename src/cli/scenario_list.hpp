// Which scenarios there are.
#pragma once

#include <string>

#include "cli/output.hpp"
#include "cli/session.hpp"

namespace collcast::cli {

void add_list_option(CLI::App&, bool& list);
/// `scenario`: a name or a file; empty: all that are shipped. What else the command line of `app` gives is refused, as
/// it would have no effect.
Exit run_list(const CLI::App& app, const std::string& scenario, const OutputOptions&, const Session&);

}  // namespace collcast::cli
