// Artifact folders: written under a temporary name and renamed; read back with every file checked against the plan.
#include "runtime/Artifact.h"

#include "kernel/Error.h"
#include "runtime/Files.h"
#include "runtime/JsonText.h"
#include "runtime/Sha256.h"

#include <set>
#include <system_error>

namespace weft::runtime {

namespace fs = std::filesystem;

namespace {

constexpr const char *planFile = "plan.json";
constexpr const char *graphFile = "graph.mlir";
constexpr const char *reportFile = "report.json";

/// "out/" and "." have a last component too: the folder that is replaced as a whole.
fs::path normalized(const fs::path &folder) {
  fs::path absolute = fs::absolute(folder).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

void refuseForeignFolder(const fs::path &folder) {
  std::error_code code;
  const fs::file_status status = fs::status(folder, code);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(status)) throw Error::badInput("{} exists and is no folder; name another output", folder.string());
  if (fs::is_empty(folder, code) || fs::exists(folder / planFile)) return;
  if (code) throw Error::badInput("{} cannot be read: {}", folder.string(), code.message());
  throw Error::badInput("{} holds files but no {}: it is no artifact and is not overwritten; name another output",
                        folder.string(), planFile);
}

void writeContent(const Artifact &artifact, const fs::path &folder) {
  fs::create_directory(folder / "kernels");
  writeFile(folder / planFile, prettyText(toJson(artifact.plan)));
  writeFile(folder / graphFile, artifact.graph);
  writeFile(folder / reportFile, prettyText(artifact.report));
  for (const auto &[name, text] : artifact.sources)
    writeFile(folder / name, text);
  if (!artifact.cubins.empty()) fs::create_directory(folder / "cubin");
  for (const auto &[name, bytes] : artifact.cubins)
    writeFile(folder / name, bytes);
  for (const auto &[name, text] : artifact.listings) {
    fs::create_directory((folder / name).parent_path());
    writeFile(folder / name, text);
  }
}

/// The reader's checks, made before anything is written: what cannot be read back is a bug of the writer.
void checkWritable(const Artifact &artifact) {
  try {
    verify(artifact.plan, planFile);
    verifyProducts(artifact.plan, planFile);
  } catch (const Error &error) {  // in a file it is bad input, in our own hands a failed check
    throw Error(ErrorKind::checkFailed, error.what());
  }
  for (const PlanKernel &kernel : artifact.plan.kernels) {
    if (!kernel.source.empty() && !artifact.sources.contains(kernel.source))
      throw Error::checkFailed("kernel {} names {}, which the artifact does not hold", kernel.name, kernel.source);
    if (!kernel.cubin.empty() && !artifact.cubins.contains(kernel.cubin))
      throw Error::checkFailed("kernel {} names {}, which the artifact does not hold", kernel.name, kernel.cubin);
  }
  for (const auto &[name, text] : artifact.sources)
    if (fs::path(name).parent_path() != "kernels")
      throw Error::checkFailed("source {} must lie in kernels/", name);
  for (const auto &[name, bytes] : artifact.cubins)
    if (name != cubinName(bytes))
      throw Error::checkFailed("{} must be named {}, after its content", name, cubinName(bytes));
}

std::string readPart(const fs::path &folder, const std::string &name) {
  try {
    return readFile(folder / name);
  } catch (const std::system_error &error) {
    throw Error::badInput("{}: broken artifact: {}: {}", folder.string(), name, error.code().message());
  }
}

std::map<std::string, std::string> readSources(const fs::path &folder) {
  std::map<std::string, std::string> sources;
  std::error_code none;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder / "kernels", none)) {
    const std::string name = "kernels/" + entry.path().filename().string();
    if (entry.path().extension() == ".cu") sources.emplace(name, readPart(folder, name));
  }
  return sources;
}

/// The names come from a file that travels: they must not lead out of the folder.
void checkInside(const std::string &name, const fs::path &folder) {
  const fs::path path(name);
  const std::string top = path.begin() == path.end() ? "" : path.begin()->string();
  if (path != path.lexically_normal() || (top != "kernels" && top != "cubin"))
    throw Error::badInput("{}: {}: file \"{}\" lies in neither kernels/ nor cubin/", folder.string(), planFile, name);
}

void readSource(const PlanKernel &kernel, const fs::path &folder, Artifact &artifact) {
  if (kernel.source.empty()) return;
  checkInside(kernel.source, folder);
  if (!artifact.sources.contains(kernel.source)) artifact.sources[kernel.source] = readPart(folder, kernel.source);
}

void readCubin(const PlanKernel &kernel, const fs::path &folder, Artifact &artifact) {
  if (kernel.cubin.empty() || artifact.cubins.contains(kernel.cubin)) return;
  checkInside(kernel.cubin, folder);
  std::error_code none;
  if (!fs::exists(folder / kernel.cubin, none))
    throw Error::badInput("{}: {} of kernel {} is missing: 'weft emit {}' builds it again", folder.string(), kernel.cubin, kernel.name, folder.string());
  std::string bytes = readPart(folder, kernel.cubin);
  if (cubinName(bytes) != kernel.cubin)
    throw Error::badInput("{}: {} does not hold what it is named after (its content is {}): changed after the build",
                          folder.string(), kernel.cubin, cubinName(bytes));
  artifact.cubins.emplace(kernel.cubin, std::move(bytes));
}

}  // namespace

std::string cubinName(std::string_view bytes) { return "cubin/" + sha256(bytes).substr(0, 32) + ".cubin"; }

void checkOutputFolder(const fs::path &folder) { refuseForeignFolder(normalized(folder)); }

void writeArtifact(const Artifact &artifact, const fs::path &folder) {
  checkWritable(artifact);
  const fs::path target = normalized(folder);
  refuseForeignFolder(target);
  try {
    removeLeftovers(target);
    TemporaryFolder temporary(target);
    writeContent(artifact, temporary.path());
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
  const std::string planPath = (folder / planFile).string();
  artifact.plan = planFromJson(parseJson(readPart(folder, planFile), planPath), planPath);
  verify(artifact.plan, planPath);
  artifact.graph = readPart(folder, graphFile);
  artifact.report = parseJson(readPart(folder, reportFile), (folder / reportFile).string());
  artifact.sources = readSources(folder);
  for (const PlanKernel &kernel : artifact.plan.kernels) {
    readSource(kernel, folder, artifact);
    if (cubins == Cubins::needed) readCubin(kernel, folder, artifact);
  }
  return artifact;
}

}  // namespace weft::runtime
