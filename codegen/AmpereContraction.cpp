// Contractions on tensor cores from sm_80 on, alone, with an epilogue, or with an operand that is
// made on load: a skeleton program. Copies, products and stores live in ampere_contraction.cuh, for
// f32 that is read as tf32 in ampere_tf32.cuh, for operands that are made on load in
// ampere_prologue.cuh; the program names extents, strides and the tile, says how an operand is made
// and what becomes of the sums, and calls it.
#include "codegen/ContractionEpilogue.h"
#include "codegen/ContractionPrologue.h"
#include "codegen/ContractionTexts.h"
#include "codegen/Families.h"
#include "codegen/LoopOps.h"
#include "kernel/AmpereTile.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"

#include <algorithm>
#include <limits>

namespace weft::codegen {
namespace {

constexpr int64_t mostSharedBytes = 99 * 1024;  // dynamic, of every target from sm_80 on

HopperProduct checkedProduct(const Kernel &kernel, const Configuration &configuration,
                             const AmpereContractionKnobs &knobs) {
  const ContractionRegionAnswer recognised = contractionRegion(kernel);
  if (!recognised.region)
    throw Error::unsupported("kernel '{}': no contraction of warps: {}", kernel.name,
                             recognised.refusal);
  if (const std::string reason = warpEpilogueRefusal(kernel, *recognised.region); !reason.empty())
    throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  const ProductTypes types = productTypes(kernel);
  const ContractionRegion &region = *recognised.region;
  const BodyOp &contraction = kernel.body[region.contraction];
  if (region.prologue)
    if (const std::string reason = prologueLayoutRefusal(kernel, configuration, *region.prologue);
        !reason.empty())
      throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  for (const int index : {contraction.operands[0], contraction.operands[1], kernel.outputs[0]})
    if (const Value &value = kernel.values[size_t(index)];
        value.dtype != DType::f16 && value.dtype != DType::bf16 &&
        !(types.areTf32() && value.dtype == DType::f32))
      throw Error::unsupported(
          "kernel '{}': '{}' is {}; f16, bf16, and f32 at precision tf32 are taken", kernel.name,
          value.name, nameOf(value.dtype));
  const HopperProductAnswer answer = warpProduct(kernel, configuration);
  if (!answer.product) throw Error::unsupported("kernel '{}': {}", kernel.name, answer.refusal);
  if (const std::string reason = ampereKnobsRefusal(knobs, mostSharedBytes, sizeOf(types.a));
      !reason.empty())
    throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  if (const std::string reason = ampereRegistersRefusal(knobs, epilogueRegisters(kernel, region));
      !reason.empty())
    throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  if (const std::string reason = ampereSoftmaxRefusal(knobs, region); !reason.empty())
    throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  if (const std::string reason =
          softmaxRefusal(kernel, configuration, region, !answer.product->isSwapped);
      !reason.empty())
    throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  if (const int64_t tiles = ampereTiles(*answer.product, knobs);
      tiles > std::numeric_limits<int32_t>::max())
    throw Error::unsupported("kernel '{}': {} tiles; the limit is {}: take larger ones",
                             kernel.name, tiles, std::numeric_limits<int32_t>::max());
  return *answer.product;
}

class AmpereLowering {
public:
  AmpereLowering(const Kernel &kernel, const Configuration &configuration,
                 const AmpereContractionKnobs &knobs)
      : kernel(kernel),
        configuration(configuration),
        knobs(knobs),
        product(checkedProduct(kernel, configuration, knobs)),
        region(contractionRegion(kernel).region.value()),
        groups(contractionGroups(kernel, {region.a, region.b, region.c})),
        isTf32(productTypes(kernel).areTf32()),
        type(cudaNameOf(kernel.values[size_t(kernel.outputs[0])].dtype)) {}

  Program run() {
    program.entry = names.claim(kernel.name);
    program.headers = {isTf32            ? "weft/ampere_tf32.cuh"
                       : region.prologue ? "weft/ampere_prologue.cuh"
                                         : "weft/ampere_contraction.cuh"};
    nameAxes();
    nameTensors();
    describeProduct();
    describeTile();
    callSkeleton();
    // One block is named so that the compiler spends registers and does not spill for more.
    program.launchBounds = fmt::format("{}, 1", ampereThreads(knobs));
    program.launch = {.grid = {ampereTiles(product, knobs), 1, 1},
                      .block = {ampereThreads(knobs), 1, 1},
                      .sharedBytes = sharedBytes()};
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
    for (std::string *name : {&shape, &tile}) *name = names.claim(*name);
    if (region.isPlain()) scale = names.claim(scale);
  }

