// Rows without a GPU: times drawn around the model's from a hash of what is timed, the same in
// every run.
#pragma once

#include "codegen/families/library/LibraryKnobs.h"
#include "kernel/Profile.h"
#include "passes/decide/ProfileSpace.h"

namespace weft::samples {

/// The modelled time times 0.8 to 1.25.
inline double pretendedSeconds(double modelled, const std::string &subject,
                               const std::string &line) {
  const uint64_t hash = std::stoull(profileHash(subject + line), nullptr, 16);
  return quantized(modelled * (0.8 + 0.45 * double(hash >> 11) / double(uint64_t(1) << 53)));
}

/// A measurement for every item of the space, and for every GEMM some algorithms.
inline Profile completeProfile(const decision::ProfileSpace &space) {
  Profile profile{.device = "h200", .protocols = {{1, "pretended"}}, .kernels = {}};
  const auto measurement = [](double seconds, const Family &family) {
    return ProfileMeasurement{
        .seconds = seconds, .n = 9, .spread = 0.01, .familyVersion = family.version};
  };
  for (const decision::ProfileItem &item : space.items) {
    const Kernel &kernel = space.kernels[item.kernel].kernel;
    addMeasurement(profile, kernel, item.configuration,
                   measurement(pretendedSeconds(item.modelled, item.subject, item.line),
                               item.configuration.knobs.family()));
  }
  for (const decision::ProfileGemm &gemm : space.gemms)
    for (const int tile : {17, 20, 35}) {
      const LibraryKnobs knobs{.libraryVersion = 130100, .algorithm = 66, .tile = tile};
      const std::string line = gemmLine(gemm.place, knobs);
      ProfileKernel &kernel = profile.kernels[gemm.subject];
      kernel.name = gemm.name;
      kernel.measurements.emplace(
          line, measurement(pretendedSeconds(gemm.modelled, gemm.subject, line), knobs.family()));
    }
  return profile;
}

}  // namespace weft::samples
