// The table of commands and the one place where errors become messages and exit codes; see CommandLine.h.
#include "tools/driver/CommandLine.h"

#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "runtime/Streams.h"
#include "tools/driver/Console.h"
#include "tools/driver/commands/Commands.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace weft::driver {
namespace {

struct CommandRow {
  const char *name;
  const char *summary;
  Action (*add)(CLI::App &command);
};

const CommandRow commandRows[] = {
    {"compile", "a model to an artifact: chosen fusions and layouts, CUDA text, cubins", addCompile},
    {"import", "a model to its graph; decides nothing", addImport},
    {"opt", "the proposing passes: variants of the graph and every fusion attempt", addOpt},
    {"profile", "measure the configurations of a model's kernels on GPUs; export, import and merge what was measured", addProfile},
    {"select", "choose fusions, layouts and configurations; print the plan or draw the selection graph", addSelect},
    {"emit", "emit and build an artifact again after its plan or its kernels were edited", addEmit},
    {"verify", "every kernel on a GPU against fp64, the whole plan on small extents against the interpreter", addVerify},
    {"explain", "why an artifact is as it is, with prices", addExplain},
    {"run", "an artifact on a GPU, on random inputs or those of a file", addRun},
    {"time", "how long an artifact and its kernels take, alone or against another", addTime},
    {"diff", "what differs between two artifacts; exit 1 if anything does", addDiff},
    {"cache", "the kernel cache: stat, verify, gc", addCache},
    {"env", "environment variables, tools found, folders", addEnv},
    {"devices", "the GPUs that weft can choose for, with the source of every figure", addDevices},
};

std::string_view nameOf(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::checkFailed: return "check-failed";
  case ErrorKind::badInput: return "bad-input";
  case ErrorKind::unsupported: return "unsupported";
  case ErrorKind::strictMiss: return "strict-miss";
  }
  return "check-failed";
}

/// What was typed; errors are told before, and whether or not, CLI11 understood it.
struct Typed {
  std::vector<std::string> arguments;

  Typed(int count, char **texts) : arguments(texts + std::min(count, 1), texts + count) {}
  bool wantsJson() const { return std::find(arguments.begin(), arguments.end(), "--json") != arguments.end(); }
  std::string command() const { return arguments.empty() ? "" : arguments.front(); }
};

/// The message on standard error; with --json an object on standard output as well, so that a script reads one stream.
int fail(ErrorKind kind, const std::string &message, const Typed &typed) {
  if (typed.wantsJson()) {
    const nlohmann::json error = {{"exitCode", int(kind)}, {"kind", nameOf(kind)}, {"message", message}};
    try {
      printResult(nlohmann::json{{"error", error}});
    } catch (const Error &) {  // the message is all that can be told
    }
  }
  runtime::say(fmt::format("weft: error: {}\n", message));
  return int(kind);
}

/// An option that the command does not have, with the nearest it has; empty if there is none.
std::string unknownOption(const CLI::App &command, const Typed &typed) {
  std::vector<std::string> known;
  for (const CLI::Option *option : command.get_options())
    for (const std::string &name : option->get_lnames()) known.push_back("--" + name);
  for (const std::string &argument : typed.arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (!name.starts_with("--") || name == "--" || std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = nearest(name, known);
    return fmt::format("unknown option '{}'{} ({} --help lists all)", name,
                       near.empty() ? "" : fmt::format("; nearest is '{}'", near),
                       command.get_parent() ? "weft " + command.get_name() : command.get_name());
  }
  return "";
}

/// An error of the command line itself; CLI11 prints help through the same path.
int usage(const CLI::App &root, const CLI::ParseError &error, const Typed &typed) {
  if (error.get_exit_code() == 0) return root.exit(error);
  std::vector<std::string> names;
  for (const CommandRow &row : commandRows) names.emplace_back(row.name);
  const std::string first = typed.command();
  const bool known = std::find(names.begin(), names.end(), first) != names.end();
  if (!first.empty() && first[0] != '-' && !known)
    return fail(ErrorKind::badInput, fmt::format("unknown command '{}'{}", first, nearestAndKnown(first, names)), typed);
  const std::string option = unknownOption(known ? *root.get_subcommand(first) : root, typed);
  if (!option.empty()) return fail(ErrorKind::badInput, option, typed);
  return fail(ErrorKind::badInput,
              fmt::format("{} (weft {}--help lists what there is)", error.what(), known ? first + " " : ""), typed);
}

}  // namespace

int runCommandLine(int argumentCount, char **arguments) {
  CLI::App root("weft: a transformer layer in, chosen layouts and readable CUDA out", "weft");
  root.set_version_flag("--version", "weft 0.1.0");
  root.require_subcommand(1);
  const Typed typed(argumentCount, arguments);
  int exitCode = 0;
  bool json = false;
  for (const CommandRow &row : commandRows) {
    CLI::App *command = root.add_subcommand(row.name, row.summary);
    command->add_flag("--json", json, "print one JSON value instead of text");
    command->add_flag_callback("--wide", allowWide, "lines of text as long as they are, not shortened or wrapped to the terminal or to 100 columns");
    command->callback([&exitCode, &json, action = row.add(*command)] { exitCode = action(json); });
  }
  try {
    try {
      root.parse(argumentCount, arguments);
    } catch (const CLI::ParseError &error) {
      exitCode = usage(root, error, typed);
    }
    runtime::finishOutput();
    return exitCode;
  } catch (...) {
    const runtime::Failure failure = runtime::failureOf(std::current_exception());
    return fail(failure.kind, failure.message, typed);
  }
}

}  // namespace weft::driver
