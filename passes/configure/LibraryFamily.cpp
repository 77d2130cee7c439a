// cuBLASLt family: one einsum of two operands as one batched strided matrix product by NVIDIA's
// library, with what the library does to a product before it stores it (kernel/LibraryEpilogue.h).
//
// The library takes one element type for all tensors, a unit stride along one of the two axes of
// each, and factors as alpha; it accumulates in fp32. Which algorithms it has for a product only it
// can say, on the GPU: without measured ones (a profile names them) the configuration leaves the
// choice to its heuristic at load.
#include "kernel/LibraryProduct.h"
#include "passes/configure/Family.h"

namespace weft {

FamilyAnswer librarySpace(const Kernel &kernel, const Device &device) {
  if (!contractionValues(kernel)) return {.reason = contractionRefusal(kernel)};
  if (!device.libraryProducts) return {.reason = "library products are switched off"};
  const LibraryFormAnswer form = libraryForm(kernel);
  if (!form.form) return {.reason = form.refusal};
  ConfigurationSpace space{.family = "cublaslt", .knobs = {LibraryKnobs{}}};
  std::string refusal;
  for (LayoutTuple &tuple : contractionTuples(kernel)) {
    LibraryProductAnswer answer =
        asLibraryProduct(kernel, *form.form, toConfiguration(kernel, tuple, LibraryKnobs{}));
    std::string reason =
        answer.product ? precisionRefusal(*answer.product) : std::move(answer.refusal);
    if (reason.empty()) space.tuples.push_back(std::move(tuple));
    else refusal = std::move(reason);
  }
  if (space.tuples.empty()) return {.reason = std::move(refusal)};
  return {.space = std::move(space)};
}

}  // namespace weft
