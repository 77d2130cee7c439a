// Contractions on tensor cores from sm_80 on, alone, with an epilogue, or with an operand that is
// transformed on load: a program that calls a kernel template. Copies, MMAs and stores are in
// sm80_gemm.cuh, for f32 that is read as tf32 in sm80_tf32.cuh, for operands that are transformed
// on load in sm80_prologue.cuh; the program names extents, strides and the tile, and defines the
// prologue and the epilogue.
#include "codegen/families/gemm_sm80/Sm80Gemm.h"
#include "codegen/EntryName.h"
#include "codegen/ExpressionText.h"
#include "codegen/families/contraction/ContractionEpilogue.h"
#include "codegen/families/contraction/ContractionPrologue.h"
#include "codegen/families/contraction/ContractionTexts.h"
#include "codegen/families/contraction/EpilogueLimits.h"
#include "codegen/families/contraction/MaskedTiles.h"
#include "codegen/families/contraction/TokenTiles.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm80/Sm80Tile.h"
#include "kernel/Attributes.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"

#include <algorithm>
#include <limits>

namespace weft::codegen {
namespace {

constexpr int64_t mostSharedBytes = 99 * 1024;  // dynamic, of every target from sm_80 on

GemmProblem checkedProblem(const Kernel &kernel, const Configuration &configuration,
                           const Sm80GemmKnobs &knobs) {
  const Expected<ContractionRegion, Reason> &recognised = contractionRegion(kernel);
  if (!recognised)
    throw Error::unsupported("kernel '{}': no contraction of warps: {}", kernel.name,
                             recognised.error().text);
  if (const std::string reason = warpEpilogueRejection(kernel, *recognised); !reason.empty())
    throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  const GemmTypes types = gemmTypes(kernel);
  const ContractionRegion &region = *recognised;
  const BodyOp &contraction = kernel.body[region.contraction];
  if (region.prologue)
    if (const std::string reason = prologueLayoutRejection(kernel, configuration, *region.prologue);
        !reason.empty())
      throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  for (const int index : {contraction.operands[0], contraction.operands[1], kernel.outputs[0]})
    if (const Value &value = kernel.values[size_t(index)];
        value.dtype != DType::f16 && value.dtype != DType::bf16 &&
        !(types.areTf32() && value.dtype == DType::f32))
      throw Error::unsupported(
          "kernel '{}': '{}' is {}; f16, bf16, and f32 at precision tf32 are taken", kernel.name,
          value.name, nameOf(value.dtype));
  const Expected<GemmProblem, Reason> answer = mmaSyncProblem(kernel, configuration);
  if (!answer) throw Error::unsupported("kernel '{}': {}", kernel.name, answer.error().text);
  if (const std::string reason = sm80KnobsRejection(knobs, mostSharedBytes, sizeOf(types.a));
      !reason.empty())
    throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  if (const std::string reason =
          sm80RegistersRejection(knobs, sm80EpilogueRegisters(kernel, region));
      !reason.empty())
    throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  if (const std::string reason = sm80SoftmaxRejection(knobs, region); !reason.empty())
    throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  if (const std::string reason =
          softmaxRejection(kernel, configuration, region, !answer->isSwapped);
      !reason.empty())
    throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  if (const int64_t tiles = sm80Tiles(*answer, knobs); tiles > std::numeric_limits<int32_t>::max())
    throw Error::unsupported("kernel '{}': {} tiles; the limit is {}: take larger ones",
                             kernel.name, tiles, std::numeric_limits<int32_t>::max());
  return *answer;
}

class Sm80Lowering {
public:
  Sm80Lowering(const Kernel &kernel, const Configuration &configuration, const Sm80GemmKnobs &knobs)
      : kernel(kernel),
        configuration(configuration),
        knobs(knobs),
        gemm(checkedProblem(kernel, configuration, knobs)),
        region(contractionRegion(kernel).value()),
        groups(contractionGroups(kernel, {region.a, region.b, region.c})),
        isTf32(gemmTypes(kernel).areTf32()),
        type(cudaNameOf(kernel.values[size_t(kernel.outputs[0])].dtype)) {}

