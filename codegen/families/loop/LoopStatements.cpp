// Nodes of a loop kernel as statements: loads, expressions, reductions and stores, at the level of
// the row or of its elements. Where each of them stands is decided in LoopPasses.cpp.
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/loop/LoopPasses.h"

#include "kernel/Error.h"

namespace weft::codegen {
namespace {

/// The text with operands in the place of {0}, {1}, ...
Code substitute(const Code &code, const std::vector<Code> &operands) {
  const std::string &text = code.str();
  std::string result;
  std::vector<const Code *> parts = {&code};
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t close = text[i] == '{' ? text.find('}', i) : std::string::npos;
    if (close == std::string::npos || close == i + 1) {
      result += text[i];
      continue;
    }
    parts.push_back(&operands.at(std::stoul(text.substr(i + 1, close - i - 1))));
    result += parts.back()->str();
    i = close;
  }
  return Code::composed(std::move(result), parts);
}

std::string noteOf(const Node &node) {
  return node.number >= 0 ? fmt::format("%{}", node.number) : "";
}

/// How the threads of a row join their partial results.
Across acrossOf(const LoopSpace &space) {
  if (space.threadsPerRow <= 32) return Across::warp;
  switch (space.knobs.combine) {
    case BlockCombine::shuffle: return Across::block;
    case BlockCombine::tree: return Across::blockTree;
    case BlockCombine::linear: return Across::blockLinear;
  }
  return Across::block;
}

}  // namespace

Code LoopPasses::baseReference(int node) const {
  if (kept[node] && space.steps > 1) return code("{}[{}]", nodeNames[node], space.words.step);
  return nodeNames[node];
}

Code LoopPasses::reference(int node) const {
  if (graph.nodes[node].kind == Node::Kind::kept)
    return code("{}.at({})", baseReference(node), space.words.element);
  return inVec[node] ? code("{}.at[{}]", baseReference(node), space.words.element)
                     : baseReference(node);
}

Code LoopPasses::expression(const Node &node) const {
  std::vector<Code> operands;
  for (int operand : node.operands) operands.push_back(reference(operand));
  return substitute(node.text, operands);
}

Code LoopPasses::typeOf(int node) const {
  const Code type = cudaTypeOf(graph.nodes[node].type);
  return inVec[node] ? code("weft::Vec<{}, {}>", type, space.words.width) : type;
}

Statement LoopPasses::loadOf(int index) {
  const Node &node = graph.nodes[index];
  const bool perElement = node.perElement && !inVec[index];
  const Address address = memory.address(inputs[node.input], node.at, perElement,
                                         [&](int from) { return reference(from); });
  Statement load{.kind = Statement::Kind::load,
                 .name = nodeNames[index],
                 .pointer = address.pointer,
                 .access = address.access,
                 .width = space.words.width,
                 .stride = address.stride,
                 .count = address.count,
                 .condition = node.condition};
  // A vector that one address serves, where only the condition differs between elements, is one
  // load of one element.
  if (inVec[index] && address.access == Access::single)
    throw Error::checkFailed("'{}': a vector without a separate address", inputs[node.input].name);
  load.value = inVec[index]
                   ? code("weft::Vec<{}, {}>{{}}", cudaTypeOf(node.type), space.words.width)
                   : zeroOf(node.type);
  if (perElement && !graph.valid.empty()) {
    const Code inside = code("{} < {}", space.words.element, graph.valid);
    load.condition = load.condition.empty() ? inside : code("{} && {}", inside, load.condition);
  }
  return load;
}

void LoopPasses::emitOutsideElements(int index, Block &block) {
  const Node &node = graph.nodes[index];
  if (hoisted[index]) {
    if (!packedRows.count(index)) return;  // its name is the row's
    block.push_back(
        declareConstant("auto", nodeNames[index], code("weft::unpack({})", packedRows.at(index))));
  } else if (node.kind == Node::Kind::load) {
    block.push_back(loadOf(index));
  } else if (node.kind == Node::Kind::kept) {
    block.push_back(declareConstant("auto", nodeNames[index], node.text));
  } else if (kept[index]) {
    block.push_back(assign(baseReference(index), expression(node), noteOf(node)));
  } else {
    block.push_back(
        declareConstant(cudaTypeOf(node.type), nodeNames[index], expression(node), noteOf(node)));
  }
}

