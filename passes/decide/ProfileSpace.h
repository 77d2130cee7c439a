// What a profile of a model measures: for every candidate kernel of every variant the
// configurations that the model does not rule out, and the GEMMs for which a library is measured.
// No MLIR, no GPU.
//
// Layouts are pruned per tensor, by selection's own cut with the analytic model, and every kernel
// gets combinations of its tensors' layouts. Selection from a profile keeps only measured
// layouts, so it keeps none but these, and every transpose between two of them is measured. What
// was pruned is counted.
#pragma once

#include "codegen/families/library/LibraryGemm.h"
#include "passes/configure/CostModel.h"
#include "passes/select/Selection.h"

#include <string>
#include <vector>

namespace weft::decision {

struct ProfileSpaceOptions {
  double layoutFactor = 2.5;  ///< layouts of all operands: the best modelled time within this
                              ///< factor of the kernel's best
  size_t mostLayouts = 64;    ///< of them, at most
  size_t mostStrided =
      16;  ///< besides, of layouts with several strides along a group of a contraction's axes
  double knobFactor = 1.5;  ///< knobs: within this factor of the layouts' best modelled time
  size_t mostKnobs = 4;     ///< of them, at most
  std::vector<std::string> names =
      {};  ///< kernels whose name contains one of these alone; empty: all
  std::vector<std::string> families =
      {};  ///< configurations of kernel families of these names alone; empty: all
};

/// One configuration to be built and measured.
struct ProfileItem {
  size_t kernel = 0;  ///< index into ProfileSpace::kernels
  Configuration configuration;
  std::string subject, line;  ///< of the measurement it becomes
  double modelled = 0;        ///< seconds by the model
  double rank = 1;            ///< modelled over the kernel's best: items are measured in this order
  bool again = false;         ///< measured once more if its measurement is of an older text
};

/// One GEMM for which the library's candidates are measured, wherever it occurs; with an
/// epilogue, that of one kernel.
struct ProfileGemm {
  LibraryGemm gemm;
  std::string subject, name;
  std::string place;  ///< the middle of its lines: strides, or layouts of a kernel with an epilogue
  double modelled = 0;
};

/// One distinct kernel with what was pruned of its space.
struct ProfileKernelSpace {
  Kernel kernel;
  std::string name;
  double legal = 0;         ///< configurations of all families, views aside
  size_t combinations = 0;  ///< of the layouts that its tensors keep
  size_t layouts = 0;       ///< of them, those measured
  size_t pairs =
      0;  ///< of them, pairs that some tensor may be transposed between: all are measured
  size_t configurations = 0;  ///< measured
};

/// Of a kernel that the library takes.
ProfileGemm profileGemm(const Kernel &kernel, const Configuration &configuration, double modelled);

struct ProfileSpace {
  std::vector<ProfileKernelSpace> kernels;
  std::vector<ProfileItem> items;  ///< by rank, without duplicates
  std::vector<ProfileGemm> gemms;  ///< without duplicates
  size_t duplicates = 0;           ///< configurations that are equal to another kernel's
  ProfileSpaceOptions options;
};

ProfileSpace profileSpace(const std::vector<select::Problem> &problems,
                          const select::Options &selection, const CostModel &model,
                          const ProfileSpaceOptions &options);

}  // namespace weft::decision
