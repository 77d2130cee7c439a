// The order of a loop kernel. A node is emitted in the section where its first user stands: a
// section is the row-level code before a pass, or the pass itself. Names are handed out in node
// order, so equal graphs give equal text.
#include "codegen/families/loop/LoopPasses.h"

#include "codegen/families/loop/RowBudget.h"

#include <algorithm>
#include <utility>

namespace weft::codegen {
namespace {

bool isGathered(const Node &node) {
  return std::any_of(node.at.begin(), node.at.end(),
                     [](const Index &index) { return index.irregular; });
}

}  // namespace

LoopPasses::LoopPasses(LoopGraph &graph, LoopSpace &space, LoopMemory &memory, Names &names,
                       std::vector<Operand> inputs, std::vector<Operand> outputs)
    : graph(graph),
      space(space),
      memory(memory),
      names(names),
      inputs(std::move(inputs)),
      outputs(std::move(outputs)) {}

std::vector<int> LoopPasses::placeNodesOf(const OutputStore &store) {
  std::vector<int> nodes;
  for (const Index &index : store.at)
    if (index.node >= 0) nodes.push_back(index.node);
  if (store.inside >= 0) nodes.push_back(store.inside);
  return nodes;
}

bool LoopPasses::storeIsStep(const OutputStore &store) const {
  const Operand &output = outputs[store.output];
  bool step = graph.nodes[store.node].step;
  for (size_t d = 0; d < store.at.size(); ++d) step |= store.at[d].step && output.extents[d] > 1;
  return step;
}

/// Moves every node to its first user, and finds what crosses sections.
void LoopPasses::placeNodes() {
  const size_t count = graph.nodes.size();
  users.assign(count, {});
  reachable.assign(count, false);
  std::vector<int> first(count, INT32_MAX);
  for (const OutputStore &store : graph.stores) {
    reachable[store.node] = true;
    first[store.node] = graph.nodes[store.node].depth;
    users[store.node].push_back({graph.nodes[store.node].depth, storeIsStep(store)});
    for (const int node : placeNodesOf(store)) {
      reachable[node] = true;
      first[node] = std::min(first[node], graph.nodes[store.node].depth);
      users[node].push_back({graph.nodes[store.node].depth, storeIsStep(store)});
    }
  }
  for (size_t n = count; n-- > 0;) {
    Node &node = graph.nodes[n];
    if (!reachable[n]) continue;
    const bool reduces = node.kind == Node::Kind::reduction;
    if (!reduces) node.depth = std::max(node.depth, first[n]);
    const Section own = reduces ? Section{node.depth - 1, true} : Section{node.depth, node.step};
    for (int operand : node.operands) {
      reachable[operand] = true;
      first[operand] = std::min(first[operand], own.depth);
      users[operand].push_back(own);
    }
    lastDepth = std::max(lastDepth, node.depth);
  }
}

bool LoopPasses::crosses(int node) const {
  const Node &own = graph.nodes[node];
  return std::any_of(users[node].begin(), users[node].end(), [&](const Section &user) {
    return user != Section{own.depth, own.step};
  });
}

/// Rows stay in registers if each tensor and all of them together fit; else passes start from
/// memory again.
void LoopPasses::chooseKept() {
  const size_t count = graph.nodes.size();
  kept.assign(count, false);
  hoisted.assign(count, false);
  const int64_t perTensor = space.steps * space.width;
  double &floats = rowFloats;
  for (size_t n = 0; n < count; ++n) {
    const Node &node = graph.nodes[n];
    if (!reachable[n] || !node.step) continue;
    const bool whole = node.kind == Node::Kind::load && node.condition.empty() &&
                       !isGathered(node) && node.operands.empty();
    const bool hasOuter = std::any_of(node.at.begin(), node.at.end(),
                                      [](const Index &index) { return index.outer >= 0; });
    hoisted[n] = whole && hasOuter && node.depth == 0 && space.steps > 1;
    kept[n] = node.kind == Node::Kind::pointwise && crosses(static_cast<int>(n));
    if (hoisted[n]) floats += static_cast<double>(perTensor * sizeOf(inputs[node.input].dtype)) / 4;
    if (kept[n]) floats += static_cast<double>(perTensor);
    if (node.drawsAlone)
      floats +=
          static_cast<double>(2 * perTensor);  // words of draws that the compiler keeps in flight
  }
  inRegisters =
      space.steps == 1 || (perTensor <= rowFloatsPerTensor &&
                           floats <= static_cast<double>(rowFloatBudget(space.knobs.threads)));
  if (inRegisters) return chooseDraws(floats);
  kept.assign(count, false);
  hoisted.assign(count, false);
  if (space.isGrid()) chooseBatch();
}

bool LoopPasses::fillsRegisters() const {
  if (graph.unused.reduced < 0 || !space.isColumns() || !inRegisters || space.steps == 1)
    return false;
  const double sums = static_cast<double>(graph.stores.size()) * space.width;
  return takeHalf(rowFloats + sums, space.knobs.threads);
}

/// Dropout draws that the first pass needs are drawn while its loads are in flight, if they fit:
/// half a register each.
void LoopPasses::chooseDraws(double floats) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node &node = graph.nodes[n];
    if (!reachable[n] || node.kind != Node::Kind::kept || node.depth != 0 || !node.step ||
        space.steps == 1)
      continue;
    floats += static_cast<double>(space.steps * space.width) / 2;
    hoisted[n] = floats <= static_cast<double>(rowFloatBudget(space.knobs.threads));
    drawsAhead |= hoisted[n];
  }
  if (!drawsAhead) return;
  seedName = names.reserve("seed");
  for (Statement &statement : graph.prologue) {
    keyPointer = graph.keyPointer;
    statement.value = code("weft::loadStepInOrder({}, {})", keyPointer, seedName);
  }
}