void LoopPasses::emitInElements(int index, Block &outside, Block &inside) {
  const Node &node = graph.nodes[index];
  if (node.kind == Node::Kind::load) {
    inside.push_back(loadOf(index));
  } else if (inVec[index]) {
    if (!kept[index]) outside.push_back(declare(typeOf(index), nodeNames[index]));
    inside.push_back(assign(reference(index), expression(node), noteOf(node)));
  } else if (kept[index]) {
    inside.push_back(assign(reference(index), expression(node), noteOf(node)));
  } else {
    inside.push_back(
        declareConstant(cudaTypeOf(node.type), nodeNames[index], expression(node), noteOf(node)));
  }
}

Statement LoopPasses::accumulation(int index) const {
  const Node &node = graph.nodes[index];
  const Code value = reference(node.operands[0]), name = reference(index);
  Statement add = node.reduction == Reduction::sum
                      ? evaluate(code("{} += {}", name, value))
                      : assign(name, code("weft::maximum({}, {})", name, value));
  return !graph.valid.empty() && space.vectorIsReduced()
             ? guard(code("{} < {}", space.words.element, graph.valid), {add})
             : add;
}

void LoopPasses::emit(const std::set<int> &nodes, const std::vector<int> &reductions,
                      Block &block) {
  Block outside, inside;
  for (int index : nodes) {
    const Node &node = graph.nodes[index];
    const bool elements = node.perElement && !(node.kind == Node::Kind::load && inVec[index]) &&
                          node.kind != Node::Kind::kept;
    if (elements) emitInElements(index, outside, inside);
    else emitOutsideElements(index, outside);
  }
  for (int index : reductions) {
    const bool elements = graph.nodes[graph.nodes[index].operands[0]].perElement ||
                          (space.vectorIsReduced() && space.hasVector());
    (elements ? inside : outside).push_back(accumulation(index));
  }
  block.insert(block.end(), outside.begin(), outside.end());
  if (!inside.empty()) block.push_back(loop(space.words.element, space.words.width, 0, inside));
}

Statement LoopPasses::storeOf(const OutputStore &store) {
  const Operand &output = outputs[store.output];
  const Address address =
      memory.address(output, store.at, false, [&](int node) { return reference(node); });
  Statement statement{.kind = Statement::Kind::store,
                      .value = baseReference(store.node),
                      .pointer = address.pointer,
                      .access = address.access,
                      .width = space.words.width,
                      .stride = address.stride,
                      .count = address.count};
  if (address.access == Access::single && inVec[store.node])
    throw Error::unsupported("kernel '{}': output '{}' lacks the vector axis of its value",
                             space.kernel.name, output.name);
  if (address.access != Access::single && !inVec[store.node])
    throw Error::unsupported("kernel '{}': output '{}' repeats one value along the vector axis",
                             space.kernel.name, output.name);
  return statement;
}

Statement LoopPasses::zeroStoreOf(const OutputStore &store) {
  Statement statement = storeOf(store);
  const bool isInteger =
      statement.access == Access::single && graph.nodes[store.node].type == ScalarType::i32;
  statement.value = statement.access != Access::single
                        ? code("weft::Vec<{}, {}>{{}}", cudaTypeOf(graph.nodes[store.node].type),
                               space.words.width)
                    : isInteger ? Code("0")
                                : Code("0.0f");
  return statement;
}

void LoopPasses::emitStores(int depth, bool step, Block &block) {
  Block stores;
  for (const OutputStore &store : graph.stores)
    if (graph.nodes[store.node].depth == depth && storeIsStep(store) == step)
      stores.push_back(store.inside < 0 ? storeOf(store)
                                        : guard(reference(store.inside), {storeOf(store)}));
  if (stores.empty()) return;
  if (!step && !space.storeGuard().empty()) stores = {guard(space.storeGuard(), std::move(stores))};
  block.insert(block.end(), stores.begin(), stores.end());
}

