// The kernel families that there are. Adding one is its folder beside this file, and its line here.
#include "kernel/Family.h"
#include "kernel/ProfileMigration.h"

#include <array>
#include <vector>

/// The order is that of enumeration, and ties of prices go to the first: cheapest family first.
#define WEFT_FAMILIES(family)                                                          \
  family(viewFamily) family(transposeFamily) family(loopFamily) family(sm90GemmFamily) \
      family(libraryFamily) family(sm80GemmFamily) family(fmaGemmFamily)               \
          family(sm90AttentionFamily) family(sm80AttentionFamily)                      \
              family(sm90AttentionBackwardFamily) family(sm80AttentionBackwardFamily)

namespace weft {

#define WEFT_DECLARE(family) extern const Family family;
WEFT_FAMILIES(WEFT_DECLARE)

extern const FormerWords sm90GemmFormerWords, sm80GemmFormerWords, fmaGemmFormerWords;

namespace {

std::vector<const Family *> &registry() {
#define WEFT_ADDRESS(family) &family,
  static std::vector<const Family *> list = {WEFT_FAMILIES(WEFT_ADDRESS)};
  return list;
}

}  // namespace

std::span<const Family *const> families() { return registry(); }

std::span<const FormerWords *const> formerWords() {
  static constexpr std::array words = {&sm90GemmFormerWords, &sm80GemmFormerWords,
                                       &fmaGemmFormerWords};
  return words;
}

FamilyRegistration::FamilyRegistration(const Family &family) { registry().push_back(&family); }

}  // namespace weft
