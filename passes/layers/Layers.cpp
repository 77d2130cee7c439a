// Cutting a graph between layers and joining the parts again; see Layers.h.
#include "passes/layers/Layers.h"

#include "ir/LayerMarks.h"
#include "ir/Types.h"
#include "kernel/Error.h"
#include "kernel/LayerNames.h"
#include "kernel/TrainingNames.h"
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/SavedTensors.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include <fmt/format.h>

#include <algorithm>
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

  /// An argument of the type of a value. An argument of another graph hands on what it says of
  /// itself where it is a parameter, and else where it is `same`.
  mlir::Value addArgument(mlir::Value like, const std::string &name, bool isSame = false) {
    const mlir::Value added =
        bodyOf(graph).addArgument(like.getType(), mlir::NameLoc::get(builder.getStringAttr(name)));
    const auto argument = mlir::dyn_cast<mlir::BlockArgument>(like);
    if (!argument) return added;
    auto from = mlir::cast<GraphOp>(argument.getOwner()->getParentOp());
    const unsigned number = argument.getArgNumber();
    if (from.isParameter(number) || isSame)
      if (const mlir::DictionaryAttr own = from.getArgAttrDict(number))
        attributesOf[bodyOf(graph).getNumArguments() - 1] = own;
    return added;
  }

  /// `attributes`: of the results, by position.
  mlir::OwningOpRef<mlir::ModuleOp> finish(const std::vector<mlir::Value> &results,
                                           const std::vector<mlir::DictionaryAttr> &attributes,
                                           bool isDifferentiated) {
    ReturnOp::create(builder, builder.getUnknownLoc(), mlir::ValueRange(results));
    graph.setFunctionType(builder.getFunctionType(bodyOf(graph).getArgumentTypes(),
                                                  mlir::TypeRange(mlir::ValueRange(results))));
    for (const auto &[argument, own] : attributesOf) graph.setArgAttrs(argument, own);
    for (size_t result = 0; result < attributes.size(); ++result)
      graph.setResultAttrs(unsigned(result), attributes[result]);
    if (isDifferentiated) listSavedTensors(graph);
    return std::move(module);
  }

  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::OpBuilder builder;
  GraphOp graph;
  std::map<unsigned, mlir::DictionaryAttr> attributesOf;  ///< of arguments, by number
};

/// A location with its names as `rename` gives them.
template <typename Rename>
mlir::Location renamed(mlir::Location location, mlir::OpBuilder &builder, const Rename &rename) {
  const auto named = mlir::dyn_cast<mlir::NameLoc>(location);
  if (!named) return location;
  return mlir::NameLoc::get(builder.getStringAttr(rename(named.getName().getValue().str())));
}

constexpr llvm::StringLiteral streamName = "stream";

/// The stream of random numbers that an op draws from, if it drops out.
std::optional<int64_t> streamOf(mlir::Operation *op) {
  const auto stream = op->getAttrOfType<mlir::IntegerAttr>(streamName);
  return stream ? std::optional(stream.getInt()) : std::nullopt;
}

void shiftStream(mlir::Operation *op, int64_t by) {
  if (const std::optional<int64_t> stream = streamOf(op); stream && by != 0)
    op->setAttr(streamName, mlir::Builder(op->getContext()).getI64IntegerAttr(*stream + by));
}

void shiftLayer(mlir::Operation *op, int64_t by) {
  if (const int64_t layer = layerOf(op); layer > 0) setLayer(op, layer + by);
}

/// Computed before, or brought by the caller as floats.
bool isActivation(GraphOp whole, mlir::Value value) {
  const auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
  if (!argument) return true;
  const std::optional<DType> dtype = toDType(value.getType());
  return !whole.isParameter(argument.getArgNumber()) && dtype && *dtype != DType::i32 &&
         *dtype != DType::i1;
}

/// Which results of the whole carry which attributes, and of all others which entry point they are
/// handed on in.
class ResultMarks {
public:
  explicit ResultMarks(GraphOp whole) : whole(whole), entries(entryPointsOf(whole)) {
    for (auto [result, value] : llvm::enumerate(bodyOf(whole).getTerminator()->getOperands()))
      numberOf.try_emplace(value, unsigned(result));
  }

