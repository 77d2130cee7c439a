// Expressions of element-wise ops in CUDA C++; shared by loops, epilogues and prologues.
#pragma once

#include "codegen/Code.h"
#include "kernel/Kernel.h"

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace weft::codegen {

/// The nearest float as a literal.
Code floatLiteral(double value);

/// Declares a constant of a kernel and gives its name: of type float, with the name it would like
/// and its value as a literal.
using DeclareConstant = std::function<Code(const std::string &wish, const Code &value)>;

/// A named constant for each attribute of the op that its expression reads: attribute -> name. A
/// pattern of blocks has the name of its table, which emit() declares.
std::map<std::string, Code> attributeConstants(const BodyOp &op, const DeclareConstant &declare);

/// The expression with names for attributes, and for the op's operands and coordinates what these
/// give; both must bind as tightly as a name.
Code expressionText(const Expression &expression, const std::map<std::string, Code> &attributes,
                    const std::function<Code(int operand)> &operand,
                    const std::function<Code(AxisId axis)> &coordinate = {});

/// What replaces a node and all below it, which must bind as tightly as a name; nothing: it is
/// printed as it is.
using ReplaceNode = std::function<std::optional<Code>(int node)>;
/// One node of an expression and what is below it, with the names of all that replaces nodes.
Code codeOf(const Expression &expression, int node, const ReplaceNode &replace);

}  // namespace weft::codegen
