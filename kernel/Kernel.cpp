// Questions about the canonical kernel, its invariants, and its text: the one spelling that caches
// and profiles key on.
#include "kernel/Kernel.h"

#include "kernel/Append.h"
#include "kernel/Attributes.h"
#include "kernel/CanonicalNames.h"
#include "kernel/Error.h"

#include <algorithm>
#include <set>

namespace weft {

std::string_view nameOf(OperatorClass operatorClass) {
  switch (operatorClass) {
    case OperatorClass::contraction: return "contraction";
    case OperatorClass::normalization: return "normalization";
    case OperatorClass::elementwise: return "elementwise";
    case OperatorClass::movement: return "movement";
  }
  return "";
}

OperatorClass Kernel::operatorClass() const {
  const auto any = [&](auto &&holds) { return std::any_of(body.begin(), body.end(), holds); };
  if (any([](const BodyOp &op) { return op.operatorClass == OperatorClass::contraction; }))
    return OperatorClass::contraction;
  if (any([](const BodyOp &op) {
        return !op.reducedAxes.empty() || op.operatorClass == OperatorClass::normalization;
      }))
    return OperatorClass::normalization;
  if (any([](const BodyOp &op) { return op.operatorClass == OperatorClass::elementwise; }))
    return OperatorClass::elementwise;
  return OperatorClass::movement;
}

double Kernel::flop() const {
  double sum = 0;
  for (const BodyOp &op : body) sum += op.flop;
  return sum;
}

int64_t Kernel::elements(ValueId value) const {
  int64_t product = 1;
  for (AxisId axis : values[value].axes) product *= axes[axis].extent;
  return product;
}

int64_t Kernel::bytes(ValueId value) const { return elements(value) * sizeOf(values[value].dtype); }

std::vector<int64_t> extentsOf(const Kernel &kernel, ValueId value) {
  std::vector<int64_t> extents;
  for (AxisId axis : kernel.values[value].axes) extents.push_back(kernel.axes[axis].extent);
  return extents;
}

int64_t Kernel::necessaryBytes() const {
  int64_t sum = 0;
  for (ValueId value : inputs) sum += movedElements(*this, value) * sizeOf(values[value].dtype);
  for (ValueId value : outputs) sum += movedElements(*this, value) * sizeOf(values[value].dtype);
  return sum;
}

std::vector<AxisId> Kernel::reducedAxes() const {
  std::set<AxisId> reduced;
  for (const BodyOp &op : body) reduced.insert(op.reducedAxes.begin(), op.reducedAxes.end());
  return {reduced.begin(), reduced.end()};
}

namespace {

/// verify() in pieces; each throws at the first broken invariant.
class Verifier {
public:
  explicit Verifier(const Kernel &kernel) : kernel(kernel) {}

  void run() {
    checkAxes();
    checkValues();
    checkInputs();
    for (const BodyOp &op : kernel.body) checkOp(op);
    if (defined != kernel.values.size())
      throw broken("value '{}' has no defining op", kernel.values[defined].name);
    checkOutputs();
  }

private:
  template <typename... Arguments>
  Error broken(fmt::format_string<Arguments...> text, Arguments &&...arguments) const {
    return Error::checkFailed("kernel '{}': {}", kernel.name,
                              fmt::format(text, std::forward<Arguments>(arguments)...));
  }

  void checkAxes() const {
    std::set<std::string> names;
    for (const Axis &axis : kernel.axes) {
      if (axis.extent < 1)
        throw broken("axis '{}' has extent {}, which must be at least 1", axis.name, axis.extent);
      if (!names.insert(axis.name).second) throw broken("two axes are called '{}'", axis.name);
    }
  }

  bool isAxis(AxisId axis) const {
    return axis >= 0 && axis < static_cast<int>(kernel.axes.size());
  }
  bool isDefined(ValueId value) const { return value >= 0 && value < static_cast<int>(defined); }

