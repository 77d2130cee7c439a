// From layouts to the skeleton's product, and what its tiles need.
#include "kernel/HopperProduct.h"

#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "kernel/HopperStrides.h"
#include "kernel/HopperSums.h"

#include <algorithm>
#include <limits>

namespace weft {
namespace {

constexpr int64_t engineBytes = 16;                 // of addresses and strides
constexpr int64_t longestPitch = int64_t(1) << 40;  // bytes, of a tensor map
/// Coordinates of a tile that begins inside reach as far as its end.
constexpr int64_t mostElements = std::numeric_limits<int32_t>::max() - 512;

int64_t roundedUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

bool areWholeUnits(int64_t pitch, int64_t batch, int64_t batchStride, int64_t elementBytes,
                   const Layout &layout) {
  const auto fits = [&](int64_t stride) {
    return stride * elementBytes % engineBytes == 0 && stride * elementBytes < longestPitch;
  };
  return layout.alignment % engineBytes == 0 && fits(pitch) && (batch == 1 || fits(batchStride));
}

/// Extents of 1 have any stride. A single column of neighbouring rows counts as column-major, where
/// that is taken: as rows they would start anywhere.
struct Matrix {
  int64_t rows, rowStride, columns, columnStride;
  bool mayBeColumnMajor = true;

