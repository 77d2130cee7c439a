// Packed tokens behind their number need not be computed; this is where kernels learn of it.
//
// Which tensors hold packed tokens, and along which dimension, follows from weft.pack, weft.unpack
// and masks of tokens along iteration spaces. What ops make of rows behind the last token is not
// specified, so that zero is as good as anything: a mask sets them to it where a chain of
// element-wise ops ends, and a kernel whose results are all masked may leave out whatever these
// rows take (kernel/UnusedTokens.h). Inside a chain a mask would only take instructions, since the
// chain's ops may share a kernel with its end.
//
// Where nothing reads these rows, neither sums over them nor gives them back, they need not even be
// zero: the mask is then an unread one, and kernels do not store them. What packs tokens says the
// same of its result. A contraction has an unread mask by itself, inside a chain, too, where it
// costs nothing: else a kernel of the contraction alone would compute all rows.
//
// A contraction along tokens, which gives the gradient of a weight, needs zeros behind the last
// one, which its operands then have. It gets the offsets as a third operand, which say so: a kernel
// may end its sum with the last token.
//
// So do other sums over tokens: gradients of biases and of norms' weights. A mask of tokens in
// front of one, which changes nothing, says so: it is no instruction beside loads, and a loop ends
// with the last token. Where the operand is the mask of a chain of element-wise ops, which the sum
// can share a kernel with, that one says it. Only the first operand has one: the others are finite.
//
// The mask has the name of the tensor that it masks, which readers mean; what it masks is called
// NAME_unmasked.
#include "ir/LayerMarks.h"
#include "kernel/CoordinateExpressions.h"
#include "passes/Describe.h"
#include "passes/Rewrites.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <set>

namespace weft {
namespace {

/// A dimension that tokens run along, and the offsets that say how many there are.
struct Tokens {
  int dimension = 0;
  mlir::Value offsets;
  bool operator==(const Tokens &) const = default;
};

class TokenMasker {
public:
  explicit TokenMasker(GraphOp graph) : body(graph.getBody().front()) {}

  int run() {
    findTokens();
    if (tokens.empty()) return 0;
    int count = 0;
    std::vector<mlir::Operation *> ops;
    for (mlir::Operation &op : body.without_terminator()) ops.push_back(&op);
    for (mlir::Operation *op : ops) count += maskResults(op);
    for (mlir::Operation *op : ops) count += maskTerms(op);
    for (MaskOp mask : masks)
      if (isUnread(mask.getResult(), {static_cast<int>(mask.getKey()), mask.getAux()})) {
        mask.setKind("unread");
        mask.removeFillAttr();
      }
    for (mlir::Operation *op : ops)
      if (auto pack = mlir::dyn_cast<PackOp>(op); pack && isUnread(pack)) {
        pack.setUnread(true);
        ++count;
      }
    for (mlir::Operation *op : ops)
      if (startsUnreadChain(op)) {
        MaskOp mask = maskOf(op, {op->getResult(0)}).front();
        mask.setKind("unread");
        mask.removeFillAttr();
        ++count;
      }
    for (ContractOp contraction : body.getOps<ContractOp>()) count += endSum(contraction);
    return count;
  }

private:
  void note(mlir::Value value, const Tokens &own) {
    const auto [found, isNew] = tokens.insert({value, own});
    if (isNew) work.push_back(value);
    else if (!(found->second == own)) ambiguous.insert(value);
  }

  void findTokens() {
    for (mlir::Operation &op : body.without_terminator()) {
      if (auto pack = mlir::dyn_cast<PackOp>(op)) note(pack.getResult(), packedBy(pack));
      if (auto unpack = mlir::dyn_cast<UnpackOp>(op))
        note(unpack.getX(), {static_cast<int>(unpack.getAxis()), unpack.getOffsets()});
      if (auto mask = mlir::dyn_cast<MaskOp>(op);
          mask && isTokensMask(std::string_view(mask.getKind())))
        note(mask.getX(), {static_cast<int>(mask.getKey()), mask.getAux()});
    }
    while (!work.empty()) {
      const mlir::Value value = work.back();
      work.pop_back();
      const Tokens own = tokens.find(value)->second;
      if (mlir::Operation *definition = value.getDefiningOp()) spread(definition, value, own);
      for (mlir::Operation *reader : value.getUsers())
        if (!mlir::isa<ReturnOp>(reader)) spread(reader, value, own);
    }
  }