  void checkValues() const {
    std::set<std::string> names;
    for (const Value &value : kernel.values) {
      if (!names.insert(value.name).second) throw broken("two values are called '{}'", value.name);
      const std::set<AxisId> distinct(value.axes.begin(), value.axes.end());
      if (distinct.size() != value.axes.size())
        throw broken("value '{}' has one axis twice", value.name);
      for (AxisId axis : value.axes)
        if (!isAxis(axis))
          throw broken("value '{}' names axis {} of {}", value.name, axis, kernel.axes.size());
    }
  }

  void checkInputs() {
    for (size_t i = 0; i < kernel.inputs.size(); ++i)
      if (kernel.inputs[i] != static_cast<int>(i) || i >= kernel.values.size())
        throw broken("input {} is value {}; values are numbered inputs first", i, kernel.inputs[i]);
    defined = kernel.inputs.size();
  }

  void checkOp(const BodyOp &op) {
    for (ValueId operand : op.operands)
      if (!isDefined(operand))
        throw broken("op '{}' reads value {} before its definition", nameOf(op.kind), operand);
    for (AxisId axis : op.reducedAxes)
      if (!isAxis(axis))
        throw broken("op '{}' reduces axis {} of {}", nameOf(op.kind), axis, kernel.axes.size());
    if (op.results.empty()) throw broken("op '{}' has no result", nameOf(op.kind));
    for (ValueId result : op.results) {
      if (result != static_cast<int>(defined) || defined >= kernel.values.size())
        throw broken("op '{}' defines value {}; values are numbered in order of definition",
                     nameOf(op.kind), result);
      ++defined;
    }
    if (op.operatorClass == OperatorClass::elementwise) checkElementwise(op);
  }

  void checkElementwise(const BodyOp &op) const {
    if (op.operands.empty()) throw broken("element-wise op '{}' has no operand", nameOf(op.kind));
    const Value &operand = kernel.values[op.operands[0]], &result = kernel.values[op.results[0]];
    if (operand.axes != result.axes)
      throw broken("element-wise op '{}' turns the axes of '{}' into others in '{}'",
                   nameOf(op.kind), operand.name, result.name);
  }

  void checkOutputs() const {
    std::set<ValueId> distinct;
    for (ValueId output : kernel.outputs) {
      if (!isDefined(output)) throw broken("output value {} does not exist", output);
      if (output < static_cast<int>(kernel.inputs.size()))
        throw broken("output '{}' is an input; a copy needs an op", kernel.values[output].name);
      if (!distinct.insert(output).second)
        throw broken("value '{}' is an output twice", kernel.values[output].name);
    }
    if (kernel.outputs.empty()) throw broken("no output");
  }

  const Kernel &kernel;
  size_t defined = 0;  ///< values 0 .. defined-1 exist at this point of the body
};

/// Einsum letters are positional: "phi,bji->phbj" and "abc,dec->abde" are one contraction.
std::string canonicalEinsum(const std::string &spec) {
  std::map<char, char> renamed;
  std::string text;
  for (char c : spec) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter) {
      text += c;
      continue;
    }
    const size_t next = renamed.size();
    const char fresh = static_cast<char>(next < 26 ? 'a' + next : 'A' + (next - 26));
    text += renamed.try_emplace(c, fresh).first->second;
  }
  return text;
}

std::string printAttribute(const std::string &name, const Attribute &attribute) {
  if (const auto *integer = std::get_if<int64_t>(&attribute)) return fmt::format("{}", *integer);
  if (const auto *number = std::get_if<double>(&attribute)) return fmt::format("{}f", *number);
  if (const auto *text = std::get_if<std::string>(&attribute))
    return fmt::format("\"{}\"", name == attribute::spec.word ? canonicalEinsum(*text) : *text);
  return fmt::format("[{}]", fmt::join(std::get<std::vector<int64_t>>(attribute), ","));
}

/// Streams are kernel arguments: the same text serves every dropout of a model.
bool isHashed(const std::string &name) { return name != attribute::stream.word; }

