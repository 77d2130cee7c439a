// Groups of axes by where they occur, and their merged strides.
#include "kernel/StridedBatchedGemm.h"

#include "kernel/Attributes.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft {
namespace {

bool runsAlong(const Kernel &kernel, ValueId value, AxisId axis) {
  const std::vector<AxisId> &axes = kernel.values[value].axes;
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// One operand of a GEMM: where its elements lie.
struct OperandStrides {
  const Kernel &kernel;
  ValueId value;
  std::vector<int64_t> strides;

  int64_t along(AxisId axis) const {
    const std::vector<AxisId> &axes = kernel.values[value].axes;
    return strides[static_cast<size_t>(std::find(axes.begin(), axes.end(), axis) - axes.begin())];
  }
  /// The stride of the group merged in the given order (slowest first); nothing if it does not
  /// merge.
  std::optional<int64_t> merged(const std::vector<AxisId> &group) const {
    if (group.empty()) return 0;
    for (size_t i = 0; i + 1 < group.size(); ++i)
      if (along(group[i]) != along(group[i + 1]) * kernel.axes[group[i + 1]].extent)
        return std::nullopt;
    return along(group.back());
  }
};

OperandStrides stridesOf(const Kernel &kernel, ValueId value, const Layout &layout) {
  return {kernel, value, stridesOf(layout, extentsOf(kernel, value))};
}

/// Slowest first. The common order is that of any operand that has the group.
ContractionGroups orderedGroups(const Kernel &kernel, const std::array<ValueId, 3> &values,
                                const OperandStrides &a, const OperandStrides &b) {
  ContractionGroups groups = contractionGroups(kernel, values);
  const std::array<const OperandStrides *, contractionGroupCount> owner = {&a, &a, &b, &a};
  for (size_t group = 0; group < contractionGroupCount; ++group)
    std::sort(groups[group].begin(), groups[group].end(),
              [&](AxisId x, AxisId y) { return owner[group]->along(x) > owner[group]->along(y); });
  return groups;
}

/// What is read from memory for an operand of the contraction: the operand itself, or of the inputs
/// with its axes of extent above 1 that ops before the contraction read, the first of the highest
/// rank.
std::optional<ValueId> readFor(const Kernel &kernel, OpId contraction, ValueId operand) {
  if (contraction == 0 || std::ranges::find(kernel.inputs, operand) != kernel.inputs.end())
    return operand;
  const auto hasAxesOf = [&](ValueId value, ValueId other) {
    return std::ranges::all_of(kernel.values[size_t(other)].axes, [&](AxisId axis) {
      return kernel.axes[size_t(axis)].extent == 1 || runsAlong(kernel, value, axis);
    });
  };
  std::optional<ValueId> best;
  const auto rank = [&](ValueId value) { return kernel.values[size_t(value)].axes.size(); };
  for (int op = 0; op < contraction; ++op)
    for (const ValueId value : kernel.body[op].operands) {
      if (std::ranges::find(kernel.inputs, value) == kernel.inputs.end() ||
          !hasAxesOf(value, operand) || !hasAxesOf(operand, value))
        continue;
      if (!best || rank(value) > rank(*best)) best = value;
    }
  return best;
}

int64_t extentOf(const Kernel &kernel, const std::vector<AxisId> &group) {
  int64_t product = 1;
  for (AxisId axis : group) product *= kernel.axes[axis].extent;
  return product;
}

}  // namespace

std::optional<OpId> contractionIndex(const Kernel &kernel) {
  for (int op = 0; op < std::ssize(kernel.body); ++op) {
    if (kernel.body[op].kind == OpKind::contract) return op;
    if (kernel.body[op].operatorClass != OperatorClass::elementwise) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::array<ValueId, 3>> contractionValues(const Kernel &kernel) {
  const auto index = contractionIndex(kernel);
  if (!index) return std::nullopt;
  const BodyOp &op = kernel.body[*index];
  if (op.operands.size() < 2 || op.results.size() != 1) return std::nullopt;
  const auto a = readFor(kernel, *index, op.operands[0]),
             b = readFor(kernel, *index, op.operands[1]);
  if (!a || !b) return std::nullopt;
  return std::array<ValueId, 3>{*a, *b, op.results[0]};
}

ContractionGroups contractionGroups(const Kernel &kernel, const std::array<ValueId, 3> &values) {
  ContractionGroups groups;
  for (int axis = 0; axis < static_cast<int>(kernel.axes.size()); ++axis) {
    if (kernel.axes[axis].extent == 1) continue;
    const bool a = runsAlong(kernel, values[0], axis), b = runsAlong(kernel, values[1], axis),
               c = runsAlong(kernel, values[2], axis);
    if (a && b && c) groups[batchGroup].push_back(axis);
    else if (a && c) groups[mGroup].push_back(axis);
    else if (b && c) groups[nGroup].push_back(axis);
    else if (a && b) groups[kGroup].push_back(axis);
  }
  return groups;
}

GemmInputs gemmInputs(const Kernel &kernel) {
  const std::array<ValueId, 3> values = contractionValues(kernel).value();
  const auto positionOf = [&](ValueId value) {
    return static_cast<size_t>(std::find(kernel.inputs.begin(), kernel.inputs.end(), value) -
                               kernel.inputs.begin());
  };
  return {.a = positionOf(values[0]), .b = positionOf(values[1])};
}

bool isTf32(const BodyOp &contraction) {
  const std::string *precision = findAttribute(contraction, attribute::precision);
  return precision && *precision == nameOf(DType::tf32);
}

GemmTypes gemmTypes(const Kernel &kernel) {
  const BodyOp &contraction = kernel.body.at(contractionIndex(kernel).value());
  const bool readsTf32 = isTf32(contraction);
  const auto typeOf = [&](ValueId value) { return kernel.values[size_t(value)].dtype; };
  const auto readAs = [&](ValueId value) {
    return readsTf32 && typeOf(value) == DType::f32 ? DType::tf32 : typeOf(value);
  };
  return {.a = readAs(contraction.operands.at(0)),
          .b = readAs(contraction.operands.at(1)),
          .c = typeOf(kernel.outputs.at(0))};
}

std::string nameOf(const GemmTypes &types) {
  if (types.isUniform()) return std::string(nameOf(types.c));
  return fmt::format("{},{}->{}", nameOf(types.a), nameOf(types.b), nameOf(types.c));
}

std::optional<GemmTypes> parseGemmTypes(std::string_view text) {
  const size_t comma = text.find(','), arrow = text.find("->");
  const bool isMixed = comma < arrow && arrow != std::string_view::npos;
  const auto a = parseDType(isMixed ? text.substr(0, comma) : text),
             b = parseDType(isMixed ? text.substr(comma + 1, arrow - comma - 1) : text),
             c = parseDType(isMixed ? text.substr(arrow + 2) : text);
  if (!a || !b || !c) return std::nullopt;
  return GemmTypes{.a = *a, .b = *b, .c = *c};
}

std::optional<StridedBatchedGemm> stridedBatchedGemm(const Kernel &kernel,
                                                     const Configuration &configuration) {
  const auto values = contractionValues(kernel);
  if (!values) return std::nullopt;
  const GemmInputs inputs = gemmInputs(kernel);
  if (std::max(inputs.a, inputs.b) >= kernel.inputs.size() || inputs.a == inputs.b)
    return std::nullopt;
  const std::vector<AxisId> &axesOfC = kernel.values[(*values)[2]].axes;
  const auto isStored = [&](AxisId axis) {
    return runsAlong(kernel, kernel.outputs[0], axis) || kernel.axes[axis].extent == 1;
  };
  if (!std::all_of(axesOfC.begin(), axesOfC.end(), isStored)) return std::nullopt;
  const Layout &layoutA = configuration.inputs[inputs.a], &layoutB = configuration.inputs[inputs.b];
  const OperandStrides a = stridesOf(kernel, (*values)[0], layoutA),
                       b = stridesOf(kernel, (*values)[1], layoutB),
                       c = stridesOf(kernel, kernel.outputs[0], configuration.outputs[0]);
  const ContractionGroups groups = orderedGroups(kernel, *values, a, b);
  const auto am = a.merged(groups[mGroup]), ak = a.merged(groups[kGroup]),
             ab = a.merged(groups[batchGroup]);
  const auto bk = b.merged(groups[kGroup]), bn = b.merged(groups[nGroup]),
             bb = b.merged(groups[batchGroup]);
  const auto cm = c.merged(groups[mGroup]), cn = c.merged(groups[nGroup]),
             cb = c.merged(groups[batchGroup]);
  if (!am || !ak || !ab || !bk || !bn || !bb || !cm || !cn || !cb) return std::nullopt;
  return StridedBatchedGemm{.batch = extentOf(kernel, groups[batchGroup]),
                            .m = extentOf(kernel, groups[mGroup]),
                            .n = extentOf(kernel, groups[nGroup]),
                            .k = extentOf(kernel, groups[kGroup]),
                            .batchStrideA = *ab,
                            .batchStrideB = *bb,
                            .batchStrideC = *cb,
                            .strideAm = *am,
                            .strideAk = *ak,
                            .strideBk = *bk,
                            .strideBn = *bn,
                            .strideCm = *cm,
                            .strideCn = *cn};
}

std::optional<GroupStrides> groupStrides(const Kernel &kernel, const Configuration &configuration,
                                         ValueId value, const Layout &layout) {
  const auto values = contractionValues(kernel);
  if (!values) return std::nullopt;
  const GemmInputs inputs = gemmInputs(kernel);
  const ContractionGroups groups = orderedGroups(
      kernel, *values, stridesOf(kernel, (*values)[0], configuration.inputs.at(inputs.a)),
      stridesOf(kernel, (*values)[1], configuration.inputs.at(inputs.b)));
  const OperandStrides strides = stridesOf(kernel, value, layout);
  const auto along = [&](ContractionGroup group) -> std::optional<int64_t> {
    const auto present = std::ranges::count_if(
        groups[group], [&](AxisId axis) { return runsAlong(kernel, value, axis); });
    if (present == 0) return 0;
    return present == std::ssize(groups[group]) ? strides.merged(groups[group]) : std::nullopt;
  };
  const auto batch = along(batchGroup), m = along(mGroup), n = along(nGroup), k = along(kGroup);
  if (!batch || !m || !n || !k) return std::nullopt;
  return GroupStrides{.batch = *batch, .m = *m, .n = *n, .k = *k};
}

}  // namespace weft
