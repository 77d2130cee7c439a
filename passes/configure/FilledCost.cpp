// Kernels of fewer tokens in the place of masked ones; see FilledCost.h.
#include "passes/configure/FilledCost.h"

#include "kernel/Append.h"
#include "kernel/Attributes.h"
#include "kernel/CanonicalNames.h"
#include "kernel/CoordinateExpressions.h"
#include "kernel/Error.h"
#include "kernel/MaskKind.h"
#include "kernel/RecentAnswers.h"
#include "kernel/UnusedTokens.h"
#include "passes/configure/Family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

namespace weft {
namespace {

/// Whole lines of f16, so that what is contiguous along tokens keeps its alignment; positions of
/// sequences are rarely.
constexpr int64_t tokensStep = 64, positionsStep = 8;

int64_t shortened(int64_t extent, double share, int64_t step) {
  const auto wanted = int64_t(std::ceil(double(extent) * share / double(step))) * step;
  return std::clamp<int64_t>(wanted, 1, extent);
}

bool runsAlong(const Kernel &kernel, const BodyOp &op, AxisId axis) {
  const auto has = [&](const std::vector<ValueId> &values) {
    return std::ranges::any_of(values, [&](ValueId value) {
      return std::ranges::count(kernel.values[size_t(value)].axes, axis) > 0;
    });
  };
  return has(op.operands) || has(op.results) || std::ranges::count(op.reducedAxes, axis) > 0;
}

/// The axis with another extent, and flop in proportion.
void shorten(Kernel &kernel, AxisId axis, int64_t extent) {
  for (BodyOp &op : kernel.body)
    if (runsAlong(kernel, op, axis))
      op.flop *= double(extent) / double(kernel.axes[size_t(axis)].extent);
  kernel.axes[size_t(axis)].extent = extent;
}

int64_t bytesStored(const Kernel &kernel) {
  int64_t bytes = 0;
  for (const ValueId output : kernel.outputs) bytes += kernel.bytes(output);
  return bytes;
}

/// The axes whose coordinates masks compare with one length a sequence.
std::set<AxisId> paddedAxes(const Kernel &kernel) {
  using Kind = ExpressionNode::Kind;
  std::set<AxisId> axes;
  for (const BodyOp &op : kernel.body) {
    if (op.expression.empty()) continue;
    const ExpressionNode &root = op.expression[op.expression.root()];
    if (root.kind != Kind::select) continue;
    const ExpressionNode &condition = op.expression[root.children[0]];
    if (condition.kind != Kind::binary || condition.operation != ScalarOperator::less) continue;
    const ExpressionNode &left = op.expression[condition.children[0]],
                         &right = op.expression[condition.children[1]];
    if (left.kind == Kind::coordinate && right.kind == Kind::operand && right.children.empty() &&
        kernel.values[size_t(op.operands[size_t(right.index)])].dtype == DType::i32)
      axes.insert(left.index);
  }
  return axes;
}

/// Axes of an attention whose queries stand behind those that a cache holds, from the start of
/// their sequence on.
struct CachedAxes {
  int keys = -1, sequences = -1;
};
std::optional<CachedAxes> cachedAxes(const Kernel &kernel) {
  for (const BodyOp &op : kernel.body) {
    if (op.kind != OpKind::mask || op.operands.size() < 2 || !hasAttribute(op, attribute::query) ||
        maskKind(op) != MaskShape::Kind::causal)
      continue;
    const std::vector<AxisId> &scores = kernel.values[size_t(op.operands[0])].axes;
    return CachedAxes{.keys = scores[size_t(attributeOf(op, attribute::key))],
                      .sequences = kernel.values[size_t(op.operands[1])].axes.front()};
  }
  return std::nullopt;
}

bool isAttention(const Kernel &kernel) {
  return std::ranges::any_of(kernel.body,
                             [](const BodyOp &op) {
                               return op.kind == OpKind::onlineSoftmaxContract ||
                                      op.kind == OpKind::softmaxFromLogSums;
                             }) &&
         kernel.operatorClass() == OperatorClass::contraction;
}

}  // namespace

std::optional<Kernel> shortenedKernel(const Kernel &kernel, const ExpectedFill &fill,
                                      bool storesZeros) {
  if (fill.isFull()) return std::nullopt;
  if (const std::optional<UnusedTokens> summed = summedTokens(kernel)) {
    Kernel result = kernel;
    shorten(result, summed->axis,
            shortened(result.axes[size_t(summed->axis)].extent, fill.tokens, tokensStep));
    return result;
  }
  const std::optional<UnusedTokens> unused = unusedTokens(kernel);
  if (unused && !isAttention(kernel)) {
    double share = fill.tokens;
    if (storesZeros && !areUnusedUnread(kernel))
      share += (1 - share) * double(bytesStored(kernel)) / double(kernel.necessaryBytes());
    Kernel result = kernel;
    shorten(result, unused->axis,
            shortened(result.axes[size_t(unused->axis)].extent, share, tokensStep));
    return result;
  }
  if (!isAttention(kernel)) return std::nullopt;
  if (const std::optional<CachedAxes> cached = cachedAxes(kernel)) {
    Kernel result = kernel;
    const int64_t extent =
        shortened(result.axes[size_t(cached->keys)].extent, fill.tokens, positionsStep);
    shorten(result, cached->keys, extent);
    for (const BodyOp &op : kernel.body) {  // entries of a table of pages
      if (op.kind != OpKind::gatherPages) continue;
      const int64_t positions =
          kernel.axes[size_t(kernel.values[size_t(op.operands[0])].axes[appendAxis(op)])].extent;
      result.axes[size_t(kernel.values[size_t(op.operands[1])].axes[1])].extent =
          (extent + positions - 1) / positions;
    }
    return result;
  }
  const std::set<AxisId> axes = paddedAxes(kernel);
  if (axes.size() == 1) {  // keys alone: every query sees those of its sequence
    Kernel result = kernel;
    shorten(result, *axes.begin(),
            shortened(result.axes[size_t(*axes.begin())].extent, fill.tokens, positionsStep));
    return result;
  }
  if (axes.size() != 2) return std::nullopt;
  Kernel result = kernel;
  for (const AxisId axis : axes)
    shorten(result, axis,
            shortened(result.axes[size_t(axis)].extent, std::sqrt(fill.pairs), positionsStep));
  for (const BodyOp &op : kernel.body) {  // packed tensors around a fused attention
    if (op.kind != OpKind::unpack && op.kind != OpKind::pack) continue;
    const ValueId packed = op.kind == OpKind::unpack ? op.operands[0] : op.results[0],
                  other = op.kind == OpKind::unpack ? op.results[0] : op.operands[0];
    const std::vector<AxisId> &padded = kernel.values[size_t(other)].axes;
    for (const AxisId axis : kernel.values[size_t(packed)].axes)
      if (std::ranges::find(padded, axis) == padded.end())
        result.axes[size_t(axis)].extent =
            shortened(kernel.axes[size_t(axis)].extent, fill.tokens, tokensStep);
  }
  return result;
}

/// The offsets that a kernel reads to leave out what is no token, and nothing else of it needs.
std::optional<UnusedTokens> countedTokens(const Kernel &kernel) {
  const std::optional<UnusedTokens> summed = summedTokens(kernel);
  return summed ? summed : unusedTokens(kernel);
}

std::optional<Kernel> withoutTokenMasks(const Kernel &kernel) {
  const std::optional<UnusedTokens> unused = countedTokens(kernel);
  if (!unused) return std::nullopt;
  std::vector<ValueId> becomes(kernel.values.size(), -1);
  Kernel result{.name = kernel.name,
                .axes = kernel.axes,
                .values = {},
                .inputs = {},
                .outputs = {},
                .body = {}};
  const auto keep = [&](ValueId value) {
    becomes[size_t(value)] = int(result.values.size());
    result.values.push_back(kernel.values[size_t(value)]);
  };
  for (const ValueId input : kernel.inputs)
    if (input != unused->offsets) {
      result.inputs.push_back(int(result.values.size()));
      keep(input);
    }
  for (const BodyOp &op : kernel.body) {
    if (maskedTokens(kernel, op) == unused) {
      becomes[size_t(op.results[0])] = becomes[size_t(op.operands[0])];
      continue;
    }
    BodyOp own = op;
    if (summedTokens(kernel) && own.kind == OpKind::contract) own.operands.resize(2);
    if (std::ranges::find(own.operands, unused->offsets) != own.operands.end()) return std::nullopt;
    for (ValueId &operand : own.operands) operand = becomes[size_t(operand)];
    for (ValueId &value : own.results) {
      keep(value);
      value = becomes[size_t(value)];
    }
    result.body.push_back(std::move(own));
  }
  for (const ValueId output : kernel.outputs) result.outputs.push_back(becomes[size_t(output)]);
  const std::set<ValueId> distinct(result.outputs.begin(), result.outputs.end());
  if (result.body.empty() || distinct.size() != result.outputs.size() || *distinct.begin() < 0 ||
      *distinct.begin() < int(result.inputs.size()))
    return std::nullopt;
  return result;
}

namespace {

struct NumberedKernel {
  Kernel kernel;
  uint64_t number = SteadyKernel::newNumber();
};

/// Some of the runs, or of the sequences of their batches.
struct PartOfRuns {
  std::optional<size_t> shortened;  ///< of AtFill::shortened; nothing: the whole kernel
  double tokens = 1, weight = 1;
};

/// What stands for a kernel at a fill, whatever the configuration.
struct AtFill {
  bool isShorter = false;                      ///< else the kernel computes all tokens
  std::vector<NumberedKernel> shortened = {};  ///< each once
  std::vector<PartOfRuns> parts = {};          ///< empty: all runs have the one of the mean fill
  std::optional<NumberedKernel> ofOneSequence = {};  ///< of an attention of a cache
  double zeroBytes = 0;  ///< that are stored where no row is a token: shorter ones lack their share
  // Of the one at the mean fill, and of the whole.
  double flop = 0;
  int64_t bytes = 0, wholeBytes = 0;
};

/// Lengths of sequences, as shares of the longest, and how many have each: with the mean of a level
/// and the mean of its squares. Evenly around the mean, or where that leaves the range, some of the
/// longest and others of one length.
std::vector<std::pair<double, double>> lengthsAt(const FillLevel &level) {
  constexpr int count = 5;
  const double mean = level.tokens, variance = level.pairs - mean * mean,
               reach = std::sqrt(variance * 3 * count * count / (count * count - 1)),
               outermost = reach * (count - 1) / count;
  std::vector<std::pair<double, double>> lengths;
  if (mean - outermost > 0 && mean + outermost < 1) {
    for (int n = 0; n < count; ++n)
      lengths.emplace_back(mean + reach * ((2.0 * n + 1) / count - 1), 1.0 / count);
    return lengths;
  }
  const double rest = 1 - mean, longest = variance / (variance + rest * rest);
  lengths.emplace_back(1, longest);
  lengths.emplace_back(std::max(0.0, mean - variance / rest), 1 - longest);
  return lengths;
}

/// At which a kernel is priced. An attention of sequences that differ takes the mean of what it
/// takes of equal ones, each of these lengths: how much of its tiles is empty differs, too. Between
/// few lengths, which all levels have in common, prices are straight lines: a kernel for each would
/// be more than are remembered (RecentAnswers.h). They are no halves or quarters of the longest,
/// which tiles would divide.
std::vector<FillLevel> levelsFor(const Kernel &kernel, const ExpectedFill &fill) {
  constexpr int steps = 11;
  constexpr double equal = 1e-6, shortest = 1e-3;
  if (!isAttention(kernel) || cachedAxes(kernel) || paddedAxes(kernel).empty()) return fill.levels;
  std::vector<FillLevel> levels;
  std::array<double, steps + 1> weights = {};
  for (const FillLevel &level :
       fill.levels.empty() ? std::vector<FillLevel>{{.tokens = fill.tokens, .pairs = fill.pairs}}
                           : fill.levels) {
    if (level.pairs - level.tokens * level.tokens < equal) {
      levels.push_back(level);
      continue;
    }
    for (const auto &[length, share] : lengthsAt(level)) {
      const double place = std::clamp(length, 0.0, 1.0) * steps;
      const int below = std::min(int(place), steps - 1);
      weights[size_t(below)] += level.weight * share * (below + 1 - place);
      weights[size_t(below) + 1] += level.weight * share * (place - below);
    }
  }
  for (int step = 0; step <= steps; ++step) {
    const double length = std::max(double(step) / steps, shortest);
    if (weights[size_t(step)] > 0)
      levels.push_back(
          {.tokens = length, .pairs = length * length, .weight = weights[size_t(step)]});
  }
  return levels;
}

AtFill atFillOf(const Kernel &kernel, const ExpectedFill &fill) {
  const bool isLoop = kernel.operatorClass() != OperatorClass::contraction;
  const std::optional<Kernel> mean = shortenedKernel(kernel, fill, isLoop);
  if (!mean) return {};
  AtFill result{.isShorter = true,
                .flop = mean->flop(),
                .bytes = mean->necessaryBytes(),
                .wholeBytes = kernel.necessaryBytes()};
  if (!isLoop && !areUnusedUnread(kernel) && !summedTokens(kernel))
    result.zeroBytes = double(bytesStored(kernel));
  if (const std::optional<CachedAxes> cached = cachedAxes(kernel)) {
    result.ofOneSequence = NumberedKernel{kernel};
    result.ofOneSequence->kernel.axes[size_t(cached->sequences)].extent = 1;
  }
  const std::vector<FillLevel> levels = levelsFor(kernel, fill);
  if (isLoop || levels.empty()) {
    result.shortened.push_back({*mean});
    return result;
  }
  for (const FillLevel &level : levels) {
    const std::optional<Kernel> shorter =
        shortenedKernel(kernel, {.tokens = level.tokens, .pairs = level.pairs}, isLoop);
    result.parts.push_back(
        {.shortened = std::nullopt, .tokens = level.tokens, .weight = level.weight});
    if (!shorter) continue;
    const auto found = std::ranges::find(result.shortened, *shorter, &NumberedKernel::kernel);
    result.parts.back().shortened = size_t(found - result.shortened.begin());
    if (found == result.shortened.end()) result.shortened.push_back({*shorter});
  }
  return result;
}

const AtFill &atFill(const Kernel &kernel, const ExpectedFill &fill) {
  thread_local RecentAnswers<AtFill, ExpectedFill> recent;
  return recent.of([&] { return atFillOf(kernel, fill); }, kernel, fill);
}

class FilledCostModel : public CostModel {
public:
  FilledCostModel(const CostModel &prices, const ExpectedFill &fill)
      : prices(prices), analytic(analyticCostModel(prices.device())), fill(fill) {
    if (&prices.modelled() != &prices)
      estimates = std::make_unique<FilledCostModel>(prices.modelled(), fill);
  }

