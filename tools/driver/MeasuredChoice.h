// compile --measure: the GPU behind the choice by measuring (passes/decide/MeasuredChoice.h), which
// builds and times whole plans on this machine.
#pragma once

#include "passes/decide/Decide.h"
#include "runtime/cuda/Cuda.h"
#include "tools/driver/Flags.h"

#include <optional>

namespace weft::driver {

/// --measure: how many plans are timed; 0 for none.
struct MeasureFlags {
  int plans = 0;

  void declare(CLI::App &command);
  bool asked() const { return plans != 0; }
  /// Opens the GPU to measure on. Throws Error(badInput) for less than two plans and where the
  /// command ends before there are cubins, Error(unsupported) where there is no GPU or no NVRTC.
  void open(const PhaseFlags &phases, std::optional<runtime::cuda::Context> &gpu) const;
};

/// Builds plans in memory and times them on this GPU, with progress on a terminal; what
/// runtime/measure/ComparePlans.h says of noise holds. It throws what comparePlans throws.
decision::Measure measureOn(const runtime::cuda::Context &gpu, const std::string &architecture);

}  // namespace weft::driver
