// Streams and failures; see Streams.h.
#include "runtime/system/Streams.h"

#include "kernel/PlainText.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace weft::runtime {

namespace {

Error outputError() {
  const int code = errno;
  if (code == EPIPE) return Error::badInput("{}", "");  // its reader has read what it wanted
  return Error::badInput("standard output cannot be written: {}", std::strerror(code));
}

}  // namespace

void prepareStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      open("/dev/null", O_RDONLY);  // takes the least number that is free: this one
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void say(std::string_view text) noexcept {
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void printOut(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw outputError();
}

void finishOutput() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw outputError();
}

Failure failureOf(const std::exception_ptr &exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error &error) {
    return {error.kind, error.what()};
  } catch (const std::bad_alloc &) {
    return {ErrorKind::checkFailed,
            "out of memory: the host could not give what this command needs"};
  } catch (
      const std::system_error &error) {  // files that nobody expected to fail; the text names them
    return {ErrorKind::badInput, printable(error.what())};
  } catch (const std::exception &error) {
    return {ErrorKind::checkFailed, fmt::format("internal error: {}", printable(error.what()))};
  } catch (...) {
    return {ErrorKind::checkFailed, "internal error: an exception of an unknown kind"};
  }
}

}  // namespace weft::runtime
