// Contractions on the tensor cores of sm_90a: a skeleton program. Loads, products and stores live in hopper_contraction.cuh; the
// program names extents, strides and the tile, passes maps of what the copy engine moves, and calls it.
#include "codegen/ContractionTexts.h"
#include "codegen/Families.h"
#include "codegen/LoopOps.h"
#include "kernel/Error.h"
#include "kernel/HopperProduct.h"

#include <algorithm>
#include <limits>

namespace weft::codegen {
namespace {

constexpr int threads = 384, panelSide = 64;
constexpr int64_t mostSharedBytes = 227 * 1024;  // of sm_90, dynamic
constexpr const char *mapType = "weft::hopper::TensorMap";

/// Rows of `inner` neighbouring elements, of every member of the batch.
TensorMap mapOf(DType dtype, int64_t inner, int64_t rows, int64_t pitch, const HopperProduct &product, int64_t batchStride, int boxRows) {
  TensorMap map{.dtype = dtype, .extents = {inner, rows}, .strides = {pitch}, .box = {panelSide, boxRows}};
  if (product.batch == 1) return map;
  map.extents.push_back(product.batch);
  map.strides.push_back(batchStride);
  map.box.push_back(1);
  return map;
}

/// One box of a slice where the operand lies along k, else one for each 64 of its outer axis.
TensorMap sliceMap(DType dtype, const HopperProduct &product, const HopperOperand &operand, int64_t outerExtent, int tileSide) {
  if (operand.isAlongK()) return mapOf(dtype, product.k, outerExtent, operand.outer, product, operand.batch, tileSide);
  return mapOf(dtype, outerExtent, product.k, operand.k, product, operand.batch, panelSide);
}

HopperProduct checkedProduct(const Kernel &kernel, const Configuration &configuration, const HopperContractionKnobs &knobs) {
  if (!contractionValues(kernel) || kernel.body.size() != 1)
    throw Error::unsupported("kernel '{}': a contraction of a warpgroup takes one contraction of two operands and nothing else", kernel.name);
  const HopperProductAnswer answer = hopperProduct(kernel, configuration);
  if (!answer.product) throw Error::unsupported("kernel '{}': {}", kernel.name, answer.refusal);
  if (const std::string reason = hopperKnobsRefusal(knobs, mostSharedBytes); !reason.empty())
    throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  if (hopperTiles(*answer.product, knobs) > std::numeric_limits<int32_t>::max() / 2)
    throw Error::unsupported("kernel '{}': {} tiles; the limit is {}: take larger ones", kernel.name,
                             hopperTiles(*answer.product, knobs), std::numeric_limits<int32_t>::max() / 2);
  return *answer.product;
}

class HopperLowering {
public:
  HopperLowering(const Kernel &kernel, const Configuration &configuration, const HopperContractionKnobs &knobs)
      : kernel(kernel), configuration(configuration), knobs(knobs), product(checkedProduct(kernel, configuration, knobs)),
        values(*contractionValues(kernel)), groups(contractionGroups(kernel, values)),
        dtype(kernel.values[size_t(kernel.outputs[0])].dtype), type(cudaNameOf(dtype)) {}

  Program run() {
    program.entry = names.claim(kernel.name);
    program.headers = {"weft/hopper_contraction.cuh"};
    nameAxes();
    nameTensors();
    describeProduct();
    describeTile();
    callSkeleton();
    const int64_t blocks = std::min<int64_t>(hopperTiles(product, knobs), knobs.blocks);
    program.launchBounds = fmt::format("{}, 1", threads);
    program.launch = {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .sharedBytes = hopperSharedBytes(knobs)};
    program.mapping = describe(kernel, knobs);
    pruneUnused(program);
    return std::move(program);
  }

private:
  void nameAxes() {
    ConstantLine extents{.type = "weft::Offset", .entries = {}, .note = "extents"};
    for (const Axis &axis : kernel.axes) {
      axes.push_back(names.claim(axis.name));
      extents.entries.emplace_back(axes.back(), std::to_string(axis.extent));
    }
    program.constants = {extents};
    for (std::string *name : {&shape, &tile, &scale}) *name = names.claim(*name);
  }

  /// A map for what the copy engine moves, a pointer for what threads do: of the result both, where its last columns are no
  /// multiple of 16 bytes.
  void nameTensors() {
    tensors.resize(kernel.inputs.size());
    for (size_t i = 0; i < kernel.inputs.size(); ++i) {
      const bool isA = i == product.a.input;
      const HopperOperand &operand = isA ? product.a : product.b;
      tensors[i].name = names.claim(kernel.values[size_t(kernel.inputs[i])].name);
      if (operand.isByEngine)
        addMap(tensors[i], Parameter::Kind::inputMap, int(i),
               sliceMap(dtype, product, operand, isA ? product.m : product.n, isA ? knobs.tileM : knobs.tileN));
      else addPointer(tensors[i], Parameter::Kind::input, int(i));
    }
    result.name = names.claim(kernel.values[size_t(kernel.outputs[0])].name);
    if (product.isByEngine)
      addMap(result, Parameter::Kind::outputMap, 0,
             mapOf(dtype, product.n, product.m, product.strideCm, product, product.batchStrideC, panelSide));
    if (!product.isWhollyByEngine()) addPointer(result, Parameter::Kind::output, 0);
  }

