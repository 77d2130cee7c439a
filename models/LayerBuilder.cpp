// Each method appends one op (project: two) with readable SSA names carried as name locations.
#include "models/LayerBuilder.h"

#include "ir/Types.h"
#include "ir/Weft.h"
#include "kernel/BlockMask.h"
#include "kernel/Error.h"
#include "kernel/LayerNames.h"
#include "kernel/ScoreBias.h"
#include "models/ScoreMask.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace weft::models {
namespace {

constexpr int64_t largestGemm = int64_t(1) << 62;

/// "paper-encoder" as a symbol: paper_encoder.
std::string symbolOf(const std::string &name) {
  std::string symbol = name;
  for (char &c : symbol)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return symbol.empty() || std::isdigit(static_cast<unsigned char>(symbol[0])) ? "_" + symbol
                                                                               : symbol;
}

std::vector<std::string> letters(const std::string &axes) {
  std::vector<std::string> names;
  for (char axis : axes) names.emplace_back(1, axis);
  return names;
}

struct Terms {
  std::string a, b, result;
};

Terms termsOf(const std::string &spec) {
  const size_t comma = spec.find(','), arrow = spec.find("->");
  return {spec.substr(0, comma), spec.substr(comma + 1, arrow - comma - 1), spec.substr(arrow + 2)};
}

}  // namespace

LayerBuilder::LayerBuilder(mlir::MLIRContext &context, const LayerSpecification &specification,
                           const Dims &dims, DType dtype)
    : specification_(specification),
      dims_(dims),
      dtype_(dtype),
      module_(mlir::ModuleOp::create(mlir::UnknownLoc::get(&context))),
      builder_(&context) {
  builder_.setInsertionPointToEnd(module_->getBody());
  auto graph = GraphOp::create(builder_, builder_.getUnknownLoc(), symbolOf(specification.name),
                               llvm::ArrayRef<mlir::Type>(), llvm::ArrayRef<mlir::Type>());
  body_ = &graph.getBody().front();
  builder_.setInsertionPointToEnd(body_);
}

/// "norm, mean, rstd" are the names of three results.
mlir::Location LayerBuilder::named(const std::string &name) {
  std::string all = prefix_ + name;
  for (size_t comma = all.find(", "); comma != std::string::npos; comma = all.find(", ", comma + 2))
    all.insert(comma + 2, prefix_);
  return mlir::NameLoc::get(builder_.getStringAttr(all));
}

template <typename Op, typename... Arguments>
mlir::Value LayerBuilder::append(const std::string &name, Arguments &&...arguments) {
  return Op::create(builder_, named(name), std::forward<Arguments>(arguments)...)->getResult(0);
}

template <typename Make>
mlir::Value LayerBuilder::shared(const std::string &name, const Make &make) {
  mlir::Value &argument = shared_[name];
  if (argument) return argument;
  const std::string prefix = std::exchange(prefix_, "");
  const int64_t layer = std::exchange(layer_, 0);
  builder_.setLayer(0);
  argument = make();
  prefix_ = prefix;
  layer_ = layer;
  builder_.setLayer(layer);
  return argument;
}

int64_t LayerBuilder::position(mlir::Value x, char axis) const {
  return *dimensionOf(x.getType(), llvm::StringRef(&axis, 1));
}

void LayerBuilder::checkElements(const std::string &what, const std::string &axes) const {
  int64_t product = 1;
  std::vector<std::string> factors;
  for (char axis : axes) factors.push_back(fmt::format("{}={}", axis, dim(axis)));
  for (char axis : axes) {
    if (dim(axis) > largestGemm / product)
      throw Error::badInput(
          "{}: {} over {} has more than 2^62 points; make one of these dimensions smaller",
          specification_.name, what, fmt::join(factors, " * "));
    product *= dim(axis);
  }
}

mlir::Value LayerBuilder::argument(const std::string &name, const std::string &axes) {
  return argumentOf(name, axes, dtype_);
}

DType LayerBuilder::streamType() const {
  return specification_.hasWideResidual ? DType::f32 : dtype_;
}

mlir::Value LayerBuilder::stream(const std::string &name, const std::string &axes) {
  return argumentOf(name, axes, streamType());
}

mlir::Value LayerBuilder::factors(const std::string &name, const std::string &axes) {
  return argumentOf(name, axes, DType::f32);
}

mlir::Value LayerBuilder::indices(const std::string &name, const std::string &axes) {
  return argumentOf(name, axes, DType::i32);
}

