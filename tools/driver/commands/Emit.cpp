// weft emit: the override path. Takes plan.json as edited, keeps kernels edited by hand, builds
// what changed.
#include "tools/driver/commands/Emit.h"

#include "kernel/Error.h"
#include "kernel/LaunchCheck.h"
#include "plan/PlanFigures.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/VerificationRecords.h"
#include "runtime/build/Includes.h"
#include "runtime/system/Sha256.h"
#include "tools/driver/Assembly.h"
#include "tools/driver/Console.h"
#include "tools/driver/Fills.h"
#include "tools/driver/FirstLines.h"
#include "tools/driver/ProfileModel.h"
#include "tools/driver/ReEmission.h"
#include "tools/driver/Report.h"
#include "tools/driver/commands/Commands.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <set>

namespace weft::driver {
namespace {

bool isEdited(const runtime::Artifact &artifact, const std::string &file) {
  return std::ranges::find(artifact.edited, file) != artifact.edited.end();
}

/// graph.mlir and report.json are what was compiled, and why: kernels, prices and checks all stand
/// on them.
void rejectEditedGraph(const runtime::Artifact &before, const std::string &folder) {
  if (isEdited(before, "graph.mlir"))
    throw Error::badInput(
        "{}/graph.mlir was edited by hand, and emit derives kernels from it as weft wrote it: take "
        "the edit back; another graph is "
        "compiled anew (weft compile GRAPH.mlir)",
        folder);
  if (isEdited(before, "report.json"))
    throw Error::badInput(
        "{}/report.json was edited by hand; selection wrote it, and emit cannot derive it anew: "
        "take the edit back, or compile the "
        "model again",
        folder);
}

constexpr std::string_view kernelsFolder = "kernels/";

/// Headers that a person edited or added stand in place of weft's.
void keepHeaders(const runtime::Artifact &before, EmittedPlan &emitted, runtime::Artifact &after) {
  for (const auto &[name, text] : includable(before)) {
    const std::string file = std::string(kernelsFolder) + name;
    if (!isEdited(before, file)) continue;
    after.edited.push_back(file);
    after.headers[file] = text;  // also one that no kernel includes: it is a person's work
    if (const auto ours = emitted.available.find(name); ours != emitted.available.end())
      after.manifest->files[file] = runtime::sha256(ours->second);
    emitted.available[name] = text;
  }
}

/// Of what a text includes, directly or not, the headers that weft did not write.
std::map<std::string, std::string_view> editedHeaders(const std::string &text,
                                                      const runtime::Artifact &after,
                                                      const EmittedPlan &emitted) {
  std::map<std::string, std::string_view> headers;
  for (const auto &[name, header] : runtime::includedHeaders(text, emitted.available))
    if (const std::string file = std::string(kernelsFolder) + name; isEdited(after, file))
      headers.emplace(file, emitted.available.at(name));
  return headers;
}

/// What of the launch an edited kernel has lost, one line each.
std::vector<std::string> lostLaunches(const std::string &source, const std::string &generated,
                                      const std::string &edited,
                                      const std::map<std::string, std::string_view> &headers) {
  std::vector<std::string> lines;
  for (const std::string &lost : lostLaunch(generated, edited, headers))
    lines.push_back(
        fmt::format("{} lacks what its launch in plan.json relies on: {}", source, lost));
  return lines;
}

/// Puts hand-edited files back over generated text, and builds exactly them. The manifest goes on
/// naming the generated text. Returns what the plan launches and an edited kernel has not kept.
std::vector<std::string> keepEdits(const runtime::Artifact &before, EmittedPlan &emitted,
                                   Plan &plan, runtime::Artifact &after) {
  std::vector<std::string> homeless;
  for (const std::string &file : before.edited)
    if (before.sources.contains(file) && !emitted.sources.contains(file)) homeless.push_back(file);
  if (!homeless.empty())
    throw Error::badInput(
        "{} was edited by hand, and with this plan no kernel has such a text; --discard-edits "
        "gives it up",
        fmt::join(homeless, ", "));
  after.manifest.emplace();
  keepHeaders(before, emitted, after);
  std::vector<std::string> lost;
  for (size_t index = 0; index < emitted.requests.size(); ++index) {
    const std::string source = plan.kernels[emitted.kernelsOfRequest[index].front()].source;
    const bool isOwn = isEdited(before, source);
    const std::string &text = isOwn ? before.sources.at(source) : emitted.sources[source];
    const std::map<std::string, std::string_view> headers = editedHeaders(text, after, emitted);
    if (!isOwn && headers.empty()) continue;
    const std::vector<std::string> lines =
        lostLaunches(source, emitted.sources[source], text, headers);
    lost.insert(lost.end(), lines.begin(), lines.end());
    if (isOwn) {
      after.edited.push_back(source);
      after.manifest->files[source] = runtime::sha256(emitted.sources[source]);
      emitted.sources[source] = emitted.requests[index].text = before.sources.at(source);
    }
    for (const size_t kernel : emitted.kernelsOfRequest[index]) {
      plan.kernels[kernel].edited = true;
      plan.kernels[kernel].measured = false;
    }
    plan.notes.push_back(
        {.kind = NoteKind::edit,
         .text = source + (isOwn ? " was edited by hand" : " includes what was edited by hand")});
  }
  std::ranges::sort(after.edited);
  return lost;
}

/// Members that weft derives and that say something else in plan.json, by what weft derives now, or
/// wrote then.
std::vector<std::string> brokenMembers(const std::vector<runtime::PlanEdit> &edits,
                                       const nlohmann::json &derived) {
  std::vector<std::string> broken;
  for (runtime::PlanEdit edit : edits) {
    if (!edit.isDerived) continue;
    if (edit.isDerivedAgain && derived.contains(edit.pointer)) {
      if (derived[edit.pointer] == edit.now) continue;
      edit.written = derived[edit.pointer];
    }
    broken.push_back("plan.json: " + describe(edit));
  }
  return broken;
}

/// Of an artifact without a manifest: files and derived members that are not what weft derives from
/// the rest of it today. Whether a person edited them, or another weft wrote them, cannot be told.
std::vector<std::string> untoldDifferences(const runtime::Artifact &before,
                                           const EmittedPlan &emitted, const Plan &plan) {
  static const std::set<std::string_view> decidedAnew{
      "measured",  "margin",     "measurement",      "notes", "edited", "cubin",
      "registers", "spillBytes", "staticSharedBytes"};  // by readers, and by the build
  std::vector<std::string> differences;
  for (const auto &[file, text] : before.sources) {
    const auto derived = emitted.sources.find(file);
    if (derived == emitted.sources.end()) differences.push_back(file + " is no text of this plan");
    else if (derived->second != text) differences.push_back(file + " is not what weft derives");
  }
  for (const auto &[name, text] : includable(before)) {
    const auto derived = emitted.available.find(name);
    if (derived == emitted.available.end() || derived->second != text)
      differences.push_back(fmt::format("{}{} is not weft's", kernelsFolder, name));
  }
  for (const runtime::PlanEdit &edit : runtime::planEdits(toJson(plan), toJson(before.plan))) {
    if (!edit.isDerived || decidedAnew.contains(edit.pointer.back()) ||
        edit.pointer.to_string().starts_with("/notes"))
      continue;
    differences.push_back("plan.json: " + describe(edit, "weft derives"));
  }
  return differences;
}

/// The first of many, each on its line behind the folder's name.
std::string firstLines(const std::vector<std::string> &lines, const std::string &folder) {
  constexpr size_t most = 10;
  std::string text;
  for (size_t index = 0; index < std::min(lines.size(), most); ++index)
    text += fmt::format("{}/{}\n", folder, lines[index]);
  if (lines.size() > most)
    text += fmt::format("and {} more (weft emit --check)\n", lines.size() - most);
  return text;
}

/// What --check found. Exit 1 if anything is not as weft wrote it.
int sayCheck(const runtime::Artifact &before, const std::vector<std::string> &broken, bool json) {
  nlohmann::json choices = nlohmann::json::array();
  std::string text;
  if (!before.manifest) text += runtime::noManifestLine() + '\n';
  for (const std::string &file : before.edited) text += fmt::format("edited: {}\n", file);
  for (const runtime::PlanEdit &edit : before.planEdits)
    if (!edit.isDerived) {
      choices.push_back(describe(edit));
      text += fmt::format("choice: plan.json: {}\n", describe(edit));
    }
  for (const std::string &member : broken) text += fmt::format("does not hold: {}\n", member);
  const bool holds = text.empty();
  if (json)
    printResult(nlohmann::json{{"holds", holds},
                               {"manifest", before.manifest.has_value()},
                               {"edited", before.edited},
                               {"choices", choices},
                               {"broken", broken}});
  else printResult(holds ? "as weft wrote it\n" : text);
  return holds ? 0 : int(ErrorKind::checkFailed);
}

/// Notes that an earlier build left and this one decides anew.
void dropOldNotes(std::vector<PlanNote> &notes) {
  std::erase_if(notes, [](const PlanNote &note) {
    return note.kind == NoteKind::build || note.kind == NoteKind::serialized ||
           note.kind == NoteKind::edit || note.kind == NoteKind::stale;
  });
}

/// Whether two plans launch the same texts and GEMMs, so that a time of one is a time of the
/// other.
bool sameLaunches(const Plan &a, const Plan &b) {
  return std::ranges::equal(
      a.kernels, b.kernels, [](const PlanKernel &one, const PlanKernel &other) {
        return one.textHash == other.textHash && one.knobs == other.knobs &&
               one.inputLayouts == other.inputLayouts && one.outputLayouts == other.outputLayouts;
      });
}

void sayWhatChanged(const Plan &before, const Plan &after) {
  for (size_t index = 0; index < after.kernels.size(); ++index) {
    const PlanKernel &old = before.kernels[index], &now = after.kernels[index];
    if (old.inputLayouts != now.inputLayouts || old.outputLayouts != now.outputLayouts)
      printNote(fmt::format("{}: layouts {} -> {}", now.name, fmt::join(now.inputLayouts, " "),
                            fmt::join(now.outputLayouts, " ")));
    if (old.configuration != now.configuration)
      printNote(fmt::format("{}: {}", now.name, now.configuration));
  }
}

/// What of the target an artifact was compiled with, as far as prices depend on it: beside
/// measurements estimates carry a margin, and where the library is offered warps cost no less than
/// it. Of an edit that asks for a kernel of the library it is offered.
void takePrices(const runtime::Artifact &artifact, TargetFlags &target) {
  const auto request = artifact.report.find("request");
  if (request == artifact.report.end() || !request->contains("target")) return;
  const nlohmann::json &compiled = (*request)["target"];
  if (target.profile.empty() && compiled.value("profile", "") == noProfile)
    target.profile = noProfile;
  if (std::ranges::none_of(artifact.plan.kernels, &FamilyId::isLibrary, &PlanKernel::family))
    target.noLibrary = compiled.value("noLibrary", false);
}

}  // namespace

/// At which the plan was priced.
static ExpectedFill fillOf(const runtime::Artifact &artifact) {
  const auto lengths = artifact.report.find("lengths");
  if (lengths == artifact.report.end()) return {};
  return fillFrom(*lengths);
}

int emitAgain(EmitRequest request, bool json) {
  request.keep.check();
  const runtime::Artifact before = runtime::readArtifact(request.folder, runtime::Cubins::left);
  const std::string output = request.output.empty() ? request.folder : request.output;
  std::error_code none;
  runtime::Overwrite overwrite{.everything = request.overwrite};
  if (std::filesystem::equivalent(request.folder, output, none))
    overwrite.edited = before.edited;  // they are read, and kept or given up by name
  if (request.last >= Phase::emit && !request.check) runtime::checkOutputFolder(output, overwrite);
  request.target.deviceName = before.plan.device;
  if (request.target.target.empty()) request.target.target = before.plan.target;
  const std::string architecture = request.target.architecture();
  takePrices(before, request.target);
  const std::shared_ptr<CostModel> unfilled = costModelOf(request.target);
  const std::unique_ptr<CostModel> costModel = filledCostModel(*unfilled, fillOf(before));

  if (!request.check) rejectEditedGraph(before, request.folder);
  else if (isEdited(before, "graph.mlir") || isEdited(before, "report.json") ||
           runtime::isForged(before)) {
    return sayCheck(before, brokenMembers(before.planEdits, {}),
                    json);  // nothing can be derived from them
  }
  runtime::rejectForged(before, request.folder + "/plan.json");
  Replanned replanned = replan(before, *costModel, request.folder);
  PlannedKernels &planned = replanned.planned;
  if (request.last == Phase::lower) {
    writeFile(request.output.empty() ? "-" : request.output, lowered(planned, architecture));
    return 0;
  }
  if (!request.check) sayWhatChanged(before.plan, planned.plan);
  dropOldNotes(planned.plan.notes);
  const nlohmann::json fusionNotes = before.report.value("fusionNotes", nlohmann::json::object());
  EmittedPlan emitted = emitKernels(planned, architecture, [&](const ChosenKernel &chosen) {
    return fusionNotes.value(chosen.kernel.name, std::vector<std::string>());
  });
  runtime::Artifact after;
  after.report = before.report;
  std::vector<std::string> lost;
  if (!request.discardEdits) lost = keepEdits(before, emitted, planned.plan, after);
  setTextHashes(planned.plan, emitted);
  std::vector<std::string> broken = brokenMembers(before.planEdits, toJson(planned.plan));
  std::vector<std::string> untold;
  if (!before.manifest) untold = untoldDifferences(before, emitted, planned.plan);
  if (!broken.empty() && !request.check)
    throw Error::badInput("{}/{}: weft derives it, and an edit of it is not taken", request.folder,
                          fmt::join(broken, "; "));
  broken.insert(broken.end(), lost.begin(), lost.end());
  broken.insert(broken.end(), untold.begin(), untold.end());
  if (!untold.empty() && !request.check && !request.discardEdits)
    throw Error::badInput(
        "{0} has no {1}, so edits cannot be told, and these differ from what weft derives today:\n"
        "{2}'weft emit {0} -o OTHER --discard-edits' derives all of it anew; an edited kernel "
        "that is put into OTHER then is kept by 'weft emit OTHER'",
        request.folder, runtime::manifestFile, firstLines(untold, request.folder));
  if (request.check) return sayCheck(before, broken, json);
  if (!lost.empty())
    throw Error::badInput(
        "{}/{}\nput it back as weft wrote it ('weft emit --discard-edits' does), or edit the "
        "kernel's knobs in plan.json",
        request.folder, fmt::join(lost, fmt::format("\n{}/", request.folder)));
  for (const std::string &file : before.edited)
    if (before.sources.contains(file) || before.headers.contains(file))
      printNote(request.discardEdits ? file + " was edited by hand; the edit is discarded"
                                     : file + " differs from the generated text; the edit is kept");
  for (const std::string &one : untold) printNote(one + "; it is derived anew");
  if (!before.manifest)
    printNote(
        fmt::format("no {}: graph.mlir, report.json and choices in plan.json are taken as "
                    "they are",
                    runtime::manifestFile));
  // As the reader will, but named by the file that was edited.
  verifyDerived(planned.plan, request.folder + "/plan.json");
  BuildSummary build;
  if (request.last < Phase::build)
    planned.plan.notes.push_back({.kind = NoteKind::build, .text = stoppedNote});
  if (request.last >= Phase::build) {
    BuiltFiles files = buildCubins(planned.plan, emitted, request.target.strict, request.keep,
                                   build, request.folder);
    after.cubins = std::move(files.cubins);
    after.listings = std::move(files.listings);
  }
  if (!sameLaunches(before.plan, planned.plan)) planned.plan.measurement.reset();
  after.plan = std::move(planned.plan);
  if (after.report.contains("plan")) after.report["plan"] = planFigures(after.plan);
  after.graph = std::move(replanned.graph);
  after.headers.merge(headerFiles(emitted));
  after.sources = std::move(emitted.sources);
  const runtime::BelievedRecords
      records;  // before anything is written: this machine\'s store may be malformed
  runtime::writeArtifact(after, output, overwrite);
  if (json) printResult(summaryJson(after.plan, after.report, records, build, output));
  else
    printResult(summaryText(after.plan, after.report, records, build, output) +
                (request.verbose ? "\n" + buildDetails(after.plan, build) : ""));
  return 0;
}

Action addEmit(CLI::App &command) {
  auto request = std::make_shared<EmitRequest>();
  command.add_option("artifact", request->folder, "folder that compile wrote")
      ->required()
      ->type_name("DIR");
  command.add_option("-o,--output", request->output, "folder to write; default: in place")
      ->type_name("DIR");
  const OptionGroup group(command, "Target");
  command.add_option("--target", request->target.target, "architecture; default: the plan's")
      ->type_name("SM");
  command
      .add_option(
          "--profile", request->target.profile,
          "measured times; default: the shipped ones, or none where the artifact was compiled "
          "with none")
      ->type_name("FILE");
  command.add_flag("--strict", request->target.strict,
                   "exit 4 where NVRTC is missing, and where a kernel's time is not measured "
                   "(--profile none: asked for)");
  command.add_flag("--discard-edits", request->discardEdits,
                   "replace kernels that were edited by hand");
  command.add_flag("--overwrite", request->overwrite, overwriteHelp);
  command.add_flag("--check", request->check,
                   "exit 1 naming what was edited and what does not hold; writes nothing");
  request->keep.declare(command);
  command.add_flag("--verbose", request->verbose, "also what was built and every note of the plan");
  return [request](bool json) { return emitAgain(*request, json); };
}

}  // namespace weft::driver
