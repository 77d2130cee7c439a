// Columns that blocks of the grid share (gridColumns): loads of several steps are issued before the
// first is used, since few registers beside the accumulators are left to many threads; and the last
// block of a column combines the partial results of all.
#include "codegen/families/loop/LoopPasses.h"

#include "codegen/families/loop/RowBudget.h"
#include "kernel/Error.h"

#include <algorithm>

namespace weft::codegen {
/// As many steps as fit, a power of two.
void LoopPasses::chooseBatch() {
  int64_t words = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node &node = graph.nodes[n];
    const bool whole =
        node.kind == Node::Kind::load && node.condition.empty() && node.operands.empty();
    const bool irregular = std::any_of(node.at.begin(), node.at.end(),
                                       [](const Index &index) { return index.irregular; });
    hoisted[n] = reachable[n] && node.step && whole && !irregular && node.depth == 0;
    if (!hoisted[n]) continue;
    const int64_t bytes = (node.perElement ? space.width : 1) * sizeOf(inputs[node.input].dtype);
    words += std::max<int64_t>(1, bytes / 4);
  }
  batch = stepsInFlight(words, space.steps);
  if (batch == 1) hoisted.assign(hoisted.size(), false);
}

/// The loads of one batch; names what they load for the steps that use it.
Block LoopPasses::batchLoads() {
  Block declarations, loads;
  if (batch == 1) return {};
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (hoisted[n])
      loads.push_back(
          hoistedLoad(static_cast<int>(n), space.words.slot, space.words.batch, declarations));
  declarations.insert(declarations.end(), loads.begin(), loads.end());
  return declarations;
}

/// Batches of steps: all loads, then all that needs them. A last batch may be cut.
Block LoopPasses::wrapInBatches(const Block &loads, Block body) {
  const bool isCut = space.steps % batch != 0;
  Code inside = computedStep();
  // Where all shares are equal the guard of a step says nothing of the step, only of the column.
  if (isCut && space.sharesAreEqual())
    inside = code("{}{}{} < {}", inside, inside.empty() ? "" : " && ", space.words.step,
                  space.words.steps);
  const auto inSlots = [&](Block statements) {
    if (!inside.empty()) statements = {guard(inside, std::move(statements))};
    Block slot = {declareConstant(
        "int", space.words.step,
        code("{} * {} + {}", space.words.group, space.words.batch, space.words.slot))};
    for (Block part : {space.stepCoordinates(), statements})
      slot.insert(slot.end(), part.begin(), part.end());
    return loop(space.words.slot, space.words.batch, 0, std::move(slot));
  };
  const auto firstLoad = std::find_if(loads.begin(), loads.end(), [](const Statement &one) {
    return one.kind == Statement::Kind::load;
  });
  Block group(loads.begin(), firstLoad);
  group.push_back(inSlots({firstLoad, loads.end()}));
  group.push_back(inSlots(std::move(body)));
  const Code batches = isCut ? code("({0} + {1} - 1) / {1}", space.words.steps, space.words.batch)
                             : code("{} / {}", space.words.steps, space.words.batch);
  return {declare("constexpr int", space.words.batch, std::to_string(batch)),
          declare("constexpr int", space.words.batches, batches),
          loop(space.words.group, space.words.batches, 1, std::move(group))};
}

/// "if (!weft::gridColumnSums(scratch, acrossBlocks, dgamma, dbeta)) return;": the last block of a
/// column goes on.
void LoopPasses::finishGrid(const std::vector<int> &reductions, Block &block) {
  if (reductions.empty()) return;
  const bool usesSums = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node &node) {
    return node.depth > 1 || (node.depth == 1 && node.step);
  });
  if (usesSums)
    throw Error::unsupported(
        "kernel '{}': blocks of a grid that share columns do not know their sums",
        space.kernel.name);
  std::vector<Code> arguments = {names.reserve("scratch"), names.reserve("acrossBlocks")};
  for (int index : reductions) {
    if (graph.nodes[index].reduction != Reduction::sum)
      throw Error::unsupported("kernel '{}': columns that the grid shares are joined by sums alone",
                               space.kernel.name);
    arguments.push_back(nodeNames[index]);
  }
  columnScratch.emplace_back(arguments[0], reductions.size());
  const Code width = space.hasVector() ? space.words.width : "1";
  gridPartials.push_back({.kind = Statement::Kind::declare,
                          .type = code("weft::GridPartials<{}, {}, {} * {} * {}>",
                                       space.columnGroups(), space.words.blocksPerColumn,
                                       reductions.size(), space.words.rowsPerBlock, width),
                          .name = arguments[1]});
  graph.headers.erase("weft/columns.cuh");
  graph.headers.insert("weft/grid.cuh");
  block.push_back(leave(code("!weft::gridColumnSums({})", joined(arguments, ", "))));
}

}  // namespace weft::codegen
