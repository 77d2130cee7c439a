// Loads of what the epilogue reads, one loop over the eight elements with a statement an op, stores
// of further outputs, what is summed.
#include "codegen/families/contraction/ContractionEpilogue.h"

#include "codegen/ExpressionText.h"
#include "codegen/families/contraction/EpilogueLimits.h"
#include "kernel/Attributes.h"
#include "kernel/Error.h"
#include "kernel/MultiStrideGemm.h"
#include "kernel/ShortFunction.h"
#include "kernel/UnusedTokens.h"

#include <algorithm>
#include <cmath>

namespace weft::codegen {
namespace {

/// Whether two neighbouring elements at an even place are one access.
bool holdsPairs(const Kernel &kernel, ValueId value, const Layout &layout) {
  return layout.alignment % (2 * sizeOf(kernel.values[size_t(value)].dtype)) == 0;
}

/// The row or the column of the element of a loop.
struct ElementIndex {
  std::string name = {};
  std::set<const Block *> declaredIn = {};
};

class EpilogueBuilder {
public:
  explicit EpilogueBuilder(const EpilogueContext &context)
      : context(context),
        kernel(context.kernel),
        groups(groupsAsLaidOut(kernel, context.region, context.configuration.outputs[0])),
        strides(gemmOfResult(kernel, context.configuration).value_or(StridedBatchedGemm{})) {
    for (std::string *name : {&accumulators, &at, &e}) *name = context.names.reserve(*name);
    reference.resize(kernel.values.size());
  }

  ContractionEpilogue run() {
    reference[size_t(context.region.c)] = elementOfC();
    if (context.region.epilogue.empty() && context.region.reductions.empty() &&
        reference[size_t(context.region.c)] == element(accumulators)) {
      addBehind();
      return std::move(result);
    }
    std::string subtile, vector;
    for (const EpilogueInput &input : context.region.inputs) {
      if (context.subtileInput == input.input) subtile = addHandedOver(input);
      else if (context.vectorInput == input.input) vector = addHandedOver(input);
      else if (!isOfRotaryAlone(kernel, context.region, input.value)) addInput(input);
    }
    for (const OpId op : context.region.epilogue)
      if (context.region.rotary && op == context.region.rotary->op) addRotary(op);
      else addOp(op);
    addReductionOutputs();
    addOutputs();
    if (elements.empty() && context.region.rotary) {  // stored as it turns them
      addBehind();
      result.headers.assign(headers.begin(), headers.end());
      return std::move(result);
    }
    Block body = std::move(values);
    body.push_back(loop(e, std::to_string(count()), 0, std::move(elements)));
    body.insert(body.end(), stores.begin(), stores.end());
    const std::string taken = fmt::format("float (&{})[{}]", accumulators, count()),
                      place = fmt::format("const {} &{}", context.fragmentType, at);
    if (isSingleConsumer()) {
      const std::string epilogueOp = context.names.reserve("runEpilogue");
      body = {{.kind = Statement::Kind::function,
               .type = taken,
               .name = epilogueOp,
               .body = std::move(body)},
              evaluate("return " + epilogueOp)};
      if (!asking.empty()) loads.push_back(loop(e, std::to_string(count()), 0, std::move(asking)));
    }
    body.insert(body.begin(), loads.begin(), loads.end());
    result.arguments = isSingleConsumer() ? place
                                          : fmt::format("{}, {}{}{}{}{}", taken, subtile, vector,
                                                        second, summed, place);
    result.body = std::move(body);
    addBehind();
    result.headers.assign(headers.begin(), headers.end());
    return std::move(result);
  }

private:
  /// The function behind a local softmax.
  void addBehind() {
    const std::optional<EpilogueSoftmax> &softmax = context.region.softmax;
    if (!softmax || !softmax->dropped) return;
    for (Block *block : {&loads, &elements, &stores}) block->clear();
    elementRow = elementColumn = {};
    accumulators = context.names.reserve("exponentials");
    at = context.names.reserve("at");
    e = context.names.reserve("e");
    reference[size_t(kernel.body[softmax->op].results[0])] = element(accumulators);
    addOp(softmax->dropped->op);
    const size_t output = softmax->dropped->output;
    const ValueId kept = kernel.outputs[output];
    checkType(kept);
    if (!liesAsResult(kept, context.configuration.outputs[output]))
      throw Error::unsupported("kernel '{}': output '{}' does not lie as the first one does",
                               kernel.name, kernel.values[size_t(kept)].name);
    if (output == 0) elements.push_back(assign(element(accumulators), reference[size_t(kept)]));
    else addFragmentOutput(output, context.names.reserve(kernel.values[size_t(kept)].name + "_v"));
    Block body = std::move(loads);
    body.push_back(loop(e, "8", 0, std::move(elements)));
    body.insert(body.end(), stores.begin(), stores.end());
    result.argumentsBehind =
        fmt::format("{}float (&{})[8], const {} &{}", output == 0 ? "" : "const ", accumulators,
                    context.fragmentType, at);
    result.behind = std::move(body);
    result.headers.assign(headers.begin(), headers.end());
  }

