// Emission once more, and a build to compare with; see ExactTexts.h.
#include "tools/driver/ExactTexts.h"

#include "kernel/Error.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/build/Includes.h"
#include "tools/driver/Console.h"
#include "tools/driver/ReEmission.h"

#include <algorithm>
#include <set>

namespace weft::driver {
namespace {

/// The first member of the launch that the plan has otherwise; empty if none.
std::string otherLaunch(const PlanKernel &said, const PlanKernel &exact) {
  if (said.source != exact.source) return "source";
  if (said.entry != exact.entry) return "entry";
  if (said.grid != exact.grid) return "grid";
  if (said.block != exact.block) return "block";
  if (said.sharedBytes != exact.sharedBytes) return "sharedBytes";
  if (said.workspaceBytes != exact.workspaceBytes) return "workspaceBytes";
  if (said.startsEarly != exact.startsEarly) return "startsEarly";
  return said.parameters == exact.parameters ? "" : "parameters";
}

}  // namespace

ExactTexts exactTexts(const runtime::Artifact &artifact, const std::string &where) {
  ExactTexts texts{
      .planned =
          replan(artifact, *analyticCostModel(findDevice(artifact.plan.device)), where).planned,
      .emitted = {},
      .isEdited = {}};
  Plan &plan = texts.planned.plan;
  const nlohmann::json notes = artifact.report.value("fusionNotes", nlohmann::json::object());
  texts.emitted = emitKernels(texts.planned, plan.target, [&](const ChosenKernel &chosen) {
    return notes.value(chosen.kernel.name, std::vector<std::string>());
  });
  texts.isEdited.assign(plan.kernels.size(), false);
  std::map<std::string, std::string_view> &available = texts.emitted.available;
  std::set<std::string> edited;  // headers
  for (const auto &[name, text] : runtime::includable(artifact))
    if (const auto ours = available.find(name); ours == available.end() || ours->second != text) {
      available[name] = text;
      edited.insert(name);
    }
  for (size_t index = 0; index < texts.emitted.requests.size(); ++index) {
    runtime::BuildRequest &request = texts.emitted.requests[index];
    const std::string source = plan.kernels[texts.emitted.kernelsOfRequest[index].front()].source;
    const auto file = artifact.sources.find(source);
    const bool isOther =
        file != artifact.sources.end() && file->second != texts.emitted.sources.at(source);
    if (isOther) request.text = file->second;
    const bool includesOther =
        std::ranges::any_of(runtime::includedHeaders(request.text, available),
                            [&](const auto &header) { return edited.contains(header.first); });
    if (!isOther && !includesOther) continue;
    for (const size_t kernel : texts.emitted.kernelsOfRequest[index]) texts.isEdited[kernel] = true;
  }
  setTextHashes(plan, texts.emitted);
  return texts;
}

std::vector<std::string> cubinDoubts(const runtime::Artifact &artifact, const ExactTexts &texts,
                                     const std::string &folder) {
  std::vector<std::string> doubts(artifact.plan.kernels.size());
  const runtime::NvrtcLocation nvrtc = runtime::findNvrtc();
  std::vector<runtime::BuildResult> results;
  Progress progress;
  if (!nvrtc.library.empty()) {
    runtime::BuildOptions options;
    options.headers = texts.emitted.available;
    options.progress = [&](size_t done, size_t total, const std::string &name) {
      progress.show(fmt::format("building {}/{} {}", done, total, name));
    };
    results = runtime::build(texts.emitted.requests, options);
  }
  progress.clear();
  const auto doubt = [&](size_t request, const PlanKernel &said,
                         const PlanKernel &exact) -> std::string {
    const std::string remedy = fmt::format("'weft emit {}' builds it", folder);
    if (said.cubin.empty()) return "it was not built; " + remedy;
    if (!artifact.cubins.contains(said.cubin))
      return fmt::format("{} is missing or damaged; {}", said.cubin, remedy);
    if (nvrtc.library.empty())
      return fmt::format("there is no NVRTC here, which tells whether {} is of its text",
                         said.cubin);
    const runtime::BuildResult &result = results[request];
    if (!result.error.empty())
      return fmt::format("{} does not build: {}", said.source,
                         result.error.substr(0, result.error.find('\n')));
    if (runtime::cubinName(result.cubin) != said.cubin)
      return fmt::format("{} is of another text than {}, or another NVRTC's than {}; {}",
                         said.cubin, said.source, nvrtc.version, remedy);
    const std::string member = otherLaunch(said, exact);
    return member.empty()
               ? ""
               : fmt::format("plan.json says another {} than its text is launched with; {}", member,
                             remedy);
  };
  for (size_t request = 0; request < texts.emitted.requests.size(); ++request)
    for (const size_t kernel : texts.emitted.kernelsOfRequest[request])
      doubts[kernel] =
          doubt(request, artifact.plan.kernels[kernel], texts.planned.plan.kernels[kernel]);
  return doubts;
}

}  // namespace weft::driver
