// Cutting a graph between layers and joining the parts again; see Layers.h.
#include "passes/layers/Layers.h"

#include "ir/Types.h"
#include "kernel/Error.h"
#include "kernel/LayerNames.h"
#include "passes/Describe.h"
#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>

namespace weft {
namespace {

mlir::Block &bodyOf(GraphOp graph) { return graph.getBody().front(); }

GraphOp graphIn(mlir::ModuleOp module) { return *module.getOps<GraphOp>().begin(); }

int64_t bytesOf(mlir::Value value) {
  int64_t bytes = sizeOf(toDType(value.getType()).value_or(DType::f32));
  for (const int64_t extent : extents(value.getType())) bytes *= extent;
  return bytes;
}

/// An empty graph of the name, at whose end a builder stands.
struct NewGraph {
  NewGraph(mlir::MLIRContext *context, llvm::StringRef name)
      : module(mlir::ModuleOp::create(mlir::UnknownLoc::get(context))), builder(context) {
    builder.setInsertionPointToEnd(module->getBody());
    graph = GraphOp::create(builder, builder.getUnknownLoc(), name, llvm::ArrayRef<mlir::Type>(),
                            llvm::ArrayRef<mlir::Type>());
    builder.setInsertionPointToEnd(&bodyOf(graph));
  }

  /// An argument like that of another graph, or for what another graph computes.
  mlir::Value addArgument(mlir::Value like, const std::string &name) {
    const mlir::Value added =
        bodyOf(graph).addArgument(like.getType(), mlir::NameLoc::get(builder.getStringAttr(name)));
    const auto argument = mlir::dyn_cast<mlir::BlockArgument>(like);
    if (!argument) return added;
    auto from = mlir::cast<GraphOp>(argument.getOwner()->getParentOp());
    const unsigned number = argument.getArgNumber();
    if (from.isParameter(number)) parameters[bodyOf(graph).getNumArguments() - 1] = {from, number};
    return added;
  }

  mlir::OwningOpRef<mlir::ModuleOp> finish(const std::vector<mlir::Value> &results) {
    ReturnOp::create(builder, builder.getUnknownLoc(), mlir::ValueRange(results));
    graph.setFunctionType(builder.getFunctionType(bodyOf(graph).getArgumentTypes(),
                                                  mlir::TypeRange(mlir::ValueRange(results))));
    for (auto &[argument, origin] : parameters) {
      graph.setParameter(argument);
      if (const auto initial = origin.first.initialValue(origin.second))
        graph.setInitialValue(argument, *initial);
    }
    return std::move(module);
  }

  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::OpBuilder builder;
  GraphOp graph;
  std::map<unsigned, std::pair<GraphOp, unsigned>> parameters;
};

/// The names of a location with their layers so many further.
mlir::Location shifted(mlir::Location location, int64_t by, mlir::OpBuilder &builder) {
  const auto named = mlir::dyn_cast<mlir::NameLoc>(location);
  if (!named || by == 0) return location;
  return mlir::NameLoc::get(
      builder.getStringAttr(shiftLayers(named.getName().getValue().str(), by)));
}

int64_t layerOfOp(mlir::Operation *op) {
  return op->getNumResults() == 0 ? 0 : layerOf(writtenName(op->getResult(0)));
}

constexpr std::string_view carriedName = "carried";

/// Computed before, or brought by the caller as floats.
bool isActivation(GraphOp whole, mlir::Value value) {
  const auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
  if (!argument) return true;
  const std::optional<DType> dtype = toDType(value.getType());
  return !whole.isParameter(argument.getArgNumber()) && dtype && *dtype != DType::i32 &&
         *dtype != DType::i1;
}

LayerPart partOf(GraphOp whole, const std::vector<mlir::Operation *> &ops) {
  const std::set<mlir::Operation *> inside(ops.begin(), ops.end());
  LayerPart part;
  for (mlir::Operation *op : ops)
    if (const int64_t layer = layerOfOp(op);
        layer > 0 && (part.firstLayer == 0 || layer < part.firstLayer))
      part.firstLayer = layer;
  NewGraph made(whole.getContext(), whole.getName());
  mlir::IRMapping values;
  const auto add = [&](mlir::Value value, const std::string &name) {
    values.map(value, made.addArgument(value, name));
    part.arguments.push_back(writtenName(value));
  };
  for (mlir::Operation *op : ops)
    for (mlir::Value operand : op->getOperands())
      if (!values.contains(operand) && !inside.contains(operand.getDefiningOp()) &&
          isActivation(whole, operand))
        add(operand, fmt::format("{}{}", carriedName, part.arguments.size() + 1));
  const auto isRead = [&](mlir::Value value) {
    return llvm::any_of(value.getUsers(),
                        [&](mlir::Operation *user) { return inside.contains(user); });
  };
  // What all layers share stands in the whole where the first layer reads it.
  for (const bool isShared : {true, false})
    for (mlir::BlockArgument argument : bodyOf(whole).getArguments())
      if (!values.contains(argument) && isRead(argument) &&
          isShared == (layerOf(writtenName(argument)) == 0))
        add(argument, writtenName(argument));
  for (mlir::Operation *op : ops) made.builder.clone(*op, values);
  std::vector<mlir::Value> results;
  for (mlir::Operation *op : ops)
    for (mlir::Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](mlir::Operation *user) { return !inside.contains(user); })) {
        results.push_back(values.lookup(result));
        part.results.push_back(writtenName(result));
      }
  part.module = made.finish(results);
  return part;
}

}  // namespace