void LoopPasses::nameNodes() {
  const size_t count = graph.nodes.size();
  nodeNames.assign(count, "");
  inVec.assign(count, false);
  std::vector<bool> stored(count, false);
  for (const OutputStore &store : graph.stores) stored[store.node] = true;
  for (size_t n = 0; n < count; ++n) {
    const Node &node = graph.nodes[n];
    if (!reachable[n]) continue;
    const bool load = node.kind == Node::Kind::load;
    const bool irregular = isGathered(node) && node.perElement;
    inVec[n] = node.perElement && (load ? !irregular
                                        : node.kind != Node::Kind::pointwise || stored[n] ||
                                              crosses(static_cast<int>(n)));
    nodeNames[n] = names.reserve(load        ? node.wish + (inVec[n] ? "_v" : "_e")
                                 : stored[n] ? node.wish + "_out"
                                             : node.wish);
    if (hoisted[n]) rowNames[static_cast<int>(n)] = names.reserve(node.wish + "_row");
  }
}

std::vector<int> LoopPasses::reductionsOf(int depth) const {
  std::vector<int> result;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (reachable[n] && graph.nodes[n].kind == Node::Kind::reduction &&
        graph.nodes[n].depth == depth + 1)
      result.push_back(static_cast<int>(n));
  return result;
}

void LoopPasses::rowSection(int depth, Block &block) {
  std::set<int> nodes;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node &node = graph.nodes[n];
    if (reachable[n] && !node.step && node.depth == depth && node.kind != Node::Kind::reduction)
      nodes.insert(static_cast<int>(n));
  }
  emit(nodes, {}, block);
  emitStores(depth, false, block);
}

/// Step nodes that a pass must compute, given that kept ones of earlier passes are there.
std::set<int> LoopPasses::neededIn(int depth) const {
  std::set<int> needed;
  std::vector<int> open;
  const auto visit = [&](int n) {
    const Node &node = graph.nodes[n];
    const bool keptBefore = kept[n] && node.depth < depth;
    if (node.step && !keptBefore && !done.count(n) && needed.insert(n).second) open.push_back(n);
  };
  for (int reduction : reductionsOf(depth)) visit(graph.nodes[reduction].operands[0]);
  for (const OutputStore &store : graph.stores)
    if (graph.nodes[store.node].depth == depth && storeIsStep(store)) {
      visit(store.node);
      for (const int node : placeNodesOf(store)) visit(node);
    }
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (kept[n] && graph.nodes[n].depth == depth) visit(static_cast<int>(n));
  while (!open.empty()) {
    const int n = open.back();
    open.pop_back();
    for (int operand : graph.nodes[n].operands) visit(operand);
  }
  return needed;
}

static Code both(Code inside, const Code &more) {
  if (!more.empty()) inside += (inside.empty() ? "" : " && ") + more;
  return inside;
}

Code LoopPasses::insideStep() const { return both(space.stepGuard(), graph.extraStepGuard); }

Code LoopPasses::computedStep() const {
  const bool asks = graph.unused.input >= 0 && !graph.unused.mayLeave && !endsSteps();
  return both(insideStep(), asks ? code("{} < {}", graph.unused.token, graph.unused.name) : Code());
}

Block LoopPasses::wrapInLoop(Block body) {
  return wrapInSteps(std::move(body), computedStep(), endsSteps() ? tokenSteps : space.words.steps);
}

