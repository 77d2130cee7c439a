// scatter_add, the gradient of a gather: a table whose rows are sums of the rows that an index
// sends there. Alone among the ops of loop kernels its iteration space is not walked: blocks own
// rows of the table and look for their indices (scatter.cuh).
#include "codegen/EntryName.h"
#include "codegen/families/loop/Loop.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/loop/LoopMemory.h"
#include "kernel/Error.h"

#include <algorithm>

namespace weft::codegen {
namespace {

constexpr int lanes = 32, rowsPerWarp = 4;  // of scatter.cuh
constexpr int64_t mostRowBlocks = 65535;    // of a grid along y

/// The space of the columns of one row, side by side in every warp; positions are its reduced axes.
LoopKnobs columnKnobs(const LoopKnobs &knobs) {
  LoopKnobs columns = knobs;
  columns.laneAxis = knobs.vectorAxis;
  columns.reduction = ReductionMapping::blockColumns;
  columns.threadsPerRow = knobs.threads / lanes;
  return columns;
}

Statement function(Code name, Code parameters, Block body) {
  return {.kind = Statement::Kind::function,
          .type = std::move(parameters),
          .name = std::move(name),
          .body = std::move(body)};
}

class Scatter {
public:
  Scatter(const Kernel &kernel, const Configuration &configuration, const LoopKnobs &knobs)
      : kernel(kernel),
        configuration(configuration),
        knobs(knobs),
        rows(kernel.values[kernel.body[0].operands[0]]),
        indices(kernel.values[kernel.body[0].operands[1]]),
        table(kernel.values[kernel.body[0].results[0]]) {
    program.entry = names.reserve(entryName(kernel));
  }

  Program lower() {
    const std::vector<AxisId> columns(table.axes.begin() + 1, table.axes.end());
    std::map<AxisId, int64_t> strides;
    const std::vector<int64_t> own = stridesOf(configuration.outputs[0], extentsOf(table));
    for (size_t d = 1; d < table.axes.size(); ++d) strides[table.axes[d]] = own[d];
    LoopSpace space(kernel, columnKnobs(knobs), columns, indices.axes, strides, names);
    if (space.isPartial())
      throw Error::unsupported("kernel '{}': scatter_add takes vectors that divide their axis",
                               kernel.name);
    LoopMemory memory(space, names, "");
    addParameters();
    program.constants = space.constants();
    const Operand from =
        memory.operand(tensorNames[rows.name], rows, layoutOf(rows), program.constants);
    const Operand ids =
        memory.operand(tensorNames[indices.name], indices, layoutOf(indices), program.constants);
    const Operand to =
        memory.operand(tensorNames[table.name], table, layoutOf(table), program.constants);
    addBody(space, memory, from, ids, to);
    const int64_t warps = knobs.threads / lanes, rowsOfBlock = warps * rowsPerWarp,
                  tableRows = kernel.axes[table.axes[0]].extent;
    const int64_t rowBlocks = (tableRows + rowsOfBlock - 1) / rowsOfBlock;
    if (rowBlocks > mostRowBlocks)
      throw Error::unsupported("kernel '{}': a table of {} rows; scatter_add takes {}", kernel.name,
                               tableRows, mostRowBlocks * rowsOfBlock);
    program.launch = {.grid = {space.columnGroups(), rowBlocks, 1}, .block = {knobs.threads, 1, 1}};
    program.headers = {"weft/scatter.cuh", "weft/types.cuh", "weft/vector.cuh"};
    program.launchBounds = std::to_string(knobs.threads);
    program.mapping = describe(kernel, knobs);
    const Block checks = space.launchChecks("");
    program.body.insert(program.body.begin(), checks.begin(), checks.end());
    pruneUnused(program);
    return std::move(program);
  }

private:
  std::vector<int64_t> extentsOf(const Value &value) const {
    std::vector<int64_t> extents;
    for (AxisId axis : value.axes) extents.push_back(kernel.axes[axis].extent);
    return extents;
  }
  const Layout &layoutOf(const Value &value) const {
    for (size_t n = 0; n < kernel.inputs.size(); ++n)
      if (&kernel.values[kernel.inputs[n]] == &value) return configuration.inputs[n];
    return configuration.outputs[0];
  }

  void addParameters() {
    const auto add = [&](Parameter::Kind kind, size_t index, const Value &value) {
      const Code name = names.reserve(value.name);
      tensorNames[value.name] = name;
      program.parameters.push_back(
          {kind, static_cast<int>(index), name, std::string(cudaNameOf(value.dtype))});
    };
    for (size_t n = 0; n < kernel.inputs.size(); ++n)
      add(Parameter::Kind::input, n, kernel.values[kernel.inputs[n]]);
    add(Parameter::Kind::output, 0, table);
  }

