// From the region and the layouts to heads, rows and columns; see AttentionProblem.h.
#include "codegen/families/attention/AttentionProblem.h"

#include "codegen/families/attention/ScoreMasks.h"
#include "codegen/families/contraction/EpilogueLimits.h"
#include "kernel/Error.h"
#include "kernel/LastLayouts.h"
#include "passes/configure/Family.h"

#include <algorithm>
#include <limits>

namespace weft {
namespace {

constexpr int64_t mostPositions = int64_t(1) << 20;  ///< of queries, and of keys
constexpr int64_t mostHeads = std::numeric_limits<int32_t>::max() / 2;

bool contains(const std::vector<AxisId> &axes, AxisId axis) {
  return std::ranges::find(axes, axis) != axes.end();
}

/// Whether some node of the expression is the coordinate along an axis.
bool readsCoordinate(const Expression &expression, AxisId axis) {
  return std::ranges::any_of(expression.all(), [&](const ExpressionNode &node) {
    return node.kind == ExpressionNode::Kind::coordinate && node.index == axis;
  });
}

int64_t extentOf(const Kernel &kernel, AxisId axis) {
  return axis < 0 ? 1 : kernel.axes[size_t(axis)].extent;
}

/// Ties go to the last; -1 of none.
AxisId longest(const Kernel &kernel, const std::vector<AxisId> &axes) {
  AxisId found = -1;
  for (const AxisId axis : axes)
    if (found < 0 || extentOf(kernel, axis) >= extentOf(kernel, found)) found = axis;
  return found;
}

/// Of packed tokens their positions; else the longest of those whose coordinate an expression reads
/// together with that of the keys; if there is none, the longest of all.
AxisId queryAxisOf(const Kernel &kernel, const AttentionRegion &region) {
  if (region.packed) return region.packed->positions;
  std::vector<AxisId> read;
  for (const AxisId axis : region.queries)
    if (extentOf(kernel, axis) > 1 && std::ranges::any_of(region.scoreOps, [&](OpId op) {
          const Expression &expression = kernel.body[op].expression;
          return readsCoordinate(expression, axis) && readsCoordinate(expression, region.keyAxis);
        }))
      read.push_back(axis);
  return longest(kernel, read.empty() ? region.queries : read);
}

class ProblemBuilder {
public:
  ProblemBuilder(const Kernel &kernel, const AttentionRegion &region,
                 const Configuration &configuration)
      : kernel(kernel), region(region), configuration(configuration) {}

  Expected<AttentionProblem> run() {
    problem.scale = region.scale;
    problem.operandType = typeOf(region.q), problem.outputType = typeOf(region.output);
    for (const ValueId value : {region.k, region.v})
      if (typeOf(value) != problem.operandType)
        return rejected("'{}' is {} and '{}' {}; queries, keys and values have one element type",
                        nameOf(region.q), weft::nameOf(problem.operandType), nameOf(value),
                        weft::nameOf(typeOf(value)));
    if (region.readsTf32 && problem.operandType == DType::f32) problem.operandType = DType::tf32;
    problem.keyAxis = region.keyAxis, problem.queryAxis = queryAxisOf(kernel, region);
    for (const auto &[axes, axis, what] :
         {std::tuple{&region.headDim, &problem.headDimAxis, "queries and keys"},
          {&region.valueDim, &problem.valueDimAxis, "values"}}) {
      if (std::ranges::count_if(*axes, [&](int one) { return extent(one) > 1; }) > 1)
        return rejected("an element of {} has several axes longer than 1; one is taken", what);
      *axis = longest(kernel, *axes);
    }
    problem.queries = extent(problem.queryAxis), problem.keys = extent(problem.keyAxis);
    problem.headDim = extent(problem.headDimAxis), problem.valueDim = extent(problem.valueDimAxis);
    addHeads();
    if (std::max(problem.queries, problem.keys) > mostPositions)
      return rejected("{} queries and {} keys; at most {} (2^20) positions are taken",
                      problem.queries, problem.keys, mostPositions);
    if (problem.heads > mostHeads)
      return rejected("{} heads; at most {} are taken", problem.heads, mostHeads);
    const PackedTokens rows = region.packed.value_or(
        PackedTokens{.q = problem.queryAxis,
                     .k = region.paged ? region.paged->kPositions : problem.keyAxis,
                     .v = region.paged ? region.paged->vPositions : problem.keyAxis,
                     .output = problem.queryAxis});
    problem.q = tensor(region.q, rows.q, problem.headDimAxis);
    problem.k = tensor(region.k, rows.k, problem.headDimAxis);
    problem.v = tensor(region.v, rows.v, problem.valueDimAxis);
    problem.output = tensor(region.output, rows.output, problem.valueDimAxis);
    if (region.packed) {
      if (problem.queries != problem.keys)
        return rejected("packed sequences of up to {} queries and {} keys; both have one bound",
                        problem.queries, problem.keys);
      addPacked();
    }
    if (region.paged) {
      if (extent(region.paged->kPages) != extent(region.paged->vPages))
        return rejected("{} pages of keys and {} of values; both have one number of them",
                        extent(region.paged->kPages), extent(region.paged->vPages));
      addPaged();
    }
    problem.zeroesUnseen = !region.packed && std::ranges::any_of(region.scoreOps, [&](OpId op) {
      return codegen::comparesWithCount(kernel.body[op]);
    });
    if (region.logSums >= 0)
      problem.logSums =
          tensor(region.logSums, region.packed ? region.packed->logSums : problem.queryAxis, -1);
    return problem;
  }

private:
  template <typename... Arguments>
  static Unexpected rejected(fmt::format_string<Arguments...> text, Arguments &&...arguments) {
    return Unexpected(Error::unsupported(text, std::forward<Arguments>(arguments)...));
  }

