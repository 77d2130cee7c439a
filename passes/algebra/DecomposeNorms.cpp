// Norms as reductions of their rows and an element-wise application, so that no kernel needs a
// whole row of x at once: the reductions may be fused into an epilogue, and the application into a
// prologue of the next contraction. Accumulators and squares are fp32 whatever the type of x: the
// square of an f16 beyond 255 overflows f16. Known downside: as separate kernels, sums and
// application read x twice.
//
// A row's factor is one number, so a contraction that sums along the row may apply it to its result
// instead (deferred): only the contractions read x. Known downside: a result that is stored before
// its factor is applied may be as large as the unnormalized x makes it.
#include "ir/LayerMarks.h"
#include "passes/Describe.h"
#include "passes/Passes.h"
#include "passes/Rewrites.h"

#include "ir/Einsum.h"

#include <fmt/format.h>

namespace weft {
namespace {

/// The steps of one norm, in front of it.
class Decomposition {
public:
  explicit Decomposition(mlir::Operation *norm, int64_t axis)
      : norm(norm),
        axis(axis),
        builder(norm),
        name(writtenName(norm->getResult(0))),
        x(norm->getOperand(0)) {
    for (int64_t dimension = 0; dimension < rank(); ++dimension)
      if (dimension != axis) rows.push_back(dimension);
  }

  mlir::Value sum() {
    return ReduceOp::create(builder, named("sum"), "sum", x, std::vector{axis}, DType::f32);
  }

  mlir::Value squares() {
    mlir::Value wide = x;
    if (*toDType(x.getType()) != DType::f32)
      wide = CastOp::create(builder, named("wide"), x, DType::f32);
    const mlir::Value square = MulOp::create(builder, named("square"), wide, wide);
    return ReduceOp::create(builder, named("squares"), "sum", square, std::vector{axis},
                            DType::f32);
  }

  mlir::Value normalized(mlir::Value sum, mlir::Value squares, double epsilon) {
    if (!sum)
      return RmsNormalizeOp::create(builder, named("normal"), applied(), squares, rows, count(),
                                    epsilon);
    return NormalizeOp::create(builder, named("normal"), applied(), sum, squares, rows, count(),
                               epsilon);
  }

  /// y, in the norm's type, by gamma and perhaps beta.
  void finish(mlir::Value normal, mlir::Value gamma, mlir::Value beta) {
    const mlir::Type type = norm->getResult(0).getType();
    const bool isCast = *toDType(type) != *toDType(normal.getType());
    const auto last = [&](bool isLast, llvm::StringRef otherwise) {
      return isLast ? resultLocation() : named(otherwise);
    };
    mlir::Value y =
        MulOp::create(builder, last(!beta && !isCast, "scaled"), normal, gamma, std::vector{axis});
    if (beta) y = AddOp::create(builder, last(!isCast, "shifted"), y, beta, std::vector{axis});
    if (isCast) y = CastOp::create(builder, resultLocation(), y, *toDType(type));
    y.setType(type);  // its names of axes
    norm->getResult(0).replaceAllUsesWith(y);
    norm->erase();
  }

  /// The readers of y read x * gamma, and their results are multiplied by the factors of their
  /// rows.
  void defer(mlir::Value gamma, mlir::Value squares, double epsilon) {
    mlir::Value gained = MulOp::create(builder, named("gained"), x, gamma, std::vector{axis});
    const mlir::Value y = norm->getResult(0);
    if (*toDType(y.getType()) != *toDType(x.getType()))
      gained = CastOp::create(builder, named("narrow"), gained, *toDType(y.getType()));
    for (mlir::Operation *reader : llvm::make_early_inc_range(y.getUsers())) {
      auto contraction = mlir::cast<ContractOp>(reader);
      const Einsum einsum = parseEinsum(contraction.getSpec().str());
      const std::string &letters = contraction.getA() == y ? einsum.a : einsum.b;
      std::vector<int64_t> along;
      for (const int64_t row : rows)
        along.push_back(static_cast<int64_t>(einsum.result.find(letters[size_t(row)])));
      reader->replaceUsesOfWith(y, gained);
      mlir::Value raw = contraction.getResult();
      builder.setInsertionPointAfter(reader);
      auto scaled =
          RmsNormalizeOp::create(builder, reader->getLoc(), raw, squares, along, count(), epsilon);
      raw.replaceAllUsesExcept(scaled.getResult(), scaled);
      if (const std::string own = writtenName(scaled.getResult()); !own.empty())
        reader->setLoc(located(own + "_raw"));
    }
    norm->erase();
  }

  /// What ops are called that are named after a step.
  std::vector<std::string> names() && { return std::move(made); }

private:
  int64_t rank() const { return mlir::cast<mlir::RankedTensorType>(x.getType()).getRank(); }
  int64_t count() const {
    return mlir::cast<mlir::RankedTensorType>(x.getType()).getDimSize(static_cast<unsigned>(axis));
  }

  /// A step on the way would be rounded to 8 bits where nothing is fused.
  mlir::Value applied() {
    return isFloat8(*toDType(x.getType()))
               ? CastOp::create(builder, named("applied"), x, DType::f32).getResult()
               : x;
  }

  mlir::Location located(const std::string &text) const {
    return mlir::NameLoc::get(mlir::StringAttr::get(norm->getContext(), text), norm->getLoc());
  }
  mlir::Location named(llvm::StringRef step) {
    made.push_back(name.empty() ? step.str() : name + "_" + step.str());
    return located(made.back());
  }
  mlir::Location resultLocation() const { return name.empty() ? norm->getLoc() : located(name); }

