// The extents and strides of a GEMM by name, for those who write and read them.
#pragma once

#include "kernel/StridedBatchedGemm.h"

namespace weft {

struct GemmField {
  const char *name;
  int64_t StridedBatchedGemm::*member;
};
inline constexpr GemmField gemmFields[] = {
    {"batch", &StridedBatchedGemm::batch},
    {"m", &StridedBatchedGemm::m},
    {"n", &StridedBatchedGemm::n},
    {"k", &StridedBatchedGemm::k},
    {"batchStrideA", &StridedBatchedGemm::batchStrideA},
    {"strideAm", &StridedBatchedGemm::strideAm},
    {"strideAk", &StridedBatchedGemm::strideAk},
    {"batchStrideB", &StridedBatchedGemm::batchStrideB},
    {"strideBk", &StridedBatchedGemm::strideBk},
    {"strideBn", &StridedBatchedGemm::strideBn},
    {"batchStrideC", &StridedBatchedGemm::batchStrideC},
    {"strideCm", &StridedBatchedGemm::strideCm},
    {"strideCn", &StridedBatchedGemm::strideCn},
};
static_assert(sizeof(StridedBatchedGemm) == std::size(gemmFields) * sizeof(int64_t),
              "every member has its name");

}  // namespace weft
