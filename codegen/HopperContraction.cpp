// Contractions on the tensor cores of sm_90a, alone, with an epilogue, or with an operand that is
// made on load: a skeleton program. Loads, products and stores live in hopper_contraction.cuh,
// hopper_scaled.cuh, hopper_narrow.cuh or hopper_prologue.cuh; the program names extents, strides
// and the tile, passes maps of what the copy engine moves, says how an operand is made and what
// becomes of the sums, and calls it.
#include "codegen/ContractionEpilogue.h"
#include "codegen/ContractionPrologue.h"
#include "codegen/ContractionTexts.h"
#include "codegen/Families.h"
#include "codegen/LoopOps.h"
#include "kernel/Error.h"
#include "kernel/HopperStrides.h"
#include "kernel/HopperSums.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace weft::codegen {
namespace {

constexpr int panelSide = 64, rowBytes = 128;
constexpr int pieceRows =
    16;  // of a panel that is read: of one copy (codegen/device/hopper_store.cuh)
constexpr int64_t mostSharedBytes = 227 * 1024;  // of sm_90, dynamic
constexpr const char *mapType = "weft::hopper::TensorMap";

/// Rows of `inner` neighbouring elements, of every member of the batch; boxes of 128 bytes a row.
TensorMap mapOf(DType dtype, int64_t inner, int64_t rows, int64_t pitch,
                const HopperProduct &product, int64_t batchStride, int boxRows) {
  TensorMap map{.dtype = dtype,
                .extents = {inner, rows},
                .strides = {pitch},
                .box = {rowBytes / int(sizeOf(dtype)), boxRows}};
  if (product.batch == 1) return map;
  map.extents.push_back(product.batch);
  map.strides.push_back(batchStride);
  map.box.push_back(1);
  return map;
}

/// Of an operand with several strides along a group.
int rowsOfBox(const HopperOperand &operand, int tileSide) {
  return operand.isAlongK() ? boxRows(mapGroups(operand), tileSide) : panelSide;
}

/// One box of a slice where the operand lies along k, else one for each 64 of its outer axis.
TensorMap sliceMap(DType dtype, const HopperProduct &product, const HopperOperand &operand,
                   int64_t outerExtent, int tileSide) {
  if (operand.hasSeveralStrides())
    return mapOf(dtype, mapGroups(operand), rowsOfBox(operand, tileSide));
  if (operand.isAlongK())
    return mapOf(dtype, product.k, outerExtent, operand.outer, product, operand.batch, tileSide);
  return mapOf(dtype, outerExtent, product.k, operand.k, product, operand.batch, panelSide);
}

HopperProduct checkedProduct(const Kernel &kernel, const Configuration &configuration,
                             const HopperContractionKnobs &knobs) {
  if (const std::string reason = hopperRefusal(kernel, configuration, knobs, mostSharedBytes);
      !reason.empty())
    throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  return hopperProduct(kernel, configuration).product.value();
}

ContractionRegion checkedRegion(const Kernel &kernel) {
  const ContractionRegionAnswer answer = contractionRegion(kernel);
  if (!answer.region)
    throw Error::unsupported("kernel '{}': no contraction of a warpgroup: {}", kernel.name,
                             answer.refusal);
  return *answer.region;
}

class HopperLowering {
public:
  HopperLowering(const Kernel &kernel, const Configuration &configuration,
                 const HopperContractionKnobs &knobs)
      : kernel(kernel),
        configuration(configuration),
        knobs(knobs),
        region(checkedRegion(kernel)),
        product(checkedProduct(kernel, configuration, knobs)),
        groups(contractionGroups(kernel, {region.a, region.b, region.c})),
        dtype(kernel.values[size_t(kernel.outputs[0])].dtype),
        type(cudaNameOf(dtype)) {}

  Program run() {
    program.entry = names.claim(kernel.name);
    nameAxes();
    nameInputs();
    nameOutputs();
    describeProduct();
    if (isNarrow()) {
      describeNarrowTile();
      callNarrow();
    } else {
      describeTile();
      callSkeleton();
    }
    program.launchBounds = fmt::format("{}, 1", hopperThreads(knobs));
    program.launch = {.grid = {hopperBlocks(product, knobs), 1, 1},
                      .block = {hopperThreads(knobs), 1, 1},
                      .sharedBytes = sharedBytes(),
                      .cluster = std::max(knobs.splits, knobs.sharers),
                      .startsEarly = isNarrow()};
    if (knobs.splits > 1) program.clusterBlocks = tile + ".splits";
    if (knobs.sharers > 1) program.clusterBlocks = tile + ".sharers";
    program.mapping = describe(kernel, knobs);
    pruneUnused(program);
    return std::move(program);
  }

private:
  bool isNarrow() const { return knobs.schedule == HopperSchedule::narrow; }
  int64_t sharedBytes() const { return hopperSharedBytes(knobs, isMadeByEngine(product)); }
  const HopperOperand &made() const { return product.a.isMade ? product.a : product.b; }

