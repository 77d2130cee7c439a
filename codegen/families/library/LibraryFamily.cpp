// cuBLASLt family: one einsum of two operands as one batched strided GEMM by NVIDIA's
// library, with what the library does to a GEMM before it stores it
// (codegen/families/library/LibraryEpilogue.h).
//
// The library takes one element type for all tensors, a unit stride along one of the two axes of
// each, and factors as alpha; it accumulates in fp32. Which algorithms it has for a GEMM only it
// can say, on the GPU: without measurements (a profile names the algorithms) the configuration
// leaves the choice to its heuristic at load.
//
// cuBLASLt takes what `codegen/families/library/LibraryEpilogue.h` matches with one of its
// epilogues, and rejects the rest by name: bias, ReLU, a residual as its C, sums of an operand
// beside a plain GEMM. Its GELU (the tanh approximation, with its operand kept, its derivative,
// and the derivative's sum) has a form, too, and runs, but is less precise than our kernels and
// thus no configuration, as is a bias on rows that are not aligned (`precisionRejection`;
// `tests/gpu` measures both). Where vectors must run depends on layouts
// (`codegen/families/library/LibraryGemm.h`). Without measurements such kernels take part as
// estimates, with a margin (`passes/configure/Margins.h`).
//
// A family whose kernels are not our text (`hasText` is false: views, GEMMs of cuBLASLt) has no
// step 3: the plan's kernel carries what the runtime needs instead (`PlanKernel::library`, from
// `codegen/families/library/LibraryGemm.h`; `runtime/cuda/CublasLt.h` runs it), and `tests/gpu`
// compares it with fp64. What all contraction families share, the legal layouts, is
// `codegen/families/contraction/ContractionLayouts.cpp`.
#include "codegen/families/contraction/ContractionLayouts.h"
#include "codegen/families/library/LibraryGemm.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "passes/configure/Family.h"

namespace weft {

Expected<ConfigurationSpace, Reason> librarySpace(const Kernel &kernel, const Device &device) {
  if (!contractionValues(kernel)) return rejected(contractionRejection(kernel));
  if (!device.offers(libraryFamily)) return rejected("library GEMMs are switched off");
  const Expected<LibraryForm, Reason> form = libraryForm(kernel);
  if (!form) return rejected(form.error().text);
  ConfigurationSpace space{.family = &libraryFamily, .knobs = {LibraryKnobs{}}};
  std::string rejection;
  for (LayoutTuple &tuple : contractionTuples(kernel)) {
    Expected<LibraryGemm, Reason> answer =
        asLibraryGemm(kernel, *form, toConfiguration(kernel, tuple, LibraryKnobs{}));
    std::string reason = answer ? precisionRejection(*answer) : std::move(answer.error().text);
    if (reason.empty()) space.tuples.push_back(std::move(tuple));
    else rejection = std::move(reason);
  }
  if (space.tuples.empty()) return rejected(std::move(rejection));
  return space;
}

}  // namespace weft