  bool isColumn() const { return mayBeColumnMajor && columns == 1 && rowStride == 1 && rows > 1; }
  bool isRowMajor() const {
    return !isColumn() && (columns == 1 || columnStride == 1) &&
           (rows == 1 || rowStride >= columns);
  }
  bool isColumnMajor() const {
    return (rows == 1 || rowStride == 1) && (columns == 1 || columnStride >= rows);
  }
};

/// Rows along the outer axis, columns along k.
std::optional<HopperOperand> operandOf(const Matrix &matrix, int64_t elementBytes) {
  HopperOperand operand;
  const int64_t unit = engineBytes / elementBytes;
  if (matrix.isRowMajor()) {
    operand.k = 1;
    operand.outer =
        matrix.rows == 1 ? std::max(roundedUp(matrix.columns, unit), unit) : matrix.rowStride;
  } else if (matrix.mayBeColumnMajor && matrix.isColumnMajor()) {
    operand.outer = 1;
    operand.k = matrix.columns == 1 ? roundedUp(matrix.rows, unit) : matrix.columnStride;
  } else {
    return std::nullopt;
  }
  return operand;
}

/// Sums of other blocks of the cluster, in fp32: a block finishes every so manieth panel of 64 x 64
/// of each working consumer.
int64_t partialBytes(const HopperContractionKnobs &knobs) {
  constexpr int64_t bytesOfPart = 64 * 64 * 4;
  const int64_t consumers = knobs.schedule == HopperSchedule::pingPong ? 1 : 2,
                panels = int64_t(knobs.tileM) * knobs.tileN / (64 * 64) / consumers;
  return consumers * ((panels + knobs.splits - 1) / knobs.splits) * (knobs.splits - 1) *
         bytesOfPart;
}

constexpr int narrowColumns = 48;  // at most; as many as wgmma_narrow.cuh has

/// Rows of a warpgroup's instruction that lie beyond a tile of 32 are whatever follows in shared
/// memory.
std::string narrowKnobsRefusal(const HopperContractionKnobs &knobs) {
  const NarrowSides sides = narrowSides(knobs);
  if ((sides.rows != 32 && sides.rows != 64) || sides.columns < 8 ||
      sides.columns > narrowColumns || sides.columns % 8 != 0)
    return fmt::format(
        "narrow tiles of {} x {}; one side is 32 or 64, the other one a multiple of 8 up to {}, "
        "and not more",
        knobs.tileM, knobs.tileN, narrowColumns);
  constexpr HopperContractionKnobs usual;
  if (knobs.staging != usual.staging || knobs.rasterM != usual.rasterM)
    return fmt::format(
        "narrow tiles with {} staged panels and raster {}; they have neither, which {} and {} "
        "stand for",
        knobs.staging, knobs.rasterM, usual.staging, usual.rasterM);
  if (sides.rows < 64 && knobs.stages * sides.columns < 64 - sides.rows)
    return fmt::format(
        "{} stages of {} columns behind {} rows; an instruction reads 64 rows: take more stages",
        knobs.stages, sides.columns, sides.rows);
  return "";
}

std::string narrowTileRefusal(const HopperProduct &product, const HopperContractionKnobs &knobs) {
  const NarrowSides sides = narrowSides(knobs);
  const HopperOperand &rows = sides.isAlongM ? product.a : product.b,
                      &columns = sides.isAlongM ? product.b : product.a;
  if (sizeOf(product.operandType) != 2)
    return "narrow tiles multiply halves; 8-bit floats and tf32 take others";
  if (product.hasSeveralStrides())
    return "narrow tiles take one stride along each group of axes: take others where there are "
           "several";
  if (!rows.isByEngine || !columns.isByEngine)
    return "narrow tiles take operands whose rows start at multiples of 16 bytes";
  if (product.isAnyMade() || product.isScaled())
    return "narrow tiles take operands as they are in memory";
  if (!columns.isAlongK())
    return fmt::format("a narrow tile takes {} {} of an operand that lies along k", sides.columns,
                       sides.isAlongM ? "columns" : "rows");
  if (!rows.isAlongK() && sides.rows < 64)
    return fmt::format("{} of an operand that does not lie along k; a narrow tile takes 64",
                       sides.rows);
  return "";
}

/// Where tiles are many, or whole waves of them, blocks that share some have nothing to gain.
std::string streamRefusal(const HopperProduct &product, const HopperContractionKnobs &knobs,
                          bool isPlain) {
  constexpr int64_t mostWaves = 4, fewestSlices = 2;
  const int64_t tiles = hopperTiles(product, knobs), slices = tiles * hopperSlices(product);
  if (!isPlain)
    return "equal runs of slices have no epilogue: take others where something follows the product";
  if (!product.a.isByEngine || !product.b.isByEngine)
    return "equal runs of slices take operands whose rows start at multiples of 16 bytes";
  if (tiles % knobs.blocks == 0 || tiles > mostWaves * knobs.blocks)
    return fmt::format(
        "equal runs of slices of {} tiles for {} blocks; at most {} for each are taken, in no "
        "whole waves",
        tiles, knobs.blocks, mostWaves);
  if (slices < fewestSlices * knobs.blocks)
    return fmt::format("equal runs of {} slices for {} blocks; each takes {} at least", slices,
                       knobs.blocks, fewestSlices);
  if (slices > mostElements)
    return fmt::format("equal runs of {} slices; the limit is {}", slices, mostElements);
  if (const int64_t bytes = hopperStreamBytes(product, knobs); bytes > streamPartialsLimit)
    return fmt::format(
        "{} bytes of sums of tiles that blocks share; a kernel keeps {} for itself: take smaller "
        "tiles or fewer blocks",
        bytes, streamPartialsLimit);
  return "";
}

/// A cluster's tiles are one below the other: in every group of the raster, and in the last one.
std::string sharersRefusal(const HopperProduct &product, const HopperContractionKnobs &knobs) {
  if (!product.a.isByEngine || !product.b.isByEngine || product.isAnyMade())
    return "blocks that share slices of B take operands from memory, whose rows start at multiples "
           "of 16 bytes";
  if (product.hasSeveralStrides())
    return "blocks that share slices of B take one stride along each group of axes: take others "
           "where there are several";
  if (const int64_t rows = (product.m + knobs.tileM - 1) / knobs.tileM; rows % knobs.sharers != 0)
    return fmt::format(
        "{} tiles along m for {} blocks that share slices of B; they take a multiple", rows,
        knobs.sharers);
  return "";
}

HopperProductAnswer refused(std::string reason) { return {.refusal = std::move(reason)}; }

/// Whether ops before the contraction make one of its operands: slices of it are not what a map of
/// the tensor brings, so that the dimensions of such a map are of no use.
bool readsMadeOperand(const Kernel &kernel) {
  const auto contraction = contractionIndex(kernel);
  if (!contraction) return false;
  const std::vector<int> &read = kernel.body[*contraction].operands;
  return std::ranges::any_of(
      read, [&](int value) { return std::ranges::count(kernel.inputs, value) == 0; });
}

/// isOfWarps: operands that are read as tf32 may be contiguous along their outer axis, and each
/// group has one stride.
HopperProductAnswer productOf(const Kernel &kernel, const Configuration &configuration,
                              bool isOfWarps) {
  const auto shape = matrixProduct(kernel, configuration);
  if (!shape && !isOfWarps && readsMadeOperand(kernel))
    return refused(
        "the layouts give a group of axes several strides, which an operand that is made on load "
        "does not take");
  if (!shape && !isOfWarps) return productOfSeveralStrides(kernel, configuration);
  if (!shape) return refused("the layouts map to no batched strided matrix product");
  if (std::min({shape->batch, shape->m, shape->n, shape->k}) < 1)
    return refused("an extent is less than 1");
  if (std::max({shape->batch, shape->m, shape->n, shape->k}) > mostElements)
    return refused(fmt::format("an extent is more than {}", mostElements));
  const ProductInputs inputs = productInputs(kernel);
  const ProductTypes types = productTypes(kernel);
  const int64_t bytes = sizeOf(types.a), bytesC = sizeOf(types.c);
  const Matrix c{shape->m, shape->strideCm, shape->n, shape->strideCn};
  HopperProduct product{.isSwapped = !c.isRowMajor(),
                        .batch = shape->batch,
                        .m = shape->m,
                        .n = shape->n,
                        .k = shape->k};
  product.operandType = types.a;
  if (product.isSwapped && !c.isColumnMajor())
    return refused("the result is contiguous along neither of its axes");
  const bool takesOuter = !types.areFloat8() && (!types.areTf32() || isOfWarps);
  const auto a =
      operandOf({shape->m, shape->strideAm, shape->k, shape->strideAk, takesOuter}, bytes);
  const auto b =
      operandOf({shape->n, shape->strideBn, shape->k, shape->strideBk, takesOuter}, bytes);
  if ((!a || !b) && !takesOuter)
    return refused(fmt::format(
        "operand {} is not contiguous along k; products of a warpgroup take {} in no other order",
        a ? "B" : "A", nameOf(a ? types.b : types.a)));
  if (!a || !b)
    return refused(
        fmt::format("operand {} is contiguous along neither of its axes", a ? "B" : "A"));
  product.a = *a, product.b = *b;
  product.a.input = inputs.a, product.b.input = inputs.b;
  product.a.batch = shape->batchStrideA, product.b.batch = shape->batchStrideB;
  if (product.isSwapped) std::swap(product.a, product.b), std::swap(product.m, product.n);
  product.strideCm = product.isSwapped ? shape->strideCn : shape->strideCm;
  if (product.m == 1) product.strideCm = roundedUp(product.n, engineBytes / bytesC);
  product.batchStrideC = shape->batchStrideC;
  if (product.batch == 1) product.a.batch = product.b.batch = product.batchStrideC = 0;
  else if (product.batchStrideC < 1) return refused("the members of the batch write one matrix");
  const std::vector<int> &read = kernel.body[*contractionIndex(kernel)].operands;
  for (HopperOperand *operand : {&product.a, &product.b}) {
    const int value = kernel.inputs[operand->input];
    operand->isMade = read[operand->input == inputs.a ? 0 : 1] != value;
    operand->isByEngine = sizeOf(kernel.values[size_t(value)].dtype) == bytes &&
                          areWholeUnits(operand->pitch(), product.batch, operand->batch, bytes,
                                        configuration.inputs[operand->input]);
  }
  product.isByEngine =
      bytesC == 2 && areWholeUnits(product.strideCm, product.batch, product.batchStrideC, bytesC,
                                   configuration.outputs[0]);
  return {.product = product};
}

}  // namespace

namespace {

/// Whether all that stands before the contraction is one factor for each row of the skeleton's A
/// and run of whole slices of k.
bool scalesSlices(const Kernel &kernel, const HopperProduct &product) {
  if (!product.a.isMade || !product.a.isByEngine || !product.b.isByEngine ||
      sizeOf(product.operandType) != 2)
    return false;
  const std::optional<ContractionPrologue> prologue = contractionPrologue(kernel).prologue;
  if (!prologue || prologue->contraction != 1 || prologue->inputs.size() != 1) return false;
  const auto typeOf = [&](int value) { return kernel.values[size_t(value)].dtype; };
  const PrologueInput &factors = prologue->inputs[0];
  return typeOf(prologue->read) == typeOf(prologue->made) && typeOf(factors.value) == DType::f32 &&
         factors.subVector > 0 && factors.subVector % product.depth() == 0;
}

}  // namespace

/// Sums of products are scaled where an operand would be, threads make any other as they copy it,
/// or the spare ones of a warpgroup that copies nothing else.
HopperProductAnswer hopperProduct(const Kernel &kernel, const Configuration &configuration) {
  HopperProductAnswer answer = productOf(kernel, configuration, false);
  if (!answer.product) return answer;
  if (scalesSlices(kernel, *answer.product)) {
    answer.product->a.isMade = false, answer.product->a.isScaled = true;
    return answer;
  }
  const bool areAllByEngine = answer.product->a.isByEngine && answer.product->b.isByEngine;
  for (HopperOperand *operand : {&answer.product->a, &answer.product->b})
    if (operand->isMade) operand->isByEngine = areAllByEngine;
  return answer;
}

bool isMadeByEngine(const HopperProduct &product) {
  return (product.a.isMade && product.a.isByEngine) || (product.b.isMade && product.b.isByEngine);
}

HopperProductAnswer warpProduct(const Kernel &kernel, const Configuration &configuration) {
  return productOf(kernel, configuration, true);
}

NarrowSides narrowSides(const HopperContractionKnobs &knobs) {
  const bool isAlongM = knobs.tileM >= knobs.tileN;
  return {.rows = isAlongM ? knobs.tileM : knobs.tileN,
          .columns = isAlongM ? knobs.tileN : knobs.tileM,
          .isAlongM = isAlongM};
}

int hopperThreads(const HopperContractionKnobs &knobs) {
  constexpr int warp = 32, warpgroup = 128;
  return knobs.schedule == HopperSchedule::narrow ? warpgroup + warp : 3 * warpgroup;
}

int64_t hopperSharedBytes(const HopperContractionKnobs &knobs, bool madeByEngine) {
  constexpr int64_t rowBytes = 128, panelBytes = 64 * rowBytes, consumers = 2, barrierBytes = 8;
  if (knobs.schedule == HopperSchedule::narrow)
    return knobs.stages * (knobs.tileM + knobs.tileN) * rowBytes +
           int64_t(knobs.splits - 1) * knobs.tileM * knobs.tileN * 4 +
           barrierBytes * (2 * knobs.stages + 1);
  return knobs.stages * (knobs.tileM + knobs.tileN) * rowBytes +
         consumers * knobs.staging * panelBytes + partialBytes(knobs) +
         barrierBytes *
             ((madeByEngine ? 3 : 2) * knobs.stages + consumers * knobs.staging + consumers);
}

int64_t hopperTiles(const HopperProduct &product, const HopperContractionKnobs &knobs) {
  const auto tiles = [](int64_t extent, int64_t side) { return (extent + side - 1) / side; };
  return product.batch * tiles(product.m, knobs.tileM) * tiles(product.n, knobs.tileN);
}

int64_t hopperSlices(const HopperProduct &product) {
  return (product.k + product.depth() - 1) / product.depth();
}

int64_t hopperStreamBytes(const HopperProduct &product, const HopperContractionKnobs &knobs) {
  constexpr int64_t places = 2, consumers = 2, counterBytes = 4;
  if (knobs.streams == 0) return 0;
  return hopperBlocks(product, knobs) * places * knobs.tileM * knobs.tileN * 4 +
         hopperTiles(product, knobs) * consumers * counterBytes;
}

int64_t hopperBlocks(const HopperProduct &product, const HopperContractionKnobs &knobs) {
  if (knobs.sharers > 1)
    return std::min<int64_t>(hopperTiles(product, knobs), knobs.blocks) / knobs.sharers *
           knobs.sharers;
  if (knobs.streams != 0) return knobs.blocks;
  const int64_t tiles = hopperTiles(product, knobs);
  const bool isPersistent = knobs.splits == 1 && knobs.schedule != HopperSchedule::narrow;
  return isPersistent ? std::min<int64_t>(tiles, knobs.blocks) : tiles * knobs.splits;
}

std::string hopperTileRefusal(const HopperProduct &product, const HopperContractionKnobs &knobs,
                              int epilogueRegisters) {
  constexpr int64_t mostBlocks = std::numeric_limits<int32_t>::max() / 2;
  if (const int64_t blocks = hopperTiles(product, knobs) * knobs.splits; blocks > mostBlocks)
    return fmt::format("{} tiles and splits; the limit is {}: take larger ones", blocks,
                       mostBlocks);
  if (hopperSlices(product) < knobs.splits)
    return fmt::format("k of {} over {} blocks; each takes {} at least", product.k, knobs.splits,
                       product.depth());
  if (knobs.schedule == HopperSchedule::narrow) return narrowTileRefusal(product, knobs);
  if (knobs.sharers > 1)
    if (std::string reason = sharersRefusal(product, knobs); !reason.empty()) return reason;
  if (knobs.streams != 0)
    if (std::string reason = streamRefusal(product, knobs, epilogueRegisters == 0); !reason.empty())
      return reason;
  if ((product.isAnyMade() || product.isScaled()) && (knobs.splits > 1 || knobs.streams != 0))
    return "blocks share the k of a tile whose operand is made on load or scaled; one does";
  const bool isGuarded = !product.a.isByEngine || !product.b.isByEngine || product.isAnyMade();
  if (isGuarded && knobs.schedule == HopperSchedule::pingPong && knobs.tileM == 128 &&
      knobs.tileN == 64)
    return "ptxas serializes the products of ping-pong tiles of 128 x 64 beside copies of threads "
           "(C7514): take 64 x 128";
  const bool isCopied = !product.a.isByEngine || !product.b.isByEngine;
  if (isCopied && product.isAnyMade() && knobs.schedule == HopperSchedule::pingPong &&
      knobs.tileM == 64 && knobs.tileN == 128)
    return "ptxas serializes the products of ping-pong tiles of 64 x 128 beside threads that copy "
           "and make operands (C7514): take another tile";
  // As Plan::consumerRegisters in hopper_tiles.cuh; less where other warps join a consumer's sums
  // (ContractionRegion.cpp). What products and stores hold beside the sums was found by building
  // kernels.
  constexpr int ownRegisters = 24;
  const int rows = knobs.schedule == HopperSchedule::pingPong ? knobs.tileM : knobs.tileM / 2,
            ofTile = rows * knobs.tileN / 128;
  // Those of a slice, too, and factors of a lane's rows for groups of slices, as OfRows in
  // hopper_scaled.cuh, with their addresses.
  const int groups = product.k > 4 * product.depth() ? 2 : 1;
  const int sums = product.isScaled() ? 2 * ofTile + rows / 64 * (2 * groups + 4) : ofTile;
  const int registers = isGuarded ? 200 : ofTile >= 192 ? 240 : 232;
  if ((knobs.splits > 1 || knobs.streams != 0) && sums > 128)
    return fmt::format(
        "{} sums a thread beside those that other blocks send; 128 fit: take smaller tiles", sums);
  if (sums + ownRegisters + epilogueRegisters > registers)
    return fmt::format(
        "{} sums{} a thread and {} registers of the epilogue; {} registers hold both and {} "
        "others: take smaller tiles",
        sums, product.isScaled() ? " and factors" : "", epilogueRegisters, registers, ownRegisters);
  return "";
}

/// Blocks of 16 x 16 elements, by which masks are drawn, are no parts of tiles of 8, 24 or 40
/// columns.
std::string narrowEpilogueRefusal(const Kernel &kernel, const ContractionRegion &region) {
  if (!region.sums.empty())
    return "narrow tiles sum nothing: take others where sums follow the product";
  if (region.softmax) return "narrow tiles end with no local softmax: take others";
  for (const size_t op : region.epilogue)
    if (kernel.body[op].name == "dropout")
      return "narrow tiles draw no dropout behind the product: take others, or a loop kernel "
             "behind it";
  return "";
}

std::string hopperRefusal(const Kernel &kernel, const Configuration &configuration,
                          const HopperContractionKnobs &knobs, int64_t sharedMemoryPerBlock) {
  const ContractionRegionAnswer recognised = contractionRegion(kernel);
  if (!recognised.region) return recognised.refusal;
  if (std::string reason = hopperKnobsRefusal(knobs, sharedMemoryPerBlock); !reason.empty())
    return reason;
  const HopperProductAnswer answer = hopperProduct(kernel, configuration);
  if (!answer.product) return answer.refusal;
  if (const int64_t bytes = hopperSharedBytes(knobs, isMadeByEngine(*answer.product));
      bytes > sharedMemoryPerBlock)
    return fmt::format("{} bytes of shared memory; the limit is {}: take fewer stages", bytes,
                       sharedMemoryPerBlock);
  if (recognised.region->prologue)
    if (std::string reason =
            prologueLayoutRefusal(kernel, configuration, *recognised.region->prologue);
        !reason.empty())
      return reason;
  // A panel of the operand is asked for while the one before it leaves from the other buffer.
  const int panels = (knobs.schedule == HopperSchedule::pingPong ? knobs.tileM : knobs.tileM / 2) /
                     64 * knobs.tileN / 64;
  const auto isWhole = [](const EpilogueInput &input) {
    return input.role == EpilogueRole::result;
  };
  if (knobs.staging < 2 && panels > knobs.splits &&
      std::any_of(recognised.region->inputs.begin(), recognised.region->inputs.end(), isWhole))
    return "1 staged panel for an epilogue that reads a tensor of the result's shape; 2 are needed";
  if (answer.product->resultHasSeveralStrides() && !recognised.region->isPlain())
    return "the result has several strides along a group of its axes; an epilogue takes one of one "
           "stride";
  if (knobs.schedule == HopperSchedule::narrow)
    if (std::string reason = narrowEpilogueRefusal(kernel, *recognised.region); !reason.empty())
      return reason;
  if (std::string reason = hopperSumsRefusal(*recognised.region, *answer.product, knobs);
      !reason.empty())
    return reason;
  if (recognised.region->softmax && knobs.splits > 1)
    return fmt::format(
        "k over {} blocks beside a local softmax of the result; it takes whole tiles",
        knobs.splits);
  if (std::string reason =
          softmaxRefusal(kernel, configuration, *recognised.region, !answer.product->isSwapped);
      !reason.empty())
    return reason;
  const ContractionGroups groups =
      groupsAsLaidOut(kernel, *recognised.region, configuration.outputs[0]);
  for (const EpilogueSum &sum : recognised.region->sums)
    if (!isContiguous(kernel, groups, sum, configuration.outputs[sum.output]))
      return fmt::format("'{}', a sum, does not lie as its axes do in the result",
                         kernel.values[size_t(kernel.outputs[sum.output])].name);
  return hopperTileRefusal(*answer.product, knobs, epilogueRegisters(kernel, *recognised.region));
}

namespace {

std::string tileRefusal(const HopperContractionKnobs &knobs) {
  constexpr int widths[] = {64, 128, 192, 256};
  const int rowsOfConsumer =
      knobs.schedule == HopperSchedule::pingPong ? knobs.tileM : knobs.tileM / 2;
  if (rowsOfConsumer != 64 && rowsOfConsumer != 128)
    return fmt::format("{} tiles of {} rows; a consumer takes 64 or 128", nameOf(knobs.schedule),
                       knobs.tileM);
  if (std::find(std::begin(widths), std::end(widths), knobs.tileN) == std::end(widths))
    return fmt::format("tiles of {} columns; 64, 128, 192 and 256 are taken", knobs.tileN);
  if (rowsOfConsumer * knobs.tileN > 128 * 192)
    return fmt::format("{} x {} sums a consumer; 128 x 192 fit its registers", rowsOfConsumer,
                       knobs.tileN);
  return "";
}

}  // namespace

std::string hopperKnobsRefusal(const HopperContractionKnobs &knobs, int64_t sharedMemoryPerBlock) {
  std::string refusal =
      knobs.schedule == HopperSchedule::narrow ? narrowKnobsRefusal(knobs) : tileRefusal(knobs);
  if (!refusal.empty()) return refusal;
  if (knobs.stages < 2 || knobs.staging < 1 || knobs.rasterM < 1 || knobs.blocks < 1)
    return "less than 2 stages, or less than 1 staged panel, raster or block";
  if (knobs.splits != 1 && knobs.splits != 2 && knobs.splits != 4 && knobs.splits != 8)
    return fmt::format("k over {} blocks; clusters of 1, 2, 4 and 8 are taken", knobs.splits);
  if (knobs.sharers != 1 && knobs.sharers != 2)
    return fmt::format("slices of B for {} blocks; 1 and 2 are taken", knobs.sharers);
  if (knobs.sharers > 1 &&
      (knobs.schedule == HopperSchedule::narrow || knobs.splits > 1 || knobs.streams != 0))
    return "slices of B for several blocks in narrow tiles, or beside k over several blocks, or in "
           "equal runs of slices; they are for whole tiles";
  if (knobs.sharers > 1 &&
      (knobs.tileN / knobs.sharers % 64 != 0 || knobs.rasterM % knobs.sharers != 0 ||
       knobs.blocks % knobs.sharers != 0))
    return fmt::format(
        "tiles of {} columns, raster {} and {} blocks for {} that share slices of B; each loads 64 "
        "columns or a multiple, and raster and "
        "blocks are multiples",
        knobs.tileN, knobs.rasterM, knobs.blocks, knobs.sharers);
  if (knobs.streams != 0 && knobs.streams != 1)
    return fmt::format("streams of {}; 0 and 1 are taken", knobs.streams);
  if (knobs.streams != 0 && (knobs.schedule != HopperSchedule::cooperative || knobs.splits != 1))
    return "equal runs of slices in ping-pong tiles, or with k over several blocks; cooperative "
           "tiles with k in one block are taken";
  if (const int64_t bytes = hopperSharedBytes(knobs); bytes > sharedMemoryPerBlock)
    return fmt::format("{} bytes of shared memory; the limit is {}: take fewer stages", bytes,
                       sharedMemoryPerBlock);
  return "";
}

}  // namespace weft
