// The attribute `config`: a member for each field of the family's schedule (kernel/Schedule.h).
#include "passes/ConfigurationAttributes.h"

#include "ir/Weft.h"
#include "kernel/Error.h"
#include "kernel/Schedule.h"
#include "passes/Passes.h"

#include <algorithm>

namespace weft {
namespace {

mlir::Attribute toAttribute(mlir::Builder &builder, const ScheduleField &field, int value,
                            const Kernel &kernel) {
  if (field.kind == ScheduleField::Kind::integer) return builder.getI64IntegerAttr(value);
  if (field.kind == ScheduleField::Kind::axis && value < 0) return builder.getStringAttr("");
  return builder.getStringAttr(
      valueText(field, value, [&](int axis) { return kernel.axes[size_t(axis)].name; }));
}

/// Reads the members of one `config`.
class Reader {
public:
  Reader(mlir::DictionaryAttr config, const Kernel &kernel) : config(config), kernel(kernel) {}

  int value(const ScheduleField &field, int usual) const {
    const std::string name = snakeCase(field.name);
    if (field.isOptional && !config.contains(name)) return usual;
    if (field.kind == ScheduleField::Kind::integer) {
      auto attribute = config.getAs<mlir::IntegerAttr>(name);
      if (!attribute) throw missing(name, "an integer");
      return static_cast<int>(attribute.getInt());
    }
    const std::string wanted = text(name);
    if (field.kind == ScheduleField::Kind::choice) {
      const std::optional<int> choice = choiceNamed(field, wanted);
      if (!choice)
        throw Error::badInput("kernel '{}': config '{}' is '{}', not one of {}", kernel.name, name,
                              wanted, choicesText(field));
      return *choice;
    }
    for (size_t axis = 0; axis < kernel.axes.size(); ++axis)
      if (kernel.axes[axis].name == wanted) return static_cast<int>(axis);
    if (!wanted.empty())
      throw Error::badInput("kernel '{}': config '{}' names axis '{}', which the kernel has not",
                            kernel.name, name, wanted);
    return -1;
  }
  std::string text(const std::string &name) const {
    auto attribute = config.getAs<mlir::StringAttr>(name);
    if (!attribute) throw missing(name, "a string");
    return attribute.str();
  }

private:
  Error missing(const std::string &name, std::string_view kind) const {
    return Error::badInput("kernel '{}': config lacks '{}', {}", kernel.name, name, kind);
  }

  mlir::DictionaryAttr config;
  const Kernel &kernel;
};

}  // namespace

Knobs knobsFromAttribute(const Kernel &kernel, mlir::DictionaryAttr config) {
  const Reader reader(config, kernel);
  const std::string name = reader.text("family");
  const Family *family = familyNamed(name);
  if (!family)
    throw Error::badInput("kernel '{}': unknown family '{}'; known: {}", kernel.name, name,
                          fmt::join(familyNames(), ", "));
  Knobs knobs = family->defaults();
  for (const ScheduleField &field : family->schedule)
    field.set(knobs, reader.value(field, field.get(knobs)));
  return knobs;
}

mlir::DictionaryAttr knobsAttribute(mlir::MLIRContext *context, const Kernel &kernel,
                                    const Knobs &knobs) {
  mlir::Builder builder(context);
  std::vector<mlir::NamedAttribute> members = {
      builder.getNamedAttr("family", builder.getStringAttr(knobs.family().name))};
  const Family &family = knobs.family();
  for (const ScheduleField &field : family.schedule) {
    const int value = field.get(knobs);
    if (!field.isOptional || value != field.get(family.defaults()))
      members.push_back(
          builder.getNamedAttr(snakeCase(field.name), toAttribute(builder, field, value, kernel)));
  }
  return builder.getDictionaryAttr(members);
}

void setConfiguration(mlir::Operation *kernelOp, const Kernel &kernel,
                      const Configuration &configuration) {
  mlir::MLIRContext *context = kernelOp->getContext();
  const auto attributes = [&](const std::vector<Layout> &layouts) {
    std::vector<LayoutAttr> list;
    for (const Layout &layout : layouts) list.push_back(LayoutAttr::get(context, layout));
    return list;
  };
  auto op = mlir::cast<KernelOp>(kernelOp);
  op.setLayoutsAttr(LayoutsAttr::get(context, attributes(configuration.inputs),
                                     attributes(configuration.outputs)));
  op.setConfigAttr(knobsAttribute(context, kernel, configuration.knobs));
}

Configuration configurationOf(mlir::Operation *kernelOp) {
  auto op = mlir::cast<KernelOp>(kernelOp);
  const Kernel kernel = toKernel({kernelOp}, op.getName().str());
  if (!op.getLayoutsAttr() || !op.getConfigAttr())
    throw Error::badInput("kernel '{}' has no {}: it was fused but not configured", kernel.name,
                          op.getLayoutsAttr() ? "config" : "layouts");
  Configuration configuration;
  for (LayoutAttr layout : op.getLayoutsAttr().getInputs())
    configuration.inputs.push_back(layout.toLayout());
  for (LayoutAttr layout : op.getLayoutsAttr().getOutputs())
    configuration.outputs.push_back(layout.toLayout());
  if (configuration.inputs.size() != kernel.inputs.size() ||
      configuration.outputs.size() != kernel.outputs.size())
    throw Error::badInput("kernel '{}' has {} inputs and {} outputs, its layouts are for {} and {}",
                          kernel.name, kernel.inputs.size(), kernel.outputs.size(),
                          configuration.inputs.size(), configuration.outputs.size());
  configuration.knobs = knobsFromAttribute(kernel, op.getConfigAttr());
  return configuration;
}

bool isTranspose(mlir::Operation *kernelOp) {
  auto kernel = mlir::dyn_cast<KernelOp>(kernelOp);
  return kernel && kernel->hasAttr(transposeName) &&
         llvm::hasSingleElement(kernel.getBody().front().without_terminator()) &&
         mlir::isa<IdentityOp>(kernel.getBody().front().front());
}

}  // namespace weft
