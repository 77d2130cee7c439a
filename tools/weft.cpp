// The command `weft`. Also its own build worker: runtime/ starts this executable again to compile text that may crash NVRTC.
#include "runtime/Build.h"
#include "tools/driver/CommandLine.h"

int main(int argumentCount, char **arguments) {
  if (const auto exitCode = weft::runtime::serveAsBuildWorker(argumentCount, arguments)) return *exitCode;
  return weft::driver::runCommandLine(argumentCount, arguments);
}