void LoopPasses::declareAccumulators(const std::vector<int> &reductions, Block &block) {
  for (int index : reductions) {
    const Node &node = graph.nodes[index];
    const bool sum = node.reduction == Reduction::sum;
    if (!inVec[index]) {
      block.push_back(declare("float", nodeNames[index], sum ? "0.0f" : "weft::negativeInfinity"));
    } else if (sum) {
      block.push_back(declare(typeOf(index), nodeNames[index], "{}"));
    } else {
      block.push_back(declare(typeOf(index), nodeNames[index]));
      block.push_back(loop(space.words.element, space.words.width, 0,
                           {assign(reference(index), "weft::negativeInfinity")}));
    }
  }
}

/// One call for all accumulators of a kind: "weft::clusterColumnSums<blocksPerColumn>(scratch,
/// dgamma, dbeta);".
void LoopPasses::finishColumns(const std::vector<int> &reductions, Block &block) {
  const ReductionMapping mapping = space.knobs.reduction;
  if (space.isGrid()) return finishGrid(reductions, block);
  for (const Reduction kind : {Reduction::sum, Reduction::maximum}) {
    std::vector<Code> arguments;
    for (int index : reductions)
      if (graph.nodes[index].reduction == kind) arguments.push_back(nodeNames[index]);
    if (arguments.empty()) continue;
    Code function = kind == Reduction::sum ? "ColumnSums" : "ColumnMaxima";
    if (mapping == ReductionMapping::warpColumns)
      function = code("warp{}<{}>", function, space.words.columnsPerWarp);
    if (mapping == ReductionMapping::blockColumns) function = code("block{}", function);
    if (mapping == ReductionMapping::clusterColumns)
      function = code("cluster{}<{}>", function, space.words.blocksPerColumn);
    if (mapping != ReductionMapping::warpColumns) {
      columnScratch.emplace_back(names.reserve("scratch"), arguments.size());
      arguments.insert(arguments.begin(), columnScratch.back().first);
    }
    block.push_back(evaluate(code("weft::{}({})", function, joined(arguments, ", "))));
  }
}

void LoopPasses::finishReductions(const std::vector<int> &reductions, Block &block) {
  if (space.isColumns()) return finishColumns(reductions, block);
  if (space.threadsPerRow == 1) return;
  const bool inBlock = space.threadsPerRow > 32;
  const Across across = acrossOf(space);
  for (int index : reductions) {
    Statement reduce{.kind = Statement::Kind::reduce,
                     .name = reference(index),
                     .value = reference(index),
                     .declares = false,
                     .reduction = graph.nodes[index].reduction,
                     .across = across,
                     .threads = space.words.threadsPerRow};
    if (inBlock && scratchName.empty()) scratchName = names.reserve("scratch");
    if (inBlock) reduce.scratch = code("{}[{}]", scratchName, scratchRows);
    if (inBlock && inVec[index])
      reduce.scratch = code("{}[{} + {}]", scratchName, scratchRows, space.words.element);
    if (inBlock) scratchRows += inVec[index] ? space.width : 1;
    block.push_back(inVec[index] ? loop(space.words.element, space.words.width, 0, {reduce})
                                 : reduce);
  }
}

void LoopPasses::declareScratch(Block &block) const {
  for (const auto &[name, results] : columnScratch)
    block.push_back(
        {.kind = Statement::Kind::shared,
         .type = code("weft::{}Scratch<{}, {}, {}, {}>", space.isGrid() ? "Grid" : "Column",
                      space.words.rowsPerBlock, space.words.threadsPerRow,
                      space.hasVector() ? space.words.width : "1", results),
         .name = name});
  if (scratchRows == 0) return;
  const bool perWarp = acrossOf(space) == Across::block;
  block.push_back(
      {.kind = Statement::Kind::shared,
       .type = "float",
       .name = code("{}[{}][{} * {}{}]", scratchName, scratchRows, space.words.rowsPerBlock,
                    space.words.threadsPerRow, perWarp ? " / 32" : ""),
       .note = fmt::format("a float a {} for each reduction", perWarp ? "warp" : "thread")});
}

}  // namespace weft::codegen
