// Single elements of a kernel's values in fp64, straight from SPEC.md's definitions: an oracle for
// tensors too large to be interpreted whole, and independent of the interpreter. No MLIR.
//
// With each value comes a bound of how far a kernel that computes in fp32 may be from it: errors of
// operands are propagated, every operation adds its own rounding, and a sum of n terms of magnitude
// sum|x| adds (8 + 2 sqrt(n)) 2^-24 sum|x| (the probabilistic bound of Higham and Mary, "A new
// approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 2019, with lambda = 2).
// Storing the result adds half a unit in its last place: see tolerance().
#pragma once

#include "kernel/CoordinateExpressions.h"
#include "kernel/Kernel.h"
#include "kernel/UnusedTokens.h"
#include "kernel/reference/DropoutBits.h"
#include "kernel/reference/ScalarReferences.h"

#include <array>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace weft {
class BlockTable;
}

namespace weft::reference {

constexpr double minusInfinity = -std::numeric_limits<double>::infinity();

/// A value in exact arithmetic, and the error that fp32 may make.
struct Point {
  double value = 0, error = 0;
  bool isSpecified = true;  ///< false: any bits agree, as behind packed tokens that nothing reads
};

/// Coordinates of one element, in logical order; no allocation.
class Coordinates {
public:
  static constexpr size_t maximumRank = 12;
  Coordinates() = default;
  explicit Coordinates(size_t rank) : count(rank) {}
  explicit Coordinates(std::span<const int64_t> from) : count(from.size()) {
    for (size_t d = 0; d < count; ++d) values[d] = from[d];
  }
  size_t size() const { return count; }
  int64_t &operator[](size_t d) { return values[d]; }
  int64_t operator[](size_t d) const { return values[d]; }
  operator std::span<const int64_t>() const { return {values.data(), count}; }
  /// Without one dimension.
  Coordinates without(size_t dimension) const;
  /// With one more dimension before `dimension`.
  Coordinates with(size_t dimension, int64_t value) const;

private:
  std::array<int64_t, maximumRank> values{};
  size_t count = 0;
};

/// The element of an input at logical coordinates.
using ElementReader = std::function<double(std::span<const int64_t> coordinates)>;

/// Elements of one value, by their place in logical order, each evaluated once. Memory comes in
/// pages as elements are asked for, since a check of a large kernel asks for few.
class KeptElements {
public:
  explicit KeptElements(std::span<const int64_t> extents);
  /// Whether elements are kept: not those of a value of millions.
  bool isKept() const { return !pages.empty(); }
  size_t placeOf(const Coordinates &at) const {
    size_t place = 0;
    for (size_t d = 0; d < at.size(); ++d) place += size_t(at[d] * strides[d]);
    return place;
  }
  int64_t stride(size_t dimension) const { return strides[dimension]; }
  /// An element that was asked for before; else nothing.
  const Point *find(size_t place) const {
    const size_t page = place / pageSize;
    if (page >= pages.size() || !pages[page]) return nullptr;
    const Point &element = (*pages[page])[place % pageSize];
    return element.error < 0 ? nullptr : &element;
  }
  const Point &keep(size_t place, const Point &element) {
    std::unique_ptr<Page> &page = pages[place / pageSize];
    if (!page) page = emptyPage();
    return (*page)[place % pageSize] = element;
  }

private:
  static constexpr size_t pageSize = 256;
  using Page = std::array<Point, pageSize>;
  /// Of elements with a negative error, which are not known.
  static std::unique_ptr<Page> emptyPage();
  std::vector<int64_t> strides;  ///< of the dimensions, in elements
  std::vector<std::unique_ptr<Page>> pages;
};

/// Evaluates any element of any value. Statistics of rows, factors and results of contractions are
/// kept, so that elements that share them are cheap; not thread-safe: one evaluator a thread.
class PointEvaluator {
public:
  /// `inputs` in the order of Kernel::inputs; the stream of `source` is ignored: each op has a
  /// stream. Throws Error(unsupported) naming an op that has no evaluation here.
  PointEvaluator(const Kernel &kernel, std::vector<ElementReader> inputs,
                 const DropoutSource &source);

