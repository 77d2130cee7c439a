// The views of a kernel, and why a slice or concatenation is none.
#pragma once

#include "codegen/families/view/ViewKnobs.h"
#include "passes/configure/CopyReason.h"

#include <optional>

namespace weft {

Expected<ConfigurationSpace, Reason> viewSpace(const Kernel &kernel, const Device &device);

/// Family::whyCopied: why a slice or a concatenation moves elements in this configuration. Nothing
/// for views, for other kernels, and where elements move because the layouts differ.
std::optional<CopyReason> whyCopied(const Kernel &kernel, const Configuration &configuration);

}  // namespace weft