/// How many elements of a step's vector are inside the tensor, where that differs between steps.
Block LoopPasses::validOfStep() const {
  if (!graph.validIsStep || graph.valid.empty()) return {};
  return {declareConstant("int", graph.valid, graph.validText)};
}

/// The body in every step where `inside` holds, of `bound` steps.
Block LoopPasses::wrapInSteps(Block body, const Code &inside, const Code &bound) {
  if (!inside.empty()) body = {guard(inside, std::move(body))};
  Block coordinates;
  if (space.steps > 1 || !stepDeclared) coordinates = space.stepCoordinates();
  if (!coordinates.empty())
    for (const Statement &valid : validOfStep()) coordinates.push_back(valid);
  stepDeclared = true;
  coordinates.insert(coordinates.end(), body.begin(), body.end());
  if (space.steps == 1) return coordinates;
  return {loop(space.words.step, bound, inRegisters ? 0 : unrolledSteps(), std::move(coordinates))};
}

/// The load of a node into slot `slot` of an array of `slots`, which is declared in `declarations`.
Statement LoopPasses::hoistedLoad(int index, const Code &slot, const Code &slots,
                                  Block &declarations) {
  const DType dtype = inputs[graph.nodes[index].input].dtype;
  const Code &row = rowNames.at(index);
  Statement load = loadOf(index);
  load.name = code("{}[{}]", row, slot);
  load.declares = false;
  load.raw = load.access == Access::packed;
  load.inOrder = load.raw && drawsAhead && space.width * sizeOf(dtype) >= 4;
  Code type = typeOf(index);
  if (load.raw) type = code("weft::Packed<{}, {}>", cudaNameOf(dtype), space.words.width);
  if (load.raw) packedRows[index] = load.name;
  else nodeNames[index] = load.name;
  declarations.push_back(declare(type, code("{}[{}]", row, slots)));
  return load;
}

/// All loads of the row before the first use, so that they are in flight together; then what does
/// not wait for them.
void LoopPasses::hoistLoads(Block &block) {
  Block body, draws;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!hoisted[n]) continue;
    if (graph.nodes[n].kind == Node::Kind::kept) {
      const Code &row = rowNames.at(static_cast<int>(n));
      block.push_back(declare(code("weft::Kept<{}>", space.words.width),
                              code("{}[{}]", row, space.words.steps)));
      nodeNames[n] = code("{}[{}]", row, space.words.step);
      draws.push_back(assign(nodeNames[n], graph.nodes[n].text));
      continue;
    }
    body.push_back(hoistedLoad(static_cast<int>(n), space.words.step, space.words.steps, block));
  }
  for (Block *part : {&body, &draws}) {
    if (part->empty()) continue;
    if (part == &body && drawsAhead)
      block.push_back(
          declareConstant("auto", seedName, code("weft::loadSeedInOrder({})", keyPointer)));
    if (part == &draws) block.insert(block.end(), graph.prologue.begin(), graph.prologue.end());
    const Block wrapped = wrapInLoop(std::move(*part));
    block.insert(block.end(), wrapped.begin(), wrapped.end());
  }
  if (!block.empty()) block.push_back(codegen::space());
}

void LoopPasses::pass(int depth, Block &block) {
  const std::vector<int> reductions = reductionsOf(depth);
  const std::set<int> nodes = neededIn(depth);
  Block body;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (kept[n] && graph.nodes[n].depth == depth)
      block.push_back(
          declare(typeOf(static_cast<int>(n)),
                  space.steps > 1 ? code("{}[{}]", nodeNames[n], space.words.steps) : nodeNames[n],
                  "", "kept on chip"));
  declareAccumulators(reductions, block);
  const Block loads = batchLoads();
  emit(nodes, reductions, body);
  emitStores(depth, true, body);
  if (body.empty()) return;
  const Block wrapped =
      batch > 1 ? wrapInBatches(loads, std::move(body)) : wrapInLoop(std::move(body));
  block.insert(block.end(), wrapped.begin(), wrapped.end());
  if (!scoped) done.insert(nodes.begin(), nodes.end());
  finishReductions(reductions, block);
  if (depth < lastDepth) block.push_back(codegen::space());
}

Statement LoopPasses::loadOfTokens() {
  const Address address =
      memory.address(inputs[size_t(graph.unused.input)],
                     {{.text = Code::plain(std::to_string(graph.unused.element)), .multipleOf = 1}},
                     false, [](int) { return Code(); });
  return {.kind = Statement::Kind::load,
          .name = graph.unused.name,
          .value = "0",
          .pointer = address.pointer,
          .access = address.access,
          .width = space.words.width,
          .stride = address.stride,
          .count = address.count};
}

