// weft explain: why an artifact is as it is. Dispatch; the views are in Explain*.cpp.
#include "tools/driver/commands/Explain.h"

#include "runtime/Stamps.h"
#include "tools/driver/Console.h"
#include "tools/driver/commands/Commands.h"

#include <memory>

namespace weft::driver {
namespace {

struct ExplainFlags {
  std::string folder, kernel, fusion, layout;
  bool movement = false, cacheMiss = false;
};

Explanation explain(const ExplainFlags &flags) {
  runtime::Artifact artifact = runtime::readArtifact(flags.folder);
  const runtime::Stamps here = runtime::readStamps(runtime::machineStampsFile());
  for (runtime::PlanKernel &kernel : artifact.plan.kernels) {
    runtime::stamp(kernel, kernel.textHash, runtime::shippedStamps());
    runtime::stamp(kernel, kernel.textHash, here);
  }
  if (flags.cacheMiss) return explainCache(artifact, flags.folder, flags.kernel);
  if (!flags.kernel.empty()) return explainKernel(artifact, flags.kernel);
  if (!flags.fusion.empty()) return explainFusion(artifact, flags.fusion);
  if (!flags.layout.empty()) return explainLayout(artifact, flags.layout);
  return flags.movement ? explainMovement(artifact) : explainKernels(artifact);
}

}  // namespace

Action addExplain(CLI::App &command) {
  auto flags = std::make_shared<ExplainFlags>();
  command.add_option("artifact", flags->folder, "folder that compile wrote")->required()->type_name("DIR");
  CLI::Option *kernel = command.add_option("--kernel", flags->kernel, "everything about one kernel")->type_name("NAME");
  CLI::Option *fusion =
      command.add_option("--fusion", flags->fusion, "two kernels or ops: fused, or why not, and the price")
          ->type_name("A,B");
  CLI::Option *layout = command.add_option("--layout", flags->layout, "a tensor: its layout and the price of every other")
                            ->type_name("TENSOR");
  CLI::Option *movement = command.add_flag("--movement", flags->movement, "bytes before and after fusion, and transposes");
  command.add_flag("--cache-miss", flags->cacheMiss, "parts of the kernels' cache keys")
      ->excludes(fusion)->excludes(layout)->excludes(movement);
  kernel->excludes(fusion)->excludes(layout)->excludes(movement);
  fusion->excludes(layout)->excludes(movement);
  layout->excludes(movement);
  return [flags](bool json) {
    const Explanation explanation = explain(*flags);
    if (json) printResult(explanation.json);
    else printResult(explanation.text);
    return 0;
  };
}

}  // namespace weft::driver
