// Warnings of many runs of one command, each said once.
#pragma once

#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/session.hpp"

namespace collcast::cli {

/// What variants or points of one scenario say: each thing once, whatever variant it is of.
class SaidOnce {
 public:
  explicit SaidOnce(const Session& session)
      : err_(session.err), quiet_{session.out,         heard_,       session.style, false, session.search,
                                  session.environment, session.words} {}

  const Session& session() const { return quiet_; }
  /// What was heard since is news, unless it was heard before: a line, with those below that are indented.
  void keep() {
    std::istringstream heard(heard_.str());
    forget();
    std::string one;
    const auto end = [&] {
      if (seen_.insert(without_option(one)).second) news_.push_back(one);
      one.clear();
    };
    for (std::string line; std::getline(heard, line); one += line + '\n')
      if (!line.starts_with(' ')) end();
    end();
  }
  /// What was heard since is none.
  void forget() { heard_.str(""); }
  void tell() {
    keep();
    for (const std::string& one : news_) err_ << one;
    err_ << std::flush;
    news_.clear();
  }

 private:
  /// A warning of each value of an option is one.
  static std::string without_option(const std::string& one) {
    const std::size_t place_end = one.find(": warning: ");
    return one.starts_with("--") && place_end != std::string::npos ? one.substr(place_end) : one;
  }

  std::ostream& err_;
  std::ostringstream heard_;
  Session quiet_;
  std::set<std::string> seen_;
  std::vector<std::string> news_;
};

}  // namespace collcast::cli
