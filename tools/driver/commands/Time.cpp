// weft time: how long an artifact and its kernels take on a GPU. What `weft-run time` does without MLIR.
#include "tools/driver/commands/Commands.h"

#include "runtime/TimeCommand.h"

#include <memory>

namespace weft::driver {

Action addTime(CLI::App &command) {
  auto request = std::make_shared<runtime::TimeRequest>();
  runtime::addTimeFlags(command, *request);
  return [request](bool json) {
    request->json = json;
    return runtime::timeArtifact(*request);
  };
}

}  // namespace weft::driver
