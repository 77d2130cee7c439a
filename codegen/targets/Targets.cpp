// Architectures and what they can do; see Targets.h.
#include "codegen/targets/Targets.h"

#include <charconv>
#include <ranges>

namespace weft::codegen {

namespace {

/// 90 of "sm_90a".
int numberOf(std::string_view architecture) {
  int number = 0;
  if (architecture.starts_with("sm_"))
    std::from_chars(architecture.data() + 3, architecture.data() + architecture.size(), number);
  return number;
}

}  // namespace

const std::vector<std::string_view> &targets() {
  static const std::vector<std::string_view> all = {"sm_80", "sm_86", "sm_89", "sm_90a"};
  return all;
}

bool hasClusters(std::string_view architecture) { return numberOf(architecture) >= 90; }

bool hasEarlyStarts(std::string_view architecture) { return numberOf(architecture) >= 90; }

bool hasWgmma(std::string_view architecture) { return architecture == "sm_90a"; }

bool hasMmaSync(std::string_view architecture) { return numberOf(architecture) >= 80; }

bool runsOn(std::string_view target, std::string_view gpu) {
  if (target.ends_with('a')) return target.substr(0, target.size() - 1) == gpu;
  return target.size() == gpu.size() &&
         target.substr(0, target.size() - 1) == gpu.substr(0, gpu.size() - 1) &&
         target.back() <= gpu.back();
}

std::string targetOf(std::string_view gpu) {
  for (const std::string_view target : std::views::reverse(targets()))
    if (runsOn(target, gpu)) return std::string(target);
  return std::string(gpu);
}

}  // namespace weft::codegen