  /// Element of Kernel::outputs[output]; NaN for a gather whose index is outside the table.
  Point output(size_t output, std::span<const int64_t> coordinates);

private:
  using Handler = Point (PointEvaluator::*)(const BodyOp &op, size_t result, const Coordinates &at);
  /// Two statistics of one row: (maximum, sum of exponentials), (mean, rstd).
  struct Row {
    Point first, second;
  };
  /// The letters of an einsum: one per dimension.
  struct Terms {
    std::array<std::string, 2> operands;
    std::string result;
  };
  /// How a contraction walks its operands, the same for every element.
  struct Contraction {
    Terms terms;
    /// A letter that the result lacks, by the operands' dimensions, whose strides are of their
    /// kept elements.
    struct Reduced {
      std::array<size_t, 2> dimensions;
      std::array<int64_t, 2> strides;
      int64_t extent;
    };
    std::vector<Reduced> reduced;
    int64_t count = 1;  ///< products of an element
    /// Operands that a kernel may leave unrounded: it may scale the accumulators by an operand's
    /// factors instead of the operand.
    std::array<bool, 2> mayStay = {};
  };
  /// What the attributes of a mask say, read once for all elements.
  struct Mask {
    MaskShape::Kind kind = {};
    size_t key = 0;
    std::optional<size_t> query = {};
    int64_t keys = 0, queries = 0;      ///< extents of the whole
    std::vector<int64_t> origins = {};  ///< by dimension, where the chunk starts in the whole
    double fill = 0;
  };

  struct Definition {
    const BodyOp *op = nullptr;
    size_t result = 0;
    Handler handler = nullptr;
    ScalarReference scalar = nullptr;
    std::vector<std::vector<int>>
        operandDimensions;  ///< maps: per operand and dimension, the dimension of the result
    bool isShort = false;   ///< kernels may compute it in its short form (kernel/ShortFunction.h)
    std::optional<Contraction> contraction = {};  ///< once an element was asked for
    std::optional<Mask> mask = {};                ///< likewise
  };

  static Handler handlerOf(const Kernel &kernel, const BodyOp &op);
  std::vector<int> dimensionsAlong(const BodyOp &op, ValueId operand) const;
  Point evaluate(ValueId value, const Coordinates &at);
  Point operand(const BodyOp &op, size_t n, const Coordinates &at) {
    return evaluate(op.operands[n], at);
  }
  int64_t extent(ValueId value, size_t dimension) const {
    return kernel.axes[kernel.values[value].axes[dimension]].extent;
  }
  size_t rank(ValueId value) const { return kernel.values[value].axes.size(); }
  const Definition &definition(const BodyOp &op) const { return definitions[op.results[0]]; }
  Coordinates mapped(const BodyOp &op, size_t operand, const Coordinates &at) const;
  const Mask &maskOf(const BodyOp &op);

  // Elementwise.cpp
  Point scalar(const BodyOp &op, size_t result, const Coordinates &at);
  Point dropout(const BodyOp &op, size_t result, const Coordinates &at);
  /// Whether an op that draws masks keeps the element of its first operand at these coordinates.
  bool keeps(const BodyOp &op, const Dropout &dropout, const Coordinates &at) const;
  Point mask(const BodyOp &op, size_t result, const Coordinates &at);
  Point rotary(const BodyOp &op, size_t result, const Coordinates &at);

  /// Of a sequence, of an op that has starts as its second operand; 0 of others.
  int64_t startOf(const BodyOp &op, const Coordinates &at);

  // ScoreBiases.cpp
  /// Of a key from the query, by the op's dimensions of these names, if the last query stands at
  /// the last key.
  int64_t distance(const BodyOp &op, const Coordinates &at) const;
  Point alibi(const BodyOp &op, size_t result, const Coordinates &at);
  Point relativeBias(const BodyOp &op, size_t result, const Coordinates &at);
  Point expandBuckets(const BodyOp &op, size_t result, const Coordinates &at);
  Point tileBounds(const BodyOp &op, size_t result, const Coordinates &at);

