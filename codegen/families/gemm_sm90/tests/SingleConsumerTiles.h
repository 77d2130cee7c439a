// Single-consumer tiles that cases for the GPU go through.
#pragma once

#include "codegen/families/contraction/GemmProblem.h"
#include "codegen/families/gemm_sm90/Sm90GemmKnobs.h"
#include "codegen/families/gemm_sm90/Sm90Tile.h"
#include "passes/configure/Families.h"

#include <fmt/format.h>

#include <set>
#include <string>

namespace weft::gputest {

/// One configuration of every single-consumer tile in every orientation: visit(configuration, how
/// many were seen, this one included).
template <typename Visit>
void forEachSingleConsumerTile(const Kernel &kernel, const Visit &visit) {
  std::set<std::string> seen;
  forEachConfiguration(kernel, findDevice("h200"), {}, [&](const Configuration &configuration) {
    const auto *knobs = configuration.knobs.getIf<Sm90GemmKnobs>();
    if (!knobs || knobs->schedule != Sm90Schedule::singleConsumer) return true;
    const GemmProblem gemm = *wgmmaProblem(kernel, configuration);
    const std::string text = fmt::format("{} {}{}{}", describe(kernel, *knobs), gemm.a.isAlongK(),
                                         gemm.b.isAlongK(), gemm.isSwapped);
    if (seen.insert(text).second) visit(configuration, seen.size());
    return true;
  });
}

}  // namespace weft::gputest
