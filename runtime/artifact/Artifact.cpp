// Artifact folders: written under a temporary name and renamed; read back with every file checked
// against the plan.
#include "runtime/artifact/Artifact.h"

#include "kernel/Error.h"
#include "runtime/artifact/CubinEntry.h"
#include "runtime/build/Includes.h"
#include "runtime/system/Files.h"
#include "runtime/system/JsonText.h"
#include "runtime/system/Sha256.h"

#include <algorithm>
#include <set>
#include <system_error>

namespace weft::runtime {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char *graphFile = "graph.mlir";
constexpr const char *reportFile = "report.json";
constexpr std::string_view kernelsFolder = "kernels/";

/// Every file of an artifact but its manifest, by name.
std::map<std::string, std::string> filesOf(const Artifact &artifact) {
  std::map<std::string, std::string> files{{planFile, prettyText(toJson(artifact.plan))},
                                           {graphFile, artifact.graph},
                                           {reportFile, prettyText(artifact.report)}};
  for (const auto *part :
       {&artifact.sources, &artifact.headers, &artifact.cubins, &artifact.listings})
    files.insert(part->begin(), part->end());
  return files;
}

/// Beside what the caller allows: edited files that are written as they are.
Overwrite withUnchanged(Overwrite overwrite, const Artifact &artifact, const fs::path &target) {
  for (const std::string &name : artifact.edited) {
    std::error_code none;
    for (const auto *part : {&artifact.sources, &artifact.headers})
      if (const auto text = part->find(name); text != part->end() &&
                                              fs::is_regular_file(target / name, none) &&
                                              readFile(target / name) == text->second)
        overwrite.edited.push_back(name);
  }
  return overwrite;
}

/// Of an edited file the manifest keeps what it said: the edit goes on showing.
Manifest manifestOf(const Artifact &artifact, const std::map<std::string, std::string> &files) {
  const std::set<std::string> edited(artifact.edited.begin(), artifact.edited.end());
  const bool isPlanEdited = artifact.manifest && edited.contains(planFile);
  Manifest manifest{.files = {},
                    .plan = isPlanEdited ? artifact.manifest->plan : toJson(artifact.plan)};
  for (const auto &[name, content] : files)
    if (!artifact.manifest || !edited.contains(name)) manifest.files.emplace(name, sha256(content));
    else if (const auto generated = artifact.manifest->files.find(name);
             generated != artifact.manifest->files.end())
      manifest.files.insert(*generated);
  return manifest;
}

void writeContent(const Artifact &artifact, const fs::path &folder) {
  const std::map<std::string, std::string> files = filesOf(artifact);
  fs::create_directory(folder / "kernels");
  for (const auto &[name, content] : files) {
    fs::create_directories((folder / name).parent_path());
    writeFile(folder / name, content);
  }
  writeFile(folder / manifestFile, printManifest(manifestOf(artifact, files)));
}

/// The reader's checks, made before anything is written: what cannot be read back is a bug of the
/// writer.
void checkWritable(const Artifact &artifact) {
  try {
    verify(artifact.plan, planFile);
    verifyDerived(artifact.plan, planFile);
  } catch (const Error &error) {  // in a file it is bad input, in our own hands a failed check
    throw Error(ErrorKind::checkFailed, error.what());
  }
  for (const PlanKernel &kernel : artifact.plan.kernels) {
    if (!kernel.source.empty() && !artifact.sources.contains(kernel.source))
      throw Error::checkFailed("kernel {} names {}, which the artifact does not hold", kernel.name,
                               kernel.source);
    if (!kernel.cubin.empty() && !artifact.cubins.contains(kernel.cubin))
      throw Error::checkFailed("kernel {} names {}, which the artifact does not hold", kernel.name,
                               kernel.cubin);
  }
  for (const auto &[name, text] : artifact.sources)
    if (fs::path(name).parent_path() != "kernels")
      throw Error::checkFailed("source {} must lie in kernels/", name);
  for (const auto &[name, text] : artifact.headers)
    if (!name.starts_with(kernelsFolder) || artifact.sources.contains(name))
      throw Error::checkFailed("header {} must lie in kernels/ and be no kernel", name);
  for (const auto &[name, bytes] : artifact.cubins)
    if (name != cubinName(bytes))
      throw Error::checkFailed("{} must be named {}, after its content", name, cubinName(bytes));
}

/// Links are not followed out of the folder: messages quote what is read.
std::string readPart(const fs::path &folder, const std::string &name) {
  try {
    const fs::path inside = fs::canonical(folder / name).lexically_relative(fs::canonical(folder));
    if (inside.empty() || *inside.begin() == "..")
      throw Error::badInput("{}: {} is a link that leads out of the artifact", folder.string(),
                            name);
    return readFile(folder / name);
  } catch (const std::system_error &error) {
    throw Error::badInput("{}: broken artifact: {}: {}", folder.string(), name,
                          error.code().message());
  }
}

/// The names come from a file that travels: they must not lead out of the folder.
void checkInside(const std::string &name, const fs::path &folder) {
  const fs::path path(name);
  const std::string top = path.begin() == path.end() ? "" : path.begin()->string();
  if (path != path.lexically_normal() || (top != "kernels" && top != "cubin"))
    throw Error::badInput("{}: {}: file \"{}\" lies in neither kernels/ nor cubin/",
                          folder.string(), planFile, name);
}

void readSource(const PlanKernel &kernel, const fs::path &folder, Artifact &artifact) {
  if (kernel.source.empty()) return;
  checkInside(kernel.source, folder);
  if (!artifact.sources.contains(kernel.source))
    artifact.sources[kernel.source] = readPart(folder, kernel.source);
}

void rejectOtherLaunch(const PlanKernel &kernel, const std::string &cubin, const fs::path &folder) {
  std::string rejection;
  try {
    rejection = launchRejection(kernel, cubin);
  } catch (const Error &error) {
    rejection = error.what();
  }
  if (!rejection.empty())
    throw Error::badInput("{}: {} of kernel '{}': {}: 'weft emit {}' builds it again",
                          folder.string(), kernel.cubin, kernel.name, rejection, folder.string());
}

void readCubin(const PlanKernel &kernel, const fs::path &folder, Artifact &artifact) {
  if (kernel.cubin.empty()) return;
  if (const auto known = artifact.cubins.find(kernel.cubin); known != artifact.cubins.end())
    return rejectOtherLaunch(kernel, known->second, folder);
  checkInside(kernel.cubin, folder);
  std::error_code none;
  if (!fs::exists(folder / kernel.cubin, none))
    throw Error::badInput("{}: {} of kernel {} is missing: 'weft emit {}' builds it again",
                          folder.string(), kernel.cubin, kernel.name, folder.string());
  std::string bytes = readPart(folder, kernel.cubin);
  if (cubinName(bytes) != kernel.cubin)
    throw Error::badInput(
        "{}: {} does not hold what it is named after (its content is {}): changed after the build",
        folder.string(), kernel.cubin, cubinName(bytes));
  rejectOtherLaunch(kernel, bytes, folder);
  artifact.cubins.emplace(kernel.cubin, std::move(bytes));
}

bool isHeader(const fs::path &path) {
  return path.extension() == ".cuh" || path.extension() == ".h" || path.extension() == ".hpp";
}

/// All headers below kernels/, whoever put them there: kernels may include them.
void readHeaders(const fs::path &folder, Artifact &artifact) {
  std::error_code none;
  for (const fs::directory_entry &entry :
       fs::recursive_directory_iterator(folder / kernelsFolder, none))
    if (entry.is_regular_file() && isHeader(entry.path())) {
      const std::string name = entry.path().lexically_relative(folder).generic_string();
      artifact.headers.emplace(name, readPart(folder, name));
    }
}

/// Sources that are edited, or that include, directly or not, a header that is edited or of nobody
/// weft knows.
std::set<std::string> editedSources(const Artifact &artifact, const std::set<std::string> &edited) {
  const std::map<std::string, std::string_view> available = includable(artifact);
  std::set<std::string> sources;
  for (const auto &[source, text] : artifact.sources) {
    bool isEdited = edited.contains(source);
    std::set<std::string> included;
    for (const Include &include : includesOf(text))
      included.insert(include.name);  // also one that is gone
    for (const auto &[name, header] : includedHeaders(text, available)) {
      included.insert(name);
      for (const Include &include : includesOf(header)) included.insert(include.name);
    }
    for (const std::string &name : included)
      isEdited = isEdited || edited.contains(std::string(kernelsFolder) + name);
    if (isEdited) sources.insert(source);
  }
  return sources;
}

/// Cubins that are there, and do not hold what they are named after; who only looks at an artifact
/// does not need them.
std::set<std::string> otherCubins(const Artifact &artifact, const fs::path &folder) {
  std::set<std::string> other;
  for (const PlanKernel &kernel : artifact.plan.kernels) {
    if (kernel.cubin.empty() || artifact.cubins.contains(kernel.cubin)) continue;
    checkInside(kernel.cubin, folder);
    std::error_code none;
    if (fs::is_regular_file(folder / kernel.cubin, none) &&
        cubinName(readPart(folder, kernel.cubin)) != kernel.cubin)
      other.insert(kernel.cubin);
  }
  return other;
}

/// Compares what was read with the manifest.
void findEdits(Artifact &artifact, const std::map<std::string, std::string> &texts,
               const fs::path &folder) {
  if (!artifact.manifest) {
    for (PlanKernel &kernel : artifact.plan.kernels) {
      kernel.isUntold = !isView(kernel);
      kernel.measured = false;
    }
    artifact.plan.measurement.reset();
    return;
  }
  std::map<std::string, std::string_view> files(texts.begin(), texts.end());
  for (const auto *part : {&artifact.sources, &artifact.headers})
    files.insert(part->begin(), part->end());
  std::set<std::string> edited = otherCubins(artifact, folder);
  for (const auto &[name, text] : files) {
    const auto written = artifact.manifest->files.find(name);
    if (written == artifact.manifest->files.end() || written->second != sha256(text))
      edited.insert(name);
  }
  for (const auto &[name, hash] : artifact.manifest->files)
    if (name.starts_with("kernels/") && !files.contains(name))
      edited.insert(name);  // gone, or the plan names it no more
  artifact.edited.assign(edited.begin(), edited.end());
  if (edited.empty()) return;
  const std::set<std::string> sources = editedSources(artifact, edited);
  for (PlanKernel &kernel : artifact.plan.kernels) {
    if (!sources.contains(kernel.source)) continue;
    kernel.edited = true;
    kernel.measured = false;
    artifact.plan.measurement.reset();  // of the plan with the generated text
  }
}

void rejectDerivedEdits(const Artifact &artifact, const std::string &planPath) {
  for (const PlanEdit &edit : artifact.planEdits)
    if (edit.isDerived)
      throw Error::badInput(
          "{}: {}; weft derives it, so take the edit back: 'weft emit --check' names all of them",
          planPath, describe(edit));
}

}  // namespace

