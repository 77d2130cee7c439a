// cuBLASLt family: one einsum of two operands as one batched strided matrix product by NVIDIA's library.
//
// The library takes one element type for A, B and C, a unit stride along one of the two axes of each, and the contraction's
// factor as alpha; it accumulates in fp32. Which algorithms it has for a product only it can say, on the GPU: without
// measured ones (a profile names them) the configuration leaves the choice to its heuristic at load.
#include "kernel/Error.h"
#include "kernel/LibraryProduct.h"
#include "passes/configure/Family.h"

namespace weft {
namespace {

/// Element types are the kernel's, so that one refusal serves all layouts.
std::string typeRefusal(const Kernel &kernel) {
  const DType type = kernel.values[kernel.outputs[0]].dtype;
  for (const int value : operandValues(kernel))
    if (kernel.values[value].dtype != type)
      return fmt::format("'{}' is {}, the result {}; a library product has one element type", kernel.values[value].name,
                         nameOf(kernel.values[value].dtype), nameOf(type));
  if (type != DType::f16 && type != DType::bf16 && type != DType::f32)
    return fmt::format("element type {}; f16, bf16 and f32 are taken", nameOf(type));
  return "";
}

}  // namespace

FamilyAnswer librarySpace(const Kernel &kernel, const Device &device) {
  if (std::string reason = contractionRefusal(kernel); !reason.empty()) return {.reason = std::move(reason)};
  if (!device.libraryProducts) return {.reason = "library products are switched off"};
  if (std::string reason = typeRefusal(kernel); !reason.empty()) return {.reason = std::move(reason)};
  ConfigurationSpace space{.family = "cublaslt", .knobs = {LibraryKnobs{}}};
  std::string refusal;
  for (LayoutTuple &tuple : contractionTuples(kernel)) {
    const Configuration configuration{.inputs = {tuple[0], tuple[1]}, .outputs = {tuple[2]}, .knobs = LibraryKnobs{}};
    const auto shape = matrixProduct(kernel, configuration);
    if (!shape) throw Error::checkFailed("kernel '{}': a legal layout of the contraction is no product", kernel.name);
    const DType type = kernel.values[kernel.outputs[0]].dtype;
    if (std::string reason = libraryRefusal({.shape = *shape, .dtype = type, .alpha = 1}); reason.empty())
      space.tuples.push_back(std::move(tuple));
    else
      refusal = std::move(reason);
  }
  if (space.tuples.empty()) return {.reason = std::move(refusal)};
  return {.space = std::move(space)};
}

}  // namespace weft
