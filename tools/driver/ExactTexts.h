// The kernels of an artifact, derived anew from its graph, its plan's layouts and knobs, and its
// .cu files: the exact texts, their launches, and whether the cubins were built from them. Derived
// members of the plan are not trusted.
#pragma once

#include "runtime/artifact/Artifact.h"
#include "tools/driver/Emission.h"

#include <string>
#include <vector>

namespace weft::driver {

struct ExactTexts {
  PlannedKernels planned;  ///< launch, parameters and textHash of every kernel
  EmittedPlan
      emitted;  ///< requests have the text of the .cu file where that differs from what is emitted
  std::vector<bool> isEdited;  ///< per kernel: its .cu file holds another text
};

/// Throws Error(badInput) as replan() does (ReEmission.h).
ExactTexts exactTexts(const runtime::Artifact &artifact, const std::string &where);

/// Per kernel why what the artifact runs is not its exact text, launched as that must be; empty
/// where it is, and for views and library GEMMs. Builds the texts, or takes them from the kernel
/// cache: a cubin is of a text if NVRTC makes the same bytes of it. Files that the plan names and
/// the artifact lacks are named.
std::vector<std::string> cubinDoubts(const runtime::Artifact &artifact, const ExactTexts &texts,
                                     const std::string &folder);

}  // namespace weft::driver