  Program run() {
    program.entry = names.reserve(entryName(kernel));
    program.headers = {isTf32            ? "weft/sm80_tf32.cuh"
                       : region.prologue ? "weft/sm80_prologue.cuh"
                                         : "weft/sm80_gemm.cuh"};
    nameAxes();
    nameTensors();
    describeProblem();
    describeTile();
    callTemplate();
    // One block is named so that the compiler spends registers and does not spill for more.
    program.launchBounds = fmt::format("{}, 1", sm80Threads(knobs));
    program.launch = {.grid = {sm80Tiles(gemm, knobs), 1, 1},
                      .block = {sm80Threads(knobs), 1, 1},
                      .sharedBytes = sharedBytes()};
    program.mapping = describe(kernel, knobs);
    pruneUnused(program);
    return std::move(program);
  }

private:
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
    if (region.isPlain()) scale = names.reserve(scale);
  }

  void nameTensors() {
    for (size_t i = 0; i < kernel.inputs.size(); ++i) {
      const Value &value = kernel.values[size_t(kernel.inputs[i])];
      inputs.push_back(names.reserve(value.name));
      program.parameters.push_back({.kind = Parameter::Kind::input,
                                    .index = int(i),
                                    .name = inputs.back(),
                                    .type = std::string(cudaNameOf(value.dtype))});
    }
    for (size_t i = 0; i < kernel.outputs.size(); ++i) {
      const Value &value = kernel.values[size_t(kernel.outputs[i])];
      results.push_back(names.reserve(value.name));
      program.parameters.push_back({.kind = Parameter::Kind::output,
                                    .index = int(i),
                                    .name = results.back(),
                                    .type = std::string(cudaNameOf(value.dtype))});
    }
  }

  ConstantValue extent(ContractionGroup group) const {
    return extentProduct(kernel, groups[group], axes);
  }

  ConstantValue strides(const GemmOperand &operand) {
    StrideTexts stride(kernel, kernel.inputs[operand.input], configuration.inputs[operand.input],
                       axes, inputs[operand.input], names, program.constants);
    // In the order of the names of a view's strides.
    const ConstantValue outer = stride(operand.outer), k = stride(operand.k),
                        batch = stride(operand.batch);
    return ConstantValue::members({{"outer", outer},
                                   {"k", k},
                                   {"batch", batch},
                                   {"isAligned", ConstantValue::truth(operand.usesTma)}});
  }

  void describeProblem() {
    StrideTexts stride(kernel, kernel.outputs[0], configuration.outputs[0], axes, results[0], names,
                       program.constants);
    const ConstantValue a = strides(gemm.a), b = strides(gemm.b);
    const ConstantValue cm = stride(gemm.strideCm), cb = stride(gemm.batchStrideC);
    const bool isAligned = isTf32 ? arePairs() : gemm.usesTma;
    const ConstantValue members =
        ConstantValue::members({{"batch", extent(batchGroup), true},
                                {"m", extent(gemm.isSwapped ? nGroup : mGroup)},
                                {"n", extent(gemm.isSwapped ? mGroup : nGroup)},
                                {"k", extent(kGroup)},
                                {"a", a, true},
                                {"b", b, true},
                                {"strideCm", cm, true},
                                {"batchStrideC", cb},
                                {"isAligned", ConstantValue::truth(isAligned)}});
    program.constants.push_back({"weft::sm80::GemmProblem",
                                 {{shape, members}},
                                 "",
                                 {ConstantSubject::Kind::strides, "the result"}});
  }

  void describeTile() {
    const std::string members = fmt::format(
        "{{.m = {}, .n = {}, .k = {}, .stages = {}, .warpsM = {}, .warpsN = {}, .groupM = {}}}",
        knobs.tileM, knobs.tileN, knobs.tileK, knobs.stages, knobs.warpsM, knobs.warpsN,
        knobs.groupM);
    program.constants.push_back({"weft::sm80::Tile",
                                 {{tile, ConstantValue::text(members)}},
                                 "",
                                 {ConstantSubject::Kind::unchecked}});
    if (region.isPlain())
      program.constants.push_back(
          {"float", {{scale, ConstantValue::text(floatLiteral(factor()))}}, ""});
  }

  int64_t sharedBytes() const { return sm80SharedBytes(knobs, sizeOf(gemm.operandType)); }

