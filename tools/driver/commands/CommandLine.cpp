// The table of commands and the one place where errors become messages and exit codes; see
// CommandLine.h.
#include "tools/driver/commands/CommandLine.h"

#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "runtime/commands/FormerFlags.h"
#include "runtime/system/Environment.h"
#include "runtime/system/Streams.h"
#include "tools/driver/Console.h"
#include "tools/driver/Help.h"
#include "tools/driver/commands/Commands.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weft::driver {
namespace {

struct CommandRow {
  const char *name;
  const char *group;
  const char *summary;
  const char *examples;  ///< one a line; the first stands in `weft --help`, and a test runs all in
                         ///< this order
  Action (*add)(CLI::App &command);
};

constexpr const char *compiling = "Compile a model", *looking = "See why, and what there is",
                     *running = "On a GPU", *machine = "This machine";

const CommandRow commandRows[] = {
    {"compile", compiling, "a model to an artifact: chosen fusions and layouts, CUDA text, cubins",
     "weft compile bert-large --dim b=8 --dim j=512 -o bert\n"
     "weft compile bert-large --pin q=hbpj -o pinned\n"
     "weft compile paper-encoder --train --stop-after emit -o encoder",
     addCompile},
    {"import", compiling, "a model to its graph; decides nothing",
     "weft import bert-large -o bert.mlir\n"
     "weft import llama-3-8b --dim j=4096",
     addImport},
    {"opt", compiling, "the proposing passes: variants of the graph and every fusion attempt",
     "weft opt bert.mlir --records\n"
     "weft opt gpt2 --candidates",
     addOpt},
    {"select", compiling,
     "choose fusions, layouts and configurations; print the plan or draw the selection graph",
     "weft select bert-large --alternatives 3\n"
     "weft select bert-large --attention unfused --dot selection.dot",
     addSelect},
    {"emit", compiling,
     "emit and build an artifact again after its plan or its kernels were edited",
     "weft emit bert\n"
     "weft emit bert --discard-edits -o again",
     addEmit},
    {"explain", looking, "why an artifact is as it is, with prices",
     "weft explain bert\n"
     "weft explain bert --fusion q,score\n"
     "weft explain bert --layout q",
     addExplain},
    {"diff", looking,
     "what differs between two artifacts, and which decision it comes from; exit 1 if anything "
     "does",
     "weft diff bert pinned", addDiff},
    {"models", looking,
     "the models that weft knows by name, their shapes and what is supported of them",
     "weft models\n"
     "weft models llama-3-8b",
     addModels},
    {"devices", looking, "the GPUs that weft can choose for, with the source of every figure",
     "weft devices\n"
     "weft devices h200",
     addDevices},
    {"run", running, "an artifact on a GPU, on random inputs or those of a file",
     "weft run bert --seed 7 --outputs results.safetensors", addRun},
    {"time", running, "how long an artifact and its kernels take, alone or against another",
     "weft time bert\n"
     "weft time bert --against pinned --rounds 51",
     addTime},
    {"verify", running,
     "every kernel on a GPU against fp64, the whole plan on small extents against the interpreter",
     "weft verify bert\n"
     "weft verify bert --samples 65536",
     addVerify},
    {"profile", running,
     "measure the configurations of a model's kernels on GPUs; export, import and merge what was "
     "measured",
     "weft profile bert --dry-run\n"
     "weft profile gpt2 --budget 600 --store h200.db\n"
     "weft profile export h200.db -o h200.txt",
     addProfile},
    {"cache", machine, "the kernel cache: stat, verify, gc",
     "weft cache stat\n"
     "weft cache gc --keep 2G",
     addCache},
    {"env", machine, "environment variables, tools found, folders", "weft env", addEnv},
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
  bool wantsJson() const {
    return std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  }
  std::string command() const { return arguments.empty() ? "" : arguments.front(); }
};

/// The message on standard error; with --json an object on standard output as well, so that a
/// script reads one stream.
int fail(ErrorKind kind, const std::string &message, const Typed &typed) {
  if (typed.wantsJson() && !message.empty()) {
    const nlohmann::json error = {
        {"exitCode", int(kind)}, {"kind", nameOf(kind)}, {"message", message}};
    try {
      printResult(nlohmann::json{{"error", error}});
    } catch (const Error &) {  // the message is all that can be told
    }
  }
  if (!message.empty()) runtime::say(fmt::format("weft: error: {}\n", message));
  return int(kind);
}

/// What other compilers call the options whose names are not near.
const std::map<std::string, std::string> otherWords = {
    {"--arch", "--target"}, {"--batch", "--dim"},
    {"--gpu", "--device"},  {"--gpu-architecture", "--target"},
    {"--sm", "--target"},   {"--precision", "--dtype"}};

/// An option that the command does not have, with the nearest it has; empty if there is none.
std::string unknownOption(const CLI::App &command, const Typed &typed) {
  const std::string title =
      command.get_parent() ? "weft " + command.get_name() : command.get_name();
  std::vector<std::string> known;
  for (const CLI::Option *option : command.get_options())
    for (const std::string &name : option->get_lnames()) known.push_back("--" + name);
  for (const std::string &argument : typed.arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (!name.starts_with("--") || name == "--" ||
        std::find(known.begin(), known.end(), name) != known.end())
      continue;
    if (std::string hint = runtime::formerFlagHint(name, known, title); !hint.empty()) return hint;
    const auto meant = otherWords.find(name);
    const std::string near =
        meant != otherWords.end() && std::ranges::count(known, meant->second) > 0
            ? meant->second
            : nearest(name, known);
    return fmt::format("unknown option '{}'{} ({} --help lists all)", name,
                       near.empty() ? "" : fmt::format("; nearest is '{}'", near), title);
  }
  return "";
}

/// An error of the command line itself; CLI11 prints help through the same path.
int usage(const CLI::App &root, const CLI::ParseError &error, const Typed &typed) {
  if (error.get_exit_code() == 0) return root.exit(error);  // prints help or version
  std::vector<std::string> names;
  for (const CommandRow &row : commandRows) names.emplace_back(row.name);
  const std::string first = typed.command();
  const bool known = std::find(names.begin(), names.end(), first) != names.end();
  if (!first.empty() && first[0] != '-' && !known)
    throw Error::badInput("unknown command '{}'{}", first, nearestAndKnown(first, names));
  const std::string option = unknownOption(known ? *root.get_subcommand(first) : root, typed);
  if (!option.empty()) throw Error::badInput("{}", option);
  throw Error::badInput("{} (weft {}--help lists what there is)", error.what(),
                        known ? first + " " : "");
}

/// Options that every command spells the same way.
void groupOutput(CLI::App &command) {
  for (const char *name : {"--output", "--keep", "--json", "--wide", "--help"})
    if (CLI::Option *option = command.get_option_no_throw(name)) option->group("Output");
}

}  // namespace

int runCommandLine(int argumentCount, char **arguments) {
  CLI::App root("weft: a transformer layer in, chosen layouts and readable CUDA out", "weft");
  root.set_version_flag("--version", "weft 0.1.0");
  root.require_subcommand(1);
  const Typed typed(argumentCount, arguments);
  int exitCode = 0;
  bool json = false;
  root.formatter(std::make_shared<HelpFormatter>());  // before the commands, which inherit it
  for (const CommandRow &row : commandRows) {
    CLI::App *command = root.add_subcommand(row.name, row.summary);
    command->group(row.group)->footer(row.examples);
    command->add_flag("--json", json, "print one JSON object instead of text");
    command->add_flag_callback(
        "--wide", runtime::allowWide,
        "lines as long as they are, not wrapped or shortened to the terminal, or to 100 columns");
    command->callback([&exitCode, &json, action = row.add(*command)] { exitCode = action(json); });
    groupOutput(*command);
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
