// Attention of a differentiated graph without stored probabilities (FlashAttention, sections 3.1
// and B.2). Forward keeps one number a row, L = log(sum(exp(scores))); the backward pass makes the
// scores again and P = exp(scores - L). The derivative of a softmax, P * (dP - D) with
// D = sum of P * dP over keys, needs no row either: with O = c sum_k drop(P)[k] v[k] and
// dP[k] = drop(c dO . v[k]),
//
//   D = sum_k P[k] drop(c dO . v[k]) = dO . (c sum_k drop(P)[k] v[k]) = dO . O
//
// since one mask drops both, and the factor c of the contraction is in both. So what is saved is O
// and L, and all that is left of the softmax is element-wise. Known downside: unless a kernel holds
// the contractions around it as well, scores are computed twice and cross memory twice.
//
// Between packed tokens (PackSequences.cpp) L is packed and unpacked, too, D is summed of packed
// tokens, and the backward pass unpacks queries, keys and values once more: so each pass
// has all ops that unpack and pack around its attention to itself, and can take them into its
// kernel. Behind the last token of a sequence L is then zero; gradients of the output are zero
// there, and with them all that is computed of finite probabilities.
#include "ir/Derivation.h"
#include "ir/Einsum.h"
#include "ir/LayerMarks.h"
#include "kernel/Error.h"
#include "kernel/TrainingNames.h"
#include "passes/Describe.h"
#include "passes/Rewrites.h"
#include "passes/SavedTensors.h"

#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <fmt/format.h>

namespace weft {
namespace {

int64_t elements(mlir::Value value) { return elementsOf(value.getType()); }

constexpr int64_t anyTile = 64;  ///< of the decomposition on the way to the fold, which has none

/// What a softmax of a differentiated graph is rewritten by.
class Attention {
public:
  explicit Attention(SoftmaxOp softmax)
      : softmax(softmax),
        location(softmax.getLoc()),
        graph(mlir::cast<GraphOp>(softmax->getParentOp())),
        lastForward(lastForwardOp(graph)) {}

  /// Why it cannot be; empty if it can.
  std::string find() {
    const auto axis = static_cast<int64_t>(softmax.getAxis());
    if (std::string rejection =
            attentionRejection(softmax.getResult(), axis, Gates::stay,
                               [&](mlir::Operation *op) { return !isBackward(op); });
        !rejection.empty())
      return rejection;
    if (!addScores(softmax.getX()) || !hasContraction())
      return "no contraction and element-wise ops behind it make its scores";
    followToOutput();
    if (llvm::none_of(madeForward(), [&](mlir::Value value) { return isReadBackward(value); }))
      return "the backward pass does not read it";
    for (mlir::Operation *reader : softmax.getResult().getUsers())
      if (auto derivative = mlir::dyn_cast<SoftmaxDxOp>(reader); derivative && isBackward(reader))
        if (std::string rejection = addDerivative(derivative); !rejection.empty()) return rejection;
    return "";
  }

  /// Returns how many gradients were added that nothing reads.
  int rewrite(bool withAllGradients) {
    int added = 0;
    if (withAllGradients && derivatives.empty()) addDerivativeOfScores();
    tokens = findTokens();
    if (tokens) unpackAgain();
    mlir::Operation *first = firstBackwardReader();
    BuilderOfLayer builder(first, layerOf(softmax.getResult()));
    // The logarithms come of the fold, which is made when forward alone reads the softmax.
    ConstantOp placeholder = placeholderOfLogSums(builder);
    makeAgain(builder, placeholder);
    for (Derivative &derivative : derivatives) {
      const bool isOfScores = dScores == derivative.op->getResult(0);
      const mlir::Value result = replace(derivative);
      if (isOfScores) dScores = result;
      if (withAllGradients && derivatives.size() == 1)
        added = addMissingGradients(result, derivative.dOutput);
    }
    eraseUnread();
    OnlineSoftmaxContractOp fold =
        foldSoftmax(commuteScaling(decomposeSoftmax(softmax, anyTile)), true);
    if (!fold)
      throw Error::checkFailed("a decomposed softmax whose scaling commuted does not fold");
    mlir::Value logSums = fold.getLogSums().front();
    if (tokens) logSums = packedAndUnpacked(logSums, placeholder);
    placeholder.getResult().replaceAllUsesWith(logSums);
    placeholder->erase();
    listSavedTensors(graph);
    return added;
  }

private:
  /// softmax_dx, and the gradient of the result of the contraction behind the softmax.
  struct Derivative {
    SoftmaxDxOp op;
    mlir::Value dOutput;
  };

