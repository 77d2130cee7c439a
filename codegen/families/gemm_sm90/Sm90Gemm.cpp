// Contractions on the tensor cores of sm_90a, alone, with an epilogue, or with an operand that is
// transformed on load: a program that calls a kernel template. Loads, MMAs and stores are in
// sm90_gemm.cuh, sm90_scaled.cuh, sm90_single_consumer.cuh or sm90_prologue.cuh; the program names
// extents, strides and the tile, passes tensor maps, and defines the prologue and the epilogue.
#include "codegen/families/gemm_sm90/Sm90Gemm.h"
#include "codegen/EntryName.h"
#include "codegen/ExpressionText.h"
#include "codegen/families/contraction/ContractionEpilogue.h"
#include "codegen/families/contraction/ContractionPrologue.h"
#include "codegen/families/contraction/ContractionTexts.h"
#include "codegen/families/contraction/MaskedTiles.h"
#include "codegen/families/contraction/TokenTiles.h"
#include "codegen/families/gemm_sm90/Sm90EpilogueReduction.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Strides.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "kernel/Attributes.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"
#include "kernel/UnusedTokens.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace weft::codegen {
namespace {

constexpr int subtileSide = 64, rowBytes = 128;
constexpr int boxRowsPerLoad =
    16;  // of a subtile that is read: of one copy (codegen/device/sm90_epilogue.cuh)
constexpr int64_t mostSharedBytes = 227 * 1024;  // of sm_90, dynamic
constexpr const char *mapType = "weft::sm90::TensorMap";

/// Rows of `inner` neighbouring elements, of every batch element; boxes of 128 bytes a row.
TensorMap mapOf(DType dtype, int64_t inner, int64_t rows, int64_t pitch, const GemmProblem &gemm,
                int64_t batchStride, int boxRows) {
  TensorMap map{.dtype = dtype,
                .extents = {inner, rows},
                .strides = {pitch},
                .box = {rowBytes / int(sizeOf(dtype)), boxRows}};
  if (gemm.batch == 1) return map;
  map.extents.push_back(gemm.batch);
  map.strides.push_back(batchStride);
  map.box.push_back(1);
  return map;
}

/// Of an operand with several strides along a group.
int rowsOfBox(const GemmOperand &operand, int tileSide) {
  return operand.isAlongK() ? boxRows(mapGroups(operand), tileSide) : subtileSide;
}

/// One box of a slice where the operand lies along k, else one for each 64 of its outer axis.
TensorMap kTileMap(DType dtype, const GemmProblem &gemm, const GemmOperand &operand,
                   int64_t outerExtent, int tileSide) {
  if (operand.hasSeveralStrides())
    return mapOf(dtype, mapGroups(operand), rowsOfBox(operand, tileSide));
  if (operand.isAlongK())
    return mapOf(dtype, gemm.k, outerExtent, operand.outer, gemm, operand.batch, tileSide);
  return mapOf(dtype, outerExtent, gemm.k, operand.k, gemm, operand.batch, subtileSide);
}

GemmProblem checkedProblem(const Kernel &kernel, const Configuration &configuration,
                           const Sm90GemmKnobs &knobs) {
  if (const std::string reason = sm90Rejection(kernel, configuration, knobs, mostSharedBytes);
      !reason.empty())
    throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  return wgmmaProblem(kernel, configuration).value();
}

ContractionRegion checkedRegion(const Kernel &kernel) {
  const Expected<ContractionRegion, Reason> answer = contractionRegion(kernel);
  if (!answer)
    throw Error::unsupported("kernel '{}': no contraction of a warpgroup: {}", kernel.name,
                             answer.error().text);
  return *answer;
}

class Sm90Lowering {
public:
  Sm90Lowering(const Kernel &kernel, const Configuration &configuration, const Sm90GemmKnobs &knobs)
      : kernel(kernel),
        configuration(configuration),
        knobs(knobs),
        region(checkedRegion(kernel)),
        gemm(checkedProblem(kernel, configuration, knobs)),
        groups(contractionGroups(kernel, {region.a, region.b, region.c})),
        dtype(kernel.values[size_t(kernel.outputs[0])].dtype),
        type(cudaNameOf(dtype)) {}

