// Padding-free execution: what is computed token by token runs over packed tokens.
//
// A padding mask says how many tokens each sequence has (`lengths`, of the caller or counted in a
// mask of ones and zeros: `weft.lengths`). Its axes of sequences and keys
// are a pair of dimensions of the masked scores; along iteration spaces the pair spreads to every
// tensor that holds the same tokens: keys, values, queries, the layer's input and output. A tensor
// with one such pair holds tokens; one with two (scores, probabilities) holds pairs of tokens, and
// stays padded. What runs along positions alone, such as a table of them that all sequences share,
// is repeated for each sequence and packed where tokens read it. A rotary embedding reads where the
// sequence of each token starts, and turns the token by its distance from there. A contraction that
// makes more of tokens which are unpacked anyway, for ops on padded tensors alone, reads them
// unpacked, too.
//
//   %k = contract "phi,bji->phbj" %wk, %x           %offsets = offsets %lengths
//   %s = contract "phbk,phbj->hbjk" %k, %q     ->   %xt = pack %x, %offsets over b, j
//   %m = mask padding %s, %lengths                  %kt = contract "phi,bi->phb" %wk, %xt
//                                                   %k = unpack %kt, %offsets
//                                                   %s = contract "phbk,phbj->hbjk" %k, %q
//
// Queries behind a sequence's last token are masked as its keys are, since nobody reads what
// becomes of them: so a fused attention finds blocks on either side of the padding empty, and takes
// what the pairs of tokens take. Both masks say that they are by the lengths that were packed, so
// that a kernel which knows where a sequence ends needs neither.
//
// Rows behind the last token hold what the ops make of zeros. Nothing reads them: unpack selects,
// and the gradients of a packed graph are zero there, since pack makes them (its gradient's are
// those of unpack) and every gradient is linear in what it comes from. So these rows must be
// finite: an op that divides by a token's value keeps the graph from being packed.
#include "ir/Einsum.h"
#include "ir/LayerMarks.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"
#include "passes/Describe.h"
#include "passes/Rewrites.h"

#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace weft {
namespace {

constexpr int64_t mostTokens = int64_t(1) << 24;  // offsets_c2 of SPEC.md

bool isPadding(MaskOp mask) { return maskKindNamed(mask.getKind()) == MaskShape::Kind::padding; }

/// Dimensions of a tensor.
struct TokenPair {
  int sequences = 0, positions = 0;
  auto operator<=>(const TokenPair &) const = default;
};

/// The axes of one op's space: which axis a dimension of a tensor runs along.
class Axes {
public:
  explicit Axes(mlir::Operation *op) : space(mlir::cast<WeftOp>(op).iterationSpace()) {}

  const SpaceAxis *of(int tensor, int dimension) const {
    for (const std::vector<SpaceAxis> *axes : {&space.independent, &space.reduced})
      for (const SpaceAxis &axis : *axes)
        if (std::ranges::find(axis.places, Place{tensor, dimension}) != axis.places.end())
          return &axis;
    return nullptr;
  }
  static std::optional<int> dimensionOf(const SpaceAxis &axis, int tensor) {
    const auto found = std::ranges::find(axis.places, tensor, &Place::tensor);
    return found == axis.places.end() ? std::nullopt : std::optional(found->dimension);
  }
  bool reduces(const SpaceAxis &axis) const {
    return std::ranges::find(space.reduced, axis) != space.reduced.end();
  }

private:
  IterationSpace space;
};

std::vector<mlir::Value> tensorsOf(mlir::Operation *op) {
  std::vector<mlir::Value> all(op->operand_begin(), op->operand_end());
  all.insert(all.end(), op->result_begin(), op->result_end());
  return all;
}

mlir::Location named(mlir::Value value, llvm::StringRef suffix) {
  const std::string name = writtenName(value);
  if (name.empty()) return value.getLoc();
  return mlir::NameLoc::get(mlir::StringAttr::get(value.getContext(), name + suffix.str()),
                            value.getLoc());
}

class Packer {
public:
  explicit Packer(GraphOp graph) : graph(graph), body(graph.getBody().front()) {}

