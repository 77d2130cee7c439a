#include "runtime/verify/KernelInputs.h"

#include "kernel/Append.h"
#include "kernel/AttentionBackwardRegion.h"
#include "kernel/Attributes.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/MaskKind.h"
#include "kernel/Pages.h"
#include "kernel/PositiveValues.h"
#include "kernel/ScoreBias.h"
#include "kernel/TileBounds.h"
#include "kernel/UnusedTokens.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace weft::runtime {
namespace {

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

/// Element n of offsets of sequences of at most so many tokens: steps of 1 to that, and to half of
/// it in the mean.
int64_t offsetOf(uint64_t key, int64_t most, int64_t n) {
  const int64_t half = std::max<int64_t>(1, (most + 1) / 2);
  return n * half + int64_t(mixed(key + uint64_t(n + 1) * 0x9E3779B97F4A7C15) % uint64_t(half));
}

/// Mean 0, deviation 1: the sum of four uniform 16-bit numbers.
double bellShaped(uint64_t bits) {
  const double sum =
      double((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
  return (sum - 131070) / 65536 * std::sqrt(3.0);
}

/// The logarithm of a row's sum of exponentials of scores that are bell-shaped around zero: of
/// deviation 1, or of products of such numbers in the backward pass of an attention.
double meanLogSum(const Kernel &kernel, const BodyOp &op) {
  double keys = 1, variance = 1;
  const std::vector<AxisId> &rows = kernel.values[size_t(op.operands[1])].axes;
  for (const AxisId axis : kernel.values[size_t(op.operands[0])].axes)
    if (std::ranges::find(rows, axis) == rows.end())
      keys *= double(kernel.axes[size_t(axis)].extent);
  if (const auto region = attentionBackwardRegion(kernel)) {
    variance = region->scoresScale * region->scoresScale;
    for (const AxisId axis : region->headDim) variance *= double(kernel.axes[size_t(axis)].extent);
  }
  return std::log(keys) + variance / 2;
}

/// What ALiBi adds to that logarithm, row by row, where queries see later keys, too: exponentials
/// of a bias that nothing takes off again leave the range of f16. Empty without such a bias.
std::vector<double> biasLogSums(const Kernel &kernel, const BodyOp &op) {
  const auto isCausal = [](const BodyOp &other) {
    return maskKind(other) == MaskShape::Kind::causal;
  };
  const auto alibi = std::ranges::find(kernel.body, OpKind::alibi, &BodyOp::kind);
  if (alibi == kernel.body.end() || std::ranges::any_of(kernel.body, isCausal)) return {};
  const auto dimension = [&](AttributeName<int64_t> name) {
    return size_t(attributeOf(*alibi, name));
  };
  const std::vector<AxisId> &scores = kernel.values[size_t(alibi->results[0])].axes,
                            &rows = kernel.values[size_t(op.operands[1])].axes;
  const auto &heads = attributeOf(*alibi, attribute::heads);
  const double steep = attributeOr(*alibi, attribute::steepness, 8);
  const auto extentOf = [&](AxisId axis) { return kernel.axes[size_t(axis)].extent; };
  const int64_t keys = extentOf(scores[dimension(attribute::key)]),
                queries = extentOf(scores[dimension(attribute::query)]);
  int64_t headCount = 1;
  for (const int64_t at : heads) headCount *= extentOf(scores[size_t(at)]);
  std::vector<double> added(size_t(kernel.elements(op.operands[1])));
  for (size_t n = 0; n < added.size(); ++n) {
    std::map<AxisId, int64_t> place;  // along each axis of a row, the last one fastest
    auto rest = int64_t(n);
    for (size_t axis = rows.size(); axis-- > 0; rest /= extentOf(rows[axis]))
      place[rows[axis]] = rest % extentOf(rows[axis]);
    int64_t head = 0;
    for (const int64_t at : heads)
      head = head * extentOf(scores[size_t(at)]) + place[scores[size_t(at)]];
    const double slope = alibiSlope(head, headCount, steep);
    const int64_t farthest =
        queries - 1 - place[scores[dimension(attribute::query)]];  // of the last key
    added[n] = slope * double(farthest) + std::log(-std::expm1(-slope * double(keys))) -
               std::log(-std::expm1(-slope)) - std::log(double(keys));
  }
  return added;
}

/// Positions of a sequence that pack or unpack has.
int64_t positionsOf(const Kernel &kernel, const BodyOp &op) {
  const bool packs = op.kind == OpKind::pack;
  const auto &pair = attributeOf(op, packs ? attribute::axes : attribute::into);
  const Value &padded = kernel.values[size_t(packs ? op.operands[0] : op.results[0])];
  return kernel.axes[size_t(padded.axes[size_t(pair[1])])].extent;
}

/// Segments that have bounds: long enough that tiles of scores lie between different ones.
constexpr InputRule boundedSegments = {
    .kind = InputRule::Kind::integer, .low = 0, .high = mostRandomSegment, .run = 192};

InputRule ruleOf(const Kernel &kernel, ValueId value) {
  const DType dtype = kernel.values[value].dtype;
  InputRule rule;
  if (dtype == DType::i1) return {.kind = InputRule::Kind::integer, .low = 0, .high = 1};
  if (dtype == DType::i32) rule = {.kind = InputRule::Kind::integer, .low = 0, .high = 8};
  const auto isUnpacked = [&](ValueId result) {  // what an op unpacks of the value
    return std::ranges::any_of(kernel.body, [&](const BodyOp &op) {
      return op.kind == OpKind::unpack && op.operands[0] == value && op.results[0] == result;
    });
  };
  for (const BodyOp &op : kernel.body)
    for (size_t n = 0; n < op.operands.size(); ++n) {
      if (op.kind == OpKind::softmaxFromLogSums && n == 1 && isUnpacked(op.operands[n]))
        rule.mean = meanLogSum(kernel, op);
      if (op.operands[n] != value) continue;
      if (op.kind == OpKind::softmaxFromLogSums && n == 1) {
        rule.mean = meanLogSum(kernel, op);
        rule.added = biasLogSums(kernel, op);
      }
      if (op.kind == OpKind::scatterAdd && n == 1)
        rule.high = kernel.axes[kernel.values[op.results[0]].axes[0]].extent - 1;
      if (op.kind == OpKind::gather && n == 1)
        rule.high = kernel.axes[kernel.values[op.operands[0]].axes[0]].extent - 1;
      if (op.kind == OpKind::append && n == appendStarts) rule.high = mostCached(kernel, op);
      if ((op.kind == OpKind::append && n == appendTable) ||
          (op.kind == OpKind::gatherPages && n == 1))
        rule = {
            .kind = InputRule::Kind::pages,
            .low = 0,
            .high =
                kernel
                    .axes[size_t(kernel.values[size_t(op.operands.front())].axes[appendAlong(op)])]
                    .extent -
                1};
      if (op.kind == OpKind::offsets) rule.high = attributeOf(op, attribute::bound);
      if (op.kind == OpKind::contract && n == 2) {
        const int64_t tokens = kernel.axes[size_t(op.reducedAxes.front())].extent;
        rule = {.kind = InputRule::Kind::ascending,
                .low = 0,
                .high = tokens / (kernel.elements(value) - 1)};
      }
      if ((op.kind == OpKind::pack || op.kind == OpKind::unpack) && n == 1)
        rule = {.kind = InputRule::Kind::ascending, .low = 0, .high = positionsOf(kernel, op)};
      if (isTokensMask(op) && n == 1) {  // pack and unpack know their positions better
        const int64_t sequences = kernel.axes[kernel.values[value].axes[0]].extent - 1;
        const int64_t tokens =
            kernel.axes[kernel.values[op.operands[0]].axes[size_t(attributeOf(op, attribute::key))]]
                .extent;
        if (rule.kind != InputRule::Kind::ascending)
          rule = {.kind = InputRule::Kind::ascending, .low = 0, .high = tokens / sequences};
      } else if (tileBoundsOf(op) && n == segmentsOperand) {
        rule = boundedSegments;
      } else if (n == tileBoundsOperand && tileBoundsOf(op)) {
        const ValueId segments = op.operands[segmentsOperand];
        rule = boundedSegments;
        rule.kind = InputRule::Kind::bounds;
        rule.other = size_t(std::ranges::find(kernel.inputs, segments) - kernel.inputs.begin());
        rule.positions = kernel.axes[size_t(kernel.values[size_t(segments)].axes.back())].extent;
      } else if (op.kind == OpKind::mask && n == 1)
        rule.high = isDocumentMask(op)
                        ? mostRandomSegment
                        : kernel
                              .axes[kernel.values[op.operands[0]]
                                        .axes[size_t(attributeOf(op, attribute::key))]]
                              .extent;
    }
  return rule;
}

/// Lengths of a mask that says they are those of the packed sequences become these.
void makeLengthsFit(const Kernel &kernel, std::vector<InputRule> &rules) {
  const auto ascending = std::ranges::find(rules, InputRule::Kind::ascending, &InputRule::kind);
  if (ascending == rules.end()) return;
  const auto offsets = size_t(ascending - rules.begin());
  for (const BodyOp &op : kernel.body) {
    if (!isMaskOfPacked(op)) continue;
    const auto lengths = std::ranges::find(kernel.inputs, op.operands[1]);
    if (lengths == kernel.inputs.end() ||
        kernel.elements(*lengths) + 1 != kernel.elements(kernel.inputs[offsets]))
      continue;
    InputRule rule = *ascending;
    rule.kind = InputRule::Kind::lengths;
    rule.other = offsets;
    rules[size_t(lengths - kernel.inputs.begin())] = rule;
  }
}

/// Operands of a contraction along tokens become zero behind the last one.
void makeZeroBehind(const Kernel &kernel, std::vector<InputRule> &rules) {
  const std::optional<UnusedTokens> summed = summedTokens(kernel);
  if (!summed) return;
  const auto offsets =
      size_t(std::ranges::find(kernel.inputs, summed->offsets) - kernel.inputs.begin());
  for (size_t input = 0; input < rules.size(); ++input) {
    const std::vector<AxisId> &axes = kernel.values[size_t(kernel.inputs[input])].axes;
    const auto along = std::ranges::find(axes, summed->axis);
    if (along == axes.end()) continue;
    InputRule::Tokens tokens{.extent = kernel.axes[size_t(summed->axis)].extent,
                             .sequences = summed->element,
                             .mostOfSequence = rules[offsets].high};
    for (auto axis = along + 1; axis != axes.end(); ++axis)
      tokens.stride *= kernel.axes[size_t(*axis)].extent;
    rules[input].tokens = tokens;
    rules[input].other = offsets;
  }
}

}  // namespace

std::vector<InputRule> inputRules(const Kernel &kernel) {
  std::vector<InputRule> rules;
  const std::vector<bool> isPositive = positiveValues(kernel);
  for (ValueId value : kernel.inputs) {
    rules.push_back(ruleOf(kernel, value));
    if (isPositive[size_t(value)] && rules.back().kind == InputRule::Kind::real)
      rules.back().kind = InputRule::Kind::positive;
  }
  makeLengthsFit(kernel, rules);
  makeZeroBehind(kernel, rules);
  return rules;
}

void fillInput(TensorImage &image, const InputRule &rule, uint64_t seed, size_t position,
               int threads) {
  const bool isOfOther =
      rule.kind == InputRule::Kind::bounds || rule.kind == InputRule::Kind::lengths;
  const uint64_t key = mixed(seed ^ mixed((isOfOther ? rule.other : position) + 1));
  const auto bitsOf = [&](int64_t n) { return mixed(key + uint64_t(n + 1) * 0x9E3779B97F4A7C15); };
  const auto integer = [&](int64_t n) {
    return rule.low + int64_t(bitsOf(n / rule.run) % uint64_t(rule.high - rule.low + 1));
  };
  const auto offset = [&](int64_t n) { return offsetOf(key, rule.high, n); };
  const int64_t tokens = rule.tokens ? offsetOf(mixed(seed ^ mixed(rule.other + 1)),
                                                rule.tokens->mostOfSequence, rule.tokens->sequences)
                                     : 0;
  const auto isBehindTokens = [&](int64_t n) {
    return rule.tokens && n / rule.tokens->stride % rule.tokens->extent >= tokens;
  };
  /// Of the tile and the side that element n is of.
  const auto bound = [&](int64_t n) {
    const int64_t tiles = boundedTiles(rule.positions), tile = n / boundsOfTile % tiles,
                  row = n / boundsOfTile / tiles * rule.positions;
    int64_t found = integer(row + tile * boundedTile);
    for (int64_t at = tile * boundedTile; at < std::min((tile + 1) * boundedTile, rule.positions);
         ++at)
      found = n % boundsOfTile == 0 ? std::min(found, integer(row + at))
                                    : std::max(found, integer(row + at));
    return found;
  };
  const bool isTable = rule.kind == InputRule::Kind::pages;
  const int64_t entries = isTable ? image.shape().at(1) : 1;
  const ShuffledPages pages(isTable ? image.shape().at(0) : 1, rule.high + 1, key);
  image.fill(
      [&](int64_t n) -> double {
        const uint64_t bits = bitsOf(n);
        if (isBehindTokens(n)) return 0;
        switch (rule.kind) {
          case InputRule::Kind::real:
            return rule.mean + (rule.added.empty() ? 0 : rule.added[size_t(n)]) + bellShaped(bits);
          case InputRule::Kind::positive: return 0.5 + std::abs(bellShaped(bits));
          case InputRule::Kind::integer: return double(integer(n));
          case InputRule::Kind::bounds: return double(bound(n));
          case InputRule::Kind::ascending: return double(offset(n));
          case InputRule::Kind::lengths: return double(offset(n + 1) - offset(n));
          case InputRule::Kind::pages: return double(pages.entry(n / entries, n % entries));
        }
        return 0;
      },
      threads);
}

}  // namespace weft::runtime
