// weft explain --layout T: where a tensor lies, and what the whole plan would be with each other
// layout, as compile would choose it.
#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "tools/driver/Console.h"
#include "tools/driver/LayoutPredictions.h"
#include "tools/driver/PlanBuilder.h"
#include "tools/driver/Request.h"
#include "tools/driver/commands/Explain.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace weft::driver {
namespace {

using nlohmann::json;
constexpr auto left = Table::Align::left, right = Table::Align::right;

/// The plan tensors that hold a graph tensor: "q" and, after a transpose, "q__hbjp".
std::vector<int> versionsOf(const runtime::Plan &plan, const std::string &name) {
  std::vector<int> versions;
  for (size_t index = 0; index < plan.tensors.size(); ++index)
    if (plan.tensors[index].name == name || plan.tensors[index].name.starts_with(name + "__"))
      versions.push_back(int(index));
  return versions;
}

std::string usersOf(const runtime::Plan &plan, int tensor) {
  std::string writer = plan.tensors[size_t(tensor)].role, readers;
  for (const runtime::PlanKernel &kernel : plan.kernels) {
    if (std::find(kernel.outputs.begin(), kernel.outputs.end(), tensor) != kernel.outputs.end())
      writer = kernel.name;
    if (std::find(kernel.inputs.begin(), kernel.inputs.end(), tensor) != kernel.inputs.end())
      readers += (readers.empty() ? "" : ", ") + kernel.name;
  }
  return fmt::format("from {}, read by {}", writer, readers.empty() ? "the caller" : readers);
}

/// The orders in which the plan stores a tensor, by axes; several after a transpose.
std::vector<std::vector<std::string>> ordersOf(const runtime::Plan &plan,
                                               const std::vector<int> &versions) {
  std::vector<std::vector<std::string>> orders;
  for (const int version : versions) {
    const runtime::PlanTensor &tensor = plan.tensors[size_t(version)];
    orders.emplace_back();
    for (const int dimension : tensor.order)
      orders.back().push_back(tensor.axes[size_t(dimension)]);
  }
  return orders;
}

/// "+1.2 us", "-1.2 us": against the plan.
std::string formatDifference(double seconds) {
  return (seconds < 0 ? "-" : "+") + formatSeconds(std::abs(seconds));
}

json toJson(const LayoutPrediction &one, double planSeconds) {
  if (!one.refusal.empty()) return {{"layout", one.layout}, {"refused", one.refusal}};
  return {{"layout", one.layout},
          {"seconds", one.seconds},
          {"loss", one.seconds - planSeconds},
          {"workspaceBytes", one.workspaceBytes},
          {"chunks", one.chunks},
          {"variant", one.variant}};
}

constexpr size_t mostRefusal = 60;  // characters of a reason in the table; --json has all

std::string printPredictions(const std::vector<LayoutPrediction> &predictions,
                             const runtime::Plan &plan, const std::set<std::string> &own) {
  Table table({{"layout", left},
               {"whole plan", right},
               {"difference", right},
               {"workspace", right},
               {"chunks", right},
               {"variant", left}});
  for (const LayoutPrediction &one : predictions) {
    const std::string name = one.layout + (own.contains(one.layout) ? " *" : "");
    if (one.refusal.empty())
      table.addRow({name, formatSeconds(one.seconds),
                    formatDifference(one.seconds - plan.predictedSeconds),
                    formatBytes(one.workspaceBytes), std::to_string(one.chunks),
                    one.variant == plan.variant ? "the same" : one.variant});
    else
      table.addRow({name, "refused", "", "", "",
                    one.refusal.substr(0, std::min(one.refusal.find('\n'), mostRefusal))});
  }
  return table.print();
}

/// Where the plan stores the tensor, one line a version.
std::string whereItLies(const runtime::Plan &plan, const std::vector<int> &versions) {
  std::string text;
  for (const int version : versions) {
    const runtime::PlanTensor &tensor = plan.tensors[size_t(version)];
    text += fmt::format("{}[{}] {} lies as {}, {}: {}\n", tensor.name, fmt::join(tensor.axes, ","),
                        tensor.dtype, printLayout(tensor) + (hasGaps(tensor) ? " with gaps" : ""),
                        formatBytes(tensor.bytes), usersOf(plan, version));
  }
  return text;
}

/// Of a tensor that the plan does not store: what becomes of it in the plan's variant.
std::string whyItLiesNowhere(const Compilation &compilation,
                             const std::vector<ProposedVariant> &proposed,
                             const runtime::Plan &plan, const std::string &name) {
  const auto chosen = std::ranges::find_if(
      proposed, [&](const ProposedVariant &variant) { return variant.name() == plan.variant; });
  if (chosen != proposed.end() && compilation.variantHasTensor(*chosen, name))
    return name + " lives inside one kernel of this plan and is not stored\n";
  return fmt::format("{} is no tensor of this plan's variant, {}\n", name, plan.variant);
}

[[noreturn]] void refuseUnknown(const runtime::Plan &plan, const std::string &name) {
  std::vector<std::string> names;
  for (const runtime::PlanTensor &one : plan.tensors) names.push_back(one.name);
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

json versionsJson(const runtime::Plan &plan, const std::vector<int> &versions) {
  json stored = json::array();
  for (const int version : versions) {
    const runtime::PlanTensor &tensor = plan.tensors[size_t(version)];
    stored.push_back({{"name", tensor.name},
                      {"layout", printLayout(tensor)},
                      {"gaps", hasGaps(tensor)},
                      {"bytes", tensor.bytes}});
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
  const runtime::Plan &plan = artifact.plan;
  const std::vector<int> versions = versionsOf(plan, name);
  const std::vector<std::vector<std::string>> orders = ordersOf(plan, versions);
  std::set<std::string> own;
  for (const int version : versions) own.insert(printLayout(plan.tensors[size_t(version)]));
  const std::string tensor =
      versions.empty() ? name : plan.tensors[size_t(versions.front())].logical;
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
                     {"planWorkspaceBytes", plan.workspaceBytes},
                     {"samePrices", true}}};
  const ReopenedRequest request = reopen(artifact.report, profile);
  const Compilation &compilation = *request.compilation;
  const std::vector<ProposedVariant> proposed = compilation.propose(request.first);
  std::vector<LayoutPrediction> predictions;
  std::string whyNone;
  try {
    predictions = predictLayouts(compilation, proposed, tensor,
                                 orders.empty() ? std::vector<std::string>() : orders.front());
  } catch (const Error &error) {
    if (error.kind == ErrorKind::badInput && versions.empty()) refuseUnknown(plan, name);
    if (error.kind != ErrorKind::unsupported) throw;
    whyNone = error.what();
  }
  std::string text = versions.empty() ? whyItLiesNowhere(compilation, proposed, plan, name)
                                      : whereItLies(plan, versions);
  if (predictions.empty()) text += "no plan stores it: " + whyNone + "\n";
  else
    text += printPredictions(predictions, plan, own) +
            fmt::format("each as compile chooses with --pin {}=LAYOUT; * is this plan's\n", tensor);
  const std::vector<Pin> pinned = compilation.choiceFlags().pinned();
  const bool isPinned = std::ranges::find(pinned, tensor, &Pin::tensor) != pinned.end();
  text += remarks(artifact, tensor, isPinned, request.haveSamePrices);
  json prices = json::array();
  for (const LayoutPrediction &one : predictions)
    prices.push_back(toJson(one, plan.predictedSeconds));
  return {.text = text,
          .json = {{"versions", versionsJson(plan, versions)},
                   {"regret", regretOf(artifact, tensor)},
                   {"tensor", tensor},
                   {"prices", prices},
                   {"pinned", isPinned},
                   {"stored", !versions.empty()},
                   {"whyNone", whyNone},
                   {"planSeconds", plan.predictedSeconds},
                   {"planWorkspaceBytes", plan.workspaceBytes},
                   {"samePrices", request.haveSamePrices}}};
}

}  // namespace weft::driver
