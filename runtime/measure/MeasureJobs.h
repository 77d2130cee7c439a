// What is asked of a measuring process, and its answers. Plain data with a CBOR form, so that
// measuring can run in another process: a kernel that crashes or hangs takes that process down,
// never the profile.
//
// A group holds configurations of one subject, which are measured against each other in interleaved
// rounds.
#pragma once

#include "codegen/families/library/LibraryGemm.h"
#include "codegen/families/library/LibraryKnobs.h"
#include "codegen/tma/TensorMap.h"
#include "kernel/ParameterKind.h"
#include "kernel/Profile.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::runtime {

struct KernelArgument {
  ParameterKind kind = ParameterKind::input;
  int index = 0;                   ///< of the input or output
  std::optional<TensorMap> map{};  ///< of inputMap and outputMap
  bool operator==(const KernelArgument &) const = default;
};

/// One launchable kernel. Buffers are the measuring process's own.
struct KernelJob {
  std::string cubin, entry;
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  int64_t sharedBytes = 0;
  std::vector<KernelArgument> arguments;
  std::vector<int64_t> inputBytes, outputBytes;
  int64_t workspaceBytes = 0;  ///< what the argument of kind workspace is the address of
  std::vector<int>
      zeroInputs;  ///< inputs that are indices or flags: zeros instead of random numbers
  std::vector<int> lengthInputs;  ///< inputs that say how much there is: more than any tensor has,
                                  ///< so that nothing is left out
  /// Inputs that list pages, and how many pages there are: far from each other, as in use.
  std::vector<std::pair<int, int64_t>> pageInputs;
  bool readsFloat8 = false;  ///< whether an input is of 8-bit floats: the random bits are then such
  bool operator==(const KernelJob &) const = default;
};

/// All candidates that cuBLASLt's heuristic lists for one GEMM.
struct GemmJob {
  LibraryGemm gemm;
  int candidates = 128;  ///< asked of the heuristic
  bool operator==(const GemmJob &) const = default;
};

struct MeasureGroup {
  double bestFirstRun = 0;  ///< seconds of the fastest first run of the subject so far; 0: none yet
  std::vector<KernelJob> kernels;
  std::optional<GemmJob> gemm;  ///< instead of kernels
  bool operator==(const MeasureGroup &) const = default;
};

struct MeasureResult {
  size_t job = 0;  ///< index into the group's kernels; position in the heuristic's list for a GEMM
  LibraryKnobs knobs;  ///< of a GEMM's candidate
  MeasurementStatus status = MeasurementStatus::measured;
  double seconds = 0;
  int64_t n = 0;
  double spread = 0;
  std::string reason = {};
  bool operator==(const MeasureResult &) const = default;
};

struct MeasureReply {
  double bestFirstRun = 0;
  std::vector<MeasureResult> results = {};
  std::string fatal =
      {};  ///< the error that cost the process its GPU context; it ends after this reply
  bool operator==(const MeasureReply &) const = default;
};

/// What a measuring process says when it has started.
struct MeasureGreeting {
  std::string gpu = {}, architecture = {};  ///< "NVIDIA H200", "sm_90"
  std::string driver = {};                  ///< "driver 580.159.04, CUDA 13.0"
  std::string protocol = {};                ///< how it measures
  std::string clocks = {};                  ///< before the first measurement
  std::string error = {};                   ///< why it cannot measure; empty: it can
  int errorKind = 0;
};

/// A configuration whose first run takes longer than this times the subject's best first run is
/// given up as `slow`.
inline constexpr double slowFactor = 5;

/// Bodies of frames (WorkerProtocol.h). Reading throws Error(checkFailed) for bytes that are no
/// such message.
std::string toBody(const MeasureGroup &group);
std::string toBody(const MeasureReply &reply);
std::string toBody(const MeasureGreeting &greeting);
MeasureGroup measureGroupFrom(std::string_view body);
MeasureReply measureReplyFrom(std::string_view body);
MeasureGreeting measureGreetingFrom(std::string_view body);

}  // namespace weft::runtime
