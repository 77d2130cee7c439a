// weft verify: every kernel of an artifact at its true extents against fp64, and the whole plan on small extents against the
// interpreter (design rule 6). What agreed in all checks is recorded (runtime/VerificationRecords.h).
#include "kernel/Error.h"
#include "runtime/Executor.h"
#include "runtime/VerificationRecords.h"
#include "runtime/verify/KernelVerification.h"
#include "tools/driver/Console.h"
#include "tools/driver/Flags.h"
#include "tools/driver/ReEmission.h"
#include "tools/driver/ScaledPlan.h"
#include "tools/driver/commands/Commands.h"

#include <algorithm>
#include <memory>
#include <thread>

namespace weft::driver {
namespace {

using nlohmann::json;

struct VerifyFlags {
  std::string folder, kernel, store;
  int64_t samples = 4096;
  uint64_t seed = 1;
  int gpu = 0;
  bool kernelsOnly = false;
};

struct KernelVerdict {
  std::string name;
  std::optional<runtime::CheckResult> result;  ///< nothing: not checked, and why
  std::string reason;
  bool failed() const { return result && !result->passed(); }
};

KernelVerdict verdictOf(const runtime::Executor &executor, int index, const Kernel &kernel, const VerifyFlags &flags,
                        const runtime::cuda::Stream &stream) {
  KernelVerdict verdict{.name = executor.plan().kernels[size_t(index)].name, .result = {}, .reason = {}};
  const runtime::CheckOptions options{.points = flags.samples, .seed = flags.seed, .dropout = {.seed = flags.seed, .step = 0, .stream = 0},
                                      .threads = int(std::max(1u, std::thread::hardware_concurrency()))};
  try {
    verdict.result = runtime::verifyKernel(executor, index, kernel, options, stream);
    if (!verdict.result) verdict.reason = "view: nothing runs";
  } catch (const runtime::cuda::DriverError &) {
    throw;
  } catch (const Error &error) {
    if (error.kind != ErrorKind::unsupported) throw;
    verdict.reason = error.what();
  }
  return verdict;
}

/// What the run found of every text, when all its checks are done.
runtime::VerificationRun foundBy(const runtime::Plan &plan, const std::vector<KernelVerdict> &verdicts, const std::string &gpu, bool wholeRan, bool wholeFailed) {
  using enum runtime::Verdict;
  runtime::VerificationRun run{.records = {}, .isWhole = wholeRan};
  for (const KernelVerdict &verdict : verdicts)
    for (const runtime::PlanKernel &kernel : plan.kernels)
      if (kernel.name == verdict.name && verdict.result && !kernel.textHash.empty())
        run.records.push_back({.textHash = kernel.textHash, .gpu = gpu, .verdict = verdict.failed() ? fails : wholeFailed ? planFails : agrees,
                               .points = verdict.result->points, .kernel = kernel.name});
  return run;
}

std::string kernelTable(const std::vector<KernelVerdict> &verdicts) {
  using enum Table::Align;
  Table table({{"kernel", left}, {"points", right}, {"max error", right}, {"of bound", right}, {"verdict", left}});
  for (const KernelVerdict &verdict : verdicts) {
    if (!verdict.result) {
      table.addRow({verdict.name, "-", "-", "-", "not checked: " + verdict.reason});
      continue;
    }
    const runtime::CheckResult &result = *verdict.result;
    table.addRow({verdict.name, std::to_string(result.points), fmt::format("{:.3g}", result.worstError), fmt::format("{:.3f}", result.worstRatio),
                  result.passed() ? "agrees" : "FAILED: " + runtime::describe(result)});
  }
  return table.print();
}

json toJson(const std::vector<KernelVerdict> &verdicts) {
  json rows = json::array();
  for (const KernelVerdict &verdict : verdicts) {
    json row{{"name", verdict.name}, {"checked", verdict.result.has_value()}, {"reason", verdict.reason}};
    if (verdict.result)
      row.update({{"points", verdict.result->points}, {"failing", verdict.result->failing}, {"maxError", verdict.result->worstError},
                  {"ofBound", verdict.result->worstRatio}, {"passed", verdict.result->passed()}, {"problem", runtime::describe(*verdict.result)}});
    rows.push_back(std::move(row));
  }
  return rows;
}

struct WholeVerdict {
  std::optional<ScaledCheck> check;
  std::string reason;  ///< why there is none
  bool failed() const {
    return check && std::any_of(check->results.begin(), check->results.end(), [](const ResultCheck &result) { return !result.passed; });
  }
};

WholeVerdict wholeVerdict(const VerifyFlags &flags, const runtime::Artifact &artifact, const runtime::cuda::Context &context) {
  if (flags.kernelsOnly || !flags.kernel.empty()) return {.check = {}, .reason = "not asked for"};
  TargetFlags target;
  target.deviceName = artifact.plan.device;
  target.target = artifact.plan.target;
  target.noLibrary = std::ranges::none_of(artifact.plan.kernels, [](const runtime::PlanKernel &kernel) { return kernel.library.has_value(); });
  try {
    return {.check = checkScaled(artifact, target, context, flags.seed), .reason = {}};
  } catch (const runtime::cuda::DriverError &) {
    throw;
  } catch (const Error &error) {
    if (error.kind == ErrorKind::checkFailed) throw;
    return {.check = {}, .reason = error.what()};
  }
}

std::string wholeText(const WholeVerdict &whole) {
  if (!whole.check) return fmt::format("whole plan: not checked: {}\n", whole.reason);
  std::string dims, text;
  for (const auto &[name, extent] : whole.check->dims) dims += fmt::format(" {}={}", name, extent);
  text = fmt::format("whole plan at{}, {} kernels, against the interpreter in fp64:\n", dims, whole.check->kernels);
  for (const ResultCheck &result : whole.check->results)
    text += fmt::format("  {:<20} {} elements, max error {:.3g}, bound {:.3g}: {}\n", result.name, result.elements, result.worst, result.bound,
                        result.passed ? "agrees" : "FAILED");
  return text;
}

json toJson(const WholeVerdict &whole) {
  json results = json::array();
  if (whole.check)
    for (const ResultCheck &result : whole.check->results)
      results.push_back({{"name", result.name}, {"elements", result.elements}, {"maxError", result.worst}, {"bound", result.bound}, {"passed", result.passed}});
  return {{"checked", whole.check.has_value()}, {"reason", whole.reason}, {"results", results},
          {"dims", whole.check ? json(whole.check->dims) : json::object()}};
}

int verifyArtifact(const VerifyFlags &flags, bool asJson) {
  if (flags.samples < 1) throw Error::badInput("--samples {}: at least 1", flags.samples);
  const runtime::Artifact artifact = runtime::readArtifact(flags.folder);
  if (!artifact.planEdits.empty())
    throw Error::badInput("{}/plan.json: {}: run 'weft emit {}' first, which takes it", flags.folder, describe(artifact.planEdits.front()), flags.folder);
  runtime::verifyDerived(artifact.plan, flags.folder + "/plan.json");
  checkArtifact(artifact, flags.folder, Use::toRun);
  const Replanned replanned = replan(artifact, *analyticCostModel(findDevice(artifact.plan.device)), flags.folder);
  const runtime::cuda::Context context(flags.gpu);
  std::vector<KernelVerdict> verdicts;
  {
    const runtime::Executor executor(artifact, context, {.ownExternals = false, .folder = flags.folder});
    for (const std::string &warning : executor.warnings()) printNote(warning);
    const runtime::cuda::Stream stream;
    const int only = flags.kernel.empty() ? -1 : executor.kernelIndex(flags.kernel);
    Progress progress;
    for (size_t index = 0; index < artifact.plan.kernels.size(); ++index) {
      if (only >= 0 && int(index) != only) continue;
      progress.show(fmt::format("verifying {}/{} {}", index + 1, artifact.plan.kernels.size(), artifact.plan.kernels[index].name));
      verdicts.push_back(verdictOf(executor, int(index), replanned.planned.kernels[index].kernel, flags, stream));
    }
    progress.clear();
  }
  const WholeVerdict whole = wholeVerdict(flags, artifact, context);
  const runtime::VerificationRun run = foundBy(artifact.plan, verdicts, context.gpu().name, whole.check.has_value(), whole.failed());
  runtime::addRecords(run, runtime::machineRecordsFile(), runtime::RecordStore::machine);
  if (!flags.store.empty()) runtime::addRecords(run, flags.store, runtime::RecordStore::shipped);
  const auto count = [&](auto predicate) { return std::count_if(verdicts.begin(), verdicts.end(), predicate); };
  const auto failed = count([](const KernelVerdict &verdict) { return verdict.failed(); });
  const auto agreed = count([](const KernelVerdict &verdict) { return verdict.result && verdict.result->passed(); });
  if (asJson)
    printResult(json{{"gpu", context.gpu().name}, {"kernels", toJson(verdicts)}, {"agreed", agreed}, {"failed", failed}, {"whole", toJson(whole)}});
  else
    printResult(kernelTable(verdicts) + wholeText(whole) +
                fmt::format("{} kernels agree with fp64 on {}, {} failed\n", agreed, context.gpu().name, failed));
  return failed == 0 && !whole.failed() ? 0 : int(ErrorKind::checkFailed);
}

}  // namespace

Action addVerify(CLI::App &command) {
  auto flags = std::make_shared<VerifyFlags>();
  command.add_option("artifact", flags->folder, "folder that compile wrote")->required()->type_name("DIR");
  const OptionGroup group(command, "Checks");
  command.add_option("--kernel", flags->kernel, "only this kernel")->type_name("NAME");
  command.add_option("--samples", flags->samples, "points of each output, at most")->capture_default_str();
  command.add_option("--seed", flags->seed, "of inputs, samples and dropout")->capture_default_str();
  command.add_option("--gpu", flags->gpu, "number of the GPU, as the driver counts")->capture_default_str();
  command.add_option("--store", flags->store, "add the verification records to this file, too")->type_name("FILE");
  command.add_flag("--kernels-only", flags->kernelsOnly, "leave out the whole plan on small extents");
  return [flags](bool json) { return verifyArtifact(*flags, json); };
}

}  // namespace weft::driver