  bool isBackward(mlir::Operation *op) const {
    return !mlir::isa<ReturnOp>(op) && (!lastForward || lastForward->isBeforeInBlock(op));
  }
  bool isReadBackward(mlir::Value value) const {
    return llvm::any_of(value.getUsers(), [&](mlir::Operation *user) { return isBackward(user); });
  }

  // --- forward ---

  /// Adds the contractions and the element-wise ops that compute a value of the extent of the
  /// scores; false where no contraction does.
  bool addScores(mlir::Value value) {
    if (const auto known = leadsFromContraction.find(value); known != leadsFromContraction.end())
      return known->second;
    mlir::Operation *op = value.getDefiningOp();
    bool leads = false;
    if (op && elements(value) == elements(softmax.getX())) {
      if (mlir::isa<ContractOp>(op)) leads = true;
      else if (op->getNumResults() == 1 &&
               mlir::cast<WeftOp>(op).operatorClass() == OperatorClass::elementwise)
        for (mlir::Value operand : op->getOperands()) leads |= addScores(operand);
    }
    if (leads) scores.insert(op);
    return leadsFromContraction[value] = leads;
  }
  bool hasContraction() const {
    return llvm::any_of(scores, [](mlir::Operation *op) { return mlir::isa<ContractOp>(op); });
  }

  /// The casts and the dropout that attentionRejection() admits, up to the contraction.
  void followToOutput() {
    mlir::Value value = softmax.getResult();
    for (;;) {
      mlir::Operation *reader = *llvm::find_if(
          value.getUsers(), [&](mlir::Operation *user) { return !isBackward(user); });
      if ((output = mlir::dyn_cast<ContractOp>(reader))) break;
      between.push_back(reader);
      value = reader->getResult(0);
    }
    isFirst = output.getA() == value;
  }

  /// What the backward pass is to make again.
  std::vector<mlir::Value> madeForward() const {
    std::vector<mlir::Value> values = {softmax->getResult(0)};
    for (mlir::Operation *op : scores) values.push_back(op->getResult(0));
    for (mlir::Operation *op : between) values.push_back(op->getResult(0));
    return values;
  }

  // --- backward ---

  std::string addDerivative(SoftmaxDxOp derivative) {
    const std::string otherwise = fmt::format("{} reads no gradient that comes of {} alone",
                                              described(derivative), described(output));
    if (derivative.getY() != softmax.getResult() || derivative.getAxis() != softmax.getAxis())
      return otherwise;
    mlir::Value gradient = derivative.getDy();
    std::vector<DropoutOp> dropped;
    while (mlir::Operation *op = gradient.getDefiningOp()) {
      if (auto dropout = mlir::dyn_cast<DropoutOp>(op)) dropped.push_back(dropout);
      else if (!mlir::isa<CastOp>(op)) break;
      gradient = op->getOperand(0);
    }
    auto product = gradient.getDefiningOp<ContractOp>();
    if (!product || !isDroppedAlike(dropped)) return otherwise;
    const mlir::Value dOutput = gradientOfOutput(product);
    if (!dOutput) return otherwise;
    derivatives.push_back({derivative, dOutput});
    return "";
  }

