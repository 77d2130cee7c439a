// weft explain --layout T: where a tensor lies and what each other layout would cost.
#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "tools/driver/Console.h"
#include "tools/driver/PlanBuilder.h"
#include "tools/driver/commands/Explain.h"

#include <algorithm>

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
    if (std::find(kernel.outputs.begin(), kernel.outputs.end(), tensor) != kernel.outputs.end()) writer = kernel.name;
    if (std::find(kernel.inputs.begin(), kernel.inputs.end(), tensor) != kernel.inputs.end())
      readers += (readers.empty() ? "" : ", ") + kernel.name;
  }
  return fmt::format("from {}, read by {}", writer, readers.empty() ? "the caller" : readers);
}

}  // namespace

Explanation explainLayout(const runtime::Artifact &artifact, const std::string &name) {
  const runtime::Plan &plan = artifact.plan;
  const std::vector<int> versions = versionsOf(plan, name);
  const json layouts = artifact.report.value("layouts", json::object());
  if (versions.empty() && !layouts.contains(name)) {
    std::vector<std::string> names;
    for (const runtime::PlanTensor &tensor : plan.tensors) names.push_back(tensor.name);
    throw Error::badInput("no tensor '{}'{}", name, nearestAndKnown(name, names));
  }
  std::string text;
  for (const int version : versions) {
    const runtime::PlanTensor &tensor = plan.tensors[size_t(version)];
    text += fmt::format("{}[{}] {} lies as {}, {}: {}\n", tensor.name, fmt::join(tensor.axes, ","), tensor.dtype,
                        printLayout(tensor) + (hasGaps(tensor) ? " with gaps" : ""), formatBytes(tensor.bytes), usersOf(plan, version));
  }
  if (versions.empty()) text += name + " lives inside one kernel and is never stored\n";
  const json entry = layouts.value(name, json::object());
  if (entry.value("pinned", false)) text += "pinned to this layout by the caller or by --pin\n";
  Table table({{"layout", left}, {"whole plan", right}});
  for (const json &price : entry.value("prices", json::array()))
    table.addRow({price["layout"].get<std::string>(), "+" + formatSeconds(price["loss"])});
  if (!entry.value("prices", json::array()).empty()) text += table.print();
  for (const json &pin : artifact.report.value("pins", json::array()))
    if (pin["tensor"] == name) text += fmt::format("the pin costs {}\n", formatSeconds(pin["regret"]));
  json stored = json::array();
  for (const int version : versions) {
    const runtime::PlanTensor &tensor = plan.tensors[size_t(version)];
    stored.push_back({{"name", tensor.name}, {"layout", printLayout(tensor)}, {"gaps", hasGaps(tensor)}, {"bytes", tensor.bytes}});
  }
  json regret;
  for (const json &pin : artifact.report.value("pins", json::array()))
    if (pin["tensor"] == name) regret = pin["regret"];
  return {.text = text, .json = {{"versions", stored}, {"regret", regret}, {"tensor", name}, {"prices", entry.value("prices", json::array())},
                                 {"pinned", entry.value("pinned", false)}, {"stored", !versions.empty()}}};
}

}  // namespace weft::driver
