// View family: movement ops that cost nothing because the result's elements already lie where its
// layout says.
//
//   slice         the result is a view of the operand at an offset: a dense block where the sliced
//                 axis is slowest, else a strided view, which selection admits where all readers of
//                 the result accept it
//   concat        the operands are views of the result's buffer, and the kernels that compute them
//                 write there (selection admits this only where the operands are free to move):
//                 dense blocks where the joined axis is slowest, else strided views
//   split, merge  the parts of the axis stay adjacent, in order
//   transpose     the physical order stays, the logical order changes; identity: both stay
#include "codegen/families/view/ViewFamily.h"
#include "codegen/families/view/ViewKnobs.h"
#include "kernel/Attributes.h"
#include "kernel/ReasonCodes.h"
#include "passes/configure/Family.h"
#include "passes/configure/StridedViews.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {
namespace {

/// Kernel axes of a value in layout order, without those of extent 1.
std::vector<AxisId> physicalAxes(const Kernel &kernel, ValueId value, const Layout &layout) {
  std::vector<AxisId> axes;
  for (int dimension : layout.order)
    if (const AxisId axis = kernel.values[value].axes[dimension]; kernel.axes[axis].extent > 1)
      axes.push_back(axis);
  return axes;
}

/// The dimension that varies slowest among those of extent above 1; -1 if there is none.
int slowestDimension(const Layout &layout, const std::vector<int64_t> &extents) {
  for (int dimension : layout.order)
    if (extents[dimension] > 1) return dimension;
  return -1;
}

/// Runs of other lengths would share lines of memory with their neighbours, and cost more than
/// dense operands do: whole lines, or whole sectors of runs of two lines on. Sectors of lines at
/// their ends are read by what reads the neighbours, mostly at about the same time.
constexpr int64_t lineBytes = 128, sectorBytes = 32, longRunBytes = 2 * lineBytes;
bool areLines(int64_t runBytes) {
  return runBytes % lineBytes == 0 || (runBytes % sectorBytes == 0 && runBytes >= longRunBytes);
}

/// The result as part of an operand in this layout; nothing where it is not aligned, or strided
/// with runs of other lengths.
std::optional<LayoutTuple> cutFrom(const Kernel &kernel, const Layout &from) {
  const BodyOp &op = kernel.body[0];
  const auto axis = static_cast<size_t>(attributeOf(op, attribute::axis));
  const std::vector<int64_t> extents = extentsOf(kernel, kernel.inputs[0]),
                             resultExtents = extentsOf(kernel, kernel.outputs[0]);
  const std::vector<int64_t> strides = stridesOf(from, extents);
  const int64_t size = sizeOf(kernel.values[kernel.outputs[0]].dtype);
  const bool isBlock =
      extents == resultExtents || slowestDimension(from, extents) == static_cast<int>(axis);
  Layout to = normalized(from, resultExtents);
  to.offset = attributeOf(op, attribute::start) * strides[axis];
  if (to.offset * size % (isBlock ? to.alignment : sectorBytes) != 0) return std::nullopt;
  if (!isBlock && (!areLines(extents[axis] * strides[axis] * size) ||
                   !areLines(resultExtents[axis] * strides[axis] * size)))
    return std::nullopt;
  if (!isBlock) to.strides = strides;
  return LayoutTuple{from, to};
}

std::vector<LayoutTuple> sliceTuples(const Kernel &kernel) {
  std::vector<LayoutTuple> tuples;
  for (const Layout &from : distinctLayouts(extentsOf(kernel, kernel.inputs[0])))
    if (std::optional<LayoutTuple> tuple = cutFrom(kernel, from))
      tuples.push_back(std::move(*tuple));
  return tuples;
}

/// Every operand as part of a result in this layout; nothing where a part is not aligned, or
/// strided with runs of other lengths.
std::optional<LayoutTuple> joinedIn(const Kernel &kernel, const Layout &layout) {
  const ValueId output = kernel.outputs[0];
  const std::vector<int64_t> extents = extentsOf(kernel, output),
                             strides = stridesOf(layout, extents);
  const auto axis = static_cast<size_t>(attributeOf(kernel.body[0], attribute::axis));
  const int64_t size = sizeOf(kernel.values[output].dtype);
  const bool isBlocks = slowestDimension(layout, extents) == static_cast<int>(axis);
  LayoutTuple tuple;
  int64_t offset = 0;
  for (ValueId input : kernel.inputs) {
    const std::vector<int64_t> partExtents = extentsOf(kernel, input);
    const int64_t run = partExtents[axis] * strides[axis];
    Layout part = normalized(layout, partExtents);
    if (offset * size % part.alignment != 0 || (!isBlocks && !areLines(run * size)))
      return std::nullopt;
    part.offset = offset;
    if (!isBlocks && partExtents != extents) part.strides = strides;
    offset += run;
    tuple.push_back(std::move(part));
  }
  tuple.push_back(layout);
  return tuple;
}

/// All operands and the result in one order of dimensions. An operand that is joined twice has no
/// separate place.
std::vector<LayoutTuple> concatTuples(const Kernel &kernel) {
  std::vector<LayoutTuple> tuples;
  if (kernel.inputs != kernel.body[0].operands) return tuples;
  for (const Layout &layout : distinctLayouts(extentsOf(kernel, kernel.outputs[0])))
    if (std::optional<LayoutTuple> tuple = joinedIn(kernel, layout))
      tuples.push_back(std::move(*tuple));
  return tuples;
}

/// `whole` in the layout order of a value whose axis `axis` was split into `parts`, or nothing if
/// they are not adjacent.
std::optional<std::vector<AxisId>> joined(const std::vector<AxisId> &physical,
                                          const std::vector<AxisId> &parts, AxisId axis) {
  if (parts.empty()) return physical;
  const auto found = std::search(physical.begin(), physical.end(), parts.begin(), parts.end());
  if (found == physical.end()) return std::nullopt;
  std::vector<AxisId> result(physical.begin(), found);
  result.push_back(axis);
  result.insert(result.end(), found + static_cast<ptrdiff_t>(parts.size()), physical.end());
  return result;
}

std::vector<AxisId> absentFrom(const Kernel &kernel, ValueId value, ValueId other) {
  std::vector<AxisId> absent;
  const std::vector<AxisId> &others = kernel.values[other].axes;
  for (AxisId axis : kernel.values[value].axes)
    if (kernel.axes[axis].extent > 1 &&
        std::find(others.begin(), others.end(), axis) == others.end())
      absent.push_back(axis);
  return absent;
}

/// split_axis, merge_axes, transpose, identity: the same elements in the same physical order under
/// other names.
std::vector<LayoutTuple> regroupTuples(const Kernel &kernel) {
  const ValueId input = kernel.inputs[0], output = kernel.outputs[0];
  const std::vector<AxisId> inputOnly = absentFrom(kernel, input, output),
                            outputOnly = absentFrom(kernel, output, input);
  if (inputOnly.size() > 1 && outputOnly.size() > 1) return {};
  const std::vector<Layout> outputLayouts = distinctLayouts(extentsOf(kernel, output));
  std::vector<LayoutTuple> tuples;
  for (const Layout &from : distinctLayouts(extentsOf(kernel, input)))
    for (const Layout &to : outputLayouts) {
      const auto a = physicalAxes(kernel, input, from), b = physicalAxes(kernel, output, to);
      // One side names the axis once, the other as adjacent parts; bring both to the side with one
      // name.
      const bool merges = inputOnly.size() >= outputOnly.size();
      const AxisId whole = merges ? (outputOnly.empty() ? AxisId() : outputOnly[0])
                                  : (inputOnly.empty() ? AxisId() : inputOnly[0]);
      const auto joinedInput = merges ? joined(a, inputOnly, whole) : std::optional(a);
      const auto joinedOutput = merges ? std::optional(b) : joined(b, outputOnly, whole);
      if (joinedInput && joinedInput == joinedOutput) tuples.push_back({from, to});
    }
  return tuples;
}

}  // namespace