  /// Of a backward pass that has the gradient of values alone: the softmax's derivative, and with
  /// it that of the contraction of scores, as differentiate() writes them. Nothing, and no op left
  /// behind, where an op of the scores states no derivative.
  void addDerivativeOfScores() {
    ContractOp product, ofValues;
    for (mlir::Operation *op : scores)
      if (auto found = mlir::dyn_cast<ContractOp>(op)) {
        if (product) return;
        product = found;
      }
    const mlir::Value kept = between.empty() ? softmax->getResult(0) : between.back()->getResult(0);
    mlir::Value dOutput;
    for (mlir::Operation *user : kept.getUsers())
      if (auto contraction = mlir::dyn_cast<ContractOp>(user);
          contraction && isBackward(user) && !ofValues) {
        ofValues = contraction;
        dOutput = otherOfGradientOfValues(contraction, kept);
      }
    if (!dOutput) return;
    mlir::Operation *next = ofValues->getNextNode();
    BuilderOfLayer builder(next, layerOf(softmax.getResult()));
    const auto eraseMade = [&] {
      while (next->getPrevNode() != ofValues) next->getPrevNode()->erase();
    };
    auto dKept = ContractOp::create(
        builder, location,
        Einsum{.a = einsum().result, .b = lettersOfValues(), .result = lettersOfScores()}.text(),
        dOutput, values(),
        output.getScale() ? std::optional(output.getScale()->convertToDouble()) : std::nullopt,
        axisNames(kept.getType()), toDType(kept.getType()));
    dKept.setPrecisionAttr(output.getPrecisionAttr());
    // Backwards from what the contraction reads to the operands of that of the scores.
    llvm::DenseMap<mlir::Value, mlir::Value> gradients{{kept, dKept.getResult()}};
    std::vector<mlir::Operation *> ops(scores.begin(), scores.end());
    ops.push_back(softmax);
    ops.insert(ops.end(), between.begin(), between.end());
    llvm::sort(ops, [](mlir::Operation *a, mlir::Operation *b) { return b->isBeforeInBlock(a); });
    const mlir::ScopedDiagnosticHandler silent(graph.getContext(),
                                               [](mlir::Diagnostic &) { return mlir::success(); });
    for (mlir::Operation *op : ops) {
      if (op == product) break;
      llvm::SmallVector<mlir::Value> upstream{gradients.lookup(op->getResult(0))};
      llvm::SmallVector<bool> isWanted;
      for (mlir::Value operand : op->getOperands())
        isWanted.push_back(llvm::is_contained(ops, operand.getDefiningOp()));
      if (!upstream.front()) continue;
      Derivation derivation(op, builder, upstream, isWanted);
      if (mlir::failed(mlir::cast<WeftOp>(op).differentiate(derivation))) return eraseMade();
      for (auto [operand, gradient] : llvm::zip_equal(op->getOperands(), derivation.given())) {
        if (!gradient) continue;
        mlir::Value &sum = gradients[operand];
        sum = sum ? AddOp::create(builder, location, sum, gradient).getResult() : gradient;
      }
    }
    dScores = gradients.lookup(product.getResult());
    if (!dScores) return eraseMade();
    for (mlir::Operation *reader : softmax.getResult().getUsers())
      if (auto derivative = mlir::dyn_cast<SoftmaxDxOp>(reader))
        derivatives.push_back({derivative, dOutput});
  }

  /// What the contraction that gives the gradient of values reads beside the probabilities; null
  /// where it is another one.
  mlir::Value otherOfGradientOfValues(ContractOp contraction, mlir::Value kept) {
    const Einsum own = parseEinsum(contraction.getSpec().str());
    const bool isKeptFirst = contraction.getA() == kept;
    if (contraction.getScale() != output.getScale() ||
        !isRenamed({.a = isKeptFirst ? own.a : own.b,
                    .b = isKeptFirst ? own.b : own.a,
                    .result = own.result},
                   {.a = lettersOfScores(), .b = einsum().result, .result = lettersOfValues()}))
      return {};
    return isKeptFirst ? contraction.getB() : contraction.getA();
  }

  bool isDroppedAlike(llvm::ArrayRef<DropoutOp> dropped) const {
    std::vector<DropoutOp> forward;
    for (mlir::Operation *op : between)
      if (auto dropout = mlir::dyn_cast<DropoutOp>(op)) forward.push_back(dropout);
    return llvm::equal(forward, dropped, [](DropoutOp a, DropoutOp b) {
      return a.getP() == b.getP() && a.getStream() == b.getStream();
    });
  }

  /// The operand beside the values of the contraction that is the derivative of the one behind the
  /// softmax; null where the product is another one.
  mlir::Value gradientOfOutput(ContractOp product) {
    if (product.getScale() != output.getScale() ||
        product.getPrecisionAttr() != output.getPrecisionAttr())
      return {};
    const Einsum own = parseEinsum(product.getSpec().str());
    for (const bool areValuesFirst : {true, false}) {
      if ((areValuesFirst ? product.getA() : product.getB()) != values()) continue;
      if (isRenamed({.a = areValuesFirst ? own.a : own.b,
                     .b = areValuesFirst ? own.b : own.a,
                     .result = own.result},
                    {.a = lettersOfValues(), .b = einsum().result, .result = lettersOfScores()}))
        return areValuesFirst ? product.getB() : product.getA();
    }
    return {};
  }

