// Traffic of warps in sectors, reads in flight, instructions: the loop half of the analytic model
// (AnalyticCost.cpp).
#include "codegen/families/loop/LoopCost.h"

#include "codegen/families/loop/LoopCostConstants.h"
#include "codegen/families/loop/LoopFamily.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/loop/RowBudget.h"
#include "codegen/families/loop/RowPasses.h"
#include "kernel/Append.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/UnusedTokens.h"
#include "passes/configure/AnalyticParts.h"
#include "passes/configure/CostModel.h"
#include "passes/configure/Family.h"

#include <algorithm>
#include <cmath>

namespace weft {
namespace {

/// Equally spaced accesses: `count` of them, `stride` elements apart.
struct Run {
  int64_t count, stride;
};

int64_t blocksOfSpan(double bytes, int64_t blockBytes) {
  return std::max<int64_t>(
      1, static_cast<int64_t>(std::ceil(bytes / static_cast<double>(blockBytes))));
}

/// The axes of the kernel of a rotation: of its position, and of the elements that it turns.
struct RotationAxes {
  int position = -1, dimension = -1;
};
RotationAxes rotationAxesOf(const Expression &expression) {
  RotationAxes axes;
  for (const ExpressionNode &node : expression.all()) {
    if (node.type != ScalarType::rotation || node.kind != ExpressionNode::Kind::call) continue;
    const auto coordinateBelow = [&](int start) {
      for (std::vector<int> below = {start}; !below.empty();) {
        const ExpressionNode &one = expression[below.back()];
        below.pop_back();
        if (one.kind == ExpressionNode::Kind::coordinate) return one.index;
        below.insert(below.end(), one.children.begin(), one.children.end());
      }
      return -1;
    };
    axes = {.position = coordinateBelow(node.children[0]),
            .dimension = coordinateBelow(node.children[1])};
  }
  return axes;
}

/// Distinct blocks of `blockBytes` that two nested runs of elements touch, starting at an aligned
/// address.
double blocksTouched(Run a, Run b, int64_t elementBytes, int64_t blockBytes) {
  if (a.stride > b.stride) std::swap(a, b);
  if (a.stride == 0) a.count = 1;
  if (b.stride == 0) b.count = 1;
  const auto innerBytes = static_cast<double>(((a.count - 1) * a.stride + 1) * elementBytes);
  const bool innerScattered = a.stride * elementBytes >= blockBytes;
  const auto inner = innerScattered ? a.count : blocksOfSpan(innerBytes, blockBytes);
  const auto pitch = static_cast<double>(b.stride * elementBytes);
  if (b.count == 1 || pitch >= std::max<double>(innerBytes, static_cast<double>(blockBytes)))
    return static_cast<double>(b.count * inner);
  return static_cast<double>(
      blocksOfSpan(static_cast<double>(b.count - 1) * pitch + innerBytes, blockBytes));
}

double sectorsTouched(Run a, Run b, int64_t elementBytes) {
  return blocksTouched(a, b, elementBytes, analytic::sectorBytes);
}

double elementsTouched(Run a, Run b) {
  return static_cast<double>((a.stride == 0 ? 1 : a.count) * (b.stride == 0 ? 1 : b.count));
}

}  // namespace

LoopPricer::LoopPricer(const Kernel &kernel, const Device &device)
    : kernel(kernel), device(device), reduced(kernel.reducedAxes()) {
  for (ValueId value : operandValues(kernel))
    points = std::max(points, static_cast<double>(movedElements(kernel, value)));
  for (AxisId axis : reduced) rowElements *= static_cast<double>(rowExtent(kernel, axis));
  for (ValueId value : operandValues(kernel)) {
    if (static_cast<double>(movedElements(kernel, value)) * 2 < points) continue;
    ++fullOperands;
    const bool isInput = value < static_cast<int>(kernel.inputs.size());
    fullElementBytes =
        std::max(fullElementBytes, static_cast<double>(sizeOf(kernel.values[value].dtype)));
    if (isInput) inputBytesPerPoint += static_cast<double>(sizeOf(kernel.values[value].dtype));
  }
  const bool writesRows =
      std::any_of(kernel.outputs.begin(), kernel.outputs.end(), [&](ValueId value) {
        return std::any_of(kernel.values[value].axes.begin(), kernel.values[value].axes.end(),
                           [&](AxisId axis) { return isReduced(axis); });
      });
  passes = writesRows ? 1 : 0;
  for (const BodyOp &op : kernel.body) {
    passes += reductionsOf(op);
    keptValues = std::max(keptValues, keptOf(op));
  }
  if (reducesOnly()) passes = 1;
  const std::optional<UnusedTokens> unused = unusedTokens(kernel);
  sumsTokens = unused && isReduced(unused->axis);
}

/// Sums and maxima that are stored as they are: nothing waits for them, so everything
/// happens in one pass.
bool LoopPricer::reducesOnly() const {
  return std::ranges::all_of(kernel.body, [&](const BodyOp &reducing) {
    if (reducing.reducedAxes.empty()) return true;
    return isPlainReduction(reducing) && std::ranges::none_of(kernel.body, [&](const BodyOp &op) {
             return std::ranges::find_first_of(op.operands, reducing.results) != op.operands.end();
           });
  });
}

bool LoopPricer::isReduced(AxisId axis) const {
  return std::find(reduced.begin(), reduced.end(), axis) != reduced.end();
}

PlacedOperand LoopPricer::place(size_t operand, const Layout &layout) const {
  const bool isInput = operand < kernel.inputs.size();
  const int index =
      isInput ? kernel.inputs[operand] : kernel.outputs[operand - kernel.inputs.size()];
  const Value &value = kernel.values[index];
  PlacedOperand placed{.strides = std::vector<int64_t>(kernel.axes.size(), 0),
                       .elementBytes = sizeOf(value.dtype),
                       .bytes = movedElements(kernel, index) * sizeOf(value.dtype),
                       .isInput = isInput};
  const std::vector<int64_t> strides = stridesOf(layout, extentsOf(kernel, index));
  for (size_t i = 0; i < strides.size(); ++i)
    if (extent(value.axes[i]) > 1) placed.strides[static_cast<size_t>(value.axes[i])] = strides[i];
  // Positions of a page stand for those of a sequence, and pages for sequences.
  for (const BodyOp &op : kernel.body)
    if (isInput && op.kind == OpKind::gatherPages && op.operands.front() == index)
      for (size_t d = 0; d < value.axes.size(); ++d) {
        const AxisId gathered = kernel.values[size_t(op.results.front())].axes[d];
        if (gathered == value.axes[d]) continue;
        std::swap(placed.strides[size_t(value.axes[d])], placed.strides[size_t(gathered)]);
      }
  // Neighbours along the axes of the indices read rows anywhere in the table: also where rows are
  // neighbours in memory, those of two indices share no line.
  const int64_t apart = analytic::lineBytes / placed.elementBytes;
  for (const BodyOp &op : kernel.body)
    if (isInput && op.kind == OpKind::gather && op.operands.front() == index)
      for (const AxisId axis : kernel.values[size_t(op.operands[1])].axes)
        if (extent(axis) > 1) placed.strides[size_t(axis)] = std::max(strides.front(), apart);
  if (!isInput)  // tokens lie along their own axes as the cache's positions, and pages, do
    if (const BodyOp *const append = appendOf(kernel); append && append->results.front() == index) {
      const std::vector<AxisId> &walked = walkedAxes(kernel, index);
      for (size_t d = 0; d < walked.size(); ++d)
        if (walked[d] != value.axes[d])
          std::swap(placed.strides[size_t(value.axes[d])], placed.strides[size_t(walked[d])]);
    }
  placed.alignedElements = std::max<int64_t>(1, layout.alignment / placed.elementBytes);
  while (layout.offset % placed.alignedElements != 0) placed.alignedElements /= 2;
  for (const BodyOp &op : kernel.body)
    if (isInput && op.kind == OpKind::rotary && op.operands[0] == index)
      placed.partnerAxis = rotationAxesOf(op.expression).dimension;
  return placed;
}

int64_t LoopPricer::lanesAlong(const LoopKnobs &knobs) const {
  if (knobs.laneAxis < 0) return 1;
  const int64_t perThread = knobs.laneAxis == knobs.vectorAxis ? knobs.vectorWidth : 1;
  const int64_t neighbours = (extent(knobs.laneAxis) + perThread - 1) / perThread;
  const bool isRow = isRowMapping(knobs.reduction);
  return std::min<int64_t>(
      {analytic::warpSize, neighbours, isRow ? knobs.threadsPerRow : analytic::warpSize});
}

OperandPrice LoopPricer::price(const PlacedOperand &operand, const LoopKnobs &knobs) const {
  const int64_t width = knobs.vectorAxis < 0 ? 1 : knobs.vectorWidth;
  const int64_t vectorStride =
      knobs.vectorAxis < 0 ? 0 : operand.strides[static_cast<size_t>(knobs.vectorAxis)];
  int64_t laneStride =
      knobs.laneAxis < 0 ? 0 : operand.strides[static_cast<size_t>(knobs.laneAxis)];
  if (knobs.laneAxis == knobs.vectorAxis) laneStride *= width;
  const Run lanes{lanesAlong(knobs), laneStride}, vector{width, vectorStride};
  const auto bytes = static_cast<double>(operand.bytes);
  // One element a warp: warps share its sector, or the operand has other axes than the loop
  // (slices).
  if (lanes.stride == 0 && vector.stride == 0)
    return {.seconds = bytes / device.copyBandwidth,
            .bytes = bytes * std::max(1.0, double(analytic::sectorBytes) / operand.elementBytes)};
  const double wanted = elementsTouched(lanes, vector) * static_cast<double>(operand.elementBytes);

  // L2 sees a warp's distinct sectors. A thread that walks along the operand's fastest axis finds
  // its next elements in L1.
  double sectors = sectorsTouched(lanes, vector, operand.elementBytes);
  if (knobs.reduction == ReductionMapping::sequential)
    for (AxisId axis : reduced)
      if (operand.strides[static_cast<size_t>(axis)] == 1) sectors = wanted / analytic::sectorBytes;
  // Partners are loaded apart. Where lanes lie along their axis, they are in the same lines.
  const double loads = operand.partnerAxis < 0 ? 1 : 2,
               loadsFromL2 = operand.partnerAxis == knobs.laneAxis ? 1 : loads;
  const double l2Ratio = loadsFromL2 * std::max(1.0, sectors * analytic::sectorBytes / wanted);

  // L1 sees every instruction: one a thread for vectors, else one an element.
  const int64_t whole = std::min(width, maximumAccessBytes / operand.elementBytes);
  bool isVector = vectorStride == 1 && operand.alignedElements % whole == 0;
  for (size_t axis = 0; isVector && axis < operand.strides.size(); ++axis)
    if (static_cast<int>(axis) != knobs.vectorAxis && operand.strides[axis] % whole != 0)
      isVector = false;
  double requests = sectors;
  if (!isVector && vectorStride != 0)
    requests = static_cast<double>(width) * sectorsTouched(lanes, {1, 0}, operand.elementBytes);
  const double l1Ratio = loads * std::max(1.0, requests * analytic::sectorBytes / wanted);

  // Each instruction looks up the lines that its lanes touch, one after the other.
  const double accesses = isVector ? static_cast<double>(width) / static_cast<double>(whole)
                          : vectorStride != 0 ? static_cast<double>(width)
                                              : 1.0;
  const double lines =
      loads * accesses *
      blocksTouched(lanes, {isVector ? whole : 1, 1}, operand.elementBytes, analytic::lineBytes);

  const double seconds = std::max({bytes / device.copyBandwidth,
                                   bytes * l2Ratio / (device.copyBandwidth * analytic::l2Speedup),
                                   bytes * l1Ratio / (device.fmaFlops / 2),
                                   bytes / wanted * lines * analytic::cyclesOfLine /
                                       (device.fmaFlops / analytic::flopsOfCycle)});
  return {.seconds = seconds, .bytes = bytes * l2Ratio};
}

double LoopPricer::elementsPerThread(const LoopKnobs &knobs) const {
  switch (knobs.reduction) {
    case ReductionMapping::none: return knobs.vectorWidth;
    case ReductionMapping::sequential: return knobs.vectorWidth * analytic::sequentialUnroll;
    case ReductionMapping::warp:
    case ReductionMapping::block: {
      const double perStep = static_cast<double>(knobs.threadsPerRow) * knobs.vectorWidth;
      return std::ceil(rowElements / perStep) * knobs.vectorWidth;
    }
    case ReductionMapping::warpColumns:
    case ReductionMapping::blockColumns:
    case ReductionMapping::clusterColumns:
    case ReductionMapping::gridColumns: {
      const double steps =
          std::ceil(rowElements / (static_cast<double>(knobs.threadsPerRow) * knobs.blocksPerRow));
      if (knobs.reduction == ReductionMapping::gridColumns) {
        const auto words =
            static_cast<int64_t>(std::ceil(knobs.vectorWidth * inputBytesPerPoint / 4));
        return static_cast<double>(stepsInFlight(words, static_cast<int64_t>(steps)) *
                                   knobs.vectorWidth);
      }
      return std::min<double>(steps, analytic::columnUnroll) * knobs.vectorWidth;
    }
  }
  return 1;
}

bool LoopPricer::keepsRow(const LoopKnobs &knobs) const {
  const bool isSequential = knobs.reduction == ReductionMapping::sequential;
  const double elements = isSequential ? rowElements * knobs.vectorWidth : elementsPerThread(knobs);
  return fits(elements, knobs);
}

bool LoopPricer::fits(double elements, const LoopKnobs &knobs) const {
  if (elements <= knobs.vectorWidth) return true;  // one step: nothing is read again
  const double floats = elements * (keptValues + inputBytesPerPoint / 4);
  return elements <= rowFloatsPerTensor &&
         floats <= static_cast<double>(rowFloatBudget(knobs.threads));
}

/// Of a thread, whose loads are in flight together: of a row that it does not keep, and which ends
/// with the last token, those of fewer steps.
double LoopPricer::elementsInFlight(const LoopKnobs &knobs) const {
  const double elements = elementsPerThread(knobs);
  if (!sumsTokens || !isColumnMapping(knobs.reduction) ||
      knobs.reduction == ReductionMapping::gridColumns)
    return elements;
  const double row =
      std::ceil(rowElements / (static_cast<double>(knobs.threadsPerRow) * knobs.blocksPerRow)) *
      knobs.vectorWidth;
  return fits(row, knobs) ? elements
                          : std::min<double>(elements, stepsToTokens * knobs.vectorWidth);
}

double LoopPricer::registersOf(const LoopKnobs &knobs, double elements) const {
  if (knobs.reduction == ReductionMapping::none)
    return analytic::mapRegisters + 1.5 * elements * std::max(1, fullOperands - 1);
  if (isColumnMapping(knobs.reduction))
    return analytic::mapRegisters +
           knobs.vectorWidth * static_cast<double>(accumulatorsOf(kernel)) +
           elements * inputBytesPerPoint / 4;
  return analytic::rowRegisters + elements * std::max(1, fullOperands - 1);
}

/// Of an element: a vector along another axis has one rotation, one along the turned elements short
/// rotations of one frequency.
double LoopPricer::rotationInstructions(const BodyOp &op, const LoopKnobs &knobs) const {
  const bool isShort = hasShortRotations(op.expression);
  const double instructions =
      isShort ? analytic::shortRotationInstructions : analytic::rotationInstructions;
  if (knobs.vectorAxis < 0 || knobs.vectorWidth == 1) return instructions;
  const RotationAxes turned = rotationAxesOf(op.expression);
  if (knobs.vectorAxis == turned.dimension)
    return isShort ? analytic::vectorRotationInstructions : instructions;
  return knobs.vectorAxis == turned.position ? instructions : instructions / knobs.vectorWidth;
}

/// Of rotations, and of dropout: eight neighbours along the last logical axis share a draw, where
/// one thread has them.
double LoopPricer::pointInstructions(const LoopKnobs &knobs) const {
  double instructions = 0;
  for (const BodyOp &op : kernel.body) {
    if (op.kind == OpKind::rotary)
      instructions +=
          static_cast<double>(kernel.elements(op.results[0])) * rotationInstructions(op, knobs);
    if (op.kind != OpKind::dropout) continue;
    const Value &value = kernel.values[op.results[0]];
    const bool isAlongLast = !value.axes.empty() && knobs.vectorAxis == value.axes.back();
    const int sharing = isAlongLast ? std::min(knobs.vectorWidth, 8) : 1;
    instructions +=
        static_cast<double>(kernel.elements(op.results[0])) * analytic::drawInstructions / sharing;
  }
  return instructions;
}

KnobPrice LoopPricer::price(const LoopKnobs &knobs) const {
  const bool isMap = knobs.reduction == ReductionMapping::none,
             isColumns = isColumnMapping(knobs.reduction);
  const bool isRow = isRowMapping(knobs.reduction);
  const double elements = elementsInFlight(knobs);
  const double registers = registersOf(knobs, elements);
  KnobPrice result;
  if (!isMap && !keepsRow(knobs)) result.rereads = passes;

  double perThread = isRow ? elements : isMap ? knobs.vectorWidth : rowElements * knobs.vectorWidth;
  if (isColumns) perThread = std::ceil(perThread / knobs.threadsPerRow / knobs.blocksPerRow);
  const double threads = std::ceil(points / perThread);
  const double resident = analytic::registersPerMultiprocessor /
                          std::min<double>(registers, analytic::registersPerThread);
  const double blocks = std::max(
      1.0,
      std::floor(std::min<double>(resident, analytic::threadsPerMultiprocessor) / knobs.threads));
  // Few long columns may leave multiprocessors without a block.
  const double busy =
      isColumns ? std::min(1.0, std::ceil(threads / knobs.threads) / device.multiprocessors) : 1;
  const double active = std::min(blocks * knobs.threads, threads / (device.multiprocessors * busy));
  const double inFlight = active * elements * std::max(1.0, inputBytesPerPoint);
  const double scale = isColumns ? analytic::columnBytesInFlight
                       : isRow   ? analytic::rowBytesInFlight
                                 : analytic::mapBytesInFlight;
  result.share = 1 - std::exp(-inFlight * analytic::referenceBandwidth(device) / scale);

  const double issued =
      threads * (analytic::indexInstructions + 2.0 * fullOperands * perThread / knobs.vectorWidth) +
      kernel.flop() * analytic::instructionsPerFlop + pointInstructions(knobs);
  const double lanesBusy = std::min(
      1.0, threads / (static_cast<double>(device.multiprocessors) * analytic::threadsToFillIssue));
  result.issueSeconds = issued / (device.fmaFlops / 2) / lanesBusy;
  if (isColumns)
    result.share =
        columnShare(knobs, result.share * std::min(1.0, busy * analytic::loneMultiprocessorGain));
  if (knobs.reduction == ReductionMapping::gridColumns) {  // a last wave that is not full;
                                                           // multiprocessors are not in step
    const double waves = std::ceil(threads / knobs.threads) / (blocks * device.multiprocessors);
    if (waves > 1) result.share *= (1 + waves / std::ceil(waves)) / 2;
  }
  if (knobs.reduction == ReductionMapping::block && knobs.combine != BlockCombine::shuffle) {
    double combine = 0;
    if (knobs.combine == BlockCombine::linear)
      combine = knobs.threads * analytic::linearCombineSeconds;
    if (knobs.combine == BlockCombine::tree)
      combine = std::log2(knobs.threads) * analytic::treeStepSeconds;
    for (const BodyOp &op : kernel.body)
      result.issueSeconds +=
          reductionsOf(op) * points / rowElements * combine / device.multiprocessors;
  }
  return result;
}

/// Less for narrow strips, and for the reduction after the last load, during which no memory
/// moves.
double LoopPricer::columnShare(const LoopKnobs &knobs, double share) const {
  const bool inWarp = knobs.reduction == ReductionMapping::warpColumns;
  const double columns = inWarp ? static_cast<double>(analytic::warpSize) / knobs.threadsPerRow
                                : double(knobs.threads) / knobs.threadsPerRow;
  const double strip = columns * knobs.vectorWidth * fullElementBytes;
  if (strip < analytic::columnStripBytes)
    share *= std::pow(strip / analytic::columnStripBytes, analytic::columnStripExponent);
  const double moving = static_cast<double>(kernel.necessaryBytes()) / device.copyBandwidth;
  double joining =
      inWarp ? 0 : static_cast<double>(accumulatorsOf(kernel)) * analytic::columnCombineSeconds;
  if (knobs.reduction == ReductionMapping::clusterColumns)
    joining += analytic::clusterCombineSeconds;
  if (knobs.reduction == ReductionMapping::gridColumns) joining += analytic::gridCombineSeconds;
  else if (fullOperands > 1) share *= analytic::unbatchedColumnShare;
  return moving / (moving / share + joining);
}

double LoopPricer::seconds(const KnobPrice &knobs, double operandSeconds) const {
  return loopSeconds(device.launchSeconds, operandSeconds / knobs.share, knobs.issueSeconds);
}

double loopSeconds(double launchSeconds, double memorySeconds, double issueSeconds) {
  const double launch =
      launchSeconds *
      (analytic::loopLaunchShare +
       analytic::loopRampShare * std::min(1.0, memorySeconds / analytic::loopRampSeconds));
  const double seconds = launch + std::max(memorySeconds, issueSeconds) +
                         analytic::exposedShare * std::min(memorySeconds, issueSeconds);
  return std::round(seconds / analytic::resolutionSeconds) * analytic::resolutionSeconds;
}

Cost loopCost(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  const auto &knobs = configuration.knobs.get<LoopKnobs>();
  const LoopPricer pricer(kernel, device);
  const KnobPrice knobPrice = pricer.price(knobs);
  double operandSeconds = 0, bytes = 0;
  for (size_t i = 0; i < kernel.inputs.size() + kernel.outputs.size(); ++i) {
    const bool isInput = i < kernel.inputs.size();
    const Layout &layout =
        isInput ? configuration.inputs[i] : configuration.outputs[i - kernel.inputs.size()];
    const OperandPrice operand = pricer.price(pricer.place(i, layout), knobs);
    operandSeconds += operand.seconds * (isInput ? knobPrice.rereads : 1);
    bytes += operand.bytes * (isInput ? knobPrice.rereads : 1);
  }
  Cost cost;
  cost.seconds = pricer.seconds(knobPrice, operandSeconds);
  cost.bytesMoved = static_cast<int64_t>(bytes);
  cost.bound = analytic::boundOf(operandSeconds / knobPrice.share, knobPrice.issueSeconds,
                                 device.launchSeconds);
  return cost;
}

}  // namespace weft
