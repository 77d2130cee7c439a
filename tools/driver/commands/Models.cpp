// weft models: what compiles by name, and the families of config.json; of one of them, every extent
// and what is supported.
#include "tools/driver/Console.h"
#include "tools/driver/commands/Commands.h"

#include "kernel/Error.h"
#include "kernel/Nearest.h"
#include "models/ConfigJson.h"
#include "models/Presets.h"
#include "models/Support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

namespace weft::driver {
namespace {

using nlohmann::json;
using namespace models;
std::vector<const PresetRow *> allRows() {
  std::vector<const PresetRow *> rows;
  for (const std::vector<PresetRow> *list : {&presetRows(), &modelRows()})
    for (const PresetRow &row : *list) rows.push_back(&row);
  return rows;
}

/// Extents that the model fixes, and those that follow from others.
json dimsJson(const LayerSpecification &specification) {
  json list = json::array();
  const Dims all = resolveDims(specification, {});
  for (const std::string &name : settableDims(specification))
    list.push_back({{"name", name},
                    {"default", all.at(name)},
                    {"meaning", meaningOfAxis(name)},
                    {"follows", specification.dims.contains(name) ? "" : ruleOfAxis(name)}});
  return list;
}

json toJson(const PresetRow &row) {
  const LayerSpecification &specification = row.specification;
  json parts = json::array();
  for (const models::Part part : supportedParts(specification)) parts.push_back(nameOf(part));
  return {{"name", specification.name},
          {"summary", row.summary},
          {"family", nameOf(specification.family)},
          {"dims", dimsJson(specification)},
          {"parts", parts},
          {"dtypes", supportedTypes(specification)},
          {"masks", supportedMasks(specification)},
          {"scores", supportedScoreForms(specification)},
          {"train", isTrained(specification)},
          {"dropout", specification.dropout.attention},
          {"causal", specification.causal},
          {"layers", specification.layers}};
}

json toJson(const ConfigFamily &family) {
  json keys = json::array();
  for (const ConfigKey &key : family.keys)
    keys.push_back({{"name", key.name}, {"required", key.isRequired}});
  return {{"modelType", family.modelType}, {"family", nameOf(family.family)}, {"keys", keys}};
}

std::string shape(const json &dims) {
  std::string result;
  for (const json &dim : dims)
    if (dim["follows"].get<std::string>().empty())
      result += fmt::format("{}{}={}", result.empty() ? "" : " ", dim["name"].get<std::string>(),
                            dim["default"].get<int64_t>());
  return result;
}

std::string joined(const json &list) {
  return fmt::format("{}", fmt::join(list.get<std::vector<std::string>>(), " "));
}

std::string overview() {
  std::string result;
  for (const PresetRow *row : allRows()) {
    const json model = toJson(*row);
    result += fmt::format("{}  {}\n", emphasized(fmt::format("{:<15}", row->specification.name)),
                          row->summary);
    result += fmt::format("{:<15}  {}   {}   {}\n", "", shape(model["dims"]),
                          joined(model["dtypes"]), joined(model["parts"]));
  }
  return result + fmt::format(
                      "\nEach with its extents (--dim), element types (--dtype, the default first) "
                      "and parts (--part); all of them with --train, too, but for what biases of "
                      "scores by distance are computed from (T5, DeBERTa). A "
                      "config.json of model_type {} and a graph as .mlir compile as well.\n"
                      "weft models NAME tells more of a model or a model_type.\n",
                      fmt::join(supportedModelTypes(), ", "));
}

std::string trainingOf(const LayerSpecification &specification) {
  if (isTrained(specification)) return "supported";
  return specification.hasDistances()
             ? "supported but for what scores by distance are computed from (--gradients-of)"
             : "supported but for relative_table (--gradients-of)";
}

std::string details(const PresetRow &row) {
  const json model = toJson(row);
  std::string result = fmt::format("{}: {}\n", row.specification.name, row.summary);
  result += fmt::format("  family   {}: {}\n", nameOf(row.specification.family),
                        summaryOf(row.specification.family));
  result += fmt::format(
      "  --part   {}\n  --dtype  {}\n  --train  {}; --dropout P sets the probability, {} without\n",
      joined(model["parts"]), joined(model["dtypes"]), trainingOf(row.specification),
      row.specification.dropout.attention);
  if (const int64_t layers = row.specification.model.layers;
      layers > 0 && row.specification.family != models::Family::maskedToken)
    result += fmt::format("  --layers 1 to {}; 1 without, and all with --part model\n", layers);
  result += fmt::format("  --mask   {}, or several of them{}\n", joined(model["masks"]),
                        row.specification.causal ? ", beside causal" : "");
  if (!model["scores"].empty())
    result +=
        fmt::format("  --score  {}, or several of them; none without\n", joined(model["scores"]));
  for (const json &dim : model["dims"]) {
    const std::string rule = dim["follows"];
    result += fmt::format(
        "  {:<7}  {:<10} {}{}\n", &dim == &model["dims"].front() ? "--dim" : "",
        fmt::format("{}={}", dim["name"].get<std::string>(), dim["default"].get<int64_t>()),
        dim["meaning"].get<std::string>(), rule.empty() ? "" : ", " + rule + " unless given");
  }
  return result;
}

std::string details(const ConfigFamily &family) {
  std::vector<std::string> required, optional;
  for (const ConfigKey &key : family.keys)
    (key.isRequired ? required : optional).push_back(key.name);
  return fmt::format(
      "config.json of model_type {}\n  family    {}: {}\n  required  {}\n  read      {}\n",
      family.modelType, nameOf(family.family), summaryOf(family.family), fmt::join(required, ", "),
      fmt::join(optional, ", "));
}

json everything() {
  json list = json::array(), types = json::array();
  for (const PresetRow *row : allRows()) list.push_back(toJson(*row));
  for (const ConfigFamily &family : configFamilies()) types.push_back(toJson(family));
  return {{"models", list}, {"modelTypes", types}};
}

[[noreturn]] void throwUnknown(const std::string &name) {
  std::vector<std::string> names;
  for (const PresetRow *row : allRows()) names.push_back(row->specification.name);
  for (const std::string &type : supportedModelTypes())
    if (std::ranges::count(names, type) == 0) names.push_back(type);
  throw Error::badInput("unknown model '{}'{}", name, nearestAndKnown(name, names));
}

/// gpt2 is a model and a model_type: both.
int describe(const std::string &name, bool asJson) {
  json models = json::array(), types = json::array();
  std::string result;
  for (const PresetRow *row : allRows())
    if (row->specification.name == name) result += details(*row), models.push_back(toJson(*row));
  for (const ConfigFamily &family : configFamilies())
    if (family.modelType == name) result += details(family), types.push_back(toJson(family));
  if (result.empty()) throwUnknown(name);
  if (asJson) printResult(json{{"models", models}, {"modelTypes", types}});
  else printResult(result);
  return 0;
}

}  // namespace

Action addModels(CLI::App &command) {
  auto name = std::make_shared<std::string>();
  command
      .add_option("name", *name,
                  "a model or a model_type of config.json: every extent, or every key")
      ->type_name("NAME");
  return [name](bool asJson) {
    if (!name->empty()) return describe(*name, asJson);
    if (asJson) printResult(everything());
    else printResult(overview());
    return 0;
  };
}

}  // namespace weft::driver
