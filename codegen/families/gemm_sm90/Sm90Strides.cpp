// From factors to the kernel template's GEMM and to tensor maps; see Sm90Strides.h.
//
// **Several strides along a group of axes** (`kernel/MultiStrideGemm.h`). A GEMM's groups (batch,
// m, n, k) need not merge: where an operand has a group in two or three factors, such as the rows
// (b,j) and the k (h,p) of attention's [b,h,j,p], a tensor map has a dimension for each (five at
// most), and no transpose comes first. This holds for 16-bit operands that TMA loads. Boxes must
// fill shared memory as those of one stride do, so a row of 128 bytes lies in one factor (its
// extent a multiple of 64) and 64 rows are a box; `wgmmaProblem` rejects the rest by axis and
// limit. The text states the dimensions. The kernel template finds the code that walks them by the
// types of the operands' elements (`sm90_strides.cuh`), as with tf32, so that other kernels do not
// depend on it. C may have several strides, too, in a plain GEMM; with an epilogue C has to merge.
// - **Which are offered**: `severalStridesSpace`, beside the family's other space. One of A and B
//   has several strides, or both alike (Q and K of one projection); the other one and C merge and
//   have the batch slowest; three tiles for each shape instead of six, no single-consumer ones.
//   Other legal layouts would multiply the layouts of attention's GEMMs by ten. So contractions
//   have about twice the configurations (a training step of the paper's encoder: 20,777 to measure
//   become 23,781, among them those of the next paragraph), and selection without a profile takes a
//   third longer. A C of several strides is offered only where the layout of the result is fixed
//   (an argument of the caller's, or a pin) and no layout of one stride agrees with it: otherwise
//   the kernel that writes [b,h,j,p] may as well write [b,j,h,p], which its reader accepts now.
// - **Selection**: without a profile by the model, a microsecond above one stride. With a profile
//   they are offered by their measurements alone, and do not count as "pruned for lack of
//   measurements": coverage and the shipped plans say what they said before. Unmeasured layouts are
//   considered only when a pin leaves no other. `weft profile` measures them, at most 16 layouts a
//   kernel besides the others; since they make more layouts of a tensor worth keeping, a few of one
//   stride are no longer measured (379 GEMMs instead of 396). In the line of a configuration they
//   read "64x512/524288": stride 64 for 512, then 524288. Plans may name any that is legal.
//   cuBLASLt and mma.sync take one stride.
// - **Tests**: `tests/strides_test.cpp` compares every element of every box with the layouts'
//   strides, `tests/sm90_epilogue_emulate_test.cpp` runs whole kernels with copies through swizzled
//   shared memory, `weft-gpu-tests --filter '^strides'` runs on a GPU; `weft-contraction-bench
//   --strides` times them beside transposes and GEMMs of one stride.
#include "codegen/families/gemm_sm90/Sm90Strides.h"

#include "kernel/Error.h"

#include <algorithm>
#include <limits>

