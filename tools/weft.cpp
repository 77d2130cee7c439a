// The command `weft`. Also its own worker: runtime/ starts this executable again to compile text
// that may crash NVRTC, and to run kernels that may cost a process its GPU.
#include "runtime/Build.h"
#include "runtime/MeasureProcess.h"
#include "runtime/Streams.h"
#include "tools/driver/CommandLine.h"

int main(int argumentCount, char **arguments) {
  weft::runtime::prepareStreams();
  if (const auto exitCode = weft::runtime::serveAsBuildWorker(argumentCount, arguments))
    return *exitCode;
  if (const auto exitCode = weft::runtime::serveAsMeasureWorker(argumentCount, arguments))
    return *exitCode;
  return weft::driver::runCommandLine(argumentCount, arguments);
}