mlir::Value LayerBuilder::argumentOf(const std::string &name, const std::string &axes,
                                     DType dtype) {
  checkElements("argument " + name, axes);
  std::vector<std::pair<std::string, int64_t>> extents;
  for (char axis : axes) extents.emplace_back(std::string(1, axis), dim(axis));
  return addArgument(name, makeTensor(builder_.getContext(), extents, dtype));
}

mlir::Value LayerBuilder::addArgument(const std::string &name, mlir::Type type) {
  if (layer_ > 0) layers_[body_->getNumArguments()] = layer_;
  return body_->addArgument(type, named(name));
}

mlir::Value LayerBuilder::marked(mlir::Value argument, TrainingRole role) {
  roles_[mlir::cast<mlir::BlockArgument>(argument).getArgNumber()] = role;
  return argument;
}

mlir::Value LayerBuilder::parameter(const std::string &name, const std::string &axes,
                                    const InitialValue &initial) {
  const auto make = [&] {
    const mlir::Value weight = argument(name, axes);
    parameters_[body_->getNumArguments() - 1] = initial;
    return weight;
  };
  return specification_.model.sharesLayers && !prefix_.empty() ? shared(name, make) : make();
}

mlir::Value LayerBuilder::sharedParameter(const std::string &name, const std::string &axes,
                                          const InitialValue &initial) {
  return shared(name, [&] { return parameter(name, axes, initial); });
}

mlir::Value LayerBuilder::contract(const std::string &name, const std::string &spec, mlir::Value a,
                                   mlir::Value b, std::optional<double> scale) {
  const Terms terms = termsOf(spec);
  std::string space = terms.a;
  for (char letter : terms.b)
    if (space.find(letter) == std::string::npos) space += letter;
  checkElements("contraction " + name, space);
  return append<ContractOp>(name, spec, a, b, scale, letters(terms.result));
}

mlir::Value LayerBuilder::project(const std::string &name, const std::string &spec,
                                  const std::string &weightName, mlir::Value x,
                                  const std::string &biasName) {
  const Terms terms = termsOf(spec);
  const mlir::Value weight = parameter(weightName, terms.a, drawn);
  if (biasName.empty()) return contract(name, spec, weight, x);
  const mlir::Value product = contract(name + "_product", spec, weight, x);
  std::string biasAxes;
  std::vector<int64_t> along;
  for (char axis : terms.a)
    if (terms.result.find(axis) != std::string::npos) {
      biasAxes += axis;
      along.push_back(position(product, axis));
    }
  return append<BiasOp>(name, product, parameter(biasName, biasAxes, InitialValue::zeros()), along);
}

void LayerBuilder::setLayer(int64_t number) {
  layer_ = number;
  prefix_ = number > 0 ? layerPrefix(number) : "";
  builder_.setLayer(number);
}

mlir::Value LayerBuilder::gather(const std::string &name, mlir::Value table, mlir::Value indices) {
  return append<GatherOp>(name, table, indices);
}

mlir::Value LayerBuilder::bias(const std::string &name, mlir::Value x, const std::string &biasName,
                               const std::string &axes, const InitialValue &initial) {
  std::vector<int64_t> along;
  for (char axis : axes) along.push_back(position(x, axis));
  return append<BiasOp>(name, x, parameter(biasName, axes, initial), along);
}

mlir::Value LayerBuilder::crossEntropy(const std::string &name, mlir::Value logits,
                                       mlir::Value labels, char axis) {
  return append<CrossEntropyOp>(name + ", log_sums", logits, labels, position(logits, axis));
}

mlir::Value LayerBuilder::weightedLoss(const std::string &name, mlir::Value losses,
                                       mlir::Value weights) {
  const mlir::Value weighted = multiply(name + "_terms", losses, weights);
  std::vector<int64_t> all;
  for (int64_t axis = 0; axis < mlir::cast<mlir::RankedTensorType>(weighted.getType()).getRank();
       ++axis)
    all.push_back(axis);
  return append<ReduceOp>(name, "sum", weighted, all);
}

mlir::Value LayerBuilder::layerNorm(const std::string &name, mlir::Value x,
                                    const std::string &suffix, char axis) {
  const std::string axes(1, axis);
  const mlir::Value gamma = parameter("gamma" + suffix, axes, InitialValue::ones());
  const mlir::Value beta = specification_.normBias
                               ? parameter("beta" + suffix, axes, InitialValue::zeros())
                               : mlir::Value();
  const bool statistics = specification_.normStatistics;
  const std::string names =
      statistics ? fmt::format("{}, mean{}, rstd{}", name, suffix, suffix) : name;
  return append<LayerNormOp>(names, x, gamma, beta, position(x, axis), specification_.epsilon,
                             statistics);
}