  Cost cost(const Kernel &kernel, const Configuration &configuration) const override {
    if (configuration.knobs.family().isView) return prices.cost(kernel, configuration);
    Cost own = baseCost(kernel, configuration);
    return scaled(kernel, configuration, std::move(own));
  }

  const std::vector<PricedConfiguration> &measured(const Kernel &kernel) const override {
    const std::vector<PricedConfiguration> &own = prices.measured(kernel);
    const std::optional<Kernel> plain =
        own.empty() ? withoutTokenMasks(kernel) : std::optional<Kernel>();
    if (!plain && !atFill(kernel, fill).isShorter) return own;
    const std::string key = fmt::format("{}{}", canonicalText(kernel),
                                        fmt::join(CanonicalNames(kernel).axesInOrder(), ","));
    const std::lock_guard lock(mutex);
    const auto [found, isNew] = cache.try_emplace(key);
    if (!isNew) return found->second;
    for (const PricedConfiguration &row : own)
      found->second.push_back({row.configuration, scaled(kernel, row.configuration, row.cost)});
    if (plain) addPlain(kernel, *plain, found->second);
    return found->second;
  }

  std::vector<PricedConfiguration> measuredAs(const Kernel &kernel,
                                              const Configuration &configuration) const override {
    std::vector<PricedConfiguration> rows = prices.measuredAs(kernel, configuration);
    for (PricedConfiguration &row : rows)
      row.cost = scaled(kernel, row.configuration, std::move(row.cost));
    return rows;
  }

