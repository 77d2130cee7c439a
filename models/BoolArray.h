// Arrays of booleans in files of NumPy (.npy).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::models {

struct BoolArray {
  std::vector<int64_t> shape;
  std::vector<bool> elements;  ///< the last dimension is the fastest
};

/// Throws Error(badInput) where the file cannot be read, is none of NumPy's, or has other elements.
BoolArray readBoolArray(const std::string &path);

}  // namespace weft::models
