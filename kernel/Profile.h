// Profiles: measured times of kernels, as text that can be read, sorted, merged and reviewed.
//
//   # weft profile 4
//   # device h200
//   # protocol 1 cold L2, ..., NVIDIA H200, driver 13.0
//   kernel 7d3f9c0a11223344 softmax_dropout
//     4.11e-05 20 0.012 1 04c2aabb11223344 1 loop 0123>0123,0123 vector=a3 lanes=a3
//     8.05e-04 slow 1 - 1 loop 3120>0123,0123 vector=a3 lanes=a3
//   kernel 91ab00... gemm f16 64 x 512 x 512 x 64
//     failed 1 - 1 cublaslt 64,1:32768_1,64:32768>512,1:262144 algorithm=66 ; NOT_SUPPORTED
//
// A line `kernel` has the hash of the subject's text (ConfigurationText.h) and a name for people.
// Below it, each line is one measurement:
//
//   SECONDS N SPREAD PROTOCOL SOURCE VERSION LINE    measured
//   SECONDS slow PROTOCOL SOURCE VERSION LINE        given up after the first run, which took more
//                                                    than 5 times the kernel's best
//   failed PROTOCOL SOURCE VERSION LINE ; REASON     not built, not supported by the library, or
//                                                    crashed
//
//   SECONDS   median, quantized when written (see quantized())
//   N         repetitions
//   SPREAD    (p90 - p10) / median
//   PROTOCOL  number of a `# protocol` line
//   SOURCE    hash of what decides a kernel's speed, its emitted text and the device headers it
//             includes (codegen/SourceHash.h); "-": a library's kernel, or unknown
//   VERSION   familyVersion() at the time; a measurement of another version is used, and stale
//   LINE      the configuration
//
// Files of formats 2 and 3 are migrated when they are read (ProfileMigration.h). Their sources are
// hashes of the text alone, which match no kernel today: these measurements are used, and stale.
#pragma once

#include "kernel/ConfigurationText.h"

#include <map>
#include <string>
#include <vector>

namespace weft {

enum class MeasurementStatus : uint8_t { measured, slow, failed };
std::string_view nameOf(MeasurementStatus status);

struct ProfileMeasurement {
  MeasurementStatus status = MeasurementStatus::measured;
  double seconds = 0;  ///< 0 if failed
  int64_t n = 0;
  double spread = 0;
  int protocol = 1;  ///< number in Profile::protocols
  std::string source = "-";
  int familyVersion = 0;
  std::string reason = {};  ///< of a failure; one line
  bool operator==(const ProfileMeasurement &) const = default;
};

/// All measurements of one subject, by the line of the configuration.
struct ProfileKernel {
  std::string name;
  std::map<std::string, ProfileMeasurement, std::less<>> measurements;
  bool operator==(const ProfileKernel &) const = default;
};

/// Those in a family under layouts or strides (placeText()), by their lines. They live as long as
/// the kernel does.
std::vector<std::pair<std::string_view, const ProfileMeasurement *>> measurementsAt(
    const ProfileKernel &kernel, const Family &family, std::string_view place);

struct Profile {
  std::string device;                                         ///< "h200"
  std::map<int, std::string> protocols;                       ///< from 1
  std::map<std::string, ProfileKernel, std::less<>> kernels;  ///< by the subject's hash

  size_t measurementCount() const;
  /// The number of a protocol, added if it is new.
  int protocolNumber(const std::string &protocol);
  bool operator==(const Profile &) const = default;
};

/// FNV-1a, 64 bits: of a text, or of the text hashed to `state` followed by this one.
uint64_t fnv1a(std::string_view text, uint64_t state = 0xcbf29ce484222325u);
/// As 16 hexadecimal digits.
std::string hashText(uint64_t hash);
std::string profileHash(std::string_view text);
/// Rounded to 3 significant digits, so that times within the noise are equal and equality is
/// transitive.
double quantized(double seconds);

/// Checks what holds for every measurement in a text or a store: a positive and finite time, the
/// repetitions and the spread that its status has, a known protocol, a valid source, the reason of
/// a failure, the line of a configuration. Throws Error(badInput) with the problem alone; the
/// caller adds the place.
void checkMeasurement(std::string_view configuration, const ProfileMeasurement &measurement,
                      const std::map<int, std::string> &protocols);
/// The same of a kernel's hash, and of a protocol.
void checkKernelHash(std::string_view hash);
void checkProtocol(int64_t number, std::string_view text);

/// Adds a measurement to the profile under its subject. Throws Error(checkFailed) if it is there
/// already.
void addMeasurement(Profile &profile, const Kernel &kernel, const Configuration &configuration,
                    const ProfileMeasurement &measurement);

/// Throws Error(badInput) naming `where` and the line.
Profile parseProfile(std::string_view text, const std::string &where);
/// Sorted by kernel and configuration; equal profiles give equal text.
std::string printProfile(const Profile &profile);

/// Adds the measurements of `other`. Of two measurements of one configuration the one of the newer
/// family version stays, then the measured one, then the one of more repetitions, then that of
/// `other`. Throws Error(badInput) if the devices differ.
void mergeProfile(Profile &profile, const Profile &other);

/// The fastest `perLayouts` measurements of every kernel under every layouts; no failed ones, and
/// slow ones only where a kernel has no other under these layouts. Selection chooses from these as
/// it would from all.
Profile thinned(const Profile &profile, int perLayouts);

}  // namespace weft