  // --- coordinates ---

  bool isSingleConsumer() const { return context.accumulatorsOfThread > 0; }
  int count() const { return isSingleConsumer() ? context.accumulatorsOfThread : 8; }

  ContractionGroup rowGroup() const {
    return context.rowsAlongN != context.isTransposed ? nGroup : mGroup;
  }
  ContractionGroup columnGroup() const {
    return context.rowsAlongN != context.isTransposed ? mGroup : nGroup;
  }
  /// Of the GEMM that a fragment sees, or across where a single-consumer tile is transposed.
  std::string rows() const { return context.gemm + (context.isTransposed ? ".n" : ".m"); }
  std::string columns() const { return context.gemm + (context.isTransposed ? ".m" : ".n"); }

  int64_t extent(AxisId axis) const { return kernel.axes[size_t(axis)].extent; }

  /// Of which element a coordinate is, and how it is written.
  struct Of {
    Block *inside = nullptr;  ///< the element of this loop; none: the fragment's first element
    bool isNarrow = false;    ///< by divisions of 32 bits, which take half the instructions of 64
    bool isClamped = false;   ///< beyond the last row or column, that one
  };
  /// The coordinate along an axis of the result. Rows and columns are int.
  std::string coordinate(AxisId axis, const Of &of) {
    if (extent(axis) == 1) return "0";
    for (ContractionGroup group : {batchGroup, rowGroup(), columnGroup()}) {
      const std::vector<AxisId> &axes = groups[group];
      const auto found = std::ranges::find(axes, axis);
      if (found == axes.end()) continue;
      std::string text = group == batchGroup ? at + ".batch"
                         : of.inside         ? elementIndex(group, *of.inside)
                                             : at + (group == rowGroup() ? ".row" : ".column");
      if (of.isClamped && group != batchGroup)
        text =
            fmt::format("weft::atMost({}, {} - 1)", text, group == rowGroup() ? rows() : columns());
      std::vector<std::string> faster;
      for (auto other = found + 1; other != axes.end(); ++other)
        faster.push_back(context.axes[size_t(*other)]);
      const auto divisor = [&](const std::string &extents, bool isProduct) {
        return of.isNarrow ? fmt::format("int({})", extents)
               : isProduct ? fmt::format("({})", extents)
                           : extents;
      };
      if (!faster.empty())
        text = fmt::format("{} / {}", text,
                           divisor(fmt::format("{}", fmt::join(faster, " * ")), faster.size() > 1));
      if (found != axes.begin())
        text = fmt::format("{} % {}", text, divisor(context.axes[size_t(axis)], false));
      return text;
    }
    throw Error::checkFailed("kernel '{}': axis '{}' is none of the contraction's result",
                             kernel.name, kernel.axes[size_t(axis)].name);
  }

  /// "row": of the element of a loop, declared there at its first use.
  std::string elementIndex(ContractionGroup group, Block &inside) {
    const bool isRow = group == rowGroup();
    ElementIndex &index = isRow ? elementRow : elementColumn;
    const std::string_view member = isRow ? "row" : "column";
    if (index.name.empty()) index.name = context.names.reserve(std::string(member));
    if (index.declaredIn.insert(&inside).second)
      inside.insert(inside.begin(), declareConstant("int", index.name,
                                                    fmt::format("{}.{} + weft::{}InFragment({})",
                                                                at, member, member, e)));
    return index.name;
  }

  std::string element(const std::string &of) const { return fmt::format("{}[{}]", of, e); }

  // --- operands ---

  std::string elementOfC() {
    const double scale =
        attributeOr(kernel.body[context.region.contraction], attribute::scale, 1.0);
    return scale == 1.0 ? element(accumulators)
                        : fmt::format("{} * {}", element(accumulators),
                                      constant("float", "scale", floatLiteral(scale)));
  }

