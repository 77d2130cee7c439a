// weft emit: the override path. Takes plan.json as edited, keeps kernels edited by hand, builds what changed.
#include "tools/driver/commands/Emit.h"

#include "kernel/Error.h"
#include "tools/driver/Assembly.h"
#include "tools/driver/Console.h"
#include "tools/driver/ProfileModel.h"
#include "tools/driver/ReEmission.h"
#include "tools/driver/Report.h"
#include "tools/driver/commands/Commands.h"

#include <algorithm>
#include <memory>

namespace weft::driver {
namespace {

/// Puts hand-edited files back over generated text, and builds exactly them.
void keepEdits(const runtime::Artifact &before, const std::vector<std::string> &edited, EmittedPlan &emitted,
               runtime::Plan &plan) {
  for (size_t index = 0; index < emitted.requests.size(); ++index) {
    const std::string source = plan.kernels[emitted.kernelsOfRequest[index].front()].source;
    if (std::find(edited.begin(), edited.end(), source) == edited.end()) continue;
    const std::string &text = before.sources.at(source);
    emitted.sources[source] = text;
    emitted.requests[index].text = text;
    emitted.requests[index].entry = emitted.readableEntries[index];
    for (const size_t kernel : emitted.kernelsOfRequest[index]) plan.kernels[kernel].entry = emitted.readableEntries[index];
    plan.notes.push_back(source + " was edited by hand");
  }
}

/// Notes that an earlier build left and this one decides anew.
void dropOldNotes(std::vector<std::string> &notes) {
  std::erase_if(notes, [](const std::string &note) {
    return note.starts_with("cubins: ") || note.ends_with(" was edited by hand") || note.find(": stale, its time is of an older ") != std::string::npos;
  });
}

/// Whether two plans launch the same texts and products, so that a time of one is a time of the other.
bool sameLaunches(const runtime::Plan &a, const runtime::Plan &b) {
  return std::ranges::equal(a.kernels, b.kernels, [](const runtime::PlanKernel &one, const runtime::PlanKernel &other) {
    return one.textHash == other.textHash && one.knobs == other.knobs && one.inputLayouts == other.inputLayouts && one.outputLayouts == other.outputLayouts;
  });
}

void sayWhatChanged(const runtime::Plan &before, const runtime::Plan &after) {
  for (size_t index = 0; index < after.kernels.size(); ++index) {
    const runtime::PlanKernel &old = before.kernels[index], &now = after.kernels[index];
    if (old.inputLayouts != now.inputLayouts || old.outputLayouts != now.outputLayouts)
      printNote(fmt::format("{}: layouts {} -> {}", now.name, fmt::join(now.inputLayouts, " "),
                            fmt::join(now.outputLayouts, " ")));
    if (old.configuration != now.configuration) printNote(fmt::format("{}: {}", now.name, now.configuration));
  }
}

}  // namespace

int emitAgain(EmitRequest request, bool json) {
  request.keep.check();
  if (request.last >= Phase::emit && !request.output.empty()) runtime::checkOutputFolder(request.output);
  const runtime::Artifact before = runtime::readArtifact(request.folder, runtime::Cubins::left);
  request.target.deviceName = before.plan.device;
  if (request.target.target.empty()) request.target.target = before.plan.target;
  const std::string architecture = request.target.architecture();
  const std::unique_ptr<CostModel> costModel = costModelOf(request.target);

  Replanned replanned = replan(before, *costModel, request.folder);
  PlannedKernels &planned = replanned.planned;
  if (request.last == Phase::lower) {
    writeFile(request.output.empty() ? "-" : request.output, lowered(planned, architecture));
    return 0;
  }
  sayWhatChanged(before.plan, planned.plan);
  dropOldNotes(planned.plan.notes);
  const nlohmann::json fusionNotes = before.report.value("fusionNotes", nlohmann::json::object());
  EmittedPlan emitted = emitKernels(planned, architecture, [&](const ChosenKernel &chosen) {
    return fusionNotes.value(chosen.kernel.name, std::vector<std::string>());
  });
  runtime::Artifact after;
  after.report = before.report;
  after.report["generated"] = generatedHashes(emitted.sources);
  const std::vector<std::string> edited = editedFiles(before);
  if (!request.discardEdits) keepEdits(before, edited, emitted, planned.plan);
  for (const std::string &file : edited)
    printNote(request.discardEdits ? file + " was edited by hand; the edit is discarded"
                                   : file + " differs from the generated text; the edit is kept");
  stampKernels(planned.plan, emitted);
  BuildSummary build;
  if (request.last < Phase::build) planned.plan.notes.emplace_back(stoppedNote);
  if (request.last >= Phase::build) {
    BuiltFiles files = buildCubins(planned.plan, emitted, request.target.strict, request.keep, build);
    after.cubins = std::move(files.cubins);
    after.listings = std::move(files.listings);
  }
  if (sameLaunches(before.plan, planned.plan)) planned.plan.measurement = before.plan.measurement;
  after.plan = std::move(planned.plan);
  after.graph = std::move(replanned.graph);
  after.sources = std::move(emitted.sources);
  const std::string output = request.output.empty() ? request.folder : request.output;
  runtime::writeArtifact(after, output);
  if (json) printResult(summaryJson(after.plan, build, output));
  else printResult(summaryText(after.plan, build, output));
  return 0;
}

Action addEmit(CLI::App &command) {
  auto request = std::make_shared<EmitRequest>();
  command.add_option("artifact", request->folder, "folder that compile wrote")->required()->type_name("DIR");
  command.add_option("-o,--output", request->output, "folder to write; default: in place")->type_name("DIR");
  command.add_option("--target", request->target.target, "architecture; default: the plan's")->type_name("SM");
  command.add_option("--profile", request->target.profile, "measured times; default: the analytic model")
      ->type_name("FILE");
  command.add_flag("--strict", request->target.strict, "exit 4 where NVRTC is missing, and where a kernel's time is not measured (--profile none: asked for)");
  command.add_flag("--discard-edits", request->discardEdits, "replace kernels that were edited by hand");
  request->keep.declare(command);
  return [request](bool json) { return emitAgain(*request, json); };
}

}  // namespace weft::driver