  const CostModel &modelled() const override { return estimates ? *estimates : *this; }
  bool isSeparable(const Kernel &kernel) const override { return prices.isSeparable(kernel); }
  double separableMargin() const override { return prices.separableMargin(); }
  Kernel separableKernel(const Kernel &kernel) const override {
    return shortenedKernel(kernel, fill, true).value_or(kernel);
  }
  const Device &device() const override { return prices.device(); }
  bool hasMeasurements() const override { return prices.hasMeasurements(); }
  bool admitsModelled() const override { return prices.admitsModelled(); }
  PriceSource source() const override {
    PriceSource source = prices.source();
    if (!fill.isFull())
      source.remark += fmt::format(" at {:.4g} of the tokens and {:.4g} of their pairs{}",
                                   fill.tokens, fill.pairs, describe(fill.levels));
    return source;
  }
  std::string identity() const override {
    if (fill.isFull()) return prices.identity();
    std::string text = fmt::format("{} at {} {}", prices.identity(), fill.tokens, fill.pairs);
    for (const FillLevel &level : fill.levels)
      text += fmt::format(", {} {} {}", level.tokens, level.pairs, level.weight);
    return profileHash(text);
  }

private:
  static std::string describe(const std::vector<FillLevel> &levels) {
    std::string text;
    for (const FillLevel &level : levels)
      text +=
          fmt::format("{}{:.4g} and {:.4g}", text.empty() ? " (" : ", ", level.tokens, level.pairs);
    return text.empty() ? "" : text + ")";
  }