  struct TensorNames {
    std::string name{}, map = "nullptr", elements = "nullptr";
    std::string text() const { return fmt::format("{{{}, {}}}", map, elements); }
  };

  void addMap(TensorNames &tensor, Parameter::Kind kind, int index, TensorMap map) {
    const std::string name = names.claim(tensor.name + "_map");
    tensor.map = "&" + name;
    program.parameters.push_back({.kind = kind, .index = index, .name = name, .type = mapType, .map = std::move(map)});
  }
  void addPointer(TensorNames &tensor, Parameter::Kind kind, int index) {
    tensor.elements = tensor.name;
    program.parameters.push_back({.kind = kind, .index = index, .name = tensor.name, .type = type});
  }

  std::string extent(ContractionGroup group) const { return extentText(kernel, groups[group], axes); }

  std::string operandText(const HopperOperand &operand) {
    StrideTexts stride(kernel, kernel.inputs[operand.input], configuration.inputs[operand.input], axes, tensors[operand.input].name,
                       names, program.constants);
    const std::string outer = stride(operand.outer), k = stride(operand.k), batch = stride(operand.batch);
    return fmt::format("{{.outer = {}, .k = {}, .batch = {}, .isByEngine = {}}}", outer, k, batch, operand.isByEngine);
  }

  void describeProduct() {
    StrideTexts stride(kernel, kernel.outputs[0], configuration.outputs[0], axes, result.name, names, program.constants);
    const std::string a = operandText(product.a), b = operandText(product.b);
    const std::string cm = stride(product.strideCm), cb = stride(product.batchStrideC);
    const std::string members = fmt::format(
        "{{\n    .batch = {}, .m = {}, .n = {}, .k = {},\n    .a = {},\n    .b = {},\n"
        "    .strideCm = {}, .batchStrideC = {}, .isByEngine = {}}}",
        extent(batchGroup), extent(product.isSwapped ? nGroup : mGroup), extent(product.isSwapped ? mGroup : nGroup), extent(kGroup),
        a, b, cm, cb, product.isByEngine);
    program.constants.push_back({"weft::hopper::Product", {{shape, members}}, ""});
  }

  void describeTile() {
    const std::string members =
        fmt::format("{{.m = {}, .n = {}, .stages = {}, .staging = {}, .rasterM = {}, .isPingPong = {}}}", knobs.tileM, knobs.tileN,
                    knobs.stages, knobs.staging, knobs.rasterM, knobs.schedule == HopperSchedule::pingPong);
    program.constants.push_back({"weft::hopper::Tile", {{tile, members}}, ""});
    program.constants.push_back({"float", {{scale, floatLiteral(factor())}}, ""});
  }

  double factor() const { return numberOf(kernel.body[0], "scale", 1.0); }

  void callSkeleton() {
    program.body.push_back(evaluate(fmt::format("static_assert(weft::hopper::Plan<{}, {}>::sharedBytes == {})", shape, tile,
                                                hopperSharedBytes(knobs))));
    std::string epilogue = "weft::hopper::Unchanged{}";
    if (factor() != 1) {
      epilogue = names.claim("finish");
      const std::string sums = names.claim("sums"), e = names.claim("e");
      program.body.push_back({.kind = Statement::Kind::function,
                              .type = fmt::format("float (&{})[8], const weft::hopper::Fragment &", sums),
                              .name = epilogue,
                              .body = {loop(e, "8", 0, {assign(fmt::format("{}[{}]", sums, e), fmt::format("{}[{}] * {}", sums, e, scale))})}});
    }
    program.body.push_back(evaluate(fmt::format("weft::hopper::contraction<{}, {}, {}>({}, {}, {}, weft::hopper::NoPanelOperand{{}}, {})",
                                                type, shape, tile, tensors[product.a.input].text(), tensors[product.b.input].text(),
                                                result.text(), epilogue)));
  }

  const Kernel &kernel;
  const Configuration &configuration;
  const HopperContractionKnobs &knobs;
  const HopperProduct product;
  const std::array<int, 3> values;
  const ContractionGroups groups;
  const DType dtype;
  const std::string type;
  Names names;
  Program program;
  std::vector<std::string> axes;
  std::vector<TensorNames> tensors;
  TensorNames result;
  std::string shape = "product", tile = "tile", scale = "scale";
};

}  // namespace

Program lowerHopperContraction(const Kernel &kernel, const Configuration &configuration, const HopperContractionKnobs &knobs) {
  return HopperLowering(kernel, configuration, knobs).run();
}

}  // namespace weft::codegen
