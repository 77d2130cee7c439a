// Frequencies of rotary embeddings that were stretched to more positions than a model was first
// trained with (Llama 3.1): fast pairs keep theirs, slow ones are slowed down by a factor, and
// those in between are mixed.
#pragma once

#include "weft/math.cuh"

namespace weft {

/// f = base^(-2 pair / extent), with `scale` = -2 log2(base) / extent: times the share
/// f slope + offset in [0, 1], plus the rest of it times `least`.
__device__ __forceinline__ float scaledFrequency(int pair, float scale, float least, float slope,
                                                 float offset) {
  const float frequency = rotaryFrequency(pair, scale);
  const float share = fminf(fmaxf(fmaf(frequency, slope, offset), 0.0f), 1.0f);
  return frequency * fmaf(share, 1.0f - least, least);
}

}  // namespace weft