  /// The operands of a configuration without the offsets, or with them.
  static Configuration withoutOffsets(const Kernel &kernel, Configuration configuration) {
    const size_t place = placeOfOffsets(kernel);
    configuration.inputs.erase(configuration.inputs.begin() + std::ptrdiff_t(place));
    return configuration;
  }
  static Configuration withOffsets(const Kernel &kernel, Configuration configuration) {
    const size_t place = placeOfOffsets(kernel);
    configuration.inputs.insert(configuration.inputs.begin() + std::ptrdiff_t(place), rowMajor(1));
    return configuration;
  }
  static size_t placeOfOffsets(const Kernel &kernel) {
    return size_t(std::ranges::find(kernel.inputs, countedTokens(kernel).value().offsets) -
                  kernel.inputs.begin());
  }

  /// At full fill: as measured with masks, or without, or as estimated.
  Cost baseCost(const Kernel &kernel, const Configuration &configuration) const {
    if (!prices.hasMeasurements()) return prices.cost(kernel, configuration);
    const std::optional<Kernel> plain = withoutTokenMasks(kernel);
    if (!plain) return prices.cost(kernel, configuration);
    if (prices.admitsModelled()) {
      Cost own = prices.cost(kernel, configuration);
      if (own.measured) return own;
      const Cost other = prices.cost(*plain, withoutOffsets(kernel, configuration));
      if (other.measured) own.seconds = other.seconds, own.margin = 0;
      return own;
    }
    return prices.cost(kernel, configuration);  // --strict: what is not measured is an error
  }

