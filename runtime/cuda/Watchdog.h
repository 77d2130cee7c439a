// The first launch of a kernel is waited for, but not for ever: a kernel that hangs is named.
#pragma once

#include "runtime/cuda/Cuda.h"

#include <chrono>
#include <functional>

namespace weft::runtime {

/// Waits until the stream's work is done; when it is not after `limit`, calls `onHang`, which ends
/// the process or throws. Throws DriverError if a kernel failed.
void awaitWithin(cuda::StreamHandle *stream, std::chrono::milliseconds limit,
                 const std::function<void()> &onHang);

/// Prints the text to standard error and ends the process with exit code 1 at once: after a hang
/// every other call of the driver may wait for ever, also those of destructors.
[[noreturn]] void exitAfterHang(const std::string &text);

}  // namespace weft::runtime
