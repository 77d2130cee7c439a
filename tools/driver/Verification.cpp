// The run of all checks; see Verification.h.
#include "tools/driver/Verification.h"

#include "kernel/Error.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/execute/Executor.h"
#include "runtime/system/Files.h"
#include "runtime/verify/KernelVerification.h"
#include "tools/driver/Console.h"
#include "tools/driver/ExactTexts.h"
#include "tools/driver/ReEmission.h"

#include <algorithm>
#include <regex>
#include <thread>

namespace weft::driver {
namespace {

/// The artifact with those of its cubins that are there and hold what they are named after.
runtime::Artifact readWithCubins(const std::string &folder) {
  runtime::Artifact artifact = runtime::readArtifact(folder, runtime::Cubins::left);
  runtime::rejectForged(artifact, folder + "/plan.json");
  if (!artifact.planEdits.empty())
    throw Error::badInput(
        "{}/plan.json: {}: run 'weft emit {}' first, which takes it or says why not", folder,
        describe(artifact.planEdits.front()), folder);
  verifyDerived(artifact.plan, folder + "/plan.json");
  checkArtifact(artifact, folder, Use::toRun);
  static const std::regex named("cubin/[0-9a-f]{32}\\.cubin");
  for (const PlanKernel &kernel : artifact.plan.kernels) {
    const std::filesystem::path file = std::filesystem::path(folder) / kernel.cubin;
    std::error_code none;
    if (!std::regex_match(kernel.cubin, named) || artifact.cubins.contains(kernel.cubin) ||
        !std::filesystem::is_regular_file(file, none))
      continue;
    std::string bytes = runtime::readFile(file);
    if (runtime::cubinName(bytes) == kernel.cubin)
      artifact.cubins.emplace(kernel.cubin, std::move(bytes));
  }
  return artifact;
}

class ArtifactVerification {
public:
  ArtifactVerification(const VerifyOptions &options, const runtime::cuda::Context &context)
      : options(options),
        context(context),
        artifact(readWithCubins(options.folder)),
        texts(exactTexts(artifact, options.folder)),
        doubts(cubinDoubts(artifact, texts, options.folder)) {
    result.gpu = context.gpu().name;
  }

  ArtifactVerdict run() {
    checkKernels();
    result.whole.isAsked = !options.kernelsOnly && options.kernel.empty();
    if (!result.whole.isAsked) return std::move(result);
    if (!lost.empty()) {
      result.whole.unchecked = lost;
      return std::move(result);
    }
    std::vector<std::string> edited;
    for (size_t index = 0; index < texts.isEdited.size(); ++index)
      if (texts.isEdited[index]) edited.push_back(artifact.plan.kernels[index].name);
    result.whole = verifyWhole(artifact, edited, context, options.seed);
    return std::move(result);
  }

private:
  /// What of the plan can be loaded: kernels whose cubin is not known to be theirs are left out.
  runtime::Artifact loadable() const {
    runtime::Artifact loaded = artifact;
    for (size_t index = 0; index < doubts.size(); ++index)
      if (!doubts[index].empty()) loaded.plan.kernels[index].cubin.clear();
    return loaded;
  }

  void checkKernels() {
    const runtime::Executor executor(
        loadable(), context,
        {.ownExternals = false, .leaveUnbuilt = true, .folder = options.folder});
    for (const std::string &warning : executor.warnings()) printNote(warning);
    const runtime::cuda::Stream stream;
    const int only = options.kernel.empty() ? -1 : executor.kernelIndex(options.kernel);
    Progress progress;
    for (size_t index = 0; index < artifact.plan.kernels.size(); ++index) {
      if (only >= 0 && int(index) != only) continue;
      progress.show(fmt::format("verifying {}/{} {}", index + 1, artifact.plan.kernels.size(),
                                artifact.plan.kernels[index].name));
      result.kernels.push_back(sameInAnotherLayer(index, executor.replaced(int(index))));
      if (!result.kernels.back().sameAs) result.kernels.back() = verdictOf(executor, index, stream);
    }
    progress.clear();
  }

  /// The verdict on a kernel of an earlier layer that agreed and runs the same text in the same
  /// layouts; `sameAs` is nothing where there is none.
  KernelVerdict sameInAnotherLayer(size_t index, bool isReplaced) const {
    const PlanKernel &kernel = artifact.plan.kernels[index];
    if (isView(kernel) || isReplaced || !doubts[index].empty() || kernel.layer == 0) return {};
    const std::string hash = runtime::recordHashOf(texts.planned.plan.kernels[index]);
    for (size_t other = 0; other < std::min(index, result.kernels.size()); ++other) {
      const PlanKernel &earlier = artifact.plan.kernels[other];
      const KernelVerdict &verdict = result.kernels[other];
      if (!verdict.result || !verdict.result->passed() || verdict.sameAs || hash.empty() ||
          verdict.recordHash != hash || earlier.cubin != kernel.cubin ||
          !areAlikeInLayers(earlier, kernel))
        continue;
      KernelVerdict same = verdict;
      same.name = kernel.name;
      same.sameAs = other;
      return same;
    }
    return {};
  }