  struct TensorNames {
    std::string name{}, map = "nullptr", elements = "nullptr";
    std::string text() const { return fmt::format("{{{}, {}}}", map, elements); }
  };

  void nameAxes() {
    ConstantLine extents{.type = "weft::Offset", .entries = {}, .note = "extents"};
    for (const Axis &axis : kernel.axes) {
      axes.push_back(names.claim(axis.name));
      extents.entries.emplace_back(axes.back(), std::to_string(axis.extent));
    }
    program.constants = {extents};
    for (std::string *name : {&shape, &tile}) *name = names.claim(*name);
  }

  /// A map for what the copy engine moves, a pointer for what threads do.
  void nameInputs() {
    tensors.resize(kernel.inputs.size());
    if (!isNarrow())
      panel = panelInput(),
      vector = vectorInputOf(kernel, configuration, region, product.isSwapped);
    for (size_t i = 0; i < kernel.inputs.size(); ++i) {
      const Value &value = kernel.values[size_t(kernel.inputs[i])];
      tensors[i].name = names.claim(value.name);
      if (i == product.a.input) nameOperand(product.a, product.m, knobs.tileM);
      else if (i == product.b.input) nameOperand(product.b, product.n, knobs.tileN / knobs.sharers);
      else if (i == panel)
        addPanels(tensors[i], Parameter::Kind::inputMap, Parameter::Kind::input, int(i));
      else addPointer(tensors[i], Parameter::Kind::input, int(i), value.dtype);
    }
  }

  /// As the product reads it.
  DType operandType(const HopperOperand &operand) const {
    const ProductTypes types = productTypes(kernel);
    return types.areTf32() ? types.a : kernel.values[size_t(kernel.inputs[operand.input])].dtype;
  }

  void nameOperand(const HopperOperand &operand, int64_t extent, int tileSide) {
    TensorNames &tensor = tensors[operand.input];
    const DType own = operandType(operand);
    if (operand.isByEngine)
      addMap(tensor, Parameter::Kind::inputMap, int(operand.input),
             sliceMap(own, product, operand, extent, tileSide));
    else addPointer(tensor, Parameter::Kind::input, int(operand.input), own);
  }

  void nameOutputs() {
    results.resize(kernel.outputs.size());
    if (!isNarrow()) second = secondOutput();
    for (size_t i = 0; i < kernel.outputs.size(); ++i) {
      const Value &value = kernel.values[size_t(kernel.outputs[i])];
      results[i].name = names.claim(value.name);
      if (isNarrow()) addPointer(results[i], Parameter::Kind::output, int(i), value.dtype);
      else if (i == 0 || i == second)
        addPanels(results[i], Parameter::Kind::outputMap, Parameter::Kind::output, int(i));
      else addPointer(results[i], Parameter::Kind::output, int(i), value.dtype);
    }
  }

  /// Whether the copy engine moves a tensor in C's panels: it has to lie as C does.
  bool isInPanels(int value, const Layout &layout) const {
    return product.isByEngine && layout.alignment % tensorMapAlignment == 0 &&
           stridesByAxis(kernel, value, layout) ==
               stridesByAxis(kernel, kernel.outputs[0], configuration.outputs[0]);
  }
  /// The operand of C's shape that comes in panels.
  std::optional<size_t> panelInput() const {
    const auto input = panelInputOf(kernel, region);
    return input && isInPanels(kernel.inputs[*input], configuration.inputs[*input]) ? input
                                                                                    : std::nullopt;
  }
  /// The output besides the first that leaves in panels, each beside one of C's: where an operand
  /// comes in those, two are on their way.
  std::optional<size_t> secondOutput() const {
    const auto output = panelOutputOf(kernel, region);
    if (!output || knobs.staging < (panel ? 4 : 2)) return std::nullopt;
    return isInPanels(kernel.outputs[*output], configuration.outputs[*output]) ? output
                                                                               : std::nullopt;
  }
  /// A tensor that lies as C does, in panels; both map and pointer where the last columns are no
  /// multiple of 16 bytes.
  void addPanels(TensorNames &tensor, Parameter::Kind map, Parameter::Kind pointer, int index) {
    if (product.resultHasSeveralStrides())
      return addMap(tensor, map, index, mapOf(dtype, mapGroups(product), panelSide));
    if (product.isByEngine)
      addMap(tensor, map, index,
             mapOf(dtype, product.n, product.m, product.strideCm, product, product.batchStrideC,
                   map == Parameter::Kind::inputMap ? pieceRows : panelSide));
    if (!product.isWhollyByEngine()) addPointer(tensor, pointer, index, dtype);
  }

