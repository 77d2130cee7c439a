// Expressions of element-wise ops in CUDA C++; shared by loops, epilogues and prologues.
#pragma once

#include "kernel/Kernel.h"

#include <functional>
#include <map>
#include <string>

namespace weft::codegen {

/// Declares a constant of a kernel and gives its name: of type float, with the name it would like
/// and its value as a literal.
using DeclareConstant = std::function<std::string(const std::string &wish, const std::string &value)>;

/// A named constant for each attribute of the op that its expression reads: attribute -> name.
std::map<std::string, std::string> attributeConstants(const BodyOp &op,
                                                      const DeclareConstant &declare);

/// The expression with names for attributes, and for the op's operands and coordinates what these
/// give; both must bind as tightly as a name.
std::string expressionText(const Expression &expression,
                           const std::map<std::string, std::string> &attributes,
                           const std::function<std::string(int operand)> &operand,
                           const std::function<std::string(int axis)> &coordinate = {});

}  // namespace weft::codegen