Expected<ConfigurationSpace, Reason> viewSpace(const Kernel &kernel, const Device &) {
  if (kernel.body.size() != 1 || kernel.body[0].operatorClass != OperatorClass::movement)
    return rejected("the body is not one movement op");
  const OpKind op = kernel.body[0].kind;
  if (!mayBeView(op))
    return rejected("'" + std::string(nameOf(op)) + "' moves elements in every layout");
  ConfigurationSpace space{.family = &viewFamily, .knobs = {ViewKnobs{}}};
  if (op == OpKind::slice) space.tuples = sliceTuples(kernel);
  else if (op == OpKind::concat) space.tuples = concatTuples(kernel);
  else space.tuples = regroupTuples(kernel);
  if (space.isEmpty()) return rejected("no layout makes '" + std::string(nameOf(op)) + "' free");
  return space;
}

std::optional<CopyReason> whyCopied(const Kernel &kernel, const Configuration &configuration) {
  if (kernel.body.size() != 1 || configuration.knobs.isView()) return std::nullopt;
  const OpKind op = kernel.body[0].kind;
  if (op != OpKind::slice && op != OpKind::concat) return std::nullopt;
  const bool isSlice = op == OpKind::slice;
  const Layout &whole = isSlice ? configuration.inputs[0] : configuration.outputs[0];
  const int wholeValue = isSlice ? kernel.inputs[0] : kernel.outputs[0];
  const std::vector<Layout> &parts = isSlice ? configuration.outputs : configuration.inputs;
  if (std::any_of(parts.begin(), parts.end(),
                  [&](const Layout &part) { return part.order != whole.order; }))
    return std::nullopt;
  const int64_t axis = attributeOf(kernel.body[0], attribute::axis);
  const std::string axisName =
      kernel.axes[kernel.values[wholeValue].axes[static_cast<size_t>(axis)]].name;
  const bool joinsTwice = !isSlice && kernel.inputs != kernel.body[0].operands;
  const std::vector<LayoutTuple> tuples = isSlice ? sliceTuples(kernel) : concatTuples(kernel);
  const auto free = std::find_if(tuples.begin(), tuples.end(), [&](const LayoutTuple &tuple) {
    return tuple[isSlice ? 0 : kernel.inputs.size()].order == whole.order;
  });
  if (free != tuples.end() && isSlice && free->back().strides.empty())
    return CopyReason{reasons::callersBuffer, std::string(reasons::callersBuffer.meaning)};
  if (free != tuples.end() && isSlice)
    return CopyReason{
        reasons::stridedViewNotTaken,
        "a kernel that may read the slice takes no strided views, --strict wants measurements of "
        "them, or the slice is the caller's"};
  if (free != tuples.end() || joinsTwice)
    return CopyReason{
        reasons::viewNotFree,
        "a part is given, kept for another entry point, part of something else or used "
        "as its place does not "
        "allow, or the whole is the caller's"};
  const std::vector<int64_t> extents = extentsOf(kernel, wholeValue);
  if (slowestDimension(whole, extents) != axis) {
    const int64_t runBytes = extents[static_cast<size_t>(axis)] *
                             stridesOf(whole, extents)[static_cast<size_t>(axis)] *
                             sizeOf(kernel.values[wholeValue].dtype);
    return CopyReason{reasons::viewNotWholeLines,
                      fmt::format("runs along {} in {} are no multiples of {} bytes", axisName,
                                  print(whole, kernel, kernel.values[wholeValue]),
                                  runBytes < longRunBytes ? lineBytes : sectorBytes)};
  }
  return CopyReason{reasons::viewNotAligned,
                    fmt::format("a part along {} does not start at a multiple of {} bytes",
                                axisName, whole.alignment)};
}

}  // namespace weft