  std::string constant(const std::string &type, const std::string &wish, const std::string &value,
                       const std::string &note = "") {
    const auto [found, isNew] =
        constantNames.try_emplace(fmt::format("{} {} {}", type, wish, value));
    if (!isNew) return found->second;
    found->second = context.names.reserve(wish);
    result.constants.push_back({type, {{found->second, ConstantValue::text(value)}}, note});
    return found->second;
  }

  void checkType(ValueId value) const {
    const DType type = kernel.values[size_t(value)].dtype;
    if (type != DType::f32 && type != DType::f16 && type != DType::bf16)
      throw Error::unsupported(
          "kernel '{}': '{}' is {}; the epilogue of a contraction takes f32, f16 and bf16",
          kernel.name, kernel.values[size_t(value)].name, nameOf(type));
  }
  /// Lengths, which masks compare with coordinates (EpilogueLimits.h).
  bool isInteger(const EpilogueInput &input) const {
    return kernel.values[size_t(input.value)].dtype == DType::i32;
  }

  std::string addHandedOver(const EpilogueInput &input) {
    const std::string name = context.names.reserve(kernel.values[size_t(input.value)].name + "_v");
    reference[size_t(input.value)] = element(name);
    return fmt::format("const float (&{})[8], ", name);
  }

  void addInput(const EpilogueInput &input) {
    if (!isInteger(input)) checkType(input.value);
    if (input.role == EpilogueRole::gathered) return;  // loaded where an op reads it
    const std::string &pointer = context.inputs.at(input.input);
    const Value &value = kernel.values[size_t(input.value)];
    if (isSingleConsumer()) return addAsked(input, pointer);
    if (input.role == EpilogueRole::scalar) {
      const std::string name = context.names.reserve(value.name + "_v");
      result.prologue.push_back(declareConstant(
          typeOf(input), name,
          fmt::format("weft::loadOne({})", scalarPlace(input))));  // once, and early
      reference[size_t(input.value)] = name;
      if (const auto unused = unusedTokens(kernel); unused && unused->offsets == input.value)
        result.tokens = name;
      return;
    }
    if (isInteger(input) && isOfBatch(input)) return addOncePerFragment(input, pointer);
    const std::string load = loadText(input, pointer);
    if (load.empty()) return addElementwise(input, pointer);
    usesFragments();
    const std::string name = context.names.reserve(value.name + "_v");
    loads.push_back(declareConstant("auto", name, load));
    reference[size_t(input.value)] = element(name + ".at");
  }

  /// The address of the only element that the epilogue reads: of a mask of tokens the last offset.
  std::string scalarPlace(const EpilogueInput &input) const {
    const std::string &pointer = context.inputs.at(input.input);
    for (const OpId index : context.region.epilogue)
      if (const auto masked = maskedTokens(kernel, kernel.body[index]);
          masked && masked->offsets == input.value && masked->element > 0) {
        const auto stride =
            stridesByAxis(kernel, input.value, context.configuration.inputs[input.input]);
        const AxisId axis = kernel.values[size_t(input.value)].axes[0];
        return fmt::format("{} + {}", pointer, masked->element * stride.at(axis));
      }
    return pointer;
  }

  /// By a single-consumer tile, before it is multiplied.
  void addAsked(const EpilogueInput &input, const std::string &pointer) {
    const bool isOnce = isInteger(input) && isOfBatch(input);
    const std::string load = input.role == EpilogueRole::scalar
                                 ? fmt::format("weft::sm90::prefetchScalar({})", scalarPlace(input))
                             : isOnce ? fmt::format("weft::sm90::prefetchScalar({} + {})", pointer,
                                                    placeText(input, {.isNarrow = true}))
                                      : loadText(input, pointer);
    const std::string name = context.names.reserve(kernel.values[size_t(input.value)].name + "_v");
    reference[size_t(input.value)] = element(name);
    if (!load.empty()) {
      loads.push_back(declareConstant("auto", name, load));
      return;
    }
    const std::string place = placeText(input, {.inside = &asking, .isNarrow = isInteger(input)}),
                      row = elementIndex(rowGroup(), asking),
                      column = elementIndex(columnGroup(), asking);
    const std::string_view type = cudaNameOf(kernel.values[size_t(input.value)].dtype);
    loads.push_back(
        declare(fmt::format("weft::sm90::PrefetchedElements<{}, {}>", type, count()), name));
    asking.push_back(assign(fmt::format("{}.words[{}]", name, e),
                            fmt::format("{} < {} && {} < {} ? weft::sm90::issueLoad({} + {}) : 0",
                                        row, rows(), column, columns(), pointer, place)));
  }

