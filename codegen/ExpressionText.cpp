// Names and texts in the place of an expression's leaves; see ExpressionText.h.
#include "codegen/ExpressionText.h"

#include "kernel/Attributes.h"
#include "kernel/BlockMask.h"

namespace weft::codegen {

Code floatLiteral(double value) {
  if (std::isinf(value)) return value > 0 ? "-weft::negativeInfinity" : "weft::negativeInfinity";
  std::string text = fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return Code::plain(text + "f");
}

std::map<std::string, Code> attributeConstants(const BodyOp &op, const DeclareConstant &declare) {
  std::map<std::string, Code> names;
  for (const auto &[attribute, value] : op.attributes) {
    if (!op.expression.usesAttribute(attribute)) continue;
    const auto *pattern = std::get_if<std::string>(&value);
    names[attribute] = pattern ? Code::name(blockTableName(*pattern))
                               : declare(attribute, floatLiteral(numberNamed(op, attribute)));
  }
  return names;
}

Code codeOf(const Expression &expression, int node, const ReplaceNode &replace) {
  std::vector<Code> pieces;
  std::string text = expression.textOf(node, [&](int index) -> std::optional<std::string> {
    const std::optional<Code> piece = replace(index);
    if (!piece) return std::nullopt;
    pieces.push_back(*piece);
    return piece->str();
  });
  std::vector<const Code *> parts;
  for (const Code &piece : pieces) parts.push_back(&piece);
  return Code::composed(std::move(text), parts);
}

Code expressionText(const Expression &expression, const std::map<std::string, Code> &attributes,
                    const std::function<Code(int operand)> &operand,
                    const std::function<Code(AxisId axis)> &coordinate) {
  using Kind = ExpressionNode::Kind;
  return codeOf(expression, expression.root(), [&](int index) -> std::optional<Code> {
    const ExpressionNode &node = expression[index];
    if (node.kind == Kind::operand && node.children.empty()) return operand(node.index);
    if (node.kind == Kind::attribute) return attributes.at(node.name);
    if (node.kind == Kind::coordinate && coordinate) return coordinate(node.index);
    return std::nullopt;
  });
}

}  // namespace weft::codegen
