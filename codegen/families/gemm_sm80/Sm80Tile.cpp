// Limits of the tiles of gemm-sm80; see Sm80Tile.h.
#include "codegen/families/gemm_sm80/Sm80Tile.h"

#include "codegen/families/contraction/EpilogueLimits.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {
namespace {

constexpr int warpSize = 32, mostThreads = 256;

bool isSide(int side) { return side == 32 || side == 64 || side == 128 || side == 256; }

}  // namespace

int sm80Threads(const Sm80GemmKnobs &knobs) { return warpSize * knobs.warpsM * knobs.warpsN; }

int64_t sm80SharedBytes(const Sm80GemmKnobs &knobs, int64_t elementBytes) {
  const int64_t kTiles = int64_t(knobs.stages) * (knobs.tileM + knobs.tileN) * knobs.tileK;
  return elementBytes *
         (elementBytes == 2 ? std::max(kTiles, int64_t(knobs.tileM) * knobs.tileN) : kTiles);
}

int64_t sm80Tiles(const GemmProblem &gemm, const Sm80GemmKnobs &knobs) {
  const auto tiles = [](int64_t extent, int64_t side) { return (extent + side - 1) / side; };
  return gemm.batch * tiles(gemm.m, knobs.tileM) * tiles(gemm.n, knobs.tileN);
}

std::string sm80KnobsRejection(const Sm80GemmKnobs &knobs, int64_t sharedMemoryPerBlock,
                               int64_t elementBytes) {
  const int64_t chunk = 16 / elementBytes;
  if (!isSide(knobs.tileM) || !isSide(knobs.tileN))
    return fmt::format("tiles of {} x {}; sides of 32, 64, 128 and 256 are taken", knobs.tileM,
                       knobs.tileN);
  if (knobs.tileK != 32 && knobs.tileK != 64)
    return fmt::format("k-tiles of {} of k; 32 and 64 are taken", knobs.tileK);
  if (elementBytes == 4 && knobs.tileK != 32)
    return fmt::format("k-tiles of {} of k; 32 are taken of tf32", knobs.tileK);
  if (knobs.stages < 2) return fmt::format("{} stages; 2 or more are taken", knobs.stages);
  if (knobs.groupM < 1) return fmt::format("group-M {}; 1 or more is taken", knobs.groupM);
  const auto divides = [](int tile, int warps) { return warps > 0 && tile % (16 * warps) == 0; };
  if (!divides(knobs.tileM, knobs.warpsM) || !divides(knobs.tileN, knobs.warpsN))
    return fmt::format("{} x {} warps divide a tile of {} x {} into no blocks of 16 x 16",
                       knobs.warpsM, knobs.warpsN, knobs.tileM, knobs.tileN);
  const int threads = sm80Threads(knobs);
  if (threads > mostThreads)
    return fmt::format("{} threads a block; the limit is {}", threads, mostThreads);
  // Every pass of the block over a k-tile, and over the tile of C, is whole, and eight rows or a
  // multiple of them.
  for (const int side : {knobs.tileM, knobs.tileN})
    if (threads < std::max(side, 64) || side * knobs.tileK / chunk % threads != 0)
      return fmt::format(
          "{} threads do not copy k-tiles of {} x {} in whole passes; take from {} to {} threads",
          threads, side, knobs.tileK, std::max(side, 64), side * knobs.tileK / chunk);
  if (const int accumulators = knobs.tileM * knobs.tileN / threads; accumulators > 128)
    return fmt::format("{} accumulators a thread; 128 fit its registers", accumulators);
  if (const int64_t bytes = sm80SharedBytes(knobs, elementBytes); bytes > sharedMemoryPerBlock)
    return fmt::format("{} bytes of shared memory; the limit is {}: take fewer stages", bytes,
                       sharedMemoryPerBlock);
  return "";
}

std::string warpEpilogueRejection(const Kernel &kernel, const ContractionRegion &region) {
  if (region.softmax && gemmTypes(kernel).areTf32())
    return fmt::format("'{}' follows a GEMM of tf32; mma.sync end so where operands have 16 bits",
                       nameOf(kernel.body[region.softmax->op].kind));
  if (region.rotary)
    return "'rotary' reads the partner of each element; a lane of mma.sync need not hold it";
  if (region.reductions.empty()) return "";
  const std::string &name =
      kernel.values[size_t(kernel.body[region.reductions[0].op].results[0])].name;
  return fmt::format(
      "'{}' is a sum of what the epilogue computes; epilogues of mma.sync add up nothing "
      "over a tile",
      name);
}

std::string sm80SoftmaxRejection(const Sm80GemmKnobs &knobs, const ContractionRegion &region) {
  if (const int columns = knobs.tileN / knobs.warpsN;
      region.softmax && columns % region.softmax->length != 0)
    return fmt::format(
        "{} columns a warp, and sub-vectors of {}; a warp holds whole ones: take wider tiles or "
        "fewer warps along n",
        columns, region.softmax->length);
  return "";
}

int sm80EpilogueRegisters(const Kernel &kernel, const ContractionRegion &region) {
  constexpr int ofGathered = 26;  // beside what EpilogueLimits counts
  const auto gathered =
      std::ranges::count(region.inputs, EpilogueRole::gathered, &EpilogueInput::role);
  return epilogueRegisters(kernel, region) + ofGathered * int(gathered);
}

std::string sm80RegistersRejection(const Sm80GemmKnobs &knobs, int epilogueRegisters) {
  // Threads load every tensor: the first of the result's shape needs addresses, too. How many
  // registers the coordinates of a fragment need was found by building kernels.
  constexpr int mostRegisters = 255, ownRegisters = 40;
  const int accumulators = knobs.tileM * knobs.tileN / sm80Threads(knobs);
  if (epilogueRegisters == 0 || accumulators + ownRegisters + epilogueRegisters <= mostRegisters)
    return "";
  return fmt::format(
      "{} accumulators a thread and {} registers of the epilogue; {} registers hold both and {} "
      "others: "
      "take smaller tiles",
      accumulators, epilogueRegisters, mostRegisters, ownRegisters);
}

}  // namespace weft