  static bool isRenamed(const Einsum &one, const Einsum &other) {
    std::map<char, char> there, back;
    const auto matches = [&](const std::string &a, const std::string &b) {
      if (a.size() != b.size()) return false;
      for (size_t at = 0; at < a.size(); ++at)
        if (there.try_emplace(a[at], b[at]).first->second != b[at] ||
            back.try_emplace(b[at], a[at]).first->second != a[at])
          return false;
      return true;
    };
    return matches(one.a, other.a) && matches(one.b, other.b) && matches(one.result, other.result);
  }

  Einsum einsum() { return parseEinsum(output.getSpec().str()); }
  std::string lettersOfScores() { return isFirst ? einsum().a : einsum().b; }
  std::string lettersOfValues() { return isFirst ? einsum().b : einsum().a; }
  mlir::Value values() { return isFirst ? output.getB() : output.getA(); }

  // --- packed tokens ---

  /// Where all tensors of the attention are packed, by the same offsets.
  struct Tokens {
    PackOp output;
    llvm::SmallVector<UnpackOp, 3> operands;  ///< queries, keys and values
    llvm::SmallVector<int64_t, 2> rowAxes;    ///< of a number a row: sequences and positions
    mlir::Value offsets() { return output.getOffsets(); }
  };

  std::optional<Tokens> findTokens() {
    const auto isContraction = [](mlir::Operation *op) { return mlir::isa<ContractOp>(op); };
    if (llvm::count_if(scores, isContraction) != 1 || derivatives.empty()) return std::nullopt;
    Tokens found;
    for (mlir::Operation *user : output.getResult().getUsers()) {
      if (isBackward(user)) continue;
      auto pack = mlir::dyn_cast<PackOp>(user);
      if (!pack || found.output) return std::nullopt;
      found.output = pack;
    }
    if (!found.output || (output.getScale() && !output.getScale()->isExactlyValue(1)))
      return std::nullopt;
    auto product = mlir::cast<ContractOp>(*llvm::find_if(scores, isContraction));
    for (mlir::Value operand :
         {mlir::Value(product.getA()), mlir::Value(product.getB()), values()}) {
      auto unpack = operand.getDefiningOp<UnpackOp>();
      if (!unpack || unpack.getOffsets() != found.offsets() || !unpack.getFill().isZero())
        return std::nullopt;
      found.operands.push_back(unpack);
    }
    std::string rowLetters = lettersOfScores();
    rowLetters.erase(size_t(softmax.getAxis()), 1);
    for (const int64_t axis : found.output.getAxes()) {
      const size_t own = rowLetters.find(einsum().result[size_t(axis)]);
      if (own == std::string::npos) return std::nullopt;
      found.rowAxes.push_back(int64_t(own));
    }
    const bool areGradientsPacked = llvm::all_of(derivatives, [&](const Derivative &derivative) {
      auto unpack = derivative.dOutput.getDefiningOp<UnpackOp>();
      return unpack && unpack.getOffsets() == found.offsets() && unpack.getFill().isZero() &&
             unpack.getInto() == found.output.getAxes() &&
             int64_t(unpack.getAxis()) == placeOfTokens(found.output.getAxes());
    });
    return areGradientsPacked ? std::optional(found) : std::nullopt;
  }

  /// Of what is packed along sequences and positions.
  static int64_t placeOfTokens(llvm::ArrayRef<int64_t> axes) {
    return axes[0] - (axes[0] > axes[1] ? 1 : 0);
  }

  /// The backward pass gets what it reads of queries, keys and values from further ops.
  void unpackAgain() {
    for (UnpackOp unpack : tokens->operands) {
      mlir::Operation *first = firstBackwardReader();
      for (mlir::Operation *user : unpack.getResult().getUsers())
        if (isBackward(user) && user->isBeforeInBlock(first)) first = user;
      BuilderOfLayer builder(first);
      auto again = mlir::cast<UnpackOp>(builder.clone(*unpack));
      again->setLoc(after(unpack.getResult(), "_again"));
      unpack.getResult().replaceUsesWithIf(
          again.getResult(), [&](mlir::OpOperand &use) { return isBackward(use.getOwner()); });
      unpackedAgain.map(unpack.getResult(), again.getResult());
    }
  }

