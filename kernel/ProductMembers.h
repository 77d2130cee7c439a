// The extents and strides of a matrix product by name, for those who write and read them.
#pragma once

#include "kernel/MatrixProduct.h"

namespace weft {

struct ProductMember {
  const char *name;
  int64_t MatrixProduct::*member;
};
inline constexpr ProductMember productMembers[] = {
    {"batch", &MatrixProduct::batch},
    {"m", &MatrixProduct::m},
    {"n", &MatrixProduct::n},
    {"k", &MatrixProduct::k},
    {"batchStrideA", &MatrixProduct::batchStrideA},
    {"strideAm", &MatrixProduct::strideAm},
    {"strideAk", &MatrixProduct::strideAk},
    {"batchStrideB", &MatrixProduct::batchStrideB},
    {"strideBk", &MatrixProduct::strideBk},
    {"strideBn", &MatrixProduct::strideBn},
    {"batchStrideC", &MatrixProduct::batchStrideC},
    {"strideCm", &MatrixProduct::strideCm},
    {"strideCn", &MatrixProduct::strideCn},
};
static_assert(sizeof(MatrixProduct) == std::size(productMembers) * sizeof(int64_t),
              "every member has its name");

}  // namespace weft