  // Normalization.cpp
  /// The result of `compute` for this op and key, which is kept.
  template <typename Compute>
  const Row &row(const BodyOp &op, const Coordinates &key, Compute compute);
  /// Maximum and sum of exponentials of elements [begin, end) along `dimension` at a place;
  /// `weight` is the operand that multiplies the exponentials, -1 for none.
  Row exponentials(const BodyOp &op, Coordinates at, size_t dimension, int64_t begin, int64_t end,
                   int weight);
  Point exponential(const Point &x, const Point &maximum) const;
  Point softmaxFromLogSums(const BodyOp &op, size_t result, const Coordinates &at);
  Point softmax(const BodyOp &op, size_t result, const Coordinates &at);
  Point layerNorm(const BodyOp &op, size_t result, const Coordinates &at);
  Point rmsNorm(const BodyOp &op, size_t result, const Coordinates &at);
  Point reduce(const BodyOp &op, size_t result, const Coordinates &at);
  Point localSoftmax(const BodyOp &op, size_t result, const Coordinates &at);
  Point reduceSubvectors(const BodyOp &op, size_t result, const Coordinates &at);
  Point globalScaling(const BodyOp &op, size_t result, const Coordinates &at);

  // CrossEntropy.cpp
  /// Of a row of exponentials: maximum + log(sum).
  static Point logSum(const Row &all);
  Point crossEntropy(const BodyOp &op, size_t result, const Coordinates &at);
  Point crossEntropyDx(const BodyOp &op, size_t result, const Coordinates &at);

  // NormalizationGradients.cpp
  Point softmaxDx(const BodyOp &op, size_t result, const Coordinates &at);
  Point normalizedValue(const BodyOp &op, const Coordinates &at, size_t axis, bool hasMean);
  Point normDx(const BodyOp &op, size_t result, const Coordinates &at);
  Point normDw(const BodyOp &op, size_t result, const Coordinates &at);

  // Contraction.cpp
  Terms termsOf(const BodyOp &op, size_t resultRank) const;
  /// Coordinates of an operand (side 0 or 1) at an element of the result; 0 where it is summed.
  static Coordinates place(const Terms &terms, size_t side, const Coordinates &at);
  const Contraction &contractionOf(const BodyOp &op, size_t resultRank);
  Point contract(const BodyOp &op, size_t result, const Coordinates &at);
  int64_t lastOf(const BodyOp &op, size_t n);
  Point sumOfProducts(const BodyOp &op, const Coordinates &at);
  Point factor(const BodyOp &op, size_t n, const Coordinates &at) {
    return factor(op, n, at, factors[size_t(op.operands[n])].placeOf(at));
  }
  /// The same at a place that the caller knows.
  Point factor(const BodyOp &op, size_t n, const Coordinates &at, size_t place) {
    const Point *const kept = factors[size_t(op.operands[n])].find(place);
    return kept ? *kept : newFactor(op, n, at, place);
  }
  Point newFactor(const BodyOp &op, size_t n, const Coordinates &at, size_t place);
  Point roundedFactor(const BodyOp &op, size_t n, const Coordinates &at);

  // OnlineSoftmax.cpp
  Point subvectorContract(const BodyOp &op, size_t result, const Coordinates &at);
  Point onlineSoftmaxContract(const BodyOp &op, size_t result, const Coordinates &at);

  // Movement.cpp
  Point identity(const BodyOp &op, size_t result, const Coordinates &at);
  Point transpose(const BodyOp &op, size_t result, const Coordinates &at);
  Point slice(const BodyOp &op, size_t result, const Coordinates &at);
  Point concat(const BodyOp &op, size_t result, const Coordinates &at);
  Point splitAxis(const BodyOp &op, size_t result, const Coordinates &at);
  Point mergeAxes(const BodyOp &op, size_t result, const Coordinates &at);
  Point gather(const BodyOp &op, size_t result, const Coordinates &at);
  Point pad(const BodyOp &op, size_t result, const Coordinates &at);
  Point broadcast(const BodyOp &op, size_t result, const Coordinates &at);
  Point constant(const BodyOp &op, size_t result, const Coordinates &at);
  Point scatterAdd(const BodyOp &op, size_t result, const Coordinates &at);

