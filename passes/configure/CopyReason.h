// Why a slice or a concatenation moves elements though it might be a view.
#pragma once

#include "kernel/ReasonCodes.h"

#include <fmt/format.h>

#include <string>

namespace weft {

/// A stable code, V001 to V005, and what of the configuration it is about.
struct CopyReason {
  ReasonCode code;
  std::string detail;
  /// "V005 runs-not-whole-lines (runs along q in iq are no multiples of 128 bytes)"
  std::string text() const { return fmt::format("{} {} ({})", code.code, code.reason, detail); }
};

}  // namespace weft