  void addMap(TensorNames &tensor, Parameter::Kind kind, int index, TensorMap map) {
    const std::string name = names.claim(tensor.name + "_map");
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

  std::string extent(ContractionGroup group) const {
    return extentText(kernel, groups[group], axes);
  }

  std::string operandText(const HopperOperand &operand) {
    StrideTexts stride(kernel, kernel.inputs[operand.input], configuration.inputs[operand.input],
                       axes, tensors[operand.input].name, names, program.constants);
    const std::string outer = stride(operand.outer), k = stride(operand.k),
                      batch = stride(operand.batch);
    return fmt::format("{{.outer = {}, .k = {}, .batch = {}, .isByEngine = {}}}", outer, k, batch,
                       operand.isByEngine);
  }

  /// The dimensions of the map of a tensor with several strides, and the type of an element of it.
  std::string stridedType(const TensorNames &tensor, const MapGroups &map, int rows,
                          std::string_view element) {
    const auto list = [&](const GroupFactors &group) {
      std::vector<std::string> extents;
      for (const StrideFactor &factor : group)
        extents.push_back(extentText(kernel, factor.axes, axes));
      return fmt::format("{{{}}}", fmt::join(extents, ", "));
    };
    const std::string name = names.claim(tensor.name + "_dimensions");
    program.constants.push_back(
        {"weft::hopper::MapDimensions",
         {{name,
           fmt::format("{{.columns = {{{}}}, .rows = {{{}}}, .batch = {{{}}}, .boxRows = {}}}",
                       list(map.columns), list(map.rows), list(map.batch), rows)}},
         fmt::format("of {}, fastest first", tensor.name)});
    return fmt::format("weft::hopper::Strided<{}, {}>", element, name);
  }
  std::string elementOf(const HopperOperand &operand, int tileSide) {
    const std::string own(cudaNameOf(operandType(operand)));
    return operand.hasSeveralStrides() ? stridedType(tensors[operand.input], mapGroups(operand),
                                                     rowsOfBox(operand, tileSide), own)
                                       : own;
  }

  void describeProduct() {
    StrideTexts stride(kernel, kernel.outputs[0], configuration.outputs[0], axes, results[0].name,
                       names, program.constants);
    const std::string a = operandText(product.a), b = operandText(product.b);
    const std::string cm = stride(product.strideCm), cb = stride(product.batchStrideC);
    const std::string members = fmt::format(
        "{{\n    .batch = {}, .m = {}, .n = {}, .k = {},\n    .a = {},\n    .b = {},\n"
        "    .strideCm = {}, .batchStrideC = {}, .isByEngine = {}{}}}",
        extent(batchGroup), extent(product.isSwapped ? nGroup : mGroup),
        extent(product.isSwapped ? mGroup : nGroup), extent(kGroup), a, b, cm, cb,
        product.isByEngine, otherMembers());
    program.constants.push_back({"weft::hopper::Product", {{shape, members}}, ""});
  }

  /// Of the product, where they are not as for operands and a result of 16 bits.
  std::string otherMembers() const {
    std::string text;
    if (const int64_t bytes = sizeOf(product.operandType); bytes != 2)
      text += fmt::format(", .operandBytes = {}", bytes);
    if (sizeOf(dtype) != 4) return text;
    const bool isPaired = configuration.outputs[0].alignment % (2 * sizeOf(dtype)) == 0 &&
                          product.strideCm % 2 == 0 && product.batchStrideC % 2 == 0;
    return text + fmt::format(", .isPaired = {}", isPaired);
  }

  /// One element type, or those of A, B and C.
  std::string elementsText() {
    const std::string a = product.a.isMade ? type : elementOf(product.a, knobs.tileM),
                      b = product.b.isMade ? type : elementOf(product.b, knobs.tileN);
    const std::string c = product.resultHasSeveralStrides()
                              ? stridedType(results[0], mapGroups(product), panelSide, type)
                              : type;
    return a == type && b == type && c == type
               ? type
               : fmt::format("weft::hopper::Elements<{}, {}, {}>", a, b, c);
  }

  void describeTile() {
    const std::string members = fmt::format(
        "{{.m = {}, .n = {}, .stages = {}, .staging = {}, .rasterM = {}, .splits = {}, .isPingPong "
        "= {}{}}}",
        knobs.tileM, knobs.tileN, knobs.stages, knobs.staging, knobs.rasterM, knobs.splits,
        knobs.schedule == HopperSchedule::pingPong,
        knobs.sharers == 1 ? "" : fmt::format(", .sharers = {}", knobs.sharers));
    program.constants.push_back({"weft::hopper::Tile", {{tile, members}}, ""});
  }

  void describeNarrowTile() {
    const std::string members = fmt::format("{{.m = {}, .n = {}, .stages = {}, .splits = {}}}",
                                            knobs.tileM, knobs.tileN, knobs.stages, knobs.splits);
    program.constants.push_back({"weft::hopper::NarrowTile", {{tile, members}}, ""});
  }

  void callNarrow() {
    program.headers = {"weft/hopper_narrow.cuh"};
    program.body.push_back(
        evaluate(fmt::format("static_assert(weft::hopper::NarrowPlan<{}, {}>::sharedBytes == {})",
                             shape, tile, hopperSharedBytes(knobs))));
    checkLaunch();
    const double factor = numberOf(kernel.body[region.contraction], "scale", 1.0);
    const std::string finish = region.isPlain() ? floatLiteral(factor) : addEpilogue();
    program.body.push_back(evaluate(fmt::format(
        "weft::hopper::narrowContraction<{}, {}, {}>({}, {}, {}, {})", type, shape, tile,
        tensors[product.a.input].map, tensors[product.b.input].map, results[0].elements, finish)));
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
                            .product = shape,
                            .rowsAlongN = product.isSwapped,
                            .fragmentType = "weft::hopper::Fragment",
                            .panelInput = panel,
                            .vectorInput = {},
                            .panelOutput = second};
    if (vector) context.vectorInput = vector->input;
    if (isNarrow()) {
      const NarrowSides sides = narrowSides(knobs);
      context.sumsOfTile = sides.columns / 2;
      context.isTransposed = !sides.isAlongM;
      context.fragmentType = fmt::format("weft::hopper::NarrowFragment<{}>", context.sumsOfTile);
    }
    for (const TensorNames &tensor : tensors) context.inputs.push_back(tensor.name);
    for (const TensorNames &tensor : results) context.outputs.push_back(tensor.name);
    return contractionEpilogue(context);
  }

