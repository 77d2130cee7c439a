// weft explain: why an artifact is as it is. Dispatch; the views are in Explain*.cpp.
#include "tools/driver/commands/Explain.h"

#include "kernel/Error.h"
#include "kernel/TextWidth.h"
#include "passes/account/LeastMovement.h"
#include "runtime/artifact/Artifact.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/Console.h"
#include "tools/driver/ProfileModel.h"
#include "tools/driver/ReEmission.h"
#include "tools/driver/ReportShape.h"
#include "tools/driver/commands/Commands.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

namespace weft::driver {
namespace {

struct ExplainFlags {
  ModelFlags model;  ///< or an artifact's folder
  ChoiceFlags choices;
  TargetFlags target;
  std::string kernel, fusion, layout;
  std::string output;
  bool movement = false, distributions = false, cacheMiss = false, all = false;
};

/// Without prices: of all variants, each with the kernels that save most, the one that moves least.
Explanation explainModel(const ExplainFlags &flags) {
  Compilation compilation(flags.model, flags.choices, flags.target);
  compilation.import();
  noteConfig(compilation.description());
  nlohmann::json least;
  for (const ProposedVariant &variant : compilation.propose(Phase::import)) {
    const Account account = compilation.account(variant);
    std::vector<AccountedKernel> kernels;
    std::map<std::string, int>
        uses;  // of a name: later kernels of one name are numbered, as in plans
    for (std::vector<int> &ops : leastMovementPartition(account.flow, variant.fusions)) {
      std::string name = kernelName(account.flow, ops);
      if (const int use = ++uses[name]; use > 1) name += fmt::format("_{}", use);
      kernels.push_back({.name = std::move(name), .ops = std::move(ops)});
    }
    nlohmann::json report = accountReport(account, kernels);
    report["variant"] = variant.name();
    if (least.is_null() || report["phases"].back()["bytes"] < least["phases"].back()["bytes"])
      least = std::move(report);
  }
  return explainMovement(least, nullptr);
}

/// What was changed by hand since weft wrote it; of many edits the first, and how many more.
std::string editWarnings(const std::vector<std::string> &edits, size_t most) {
  std::string text;
  for (size_t index = 0; index < std::min(edits.size(), most); ++index)
    text += "! edit: " + edits[index] + "\n";
  return edits.size() > most ? text + fmt::format("! {} more edits (--all)\n", edits.size() - most)
                             : text;
}

Explanation explainArtifact(const ExplainFlags &flags, const runtime::Artifact &artifact,
                            const std::string &folder) {
  if (flags.cacheMiss) return explainCache(artifact, folder, flags.kernel);
  if (!flags.kernel.empty()) return explainKernel(artifact, flags.kernel);
  if (!flags.fusion.empty()) return explainFusion(artifact, flags.fusion);
  if (!flags.layout.empty()) return explainLayout(artifact, flags.layout, flags.target.profile);
  if (flags.distributions) {
    TargetFlags target = flags.target;
    target.deviceName = artifact.plan.device;
    return explainDistributions(artifact, folder, target.profile, *costModelOf(target),
                                flags.output);
  }
  if (!flags.movement)
    return explainKernels(artifact,
                          {.all = flags.all, .wide = resultColumns() == unlimitedColumns});
  return explainMovement(artifact.report.value("movement", nlohmann::json::object()),
                         &artifact.plan);
}

Explanation explain(const ExplainFlags &flags) {
  const std::string &folder = flags.model.model;
  if (meansCodes(folder)) return explainCodes(folder);
  if (flags.movement && !std::filesystem::is_directory(folder)) return explainModel(flags);
  const runtime::Artifact artifact = runtime::readArtifact(folder, runtime::Cubins::left);
  checkArtifact(artifact, folder, Use::toLook);
  Explanation explanation = explainArtifact(flags, artifact, folder);
  constexpr size_t screenEdits = 4;
  const std::vector<std::string> edits = editLines(artifact);
  explanation.text = editWarnings(edits, flags.all ? edits.size() : screenEdits) +
                     explanation.text;  // first: all else stands under it
  explanation.json["edits"] = edits;
  return explanation;
}

}  // namespace

Action addExplain(CLI::App &command) {
  auto flags = std::make_shared<ExplainFlags>();
  flags->model.declare(command);
  command.get_option("model")
      ->description(
          "folder that compile wrote; a reason code (F024), or codes for all of them; with "
          "--movement also a preset name, config.json or .mlir")
      ->type_name("DIR");
  flags->choices.declare(command);
  flags->target.declare(command, false);
  const OptionGroup group(command, "View");
  CLI::Option *kernel =
      command.add_option("--kernel", flags->kernel, "everything about one kernel")
          ->type_name("NAME");
  CLI::Option *fusion = command
                            .add_option("--fusion", flags->fusion,
                                        "two kernels or ops: fused, or why not, and the price")
                            ->type_name("A,B");
  CLI::Option *layout = command
                            .add_option("--layout", flags->layout,
                                        "a tensor: its layout and the price of every other")
                            ->type_name("TENSOR");
  CLI::Option *movement =
      command.add_flag("--movement", flags->movement,
                       "operators, what they compute and move, and bytes before and after each "
                       "phase; of a model without selecting");
  CLI::Option *distributions =
      command.add_flag("--distributions", flags->distributions,
                       "measured times of every kernel over all its layouts and configurations");
  command
      .add_option("-o,--output", flags->output,
                  "folder for the distributions as violins (SVG), JSON and CSV")
      ->needs(distributions)
      ->type_name("DIR");
  command.add_flag("--all", flags->all, "every kernel, note and table of the plan")
      ->excludes(kernel)
      ->excludes(fusion)
      ->excludes(layout)
      ->excludes(movement)
      ->excludes(distributions);
  distributions->excludes(kernel)->excludes(fusion)->excludes(layout)->excludes(movement);
  command.add_flag("--cache-miss", flags->cacheMiss, "parts of the kernels' cache keys")
      ->excludes(fusion)
      ->excludes(layout)
      ->excludes(movement)
      ->excludes(distributions);
  kernel->excludes(fusion)->excludes(layout)->excludes(movement);
  fusion->excludes(layout)->excludes(movement);
  layout->excludes(movement);
  return [flags](bool json) {
    const Explanation explanation =
        readingReport(flags->model.model + "/report.json", [&] { return explain(*flags); });
    if (json) printResult(explanation.json);
    else printResult(explanation.text);
    return 0;
  };
}

}  // namespace weft::driver
