// The command `weft`. Also its own worker: runtime/ starts this executable again to compile text
// that may crash NVRTC, and to run kernels that may cost a process its GPU.
#include "runtime/build/Build.h"
#include "runtime/measure/MeasureProcess.h"
#include "runtime/system/Streams.h"
#include "tools/driver/commands/CommandLine.h"

int main(int argumentCount, char **arguments) {
  weft::runtime::prepareStreams();
  if (const auto exitCode = weft::runtime::serveAsBuildWorker(argumentCount, arguments))
    return *exitCode;
  if (const auto exitCode = weft::runtime::serveAsMeasureWorker(argumentCount, arguments))
    return *exitCode;
  return weft::driver::runCommandLine(argumentCount, arguments);
}
