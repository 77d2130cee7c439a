// Help texts; see Help.h.
#include "tools/driver/Help.h"

#include "kernel/TextWidth.h"
#include "tools/driver/Console.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace weft::driver {
namespace {

constexpr size_t nameColumns = 26, commandColumns = 10;

/// "  NAME      what it is", the second part wrapped beside the first, or below it where the first
/// is long.
std::string entry(const std::string &name, const std::string &meaning, size_t columns) {
  const std::string indent(columns + 2, ' ');
  const size_t width = resultColumns();
  const std::string room = width == unlimitedColumns
                               ? meaning
                               : wrapped(meaning, width - std::min(width / 2, indent.size()), 0);
  std::string text = "  " + name;
  text += textColumns(name) + 1 > columns ? "\n" + indent
                                          : std::string(columns - textColumns(name), ' ');
  for (const char letter : room) text += letter == '\n' ? "\n" + indent : std::string(1, letter);
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

bool isPositional(const CLI::Option *option) { return option->get_positional(); }

/// "-o,--output DIR", "--dim NAME=N ...", "--train".
std::string label(const CLI::Option *option) {
  std::string text = isPositional(option) ? option->get_type_name() : option->get_name(false, true);
  if (isPositional(option) && (text.empty() || text == "TEXT")) text = option->get_name(true);
  if (!isPositional(option) && option->get_type_size() != 0 && !option->get_type_name().empty())
    text += " " + option->get_type_name();
  if (option->get_items_expected_max() > 1 && option->get_type_size() != 0) text += " ...";
  return text;
}

std::string meaning(const CLI::Option *option) {
  const std::string &absent = option->get_default_str();
  return option->get_description() + (absent.empty() ? "" : fmt::format(" [{}]", absent));
}

std::string usage(const CLI::App &command, const std::string &name) {
  std::string text = "usage: " + name;
  if (!command.get_subcommands({}).empty())
    text += command.get_require_subcommand_min() > 0 ? " COMMAND" : " [COMMAND]";
  for (const CLI::Option *option : command.get_options(isPositional))
    text += option->get_required() ? " " + label(option) : fmt::format(" [{}]", label(option));
  return text + " [OPTION ...]\n";
}

/// Groups as people look for them; others follow in the order of their options.
std::vector<std::string> groupsOf(const CLI::App &command) {
  const std::vector<std::string> first = {"Model", "Choices", "Target", "Phases"},
                                 last = {"Output"};
  const std::vector<std::string> all = command.get_groups();
  std::vector<std::string> groups;
  const auto add = [&](const std::string &group) {
    if (!group.empty() && std::ranges::find(groups, group) == groups.end() &&
        std::ranges::find(all, group) != all.end())
      groups.push_back(group);
  };
  for (const std::string &group : first) add(group);
  for (const std::string &group : all)
    if (std::ranges::find(last, group) == last.end()) add(group);
  for (const std::string &group : last) add(group);
  return groups;
}

std::string optionsText(const CLI::App &command) {
  std::string text;
  for (const CLI::Option *option : command.get_options(isPositional))
    text += entry(label(option), meaning(option), nameColumns);
  for (const std::string &group : groupsOf(command)) {
    std::string lines;
    for (const CLI::Option *option : command.get_options())
      if (!isPositional(option) && option->get_group() == group)
        lines += entry(label(option), meaning(option), nameColumns);
    if (!lines.empty()) text += fmt::format("\n{}\n{}", emphasized(group), lines);
  }
  return text.starts_with('\n') ? text : "\n" + text;
}

std::string examplesText(const CLI::App &command) {
  if (command.get_footer().empty()) return "";
  std::string text = "\n" + emphasized("Examples") + "\n  ";
  for (const char letter : command.get_footer())
    text += letter == '\n' ? "\n  " : std::string(1, letter);
  return text + "\n";
}

std::string rootText(const CLI::App &root) {
  std::string text =
      root.get_description() +
      "\n\nusage: weft COMMAND [OPTION ...]       weft COMMAND --help tells all about one\n";
  std::vector<std::string> groups;
  for (const CLI::App *command : root.get_subcommands({}))
    if (std::ranges::find(groups, command->get_group()) == groups.end())
      groups.push_back(command->get_group());
  for (const std::string &group : groups) {
    text += fmt::format("\n{}\n", emphasized(group));
    for (const CLI::App *command : root.get_subcommands({})) {
      if (command->get_group() != group) continue;
      text += entry(command->get_name(), command->get_description(), commandColumns);
      const std::string footer = command->get_footer();
      text += std::string(commandColumns + 4, ' ') + footer.substr(0, footer.find('\n')) + "\n";
    }
  }
  return text +
         "\nevery command has --help, --json and --wide; --version is that of weft\n"
         "exit codes: 0 done, 1 a check failed or something differs, 2 bad input, 3 not "
         "supported,\n"
         "            4 a miss under --strict\n";
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App *command, std::string before,
                                     CLI::AppFormatMode) const {
  if (!command->get_parent()) return wrapped(rootText(*command), resultColumns());
  std::string name = command->get_name();
  for (const CLI::App *parent = command->get_parent(); parent; parent = parent->get_parent())
    name = parent->get_name() + " " + name;
  std::string text =
      fmt::format("{}: {}\n\n{}", name, command->get_description(), usage(*command, name));
  const std::vector<const CLI::App *> subcommands = command->get_subcommands({});
  if (!subcommands.empty()) text += "\n" + emphasized("Commands") + "\n";
  for (const CLI::App *subcommand : subcommands)
    text += entry(subcommand->get_name(), subcommand->get_description(), commandColumns);
  return wrapped(text + optionsText(*command) + examplesText(*command), resultColumns());
}

}  // namespace weft::driver