  Program run() {
    program.entry = names.reserve(entryName(kernel));
    nameAxes();
    nameInputs();
    nameOutputs();
    describeProblem();
    if (isSingleConsumer()) {
      describeSingleConsumerTile();
      callSingleConsumer();
    } else {
      describeTile();
      callTemplate();
    }
    program.launchBounds = fmt::format("{}, 1", sm90Threads(knobs));
    program.launch = {.grid = {sm90Blocks(gemm, knobs), 1, 1},
                      .block = {sm90Threads(knobs), 1, 1},
                      .sharedBytes = sharedBytes(),
                      .cluster = std::max(knobs.splitK, knobs.multicastB),
                      .startsEarly = isSingleConsumer()};
    if (knobs.splitK > 1) program.clusterBlocks = tile + ".splitK";
    if (knobs.multicastB > 1) program.clusterBlocks = tile + ".multicastB";
    program.mapping = describe(kernel, knobs);
    pruneUnused(program);
    return std::move(program);
  }

private:
  bool isSingleConsumer() const { return knobs.schedule == Sm90Schedule::singleConsumer; }
  int64_t sharedBytes() const { return sm90SharedBytes(knobs, isTransformedInPlace(gemm)); }
  const GemmOperand &made() const { return gemm.a.isTransformed ? gemm.a : gemm.b; }

  struct TensorNames {
    std::string name{}, map{}, elements{};
    /// As an argument: what the kernel has of it.
    std::string text() const {
      if (map.empty() || elements.empty()) return map + elements;
      return fmt::format("weft::sm90::Tensor{{.map = {}, .elements = {}}}", map, elements);
    }
  };

  void nameAxes() {
    ConstantLine extents{.type = "weft::Offset",
                         .entries = {},
                         .note = "extents",
                         .subject = {ConstantSubject::Kind::extents}};
    for (const Axis &axis : kernel.axes) {
      axes.push_back(names.reserve(axis.name));
      extents.entries.emplace_back(axes.back(), axis.extent);
    }
    program.constants = {extents};
    for (std::string *name : {&shape, &tile}) *name = names.reserve(*name);
  }

  /// A map for what TMA moves, a pointer for what threads do.
  void nameInputs() {
    tensors.resize(kernel.inputs.size());
    if (!isSingleConsumer())
      subtile = subtileInput(),
      vector = vectorInputOf(kernel, configuration, region, gemm.isSwapped);
    for (size_t i = 0; i < kernel.inputs.size(); ++i) {
      const Value &value = kernel.values[size_t(kernel.inputs[i])];
      tensors[i].name = names.reserve(value.name);
      if (i == gemm.a.input) nameOperand(gemm.a, gemm.m, knobs.tileM);
      else if (i == gemm.b.input) nameOperand(gemm.b, gemm.n, knobs.tileN / knobs.multicastB);
      else if (i == subtile)
        addSubtiles(tensors[i], Parameter::Kind::inputMap, Parameter::Kind::input, int(i));
      else addPointer(tensors[i], Parameter::Kind::input, int(i), value.dtype);
    }
  }

  /// As the GEMM reads it.
  DType operandType(const GemmOperand &operand) const {
    const GemmTypes types = gemmTypes(kernel);
    return types.areTf32() ? types.a : kernel.values[size_t(kernel.inputs[operand.input])].dtype;
  }

  void nameOperand(const GemmOperand &operand, int64_t extent, int tileSide) {
    TensorNames &tensor = tensors[operand.input];
    const DType own = operandType(operand);
    if (operand.usesTma)
      addMap(tensor, Parameter::Kind::inputMap, int(operand.input),
             kTileMap(own, gemm, operand, extent, tileSide));
    else addPointer(tensor, Parameter::Kind::input, int(operand.input), own);
  }

  void nameOutputs() {
    results.resize(kernel.outputs.size());
    if (!isSingleConsumer()) second = secondOutput();
    for (size_t i = 0; i < kernel.outputs.size(); ++i) {
      const Value &value = kernel.values[size_t(kernel.outputs[i])];
      results[i].name = names.reserve(value.name);
      if (isSingleConsumer()) addPointer(results[i], Parameter::Kind::output, int(i), value.dtype);
      else if (i == 0 || i == second)
        addSubtiles(results[i], Parameter::Kind::outputMap, Parameter::Kind::output, int(i));
      else addPointer(results[i], Parameter::Kind::output, int(i), value.dtype);
    }
  }