  std::string run(const std::string &axis) {
    if (std::string reason = findLengths(); !reason.empty()) return reason;
    spread();
    if (std::string reason = axisRejection(axis); !reason.empty()) return reason;
    positionsName = axis;
    for (mlir::Operation &op : body.without_terminator())
      if (isPacked(&op)) chosen.insert(&op);
    const std::vector<mlir::Operation *> larger = largerThanOperands();
    for (mlir::Operation *op : larger) chosen.remove(op);
    if (chosen.empty()) return "no op computes token by token";
    for (mlir::Operation *op : chosen)
      if (std::string reason = infiniteRejection(op); !reason.empty()) return reason;
    rewrite();
    return "";
  }

private:
  std::string findLengths() {
    if (!body.getOps<KernelOp>().empty()) return "the graph has kernels already";
    for (MaskOp mask : body.getOps<MaskOp>()) {
      if (!isPadding(mask)) continue;
      const TokenPair pair{static_cast<int>(mask.getAlong()->front()),
                           static_cast<int>(mask.getKey())};
      const int64_t own = extents(mask.getX().getType())[size_t(pair.positions)];
      if (lengths && (lengths != mask.getAux() || length != own))
        return "padding masks of different lengths";
      if (!isGiven(mask.getAux()))
        return "the lengths of the padding mask are computed; they must be an argument, or counted "
               "in one (weft.lengths)";
      lengths = mask.getAux(), length = own;
      add(mask.getX(), pair);
    }
    if (!lengths)
      return "no padding mask says how many tokens a sequence has; --mask padding adds one where "
             "the "
             "graph is imported";
    const int64_t tokens = extents(lengths.getType())[0] * length;
    if (tokens > mostTokens)
      return fmt::format("{} tokens; offsets of up to {} are exact (offsets_c2)", tokens,
                         mostTokens);
    return "";
  }

  /// Lengths of a caller, or those of the mask of one.
  static bool isGiven(mlir::Value own) {
    auto counted = own.getDefiningOp<LengthsOp>();
    return mlir::isa<mlir::BlockArgument>(counted ? counted.getMask() : own);
  }

  bool add(mlir::Value value, TokenPair pair) { return pairs[value].insert(pair).second; }

  /// To a fixed point: each op hands the pairs of one tensor on to the others.
  void spread() {
    for (bool changed = true; changed;) {
      changed = false;
      for (mlir::Operation &op : body.without_terminator()) {
        const std::vector<mlir::Value> tensors = tensorsOf(&op);
        const Axes axes(&op);
        for (int from = 0; from < std::ssize(tensors); ++from)
          for (const TokenPair &pair : std::set<TokenPair>(pairs[tensors[size_t(from)]]))
            for (int to = 0; to < std::ssize(tensors); ++to)
              if (std::optional<TokenPair> other = pairOf(axes, from, pair, to))
                changed |= add(tensors[size_t(to)], *other);
      }
    }
  }

  static std::optional<TokenPair> pairOf(const Axes &axes, int from, const TokenPair &pair,
                                         int to) {
    const SpaceAxis *sequences = axes.of(from, pair.sequences),
                    *positions = axes.of(from, pair.positions);
    if (!sequences || !positions || sequences == positions) return std::nullopt;
    const std::optional<int> first = Axes::dimensionOf(*sequences, to),
                             second = Axes::dimensionOf(*positions, to);
    if (!first || !second) return std::nullopt;
    return TokenPair{*first, *second};
  }

  /// The option names the axis of positions; an argument must have it.
  std::string axisRejection(const std::string &axis) {
    std::set<std::string> names;
    for (mlir::BlockArgument argument : body.getArguments())
      if (const auto pair = pairOfTokens(argument))
        names.insert(axisNames(argument.getType())[size_t(pair->positions)]);
    if (names.contains(axis)) return "";
    return fmt::format("no argument holds tokens along '{}'{}", axis,
                       names.empty()
                           ? std::string()
                           : fmt::format("; tokens lie along {}", fmt::join(names, ", ")));
  }

  /// The pair of a tensor that holds tokens; nothing for one without, or with pairs of tokens.
  std::optional<TokenPair> pairOfTokens(mlir::Value value) const {
    const auto found = pairs.find(value);
    if (found == pairs.end() || found->second.size() != 1) return std::nullopt;
    return *found->second.begin();
  }

