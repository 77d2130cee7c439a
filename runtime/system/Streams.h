// The ends of a command: standard streams that may be closed, full or left by their reader, and
// exceptions as messages and exit codes. `weft`, `weft-run` and the C interface end alike.
#pragma once

#include "kernel/Error.h"

#include <fmt/format.h>

#include <exception>
#include <string>
#include <string_view>

namespace weft::runtime {

/// The first line of every main. A stream that is closed is opened as one that cannot be written,
/// so that no file takes its number; writing to a pipe that nobody reads, or beyond a limit of a
/// file's size, is an error of the write and no signal.
void prepareStreams();

/// To standard error. Never throws: where messages cannot be written, there is nobody to tell.
void say(std::string_view text) noexcept;

/// To standard output. Throws Error(badInput) when it cannot be written.
void printOut(std::string_view text);
template <typename... Arguments>
void printOut(fmt::format_string<Arguments...> text,
              Arguments &&...arguments) requires(sizeof...(Arguments) > 0) {
  printOut(std::string_view(fmt::format(text, std::forward<Arguments>(arguments)...)));
}
/// Everything that was printed is written. Throws Error(badInput) when it cannot be.
void finishOutput();

/// What an exception means for whoever called.
struct Failure {
  ErrorKind kind = ErrorKind::checkFailed;
  std::string message;
};
/// Of an exception that is being handled: an Error as it says; no memory; a file or stream that the
/// system rejects, which is bad input; all else is a failure of the program itself. The message is
/// printable (kernel/PlainText.h).
Failure failureOf(const std::exception_ptr &exception);

}  // namespace weft::runtime
