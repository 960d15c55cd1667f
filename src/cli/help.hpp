// How --help looks: paragraphs apart, long descriptions wrapped under themselves.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace collcast::cli {

/// With the commands that it is under: "collcast topology show".
std::string command_of(const CLI::App&);

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App*, std::string name, CLI::AppFormatMode) const override;
  std::string make_usage(const CLI::App*, std::string name) const override;
  std::string make_option(const CLI::Option*, bool is_positional) const override;
  std::string make_subcommand(const CLI::App*) const override;
};

}  // namespace collcast::cli