  mlir::Operation *norm;
  int64_t axis;
  std::vector<std::string> made;
  BuilderOfLayer builder;
  std::string name;
  mlir::Value x;
  std::vector<int64_t> rows;  ///< dimensions of x that are not normalized
};

/// Why what reads an RMS norm cannot take its rows' factors behind it; empty if it can.
std::string deferringRejection(mlir::Operation *op) {
  auto norm = mlir::dyn_cast<RmsNormOp>(op);
  if (!norm) return "a layer norm takes the mean away, too";
  const mlir::Value y = norm.getY();
  if (!norm.getX().getDefiningOp()) return "nothing computes its operand";
  if (isFloat8(*toDType(norm.getX().getType())) || isFloat8(*toDType(y.getType())))
    return "8 bits are too few without the factor";
  if (y.use_empty()) return "nobody reads it";
  for (mlir::Operation *reader : y.getUsers()) {
    auto contraction = mlir::dyn_cast<ContractOp>(reader);
    if (!contraction || contraction.getA() == contraction.getB())
      return "it is read by no contraction alone";
    if (isFloat8(*toDType(contraction.getType()))) return "8 bits are too few without the factor";
    const Einsum einsum = parseEinsum(contraction.getSpec().str());
    const std::string &letters = contraction.getA() == y ? einsum.a : einsum.b;
    for (size_t dimension = 0; dimension < letters.size(); ++dimension)
      if ((einsum.result.find(letters[dimension]) == std::string::npos) !=
          (dimension == size_t(norm.getAxis())))
        return fmt::format("'{}' sums along other axes than its rows",
                           writtenName(contraction.getResult()));
  }
  return "";
}

/// Both give the names of the steps.
std::vector<std::string> defer(mlir::Operation *op) {
  auto norm = mlir::cast<RmsNormOp>(op);
  Decomposition steps(op, static_cast<int64_t>(norm.getAxis()));
  const mlir::Value squares = steps.squares();
  steps.defer(norm.getGamma(), squares, norm.getEpsilon().convertToDouble());
  return std::move(steps).names();
}

std::vector<std::string> decompose(mlir::Operation *op) {
  if (auto norm = mlir::dyn_cast<LayerNormOp>(op)) {
    Decomposition steps(op, static_cast<int64_t>(norm.getAxis()));
    const mlir::Value sum = steps.sum(), squares = steps.squares();
    steps.finish(steps.normalized(sum, squares, norm.getEpsilon().convertToDouble()),
                 norm.getGamma(), norm.getBeta());
    return std::move(steps).names();
  }
  auto norm = mlir::cast<RmsNormOp>(op);
  Decomposition steps(op, static_cast<int64_t>(norm.getAxis()));
  const mlir::Value squares = steps.squares();
  steps.finish(steps.normalized({}, squares, norm.getEpsilon().convertToDouble()), norm.getGamma(),
               {});
  return std::move(steps).names();
}

/// The first statistic that is read; null if none is.
mlir::Value readStatistic(mlir::Operation *norm) {
  for (mlir::Value statistic : llvm::drop_begin(norm->getResults()))
    if (!statistic.use_empty()) return statistic;
  return {};
}

struct NormRejection {
  const ReasonCode *code = nullptr;  ///< none: it is taken
  std::string detail = {};
};

NormRejection rejectionOf(mlir::Operation *norm, NormSteps steps) {
  if (const mlir::Value statistic = readStatistic(norm))
    return {&reasons::normStatisticsAreRead, writtenName(statistic)};
  if (steps == NormSteps::decomposed) return {};
  std::string detail = deferringRejection(norm);
  return detail.empty() ? NormRejection{}
                        : NormRejection{&reasons::normFactorStays, std::move(detail)};
}

}  // namespace

bool isNorm(mlir::Operation *op) { return mlir::isa<LayerNormOp, RmsNormOp>(op); }

std::string normRejection(mlir::Operation *norm, NormSteps steps) {
  const NormRejection rejection = rejectionOf(norm, steps);
  if (!rejection.code) return "";
  return fmt::format("{} {}{}", rejection.code->code, rejection.code->reason,
                     rejection.detail.empty() ? "" : fmt::format(" ({})", rejection.detail));
}

bool hasDecomposableNorm(GraphOp graph, NormSteps steps, NormFilter isMeant) {
  return llvm::any_of(graph.getBody().front(), [&](mlir::Operation &op) {
    return isNorm(&op) && isMeant(&op) && !rejectionOf(&op, steps).code;
  });
}

std::vector<FusionRecord> decomposeNorms(GraphOp graph, NormSteps steps, NormFilter isMeant) {
  std::vector<FusionRecord> records;
  std::vector<std::pair<mlir::Operation *, size_t>> norms;  // and their records
  for (const auto &[number, op] : llvm::enumerate(numberedOps(graph))) {
    if (!isNorm(op) || !isMeant(op)) continue;
    FusionRecord record{.pass = steps == NormSteps::deferred ? "defer-norms" : "decompose-norms",
                        .patterns = {},
                        .ops = {static_cast<int>(number)},
                        .opNames = {writtenName(op->getResult(0))},
                        .accepted = true,
                        .code = {},
                        .reason = {},
                        .detail = {},
                        .savedBytes = 0};
    if (const NormRejection rejection = rejectionOf(op, steps); rejection.code) {
      record.accepted = false;
      record.code = rejection.code->code;
      record.reason = rejection.code->reason;
      record.detail = rejection.detail;
    } else {
      norms.emplace_back(op, records.size());
    }
    records.push_back(std::move(record));
  }
  for (const auto &[norm, record] : norms)
    records[record].steps = steps == NormSteps::deferred ? defer(norm) : decompose(norm);
  return records;
}

}  // namespace weft
