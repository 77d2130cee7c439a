// Artifacts with a stand-in for cubins, which the stand-in for the driver (tests/support/fakecuda)
// loads; see BaseArtifacts.h.
#include "tests/fuzz/BaseArtifacts.h"

#include "runtime/artifact/Artifact.h"
#include "tests/unit/samples/ProfileMeasurements.h"
#include "tools/driver/Compilation.h"
#include "tools/driver/commands/CommandLine.h"

#include <stdexcept>

namespace weft::fuzz {

namespace fs = std::filesystem;

namespace {

/// Every function of it exists and does nothing.
constexpr const char *standInCubin =
    "\x7f"
    "ELF stand-in";

void compile(std::vector<std::string> arguments) {
  std::vector<char *> pointers;
  for (std::string &argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  if (driver::runCommandLine(int(arguments.size()), pointers.data()) != 0)
    throw std::runtime_error("no base artifact: the command above failed");
}

void addCubins(const fs::path &folder) {
  runtime::Artifact artifact = runtime::readArtifact(folder, runtime::Cubins::left);
  const std::string name = runtime::cubinName(standInCubin);
  for (PlanKernel &kernel : artifact.plan.kernels)
    if (!kernel.source.empty()) kernel.cubin = name;
  artifact.cubins[name] = standInCubin;
  // Hundreds of records of fusions: to read them again in every command would take most of the
  // time.
  constexpr size_t mostFusions = 40;
  if (nlohmann::json &fusions = artifact.report["fusions"]; fusions.size() > mostFusions)
    fusions.erase(fusions.begin() + mostFusions, fusions.end());
  runtime::writeArtifact(artifact, folder);
}

}  // namespace

std::vector<BaseArtifact> makeBaseArtifacts(const fs::path &corpus, const fs::path &scratch) {
  struct Row {
    const char *name;
    std::vector<std::string> arguments;
    bool isTraining = false;
  };
  const auto graph = [&](const char *name) { return (corpus / "mlir" / name).string(); };
  const std::vector<Row> rows = {
      {"attention", {graph("attention.mlir"), "--attention", "unfused"}},
      {"encoder",
       {graph("encoder.mlir"), "--stacking", "three", "--attention", "unfused", "--no-library"}},
      {"chunks",
       {graph("attention.mlir"), "--attention", "unfused", "--chunks", "2", "--no-library"}},
      {"backward",
       {graph("feed_forward.mlir"), "--train", "--stacking", "separate", "--no-library"}},
      {"training",
       {graph("tokens.mlir"), "--dtype", "f32", "--train", "--optimizer", "adamw", "--no-library"},
       true},
  };
  std::vector<BaseArtifact> artifacts;
  for (const Row &row : rows) {
    const BaseArtifact artifact{
        .name = row.name, .folder = scratch / row.name, .isTraining = row.isTraining};
    artifacts.push_back(artifact);
    if (fs::exists(artifact.folder)) continue;  // two kinds of input ask for them
    std::vector<std::string> arguments = {"weft", "compile"};
    arguments.insert(arguments.end(), row.arguments.begin(), row.arguments.end());
    for (const char *flag : {"--profile", "none", "--stop-after", "emit", "-o"})
      arguments.emplace_back(flag);
    arguments.push_back(artifact.folder.string());
    compile(arguments);
    addCubins(artifact.folder);
  }
  return artifacts;
}

std::string makeBaseProfile(const fs::path &graph) {
  driver::ModelFlags model;
  model.model = graph.string();
  driver::TargetFlags target;
  target.profile = "none";
  driver::Compilation compilation(model, {}, target);
  compilation.import(driver::Phase::import);
  const std::vector<select::Problem> problems =
      compilation.problems(compilation.propose(driver::Phase::import));
  const decision::ProfileSpaceOptions few{.mostLayouts = 2, .mostStrided = 1, .mostKnobs = 1};
  return printProfile(
      samples::completeProfile(decision::profileSpace(problems, {}, compilation.costModel(), few)));
}

}  // namespace weft::fuzz
