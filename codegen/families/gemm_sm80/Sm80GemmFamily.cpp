// Tensor-core contractions from sm_80 on: one einsum of two operands of f16 or bf16, or of f32 that
// is read as tf32, as one batched strided GEMM, in any orientation, with the element-wise
// ops that follow it and a local softmax at the end; operands of 16 bits may be transformed on load
// (kernel/ContractionPrologue.h). On sm_90a, whose own family is faster, they are tried where that
// family cannot use its TMA.
#include "codegen/families/contraction/ContractionLayouts.h"
#include "codegen/families/contraction/EpilogueLimits.h"
#include "codegen/families/gemm_sm80/Sm80Cost.h"
#include "codegen/families/gemm_sm80/Sm80GemmKnobs.h"
#include "codegen/families/gemm_sm80/Sm80Tile.h"
#include "codegen/targets/Targets.h"
#include "kernel/ContractionRegion.h"
#include "kernel/Error.h"
#include "passes/configure/Family.h"

#include <algorithm>
#include <set>
#include <span>

namespace weft {
namespace {

/// Tiles that fit the registers and the shared memory of every target, two blocks a multiprocessor
/// or one of eight warps.
constexpr Sm80GemmKnobs tiles[] = {
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
constexpr Sm80GemmKnobs tf32Tiles[] = {
    {.tileM = 128, .tileN = 128, .tileK = 32, .stages = 3, .warpsM = 2, .warpsN = 2},
    {.tileM = 128, .tileN = 64, .tileK = 32, .stages = 4, .warpsM = 2, .warpsN = 2},
    {.tileM = 64, .tileN = 128, .tileK = 32, .stages = 4, .warpsM = 2, .warpsN = 2},
    {.tileM = 64, .tileN = 64, .tileK = 32, .stages = 4, .warpsM = 2, .warpsN = 2},
    {.tileM = 32, .tileN = 128, .tileK = 32, .stages = 4, .warpsM = 1, .warpsN = 4},
    {.tileM = 32, .tileN = 32, .tileK = 32, .stages = 4, .warpsM = 2, .warpsN = 1},
};
constexpr double worthwhile = 1.5;  ///< modelled time of a tile against the best one's
constexpr size_t fewestTiles = 2, mostTiles = 4;  ///< for one shape of the result

std::string typeRejection(const Kernel &kernel, const ContractionRegion &region) {
  if (std::string reason = epilogueTypesRejection(kernel, region); !reason.empty()) return reason;
  const GemmTypes types = gemmTypes(kernel);
  const DType type = types.c;
  if (types.areTf32())
    return type == DType::f32
               ? ""
               : fmt::format("a result of {}; mma.sync give f32 of tf32", nameOf(type));
  for (const ValueId value : std::span(kernel.body[region.contraction].operands).first(2))
    if (kernel.values[size_t(value)].dtype != type)
      return fmt::format("'{}' is {}, the result {}; a GEMM of a warp has one element type here",
                         kernel.values[size_t(value)].name,
                         nameOf(kernel.values[size_t(value)].dtype), nameOf(type));
  if (!isHalf(type))
    return fmt::format("element type {}; f16, bf16, and f32 at precision tf32 are taken",
                       nameOf(type));
  return "";
}

/// Why the family does not take the kernel, whatever its layouts.
std::string kernelRejection(const Kernel &kernel, const ContractionRegion &region,
                            const Device &device) {
  if (std::string reason = warpEpilogueRejection(kernel, region); !reason.empty()) return reason;
  if (std::string reason = typeRejection(kernel, region); !reason.empty()) return reason;
  if (std::string reason = epilogueTensorsRejection(kernel, region); !reason.empty()) return reason;
  if (const DType operands = gemmTypes(kernel).a; !device.tensorFlops.contains(operands))
    return fmt::format("{} names no flop rate of GEMMs of {}", device.name, nameOf(operands));
  return "";
}

/// The tiles worth trying for a result of m x n, by the model, of those that leave an epilogue its
/// registers and have whole sub-vectors.
void addKnobs(const GemmProblem &gemm, const ContractionRegion &region, int epilogueRegisters,
              DType dtype, const Device &device, std::set<Knobs> &knobs) {
  std::vector<std::pair<double, Sm80GemmKnobs>> priced;
  const std::span<const Sm80GemmKnobs> tried =
      dtype == DType::tf32 ? std::span<const Sm80GemmKnobs>(tf32Tiles) : tiles;
  for (const Sm80GemmKnobs &one : tried)
    if (sm80KnobsRejection(one, device.sharedMemoryPerBlock, sizeOf(dtype)).empty() &&
        sm80RegistersRejection(one, epilogueRegisters).empty() &&
        sm80SoftmaxRejection(one, region).empty())
      priced.emplace_back(sm80TensorSeconds(gemm, one, dtype, device), one);
  std::sort(priced.begin(), priced.end());
  for (size_t i = 0; i < priced.size() && i < mostTiles &&
                     (i < fewestTiles || priced[i].first <= worthwhile * priced[0].first);
       ++i)
    knobs.insert(priced[i].second);
}

}  // namespace

Expected<ConfigurationSpace, Reason> sm80GemmSpace(const Kernel &kernel, const Device &device) {
  if (!codegen::hasMmaSync(device.architecture))
    return rejected(
        fmt::format("{} has no asynchronous copies and mma.sync as this "
                    "family takes; sm_80 and later have",
                    device.architecture));
  const Expected<ContractionRegion, Reason> &recognised = contractionRegion(kernel);
  if (!recognised) return rejected(recognised.error().text);
  if (std::string reason = kernelRejection(kernel, *recognised, device); !reason.empty())
    return rejected(std::move(reason));
  const DType dtype = gemmTypes(kernel).a;
  const int registers = sm80EpilogueRegisters(kernel, *recognised);
  ConfigurationSpace space{.family = &sm80GemmFamily};
  std::set<Knobs> knobs;
  std::set<std::pair<int64_t, int64_t>> shapes;
  std::string rejection;
  for (LayoutTuple &tuple : contractionTuples(kernel)) {
    const Configuration configuration = toConfiguration(kernel, tuple, Sm80GemmKnobs{});
    const Expected<GemmProblem, Reason> answer = mmaSyncProblem(kernel, configuration);
    if (!answer) {
      rejection = answer.error().text;
      continue;
    }
    if (recognised->prologue)
      if (std::string reason =
              prologueLayoutRejection(kernel, configuration, *recognised->prologue);
          !reason.empty()) {
        rejection = std::move(reason);
        continue;
      }
    if (std::string reason =
            softmaxRejection(kernel, configuration, *recognised, !answer->isSwapped);
        !reason.empty()) {
      if (rejection.empty()) rejection = std::move(reason);
      continue;
    }
    const Family *const other = answer->a.usesTma && answer->b.usesTma
                                    ? claimantOf(&Family::isGemm, kernel, tuple, device)
                                    : nullptr;
    if (other) {
      rejection =
          fmt::format("{} takes operands whose rows start at multiples of 16 bytes", *other);
      continue;
    }
    if (shapes.emplace(answer->m, answer->n).second)
      addKnobs(*answer, *recognised, registers, dtype, device, knobs);
    space.tuples.push_back(std::move(tuple));
  }
  if (space.tuples.empty()) return rejected(std::move(rejection));
  if (knobs.empty())
    return rejected(
        fmt::format("the epilogue needs {} registers; no tile leaves as many", registers));
  space.knobs.assign(knobs.begin(), knobs.end());
  return space;
}

std::string sm80Rejection(const Kernel &kernel, const Configuration &configuration,
                          const Device &device) {
  const auto &knobs = configuration.knobs.get<Sm80GemmKnobs>();
  std::string reason =
      sm80KnobsRejection(knobs, device.sharedMemoryPerBlock, sizeOf(gemmTypes(kernel).a));
  const auto region = contractionRegion(kernel);
  if (reason.empty() && region) reason = sm80SoftmaxRejection(knobs, *region);
  if (reason.empty() && region)
    reason = sm80RegistersRejection(knobs, sm80EpilogueRegisters(kernel, *region));
  return reason;
}

}  // namespace weft
