// Printing and evaluation of constants; see ConstantValue.h.
#include "codegen/ConstantValue.h"

#include "kernel/Error.h"

namespace weft::codegen {
namespace {

const char *symbolOf(ConstantValue::Kind kind) {
  using Kind = ConstantValue::Kind;
  switch (kind) {
    case Kind::sum: return "+";
    case Kind::difference: return "-";
    case Kind::product: return "*";
    case Kind::quotient: return "/";
    default: throw Error::checkFailed("no operation of constants");
  }
}

}  // namespace

ConstantValue::ConstantValue(Kind kind, int64_t value, Code code)
    : own(kind), value(value), printed(std::move(code)) {}

ConstantValue ConstantValue::text(Code text) { return {Kind::text, 0, std::move(text)}; }

ConstantValue ConstantValue::truth(bool value) {
  return {Kind::truth, value, Code::plain(value ? "true" : "false")};
}

ConstantValue ConstantValue::name(const std::string &name) {
  return {Kind::name, 0, Code::name(name)};
}

ConstantValue ConstantValue::offset(const ConstantValue &value) {
  ConstantValue result(Kind::offset, 0, codegen::code("weft::Offset({})", value.printed));
  result.parts = {{"", value}};
  return result;
}

ConstantValue ConstantValue::group(const ConstantValue &value) {
  ConstantValue result(Kind::group, 0, codegen::code("({})", value.printed));
  result.parts = {{"", value}};
  return result;
}

ConstantValue ConstantValue::members(std::vector<ConstantMember> members) {
  Code text = Code::plain("{");
  bool isFirst = true;
  for (const ConstantMember &member : members) {
    text += Code::plain(isFirst ? "" : member.isOnNextLine ? "," : ", ");
    if (member.isOnNextLine) text += Code::plain("\n    ");
    if (!member.name.empty()) text += Code::plain(fmt::format(".{} = ", member.name));
    text += member.value.printed;
    isFirst = false;
  }
  ConstantValue result(Kind::list, 0, text + Code::plain("}"));
  result.parts = std::move(members);
  return result;
}

ConstantValue ConstantValue::items(const std::vector<ConstantValue> &items) {
  std::vector<ConstantMember> unnamed;
  for (const ConstantValue &item : items) unnamed.push_back({"", item});
  return members(std::move(unnamed));
}

ConstantValue ConstantValue::product(const std::vector<ConstantValue> &factors) {
  if (factors.empty()) return 1;
  ConstantValue result = factors.front();
  for (size_t n = 1; n < factors.size(); ++n) result = result * factors[n];
  return result;
}

int ConstantValue::precedence() const {
  switch (own) {
    case Kind::sum:
    case Kind::difference: return 0;
    case Kind::product:
    case Kind::quotient: return 1;
    default: return 2;
  }
}

ConstantValue ConstantValue::operation(Kind kind, const ConstantValue &left,
                                       const ConstantValue &right) {
  ConstantValue result(kind, 0, {});
  const bool wrapsLeft = left.precedence() < result.precedence(),
             wrapsRight = right.precedence() <= result.precedence();
  const ConstantValue first = wrapsLeft ? group(left) : left,
                      second = wrapsRight ? group(right) : right;
  result.printed = codegen::code("{} {} {}", first.printed, symbolOf(kind), second.printed);
  result.parts = {{"", first}, {"", second}};
  return result;
}

ConstantValue operator+(const ConstantValue &left, const ConstantValue &right) {
  return ConstantValue::operation(ConstantValue::Kind::sum, left, right);
}
ConstantValue operator-(const ConstantValue &left, const ConstantValue &right) {
  return ConstantValue::operation(ConstantValue::Kind::difference, left, right);
}
ConstantValue operator*(const ConstantValue &left, const ConstantValue &right) {
  return ConstantValue::operation(ConstantValue::Kind::product, left, right);
}
ConstantValue operator/(const ConstantValue &left, const ConstantValue &right) {
  return ConstantValue::operation(ConstantValue::Kind::quotient, left, right);
}

std::optional<int64_t> ConstantValue::evaluate(
    const std::map<std::string, int64_t, std::less<>> &known) const {
  const auto operand = [&](size_t n) { return parts[n].value.evaluate(known); };
  switch (own) {
    case Kind::text:
    case Kind::list: return std::nullopt;
    case Kind::number:
    case Kind::truth: return value;
    case Kind::name: {
      const auto found = known.find(str());
      return found == known.end() ? std::nullopt : std::optional(found->second);
    }
    case Kind::offset:
    case Kind::group: return operand(0);
    default: break;
  }
  const std::optional<int64_t> left = operand(0), right = operand(1);
  if (!left || !right || (own == Kind::quotient && *right == 0)) return std::nullopt;
  switch (own) {
    case Kind::sum: return *left + *right;
    case Kind::difference: return *left - *right;
    case Kind::product: return *left * *right;
    default: return *left / *right;
  }
}

}  // namespace weft::codegen