  /// `argumentName`: of an argument of the whole the name that a part gives it; nothing where the
  /// part does not have it.
  template <typename Name>
  mlir::DictionaryAttr of(mlir::Value value, const Name &argumentName) {
    mlir::Builder builder(whole.getContext());
    const auto found = numberOf.find(value);
    mlir::DictionaryAttr own =
        found == numberOf.end() ? mlir::DictionaryAttr() : whole.getResultAttrDict(found->second);
    llvm::SmallVector<mlir::NamedAttribute> marks;
    for (const mlir::NamedAttribute &mark :
         own ? own.getValue() : llvm::ArrayRef<mlir::NamedAttribute>()) {
      const auto name = mark.getName() == GraphOp::trainingAttribute
                            ? mlir::StringAttr()
                            : mlir::dyn_cast<mlir::StringAttr>(mark.getValue());
      if (!name) {
        marks.push_back(mark);
        continue;
      }
      const std::optional<std::string> inPart = argumentName(name.getValue().str());
      // The next value of an argument that the part does not have is that of none there.
      const std::string other =
          mark.getName() == updateOfName ? writtenName(value) : name.getValue().str();
      marks.push_back(
          builder.getNamedAttr(mark.getName(), builder.getStringAttr(inPart.value_or(other))));
    }
    const std::optional<EntryPointKind> entry = entries.at(value.getDefiningOp());
    if (marks.empty() && entry && *entry != EntryPointKind::forward)
      marks.push_back(
          builder.getNamedAttr(*entry == EntryPointKind::update ? updateOfName : gradientOfName,
                               builder.getStringAttr(writtenName(value))));
    return builder.getDictionaryAttr(marks);
  }

private:
  GraphOp whole;
  std::map<mlir::Operation *, std::optional<EntryPointKind>> entries;
  llvm::DenseMap<mlir::Value, unsigned> numberOf;
};

/// A name that begins with the gradient of one of these values, or lists such, with what the part
/// calls the value. Texts of equal parts are equal then; nothing else depends on these names.
std::string ofCarried(std::string names, const std::map<std::string, std::string> &carried) {
  std::string result;
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.find(", ", at), names.size());
    std::string name = names.substr(at, end - at);
    // The longest name that it begins with: "d_norm0_layer1_q" is of norm0.
    if (const auto behind = nameBehindGradient(name))
      for (size_t length = behind->size(); length > 0; --length) {
        if (length < behind->size() && (*behind)[length] != '_') continue;
        const auto found = carried.find(std::string(behind->substr(0, length)));
        if (found == carried.end()) continue;
        name = gradientName(found->second) + std::string(behind->substr(length));
        break;
      }
    result += name;
    if (end < names.size()) result += ", ";
    at = end + (end < names.size() ? 2 : 0);
  }
  return result;
}

/// Of each op; what nothing returned depends on goes with the op before.
std::vector<EntryPointKind> passesOf(GraphOp graph) {
  const auto entries = entryPointsOf(graph);
  std::vector<EntryPointKind> passes;
  for (mlir::Operation *op : numberedOps(graph))
    passes.push_back(
        entries.at(op).value_or(passes.empty() ? EntryPointKind::forward : passes.back()));
  return passes;
}

}  // namespace