  /// The function of what becomes of the sums; returns what the skeleton gets.
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
    if (epilogue.isEmpty()) return "weft::hopper::Unchanged{}";
    const std::string finish = names.claim("finish");
    program.body.push_back({.kind = Statement::Kind::function,
                            .type = epilogue.arguments,
                            .name = finish,
                            .body = std::move(epilogue.body)});
    return epilogue.accessesMemory ? fmt::format("weft::hopper::ByThreads{{{}}}", finish) : finish;
  }

  /// The grid may be any number of whole clusters; maps of tensors and device memory between blocks
  /// are of these tiles.
  void checkLaunch() {
    std::vector<std::string> terms{fmt::format("{}.m == {}", tile, knobs.tileM),
                                   fmt::format("{}.n == {}", tile, knobs.tileN),
                                   fmt::format("{}.splits == {}", tile, knobs.splits)};
    if (!isNarrow()) terms.push_back(fmt::format("{}.sharers == {}", tile, knobs.sharers));
    program.body.push_back(extentChecks(shape, product.batch, product.m, product.n, product.k));
    program.body.push_back(launchCheckOf(
        terms, fmt::format("{} blocks and maps of these tiles", hopperBlocks(product, knobs))));
  }

  void callSkeleton() {
    const bool isMade = product.isAnyMade();
    const std::string plan =
        isMade ? fmt::format("MakingPlan<{}, {}, {}>", shape, tile, product.a.isMade)
               : fmt::format("Plan<{}, {}>", shape, tile);
    program.body.push_back(evaluate(
        fmt::format("static_assert(weft::hopper::{}::sharedBytes == {})", plan, sharedBytes())));
    checkLaunch();
    const std::string making = isMade ? addPrologue() : "";
    program.headers.push_back(isMade               ? "weft/hopper_prologue.cuh"
                              : product.isScaled() ? "weft/hopper_scaled.cuh"
                                                   : "weft/hopper_contraction.cuh");
    if (product.hasSeveralStrides()) program.headers.push_back("weft/hopper_strides.cuh");
    if (product.operandType == DType::tf32) program.headers.push_back("weft/hopper_tf32.cuh");
    if (!region.sums.empty()) program.headers.push_back("weft/hopper_sums.cuh");
    if (region.softmax) program.headers.push_back("weft/hopper_softmax.cuh");
    const std::string finish = addEpilogue();
    if (knobs.streams != 0) return callStreams(finish);
    if (isMade) return callMade(making, finish);
    if (product.isScaled()) return callScaled(finish);
    const std::string sums = region.softmax ? softmaxText() : sumsText();
    program.body.push_back(evaluate(fmt::format(
        "weft::hopper::contraction<{}, {}, {}>({}, {}, {}, {}, {}{}{}{})", elementsText(), shape,
        tile, tensors[product.a.input].text(), tensors[product.b.input].text(), results[0].text(),
        panelText(), vectorText(), outputText(), sums, finish)));
  }

