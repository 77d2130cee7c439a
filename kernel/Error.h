// The one exception of the MLIR-free libraries. Its kind decides the exit code of the command line;
// its text names what, where, the limit and the nearest supported alternative, and quotes files and
// arguments: it is made printable here, for whoever shows it, and because what() would end at a
// zero byte.
#pragma once
#ifndef WEFT_KERNEL_ERROR_H  // beside a precompiled header of a compiler cache
#define WEFT_KERNEL_ERROR_H

#include "kernel/PlainText.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace weft {

/// Exit codes of every weft command (design rule 11).
enum class ErrorKind : int {
  checkFailed = 1,  ///< a check failed: a test, a verification, a broken artifact
  badInput = 2,     ///< usage, or input that contradicts itself
  unsupported = 3,  ///< understood, but not supported
  strictMiss = 4,   ///< would have fallen back, and --strict forbids it
};

class Error : public std::runtime_error {
public:
  Error(ErrorKind kind, const std::string &text)
      : std::runtime_error(printable(text)), kind(kind) {}

  template <typename... Arguments>
  static Error badInput(fmt::format_string<Arguments...> text, Arguments &&...arguments) {
    return Error(ErrorKind::badInput, fmt::format(text, std::forward<Arguments>(arguments)...));
  }
  template <typename... Arguments>
  static Error unsupported(fmt::format_string<Arguments...> text, Arguments &&...arguments) {
    return Error(ErrorKind::unsupported, fmt::format(text, std::forward<Arguments>(arguments)...));
  }
  template <typename... Arguments>
  static Error checkFailed(fmt::format_string<Arguments...> text, Arguments &&...arguments) {
    return Error(ErrorKind::checkFailed, fmt::format(text, std::forward<Arguments>(arguments)...));
  }
  template <typename... Arguments>
  static Error strictMiss(fmt::format_string<Arguments...> text, Arguments &&...arguments) {
    return Error(ErrorKind::strictMiss, fmt::format(text, std::forward<Arguments>(arguments)...));
  }

  const ErrorKind kind;
};

}  // namespace weft

#endif  // WEFT_KERNEL_ERROR_H
