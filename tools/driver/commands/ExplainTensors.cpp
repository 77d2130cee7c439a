// weft explain --layout T: where a tensor lies, and what the whole plan would be with each other
// layout, as compile would choose it.
#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "passes/decide/LayoutPredictions.h"
#include "plan/PlanBuilder.h"
#include "plan/PlanChunks.h"
#include "plan/PlanConfiguration.h"
#include "plan/PlanFigures.h"
#include "runtime/artifact/Artifact.h"
#include "tools/driver/Console.h"
#include "tools/driver/Request.h"
#include "tools/driver/commands/Explain.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace weft::driver {
namespace {

using nlohmann::json;

/// What the plan stores of a graph tensor: the tensor itself, a transposed copy of it ("q__hbjp"),
/// or all chunks of either.
struct Version {
  std::string name;               ///< without what its chunks add
  std::vector<int> tensors = {};  ///< of the plan: the whole, or its chunks where only they exist
  std::vector<int> chunks = {};   ///< what kernels in chunks read or write of it
};

/// `name`: of the graph, or of one tensor of the plan.
std::vector<Version> versionsOf(const Plan &plan, const std::string &name) {
  std::vector<Version> versions;
  const auto versionOf = [&](const std::string &whole) -> Version & {
    const auto found = std::ranges::find(versions, whole, &Version::name);
    return found != versions.end() ? *found : versions.emplace_back(Version{.name = whole});
  };
  for (size_t index = 0; index < plan.tensors.size(); ++index) {
    const std::string &own = plan.tensors[index].name;
    const std::string &whole = plan.tensors[index].chunkOf;
    if (own != name && plan.tensors[index].logical != name && whole != name) continue;
    if (whole.empty()) versionOf(own).tensors.push_back(int(index));
    else versionOf(whole).chunks.push_back(int(index));
  }
  for (Version &version : versions)
    if (version.tensors.empty()) version.tensors = version.chunks;
  return versions;
}

bool holds(const std::vector<int> &list, int value) { return std::ranges::count(list, value) > 0; }

/// Names of the kernels that read (or write) one of the tensors, chunks of a kernel as one.
std::vector<std::string> kernelsOf(const Plan &plan, const std::vector<int> &tensors,
                                   std::vector<int> PlanKernel::*operands) {
  std::vector<std::string> names;
  for (const PlanKernel &kernel : plan.kernels) {
    const std::string &name = wholeName(kernel);
    if (std::ranges::any_of(tensors, [&](int one) { return holds(kernel.*operands, one); }) &&
        std::ranges::count(names, name) == 0)
      names.push_back(name);
  }
  return names;
}

/// The tensor into which parameters are packed when they are loaded: kernels read it in place of
/// the parameter; nullptr where there is none.
const PlanTensor *packedInto(const Plan &plan, int tensor) {
  const PlanTensor &own = plan.tensors[size_t(tensor)];
  for (size_t index = 0; index < plan.tensors.size(); ++index) {
    const PlanTensor &other = plan.tensors[index];
    if (int(index) != tensor && own.role == TensorRole::parameter &&
        other.role == TensorRole::temporary && other.buffer == own.buffer &&
        !kernelsOf(plan, {int(index)}, &PlanKernel::inputs).empty())
      return &other;
  }
  return nullptr;
}

/// "from softmax__b_h_j_k, read by the caller"; chunks and packed parameters as such.
std::string usersOf(const Plan &plan, const Version &version) {
  std::vector<int> all = version.tensors;
  all.insert(all.end(), version.chunks.begin(), version.chunks.end());
  const PlanTensor &tensor = plan.tensors[size_t(version.tensors.front())];
  const std::vector<std::string> writers = kernelsOf(plan, all, &PlanKernel::outputs);
  std::vector<std::string> readers = kernelsOf(plan, all, &PlanKernel::inputs);
  if (tensor.role == TensorRole::result) readers.emplace_back("the caller");
  std::string text = writers.empty() ? fmt::format("{} {} of the caller",
                                                   tensor.role == TensorRole::argument ? "an" : "a",
                                                   nameOf(tensor.role))
                                     : fmt::format("from {}", fmt::join(writers, ", "));
  const PlanTensor *packed = packedInto(plan, version.tensors.front());
  if (readers.empty() && packed)
    return text + fmt::format(", packed into {} when it is loaded", packed->name);
  if (readers.empty()) return text + ", read by no kernel";
  return text + fmt::format(", {}read by {}",
                            version.chunks.empty()
                                ? ""
                                : fmt::format("in {} chunks ", version.chunks.size()),
                            fmt::join(readers, ", "));
}

/// The plan's tensors of all versions, one of each where there are chunks.
std::vector<int> wholesOf(const std::vector<Version> &versions) {
  std::vector<int> tensors;
  for (const Version &version : versions) tensors.push_back(version.tensors.front());
  return tensors;
}

/// "+1.2 us", "-1.2 us": against the plan.
std::string formatDifference(double seconds) {
  return (seconds < 0 ? "-" : "+") + formatSeconds(std::abs(seconds));
}

double graphSecondsOf(const Plan &plan) { return planFigures(plan)["graphSeconds"]; }

json toJson(const decision::LayoutPrediction &one, const Plan &plan) {
  if (!one.rejection.empty()) return {{"layout", one.layout}, {"rejected", one.rejection}};
  return {{"layout", one.layout},
          {"seconds", one.seconds},
          {"loss", one.seconds - plan.predictedSeconds},
          {"graphSeconds", one.graphSeconds},
          {"graphLoss", one.graphSeconds - graphSecondsOf(plan)},
          {"workspaceBytes", one.workspaceBytes},
          {"chunks", one.chunks},
          {"variant", one.variant}};
}

constexpr size_t mostRejection = 60;  // characters of a reason in the table; --json has all

/// This plan as a row: compiling with its own layout pinned may choose another.
decision::LayoutPrediction rowOfPlan(const Plan &plan, const std::string &layout) {
  return {.layout = layout,
          .variant = plan.variant,
          .chunks = chunkCount(plan),
          .seconds = plan.predictedSeconds,
          .graphSeconds = graphSecondsOf(plan),
          .workspaceBytes = plan.workspaceBytes};
}

/// `own`: the layouts in which the plan stores the tensor; empty where it does not.
std::string printPredictions(std::vector<decision::LayoutPrediction> predictions, const Plan &plan,
                             const std::set<std::string> &own) {
  const auto isOwn = [&](const decision::LayoutPrediction &one) {
    return own.contains(one.layout) && decision::isPlan(one, plan);
  };
  if (!own.empty() && std::ranges::none_of(predictions, isOwn)) {
    const decision::LayoutPrediction row = rowOfPlan(plan, fmt::format("{}", fmt::join(own, ", ")));
    const auto place =
        std::ranges::find_if(predictions, [&](const decision::LayoutPrediction &one) {
          return !one.rejection.empty() || one.chunks != row.chunks ||
                 one.graphSeconds > row.graphSeconds;
        });
    predictions.insert(place, row);
  }
  const std::set<std::string> ofPlan = {fmt::format("{}", fmt::join(own, ", "))};
  Table table({{"layout", left},
               {"as one graph", right},
               {"difference", right},
               {"workspace", right},
               {"chunks", right},
               {"variant", left}});
  for (const decision::LayoutPrediction &one : predictions) {
    const bool isMarked =
        isOwn(one) || (ofPlan.contains(one.layout) && decision::isPlan(one, plan));
    const std::string name = one.layout + (isMarked ? " *" : "");
    if (one.rejection.empty())
      table.addRow({name, formatSeconds(one.graphSeconds),
                    formatDifference(one.graphSeconds - graphSecondsOf(plan)),
                    formatBytes(one.workspaceBytes), std::to_string(one.chunks),
                    one.variant == plan.variant ? "the same" : one.variant});
    else
      table.addRow({name, "rejected", "", "", "",
                    one.rejection.substr(0, std::min(one.rejection.find('\n'), mostRejection))});
  }
  return table.print();
}

/// What another number of chunks alone adds to this plan as one graph, by that number: for the rows
/// that have another. Nothing where it was not weighed.
std::map<int, double> chunksAlone(const std::vector<decision::LayoutPrediction> &predictions,
                                  const runtime::Artifact &artifact) {
  std::map<int, double> differences;
  double own = 0;
  const json weighed = artifact.report.value("chunks", json::array());
  for (const json &one : weighed)
    if (one["chosen"].get<bool>()) own = one["seconds"];
  for (const json &one : weighed)
    if (own > 0 && !one["chosen"].get<bool>() &&
        std::ranges::any_of(predictions, [&](const decision::LayoutPrediction &row) {
          return row.rejection.empty() && row.chunks == one["chunks"].get<int>();
        }))
      differences[one["chunks"].get<int>()] = one["seconds"].get<double>() - own;
  return differences;
}

/// What is behind the differences of rows in another number of chunks; empty where there are none.
std::string chunksLine(const std::vector<decision::LayoutPrediction> &predictions,
                       const runtime::Artifact &artifact) {
  const int own = chunkCount(artifact.plan);
  if (std::ranges::all_of(predictions, [&](const decision::LayoutPrediction &one) {
        return !one.rejection.empty() || one.chunks == own;
      }))
    return "";
  std::vector<std::string> alone;
  for (const auto &[count, seconds] : chunksAlone(predictions, artifact))
    alone.push_back(fmt::format("--chunks {} alone {}", count, formatDifference(seconds)));
  return fmt::format("rows of other chunks differ by these, too{}{}\n", alone.empty() ? "" : ": ",
                     fmt::join(alone, ", "));
}

/// Where the plan stores the tensor, one line a version.
std::string whereItLies(const Plan &plan, const std::vector<Version> &versions) {
  std::string text;
  for (const Version &version : versions) {
    const PlanTensor &tensor = plan.tensors[size_t(version.tensors.front())];
    const bool isInChunks = version.tensors == version.chunks;
    text += fmt::format("{}[{}] {} lies as {}, {}{}: {}\n", version.name,
                        fmt::join(tensor.axes, ","), nameOf(tensor.dtype),
                        printLayout(tensor) + (hasStridedView(tensor) ? " (a strided view)" : ""),
                        isInChunks && version.chunks.size() > 1 ? "each chunk " : "",
                        formatBytes(tensor.bytes), usersOf(plan, version));
  }
  return text;
}

/// Of a tensor that the plan does not store: what becomes of it in the plan's variant.
std::string whyItLiesNowhere(const Compilation &compilation,
                             const std::vector<ProposedVariant> &proposed, const Plan &plan,
                             const std::string &name) {
  const auto chosen = std::ranges::find_if(
      proposed, [&](const ProposedVariant &variant) { return variant.name() == plan.variant; });
  if (chosen != proposed.end() && compilation.variantHasTensor(*chosen, name))
    return name + " lives inside one kernel of this plan and is not stored\n";
  return fmt::format("{} is no tensor of this plan's variant, {}\n", name, plan.variant);
}

[[noreturn]] void rejectUnknown(const Plan &plan, const std::string &name) {
  std::vector<std::string> names;
  for (const PlanTensor &one : plan.tensors) names.push_back(one.name);
  throw Error::badInput("no tensor '{}'{}", name, nearestAndKnown(name, names));
}

/// What the rows of the table do not say.
std::string remarks(const runtime::Artifact &artifact, const std::string &tensor, bool isPinned,
                    bool haveSamePrices) {
  std::string text;
  if (!haveSamePrices) text += "note: the prices are others than when this plan was chosen\n";
  if (artifact.plan.measurement)
    text += "note: this plan was chosen by --measure, the layouts are priced without\n";
  if (isPinned) text += "pinned to this layout by --pin\n";
  for (const json &pin : artifact.report.value("pins", json::array()))
    if (pin["tensor"] == tensor)
      text += fmt::format("the pin costs {}\n", formatSeconds(pin["regret"]));
  return text;
}

json versionsJson(const Plan &plan, const std::vector<Version> &versions) {
  json stored = json::array();
  for (const Version &version : versions) {
    const PlanTensor &tensor = plan.tensors[size_t(version.tensors.front())];
    stored.push_back({{"name", version.name},
                      {"layout", printLayout(tensor)},
                      {"isStridedView", hasStridedView(tensor)},
                      {"bytes", tensor.bytes},
                      {"chunks", std::max<size_t>(1, version.chunks.size())},
                      {"users", usersOf(plan, version)}});
  }
  return stored;
}

json regretOf(const runtime::Artifact &artifact, const std::string &tensor) {
  json regret;
  for (const json &pin : artifact.report.value("pins", json::array()))
    if (pin["tensor"] == tensor) regret = pin["regret"];
  return regret;
}

}  // namespace

