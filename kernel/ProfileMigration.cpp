// The old words of families, knobs and subjects, and what they are called now.
#include "kernel/ProfileMigration.h"

#include <algorithm>

namespace weft {
namespace {

constexpr RenamedWord firstWord = {.old = "product ", .now = "gemm "};

std::string migratedKnob(std::string_view knob, std::span<const RenamedWord> knobs) {
  for (const auto &[old, now] : knobs)
    if (old.back() == '=' ? knob.starts_with(old) : knob == old)
      return std::string(now) + std::string(knob.substr(old.size()));
  return std::string(knob);
}

}  // namespace

std::string migratedLine(std::string_view line) {
  const auto isOf = [&](const FormerWords *words) {
    return line.starts_with(words->name) && line.substr(words->name.size(), 1) == " ";
  };
  const auto known = formerWords();
  const auto words = std::ranges::find_if(known, isOf);
  if (words == known.end()) return std::string(line);
  line.remove_prefix((*words)->name.size());
  std::string text((*words)->family.name);
  while (!line.empty()) {
    const size_t end = std::min(line.find(' ', 1), line.size());
    text += ' ' + migratedKnob(line.substr(1, end - 1), (*words)->knobs);
    line.remove_prefix(end);
  }
  return text;
}

MigratedSubject migratedSubject(std::string_view hash, std::string_view name) {
  MigratedSubject subject{.hash = std::string(hash), .name = std::string(name)};
  if (!name.starts_with(firstWord.old)) return subject;
  subject.name.replace(0, firstWord.old.size(), firstWord.now);
  if (profileHash(name) == hash) subject.hash = profileHash(subject.name);
  return subject;
}

}  // namespace weft