/// Before anything is loaded: threads whose row is no token's leave, behind zeros if these are
/// read.
Block LoopPasses::unusedRows() {
  const LoopGraph::UnusedRows &unused = graph.unused;
  if (!unused.mayLeave) return {};
  Block ofRow, ofSteps;
  if (!unused.areUnread)
    for (const OutputStore &store : graph.stores)
      (storeIsStep(store) ? ofSteps : ofRow).push_back(zeroStoreOf(store));
  Block body;
  if (!ofSteps.empty()) {
    const bool wasDeclared = std::exchange(stepDeclared, false);
    body = wrapInLoop(std::move(ofSteps));
    stepDeclared = wasDeclared;
  }
  if (!ofRow.empty() && !space.storeGuard().empty())
    ofRow = {guard(space.storeGuard(), std::move(ofRow))};
  body.insert(body.end(), ofRow.begin(), ofRow.end());
  body.push_back(evaluate("return"));
  const Statement tokens = loadOfTokens();
  return {tokens, guard(code("{} >= {}", unused.token, unused.name), std::move(body))};
}

/// Loads of steps in a loop that is not unrolled whole overlap where nothing is asked between them.
/// So where tokens are the slowest of what is summed, such a loop runs to the last token of all
/// threads, and what it reads behind it a mask takes off again. Where rows or batches of steps are
/// loaded before they are used, every load asks.
bool LoopPasses::endsSteps() const {
  return graph.unused.reduced == 0 && !inRegisters && batch == 1;
}

/// Where the number of steps is known at run time alone, some loops of eight at once spill.
int LoopPasses::unrolledSteps() const { return endsSteps() ? stepsToTokens : space.unroll(); }

/// Threads that stay for sums of others, or sum tokens themselves: the number of tokens, how many
/// steps have some, and zeros in the place of results behind the last one if these are read.
Block LoopPasses::unusedSteps() {
  const LoopGraph::UnusedRows &unused = graph.unused;
  if (unused.input < 0 || unused.mayLeave) return {};
  Block block = {loadOfTokens()};
  if (endsSteps()) {
    tokenSteps = names.reserve("tokenSteps");
    block.push_back(declareConstant("int", tokenSteps, space.stepsOf(unused.name),
                                    "steps in which some thread has a token"));
  }
  Block zeros;
  if (!unused.areUnread)
    for (const OutputStore &store : graph.stores)
      if (storeIsStep(store)) zeros.push_back(zeroStoreOf(store));
  if (zeros.empty()) return block;
  const Code inside = insideStep(), isBehind = code("{} >= {}", unused.token, unused.name);
  if (endsSteps()) {
    if (!inside.empty()) zeros = {guard(inside, std::move(zeros))};
    const Code behind = names.reserve("stepBehind");
    Block step = {declareConstant("int", space.words.step, code("{} + {}", tokenSteps, behind))};
    for (const Block &part : {space.stepCoordinates(), validOfStep(), zeros})
      step.insert(step.end(), part.begin(), part.end());
    zeros = {loop(behind, code("{} - {}", space.words.steps, tokenSteps), unrolledSteps(),
                  std::move(step))};
  } else if (unused.reduced < 0) {
    const bool wasDeclared = std::exchange(stepDeclared, false);
    zeros = {guard(isBehind, wrapInSteps(std::move(zeros), inside, space.words.steps))};
    stepDeclared = wasDeclared;
  } else {
    zeros = wrapInSteps(std::move(zeros), both(inside, isBehind), space.words.steps);
  }
  block.insert(block.end(), zeros.begin(), zeros.end());
  return block;
}

Block LoopPasses::run() {
  placeNodes();
  chooseKept();
  nameNodes();
  scoped = space.steps > 1 || !computedStep().empty();
  const Block zeros = unusedSteps();
  Block passes;
  if (batch == 1) hoistLoads(passes);
  for (int depth = 0; depth <= lastDepth; ++depth) {
    rowSection(depth, passes);
    pass(depth, passes);
  }
  const Block leaving = unusedRows();
  Block block;
  const auto append = [&](const Block &more) {
    block.insert(block.end(), more.begin(), more.end());
  };
  declareScratch(block);
  append(space.prologue());
  append(space.coordinates());
  if (!graph.validIsStep && !graph.valid.empty())
    block.push_back(declareConstant("int", graph.valid, graph.validText));
  append(memory.rowOffsets());
  append(leaving);
  append(zeros);
  if (!drawsAhead) append(graph.prologue);
  block.push_back(codegen::space());
  append(passes);
  if (block.back().kind == Statement::Kind::space) block.pop_back();
  return block;
}

}  // namespace weft::codegen
