// weft diff: what differs between two artifacts, kernel by kernel. Exit 0 when their plans are equal, 1 when not.
#include "tools/driver/Console.h"
#include "tools/driver/ReEmission.h"
#include "tools/driver/commands/Commands.h"

#include "runtime/Artifact.h"

#include <fmt/format.h>

#include <map>
#include <memory>

namespace weft::driver {
namespace {

using nlohmann::json;

json describe(const runtime::PlanKernel &kernel) {
  return {{"ops", kernel.ops},
          {"inputLayouts", kernel.inputLayouts},
          {"outputLayouts", kernel.outputLayouts},
          {"configuration", kernel.configuration},
          {"seconds", kernel.seconds},
          {"timeSource", nameOf(timeSourceOf(kernel))},
          {"verifiedOn", kernel.verifiedOn},
          {"key", kernel.key}};
}

/// Members of two flat objects that differ: name -> [a, b].
json changes(const json &a, const json &b) {
  json object = json::object();
  for (const auto &[name, value] : a.items())
    if (value != b.at(name)) object[name] = json::array({value, b.at(name)});  // braces alone make an object of two pairs
  return object;
}

std::map<std::string, const runtime::PlanKernel *> byName(const runtime::Plan &plan) {
  std::map<std::string, const runtime::PlanKernel *> kernels;
  for (const runtime::PlanKernel &kernel : plan.kernels) kernels[kernel.name] = &kernel;
  return kernels;
}

json header(const runtime::Plan &plan) {
  return {{"model", plan.model},   {"variant", plan.variant}, {"dims", plan.dims},       {"dtype", plan.dtype},
          {"device", plan.device}, {"target", plan.target},   {"costModel", plan.costModel}};
}

json difference(const runtime::Artifact &a, const runtime::Artifact &b) {
  const auto before = byName(a.plan), after = byName(b.plan);
  json result = {{"plan", changes(header(a.plan), header(b.plan))}, {"added", json::array()}, {"removed", json::array()},
                 {"changed", json::object()}, {"seconds", {a.plan.predictedSeconds, b.plan.predictedSeconds}}};
  for (const auto &[name, kernel] : before)
    if (!after.contains(name)) result["removed"].push_back(name);
  for (const auto &[name, kernel] : after) {
    const auto old = before.find(name);
    if (old == before.end()) {
      result["added"].push_back(name);
      continue;
    }
    json changed = changes(describe(*old->second), describe(*kernel));
    const auto textA = a.sources.find(old->second->source), textB = b.sources.find(kernel->source);
    if (textA != a.sources.end() && textB != b.sources.end() && textA->second != textB->second)
      changed["source"] = json::array({old->second->source, kernel->source});
    if (!changed.empty()) result["changed"][name] = changed;
  }
  result["edits"] = {editLines(a), editLines(b)};
  result["equal"] = toJson(a.plan) == toJson(b.plan) && a.sources == b.sources;
  return result;
}

std::string printValue(const json &value) {
  if (value.is_number_float()) return formatSeconds(value.get<double>());
  if (value.is_array()) {
    std::string text;
    for (const json &item : value) text += (text.empty() ? "" : " | ") + printValue(item);
    return text;
  }
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string text(const json &difference) {
  std::string result;
  for (const size_t side : {0, 1})
    for (const json &line : difference["edits"][side]) result += fmt::format("edit of {}: {}\n", side == 0 ? "a" : "b", line.get<std::string>());
  if (difference["equal"].get<bool>()) return result + "equal\n";
  for (const auto &[name, pair] : difference["plan"].items())
    result += fmt::format("plan {}: {} -> {}\n", name, printValue(pair[0]), printValue(pair[1]));
  for (const json &name : difference["removed"]) result += fmt::format("- {}\n", name.get<std::string>());
  for (const json &name : difference["added"]) result += fmt::format("+ {}\n", name.get<std::string>());
  for (const auto &[name, members] : difference["changed"].items()) {
    result += fmt::format("~ {}\n", name);
    for (const auto &[member, pair] : members.items())
      if (member == "source") result += "    kernel text differs\n";
      else if (member != "key")
        result += fmt::format("    {}: {} -> {}\n", member, printValue(pair[0]), printValue(pair[1]));
  }
  return result + fmt::format("predicted {} -> {}\n", formatSeconds(difference["seconds"][0].get<double>()),
                              formatSeconds(difference["seconds"][1].get<double>()));
}

}  // namespace

Action addDiff(CLI::App &command) {
  struct Flags {
    std::string a, b;
  };
  auto flags = std::make_shared<Flags>();
  command.add_option("a", flags->a, "artifact")->required()->type_name("DIR");
  command.add_option("b", flags->b, "artifact")->required()->type_name("DIR");
  return [flags](bool asJson) {
    const runtime::Artifact a = runtime::readArtifact(flags->a, runtime::Cubins::left), b = runtime::readArtifact(flags->b, runtime::Cubins::left);
    checkArtifact(a, flags->a, Use::toLook);
    checkArtifact(b, flags->b, Use::toLook);
    const json result = difference(a, b);
    if (asJson) printResult(result);
    else printResult(text(result));
    return result["equal"].get<bool>() ? 0 : 1;
  };
}

}  // namespace weft::driver
