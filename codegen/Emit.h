// Kernel + configuration in, CUDA text out. MLIR-free. Lowering makes loops, tiles, buffers and
// barriers explicit in a kernel program (Program.h); emission prints it and decides nothing. One
// .cpp a family.
#pragma once

#include "codegen/tma/TensorMap.h"
#include "kernel/Configuration.h"
#include "kernel/Device.h"
#include "kernel/ParameterKind.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weft::codegen {

/// What a kernel parameter is bound to at launch. A tensor's pointer is the address of its element
/// zero: whoever binds it has added the layout's offset.
struct Parameter {
  /// inputMap, outputMap: in place of the address of a tensor, `map` of it as the driver encodes it
  /// with that address.
  using Kind = ParameterKind;
  Kind kind = Kind::input;
  int index = 0;  ///< input / output position of the kernel; body op index for dropoutStream and
                  ///< dropoutOuter
  std::string name{};
  std::string type{};  ///< CUDA spelling
  std::optional<TensorMap> map{};
  bool operator==(const Parameter &) const = default;
};

/// The number that it passes: an attribute of the body op that the parameter names. Throws
/// Error(checkFailed) for addresses.
uint32_t numberOf(const Parameter &parameter, const Kernel &kernel);

struct Launch {
  std::array<int64_t, 3> grid{1, 1, 1};
  std::array<int64_t, 3> block{1, 1, 1};
  int64_t sharedBytes = 0;  ///< dynamic
  int64_t cluster =
      1;  ///< blocks of a cluster along x; the text says so itself, so a launch need not
  /// Programmatic dependent launch: the text waits for the kernels before it, so that its blocks
  /// may start while those end, and lets the next kernel start early, too.
  bool startsEarly = false;
  /// What the parameter of kind `workspace` is the address of (Family::workspaceBytes); 0: there is
  /// no such parameter. emit() fills it in.
  int64_t workspaceBytes = 0;
  bool operator==(const Launch &) const = default;
};

/// For people alone: prepended as a comment and never hashed.
struct Provenance {
  std::string position;            ///< "kernel 6 of paper-encoder, forward"
  std::vector<std::string> ops;    ///< "%24 = add %22, %bias"
  std::vector<std::string> notes;  ///< "fused by ...", "not fused into ..."
};

/// How a text is printed beside what its kernel and configuration say.
struct EmitOptions {
  /// Launch::startsEarly of every text of an architecture that has it; the entry point is then
  /// called as waitingEntry() has it.
  bool startsEarly = false;
};

struct EmittedKernel {
  std::string entry{};  ///< the extern "C" name in both texts (codegen/EntryName.h)
  std::string
      text{};  ///< hashed: without provenance; canonical names, so equal kernels give equal text
  std::string timedText{};  ///< what measurements of it are of: `text` without EmitOptions,
                            ///< its pointers __restrict__
  std::string readable{};   ///< the same kernel with the header comment and the model's names: what
                            ///< kernels/*.cu holds
  std::vector<Parameter> parameters{};
  Launch launch{};
  std::vector<std::string> headers{};  ///< device headers included, e.g. "weft/vector.cuh"
  int64_t bytesRead = 0, bytesWritten = 0;
  double flop = 0;
};

/// `architecture` is "sm_80", "sm_86", "sm_89", "sm_90a". Throws Error(unsupported) naming the op
/// when a family cannot take the kernel (a configuration from enumerate() never does).
EmittedKernel emit(const Kernel &kernel, const Configuration &configuration,
                   std::string_view architecture, const Provenance &provenance = {},
                   const EmitOptions &options = {});

/// The kernel program before printing, as text, for --stop-after lower.
std::string lowerToText(const Kernel &kernel, const Configuration &configuration,
                        std::string_view architecture);

/// Device headers by include name ("weft/vector.cuh" -> text), embedded at build.
const std::map<std::string, std::string_view> &deviceHeaders();

}  // namespace weft::codegen
