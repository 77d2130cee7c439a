// Enumeration of one family's configurations: for callers that know the family of what they ask
// about, since to list the spaces of all takes most of the time of a question.
#pragma once

#include "kernel/Family.h"
#include "passes/configure/Families.h"

namespace weft {

/// What forEachConfiguration() visits of one family, in the same order.
void forEachConfigurationOf(const Family &family, const Kernel &kernel, const Device &device,
                            const LayoutConstraints &constraints,
                            const std::function<bool(const Configuration &)> &visit);

/// What is visited of the configuration's family under its layouts, sums in any order where its
/// knobs add so: they are offered where a plan may have them, and legal where it has.
void forEachConfigurationLike(const Kernel &kernel, const Configuration &configuration,
                              const Device &device,
                              const std::function<bool(const Configuration &)> &visit);
/// Whether anything is visited: whether the family takes these layouts.
bool hasConfigurationLike(const Kernel &kernel, const Configuration &configuration,
                          const Device &device);
/// Whether the family of a configuration has it for a kernel.
bool isLegal(const Kernel &kernel, const Configuration &configuration, const Device &device);

}  // namespace weft