  /// Coordinates of a position along the axes of the indices, in logical order, so that positions
  /// ascend.
  Block positionCoordinates(const LoopSpace &space, const Code &position) const {
    Block block;
    for (size_t d = 0; d < indices.axes.size(); ++d) {
      std::vector<Code> faster;
      for (size_t f = d + 1; f < indices.axes.size(); ++f)
        faster.push_back(space.axisName(indices.axes[f]));
      Code text = position;
      if (faster.size() == 1) text += " / " + faster[0];
      if (faster.size() > 1) text += code(" / ({})", joined(faster, " * "));
      if (d > 0) text += code(" % {}", space.axisName(indices.axes[d]));
      if (space.extent(indices.axes[d]) > 1)
        block.push_back(declareConstant("int", space.coordinate(indices.axes[d]).text, text));
    }
    return block;
  }

  /// The access to a tensor: its row axis, if it has one, at `row`.
  Address addressOf(const LoopSpace &space, LoopMemory &memory, const Operand &operand,
                    const Code &row) const {
    std::vector<Index> at;
    for (AxisId axis : operand.axes) {
      Index index = axis == table.axes[0] ? Index{.text = row} : space.coordinate(axis);
      index.step = false;  // positions are flat here, whichever way the memory lies
      at.push_back(index);
    }
    return memory.address(operand, at, false, [](int) { return Code(); });
  }

  void addBody(LoopSpace &space, LoopMemory &memory, const Operand &from, const Operand &ids,
               const Operand &to) {
    const Code scratch = names.reserve("scratch"), firstRow = names.reserve("firstRow"),
               positions = names.reserve("positions"), position = names.reserve("position"),
               indexAt = names.reserve("indexAt"), load = names.reserve("load"),
               store = names.reserve("store"), row = names.reserve("tableRow"),
               sum = names.reserve("sum"), found = names.reserve("found");
    const Code width = space.hasVector() ? space.words.width : "1",
               tableRows = space.axisName(table.axes[0]);
    const auto loadOf = [&](const Operand &operand) {
      const Address address = addressOf(space, memory, operand, row);
      return Statement{.kind = Statement::Kind::load,
                       .name = found,
                       .pointer = address.pointer,
                       .access = address.access,
                       .width = space.words.width,
                       .stride = address.stride};
    };
    Block index = positionCoordinates(space, position), values = index;
    index.push_back(loadOf(ids));
    values.push_back(loadOf(from));
    for (Block *block : {&index, &values}) block->push_back(evaluate("return " + found));
    const Address target = addressOf(space, memory, to, row);
    const Statement write{.kind = Statement::Kind::store,
                          .value = sum,
                          .pointer = target.pointer,
                          .access = target.access,
                          .width = space.words.width,
                          .stride = target.stride};
    const Code inside = space.isExact() ? "" : " && " + space.words.inside;
    const Block writes = {guard(code("{} < {}{}", row, tableRows, inside), {write})};
    std::vector<Code> axes;
    for (AxisId axis : indices.axes) axes.push_back(space.axisName(axis));

    Block &body = program.body;
    const int warps = knobs.threads / lanes;
    body.push_back({.kind = Statement::Kind::shared,
                    .type = code("weft::ScatterScratch<{}, {}>", warps, width),
                    .name = scratch});
    const auto append = [&](const Block &block) {
      body.insert(body.end(), block.begin(), block.end());
    };
    append(space.prologue());
    append(space.coordinates());
    append(memory.rowOffsets());
    body.push_back(declareConstant("int", firstRow, code("blockIdx.y * {}", warps * rowsPerWarp),
                                   "of the table; the block's"));
    body.push_back(declare("constexpr int", positions, axes.empty() ? "1" : joined(axes, " * ")));
    body.push_back(codegen::space());
    body.push_back(function(indexAt, "int " + position, std::move(index)));
    body.push_back(function(load, "int " + position, std::move(values)));
    body.push_back(function(store, code("int {}, const auto &{}", row, sum), writes));
    body.push_back(evaluate(code("weft::scatterRows({}, {}, {}, {}, {}, {})", scratch, firstRow,
                                 positions, indexAt, load, store)));
  }

  const Kernel &kernel;
  const Configuration &configuration;
  const LoopKnobs &knobs;
  const Value &rows, &indices, &table;
  Names names;
  Program program;
  std::map<std::string, Code> tensorNames;
};

}  // namespace

bool isScatter(const Kernel &kernel) {
  return kernel.body.size() == 1 && kernel.body[0].kind == OpKind::scatterAdd;
}

Program lowerScatter(const Kernel &kernel, const Configuration &configuration,
                     const LoopKnobs &knobs) {
  return Scatter(kernel, configuration, knobs).lower();
}

}  // namespace weft::codegen