  /// Whether rows of a result of f32 start at multiples of two elements.
  bool arePairs() const {
    return configuration.outputs[0].alignment % (2 * sizeOf(DType::f32)) == 0 &&
           gemm.strideCm % 2 == 0 && gemm.batchStrideC % 2 == 0;
  }

  double factor() const {
    return attributeOr(kernel.body[region.contraction], attribute::scale, 1.0);
  }

  void callTemplate() {
    program.body.push_back(evaluate(
        fmt::format("static_assert(weft::sm80::{}<{}, {}>::sharedBytes == {})",
                    isTf32 ? "Tf32TileConfig" : "TileConfig", shape, tile, sharedBytes())));
    const int64_t blocks = sm80Tiles(gemm, knobs), threads = sm80Threads(knobs);
    program.body.push_back(extentChecks(shape, gemm.batch, gemm.m, gemm.n, gemm.k));
    program.body.push_back(launchCheckOf(
        {fmt::format("{0} * (({1} + {3}.m - 1) / {3}.m) * (({2} + {3}.n - 1) / {3}.n) == {4}",
                     gemm.batch, gemm.m, gemm.n, tile, blocks)},
        fmt::format("{} blocks", blocks)));
    program.body.push_back(
        launchCheckOf({fmt::format("32 * {0}.warpsM * {0}.warpsN == {1}", tile, threads)},
                      fmt::format("{} threads a block", threads)));
    const std::string epilogueOp = region.isPlain() ? addFactor() : addEpilogue(),
                      transform = region.prologue ? addPrologue() : "";
    const std::string function =
        isTf32 ? "sm80Tf32Gemm<"
               : fmt::format("{}<{}, ", region.prologue ? "prologueGemm" : "runGemm", type);
    const std::string tiles = isTf32 ? "" : tilesArgument();
    program.body.push_back(templateCall(
        fmt::format("weft::sm80::{}{}, {}>", function, shape, tile), "weft::sm80::Args",
        {{"a", inputs[gemm.a.input]},
         {"b", inputs[gemm.b.input]},
         {"c", results[0]},
         {gemm.a.isTransformed ? "transformA" : "transformB", transform},
         {"tokens", tiles},
         {"epilogue", epilogueOp}}));
  }

  /// Which tiles are left out: those behind the last token, or that a block mask leaves nothing of.
  /// Or where k ends.
  std::string tilesArgument() {
    if (hasEndingSum(kernel))
      return summedTokensArgument(kernel, configuration, inputs, "weft::sm80", names, program.body);
    if (const auto masked = maskedTiles(kernel, region, gemm.isSwapped)) {
      addHeaders({"weft/sm80_masked_tiles.cuh"});
      program.skipsMaskedTiles = true;
      return masked->argument("weft::sm80", fmt::format("{0}.m, {0}.n, ", tile));
    }
    return tokensArgument(kernel, tokenSide(kernel, region, gemm.isSwapped), "weft::sm80", tokens);
  }

  /// The factor on the accumulators of a plain contraction; returns its name, nothing where the
  /// factor is 1.
  std::string addFactor() {
    if (factor() == 1) return "";
    const std::string epilogueOp = names.reserve("epilogueOp"),
                      accumulators = names.reserve("accumulators"), e = names.reserve("e");
    program.body.push_back(
        {.kind = Statement::Kind::function,
         .type = fmt::format("float (&{})[8], const weft::sm80::Fragment &", accumulators),
         .name = epilogueOp,
         .body = {loop(e, "8", 0,
                       {assign(fmt::format("{}[{}]", accumulators, e),
                               fmt::format("{}[{}] * {}", accumulators, e, scale))})}});
    return epilogueOp;
  }

