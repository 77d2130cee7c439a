// The old words of renamedFamilies, knobs and subjects, and what they are called now.
#include "kernel/ProfileMigration.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace weft {
namespace {

using Words = std::pair<std::string_view, std::string_view>;  // old, new

constexpr std::array ofSm90 = {
    Words{"staging=", "epilogueStages="}, Words{"raster=", "groupM="},
    Words{"splits=", "splitK="},          Words{"sharers=", "multicastB="},
    Words{"streams=", "streamK="},        Words{"schedule=narrow", "schedule=single-consumer"}};
constexpr std::array ofSm80 = {Words{"raster=", "groupM="}};

struct RenamedFamily {
  Words name;
  std::span<const Words> knobs;
};
const std::array renamedFamilies = {RenamedFamily{{"hopper-contraction", "gemm-sm90"}, ofSm90},
                                    RenamedFamily{{"ampere-contraction", "gemm-sm80"}, ofSm80},
                                    RenamedFamily{{"plain-contraction", "gemm-fma"}, {}}};

constexpr Words firstWord = {"product ", "gemm "};

std::string migratedKnob(std::string_view knob, std::span<const Words> knobs) {
  for (const auto &[old, now] : knobs)
    if (old.back() == '=' ? knob.starts_with(old) : knob == old)
      return std::string(now) + std::string(knob.substr(old.size()));
  return std::string(knob);
}

}  // namespace

std::string migratedLine(std::string_view line) {
  const auto family = std::ranges::find_if(renamedFamilies, [&](const RenamedFamily &family) {
    return line.starts_with(family.name.first) && line.substr(family.name.first.size(), 1) == " ";
  });
  if (family == renamedFamilies.end()) return std::string(line);
  line.remove_prefix(family->name.first.size());
  std::string text(family->name.second);
  while (!line.empty()) {
    const size_t end = std::min(line.find(' ', 1), line.size());
    text += ' ' + migratedKnob(line.substr(1, end - 1), family->knobs);
    line.remove_prefix(end);
  }
  return text;
}

MigratedSubject migratedSubject(std::string_view hash, std::string_view name) {
  MigratedSubject subject{.hash = std::string(hash), .name = std::string(name)};
  if (!name.starts_with(firstWord.first)) return subject;
  subject.name.replace(0, firstWord.first.size(), firstWord.second);
  if (profileHash(name) == hash) subject.hash = profileHash(subject.name);
  return subject;
}

}  // namespace weft
