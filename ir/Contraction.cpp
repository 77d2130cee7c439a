// weft.contract: building, verification, space and flop from its einsum.
#include "ir/Constraints.h"
#include "ir/Einsum.h"
#include "kernel/Error.h"

namespace weft {
namespace {

/// Of a verified op: its spec parses.
Einsum einsumOf(ContractOp op) { return parseEinsum(op.getSpec().str()); }

bool areF32(mlir::Value a, mlir::Value b) {
  return toDType(a.getType()) == DType::f32 && toDType(b.getType()) == DType::f32;
}

/// Name of each letter: that of the first operand dimension that carries it.
std::map<char, std::string> namesOf(const Einsum &einsum, mlir::Type a, mlir::Type b) {
  std::map<char, std::string> names;
  const auto addTerm = [&](const std::string &term, mlir::Type type) {
    const std::vector<std::string> axes = axisNames(type);
    for (size_t dimension = 0; dimension < std::min(term.size(), axes.size()); ++dimension)
      names.emplace(term[dimension], axes[dimension]);
  };
  addTerm(einsum.a, a);
  addTerm(einsum.b, b);
  return names;
}

/// Offsets of packed tokens, which the one contracted axis numbers.
mlir::LogicalResult verifyOffsets(ContractOp op) {
  if (!op.getOffsets()) return mlir::success();
  const mlir::Type type = op.getOffsets().getType();
  if (toDType(type) != DType::i32 || extents(type).size() != 1 || extents(type)[0] < 2)
    return broken(op, "contract_c12")
           << "offsets of tokens are at least two i32 along one axis, not " << type;
  if (const std::string reduced = einsumOf(op).reduced(); reduced.size() != 1)
    return broken(op, "contract_c13") << "offsets are of the one axis that is contracted, but \""
                                      << op.getSpec() << "\" contracts " << reduced.size();
  return mlir::success();
}

}  // namespace

void ContractOp::build(mlir::OpBuilder &builder, mlir::OperationState &state, llvm::StringRef spec,
                       mlir::Value a, mlir::Value b, std::optional<double> scale,
                       llvm::ArrayRef<std::string> axisNames, std::optional<DType> dtype) {
  const Einsum einsum = parseEinsum(spec.str());
  std::vector<std::string> names = axisNames.vec();
  if (names.empty()) {
    const std::map<char, std::string> known = namesOf(einsum, a.getType(), b.getType());
    for (char letter : einsum.result) names.push_back(known.at(letter));
  }
  const mlir::Type element =
      dtype ? fromDType(builder.getContext(), *dtype) : mlir::getElementTypeOrSelf(a.getType());
  state.addOperands({a, b});
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.spec = builder.getStringAttr(spec);
  if (scale) properties.scale = builder.getF64FloatAttr(*scale);
  state.addTypes(makeTensor(builder.getContext(), names,
                            inferResult(einsum, extents(a.getType()), extents(b.getType())),
                            element));
}

mlir::LogicalResult ContractOp::verifyConstraints() {
  try {
    const Einsum einsum = parseEinsum(getSpec().str());
    const std::vector<int64_t> expected =
        inferResult(einsum, extents(getA().getType()), extents(getB().getType()));
    if (mlir::failed(
            checkExtents(*this, "contract_c7", "the result", getResult().getType(), expected)))
      return mlir::failure();
  } catch (const Error &error) {
    return emitOpError() << error.what();
  }
  if (getScale() && !getScale()->isFinite())
    return broken(*this, "contract_c9") << "'scale' must be finite";
  if (const std::optional<llvm::StringRef> precision = getPrecision()) {
    if (std::string_view(*precision) != nameOf(DType::tf32))
      return broken(*this, "contract_c10")
             << "precision '" << *precision << "' is unknown; it is tf32, or absent for full fp32";
    for (mlir::Value operand : {getA(), getB()})
      if (toDType(operand.getType()) != DType::f32)
        return broken(*this, "contract_c11")
               << "precision tf32 is of f32 operands, not of " << operand.getType();
  }
  for (const mlir::Type type : {getA().getType(), getB().getType(), getResult().getType()})
    if (!mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(type)))
      return broken(*this, "contract_c8") << type << " is not a tensor of floats";
  return verifyOffsets(*this);
}

IterationSpace ContractOp::iterationSpace() {
  const Einsum einsum = einsumOf(*this);
  SpaceBuilder builder(*this);
  const std::pair<int, const std::string *> terms[] = {
      {0, &einsum.a}, {1, &einsum.b}, {builder.result(0), &einsum.result}};
  for (char letter : einsum.letters()) {
    std::vector<Place> places;
    for (const auto &[tensor, term] : terms)
      if (const size_t at = term->find(letter); at != std::string::npos)
        places.push_back({tensor, static_cast<int>(at)});
    if (einsum.result.find(letter) == std::string::npos) builder.reduced(places);
    else builder.independent(places);
  }
  return builder.take();
}

/// Each operand gives its place to the gradient: "phi,bji->phbj" has dA = "phbj,bji->phi" and dB =
/// "phi,phbj->bji". Every letter of an operand is in the result or in the other operand
/// (contract_c4), so both are einsums; letters that the operand lacks (the queries of a group, for
/// its keys) are summed there.
mlir::LogicalResult ContractOp::differentiate(Derivation &derivation) {
  if (getOffsets())
    return emitOpError(
        "has no derivative where offsets say how many tokens it sums over: they are "
        "added behind differentiation (mask-unused-tokens)");
  const Einsum einsum = einsumOf(*this);
  const std::optional<double> scale =
      getScale() ? std::optional(getScale()->convertToDouble()) : std::nullopt;
  const auto product = [&](const Einsum &spec, mlir::Value a, mlir::Value b, mlir::Type like) {
    auto gradient = ContractOp::create(derivation.builder(), derivation.location(), spec.text(), a,
                                       b, scale, axisNames(like), toDType(like));
    // The gradient of a wider result may be no f32, which this precision is of.
    if (areF32(a, b)) gradient.setPrecisionAttr(getPrecisionAttr());
    return Term{&derivation, gradient.getResult(), {}};
  };
  const mlir::Value dy = derivation.upstream().value;
  derivation.give(0, [&] {
    return product({einsum.result, einsum.b, einsum.a}, dy, getB(), getA().getType());
  });
  derivation.give(1, [&] {
    return product({einsum.a, einsum.result, einsum.b}, getA(), dy, getB().getType());
  });
  return mlir::success();
}

double ContractOp::flop() {
  const std::map<char, int64_t> extentOf =
      inferExtents(einsumOf(*this), extents(getA().getType()), extents(getB().getType()));
  double product = 2;
  for (const auto &[letter, extent] : extentOf) product *= static_cast<double>(extent);
  return product;  // `scale` is a factor of the finished sum: Table A.1 counts none
}

}  // namespace weft