  /// Whether TMA moves a tensor in C's subtiles: it has to lie as C does.
  bool isInSubtiles(ValueId value, const Layout &layout) const {
    return gemm.usesTma && layout.alignment % tensorMapAlignment == 0 &&
           stridesByAxis(kernel, value, layout) ==
               stridesByAxis(kernel, kernel.outputs[0], configuration.outputs[0]);
  }
  /// The operand of C's shape that comes in subtiles.
  std::optional<size_t> subtileInput() const {
    const auto input = subtileInputOf(kernel, region);
    return input && isInSubtiles(kernel.inputs[*input], configuration.inputs[*input])
               ? input
               : std::nullopt;
  }
  /// The further output that is stored in subtiles, each together with one of C's; where an operand
  /// is loaded in subtiles, two are in flight.
  std::optional<size_t> secondOutput() const {
    const auto output = subtileOutputOf(kernel, region);
    if (!output || knobs.epilogueStages < (subtile ? 4 : 2)) return std::nullopt;
    return isInSubtiles(kernel.outputs[*output], configuration.outputs[*output]) ? output
                                                                                 : std::nullopt;
  }
  /// A tensor that lies as C does, in subtiles; both map and pointer where the last columns are no
  /// multiple of 16 bytes.
  void addSubtiles(TensorNames &tensor, Parameter::Kind map, Parameter::Kind pointer, int index) {
    if (gemm.resultHasSeveralStrides())
      return addMap(tensor, map, index, mapOf(dtype, mapGroups(gemm), subtileSide));
    if (gemm.usesTma)
      addMap(tensor, map, index,
             mapOf(dtype, gemm.n, gemm.m, gemm.strideCm, gemm, gemm.batchStrideC,
                   map == Parameter::Kind::inputMap ? boxRowsPerLoad : subtileSide));
    if (!gemm.storesOnlyByTma()) addPointer(tensor, pointer, index, dtype);
  }

  void addMap(TensorNames &tensor, Parameter::Kind kind, int index, TensorMap map) {
    const std::string name = names.reserve(tensor.name + "_map");
    tensor.map = "&" + name;
    program.parameters.push_back(
        {.kind = kind, .index = index, .name = name, .type = mapType, .map = std::move(map)});
  }
  void addPointer(TensorNames &tensor, Parameter::Kind kind, int index, DType elementType) {
    tensor.elements = tensor.name;
    program.parameters.push_back({.kind = kind,
                                  .index = index,
                                  .name = tensor.name,
                                  .type = std::string(cudaNameOf(elementType))});
  }

  ConstantValue extent(ContractionGroup group) const {
    return extentProduct(kernel, groups[group], axes);
  }

  ConstantValue strides(const GemmOperand &operand) {
    StrideTexts stride(kernel, kernel.inputs[operand.input], configuration.inputs[operand.input],
                       axes, tensors[operand.input].name, names, program.constants);
    // In the order of the names of a view's strides.
    const ConstantValue outer = stride(operand.outer), k = stride(operand.k),
                        batch = stride(operand.batch);
    return ConstantValue::members({{"outer", outer},
                                   {"k", k},
                                   {"batch", batch},
                                   {"usesTma", ConstantValue::truth(operand.usesTma)}});
  }