bool isForged(const Artifact &artifact) {
  return !artifact.planEdits.empty() &&
         std::ranges::all_of(artifact.planEdits, &PlanEdit::isDerived);
}

void rejectForged(const Artifact &artifact, const std::string &planPath) {
  if (isForged(artifact)) rejectDerivedEdits(artifact, planPath);
}

std::string noManifestLine(const std::string &folder) {
  return fmt::format(
      "no {0}: edits cannot be told, so nothing here counts as measured or verified; 'weft emit "
      "{1} "
      "--overwrite --discard-edits' writes the artifact anew",
      manifestFile, folder);
}

std::vector<std::string> editLines(const Artifact &artifact) {
  std::vector<std::string> lines;
  if (!artifact.manifest) lines.push_back(noManifestLine());
  for (const std::string &name : artifact.edited)
    if (name == reportFile)
      lines.push_back(
          fmt::format("{} was edited by hand: roofline, losses, prices of other choices and "
                      "movement are not weft's; compile again",
                      name));
    else if (name.starts_with("cubin/"))
      lines.push_back(fmt::format("{} is not what was built: weft emit builds it again", name));
    else if (name != planFile || artifact.planEdits.empty())
      lines.push_back(name + " was edited by hand");
  for (const PlanEdit &edit : artifact.planEdits)
    lines.push_back(fmt::format("{}: {}{}", planFile, describe(edit),
                                edit.isDerived ? "; weft derives it" : ": weft emit takes it"));
  return lines;
}