  /// One load of the eight elements; empty where the operand does not lie so.
  std::string loadText(const EpilogueInput &input, const std::string &pointer) {
    const Layout &layout = context.configuration.inputs[input.input];
    if (input.role == EpilogueRole::result) {
      if (!liesAsResult(input.value, layout)) return "";
      return fmt::format("weft::{}<{}>({}, {})",
                         isSingleConsumer() ? "sm90::prefetchTile" : "loadFragment",
                         matrixArguments(input.value, layout), memberOf(pointer), at);
    }
    if (input.role == EpilogueRole::mixed || !isContiguous(kernel, groups, input, layout))
      return "";
    const bool isColumns = (input.role == EpilogueRole::n) == (columnGroup() == nGroup),
               isPaired = holdsPairs(kernel, input.value, layout);
    if (isSingleConsumer() && isColumns)
      return fmt::format("weft::sm90::prefetchColumns<{}, {}>({}, {})", columns(), isPaired,
                         pointer, at);
    if (isSingleConsumer())
      return fmt::format("weft::sm90::prefetchRows<{}>({}, {})", rows(), pointer, at);
    if (!isPaired || isInteger(input)) return "";
    return fmt::format("weft::fragment{}<{}.{}>({}, {})", isColumns ? "Columns" : "Rows",
                       context.gemm, isColumns ? "n" : "m", pointer, at);
  }

  std::string matrixArguments(ValueId value, const Layout &layout) const {
    const int64_t pitch = context.rowsAlongN ? strides.strideCn : strides.strideCm;
    const bool isPaired = holdsPairs(kernel, value, layout) && pitch % 2 == 0 &&
                          (strides.batch == 1 || strides.batchStrideC % 2 == 0);
    if (context.isTransposed)
      return fmt::format("{0}.n, {0}.m, 1, {0}.strideCm, false", context.gemm);
    if (isSingleConsumer())
      return fmt::format("{0}.m, {0}.n, {0}.strideCm, 1, {1}", context.gemm, isPaired);
    return fmt::format("{0}.m, {0}.n, {0}.strideCm, {1}", context.gemm, isPaired);
  }
  std::string memberOf(const std::string &pointer) const {
    return strides.batch == 1
               ? pointer
               : fmt::format("{} + {}.batch * {}.batchStrideC", pointer, at, context.gemm);
  }

  bool liesAsResult(ValueId value, const Layout &layout) const {
    return stridesByAxis(kernel, value, layout) ==
           stridesByAxis(kernel, kernel.outputs[0], context.configuration.outputs[0]);
  }
  /// The sum of coordinates times strides.
  std::string placeText(const EpilogueInput &input, const Of &of) {
    std::vector<std::string> terms;
    for (const auto &[axis, stride] :
         stridesByAxis(kernel, input.value, context.configuration.inputs[input.input])) {
      const std::string index = coordinate(axis, of);
      terms.push_back(stride == 1 ? asOperand(index).str()
                                  : fmt::format("weft::Offset({}) * {}", index, stride));
    }
    return terms.empty() ? "0" : fmt::format("{}", fmt::join(terms, " + "));
  }
  std::string typeOf(const EpilogueInput &input) const {
    return isInteger(input) ? "int" : "float";
  }
  /// Whether it has one element for each batch element of the GEMM, or for several.
  bool isOfBatch(const EpilogueInput &input) const {
    const std::vector<AxisId> &batch = groups[batchGroup];
    return std::ranges::all_of(kernel.values[size_t(input.value)].axes, [&](AxisId axis) {
      return extent(axis) == 1 || std::ranges::find(batch, axis) != batch.end();
    });
  }
  bool variesAlong(const EpilogueInput &input, ContractionGroup group) const {
    return std::ranges::any_of(kernel.values[size_t(input.value)].axes, [&](AxisId axis) {
      return extent(axis) > 1 && std::ranges::find(groups[group], axis) != groups[group].end();
    });
  }
  void addOncePerFragment(const EpilogueInput &input, const std::string &pointer) {
    usesFragments();
    const std::string name = context.names.reserve(kernel.values[size_t(input.value)].name + "_v");
    loads.push_back(declareConstant(
        typeOf(input), name,
        fmt::format("weft::loadOne({} + {})", pointer, placeText(input, {.isNarrow = true}))));
    reference[size_t(input.value)] = name;
  }
  /// Element by element; integers without a branch, as fragment.cuh loads: the branch takes
  /// registers.
  void addElementwise(const EpilogueInput &input, const std::string &pointer) {
    usesFragments();
    const std::string name = context.names.reserve(kernel.values[size_t(input.value)].name + "_v");
    reference[size_t(input.value)] = name;
    const Of of{.inside = &elements, .isNarrow = true, .isClamped = isInteger(input)};
    const std::string place = placeText(input, of);
    if (isInteger(input)) {
      elements.push_back(declareConstant(typeOf(input), name,
                                         fmt::format("weft::loadOne({} + {})", pointer, place)));
      return;
    }
    // Where rows or columns do not move it, one load serves them all, if no condition asks for
    // them.
    std::vector<std::string> inside;
    if (variesAlong(input, rowGroup()))
      inside.push_back(fmt::format("{} < {}", elementIndex(rowGroup(), elements), rows()));
    if (variesAlong(input, columnGroup()))
      inside.push_back(fmt::format("{} < {}", elementIndex(columnGroup(), elements), columns()));
    const std::string load = fmt::format("weft::loadOne({} + {})", pointer, place);
    elements.push_back(declareConstant(
        "float", name,
        inside.empty() ? load : fmt::format("{} ? {} : 0.0f", fmt::join(inside, " && "), load)));
  }