  /// A tensor over `dimensions` of the output, unpacked as the output's gradient is.
  UnpackOp unpackedRows(mlir::OpBuilder &builder, mlir::Location location, mlir::Value packed,
                        llvm::ArrayRef<int64_t> axes) {
    const std::vector<std::string> names = axisNames(tokens->output.getX().getType());
    const llvm::ArrayRef<int64_t> own = tokens->output.getAxes();
    return UnpackOp::create(
        builder, location, packed, tokens->offsets(), placeOfTokens(axes), axes,
        extents(tokens->output.getX().getType())[size_t(own[1])],
        llvm::ArrayRef<std::string>{names[size_t(own[0])], names[size_t(own[1])]});
  }

  /// What the backward pass reads in the place of `logSums`. The softmax and the contraction behind
  /// it are no more.
  mlir::Value packedAndUnpacked(mlir::Value logSums, mlir::Operation *reader) {
    BuilderOfLayer builder(graph.getContext(), layerOf(tokens->output.getResult()));
    builder.setInsertionPointAfter(tokens->output);
    auto pack = PackOp::create(
        builder, after(logSums, "_packed"), logSums, tokens->offsets(), tokens->rowAxes,
        axisNames(
            tokens->output.getResult().getType())[size_t(placeOfTokens(tokens->output.getAxes()))]);
    builder.setInsertionPoint(reader);
    return unpackedRows(builder, after(logSums, "_padded"), pack, tokens->rowAxes);
  }

  // --- the rewrite ---

  mlir::Operation *firstBackwardReader() const {
    mlir::Operation *first = nullptr;
    for (mlir::Value value : madeForward())
      for (mlir::Operation *user : value.getUsers())
        if (isBackward(user) && (!first || user->isBeforeInBlock(first))) first = user;
    return first;
  }

  /// Dimensions of the softmax but its axis.
  std::vector<int64_t> rows() {
    std::vector<int64_t> all;
    for (int64_t dimension = 0; dimension < int64_t(lettersOfScores().size()); ++dimension)
      if (dimension != int64_t(softmax.getAxis())) all.push_back(dimension);
    return all;
  }

  ConstantOp placeholderOfLogSums(mlir::OpBuilder &builder) {
    const auto type = withDType(
        withoutDimensions(softmax.getX().getType(), {static_cast<int64_t>(softmax.getAxis())}),
        DType::f32);
    return ConstantOp::create(builder, softmax.getLoc(), type,
                              mlir::DenseElementsAttr::get(type, builder.getF32FloatAttr(0)));
  }

  mlir::Location named(const std::string &name) {
    return name.empty() ? location
                        : mlir::NameLoc::get(mlir::StringAttr::get(graph.getContext(), name),
                                             graph.getLoc());
  }
  mlir::Location after(mlir::Value value, const std::string &suffix) {
    const std::string name = writtenName(value);
    return named(name.empty() ? "" : name + suffix);
  }

  /// A second set of the ops from the scores' contraction to what the contraction of values reads;
  /// the backward pass reads its results.
  void makeAgain(mlir::OpBuilder &builder, ConstantOp logSums) {
    mlir::IRMapping again = unpackedAgain;
    const auto clone = [&](mlir::Operation *op) {
      mlir::Operation *made = builder.clone(*op, again);
      made->setLoc(after(op->getResult(0), "_again"));
      clones.push_back(made);
    };
    std::vector<mlir::Operation *> ordered(scores.begin(), scores.end());
    llvm::sort(ordered,
               [](mlir::Operation *a, mlir::Operation *b) { return a->isBeforeInBlock(b); });
    for (mlir::Operation *op : ordered) clone(op);
    const mlir::Type type = softmax.getResult().getType();
    mlir::Value probabilities =
        SoftmaxFromLogSumsOp::create(builder, after(softmax.getResult(), "_again"),
                                     again.lookup(softmax.getX()), logSums.getResult(), rows());
    clones.push_back(probabilities.getDefiningOp());
    if (toDType(type) != toDType(probabilities.getType())) {
      probabilities = CastOp::create(builder, after(softmax.getResult(), "_again"), probabilities,
                                     *toDType(type));
      clones.push_back(probabilities.getDefiningOp());
    }
    probabilities.setType(mlir::cast<mlir::RankedTensorType>(type));
    again.map(softmax.getResult(), probabilities);
    for (mlir::Operation *op : between) clone(op);
    keptAgain =
        again.lookup(between.empty() ? softmax->getResult(0) : between.back()->getResult(0));
    for (mlir::Value value : madeForward())
      value.replaceUsesWithIf(again.lookup(value), [&](mlir::OpOperand &use) {
        return isBackward(use.getOwner()) && !llvm::is_contained(clones, use.getOwner());
      });
  }

