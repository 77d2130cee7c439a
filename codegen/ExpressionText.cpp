// Names and texts in the place of an expression's leaves; see ExpressionText.h.
#include "codegen/ExpressionText.h"

#include "codegen/LoopOps.h"

namespace weft::codegen {

std::map<std::string, std::string> attributeConstants(const BodyOp &op,
                                                      const DeclareConstant &declare) {
  std::map<std::string, std::string> names;
  for (const auto &[attribute, value] : op.attributes)
    if (op.expression.usesAttribute(attribute))
      names[attribute] = declare(attribute, floatLiteral(numberOf(op, attribute)));
  return names;
}

std::string expressionText(const Expression &expression,
                           const std::map<std::string, std::string> &attributes,
                           const std::function<std::string(int operand)> &operand,
                           const std::function<std::string(int axis)> &coordinate) {
  using Kind = ExpressionNode::Kind;
  return expression.text([&](int index) -> std::optional<std::string> {
    const ExpressionNode &node = expression[index];
    if (node.kind == Kind::operand && node.children.empty()) return operand(node.index);
    if (node.kind == Kind::attribute) return attributes.at(node.name);
    if (node.kind == Kind::coordinate && coordinate) return coordinate(node.index);
    return std::nullopt;
  });
}

}  // namespace weft::codegen