  // --- ops ---

  void addOp(OpId index) {
    const BodyOp &op = kernel.body[index];
    std::vector<std::string> operands;
    for (ValueId operand : op.operands) {
      const std::string &name = reference[size_t(operand)];
      operands.push_back(name.empty() ? "" : asOperand(name).str());
    }
    const ValueId value = op.results[0];
    const std::string text =
        op.kind == OpKind::dropout ? dropout(op, index, operands[0]) : expression(op, operands);
    const std::string name = context.names.reserve(kernel.values[size_t(value)].name);
    elements.push_back(
        declareConstant("float", name, text, op.number >= 0 ? fmt::format("%{}", op.number) : ""));
    reference[size_t(value)] = name;
  }

  /// What turns accumulators in front of everything else: an element of the result is then that of
  /// the operand, of which only masks of tokens may have been taken.
  void addRotary(OpId index) {
    const BodyOp &op = kernel.body[index];
    const RotatedPairs &rotary = context.region.rotary.value();
    reference[size_t(op.results[0])] = reference[size_t(op.operands[0])];
    headers.insert("weft/sm90_rotary.cuh");
    headers.merge(op.expression.headers());
    const std::string place = fmt::format("const {} &{}", context.fragmentType, at);
    std::string position = coordinate(rotary.position, {.isNarrow = true});
    if (op.operands.size() > 1) {
      const auto input =
          std::ranges::find(context.region.inputs, op.operands[1], &EpilogueInput::value);
      const bool isPacked =
          std::ranges::count(kernel.values[size_t(input->value)].axes, rotary.position) > 0;
      position = fmt::format("{} {} weft::loadOne({} + {})", asOperand(position).str(),
                             isPacked ? "-" : "+", context.inputs.at(input->input),
                             placeText(*input, {.isNarrow = true, .isClamped = true}));
    }
    addRotaryFunction("position", place, position,
                      op.number >= 0 ? fmt::format("%{}", op.number) : "");
    const std::string pair = context.names.reserve("pair");
    addRotaryFunction("frequency", "const int " + pair, frequencyText(op, pair));
    if (rotary.among < 0) {
      result.rotaryArguments += ", weft::sm90::AllHeads{}";
      return;
    }
    const std::string member = asOperand(coordinate(rotary.among, {.isNarrow = true})).str();
    addRotaryFunction("isRotated", place,
                      rotary.begin > 0
                          ? fmt::format("{0} >= {1} && {0} < {2}", member, rotary.begin, rotary.end)
                          : fmt::format("{} < {}", member, rotary.end));
  }

  void addRotaryFunction(const std::string &wish, const std::string &arguments,
                         const std::string &value, const std::string &note = "") {
    const std::string name = context.names.reserve(wish);
    Statement statement = evaluate("return " + value);
    statement.note = note;
    result.rotaryFunctions.push_back(
        {.kind = Statement::Kind::function, .type = arguments, .name = name, .body = {statement}});
    result.rotaryArguments += (result.rotaryArguments.empty() ? "" : ", ") + name;
  }