  // Ragged.cpp
  int64_t offsetOf(const BodyOp &op, int64_t sequence);
  Point offsets(const BodyOp &op, size_t result, const Coordinates &at);
  Point lengths(const BodyOp &op, size_t result, const Coordinates &at);
  Point pack(const BodyOp &op, size_t result, const Coordinates &at);
  Point unpack(const BodyOp &op, size_t result, const Coordinates &at);
  Point append(const BodyOp &op, size_t result, const Coordinates &at);
  Point appendToPages(const BodyOp &op, const Coordinates &at);
  Point gatherPages(const BodyOp &op, size_t result, const Coordinates &at);

  Kernel kernel;  ///< a copy: definitions point into it
  std::vector<ElementReader> readers;
  DropoutSource source;
  std::vector<int> inputOf;                              ///< per value: position in readers, or -1
  std::vector<Definition> definitions;                   ///< per value
  std::vector<std::optional<UnusedTokens>> unspecified;  ///< of each output
  std::map<std::pair<const BodyOp *, std::vector<int64_t>>, Row> rows;
  /// The exponentials of one row of an online softmax; the last one that was asked for.
  struct ExponentialRow {
    std::vector<int64_t> place;
    std::vector<Point> elements;
  };
  std::map<const BodyOp *, ExponentialRow> exponentialRows;
  std::map<const BodyOp *, const BlockTable *> blockTables;  ///< of masks by a pattern
  std::vector<KeptElements> factors;  ///< per value: as an operand of contractions
  std::vector<KeptElements> sums;     ///< per value: as the result of a contraction
};

template <typename Compute>
const PointEvaluator::Row &PointEvaluator::row(const BodyOp &op, const Coordinates &key,
                                               Compute compute) {
  const std::span<const int64_t> span = key;
  auto place = std::make_pair(&op, std::vector<int64_t>(span.begin(), span.end()));
  const auto found = rows.find(place);
  if (found != rows.end()) return found->second;
  return rows.emplace(std::move(place), compute()).first->second;
}

/// Unit roundoff of fp32.
inline constexpr double roundoff = 0x1p-24;
/// Error of a sum of n terms in units of the sum of their magnitudes.
double sumError(int64_t n);
/// Error of a sum of n products of 8-bit floats with this total, sum of magnitudes and sum of
/// squares, as sm_90's tensor cores add it up: 32 products and the sum before them are aligned to
/// the largest of these 33, and what is below 13 bits of its fraction is cut off (seen on this
/// hardware by DeepSeek-AI, "DeepSeek-V3 technical report", section 3.3.2, and Zhang et al.,
/// "SageAttention2"). Running sums are taken to stay below |total| + 2 sqrt(squares), as those of a
/// random walk do. Cutting moves everything towards zero: a running sum at every step, hence n /
/// 32; products either way, hence 2 sqrt(n) as above, and where most have one sign, that way, hence
/// n |total| / magnitude (small products then vanish in a large sum, up to all of them).
double float8SumError(int64_t n, double total, double magnitude, double squares);
/// Error of a sum of n products of f32 numbers that are read as tf32, with this total, sum of
/// magnitudes and sum of squares. Every operand loses up to 2^-10 of itself where its lower bits
/// are cut off and half of that where it is rounded to nearest, so a product loses less than 2^-9.
/// Cutting moves all products towards zero, hence |total|; what differs from one to the next adds
/// up as in float8SumError, hence 2 sqrt(squares), and no sum is further off than all products in
/// one direction.
double tf32SumError(double total, double magnitude, double squares);
/// What rounding to `type` may take from an exponential: against a running maximum, which is no
/// larger than the last one, it is rounded as a number of [exponential, 1].
double roundedExponential(DType type, double exponential);
/// Error of a sum of products of rounded exponentials with values, from the products of what each
/// may lose with its value: their total, sum of magnitudes and sum of squares. Equal exponentials
/// lose the same, hence |total|; what differs from one to the next adds up as a random walk does,
/// hence 3 sqrt(squares), and no sum is further off than all products in one direction.
double roundedExponentialSumError(double total, double magnitude, double squares);
/// How far a stored element of a type may be from `point`: its error, and the rounding of the type.
double tolerance(const Point &point, DType type);
/// Whether a stored element agrees: within a finite tolerance, or the same infinity. NaN never
/// does, but where nothing is specified.
bool agrees(double stored, const Point &point, DType type);

}  // namespace weft::reference