Explanation explainLayout(const runtime::Artifact &artifact, const std::string &name,
                          const std::string &profile) {
  const Plan &plan = artifact.plan;
  const std::vector<Version> versions = versionsOf(plan, name);
  const std::vector<int> wholes = wholesOf(versions);
  std::set<std::string> own;
  for (const int whole : wholes) own.insert(printLayout(plan.tensors[size_t(whole)]));
  const auto layoutOf = [&](int whole) {  // the first of several after a transpose
    return namedLayout(plan.tensors[size_t(whole)]);
  };
  const std::string tensor = wholes.empty() ? name : plan.tensors[size_t(wholes.front())].logical;
  if (!versions.empty() &&
      !artifact.report.contains(
          "request"))  // of an older weft, or stripped: where it lies is in the plan
    return {.text = whereItLies(plan, versions) +
                    "note: report.json says not what the plan was asked from, so no other layout "
                    "is priced; compile the model again\n",
            .json = {{"versions", versionsJson(plan, versions)},
                     {"regret", regretOf(artifact, tensor)},
                     {"tensor", tensor},
                     {"prices", json::array()},
                     {"pinned", false},
                     {"stored", true},
                     {"whyNone", "report.json holds no request"},
                     {"planSeconds", plan.predictedSeconds},
                     {"planGraphSeconds", graphSecondsOf(plan)},
                     {"planChunks", chunkCount(plan)},
                     {"chunksAlone", json::object()},
                     {"planWorkspaceBytes", plan.workspaceBytes},
                     {"samePrices", true}}};
  const ReopenedRequest request = reopen(artifact.report, profile);
  const Compilation &compilation = *request.compilation;
  const std::vector<ProposedVariant> proposed = compilation.propose(request.first);
  std::vector<decision::LayoutPrediction> predictions;
  std::string whyNone;
  try {
    predictions = valueOrThrow(decision::predictLayouts(
        compilation.problem(proposed), compilation.options(proposed), plan, tensor,
        wholes.empty() ? std::nullopt : std::optional(layoutOf(wholes.front()))));
  } catch (const Error &error) {
    if (error.kind == ErrorKind::badInput && versions.empty()) rejectUnknown(plan, name);
    if (error.kind != ErrorKind::unsupported) throw;
    whyNone = error.what();
  }
  std::string text = versions.empty() ? whyItLiesNowhere(compilation, proposed, plan, name)
                                      : whereItLies(plan, versions);
  if (predictions.empty()) text += "no plan stores it: " + whyNone + "\n";
  else
    text += printPredictions(predictions, plan, own) +
            fmt::format("each as compile chooses with --pin {}=LAYOUT{}\n", tensor,
                        own.empty() ? "" : "; * is this plan") +
            chunksLine(predictions, artifact);
  const std::vector<Pin> pinned = compilation.choiceFlags().pinned();
  const bool isPinned = std::ranges::find(pinned, tensor, &Pin::tensor) != pinned.end();
  text += remarks(artifact, tensor, isPinned, request.haveSamePrices);
  json prices = json::array(), alone = json::object();
  for (const auto &[count, seconds] : chunksAlone(predictions, artifact))
    alone[std::to_string(count)] = seconds;
  for (const decision::LayoutPrediction &one : predictions) prices.push_back(toJson(one, plan));
  return {.text = text,
          .json = {{"versions", versionsJson(plan, versions)},
                   {"regret", regretOf(artifact, tensor)},
                   {"tensor", tensor},
                   {"prices", prices},
                   {"pinned", isPinned},
                   {"stored", !versions.empty()},
                   {"whyNone", whyNone},
                   {"planSeconds", plan.predictedSeconds},
                   {"planGraphSeconds", graphSecondsOf(plan)},
                   {"planChunks", chunkCount(plan)},
                   {"chunksAlone", alone},
                   {"planWorkspaceBytes", plan.workspaceBytes},
                   {"samePrices", request.haveSamePrices}}};
}

}  // namespace weft::driver