  /// The frequency of a pair as the op's expression has it.
  std::string frequencyText(const BodyOp &op, const std::string &pair) {
    using Kind = ExpressionNode::Kind;
    const Expression &expression = op.expression;
    int frequency = -1, place = -1, exponent = -1;
    for (int node = 0; node <= expression.root(); ++node) {
      const ExpressionNode &own = expression[node];
      if (own.kind == Kind::call && own.function->result == ScalarType::rotation)
        frequency = own.children[1];
      if (own.calls(DeviceFunctionId::rotaryFrequency) ||
          own.calls(DeviceFunctionId::scaledFrequency))
        place = own.children[0], exponent = own.children[1];
    }
    const std::string scale =
        constant("float", "frequencyScale", floatLiteral(expression[exponent].value).str(),
                 fmt::format("-2 log2({}) / {}", attributeOr(op, attribute::base, 10000.0),
                             context.region.rotary->turned));
    return codeOf(expression, frequency,
                  [&](int node) -> std::optional<Code> {
                    if (node == place) return Code(pair);
                    if (node == exponent) return Code(scale);
                    return std::nullopt;
                  })
        .str();
  }

  std::string expression(const BodyOp &op, const std::vector<std::string> &operands) {
    const Expression expression =
        isTokenMask(op) ? maskByCount(op) : shortExpression(kernel, op).value_or(op.expression);
    headers.merge(expression.headers());
    const auto constants =
        attributeConstants(op, [&](const std::string &wish, const std::string &value) {
          return constant("float", wish, value);
        });
    using Kind = ExpressionNode::Kind;
    return codeOf(expression, expression.root(),
                  [&](int index) -> std::optional<Code> {
                    const ExpressionNode &node = expression[index];
                    if (node.kind == Kind::operand && !node.children.empty())
                      return gathered(op, expression, node);
                    if (node.kind == Kind::operand) return operands[size_t(node.index)];
                    if (node.kind == Kind::attribute) return constants.at(node.name);
                    if (node.kind == Kind::coordinate)
                      return asOperand(
                          coordinate(node.index, {.inside = &elements, .isNarrow = true}));
                    return std::nullopt;
                  })
        .str();
  }

  /// The name of an element that lies where the op computes it, loaded in front of the op. Beyond
  /// the last row or column it is that of the last one, so that no load leaves the tensor.
  std::string gathered(const BodyOp &op, const Expression &expression, const ExpressionNode &node) {
    const ValueId value = op.operands[size_t(node.index)];
    const auto input = std::ranges::find(context.region.inputs, value, &EpilogueInput::value);
    std::vector<int64_t> extents;
    for (const AxisId axis : kernel.values[size_t(value)].axes) extents.push_back(extent(axis));
    const std::vector<int64_t> strides =
        stridesOf(context.configuration.inputs[input->input], extents);
    std::string place = context.inputs.at(input->input);
    for (size_t d = 0; d < strides.size(); ++d) {
      if (extent(kernel.values[size_t(value)].axes[d]) == 1) continue;
      const Code index =
          codeOf(expression, node.children[d], [&](int inner) -> std::optional<Code> {
            if (expression[inner].kind != ExpressionNode::Kind::coordinate) return std::nullopt;
            return asOperand(
                coordinate(expression[inner].index,
                           {.inside = &elements, .isNarrow = true, .isClamped = true}));
          });
      place += strides[d] == 1 ? fmt::format(" + {}", asOperand(index.str()).str())
                               : fmt::format(" + weft::Offset({}) * {}", index.str(), strides[d]);
    }
    usesFragments();
    const std::string name = context.names.reserve(kernel.values[size_t(value)].name + "_v");
    elements.push_back(
        declareConstant(typeOf(*input), name, fmt::format("weft::loadOne({})", place)));
    return name;
  }

  std::string argument(Parameter::Kind kind, size_t op) {
    const std::string name = context.names.reserve(std::string(nameOf(kind)));
    result.parameters.push_back({.kind = kind, .index = int(op), .name = name, .type = "unsigned"});
    return name;
  }