LayerPart partOf(GraphOp whole, const std::vector<mlir::Operation *> &ops) {
  const std::set<mlir::Operation *> inside(ops.begin(), ops.end());
  LayerPart part;
  for (mlir::Operation *op : ops)
    if (const int64_t layer = layerOf(op);
        layer > 0 && (part.firstLayer == 0 || layer < part.firstLayer))
      part.firstLayer = layer;
  std::optional<int64_t> firstStream;
  for (mlir::Operation *op : ops)
    if (const std::optional<int64_t> stream = streamOf(op))
      firstStream = std::min(firstStream.value_or(*stream), *stream);
  part.firstStream = firstStream.value_or(0);
  NewGraph made(whole.getContext(), whole.getName());
  mlir::IRMapping values;
  std::map<std::string, std::string> nameOf;  // in the part, of arguments by name in the whole
  const auto add = [&](mlir::Value value, const std::string &name) {
    values.map(value, made.addArgument(value, name));
    part.arguments.push_back(writtenName(value));
    nameOf.emplace(writtenName(value), name);
  };
  for (mlir::Operation *op : ops)
    for (mlir::Value operand : op->getOperands())
      if (!values.contains(operand) && !inside.contains(operand.getDefiningOp()) &&
          isActivation(whole, operand))
        add(operand, carriedName(part.arguments.size() + 1));
  const auto isRead = [&](mlir::Value value) {
    return llvm::any_of(value.getUsers(),
                        [&](mlir::Operation *user) { return inside.contains(user); });
  };
  // What all layers share stands in the whole where the first layer reads it.
  for (const bool isShared : {true, false})
    for (mlir::BlockArgument argument : bodyOf(whole).getArguments())
      if (!values.contains(argument) && isRead(argument) &&
          isShared == (layerOf(mlir::Value(argument)) == 0))
        add(argument, writtenName(argument));
  for (mlir::Operation *op : ops) {
    mlir::Operation *clone = made.builder.clone(*op, values);
    clone->setLoc(renamed(op->getLoc(), made.builder,
                          [&](const std::string &name) { return ofCarried(name, nameOf); }));
    shiftStream(clone, -part.firstStream);
  }
  ResultMarks marks(whole);
  const auto argumentName = [&](const std::string &name) {
    const auto found = nameOf.find(name);
    return found == nameOf.end() ? std::nullopt : std::optional(found->second);
  };
  std::vector<mlir::Value> results;
  std::vector<mlir::DictionaryAttr> attributes;
  for (mlir::Operation *op : ops)
    for (mlir::Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](mlir::Operation *user) { return !inside.contains(user); })) {
        results.push_back(values.lookup(result));
        part.results.push_back(writtenName(result));
        attributes.push_back(marks.of(result, argumentName));
      }
  part.module = made.finish(results, attributes, whole->hasAttr(savedName));
  return part;
}

std::string shiftedText(const LayerPart &part,
                        const std::function<std::string(mlir::ModuleOp)> &print) {
  const mlir::OwningOpRef<mlir::ModuleOp> copy(mlir::ModuleOp(part.module.get()).clone());
  const int64_t by = part.firstLayer > 0 ? 1 - part.firstLayer : 0;
  shiftLayerMarks(graphIn(*copy), by);
  return shiftLayers(print(*copy), by);
}

