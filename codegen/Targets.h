// What the architectures that kernels are emitted for can do. An architecture is named as NVRTC
// spells it ("sm_90a"). Supporting another one is its line in `targets()` and whatever it can do
// beyond the others.
#pragma once

#include <string_view>
#include <vector>

namespace weft::codegen {

/// Those that kernels are emitted for, oldest first.
const std::vector<std::string_view> &targets();

/// Whether blocks can form clusters, which read each other's shared memory: sm_90 and later.
bool hasClusters(std::string_view architecture);

/// Whether it has WGMMA, and TMA that moves boxes of tensors: sm_90a alone.
bool hasWgmma(std::string_view architecture);

/// Whether it has cp.async and mma.sync with fp32 accumulators: sm_80 and later.
bool hasMmaSync(std::string_view architecture);

}  // namespace weft::codegen