  /// With device memory for the sums of tiles that blocks share.
  void callStreams(const std::string &finish) {
    std::ranges::replace(program.headers, std::string("weft/hopper_contraction.cuh"),
                         std::string("weft/hopper_streams.cuh"));
    std::ranges::sort(program.headers);
    const std::string partials = names.claim(results[0].name + "_partials"),
                      elements = elementsText();
    program.globals.push_back({.kind = Statement::Kind::declare,
                               .type = fmt::format("weft::hopper::StreamPartials<{}, {}, {}>",
                                                   shape, tile, hopperBlocks(product, knobs)),
                               .name = partials});
    program.body.push_back(
        launchCheckOf({fmt::format("sizeof({}) == sizeof(weft::hopper::StreamPartials<{}, {}, {}>)",
                                   partials, shape, tile, hopperBlocks(product, knobs))},
                      fmt::format("{} blocks", hopperBlocks(product, knobs))));
    program.body.push_back(evaluate(fmt::format(
        "weft::hopper::streamedContraction<{}, {}, {}, {}>({}, {}, {}, {}, {})", elements, shape,
        tile, hopperBlocks(product, knobs), tensors[product.a.input].text(),
        tensors[product.b.input].text(), results[0].text(), partials, finish)));
  }

  /// With the factors of rows and runs of k. Neither sums nor a local softmax stand behind a
  /// prologue.
  void callScaled(const std::string &finish) {
    const PrologueInput &factors = region.prologue->inputs.at(0);
    const PrologueStrides strides =
        prologueStrides(kernel, configuration, *region.prologue, factors).value();
    StrideTexts stride(kernel, factors.value, configuration.inputs[factors.input], axes,
                       tensors[factors.input].name, names, program.constants);
    const std::string batch = stride(strides.batch), row = stride(strides.outer),
                      run = stride(strides.k), name = names.claim("factorPlaces");
    program.constants.push_back(
        {"weft::hopper::FactorPlaces",
         {{name, fmt::format("{{.batch = {}, .row = {}, .run = {}, .slices = {}}}", batch, row, run,
                             factors.subVector / product.depth())}},
         fmt::format("of {}", tensors[factors.input].name)});
    const std::string scaling =
        fmt::format("weft::hopper::SliceFactors<{}>{{{}}}", name, tensors[factors.input].elements);
    const std::string vectorOrNone = vector ? vectorText() : "weft::hopper::NoVectorOperand{}, ",
                      output = second ? outputText() : "weft::hopper::NoPanelOutput{}, ";
    program.body.push_back(
        evaluate(fmt::format("weft::hopper::scaledContraction<{}, {}, {}>({}, {}, {}, {}, {}, "
                             "{}{}weft::hopper::NoSums{{}}, {})",
                             elementsText(), shape, tile, tensors[product.a.input].text(),
                             tensors[product.b.input].text(), results[0].text(), scaling,
                             panelText(), vectorOrNone, output, finish)));
  }

