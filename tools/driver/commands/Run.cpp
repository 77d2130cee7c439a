// weft run: an artifact on a GPU; the runtime does it all.
#include "tools/driver/commands/Commands.h"

#include "runtime/RunCommand.h"

#include <memory>

namespace weft::driver {

Action addRun(CLI::App &command) {
  auto request = std::make_shared<runtime::RunRequest>();
  runtime::addRunFlags(command, *request);
  return [request](bool json) {
    request->json = json;
    return runtime::runArtifact(*request);
  };
}

}  // namespace weft::driver
