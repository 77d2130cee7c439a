// The table of commands and the one place where errors become messages and exit codes; see CommandLine.h.
#include "tools/driver/CommandLine.h"

#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "tools/driver/commands/Commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
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
    {"select", "choose fusions, layouts and configurations; print the plan or draw the selection graph", addSelect},
    {"emit", "emit and build an artifact again after its plan or its kernels were edited", addEmit},
    {"explain", "why an artifact is as it is, with prices", addExplain},
    {"run", "an artifact on a GPU, on random inputs or those of a file", addRun},
    {"time", "how long an artifact and its kernels take, alone or against another", addTime},
    {"diff", "what differs between two artifacts; exit 1 if anything does", addDiff},
    {"cache", "the kernel cache: stat, verify, gc", addCache},
    {"env", "environment variables, tools found, folders", addEnv},
    {"devices", "the GPUs that weft can choose for, with the source of every figure", addDevices},
};

constexpr int usageError = int(ErrorKind::badInput);

int fail(int exitCode, const std::string &message) {
  std::fflush(stdout);
  fmt::print(stderr, "weft: error: {}\n", message);
  return exitCode;
}

/// An error of the command line itself; CLI11 prints help through the same path.
int usage(const CLI::App &root, const CLI::ParseError &error, int argumentCount, char **arguments) {
  if (error.get_exit_code() == 0) return root.exit(error);
  std::vector<std::string> names;
  for (const CommandRow &row : commandRows) names.emplace_back(row.name);
  const std::string first = argumentCount > 1 ? arguments[1] : "";
  const bool known = std::find(names.begin(), names.end(), first) != names.end();
  if (!first.empty() && first[0] != '-' && !known)
    return fail(usageError, fmt::format("unknown command '{}'{}", first, nearestAndKnown(first, names)));
  return fail(usageError, fmt::format("{} (weft {}--help lists what there is)", error.what(), known ? first + " " : ""));
}

}  // namespace

int runCommandLine(int argumentCount, char **arguments) {
  CLI::App root("weft: a transformer layer in, chosen layouts and readable CUDA out", "weft");
  root.set_version_flag("--version", "weft 0.1.0");
  root.require_subcommand(1);
  int exitCode = 0;
  bool json = false;
  for (const CommandRow &row : commandRows) {
    CLI::App *command = root.add_subcommand(row.name, row.summary);
    command->add_flag("--json", json, "print one JSON value instead of text");
    command->callback([&exitCode, &json, action = row.add(*command)] { exitCode = action(json); });
  }
  try {
    root.parse(argumentCount, arguments);
    return exitCode;
  } catch (const CLI::ParseError &error) {
    return usage(root, error, argumentCount, arguments);
  } catch (const Error &error) {
    return fail(int(error.kind), error.what());
  } catch (const std::bad_alloc &) {
    return fail(int(ErrorKind::checkFailed), "out of memory: the host could not give what this command needs");
  } catch (const std::exception &error) {
    return fail(int(ErrorKind::checkFailed), fmt::format("internal error: {}", error.what()));
  }
}

}  // namespace weft::driver
