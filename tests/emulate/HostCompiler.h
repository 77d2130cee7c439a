// Compiles many emitted kernels into one shared object of the host and loads it. Each kernel's text
// stands unchanged in a separate namespace; only its extern "C" name is made unique, because
// texts of equal kernels have equal names.
#pragma once

#include "tests/emulate/Emulator.h"

#include <filesystem>
#include <string>
#include <vector>

namespace weft::emulate {

/// One kernel to compile: the text, and the name of its extern "C" function.
struct Source {
  std::string text, entry;
};

/// What stands for device headers of sm_90a: quick ones of host/weft and of families, with loops in
/// the place of asynchronous copies and products; or the headers themselves, down to their PTX
/// (sm90/), as that of the sources.
enum class DeviceHeaders : uint8_t { standIns, translated };

/// A loaded kernel: takes the addresses of its arguments.
struct HostKernel {
  void (*call)(void *const *arguments) = nullptr;
  std::span<std::byte> shared;  ///< its __shared__ variables
};

/// How products and sums round: each operation, or a * b + c once, as NVRTC makes of it by itself
/// (takes half as long again to build).
enum class Rounding { ofEach, contracted };

/// The shared object stays loaded while this lives.
class HostLibrary {
public:
  /// `name` names the folder of the generated files, below the build folder. Throws
  /// Error(checkFailed) with the compiler's messages.
  HostLibrary(const std::string &name, const std::vector<Source> &sources,
              DeviceHeaders headers = DeviceHeaders::standIns,
              Rounding rounding = Rounding::ofEach);
  ~HostLibrary();
  HostLibrary(const HostLibrary &) = delete;
  HostLibrary &operator=(const HostLibrary &) = delete;

  const HostKernel &kernel(size_t position) const { return kernels[position]; }

private:
  void *handle = nullptr;
  std::vector<HostKernel> kernels;
};

}  // namespace weft::emulate
