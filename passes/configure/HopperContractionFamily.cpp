// Tensor-core contractions of sm_90a: one einsum of two operands of f16 or bf16 as one batched strided matrix product, in any
// orientation. Tiles that would take far longer than the best one by their number and their waste are left out.
#include "kernel/Error.h"
#include "passes/configure/Family.h"
#include "passes/configure/HopperCost.h"

#include <algorithm>
#include <set>

namespace weft {
namespace {

using enum HopperSchedule;

/// Schedule, tile and the stages that shared memory has room for. Of 23 shapes x 4 orientations on an H200 each was the fastest
/// of all for some, or within 1% of it.
constexpr HopperContractionKnobs tiles[] = {
    {.schedule = pingPong, .tileM = 128, .tileN = 128, .stages = 6, .staging = 2},
    {.schedule = pingPong, .tileM = 128, .tileN = 192, .stages = 4, .staging = 4},
    {.schedule = cooperative, .tileM = 128, .tileN = 256, .stages = 4, .staging = 2},
    {.schedule = cooperative, .tileM = 256, .tileN = 128, .stages = 4, .staging = 2},
    {.schedule = pingPong, .tileM = 64, .tileN = 256, .stages = 4, .staging = 4},
    {.schedule = pingPong, .tileM = 64, .tileN = 192, .stages = 6, .staging = 2},
    {.schedule = pingPong, .tileM = 64, .tileN = 128, .stages = 8, .staging = 2},
    {.schedule = pingPong, .tileM = 128, .tileN = 64, .stages = 8, .staging = 2},
    {.schedule = cooperative, .tileM = 128, .tileN = 64, .stages = 8, .staging = 2},
    {.schedule = pingPong, .tileM = 64, .tileN = 64, .stages = 12, .staging = 1},
};
constexpr double worthwhile = 1.5;  ///< modelled time of a tile against the best one's
constexpr size_t fewestTiles = 3, mostTiles = 6;  ///< for one orientation of the result

std::string typeRefusal(const Kernel &kernel) {
  const DType type = kernel.values[size_t(kernel.outputs[0])].dtype;
  for (const int value : operandValues(kernel))
    if (kernel.values[size_t(value)].dtype != type)
      return fmt::format("'{}' is {}, the result {}; a product of a warpgroup has one element type here", kernel.values[size_t(value)].name,
                         nameOf(kernel.values[size_t(value)].dtype), nameOf(type));
  if (type != DType::f16 && type != DType::bf16) return fmt::format("element type {}; f16 and bf16 are taken", nameOf(type));
  return "";
}

/// The tiles worth trying for a result of m x n, best first by the model. The raster only orders many tiles.
void addKnobs(const HopperProduct &product, DType dtype, const Device &device, std::set<Knobs> &knobs) {
  std::vector<std::pair<double, HopperContractionKnobs>> priced;
  for (HopperContractionKnobs one : tiles) {
    one.blocks = device.multiprocessors;
    if (hopperKnobsRefusal(one, device.sharedMemoryPerBlock).empty())
      priced.emplace_back(hopperTensorSeconds(product, one, dtype, device), one);
  }
  std::sort(priced.begin(), priced.end());
  for (size_t i = 0; i < priced.size() && i < mostTiles && (i < fewestTiles || priced[i].first <= worthwhile * priced[0].first); ++i) {
    knobs.insert(priced[i].second);
    if (i > 0 || hopperTiles(product, priced[i].second) <= 2 * device.multiprocessors) continue;
    priced[i].second.rasterM = 4;
    knobs.insert(priced[i].second);
  }
}

}  // namespace

FamilyAnswer hopperContractionSpace(const Kernel &kernel, const Device &device) {
  if (!hasWarpgroupProducts(device.architecture))
    return {.reason = fmt::format("{} has no products of a warpgroup; sm_90a has", device.architecture)};
  if (std::string reason = contractionRefusal(kernel); !reason.empty()) return {.reason = std::move(reason)};
  if (std::string reason = typeRefusal(kernel); !reason.empty()) return {.reason = std::move(reason)};
  const DType dtype = kernel.values[size_t(kernel.outputs[0])].dtype;
  ConfigurationSpace space{.family = std::string(familyOf(HopperContractionKnobs{}))};
  std::set<Knobs> knobs;
  std::set<std::pair<int64_t, int64_t>> shapes;
  std::string refusal;
  for (LayoutTuple &tuple : contractionTuples(kernel)) {
    const HopperProductAnswer answer = hopperProduct(kernel, toConfiguration(kernel, tuple, HopperContractionKnobs{}));
    if (!answer.product) {
      refusal = answer.refusal;
      continue;
    }
    if (shapes.emplace(answer.product->m, answer.product->n).second) {
      HopperProduct extents = *answer.product;
      extents.a.isByEngine = extents.b.isByEngine = true;
      addKnobs(extents, dtype, device, knobs);
    }
    space.tuples.push_back(std::move(tuple));
  }
  if (space.tuples.empty()) return {.reason = std::move(refusal)};
  space.knobs.assign(knobs.begin(), knobs.end());
  return {.space = std::move(space)};
}

}  // namespace weft