  static std::vector<mlir::Value> tensorsOf(mlir::Operation *op) {
    std::vector<mlir::Value> all(op->operand_begin(), op->operand_end());
    all.insert(all.end(), op->result_begin(), op->result_end());
    return all;
  }

  /// From one tensor of an op to the others, along the axis that the tokens run along.
  void spread(mlir::Operation *op, mlir::Value from, const Tokens &own) {
    if (mlir::isa<KernelOp>(op)) return;
    const std::vector<mlir::Value> tensors = tensorsOf(op);
    const IterationSpace space = mlir::cast<WeftOp>(op).iterationSpace();
    for (const std::vector<SpaceAxis> *axes : {&space.independent, &space.reduced})
      for (const SpaceAxis &axis : *axes) {
        const bool isOwn = std::ranges::any_of(axis.places, [&](const Place &place) {
          return tensors[size_t(place.tensor)] == from && place.dimension == own.dimension;
        });
        if (!isOwn) continue;
        for (const Place &place : axis.places)
          if (tensors[size_t(place.tensor)] != own.offsets)
            note(tensors[size_t(place.tensor)], {place.dimension, own.offsets});
      }
  }

  static Tokens packedBy(PackOp pack) {
    const auto sequences = static_cast<int>(pack.getAxes()[0]);
    return {sequences - (sequences > pack.getAxes()[1] ? 1 : 0), pack.getOffsets()};
  }

  /// Of floats: integers have nothing that shows where it is read all the same.
  bool isUnread(PackOp pack) {
    if (pack.getUnread() || !mlir::isa<mlir::FloatType>(pack.getX().getType().getElementType()))
      return false;
    return isUnread(pack.getResult(), packedBy(pack));
  }

  /// Whether nothing depends on what follows the tokens of a tensor.
  bool isUnread(mlir::Value value, const Tokens &own) {
    const auto [known, isNew] = unread.insert({value, true});
    if (!isNew) return known->second;
    const bool result = llvm::all_of(value.getUses(), [&](mlir::OpOperand &use) {
      return ignoresUnused(use.getOwner(), static_cast<int>(use.getOperandNumber()), own);
    });
    return unread[value] = result;
  }

  bool ignoresUnused(mlir::Operation *reader, int operand, const Tokens &own) {
    if (mlir::isa<ReturnOp, KernelOp>(reader)) return false;
    if (auto unpack = mlir::dyn_cast<UnpackOp>(reader))
      return operand == 0 && int64_t(unpack.getAxis()) == own.dimension &&
             unpack.getOffsets() == own.offsets;
    if (auto mask = mlir::dyn_cast<MaskOp>(reader);
        mask && isTokensMask(std::string_view(mask.getKind())))
      return operand == 0 && int64_t(mask.getKey()) == own.dimension &&
             mask.getAux() == own.offsets;
    if (mlir::cast<WeftOp>(reader).expression().readsElsewhere(operand)) return false;
    const IterationSpace space = mlir::cast<WeftOp>(reader).iterationSpace();
    const Place place{operand, own.dimension};
    const auto along = std::ranges::find_if(space.independent, [&](const SpaceAxis &axis) {
      return std::ranges::find(axis.places, place) != axis.places.end();
    });
    if (along == space.independent.end()) return false;
    const auto first = static_cast<int>(reader->getNumOperands());
    return llvm::all_of(reader->getResults(), [&](mlir::OpResult result) {
      const auto number = first + static_cast<int>(result.getResultNumber());
      const auto found = std::ranges::find(along->places, number, &Place::tensor);
      return found != along->places.end() && isUnread(result, {found->dimension, own.offsets});
    });
  }

  const Tokens *tokensOf(mlir::Value value) const {
    const auto found = tokens.find(value);
    return found == tokens.end() || ambiguous.contains(value) ? nullptr : &found->second;
  }

  /// Ops that compute; what moves elements keeps zeros where they are.
  static bool computes(mlir::Operation *op) {
    return !mlir::isa<KernelOp>(op) &&
           mlir::cast<WeftOp>(op).operatorClass() != OperatorClass::movement;
  }

  static bool isMaskOfTokens(mlir::Operation *op) {
    auto mask = mlir::dyn_cast<MaskOp>(op);
    return mask && isTokensMask(std::string_view(mask.getKind()));
  }

