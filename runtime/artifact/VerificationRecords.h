// Verification records: which exact kernel texts agreed with fp64 on which GPU, at how many points
// and by which verifier, as text that can be read, merged and shipped.
//
//   # weft verified 3
//   # hash  verdict  verifier  points  kernel  GPU
//   7d3f...  agrees  2  8192  softmax__h_b_j_k  NVIDIA H200
//
// The hash is of the text and of its launch (recordHashOf()); in records of verifier 1 of the text
// alone.
//
// Without a date, so that verifying again changes nothing. Records are believed from two stores
// alone: the shipped one (profiles/verified.txt, embedded at build) and that of this machine,
// beside the kernel cache, to which `weft verify` adds. An artifact holds none: whatever travels
// with a plan claims nothing.
#pragma once

#include "runtime/artifact/Artifact.h"
#include "runtime/build/Build.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace weft::runtime {

/// Raised whenever `weft verify` begins to find faults that it did not find before. Records of
/// older verifiers are shown as such and do not count. 1 recorded kernels before the whole plan was
/// checked.
inline constexpr int verifierVersion = 2;

enum class Verdict : uint8_t {
  agrees,
  fails,      ///< the kernel, at its true extents
  planFails,  ///< a whole plan with this kernel: it may be the kernel or what stands around it
  stale,      ///< agreed before its text was renamed, and nobody has shown that it is the same
};
/// "agrees", "fails", "plan-fails", "stale".
std::string_view nameOf(Verdict verdict);

struct VerificationRecord {
  std::string hash;
  std::string gpu;
  Verdict verdict = Verdict::agrees;
  int verifier = verifierVersion;
  int64_t points = 0;  ///< checked, of all outputs; 0: not known, as of verifier 1
  std::string kernel;  ///< a readable name, of no meaning
  bool operator==(const VerificationRecord &) const = default;
};

using VerificationRecords =
    std::map<std::pair<std::string, std::string>, VerificationRecord>;  ///< by hash and GPU

/// Reads formats 1 to 3; 2 has no stale records. Throws Error(badInput) naming `where` and the
/// line: a newer format, a row of another one.
VerificationRecords parseRecords(std::string_view text, const std::string &where);
/// In format 3.
std::string printRecords(const VerificationRecords &records);

const VerificationRecords &shippedRecords();
std::filesystem::path machineRecordsFile();
/// Empty if there is no such file.
VerificationRecords readRecords(const std::filesystem::path &file);

/// What one run found. `isWhole`: the whole plan was checked, too; without, a record that a whole
/// plan failed stays.
struct VerificationRun {
  std::vector<VerificationRecord> records;
  bool isWhole = false;
};
/// `old` with the run's findings: what fails takes the place of what agreed; of two that agree,
/// that of the newer verifier stays, or that with more points.
VerificationRecords merged(VerificationRecords old, const VerificationRun &run);

/// Which records a store holds.
enum class RecordStore : uint8_t {
  machine,  ///< all; failures outweigh the shipped store
  shipped,  ///< what agreed: what fails is removed
};
/// Merges into the file as one step: readers see the old or the new one, and of several processes
/// that add at once none loses what another adds. Throws Error(badInput) when it cannot be written.
void addRecords(const VerificationRun &run, const std::filesystem::path &file, RecordStore store);

/// What is known of a text.
struct Verification {
  enum class State : uint8_t {
    never,
    older,
    agrees,
    fails,
    planFails,
    unknown,  ///< which text was built cannot be told: its artifact has no manifest
  };
  State state = State::never;
  VerificationRecord record = {};  ///< unless never
  bool agrees() const { return state == State::agrees; }
};
/// "never", "older-verifier", "agrees", "fails", "plan-fails", "unknown": for
/// JSON.
std::string_view nameOf(Verification::State state);
/// "on NVIDIA H200, at 8192 points"; "never on a GPU (weft verify)".
std::string describe(const Verification &verification);

/// The stores that are believed, as they are when this is made.
class BelievedRecords {
public:
  /// Throws Error(badInput) where this machine's store is malformed.
  BelievedRecords() : BelievedRecords(shippedRecords(), readRecords(machineRecordsFile())) {}
  BelievedRecords(const VerificationRecords &shipped, const VerificationRecords &machine);

  /// A failure on any GPU before what agreed, what agreed before what an older verifier found.
  /// `hash` may be empty: never.
  Verification of(const std::string &hash) const;
  /// Of a kernel that was edited by hand: never, since the plan's hash is of another text; without
  /// a manifest, unknown. An older verifier's record counts as such for every launch, and so does a
  /// failure of the text.
  Verification of(const PlanKernel &kernel) const;

private:
  VerificationRecords records;
};

/// What a record binds of a text: hash of text (without its launch checks, kernel/LaunchCheck.h),
/// all headers that it includes, flags and architecture; not the NVRTC that built it.
std::string textHashOf(const BuildRequest &request, const BuildOptions &options);
/// The same of a library GEMM: of its key, which holds problem, layouts, algorithm and library
/// version.
std::string textHashOf(const PlanKernel &gemm);
/// Of a kernel's textHash with its grid, block and shared memory: a launch that no verifier saw is
/// not verified, whatever was found of the text. Empty where the kernel has no text.
std::string recordHashOf(const PlanKernel &kernel);

}  // namespace weft::runtime
