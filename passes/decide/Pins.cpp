// Pins on problems and in plans; see Pins.h.
#include "passes/decide/Pins.h"

#include "kernel/Error.h"
#include "passes/configure/Family.h"
#include "plan/PlanConfiguration.h"

#include <algorithm>

namespace weft::decision {
namespace {

std::vector<std::string> axesOf(const select::Tensor &tensor) {
  std::vector<std::string> names;
  for (const Axis &axis : tensor.axes) names.push_back(axis.name);
  return names;
}

bool holds(const std::vector<int> &list, int value) {
  return std::ranges::find(list, value) != list.end();
}

/// Whether the pairs put both ops into one kernel.
bool arePaired(int a, int b, const std::set<std::pair<int, int>> &pairs) {
  return pairs.contains(std::minmax(a, b));
}

/// Whether a tensor of the plan lies as a pin of its axes by name says. Axes of one element may
/// stand anywhere.
bool liesAs(const PlanTensor &tensor, const NamedLayout &layout) {
  std::vector<std::string> wanted, own;
  const auto isLong = [&](const std::string &name) {
    const auto at = size_t(std::ranges::find(tensor.axes, name) - tensor.axes.begin());
    return at < tensor.extents.size() && tensor.extents[at] > 1;
  };
  for (const std::string &name : layout.order)
    if (isLong(name)) wanted.push_back(name);
  for (const int dimension : tensor.order)
    if (isLong(tensor.axes[size_t(dimension)])) own.push_back(tensor.axes[size_t(dimension)]);
  return wanted == own && pitchOf(layoutOf(tensor), tensor.extents).value_or(0) == layout.pitch;
}

}  // namespace

Layout pinnedLayout(const Pin &pin, const select::Tensor &tensor) {
  const std::vector<std::string> names = axesOf(tensor);
  const auto reject = [&] {
    throw Error::badInput("--pin {}={}: the axes of '{}' are {}; each must be named once",
                          pin.tensor, print(pin.layout), pin.tensor, fmt::join(names, ","));
  };
  Layout layout;
  for (const std::string &wanted : pin.layout.order) {
    const auto found = std::ranges::find(names, wanted);
    const int dimension = int(found - names.begin());
    if (found == names.end() || holds(layout.order, dimension)) reject();
    layout.order.push_back(dimension);
  }
  if (layout.order.size() != names.size()) reject();
  if (pin.layout.pitch == 0) return layout;
  const std::vector<int64_t> extents = tensor.extents();
  const std::optional<Layout> rows = padded(layout, extents, sizeOf(tensor.dtype));
  const int64_t pitch = rows ? pitchOf(*rows, extents).value() : 0;
  if (pin.layout.pitch != pitch)
    throw Error::badInput("--pin {}={}: in this order rows of '{}' are {}", pin.tensor,
                          print(pin.layout), pin.tensor,
                          rows ? fmt::format("padded to {} elements, or not at all", pitch)
                               : "never padded: leave out the pitch");
  return *rows;
}

void applyPins(select::Problem &problem, const std::vector<Pin> &pins) {
  for (const Pin &pin : pins)
    for (select::Tensor &tensor : problem.tensors) {
      if (tensor.name != pin.tensor) continue;
      tensor.mustBeStored = true;
      if (!pin.layout.order.empty()) tensor.pinned = pinnedLayout(pin, tensor);
    }
}

bool hasTensor(const select::Problem &problem, const std::string &name) {
  return std::ranges::find(problem.tensors, name, &select::Tensor::name) != problem.tensors.end();
}

std::string lackedTensor(const select::Problem &problem, const std::vector<Pin> &pins) {
  for (const Pin &pin : pins)
    if (!hasTensor(problem, pin.tensor))
      return fmt::format("it has no tensor '{}', which --pin wants stored", pin.tensor);
  return "";
}

std::string fusedAway(const select::Problem &problem, const std::vector<Pin> &pins,
                      const std::set<std::pair<int, int>> &forced) {
  std::string text;
  for (const Pin &pin : pins)
    for (size_t writer = 0; writer < problem.ops.size(); ++writer)
      for (const int tensor : problem.opOutputs[writer]) {
        if (problem.tensors[size_t(tensor)].name != pin.tensor ||
            problem.tensors[size_t(tensor)].isResult)
          continue;
        std::vector<std::string> readers;
        bool allInside = true;
        for (size_t reader = 0; reader < problem.ops.size(); ++reader) {
          if (!holds(problem.opInputs[reader], tensor)) continue;
          allInside = allInside && arePaired(int(writer), int(reader), forced);
          readers.push_back(problem.ops[reader]);
        }
        if (!allInside || readers.empty()) continue;
        text += fmt::format(
            "\n  --pin {}: --fuse puts '{}', which computes it, into one kernel with {}, which "
            "alone reads it: it is never stored then; "
            "leave out the pin, or that --fuse",
            pin.tensor, problem.ops[writer], fmt::join(readers, ", "));
      }
  return text;
}

void checkHonoured(const Plan &plan, const std::vector<Pin> &pins) {
  for (const Pin &pin : pins) {
    bool isStored = false;
    for (const PlanTensor &tensor : plan.tensors)
      isStored = isStored || (tensor.logical == pin.tensor &&
                              (pin.layout.order.empty() || liesAs(tensor, pin.layout)));
    if (!isStored)
      throw Error::checkFailed(
          "--pin {}={}: the chosen plan does not store it so, although it was chosen for that",
          pin.tensor, print(pin.layout));
  }
}

}  // namespace weft::decision
