// One emitted kernel on given arguments: stores them in the configuration's layouts, runs every
// thread, reads the results back in logical order. Outputs and the workspace are poisoned with NaN
// first.
#pragma once

#include "codegen/Emit.h"
#include "ir/interpreter/Tensor.h"
#include "tests/emulate/HostCompiler.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft::emulate {

struct DropoutBits {
  uint64_t seed = 1, step = 0;
};

struct LaunchResult {
  std::string error;                      ///< empty, or what went wrong with threads or memory
  std::vector<TensorValue> outputs;       ///< in the order of Kernel::outputs
  std::map<int, uint64_t> reported = {};  ///< by input: what the kernel says of its elements
};

/// `arguments` in the order of Kernel::inputs. `overwritten`: the position of an input in whose
/// memory output 0 lies; that input may change.
LaunchResult launch(const Kernel &kernel, const Configuration &configuration,
                    const codegen::EmittedKernel &emitted, const HostKernel &host,
                    const std::vector<TensorValue> &arguments, DropoutBits bits, Schedule schedule,
                    std::optional<size_t> overwritten = {});

}  // namespace weft::emulate