  /// Ops whose meaning does not depend on where a token stands.
  static bool ignoresPlaces(mlir::Operation *op) {
    if (mlir::isa<ContractOp, LayerNormOp, RmsNormOp, ReduceOp, SliceOp, ConcatOp, SplitAxisOp,
                  MergeAxesOp, TransposeOp, GatherOp, DropoutOp, BroadcastOp, PadOp,
                  CrossEntropyOp>(op))
      return true;
    const Expression expression = mlir::cast<WeftOp>(op).expression();
    return !expression.empty() && !expression.usesCoordinates() && !expression.readsElsewhere() &&
           mlir::cast<WeftOp>(op).operatorClass() == OperatorClass::elementwise;
  }

  /// A rotary embedding of tokens by their positions: packed, it reads where their sequences start.
  bool rotatesTokens(mlir::Operation *op) const {
    auto rotary = mlir::dyn_cast<RotaryOp>(op);
    if (!rotary || rotary.getStarts() || rotary.getAmong()) return false;
    const std::optional<TokenPair> own = pairOfTokens(rotary.getX());
    return own && int64_t(rotary.getPosition()) == own->positions &&
           int64_t(rotary.getDim()) != own->sequences;
  }

  /// Whether an op computes each token of its results from that token alone.
  bool isPacked(mlir::Operation *op) const {
    if (!ignoresPlaces(op) && !rotatesTokens(op)) return false;
    const std::vector<mlir::Value> tensors = tensorsOf(op);
    const Axes axes(op);
    const int first = static_cast<int>(op->getNumOperands());
    const std::optional<TokenPair> own = pairOfTokens(op->getResult(0));
    if (!own) return false;
    const SpaceAxis *sequences = axes.of(first, own->sequences),
                    *positions = axes.of(first, own->positions);
    if (!sequences || !positions || sequences == positions || axes.reduces(*sequences) ||
        axes.reduces(*positions))
      return false;
    for (int tensor = 0; tensor < std::ssize(tensors); ++tensor) {
      const mlir::Value value = tensors[size_t(tensor)];
      const bool has = Axes::dimensionOf(*sequences, tensor).has_value();
      if (isOfPositions(op, axes, tensor, *own)) continue;
      if (has != Axes::dimensionOf(*positions, tensor).has_value()) return false;
      if (!has && tensor >= first) return false;
      if (has && pairOfTokens(value) != pairOf(axes, first, *own, tensor)) return false;
    }
    return true;
  }

  /// Whether an operand of an element-wise op runs along the positions of its result's tokens and
  /// not along their sequences, which share it: a table of positions.
  static bool isOfPositions(mlir::Operation *op, const Axes &axes, int tensor,
                            const TokenPair &own) {
    const int first = static_cast<int>(op->getNumOperands());
    const SpaceAxis *sequences = axes.of(first, own.sequences),
                    *positions = axes.of(first, own.positions);
    return tensor < first && mlir::cast<WeftOp>(op).operatorClass() == OperatorClass::elementwise &&
           !Axes::dimensionOf(*sequences, tensor) && Axes::dimensionOf(*positions, tensor);
  }

  /// Contractions that ops on padded tensors alone read, as products of queries with vectors of
  /// distances are, and whose results are larger than the tokens they read: these are unpacked for
  /// other ops anyway, so that no result needs to be.
  std::vector<mlir::Operation *> largerThanOperands() const {
    const auto isPadded = [&](mlir::Operation *user) {
      return !chosen.contains(user) && !mlir::isa<ReturnOp>(user);
    };
    std::vector<mlir::Operation *> larger;
    for (mlir::Operation *op : chosen) {
      if (!mlir::isa<ContractOp>(op) || !llvm::all_of(op->getUsers(), isPadded)) continue;
      const int64_t own = elementCount(op->getResult(0));
      const bool readsSmaller = llvm::all_of(op->getOperands(), [&](mlir::Value operand) {
        return !pairOfTokens(operand) ||
               (elementCount(operand) < own && llvm::any_of(operand.getUsers(), isPadded));
      });
      if (readsSmaller) larger.push_back(op);
    }
    return larger;
  }
  static int64_t elementCount(mlir::Value value) {
    return mlir::cast<mlir::RankedTensorType>(value.getType()).getNumElements();
  }