  void nameTensors() {
    for (size_t i = 0; i < kernel.inputs.size(); ++i) {
      const Value &value = kernel.values[size_t(kernel.inputs[i])];
      inputs.push_back(names.claim(value.name));
      program.parameters.push_back({.kind = Parameter::Kind::input,
                                    .index = int(i),
                                    .name = inputs.back(),
                                    .type = std::string(cudaNameOf(value.dtype))});
    }
    for (size_t i = 0; i < kernel.outputs.size(); ++i) {
      const Value &value = kernel.values[size_t(kernel.outputs[i])];
      results.push_back(names.claim(value.name));
      program.parameters.push_back({.kind = Parameter::Kind::output,
                                    .index = int(i),
                                    .name = results.back(),
                                    .type = std::string(cudaNameOf(value.dtype))});
    }
  }

  std::string extent(ContractionGroup group) const {
    return extentText(kernel, groups[group], axes);
  }

  std::string operandText(const HopperOperand &operand) {
    StrideTexts stride(kernel, kernel.inputs[operand.input], configuration.inputs[operand.input],
                       axes, inputs[operand.input], names, program.constants);
    const std::string outer = stride(operand.outer), k = stride(operand.k),
                      batch = stride(operand.batch);
    return fmt::format("{{.outer = {}, .k = {}, .batch = {}, .isAligned = {}}}", outer, k, batch,
                       operand.isByEngine);
  }

  void describeProduct() {
    StrideTexts stride(kernel, kernel.outputs[0], configuration.outputs[0], axes, results[0], names,
                       program.constants);
    const std::string a = operandText(product.a), b = operandText(product.b);
    const std::string cm = stride(product.strideCm), cb = stride(product.batchStrideC);
    const std::string members = fmt::format(
        "{{\n    .batch = {}, .m = {}, .n = {}, .k = {},\n    .a = {},\n    .b = {},\n"
        "    .strideCm = {}, .batchStrideC = {}, .isAligned = {}}}",
        extent(batchGroup), extent(product.isSwapped ? nGroup : mGroup),
        extent(product.isSwapped ? mGroup : nGroup), extent(kGroup), a, b, cm, cb,
        isTf32 ? arePairs() : product.isByEngine);
    program.constants.push_back({"weft::ampere::Product", {{shape, members}}, ""});
  }

  void describeTile() {
    const std::string members = fmt::format(
        "{{.m = {}, .n = {}, .k = {}, .stages = {}, .warpsM = {}, .warpsN = {}, .rasterM = {}}}",
        knobs.tileM, knobs.tileN, knobs.tileK, knobs.stages, knobs.warpsM, knobs.warpsN,
        knobs.rasterM);
    program.constants.push_back({"weft::ampere::Tile", {{tile, members}}, ""});
    if (region.isPlain())
      program.constants.push_back({"float", {{scale, floatLiteral(factor())}}, ""});
  }

  int64_t sharedBytes() const { return ampereSharedBytes(knobs, sizeOf(product.operandType)); }

  /// Whether rows of a result of f32 start at multiples of two elements.
  bool arePairs() const {
    return configuration.outputs[0].alignment % (2 * sizeOf(DType::f32)) == 0 &&
           product.strideCm % 2 == 0 && product.batchStrideC % 2 == 0;
  }

  double factor() const { return numberOf(kernel.body[region.contraction], "scale", 1.0); }

  void callSkeleton() {
    program.body.push_back(
        evaluate(fmt::format("static_assert(weft::ampere::{}<{}, {}>::sharedBytes == {})",
                             isTf32 ? "Tf32Plan" : "Plan", shape, tile, sharedBytes())));
    const int64_t blocks = ampereTiles(product, knobs), threads = ampereThreads(knobs);
    program.body.push_back(extentChecks(shape, product.batch, product.m, product.n, product.k));
    program.body.push_back(launchCheckOf(
        {fmt::format("{0} * (({1} + {3}.m - 1) / {3}.m) * (({2} + {3}.n - 1) / {3}.n) == {4}",
                     product.batch, product.m, product.n, tile, blocks)},
        fmt::format("{} blocks", blocks)));
    program.body.push_back(
        launchCheckOf({fmt::format("32 * {0}.warpsM * {0}.warpsN == {1}", tile, threads)},
                      fmt::format("{} threads a block", threads)));
    const std::string finish = region.isPlain() ? addFactor() : addEpilogue(),
                      making = region.prologue ? addPrologue() : "";
    const std::string function =
        isTf32
            ? "tf32Contraction<"
            : fmt::format("{}<{}, ", region.prologue ? "contractionOfMade" : "contraction", type);
    program.body.push_back(evaluate(fmt::format(
        "weft::ampere::{}{}, {}>({}, {}, {}, {})", function, shape, tile,
        sourceText(product.a, making), sourceText(product.b, making), results[0], finish)));
  }