  /// The bits that SPEC.md fixes for the logical coordinates of the op's result: one mix of words
  /// for the eight elements where the last two logical axes are the fastest of the fragment's
  /// columns and rows, two where they are so in the other order, else one an element.
  std::string dropout(const BodyOp &op, OpId index, const std::string &x) {
    headers.insert("weft/dropout.cuh");
    if (key.empty()) {
      const std::string pointer = context.names.reserve("dropoutKey");
      key = context.names.reserve("key");
      result.parameters.push_back({.kind = Parameter::Kind::dropoutKey,
                                   .index = 0,
                                   .name = pointer,
                                   .type = "weft::DropoutKey"});
      result.prologue.push_back(declareConstant("weft::DropoutKey", key, "*" + pointer,
                                                "seed and step: a replay must not repeat masks"));
    }
    const double p = attributeOf(op, attribute::p);
    const std::string stream = argument(Parameter::Kind::dropoutStream, index);
    const std::string threshold =
        constant("unsigned", "dropThreshold", fmt::format("{}u", std::llround(p * 65536)),
                 fmt::format("{} of 65536 draws", p));
    const std::string scale = keepScale(p);
    const std::vector<AxisId> &own = kernel.values[size_t(op.results[0])].axes;
    const bool isStraight = isFragmentOf(own, rowGroup(), columnGroup()),
               isWhole = isStraight || isFragmentOf(own, columnGroup(), rowGroup());
    Block *inside = isWhole ? nullptr : &elements;
    const auto indexOf = [&](size_t fromEnd) {
      return own.size() >= fromEnd ? coordinate(own[own.size() - fromEnd], {.inside = inside})
                                   : std::string("0");
    };
    const std::string column = indexOf(1), row = indexOf(2);
    std::string outer = outerText(own, inside);
    if (hasAttribute(op, attribute::outer))  // the rows before this part of an outer axis
      outer = (outer == "0" ? "" : outer + " + ") + argument(Parameter::Kind::dropoutOuter, index);
    const std::string place =
        fmt::format("{}, {}, {}, {}, {}, {}", key, stream, outer, row, column, threshold);
    if (!isWhole) return fmt::format("(weft::kept({}) ? {} : 0.0f) * {}", place, x, scale);
    const std::string kept = context.names.reserve("kept");
    loads.push_back(declareConstant(
        "auto", kept,
        fmt::format("weft::kept{}Fragment({})", isStraight ? "" : "Transposed", place)));
    return fmt::format("({}.at({}) ? {} : 0.0f) * {}", kept, e, x, scale);
  }

  /// The factor is applied after the selection of kept elements, so that a following addition fuses
  /// with the multiplication. The compiler would move a constant before the selection.
  std::string keepScale(double p) {
    const std::string value =
        constant("float", "keepScale", floatLiteral(p < 1 ? 1.0 / (1.0 - p) : 0.0));
    const auto [found, isNew] = keepScales.try_emplace(value);
    if (!isNew) return found->second;
    found->second = context.names.reserve("scaleOfKept");
    result.prologue.push_back(
        declareConstant("float", found->second, fmt::format("weft::opaque({})", value)));
    return found->second;
  }

  std::string outerText(const std::vector<AxisId> &own, Block *inside) {
    std::string outer = "0";
    for (size_t i = 0; i + 2 < own.size(); ++i) {
      if (extent(own[i]) == 1) continue;
      const std::string text = coordinate(own[i], {.inside = inside});
      outer = outer == "0" ? text
                           : fmt::format("{} * {} + {}", asOperand(outer),
                                         context.axes[size_t(own[i])], asOperand(text));
    }
    return outer;
  }

  /// Whether blocks of 16 x 16 of the fragments are blocks of the last two logical axes, which run
  /// along these groups.
  bool isFragmentOf(const std::vector<AxisId> &own, ContractionGroup rows,
                    ContractionGroup columns) const {
    return drawsByFragment(kernel, own, groups[rows], groups[columns]);
  }

  // --- outputs ---

  /// Whole fragments are loaded or stored here, not by the kernel template.
  void usesFragments() {
    headers.insert("weft/fragment.cuh");
    result.accessesMemory = true;
  }

