// The value of a constant of a kernel's text: an expression over constants before it, or a list of
// members. It prints as C++ (code), and launch checks evaluate it (codegen/ConstantChecks.h).
//
//   ConstantValue::name("b") * ConstantValue::name("j")                    b * j
//   ConstantValue::members({{"m", 64}, {"usesTma", ConstantValue::truth(true)}})
//                                                        {.m = 64, .usesTma = true}
//
// Invariant: what code() says is what the expression is; nothing reads a value from text.
#pragma once

#include "codegen/Code.h"

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft::codegen {

struct ConstantMember;

class ConstantValue {
public:
  enum class Kind : uint8_t {
    text,  ///< any other expression: a floating-point number, a name of device code
    number,
    truth,
    name,    ///< a constant before this one
    offset,  ///< weft::Offset(x): the product that it begins is of 64 bits
    group,   ///< (x), also where no precedence asks for parentheses
    sum,
    difference,
    product,
    quotient,
    list
  };

  template <std::integral Number>
  requires(!std::same_as<Number, bool>) ConstantValue(Number number)
      : ConstantValue(Kind::number, int64_t(number), Code::plain(std::to_string(number))) {}
  static ConstantValue text(Code text);
  static ConstantValue truth(bool value);
  static ConstantValue name(const std::string &name);
  static ConstantValue offset(const ConstantValue &value);
  static ConstantValue group(const ConstantValue &value);
  static ConstantValue members(std::vector<ConstantMember> members);
  static ConstantValue items(const std::vector<ConstantValue> &items);
  /// 1 without factors.
  static ConstantValue product(const std::vector<ConstantValue> &factors);

  friend ConstantValue operator+(const ConstantValue &left, const ConstantValue &right);
  friend ConstantValue operator-(const ConstantValue &left, const ConstantValue &right);
  friend ConstantValue operator*(const ConstantValue &left, const ConstantValue &right);
  friend ConstantValue operator/(const ConstantValue &left, const ConstantValue &right);

  Kind kind() const { return own; }
  const Code &code() const { return printed; }
  const std::string &str() const { return printed.str(); }
  /// Of a list; the names of items that have none are empty.
  const std::vector<ConstantMember> &list() const { return parts; }
  /// What the expression is where `known` names have values; nothing where it is no integer or
  /// truth value, names others, or divides by zero.
  std::optional<int64_t> evaluate(const std::map<std::string, int64_t, std::less<>> &known) const;

  bool operator==(const ConstantValue &other) const { return printed == other.printed; }

private:
  ConstantValue(Kind kind, int64_t value, Code code);
  static ConstantValue operation(Kind kind, const ConstantValue &left, const ConstantValue &right);
  int precedence() const;

  Kind own;
  int64_t value = 0;
  std::vector<ConstantMember> parts;  ///< operands, or what a list has
  Code printed;
};

struct ConstantMember {
  std::string name;
  ConstantValue value;
  bool isOnNextLine = false;
};

}  // namespace weft::codegen

template <>
struct fmt::formatter<weft::codegen::ConstantValue> : fmt::formatter<weft::codegen::Code> {
  template <typename Context>
  auto format(const weft::codegen::ConstantValue &value, Context &context) const {
    return fmt::formatter<weft::codegen::Code>::format(value.code(), context);
  }
};
