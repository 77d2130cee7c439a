// Transpose family: a pure layout change of one tensor through a shared-memory tile, between any
// two layouts.
#include "codegen/families/transpose/TransposeKnobs.h"
#include "passes/configure/Family.h"

namespace weft {
namespace {

constexpr int tiles[] = {32, 64};
constexpr int widths[] = {1, 2, 4, 8};

bool isIdentity(const Kernel &kernel) {
  return kernel.body.size() == 1 && kernel.body[0].kind == OpKind::identity &&
         kernel.inputs.size() == 1 && kernel.outputs.size() == 1;
}

}  // namespace

Expected<ConfigurationSpace, Reason> transposeSpace(const Kernel &kernel, const Device &) {
  if (!isIdentity(kernel)) return rejected("the body is not one identity");
  const Value &value = kernel.values[kernel.inputs[0]];
  if (kernel.values[kernel.outputs[0]].axes != value.axes ||
      kernel.values[kernel.outputs[0]].dtype != value.dtype)
    return rejected("operand and result types differ");
  ConfigurationSpace space{.family = &transposeFamily};
  const std::vector<Layout> layouts = distinctAndPaddedLayouts(kernel, kernel.inputs[0]);
  for (const Layout &from : layouts)
    for (const Layout &to : layouts)
      if (from != to) space.tuples.push_back({from, to});
  for (int tile : tiles)
    for (int width : widths)
      if (width * sizeOf(value.dtype) <= maximumAccessBytes)
        space.knobs.push_back(TransposeKnobs{.tile = tile, .vectorWidth = width, .threads = 256});
  if (space.isEmpty()) return rejected("the tensor has one layout only");
  return space;
}

}  // namespace weft
