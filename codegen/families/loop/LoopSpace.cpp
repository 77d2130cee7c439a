// Threads to coordinates. All divisions are by constants and happen once a row; a step only adds.
#include "codegen/families/loop/LoopSpace.h"

#include "codegen/families/loop/LoopKnobs.h"
#include "kernel/Error.h"

#include <algorithm>
#include <limits>

namespace weft::codegen {
namespace {

constexpr int64_t limit32 = std::numeric_limits<int32_t>::max();

int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Slowest first; `fastest`, if among them, last.
std::vector<AxisId> ordered(std::vector<AxisId> axes, const std::map<AxisId, int64_t> &strides,
                            AxisId fastest) {
  const auto stride = [&](AxisId axis) {
    const auto found = strides.find(axis);
    return found == strides.end() ? std::numeric_limits<int64_t>::max() : found->second;
  };
  std::stable_sort(axes.begin(), axes.end(), [&](AxisId a, AxisId b) {
    if ((a == fastest) != (b == fastest)) return b == fastest;
    return stride(a) > stride(b);
  });
  return axes;
}

bool isPowerOfTwo(int value) { return value > 0 && (value & (value - 1)) == 0; }

/// Columns of a block are a power of two, so that lanes of one column, or columns of one warp, lie
/// regularly.
void checkColumnKnobs(const Kernel &kernel, const LoopKnobs &knobs, bool reduces) {
  const auto reject = [&](const std::string &what) {
    throw Error::unsupported("kernel '{}': loop knobs: {}", kernel.name, what);
  };
  const bool inWarp = knobs.reduction == ReductionMapping::warpColumns;
  const bool inCluster = knobs.reduction == ReductionMapping::clusterColumns,
             inGrid = knobs.reduction == ReductionMapping::gridColumns;
  if (!reduces) reject("columns, but nothing is reduced");
  if (knobs.laneAxis < 0 || knobs.laneAxis != knobs.vectorAxis)
    reject("lanes of columns lie along the vector axis");
  if (knobs.threadsPerRow < 1 || knobs.threads % 32 != 0 ||
      knobs.threads % knobs.threadsPerRow != 0)
    reject(fmt::format("{} threads a column in blocks of {}, which must be whole warps",
                       knobs.threadsPerRow, knobs.threads));
  if (!isPowerOfTwo(knobs.threads / knobs.threadsPerRow))
    reject(
        fmt::format("{} columns a block are no power of two", knobs.threads / knobs.threadsPerRow));
  if (inWarp && (knobs.threadsPerRow > 32 || !isPowerOfTwo(knobs.threadsPerRow)))
    reject(fmt::format("{} lanes a column; a warp has 32", knobs.threadsPerRow));
  const int most = inCluster ? 8 : inGrid ? 65535 : 1;
  if (knobs.blocksPerRow < (most > 1 ? 2 : 1) || knobs.blocksPerRow > most)
    reject(fmt::format(
        "{} blocks a column; clusters have 2 to 8, grids up to 65535, other columns one",
        knobs.blocksPerRow));
}

void checkKnobs(const Kernel &kernel, const LoopKnobs &knobs, bool reduces) {
  const auto reject = [&](const std::string &what) {
    throw Error::unsupported("kernel '{}': loop knobs: {}", kernel.name, what);
  };
  const int axes = static_cast<int>(kernel.axes.size());
  if (knobs.vectorAxis >= axes || knobs.laneAxis >= axes)
    reject("the vector or lane axis does not exist");
  if (!isPowerOfTwo(knobs.vectorWidth) || knobs.vectorWidth > 16)
    reject(fmt::format("vector width {} is not 1, 2, 4, 8 or 16", knobs.vectorWidth));
  if (knobs.threads < 1 || knobs.threads > 1024)
    reject(fmt::format("{} threads a block; the limit is 1024", knobs.threads));
  if (isColumnMapping(knobs.reduction)) return checkColumnKnobs(kernel, knobs, reduces);
  if (knobs.blocksPerRow != 1)
    reject("several blocks a row, whose mapping is neither cluster-columns nor grid-columns");
  const int perRow = std::max(1, knobs.threadsPerRow);
  if (knobs.threads % perRow != 0)
    reject(fmt::format("{} threads a row do not divide {} a block", perRow, knobs.threads));
  if (perRow > 1 && !reduces) reject("several threads a row, but nothing is reduced");
  if (perRow > 1 && perRow <= 32 && !isPowerOfTwo(perRow))
    reject(fmt::format("{} threads a row is no power of two", perRow));
  if (perRow > 32 && perRow % 32 != 0)
    reject(fmt::format("{} threads a row are no whole warps", perRow));
  if (knobs.combine == BlockCombine::tree && !isPowerOfTwo(perRow))
    reject(fmt::format("a tree of {} threads is no power of two", perRow));
  if (perRow > 1 && knobs.threads % 32 != 0)
    reject(fmt::format("{} threads a block are no whole warps", knobs.threads));
}

}  // namespace

LoopSpace::LoopSpace(const Kernel &kernel, const LoopKnobs &knobs,
                     const std::vector<AxisId> &outerAxes, const std::vector<AxisId> &reducedAxes,
                     const std::map<AxisId, int64_t> &strides, Names &names)
    : kernel(kernel), knobs(knobs), names(names) {
  if (!isRowMapping(knobs.reduction) && !isColumns()) this->knobs.threadsPerRow = 1;
  checkKnobs(kernel, this->knobs, !reducedAxes.empty());
  std::vector<AxisId> moving;  // axes of extent 1 have coordinate 0
  for (AxisId axis : outerAxes)
    if (extent(axis) > 1) moving.push_back(axis);
  outer = ordered(moving, strides, knobs.laneAxis);
  const auto isReduced = [&](AxisId axis) {
    return std::find(reducedAxes.begin(), reducedAxes.end(), axis) != reducedAxes.end();
  };
  reduced = ordered(reducedAxes, strides,
                    isReduced(knobs.vectorAxis) ? knobs.vectorAxis : knobs.laneAxis);
  const bool vectorExists = knobs.vectorAxis >= 0 && (isReduced(knobs.vectorAxis) ||
                                                      std::find(outer.begin(), outer.end(),
                                                                knobs.vectorAxis) != outer.end());
  width = vectorExists ? knobs.vectorWidth : 1;
  vectorReduced = vectorExists && isReduced(knobs.vectorAxis);
  for (AxisId axis : outer) rows *= count(axis);
  for (AxisId axis : reduced) rowVectors *= count(axis);
  threadsPerRow = std::max(1, this->knobs.threadsPerRow);
  rowsPerBlock = knobs.threads / threadsPerRow;
  shares = int64_t(threadsPerRow) * this->knobs.blocksPerRow;
  steps = ceilDivide(rowVectors, shares);
  wideRows = ceilDivide(rows, rowsPerBlock) * rowsPerBlock > limit32;
  for (const Axis &axis : kernel.axes) axisNames.push_back(names.reserve(axis.name));
  for (const Axis &axis : kernel.axes) coordinateNames.push_back(names.reserve("at_" + axis.name));
  isColumns() ? claimColumnWords() : claimWords();
  flatStepName = Code::name(words.step.str() + "_flat");
}

void LoopSpace::claimWords() {
  words = {.row = names.reserve(reduced.empty() ? "point" : "row"),
           .lane = names.reserve("lane"),
           .step = names.reserve("v"),
           .element = names.reserve("e"),
           .width = names.reserve("width"),
           .threads = names.reserve("threads"),
           .threadsPerRow = names.reserve("threadsPerRow"),
           .rowsPerBlock = names.reserve("rowsPerBlock"),
           .steps = names.reserve("steps"),
           .rows = names.reserve(reduced.empty() ? "points" : "rows"),
           .rowElements = names.reserve("share")};
  words.shares = words.threadsPerRow;
}

int64_t LoopSpace::count(AxisId axis) const {
  return axis == knobs.vectorAxis ? ceilDivide(extent(axis), width) : extent(axis);
}
int64_t LoopSpace::countOf(size_t position) const { return count(outer[position]); }

ConstantValue LoopSpace::vectorsAlong(AxisId axis) const {
  const ConstantValue own = ConstantValue::name(axisNames[axis]);
  if (axis != knobs.vectorAxis || width == 1) return own;
  const ConstantValue each = ConstantValue::name(words.width);
  return ConstantValue::group((extent(axis) % width == 0 ? own : own + each - 1) / each);
}

Code LoopSpace::atElement(const Index &index) const {
  if (index.irregular || index.perElement == 0) return index.text;
  if (index.perElement == 1) return code("{} + {}", index.text, words.element);
  return code("{} + {} * {}", index.text, index.perElement, words.element);
}

Index LoopSpace::coordinate(AxisId axis) const {
  const int64_t perElement = axis == knobs.vectorAxis && width > 1 ? 1 : 0;
  const int64_t multiple = extent(axis) == 1 ? 0 : perElement ? width : 1;
  if (extent(axis) == 1) return {.text = "0", .multipleOf = 0};
  const auto position = std::find(outer.begin(), outer.end(), axis);
  if (position != outer.end())
    return {.text = coordinateNames[axis],
            .perElement = perElement,
            .multipleOf = multiple,
            .outer = static_cast<int>(position - outer.begin())};
  return {.text = coordinateNames[axis],
          .perElement = perElement,
          .step = true,
          .multipleOf = multiple};
}

Code LoopSpace::range(size_t first, size_t last) {
  if (first == 0 && last + 1 == outer.size() &&
      !(first == last && outer[first] == knobs.vectorAxis && width > 1))
    return words.row;
  const auto found = ranges.find({first, last});
  if (found != ranges.end()) return found->second;
  std::vector<Code> faster, own;
  std::vector<std::string> wish;
  for (size_t i = last + 1; i < outer.size(); ++i) faster.push_back(countText(outer[i]));
  for (size_t i = first; i <= last; ++i) own.push_back(countText(outer[i]));
  for (size_t i = first; i <= last; ++i) wish.push_back(axisNames[outer[i]]);
  Code text = words.row;
  if (faster.size() == 1) text += code(" / {}", faster[0]);
  if (faster.size() > 1) text += code(" / ({})", joined(faster, " * "));
  if (first != 0)
    text += own.size() == 1 ? code(" % {}", own[0]) : code(" % ({})", joined(own, " * "));
  const bool isVector = first == last && outer[first] == knobs.vectorAxis && width > 1;
  if (isVector && text != words.row) text = code("{} * {}", text, words.width);
  if (isVector && text == words.row) text = code("{} * {}", text, words.width);
  const Code name = first == last ? coordinateNames[outer[first]]
                                  : names.reserve(fmt::format("at_{}", fmt::join(wish, "_")));
  int64_t points = 1;
  for (size_t i = first; i <= last; ++i) points *= count(outer[i]) * (isVector ? width : 1);
  const bool wide = points > limit32;
  if (wideRows && !wide) text = code("static_cast<int>({})", text);
  outerDeclarations.push_back(declareConstant(wide ? "weft::Offset" : "int", name, text));
  return ranges[{first, last}] = name;
}

std::vector<ConstantLine> LoopSpace::constants() const {
  ConstantLine extents{
      .type = "int", .note = "extents", .subject = {ConstantSubject::Kind::extents}};
  std::vector<AxisId> axes = outer;
  axes.insert(axes.end(), reduced.begin(), reduced.end());
  for (int axis = 0; axis < static_cast<int>(kernel.axes.size()); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
  for (AxisId axis : axes) extents.entries.emplace_back(axisNames[axis], extent(axis));
  std::vector<ConstantLine> lines;
  if (!extents.entries.empty()) lines.push_back(extents);
  if (width > 1)
    lines.push_back({"int",
                     {{words.width, width}},
                     "elements a thread takes along " + axisNames[knobs.vectorAxis]});
  if (isColumns()) {
    addColumnConstants(lines);
  } else if (threadsPerRow > 1) {
    lines.push_back(
        {"int", {{words.threadsPerRow, threadsPerRow}, {words.rowsPerBlock, rowsPerBlock}}, ""});
  } else {
    lines.push_back({"int",
                     {{words.threads, knobs.threads}},
                     reduced.empty() ? "a block" : "a block, one for each row"});
  }
  if (!isExact()) {
    std::vector<ConstantValue> counts;
    for (AxisId axis : outer) counts.push_back(vectorsAlong(axis));
    if (wideRows && !counts.empty()) counts[0] = ConstantValue::offset(counts[0]);
    lines.push_back(
        {wideRows ? "weft::Offset" : "int", {{words.rows, ConstantValue::product(counts)}}, ""});
  }
  if (reduced.empty()) return lines;
  std::vector<ConstantValue> counts;
  for (AxisId axis : reduced) counts.push_back(vectorsAlong(axis));
  const ConstantValue all = ConstantValue::product(counts);
  const bool needsTotal = reduced.size() > 1 && rowVectors % shares != 0;
  if (needsTotal)
    lines.push_back(
        {"int", {{words.rowElements, all}}, isColumns() ? "of a column" : "vectors of a row"});
  if (steps > 1) {
    ConstantValue share = all;
    const ConstantValue sharing = ConstantValue::name(words.shares);
    if (isShared() && rowVectors % shares == 0) share = all / sharing;
    const bool isWhole = rowVectors % shares == 0 && reduced.size() == 1 && vectorReduced &&
                         extent(reduced[0]) % width == 0;
    if (isShared() && width > 1 && isWhole)
      share =
          ConstantValue::name(axisNames[reduced[0]]) / (ConstantValue::name(words.width) * sharing);
    if (rowVectors % shares != 0) share = (all + sharing - 1) / sharing;
    lines.push_back({"int",
                     {{words.steps, share}},
                     isColumns() ? "a thread's share of a column" : "a thread's share of a row"});
  }
  return lines;
}

Block LoopSpace::prologue() {
  if (isColumns()) return columnPrologue();
  const bool shared = threadsPerRow > 1;
  Block block;
  if (shared && threadsPerRow == knobs.threads)
    block.push_back(declareConstant("int", words.lane, "threadIdx.x"));
  else if (shared)
    block.push_back(
        declareConstant("int", words.lane, code("threadIdx.x % {}", words.threadsPerRow)));
  const Code first = wideRows ? "weft::Offset(blockIdx.x)" : "blockIdx.x";
  Code text = code("{} * {} + threadIdx.x", first, words.threads);
  if (shared)
    text = code("{} * {} + threadIdx.x / {}", first, words.rowsPerBlock, words.threadsPerRow);
  if (shared && rowsPerBlock == 1) text = first;
  std::vector<std::string> axes;
  for (AxisId axis : outer) axes.push_back(axisNames[axis]);
  std::string note = fmt::format("({}){}", fmt::join(axes, ", "),
                                 outer.size() > 1 ? fmt::format(", {} slowest", axes[0]) : "");
  if (width > 1 && !vectorReduced)
    note += fmt::format(", {} of {} at once", width, axisNames[knobs.vectorAxis]);
  const Code type = wideRows ? "weft::Offset" : "int";
  // Threads beyond the last row may leave only where no reduction waits for them; elsewhere they
  // repeat the last row, which writes the same values twice.
  if (!isExact() && !mayLeave()) {
    const Code beyond = Code::name(words.row.str() + "_or_beyond");
    block.push_back(declareConstant(type, beyond, text));
    text = code("{0} < {1} ? {0} : {1} - 1", beyond, words.rows);
    note += "; the last row again where there is none";
  }
  block.push_back(declareConstant(type, words.row, text, note));
  if (!isExact() && mayLeave()) block.push_back(leave(code("{} >= {}", words.row, words.rows)));
  return block;
}

Block LoopSpace::stepCoordinates() const {
  Block block;
  if (reduced.empty()) return block;
  const bool shared = isShared(), walks = steps > 1;
  Code flat = shared ? words.lane : "0";
  if (walks && shared) flat = code("{} * {} + {}", words.step, words.shares, words.lane);
  if (walks && !shared) flat = words.step;
  if (reduced.size() == 1) {
    const int axis = reduced[0];
    const bool isVector = axis == knobs.vectorAxis && width > 1;
    if (isVector)
      flat = walks && shared ? code("({}) * {}", flat, words.width)
                             : code("{} * {}", flat, words.width);
    block.push_back(declareConstant("int", coordinateNames[axis], flat));
    return block;
  }
  const Code stepName = flat == words.step ? flat : flatStep();
  if (stepName != flat) block.push_back(declareConstant("int", stepName, flat));
  for (size_t i = 0; i < reduced.size(); ++i) {
    std::vector<Code> faster;
    for (size_t f = i + 1; f < reduced.size(); ++f) faster.push_back(countText(reduced[f]));
    Code text = stepName;
    if (faster.size() == 1) text += " / " + faster[0];
    if (faster.size() > 1) text += code(" / ({})", joined(faster, " * "));
    if (i != 0) text += code(" % {}", countText(reduced[i]));
    if (reduced[i] == knobs.vectorAxis && width > 1) text += " * " + words.width;
    block.push_back(declareConstant("int", coordinateNames[reduced[i]], text));
  }
  return block;
}

Code LoopSpace::stepGuard() const {
  const Code own = isColumns() && !isExact() ? words.inside : "";
  if (sharesAreEqual()) return own;
  const Code both = own.empty() ? "" : own + " && ";
  if (reduced.size() == 1)
    return code("{}{} < {}", both, coordinateNames[reduced[0]], axisNames[reduced[0]]);
  return code("{}{} < {}", both, flatStep(), words.rowElements);
}

Code LoopSpace::stepsOf(const Code &number) const {
  const AxisId axis = reduced.front();
  Code points = number;
  if (axis == knobs.vectorAxis && width > 1)
    points = code("({0} + {1} - 1) / {1}", number, words.width);
  for (size_t f = 1; f < reduced.size(); ++f)
    points = code("{} * {}", points, countText(reduced[f]));
  if (isShared()) points = code("({0} + {1} - 1) / {1}", points, words.shares);
  return code("{0} < 1 ? 0 : {0} < {1} ? {2} : {3}", number, axisNames[size_t(axis)], points,
              words.steps);
}

Launch LoopSpace::launch() const {
  const int64_t blocks = columnGroups() * knobs.blocksPerRow;
  if (blocks > limit32)
    throw Error::unsupported(
        "kernel '{}': {} blocks of {} threads; the limit is {} blocks: take more threads or wider "
        "vectors",
        kernel.name, blocks, knobs.threads, limit32);
  return {.grid = {blocks, 1, 1},
          .block = {knobs.threads, 1, 1},
          .cluster = isCluster() ? knobs.blocksPerRow : 1};
}

Block LoopSpace::launchChecks(const Code &launchBounds) const {
  std::vector<Code> extents, counts;
  int64_t others = 1;  // rows along all axes but the vector axis
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis)
    extents.push_back(code("{} == {}", axisNames[axis], kernel.axes[axis].extent));
  for (const AxisId axis : outer)
    if (axis != knobs.vectorAxis || width == 1) others *= count(axis);
    else if (extent(axis) % width == 0)
      counts.push_back(code("{} / {}", extent(axis), words.width));
    else counts.push_back(code("({0} + {1} - 1) / {1}", extent(axis), words.width));
  if (others > 1 || counts.empty()) counts.push_back(code("{}{}", others, wideRows ? "ll" : ""));
  const Code perBlock = threadsPerRow > 1 || isColumns() ? words.rowsPerBlock : words.threads;
  Code blocks = code("({0} + {1} - 1) / {1}", joined(counts, " * "), perBlock);
  if (isColumns() && knobs.blocksPerRow > 1) blocks += " * " + words.blocksPerColumn;
  const int64_t launched = columnGroups() * knobs.blocksPerRow;
  Block checks = {launchCheckOf(extents, "these extents"),
                  launchCheckOf({code("{} == {}", blocks, launched)}, code("{} blocks", launched))};
  if (!launchBounds.empty())
    checks.push_back(launchCheckOf({code("{} == {}", launchBounds, knobs.threads)},
                                   code("{} threads a block", knobs.threads)));
  return checks;
}

}  // namespace weft::codegen