  /// Why rows of zeros would not stay finite; empty if they do.
  static std::string infiniteRejection(mlir::Operation *op) {
    const auto zero = [&](const char *what) {
      return fmt::format("{} of tokens: rows behind the last token are zero, and {}",
                         op->getName().stripDialect().str(), what);
    };
    if (mlir::isa<DivOp, RsqrtOp, SqrtOp>(op)) return zero("it would not stay finite");
    if (auto norm = mlir::dyn_cast<LayerNormOp>(op); norm && norm.getEpsilon().isZero())
      return zero("its epsilon is 0");
    if (auto norm = mlir::dyn_cast<RmsNormOp>(op); norm && norm.getEpsilon().isZero())
      return zero("its epsilon is 0");
    return "";
  }

  void rewrite() {
    BuilderOfLayer builder(graph.getContext());
    builder.setInsertionPointToStart(&body);
    if (mlir::Operation *counted = lengths.getDefiningOp()) {  // everything packed reads them
      counted->moveBefore(&body, body.begin());
      builder.setInsertionPointAfter(counted);
    }
    offsets = OffsetsOp::create(
        builder, mlir::NameLoc::get(builder.getStringAttr("offsets"), graph.getLoc()), lengths,
        length);
    std::vector<mlir::Operation *> ops;
    for (mlir::Operation &op : body)
      if (&op != offsets.getDefiningOp()) ops.push_back(&op);
    if (llvm::any_of(chosen, [](mlir::Operation *op) { return mlir::isa<RotaryOp>(op); }))
      starts = startsOfTokens(builder);
    for (mlir::Operation *op : ops)
      if (auto mask = mlir::dyn_cast<MaskOp>(op); mask && isPadding(mask)) {
        mask.setPacked(true);
        maskQueries(builder, mask);
      }
    for (mlir::Operation *op : ops) {
      builder.setInsertionPoint(op);
      if (chosen.contains(op)) packOp(builder, op);
      else
        for (mlir::OpOperand &operand : op->getOpOperands())
          operand.set(padded(builder, operand.get()));
    }
    for (mlir::Operation *op : llvm::reverse(ops))
      if (chosen.contains(op)) op->erase();
  }

  /// Where the sequence of each token starts among the tokens.
  mlir::Value startsOfTokens(mlir::OpBuilder &builder) {
    const auto location = [&](const char *name) {
      return mlir::NameLoc::get(builder.getStringAttr(name), graph.getLoc());
    };
    const int64_t sequences = extents(lengths.getType()).front();
    const mlir::Value first =
        SliceOp::create(builder, location("sequence_starts"), offsets, 0, 0, sequences);
    const mlir::Value every = BroadcastOp::create(
        builder, location("starts_of_sequences"), first, llvm::ArrayRef<int64_t>{0},
        makeTensor(builder.getContext(), {axisNames(lengths.getType()).front(), positionsName},
                   {sequences, length}, mlir::getElementTypeOrSelf(offsets)));
    return PackOp::create(builder, location("token_starts"), every, offsets,
                          llvm::ArrayRef<int64_t>{0, 1});
  }

  /// Scores of queries that are padding become what those of keys are.
  void maskQueries(mlir::OpBuilder &builder, MaskOp mask) {
    const std::optional<int> queries = queriesOf(mask);
    if (!queries || !isReadByQuery(mask.getResult(), *queries)) return;
    builder.setInsertionPointAfter(mask);
    auto both = mlir::cast<MaskOp>(builder.clone(*mask));
    both.setKey(*queries);
    both.getXMutable().assign(mask.getResult());
    both->setLoc(named(mask.getResult(), "_queries"));
    mask.getResult().replaceAllUsesExcept(both.getResult(), both);
  }

  /// The dimension of queries of masked scores, where they are the tokens that keys are.
  std::optional<int> queriesOf(MaskOp mask) const {
    const auto found = pairs.find(mask.getX());
    if (found == pairs.end() || found->second.size() != 2) return std::nullopt;
    std::optional<int> queries;
    for (const TokenPair &pair : found->second) {
      if (pair.sequences != static_cast<int>(mask.getAlong()->front())) return std::nullopt;
      if (pair.positions != static_cast<int>(mask.getKey())) queries = pair.positions;
    }
    return queries;
  }

