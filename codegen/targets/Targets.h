// What the architectures that kernels are emitted for can do. An architecture is named as NVRTC
// spells it ("sm_90a"); a GPU as its driver does ("sm_90"). Supporting another one is its line in
// `targets()` and whatever it can do beyond the others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::codegen {

/// Those that kernels are emitted for, oldest first.
const std::vector<std::string_view> &targets();

/// Whether blocks can form clusters, which read each other's shared memory: sm_90 and later.
bool hasClusters(std::string_view architecture);

/// Whether a kernel may start while the one before it ends (griddepcontrol): sm_90 and later.
bool hasEarlyStarts(std::string_view architecture);

/// Whether it has WGMMA, and TMA that moves boxes of tensors: sm_90a alone.
bool hasWgmma(std::string_view architecture);

/// Whether it has cp.async and mma.sync with fp32 accumulators: sm_80 and later.
bool hasMmaSync(std::string_view architecture);

/// Whether a GPU takes what is built for the target: "sm_90a" runs on sm_90 alone, "sm_80" on every
/// sm_8x.
bool runsOn(std::string_view target, std::string_view gpu);

/// The newest target that runs on the GPU; the GPU's name where none does.
std::string targetOf(std::string_view gpu);

}  // namespace weft::codegen
