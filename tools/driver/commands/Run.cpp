// weft run: an artifact on a GPU, held to its graph first; the runtime does the rest.
#include "tools/driver/commands/Commands.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/commands/RunCommand.h"
#include "tools/driver/Flags.h"
#include "tools/driver/ReEmission.h"

#include <memory>

namespace weft::driver {

Action addRun(CLI::App &command) {
  auto request = std::make_shared<runtime::RunRequest>();
  const OptionGroup group(command, "Run");
  runtime::addRunFlags(command, *request);
  for (const char *option :
       {"--steps", "--data", "--state", "--save-every", "--learning-rate", "--weight-decay"})
    command.get_option(option)->group("Training");
  return [request](bool json) {
    request->json = json;
    checkArtifact(runtime::readArtifact(request->folder, runtime::Cubins::left), request->folder,
                  Use::toRun);
    return runtime::runArtifact(*request);
  };
}

}  // namespace weft::driver
