// Loads of what the prologue reads, and one loop over the eight elements with a statement an op.
#include "codegen/families/contraction/ContractionPrologue.h"

#include "codegen/ExpressionText.h"
#include "codegen/families/contraction/ContractionTexts.h"

#include <algorithm>

namespace weft::codegen {
namespace {

constexpr int64_t vectorElements = 8;

class PrologueBuilder {
public:
  explicit PrologueBuilder(const PrologueContext &context)
      : context(context), kernel(context.kernel), prologue(context.prologue) {
    x = context.names.reserve(kernel.values[size_t(prologue.read)].name + "_v");
    for (std::string *name : {&at, &e}) *name = context.names.reserve(*name);
    reference.resize(kernel.values.size());
    reference[size_t(prologue.read)] = element(x);
  }

  PrologueText run() {
    for (const PrologueInput &input : prologue.inputs) addInput(input);
    for (int op = 0; op < prologue.contraction; ++op) addOp(kernel.body[op]);
    elements.push_back(assign(element(x), reference[size_t(prologue.made)]));
    result.arguments =
        fmt::format("float (&{})[{}], const weft::OperandPlace &{}", x, vectorElements, at);
    result.body = std::move(loads);
    result.body.push_back(loop(e, std::to_string(vectorElements), 0, std::move(elements)));
    return std::move(result);
  }

private:
  std::string element(const std::string &of) const { return fmt::format("{}[{}]", of, e); }

  void addInput(const PrologueInput &input) {
    const Value &value = kernel.values[size_t(input.value)];
    const std::string name = context.names.reserve(value.name + "_v");
    reference[size_t(input.value)] = name;
    const std::string &pointer = context.inputs.at(input.input);
    const bool isScalar =
        !input.isOverBatch && !input.isOverOuter && !input.isOverK && input.subVector == 0;
    if (isScalar) {
      result.before.push_back(declareConstant(
          "float", name, fmt::format("weft::loadOne({})", pointer)));  // once, and early
      return;
    }
    const PrologueStrides strides =
        prologueStrides(kernel, context.configuration, prologue, input).value();
    const Layout &layout = context.configuration.inputs[input.input];
    StrideTexts text(kernel, input.value, layout, context.axes, pointer, context.names,
                     result.constants);
    std::string from = pointer;
    const auto addTerm = [&](const std::string &place, int64_t stride) {
      const ConstantValue spelled = text(stride);
      const bool isNumber =
          spelled.kind() == ConstantValue::Kind::number;  // of type int, as places are
      if (stride == 1) from += " + " + place;
      else
        from +=
            fmt::format(" + {} * {}",
                        isNumber ? fmt::format("weft::Offset({})", place) : asOperand(place).str(),
                        asOperand(spelled.str()));
    };
    const std::string outer =
        fmt::format("weft::insideOperand({}.outer, {})", at, context.outerExtent);
    const std::string k = fmt::format("weft::insideOperand({}.k, {})", at, context.kExtent);
    if (input.isOverBatch) addTerm(at + ".batch", strides.batch);
    if (input.subVector > 0) addTerm(fmt::format("{} / {}", k, input.subVector), strides.k);
    const bool runsAlong = context.isAlongK ? input.isOverK : input.isOverOuter;
    if (!runsAlong) {
      if (input.isOverOuter) addTerm(outer, strides.outer);
      if (input.isOverK) addTerm(k, strides.k);
      loads.push_back(declareConstant("float", name, fmt::format("weft::loadOne({})", from)));
      return;
    }
    const int64_t stride = context.isAlongK ? strides.k : strides.outer;
    const auto isWhole = [&](bool isOver, int64_t other) {
      return !isOver || other % vectorElements == 0;
    };
    const bool isPacked = stride == 1 && layout.alignment % 16 == 0 &&
                          isWhole(input.isOverBatch, strides.batch) &&
                          isWhole(input.subVector > 0, strides.k);
    loads.push_back(declareConstant(
        "auto", name,
        fmt::format("weft::alongOperand<{}, {}, {}>({}, {}.{})",
                    context.isAlongK ? context.kExtent : context.outerExtent, text(stride),
                    isPacked, from, at, context.isAlongK ? "k" : "outer")));
    reference[size_t(input.value)] = element(name + ".at");
  }

  void addOp(const BodyOp &op) {
    const std::string text = op.kind == OpKind::globalScaling
                                 ? fmt::format("{} * {}", operandText(op, 0), operandText(op, 1))
                                 : expression(op);
    const ValueId value = op.results[0];
    const std::string name = context.names.reserve(kernel.values[size_t(value)].name);
    elements.push_back(
        declareConstant("float", name, text, op.number >= 0 ? fmt::format("%{}", op.number) : ""));
    reference[size_t(value)] = name;
  }

  std::string expression(const BodyOp &op) {
    for (const std::string &header : op.expression.headers())
      if (std::ranges::find(result.headers, header) == result.headers.end())
        result.headers.push_back(header);
    const auto constants =
        attributeConstants(op, [&](const std::string &wish, const std::string &value) {
          const std::string name = context.names.reserve(wish);
          result.constants.push_back({"float", {{name, ConstantValue::text(value)}}, ""});
          return name;
        });
    return expressionText(op.expression, constants,
                          [&](int operand) { return operandText(op, operand); });
  }
  std::string operandText(const BodyOp &op, int operand) const {
    return asOperand(reference[size_t(op.operands[size_t(operand)])]);
  }

  const PrologueContext &context;
  const Kernel &kernel;
  const ContractionPrologue &prologue;
  std::vector<std::string> reference;  ///< per value: the expression that names an element of it
  std::string x, at = "at", e = "e";
  Block loads, elements;
  PrologueText result;
};

}  // namespace

PrologueText prologueText(const PrologueContext &context) { return PrologueBuilder(context).run(); }

}  // namespace weft::codegen