  void addOutputs() {
    for (size_t output = 1; output < kernel.outputs.size(); ++output) {
      const ValueId value = kernel.outputs[output];
      checkType(value);
      if (!context.region.isWhole(output)) continue;
      if (const auto &softmax = context.region.softmax;
          softmax && softmax->dropped && softmax->dropped->output == output)
        continue;  // addBehind() stores it
      if (!liesAsResult(value, context.configuration.outputs[output]))
        throw Error::unsupported("kernel '{}': output '{}' does not lie as the first one does",
                                 kernel.name, kernel.values[size_t(value)].name);
      const std::string name = context.names.reserve(kernel.values[size_t(value)].name + "_v");
      if (output == context.subtileOutput) {
        second = fmt::format("float (&{})[8], ", name);
        elements.push_back(assign(element(name), reference[size_t(value)]));
        continue;
      }
      if (isSingleConsumer()) {
        const std::string arguments = matrixArguments(value, context.configuration.outputs[output]),
                          to = memberOf(context.outputs.at(output));
        values.push_back(declare("float", fmt::format("{}[{}]", name, count())));
        elements.push_back(assign(element(name), reference[size_t(value)]));
        stores.push_back(evaluate(
            fmt::format("weft::sm90::storeTileElements<{}>({}, {}, {})", arguments, to, name, at)));
        continue;
      }
      addFragmentOutput(output, name);
    }
    checkType(kernel.outputs[0]);
    const int end = context.region.softmax ? context.region.softmax->value : kernel.outputs[0];
    const std::string &first = reference[size_t(end)];
    if (first != element(accumulators)) elements.push_back(assign(element(accumulators), first));
  }

  /// An output of C's shape that the function itself stores.
  void addFragmentOutput(size_t output, const std::string &name) {
    const ValueId value = kernel.outputs[output];
    usesFragments();
    loads.push_back(declare("weft::Vec<float, 8>", name));
    elements.push_back(assign(element(name + ".at"), reference[size_t(value)]));
    stores.push_back(
        evaluate(fmt::format("weft::storeFragment<{}>({}, {}, {})",
                             matrixArguments(value, context.configuration.outputs[output]),
                             memberOf(context.outputs.at(output)), name, at)));
  }

  /// What the kernel template adds up, while the GEMM's accumulators are in their place.
  void addReductionOutputs() {
    if (context.region.reductions.empty()) return;
    const std::string name = context.names.reserve("summed");
    summed = fmt::format("float (&{})[{}][8], ", name, context.region.reductions.size());
    for (size_t sum = 0; sum < context.region.reductions.size(); ++sum) {
      const int value = context.region.reductions[sum].value;
      elements.push_back(
          assign(element(fmt::format("{}[{}]", name, sum)), reference[size_t(value)]));
    }
  }

  const EpilogueContext &context;
  const Kernel &kernel;
  ContractionGroups groups;
  const StridedBatchedGemm strides;
  std::vector<std::string> reference;  ///< per value: the expression that names an element of it
  std::string accumulators = "accumulators", at = "at", e = "e", key, second, summed;
  ElementIndex elementRow, elementColumn;
  std::map<std::string, std::string> constantNames, keepScales;
  std::set<std::string> headers;
  Block loads, asking, values, elements, stores;  ///< asking, values: of single-consumer tiles
  ContractionEpilogue result;
};

}  // namespace

ContractionEpilogue contractionEpilogue(const EpilogueContext &context) {
  return EpilogueBuilder(context).run();
}

std::optional<VectorInput> vectorInputOf(const Kernel &kernel, const Configuration &configuration,
                                         const ContractionRegion &region, bool rowsAlongN) {
  const ContractionGroups groups = groupsAsLaidOut(kernel, region, configuration.outputs[0]);
  for (const EpilogueInput &input : region.inputs) {
    const Layout &layout = configuration.inputs[input.input];
    if ((input.role != EpilogueRole::m && input.role != EpilogueRole::n) ||
        sizeOf(kernel.values[size_t(input.value)].dtype) != 2 ||
        !isContiguous(kernel, groups, input, layout))
      continue;
    const bool isOfRows = (input.role == EpilogueRole::n) == rowsAlongN;
    if (isOfRows || holdsPairs(kernel, input.value, layout))
      return VectorInput{.input = input.input, .isOfRows = isOfRows};
  }
  return std::nullopt;
}

std::optional<size_t> subtileOutputOf(const Kernel &kernel, const ContractionRegion &region) {
  if (region.softmax) return std::nullopt;  // what follows that is stored fragment by fragment
  for (size_t output = 1; output < kernel.outputs.size(); ++output)
    if (region.isWhole(output) && kernel.values[size_t(kernel.outputs[output])].dtype ==
                                      kernel.values[size_t(kernel.outputs[0])].dtype)
      return output;
  return std::nullopt;
}

std::optional<size_t> subtileInputOf(const Kernel &kernel, const ContractionRegion &region) {
  const DType type = kernel.values[size_t(kernel.outputs[0])].dtype;
  for (const EpilogueInput &input : region.inputs)
    if (input.role == EpilogueRole::result && kernel.values[size_t(input.value)].dtype == type)
      return input.input;
  return std::nullopt;
}

}  // namespace weft::codegen