namespace weft {

std::optional<std::vector<int>> boxSides(const GroupFactors &factors, int64_t side) {
  std::vector<int> sides;
  for (size_t i = 0; i < factors.size(); ++i) {
    const int64_t extent = factors[i].extent;
    const bool isLast = i + 1 == factors.size();
    if (!isLast && extent % side != 0 && side % extent != 0) return std::nullopt;
    sides.push_back(int(isLast ? side : std::min(side, extent)));
    side /= sides.back();
  }
  return sides;
}

namespace {

constexpr int64_t subtileSide =
    64;                      // elements of 16 bits in a row of 128 bytes, and rows of a subtile
constexpr int64_t unit = 8;  // elements of 16 bytes
constexpr int64_t longestStride = int64_t(1) << 39;  // elements, of a tensor map
constexpr size_t mostDimensions = 5;                 // of a tensor map
constexpr int64_t mostElements = std::numeric_limits<int32_t>::max() - 512;

std::string axesText(const Kernel &kernel, const StrideFactor &factor) {
  std::string text;
  for (const AxisId axis : factor.axes)
    text += (text.empty() ? "" : ",") + kernel.axes[size_t(axis)].name;
  return text;
}

/// Why TMA does not move a tensor with these strides in boxes of 128 bytes and 64 rows.
/// `name`: of the tensor.
std::string mapRejection(const Kernel &kernel, std::string_view name, const MapGroups &groups,
                         const Layout &layout) {
  if (const size_t dimensions = groups.columns.size() + groups.rows.size() + groups.batch.size();
      dimensions > mostDimensions)
    return fmt::format("{} has {} strides; a tensor map has {} dimensions", name, dimensions,
                       mostDimensions);
  if (layout.alignment % tensorMapAlignment != 0)
    return fmt::format(
        "{} has several strides along a group and starts at a multiple of {} bytes; {} are taken",
        name, layout.alignment, tensorMapAlignment);
  for (const GroupFactors *group : {&groups.columns, &groups.rows, &groups.batch})
    for (const StrideFactor &factor : *group) {
      const bool isInnermost = group == &groups.columns && &factor == &group->front();
      if (!isInnermost && (factor.stride % unit != 0 || factor.stride >= longestStride))
        return fmt::format(
            "{}: stride {} of {}; a tensor map with several strides along a group takes multiples "
            "of {} below {}",
            name, factor.stride, axesText(kernel, factor), unit, longestStride);
    }
  if (const StrideFactor &fastest = groups.columns.front();
      groups.columns.size() > 1 && fastest.extent % subtileSide != 0)
    return fmt::format(
        "{}: {} of {} in a row; with several strides along that group rows of whole {} are taken",
        name, fastest.extent, axesText(kernel, fastest), subtileSide);
  if (!boxSides(groups.rows, subtileSide))
    return fmt::format(
        "{}: {} rows along {} are no box; factors that divide them or that they divide are taken",
        name, subtileSide, axesText(kernel, groups.rows.front()));
  return "";
}

int64_t fastestOf(const GroupFactors &group) { return group.empty() ? 0 : group.front().stride; }

class Derivation {
public:
  Derivation(const Kernel &kernel, const Configuration &configuration,
             const MultiStrideGemm &factored)
      : kernel(kernel),
        configuration(configuration),
        factored(factored),
        inputs(gemmInputs(kernel)) {}

  Expected<GemmProblem, Reason> answer() {
    const GemmTypes types = gemmTypes(kernel);
    if (!types.isUniform() || sizeOf(types.a) != 2)
      return rejected(fmt::format(
          "a group of axes has several strides; GEMMs of {} take one, of f16 and bf16 several",
          nameOf(types)));
    const auto &[batch, m, n, k] = factored.extents;
    if (batch < 1 || std::min({m, n, k}) < 2)
      return rejected(
          "a group of axes has several strides, and a side of the GEMM or k is less than 2");
    if (std::max({batch, m, n, k}) > mostElements)
      return rejected(fmt::format("an extent is more than {}", mostElements));
    gemm = {
        .isSwapped = fastestOf(factored.c[nGroup]) != 1, .batch = batch, .m = m, .n = n, .k = k};
    gemm.operandType = types.a;
    if (gemm.isSwapped && fastestOf(factored.c[mGroup]) != 1)
      return rejected("the result is contiguous along neither of its axes");
    gemm.a.input = inputs.a, gemm.b.input = inputs.b;
    if (std::string rejection = placeOperand(gemm.a, factored.a, mGroup, "operand A");
        !rejection.empty())
      return rejected(std::move(rejection));
    if (std::string rejection = placeOperand(gemm.b, factored.b, nGroup, "operand B");
        !rejection.empty())
      return rejected(std::move(rejection));
    if (gemm.isSwapped) std::swap(gemm.a, gemm.b), std::swap(gemm.m, gemm.n);
    if (std::string rejection = placeResult(); !rejection.empty())
      return rejected(std::move(rejection));
    return gemm;
  }

private:
  std::string placeOperand(GemmOperand &operand, const TensorFactors &factors,
                           ContractionGroup outer, std::string_view name) {
    const Layout &layout = configuration.inputs[operand.input];
    operand.outer = fastestOf(factors[outer]), operand.k = fastestOf(factors[kGroup]),
    operand.batch = fastestOf(factors[batchGroup]);
    if (operand.k != 1 && operand.outer != 1)
      return fmt::format("{} is contiguous along neither of its axes", name);
    if (hasSeveralStrides(factors)) {
      operand.outerFactors = factors[outer], operand.kFactors = factors[kGroup],
      operand.batchFactors = factors[batchGroup];
      return mapRejection(kernel, name, mapGroups(operand), layout);
    }
    operand.usesTma = usesTma(operand.pitch(), operand.batch, layout);
    return "";
  }