  /// Says to a contraction along tokens how many there are; whether it is one.
  bool endSum(ContractOp contraction) {
    const Einsum einsum = parseEinsum(contraction.getSpec().str());
    const std::string reduced = einsum.reduced();
    if (contraction.getOffsets() || reduced.size() != 1) return false;
    std::optional<Tokens> own;
    for (const auto &[operand, term] :
         {std::pair(contraction.getA(), &einsum.a), std::pair(contraction.getB(), &einsum.b)}) {
      const Tokens *const tokens = tokensOf(operand);
      if (!tokens || tokens->dimension != static_cast<int>(term->find(reduced[0])) ||
          (own && own->offsets != tokens->offsets) || !isZeroBehind(operand, *tokens))
        return false;
      own = *tokens;
    }
    if (!comesBefore(own->offsets, contraction)) return false;
    contraction.getOffsetsMutable().assign(own->offsets);
    return true;
  }

  /// Sums of terms that are their first operand or have it as a factor.
  static bool sumsTerms(mlir::Operation *op) {
    if (auto reduce = mlir::dyn_cast<ReduceOp>(op)) return reduce.getKind() == "sum";
    return mlir::isa<LayerNormDwOp, RmsNormDwOp>(op);
  }

  /// Whether a sum can share a kernel with the mask of tokens that gives its operand: a chain of
  /// element-wise ops ends there, or nothing but sums reads it.
  static bool hasMask(mlir::Value terms) {
    auto mask = terms.getDefiningOp<MaskOp>();
    if (!mask || !isMaskOfTokens(mask)) return false;
    mlir::Operation *const chain = mask.getX().getDefiningOp();
    return llvm::all_of(terms.getUsers(), sumsTerms) ||
           (chain && !mlir::isa<KernelOp>(chain) &&
            mlir::cast<WeftOp>(chain).operatorClass() == OperatorClass::elementwise);
  }

  /// A mask in front of a sum over tokens, whose operands are zero behind the last one; one for all
  /// sums of a tensor. Whether it has one now.
  bool maskTerms(mlir::Operation *op) {
    if (!sumsTerms(op)) return false;
    const mlir::Value terms = op->getOperand(0);
    const Tokens *const own = tokensOf(terms);
    if (!own || hasMask(terms) || !comesBefore(own->offsets, op)) return false;
    const IterationSpace space = mlir::cast<WeftOp>(op).iterationSpace();
    const auto along = std::ranges::find_if(space.reduced, [&](const SpaceAxis &axis) {
      return std::ranges::find(axis.places, Place{0, own->dimension}) != axis.places.end();
    });
    if (along == space.reduced.end()) return false;
    for (const Place &place : along->places) {
      if (size_t(place.tensor) >= op->getNumOperands()) continue;
      const mlir::Value operand = op->getOperand(unsigned(place.tensor));
      if (!isZeroBehind(operand, {place.dimension, own->offsets})) return false;
    }
    mlir::Value &mask = maskedTerms[terms];
    if (!mask) {
      BuilderOfLayer builder(op);
      const std::string name = writtenName(terms);
      const mlir::Location location =
          name.empty() ? op->getLoc()
                       : mlir::NameLoc::get(builder.getStringAttr(name + "_terms"), op->getLoc());
      MaskOp added = MaskOp::create(builder, location, terms, "tokens", int64_t(own->dimension),
                                    std::nullopt, own->offsets);
      added.setFillAttr(builder.getF64FloatAttr(0));
      mask = added.getResult();
    }
    tokens.insert({mask, Tokens(*tokensOf(terms))});
    op->setOperand(0, mask);
    return true;
  }

  static bool comesBefore(mlir::Value value, mlir::Operation *op) {
    mlir::Operation *const definition = value.getDefiningOp();
    return !definition || definition->isBeforeInBlock(op);
  }