  /// D by rows, and the derivative with it, which is returned.
  mlir::Value replace(const Derivative &derivative) {
    SoftmaxDxOp op = derivative.op;
    BuilderOfLayer builder(op);
    const std::string scoreLetters = lettersOfScores(), outputLetters = einsum().result;
    std::vector<int64_t> along, summed, places;  // places: of the output's axes among its rows'
    for (size_t dimension = 0; dimension < outputLetters.size(); ++dimension) {
      places.push_back(int64_t(along.size()));
      if (const size_t at = scoreLetters.find(outputLetters[dimension]); at != std::string::npos)
        along.push_back(int64_t(at));
      else summed.push_back(int64_t(dimension));
    }
    mlir::Value wide = derivative.dOutput, own = output.getResult();
    if (tokens) {
      wide = wide.getDefiningOp<UnpackOp>().getX(), own = tokens->output.getResult();
      for (int64_t &dimension : summed)
        dimension -= dimension > tokens->output.getAxes()[1] ? 1 : 0;
    }
    if (*toDType(wide.getType()) != DType::f32)
      wide = CastOp::create(builder, after(wide, "_wide"), wide, DType::f32);
    mlir::Value sums = MulOp::create(builder, after(output.getResult(), "_terms"), wide, own);
    if (!summed.empty())
      sums = ReduceOp::create(builder, after(output.getResult(), "_row_sums"), "sum", sums, summed,
                              DType::f32);
    if (tokens) {
      const llvm::ArrayRef<int64_t> axes = tokens->output.getAxes();
      sums = unpackedRows(builder, after(output.getResult(), "_row_sums_padded"), sums,
                          {places[size_t(axes[0])], places[size_t(axes[1])]});
    }
    mlir::Value centered =
        SubOp::create(builder, after(op.getDy(), "_centered"), op.getDy(), sums, along);
    const mlir::Type type = op.getResult().getType();
    mlir::Value result = MulOp::create(builder, op.getLoc(), centered, op.getY());
    if (toDType(result.getType()) != toDType(type))
      result = CastOp::create(builder, op.getLoc(), result, *toDType(type));
    result.setType(mlir::cast<mlir::RankedTensorType>(type));
    op.getResult().replaceAllUsesWith(result);
    op->erase();
    return result;
  }

  // --- gradients that nothing reads ---

  /// The contraction of scores that the backward pass makes again; null where there are several.
  ContractOp productAgain() const {
    ContractOp found;
    for (mlir::Operation *clone : clones)
      if (auto product = mlir::dyn_cast<ContractOp>(clone)) {
        if (found) return {};
        found = product;
      }
    return found;
  }

  /// What a contraction with queries or keys reads of what the derivative leads to through
  /// element-wise ops; null where none does.
  mlir::Value gradientOfProduct(mlir::Value derivative, ContractOp product) const {
    if (dScores) return dScores;
    llvm::SetVector<mlir::Value> reached;
    reached.insert(derivative);
    for (size_t at = 0; at < reached.size(); ++at)
      for (mlir::Operation *user : reached[at].getUsers())
        if (auto contraction = mlir::dyn_cast<ContractOp>(user)) {
          for (const mlir::Value operand : {product.getA(), product.getB()})
            if (readsBoth(contraction, reached[at], operand)) return reached[at];
        } else if (user->getNumResults() == 1 &&
                   elements(user->getResult(0)) == elements(derivative) &&
                   mlir::cast<WeftOp>(user).operatorClass() == OperatorClass::elementwise) {
          reached.insert(user->getResult(0));
        }
    return {};
  }

  static bool readsBoth(ContractOp contraction, mlir::Value one, mlir::Value other) {
    return (contraction.getA() == one && contraction.getB() == other) ||
           (contraction.getA() == other && contraction.getB() == one);
  }