/// So is the place of a part in the whole: that there is one is text, which one is not.
std::string printHashed(const std::string &name, const Attribute &attribute) {
  return name == attribute::outer.word
             ? name
             : fmt::format("{}={}", name, printAttribute(name, attribute));
}

std::string printOp(const Kernel &kernel, const CanonicalNames &names, const BodyOp &op) {
  std::vector<std::string> results, operands, attributes, reduced;
  for (ValueId value : op.results) results.push_back(names.typed(kernel, value));
  for (ValueId value : op.operands) operands.push_back(names.value(value));
  for (AxisId axis : op.reducedAxes) reduced.push_back(names.axis(axis));
  for (const auto &[name, attribute] : op.attributes)
    if (isHashed(name)) attributes.push_back(printHashed(name, attribute));
  std::string text = fmt::format("{} = {} {}", fmt::join(results, ", "), nameOf(op.kind),
                                 fmt::join(operands, ", "));
  if (!reduced.empty()) text += fmt::format(" over {}", fmt::join(reduced, ","));
  if (!attributes.empty()) text += fmt::format(" {{{}}}", fmt::join(attributes, ", "));
  // An expression over coordinates follows from the attributes and the axes.
  if (!op.expression.empty() && !op.expression.usesCoordinates())
    text += fmt::format(" : {}", op.expression.text());
  return text;
}

}  // namespace

std::optional<Dropout> dropoutOf(const std::map<std::string, Attribute> &attributes) {
  const double *p = findAttribute(attributes, attribute::p);
  const int64_t *stream = findAttribute(attributes, attribute::stream);
  if (!p || !stream) return std::nullopt;
  return Dropout{.p = *p, .stream = *stream};
}

void verify(const Kernel &kernel) { Verifier(kernel).run(); }

CanonicalNames::CanonicalNames(const Kernel &kernel)
    : axisNumbers(kernel.axes.size(), -1), valueNumbers(kernel.values.size(), -1) {
  const auto useAxes = [&](const std::vector<AxisId> &axes) {
    for (AxisId axis : axes)
      if (axisNumbers[axis] < 0) {
        axisNumbers[axis] = static_cast<int>(axisOrder.size());
        axisOrder.push_back(axis);
      }
  };
  int values = 0;
  const auto useValue = [&](ValueId value) {
    if (valueNumbers[value] < 0) valueNumbers[value] = values++;
    useAxes(kernel.values[value].axes);
  };
  for (ValueId value : kernel.inputs) useValue(value);
  for (const BodyOp &op : kernel.body) {
    useAxes(op.reducedAxes);
    for (ValueId value : op.results) useValue(value);
  }
}

std::string CanonicalNames::axis(AxisId axis) const {
  return fmt::format("a{}", axisNumbers[axis]);
}
std::string CanonicalNames::value(ValueId value) const {
  return fmt::format("v{}", valueNumbers[value]);
}

std::string CanonicalNames::typed(const Kernel &kernel, ValueId index) const {
  std::vector<std::string> axes;
  for (AxisId axisIndex : kernel.values[index].axes) axes.push_back(axis(axisIndex));
  return fmt::format("{} {}[{}]", value(index), nameOf(kernel.values[index].dtype),
                     fmt::join(axes, ","));
}

std::string canonicalText(const Kernel &kernel) {
  const CanonicalNames names(kernel);
  std::string text = "axes";
  for (AxisId axis : names.axesInOrder())
    text += fmt::format(" {}={}", names.axis(axis), kernel.axes[axis].extent);
  text += '\n';
  for (ValueId value : kernel.inputs) text += fmt::format("in {}\n", names.typed(kernel, value));
  for (const BodyOp &op : kernel.body) text += printOp(kernel, names, op) + '\n';
  std::vector<std::string> outputs;
  for (ValueId value : kernel.outputs) outputs.push_back(names.value(value));
  return text + fmt::format("out {}\n", fmt::join(outputs, ", "));
}

}  // namespace weft