mlir::Value LayerBuilder::rmsNorm(const std::string &name, mlir::Value x,
                                  const std::string &weightName, char axis) {
  const mlir::Value gamma = parameter(weightName, std::string(1, axis), InitialValue::ones());
  return append<RmsNormOp>(name, x, gamma, position(x, axis), specification_.epsilon);
}

mlir::Value LayerBuilder::softmax(const std::string &name, mlir::Value x, char axis) {
  return append<SoftmaxOp>(name, x, position(x, axis));
}

mlir::Value LayerBuilder::dropout(const std::string &name, mlir::Value x,
                                  double Dropouts::*probability) {
  const double p = specification_.dropout.*probability;
  if (p == 0) return x;
  return append<DropoutOp>(name, x, p, streams_++);
}

mlir::Value LayerBuilder::operand(const std::string &name, mlir::Value x) {
  return *toDType(x.getType()) == dtype_ ? x : append<CastOp>(name, x, dtype_);
}

mlir::Value LayerBuilder::ofOperands(mlir::Value normalized) const {
  normalized.setType(withDType(normalized.getType(), dtype_));
  return normalized;
}

mlir::Value LayerBuilder::widened(const std::string &name, mlir::Value x) {
  return *toDType(x.getType()) == streamType() ? x : append<CastOp>(name, x, streamType());
}

mlir::Value LayerBuilder::residual(const std::string &name, mlir::Value x, mlir::Value skipped) {
  return append<ResidualOp>(name, widened(name + "_summand", x), skipped);
}

mlir::Value LayerBuilder::activate(const std::string &name, mlir::Value x) {
  switch (specification_.activation) {
    case Activation::relu: return append<ReluOp>(name, x);
    case Activation::gelu: return append<GeluOp>(name, x);
    case Activation::geluTanh: return append<GeluTanhOp>(name, x);
    case Activation::silu: return append<SiluOp>(name, x);
    case Activation::quickGelu:  // Hendrycks and Gimpel 2016, section 2
      return multiply(name, x, append<SigmoidOp>(name + "_share", scale(name + "_in", x, 1.702)));
  }
  llvm_unreachable("every activation is in the switch");
}

mlir::Value LayerBuilder::multiply(const std::string &name, mlir::Value a, mlir::Value b) {
  return append<MulOp>(name, a, b);
}

mlir::Value LayerBuilder::tanh(const std::string &name, mlir::Value x) {
  return append<TanhOp>(name, x);
}

mlir::Value LayerBuilder::scale(const std::string &name, mlir::Value x, double factor) {
  return append<ScaleOp>(name, x, factor);
}

mlir::Value LayerBuilder::first(const std::string &name, mlir::Value x, char axis) {
  return append<SliceOp>(name, x, position(x, axis), 0, 1);
}

mlir::Value LayerBuilder::rotary(const std::string &name, mlir::Value x, char positionAxis,
                                 char headDim) {
  auto op = RotaryOp::create(builder_, named(name), x, position(x, positionAxis),
                             position(x, headDim), specification_.rotaryBase);
  if (specification_.cache) {
    op.getStartsMutable().assign(starts());
    op.setAlong(llvm::ArrayRef<int64_t>{position(x, 'b')});
  }
  if (const int64_t turned = turnedExtent(specification_, dim(headDim)); turned < dim(headDim))
    op.setTurned(turned);
  const RotaryScaling &scaling = specification_.rotaryScaling;
  if (scaling.factor != 1) op.setFactorAttr(builder_.getF64FloatAttr(scaling.factor));
  if (scaling.original > 0) {
    op.setOriginal(scaling.original);
    op.setLowAttr(builder_.getF64FloatAttr(scaling.low));
    op.setHighAttr(builder_.getF64FloatAttr(scaling.high));
  }
  return op.getResult();
}

mlir::Value LayerBuilder::cached(const std::string &name, const std::string &argumentName,
                                 const std::string &axes, mlir::Value tokens) {
  if (!specification_.page) {
    const mlir::Value cache = argument(argumentName, axes);
    return append<AppendOp>(name, cache, tokens, starts(), position(cache, 'k'),
                            position(cache, 'b'));
  }
  std::string ofPages = axes;
  std::ranges::replace(ofPages, 'b', 'f');
  std::ranges::replace(ofPages, 'k', 'c');
  const mlir::Value cache = argument(argumentName, ofPages),
                    table = sharedIndices("page_table", "be");
  const int64_t positions = position(cache, 'c'), pages = position(cache, 'f');
  const mlir::Value kept =
      append<AppendOp>(name + "_pages", cache, tokens, starts(), positions, pages, table);
  return append<GatherPagesOp>(name, kept, table, positions, pages, "k");
}

