// Limits of tiles on sm_90a, and the GEMM as WGMMA takes it; see Sm90Tile.h.
#include "codegen/families/gemm_sm90/Sm90Tile.h"

#include "codegen/families/contraction/EpilogueLimits.h"
#include "codegen/families/gemm_sm90/Sm90EpilogueReduction.h"
#include "codegen/families/gemm_sm90/Sm90Strides.h"
#include "kernel/ContractionPrologue.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "kernel/LastLayouts.h"
#include "kernel/StridedBatchedGemm.h"

#include <algorithm>
#include <limits>

namespace weft {
namespace {

/// Of a GEMM, as the kernel counts them.
constexpr int64_t mostKTiles = std::numeric_limits<int32_t>::max() - 512;

/// Accumulators of other blocks of the cluster, in fp32: a block stores every n-th subtile of 64
/// x 64 of each working consumer.
int64_t partialBytes(const Sm90GemmKnobs &knobs) {
  constexpr int64_t bytesOfPart = 64 * 64 * 4;
  const int64_t consumers = knobs.schedule == Sm90Schedule::pingPong ? 1 : 2,
                subtiles = int64_t(knobs.tileM) * knobs.tileN / (64 * 64) / consumers;
  return consumers * ((subtiles + knobs.splitK - 1) / knobs.splitK) * (knobs.splitK - 1) *
         bytesOfPart;
}

constexpr int singleConsumerMaxColumns = 48;  // at most; as many as wgmma_f16_small_n.cuh has

/// Rows of a warpgroup's instruction that lie beyond a tile of 32 are whatever follows in shared
/// memory.
std::string singleConsumerKnobsRejection(const Sm90GemmKnobs &knobs) {
  const SingleConsumerSides sides = singleConsumerSides(knobs);
  if ((sides.rows != 32 && sides.rows != 64) || sides.columns < 8 ||
      sides.columns > singleConsumerMaxColumns || sides.columns % 8 != 0)
    return fmt::format(
        "single-consumer tiles of {} x {}; one side is 32 or 64, the other one a multiple of 8 up "
        "to {}, "
        "and not more",
        knobs.tileM, knobs.tileN, singleConsumerMaxColumns);
  constexpr Sm90GemmKnobs usual;
  if (knobs.epilogueStages != usual.epilogueStages || knobs.groupM != usual.groupM)
    return fmt::format(
        "single-consumer tiles with {} epilogue stages and group-M {}; they have neither, which {} "
        "and {} "
        "stand for",
        knobs.epilogueStages, knobs.groupM, usual.epilogueStages, usual.groupM);
  if (sides.rows < 64 && knobs.stages * sides.columns < 64 - sides.rows)
    return fmt::format(
        "{} stages of {} columns behind {} rows; an instruction reads 64 rows: take more stages",
        knobs.stages, sides.columns, sides.rows);
  return "";
}

std::string singleConsumerTileRejection(const GemmProblem &gemm, const Sm90GemmKnobs &knobs) {
  const SingleConsumerSides sides = singleConsumerSides(knobs);
  const GemmOperand &rows = sides.isAlongM ? gemm.a : gemm.b,
                    &columns = sides.isAlongM ? gemm.b : gemm.a;
  if (sizeOf(gemm.operandType) != 2)
    return "single-consumer tiles multiply halves; 8-bit floats and tf32 take others";
  if (gemm.hasSeveralStrides())
    return "single-consumer tiles take one stride along each group of axes: take others where "
           "there are "
           "several";
  if (!rows.usesTma || !columns.usesTma)
    return "single-consumer tiles take operands whose rows start at multiples of 16 bytes";
  if (gemm.isAnyTransformed() || gemm.isScaled())
    return "single-consumer tiles take operands as they are in memory";
  if (!columns.isAlongK())
    return fmt::format("a single-consumer tile takes {} {} of an operand that lies along k",
                       sides.columns, sides.isAlongM ? "columns" : "rows");
  if (!rows.isAlongK() && sides.rows < 64)
    return fmt::format(
        "{} of an operand that does not lie along k; a single-consumer tile takes 64", sides.rows);
  return "";
}

/// Where tiles are many, or whole waves of them, blocks that share some have nothing to gain,
/// unless k are packed tokens, whose number is known at run time: other tiles multiply all that
/// fit.
std::string streamKRejection(const GemmProblem &gemm, const Sm90GemmKnobs &knobs, bool isPlain) {
  constexpr int64_t mostWaves = 4, fewestKTiles = 2;
  const int64_t tiles = sm90Tiles(gemm, knobs), kTiles = tiles * sm90KTiles(gemm);
  if (!isPlain)
    return "stream-K runs of k-tiles have no epilogue: take others where something follows the "
           "GEMM";
  if (!gemm.a.usesTma || !gemm.b.usesTma)
    return "stream-K runs of k-tiles take operands whose rows start at multiples of 16 bytes";
  if (!gemm.sumsTokens && (tiles % knobs.blocks == 0 || tiles > mostWaves * knobs.blocks))
    return fmt::format(
        "stream-K runs of k-tiles of {} tiles for {} blocks; at most {} for each are taken, in no "
        "whole waves",
        tiles, knobs.blocks, mostWaves);
  if (kTiles < fewestKTiles * knobs.blocks)
    return fmt::format("stream-K runs of {} k-tiles for {} blocks; each takes {} at least", kTiles,
                       knobs.blocks, fewestKTiles);
  if (kTiles > mostKTiles)
    return fmt::format("stream-K runs of {} k-tiles; the limit is {}", kTiles, mostKTiles);
  if (const int64_t bytes = streamKBytes(gemm, knobs); bytes > streamKPartialsLimit)
    return fmt::format(
        "{} bytes of accumulators of tiles that blocks share; a kernel keeps {} for itself: take "
        "smaller "
        "tiles or fewer blocks",
        bytes, streamKPartialsLimit);
  return "";
}

/// A cluster's tiles are one below the other: in every group along m, and in the last one.
std::string multicastRejection(const GemmProblem &gemm, const Sm90GemmKnobs &knobs) {
  if (!gemm.a.usesTma || !gemm.b.usesTma || gemm.isAnyTransformed())
    return "blocks that share k-tiles of B take operands from memory, whose rows start at "
           "multiples "
           "of 16 bytes";
  if (gemm.hasSeveralStrides())
    return "blocks that share k-tiles of B take one stride along each group of axes: take others "
           "where there are several";
  if (const int64_t rows = (gemm.m + knobs.tileM - 1) / knobs.tileM; rows % knobs.multicastB != 0)
    return fmt::format(
        "{} tiles along m for {} blocks that share k-tiles of B; they take a multiple", rows,
        knobs.multicastB);
  return "";
}

/// Whether a prologue computes one of the operands: its k-tiles are not boxes of a tensor in
/// memory, so that dimensions of a tensor map cannot describe it.
bool readsTransformedOperand(const Kernel &kernel) {
  const auto contraction = contractionIndex(kernel);
  if (!contraction) return false;
  const std::vector<ValueId> &read = kernel.body[*contraction].operands;
  return std::ranges::any_of(
      read, [&](ValueId value) { return std::ranges::count(kernel.inputs, value) == 0; });
}

}  // namespace

namespace {

/// Whether the prologue is one factor for each row of the kernel template's A and run of whole
/// k-tiles.
bool scalesKTiles(const Kernel &kernel, const GemmProblem &gemm) {
  if (!gemm.a.isTransformed || !gemm.a.usesTma || !gemm.b.usesTma || sizeOf(gemm.operandType) != 2)
    return false;
  const std::optional<ContractionPrologue> prologue =
      contractionPrologue(kernel).value_or(std::nullopt);
  if (!prologue || prologue->contraction != 1 || prologue->inputs.size() != 1) return false;
  const auto typeOf = [&](ValueId value) { return kernel.values[size_t(value)].dtype; };
  const PrologueInput &factors = prologue->inputs[0];
  return typeOf(prologue->read) == typeOf(prologue->made) && typeOf(factors.value) == DType::f32 &&
         factors.subVector > 0 && factors.subVector % gemm.depth() == 0;
}

/// A prologue of such factors scales the accumulators. Any other is computed by the threads that
/// copy the operand, or by the spare warps of the producer warpgroup where TMA loads it.
Expected<GemmProblem, Reason> problemOf(const Kernel &kernel, const Configuration &configuration) {
  if (!stridedBatchedGemm(kernel, configuration)) {
    if (!readsTransformedOperand(kernel)) return multiStrideProblem(kernel, configuration);
    return rejected(
        "the layouts give a group of axes several strides, which an operand that "
        "is transformed on load does not take");
  }
  Expected<GemmProblem, Reason> answer = gemmProblem(kernel, configuration, false);
  if (!answer) return answer;
  if (scalesKTiles(kernel, *answer)) {
    answer->a.isTransformed = false, answer->a.isScaled = true;
    return answer;
  }
  const bool areAllTma = answer->a.usesTma && answer->b.usesTma;
  for (GemmOperand *operand : {&answer->a, &answer->b})
    if (operand->isTransformed) operand->usesTma = areAllTma;
  return answer;
}

}  // namespace

Expected<GemmProblem, Reason> wgmmaProblem(const Kernel &kernel,
                                           const Configuration &configuration) {
  thread_local LastLayouts<Expected<GemmProblem, Reason>> last;
  return last.of([&] { return problemOf(kernel, configuration); }, kernel, configuration);
}

bool isTransformedInPlace(const GemmProblem &gemm) {
  return (gemm.a.isTransformed && gemm.a.usesTma) || (gemm.b.isTransformed && gemm.b.usesTma);
}

SingleConsumerSides singleConsumerSides(const Sm90GemmKnobs &knobs) {
  const bool isAlongM = knobs.tileM >= knobs.tileN;
  return {.rows = isAlongM ? knobs.tileM : knobs.tileN,
          .columns = isAlongM ? knobs.tileN : knobs.tileM,
          .isAlongM = isAlongM};
}

int sm90Threads(const Sm90GemmKnobs &knobs) {
  constexpr int warp = 32, warpgroup = 128;
  return knobs.schedule == Sm90Schedule::singleConsumer ? warpgroup + warp : 3 * warpgroup;
}

int64_t sm90SharedBytes(const Sm90GemmKnobs &knobs, bool isTransformedInPlace) {
  constexpr int64_t rowBytes = 128, subtileBytes = 64 * rowBytes, consumers = 2, barrierBytes = 8;
  if (knobs.schedule == Sm90Schedule::singleConsumer)
    return knobs.stages * (knobs.tileM + knobs.tileN) * rowBytes +
           int64_t(knobs.splitK - 1) * knobs.tileM * knobs.tileN * 4 +
           barrierBytes * (2 * knobs.stages + 1);
  return knobs.stages * (knobs.tileM + knobs.tileN) * rowBytes +
         consumers * knobs.epilogueStages * subtileBytes + partialBytes(knobs) +
         barrierBytes * ((isTransformedInPlace ? 3 : 2) * knobs.stages +
                         consumers * knobs.epilogueStages + consumers);
}

std::optional<MaskedTiles> sm90MaskedTiles(const Kernel &kernel, const ContractionRegion &region,
                                           const GemmProblem &gemm, const Sm90GemmKnobs &knobs) {
  if (knobs.schedule == Sm90Schedule::singleConsumer || knobs.splitK > 1 || knobs.streamK != 0)
    return std::nullopt;
  return maskedTiles(kernel, region, gemm.isSwapped);
}

int64_t sm90Tiles(const GemmProblem &gemm, const Sm90GemmKnobs &knobs) {
  const auto tiles = [](int64_t extent, int64_t side) { return (extent + side - 1) / side; };
  return gemm.batch * tiles(gemm.m, knobs.tileM) * tiles(gemm.n, knobs.tileN);
}

int64_t sm90KTiles(const GemmProblem &gemm) { return (gemm.k + gemm.depth() - 1) / gemm.depth(); }

int64_t streamKBytes(const GemmProblem &gemm, const Sm90GemmKnobs &knobs) {
  constexpr int64_t places = 2, consumers = 2, counterBytes = 4;
  if (knobs.streamK == 0) return 0;
  return sm90Blocks(gemm, knobs) * places * knobs.tileM * knobs.tileN * 4 +
         sm90Tiles(gemm, knobs) * consumers * counterBytes;
}

int64_t sm90Blocks(const GemmProblem &gemm, const Sm90GemmKnobs &knobs) {
  if (knobs.multicastB > 1)
    return std::min<int64_t>(sm90Tiles(gemm, knobs), knobs.blocks) / knobs.multicastB *
           knobs.multicastB;
  if (knobs.streamK != 0) return knobs.blocks;
  const int64_t tiles = sm90Tiles(gemm, knobs);
  const bool isPersistent = knobs.splitK == 1 && knobs.schedule != Sm90Schedule::singleConsumer;
  return isPersistent ? std::min<int64_t>(tiles, knobs.blocks) : tiles * knobs.splitK;
}

std::string sm90TileRejection(const GemmProblem &gemm, const Sm90GemmKnobs &knobs,
                              int epilogueRegisters) {
  constexpr int64_t mostBlocks = std::numeric_limits<int32_t>::max() / 2;
  if (const int64_t blocks = sm90Tiles(gemm, knobs) * knobs.splitK; blocks > mostBlocks)
    return fmt::format("{} tiles times split-K; the limit is {}: take larger ones", blocks,
                       mostBlocks);
  if (sm90KTiles(gemm) < knobs.splitK)
    return fmt::format("k of {} over {} blocks; each takes {} at least", gemm.k, knobs.splitK,
                       gemm.depth());
  if (knobs.schedule == Sm90Schedule::singleConsumer)
    return singleConsumerTileRejection(gemm, knobs);
  if (knobs.multicastB > 1)
    if (std::string reason = multicastRejection(gemm, knobs); !reason.empty()) return reason;
  if (knobs.streamK != 0)
    if (std::string reason = streamKRejection(gemm, knobs, epilogueRegisters == 0); !reason.empty())
      return reason;
  if ((gemm.isAnyTransformed() || gemm.isScaled()) && (knobs.splitK > 1 || knobs.streamK != 0))
    return "blocks share the k of a tile whose operand is transformed on load or scaled; one does";
  const bool isGuarded = !gemm.a.usesTma || !gemm.b.usesTma || gemm.isAnyTransformed();
  if (isGuarded && knobs.schedule == Sm90Schedule::pingPong && knobs.tileM == 128 &&
      knobs.tileN == 64)
    return "ptxas serializes the WGMMAs of ping-pong tiles of 128 x 64 beside copies of threads "
           "(C7514): take 64 x 128";
  const bool isCopied = !gemm.a.usesTma || !gemm.b.usesTma;
  if (isCopied && gemm.isAnyTransformed() && knobs.schedule == Sm90Schedule::pingPong &&
      knobs.tileM == 64 && knobs.tileN == 128)
    return "ptxas serializes the WGMMAs of ping-pong tiles of 64 x 128 beside threads that copy "
           "and make operands (C7514): take another tile";
  // As consumerRegisters in sm90_tiles.cuh; less where other warps add up a consumer's
  // partial sums (ContractionRegion.cpp). How many registers WGMMA and stores need besides the
  // accumulators was found by building kernels.
  constexpr int ownRegisters = 24;
  const int rows = knobs.schedule == Sm90Schedule::pingPong ? knobs.tileM : knobs.tileM / 2,
            ofTile = rows * knobs.tileN / 128;
  // Those of a k-tile, too, and factors of a lane's rows for groups of k-tiles, as OfRows in
  // sm90_scaled.cuh, with their addresses.
  const int groups = gemm.k > 4 * gemm.depth() ? 2 : 1;
  const int accumulators = gemm.isScaled() ? 2 * ofTile + rows / 64 * (2 * groups + 4) : ofTile;
  const int registers = isGuarded ? 200 : ofTile >= 192 ? 240 : 232;
  if ((knobs.splitK > 1 || knobs.streamK != 0) && accumulators > 128)
    return fmt::format(
        "{} accumulators a thread beside those that other blocks send; 128 fit: take smaller tiles",
        accumulators);
  if (accumulators + ownRegisters + epilogueRegisters > registers)
    return fmt::format(
        "{} accumulators{} a thread and {} registers of the epilogue; {} registers hold both and "
        "{} "
        "others: take smaller tiles",
        accumulators, gemm.isScaled() ? " and factors" : "", epilogueRegisters, registers,
        ownRegisters);
  return "";
}

/// Blocks of 16 x 16 elements, by which masks are drawn, are no parts of tiles of 8, 24 or 40
/// columns.
std::string singleConsumerEpilogueRejection(const Kernel &kernel, const ContractionRegion &region) {
  if (!region.reductions.empty())
    return "single-consumer tiles sum nothing: take others where accumulators follow the GEMM";
  if (region.softmax) return "single-consumer tiles end with no local softmax: take others";
  if (region.rotary)
    return "the partner of a rotary embedding may lie in another single-consumer tile: take others";
  for (const EpilogueInput &input : region.inputs)
    if (input.role == EpilogueRole::gathered)
      return "single-consumer tiles load operands before they multiply, at their own coordinates "
             "alone: take others";
  for (const OpId op : region.epilogue)
    if (kernel.body[op].kind == OpKind::dropout)
      return "single-consumer tiles draw no dropout behind the GEMM: take others, or a loop kernel "
             "behind it";
  return "";
}

std::string sm90RotaryRejection(const Kernel &kernel, const Configuration &configuration,
                                const ContractionRegion &region, bool isSwapped) {
  if (!region.rotary) return "";
  constexpr int64_t group = 8;  // columns of which a lane has two
  const RotatedPairs &rotary = *region.rotary;
  const std::string &axis = kernel.axes[size_t(rotary.pairs)].name;
  const bool isHalved = rotary.style == RotaryStyle::halved;
  const int64_t distance = isHalved ? rotary.turned / 2 : rotary.turned;
  if (distance % group != 0)
    return fmt::format(
        "{} of '{}' are turned in pairs of neighbours or of halves; a lane holds partners where "
        "{} are a multiple of {}",
        rotary.turned, axis, isHalved ? "half of them" : "they", group);
  const ContractionGroups groups = groupsAsLaidOut(kernel, region, configuration.outputs[0]);
  const std::vector<AxisId> &columns = groups[isSwapped ? mGroup : nGroup];
  const std::map<AxisId, int64_t> strides =
      stridesByAxis(kernel, kernel.outputs[0], configuration.outputs[0]);
  if (columns.empty() || columns.back() != rotary.pairs || strides.at(rotary.pairs) != 1)
    return fmt::format("the result is not contiguous along '{}', whose pairs are turned", axis);
  std::vector<AxisId> heads = columns;
  std::erase_if(heads, [&](AxisId one) { return kernel.axes[size_t(one)].extent == 1; });
  if (rotary.among >= 0 && (heads.size() != 2 || heads.front() != rotary.among))
    return fmt::format("a part of '{}' is turned, which is not all that heads lie along",
                       kernel.axes[size_t(rotary.among)].name);
  return "";
}

std::string sm90RotaryTileRejection(const ContractionRegion &region, const Sm90GemmKnobs &knobs) {
  constexpr int subtile = 64;
  if (!region.rotary || knobs.schedule == Sm90Schedule::singleConsumer) return "";
  const int width = knobs.tileN;
  if (width % region.rotary->extent != 0)
    return fmt::format("tiles of {} columns cut heads of {}, whose pairs are turned", width,
                       region.rotary->extent);
  if (region.rotary->among >= 0 && (region.rotary->begin * region.rotary->extent % width != 0 ||
                                    region.rotary->end * region.rotary->extent % width != 0))
    return fmt::format("tiles of {} columns hold heads that are turned and others", width);
  if (knobs.splitK > 1 && subtile % region.rotary->extent != 0)
    return fmt::format("k over {} blocks, which finish {} columns each; heads of {} are turned",
                       knobs.splitK, subtile, region.rotary->extent);
  return "";
}

std::string sm90Rejection(const Kernel &kernel, const Configuration &configuration,
                          const Sm90GemmKnobs &knobs, int64_t sharedMemoryPerBlock) {
  const Expected<ContractionRegion, Reason> &recognised = contractionRegion(kernel);
  if (!recognised) return recognised.error().text;
  if (std::string reason = sm90KnobsRejection(knobs, sharedMemoryPerBlock); !reason.empty())
    return reason;
  const Expected<GemmProblem, Reason> answer = wgmmaProblem(kernel, configuration);
  if (!answer) return answer.error().text;
  if (const int64_t bytes = sm90SharedBytes(knobs, isTransformedInPlace(*answer));
      bytes > sharedMemoryPerBlock)
    return fmt::format("{} bytes of shared memory; the limit is {}: take fewer stages", bytes,
                       sharedMemoryPerBlock);
  if (recognised->prologue)
    if (std::string reason = prologueLayoutRejection(kernel, configuration, *recognised->prologue);
        !reason.empty())
      return reason;
  // A subtile of the operand is loaded while the previous one is stored from the other buffer.
  const int subtiles = (knobs.schedule == Sm90Schedule::pingPong ? knobs.tileM : knobs.tileM / 2) /
                       64 * knobs.tileN / 64;
  const auto isWhole = [](const EpilogueInput &input) {
    return input.role == EpilogueRole::result;
  };
  if (knobs.epilogueStages < 2 && subtiles > knobs.splitK &&
      std::any_of(recognised->inputs.begin(), recognised->inputs.end(), isWhole))
    return "1 epilogue stage for an epilogue that reads a tensor of the result's shape; 2 are "
           "needed";
  if (answer->resultHasSeveralStrides() && !recognised->isPlain())
    return "the result has several strides along a group of its axes; an epilogue takes one of one "
           "stride";
  if (knobs.schedule == Sm90Schedule::singleConsumer)
    if (std::string reason = singleConsumerEpilogueRejection(kernel, *recognised); !reason.empty())
      return reason;
  if (std::string reason = sm90ReductionRejection(*recognised, *answer, knobs); !reason.empty())
    return reason;
  if (std::string reason = sm90RotaryTileRejection(*recognised, knobs); !reason.empty())
    return reason;
  if (std::string reason =
          sm90RotaryRejection(kernel, configuration, *recognised, answer->isSwapped);
      !reason.empty())
    return reason;
  if (recognised->softmax && knobs.splitK > 1)
    return fmt::format(
        "k over {} blocks beside a local softmax of the result; it takes whole tiles",
        knobs.splitK);
  if (std::string reason = softmaxRejection(kernel, configuration, *recognised, !answer->isSwapped);
      !reason.empty())
    return reason;
  const ContractionGroups groups = groupsAsLaidOut(kernel, *recognised, configuration.outputs[0]);
  for (const EpilogueReduction &sum : recognised->reductions)
    if (!isContiguous(kernel, groups, sum, configuration.outputs[sum.output]))
      return fmt::format("'{}', a sum, does not lie as its axes do in the result",
                         kernel.values[size_t(kernel.outputs[sum.output])].name);
  return sm90TileRejection(*answer, knobs, epilogueRegisters(kernel, *recognised));
}

namespace {

std::string tileRejection(const Sm90GemmKnobs &knobs) {
  constexpr int widths[] = {64, 128, 192, 256};
  const int rowsOfConsumer =
      knobs.schedule == Sm90Schedule::pingPong ? knobs.tileM : knobs.tileM / 2;
  if (rowsOfConsumer != 64 && rowsOfConsumer != 128)
    return fmt::format("{} tiles of {} rows; a consumer takes 64 or 128", nameOf(knobs.schedule),
                       knobs.tileM);
  if (std::find(std::begin(widths), std::end(widths), knobs.tileN) == std::end(widths))
    return fmt::format("tiles of {} columns; 64, 128, 192 and 256 are taken", knobs.tileN);
  if (rowsOfConsumer * knobs.tileN > 128 * 192)
    return fmt::format("{} x {} accumulators a consumer; 128 x 192 fit its registers",
                       rowsOfConsumer, knobs.tileN);
  return "";
}

}  // namespace

std::string sm90KnobsRejection(const Sm90GemmKnobs &knobs, int64_t sharedMemoryPerBlock) {
  std::string rejection = knobs.schedule == Sm90Schedule::singleConsumer
                              ? singleConsumerKnobsRejection(knobs)
                              : tileRejection(knobs);
  if (!rejection.empty()) return rejection;
  if (knobs.stages < 2) return fmt::format("{} stages; 2 or more are taken", knobs.stages);
  if (knobs.epilogueStages < 1)
    return fmt::format("{} epilogue stages; 1 or more are taken", knobs.epilogueStages);
  if (knobs.groupM < 1) return fmt::format("group-M {}; 1 or more is taken", knobs.groupM);
  if (knobs.blocks < 1) return fmt::format("{} blocks; 1 or more are taken", knobs.blocks);
  if (knobs.splitK != 1 && knobs.splitK != 2 && knobs.splitK != 4 && knobs.splitK != 8)
    return fmt::format("k over {} blocks; clusters of 1, 2, 4 and 8 are taken", knobs.splitK);
  if (knobs.multicastB != 1 && knobs.multicastB != 2)
    return fmt::format("k-tiles of B for {} blocks; 1 and 2 are taken", knobs.multicastB);
  if (knobs.multicastB > 1 &&
      (knobs.schedule == Sm90Schedule::singleConsumer || knobs.splitK > 1 || knobs.streamK != 0))
    return "k-tiles of B for several blocks in single-consumer tiles, or beside k over several "
           "blocks, or in stream-K runs of k-tiles; they are for whole tiles";
  if (knobs.multicastB > 1 &&
      (knobs.tileN / knobs.multicastB % 64 != 0 || knobs.groupM % knobs.multicastB != 0 ||
       knobs.blocks % knobs.multicastB != 0))
    return fmt::format(
        "tiles of {} columns, group-M {} and {} blocks for {} that share k-tiles of B; each loads "
        "64 columns or a multiple, and group-M and blocks are multiples of those that share",
        knobs.tileN, knobs.groupM, knobs.blocks, knobs.multicastB);
  if (knobs.streamK != 0 && knobs.streamK != 1)
    return fmt::format("streamK of {}; 0 and 1 are taken", knobs.streamK);
  if (knobs.streamK != 0 && (knobs.schedule != Sm90Schedule::cooperative || knobs.splitK != 1))
    return "stream-K runs of k-tiles in ping-pong tiles, or with k over several blocks; "
           "cooperative "
           "tiles with k in one block are taken";
  if (const int64_t bytes = sm90SharedBytes(knobs); bytes > sharedMemoryPerBlock)
    return fmt::format("{} bytes of shared memory; the limit is {}: take fewer stages", bytes,
                       sharedMemoryPerBlock);
  return "";
}

}  // namespace weft