  /// The epilogue function, which loads its operands and stores further outputs; returns the kernel
  /// template's argument, nothing where accumulators are stored as they are.
  std::string addEpilogue() {
    ContractionEpilogue epilogue = contractionEpilogue({.kernel = kernel,
                                                        .configuration = configuration,
                                                        .region = region,
                                                        .names = names,
                                                        .axes = axes,
                                                        .inputs = inputs,
                                                        .outputs = results,
                                                        .gemm = shape,
                                                        .rowsAlongN = gemm.isSwapped,
                                                        .fragmentType = "weft::sm80::Fragment"});
    if (!epilogue.isEmpty() || !epilogue.argumentsBehind.empty())
      epilogue.headers.push_back("weft/sm80_epilogue.cuh");
    addHeaders(epilogue.headers);
    program.constants.insert(program.constants.end(), epilogue.constants.begin(),
                             epilogue.constants.end());
    program.parameters.insert(program.parameters.end(), epilogue.parameters.begin(),
                              epilogue.parameters.end());
    program.body.insert(program.body.end(), epilogue.prologue.begin(), epilogue.prologue.end());
    tokens = epilogue.tokens;
    std::string behind;
    if (!epilogue.argumentsBehind.empty()) {
      behind = names.reserve("behind");
      program.body.push_back(epilogue.functionBehind(behind));
    }
    if (epilogue.isEmpty()) return withSoftmax("", behind);
    const std::string epilogueOp = names.reserve("epilogueOp");
    program.body.push_back({.kind = Statement::Kind::function,
                            .type = epilogue.arguments,
                            .name = epilogueOp,
                            .body = std::move(epilogue.body)});
    return withSoftmax(
        fmt::format("weft::sm80::limitFragmentsInFlight<{}>({})", blocksTogether(), epilogueOp),
        behind);
  }

  /// Behind what is applied element by element, if there is one; and before the function `behind`.
  std::string withSoftmax(const std::string &epilogueOp, const std::string &behind) {
    if (!region.softmax) return epilogueOp;
    addHeaders({behind.empty() ? "weft/sm80_softmax.cuh" : "weft/sm80_softmax_behind.cuh"});
    const std::string subVectors =
        subVectorsText(kernel, configuration, region, axes, results, names, program.constants);
    const std::string &maxima = results[region.softmax->maxima],
                      &sums = results[region.softmax->sums];
    const std::string softmax =
        fmt::format("weft::sm80::withLocalSoftmax<{}>({}, {}, {})", subVectors, maxima, sums,
                    epilogueOp.empty() ? "weft::sm80::Unchanged{}" : epilogueOp);
    return behind.empty() ? softmax
                          : fmt::format("weft::sm80::followedBy({}, {})", softmax, behind);
  }

  /// 16 x 16 blocks of a warp that are in flight at a time: several hide each other's loads,
  /// where an epilogue leaves the registers (tests/nvrtc).
  int blocksTogether() const { return epilogueRegisters(kernel, region) <= 56 ? 4 : 1; }

  void addHeaders(const std::vector<std::string> &headers) {
    program.headers.insert(program.headers.end(), headers.begin(), headers.end());
    std::ranges::sort(program.headers);
    program.headers.erase(std::ranges::unique(program.headers).begin(), program.headers.end());
  }

  /// The function that makes the operand; returns its name.
  std::string addPrologue() {
    const GemmOperand &operand = gemm.a.isTransformed ? gemm.a : gemm.b;
    const std::string transform = names.reserve("transform");
    PrologueText text = prologueText({.kernel = kernel,
                                      .configuration = configuration,
                                      .prologue = *region.prologue,
                                      .names = names,
                                      .axes = axes,
                                      .inputs = inputs,
                                      .outerExtent = shape + (gemm.a.isTransformed ? ".m" : ".n"),
                                      .kExtent = shape + ".k",
                                      .isAlongK = operand.isAlongK()});
    addHeaders(text.headers);
    program.constants.insert(program.constants.end(), text.constants.begin(), text.constants.end());
    program.body.insert(program.body.end(), text.before.begin(), text.before.end());
    program.body.push_back({.kind = Statement::Kind::function,
                            .type = text.arguments,
                            .name = transform,
                            .body = std::move(text.body)});
    return transform;
  }

  const Kernel &kernel;
  const Configuration &configuration;
  const Sm80GemmKnobs &knobs;
  const GemmProblem gemm;
  const ContractionRegion region;
  const ContractionGroups groups;
  const bool isTf32;
  const std::string type;
  Names names;
  Program program;
  std::vector<std::string> axes, inputs, results;
  std::string shape = "gemm", tile = "tile", scale = "scale", tokens = {};
};

}  // namespace

Program lowerSm80Gemm(const Kernel &kernel, const Configuration &configuration,
                      const Sm80GemmKnobs &knobs) {
  return Sm80Lowering(kernel, configuration, knobs).run();
}

}  // namespace weft::codegen