std::map<std::string, std::string_view> includable(const Artifact &artifact) {
  std::map<std::string, std::string_view> headers;
  for (const auto &[name, text] : artifact.headers)
    headers.emplace(name.substr(kernelsFolder.size()), text);
  return headers;
}

std::string cubinName(std::string_view bytes) {
  return "cubin/" + sha256(bytes).substr(0, 32) + ".cubin";
}

void checkOutputFolder(const fs::path &folder, const Overwrite &overwrite) {
  OutputFolder(folder, overwrite);
}

void writeArtifact(const Artifact &artifact, const fs::path &folder, const Overwrite &overwrite) {
  checkWritable(artifact);
  try {
    const fs::path target = OutputFolder::targetOf(folder);
    fs::create_directories(target.parent_path());
    const FolderLock others(
        target.parent_path());  // of two writers, the second finds what the first has finished
    removeLeftovers(target);
    const OutputFolder output(folder, withUnchanged(overwrite, artifact, target));
    TemporaryFolder temporary(target);
    writeContent(artifact, temporary.path());
    output.keepForeignFiles(temporary.path());
    temporary.publishReplacing();
  } catch (const std::system_error &error) {
    throw Error::badInput("cannot write {}: {}", folder.string(), error.what());
  }
}

Artifact readArtifact(const fs::path &folder, Cubins cubins) {
  std::error_code code;
  if (!fs::exists(folder / planFile, code))
    throw Error::badInput("{} is no artifact: it has no {}", folder.string(), planFile);
  Artifact artifact;
  const std::string planPath = (folder / planFile).string(), planText = readPart(folder, planFile);
  const json plan = parseJson(planText, planPath);
  if (fs::exists(fs::symlink_status(folder / manifestFile)))
    artifact.manifest =
        parseManifest(readPart(folder, manifestFile), (folder / manifestFile).string());
  artifact.plan = planFromJson(plan, planPath);  // first as it is: what is malformed is told so
  if (artifact.manifest) artifact.planEdits = planEdits(artifact.manifest->plan, plan);
  if (!artifact.planEdits.empty())
    artifact.plan = planFromJson(withoutEditedClaims(plan, artifact.planEdits), planPath);
  verify(artifact.plan, planPath);
  artifact.graph = readPart(folder, graphFile);
  const std::string reportText = readPart(folder, reportFile);
  artifact.report = parseJson(reportText, (folder / reportFile).string());
  for (const PlanKernel &kernel : artifact.plan.kernels) {
    readSource(kernel, folder, artifact);
    if (cubins == Cubins::needed) readCubin(kernel, folder, artifact);
  }
  readHeaders(folder, artifact);
  findEdits(artifact, {{planFile, planText}, {graphFile, artifact.graph}, {reportFile, reportText}},
            folder);
  if (cubins == Cubins::needed) rejectDerivedEdits(artifact, planPath);
  return artifact;
}

}  // namespace weft::runtime
