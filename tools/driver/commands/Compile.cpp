// weft compile: everything, or the phases from --start-from to --stop-after.
#include "kernel/Error.h"
#include "passes/configure/Families.h"
#include "passes/decide/PathPlan.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/VerificationRecords.h"
#include "tools/driver/Assembly.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/Console.h"
#include "tools/driver/FirstLines.h"
#include "tools/driver/LayeredModel.h"
#include "tools/driver/LayoutChanges.h"
#include "tools/driver/MeasuredChoice.h"
#include "tools/driver/PaddedPlan.h"
#include "tools/driver/ReEmission.h"
#include "tools/driver/Report.h"
#include "tools/driver/commands/Commands.h"
#include "tools/driver/commands/Emit.h"
#include "tools/driver/commands/Listings.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

namespace weft::driver {
namespace {

struct CompileFlags {
  ModelFlags model;
  ChoiceFlags choices;
  TargetFlags target;
  PhaseFlags phases;
  KeepFlags keep;
  MeasureFlags measure;
  std::string output;
  bool overwrite = false, verbose = false;
};

void writeText(const CompileFlags &flags, const std::string &text) {
  writeFile(flags.output.empty() ? "-" : flags.output, text);
}

int writeDecided(const Compilation &compilation, const DecidedModel &decided,
                 const CompileFlags &flags, const std::string &architecture, Phase first,
                 Phase last, bool json) {
  const std::vector<ProposedVariant> &proposed = decided.proposed;
  const decision::Decision &decision = decided.decision;
  PlannedKernels planned = decision.planned;
  if (last == Phase::lower) {
    writeText(flags, lowered(planned, architecture));
    return 0;
  }
  const FusionNotes fusionNotes(decided);
  const EmittedPlan emitted = emitKernels(
      planned, architecture, [&](const ChosenKernel &chosen) { return fusionNotes.of(chosen); });
  setTextHashes(planned.plan, emitted);
  BuildSummary build;
  runtime::Artifact artifact;
  if (last >= Phase::build) {
    BuiltFiles files =
        buildCubins(planned.plan, emitted, flags.target.strict, flags.keep, build, flags.output);
    artifact.cubins = std::move(files.cubins);
    artifact.listings = std::move(files.listings);
  } else {
    planned.plan.notes.push_back({.kind = NoteKind::build, .text = stoppedNote});
  }
  artifact.report = makeReport(compilation, decided, planned);
  if (nlohmann::json padded = paddedPlan(compilation, first); !padded.is_null())
    artifact.report["lengths"]["padded"] = std::move(padded);
  // Of a plan that was chosen by measuring no other plan has a comparable time.
  if (decision.timed.empty() && !decided.isByParts())
    if (const std::optional<LayoutChange> change =
            costliestChange(decided.problem, decided.options, decision, artifact.report["layouts"]))
      artifact.report["layoutChange"] = {{"tensor", change->tensor},
                                         {"layout", shortText(change->layout)},
                                         {"other", shortText(change->other)},
                                         {"graphSeconds", change->seconds},
                                         {"workspaceBytes", change->workspaceBytes}};
  artifact.report["numbers"] = numbersReport(planned);
  for (const ChosenKernel &chosen : planned.kernels)
    artifact.report["fusionNotes"][chosen.kernel.name] = fusionNotes.of(chosen);
  artifact.plan = std::move(planned.plan);
  artifact.graph = compilation.materialized(proposed, decision);
  artifact.sources = emitted.sources;
  artifact.headers = headerFiles(emitted);
  const runtime::BelievedRecords
      records;  // before anything is written: this machine\'s store may be malformed
  runtime::writeArtifact(artifact, flags.output, {.everything = flags.overwrite});
  if (json) printResult(summaryJson(artifact.plan, artifact.report, records, build, flags.output));
  else
    printResult(summaryText(artifact.plan, artifact.report, records, build, flags.output) +
                (flags.verbose
                     ? "\n" + selectionLines(decision) + buildDetails(artifact.plan, build)
                     : ""));
  return 0;
}

/// Phases whose result is a text of another kind have no JSON; the nearest command that has is
/// named.
void rejectJson(Phase last) {
  if (last >= Phase::emit || last == Phase::fuse || last == Phase::configure) return;
  const char *nearest = last == Phase::import   ? "weft import MODEL --json"
                        : last == Phase::lower  ? "weft compile MODEL -o DIR --json"
                        : last == Phase::select ? "weft select MODEL --json"
                                                : "weft opt MODEL --json";
  throw Error::badInput(
      "compile --stop-after {} writes {}, and --json has no form of it: leave out --json; nearest "
      "is '{}'",
      nameOf(last), last == Phase::lower ? "kernel programs" : "a graph", nearest);
}

int run(const CompileFlags &flags, bool json) {
  const Phase first = flags.phases.first(), last = flags.phases.last();
  if (json) rejectJson(last);
  flags.keep.check();
  if (last >= Phase::emit && flags.output.empty() && first < Phase::lower)
    throw Error::badInput("compile writes an artifact: name its folder with -o DIR");
  if (last >= Phase::emit && !flags.output.empty() && first < Phase::lower)
    runtime::checkOutputFolder(flags.output, {.everything = flags.overwrite});
  std::optional<runtime::cuda::Context> gpu;
  if (flags.measure.asked()) flags.measure.open(flags.phases, gpu);
  if (first >= Phase::lower)
    return emitAgain({.folder = flags.model.model,
                      .output = flags.output,
                      .target = flags.target,
                      .keep = flags.keep,
                      .overwrite = flags.overwrite,
                      .last = last,
                      .verbose = flags.verbose},
                     json);
  if (last == Phase::differentiate && !flags.model.train)
    throw Error::badInput("--stop-after differentiate: there is a backward pass with --train only");
  const std::string architecture = last >= Phase::lower ? flags.target.architecture() : "";
  flags.target.checkTarget();

  Compilation compilation(flags.model, flags.choices, flags.target);
  compilation.import(first, last);
  noteConfig(compilation.description());
  if (last == Phase::import) {
    writeText(flags, Compilation::print(compilation.graph()));
    return 0;
  }
  if (last <= Phase::attention) {
    writeText(flags, printVariants(compilation.rewrite(first, last)));
    return 0;
  }
  if (last == Phase::fuse || last == Phase::configure) {
    std::vector<ProposedVariant> proposed = compilation.propose(first);
    const Device &device = compilation.costModel().device();
    if (last == Phase::configure) writeText(flags, printCandidates(proposed, device, json));
    else writeText(flags, json ? printFusions(proposed, device, json) : printProposals(proposed));
    return 0;
  }
  const DecidedModel decided = decideModel(
      compilation, first, gpu ? measureOn(*gpu, flags.target.architecture()) : decision::Measure(),
      flags.measure.plans);
  if (last == Phase::select) {
    writeText(flags, compilation.materialized(decided.proposed, decided.decision));
    return 0;
  }
  return writeDecided(compilation, decided, flags, architecture, first, last, json);
}

}  // namespace

Action addCompile(CLI::App &command) {
  auto flags = std::make_shared<CompileFlags>();
  flags->model.declare(command);
  flags->choices.declare(command);
  flags->target.declare(command, true);
  flags->phases.declare(command);
  flags->keep.declare(command);
  flags->measure.declare(command);
  command
      .add_option("-o,--output", flags->output,
                  "folder of the artifact; a file for phases that end before emit")
      ->type_name("DIR");
  command.add_flag("--overwrite", flags->overwrite, overwriteHelp)->group("Output");
  command
      .add_flag("--verbose", flags->verbose,
                "also what was searched, what was built and every note of the plan")
      ->group("Output");
  return [flags](bool json) { return run(*flags, json); };
}

}  // namespace weft::driver