  /// Whether ops on padded tensors keep each query by itself, until packed ones drop the padding:
  /// none sums over queries, or loses track of them.
  bool isReadByQuery(mlir::Value scores, int dimension) const {
    llvm::DenseMap<mlir::Value, int> queries = {{scores, dimension}};
    for (mlir::Operation &op : body.without_terminator()) {
      if (chosen.contains(&op)) continue;
      const Axes axes(&op);
      for (int operand = 0; operand < static_cast<int>(op.getNumOperands()); ++operand) {
        const auto own = queries.find(op.getOperand(unsigned(operand)));
        if (own == queries.end()) continue;
        const SpaceAxis *axis = axes.of(operand, own->second);
        if (!axis || axes.reduces(*axis)) return false;
        for (unsigned result = 0; result < op.getNumResults(); ++result) {
          const auto place =
              Axes::dimensionOf(*axis, static_cast<int>(op.getNumOperands() + result));
          if (!place) return false;
          queries[op.getResult(result)] = *place;
        }
      }
    }
    return true;
  }

  mlir::Value packed(BuilderOfLayer &builder, mlir::Value value) {
    mlir::Value &own = packedOf[value];
    if (!own) {
      builder.setLayer(layerOf(value));
      const TokenPair pair = *pairOfTokens(value);
      own = PackOp::create(builder, named(value, "_packed"), value, offsets,
                           llvm::ArrayRef<int64_t>{pair.sequences, pair.positions});
    }
    return own;
  }

  /// What all sequences share, as each token has it: tokens in front, then its other dimensions.
  mlir::Value packedOfPositions(BuilderOfLayer &builder, mlir::Value value, int64_t position) {
    mlir::Value &own = packedOf[value];
    if (own) return own;
    const mlir::Value source = padded(builder, value);
    builder.setLayer(layerOf(value));
    std::vector<std::string> names = axisNames(value.getType());
    std::vector<int64_t> sizes = extents(value.getType()), into(sizes.size());
    names.insert(names.begin(), axisNames(lengths.getType()).front());
    sizes.insert(sizes.begin(), extents(lengths.getType()).front());
    std::iota(into.begin(), into.end(), 1);
    const mlir::Value every = BroadcastOp::create(
        builder, named(value, "_of_sequences"), source, into,
        makeTensor(builder.getContext(), names, sizes, mlir::getElementTypeOrSelf(value)));
    return own = PackOp::create(builder, named(value, "_packed"), every, offsets,
                                llvm::ArrayRef<int64_t>{0, position + 1});
  }

  /// What an op that stays padded reads in place of a result of one that does not.
  mlir::Value padded(BuilderOfLayer &builder, mlir::Value value) {
    mlir::Operation *definition = value.getDefiningOp();
    if (!definition || !chosen.contains(definition)) return value;
    mlir::Value &own = paddedOf[value];
    if (!own) {
      builder.setLayer(layerOf(value));
      const TokenPair pair = *pairOfTokens(value);
      const std::vector<std::string> names = axisNames(value.getType());
      own = UnpackOp::create(builder, named(value, isReturned(value) ? "" : "_padded"),
                             packedOf.at(value), offsets,
                             pair.sequences - (pair.sequences > pair.positions ? 1 : 0),
                             llvm::ArrayRef<int64_t>{pair.sequences, pair.positions}, length,
                             llvm::ArrayRef<std::string>{names[size_t(pair.sequences)],
                                                         names[size_t(pair.positions)]});
    }
    return own;
  }

  static bool isReturned(mlir::Value value) {
    return llvm::any_of(value.getUsers(),
                        [](mlir::Operation *op) { return mlir::isa<ReturnOp>(op); });
  }

  /// Results keep their names, but those of the graph, which are unpacked.
  static mlir::Location packedLocation(mlir::Operation *op) {
    std::vector<std::string> names;
    for (mlir::Value result : op->getResults()) {
      names.push_back(writtenName(result));
      if (names.back().empty()) return op->getLoc();
      if (isReturned(result)) names.back() += "_packed";
    }
    return mlir::NameLoc::get(mlir::StringAttr::get(op->getContext(), llvm::join(names, ", ")),
                              op->getLoc());
  }

  mlir::RankedTensorType packedType(mlir::Value value) const {
    const TokenPair pair = *pairOfTokens(value);
    const int64_t sequences = extents(value.getType())[size_t(pair.sequences)];
    return withoutDimensions(withExtent(value.getType(), pair.sequences, sequences * length, "t"),
                             {pair.positions});
  }