  /// The dimensions of the map of a tensor with several strides, and the type of an element of it.
  std::string stridedType(const TensorNames &tensor, const MapGroups &map, int rows,
                          std::string_view element) {
    const auto list = [&](const GroupFactors &group) {
      std::vector<ConstantValue> extents;
      for (const StrideFactor &factor : group)
        extents.push_back(extentProduct(kernel, factor.axes, axes));
      return ConstantValue::items({ConstantValue::items(extents)});
    };
    const std::string name = names.reserve(tensor.name + "_dimensions");
    program.constants.push_back({"weft::sm90::MapDimensions",
                                 {{name, ConstantValue::members({{"columns", list(map.columns)},
                                                                 {"rows", list(map.rows)},
                                                                 {"batch", list(map.batch)},
                                                                 {"boxRows", rows}})}},
                                 fmt::format("of {}, fastest first", tensor.name),
                                 {ConstantSubject::Kind::map, tensor.name}});
    return fmt::format("weft::sm90::Strided<{}, {}>", element, name);
  }
  std::string elementOf(const GemmOperand &operand, int tileSide) {
    const std::string own(cudaNameOf(operandType(operand)));
    return operand.hasSeveralStrides() ? stridedType(tensors[operand.input], mapGroups(operand),
                                                     rowsOfBox(operand, tileSide), own)
                                       : own;
  }

  void describeProblem() {
    StrideTexts stride(kernel, kernel.outputs[0], configuration.outputs[0], axes, results[0].name,
                       names, program.constants);
    const ConstantValue a = strides(gemm.a), b = strides(gemm.b);
    const ConstantValue cm = stride(gemm.strideCm), cb = stride(gemm.batchStrideC);
    std::vector<ConstantMember> members = {{"batch", extent(batchGroup), true},
                                           {"m", extent(gemm.isSwapped ? nGroup : mGroup)},
                                           {"n", extent(gemm.isSwapped ? mGroup : nGroup)},
                                           {"k", extent(kGroup)},
                                           {"a", a, true},
                                           {"b", b, true},
                                           {"strideCm", cm, true},
                                           {"batchStrideC", cb},
                                           {"usesTma", ConstantValue::truth(gemm.usesTma)}};
    addOtherMembers(members);
    program.constants.push_back({"weft::sm90::GemmProblem",
                                 {{shape, ConstantValue::members(std::move(members))}},
                                 "",
                                 {ConstantSubject::Kind::strides, "the result"}});
  }

  /// Of the GEMM, where they are not as for operands and a result of 16 bits.
  void addOtherMembers(std::vector<ConstantMember> &members) const {
    if (const int64_t bytes = sizeOf(gemm.operandType); bytes != 2)
      members.push_back({"operandBytes", bytes});
    if (sizeOf(dtype) != 4) return;
    const bool isPaired = configuration.outputs[0].alignment % (2 * sizeOf(dtype)) == 0 &&
                          gemm.strideCm % 2 == 0 && gemm.batchStrideC % 2 == 0;
    members.push_back({"isPaired", ConstantValue::truth(isPaired)});
  }

  /// One element type, or an alias for those of A, B and C.
  std::string elementsText() {
    const std::string a = gemm.a.isTransformed ? type : elementOf(gemm.a, knobs.tileM),
                      b = gemm.b.isTransformed ? type : elementOf(gemm.b, knobs.tileN);
    const std::string c = gemm.resultHasSeveralStrides()
                              ? stridedType(results[0], mapGroups(gemm), subtileSide, type)
                              : type;
    if (a == type && b == type && c == type) return type;
    const std::string elements = names.reserve("Elements");
    program.body.push_back({.kind = Statement::Kind::alias,
                            .name = elements,
                            .value = fmt::format("weft::sm90::Elements<{}, {}, {}>", a, b, c)});
    return elements;
  }

  /// Has the WGMMA of these operands.
  std::string wgmmaHeader() const {
    const DType a = operandType(gemm.a.isTransformed ? gemm.b : gemm.a),
                b = operandType(gemm.b.isTransformed ? gemm.a : gemm.b);
    if (isFloat8(a))
      return fmt::format("weft/wgmma_{}_{}.cuh", nameOf(a).substr(2), nameOf(b).substr(2));
    return fmt::format("weft/wgmma_{}{}.cuh", nameOf(a), isSingleConsumer() ? "_small_n" : "");
  }

  void describeTile() {
    const std::string members = fmt::format(
        "{{.m = {}, .n = {}, .stages = {}, .epilogueStages = {}, .groupM = {}, .splitK = {}, "
        ".isPingPong "
        "= {}{}}}",
        knobs.tileM, knobs.tileN, knobs.stages, knobs.epilogueStages, knobs.groupM, knobs.splitK,
        knobs.schedule == Sm90Schedule::pingPong,
        knobs.multicastB == 1 ? "" : fmt::format(", .multicastB = {}", knobs.multicastB));
    program.constants.push_back({"weft::sm90::Tile",
                                 {{tile, ConstantValue::text(members)}},
                                 "",
                                 {ConstantSubject::Kind::unchecked}});
  }

