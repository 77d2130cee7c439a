// Profile files: measured times of kernels, as text that can be read, sorted, merged and reviewed.
//
//   # weft profile 1
//   # device h200
//   # protocol cold L2, 1980 MHz, driver 580.159
//   # kernel configuration family version source seconds n spread
//   7d3f...  91ab...  loop  1  04c2...  9.01e-06  50  0.012
//
// kernel        hash of canonicalText(kernel), so that kernels without any row are told at once
// configuration hash of canonicalText(kernel, configuration, architecture) without its family version: profileKey()
// version       familyVersion() when it was measured; a row of another version is used, and stale
// source        hash of the emitted text; a row whose source differs from today's is stale. "-": unknown
// seconds       median, quantized when written (see quantized()); n: repetitions; spread: (p90 - p10) / median
#pragma once

#include "kernel/Configuration.h"

#include <map>
#include <set>
#include <string>

namespace weft {

struct ProfileRow {
  std::string kernel, configuration;  ///< 16 hexadecimal digits
  std::string family;
  int familyVersion = 0;
  std::string source = "-";
  double seconds = 0;
  int64_t n = 0;
  double spread = 0;
  bool operator==(const ProfileRow &) const = default;
};

struct Profile {
  std::string device;
  std::string protocol;
  std::map<std::string, ProfileRow> rows;  ///< by configuration hash
};

/// FNV-1a, 64 bits, as 16 hexadecimal digits.
std::string profileHash(std::string_view text);
/// The key of a row: it does not change with the version of the family, so that older rows are found and told stale.
std::string profileKey(const Kernel &kernel, const Configuration &configuration, std::string_view architecture);
/// Rounded to 3 significant digits, so that times within the noise are equal and equality is transitive.
double quantized(double seconds);

/// A row ready to be written.
ProfileRow profileRow(const Kernel &kernel, const Configuration &configuration, std::string_view architecture,
                      std::string_view sourceText, double seconds, int64_t n, double spread);

/// Throws Error(badInput) naming `where` and the line.
Profile parseProfile(std::string_view text, const std::string &where);
std::string printProfile(const Profile &profile);

}  // namespace weft