  KernelVerdict verdictOf(const runtime::Executor &executor, size_t index,
                          const runtime::cuda::Stream &stream) {
    const PlanKernel &kernel = artifact.plan.kernels[index];
    KernelVerdict verdict{.name = kernel.name,
                          .recordHash = runtime::recordHashOf(texts.planned.plan.kernels[index]),
                          .isView = isView(kernel),
                          .result = {},
                          .unchecked = {},
                          .sameAs = {}};
    if (verdict.isView) return verdict;
    verdict.unchecked = !lost.empty() ? lost : doubts[index];
    if (executor.replaced(int(index)))
      verdict.unchecked = "cuBLASLt of this machine has not the plan's algorithm";
    if (!verdict.unchecked.empty()) return verdict;
    const runtime::CheckOptions check{
        .points = options.samples,
        .seed = options.seed,
        .dropout = {.seed = options.seed, .step = 0, .stream = 0},
        .threads = int(std::max(1u, std::thread::hardware_concurrency()))};
    try {
      verdict.result = runtime::verifyKernel(executor, int(index),
                                             texts.planned.kernels[index].kernel, check, stream);
    } catch (const runtime::cuda::DriverError &error) {
      if (error.isOutOfMemory()) {
        verdict.unchecked = error.what();
        return verdict;
      }
      verdict.result = runtime::CheckResult{};
      verdict.result->problem = error.what();
      if (error.isSticky())
        lost = fmt::format("not reached: {} failed and nothing more runs in this process",
                           kernel.name);
    } catch (const Error &error) {
      if (error.kind != ErrorKind::unsupported) throw;
      verdict.unchecked = error.what();
    }
    return verdict;
  }

  const VerifyOptions &options;
  const runtime::cuda::Context &context;
  const runtime::Artifact artifact;
  const ExactTexts texts;
  const std::vector<std::string> doubts;
  std::string lost;  ///< why nothing can run any more
  ArtifactVerdict result;
};

}  // namespace

bool WholeVerdict::failed() const {
  return ran() && (!problem.empty() || std::ranges::any_of(results, &ResultCheck::failed));
}

bool WholeVerdict::passed() const {
  return ran() && problem.empty() && std::ranges::all_of(results, &ResultCheck::passed);
}

std::string WholeVerdict::reason() const {
  if (!isAsked || passed() || failed() || !unchecked.empty()) return unchecked;
  std::vector<std::string> reasons;
  for (const ResultCheck &result : results)
    if (!result.unchecked.empty())
      reasons.push_back(fmt::format("'{}': {}", result.name, result.unchecked));
  return fmt::format("{}", fmt::join(reasons, "; "));
}

size_t ArtifactVerdict::agreed() const {
  return size_t(std::ranges::count_if(kernels, [](const KernelVerdict &kernel) {
    return kernel.result && kernel.result->passed();
  }));
}

size_t ArtifactVerdict::failed() const {
  return size_t(std::ranges::count_if(kernels, &KernelVerdict::failed));
}

std::vector<std::string> ArtifactVerdict::unchecked() const {
  std::vector<std::string> lines;
  for (const KernelVerdict &kernel : kernels)
    if (kernel.isUnchecked()) lines.push_back(kernel.name + ": " + kernel.unchecked);
  if (const std::string reason = whole.reason(); whole.isAsked && !reason.empty())
    lines.push_back("the whole plan: " + reason);
  return lines;
}

ArtifactVerdict verifyArtifact(const VerifyOptions &options,
                               const runtime::cuda::Context &context) {
  return ArtifactVerification(options, context).run();
}

WholeVerdict verifyWhole(const runtime::Artifact &artifact, const std::vector<std::string> &edited,
                         const runtime::cuda::Context &context, uint64_t seed) {
  WholeVerdict verdict;
  ScaledPlan scaled;
  BuiltPlan built;
  try {
    verify(artifact.plan, "plan.json");
  } catch (const Error &error) {  // it contradicts itself: whatever it computes is wrong
    verdict.problem = error.what();
    return verdict;
  }
  try {
    scaled = scaledPlan(artifact);
    verdict.dims = scaled.dims;
    verdict.unscaled = scaled.unscaled;
    verdict.kernels = scaled.planned.kernels.size();
    verdict.others = scaled.others;
    for (const std::string &name : edited)
      verdict.others.push_back({.kernel = name,
                                .own = "its edited text",
                                .used = "the generated one",
                                .reason = "an edited text is of the true extents"});
  } catch (const Error &error) {
    (error.kind == ErrorKind::checkFailed ? verdict.problem : verdict.unchecked) = error.what();
    return verdict;
  }
  try {
    built = buildScaled(scaled, artifact.plan.target);
  } catch (const Error &error) {
    verdict.unchecked = error.what();
    return verdict;
  }
  try {
    verdict.results = runScaled(scaled, built, context, seed, verdict.warnings);
  } catch (const Error &error) {
    (error.kind == ErrorKind::unsupported ? verdict.unchecked : verdict.problem) = error.what();
  }
  return verdict;
}

runtime::VerificationRun recordsOf(const ArtifactVerdict &verdict) {
  runtime::VerificationRun run{.records = {},
                               .isWhole = verdict.whole.isAsked && verdict.whole.reason().empty()};
  const bool isDoubted = verdict.whole.failed();
  for (const KernelVerdict &kernel : verdict.kernels) {
    if (kernel.recordHash.empty() || (!kernel.result && !isDoubted)) continue;
    using enum runtime::Verdict;
    run.records.push_back({.hash = kernel.recordHash,
                           .gpu = verdict.gpu,
                           .verdict = kernel.failed() ? fails
                                      : isDoubted     ? planFails
                                                      : agrees,
                           .points = kernel.result ? kernel.result->points : 0,
                           .kernel = kernel.name});
  }
  return run;
}

}  // namespace weft::driver