  void describeSingleConsumerTile() {
    const std::string members = fmt::format("{{.m = {}, .n = {}, .stages = {}, .splitK = {}}}",
                                            knobs.tileM, knobs.tileN, knobs.stages, knobs.splitK);
    program.constants.push_back({"weft::sm90::SingleConsumerTile",
                                 {{tile, ConstantValue::text(members)}},
                                 "",
                                 {ConstantSubject::Kind::unchecked}});
  }

  void callSingleConsumer() {
    program.headers = {"weft/sm90_single_consumer.cuh", wgmmaHeader()};
    program.body.push_back(evaluate(
        fmt::format("static_assert(weft::sm90::SingleConsumerConfig<{}, {}>::sharedBytes == {})",
                    shape, tile, sm90SharedBytes(knobs))));
    checkLaunch();
    const double factor = attributeOr(kernel.body[region.contraction], attribute::scale, 1.0);
    const std::string factorText =
        factor == 1 ? "" : fmt::format("weft::sm90::Factor{{{}}}", floatLiteral(factor));
    const std::string epilogueOp = region.isPlain() ? factorText : addEpilogue();
    call("singleConsumerGemm", {type, shape, tile}, {{"epilogue", epilogueOp}});
  }

  /// The call of a kernel template with A, B, C and the arguments that are not empty.
  void call(std::string_view function, const std::vector<std::string> &templateArguments,
            std::vector<NamedArgument> arguments) {
    arguments.insert(arguments.begin(), {{"a", tensors[gemm.a.input].text()},
                                         {"b", tensors[gemm.b.input].text()},
                                         {"c", results[0].text()}});
    program.body.push_back(templateCall(
        fmt::format("weft::sm90::{}<{}>", function, fmt::join(templateArguments, ", ")),
        isSingleConsumer() ? "weft::sm90::SingleConsumerArgs" : "weft::sm90::Args", arguments));
  }

  /// Statements of the ops behind the contraction, and of its factor.
  ContractionEpilogue epilogueOf() {
    EpilogueContext context{.kernel = kernel,
                            .configuration = configuration,
                            .region = region,
                            .names = names,
                            .axes = axes,
                            .inputs = {},
                            .outputs = {},
                            .gemm = shape,
                            .rowsAlongN = gemm.isSwapped,
                            .fragmentType = "weft::sm90::Fragment",
                            .subtileInput = subtile,
                            .vectorInput = {},
                            .subtileOutput = second};
    if (vector) context.vectorInput = vector->input;
    if (isSingleConsumer()) {
      const SingleConsumerSides sides = singleConsumerSides(knobs);
      context.accumulatorsOfThread = sides.columns / 2;
      context.isTransposed = !sides.isAlongM;
      context.fragmentType =
          fmt::format("weft::sm90::SingleConsumerFragment<{}>", context.accumulatorsOfThread);
    }
    for (const TensorNames &tensor : tensors) context.inputs.push_back(tensor.name);
    for (const TensorNames &tensor : results) context.outputs.push_back(tensor.name);
    return contractionEpilogue(context);
  }

  /// The epilogue function; returns the kernel template's argument, nothing where accumulators are
  /// stored as they are.
  std::string addEpilogue() {
    ContractionEpilogue epilogue = epilogueOf();
    program.headers.insert(program.headers.end(), epilogue.headers.begin(), epilogue.headers.end());
    std::ranges::sort(program.headers);
    program.headers.erase(std::ranges::unique(program.headers).begin(), program.headers.end());
    program.constants.insert(program.constants.end(), epilogue.constants.begin(),
                             epilogue.constants.end());
    program.parameters.insert(program.parameters.end(), epilogue.parameters.begin(),
                              epilogue.parameters.end());
    program.body.insert(program.body.end(), epilogue.prologue.begin(), epilogue.prologue.end());
    tokens = epilogue.tokens;
    if (!epilogue.argumentsBehind.empty()) {
      behind = names.reserve("behind");
      program.body.push_back(epilogue.functionBehind(behind));
    }
    const std::string behindRotary = addEpilogueFunction(epilogue);
    if (epilogue.rotaryArguments.empty()) return behindRotary;
    program.body.insert(program.body.end(), epilogue.rotaryFunctions.begin(),
                        epilogue.rotaryFunctions.end());
    return fmt::format("weft::sm90::rotated<{}>({}, {})", rotaryText(), epilogue.rotaryArguments,
                       behindRotary.empty() ? "weft::sm90::Unchanged{}" : behindRotary);
  }

