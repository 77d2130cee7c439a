// Plain contraction family: one einsum of two operands by tiled FMA, under every layout that makes
// it one batched strided GEMM. The only one of f32 that is not read as tf32, beside the library.
#include "codegen/families/contraction/ContractionLayouts.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "kernel/StridedBatchedGemm.h"
#include "passes/configure/Family.h"

#include <cmath>

namespace weft {
namespace {

/// Tiles of plain FMA code: many elements a thread where there are many tiles, small tiles where
/// there are few.
constexpr FmaGemmKnobs tiles[] = {
    {.tileM = 32, .tileN = 32, .tileK = 16, .threadM = 4, .threadN = 4, .stages = 3},
    {.tileM = 64, .tileN = 32, .tileK = 16, .threadM = 8, .threadN = 4, .stages = 3},
    {.tileM = 32, .tileN = 64, .tileK = 16, .threadM = 4, .threadN = 8, .stages = 3},
    {.tileM = 64, .tileN = 64, .tileK = 16, .threadM = 4, .threadN = 4, .stages = 3},
    {.tileM = 64, .tileN = 64, .tileK = 16, .threadM = 8, .threadN = 4, .stages = 3},
    {.tileM = 64, .tileN = 64, .tileK = 16, .threadM = 8, .threadN = 8, .stages = 3},
    {.tileM = 128, .tileN = 64, .tileK = 16, .threadM = 8, .threadN = 8, .stages = 3},
    {.tileM = 64, .tileN = 128, .tileK = 16, .threadM = 8, .threadN = 8, .stages = 3},
    {.tileM = 128, .tileN = 128, .tileK = 8, .threadM = 8, .threadN = 8, .stages = 4},
    {.tileM = 128, .tileN = 128, .tileK = 16, .threadM = 8, .threadN = 8, .stages = 2},
    {.tileM = 128, .tileN = 128, .tileK = 16, .threadM = 8, .threadN = 8, .stages = 3},
};

/// The same of blocks whose groups of threads share a long sum, for few tiles.
constexpr FmaGemmKnobs groupedTiles[] = {
    {.tileM = 32, .tileN = 16, .tileK = 64, .threadM = 4, .threadN = 4, .stages = 4, .kGroups = 8},
    {.tileM = 16, .tileN = 32, .tileK = 64, .threadM = 4, .threadN = 4, .stages = 4, .kGroups = 8},
    {.tileM = 32, .tileN = 32, .tileK = 64, .threadM = 4, .threadN = 4, .stages = 3, .kGroups = 4},
    {.tileM = 32, .tileN = 32, .tileK = 64, .threadM = 8, .threadN = 4, .stages = 4, .kGroups = 8},
    {.tileM = 64, .tileN = 32, .tileK = 64, .threadM = 8, .threadN = 8, .stages = 3, .kGroups = 8},
    {.tileM = 32, .tileN = 64, .tileK = 64, .threadM = 8, .threadN = 8, .stages = 3, .kGroups = 8},
    {.tileM = 32, .tileN = 64, .tileK = 32, .threadM = 8, .threadN = 4, .stages = 4, .kGroups = 4},
    {.tileM = 64, .tileN = 64, .tileK = 16, .threadM = 8, .threadN = 8, .stages = 4, .kGroups = 2},
    {.tileM = 64, .tileN = 64, .tileK = 32, .threadM = 8, .threadN = 8, .stages = 3, .kGroups = 4},
};

/// Whether tiles of 64 x 64 leave multiprocessors without work that groups could share.
bool hasFewTiles(const Kernel &kernel, const Device &device) {
  const ContractionGroups groups = contractionGroups(kernel, *contractionValues(kernel));
  std::array<double, contractionGroupCount> extents{};
  for (size_t group = 0; group < contractionGroupCount; ++group) {
    extents[group] = 1;
    for (const AxisId axis : groups[group]) extents[group] *= double(kernel.axes[axis].extent);
  }
  const double tiles =
      extents[batchGroup] * std::ceil(extents[mGroup] / 64) * std::ceil(extents[nGroup] / 64);
  return extents[kGroup] >= 128 && tiles <= 4.0 * device.multiprocessors;
}

}  // namespace

Expected<ConfigurationSpace, Reason> fmaGemmSpace(const Kernel &kernel, const Device &device) {
  if (std::string reason = contractionRejection(kernel); !reason.empty())
    return rejected(std::move(reason));
  ConfigurationSpace space{.family = &fmaGemmFamily,
                           .tuples = contractionTuples(kernel),
                           .knobs = {std::begin(tiles), std::end(tiles)}};
  if (hasFewTiles(kernel, device))
    space.knobs.insert(space.knobs.end(), std::begin(groupedTiles), std::end(groupedTiles));
  return space;
}

}  // namespace weft
