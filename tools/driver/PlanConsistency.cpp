// A plan held against its graph; see PlanConsistency.h.
#include "tools/driver/PlanConsistency.h"

#include "kernel/Error.h"
#include "runtime/system/Sha256.h"
#include "tools/driver/Emission.h"

#include <algorithm>
#include <map>
#include <set>

namespace weft::driver {
namespace {

int64_t bytesOfElements(const PlanTensor &tensor) {
  int64_t bytes = sizeOf(tensor.dtype);
  for (const int64_t extent : tensor.extents) bytes *= extent;
  return bytes;
}

/// Extents by axis name; a name may have several, where a rewrite cut an axis into pieces.
std::map<std::string, std::set<int64_t>> extentsByName(const Plan &plan) {
  std::map<std::string, std::set<int64_t>> extents;
  for (const PlanTensor &tensor : plan.tensors)
    for (size_t dimension = 0; dimension < tensor.axes.size(); ++dimension)
      extents[tensor.axes[dimension]].insert(tensor.extents[dimension]);
  return extents;
}

/// Where an axis has one index, its place in an order makes no difference, and may have been
/// edited.
bool areLayouts(const std::vector<NamedLayout> &printed, const std::vector<NamedLayout> &derived,
                const Plan &plan, const std::vector<int> &tensors) {
  for (size_t index = 0; index < tensors.size(); ++index)
    if (printed[index] != derived[index] &&
        std::ranges::count(plan.tensors[size_t(tensors[index])].extents, 1) == 0)
      return false;
  return true;
}

std::string keyOf(const PlannedKernels &planned, size_t index) {
  const ChosenKernel &chosen = planned.kernels[index];
  return runtime::sha256(canonicalText(chosen.kernel, chosen.configuration, planned.plan.target));
}

}  // namespace

void checkHeader(const Plan &plan, const std::string &where) {
  const auto extents = extentsByName(plan);
  for (const auto &[name, extent] : plan.dims)
    if (const auto found = extents.find(name);
        found != extents.end() && !found->second.contains(extent))
      throw Error::badInput("{}: dims.{} is {}, but axis {} of the tensors has extent {}", where,
                            name, extent, name, fmt::join(found->second, " or "));
  const PlanTensor *argument = elementsArgument(plan);
  if (argument && argument->dtype != plan.dtype)
    throw Error::badInput("{}: dtype is \"{}\", but argument '{}' is {}", where, nameOf(plan.dtype),
                          argument->name, nameOf(argument->dtype));
  for (const PlanTensor &tensor : plan.tensors)
    if (tensor.bytes != bytesOfElements(tensor))
      throw Error::badInput("{}: tensor '{}' has {} bytes, but its extents and dtype {} make {}",
                            where, tensor.name, tensor.bytes, nameOf(tensor.dtype),
                            bytesOfElements(tensor));
}

void checkUnedited(const Plan &plan, const PlannedKernels &planned, const std::string &where) {
  for (size_t index = 0; index < plan.kernels.size(); ++index) {
    const PlanKernel &kernel = plan.kernels[index];
    if (kernel.key != keyOf(planned, index)) continue;
    const PlanKernel derived =
        derivedEntry(planned.plan.kernels[index], planned.kernels[index], planned.plan.target);
    const auto require = [&](bool isDerived, const char *member, const char *edited) {
      if (!isDerived)
        throw Error::badInput(
            "{}: kernels[{}] ({}): {} are not what weft derives of {}; edit those, and 'weft emit' "
            "derives the rest",
            where, index, kernel.name, member, edited);
    };
    require(
        areLayouts(kernel.inputLayouts, derived.inputLayouts, planned.plan, kernel.inputs) &&
            areLayouts(kernel.outputLayouts, derived.outputLayouts, planned.plan, kernel.outputs),
        "inputLayouts and outputLayouts", "the tensors' orders");
    require(kernel.ops == derived.ops, "ops", "graph.mlir");
    require(kernel.family == derived.family && kernel.configuration == derived.configuration,
            "family and configuration", "the knobs");
    require(kernel.library == derived.library, "library and its tensors",
            "graph.mlir, orders and knobs");
    require(kernel.workspaceBytes == derived.workspaceBytes, "workspaceBytes",
            "graph.mlir, orders and knobs");
    require(kernel.parameters == derived.parameters, "parameters", "graph.mlir, orders and knobs");
  }
}

void checkEmitted(const Plan &plan, const PlannedKernels &planned, const std::string &where) {
  for (size_t index = 0; index < plan.kernels.size(); ++index) {
    const PlanKernel &kernel = plan.kernels[index];
    const Family &family = planned.kernels[index].configuration.knobs.family();
    if (kernel.key != keyOf(planned, index) &&
        (kernel.family != family || kernel.familyVersion == family.version))
      throw Error::badInput(
          "{}: kernels[{}] ({}): it was edited after it was emitted; 'weft emit' emits it again",
          where, index, kernel.name);
  }
}

}  // namespace weft::driver