  /// Nothing where the accumulators are stored as they are, or as a rotary embedding turns them.
  std::string addEpilogueFunction(ContractionEpilogue &epilogue) {
    if (epilogue.isEmpty()) return "";
    const std::string epilogueOp = names.reserve("epilogueOp");
    program.body.push_back({.kind = Statement::Kind::function,
                            .type = epilogue.arguments,
                            .name = epilogueOp,
                            .body = std::move(epilogue.body)});
    return epilogue.accessesMemory ? fmt::format("weft::sm90::PerThreadEpilogue{{{}}}", epilogueOp)
                                   : epilogueOp;
  }

  /// A constant that says which elements of a head are pairs; returns its name.
  std::string rotaryText() {
    const RotatedPairs &rotary = region.rotary.value();
    const std::string name = names.reserve("pairs");
    program.constants.push_back(
        {"weft::sm90::RotaryPairs",
         {{name, ConstantValue::members(
                     {{"extent", ConstantValue::name(axes[size_t(rotary.pairs)])},
                      {"rotated", rotary.turned},
                      {"isHalved", ConstantValue::truth(rotary.style == RotaryStyle::halved)},
                      {"isReverse", ConstantValue::truth(rotary.isReverse)},
                      {"isShort", ConstantValue::truth(
                                      hasShortRotations(kernel.body[rotary.op].expression))}})}},
         "",
         {ConstantSubject::Kind::rotaryPairs}});
    return name;
  }

  /// The grid may be any number of whole clusters; maps of tensors and device memory between blocks
  /// are of these tiles.
  void checkLaunch() {
    std::vector<Code> terms{fmt::format("{}.m == {}", tile, knobs.tileM),
                            fmt::format("{}.n == {}", tile, knobs.tileN),
                            fmt::format("{}.splitK == {}", tile, knobs.splitK)};
    if (!isSingleConsumer())
      terms.push_back(fmt::format("{}.multicastB == {}", tile, knobs.multicastB));
    program.body.push_back(extentChecks(shape, gemm.batch, gemm.m, gemm.n, gemm.k));
    program.body.push_back(launchCheckOf(
        terms, fmt::format("{} blocks and maps of these tiles", sm90Blocks(gemm, knobs))));
  }

