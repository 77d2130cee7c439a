// Extents, strides and arguments of a contraction as the emitted text spells them: the former are
// products of the kernel's axes.
#pragma once

#include "codegen/Names.h"
#include "codegen/Program.h"
#include "kernel/ContractionRegion.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft::codegen {

/// b * j, or 1. `names`: of all axes of the kernel.
ConstantValue extentProduct(const Kernel &kernel, const std::vector<AxisId> &axes,
                            const std::vector<std::string> &names);

/// Spells the strides of one tensor: products of extents of a dense one, named constants of a view.
class StrideTexts {
public:
  StrideTexts(const Kernel &kernel, ValueId value, const Layout &layout,
              const std::vector<std::string> &axisNames, const std::string &tensorName,
              Names &names, std::vector<ConstantLine> &constants)
      : kernel(kernel),
        value(kernel.values[value]),
        layout(layout),
        axisNames(axisNames),
        tensorName(tensorName),
        names(names),
        constants(constants) {}

  ConstantValue operator()(int64_t stride);

private:
  ConstantValue dense(int64_t stride) const;
  ConstantValue named(int64_t stride);

  const Kernel &kernel;
  const Value &value;
  const Layout &layout;
  const std::vector<std::string> &axisNames;
  const std::string &tensorName;
  Names &names;
  std::vector<ConstantLine> &constants;
  std::map<int64_t, std::string> constantNames;
};

/// A constant with the length of sub-vectors and the strides of their maxima and sums; returns its
/// name. `results`: names of Kernel::outputs.
std::string subVectorsText(const Kernel &kernel, const Configuration &configuration,
                           const ContractionRegion &region,
                           const std::vector<std::string> &axisNames,
                           const std::vector<std::string> &results, Names &names,
                           std::vector<ConstantLine> &constants);

/// A member of the struct of arguments of a kernel template.
struct NamedArgument {
  std::string_view name;
  std::string value;  ///< empty: left out
};
/// "weft::fmaGemm<shape, Tile>(weft::FmaGemmArgs{.a = x, .b = w, .c = y})": in one line, or with A,
/// B and C in the second and every other argument in its own.
Statement templateCall(std::string_view function, std::string_view args,
                       const std::vector<NamedArgument> &arguments);

/// Declares how many tokens a contraction sums (kernel/UnusedTokens.h), and returns the kernel
/// template's argument: "weft::sm90::SummedTokens{tokens}". `inputs`: names of Kernel::inputs.
std::string summedTokensArgument(const Kernel &kernel, const Configuration &configuration,
                                 const std::vector<std::string> &inputs, std::string_view space,
                                 Names &names, std::vector<Statement> &body);

/// The launch check that the GEMM of a kernel template has the extents for which tiles and tensor
/// maps were made.
Statement extentChecks(const std::string &gemm, int64_t batch, int64_t m, int64_t n, int64_t k);

}  // namespace weft::codegen
