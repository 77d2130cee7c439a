// The kernel families that there are. Adding one is its folder beside this file, and its line here.
#include "kernel/FamilyRegistry.h"

#include <array>

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

#define WEFT_ADDRESS(family) &family,
constexpr std::array everyFamily = {WEFT_FAMILIES(WEFT_ADDRESS)};
constexpr std::array everyFormerWords = {&sm90GemmFormerWords, &sm80GemmFormerWords,
                                         &fmaGemmFormerWords};

const FamilyRegistry registry(everyFamily, everyFormerWords);

}  // namespace
}  // namespace weft

/// What the linker option of weft_families names, so that this file is linked.
extern "C" const char weftFamilyRegistry;
const char weftFamilyRegistry = 0;
