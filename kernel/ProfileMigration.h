// Profiles of format 2 in the words of format 3. Families and their knobs have other names, and a
// GEMM is called one, which changes the hash of its subject. Measurements stay what they are.
#pragma once

#include "kernel/Family.h"
#include "kernel/Profile.h"

#include <span>
#include <string>
#include <string_view>

namespace weft {

/// A word of format 2 and what it is called now.
struct RenamedWord {
  std::string_view old, now;
};
/// What profiles of format 2 call a family and its knobs: "raster=", or "schedule=narrow" where one
/// value has another name.
struct FormerWords {
  const Family &family;
  std::string_view name;
  std::span<const RenamedWord> knobs = {};
};
/// Of every family that had other words; their registry hands them over.
std::span<const FormerWords *const> formerWords();

/// The line of a configuration of format 2 as format 3 has it. A line that names no family of
/// format 2 is returned as it is; whoever checks it says what is wrong.
std::string migratedLine(std::string_view line);

struct MigratedSubject {
  std::string hash, name;
};
/// A subject of format 2. A hash that is not that of the GEMM's old text is kept.
MigratedSubject migratedSubject(std::string_view hash, std::string_view name);

}  // namespace weft
