// Tensor-core contractions from sm_80 on: one einsum of two operands of f16 or bf16, or of f32 that
// is read as tf32, as one batched strided matrix product, in any orientation, with the element-wise
// ops that follow it and a local softmax at the end; operands of 16 bits may be made on load
// (kernel/ContractionPrologue.h). On sm_90a, whose own family is faster, they are tried where that
// family cannot use its copy engine.
#include "kernel/AmpereTile.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "passes/configure/AmpereCost.h"
#include "passes/configure/EpilogueLimits.h"
#include "passes/configure/Family.h"

#include <algorithm>
#include <set>
#include <span>

namespace weft {
namespace {

/// Tiles that fit the registers and the shared memory of every target, two blocks a multiprocessor
/// or one of eight warps.
constexpr AmpereContractionKnobs tiles[] = {
    {.tileM = 128, .tileN = 128, .tileK = 32, .stages = 4, .warpsM = 2, .warpsN = 2},
    {.tileM = 128, .tileN = 256, .tileK = 32, .stages = 3, .warpsM = 2, .warpsN = 4},
    {.tileM = 256, .tileN = 128, .tileK = 32, .stages = 3, .warpsM = 4, .warpsN = 2},
    {.tileM = 128, .tileN = 64, .tileK = 32, .stages = 4, .warpsM = 2, .warpsN = 2},
    {.tileM = 64, .tileN = 128, .tileK = 32, .stages = 4, .warpsM = 2, .warpsN = 2},
    {.tileM = 64, .tileN = 64, .tileK = 64, .stages = 4, .warpsM = 2, .warpsN = 2},
    {.tileM = 32, .tileN = 128, .tileK = 64, .stages = 4, .warpsM = 1, .warpsN = 4},
    {.tileM = 32, .tileN = 32, .tileK = 64, .stages = 4, .warpsM = 2, .warpsN = 1},
};
/// Of tf32, twice as large.
constexpr AmpereContractionKnobs tf32Tiles[] = {
    {.tileM = 128, .tileN = 128, .tileK = 32, .stages = 3, .warpsM = 2, .warpsN = 2},
    {.tileM = 128, .tileN = 64, .tileK = 32, .stages = 4, .warpsM = 2, .warpsN = 2},
    {.tileM = 64, .tileN = 128, .tileK = 32, .stages = 4, .warpsM = 2, .warpsN = 2},
    {.tileM = 64, .tileN = 64, .tileK = 32, .stages = 4, .warpsM = 2, .warpsN = 2},
    {.tileM = 32, .tileN = 128, .tileK = 32, .stages = 4, .warpsM = 1, .warpsN = 4},
    {.tileM = 32, .tileN = 32, .tileK = 32, .stages = 4, .warpsM = 2, .warpsN = 1},
};
constexpr double worthwhile = 1.5;  ///< modelled time of a tile against the best one's
constexpr size_t fewestTiles = 2, mostTiles = 4;  ///< for one shape of the result

std::string typeRefusal(const Kernel &kernel, const ContractionRegion &region) {
  if (std::string reason = epilogueTypesRefusal(kernel, region); !reason.empty()) return reason;
  const ProductTypes types = productTypes(kernel);
  const DType type = types.c;
  if (types.areTf32())
    return type == DType::f32
               ? ""
               : fmt::format("a result of {}; products of a warp give f32 of tf32", nameOf(type));
  for (const int value : kernel.body[region.contraction].operands)
    if (kernel.values[size_t(value)].dtype != type)
      return fmt::format("'{}' is {}, the result {}; a product of a warp has one element type here",
                         kernel.values[size_t(value)].name,
                         nameOf(kernel.values[size_t(value)].dtype), nameOf(type));
  if (!isHalf(type))
    return fmt::format("element type {}; f16, bf16, and f32 at precision tf32 are taken",
                       nameOf(type));
  return "";
}

/// Why the family does not take the kernel, whatever its layouts.
std::string kernelRefusal(const Kernel &kernel, const ContractionRegion &region,
                          const Device &device) {
  if (std::string reason = warpEpilogueRefusal(kernel, region); !reason.empty()) return reason;
  if (std::string reason = typeRefusal(kernel, region); !reason.empty()) return reason;
  if (std::string reason = epilogueTensorsRefusal(kernel, region); !reason.empty()) return reason;
  if (const DType operands = productTypes(kernel).a; !device.tensorFlops.contains(operands))
    return fmt::format("{} names no flop rate of products of {}", device.name, nameOf(operands));
  return "";
}

/// The tiles worth trying for a result of m x n, by the model, of those that leave an epilogue its
/// registers and have whole sub-vectors.
void addKnobs(const HopperProduct &product, const ContractionRegion &region, int epilogueRegisters,
              DType dtype, const Device &device, std::set<Knobs> &knobs) {
  std::vector<std::pair<double, AmpereContractionKnobs>> priced;
  const std::span<const AmpereContractionKnobs> tried =
      dtype == DType::tf32 ? std::span<const AmpereContractionKnobs>(tf32Tiles) : tiles;
  for (const AmpereContractionKnobs &one : tried)
    if (ampereKnobsRefusal(one, device.sharedMemoryPerBlock, sizeOf(dtype)).empty() &&
        ampereRegistersRefusal(one, epilogueRegisters).empty() &&
        ampereSoftmaxRefusal(one, region).empty())
      priced.emplace_back(ampereTensorSeconds(product, one, dtype, device), one);
  std::sort(priced.begin(), priced.end());
  for (size_t i = 0; i < priced.size() && i < mostTiles &&
                     (i < fewestTiles || priced[i].first <= worthwhile * priced[0].first);
       ++i)
    knobs.insert(priced[i].second);
}

}  // namespace

FamilyAnswer ampereContractionSpace(const Kernel &kernel, const Device &device) {
  if (!hasWarpProducts(device.architecture))
    return {.reason = fmt::format("{} has no asynchronous copies and products of a warp as this "
                                  "family takes; sm_80 and later have",
                                  device.architecture)};
  const ContractionRegionAnswer recognised = contractionRegion(kernel);
  if (!recognised.region) return {.reason = recognised.refusal};
  if (std::string reason = kernelRefusal(kernel, *recognised.region, device); !reason.empty())
    return {.reason = std::move(reason)};
  const DType dtype = productTypes(kernel).a;
  const int registers = epilogueRegisters(kernel, *recognised.region);
  ConfigurationSpace space{.family = std::string(familyOf(AmpereContractionKnobs{}))};
  std::set<Knobs> knobs;
  std::set<std::pair<int64_t, int64_t>> shapes;
  std::string refusal;
  for (LayoutTuple &tuple : contractionTuples(kernel)) {
    const Configuration configuration = toConfiguration(kernel, tuple, AmpereContractionKnobs{});
    const HopperProductAnswer answer = warpProduct(kernel, configuration);
    if (!answer.product) {
      refusal = answer.refusal;
      continue;
    }
    if (recognised.region->prologue)
      if (std::string reason =
              prologueLayoutRefusal(kernel, configuration, *recognised.region->prologue);
          !reason.empty()) {
        refusal = std::move(reason);
        continue;
      }
    if (std::string reason =
            softmaxRefusal(kernel, configuration, *recognised.region, !answer.product->isSwapped);
        !reason.empty()) {
      if (refusal.empty()) refusal = std::move(reason);
      continue;
    }
    if (hasWarpgroupProducts(device.architecture) && answer.product->a.isByEngine &&
        answer.product->b.isByEngine && hopperProduct(kernel, configuration).product) {
      refusal = "hopper-contraction takes operands whose rows start at multiples of 16 bytes";
      continue;
    }
    if (shapes.emplace(answer.product->m, answer.product->n).second)
      addKnobs(*answer.product, *recognised.region, registers, dtype, device, knobs);
    space.tuples.push_back(std::move(tuple));
  }
  if (space.tuples.empty()) return {.reason = std::move(refusal)};
  if (knobs.empty())
    return {.reason =
                fmt::format("the epilogue needs {} registers; no tile leaves as many", registers)};
  space.knobs.assign(knobs.begin(), knobs.end());
  return {.space = std::move(space)};
}

}  // namespace weft
