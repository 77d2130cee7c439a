// The family without tensor cores: a program that calls the kernel template of fma_gemm.cuh with
// extents, strides and the tile.
#include "codegen/families/gemm_fma/FmaGemm.h"
#include "codegen/EntryName.h"
#include "codegen/ExpressionText.h"
#include "codegen/Names.h"
#include "codegen/families/contraction/ContractionTexts.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "kernel/Attributes.h"
#include "kernel/Error.h"
#include "kernel/StridedBatchedGemm.h"

#include <algorithm>
#include <limits>

namespace weft {
namespace {

constexpr int64_t registersOfMultiprocessor = 65536;

/// One axis of a matrix: extent and stride.
struct MatrixAxis {
  int64_t extent, stride;
};
/// Whether groups of four neighbours along the first axis lie at multiples of their size.
bool isAligned(const Layout &layout, DType type, const MatrixAxis &along, const MatrixAxis &across,
               const MatrixAxis &batch) {
  const auto keeps = [](const MatrixAxis &axis) {
    return axis.extent == 1 || axis.stride % 4 == 0;
  };
  return along.stride == 1 && along.extent % 4 == 0 && layout.alignment % (4 * sizeOf(type)) == 0 &&
         keeps(across) && keeps(batch);
}
/// The same along the second axis where that is contiguous, as fma_gemm.cuh has it.
bool isAlignedAlongLast(const Layout &layout, DType type, const MatrixAxis &first,
                        const MatrixAxis &last, const MatrixAxis &batch) {
  return last.stride == 1 ? isAligned(layout, type, last, first, batch)
                          : isAligned(layout, type, first, last, batch);
}

}  // namespace

FmaAlignment fmaAlignment(const Kernel &kernel, const Configuration &configuration,
                          const StridedBatchedGemm &gemm) {
  const auto [inputA, inputB] = gemmInputs(kernel);
  const auto typeOf = [&](ValueId value) { return kernel.values[value].dtype; };
  return {.a = isAlignedAlongLast(configuration.inputs[inputA], typeOf(kernel.inputs[inputA]),
                                  {gemm.m, gemm.strideAm}, {gemm.k, gemm.strideAk},
                                  {gemm.batch, gemm.batchStrideA}),
          .b = isAlignedAlongLast(configuration.inputs[inputB], typeOf(kernel.inputs[inputB]),
                                  {gemm.n, gemm.strideBn}, {gemm.k, gemm.strideBk},
                                  {gemm.batch, gemm.batchStrideB}),
          .c = isAlignedAlongLast(configuration.outputs[0], typeOf(kernel.outputs[0]),
                                  {gemm.m, gemm.strideCm}, {gemm.n, gemm.strideCn},
                                  {gemm.batch, gemm.batchStrideC})};
}

int64_t fmaBlocksByRegisters(const FmaGemmKnobs &knobs, const Kernel &kernel,
                             const FmaAlignment &aligned) {
  const bool copiesChunks =
      aligned.a && aligned.b && std::ranges::all_of(kernel.inputs, [&](ValueId input) {
        return kernel.values[input].dtype == DType::f32;
      });
  const int64_t elements = int64_t{knobs.threadM} * knobs.threadN, registers = elements > 32   ? 168
                                                                               : elements > 16 ? 128
                                                                                               : 96;
  constexpr int64_t most = 16;  // blocks that every target holds
  return std::clamp<int64_t>(registersOfMultiprocessor /
                                 (copiesChunks ? registers : registers * 3 / 2) / fmaThreads(knobs),
                             1, most);
}

namespace codegen {

Program lowerFmaGemm(const Kernel &kernel, const Configuration &configuration,
                     const FmaGemmKnobs &knobs) {
  const auto values = contractionValues(kernel);
  if (!values || kernel.body.size() != 1)
    throw Error::unsupported(
        "kernel '{}': a plain contraction takes one contraction of two operands and nothing else",
        kernel.name);
  const auto gemm = stridedBatchedGemm(kernel, configuration);
  if (!gemm)
    throw Error::unsupported("kernel '{}': its layouts map to no batched strided GEMM",
                             kernel.name);
  if (const std::string reason = fmaKnobsRejection(knobs); !reason.empty())
    throw Error::unsupported("kernel '{}': {}", kernel.name, reason);
  Names names;
  Program program{.entry = names.reserve(entryName(kernel)), .headers = {"weft/fma_gemm.cuh"}};
  std::vector<std::string> axes;
  ConstantLine extents{
      .type = "weft::Offset", .note = "extents", .subject = {ConstantSubject::Kind::extents}};
  for (const Axis &axis : kernel.axes) {
    axes.push_back(names.reserve(axis.name));
    extents.entries.emplace_back(axes.back(), axis.extent);
  }
  const ContractionGroups groups = contractionGroups(kernel, *values);
  const std::string shape = names.reserve("shape"), tile = names.reserve("tile"),
                    scale = names.reserve("scale");
  std::vector<std::string> pointers;
  for (size_t i = 0; i < kernel.inputs.size(); ++i) {
    const Value &value = kernel.values[kernel.inputs[i]];
    pointers.push_back(names.reserve(value.name));
    program.parameters.push_back({Parameter::Kind::input, static_cast<int>(i), pointers.back(),
                                  std::string(cudaNameOf(value.dtype))});
  }
  const Value &result = kernel.values[kernel.outputs[0]];
  const std::string c = names.reserve(result.name);
  program.parameters.push_back(
      {Parameter::Kind::output, 0, c, std::string(cudaNameOf(result.dtype))});
  program.constants = {extents};
  const auto [inputA, inputB] = gemmInputs(kernel);
  const auto stridesOf = [&](ValueId value, const Layout &layout, const std::string &name) {
    return StrideTexts(kernel, value, layout, axes, name, names, program.constants);
  };
  StrideTexts strideA = stridesOf((*values)[0], configuration.inputs[inputA], pointers[inputA]);
  StrideTexts strideB = stridesOf((*values)[1], configuration.inputs[inputB], pointers[inputB]);
  StrideTexts strideC = stridesOf((*values)[2], configuration.outputs[0], c);
  const auto extent = [&](ContractionGroup group) {
    return extentProduct(kernel, groups[group], axes);
  };
  // Arguments of one call are evaluated from the last to the first: a view's strides get their
  // names in this order.
  const ConstantValue cn = strideC(gemm->strideCn), cm = strideC(gemm->strideCm),
                      cb = strideC(gemm->batchStrideC), bn = strideB(gemm->strideBn),
                      bk = strideB(gemm->strideBk), bb = strideB(gemm->batchStrideB),
                      ak = strideA(gemm->strideAk), am = strideA(gemm->strideAm),
                      ab = strideA(gemm->batchStrideA);
  const FmaAlignment aligned = fmaAlignment(kernel, configuration, *gemm);
  const ConstantValue members =
      ConstantValue::members({{"batch", extent(batchGroup), true},
                              {"m", extent(mGroup)},
                              {"n", extent(nGroup)},
                              {"k", extent(kGroup)},
                              {"batchStrideA", ab, true},
                              {"strideAm", am},
                              {"strideAk", ak},
                              {"batchStrideB", bb, true},
                              {"strideBk", bk},
                              {"strideBn", bn},
                              {"batchStrideC", cb, true},
                              {"strideCm", cm},
                              {"strideCn", cn},
                              {"isAlignedA", ConstantValue::truth(aligned.a), true},
                              {"isAlignedB", ConstantValue::truth(aligned.b)},
                              {"isAlignedC", ConstantValue::truth(aligned.c)}});
  const BodyOp &op = kernel.body[0];
  program.constants.push_back({"weft::FmaGemmShape",
                               {{shape, members}},
                               "",
                               {ConstantSubject::Kind::strides, "operands and result"}});
  program.constants.push_back(
      {"float",
       {{scale, ConstantValue::text(floatLiteral(attributeOr(op, attribute::scale, 1.0)))}},
       ""});
  program.constants.push_back(
      {"weft::FmaGemmTile",
       {{tile, ConstantValue::text(fmt::format(
                   "{{.m = {}, .n = {}, .k = {}, .threadM = {}, .threadN = {}, .stages = {}, "
                   ".groups = {}}}",
                   knobs.tileM, knobs.tileN, knobs.tileK, knobs.threadM, knobs.threadN,
                   knobs.stages, knobs.kGroups))}},
       "",
       {ConstantSubject::Kind::unchecked}});
  const int64_t threads = fmaThreads(knobs), sharedBytes = fmaSharedBytes(knobs);
  const auto tiles = [](int64_t extent, int64_t side) { return (extent + side - 1) / side; };
  const int64_t blocks = gemm->batch * tiles(gemm->m, knobs.tileM) * tiles(gemm->n, knobs.tileN);
  if (blocks > std::numeric_limits<int32_t>::max())
    throw Error::unsupported("kernel '{}': {} blocks; the limit is {}: take larger tiles",
                             kernel.name, blocks, std::numeric_limits<int32_t>::max());
  const std::string config = fmt::format("weft::FmaTileConfig<{}>", tile);
  program.body = {
      evaluate(fmt::format("static_assert({}::sharedBytes == {})", config, sharedBytes)),
      extentChecks(shape, gemm->batch, gemm->m, gemm->n, gemm->k),
      launchCheckOf({fmt::format("{0} * (({1} + {3}.m - 1) / {3}.m) * (({2} + {3}.n - 1) / {3}.n) "
                                 "== {4}",
                                 gemm->batch, gemm->m, gemm->n, tile, blocks)},
                    fmt::format("{} blocks", blocks)),
      launchCheckOf({fmt::format("{0}.m / {0}.threadM * ({0}.n / {0}.threadN) * {0}.groups == {1}",
                                 tile, threads)},
                    fmt::format("{} threads a block", threads)),
      templateCall(fmt::format("weft::fmaGemm<{}, {}>", shape, tile), "weft::FmaGemmArgs",
                   {{"a", pointers[inputA]}, {"b", pointers[inputB]}, {"c", c}, {"scale", scale}})};
  program.launchBounds =
      fmt::format("{}, {}", threads, fmaBlocksByRegisters(knobs, kernel, aligned));
  program.launch = {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .sharedBytes = sharedBytes};
  program.mapping = describe(kernel, knobs);
  pruneUnused(program);
  return program;
}

}  // namespace codegen
}  // namespace weft