  /// The function that makes the operand; returns its name.
  std::string addPrologue() {
    PrologueContext context{.kernel = kernel,
                            .configuration = configuration,
                            .prologue = *region.prologue,
                            .names = names,
                            .axes = axes,
                            .inputs = {},
                            .outerExtent = shape + (product.a.isMade ? ".m" : ".n"),
                            .kExtent = shape + ".k",
                            .isAlongK = made().isAlongK()};
    for (const TensorNames &tensor : tensors) context.inputs.push_back(tensor.name);
    const std::string making = names.claim("make");
    PrologueText text = prologueText(context);
    program.headers.insert(program.headers.end(), text.headers.begin(), text.headers.end());
    program.constants.insert(program.constants.end(), text.constants.begin(), text.constants.end());
    program.body.insert(program.body.end(), text.before.begin(), text.before.end());
    program.body.push_back({.kind = Statement::Kind::function,
                            .type = text.arguments,
                            .name = making,
                            .body = std::move(text.body)});
    return making;
  }

  void callMade(const std::string &making, const std::string &finish) {
    const std::string vectorOrNone = vector ? vectorText() : "weft::hopper::NoVectorOperand{}, ";
    const std::string output = second ? outputText() : "weft::hopper::NoPanelOutput{}, ";
    const auto tensorText = [&](const HopperOperand &operand) {
      return tensors[operand.input].text();
    };
    const std::string function = fmt::format("weft::hopper::contractionOfMade{}<{}, {}, {}, {}>",
                                             product.a.isMade ? "A" : "B", type,
                                             cudaNameOf(operandType(made())), shape, tile);
    program.body.push_back(evaluate(fmt::format(
        "{}({}, {}, {}, {}, {}, {}{}{})", function, tensorText(product.a), tensorText(product.b),
        results[0].text(), making, panelText(), vectorOrNone, output, finish)));
  }

  std::string panelText() const {
    return panel ? fmt::format("weft::hopper::PanelOperand<{}>{{{}}}", type, tensors[*panel].text())
                 : "weft::hopper::NoPanelOperand{}";
  }
  /// With the comma behind it; a contraction alone has none.
  std::string vectorText() const {
    if (region.isPlain()) return "";
    if (!vector) return "weft::hopper::NoVectorOperand{}, ";
    const DType own = kernel.values[size_t(kernel.inputs[vector->input])].dtype;
    return fmt::format("weft::hopper::{}Operand<{}>{{{}}}, ", vector->isOfRows ? "Row" : "Column",
                       cudaNameOf(own), tensors[vector->input].elements);
  }

  std::string outputText() const {
    if (!second && (!region.sums.empty() || region.softmax))
      return "weft::hopper::NoPanelOutput{}, ";
    return second
               ? fmt::format("weft::hopper::PanelOutput<{}>{{{}}}, ", type, results[*second].text())
               : "";
  }

  /// Where each sum goes, with device memory for what tiles leave of it.
  std::string sumsText() {
    std::vector<std::string> outputs;
    for (const EpilogueSum &sum : region.sums) {
      const std::string &elements = results[sum.output].elements,
                        partials = names.claim(elements + "_partials");
      const std::string_view side = isOfRows(sum, product) ? "Row" : "Column";
      program.globals.push_back(
          {.kind = Statement::Kind::declare,
           .type = fmt::format("weft::hopper::{}Partials<{}, {}>", side, shape, tile),
           .name = partials});
      outputs.push_back(fmt::format("weft::hopper::SumOutput{{{}, &{}}}", elements, partials));
    }
    return outputs.empty()
               ? ""
               : fmt::format("weft::hopper::sumOutputs({}), ", fmt::join(outputs, ", "));
  }

  /// How long sub-vectors are, and where what is stored of each goes.
  std::string softmaxText() {
    std::vector<std::string> resultNames;
    for (const TensorNames &tensor : results) resultNames.push_back(tensor.name);
    const std::string name =
        subVectorsText(kernel, configuration, region, axes, resultNames, names, program.constants);
    return fmt::format("weft::hopper::localSoftmax<{}>({}, {}), ", name,
                       results[region.softmax->maxima].elements,
                       results[region.softmax->sums].elements);
  }

  const Kernel &kernel;
  const Configuration &configuration;
  const HopperContractionKnobs &knobs;
  const ContractionRegion region;
  const HopperProduct product;
  const ContractionGroups groups;
  const DType dtype;
  const std::string type;
  Names names;
  Program program;
  std::vector<std::string> axes;
  std::vector<TensorNames> tensors;
  std::vector<TensorNames> results;
  std::optional<size_t> panel, second;
  std::optional<VectorInput> vector;
  std::string shape = "product", tile = "tile";
};

}  // namespace

Program lowerHopperContraction(const Kernel &kernel, const Configuration &configuration,
                               const HopperContractionKnobs &knobs) {
  return HopperLowering(kernel, configuration, knobs).run();
}

}  // namespace weft::codegen
