// The family without tensor cores: a program that calls the kernel template of fma_gemm.cuh with
// extents, strides and tiles.
#include "codegen/families/gemm_fma/FmaGemm.h"
#include "codegen/EntryName.h"
#include "codegen/ExpressionText.h"
#include "codegen/Names.h"
#include "codegen/families/contraction/ContractionTexts.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "kernel/Attributes.h"
#include "kernel/Error.h"
#include "kernel/StridedBatchedGemm.h"

#include <limits>

namespace weft::codegen {
namespace {

void checkTile(const Kernel &kernel, const FmaGemmKnobs &knobs) {
  const bool divides = knobs.threadM > 0 && knobs.threadN > 0 && knobs.tileK > 0 &&
                       knobs.tileM % knobs.threadM == 0 && knobs.tileN % knobs.threadN == 0;
  const int threads = divides ? knobs.tileM / knobs.threadM * (knobs.tileN / knobs.threadN) : 0;
  if (threads < 1 || threads > 1024)
    throw Error::unsupported(
        "kernel '{}': a tile of {} x {} with {} x {} a thread takes no whole block of at most 1024 "
        "threads",
        kernel.name, knobs.tileM, knobs.tileN, knobs.threadM, knobs.threadN);
  // Whole lines of a k-tile for each pass of the block over it.
  const auto covered = [&](int side) {
    return threads % side == 0 && threads % knobs.tileK == 0 && side * knobs.tileK % threads == 0;
  };
  if (!covered(knobs.tileM) || !covered(knobs.tileN))
    throw Error::unsupported(
        "kernel '{}': {} threads do not copy kTiles of {} x {} and {} x {} line by line; take "
        "sides that "
        "divide the threads",
        kernel.name, threads, knobs.tileM, knobs.tileK, knobs.tileN, knobs.tileK);
  const int bytes = 4 * knobs.tileK * (knobs.tileM + knobs.tileN + 8);
  if (bytes > 48 * 1024)
    throw Error::unsupported(
        "kernel '{}': tile kTiles take {} bytes of shared memory; the limit is 49152", kernel.name,
        bytes);
}

}  // namespace

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
  checkTile(kernel, knobs);
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
  const std::string shape = names.reserve("shape"), tile = names.reserve("Tile"),
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
  const ConstantValue members = ConstantValue::members({{"batch", extent(batchGroup), true},
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
                                                        {"strideCn", cn}});
  const BodyOp &op = kernel.body[0];
  program.constants.push_back({"weft::FmaGemmShape",
                               {{shape, members}},
                               "",
                               {ConstantSubject::Kind::strides, "operands and result"}});
  program.constants.push_back(
      {"float",
       {{scale, ConstantValue::text(floatLiteral(attributeOr(op, attribute::scale, 1.0)))}},
       ""});
  const std::string tileType = fmt::format("weft::FmaGemmTile<{}, {}, {}, {}, {}>", knobs.tileM,
                                           knobs.tileN, knobs.tileK, knobs.threadM, knobs.threadN);
  const std::string kTiles = names.reserve("kTiles");
  program.body = {
      comment("tile m x n x k, then elements of one thread along m and n"),
      {.kind = Statement::Kind::alias, .name = tile, .value = tileType},
      {.kind = Statement::Kind::shared,
       .type = fmt::format("weft::GemmKTiles<{}>", tile),
       .name = kTiles},
      templateCall(fmt::format("weft::fmaGemm<{}, {}>", shape, tile), "weft::FmaGemmArgs",
                   {{"a", pointers[inputA]},
                    {"b", pointers[inputB]},
                    {"c", c},
                    {"scale", scale},
                    {"kTiles", kTiles}})};
  const int64_t threads = knobs.tileM / knobs.threadM * (knobs.tileN / knobs.threadN);
  const auto tiles = [](int64_t extent, int64_t side) { return (extent + side - 1) / side; };
  const int64_t blocks = gemm->batch * tiles(gemm->m, knobs.tileM) * tiles(gemm->n, knobs.tileN);
  if (blocks > std::numeric_limits<int32_t>::max())
    throw Error::unsupported("kernel '{}': {} blocks; the limit is {}: take larger tiles",
                             kernel.name, blocks, std::numeric_limits<int32_t>::max());
  const Block checks = {
      extentChecks(shape, gemm->batch, gemm->m, gemm->n, gemm->k),
      launchCheckOf({fmt::format("{0} * (({1} + {3}::tileM - 1) / {3}::tileM) * (({2} + {3}::tileN "
                                 "- 1) / {3}::tileN) == {4}",
                                 gemm->batch, gemm->m, gemm->n, tile, blocks)},
                    fmt::format("{} blocks", blocks)),
      launchCheckOf({fmt::format("{}::threads == {}", tile, threads)},
                    fmt::format("{} threads a block", threads))};
  program.body.insert(program.body.end() - 2, checks.begin(), checks.end());
  program.launchBounds = std::to_string(threads);
  program.launch = {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}};
  program.mapping = describe(kernel, knobs);
  pruneUnused(program);
  return program;
}

}  // namespace weft::codegen
