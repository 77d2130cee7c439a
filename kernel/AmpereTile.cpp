// Limits of the skeleton's tiles; see AmpereTile.h.
#include "kernel/AmpereTile.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {
namespace {

constexpr int warpSize = 32, mostThreads = 256;

bool isSide(int side) { return side == 32 || side == 64 || side == 128 || side == 256; }

}  // namespace

int ampereThreads(const AmpereContractionKnobs &knobs) {
  return warpSize * knobs.warpsM * knobs.warpsN;
}

int64_t ampereSharedBytes(const AmpereContractionKnobs &knobs, int64_t elementBytes) {
  const int64_t slices = int64_t(knobs.stages) * (knobs.tileM + knobs.tileN) * knobs.tileK;
  return elementBytes *
         (elementBytes == 2 ? std::max(slices, int64_t(knobs.tileM) * knobs.tileN) : slices);
}

int64_t ampereTiles(const HopperProduct &product, const AmpereContractionKnobs &knobs) {
  const auto tiles = [](int64_t extent, int64_t side) { return (extent + side - 1) / side; };
  return product.batch * tiles(product.m, knobs.tileM) * tiles(product.n, knobs.tileN);
}

std::string ampereKnobsRefusal(const AmpereContractionKnobs &knobs, int64_t sharedMemoryPerBlock,
                               int64_t elementBytes) {
  const int64_t chunk = 16 / elementBytes;
  if (!isSide(knobs.tileM) || !isSide(knobs.tileN))
    return fmt::format("tiles of {} x {}; sides of 32, 64, 128 and 256 are taken", knobs.tileM,
                       knobs.tileN);
  if (knobs.tileK != 32 && knobs.tileK != 64)
    return fmt::format("slices of {} of k; 32 and 64 are taken", knobs.tileK);
  if (elementBytes == 4 && knobs.tileK != 32)
    return fmt::format("slices of {} of k; 32 are taken of tf32", knobs.tileK);
  if (knobs.stages < 2 || knobs.rasterM < 1) return "less than 2 stages or a raster of less than 1";
  const auto divides = [](int tile, int warps) { return warps > 0 && tile % (16 * warps) == 0; };
  if (!divides(knobs.tileM, knobs.warpsM) || !divides(knobs.tileN, knobs.warpsN))
    return fmt::format("{} x {} warps divide a tile of {} x {} into no blocks of 16 x 16",
                       knobs.warpsM, knobs.warpsN, knobs.tileM, knobs.tileN);
  const int threads = ampereThreads(knobs);
  if (threads > mostThreads)
    return fmt::format("{} threads a block; the limit is {}", threads, mostThreads);
  // Every pass of the block over a slice, and over the tile of C, is whole, and eight rows or a
  // multiple of them.
  for (const int side : {knobs.tileM, knobs.tileN})
    if (threads < std::max(side, 64) || side * knobs.tileK / chunk % threads != 0)
      return fmt::format(
          "{} threads do not copy slices of {} x {} in whole passes; take from {} to {} threads",
          threads, side, knobs.tileK, std::max(side, 64), side * knobs.tileK / chunk);
  if (const int sums = knobs.tileM * knobs.tileN / threads; sums > 128)
    return fmt::format("{} sums a thread; 128 fit its registers", sums);
  if (const int64_t bytes = ampereSharedBytes(knobs, elementBytes); bytes > sharedMemoryPerBlock)
    return fmt::format("{} bytes of shared memory; the limit is {}: take fewer stages", bytes,
                       sharedMemoryPerBlock);
  return "";
}

std::string warpEpilogueRefusal(const Kernel &kernel, const ContractionRegion &region) {
  if (region.softmax && productTypes(kernel).areTf32())
    return fmt::format(
        "'{}' follows a product of tf32; products of a warp end so where operands have 16 bits",
        kernel.body[region.softmax->op].name);
  if (region.sums.empty()) return "";
  const std::string &name = kernel.values[size_t(kernel.body[region.sums[0].op].results[0])].name;
  return fmt::format(
      "'{}' is a sum of what the epilogue computes; epilogues of products of a warp add up nothing "
      "over a tile",
      name);
}

std::string ampereSoftmaxRefusal(const AmpereContractionKnobs &knobs,
                                 const ContractionRegion &region) {
  if (const int columns = knobs.tileN / knobs.warpsN;
      region.softmax && columns % region.softmax->length != 0)
    return fmt::format(
        "{} columns a warp, and sub-vectors of {}; a warp holds whole ones: take wider tiles or "
        "fewer warps along n",
        columns, region.softmax->length);
  return "";
}

std::string ampereRegistersRefusal(const AmpereContractionKnobs &knobs, int epilogueRegisters) {
  // Threads load every tensor: the first of the result's shape needs addresses, too. What a
  // fragment's place takes was found by building kernels.
  constexpr int mostRegisters = 255, ownRegisters = 40;
  const int sums = knobs.tileM * knobs.tileN / ampereThreads(knobs);
  if (epilogueRegisters == 0 || sums + ownRegisters + epilogueRegisters <= mostRegisters) return "";
  return fmt::format(
      "{} sums a thread and {} registers of the epilogue; {} registers hold both and {} others: "
      "take smaller tiles",
      sums, epilogueRegisters, mostRegisters, ownRegisters);
}

}  // namespace weft
