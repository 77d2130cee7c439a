// What programs of the family have in common: operand, result, and the dimensions that both layouts
// merge, with names for their extents, for coordinates along them, and for strides other than 1.
#pragma once

#include "codegen/Names.h"
#include "codegen/Program.h"
#include "codegen/families/transpose/TransposeTile.h"

#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::codegen {

inline constexpr int64_t mostIndex = std::numeric_limits<int32_t>::max();

class DimensionProgram {
protected:
  /// `entry`: how the entry point's name begins.
  DimensionProgram(const Kernel &kernel, std::vector<MergedDimension> dimensions,
                   std::string_view entry);

  ConstantLine extentLine() const;
  /// Constants of the strides of both tensors.
  void addStrides();
  /// "coordinate * stride" of a tensor along a dimension, or the coordinate where that is 1.
  std::string along(const std::string &tensor, size_t dimension,
                    const std::string &coordinate) const;

  const Kernel &kernel;
  const std::vector<MergedDimension> dimensions;
  bool wide = false;  ///< an element lies further from the first than an int counts
  Names names;
  Program program;
  std::vector<std::string> extents, at;  ///< by dimension
  std::string type, from, to;

private:
  void addStrides(const std::string &tensor, int64_t MergedDimension::*stride);

  std::map<std::pair<std::string, size_t>, std::string> strides;
};

}  // namespace weft::codegen