  /// The contraction of two values, of which `scores` has their extent, that gives the gradient of
  /// a third one; 0 if it is there, else 1.
  int addMissing(mlir::Value scores, mlir::Value other, mlir::Value of, const Einsum &spec,
                 ContractOp forward) {
    for (mlir::Operation *user : scores.getUsers())
      if (auto contraction = mlir::dyn_cast<ContractOp>(user);
          contraction && readsBoth(contraction, scores, other))
        return 0;
    mlir::Operation *behind = scores.getDefiningOp(), *maker = other.getDefiningOp();
    if (maker && behind->isBeforeInBlock(maker)) behind = maker;
    BuilderOfLayer builder(behind->getNextNode(), layerOf(scores));
    const std::string name = writtenName(of);
    auto gradient = ContractOp::create(
        builder, named(name.empty() ? "" : gradientName(name)), spec.text(), scores, other,
        forward.getScale() ? std::optional(forward.getScale()->convertToDouble()) : std::nullopt,
        axisNames(of.getType()), toDType(of.getType()));
    gradient.setPrecisionAttr(forward.getPrecisionAttr());
    if (auto unpack = of.getDefiningOp<UnpackOp>(); tokens && unpack)
      PackOp::create(builder, named(name.empty() ? "" : gradientName(name) + "_packed"), gradient,
                     tokens->offsets(), unpack.getInto(),
                     axisNames(unpack.getX().getType())[size_t(unpack.getAxis())]);
    return 1;
  }

  /// Of queries, keys and values those gradients that the backward pass lacks: one kernel gives all
  /// three (kernel/AttentionBackwardRegion.h).
  int addMissingGradients(mlir::Value derivative, mlir::Value dOutput) {
    ContractOp product = productAgain();
    const mlir::Value gradient = product ? gradientOfProduct(derivative, product) : mlir::Value();
    if (!gradient) return 0;
    const Einsum own = parseEinsum(product.getSpec().str());
    int added = 0;
    added += addMissing(gradient, product.getB(), product.getA(),
                        {.a = own.result, .b = own.b, .result = own.a}, product);
    added += addMissing(gradient, product.getA(), product.getB(),
                        {.a = own.result, .b = own.a, .result = own.b}, product);
    return added +
           addMissing(keptAgain, dOutput, values(),
                      {.a = lettersOfScores(), .b = einsum().result, .result = lettersOfValues()},
                      output);
  }

  void eraseUnread() {
    for (mlir::Operation *clone : llvm::reverse(clones))
      if (clone->use_empty()) clone->erase();
  }

  SoftmaxOp softmax;
  mlir::Location location;
  GraphOp graph;
  mlir::Operation *lastForward;
  llvm::DenseMap<mlir::Value, bool> leadsFromContraction;
  llvm::SetVector<mlir::Operation *> scores;  ///< contractions and element-wise ops
  std::vector<mlir::Operation *> between;     ///< casts, and a dropout at most; in order
  ContractOp output;
  bool isFirst = true;  ///< whether probabilities are its first operand
  std::vector<Derivative> derivatives;
  mlir::Value dScores;  ///< of the contraction of scores, where addDerivativeOfScores() made it
  std::vector<mlir::Operation *> clones;
  mlir::Value keptAgain;  ///< what forward contracts with values, made again
  std::optional<Tokens> tokens;
  mlir::IRMapping unpackedAgain;  ///< by what forward unpacks
};

}  // namespace

std::string recomputeAttentionRejection(SoftmaxOp softmax) {
  if (!mlir::cast<GraphOp>(softmax->getParentOp())->hasAttr(savedName))
    return "the graph has no backward pass";
  return Attention(softmax).find();
}

int recomputeAttention(SoftmaxOp softmax, bool withAllGradients) {
  Attention attention(softmax);
  [[maybe_unused]] const std::string rejection = attention.find();
  assert(rejection.empty() && "recomputeAttentionRejection() was asked");
  return attention.rewrite(withAllGradients);
}

int recomputeAttentions(GraphOp graph) {
  int count = 0;
  for (SoftmaxOp softmax : llvm::make_early_inc_range(graph.getBody().front().getOps<SoftmaxOp>()))
    if (recomputeAttentionRejection(softmax).empty()) {
      recomputeAttention(softmax);
      ++count;
    }
  return count;
}

}  // namespace weft