  void callTemplate() {
    const bool isTransformed = gemm.isAnyTransformed();
    const std::string plan =
        isTransformed ? fmt::format("PrologueConfig<{}, {}, {}>", shape, tile, gemm.a.isTransformed)
                      : fmt::format("TileConfig<{}, {}>", shape, tile);
    program.body.push_back(evaluate(
        fmt::format("static_assert(weft::sm90::{}::sharedBytes == {})", plan, sharedBytes())));
    checkLaunch();
    const std::string transform = isTransformed ? addPrologue() : "";
    program.headers.push_back(isTransformed     ? "weft/sm90_prologue.cuh"
                              : gemm.isScaled() ? "weft/sm90_scaled.cuh"
                                                : "weft/sm90_gemm.cuh");
    program.headers.push_back(wgmmaHeader());
    if (gemm.hasSeveralStrides()) program.headers.push_back("weft/sm90_strides.cuh");
    if (gemm.operandType == DType::tf32) program.headers.push_back("weft/sm90_tf32.cuh");
    if (!region.reductions.empty()) program.headers.push_back("weft/sm90_epilogue_reduction.cuh");
    if (region.softmax)
      program.headers.push_back(region.softmax->dropped ? "weft/sm90_softmax_behind.cuh"
                                                        : "weft/sm90_softmax.cuh");
    std::vector<NamedArgument> arguments;
    if (isTransformed)
      arguments.push_back({gemm.a.isTransformed ? "transformA" : "transformB", transform});
    const std::string epilogueOp = addEpilogue();
    if (knobs.streamK != 0) return callStreamK(epilogueOp);
    if (gemm.isScaled()) arguments.push_back({"scaling", scalingText()});
    if (subtile) arguments.push_back({"perElement", tensors[*subtile].text()});
    if (vector)
      arguments.push_back(
          {vector->isOfRows ? "perRow" : "perColumn", tensors[vector->input].elements});
    if (second) arguments.push_back({"auxiliary", results[*second].text()});
    arguments.push_back({"reductions", reductionsText()});
    if (region.softmax) arguments.push_back({"softmax", softmaxText()});
    // Where blocks share the k of a tile, ptxas serializes the WGMMAs beside tiles that are left
    // out (C7515): those behind the last token are computed there, too.
    const TokenSide side =
        knobs.splitK > 1 ? TokenSide::none : tokenSide(kernel, region, gemm.isSwapped);
    if (hasEndingSum(kernel)) {
      arguments.push_back({"tokens", summedTokensText()});
    } else if (const auto masked = sm90MaskedTiles(kernel, region, gemm, knobs)) {
      program.headers.push_back("weft/sm90_masked_tiles.cuh");
      program.skipsMaskedTiles = true;
      std::ranges::sort(program.headers);
      arguments.push_back({"tokens", masked->argument("weft::sm90", "")});
    } else if (side == TokenSide::columns && areUnusedUnread(kernel) && !tokens.empty()) {
      program.headers.push_back("weft/sm90_column_tokens.cuh");
      std::ranges::sort(program.headers);
      arguments.push_back({"tokens", fmt::format("weft::sm90::CountedColumnTokens{{{}}}", tokens)});
    } else {
      arguments.push_back({"tokens", tokensArgument(kernel, side, "weft::sm90", tokens)});
    }
    arguments.push_back({"epilogue", epilogueOp});
    if (isTransformed)
      return call("prologueGemm", {type, std::string(cudaNameOf(operandType(made()))), shape, tile},
                  arguments);
    call("runGemm", {elementsText(), shape, tile}, arguments);
  }

  /// With device memory for the accumulators of tiles that CTAs share.
  void callStreamK(const std::string &epilogueOp) {
    std::ranges::replace(program.headers, std::string("weft/sm90_gemm.cuh"),
                         std::string("weft/sm90_stream_k.cuh"));
    std::ranges::sort(program.headers);
    const std::string partials = names.reserve(results[0].name + "_partials"),
                      elements = elementsText();
    program.globals.push_back({.kind = Statement::Kind::declare,
                               .type = fmt::format("weft::sm90::StreamKPartials<{}, {}, {}>", shape,
                                                   tile, sm90Blocks(gemm, knobs)),
                               .name = partials});
    program.body.push_back(
        launchCheckOf({fmt::format("sizeof({}) == sizeof(weft::sm90::StreamKPartials<{}, {}, {}>)",
                                   partials, shape, tile, sm90Blocks(gemm, knobs))},
                      fmt::format("{} blocks", sm90Blocks(gemm, knobs))));
    call("streamKGemm", {elements, shape, tile, std::to_string(sm90Blocks(gemm, knobs))},
         {{"partials", "&" + partials}, {"tokens", summedTokensText()}, {"epilogue", epilogueOp}});
  }

  /// How many tokens k has; empty where it is no axis of packed tokens.
  std::string summedTokensText() {
    if (!hasEndingSum(kernel)) return "";
    std::vector<std::string> inputs;
    for (const TensorNames &tensor : tensors) inputs.push_back(tensor.name);
    return summedTokensArgument(kernel, configuration, inputs, "weft::sm90", names, program.body);
  }

