// What proposed a candidate kernel, as facts. Explain, reports and graph.mlir show the text.
//
// Invariant: only a fusion has patterns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

/// The structural patterns between the ops of a fused candidate (passes/fuse/Fusion.h).
struct FusionPatterns {
  bool producerConsumer = false, reductionConsumer = false, sharedInput = false,
       launchMerging = false;
  bool operator==(const FusionPatterns &) const = default;
};
/// "producer-consumer + reduction-consumer", in the order of the members; empty for none.
std::string text(const FusionPatterns &patterns);
/// Nothing for what text() does not print.
std::optional<FusionPatterns> parseFusionPatterns(std::string_view text);

namespace select {

struct Proposal {
  enum class By : uint8_t {
    op,       ///< an op alone
    packing,  ///< an op alone that moves parameters: it happens when they are loaded
    fusion,   ///< the fusion rules, by the patterns
  };
  By by = By::op;
  FusionPatterns patterns = {};
  bool operator==(const Proposal &) const = default;
};
/// "alone", "pack: at load", "fuse: producer-consumer".
std::string text(const Proposal &proposal);

}  // namespace select
}  // namespace weft