bool LayerBuilder::hasAxis(mlir::Value x, char axis) const {
  return dimensionOf(x.getType(), llvm::StringRef(&axis, 1)).has_value();
}

mlir::Value LayerBuilder::scores(const std::string &name, const std::string &spec, mlir::Value keys,
                                 mlir::Value queries, std::optional<double> scale) {
  const ScoreForm &form = specification_.score;
  mlir::Value score;
  if (form.softcap) {
    const mlir::Value part =
        contract(name + "_of_cap", spec, keys, queries, scale.value_or(1) / *form.softcap);
    score = append<ScaleOp>(name, append<TanhOp>(name + "_soft", part), *form.softcap);
  } else {
    score = contract(name, spec, keys, queries, scale);
  }
  if (!form.alibi && !form.relative) return score;
  const std::string heads = hasAxis(score, 'r') ? "gr" : "h";
  std::vector<int64_t> along;
  for (const char axis : heads) along.push_back(position(score, axis));
  const int64_t query = position(score, 'j'), key = position(score, 'k');
  if (form.alibi) score = append<AlibiOp>(name + "_sloped", score, along, query, key, *form.alibi);
  if (!form.relative) return score;
  return append<RelativeBiasOp>(name + "_biased", score, relativeTable(heads), along, query, key,
                                *form.relative);
}

/// T5's weight by buckets, or an argument by distance.
mlir::Value LayerBuilder::relativeTable(const std::string &heads) {
  const int64_t distance = *specification_.score.relative;
  if (specification_.score.hasBuckets)
    return append<ExpandBucketsOp>(
        "relative_rows", parameter("relative_table", "n" + heads, drawn),
        nameOf(specification_.score.hasCausalBuckets ? BucketKind::causal
                                                     : BucketKind::bidirectional),
        distance);
  std::vector<std::pair<std::string, int64_t>> extents;
  for (const char axis : heads) extents.emplace_back(std::string(1, axis), dim(axis));
  extents.emplace_back("distance", 2 * distance + 1);
  return addArgument("relative_table", makeTensor(builder_.getContext(), extents, dtype_));
}

mlir::Value LayerBuilder::distanceTerm(const std::string &name, mlir::Value scores,
                                       mlir::Value table, const std::string &axes) {
  std::vector<int64_t> along;
  for (const char axis : axes) along.push_back(position(scores, axis));
  return append<RelativeBiasOp>(name, scores, table, along, position(scores, 'j'),
                                position(scores, 'k'), dim('l') / 2, true);
}

mlir::Value LayerBuilder::mask(const std::string &name, mlir::Value x) {
  mlir::Value seen = maskBlocks(maskPositions(name, x));
  if (specification_.documents)
    seen = MaskOp::document(builder_, named("in_document"), seen, position(x, queryAxis_),
                            position(x, 'k'), sharedIndices("segments", "bk"), position(x, 'b'));
  return padding(seen);
}

mlir::Value LayerBuilder::padding(mlir::Value x) {
  if (specification_.hasNewLengths)  // of queries: keys are those that the caches hold
    return MaskOp::padding(builder_, named("valid"), x, position(x, queryAxis_),
                           sharedIndices("new_lengths", "b"), position(x, 'b'));
  if (!specification_.padding) return x;
  return MaskOp::padding(builder_, named("padded"), x, position(x, 'k'), validLengths(),
                         position(x, 'b'));
}

mlir::Value LayerBuilder::validLengths() {
  if (!specification_.hasAttentionMask) return sharedIndices("lengths", "b");
  return shared("lengths", [&] {
    const mlir::Value mask = argumentOf("attention_mask", "bk", DType::i1);
    mlir::OpBuilder::InsertionGuard guard(builder_);
    builder_.setInsertionPointToStart(body_);  // layers and what packs them read it
    return append<LengthsOp>("lengths", mask);
  });
}

mlir::Value LayerBuilder::sharedIndices(const std::string &name, const std::string &axes) {
  return shared(name, [&] { return indices(name, axes); });
}

