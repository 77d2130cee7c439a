// weft run: an artifact on a GPU, held to its graph first; the runtime does the rest.
#include "tools/driver/commands/Commands.h"

#include "kernel/Error.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/commands/RunCommand.h"
#include "tools/driver/Flags.h"
#include "tools/driver/ReEmission.h"
#include "tools/driver/WeightFiles.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace weft::driver {
namespace {

/// Checks the weights of all parameters, and lets the run read them.
void takeWeights(runtime::RunRequest &request, const runtime::Artifact &artifact,
                 const std::string &path) {
  if (request.steps || !request.kernel.empty())
    throw Error::badInput("--weights are a whole plan's; it takes no --steps and no --kernel");
  const std::string names =
      artifact.report.value("model", nlohmann::json::object()).value("weightNames", std::string());
  if (names.empty())
    throw Error::unsupported(
        "{}: --weights: names of checkpoints are known of several layers and of whole models of "
        "families that weft knows whole (--layers, --part model; weft models lists them); nearest "
        "is --inputs, a file of the plan's own names",
        request.folder);
  const auto files = std::make_shared<WeightFiles>(path, names);
  std::vector<const PlanTensor *> parameters;
  for (const PlanTensor &tensor : artifact.plan.tensors)
    if (tensor.role == TensorRole::parameter) parameters.push_back(&tensor);
  files->require(parameters);
  request.weights = [files](const PlanTensor &parameter) { return files->elements(parameter); };
  request.weightsFrom = path;
}

}  // namespace

Action addRun(CLI::App &command) {
  auto request = std::make_shared<runtime::RunRequest>();
  const OptionGroup group(command, "Run");
  runtime::addRunFlags(command, *request);
  for (const char *option : {"--steps", "--data", "--state", "--save-every", "--learning-rate",
                             "--weight-decay", "--loss-scale", "--growth-interval"})
    command.get_option(option)->group("Training");
  auto weights = std::make_shared<std::string>();
  command
      .add_option(
          "--weights", *weights,
          "parameters of a model compiled with --layers or --part model from a Hugging Face "
          "checkpoint: a safetensors file, or a folder that holds one, or several with their "
          "index; --inputs then holds arguments alone")
      ->type_name("PATH");
  return [request, weights](bool json) {
    request->json = json;
    const runtime::Artifact artifact =
        runtime::readArtifact(request->folder, runtime::Cubins::left);
    checkArtifact(artifact, request->folder, Use::toRun);
    if (!weights->empty()) takeWeights(*request, artifact, *weights);
    return runtime::runArtifact(*request);
  };
}

}  // namespace weft::driver
