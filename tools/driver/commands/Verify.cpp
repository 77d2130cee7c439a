// weft verify: every kernel of an artifact at its true extents against fp64, and the whole plan on
// small extents against the interpreter (design rule 6). What agreed in all checks is recorded
// (runtime/artifact/VerificationRecords.h).
#include "kernel/Error.h"
#include "tools/driver/Console.h"
#include "tools/driver/Verification.h"
#include "tools/driver/commands/Commands.h"

#include <CLI/CLI.hpp>

#include <memory>

namespace weft::driver {
namespace {

using nlohmann::json;

struct VerifyFlags {
  VerifyOptions options;
  std::string store;
  int gpu = 0;
  bool allowUnchecked = false;
};

std::string kernelTable(const std::vector<KernelVerdict> &verdicts) {
  using enum Table::Align;
  Table table({{"kernel", left},
               {"points", right},
               {"max error", right},
               {"of bound", right},
               {"verdict", left}});
  std::vector<int> repeats(verdicts.size());  // in later layers, of the kernel that was checked
  for (const KernelVerdict &verdict : verdicts)
    if (verdict.sameAs) ++repeats[*verdict.sameAs];
  for (size_t index = 0; index < verdicts.size(); ++index) {
    const KernelVerdict &verdict = verdicts[index];
    if (verdict.sameAs) continue;
    if (!verdict.result) {
      table.addRow({verdict.name, "-", "-", "-",
                    verdict.isView ? "view: nothing runs" : "NOT CHECKED: " + verdict.unchecked});
      continue;
    }
    const runtime::CheckResult &result = *verdict.result;
    table.addRow(
        {verdict.name, std::to_string(result.points), fmt::format("{:.3g}", result.worstError),
         fmt::format("{:.3f}", result.worstRatio),
         !result.passed()     ? "FAILED: " + runtime::describe(result)
         : repeats[index] > 0 ? fmt::format("agrees; {} more layers have it", repeats[index])
                              : "agrees"});
  }
  return table.print();
}

json toJson(const std::vector<KernelVerdict> &verdicts) {
  json rows = json::array();
  for (const KernelVerdict &verdict : verdicts) {
    json row{{"name", verdict.name},
             {"view", verdict.isView},
             {"checked", verdict.result.has_value()},
             {"reason", verdict.unchecked},
             {"sameAs", verdict.sameAs ? verdicts[*verdict.sameAs].name : ""}};
    if (verdict.result)
      row.update({{"points", verdict.result->points},
                  {"failing", verdict.result->failing},
                  {"maxError", verdict.result->worstError},
                  {"ofBound", verdict.result->worstRatio},
                  {"passed", verdict.result->passed()},
                  {"problem", runtime::describe(*verdict.result)}});
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Which kernels of the small plan are not those of the plan.
std::string otherLines(const WholeVerdict &whole) {
  std::string text;
  if (whole.ran() && whole.others.empty() && whole.warnings.empty())
    return "  every kernel has its own knobs\n";
  for (const decision::OtherKnobs &other : whole.others)
    text += fmt::format("  {}: {} in place of {}: {}\n", other.kernel, other.used, other.own,
                        other.reason);
  for (const std::string &warning : whole.warnings) text += "  " + warning + "\n";
  return text;
}

std::string wholeText(const WholeVerdict &whole) {
  if (!whole.isAsked) return "whole plan: not asked for\n";
  if (!whole.ran()) return fmt::format("whole plan: NOT CHECKED: {}\n", whole.unchecked);
  std::string text = fmt::format("whole plan at {}, {} kernels, against the interpreter in fp64:\n",
                                 printDims(whole.dims), whole.kernels);
  if (!whole.unscaled.empty()) text += fmt::format("  no smaller: {}\n", whole.unscaled);
  if (!whole.problem.empty()) text += fmt::format("  FAILED: {}\n", whole.problem);
  for (const ResultCheck &result : whole.results)
    text += fmt::format("  {:<20} {} elements, max error {:.3g}, bound {:.3g}: {}\n", result.name,
                        result.elements, result.worst, result.bound,
                        result.passed     ? "agrees"
                        : result.failed() ? "FAILED"
                                          : "NOT CHECKED: " + result.unchecked);
  return text + otherLines(whole);
}

json toJson(const WholeVerdict &whole) {
  json results = json::array(), others = json::array();
  for (const ResultCheck &result : whole.results)
    results.push_back({{"name", result.name},
                       {"elements", result.elements},
                       {"maxError", result.worst},
                       {"bound", result.bound},
                       {"passed", result.passed},
                       {"reason", result.unchecked}});
  for (const decision::OtherKnobs &other : whole.others)
    others.push_back({{"kernel", other.kernel},
                      {"own", other.own},
                      {"used", other.used},
                      {"reason", other.reason}});
  return {{"asked", whole.isAsked},   {"checked", whole.isAsked && whole.reason().empty()},
          {"passed", whole.passed()}, {"reason", whole.reason()},
          {"problem", whole.problem}, {"results", results},
          {"otherKnobs", others},     {"warnings", whole.warnings},
          {"dims", whole.dims},       {"unscaled", whole.unscaled}};
}

std::string summary(const ArtifactVerdict &verdict, const std::vector<std::string> &unchecked,
                    bool allowed) {
  std::string text = fmt::format(
      "{} with fp64 on {}, {} failed, {} not checked\n",
      verdict.agreed() == 1 ? "1 kernel agrees" : fmt::format("{} kernels agree", verdict.agreed()),
      verdict.gpu, verdict.failed(),
      std::ranges::count_if(verdict.kernels, &KernelVerdict::isUnchecked));
  if (!unchecked.empty() && !allowed)
    text += fmt::format("not everything was checked: {} (--allow-unchecked: exit 0 all the same)\n",
                        fmt::join(unchecked, "; "));
  return text;
}

int verify(const VerifyFlags &flags, bool asJson) {
  if (flags.options.samples < 1)
    throw Error::badInput("--samples {}: at least 1", flags.options.samples);
  if (!flags.store.empty())
    runtime::readRecords(flags.store);  // a store that cannot be read is told before hours of work
  runtime::readRecords(runtime::machineRecordsFile());
  const runtime::cuda::Context context(flags.gpu);
  const ArtifactVerdict verdict = verifyArtifact(flags.options, context);
  const runtime::VerificationRun run = recordsOf(verdict);
  runtime::addRecords(run, runtime::machineRecordsFile(), runtime::RecordStore::machine);
  if (!flags.store.empty()) runtime::addRecords(run, flags.store, runtime::RecordStore::shipped);
  const std::vector<std::string> unchecked = verdict.unchecked();
  if (asJson)
    printResult(json{{"gpu", verdict.gpu},
                     {"verifier", runtime::verifierVersion},
                     {"kernels", toJson(verdict.kernels)},
                     {"agreed", verdict.agreed()},
                     {"failed", verdict.failed()},
                     {"unchecked", unchecked},
                     {"whole", toJson(verdict.whole)}});
  else
    printResult(kernelTable(verdict.kernels) + wholeText(verdict.whole) +
                summary(verdict, unchecked, flags.allowUnchecked));
  const bool passes = verdict.failed() == 0 && !verdict.whole.failed() &&
                      (unchecked.empty() || flags.allowUnchecked);
  return passes ? 0 : int(ErrorKind::checkFailed);
}

}  // namespace

Action addVerify(CLI::App &command) {
  auto flags = std::make_shared<VerifyFlags>();
  VerifyOptions &options = flags->options;
  command.add_option("artifact", options.folder, "folder that compile wrote")
      ->required()
      ->type_name("DIR");
  command.add_option("--kernel", options.kernel, "only this kernel")->type_name("NAME");
  command.add_option("--samples", options.samples, "points of each output, at most")
      ->capture_default_str();
  command.add_option("--seed", options.seed, "of inputs, samples and dropout")
      ->capture_default_str();
  command.add_option("--gpu", flags->gpu, "number of the GPU, as the driver counts")
      ->capture_default_str();
  command.add_option("--store", flags->store, "add the verification records to this file, too")
      ->type_name("FILE");
  command.add_flag("--kernels-only", options.kernelsOnly,
                   "leave out the whole plan on small extents");
  command.add_flag("--allow-unchecked", flags->allowUnchecked,
                   "exit 0 where nothing failed, although not everything could be checked");
  return [flags](bool json) { return verify(*flags, json); };
}

}  // namespace weft::driver
