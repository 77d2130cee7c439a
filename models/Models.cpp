// Request to graph: a preset, a config.json or a .mlir file.
#include "models/Models.h"

#include "ir/Weft.h"
#include "kernel/Error.h"
#include "models/ConfigJson.h"
#include "models/Families.h"
#include "models/MlirFile.h"
#include "models/Presets.h"
#include "models/Support.h"

#include <algorithm>
#include <filesystem>

namespace weft::models {
namespace {

bool endsWith(const std::string &text, std::string_view ending) {
  return text.size() > ending.size() &&
         text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

void checkRequest(const Request &request) {
  if (request.dropout && !(*request.dropout >= 0 && *request.dropout < 1))
    throw Error::badInput("dropout {}: a probability is at least 0 and below 1", *request.dropout);
  const std::optional<DType> dtype = request.dtype;
  if (dtype && dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16)
    throw Error::unsupported(
        "dtype {} is not supported for models; nearest is f32 (known: f32, f16, bf16)",
        nameOf(*dtype));
}

/// The layer that a preset's name, a config.json or a folder that holds one describes.
ConfigDescription describe(const std::string &model, const std::set<std::string> &allowedKeys) {
  const auto rejectKeys = [&] {
    if (!allowedKeys.empty())
      throw Error::badInput("--allow-key {}: '{}' is no config.json", *allowedKeys.begin(), model);
  };
  if (const PresetRow *preset = findPreset(model)) {
    rejectKeys();
    return {.specification = preset->specification};
  }
  std::error_code ignored;
  const std::filesystem::path inFolder = std::filesystem::path(model) / "config.json";
  if (std::filesystem::is_regular_file(inFolder, ignored))
    return readConfig(inFolder.string(), allowedKeys);
  if (endsWith(model, ".json")) return readConfig(model, allowedKeys);
  if (endsWith(model, ".onnx"))
    throw Error::unsupported("{}: ONNX files are not supported; known: .json, .mlir", model);
  if (std::filesystem::exists(model, ignored))
    throw Error::badInput("{}: neither a preset nor a config.json or .mlir file", model);
  throwUnknownPreset(model);
}

/// How many layers are built, and whether with what the model has around them.
void setLayers(LayerSpecification &specification, const Request &request) {
  const ModelSpecification &model = specification.model;
  const std::string &name = specification.name;
  specification.isWhole = request.part == Part::model;
  const bool isAsked = request.layers || request.allLayers;
  if (specification.family == Family::maskedToken) {
    if (isAsked)
      throw Error::unsupported(
          "{}: --layers cannot be set, the model has {}; nearest are bert-base, gpt2 and "
          "llama-3-8b",
          name, specification.layers);
    specification.isWhole = false;
    return;
  }
  if (!isAsked && !specification.isWhole) return;
  if (specification.family != Family::encoder && specification.family != Family::decoder &&
      specification.family != Family::llama)
    throw Error::unsupported(
        "{}: {}: layers of encoders, of decoders without a memory and of Llama are built in "
        "sequence; nearest are bert-base, gpt2 and llama-3-8b",
        name, isAsked ? "--layers" : "--part model");
  if (specification.isWhole && model.vocabulary == 0)
    throw Error::unsupported(
        "{}: --part model: what the model has around its layers is known of models like BERT, "
        "GPT-2 and Llama with a vocabulary ('vocab_size' of a config.json); nearest is --layers {}",
        name, model.layers > 0 ? "all" : "N");
  if (request.part == Part::attention && request.layers.value_or(2) != 1)
    throw Error::unsupported(
        "{}: --part attention: attention has no residual, and several of it are no model; nearest "
        "is --part layer",
        name);
  specification.hasLoss = request.training && specification.isWhole && model.hasLogits;
  const bool takesAll = request.allLayers || !request.layers;
  if (takesAll && model.layers == 0)
    throw Error::badInput(
        "{}: {}: no key says how many layers there are ({}); name their number "
        "with --layers N",
        name, isAsked ? "--layers all" : "--part model", fmt::join(layerCountKeys(), ", "));
  specification.layers = takesAll ? model.layers : *request.layers;
  if (model.layers > 0 && specification.layers > model.layers)
    throw Error::badInput("{}: --layers {}: the model has {} layers; --layers all takes them", name,
                          specification.layers, model.layers);
}

/// More than any published model of these families has; each is a copy of its ops.
constexpr int64_t mostLayers = 256;

void checkLayers(const LayerSpecification &specification) {
  if (specification.family == Family::maskedToken) return;
  if (specification.layers > mostLayers)
    throw Error::unsupported("{}: {} layers; at most {} are built together", specification.name,
                             specification.layers, mostLayers);
}

/// Embeddings and loss belong to no single layer.
void checkMaskedToken(const Request &request) {
  if (request.part != Part::layer)
    throw Error::unsupported("{}: has no part '{}'", request.model, nameOf(request.part));
}

/// The request's, else the config.json's, else the first that is supported.
DType elementType(const Request &request, const ConfigDescription &described) {
  if (request.dtype) return *request.dtype;
  if (described.elementType) return *described.elementType;
  if (!described.elementTypeKey.empty())
    throw Error::unsupported(
        "{}: key '{}' = \"{}\": layers are built of float16, bfloat16 and float32; --dtype f16, "
        "bf16 "
        "or f32 chooses one of them",
        request.model, described.elementTypeKey, described.elementTypeName);
  return *parseDType(supportedTypes(described.specification).front());
}

/// What a config.json says of its elements beside what they are; empty for a preset.
std::string elementTypeNote(const ConfigDescription &described, DType built, bool isConfig) {
  if (!isConfig) return "";
  if (described.elementTypeKey.empty())
    return fmt::format("config.json names no dtype; elements are {}", nameOf(built));
  const std::string asked = fmt::format("config.json asks for {} elements ({})",
                                        described.elementTypeName, described.elementTypeKey);
  if (described.elementType != built)
    return fmt::format("{}; --dtype {} overrides it", asked, nameOf(built));
  return fmt::format("{}, which are {} here", asked, nameOf(built));
}

/// A file's dropout is of training; a preset has what its publication computes.
void setDropout(ConfigDescription &described, const Request &request, bool isConfig) {
  Dropouts &dropout = described.specification.dropout;
  if (request.dropout) dropout = Dropouts::everywhere(*request.dropout);
  if (request.dropout || !isConfig || !request.training) return;
  dropout = described.dropout;
  if (!described.otherDropoutKeys.empty())
    throw Error::unsupported(
        "{}: key '{}': drops in training what layers of this model do not drop here; supported is "
        "0, and --dropout P sets the probability of every dropout",
        request.model, described.otherDropoutKeys.front());
}

/// What became of the dropout that a config.json names.
std::string dropoutNote(const ConfigDescription &described, const Request &request) {
  std::vector<std::string> keys = described.dropoutKeys;
  if (!request.training || request.dropout) {
    keys.insert(keys.end(), described.otherDropoutKeys.begin(), described.otherDropoutKeys.end());
    std::ranges::sort(keys);
  }
  if (request.dropout)
    return keys.empty() ? ""
                        : fmt::format("dropout of training, which --dropout {} overrides: {}",
                                      *request.dropout, fmt::join(keys, ", "));
  if (!request.training)
    return keys.empty()
               ? ""
               : fmt::format("dropout of training, built with --train: {}", fmt::join(keys, ", "));
  keys.insert(keys.end(), described.assumedDropouts.begin(), described.assumedDropouts.end());
  return keys.empty() ? "" : fmt::format("dropout of training: {}", fmt::join(keys, ", "));
}

/// The request's masks beside the model's own: a query sees what all of them let it see.
void setMask(LayerSpecification &specification, const Request &request) {
  const ScoreMask &mask = request.mask;
  if (specification.globalPositions &&
      mask != ScoreMask{.padding = mask.padding, .attentionMask = mask.attentionMask})
    throw Error::badInput(
        "{}: --mask {}: the first a positions of {} see all keys and are seen by all; nearest is "
        "padding or attention-mask, or the preset 'attention', which takes every mask",
        specification.name, textOf(mask), specification.name);
  if (mask.blocks && specification.blocks)
    throw Error::badInput(
        "{}: --mask {}: {} has the block mask {} already, and one is taken; nearest is one of "
        "causal, window=N, padding, attention-mask and document",
        specification.name, textOf(mask), specification.name, *specification.blocks);
  specification.causal |= mask.causal;
  if (mask.window) {
    const int64_t seen = *mask.window + 1;
    specification.window = std::min(specification.window.value_or(seen), seen);
    for (int64_t &own : specification.layerWindows) own = own > 0 ? std::min(own, seen) : seen;
  }
  specification.padding |= mask.padding || mask.attentionMask;
  specification.hasAttentionMask = mask.attentionMask;
  specification.documents |= mask.document;
  if (mask.blocks) specification.blocks = mask.blocks;
}

/// A padding mask on the one attention of a layer whose tokens are queries and keys.
void setRagged(LayerSpecification &specification, const Request &request) {
  if (!request.ragged) return;
  if (specification.family == Family::attention)
    throw Error::unsupported(
        "{}: --ragged: tokens are packed for projections, of which an attention alone has none; "
        "nearest is --mask padding, which loads no keys past the length of a sequence",
        specification.name);
  if (specification.family != Family::encoder && specification.family != Family::decoder &&
      specification.family != Family::llama)
    throw Error::unsupported(
        "{}: --ragged: layers of encoders, of decoders without a memory and of Llama are packed; "
        "nearest are bert-base, gpt2 and llama-3-8b",
        specification.name);
  specification.padding = true;
}

/// New tokens behind those whose keys and values lie in caches: one, unless --dim j says more.
void setCache(LayerSpecification &specification, const Request &request) {
  if (!request.cache && request.page)
    throw Error::badInput("{}: --page {} divides caches; --cache N asks for them",
                          specification.name, *request.page);
  if (!request.cache) return;
  const std::string asked = fmt::format("{}: --cache {}", specification.name, *request.cache);
  if (!specification.takesCache())
    throw Error::unsupported(
        "{}: a cache holds the tokens before those that are computed, of decoders without a memory "
        "and of Llama; "
        "nearest are gpt2 and llama-3-8b",
        asked);
  const bool isPadded = request.mask.padding || request.mask.attentionMask;
  if (isPadded || specification.documents || specification.blocks)
    throw Error::unsupported(
        "{}: lengths say what the caches hold; with {} it is not supported, nearest are causal and "
        "window=N",
        asked,
        isPadded                  ? "--mask " + textOf(request.mask)
        : specification.documents ? std::string("--mask document")
                                  : std::string("a block mask"));
  specification.hasNewLengths = request.ragged;
  specification.padding = false;
  if (specification.isWhole && specification.model.hasPositions)
    throw Error::unsupported(
        "{}: --part model: its table of positions is read from the first one on; nearest is --part "
        "layer with --layers N",
        asked);
  if (request.training)
    throw Error::unsupported(
        "{}: --train: appending to a cache has no derivative; nearest is --train without --cache",
        asked);
  if (request.page && *request.cache % *request.page != 0)
    throw Error::badInput("{}: --page {}: no whole number of pages; nearest are --cache {} and {}",
                          asked, *request.page, *request.cache / *request.page * *request.page,
                          (*request.cache / *request.page + 1) * *request.page);
  specification.cache = request.cache;
  specification.page = request.page;
  specification.dims["j"] = 1;
  specification.dims["k"] = *request.cache;
}

void setResidual(LayerSpecification &specification, const Request &request, DType dtype) {
  if (!request.residual || *request.residual == dtype) return;
  if (*request.residual != DType::f32)
    throw Error::badInput(
        "{}: --residual {}: the residual stream is f32 or has the elements' type, {}; nearest is "
        "--residual f32",
        specification.name, nameOf(*request.residual), nameOf(dtype));
  if (specification.attentionOnly || specification.family == Family::attention)
    throw Error::badInput("{}: --residual f32: attention has no residual; nearest is --part layer",
                          specification.name);
  specification.hasWideResidual = true;
}

void setScoreForm(LayerSpecification &specification, const Request &request) {
  if (request.score.isNone()) return;
  if (supportedScoreForms(specification).empty())
    throw Error::badInput(
        "{}: --score {}: {} fixes what scores are; nearest is the preset 'attention', which takes "
        "alibi, relative=N and softcap=C",
        specification.name, textOf(request.score), specification.name);
  specification.score = request.score;
}

std::vector<mlir::Value> buildFamily(LayerBuilder &layer) {
  const LayerSpecification &specification = layer.specification();
  switch (specification.family) {
    case Family::attention: return {buildAttention(layer)};
    case Family::t5: return {buildT5(layer)};
    case Family::transformerDecoder: return {buildTransformerDecoder(layer)};
    case Family::maskedToken: return {buildMaskedToken(layer)};
    default: break;
  }
  if (specification.layers > 1 || specification.isWhole) return buildLayers(layer);
  switch (specification.family) {
    case Family::decoder: return {buildDecoder(layer)};
    case Family::llama: return {buildLlama(layer)};
    default: return {buildEncoder(layer)};
  }
}

Model buildFromMlir(const Request &request, mlir::MLIRContext &context) {
  if (request.dropout)
    throw Error::badInput("{}: --dropout cannot be set, a .mlir file holds its own dropout ops",
                          request.model);
  if (!request.allowedKeys.empty())
    throw Error::badInput("--allow-key {}: '{}' is no config.json", *request.allowedKeys.begin(),
                          request.model);
  if (!request.mask.isNone())
    throw Error::badInput(
        "{}: --mask {} cannot be set, a .mlir file holds its own mask ops; presets and config.json "
        "files take it",
        request.model, textOf(request.mask));
  if (!request.score.isNone())
    throw Error::badInput(
        "{}: --score {} cannot be set, a .mlir file holds its own ops of scores; nearest is the "
        "preset 'attention'",
        request.model, textOf(request.score));
  if (request.residual)
    throw Error::badInput(
        "{}: --residual {} cannot be set, a .mlir file holds its own sums (weft.residual)",
        request.model, nameOf(*request.residual));
  if (request.cache)
    throw Error::badInput(
        "{}: --cache {} cannot be set, a .mlir file holds its own caches (weft.append)",
        request.model, *request.cache);
  if (request.page)
    throw Error::badInput(
        "{}: --page {} cannot be set, a .mlir file holds its own pages (weft.gather_pages)",
        request.model, *request.page);
  if (!request.dims.empty())
    throw Error::badInput("{}: dimension {}={} cannot be set, a .mlir file fixes its own extents",
                          request.model, request.dims.begin()->first, request.dims.begin()->second);
  if (request.part != Part::layer)
    throw Error::badInput("{}: part '{}' cannot be taken out of a .mlir file", request.model,
                          nameOf(request.part));
  if (request.layers || request.allLayers)
    throw Error::badInput("{}: --layers cannot be set, a .mlir file holds its own layers",
                          request.model);
  Model model;
  model.module = request.text.empty() ? readMlir(request.model, context)
                                      : parseMlir(request.text, request.model, context);
  model.description = {.name = std::filesystem::path(request.model).stem().string(),
                       .dims = dimsOf(*model.module)};
  return model;
}

/// Keys of a config.json that were read after all.
void takeAsRead(std::vector<std::string> &ignored, const std::vector<std::string> &keys) {
  std::erase_if(ignored, [&](const std::string &key) { return std::ranges::count(keys, key) > 0; });
}

Part builtPart(const LayerSpecification &specification, Part asked) {
  if (specification.family == Family::maskedToken) return Part::model;
  return specification.family == Family::attention ? Part::attention : asked;
}

Model buildDescribed(const Request &request, mlir::MLIRContext &context) {
  ConfigDescription described = describe(request.model, request.allowedKeys);
  LayerSpecification &specification = described.specification;
  const DType dtype = elementType(request, described);
  if (specification.family == Family::maskedToken) checkMaskedToken(request);
  if (request.part == Part::attention) specification.attentionOnly = true;
  setLayers(specification, request);
  const bool isConfig = !findPreset(request.model);
  setDropout(described, request, isConfig);
  setMask(specification, request);
  setRagged(specification, request);
  setCache(specification, request);
  setScoreForm(specification, request);
  setResidual(specification, request, dtype);
  checkLayers(specification);
  if (specification.layers > 1 || specification.isWhole)
    takeAsRead(described.ignoredKeys, layerCountKeys());
  if (specification.isWhole) {
    takeAsRead(described.ignoredKeys, wholeModelKeys());
    int64_t &steps = specification.dims.at("j");
    if (const int64_t rows = described.positions - specification.model.firstPosition; rows > 0)
      steps = std::min(steps, rows);
  }
  Model model;
  model.description = {
      .name = specification.name,
      .dims = resolveDims(specification, request.dims),
      .ignoredKeys = described.ignoredKeys,
      .dropoutKeys = described.dropoutKeys,
      .allowedKeys = described.allowedKeys,
      .assumed = described.assumed,
      .dtype = dtype,
      .layers = specification.family == Family::maskedToken ? 1 : specification.layers,
      .weightNames = specification.model.weightNames,
      .isWhole = specification.isWhole,
      .part = builtPart(specification, request.part),
      .isTrained = isTrained(specification),
      .dtypeNote = elementTypeNote(described, dtype, isConfig),
      .dropoutNote = dropoutNote(described, request)};
  checkPositions(described, model.description.dims);
  Dims dims = model.description.dims;
  if (specification.isWhole) dims["e"] = dims.at("i");  // what a pooler's square weight ends in
  LayerBuilder layer(context, specification, dims, dtype);
  model.module = layer.finish(buildFamily(layer));
  verifyBuilt(*model.module, specification.name);
  return model;
}

}  // namespace

const std::vector<Preset> &presets() {
  static const std::vector<Preset> all = [] {
    std::vector<Preset> built;
    for (const PresetRow &row : presetRows())
      built.push_back({row.specification.name, row.summary, resolveDims(row.specification, {})});
    return built;
  }();
  return all;
}

Model build(const Request &request, mlir::MLIRContext &context) {
  checkRequest(request);
  context.loadDialect<WeftDialect>();
  if (endsWith(request.model, ".mlir")) return buildFromMlir(request, context);
  try {
    return buildDescribed(request, context);
  } catch (
      const Error &error) {  // about the mathematics of what a file describes, which know no file
    const std::string text = error.what();
    if (findPreset(request.model) || text.find(request.model) != std::string::npos) throw;
    throw Error(error.kind, fmt::format("{}: {}", request.model, text));
  }
}

}  // namespace weft::models