  double estimated(const Kernel &kernel, const Configuration &configuration) const {
    return analytic->cost(kernel, configuration).seconds;
  }
  double estimated(const NumberedKernel &own, const Configuration &configuration) const {
    const SteadyKernel steady(own.kernel, own.number);
    return estimated(own.kernel, configuration);
  }

  /// Sequences of caches differ in length: when the others are done, the blocks of the longest one
  /// have half of their time before them.
  double longestAlone(const AtFill &kernels, const Configuration &configuration) const {
    if (!kernels.ofOneSequence) return 0;
    try {
      return std::max(0.0,
                      estimated(*kernels.ofOneSequence, configuration) - device().launchSeconds) /
             2;
    } catch (const Error &) {  // no such attention of one sequence
      return 0;
    }
  }

  /// Of a shortened kernel over the whole one; nothing of a tile that is no GEMM of the shorter
  /// one.
  std::optional<double> shareOf(const NumberedKernel &shorter, const Configuration &configuration,
                                double whole) const {
    try {
      return estimated(shorter, configuration) / whole;
    } catch (const Error &) {
      return std::nullopt;
    }
  }

  /// Whether a sum goes on behind the last token.
  static bool addsZeros(const Kernel &kernel, const Configuration &configuration) {
    const auto endsSums = configuration.knobs.family().endsSums;
    return summedTokens(kernel) && !(endsSums && endsSums(kernel, configuration.knobs));
  }

