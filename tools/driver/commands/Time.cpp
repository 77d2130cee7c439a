// weft time: how long an artifact and its kernels take on a GPU. Held to its graph first; the rest
// is what `weft-run time` does.
#include "tools/driver/commands/Commands.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/commands/TimeCommand.h"
#include "tools/driver/Flags.h"
#include "tools/driver/ReEmission.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace weft::driver {

Action addTime(CLI::App &command) {
  auto request = std::make_shared<runtime::TimeRequest>();
  const OptionGroup group(command, "Protocol");
  runtime::addTimeFlags(command, *request);
  return [request](bool json) {
    request->json = json;
    for (const std::string &folder : {request->folder, request->against})
      if (!folder.empty())
        checkArtifact(runtime::readArtifact(folder, runtime::Cubins::left), folder, Use::toRun);
    return runtime::timeArtifact(*request);
  };
}

}  // namespace weft::driver
