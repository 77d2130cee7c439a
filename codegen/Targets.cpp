// Architectures and what they can do; see Targets.h.
#include "codegen/Targets.h"

#include <charconv>

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

bool hasWgmma(std::string_view architecture) { return architecture == "sm_90a"; }

bool hasMmaSync(std::string_view architecture) { return numberOf(architecture) >= 80; }

}  // namespace weft::codegen
