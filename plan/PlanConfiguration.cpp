// Knobs and layouts between plan.json and configurations; see PlanConfiguration.h.
#include "plan/PlanConfiguration.h"

#include "codegen/families/attention_sm80/Sm80AttentionKnobs.h"
#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/gemm_fma/FmaGemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/library/LibraryGemm.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "codegen/families/loop/LoopKnobs.h"
#include "codegen/families/view/ViewKnobs.h"
#include "kernel/Error.h"
#include "kernel/Schedule.h"
#include "passes/configure/FamilyConfigurations.h"

#include <algorithm>
#include <bit>

namespace weft {
namespace {

/// Whether the strides are those of some dense order of the axes.
bool isDense(const PlanTensor &tensor) {
  std::vector<std::pair<int64_t, int64_t>>
      dimensions;  // stride, extent; an extent of 1 may have any stride
  for (size_t index = 0; index < tensor.extents.size(); ++index)
    if (tensor.extents[index] != 1)
      dimensions.emplace_back(tensor.strides.at(index), tensor.extents[index]);
  std::sort(dimensions.begin(), dimensions.end());
  int64_t expected = 1;
  for (const auto &[stride, extent] : dimensions) {
    if (stride != expected) return false;
    expected *= extent;
  }
  return true;
}

/// Whether the strides are those of padded rows in some order of the axes.
bool hasPaddedRows(const PlanTensor &tensor) {
  Layout own = rowMajor(tensor.extents.size());
  std::ranges::stable_sort(own.order, std::ranges::greater{},
                           [&](int dimension) { return tensor.strides.at(size_t(dimension)); });
  const auto rows = padded(own, tensor.extents, sizeOf(tensor.dtype));
  if (!rows) return false;
  const std::vector<int64_t> strides = stridesOf(*rows, tensor.extents);
  for (size_t dimension = 0; dimension < strides.size(); ++dimension)
    if (tensor.extents[dimension] > 1 && tensor.strides[dimension] != strides[dimension])
      return false;
  return true;
}

bool isLibraryGemm(const Kernel &kernel, const Configuration &configuration) {
  try {
    return libraryRejection(libraryGemm(kernel, configuration)).empty();
  } catch (const Error &) {
    return false;
  }
}

/// Its kernel template accepts any strides that make a GEMM and any tile within the limits: more
/// than enumeration offers, views too.
bool isTensorCoreGemm(const Kernel &kernel, const Configuration &configuration,
                      const Device &device) {
  if (!configuration.knobs.is<Sm90GemmKnobs>() ||
      !sm90GemmFamily.rejection(kernel, configuration, device).empty())
    return false;
  bool isTaken = false;
  const LayoutConstraints any{.inputs = std::vector<std::optional<Layout>>(kernel.inputs.size()),
                              .outputs = std::vector<std::optional<Layout>>(kernel.outputs.size())};
  forEachConfigurationOf(sm90GemmFamily, kernel, device, any, [&](const Configuration &) {
    isTaken = true;
    return false;
  });
  return isTaken;
}

/// Whether they are those of enumeration but for the threads of a block that reduces a row: a block
/// takes up to 1,024, more than selection tries. Halving steps take powers of two.
bool isOtherBlock(const Knobs &asked, const Knobs &enumerated) {
  constexpr int least = 32, most = 1024;
  if (!asked.is<LoopKnobs>() || !enumerated.is<LoopKnobs>()) return false;
  LoopKnobs knobs = enumerated.get<LoopKnobs>();
  const int threads = asked.get<LoopKnobs>().threads;
  if (knobs.reduction != ReductionMapping::block || knobs.threadsPerRow != knobs.threads ||
      threads < least || threads > most || !std::has_single_bit(unsigned(threads)))
    return false;
  knobs.threads = knobs.threadsPerRow = threads;
  return asked == Knobs(knobs);
}

LayoutConstraints layoutsOf(const Configuration &configuration) {
  LayoutConstraints constraints;
  constraints.inputs.assign(configuration.inputs.begin(), configuration.inputs.end());
  constraints.outputs.assign(configuration.outputs.begin(), configuration.outputs.end());
  return constraints;
}

}  // namespace

bool isLegal(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  const Knobs &asked = configuration.knobs;
  // The library says at load which algorithms it has. It also accepts views, which enumeration does
  // not offer.
  if (asked.is<LibraryKnobs>() && isLibraryGemm(kernel, configuration)) return true;
  if (isTensorCoreGemm(kernel, configuration, device)) return true;
  // Which tiles a plain GEMM takes, its emitter says; which tiles and splits an attention by
  // mma.sync takes, its family.
  const bool isAnyTaken = asked.family() == fmaGemmFamily ||
                          (asked.is<Sm80AttentionKnobs>() &&
                           sm80AttentionFamily.rejection(kernel, configuration, device).empty());
  // Sums in any order are offered where a plan may have them, and legal where it has.
  Device offering = device;
  offering.mayBeNondeterministic |= !isDeterministic(asked);
  bool isTaken = false;
  forEachConfigurationOf(asked.family(), kernel, offering, layoutsOf(configuration),
                         [&](const Configuration &candidate) {
                           isTaken = isAnyTaken || isOtherBlock(asked, candidate.knobs) ||
                                     candidate.knobs == asked;
                           return !isTaken;
                         });
  return isTaken;
}

Legality legality(const Kernel &kernel, const Configuration &configuration, const Device &device) {
  constexpr size_t shown = 3;
  Legality result{.isLegal = isLegal(kernel, configuration, device), .others = {}};
  if (!result.isLegal)
    forEachConfiguration(kernel, device, layoutsOf(configuration),
                         [&](const Configuration &candidate) {
                           result.others.push_back(describe(kernel, candidate.knobs));
                           return result.others.size() < shown;
                         });
  return result;
}

Layout layoutOf(const PlanTensor &tensor) {
  Layout layout{.order = tensor.order, .strides = {}, .offset = tensor.offset};
  // Strides follow the order, so that editing the order alone is enough; a view's strides are its
  // own.
  if (isDense(tensor)) return layout;
  if (hasPaddedRows(tensor))
    return padded(layout, tensor.extents, sizeOf(tensor.dtype)).value_or(layout);
  layout.strides = tensor.strides;
  return layout;
}

namespace {

/// Plans count offsets from the start of the buffer, configurations of views from the tensor that
/// holds the others.
void countFromWhole(Configuration &configuration) {
  const Layout &whole = configuration.inputs.size() == 1 ? configuration.inputs.front()
                                                         : configuration.outputs.front();
  const int64_t start = whole.offset;
  for (std::vector<Layout> *layouts : {&configuration.inputs, &configuration.outputs})
    for (Layout &layout : *layouts) layout.offset -= start;
}

}  // namespace

Configuration configurationOf(const Plan &plan, const PlanKernel &planKernel,
                              const Kernel &kernel) {
  Configuration configuration{
      .inputs = {},
      .outputs = {},
      .knobs = knobsOf(planKernel.knobs, kernel, "kernel '" + planKernel.name + "'")};
  // Only views are about offsets; every other kernel is given the address of element zero.
  const bool isView = configuration.knobs.is<ViewKnobs>();
  const auto layout = [&](int tensor) {
    Layout result = layoutOf(plan.tensors.at(size_t(tensor)));
    if (!isView) result.offset = 0;
    return result;
  };
  for (const int tensor : planKernel.inputs) configuration.inputs.push_back(layout(tensor));
  for (const int tensor : planKernel.outputs) configuration.outputs.push_back(layout(tensor));
  if (isView) countFromWhole(configuration);
  return configuration;
}

}  // namespace weft