mlir::Value LayerBuilder::maskBlocks(mlir::Value x) {
  if (!specification_.blocks) return x;
  const std::string axes = hasAxis(x, 'r') ? "gr" : "h";
  std::vector<int64_t> heads;
  int64_t count = 1;
  for (const char axis : axes) heads.push_back(position(x, axis)), count *= dim(axis);
  const std::string text = blockMaskOf(*specification_.blocks, count, axes == "h" ? 1 : dim('r'),
                                       dim(queryAxis_), dim('k'));
  if (!BlockPattern::parse(text).isByHead) heads.clear();
  return MaskOp::byPattern(builder_, named("in_blocks"), x, position(x, queryAxis_),
                           position(x, 'k'), heads, text);
}

std::optional<int64_t> LayerBuilder::window() const {
  const std::vector<int64_t> &windows = specification_.layerWindows;
  if (layer_ == 0 || windows.empty()) return specification_.window;
  const int64_t own = windows[size_t(layer_ - 1) % windows.size()];
  return own > 0 ? std::optional(own) : std::nullopt;
}

mlir::Value LayerBuilder::maskPositions(const std::string &name, mlir::Value x) {
  const std::optional<int64_t> seen = window();
  if (!specification_.causal && !seen) return x;
  const int64_t query = position(x, queryAxis_), key = position(x, 'k');
  // A window that reaches from the last query to the first key, and where keys behind a query are
  // seen from the first query to the last key, excludes nothing that causality does not.
  const int64_t furthest = specification_.causal ? dim('k') : std::max(dim(queryAxis_), dim('k'));
  const bool isWindow = seen && *seen < furthest;
  if (!isWindow && !specification_.causal) return x;
  const int64_t left = isWindow ? *seen - 1 : 0;
  MaskOp mask = isWindow ? MaskOp::window(builder_, named(name), x, query, key, left,
                                          specification_.causal ? 0 : left,
                                          specification_.globalPositions ? dim('a') : 0)
                         : MaskOp::causal(builder_, named(name), x, query, key);
  if (specification_.cache) mask.setStarts(starts(), position(x, 'b'));
  return mask;
}

mlir::Value LayerBuilder::slice(const std::string &name, mlir::Value x, char axis, int64_t start,
                                char part) {
  const int64_t dimension = position(x, axis);
  const mlir::Value result = append<SliceOp>(name, x, dimension, start, dim(part));
  return renamed(result, dimension, part);
}

mlir::Value LayerBuilder::concat(const std::string &name, const std::vector<mlir::Value> &parts,
                                 char firstAxis, char axis) {
  const int64_t dimension = position(parts.front(), firstAxis);
  return renamed(append<ConcatOp>(name, mlir::ValueRange(parts), dimension), dimension, axis);
}

/// A result whose axis in this dimension has another name.
mlir::Value LayerBuilder::renamed(mlir::Value x, int64_t dimension, char axis) const {
  std::vector<std::pair<std::string, int64_t>> axes;
  const std::vector<std::string> names = axisNames(x.getType());
  const std::vector<int64_t> sizes = extents(x.getType());
  for (size_t index = 0; index < names.size(); ++index)
    axes.emplace_back(int64_t(index) == dimension ? std::string(1, axis) : names[index],
                      sizes[index]);
  x.setType(makeTensor(x.getContext(), axes, *toDType(x.getType())));
  return x;
}

mlir::Value LayerBuilder::splitAxis(const std::string &name, mlir::Value x, char axis,
                                    const std::string &parts) {
  std::vector<int64_t> sizes;
  for (char part : parts) sizes.push_back(dim(part));
  return append<SplitAxisOp>(name, x, position(x, axis), sizes, letters(parts));
}

mlir::Value LayerBuilder::mergeAxes(const std::string &name, mlir::Value x, char first,
                                    char merged) {
  return append<MergeAxesOp>(name, x, position(x, first), 2, llvm::StringRef(&merged, 1));
}

mlir::OwningOpRef<mlir::ModuleOp> LayerBuilder::finish(const std::vector<mlir::Value> &results) {
  ReturnOp::create(builder_, builder_.getUnknownLoc(), mlir::ValueRange(results));
  auto graph = mlir::cast<GraphOp>(body_->getParentOp());
  graph.setFunctionType(builder_.getFunctionType(body_->getArgumentTypes(),
                                                 mlir::TypeRange(mlir::ValueRange(results))));
  for (const auto &[argument, initial] : parameters_) {
    graph.setParameter(argument);
    graph.setInitialValue(argument, initial);
  }
  for (const auto &[argument, role] : roles_) graph.setTrainingRoleOfArgument(argument, role);
  for (const auto &[argument, layer] : layers_) weft::setLayer(graph, argument, layer);
  return std::move(module_);
}

}  // namespace weft::models
