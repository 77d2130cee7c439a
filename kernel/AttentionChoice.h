// How attentions may be computed, as a value: for the passes that propose it, for the phase that
// prices it, and for who asks.
//
// Invariant: every value but `automatic` is one way, of which a plan has one at each attention.
#pragma once

#include "kernel/Spelling.h"

#include <array>
#include <cstdint>

namespace weft {

/// How attentions are computed (docs/glossary.md).
enum class AttentionChoice : uint8_t { automatic, unfused, decomposed, recomposed, fused };
template <>
inline constexpr std::array<Spelling<AttentionChoice>, 5> spellings<AttentionChoice>{
    {{"auto", AttentionChoice::automatic},
     {"unfused", AttentionChoice::unfused},
     {"decomposed", AttentionChoice::decomposed},
     {"recomposed", AttentionChoice::recomposed},
     {"fused", AttentionChoice::fused}}};

}  // namespace weft
