// What --help prints: commands by task, each with an example; options by group, wrapped to the
// terminal; examples last.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace weft::driver {

/// Reads nothing but the CLI11 apps: a command's group and options' groups are theirs, its footer
/// holds examples, one a line, of which `weft --help` shows the first.
class HelpFormatter : public CLI::FormatterBase {
public:
  std::string make_help(const CLI::App *command, std::string before,
                        CLI::AppFormatMode mode) const override;
};

}  // namespace weft::driver