  /// Whether all that follows the tokens of a tensor is zero: a mask or what packs them makes it
  /// so, and what moves elements along other axes keeps it.
  bool isZeroBehind(mlir::Value value, const Tokens &own) const {
    mlir::Operation *const definition = value.getDefiningOp();
    if (!definition) return false;
    if (auto pack = mlir::dyn_cast<PackOp>(definition))
      return !pack.getUnread() && packedBy(pack) == own;
    if (auto mask = mlir::dyn_cast<MaskOp>(definition))
      return mask.getKind() == "tokens" && mask.getFill() && mask.getFill()->isZero() &&
             Tokens{static_cast<int>(mask.getKey()), mask.getAux()} == own;
    if (!mlir::isa<ConcatOp, SliceOp, TransposeOp, SplitAxisOp, MergeAxesOp, IdentityOp>(
            definition))
      return false;
    return llvm::all_of(definition->getOperands(), [&](mlir::Value operand) {
      const Tokens *const before = tokensOf(operand);
      return before && before->offsets == own.offsets &&
             extents(operand.getType())[size_t(before->dimension)] ==
                 extents(value.getType())[size_t(own.dimension)] &&
             isZeroBehind(operand, *before);
    });
  }

  /// Whether a chain of element-wise ops goes on behind the tensor.
  bool goesOn(mlir::Value value) const {
    if (!value.hasOneUse()) return false;
    mlir::Operation *reader = *value.getUsers().begin();
    return !mlir::isa<ReturnOp, KernelOp>(reader) &&
           mlir::cast<WeftOp>(reader).operatorClass() == OperatorClass::elementwise &&
           tokensOf(reader->getResult(0)) != nullptr;
  }

  int maskResults(mlir::Operation *op) {
    if (!computes(op) || isMaskOfTokens(op)) return 0;
    std::vector<mlir::Value> chosen;
    for (mlir::Value result : op->getResults())
      if (tokensOf(result) && !result.use_empty() && !goesOn(result) &&
          mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(result)))
        chosen.push_back(result);
    if (chosen.empty()) return 0;
    llvm::append_range(masks, maskOf(op, chosen));
    return static_cast<int>(chosen.size());
  }

  /// A contraction in front of element-wise ops whose rows behind the last token nothing reads.
  bool startsUnreadChain(mlir::Operation *op) {
    if (!mlir::isa<ContractOp>(op)) return false;
    const mlir::Value result = op->getResult(0);
    const Tokens *const own = tokensOf(result);
    return own && goesOn(result) && !isMaskOfTokens(*result.getUsers().begin()) &&
           isUnread(result, *own);
  }

  /// A mask behind each chosen result of the op, which has the result's name.
  std::vector<MaskOp> maskOf(mlir::Operation *op, const std::vector<mlir::Value> &chosen) {
    std::vector<MaskOp> added;
    std::vector<std::string> names, unmasked;
    bool areNamed = true;
    for (mlir::Value result : op->getResults()) {
      names.push_back(writtenName(result));
      areNamed = areNamed && !names.back().empty();
      unmasked.push_back(names.back() + (llvm::is_contained(chosen, result) ? "_unmasked" : ""));
    }
    const mlir::Location location = op->getLoc();
    BuilderOfLayer builder(op->getContext(), layerOf(op));
    builder.setInsertionPointAfter(op);
    const auto named = [&](const std::string &name) -> mlir::Location {
      return areNamed ? mlir::Location(mlir::NameLoc::get(builder.getStringAttr(name), location))
                      : location;
    };
    for (mlir::Value result : chosen) {
      const Tokens own = *tokensOf(result);
      const std::string &name = names[mlir::cast<mlir::OpResult>(result).getResultNumber()];
      MaskOp mask = MaskOp::create(builder, named(name), result, "tokens", int64_t(own.dimension),
                                   std::nullopt, own.offsets);
      mask.setFillAttr(builder.getF64FloatAttr(0));
      added.push_back(mask);
      tokens.insert({mask.getResult(), own});
      result.replaceAllUsesExcept(mask.getResult(), mask);
    }
    op->setLoc(named(llvm::join(unmasked, ", ")));
    return added;
  }

  mlir::Block &body;
  llvm::DenseMap<mlir::Value, Tokens> tokens;
  llvm::DenseSet<mlir::Value> ambiguous;
  std::vector<MaskOp> masks;
  llvm::DenseMap<mlir::Value, mlir::Value> maskedTerms;  ///< in front of sums
  llvm::DenseMap<mlir::Value, bool> unread;              ///< or asked for
  std::vector<mlir::Value> work;
};

}  // namespace

int maskUnusedTokens(GraphOp graph) { return TokenMasker(graph).run(); }

}  // namespace weft