  /// The factors of rows and runs of k. A prologue excludes reductions and a local
  /// softmax.
  std::string scalingText() {
    const PrologueInput &factors = region.prologue->inputs.at(0);
    const PrologueStrides strides =
        prologueStrides(kernel, configuration, *region.prologue, factors).value();
    StrideTexts stride(kernel, factors.value, configuration.inputs[factors.input], axes,
                       tensors[factors.input].name, names, program.constants);
    const ConstantValue batch = stride(strides.batch), row = stride(strides.outer),
                        run = stride(strides.k);
    const std::string name = names.reserve("factorPlaces");
    program.constants.push_back(
        {"weft::sm90::FactorPlaces",
         {{name, ConstantValue::members({{"batch", batch},
                                         {"row", row},
                                         {"run", run},
                                         {"kTiles", factors.subVector / gemm.depth()}})}},
         fmt::format("of {}", tensors[factors.input].name),
         {ConstantSubject::Kind::places, tensors[factors.input].name}});
    return fmt::format("weft::sm90::KTileFactors<{}>{{{}}}", name, tensors[factors.input].elements);
  }

  /// The function that makes the operand; returns its name.
  std::string addPrologue() {
    PrologueContext context{.kernel = kernel,
                            .configuration = configuration,
                            .prologue = *region.prologue,
                            .names = names,
                            .axes = axes,
                            .inputs = {},
                            .outerExtent = shape + (gemm.a.isTransformed ? ".m" : ".n"),
                            .kExtent = shape + ".k",
                            .isAlongK = made().isAlongK()};
    for (const TensorNames &tensor : tensors) context.inputs.push_back(tensor.name);
    const std::string transform = names.reserve("transform");
    PrologueText text = prologueText(context);
    program.headers.insert(program.headers.end(), text.headers.begin(), text.headers.end());
    program.constants.insert(program.constants.end(), text.constants.begin(), text.constants.end());
    program.body.insert(program.body.end(), text.before.begin(), text.before.end());
    program.body.push_back({.kind = Statement::Kind::function,
                            .type = text.arguments,
                            .name = transform,
                            .body = std::move(text.body)});
    return transform;
  }

  /// The output of each reduction, with device memory for the partial sums of tiles.
  std::string reductionsText() {
    std::vector<std::string> outputs;
    for (const EpilogueReduction &sum : region.reductions) {
      const std::string &elements = results[sum.output].elements,
                        partials = names.reserve(elements + "_partials");
      const std::string_view side = isOfRows(sum, gemm) ? "Row" : "Column";
      program.globals.push_back(
          {.kind = Statement::Kind::declare,
           .type = fmt::format("weft::sm90::{}Partials<{}, {}>", side, shape, tile),
           .name = partials});
      outputs.push_back(
          fmt::format("weft::sm90::EpilogueReductionOutput{{{}, &{}}}", elements, partials));
    }
    return outputs.empty() ? ""
                           : fmt::format("weft::sm90::epilogueReductions(\n          {})",
                                         fmt::join(outputs, ",\n          "));
  }

  /// How long sub-vectors are, and where what is stored of each goes.
  std::string softmaxText() {
    std::vector<std::string> resultNames;
    for (const TensorNames &tensor : results) resultNames.push_back(tensor.name);
    const std::string name =
        subVectorsText(kernel, configuration, region, axes, resultNames, names, program.constants);
    const std::string softmax = fmt::format("weft::sm90::localSoftmax<{}>({}, {})", name,
                                            results[region.softmax->maxima].elements,
                                            results[region.softmax->sums].elements);
    return behind.empty() ? softmax
                          : fmt::format("weft::sm90::followedBy({}, {})", softmax, behind);
  }

  const Kernel &kernel;
  const Configuration &configuration;
  const Sm90GemmKnobs &knobs;
  const ContractionRegion region;
  const GemmProblem gemm;
  const ContractionGroups groups;
  const DType dtype;
  const std::string type;
  Names names;
  Program program;
  std::vector<std::string> axes;
  std::vector<TensorNames> tensors;
  std::vector<TensorNames> results;
  std::optional<size_t> subtile, second;
  std::optional<VectorInput> vector;
  std::string shape = "gemm", tile = "tile", tokens = {};
  std::string behind = {};  ///< the function behind a local softmax; empty: there is none
};

}  // namespace

Program lowerSm90Gemm(const Kernel &kernel, const Configuration &configuration,
                      const Sm90GemmKnobs &knobs) {
  return Sm90Lowering(kernel, configuration, knobs).run();
}

}  // namespace weft::codegen