  Cost scaled(const Kernel &kernel, const Configuration &configuration, Cost cost) const {
    const AtFill &kernels = atFill(kernel, fill);
    if (!kernels.isShorter || addsZeros(kernel, configuration)) return cost;
    const double full = cost.seconds, waiting = longestAlone(kernels, configuration);
    double whole = 0;
    try {
      whole = estimated(kernel, configuration);
    } catch (const Error &) {
      return cost;
    }
    std::vector<std::optional<double>> shares;
    for (const NumberedKernel &shorter : kernels.shortened)
      shares.push_back(shareOf(shorter, configuration, whole));
    const auto secondsAt = [&](size_t shortened, double tokens) {
      if (!shares[shortened]) return full;  // priced as the whole
      return std::min(full, full * *shares[shortened] +
                                (1 - tokens) * kernels.zeroBytes / device().copyBandwidth +
                                waiting);
    };
    if (kernels.parts.empty()) {
      cost.seconds = secondsAt(0, fill.tokens);
    } else {
      cost.seconds = 0;
      for (const PartOfRuns &part : kernels.parts)
        cost.seconds +=
            part.weight * (part.shortened ? secondsAt(*part.shortened, part.tokens) : full);
      cost.seconds = std::min(cost.seconds, full);  // weights are rounded
    }
    if (std::ranges::none_of(shares, [](const auto &share) { return share.has_value(); }))
      return cost;
    cost.flop = kernels.flop;
    cost.bytesMoved =
        int64_t(double(cost.bytesMoved) * double(kernels.bytes) / double(kernels.wholeBytes));
    cost.bytesNecessary = kernels.bytes;
    return cost;
  }

  /// Measurements of the kernel without masks, of families and tiles that take it with them.
  void addPlain(const Kernel &kernel, const Kernel &plain,
                std::vector<PricedConfiguration> &rows) const {
    const std::vector<PricedConfiguration> &all = prices.measured(plain);
    if (all.empty()) return;
    std::set<const Family *> families;
    for (const ConfigurationSpace &space : configurationSpaces(kernel, device()))
      families.insert(space.family);
    for (const PricedConfiguration &row : all) {
      Configuration configuration = withOffsets(kernel, row.configuration);
      const Family &family = configuration.knobs.family();
      if (!families.contains(&family) ||
          (family.rejection && !family.rejection(kernel, configuration, device()).empty()))
        continue;
      Cost cost = scaled(kernel, configuration, row.cost);
      cost.measured = cost.stale = false;
      cost.source = "-";
      rows.push_back({std::move(configuration), std::move(cost)});
    }
  }

  const CostModel &prices;
  std::unique_ptr<CostModel> analytic;
  std::unique_ptr<FilledCostModel> estimates;
  ExpectedFill fill;
  mutable std::mutex mutex;  ///< variants are selected in parallel
  mutable std::map<std::string, std::vector<PricedConfiguration>> cache;
};

}  // namespace

std::unique_ptr<CostModel> filledCostModel(const CostModel &prices, const ExpectedFill &fill) {
  return std::make_unique<FilledCostModel>(prices, fill);
}

}  // namespace weft
