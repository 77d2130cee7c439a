// A form of attention that was asked for by name and cannot be had. Whoever prices all forms tells
// the reason alone: nobody asked for one of them there.
#pragma once

#include "kernel/Error.h"

#include <string>
#include <string_view>

namespace weft {

class RejectedAttention : public Error {
public:
  /// `flag`: what asked for it, "--attention fused"; `nearest`: "the nearest alternative is ...".
  RejectedAttention(std::string_view flag, const std::string &reason, std::string_view nearest)
      : Error(ErrorKind::unsupported, fmt::format("{}: {}; {}", flag, reason, nearest)),
        reason(printable(reason)) {}

  const std::string reason;  ///< without the flag and its alternatives
};

}  // namespace weft