  DType typeOf(ValueId value) const { return kernel.values[size_t(value)].dtype; }
  const std::string &nameOf(ValueId value) const { return kernel.values[size_t(value)].name; }
  int64_t extent(AxisId axis) const { return extentOf(kernel, axis); }

  /// Head / divisor % sequences is the sequence of a head.
  void addSequences(AxisId sequencesAxis, int64_t &sequences, int64_t &divisor) const {
    for (size_t axis = 0; axis < problem.headAxes.size(); ++axis) {
      if (sequences > 1) divisor *= problem.headExtents[axis];
      if (problem.headAxes[axis] == sequencesAxis) sequences = problem.headExtents[axis];
    }
  }

  /// Elements, along an axis of an input.
  int64_t strideAlong(ValueId value, AxisId axis) const {
    const auto input = size_t(std::ranges::find(kernel.inputs, value) - kernel.inputs.begin());
    const std::vector<AxisId> &axes = kernel.values[size_t(value)].axes;
    const auto dimension = size_t(std::ranges::find(axes, axis) - axes.begin());
    return stridesOf(configuration.inputs.at(input), extentsOf(kernel, value)).at(dimension);
  }

  void addPaged() {
    const PagedKeys &own = *region.paged;
    const std::vector<AxisId> &table = kernel.values[size_t(own.table)].axes;
    AttentionProblem::Paged paged{.table = own.input,
                                  .pages = extent(own.kPages),
                                  .positions = extent(own.kPositions),
                                  .sequenceStride = strideAlong(own.table, table[0]),
                                  .entryStride = strideAlong(own.table, table[1]),
                                  .kStride = strideAlong(region.k, own.kPages),
                                  .vStride = strideAlong(region.v, own.vPages)};
    addSequences(own.sequences, paged.sequences, paged.divisor);
    problem.paged = paged;
  }

  void addPacked() {
    AttentionProblem::Packed packed;
    addSequences(region.packed->sequences, packed.sequences, packed.divisor);
    const Layout &offsets = configuration.inputs.at(region.packed->input);
    packed.offsetStride = stridesOf(offsets, {kernel.elements(region.packed->offsets)})[0];
    problem.packed = packed;
  }

  void addHeads() {
    for (const AxisId axis : attentionRowAxes(kernel, region)) {
      if (axis == problem.queryAxis) continue;
      problem.headAxes.push_back(axis);
      problem.headExtents.push_back(extent(axis));
      problem.heads *= extent(axis);
      if (contains(region.queries, axis)) problem.headsOfGroup *= extent(axis);
    }
  }

  AttentionTensor tensor(ValueId value, AxisId rowAxis, AxisId columnAxis) const {
    return attentionTensor(kernel, configuration, problem, value, rowAxis, columnAxis);
  }