std::string placedText(const std::string &text, const std::vector<std::string> &arguments,
                       int64_t shift) {
  std::string placed;
  for (size_t at = 0; at < text.size();) {
    const bool begins = at == 0 || !std::isalnum(static_cast<unsigned char>(text[at - 1]));
    size_t number = 0;
    const size_t digits = at + carriedName.size();
    if (begins && text.compare(at, carriedName.size(), carriedName) == 0) {
      const auto [end, error] =
          std::from_chars(text.data() + digits, text.data() + text.size(), number);
      if (error == std::errc() && number >= 1 && number <= arguments.size()) {
        // Names of the whole stay as they are: they are shifted by the part's places already.
        placed += shiftLayers(arguments[number - 1], -shift);
        at = size_t(end - text.data());
        continue;
      }
    }
    placed += text[at++];
  }
  return shiftLayers(placed, shift);
}

LayerPositions layerPositions(GraphOp graph) {
  LayerPositions positions;
  int64_t before = 0;
  const std::vector<mlir::Operation *> ops = numberedOps(graph);
  for (size_t index = 0; index < ops.size(); ++index) {
    const int64_t layer = layerOfOp(ops[index]);
    if (layer == before + 1 && layer > 0) positions.begins.push_back(index);
    else if (layer != before && layer != 0)
      throw Error::checkFailed("op {} of layer {} stands behind one of layer {}", index, layer,
                               before);
    if (layer == 0) continue;
    before = layer;
    positions.end = index + 1;
  }
  for (size_t layer = 0; layer < positions.begins.size(); ++layer) {
    const size_t end =
        layer + 1 < positions.begins.size() ? positions.begins[layer + 1] : positions.end;
    size_t count = end - positions.begins[layer];
    if (const bool isLast = layer > 0 && layer + 1 == positions.begins.size();
        isLast && count > positions.opsOfLayer) {
      count = positions.opsOfLayer;
      positions.end = positions.begins[layer] + count;
    }
    if (layer > 0 && count != positions.opsOfLayer)
      throw Error::checkFailed("layer {} has {} ops, those before it have {}", layer + 1, count,
                               positions.opsOfLayer);
    positions.opsOfLayer = count;
  }
  return positions;
}

Crossing crossingAt(GraphOp graph, size_t op) {
  const std::vector<mlir::Operation *> ops = numberedOps(graph);
  const std::set<mlir::Operation *> before(ops.begin(), ops.begin() + long(op));
  Crossing crossing;
  for (mlir::Operation *computed : before)
    for (mlir::Value result : computed->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](mlir::Operation *user) { return !before.contains(user); })) {
        ++crossing.tensors;
        crossing.bytes += bytesOf(result);
      }
  return crossing;
}

std::vector<LayerPart> cutGraph(GraphOp graph, const std::vector<size_t> &cuts) {
  const std::vector<mlir::Operation *> ops = numberedOps(graph);
  std::vector<size_t> borders = {0};
  borders.insert(borders.end(), cuts.begin(), cuts.end());
  borders.push_back(ops.size());
  std::vector<LayerPart> parts;
  for (size_t index = 0; index + 1 < borders.size(); ++index)
    if (borders[index] < borders[index + 1])
      parts.push_back(partOf(
          graph, {ops.begin() + long(borders[index]), ops.begin() + long(borders[index + 1])}));
  return parts;
}

mlir::OwningOpRef<mlir::ModuleOp> joinGraphs(GraphOp whole, const std::vector<JoinedPart> &parts,
                                             std::vector<size_t> *firstOps) {
  NewGraph made(whole.getContext(), whole.getName());
  std::map<std::string, mlir::Value> known;  // by name in the whole
  for (mlir::BlockArgument argument : bodyOf(whole).getArguments())
    known[writtenName(argument)] = made.addArgument(argument, writtenName(argument));
  size_t ops = 0;
  for (const JoinedPart &part : parts) {
    if (firstOps) firstOps->push_back(ops);
    mlir::Block &body = bodyOf(graphIn(part.module));
    mlir::IRMapping values;
    if (body.getNumArguments() != part.arguments.size())
      throw Error::checkFailed("a part of '{}' has {} arguments in the place of {}",
                               whole.getName().str(), body.getNumArguments(),
                               part.arguments.size());
    for (mlir::BlockArgument argument : body.getArguments()) {
      const std::string &name = part.arguments[argument.getArgNumber()];
      const auto found = known.find(name);
      if (found == known.end())
        throw Error::checkFailed("a part of '{}' reads '{}', which nothing before it computes",
                                 whole.getName().str(), name);
      values.map(argument, found->second);
    }
    for (mlir::Operation &op : body.without_terminator()) {
      mlir::Operation *clone = made.builder.clone(op, values);
      clone->setLoc(shifted(op.getLoc(), part.shift, made.builder));
      ++ops;
    }
    const auto returned = body.getTerminator()->getOperands();
    if (returned.size() != part.results.size())
      throw Error::checkFailed("a part of '{}' has {} results, {} are read of it",
                               whole.getName().str(), returned.size(), part.results.size());
    for (size_t index = 0; index < part.results.size(); ++index)
      known[part.results[index]] = values.lookup(returned[unsigned(index)]);
  }
  std::vector<mlir::Value> results;
  for (mlir::Value value : bodyOf(whole).getTerminator()->getOperands())
    results.push_back(known.at(writtenName(value)));
  return made.finish(results);
}

}  // namespace weft
