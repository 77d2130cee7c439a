// The views of a kernel, and why a slice or concatenation is none.
#pragma once

#include "codegen/families/view/ViewKnobs.h"
#include "kernel/ReasonCodes.h"

#include <optional>
#include <string>

namespace weft {

Expected<ConfigurationSpace, Reason> viewSpace(const Kernel &kernel, const Device &device);

/// A stable code, V001 to V005, and what of the configuration it is about.
struct CopyReason {
  ReasonCode code;
  std::string detail;
  /// "V005 runs-not-whole-lines (runs along q in iq are no multiples of 128 bytes)"
  std::string text() const;
};
/// Why a slice or a concatenation moves elements in this configuration. Nothing for views, for
/// other kernels, and where elements move because the layouts differ.
std::optional<CopyReason> whyCopied(const Kernel &kernel, const Configuration &configuration);

}  // namespace weft
