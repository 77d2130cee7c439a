// What `weft verify` finds of an artifact: every kernel at its true extents against fp64, the whole
// plan on small extents against the interpreter, and of everything that was not checked the reason.
#pragma once

#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/VerificationRecords.h"
#include "runtime/verify/PointCheck.h"
#include "tools/driver/ScaledCheck.h"

#include <optional>
#include <string>
#include <vector>

namespace weft::driver {

struct VerifyOptions {
  std::string folder;
  std::string kernel;  ///< empty: all
  int64_t samples = 4096;
  uint64_t seed = 1;
  bool kernelsOnly = false;
};

struct KernelVerdict {
  std::string name, recordHash;
  bool isView = false;  ///< nothing runs, nothing to check
  std::optional<runtime::CheckResult> result;
  std::string unchecked;  ///< why there is no result
  /// Which of ArtifactVerdict::kernels the result is of, that of an earlier layer: equal but for
  /// its tensors. Nothing: its own.
  std::optional<size_t> sameAs = {};
  bool failed() const { return result && !result->passed(); }
  bool isUnchecked() const { return !isView && !result; }
};

struct WholeVerdict {
  bool isAsked = true;
  Dims dims;
  std::string unscaled;  ///< why the extents are the plan's own, if they are
  size_t kernels = 0;
  std::vector<ResultCheck> results;
  std::vector<decision::OtherKnobs> others;  ///< kernels that did not have their own knobs or text
  std::vector<std::string> warnings;         ///< algorithms of a library that were replaced
  std::string unchecked;                     ///< why it did not run
  std::string problem;                       ///< what failed, where it is no result
  bool ran() const { return isAsked && unchecked.empty(); }
  bool failed() const;
  bool passed() const;  ///< every result was checked and agrees
  /// Why it neither passed nor failed; empty where it did.
  std::string reason() const;
};

struct ArtifactVerdict {
  std::string gpu;
  std::vector<KernelVerdict> kernels;
  WholeVerdict whole;
  size_t agreed() const;
  size_t failed() const;  ///< kernels
  /// "NAME: reason" of every kernel, and of the whole plan, that was to be checked and was not.
  std::vector<std::string> unchecked() const;
};

/// Throws Error(badInput) for an artifact that cannot be read or contradicts itself,
/// Error(unsupported) where its GPU is not there.
ArtifactVerdict verifyArtifact(const VerifyOptions &options, const runtime::cuda::Context &context);

/// The whole plan alone, of an artifact in memory. `edited`: kernels whose .cu file holds another
/// text, which small extents cannot have.
WholeVerdict verifyWhole(const runtime::Artifact &artifact, const std::vector<std::string> &edited,
                         const runtime::cuda::Context &context, uint64_t seed);

/// What the run says of every text, now that all its checks are done.
runtime::VerificationRun recordsOf(const ArtifactVerdict &verdict);

}  // namespace weft::driver
