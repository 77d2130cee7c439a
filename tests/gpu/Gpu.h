// The GPU that the tests of this folder run on.
#pragma once

#include "runtime/cuda/Cuda.h"

namespace weft::test {

/// Current on the main thread as long as tests run.
const runtime::cuda::Context &gpu();

}  // namespace weft::test
