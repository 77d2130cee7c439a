// The two ops between a decomposed attention and a fused one: a contraction of sub-vectors one by
// one, and the fold of (maximum, sum, output) over tiles of the contracted axis.
//
// Both have the einsum of the contraction that they come from; their first operand holds scores or
// exponentials, and one letter alone is contracted.
#include "ir/Constraints.h"
#include "ir/Einsum.h"
#include "kernel/Error.h"

namespace weft {
namespace {

/// The contracted letter of a verified einsum.
char contractedLetter(const Einsum &einsum) { return einsum.reduced().front(); }

/// Of the logarithms of sums: the axes of x without the contracted one, in f32.
mlir::RankedTensorType logSumsOf(const Einsum &einsum, mlir::Type x) {
  const auto contracted = static_cast<int64_t>(einsum.a.find(contractedLetter(einsum)));
  return withDType(withoutDimensions(x, {contracted}), DType::f32);
}

/// The einsum's result, with one element a sub-vector as the last dimension if there is a tile.
std::vector<int64_t> resultExtents(const Einsum &einsum, mlir::Type x, mlir::Type v,
                                   std::optional<int64_t> tile) {
  std::vector<int64_t> result = inferResult(einsum, extents(x), extents(v));
  if (tile) {
    const int64_t extent = extents(x)[einsum.a.find(contractedLetter(einsum))];
    result.push_back(extent / *tile + (extent % *tile != 0));
  }
  return result;
}

/// What both ask of their einsum and of the first result's extents.
mlir::LogicalResult checkEinsum(mlir::Operation *op, llvm::StringRef name, llvm::StringRef spec,
                                mlir::Type x, mlir::Type v, mlir::Type result,
                                std::optional<int64_t> tile) {
  std::vector<int64_t> expected;
  try {
    const Einsum einsum = parseEinsum(spec.str());
    if (einsum.reduced().size() != 1)
      return broken(op, (name + "_c1").str())
             << "'" << spec << "' contracts " << einsum.reduced().size()
             << " axes; it has to be one, that of the softmax";
    expected = resultExtents(einsum, x, v, tile);
  } catch (const Error &error) {
    return op->emitOpError() << error.what();
  }
  return checkExtents(op, (name + "_c2").str(), "the result", result, expected);
}

/// The axes of an einsum; `further` tensors have those of x without the contracted one.
IterationSpace einsumSpace(mlir::Operation *op, const Einsum &einsum, int further, bool hasTile) {
  SpaceBuilder builder(op);
  const std::string statistics = [&] {
    std::string letters = einsum.a;
    std::erase(letters, contractedLetter(einsum));
    return letters;
  }();
  for (char letter : einsum.letters()) {
    std::vector<Place> places;
    int tensor = 0;
    const auto add = [&](const std::string &term) {
      if (const size_t at = term.find(letter); at != std::string::npos)
        places.push_back({tensor, static_cast<int>(at)});
      ++tensor;
    };
    for (const std::string *term : {&einsum.a, &einsum.b, &einsum.result}) add(*term);
    for (int statistic = 0; statistic < further; ++statistic) add(statistics);
    if (einsum.result.find(letter) == std::string::npos) builder.reduced(places);
    else builder.independent(places);
  }
  if (hasTile) builder.independent({{2, static_cast<int>(einsum.result.size())}});
  return builder.take();
}

template <typename Op>
std::optional<Dropout> dropoutIn(Op op) {
  if (!op.getP() || !op.getStream()) return std::nullopt;
  return Dropout{.p = op.getP()->convertToDouble(),
                 .stream = static_cast<int64_t>(*op.getStream())};
}

template <typename Properties>
void setDropout(mlir::OpBuilder &builder, Properties &properties,
                const std::optional<Dropout> &dropout) {
  if (!dropout) return;
  properties.p = builder.getF64FloatAttr(dropout->p);
  properties.stream = builder.getI64IntegerAttr(dropout->stream);
}

/// `p` and `stream` are there both, or neither; they are as dropout has them.
template <typename Op>
mlir::LogicalResult checkDropping(Op op, llvm::StringRef id) {
  if (op.getP().has_value() != op.getStream().has_value())
    return broken(op, id) << "'" << (op.getP() ? "p" : "stream") << "' without '"
                          << (op.getP() ? "stream" : "p") << "'; dropout takes both";
  const std::optional<Dropout> dropout = dropoutIn(op);
  return dropout ? checkDropout(op, dropout->p, dropout->stream) : mlir::success();
}

/// `precision` is as contract has it, of values in f32: exponentials are f32 in every kernel.
template <typename Op>
mlir::LogicalResult checkPrecision(Op op, llvm::StringRef id) {
  const std::optional<llvm::StringRef> precision = op.getPrecision();
  if (!precision) return mlir::success();
  if (std::string_view(*precision) != nameOf(DType::tf32))
    return broken(op, id) << "precision '" << *precision
                          << "' is unknown; it is tf32, or absent for full fp32";
  if (toDType(op.getV().getType()) != DType::f32)
    return broken(op, id) << "precision tf32 is of f32 values, not of " << op.getV().getType();
  return mlir::success();
}

/// Of one multiplication and one addition for every point of the space.
double contractionFlop(const Einsum &einsum, mlir::Type x, mlir::Type v) {
  double product = 2;
  for (const auto &[letter, extent] : inferExtents(einsum, extents(x), extents(v)))
    product *= static_cast<double>(extent);
  return product;
}

}  // namespace

void SubvectorContractOp::build(mlir::OpBuilder &builder, mlir::OperationState &state,
                                llvm::StringRef spec, mlir::Value x, mlir::Value v, int64_t tile,
                                std::optional<Dropout> dropout) {
  const Einsum einsum = parseEinsum(spec.str());
  std::vector<std::string> names;
  const auto nameOfLetter = [&](char letter) {
    const size_t inX = einsum.a.find(letter);
    return inX != std::string::npos ? axisNames(x.getType())[inX]
                                    : axisNames(v.getType())[einsum.b.find(letter)];
  };
  for (char letter : einsum.result) names.push_back(nameOfLetter(letter));
  names.push_back("n");
  state.addOperands({x, v});
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.spec = builder.getStringAttr(spec);
  properties.tile = builder.getI64IntegerAttr(tile);
  setDropout(builder, properties, dropout);
  state.addTypes(makeTensor(builder.getContext(), names,
                            resultExtents(einsum, x.getType(), v.getType(), tile),
                            fromDType(builder.getContext(), DType::f32)));
}
mlir::LogicalResult SubvectorContractOp::verifyConstraints() {
  const auto tile = static_cast<int64_t>(getTile());
  if (mlir::failed(checkRange(*this, "subvector_contract_c3", "tile", tile, 1)))
    return mlir::failure();
  if (mlir::failed(checkEinsum(*this, "subvector_contract", getSpec(), getX().getType(),
                               getV().getType(), getPartials().getType(), tile)))
    return mlir::failure();
  return allOf(checkElementType(*this, "subvector_contract_c4", "the result",
                                getPartials().getType(), fromDType(getContext(), DType::f32)),
               checkFloats(*this, "subvector_contract_c5"),
               checkDropping(*this, "subvector_contract_c6"),
               checkPrecision(*this, "subvector_contract_c7"));
}
std::optional<Dropout> SubvectorContractOp::dropout() { return dropoutIn(*this); }
IterationSpace SubvectorContractOp::iterationSpace() {
  return einsumSpace(*this, parseEinsum(getSpec().str()), 0, true);
}
double SubvectorContractOp::flop() {
  return contractionFlop(parseEinsum(getSpec().str()), getX().getType(), getV().getType());
}

void OnlineSoftmaxContractOp::build(mlir::OpBuilder &builder, mlir::OperationState &state,
                                    llvm::StringRef spec, mlir::Value x, mlir::Value v,
                                    mlir::Type result, bool withLogSums,
                                    std::optional<Dropout> dropout) {
  const Einsum einsum = parseEinsum(spec.str());
  state.addOperands({x, v});
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.spec = builder.getStringAttr(spec);
  setDropout(builder, properties, dropout);
  state.addTypes(result);
  if (withLogSums) state.addTypes(logSumsOf(einsum, x.getType()));
}
mlir::LogicalResult OnlineSoftmaxContractOp::verifyConstraints() {
  const mlir::Type x = getX().getType();
  if (mlir::failed(checkEinsum(*this, "online_softmax_contract", getSpec(), x, getV().getType(),
                               getResult().getType(), std::nullopt)))
    return mlir::failure();
  if (getLogSums().size() > 1)
    return broken(*this, "online_softmax_contract_c3")
           << "one result, or two with the logarithms of sums";
  const mlir::RankedTensorType statistics = logSumsOf(parseEinsum(getSpec().str()), x);
  for (mlir::Value logSums : getLogSums())
    if (mlir::failed(checkExtents(*this, "online_softmax_contract_c4", "the logarithms of sums",
                                  logSums.getType(), extents(statistics))) ||
        mlir::failed(checkElementType(*this, "online_softmax_contract_c4", "the logarithms of sums",
                                      logSums.getType(), statistics)))
      return mlir::failure();
  return allOf(checkFloats(*this, "online_softmax_contract_c5"),
               checkDropping(*this, "online_softmax_contract_c6"),
               checkPrecision(*this, "online_softmax_contract_c7"));
}
std::optional<Dropout> OnlineSoftmaxContractOp::dropout() { return dropoutIn(*this); }
IterationSpace OnlineSoftmaxContractOp::iterationSpace() {
  return einsumSpace(*this, parseEinsum(getSpec().str()), static_cast<int>(getLogSums().size()),
                     false);
}
/// The softmax counts 4 an element, as it does alone.
double OnlineSoftmaxContractOp::flop() {
  return 4 * static_cast<double>(elementsOf(getX().getType())) +
         contractionFlop(parseEinsum(getSpec().str()), getX().getType(), getV().getType());
}

}  // namespace weft