  /// The op over tokens: positions go, sequences become tokens.
  void packOp(BuilderOfLayer &builder, mlir::Operation *op) {
    const Axes axes(op);
    const int first = static_cast<int>(op->getNumOperands());
    const TokenPair own = *pairOfTokens(op->getResult(0));
    std::vector<std::optional<TokenPair>> of;
    for (int tensor = 0; tensor < std::ssize(tensorsOf(op)); ++tensor)
      of.push_back(pairOf(axes, first, own, tensor));
    mlir::IRMapping mapping;
    for (int operand = 0; operand < first; ++operand) {
      const mlir::Value value = op->getOperand(unsigned(operand));
      if (isOfPositions(op, axes, operand, own))
        mapping.map(value,
                    packedOfPositions(builder, value,
                                      *Axes::dimensionOf(*axes.of(first, own.positions), operand)));
      else
        mapping.map(value, of[size_t(operand)] ? packed(builder, value) : padded(builder, value));
    }
    mlir::Operation *clone = builder.clone(*op, mapping);
    clone->setLoc(packedLocation(op));
    for (auto [result, value] : llvm::enumerate(op->getResults())) {
      clone->getResult(unsigned(result)).setType(packedType(value));
      packedOf[value] = clone->getResult(unsigned(result));
    }
    setAttributes(builder, op, clone, of);
  }

  /// Attributes that name dimensions of the first operand, of one that has no positions.
  void setAttributes(mlir::OpBuilder &builder, mlir::Operation *op, mlir::Operation *clone,
                     const std::vector<std::optional<TokenPair>> &of) const {
    if (auto contraction = mlir::dyn_cast<ContractOp>(clone)) {
      Einsum einsum = parseEinsum(contraction.getSpec().str());
      std::string *terms[] = {&einsum.a, &einsum.b, &einsum.result};
      for (size_t term = 0; term < 3; ++term)
        if (of[term]) terms[term]->erase(terms[term]->begin() + of[term]->positions);
      contraction.setSpec(einsum.text());
      return;
    }
    if (auto broadcast = mlir::dyn_cast<BroadcastOp>(clone)) {
      std::vector<int64_t> into = broadcast.getInto().vec();
      if (of[0]) into.erase(into.begin() + of[0]->positions);
      for (int64_t &dimension : into) dimension -= dimension > of[1]->positions ? 1 : 0;
      broadcast.setInto(into);
      return;
    }
    if (!of[0]) return;  // a gather's table
    const int positions = of[0]->positions;
    const int64_t tokens = of[0]->sequences - (of[0]->sequences > positions ? 1 : 0);
    if (auto rotary = mlir::dyn_cast<RotaryOp>(clone)) {
      const int64_t dim = rotary.getDim();
      rotary.setDim(dim - (dim > positions ? 1 : 0));
      rotary.setPosition(tokens);
      rotary.setAlong(llvm::ArrayRef<int64_t>{tokens});
      rotary.getStartsMutable().assign(starts);
      return;
    }
    for (const char *name : {"along", "axes", "permutation"})
      if (auto list = op->getAttrOfType<mlir::DenseI64ArrayAttr>(name)) {
        std::vector<int64_t> kept;
        for (const int64_t dimension : list.asArrayRef())
          if (dimension != positions) kept.push_back(dimension - (dimension > positions ? 1 : 0));
        // What all sequences share has tokens in front, in the place of its positions.
        if (name == std::string_view("along") && llvm::is_contained(list.asArrayRef(), positions) &&
            !llvm::is_contained(list.asArrayRef(), of[0]->sequences))
          kept.insert(kept.begin(), tokens);
        clone->setAttr(name, builder.getDenseI64ArrayAttr(kept));
      }
    if (auto axis = op->getAttrOfType<mlir::IntegerAttr>("axis"))
      clone->setAttr(
          "axis", builder.getI64IntegerAttr(axis.getInt() - (axis.getInt() > positions ? 1 : 0)));
  }

  GraphOp graph;
  mlir::Block &body;
  mlir::Value lengths, offsets;
  mlir::Value starts;  ///< of the sequence of each token; null where no rotary embedding reads them
  int64_t length = 0;  ///< the bound: positions of a padded sequence
  std::string positionsName;  ///< of their axis
  llvm::MapVector<mlir::Value, std::set<TokenPair>> pairs;
  llvm::SetVector<mlir::Operation *> chosen;  ///< in graph order
  llvm::DenseMap<mlir::Value, mlir::Value> packedOf, paddedOf;
};

}  // namespace

std::string packSequences(GraphOp graph, const std::string &axis) {
  return Packer(graph).run(axis);
}

}  // namespace weft
