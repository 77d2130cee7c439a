// weft-run: runs an artifact without MLIR. The runtime's own small binary; `weft run` is the same
// command.
#include "kernel/Error.h"
#include "runtime/build/Build.h"
#include "runtime/commands/FormerFlags.h"
#include "runtime/commands/RunCommand.h"
#include "runtime/commands/TimeCommand.h"
#include "runtime/system/Environment.h"
#include "runtime/system/Streams.h"

#include <CLI/CLI.hpp>

#include <exception>
#include <string>
#include <string_view>
#include <vector>

using namespace weft;

namespace {

/// Throws Error(badInput) naming the present flag if a former one was typed.
void checkFormerFlags(const CLI::App &app, int argumentCount, char **arguments) {
  std::vector<std::string> known;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames()) known.push_back("--" + name);
  for (int index = 1; index < argumentCount; ++index) {
    const std::string_view typed = arguments[index];
    const std::string hint =
        runtime::formerFlagHint(typed.substr(0, typed.find('=')), known, app.get_name());
    if (!hint.empty()) throw Error::badInput("{}", hint);
  }
}

/// `weft-run time DIR ...` measures; every other command line runs.
int dispatch(int argumentCount, char **arguments) {
  const bool times = argumentCount > 1 && std::string_view(arguments[1]) == "time";
  CLI::App app(times ? "Times an artifact and its kernels on a GPU."
                     : "Runs an artifact on a GPU, without MLIR; 'weft-run time DIR' measures it.",
               times ? "weft-run time" : "weft-run");
  runtime::RunRequest run;
  runtime::TimeRequest time;
  if (times) runtime::addTimeFlags(app, time);
  else runtime::addRunFlags(app, run);
  bool json = false;
  app.add_flag("--json", json, "print one JSON object instead of text");
  app.add_flag_callback(
      "--wide", runtime::allowWide,
      "lines as long as they are, not wrapped or shortened to the terminal, or to 100 columns");
  try {
    app.parse(argumentCount - (times ? 1 : 0), arguments + (times ? 1 : 0));
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() != 0) checkFormerFlags(app, argumentCount, arguments);
    return app.exit(error) == 0 ? 0 : int(ErrorKind::badInput);
  }
  run.json = time.json = json;
  return times ? runtime::timeArtifact(time) : runtime::runArtifact(run);
}

}  // namespace

int main(int argumentCount, char **arguments) {
  runtime::prepareStreams();
  if (const auto code = runtime::serveAsBuildWorker(argumentCount, arguments)) return *code;
  try {
    const int code = dispatch(argumentCount, arguments);
    runtime::finishOutput();
    return code;
  } catch (...) {
    const runtime::Failure failure = runtime::failureOf(std::current_exception());
    if (!failure.message.empty()) runtime::say("weft-run: " + failure.message + "\n");
    return int(failure.kind);
  }
}