  /// What multiplies the sums of a contraction alone; returns its name.
  std::string addFactor() {
    if (factor() == 1) return "weft::ampere::Unchanged{}";
    const std::string finish = names.claim("finish"), sums = names.claim("sums"),
                      e = names.claim("e");
    program.body.push_back(
        {.kind = Statement::Kind::function,
         .type = fmt::format("float (&{})[8], const weft::ampere::Fragment &", sums),
         .name = finish,
         .body = {loop(e, "8", 0,
                       {assign(fmt::format("{}[{}]", sums, e),
                               fmt::format("{}[{}] * {}", sums, e, scale))})}});
    return finish;
  }

  /// The function of the ops behind the contraction, which loads what they read and stores further
  /// outputs; returns its name.
  std::string addEpilogue() {
    ContractionEpilogue epilogue = contractionEpilogue({.kernel = kernel,
                                                        .configuration = configuration,
                                                        .region = region,
                                                        .names = names,
                                                        .axes = axes,
                                                        .inputs = inputs,
                                                        .outputs = results,
                                                        .product = shape,
                                                        .rowsAlongN = product.isSwapped,
                                                        .fragmentType = "weft::ampere::Fragment"});
    if (!epilogue.isEmpty()) epilogue.headers.push_back("weft/ampere_epilogue.cuh");
    addHeaders(epilogue.headers);
    program.constants.insert(program.constants.end(), epilogue.constants.begin(),
                             epilogue.constants.end());
    program.parameters.insert(program.parameters.end(), epilogue.parameters.begin(),
                              epilogue.parameters.end());
    program.body.insert(program.body.end(), epilogue.prologue.begin(), epilogue.prologue.end());
    if (epilogue.isEmpty()) return withSoftmax("weft::ampere::Unchanged{}");
    const std::string finish = names.claim("finish");
    program.body.push_back({.kind = Statement::Kind::function,
                            .type = epilogue.arguments,
                            .name = finish,
                            .body = std::move(epilogue.body)});
    return withSoftmax(fmt::format("weft::ampere::blockByBlock<{}>({})", blocksTogether(), finish));
  }

  /// Behind what is applied element by element, if there is one.
  std::string withSoftmax(const std::string &finish) {
    if (!region.softmax) return finish;
    addHeaders({"weft/ampere_softmax.cuh"});
    const std::string subVectors =
        subVectorsText(kernel, configuration, region, axes, results, names, program.constants);
    const std::string &maxima = results[region.softmax->maxima],
                      &sums = results[region.softmax->sums];
    return fmt::format("weft::ampere::withLocalSoftmax<{}>({}, {}, {})", subVectors, maxima, sums,
                       finish);
  }

  /// Blocks of a warp's sums that are on their way at a time: several hide each other's loads,
  /// where an epilogue leaves the registers (tests/nvrtc).
  int blocksTogether() const { return epilogueRegisters(kernel, region) <= 56 ? 4 : 1; }

  void addHeaders(const std::vector<std::string> &headers) {
    program.headers.insert(program.headers.end(), headers.begin(), headers.end());
    std::ranges::sort(program.headers);
    program.headers.erase(std::ranges::unique(program.headers).begin(), program.headers.end());
  }

  /// The function that makes the operand; returns its name.
  std::string addPrologue() {
    const HopperOperand &operand = product.a.isMade ? product.a : product.b;
    const std::string making = names.claim("make");
    PrologueText text = prologueText({.kernel = kernel,
                                      .configuration = configuration,
                                      .prologue = *region.prologue,
                                      .names = names,
                                      .axes = axes,
                                      .inputs = inputs,
                                      .outerExtent = shape + (product.a.isMade ? ".m" : ".n"),
                                      .kExtent = shape + ".k",
                                      .isAlongK = operand.isAlongK()});
    addHeaders(text.headers);
    program.constants.insert(program.constants.end(), text.constants.begin(), text.constants.end());
    program.body.insert(program.body.end(), text.before.begin(), text.before.end());
    program.body.push_back({.kind = Statement::Kind::function,
                            .type = text.arguments,
                            .name = making,
                            .body = std::move(text.body)});
    return making;
  }

  std::string sourceText(const HopperOperand &operand, const std::string &making) const {
    return operand.isMade ? fmt::format("weft::madeOf({}, {})", inputs[operand.input], making)
                          : inputs[operand.input];
  }

  const Kernel &kernel;
  const Configuration &configuration;
  const AmpereContractionKnobs &knobs;
  const HopperProduct product;
  const ContractionRegion region;
  const ContractionGroups groups;
  const bool isTf32;
  const std::string type;
  Names names;
  Program program;
  std::vector<std::string> axes, inputs, results;
  std::string shape = "product", tile = "tile", scale = "scale";
};

}  // namespace

Program lowerAmpereContraction(const Kernel &kernel, const Configuration &configuration,
                               const AmpereContractionKnobs &knobs) {
  return AmpereLowering(kernel, configuration, knobs).run();
}

}  // namespace weft::codegen