LayerPositions layerPositions(GraphOp graph) {
  LayerPositions positions;
  int64_t before = 0;
  std::vector<mlir::Operation *> ops = numberedOps(graph);
  if (graph->hasAttr(savedName))
    if (const auto last = std::ranges::find(ops, lastForwardOp(graph)); last != ops.end())
      ops.erase(last + 1, ops.end());
  for (size_t index = 0; index < ops.size(); ++index) {
    const int64_t layer = layerOf(ops[index]);
    if (layer == before + 1 && layer > 0) positions.begins.push_back(index);
    else if (layer != before && layer != 0)
      throw Error::checkFailed("op {} of layer {} stands behind one of layer {}", index, layer,
                               before);
    if (layer == 0) continue;
    before = layer;
    positions.end = index + 1;
  }
  const std::vector<size_t> &begins = positions.begins;
  if (begins.empty()) return positions;
  const size_t count = (begins.size() > 1 ? begins[1] : positions.end) - begins.front();
  const auto isAlike = [&](size_t layer) {
    const bool isLast = layer + 1 == begins.size();
    const size_t end = isLast ? positions.end : begins[layer + 1], own = end - begins[layer];
    if (isLast ? own < count : own != count) return false;
    for (size_t op = 0; op < count; ++op)
      if (ops[begins[layer] + op]->getName() != ops[begins.front() + op]->getName()) return false;
    return true;
  };
  for (size_t layer = 0; layer < begins.size(); ++layer)
    if (!isAlike(layer)) return positions;  // each kind of layer is decided by itself
  positions.opsOfLayer = count;
  positions.end = begins.back() + count;
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

namespace {

class Joiner {
public:
  Joiner(GraphOp whole, const std::vector<JoinedPart> &parts)
      : whole(whole), made(whole.getContext(), whole.getName()) {
    for (mlir::BlockArgument argument : bodyOf(whole).getArguments())
      known[writtenName(argument)] = made.addArgument(argument, writtenName(argument), true);
    for (const JoinedPart &part : parts) placed.emplace_back(part, graphIn(part.module));
    for (Placed &part : placed) checkForm(part);
  }

  mlir::OwningOpRef<mlir::ModuleOp> join(std::vector<std::vector<size_t>> *numbers) {
    for (Placed &part : placed) add(part, EntryPointKind::forward);
    for (const EntryPointKind pass : {EntryPointKind::backward, EntryPointKind::update})
      for (Placed &part : llvm::reverse(placed)) add(part, pass);
    if (numbers)
      for (Placed &part : placed) numbers->push_back(std::move(part.numbers));
    std::vector<mlir::Value> results;
    std::vector<mlir::DictionaryAttr> attributes;
    for (auto [result, value] : llvm::enumerate(bodyOf(whole).getTerminator()->getOperands())) {
      results.push_back(known.at(writtenName(value)));
      const mlir::DictionaryAttr own = whole.getResultAttrDict(unsigned(result));
      attributes.push_back(own ? own : made.builder.getDictionaryAttr({}));
    }
    return made.finish(results, attributes, whole->hasAttr(savedName));
  }

private:
  struct Placed {
    Placed(const JoinedPart &part, GraphOp graph)
        : part(part), graph(graph), ops(numberedOps(graph)), passes(passesOf(graph)) {
      numbers.resize(ops.size());
    }
    const JoinedPart &part;
    GraphOp graph;
    std::vector<mlir::Operation *> ops;
    std::vector<EntryPointKind> passes;  ///< of each op
    std::vector<size_t> numbers;         ///< of each op
    mlir::IRMapping values;
  };

  void checkForm(Placed &placed) {
    const unsigned arguments = bodyOf(placed.graph).getNumArguments();
    const size_t results = bodyOf(placed.graph).getTerminator()->getNumOperands();
    if (arguments != placed.part.arguments.size())
      throw Error::checkFailed("a part of '{}' has {} arguments in the place of {}",
                               whole.getName().str(), arguments, placed.part.arguments.size());
    if (results != placed.part.results.size())
      throw Error::checkFailed("a part of '{}' has {} results, {} are read of it",
                               whole.getName().str(), results, placed.part.results.size());
  }

  void add(Placed &placed, EntryPointKind pass) {
    for (mlir::BlockArgument argument : bodyOf(placed.graph).getArguments()) {
      const auto found = known.find(placed.part.arguments[argument.getArgNumber()]);
      if (found != known.end()) placed.values.map(argument, found->second);
    }
    for (size_t index = 0; index < placed.ops.size(); ++index) {
      if (placed.passes[index] != pass) continue;
      mlir::Operation &op = *placed.ops[index];
      for (mlir::Value operand : op.getOperands()) checkKnown(placed, operand);
      mlir::Operation *clone = made.builder.clone(op, placed.values);
      clone->setLoc(renamed(op.getLoc(), made.builder, [&](const std::string &name) {
        return placedText(name, placed.part.arguments, placed.part.shift);
      }));
      shiftStream(clone, placed.part.firstStream);
      shiftLayer(clone, placed.part.shift);
      placed.numbers[index] = ops++;
    }
    const auto returned = bodyOf(placed.graph).getTerminator()->getOperands();
    for (size_t index = 0; index < placed.part.results.size(); ++index)
      if (placed.values.contains(returned[unsigned(index)]))
        known[placed.part.results[index]] = placed.values.lookup(returned[unsigned(index)]);
  }

  void checkKnown(const Placed &placed, mlir::Value operand) {
    if (placed.values.contains(operand)) return;
    const auto argument = mlir::dyn_cast<mlir::BlockArgument>(operand);
    throw Error::checkFailed(
        "a part of '{}' reads '{}', which nothing before it computes", whole.getName().str(),
        argument ? placed.part.arguments[argument.getArgNumber()] : writtenName(operand));
  }

  GraphOp whole;
  NewGraph made;
  std::map<std::string, mlir::Value> known;  // by name in the whole
  std::vector<Placed> placed;
  size_t ops = 0;
};

}  // namespace

mlir::OwningOpRef<mlir::ModuleOp> joinGraphs(GraphOp whole, const std::vector<JoinedPart> &parts,
                                             std::vector<std::vector<size_t>> *numbers) {
  return Joiner(whole, parts).join(numbers);
}

}  // namespace weft