  std::string placeResult() {
    const GroupFactors &rows = factored.c[gemm.isSwapped ? nGroup : mGroup];
    gemm.strideCm = fastestOf(rows), gemm.batchStrideC = fastestOf(factored.c[batchGroup]);
    if (!hasSeveralStrides(factored.c)) {
      gemm.usesTma = usesTma(gemm.strideCm, gemm.batchStrideC, configuration.outputs[0]);
      return "";
    }
    gemm.mFactors = rows, gemm.nFactors = factored.c[gemm.isSwapped ? mGroup : nGroup],
    gemm.batchFactors = factored.c[batchGroup];
    if (gemm.n % unit != 0)
      return fmt::format(
          "the result has several strides along a group and rows of {}; multiples of {} are taken",
          gemm.n, unit);
    return mapRejection(kernel, "the result", mapGroups(gemm), configuration.outputs[0]);
  }

  bool usesTma(int64_t pitch, int64_t batchStride, const Layout &layout) const {
    const auto fits = [](int64_t stride) { return stride % unit == 0 && stride < longestStride; };
    return layout.alignment % tensorMapAlignment == 0 && fits(pitch) &&
           (gemm.batch == 1 || fits(batchStride));
  }

  const Kernel &kernel;
  const Configuration &configuration;
  const MultiStrideGemm &factored;
  const GemmInputs inputs;
  GemmProblem gemm;
};

void addDimensions(TensorMap &map, const GroupFactors &group, int64_t side) {
  const std::vector<int> sides = boxSides(group, side).value();
  for (size_t i = 0; i < group.size(); ++i) {
    if (!map.extents.empty()) map.strides.push_back(group[i].stride);
    map.extents.push_back(group[i].extent);
    map.box.push_back(sides[i]);
  }
}

}  // namespace

MapGroups mapGroups(const GemmOperand &operand) {
  if (operand.isAlongK())
    return {
        .columns = operand.kFactors, .rows = operand.outerFactors, .batch = operand.batchFactors};
  return {.columns = operand.outerFactors, .rows = operand.kFactors, .batch = operand.batchFactors};
}

MapGroups mapGroups(const GemmProblem &gemm) {
  return {.columns = gemm.nFactors, .rows = gemm.mFactors, .batch = gemm.batchFactors};
}

int boxRows(const MapGroups &groups, int side) {
  return boxSides(groups.rows, side) ? side : int(subtileSide);
}

TensorMap mapOf(DType dtype, const MapGroups &groups, int rows) {
  TensorMap map{.dtype = dtype};
  addDimensions(map, groups.columns, subtileSide);
  addDimensions(map, groups.rows, rows);
  addDimensions(map, groups.batch, 1);
  return map;
}

Expected<GemmProblem, Reason> multiStrideProblem(const Kernel &kernel,
                                                 const Configuration &configuration) {
  const auto factored = multiStrideGemm(kernel, configuration);
  if (!factored) return rejected("the layouts map to no batched strided GEMM");
  return Derivation(kernel, configuration, *factored).answer();
}

}  // namespace weft
