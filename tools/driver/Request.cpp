// Requests to JSON and back; see Request.h.
#include "tools/driver/Request.h"

#include "kernel/Error.h"
#include "tools/driver/Fills.h"
#include "tools/driver/ProfileModel.h"

namespace weft::driver {
namespace {

using nlohmann::json;

/// Of the model's flags those that rewriting still reads: the graph has all others in it.
json toJson(const ModelFlags &flags) {
  return {{"train", flags.train}, {"optimizer", flags.optimizer}, {"recompute", flags.recompute}};
}

ModelFlags modelFrom(const json &object) {
  ModelFlags flags;
  flags.model = "report.json.mlir";  // how messages call it
  object.at("train").get_to(flags.train);
  object.at("optimizer").get_to(flags.optimizer);
  object.at("recompute").get_to(flags.recompute);
  return flags;
}

json toJson(const ChoiceFlags &flags) {
  json object = {{"attention", flags.attention.text},
                 {"norms", flags.norms.text},
                 {"stacking", flags.stacking.text},
                 {"fuseRules", flags.fuseRules.text},
                 {"softmax", flags.softmax.text},
                 {"variant", flags.variant},
                 {"fuse", flags.fuse},
                 {"noFuse", flags.noFuse},
                 {"pins", flags.pins},
                 {"free", flags.free},
                 {"maxMemory", flags.maxMemory},
                 {"chunks", flags.chunks},
                 {"concurrent", flags.concurrent.text},
                 {"alternatives", flags.alternatives},
                 {"searchMemory", flags.searchMemory}};
  if (flags.memoryTrade.share() > 0) object["memoryTrade"] = flags.memoryTrade.text;  // absent: 0
  if (const ChoiceFlags usual; flags.subVector != usual.subVector)
    object["subVector"] = flags.subVector.text;                                // absent: 64
  if (flags.pipeline.slices() != 1) object["pipeline"] = flags.pipeline.text;  // absent: 1
  if (flags.fill) object["fill"] = fillJson(*flags.fill);
  return object;
}

ChoiceFlags choicesFrom(const json &object) {
  ChoiceFlags flags;
  object.at("attention").get_to(flags.attention.text);
  object.at("norms").get_to(flags.norms.text);
  object.at("stacking").get_to(flags.stacking.text);
  object.at("fuseRules").get_to(flags.fuseRules.text);
  object.at("softmax").get_to(flags.softmax.text);
  object.at("variant").get_to(flags.variant);
  object.at("fuse").get_to(flags.fuse);
  object.at("noFuse").get_to(flags.noFuse);
  object.at("pins").get_to(flags.pins);
  object.at("free").get_to(flags.free);
  object.at("maxMemory").get_to(flags.maxMemory);
  object.at("chunks").get_to(flags.chunks);
  object.at("concurrent").get_to(flags.concurrent.text);
  object.at("alternatives").get_to(flags.alternatives);
  object.at("searchMemory").get_to(flags.searchMemory);
  if (object.contains("memoryTrade")) object.at("memoryTrade").get_to(flags.memoryTrade.text);
  if (object.contains("subVector")) object.at("subVector").get_to(flags.subVector.text);
  if (object.contains("pipeline")) object.at("pipeline").get_to(flags.pipeline.text);
  if (object.contains("fill")) flags.fill = fillFrom(object.at("fill"));
  return flags;
}

json toJson(const TargetFlags &flags) {
  json object = {{"device", flags.deviceName},
                 {"target", flags.target},
                 {"profile", flags.profile},
                 {"strict", flags.strict},
                 {"noLibrary", flags.noLibrary}};
  if (const TargetFlags usual; flags.deterministic != usual.deterministic)
    object["deterministic"] = flags.deterministic.text;
  return object;
}

TargetFlags targetFrom(const json &object) {
  TargetFlags flags;
  object.at("device").get_to(flags.deviceName);
  object.at("target").get_to(flags.target);
  object.at("profile").get_to(flags.profile);
  object.at("strict").get_to(flags.strict);
  object.at("noLibrary").get_to(flags.noLibrary);
  flags.deterministic.text = object.value("deterministic", flags.deterministic.text);
  return flags;
}

}  // namespace

json requestReport(const Compilation &compilation) {
  json graphs = json::array();
  for (const auto &[rewrites, text] : compilation.importedTexts())
    graphs.push_back({{"rewrites", textsOf(rewrites)}, {"text", text}});
  ChoiceFlags choices = compilation.choiceFlags();
  if (compilation.importedOneOfSeveral())
    choices.variant.clear();  // it names one of the file's, the only one here
  if (compilation.expectedFill() && !compilation.expectedFill()->isFull())
    choices.fill = compilation.expectedFill();
  json request = {{"first", nameOf(compilation.resumesAt())},
                  {"graphs", std::move(graphs)},
                  {"model", toJson(compilation.model())},
                  {"choices", toJson(choices)},
                  {"target", toJson(compilation.target())},
                  {"prices", sourceOfPrices(compilation.target(), compilation.unfilledPrices())}};
  if (compilation.isLayered()) request["byParts"] = true;
  return request;
}

Request requestOf(const json &report) {
  if (!report.contains("request"))
    throw Error::badInput(
        "report.json says not what the plan was asked from ('request'): it is of an older weft; "
        "compile the model again");
  try {
    const json &asked = report.at("request");
    if (asked.value("byParts", false))
      throw Error::unsupported(
          "the plan is of several layers, which were decided one by one: what another choice gives "
          "is decided of one layer; compile it without --layers and --part model, and ask there");
    Request request{.model = modelFrom(asked.at("model")),
                    .choices = choicesFrom(asked.at("choices")),
                    .target = targetFrom(asked.at("target")),
                    .graphs = {},
                    .first = parsePhase(asked.at("first")),
                    .prices = asked.at("prices")};
    for (const json &graph : asked.at("graphs")) {
      request.graphs.push_back({.rewrites = {}, .text = graph.at("text")});
      for (const json &rewrite : graph.at("rewrites"))
        request.graphs.back().rewrites.push_back(parseRewrite(rewrite.get<std::string>()));
    }
    return request;
  } catch (const json::exception &error) {
    throw Error::badInput("report.json: request: {}", error.what());
  }
}

ReopenedRequest reopen(const json &report, const std::string &profile) {
  Request request = requestOf(report);
  if (!profile.empty()) request.target.profile = profile;
  ReopenedRequest reopened{
      .compilation = std::make_unique<Compilation>(request.model, request.choices, request.target),
      .first = request.first};
  reopened.compilation->importTexts(request.graphs, reopened.first);
  reopened.haveSamePrices =
      sourceOfPrices(request.target, reopened.compilation->unfilledPrices()) == request.prices;
  return reopened;
}

}  // namespace weft::driver
