// weft-run: runs an artifact without MLIR. The runtime's own small binary; `weft run` is the same command.
#include "kernel/Error.h"
#include "runtime/Build.h"
#include "runtime/RunCommand.h"

#include <CLI/CLI.hpp>

#include <cstdio>

using namespace weft;

int main(int argumentCount, char **arguments) {
  if (const auto code = runtime::serveAsBuildWorker(argumentCount, arguments)) return *code;
  CLI::App app("Runs an artifact on a GPU, without MLIR.", "weft-run");
  runtime::RunRequest request;
  runtime::addRunFlags(app, request);
  app.add_flag("--json", request.json, "print JSON");
  try {
    app.parse(argumentCount, arguments);
    return runtime::runArtifact(request);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : int(ErrorKind::badInput);
  } catch (const Error &error) {
    std::fflush(stdout);
    fmt::print(stderr, "weft-run: {}\n", error.what());
    return int(error.kind);
  }
}