  const Kernel &kernel;
  const AttentionRegion &region;
  const Configuration &configuration;
  AttentionProblem problem;
};

}  // namespace

std::vector<AxisId> attentionRowAxes(const Kernel &kernel, const AttentionRegion &region) {
  const AxisId queryAxis = queryAxisOf(kernel, region);
  std::vector<AxisId> rows;
  for (const std::vector<AxisId> *axes : {&region.batch, &region.queries})
    for (const AxisId axis : *axes)
      if (axis != queryAxis && extentOf(kernel, axis) > 1) rows.push_back(axis);
  if (queryAxis >= 0 && extentOf(kernel, queryAxis) > 1) rows.push_back(queryAxis);
  return rows;
}

bool AttentionTensor::hasAlignedRows(int64_t elementBytes, int64_t bytes) const {
  const auto isWhole = [&](int64_t stride) { return stride * elementBytes % bytes == 0; };
  return columnStride == 1 && alignment % bytes == 0 && isWhole(rowStride) &&
         std::ranges::all_of(headStrides, isWhole);
}

AttentionTensor attentionTensor(const Kernel &kernel, const Configuration &configuration,
                                const AttentionProblem &problem, ValueId value, AxisId rowAxis,
                                AxisId columnAxis) {
  const auto input = std::ranges::find(kernel.inputs, value);
  const bool isInput = input != kernel.inputs.end();
  const auto place =
      size_t(isInput ? input - kernel.inputs.begin()
                     : std::ranges::find(kernel.outputs, value) - kernel.outputs.begin());
  const Layout &layout = isInput ? configuration.inputs.at(place) : configuration.outputs.at(place);
  const std::vector<AxisId> &axes = kernel.values[size_t(value)].axes;
  std::vector<int64_t> extents;
  for (const AxisId axis : axes) extents.push_back(kernel.axes[size_t(axis)].extent);
  const std::vector<int64_t> strides = stridesOf(layout, extents);
  const auto along = [&](AxisId axis) {
    const auto found = std::ranges::find(axes, axis);
    return found == axes.end() ? 0 : strides[size_t(found - axes.begin())];
  };
  const bool isOneColumn = columnAxis < 0 || kernel.axes[size_t(columnAxis)].extent == 1;
  AttentionTensor result{.value = value,
                         .operand = isInput ? place : kernel.inputs.size() + place,
                         .offset = layout.offset,
                         .alignment = layout.alignment,
                         .rows = rowAxis < 0 ? 1 : kernel.axes[size_t(rowAxis)].extent,
                         .rowStride = along(rowAxis),
                         .columnStride = isOneColumn ? 1 : along(columnAxis)};
  for (const AxisId axis : problem.headAxes) result.headStrides.push_back(along(axis));
  return result;
}

Expected<AttentionProblem> attentionProblem(const Kernel &kernel, const AttentionRegion &region,
                                            const Configuration &configuration) {
  return ProblemBuilder(kernel, region, configuration).run();
}

const Expected<AttentionProblem> &keptAttentionProblem(const Kernel &kernel,
                                                       const AttentionRegion &region,
                                                       const Configuration &configuration) {
  thread_local LastLayouts<Expected<AttentionProblem>> last;
  return last.of([&] { return attentionProblem(kernel, region, configuration); }, kernel,
                 configuration);
}

std::string attentionTypeRejection(const Kernel &kernel, const AttentionRegion &region,
                                   const Device &device, bool takesTf32) {
  const DType type = kernel.values[size_t(region.q)].dtype;
  const bool isTf32 = takesTf32 && region.readsTf32 && type == DType::f32;
  if (!isHalf(type) && !isTf32)
    return fmt::format("element type {}; f16 and bf16 are taken (--dtype f16){}", nameOf(type),
                       takesTf32 ? ", and f32 that may be read as tf32 (--tf32)" : "");
  if (const Value &output = kernel.values[size_t(region.output)]; output.dtype != type)
    return fmt::format("'{}' is {}, queries are {}; one element type is taken", output.name,
                       nameOf(output.dtype), nameOf(type));
  if (const DType read = isTf32 ? DType::tf32 : type; !device.tensorFlops.contains(read))
    return fmt::format("{} names no flop rate of GEMMs of {}", device.name, nameOf(read));
  return "";
}

}  // namespace weft
